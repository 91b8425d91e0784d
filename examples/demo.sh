#!/bin/sh
# demo.sh: trains examples/train.py with two workers, kills one of them half-way, shows that the job ends well anyway.
# Called by `make demo` with ELRUN (the program) and PY (a python3 with torch and scikit-learn).
set -u
: "${ELRUN:?the elrun program}" "${PY:?a python3 with torch and scikit-learn}"
here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/elrun-demo.XXXXXX") || exit 1
logs=$home/logs
fault=
# What stays are the logs, and they only if there are any.
leave() { [ -z "$fault" ] || kill "$fault" 2>/dev/null; rm -f "$home"/digits.pt* "$home"/killed; rmdir "$home" 2>/dev/null; }
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold= plain=; fi
say() { printf '%s\n' "$bold$*$plain"; }

# The fault comes from outside: as soon as the training says that half of the epochs are done, worker 1 is shot.
epochs=12
shoot() {
    n=0
    until cat "$logs"/*/attempt_0/0/stdout.log 2>/dev/null | grep -q "^epoch *$((epochs / 2)) "; do
        n=$((n + 1)); [ $n -lt 6000 ] || exit 1
        sleep 0.05
    done
    pid=$(cat "$logs"/*/attempt_0/1/stdout.log | sed -n 's/.*(pid \([0-9]*\)).*/\1/p')
    say "--- half-way: kill -9 $pid, which is worker 1" && kill -9 "$pid" && : >"$home/killed"
}

say "--- two workers, $epochs epochs, one restart allowed:"
echo "elrun --standalone --nproc-per-node=2 --max-restarts=1 --tee=3 --log-dir=$logs examples/train.py"
shoot & fault=$!
OMP_NUM_THREADS=1 PYTHON_EXEC=$PY "$ELRUN" --standalone --nproc-per-node=2 --max-restarts=1 --tee=3 \
    --log-dir="$logs" "$here/train.py" --checkpoint="$home/digits.pt" --epochs=$epochs
status=$?
echo
[ -d "$logs" ] && { say "--- the logs of both attempts, by local rank:"; find "$logs" -type f -size +0 | sort; }
if [ $status != 0 ]; then
    say "--- the demo failed: elrun ended with status $status"
elif [ ! -e "$home/killed" ]; then
    say "--- the demo failed: the training was over before a worker could be killed"; status=1
fi
exit $status
