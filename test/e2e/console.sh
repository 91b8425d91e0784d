# What a person sees in a terminal of 80 columns and in a pipe: the cause first, each fact once, nothing wider than the terminal,
# nothing of coordinators on one node; a warning, or a line of long ago, is never given as the reason.
# Seen to fail: the table of torchrun that elrun had before (its text four times, the cause last); without
# failure_silent_since() in report_collect_io.c.  Warnings without a pause behind them: test_last_line.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
export PYTHON_EXEC="$PY" OMP_NUM_THREADS=1 NO_COLOR=1 TERM=xterm
terminal() { env -u COLUMNS TMPDIR="$T/tmp" E2E_MARK="$T" timeout -k 5 "$DEADLINE" "$PY" "$HERE/console.py" "$@" >"$T/shown" 2>&1 </dev/null; }
own() { sed 's/\x1b\[[0-9;]*[A-Za-z]//g; s/.*\r//' "$T/shown" | awk '/^elrun: /{ on = 1 } on' | grep -v '^status '; } # from elrun's first line on
cat >"$T/raise.py" <<'PYTHON'
import os, sys, time
if os.environ["RANK"] == "1":
    time.sleep(0.3)
    raise ValueError("shapes do not match: expected (32, 1024), got (32, 1025) in batch %d of epoch 3" % 17)
time.sleep(100)
PYTHON
terminal 80 "$ELRUN" --standalone --nproc-per-node=4 "$T/raise.py"
is "in a terminal: the cause is elrun's first line, and fits" "$(own | sed -n 1,2p)" \
    "elrun: rank 1 failed: ValueError: shapes do not match: expected (32, 1024), got
  (32, 1025) in batch 17 of epoch 3 (raise.py:4)"
is "in a terminal: nothing is wider" "$(own | "$PY" -c 'import sys; print(*(x for x in sys.stdin.buffer.read().decode().split("\n") if len(x) > 80))')" ""
is "in a terminal: it is said once" "$(own | grep -c '32, 1025')" 1
like "in a terminal: who else ended" "$(own)" '^  3 others ended because of it: ranks 0,2-3 \(stopped by elrun\)$'
like "in a terminal: last, what becomes of the job" "$(own | grep -A1 '^elrun: ended' | tail -2)" '^elrun: ended with status 1 after '
unlike "in a terminal: nothing that says nothing" "$(own)" 'N/A|NO_OTHER|FAILED|coordinator|round'
run --standalone --nproc-per-node=4 "$T/raise.py"
is "in a pipe: the same, in one line" "$(cause_of "$ERR")" \
    "elrun: rank 1 failed: ValueError: shapes do not match: expected (32, 1024), got (32, 1025) in batch 17 of epoch 3 (raise.py:4)"
is "in a pipe: lines of elrun's own" "$(report_of "$ERR" | wc -l | tr -d ' ')" 7
run --standalone --nproc-per-node=4 --max-restarts=1 --restart-policy=always "$T/raise.py"
is "a restart: the cause, and what happens then, twice" "$(sed -n 's/^elrun: \(rank 1 failed\).*/\1/p; s/^elrun: \(restart 1 of 1\);.*/\1/p; s/^elrun: \(no restart is left; restarts: 1 of 1\)$/\1/p; s/^elrun: \(ended with status 1\) .*/\1/p' "$ERR" | tr '\n' ';')" \
    "rank 1 failed;restart 1 of 1;rank 1 failed;no restart is left; restarts: 1 of 1;ended with status 1;"
printf 'import sys\nsys.exit(3)\n' >"$T/exit.py"
terminal 80 "$ELRUN" --standalone "$T/exit.py"
is "a status without a word" "$(own | sed -n '1,2p')" "elrun: rank 0 failed: exit code 3
  it wrote nothing to stderr"
