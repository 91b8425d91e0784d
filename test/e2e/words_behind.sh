# What a script changes outside of ck.update() is not captured as if it had not been: a tensor that is replaced behind the step
# that fails, in a dict or in a module; an average of the weights that is updated behind each step, and a failure that comes
# just before (words_behind.py).  A layer that is unfrozen once between two steps hinders nothing later.
# Seen to fail: an Emergency that does not ask who still holds a tensor ("replaced"), or whether a block is what it was
# ("parameter"); one that never looks at what was changed behind a step (both averages); one that never forgets it ("a layer").
. "$(dirname "$0")/../lib/e2e.sh"
mkdir "$T/d"
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" run --standalone --max-restarts=6 --restart-policy=always --ckpt-mem=64M "$HERE/words_behind.py" "$T/d"
is "exit status" "$status" 0
is "how far each attempt has come that the next one has" "$(cat "$T/d/log")" "replaced: 2
parameter: 2
average, made anew: 2
average, in place: 2
a layer that is unfrozen once: 9
nothing: 9"
like "a tensor that is replaced: it is said which" "$(grep 'last words' "$ERR")" 'bias was replaced outside of ck\.update\(\)'
like "in a module: it is said in which part" "$(grep 'last words' "$ERR")" 'part "model" does not hold what it held after its last step'
is "what is done between all steps is said once in each attempt" "$(grep -c 'was changed between update([0-9]*) and update([0-9]*): where a script' "$ERR")" 3
is_clean "changes behind a step"
finished
