# Restarts: all ranks together, with a higher count, while --max-restarts lasts; nobody before its predecessor is gone.
# Seen to fail: a build that does not look at --max-restarts (agent.c); one without report_print() in say_restart() ("summary"); torchrun 2.13 in its place, at exit statuses and ELRUN_ROUND.
. "$(dirname "$0")/../lib/e2e.sh"

# A worker fails in attempt 0 by a status, in attempt 1 by a signal; attempt 2 succeeds.  Who fails waits until all are there.
run_workers 3 --max-restarts=2 -- record "$T/w" \
    @1 +0 await "$T/w.0.0" @1 +0 await "$T/w.0.2" @1 +0 exit 7 \
    @2 +1 await "$T/w.1.0" @2 +1 await "$T/w.1.1" @2 +1 raise SEGV +0 forever +1 forever
is "two failures, two restarts allowed: exit status" "$status" 0
is "every rank ran in every attempt" "$(ls "$T" | grep '^w\.[0-9.]*$' | tr '\n' ' ')" "w.0.0 w.0.1 w.0.2 w.1.0 w.1.1 w.1.2 w.2.0 w.2.1 w.2.2 "
is "nine processes" "$(cat "$T"/w.?.? | sed -n 's/^pid //p' | sort -u | wc -l)" 9
for a in 0 1 2; do
    is "attempt $a: TORCHELASTIC_RESTART_COUNT" "$(for r in 0 1 2; do envof "$T/w.$a.$r" TORCHELASTIC_RESTART_COUNT; done | tr '\n' ' ')" "$a $a $a "
    is "attempt $a: one port for all" "$(for r in 0 1 2; do envof "$T/w.$a.$r" MASTER_PORT; done | sort -u | wc -l)" 1
    is "attempt $a: one round for all" "$(for r in 0 1 2; do envof "$T/w.$a.$r" ELRUN_ROUND; done | sort -u | wc -l)" 1
done
is "a new round in each attempt" "$(for a in 0 1 2; do envof "$T/w.$a.0" ELRUN_ROUND; done | sort -u | wc -l)" 3
is "each failure is told once, and the restart behind it" \
    "$(sed -n 's/^elrun: \(rank .\) failed: .*/\1/p;s/^elrun: \(restart [12] of 2\); .*/\1/p' "$ERR" | tr '\n' ';')" \
    "rank 1;restart 1 of 2;rank 2;restart 2 of 2;"
is "each of them accounts for the time" "$(grep -c '^elrun: restart . of 2; time so far: .* running' "$ERR")" 2
is_clean "two restarts"

# No worker of an attempt runs beside one of the attempt before, even if that one takes its time to go.
cat >"$T/alone" <<'SCRIPT'
#!/bin/sh
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || { for p in $(cat "$1"/pid.*); do [ ! -d /proc/$p ] || echo "$p" >>"$1/met"; done; exit 0; }
trap 'sleep 0.3; exit 0' TERM
echo $$ >"$1/pid.$RANK"
while [ ! -e "$1/pid.0" ] || [ ! -e "$1/pid.1" ] || [ ! -e "$1/pid.2" ]; do sleep 0.01; done
[ $RANK != 1 ] || exit 3
while :; do sleep 0.02; done
SCRIPT
chmod +x "$T/alone"
run --standalone --nproc-per-node=3 --max-restarts=1 --no-python "$T/alone" "$T"
is "slow to stop: exit status" "$status" 0
ok "no rank met one of the attempt before" test ! -e "$T/met"

# The budget.
run_workers 2 --max-restarts=2 -- touch "$T/b" @1 exit 5 forever
is "budget used up: exit status" "$status" 5
is "budget used up: attempts" "$(ls "$T" | sed -n 's/^b\.\([0-9]*\)\.1$/\1/p' | tr '\n' ' ')" "0 1 2 "
run_workers 1 -- touch "$T/n" exit 6
is "no restart unless asked for: exit status" "$status" 6
is "no restart unless asked for: attempts" "$(ls "$T" | grep -c '^n\.')" 1
is_clean "budget"

# A rank that was done already starts again with the others.
run_workers 2 --max-restarts=1 -- touch "$T/d" @1 +0 await "$T/d.0.0" @1 +0 sleep 50 @1 +0 exit 1
is "rank 0 was done: exit status" "$status" 0
ok "rank 0 was done: it runs again" test -e "$T/d.1.0"
is_clean "done early"

# Workers that do not obey are killed; they are never the cause.
run_workers 3 --shutdown-timeout=0.2 -- @0 ignore TERM @2 ignore TERM touch "$T/i" @1 await "$T/i.0.0" @1 await "$T/i.0.2" @1 exit 4 forever
is "siblings that ignore SIGTERM: exit status of the one that failed" "$status" 4
is_clean "siblings that ignore SIGTERM"
run_workers 2 --shutdown-timeout=0 -- @0 catch TERM "$T/term0" touch "$T/j" @1 await "$T/j.0.0" @1 exit 4 forever
is "--shutdown-timeout=0: exit status" "$status" 4
run_workers 2 -- @0 on TERM 77 touch "$T/k" @1 await "$T/k.0.0" @1 exit 4 forever
is "a sibling's own status after SIGTERM is no cause" "$status" 4
# The folder of the logs has become a file: no restart, but the cause is what the worker did, and it comes last.
run --standalone --tee=3 --log-dir="$T/gone" --max-restarts=1 --no-python sh -c 'rm -rf "$1"; : >"$1"; exit 5' sh "$T/gone"
is "a restart that cannot be prepared: the worker's exit status" "$status" 5
like "a restart that cannot be prepared: why" "$(cat "$ERR")" "restart 1 of 1 could not be made: .*$T/gone.*Not a directory"
like "a restart that cannot be prepared: the cause" "$(cause_of "$ERR")" '^elrun: rank 0 .*failed: exit code 5'
like "a restart that cannot be prepared: it does not count" "$(cat "$ERR")" '^  restarts: 0 of 1$'
# The program is gone: the same.
printf '#!/bin/sh\nif [ "$RANK" = 1 ]; then : >"$0.up"; exec sleep 1000; fi\nuntil [ -e "$0.up" ]; do sleep 0.01; done\nrm "$0"; exit 6\n' >"$T/suicide"; chmod +x "$T/suicide"
run --standalone --nproc-per-node=2 --max-restarts=2 --no-python "$T/suicide"
is "a restart whose workers cannot be started: the worker's exit status" "$status" 6
like "a restart whose workers cannot be started: why" "$(cat "$ERR")" "restart 1 of 2 could not be made: .*$T/suicide.*No such file"
like "a restart whose workers cannot be started: the cause" "$(cause_of "$ERR")" '^elrun: rank 0 .*failed: exit code 6'
is_clean "at the end"
finished
