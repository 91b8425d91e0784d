# state.sh: what test/e2e/state_*.sh share, behind e2e.sh.
CHECK=${CHECK---ckpt-check=1} # every snapshot is read back and compared; CHECK= for an elrun without that option
PY=${PY:-python3}

# verdicts TITLE FILE: a test for each line of FILE, "ok NAME" or "not ok NAME: WHY", and one that it was written to its end.
verdicts() {
    while IFS= read -r line; do
        case $line in
        "ok "*) result 0 "$1: $(printf '%s' "${line#ok }" | tr _ ' ')" ;;
        "not ok "*) result 1 "$1: $(printf '%s' "${line#not ok }" | sed 's/:.*//; s/_/ /g')"; note "${line#not ok *: }" ;;
        end) ;;
        *) result 1 "$1: a verdict"; note "$line" ;;
        esac
    done <"$2"
    is "$1: every case has a verdict" "$(tail -1 "$2")" end || note "$(tail -15 "$ERR")"
}

# cases TITLE SCRIPT [CASE...]: the cases of a script that uses state_run.py, and what elrun has said of them.
cases() {
    title=$1 script=$2; shift 2
    rm -rf "$T/run"; mkdir "$T/run"; : >"$T/run/result"
    ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 ${E2E_ENV-}" run --standalone --max-restarts=2 --ckpt-mem=${MEM:-256M} \
        --ckpt-busy=wait $CHECK "$HERE/$script" "$T/run" "$@"
    verdicts "$title" "$T/run/result"
    is "$title: exit status" "$status" 0
    unlike "$title: no snapshot differs from the objects" "$(cat "$ERR")" '--ckpt-check: '
    is_clean "$title"
}
