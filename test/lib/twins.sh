# twins.sh, behind e2e.sh: a real training and its twin that is disturbed (test/e2e/twin.py, twin_faults.py).  Both end with the same
# parameters, optimizer, random numbers and place in the data, bit for bit.  Which faults and when is drawn from SEED, the same in
# every run unless it is given; twenty of them with $LONG (make check-long).
PY=${PY:-python3} SEED=${SEED:-2026}
at_exit() { umount -l "$T"/disk.* 2>/dev/null; }
# disks N: so many small disks that can be full, in $DISKS
disks() {
    DISKS=
    for i in $(seq "$1"); do
        mkdir -p "$T/disk.$i"
        mount -t tmpfs -o size=48m none "$T/disk.$i" 2>/dev/null || skip_all "no right to mount"
        DISKS="$DISKS $T/disk.$i"
    done
}
# twins FAULTS NODES RANKS STORE [ROOT...]: RANKS on each of NODES; STORE and ROOTs as in twin_faults.py
twins() {
    faults=$1 world=$(($2 * $3)); [ -z "${LONG:-}" ] || faults=20
    shift
    mkdir "$T/calm" "$T/other"
    ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" start --standalone --nproc-per-node=$world --ckpt-mem=64M "$HERE/twin.py" "$T/calm" \
        $((6 * faults + 5)) 0
    finish
    is "the calm one, on one node: exit status" "$status" 0
    note "SEED=$SEED"
    env -u TORCHELASTIC_ERROR_FILE E2E_MARK="$T" TMPDIR="$T/tmp" PYTHON_EXEC="$PY" OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
        "$PY" "$HERE/twin_faults.py" "$T/other" $faults "$SEED" "$ELRUN" "$@" >"$T/faults" 2>&1
    is "all faults could be made, and nothing was lost that need not be" "$?" 0 || note "$(tail -n 12 "$T"/other/err.*)"
    note "$(cat "$T/faults")"
    like "all agents end well" "$(tail -1 "$T/faults")" 'end with \[0(, 0)*\]$'
    is "so many faults" "$(wc -l <"$T/other/faults" | tr -d ' ')" "$faults"
    for r in $(seq 0 $((world - 1))); do
        is "rank $r: the same, bit for bit" "$(cat "$T/other/result.$r")" "$(cat "$T/calm/result.$r")"
        is "rank $r: once from the beginning, and never again" "$(grep -c None "$T/other/back.$r")" 1
    done
    like "a result" "$(cat "$T/calm/result.0")" '^[0-9a-f]{64}$'
    damaged=
    for step in "$T"/disk.*/step-*; do
        [ ! -e "$step" ] || "$ELRUN" ckpt verify --deep "$step" >/dev/null 2>&1 || damaged="$damaged ${step#"$T/"}"
    done
    is "what was damaged on disk was written again, when its step was reached again" "$damaged" ""
    is "no stage is left" "$(ls -A "$T"/disk.*/.stage 2>/dev/null | grep -v '^/\|^$')" ""
    wait_for no_leftovers
    is "no process is left" "$(leftovers | tr '\n' ' ')" "" # files are: of agents and coordinators that were killed
    rm -r "$T/calm" "$T/other"
}
