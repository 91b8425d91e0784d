# A real coordinator and N agents without workers over real TCP: from the first connect until all hold their world; from
# the loss of one until all others hold the next (the reconnect grace of 100 ms is in it); what the coordinator costs.
# More than 5,000 agents are spread over two processes, since a process has so many descriptors only.
. "$(dirname "$0")/../lib/bench.sh"
AGENT=$BUILD/test/e2e/fake_agent
SIZES=${SIZES:-100 1000 4000 10000}
IDLE=1

sample() { # N: one sample, into $T/samples
    n=$1 half=0
    [ "$n" -le 5000 ] || half=$((n / 2))
    rm -f "$T/port"
    # It keeps a journal, so that it need not listen for agents of the time before it.
    "$ELRUN" store --port 0 --port-file "$T/port" --state-dir "$T/state" >"$T/log" 2>&1 &
    store=$!
    while ! [ -s "$T/port" ]; do kill -0 $store || return 1; sleep 0.01; done
    to=127.0.0.1:$(cat "$T/port")
    : >"$T/a"; : >"$T/b"
    other=
    if [ $half != 0 ]; then
        "$AGENT" --agents "$half" --max "$n" --min $((n - 1)) --swarm $IDLE --keep "$to" >"$T/b" &
        other=$!
    fi
    "$AGENT" --agents $((n - half)) --max "$n" --min $((n - 1)) --swarm $IDLE "$to" >"$T/a" &
    one=$!
    t=0
    until grep -q '^reformed' "$T/a" && { [ -z "$other" ] || grep -q '^reformed' "$T/b"; }; do
        t=$((t + 1))
        [ $t -lt 1200 ] || { echo "swarm: $n agents do not come together" >&2; kill $one $other $store; return 1; }
        sleep 0.05
    done
    # The swarm begins with its first process; the loss is that of the one that loses an agent, which is told first.
    cat "$T/a" "$T/b" | tr '=' ' ' | awk -v n="$n" '
        $1 == "formed" { if (!b || $5 < b) b = $5; if ($7 > e) e = $7 }
        $1 == "reformed" { if (!lb) lb = $5; if ($7 > le) le = $7 }
        $1 == "idle" { out += $3; in_ += $5; k++ }
        END { print "elrun:" n ".form", (e - b) / 1000; print "elrun:" n ".reform", (le - lb) / 1000
              print "elrun:" n ".idle", (out + in_) / k }' >>"$T/samples"
    awk -v n="$n" '/^VmHWM/ { print "elrun:" n ".rss", $2 }' /proc/$store/status >>"$T/samples"
    awk -v n="$n" -v hz="$(getconf CLK_TCK)" '{ print "elrun:" n ".cpu", ($14 + $15) * 1e6 / hz / n }' /proc/$store/stat >>"$T/samples"
    kill $one $other $store; wait
    rm -rf "$T/state"
}

budget() { case $1 in 1000) echo '<= 250 ms' ;; 10000) echo '<= 2000 ms' ;; esac; }
for n in $SIZES; do
    i=0
    while [ $i -lt "$RUNS" ]; do sample "$n" || exit 1; i=$((i + 1)); done
    emit elrun "$n.form" "$n agents join and hold their world" ms "first connect" "the last agent has its WORLD" "$(budget "$n")"
    emit elrun "$n.reform" "$n agents lose one: all others hold the next world" ms "its connection closes" "the last agent has its WORLD"
    emit elrun "$n.rss" "memory of the coordinator, $n agents" KiB "its start" "the end (peak)"
    emit elrun "$n.cpu" "processor time of the coordinator for joining, $IDLE s of heartbeats and a second round, for each of $n agents" us "its start" "the end"
    emit elrun "$n.idle" "traffic of an idle agent, both ways, of $n" "bytes/s" "all hold their world" "$IDLE s later"
done
