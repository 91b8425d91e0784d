# A script that was changed between two starts, so that what it declares does not take what was saved: restore() says which part
# and what differs, fills nothing, and the snapshot stays for the script that is put right.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

misfit() { # KIND CASES
    mkdir "$T/$1"; : >"$T/$1/result"
    ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1" run --standalone --max-restarts=$(($2 + 1)) --restart-policy=always \
        --ckpt-mem=64M --ckpt-busy=wait $CHECK "$HERE/state_misfit.py" "$T/$1" "$1"
    verdicts "misfit, $1" "$T/$1/result"
    is "misfit, $1: exit status" "$status" 0
    is_clean "misfit, $1"
}

misfit plain 5
misfit torch 10
finished
