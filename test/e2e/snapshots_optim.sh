# Every optimizer of PyTorch trains with snapshots as it does without, bit for bit: what declare() needs to know of a state that
# is not there yet leaves nothing behind.
# Seen to fail: the state of a step with gradients of zero stays in the optimizer (momentum with weight decay in it).
. "$(dirname "$0")/../lib/e2e.sh"

as_without() { # KILL-AT
    D=$T/$1; mkdir "$D"
    ENV="PYTHON_EXEC=$PY" run --standalone --ckpt-mem=64M --max-restarts=1 "$HERE/snapshots_optim.py" "$D" "$1"
    is "$2: exit status" "$status" 0
    is "$2: it goes on from there" "$(sed -n 1p "$D/result")" "goes on from step $(($1 + 1))"
    is "$2: results" "$(sed 1d "$D/result" | sed 's/.*: //' | sort | uniq -c | sed 's/^ *//')" "12 the same"
}

as_without -1 "a snapshot before the first step"
as_without 1 "one while some parameters have no state yet"
is_clean "optimizers"
finished
