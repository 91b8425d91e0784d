# --events: names and order of what happens, whole JSON lines, wherever they go: a full disk, a closed descriptor, a folder,
# a FIFO that nobody reads; of one node, of two, of elrun store.
# Seen to fail: a build without tell_moved() in step() of agent_io.c (the order); one whose write_all() does not mend torn
# lines (one eats the next); one whose serve_io.c does not hand on_note() to its coordinator (the store's own).
. "$(dirname "$0")/../lib/e2e.sh"
events() { sed -n 's/.*"event":"\([a-z_]*\)".*/\1/p' "$1"; }
in_a_row() { tr '\n' ' ' | sed 's/ $//'; }
# field FILE EVENT NAME: of each such event
field() { "$PY" -c 'import json, sys
for l in open(sys.argv[1], encoding="utf-8"):
    e = json.loads(l)
    if e["event"] == sys.argv[2]: print(e[sys.argv[3]])' "$@" | in_a_row; }
# whole FILE: every line is one JSON object that begins with the common fields, and time does not go back
whole() { "$PY" -c 'import json, sys
last = ""
for l in open(sys.argv[1], encoding="utf-8"):
    e = json.loads(l)
    assert list(e)[:8] == ["v", "event", "time", "mono_us", "run_id", "host", "source", "round"], l
    assert e["v"] == 1 and len(e["time"]) == 27 and e["time"] >= last, l
    last = e["time"]
assert last' "$1"; }
warnings() { grep -c 'warning' "$ERR"; }

# --- a restart
run_workers 1 --max-restarts=1 --events="$T/one" -- +0 exit 3 +1 exit 0
is "a restart: status" "$status" 0
is "a restart: what happens, in order" "$(events "$T/one" | in_a_row)" "agent_started job_started \
round_formed workers_starting worker_started workers_started worker_ended round_stopping worker_failed workers_stopped round_closed incident restart \
round_formed workers_starting worker_started workers_started worker_ended workers_stopped round_closed account job_ended agent_ended"
ok "a restart: whole lines" whole "$T/one"
is "a restart: who ended how" "$(field "$T/one" worker_ended exit_code)" "3 0"
is "a restart: rounds" "$(field "$T/one" worker_ended round)" "1 2"
like "a restart: the incident says what" "$(field "$T/one" incident text)" "^rank 0 .*exit code 3"
is "a restart: and that it is the cause" "$(field "$T/one" incident cause)" "True"
like "a restart: with its record" "$(field "$T/one" incident record)" "'code': 3"
is "a restart: how it ends" "$(field "$T/one" job_ended status)" 0
is "the file's mode" "$(stat -c %a "$T/one")" 600
run_workers 1 --events="$T/one" -- exit 0
is "appended" "$(events "$T/one" | grep -c job_started)" 2

# --- workers that are stopped; several of them
run_workers 3 --events="$T/three" --max-restarts=0 -- @1 await "$T/never~" @2 await "$T/never~" @0 exit 5
is "a failure: status" "$status" 5
is "a failure: who was stopped" "$(field "$T/three" worker_ended stopped)" "False True True"
is "a failure: by what" "$(field "$T/three" worker_ended signal_name)" "None SIGTERM SIGTERM"
is "a failure: why they stop" "$(field "$T/three" workers_stopping why)" "worker failed"
like "a failure: what the job says at its end" "$(field "$T/three" agent_ended text)" "rank 0 .*exit code 5"
ok "a failure: whole lines" whole "$T/three"

# --- where lines go
run_workers 1 --events=fd:7 -- exit 0 7>"$T/seven"
is "a descriptor: status" "$status" 0
ok "a descriptor: whole lines" whole "$T/seven"
is "a descriptor: to the end" "$(events "$T/seven" | tail -1)" agent_ended
run_workers 1 --events=fd:7 -- record "$T/fds" 7>"$T/seven"
is "a descriptor: is not the workers'" "$(grep -c seven "$T/fds.0.0")" 0
# lost NAME WHERE REGEX: the job is not hurt, and one warning counts what is missing
lost() {
    is "$1: status" "$status" 0
    is "$1: one warning" "$(warnings)" 1
    like "$1: how many, where and why" "$(cat "$ERR")" "warning: events: [0-9]+ of [0-9]+ events were not written to $2: $3"
}
run_workers 1 --events=fd:33 -- exit 0
lost "a closed descriptor" fd:33 "Bad file descriptor"
run_workers 1 --events=fd:7 -- exit 0 7</dev/null
lost "a descriptor to read from" fd:7 "Bad file descriptor"
mkfifo "$T/fifo"
run_workers 1 --events="$T/fifo" -- exit 0
lost "a FIFO that nobody reads" "$T/fifo" "No such device or address"
if [ -c /dev/full ]; then
    run_workers 1 --events=/dev/full -- exit 0
    lost "a full device" /dev/full "No space left on device"
else
    skip "a full device" "there is no /dev/full"
fi
run_workers 1 --events="$T/tmp" -- touch "$T/ran"
is "a folder: status" "$status" 73
like "a folder: says so" "$(cat "$ERR")" "--events=$T/tmp: Is a directory"
run_workers 1 --events="$T/none/x" -- touch "$T/ran"
is "no such folder: status" "$status" 73
run_workers 1 --events=fd:x -- touch "$T/ran"
is "no number: status" "$status" 2
ok "none of them started a worker" test ! -e "$T/ran"
# A reader that goes away, and one that takes nothing: the job's end is not held up for ever.
(exec 8<>"$T/fifo"; : >"$T/opened"; until [ -e "$T/runs.0.0" ]; do sleep 0.02; done; exec 8>&-; : >"$T/gone") &
wait_for test -e "$T/opened"
run_workers 1 --events="$T/fifo" -- touch "$T/runs" await "$T/gone"
lost "a reader that goes away" "$T/fifo" "Broken pipe|No such device"

# --- a disk of one page, full in the middle of a line, then free again
printf '#!/bin/sh\nmount -t tmpfs -o size=8k none "$0.d" || exit 99\n"$@"\nrc=$?\ncp "$0.d/events" "$0.copy"\nexit $rc\n' >"$T/small"
chmod +x "$T/small"; mkdir "$T/small.d"
if unshare -m true 2>/dev/null; then
    PREFIX="unshare -m $T/small" DISK=$T/small.d
    run --standalone --max-restarts=5 --events="$DISK/events" --no-python sh -c 'case $TORCHELASTIC_RESTART_COUNT in
        0) head -c 4096 /dev/zero >"$0.d/ballast"; exit 1 ;; 4) rm "$0.d/ballast"; exit 1 ;; 5) ;; *) exit 1 ;; esac' "$T/small"
    PREFIX=
    lost "a full disk" "$DISK/events" "No space left on device"
    "$PY" - "$T/small.copy" <<'PYTHON' >"$T/torn"
