# elrun report: the same verdict from files as live; two nodes put together; folders of logs with and without events; files of
# every other kind.
# Seen to fail: a build in which tell() of tell_io.c leaves log_trace out (no events in the run's folder: the exit status is
# gone); one without timeline_align() (the clock that is an hour ahead).
. "$(dirname "$0")/../lib/e2e.sh"
# The summary without the last lines' prefixes and what only one of them can know.
# The last one: each restart has its own before.
summary() { report_of "$1" | grep -v '^elrun: ended with status '; }
report() { env -u LC_ALL -u LANG -u COLUMNS "$ELRUN" report "$@" >"$T/rep" 2>"$T/rep.err" </dev/null; echo $?; }

# --- a restart, then a failure
run_workers 2 --rdzv-id=pretrain --max-restarts=1 --redirects=3 --log-dir="$T/logs" --events="$T/one" --restart-policy=always \
    -- +0 @1 exit 4 +0 await "$T/never~" +1 @0 raise 6 +1 await "$T/never~"
is "live: status" "$status" 134
summary "$ERR" >"$T/live"
like "live: a summary" "$(cat "$T/live")" '^elrun: rank 0 .*SIGABRT'
is "from events: status" "$(report "$T/one")" 0
summary "$T/rep" | grep -v '^  all logs: ' >"$T/later"
is "from events: the same summary as live" "$(cat "$T/later")" "$(grep -v '^  all logs: ' "$T/live")"
like "from events: headline" "$(head -1 "$T/rep")" 'worker: failed with status 134 after .*; 2 rounds on 1 node, 1 of 1 restarts'
like "from events: the failure that was restarted" "$(cat "$T/rep")" '^1 [0-9:]+ rank 1 \(local rank 1\) failed: exit code 4'
like "from events: the account" "$(cat "$T/rep")" '^time: .* running \([0-9.]+%\).*; 1 restart: '
is "from the log folder: status" "$(report "$T/logs")" 0
summary "$T/rep" >"$T/later"
is "from the log folder: the same summary as live" "$(cat "$T/later")" "$(cat "$T/live")"
is "from the run's folder" "$(report "$T"/logs/*; summary "$T/rep")" "0
$(cat "$T/live")"
is "from an attempt's folder" "$(report "$T"/logs/*/attempt_1; summary "$T/rep")" "0
$(cat "$T/live")"
is "as JSON: status" "$(report --json "$T/logs")" 0
ok "as JSON: one object that says the same" "$PY" -c 'import json, sys
o = json.load(open(sys.argv[1]))
assert o["failed"] and o["status"] == 134 and o["rounds"] == 2 and o["restarts"] == 1, o
assert o["summary"]["cause"]["rank"] == 0 and o["summary"]["verdict"].split("failed: ")[1] in open(sys.argv[2]).read()
assert [m["kind"] for m in o["marks"]] == ["failure"] * 2 and len(o["failures"]) >= 2
assert {s["state"] for s in o["nodes"][0]["states"]} >= {"starting", "running", "away"}' "$T/rep" "$T/live"
is "as DLRover has it: status" "$(report --format=dlrover "$T/logs")" 0
mv "$T/rep" "$T/before"
is "an option behind what it reads: status" "$(report "$T/logs" --format=dlrover)" 0
ok "an option behind what it reads: the same" cmp "$T/rep" "$T/before"
like "as DLRover has it: the failure of the first round" "$(sed -n 1p "$T/rep")" ' restart 0 fails: \{"1": \{"local_rank": 1, "exitcode": 4,'
like "as DLRover has it: that of the second" "$(sed -n 2p "$T/rep")" ' restart 1 fails: \{"0": \{"local_rank": 0, "exitcode": -6,'
is "as DLRover has it: no other" "$(wc -l <"$T/rep" | tr -d ' ')" 2
rm "$T"/logs/*/elrun-events.jsonl
is "without events: status" "$(report "$T/logs")" 0
like "without events: says what it cannot know" "$(cat "$T/rep")" '^note: no events were found: how workers ended is not known'

# --- torchrun's own kind of tree: only files
mkdir -p "$T/tr/none_abcdefgh/attempt_0/0" "$T/tr/none_abcdefgh/attempt_0/1" "$T/tr/none_abcdefgh/attempt_1/1"
printf 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: 7\n' >"$T/tr/none_abcdefgh/attempt_0/1/stderr.log"
printf '{"message": {"message": "ValueError: bad shape", "extraInfo": {"py_callstack": "x", "timestamp": "1700000000"}}}' >"$T/tr/none_abcdefgh/attempt_1/1/error.json"
is "a foreign tree: status" "$(report "$T/tr")" 0
like "a foreign tree: the error file of the last attempt" "$(cause_of "$T/rep")" '^elrun: rank 1 .*ValueError: bad shape'
like "a foreign tree: the traceback of the first" "$(cat "$T/rep")" '^1 .*KeyError: 7'

# --- two nodes, one of them with a clock that is an hour ahead
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
pids=
for i in 0 1; do
    OUT=$T/out.$i ERR=$T/err.$i
    start --nnodes=2 --nproc-per-node=2 --max-restarts=1 --rdzv-id=two --node-rank=$i --rdzv-endpoint="127.0.0.1:$port" \
        --restart-policy=always --events="$T/node.$i" --no-python "$WORKER" +0 @3 exit 4 +1 @2 exit 5 await "$T/never~"
    pids="$pids $elrun_pid"
done
for p in $pids; do elrun_pid=$p; finish; is "two nodes: status" "$status" 5; done
"$PY" -c 'import datetime, re, sys
hour = datetime.timedelta(hours=1)
def later(m):
    t = datetime.datetime.strptime(m.group(1), "%Y-%m-%dT%H:%M:%S.%f") + hour
    return "\"time\":\"" + t.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z\""
for l in open(sys.argv[1]):
    l = re.sub(r"\"time\":\"([0-9T:.-]+)Z\"", later, l)
    l = re.sub(r"\"wall_usec\":(\d+)", lambda m: "\"wall_usec\":%d" % (int(m.group(1)) + 3600000000), l)
    sys.stdout.write(l.replace("\"host\":\"", "\"host\":\"x"))' "$T/node.0" >"$T/ahead"
is "two nodes: report" "$(report "$T/ahead" "$T/node.1")" 0
like "two nodes: headline" "$(head -1 "$T/rep")" '; 2 rounds on 2 nodes, 1 of 1 restarts; run two$'
like "two nodes: the clock is noticed" "$(cat "$T/rep")" '^note: clocks of the nodes differ by up to (3600|3599) s'
like "two nodes: first the failure of round 1" "$(cat "$T/rep")" '^1 .*rank 3 .*exit code 4'
like "two nodes: then that of round 2" "$(cat "$T/rep")" '^2 .*rank 2 .*exit code 5'
like "two nodes: the verdict" "$(cause_of "$T/rep")" '^elrun: rank 2 .*failed: exit code 5'
is "two nodes: the same from the other end" "$(a=$(cause_of "$T/rep"); report "$T/node.1" "$T/ahead" >"$T/x"; cause_of "$T/rep" | grep -cF "$a")" 1

# --- what a file may hold; each time one line, and what could be read is shown
bad() { # NAME STATUS REGEX PATH...
    bad_name=$1 bad_want=$2 bad_like=$3; shift 3
    is "$bad_name: status" "$(report "$@")" "$bad_want"
    like "$bad_name: says so" "$(cat "$T/rep" "$T/rep.err")" "$bad_like"
}
bad "nothing named" 2 '^elrun: name what the job left'
bad "not there" 66 '^elrun: .*/nowhere: No such file or directory$' "$T/nowhere"
: >"$T/empty"; bad "an empty file" 66 '^elrun: .*/empty: empty$' "$T/empty"
echo 'once upon a time' >"$T/tale"; bad "a foreign file" 66 '^elrun: .*/tale: no events$' "$T/tale"
head -c 300000 /dev/urandom >"$T/noise"; bad "a binary file" 66 '^elrun: .*/noise: no events$' "$T/noise"
sed 's/"v":1/"v":2/' "$T/one" >"$T/newer"; bad "a newer elrun's" 66 '^elrun: .*/newer: all events are of a newer elrun' "$T/newer"
sed "s/\"run_id\":\"[^\"]*/\"run_id\":\"$(printf %0200d 7)/" "$T/one" >"$T/foreign_id"
bad "run ids that no job can have" 66 '^elrun: none of the events are of one job' "$T/foreign_id"
mkfifo "$T/fifo"; bad "a FIFO" 66 '^elrun: .*/fifo: not a regular file$' "$T/fifo"
bad "a device" 66 '^elrun: /dev/zero: not a regular file$' /dev/zero
mkdir "$T/dir"; bad "a folder of something else" 66 '^elrun: .*/dir: no log folder of a job' "$T/dir"
bad "one of two is missing" 1 '^note: .*/nowhere: No such file' "$T/one" "$T/nowhere"
like "one of two is missing: the other is shown" "$(cause_of "$T/rep")" '^elrun: rank 0 .*SIGABRT'
head -c $(($(wc -c <"$T/one") - 40)) "$T/one" >"$T/torn"
bad "a torn file" 0 '^note: .*breaks off in the middle of a line' "$T/torn"
{ echo junk; cat "$T/one"; echo '{"v":1'; } >"$T/mixed"
bad "junk between the lines" 0 '^note: .*: 1 of [0-9]+ lines are no events' "$T/mixed"
truncate -s 3G "$T/huge" 2>/dev/null && { printf '\n'; cat "$T/one"; } >>"$T/huge" && {
    bad "a huge file with holes" 0 '^note: .*only the last 1 GiB was read' "$T/huge"
    like "a huge file: its end is read" "$(cause_of "$T/rep")" '^elrun: rank 0 .*SIGABRT'
}
rm -f "$T/huge"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 000 "$T/one"
    is "no right to read: status" "$(setpriv --reuid=65534 --clear-groups "$ELRUN" report "$T/one" >"$T/rep" 2>"$T/rep.err"; echo $?)" 66
    like "no right to read: says so" "$(cat "$T/rep.err")" '^elrun: .*/one: Permission denied$'
else
    skip "no right to read" "not root, or no setpriv(1)"
fi
is_clean "report"
finished
