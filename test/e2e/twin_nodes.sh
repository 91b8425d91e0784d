# The twins of twin.sh on two nodes: two agents with a rank of DistributedDataParallel each agree on the step that both go back to, also
# when the coordinator dies meanwhile.  Both trainings end with the same parameters, bit for bit.  Two faults in make check,
# twenty with $LONG (make check-long); SEED draws which and when.
# Seen to fail: a build in which each node goes back to the newest step of its own.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3} SEED=${SEED:-2026}
FAULTS=2; [ -z "${LONG:-}" ] || FAULTS=20
mkdir "$T/calm" "$T/other"
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" start --standalone --nproc-per-node=2 --ckpt-mem=64M "$HERE/twin.py" train "$T/calm" \
    $((6 * FAULTS + 5)) 0
finish
is "the calm one, on one node: exit status" "$status" 0
note "SEED=$SEED"
env -u TORCHELASTIC_ERROR_FILE E2E_MARK="$T" TMPDIR="$T/tmp" PYTHON_EXEC="$PY" OMP_NUM_THREADS=1 \
    "$PY" "$HERE/twin.py" nodes "$T/other" "$FAULTS" "$SEED" "$ELRUN" >"$T/faults" 2>&1
is "all faults could be made" "$?" 0 || note "$(tail -n 8 "$T"/other/err.*)"
note "$(cat "$T/faults")"
like "both agents end well" "$(tail -1 "$T/faults")" 'end with \[0, 0\]$'
is "so many faults" "$(wc -l <"$T/other/faults" | tr -d ' ')" "$FAULTS"
for r in 0 1; do
    is "rank $r: the same, bit for bit" "$(cat "$T/other/result.$r")" "$(cat "$T/calm/result.$r")"
    is "rank $r: once from the beginning, and never again" "$(grep -c None "$T/other/back.$r")" 1
done
like "a result" "$(cat "$T/calm/result.0")" '^[0-9a-f]{64}$'
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" "" # a file is: the mark of a coordinator that was killed
finished
