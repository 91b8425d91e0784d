# The report's table beside torchrun's own, same script, same failure: the same lines in the same order, but for times,
# pids, paths and the host's name, and but for what spec/torchrun.md 6 decides (stopped ranks are folded, no launcher's words).
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
# From the title to the end of the root cause; of the others only what torchrun itself counts as failed by itself.
table() { # FILE
    sed -n '/^train.py FAILED/,/^=\{10,\}/p' "$1" | sed -n '/^train.py/p;/^-/p;/^Failures/p;/^Root Cause/,$p' |
        sed -e 's/^\(  time *:\).*/\1/;s/^\(  host *:\).*/\1/;s/pid: [0-9]*/pid: N/;s/^\(  error_file: \)\/.*error.json$/\1FILE/' \
            -e 's/)  (/) (/;s/ *$//;/^$/d;s/^-*$/-/;s/^=*$/=/'
}
cd "$T" || exit 1
for how in exception signal; do
    export READY="$T/$how.t."
    PYTHONFAULTHANDLER= TMPDIR=$T/tmp "$PY" -m torch.distributed.run --standalone --nproc-per-node=2 train.py $how 2>torchrun.$how
    export READY="$T/$how.e."
    ENV="PYTHON_EXEC=$PY" ERR=elrun.$how
    run --standalone --nproc-per-node=2 --log-dir="$T/$how" train.py $how
    table torchrun.$how >want.$how
    table elrun.$how >got.$how
done
ok "torchrun wrote a table" grep -q 'rank      : 1 (local_rank: 1)' want.exception
is "an exception under @record: the table is torchrun's" "$(cat got.exception)" "$(cat want.exception)"
# Where torchrun has only the signal's name, elrun shows the stacks that @record's fault handler wrote to stderr.
is "a signal: the fields are torchrun's" "$(sed '/^  traceback/,/^=/d' got.signal)" "$(sed '/^  traceback/,/^=/d' want.signal)"
like "a signal: torchrun's traceback is the signal's name" "$(cat want.signal)" 'traceback : Signal 11 \(SIGSEGV\)'
like "a signal: the last line has the script's own line" "$(tail -1 elrun.signal)" 'SIGSEGV.*\(train\.py:'
finished
