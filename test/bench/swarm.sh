# A real coordinator and N agents without workers over real TCP: from the first connect until all hold their world; from
# the loss of one until all others hold the next (the reconnect grace of 100 ms is in it); what the coordinator costs.
# More than 5,000 agents are spread over two processes, since a process has so many descriptors only.
. "$(dirname "$0")/../lib/bench.sh"
AGENT=$BUILD/test/e2e/fake_agent
# Beside the small ones: torch's own rendezvous, a thread for each node, as many as it can stand.
SMALL=${SMALL-8 16 32 64} SIZES=${SIZES:-100 1000 4000 10000}
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
for n in $SMALL $SIZES; do
    i=0
    while [ $i -lt "$RUNS" ]; do sample "$n" || exit 1; i=$((i + 1)); done
    emit elrun "$n.form" "$n agents join and hold their world" ms "first connect" "the last agent has its WORLD" "$(budget "$n")"
    [ "$n" -ge 100 ] || continue
    emit elrun "$n.reform" "$n agents lose one: all others hold the next world" ms "its connection closes" "the last agent has its WORLD"
    emit elrun "$n.rss" "memory of the coordinator, $n agents" KiB "its start" "the end (peak)"
    emit elrun "$n.cpu" "processor time of the coordinator for joining, $IDLE s of heartbeats and a second round, for each of $n agents" us "its start" "the end"
    emit elrun "$n.idle" "traffic of an idle agent, both ways, of $n" "bytes/s" "all hold their world" "$IDLE s later"
done

[ -z "$SMALL" ] || if "$PY" "$(dirname "$0")/handlers.py" 3 $SMALL >"$T/handlers" 2>"$T/handlers.err"; then
    sed "s/^/torch's handlers:/" "$T/handlers" >>"$T/samples"
else
    echo "swarm: no sample of torch's handlers" >&2; tail -3 "$T/handlers.err" >&2
fi
for n in $SMALL; do
    emit "torch's handlers" "$n.form" "$n agents join and hold their world" ms "first connect" "the last agent has its WORLD"
done

# growth METRIC "what": of each run, what 1,000 agents more cost, and the exponent, from 1,000 to 10,000
growth() {
    awk -v m="$1" '$1 == "elrun:1000." m { a[++i] = $2 } $1 == "elrun:10000." m { b[++j] = $2 }
        END { for (k = 1; k <= i && k <= j; k++)
            print "elrun:slope." m, (b[k] - a[k]) / 9 "\nelrun:power." m, log(b[k] / a[k]) / log(10) }' "$T/samples" >"$T/growth"
    cat "$T/growth" >>"$T/samples"
    emit elrun "slope.$1" "slope from 1,000 to 10,000 agents: $2, for each 1,000 more" "$3" "the row of 1,000" "the row of 10,000, less that, by 9"
    emit elrun "power.$1" "$2 from 1,000 to 10,000 agents: exponent of the growth, 1 is linear" "" "the row of 1,000" "the row of 10,000"
}
case " $SIZES " in *" 1000 "*"10000 "*)
    growth form "they join" ms
    growth reform "they lose one" ms
    growth rss "memory" KiB
esac
