# frameworks.sh: the examples for public frameworks, each with a tiny training.  Killed with SIGKILL in the middle of an epoch, at its
# end and in the next one, it makes the same steps with the same losses, and ends with the same weights, as one that nobody killed.
# With a python of its own, not in make check: make check-frameworks.
E2E_DEADLINE=${E2E_DEADLINE:-600} # a rank imports for half a minute where processors are short
. "$(dirname "$0")/../lib/e2e.sh"
FRAMEWORKS=${FRAMEWORKS:-$HERE/../../.venv-frameworks/bin/python}
if ! [ -x "$FRAMEWORKS" ]; then
    [ -z "${CI:-}" ] || { echo "1..1"; echo "not ok 1 - there is no $FRAMEWORKS: make check-frameworks makes it"; exit 1; }
    skip_all "no python with the frameworks: make check-frameworks makes it"
fi

train() { # FRAMEWORK RANKS FOLDER STEPS KILL OPTIONS...
    name=$1 ranks=$2 folder=$3 steps=$4 kill=$5; shift 5
    mkdir -p "$folder"
    ENV="$WITH PYTHON_EXEC=$FRAMEWORKS OMP_NUM_THREADS=1 DS_ACCELERATOR=cpu TORCH_EXTENSIONS_DIR=$BUILD/torch_extensions PATH=$(dirname "$FRAMEWORKS"):$PATH"
    run --standalone --nproc-per-node="$ranks" "$@" "$HERE/frameworks_worker.py" "$name" "$folder" "$steps" "$kill"
    ENV=
}
# as_without FRAMEWORK RANKS STEPS KILLS: the logs of all ranks are those of the training that nobody killed; nothing is made twice, since
# each is killed behind a snapshot
as_without() {
    what="$1${WITH:+ with $WITH}, $2 ranks" want=$T/$1.$2$WITH
    train "$1" "$2" "$want" "$3" -1
    is "$what: exit status" "$status" 0 || note "$(tail -n 20 "$ERR")"
    for kill in $4; do
        train "$1" "$2" "$want.$kill" "$3" "$kill" --max-restarts=1 --ckpt-mem=256M --ckpt-busy=wait --ckpt-check=3
        is "$what, killed behind step $kill: exit status" "$status" 0 || note "$(tail -n 20 "$ERR")"
        like "it goes back to that step" "$(cat "$ERR")" "going back to step $kill,"
        r=0
        while [ $r -lt "$2" ]; do
            ok "rank $r: the same to the last bit" cmp "$want/log.$r" "$want.$kill/log.$r"
            r=$((r + 1))
        done
    done
}

WITH=
