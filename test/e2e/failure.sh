# The failure report: the cause, its evidence, what happens now; each fact once.  What elrun stopped is no cause.
# Seen to fail: a build that takes workers it stopped for failures (report_io.c).
. "$(dirname "$0")/../lib/e2e.sh"
NL='
'
last() { cause_of "$ERR"; }
report() { report_of "$ERR"; }

run_workers 3 --role=trainer --log-dir="$T/l1" --redirects=3 -- record "$T/w" @1 await "$T/w.0.0" @1 await "$T/w.0.2" @1 exit 3 on TERM 1 forever
pid=$(field "$T/w.0.1" pid)
is "exit code 3: status" "$status" 3
is "the report: cause, evidence, the others, what becomes of the job; each once" \
    "$(grep -v OMP_NUM_THREADS "$ERR" | sed -E "s/ [0-9-]{10} [0-9:]{8}/ TIME/; s/at that moment: .*/at that moment: X/; s/after [0-9.]+.*/after X/; s,(attempt_0).*,\1,; s,(all logs: $T/l1).*,\1,")" \
    "elrun: rank 1 failed: exit code 3
  it wrote nothing to stderr
  pid $pid on $(uname -n), TIME
  at that moment: X
  2 others ended because of it: ranks 0,2 (stopped by elrun)
  stderr of rank 1: $(echo "$T"/l1/*/attempt_0)
  all logs: $T/l1
elrun: ended with status 3 after X"
unlike "no traceback of the launcher" "$(cat "$ERR")" 'Traceback \(most recent call last\)'

run_workers 2 -- touch "$T/s" @1 await "$T/s.0.0" @1 raise SEGV forever
like "a signal is named" "$(last)" 'rank 1.*SIGSEGV'
like "a signal: the status that comes of it" "$(tail -1 "$ERR")" '^elrun: ended with status 139 after '
run_workers 2 -- touch "$T/k" @0 await "$T/k.0.1" @0 raise KILL forever
like "killed from outside elrun, and nothing is guessed" "$(cat "$ERR")" 'rank 0.*SIGKILL.*outside|outside.*SIGKILL'

# Evidence: the error file of @record, a traceback in stderr, else the last lines.
run_workers 2 --log-dir="$T/l0" -- touch "$T/e" @1 await "$T/e.0.0" @1 error "ValueError: bad shape" 1700000000 @1 exit 1 forever
like "error file: its message" "$(last)" 'rank 1.*ValueError: bad shape'
like "error file: its traceback" "$(report)" 'Traceback: of the test'
tb="Traceback (most recent call last):${NL}  File \"train.py\", line 7, in <module>${NL}    step()${NL}KeyError: 'lr'${NL}"
run_workers 1 -- err "starting${NL}$tb" exit 1
like "traceback in stderr, a file of elrun's caller" "$(cat "$ERR")" "KeyError: 'lr'"
run_workers 1 --tee=2 --log-dir="$T/l2" -- err "starting${NL}$tb" exit 1
like "traceback in stderr, teed: the last line" "$(last)" "KeyError: 'lr'"
is "traceback in stderr, teed by the only worker: not again in the report" "$(grep -c 'train\.py", line 7' "$ERR")" 1
run_workers 1 --redirects=2 --log-dir="$T/l3" -- err "starting${NL}$tb" exit 1
like "traceback in stderr, redirected: the last line" "$(last)" "KeyError: 'lr'"
run_workers 1 --redirects=2 --log-dir="$T/l4" -- err "one${NL}cannot open shard 7${NL}" exit 12
like "no traceback: the last lines are shown" "$(report)" 'cannot open shard 7'
like "logs are named" "$(cat "$ERR")" "$T/l4"

# A broken error file, and one that is no file, are no reason to fail.
cat >"$T/broken" <<'SCRIPT'
#!/bin/sh
case $1 in text) printf '{"message": {' >"$TORCHELASTIC_ERROR_FILE" ;; fifo) mkfifo "$TORCHELASTIC_ERROR_FILE" ;; big) head -c 50000000 /dev/zero >"$TORCHELASTIC_ERROR_FILE" ;; esac
exit 14
SCRIPT
chmod +x "$T/broken"
for kind in text fifo big; do
    run --standalone --log-dir="$T/b$kind" --no-python "$T/broken" $kind
    is "error file is $kind: status" "$status" 14
    like "error file is $kind: the last line" "$(last)" 'rank 0.*exit ?code 14'
done

# The launcher's own error file gets the cause's, with errorCode added.
env E2E_MARK="$T" TORCHELASTIC_ERROR_FILE="$T/own.json" "$ELRUN" --standalone --log-dir="$T/l5" --no-python "$WORKER" error "ValueError: deep" 1700000000 exit 21 2>"$ERR"
like "error file of the launcher: the message" "$(cat "$T/own.json")" 'ValueError: deep'
like "error file of the launcher: errorCode" "$(cat "$T/own.json")" '"errorCode": ?"?21'

# Many failures: all counted, one cause, a bounded report.
run_workers 50 -- touch "$T/m" await "$T/m.0.49" exit 8
is "fifty failures: status" "$status" 8
ok "fifty failures: the report is bounded" test "$(wc -l <"$ERR")" -lt 150

# Each failed attempt is told; the report of the end is about the last one.
run_workers 1 --max-restarts=1 -- +0 err "first${NL}" +1 err "second${NL}" +0 exit 4 exit 5
is "two attempts: status of the last" "$status" 5
like "two attempts: the last line is about the last" "$(last)" 'exit ?code 5'

# Out of memory, by the counter of the memory cgroup.
mem=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
if [ "$(id -u)" = 0 ] && [ -n "$mem" ] && mkdir "$mem/e2e.$$" 2>/dev/null; then
    group=$mem/e2e.$$
    at_exit() { rmdir "$group" 2>/dev/null; }
    echo 64M >"$group/memory.limit_in_bytes"; echo 64M >"$group/memory.memsw.limit_in_bytes" 2>/dev/null
    cat >"$T/in-group" <<'SCRIPT'
echo $$ >"$1/cgroup.procs" || exit 99
shift; exec "$@"
SCRIPT
    PREFIX="sh $T/in-group $group"
    run_workers 2 -- touch "$T/oom" @1 await "$T/oom.0.0" @1 eat 200 forever
    is "out of memory: status" "$status" 137
    like "out of memory: named" "$(last)" 'rank 1.*out[ -]of[ -]memory'
    PREFIX=
    wait_for no_leftovers
    wait_for rmdir "$group"
else
    skip "out of memory" "no memory cgroup (version 1) can be made"
fi
is_clean "at the end"
finished
