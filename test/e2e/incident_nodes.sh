# A failure on one of three nodes with eight workers each, at every place once, while the others fail after it in their own
# ways and times: who was first is named, once, on rank 0's node and by the coordinator, with all ranks of the world.  Clocks
# an hour apart, storms, an agent that dies right after its worker.
# Seen to fail: with member_on_clock() of member_link.c without the offset, with `MEMBER_DO_INCIDENTS` in membership_io.c that
# does nothing, with put_kinds() of summary.c that does not name the same ("once"), with from_row() of job_report.c that takes
# the words of a row for the worker's own ("it still counts").
. "$(dirname "$0")/../lib/e2e.sh"
TRACE='Traceback (most recent call last):
  File "/home/me/train.py", line 7, in <module>
    step()
ValueError: planted
'
GLOO='Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    dist.all_reduce(t)
RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4811
'
ports=$("${PY:-python3}" -c '
import socket
s = [socket.socket() for _ in range(40)]
[x.bind(("127.0.0.1", 0)) for x in s]
print(*[x.getsockname()[1] for x in s])')
set -- $ports
next_port() { port=${ports%% *}; ports=${ports#* }; }

# nodes TAG OPTIONS... -- VERBS...: three agents; $SHIFT: the one whose monotonic clock is an hour ahead.  $IDLE: nobody fails by it
SHIFT=
nodes() {
    tag=$1; shift
    o=; while [ "$1" != -- ]; do o="$o $1"; shift; done; shift
    next_port
    for i in 0 1 2; do
        OUT=$T/$tag.$i.out ERR=$T/$tag.$i.err PREFIX=
        [ "$SHIFT" != $i ] || PREFIX="unshare -T --monotonic 3600 --"
        start --nnodes=3 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$tag" --redirects=3 \
            --log-dir="$T/logs.$tag.$i" $o --no-python "$WORKER" "$@"
        eval "pid_${tag}_$i=$elrun_pid"
    done
    PREFIX=
}
ended_all() { # TAG: statuses
    statuses=
    for i in 0 1 2; do eval "elrun_pid=\$pid_$1_$i"; finish; statuses="$statuses${statuses:+ }$status"; done
}
# fails RANK TAG: this rank fails with a traceback; each other one some time after its end, in one way or another
fails() {
    bad=$1 tag=$2
    set -- meet @$bad sleep $((bad * 7 % 40)) @$bad err "$TRACE" @$bad record "$T/pid.$tag" @$bad exit 3 outlive "$T/pid.$tag.0.$bad"
    for r in $(seq 0 23); do
        ms=$(((r * 11 + bad * 5) % 30))
        if [ $(((r + bad) % 3)) = 0 ]; then set -- "$@" @$r sleep $((ms + 300)) @$r exit 1 # says nothing: must not be seen before who failed first
        else set -- "$@" @$r sleep $ms @$r err "$GLOO" @$r exit 1; fi
    done
    nodes "$tag" --nproc-per-node=8 --max-restarts=0 -- "$@"
}
verdict() { sed -n 's/^elrun: \(rank [0-9]* on .* failed: .*\)/\1/p' "$T/$1.0.err" | head -1; }
summaries() { grep -cE '^elrun: rank [0-9]+ on [^ ]+ failed: ' "$1"; }
# Each rank that a summary names, as often as it does: the cause, who failed too, who ended because of it.
told() {
    report_of "$1" | sed -n 's/^elrun: rank \([0-9]*\) on .* failed: .*/\1/p;s/^  ranks* \([0-9,-]*\) .*failed too: .*/\1/p;s/^  failed too: .* ranks* //p;s/^  [0-9]* others* failed in the same way: ranks* //p
        /^  [0-9]* others* ended because of it: /{s/.*because of it: ranks* //;s/ ([^)]*)//g;s/, /,/g;p;}' |
        tr ',' '\n' | awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }' | sort -n | tr '\n' ' '
}

# --- at every place
right= doubts=0
for batch in 0 3 6 9 12 15 18 21; do
    for k in 0 1 2; do fails $((batch + k)) p$((batch + k)); done
    for k in 0 1 2; do
        r=$((batch + k))
        ended_all p$r
        case "$(verdict p$r)" in "rank $r on "*" failed: exit code 3: ValueError: planted (train.py:7)") right="$right $r" ;;
        *) note "rank $r failed first: $(verdict p$r)"; note "$(report_of "$T/p$r.0.err" | head -40)" ;;
        esac
        told=
        for i in 0 1 2; do
            want=0 # the agent that has the port is the coordinator
            [ $i != 0 ] && ! grep -q '^elrun: coordinator:' "$T/p$r.$i.err" || want=1
            told="$told $(summaries "$T/p$r.$i.err")/$want"
        done
        case $statuses$told in "3 3 3 1/1 0/0 0/0" | "3 3 3 1/1 1/1 0/0" | "3 3 3 1/1 0/0 1/1") ;;
        *) note "rank $r: exit statuses $statuses, summaries $told"; doubts=$((doubts + 1)) ;;
        esac
    done
done
is "a failure at every place: the first cause is named each time" "${right# }" "$(seq -s ' ' 0 23)"
is "a failure at every place: its exit status on each node, one summary on rank 0's node, one by the coordinator" $doubts 0
each=
for r in $(seq 0 23); do [ "$(told "$T/p$r.0.err")" = "$(seq -s ' ' 0 23) " ] || each="$each $r: $(told "$T/p$r.0.err")"; done
is "a failure at every place: each rank of the world is in the summary, once" "$each" ""
like "survivors say for whom they stop" "$(cat "$T"/p*.err)" 'stopping: rank [0-9]+ on .* failed: exit code'
like "the log of the cause is named, with its host" "$(cat "$T/p13.0.err")" "^  stderr of rank 13: $(uname -n):$T/logs.p13.1/.*/5/stderr.log"

