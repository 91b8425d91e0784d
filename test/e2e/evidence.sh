# Evidence that is gone a moment later: what the siblings did, whom the kernel killed, where the core is; and what must not hold
# the report up.
# Seen to fail: builds that do not look before the first signal ("siblings", "the other node"), nor before SIGKILL ("grace"), that do
# not read kernel log and core (witness_collect(): "one of four: the log's line", "one shot, one chosen", "core: where it is"), nor
# stdout (report_collect_io.c), and that wait for the end of a pipe (LINGER_US of stream_io.c: "a pipe that somebody holds").
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3}"
report() { report_of "$ERR"; }
last() { cause_of "$ERR"; }
pid_of() { field "$T/$1.0.$2" pid; }
state_is() { grep -qE "^[0-9]+ \(.*\) $2 " "/proc/$1/stat"; }

# --- what the others did at that moment
start_workers 5 --shutdown-timeout=1 -- record "$T/a" touch "$T/here" @1 await "$T/a.go" @1 exit 3 @2 held @4 spin forever
wait_for files "$T/here.0.*" 5
kill -STOP "$(pid_of a 3)"
wait_for state_is "$(pid_of a 3)" T; wait_for state_is "$(pid_of a 2)" D; wait_for state_is "$(pid_of a 4)" R
touch "$T/a.go"; finish
is "siblings: status" "$status" 3
like "siblings: one was stopped, one held, one running, one asleep" "$(report)" \
    '^  at that moment: rank 3 stopped by a signal.*; rank 2 in state D.*; rank 4 running; rank 0 asleep'
like "grace: what outlives it is looked at before SIGKILL" "$(cat "$ERR")" 'after the first signal, and killed now: rank 4 running'
like "grace: … with its threads and how much of a processor it used" "$(cat "$ERR")" 'rank 4 has used [1-9][0-9]* % of a processor since; thread 0 running'
run_workers 1 -- exit 3
unlike "siblings: nobody, and nothing is said" "$(cat "$ERR")" 'at that moment'
start_workers 2 --log-format=json -- record "$T/j" touch "$T/jh" @1 await "$T/j.go" @1 exit 3 forever
wait_for files "$T/jh.0.*" 2; kill -STOP "$(pid_of j 0)"; wait_for state_is "$(pid_of j 0)" T; touch "$T/j.go"; finish
like "siblings: in the JSON report" "$(tail -1 "$ERR")" '"siblings":"rank 0 stopped by a signal'

# --- two nodes: the one that did not fail says what its workers did when the order to stop came
node() { # NODE VERBS...: its stderr is $T/node.NODE
    ERR=$T/node.$1; shift
    start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:29461 --rdzv-id=evidence --no-python "$WORKER" record "$T/n" touch "$T/nh" "$@"
}
node 0 await "$T/n.go" exit 3; first=$elrun_pid
wait_for holds "$T/node.0" 'coordinator'
node 1 forever
wait_for files "$T/nh.0.*" 2
sleeper=$(for i in 0 1; do grep -lq n.go "/proc/$(pid_of n $i)/cmdline" || pid_of n $i; done)
kill -STOP "$sleeper"; wait_for state_is "$sleeper" T
touch "$T/n.go"; finish; elrun_pid=$first; finish
like "the other node: what stood still there" "$(cat "$T/node.1")" 'when the order to stop came: rank [01] stopped by a signal'
ERR=$T/err

# --- out of memory: the kernel's log knows which of several it chose
mem=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
if [ "$(id -u)" = 0 ] && [ -c /dev/kmsg ] && [ -n "$mem" ] && mkdir "$mem/evidence.$$" 2>/dev/null; then
    group=$mem/evidence.$$
    at_exit() { rmdir "$group" 2>/dev/null; }
    echo 64M >"$group/memory.limit_in_bytes"; echo 64M >"$group/memory.memsw.limit_in_bytes" 2>/dev/null
    printf 'echo $$ >"$1/cgroup.procs" || exit 99\nshift; exec "$@"\n' >"$T/in-group"
    PREFIX="sh $T/in-group $group"
    start_workers 4 -- record "$T/o" touch "$T/oh" @2 await "$T/o.go" @2 eat 200 forever
    wait_for files "$T/oh.0.*" 4; touch "$T/o.go"; finish
    is "one of four: status" "$status" 137
    like "one of four: named" "$(last)" 'rank 2 .*SIGKILL.*out of memory'
    like "one of four: the log's line about its pid" "$(report)" "kernel log: .*Killed process $(pid_of o 2) \(worker\)"
    # Both die while elrun stands still: the counter has risen, but only the log knows for whom.
    start_workers 4 -- record "$T/p" touch "$T/ph" @3 await "$T/p.go" @3 eat 200 forever
    wait_for files "$T/ph.0.*" 4
    kill -STOP "$elrun_pid"; kill -KILL "$(pid_of p 1)"; touch "$T/p.go"
    wait_for ended "$(pid_of p 3)"; kill -CONT "$elrun_pid"; finish
    like "one shot, one chosen: the one that was shot is not taken for the other" "$(report)" "rank 1 failed(: signal 9 \(SIGKILL\), from outside elrun| too: .*SIGKILL\), from outside elrun, pid $(pid_of p 1)$)"
    like "one shot, one chosen: the one that was chosen" "$(report)" "rank 3 failed( too)?: signal 9 \(SIGKILL\), out of memory"
    PREFIX=
    wait_for no_leftovers
    wait_for rmdir "$group"
