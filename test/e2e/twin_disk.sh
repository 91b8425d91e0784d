# The twins of twin.sh with checkpoints on disk: now the agent ends, too, with bits flipped in what it had written, or with a full
# disk, and is started again.  Both trainings end with the same parameters, bit for bit, and no start goes back further than what
# was still whole.  Two faults in make check, twenty with $LONG (make check-long); SEED draws which and when.
# Seen to fail: a build without last words; one that does not compare what it reads from disk with its sums; one that leaves what
# is there already when a step is reached again (the last one).
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3} SEED=${SEED:-2026} R=$T/disk
FAULTS=2; [ -z "${LONG:-}" ] || FAULTS=20
at_exit() { umount "$R" 2>/dev/null; }
mkdir "$R" "$T/calm" "$T/other"
mount -t tmpfs -o size=24m none "$R" 2>/dev/null || skip_all "no right to mount"
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" start --standalone --nproc-per-node=2 --ckpt-mem=64M "$HERE/twin.py" train "$T/calm" \
    $((6 * FAULTS + 5)) 0
finish
is "the calm one: exit status" "$status" 0
note "SEED=$SEED"
env -u TORCHELASTIC_ERROR_FILE E2E_MARK="$T" TMPDIR="$T/tmp" PYTHON_EXEC="$PY" OMP_NUM_THREADS=1 \
    "$PY" "$HERE/twin.py" disk "$T/other" "$FAULTS" "$SEED" "$R" "$ELRUN" >"$T/faults" 2>&1
is "all faults could be made, and nothing was lost that need not be" "$?" 0 || note "$(tail -n 8 "$T"/other/err.*)"
note "$(cat "$T/faults")"
like "the last agent ends well" "$(tail -1 "$T/faults")" 'ends with 0$'
is "so many faults" "$(wc -l <"$T/other/faults" | tr -d ' ')" "$FAULTS"
for r in 0 1; do
    is "rank $r: the same, bit for bit" "$(cat "$T/other/result.$r")" "$(cat "$T/calm/result.$r")"
    is "rank $r: once from the beginning, and never again" "$(grep -c None "$T/other/back.$r")" 1
done
like "a result" "$(cat "$T/calm/result.0")" '^[0-9a-f]{64}$'
damaged=
for step in "$R"/step-*; do "$ELRUN" ckpt verify --deep "$step" >/dev/null 2>&1 || damaged="$damaged ${step##*/}"; done
is "what was damaged was written again, when its step was reached again" "$damaged" ""
is "no stage is left" "$(ls -A "$R/.stage")" ""
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" "" # files are: of agents that were killed
finished
