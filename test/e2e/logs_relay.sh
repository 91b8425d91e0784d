# elrun logs: what a worker prints, through the coordinator, whichever agent it belongs to; over restarts; whole.
# Seen to fail: a build whose coordinator does not pass LOGS_NEXT on (the flood stands still after two pieces); one that
# does not tell the agent of readers that are gone (their files stay open); one without logs_leave() (the end is missing).
. "$(dirname "$0")/../lib/e2e.sh"
NL='
'
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
at="--endpoint 127.0.0.1:$port"

# agent NODE-RANK OPTIONS... -- VERBS...
pids=
agent() {
    agent_rank=$1; shift
    OUT=$T/out.$agent_rank ERR=$T/err.$agent_rank
    agent_o=; while [ "$1" != -- ]; do agent_o="$agent_o $1"; shift; done; shift
    start --nnodes=2 --nproc-per-node=1 --rdzv-id=logs --node-rank="$agent_rank" --rdzv-endpoint="127.0.0.1:$port" \
        --shutdown-timeout=5s --log-dir="$T/log.$agent_rank" $agent_o --no-python "$WORKER" "$@"
    pids="$pids $elrun_pid"
}
# The first one has the coordinator: it listens before the other one starts.
listens() { "$ELRUN" status $at --timeout 5s; }
both() { rm -f "$T"/w.*; agent 0 "$@"; wait_for listens; agent 1 "$@"; }
all_end() { # NAME STATUS: of both agents
    all_status=
    for p in $pids; do elrun_pid=$p; finish; all_status="$all_status $status"; done
    pids=
    is "$1" "$all_status" " $2 $2"
}
ask() { env E2E_MARK="$T" timeout "$DEADLINE" "$ELRUN" logs $at "$@" >"$T/ask.out" 2>"$T/ask.err"; status=$?; }
# reader NAME ARGUMENTS...: follows in the background, in its own process: its pid is in $reader_pid
reader() {
    reader_name=$1; shift
    env E2E_MARK="$T" "$ELRUN" logs $at -f "$@" >"$T/$reader_name.out" 2>"$T/$reader_name.err" &
    reader_pid=$!
}
reader_end() { # PID: waits for it
    if wait_for ended "$1"; then wait "$1"; status=$?; else kill -KILL "$1"; wait "$1"; status=hung; fi
}
# How many inotify descriptors a process has: one for each reader that follows.
readers_of() { for l in /proc/"$1"/fdinfo/*; do [ -e "$l" ] && readlink "/proc/$1/fd/${l##*/}"; done 2>/dev/null | grep -c inotify; }
reads_none() { [ "$(readers_of "$1")" = 0 ]; }
reads() { [ "$(readers_of "$1")" = "$2" ]; }

# --- with files: either agent's rank, at the coordinator's host or not
both --tee=3 --max-restarts=1 -- out "one${NL}two${NL}three${NL}" err "e1${NL}e2${NL}" touch "$T/w" \
    +0 await "$T/go.0" +1 await "$T/go.1" +0 out "last of 0${NL}" +1 out "last of 1${NL}" +0 @1 exit 3 +0 forever
wait_for files "$T/w.0.?" 2
host1=$(echo $pids | cut -d' ' -f2)
for r in 0 1; do
    ask $r --lines 2
    is "rank $r: status" "$status" 0
    is "rank $r: the last lines of stdout" "$(cat "$T/ask.out")" "two${NL}three"
    is "rank $r: the last lines of stderr, on stderr" "$(grep -v ^elrun "$T/ask.err")" "e1${NL}e2"
    like "rank $r: where the file is" "$(cat "$T/ask.err")" "rank $r of round 1: stdout is [^ ]+:$T/log.$r/.*/attempt_0/0/stdout.log"
done
ask
like "no rank: rank 0" "$(cat "$T/ask.err")" 'rank 0 of round 1'
ask 1 --stream stderr -n 1
is "one stream, options behind the rank" "$(cat "$T/ask.out"; grep -v ^elrun "$T/ask.err")" "e2"
ask -n 0 1
is "no lines" "$(cat "$T/ask.out")" ""
ask 7
is "no such rank: status" "$status" 1
like "no such rank: which there are" "$(cat "$T/ask.err")" 'no rank 7: round 1 has ranks 0 to 1'
ask seven
is "no number: status" "$status" 2
ask 1 2
is "two ranks: status" "$status" 2
ask --rdzv-id other
is "another job: status" "$status" 1
like "the round's line names rank 0's log" "$(cat "$T/err.0")" "round 1: .*its log is [^ ]+:$T/log.0/.*stdout.log"
unlike "on its node only" "$(cat "$T/err.1")" 'its log is'