# The only worker's traceback stands above.
printf 'raise KeyError("lr")\n' >"$T/one.py"
terminal 80 "$ELRUN" --standalone "$T/one.py"
is "one worker: its traceback is there once" "$(grep -c 'one\.py", line 1' "$T/shown")" 1
# --- a line that a worker did not end
printf 'import os, sys, time\nsys.stderr.write("epoch 3: 17/100")\nsys.stderr.flush()\ntime.sleep(0.3)\nos._exit(3)\n' >"$T/part.py"
for count in 1 2; do
    run --standalone --nproc-per-node=$count "$T/part.py"
    is "$count: a report begins on a line of its own" "$(grep -c '^elrun: rank [0-9]* failed' "$ERR")" 1 || note "$(head -3 "$ERR")"
done
printf 'import sys\nsys.stderr.write("epoch 3: 17/100\\n")\nsys.exit(3)\n' >"$T/whole.py"
run --standalone "$T/whole.py"
is "no empty line stands before it" "$(grep -c '^$' "$ERR")" 0
# --- what is no reason
cat >"$T/warns.py" <<'PYTHON'
import sys, time, warnings
warnings.warn("the scheduler was stepped before the optimizer")
sys.stderr.flush()
sys.exit(3)
PYTHON
run --standalone --nproc-per-node=2 "$T/warns.py"
unlike "a warning is not the reason" "$(cause_of "$ERR")" 'Warning'
like "but evidence" "$(report_of "$ERR")" '^    .*UserWarning: the scheduler'
printf 'import sys, time\nprint("connected to the store", file=sys.stderr, flush=True)\ntime.sleep(11)\nsys.exit(3)\n' >"$T/long.py"
run --standalone --nproc-per-node=2 "$T/long.py"
is "a line of long ago is not the reason" "$(cause_of "$ERR" | sed 's/rank ./rank N/')" "elrun: rank N failed: exit code 3"
# --- several nodes: the cause once on each, wherever it is said; then what happens now
cat >"$T/one_of.py" <<'PYTHON'
import os, signal, sys, time
time.sleep(0.5)
if os.environ["RANK"] == "1":
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("batch 7 has no labels")
time.sleep(100)
PYTHON
nodes() { # COUNT HOW: what each one shows lies in $T/n.I
    port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for i in $(seq 0 $(($1 - 1))); do
        env -u COLUMNS TMPDIR="$T/tmp" E2E_MARK="$T" timeout -k 5 "$DEADLINE" "$PY" "$HERE/console.py" 80 "$ELRUN" --nnodes="$1" --node-rank="$i" \
            --rdzv-id=c --rdzv-endpoint="127.0.0.1:$port" --max-restarts=1 --restart-policy=always "$T/one_of.py" "$2" >"$T/n.$i" 2>&1 </dev/null &
    done
    wait
}
# The lines of one node that name the cause, or say what happens then, joined where the terminal has wrapped them.
lines() { sed 's/\x1b\[[0-9;]*[A-Za-z]//g; s/.*\r//' "$T/n.$1" | awk '/^elrun: |^    / { printf "%s%s", n++ ? "\n" : "", $0; next } /^  [^ ]/ { printf " %s", substr($0, 3); next } { printf "\n%s", $0 } END { print "" }' |
    grep -E '^elrun: .*(failed|budget|restart 1)' | sed 's/ on [^ ]* failed/ on HOST failed/; s/^elrun: round 2: .*; /elrun: round 2; /'; }
for count in 2 3; do
    for how in raise kill; do
        nodes "$count" "$how"
        for i in $(seq 0 $((count - 1))); do
            is "$how, node $i of $count: each failure's cause is said once" "$(lines "$i" | grep -c ' failed: ')" 2 || note "$(cat "$T/n.$i")"
            is "$how, node $i of $count: then, that the budget is used up" "$(lines "$i" | tail -1 | grep -o 'budget is used up (1 of 1).*')" "budget is used up (1 of 1)$(
                [ "$how" = raise ] && grep -q 'stopping: ' "$T/n.$i" && echo ': ValueError: batch 7 has no labels (one_of.py:6)')"
        done
    done
done
is_clean "console"
finished