# --- clocks
# The coordinator stands still meanwhile: what it hears comes all at once, and only the times tell who was first.
entered() { [ "$(grep -c '^in' "$1" 2>/dev/null)" -ge "$2" ]; }
ahead() { # NODE: this one fails, the others 0.1 s after it; node 1 is an hour ahead
    OUT=$T/cs$1.out ERR=$T/cs$1.err
    start store --port 0 --port-file "$T/cs$1.port"
    store=$elrun_pid
    wait_for test -s "$T/cs$1.port"
    ports="$(cat "$T/cs$1.port") $ports"
    bad=$(($1 * 2)) file=$T/pid.c$1.0.$(($1 * 2))
    set -- "$1" meet enter "$T/c$1.log" @$bad await "$T/go.c$1" @$bad record "$T/pid.c$1" @$bad err "$TRACE" @$bad exit 3
    for r in 0 2 4; do [ $r = $bad ] || set -- "$@" @$r outlive "$file" @$r sleep 100 @$r exit 1; done
    node=$1; shift
    SHIFT=1
    nodes "c$node" --nproc-per-node=2 --max-restarts=0 -- "$@" forever
    SHIFT=
    wait_for entered "$T/c$node.log" 6
    kill -STOP "$store"
    echo >"$T/go.c$node"
    for i in 0 1 2; do wait_for grep -qE 'failed(: | [(])exit code' "$T/c$node.$i.err"; done
    kill -CONT "$store"
    ended_all "c$node"
    like "a clock an hour ahead on node 1, failure on node $node" "$(verdict "c$node")" "^rank $bad on .* failed: exit code 3: ValueError: planted"
    kill -TERM "$store"; elrun_pid=$store; finish
}
if why=$(unshare -T --monotonic 3600 true 2>&1); then
    for k in 0 1 2; do ahead $k; done
else
    for k in 0 1 2; do skip "a clock an hour ahead on node 1, failure on node $k" "no time namespaces: $why"; done
fi

# --- only one node fails
nodes one --nproc-per-node=1 --max-restarts=0 -- meet @2 exit 3 forever
ended_all one
is "one node fails: statuses" "$statuses" "3 3 3"
like "one node fails: rank 0's node, where nobody did, accounts for the time too, and says how it ended" "$(cat "$T/one.0.err")" '^elrun: ended with status [1-9][0-9]* after .* running'

# --- storm
nodes storm --nproc-per-node=32 --max-restarts=0 -- meet err "$TRACE" exit 3
ended_all storm
is "96 workers fail at once: status" "$statuses" "3 3 3"
is "96 workers fail at once: one summary" "$(summaries "$T/storm.0.err")" 1
is "96 workers fail at once: each is in it, once" "$(told "$T/storm.0.err")" "$(seq -s ' ' 0 95) "
ok "96 workers fail at once: one screen" test "$(grep -c . "$T/storm.0.err")" -le 200

# --- the agent dies right after its worker
# What it has told by then the coordinator keeps; where the agent is the coordinator's host, those who stop for it have it in
# their logs, and the one that takes over knows no more than that a node is gone.
dies() { # TAG HOST: node 2's agent is killed, HOST's has the coordinator
    next_port
    for i in $2 0 1 2; do
        eval "pid=\${pid_$1_$i-}"
        [ -z "$pid" ] || continue
        OUT=$T/$1.$i.out ERR=$T/$1.$i.err
        start --nnodes=2:3 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$1 --nproc-per-node=2 --max-restarts=0 --settle=0.5 \
            --redirects=3 --no-python "$WORKER" meet enter "$T/$1.log" @5 +0 await "$T/go.$1" @5 +0 exit 7 ignore TERM await "$T/over.$1"
        eval "pid_$1_$i=$elrun_pid"
        [ $i != $2 ] || wait_for grep -q "coordinator: .*(node rank $2, .* has joined" "$ERR"
    done
    wait_for entered "$T/$1.log" 6
    echo >"$T/go.$1"
    wait_for grep -q 'stopping: rank 5 on' "$T/$1.0.err"
    eval "kill -KILL \$pid_$1_2"
    echo >"$T/over.$1"
    ended_all $1
}
dies d 0
is "kill -9 of its agent right after a failure: the job goes on" "$statuses" "0 0 137"
like "kill -9 of its agent right after a failure: it still counts" "$(cat "$T/d.0.err")" '^elrun: rank 5 on .* failed: exit code 7$'
like "kill -9 of its agent right after a failure: why there is no more" "$(cat "$T/d.0.err")" '^  only how it ended was told: its agent was lost'
dies h 2
is "kill -9 of the coordinator's host right after its worker's failure: the job goes on" "$statuses" "0 0 137"
for i in 0 1; do
    like "kill -9 of the coordinator's host right after its worker's failure: node $i has the cause" "$(cat "$T/h.$i.err")" '^elrun: stopping: rank 5 on .* failed: exit code 7$'
done

# --- a coordinator that stands alone
OUT=$T/store.out ERR=$T/store.err
start store --port 0 --port-file "$T/store.port"
store=$elrun_pid
wait_for test -s "$T/store.port"
ports="$(cat "$T/store.port") $ports"
fails 9 s
ended_all s
is "elrun store: one summary in its log, one on rank 0's node" "$(grep -c 'elrun: rank .* on .* failed: ' "$T/store.err") $(summaries "$T/s.0.err") $(summaries "$T/s.1.err")" "1 1 0"
like "elrun store: with the cause" "$(cat "$T/store.err")" 'rank 9 on .* failed: exit code 3: ValueError: planted'
kill -TERM "$store"; elrun_pid=$store; finish
wait_for no_leftovers
is "incidents: no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
