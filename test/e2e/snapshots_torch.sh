# A real PyTorch training with snapshots: workers are killed twice, and the result is the same bit for bit as without.
# Seen to fail: a restore that leaves the state of the random numbers out (elrun.Rng in the example).
. "$(dirname "$0")/../lib/e2e.sh"
E=$HERE/../../examples/snapshots.py
train() { ENV="PYTHON_EXEC=$PY MARK=$T STEPS=14 PAUSE=0.02 $1" start --standalone --nproc-per-node=2 --max-restarts=5 --restart-policy=always --ckpt-mem=64M "$E"; }
result_of() { sed -n 's/^result \([^ ]*\) .*/\1/p' "$OUT"; }

train
finish
want=$(result_of)
is "without faults: exit status" "$status" 0
like "and a result" "$want" '^-?0x1\.[0-9a-f]+p'
rm -f "$T"/step.*

# One rank at step 4; after the restart both at step 9.  A pipe that nobody reads holds the rank there, so that the job is never over before.
pid_at() { tail -qn 1 "$T/step.$1.$2"; } # RANK STEP
mkfifo "$T/step.1.4" "$T/step.1.9"
train PAUSE=0
wait_for test -s "$T/step.1.3"
kill -KILL "$(pid_at 1 3)"
exec 8<>"$T/step.1.4"
wait_for test -s "$T/step.1.8" -a -s "$T/step.0.8"
kill -KILL "$(pid_at 1 8)" "$(pid_at 0 8)"
exec 9<>"$T/step.1.9"
finish
is "one rank is killed, then both: exit status" "$status" 0
is "the same result, bit for bit" "$(result_of)" "$want"
ok "steps before the kill were not made again" test "$(wc -l <"$T/step.0.2")" = 1
like "it went back each time" "$(grep -c 'going back to step [0-9]*, from memory' "$ERR")" '^[2-5]$' # torch itself may abort when it is told to stop
is_clean "killed"
finished
