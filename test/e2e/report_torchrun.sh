# The report beside torchrun's own, same script, same failure: what its table has of the root cause, elrun says in fewer lines.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python with torch}"
cat >"$T/train.py" <<'SCRIPT'
import os, sys, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    open(os.environ["READY"] + os.environ["RANK"], "w")
    if os.environ["RANK"] == "1":
        while not os.path.exists(os.environ["READY"] + "0"):
            time.sleep(0.01)
        if sys.argv[1] == "signal":
            os.kill(os.getpid(), 11)
        raise ValueError("bad shape (3, 4)\nsecond line")
    time.sleep(600)

main()
SCRIPT
# What torchrun's table has of the root cause: rank, exit code and what was raised.
facts() { sed -n '/^Root Cause/,$p' "$1" | sed -n 's/^  \(rank\|exitcode\) *: *\([0-9-]*\) .*/\1 \2/p; s/^ *\([A-Za-z]*Error: .*\)/raised \1/p; s/.*Signal \([0-9]* ([A-Z]*)\).*/signal \1/p'; }
cd "$T" || exit 1
for how in exception signal; do
    export READY="$T/$how.t."
    PYTHONFAULTHANDLER= TMPDIR=$T/tmp "$PY" -m torch.distributed.run --standalone --nproc-per-node=2 train.py $how 2>torchrun.$how
    export READY="$T/$how.e."
    ENV="PYTHON_EXEC=$PY" ERR=elrun.$how
    run --standalone --nproc-per-node=2 --log-dir="$T/$how" train.py $how
    facts torchrun.$how >want.$how
done
is "torchrun's table has this of an exception" "$(cat want.exception)" "rank 1
exitcode 1
raised ValueError: bad shape (3, 4)"
like "elrun's first line, too" "$(cause_of elrun.exception)" '^elrun: rank 1 failed: ValueError: bad shape \(3, 4\) \(train\.py:[0-9]+\)$'
like "and the exit code" "$(report_of elrun.exception)" '^  pid [0-9]+ on .*, exit code 1, '
like "and the rest of the message" "$(report_of elrun.exception)" '^ *second line$'
is "torchrun's table has this of a signal" "$(cat want.signal)" "rank 1
exitcode -11
signal 11 (SIGSEGV)"
like "elrun's first line, too, with the script's own line" "$(cause_of elrun.signal)" '^elrun: rank 1 failed: signal 11 \(SIGSEGV\).*\(train\.py:'
for how in exception signal; do
    ok "$how: in fewer lines" test "$(report_of elrun.$how | wc -l)" -lt "$(wc -l <torchrun.$how)"
done
finished