else
    skip "out of memory" "no memory cgroup (version 1) or no kernel log"
fi

# --- a core, as the user's limit and the kernel's pattern have it
mkdir "$T/cores"
cat >"$T/segv.py" <<'PYTHON'
import ctypes, resource, sys
print("limit", resource.getrlimit(resource.RLIMIT_CORE), file=sys.stderr)
ctypes.string_at(0)
PYTHON
printf 'cd "$1"; ulimit -c unlimited; shift; exec "$@"\n' >"$T/with-core"
PREFIX="sh $T/with-core $T/cores" PYTHON_EXEC=$PY; export PYTHON_EXEC
if sh "$T/with-core" "$T" true 2>/dev/null; then
    run --standalone "$T/segv.py"
    like "core: the limit is the user's" "$(cat "$ERR")" 'limit \(-1, '
    like "core: segfault with Python's stack" "$(cat "$ERR")" 'segv\.py", line 3 in <module>'
    case $(cat /proc/sys/kernel/core_pattern) in
    [\|@]*) like "core: who has it" "$(report)" 'core: handed to ' ;;
    *) like "core: where it is" "$(report)" "core: /.* \([0-9]+ MiB\)" && ok "core: it is there" test -s "$(report | sed -n 's/^ *core: \(.*\) ([0-9]* MiB).*/\1/p')" ;;
    esac
else
    skip "core" "the hard limit of cores is 0"
fi
PREFIX=
run --standalone "$T/segv.py"
unlike "core: none was dumped, and nothing is said" "$(report)" ' core: '

# --- stdout, where elrun reads it anyway
printf 'import sys, traceback\ntry:\n    {}["lr"]\nexcept KeyError:\n    traceback.print_exc(file=sys.stdout)\n    sys.exit(4)\n' >"$T/out.py"
run --standalone --tee=1 --log-dir="$T/lo" "$T/out.py"
like "stdout: a traceback there is found" "$(last)" "KeyError: 'lr'.*out\.py:3"
run_workers 1 --tee=1 --log-dir="$T/lp" -- out "cannot open shard 7
" exit 5
like "stdout: its last lines, where stderr is silent" "$(report)" 'cannot open shard 7'

# --- a pipe that somebody else holds: neither a descendant nor stopped by elrun
start_workers 1 -- record "$T/h" err "cannot open shard 8
" await "$T/h.go" exit 6
wait_for test -e "$T/h.0.0"
sleep 1000 2>"/proc/$(pid_of h 0)/fd/2" & holder=$!
wait_for test "/proc/$holder/fd/2" -ef "/proc/$(pid_of h 0)/fd/2"
touch "$T/h.go"; finish
kill $holder
is "a pipe that somebody holds: the report comes" "$status" 6
like "a pipe that somebody holds: what was in it is there" "$(report)" 'cannot open shard 8'

# --- error files that are none
cat >"$T/broken" <<'SCRIPT'
case $1 in dir) mkdir "$TORCHELASTIC_ERROR_FILE" ;; loop) ln -s error.json "$TORCHELASTIC_ERROR_FILE" ;; shape) echo '[{"message": 1}]' >"$TORCHELASTIC_ERROR_FILE" ;; esac
exit 14
SCRIPT
for kind in dir loop shape; do
    run --standalone --log-dir="$T/b$kind" --no-python sh "$T/broken" $kind
    is "error file is $kind: status" "$status" 14
    like "error file is $kind: said in the report" "$(report)" 'error file: .*error\.json \(.+\)'
done
is_clean "at the end"
finished