# --- readers that are killed leave nothing behind
killed=
for i in 1 2 3 4 5 6 7 8; do reader k$i 1; killed="$killed $reader_pid"; done
wait_for reads "$host1" 8
is "eight read from one node" "$(readers_of "$host1")" 8
ask 1
is "a ninth is refused" "$status" 1
like "a ninth is told why" "$(cat "$T/ask.err")" '8 others read'
kill -KILL $killed
wait $killed 2>/dev/null
wait_for reads_none "$host1"
is "killed readers: nothing stays open at the agent" "$(readers_of "$host1")" 0

# --- over a restart, to the end
reader f 1 --lines 1; followers=$reader_pid
reader g 0 --lines 1; followers="$followers $reader_pid"
wait_for holds "$T/f.out" three; wait_for holds "$T/g.out" three
: >"$T/go.0"
ok "what is printed later comes" wait_for holds "$T/f.out" 'last of 0'
ok "the next attempt comes" wait_for holds "$T/f.err" 'round 2: stdout is .*attempt_1'
wait_for files "$T/w.1.?" 2
: >"$T/go.1"
all_end "the job: status" 0
for p in $followers; do reader_end "$p"; is "a reader at the end of the job: status" "$status" 0; done
is "followed: all of it, once" "$(cat "$T/f.out")" "three${NL}last of 0${NL}one${NL}two${NL}three${NL}last of 1"
is "rank 0, with the coordinator in its agent: all of it, once" "$(tail -4 "$T/g.out")" "one${NL}two${NL}three${NL}last of 1"
rm -f "$T"/go.*
ask 0
is "nobody listens any more" "$status" 69

# --- a flood arrives whole; who does not read holds nobody up, neither workers nor the other reader
both --redirects=3 -- touch "$T/w" await "$T/go.0" @1 flood 40000 100 err "done${NL}"
wait_for files "$T/w.0.?" 2
reader slow 1 -n 1000000; slow=$reader_pid
wait_for holds "$T/slow.err" 'stdout is'
kill -STOP "$slow"
reader fast 1 -n 1000000; fast=$reader_pid
wait_for holds "$T/fast.err" 'stdout is'
: >"$T/go.0"
all_end "a flood, and a reader that stands still: status" 0
reader_end "$fast"
is "the other reader: status" "$status" 0
ok "the other reader has all of it" cmp "$T/fast.out" "$(ls -t "$T"/log.1/*/attempt_0/0/stdout.log | head -1)"
kill -CONT "$slow"; reader_end "$slow"
rm -f "$T"/go.*

# --- bytes that are no text
printf 'a\000b\377c\303\251\n' >"$T/bytes"
rm -f "$T"/w.*
for i in 0 1; do
    OUT=$T/out.$i ERR=$T/err.$i
    start --nnodes=2 --nproc-per-node=1 --rdzv-id=logs --node-rank=$i --rdzv-endpoint="127.0.0.1:$port" --redirects=1 \
        --log-dir="$T/log.b" --no-python sh -c "cat '$T/bytes'; : >'$T/w.0.'\$RANK; while ! [ -e '$T/go.0' ]; do sleep 0.05; done"
    pids="$pids $elrun_pid"
done
wait_for files "$T/w.0.?" 2
ask 1
is "bytes that are no text are replaced" "$(od -An -c "$T/ask.out" | tr -d ' \n')" "$(printf 'a\357\277\275b\357\277\275c\303\251\n' | od -An -c | tr -d ' \n')"
: >"$T/go.0"
all_end "no text: status" 0
rm -f "$T"/go.*

# --- no files
both -- err "${NL}x1${NL}x2${NL}x3${NL}" touch "$T/w" await "$T/go.0"
wait_for files "$T/w.0.?" 2
ask 1 -n 2
is "no files: status" "$status" 0
is "no files: the last lines that elrun has" "$(grep ^x "$T/ask.err")" "x2${NL}x3"
like "no files: what would keep them, and where" "$(cat "$T/ask.err")" "stderr has no log file on [^ ]+: .*--tee or --redirects"
ask 1 -f
is "no files cannot be followed" "$status" 1

# --- the node of the rank is killed
kill -KILL $(echo $pids | cut -d' ' -f2)
wait_for holds "$T/err.0" 'lost'
ask 1
is "the rank's node is gone: status" "$status" 1
like "the rank's node is gone: said" "$(cat "$T/ask.err")" 'refused: .*rank 1'
"$ELRUN" stop $at >/dev/null 2>&1
elrun_pid=$(echo $pids | cut -d' ' -f1)
finish
is_clean "at the end"
finished
