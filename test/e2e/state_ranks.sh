# Ranks that say shard_id="all" of a model with BatchNorm, of random numbers and of loaders: what all have alike is kept once,
# what is each rank's own comes back to that rank, from memory and from disk; parameters that differ are named.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

D=$T/run; mkdir "$D"
job() { # RANKS OPTIONS...
    ranks=$1; shift
    ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1" run --standalone --nproc-per-node="$ranks" --ckpt-dir="$D/ckpt" --ckpt-busy=wait \
        "$@" $CHECK "$HERE/state_ranks.py" "$D"
    for r in $(seq 0 $((ranks - 1))); do
        touch "$D/result.$r"
        verdicts "shard_id=all" "$D/result.$r"
        rm "$D/result.$r"
    done
    is "shard_id=all, $ranks ranks: exit status" "$status" 0
}
job 2 --max-restarts=1 --restart-policy=always
like "parameters that differ are named with their part" "$(cat "$ERR")" 'mistake.*(weight|bias)'
unlike "and nothing else is" "$(grep -i 'differ' "$ERR")" '"(model|train)"|optim'
is "it is said once" "$(grep -c 'mistake.*weight' "$ERR")" 1
job 3
is_clean ranks
finished
