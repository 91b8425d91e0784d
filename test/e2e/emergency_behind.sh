# What a script changes outside of ck.update() is not captured as if it had not been: a tensor that is replaced behind the step
# that fails, in a dict, in a module, in an object; an average of the weights that is updated behind each step, and a failure that
# comes just before (emergency_behind.py).  A layer that is unfrozen once between two steps hinders nothing a hundred steps later,
# and a state_dict() that gives copies nothing at all, nor buffers made anew and parameters frozen in a forward pass.
# What was made in inference mode and is changed there is captured as it was, and more arrays than are laid aside are not.
# Seen to fail: an Emergency that compares elements of what was made in inference mode ("inference"), or lays all arrays aside
# ("arrays"); one that does not look through containers ("held", "another"), does not count who holds a tensor ("object"), or does
# not ask whether a block is what it was ("parameter"); one that never looks at what was changed behind a step (both averages);
# one that never forgets it ("a layer"); one that compares what a state_dict() gives anew ("copies").
. "$(dirname "$0")/../lib/e2e.sh"
mkdir "$T/d"
DEADLINE=600 # fourteen starts of torch in one run
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" run --standalone --max-restarts=13 --restart-policy=always --ckpt-mem=256M "$HERE/emergency_behind.py" "$T/d"
is "exit status" "$status" 0
is "how far each attempt has come that the next one has" "$(cat "$T/d/log")" "replaced: 2
parameter: 2
average, made anew: 2
average, in place: 2
copies: 9
held: 2
another: 2
object: 2
buffer: 9
a layer that is unfrozen once: 108
inference: 9
arrays: 2
nothing: 9"
like "a tensor that is replaced: it is said which" "$(grep 'emergency checkpoint' "$ERR")" 'average/bias was changed outside of ck\.update\(\)'
like "in a module: it is said in which part" "$(grep 'emergency checkpoint' "$ERR")" 'part "model" was changed outside of ck\.update\(\)'
like "more arrays than can be laid aside: it is said" "$(grep 'emergency checkpoint' "$ERR")" 'more than 64 MiB of arrays of numpy and tensors made in inference mode.*64 MiB, the largest is r00000/large'
is "what is done between all steps is said once in each attempt" "$(grep -c 'was changed between update([0-9]*) and update([0-9]*): until' "$ERR")" 3
is_clean "changes behind a step"
finished