import json, sys
whole = 0
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    try: whole += json.loads(line)["v"]
    except ValueError: pass
print(whole)
PYTHON
    is "a full disk: what was not counted as lost is whole" "$(cat "$T/torn")" \
        "$(sed -n 's/.*events: \([0-9]*\) of \([0-9]*\) events.*/\2 - \1/p' "$ERR" | xargs expr)"
else
    skip "a full disk" "mount namespaces are refused"
fi

# --- two nodes, and the store
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
pids=
for i in 0 1; do
    OUT=$T/out.$i ERR=$T/err.$i
    start --nnodes=2 --nproc-per-node=2 --max-restarts=1 --rdzv-id=two --node-rank=$i --rdzv-endpoint="127.0.0.1:$port" \
        --events="$T/node.$i" --no-python "$WORKER" touch "$T/two" +0 @3 await "$T/two.0.0" +0 @3 await "$T/two.0.1" +0 @3 await "$T/two.0.2" \
        +0 @3 exit 4 +0 await "$T/never~" +1 exit 0
    pids="$pids $elrun_pid"
done
for p in $pids; do elrun_pid=$p; finish; is "two nodes: status" "$status" 0; done
for i in 0 1; do ok "two nodes: whole lines" whole "$T/node.$i"; done
cat "$T/node.0" "$T/node.1" >"$T/both"
of_job() { sed -n 's/.*"event":"\([a-z_]*\)".*"source":"coordinator".*/\1/p' "$1"; }
is "two nodes: one of them writes what happens to the job" "$(of_job "$T/both" | grep -v '^node_left$\|^finding$' | in_a_row)" \
    "job_started node_joined node_joined round_formed worker_failed round_stopping root_cause round_closed round_formed job_ended"
is "two nodes: both write what happens to them" "$(events "$T/both" | grep -c '^workers_started$')" 4
is "two nodes: ranks" "$("$PY" -c 'import json, sys
print(sorted(json.loads(l)["rank"] for l in open(sys.argv[1]) if "\"worker_started\"" in l))' "$T/both")" "[0, 0, 1, 1, 2, 2, 3, 3]"
is "two nodes: the incident is told where it was" "$(field "$T/both" incident rank)" 3
is "two nodes: the end's status" "$(field "$T/both" job_ended status)" 0

OUT=$T/out.s ERR=$T/err.s
ENV= start store --bind=127.0.0.1 --port=0 --port-file="$T/port" --events="$T/store"
store_pid=$elrun_pid
wait_for test -s "$T/port"
run --nnodes=1 --rdzv-id=three --rdzv-endpoint="127.0.0.1:$(cat "$T/port")" --rdzv-conf=is_host=0 --no-python "$WORKER" exit 0
is "elrun store: status of the node" "$status" 0
kill -TERM $store_pid; elrun_pid=$store_pid; finish
is "elrun store: status" "$status" 0
ok "elrun store: whole lines" whole "$T/store"
like "elrun store: what happens to its jobs" "$(events "$T/store" | in_a_row)" "^job_started node_joined round_formed job_ended"
is "elrun store: which job" "$(field "$T/store" job_ended run_id)" three

is_clean "events"
finished
