# A failure that everybody is told of: from a worker's death to the summary on the node of rank 0; and a storm, in which
# every worker of many nodes fails at once.
. "$(dirname "$0")/../lib/bench.sh"
AGENT=$BUILD/test/e2e/fake_agent
STORM_NODES=1000 STORM_SLOTS=8 STORM_BYTES=8192

# summary WHO LAUNCHER...: samples of one run
summary() {
    s_who=$1; shift
    if "$PY" "$(dirname "$0")/summary.py" "$s_who" "$@" >"$T/lines" 2>"$T/lines.err"; then
        sed "s/^/$s_who:/" "$T/lines" >>"$T/samples"
    else
        echo "$BENCH: no sample of $s_who" >&2; tail -3 "$T/lines.err" >&2
        [ "$s_who" != elrun ]
    fi
}
port() { echo $((20000 + ($$ * 7 + i * 3) % 10000)); }

# storm: one sample; a coordinator with a journal need not listen for agents of the time before it
storm() {
    rm -rf "$T/port" "$T/state"
    "$ELRUN" store --port 0 --port-file "$T/port" --state-dir "$T/state" >"$T/log" 2>&1 &
    store=$!
    while ! [ -s "$T/port" ]; do kill -0 $store || return 1; sleep 0.01; done
    "$AGENT" --agents $STORM_NODES --min $STORM_NODES --max $STORM_NODES --slots $STORM_SLOTS --restarts 3 --swarm 1 \
        --storm $STORM_BYTES "127.0.0.1:$(cat "$T/port")" >"$T/storm" &
    agents=$!
    t=0
    until grep -qs ^formed "$T/storm"; do t=$((t + 1)); [ $t -lt 1200 ] || return 1; sleep 0.05; done
    rss=$(awk '/^VmRSS/ { print $2 }' /proc/$store/status)
    until grep -q ^reformed "$T/storm"; do t=$((t + 1)); [ $t -lt 2400 ] || { kill $agents $store; return 1; }; sleep 0.05; done
    tr '=' ' ' <"$T/storm" | awk '$1 == "stopped" { print "elrun:storm.stopped", $9 } $1 == "reformed" { print "elrun:storm.over", $9 }' >>"$T/samples"
    awk -v before="$rss" '/^VmHWM/ { print "elrun:storm.kib", $2 - before }' /proc/$store/status >>"$T/samples"
    kill $agents $store; wait $agents $store 2>/dev/null
}

for i in $(seq "$RUNS"); do
    at="--max-restarts=0 --rdzv-id=bench --rdzv-endpoint=localhost:$(port)"
    summary elrun "$ELRUN" $at || exit 1
    summary torchrun $TORCHRUN $at --rdzv-backend=c10d
    storm || exit 1
done
for who in elrun torchrun; do
    emit $who rank0 "a worker dies: summary on rank 0's node, three nodes of eight workers" ms "kill(SIGSEGV) of the worker" "the line behind the summary on rank 0's node" "<= 100 ms"
    emit $who own "its own node names the cause" ms "kill(SIGSEGV) of the worker" "the line that names the cause"
done
all="$((STORM_NODES * STORM_SLOTS)) workers of $STORM_NODES nodes fail at once"
emit elrun storm.stopped "$all: every node has its STOP" ms "the first message" "the last STOP"
emit elrun storm.over "$all: told in full, and the next round formed" ms "the first message" "the last WORLD"
emit elrun storm.kib "$all: memory that the coordinator takes for it" KiB "the round runs" "its peak"
