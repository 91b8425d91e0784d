# The Python package: every worker can import it, whatever the options are, and a job runs where it cannot be written.  Its folder is
# gone when elrun is, however that ended.
# Seen to fail: a build that makes the folder with --ckpt-mem only; one that ends where it cannot be made; one whose guard does not
# remove it; one that raises every worker's oom_score_adj.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
cat >"$T/train.py" <<'PY'
import os, sys, elrun
with open(sys.argv[1], "w") as f:
    print(elrun.connect(), os.environ.get("ELRUN_SOCK"), os.environ["PYTHONPATH"].replace(os.path.dirname(os.path.dirname(elrun.__file__)), "FOLDER"),
          oct(os.stat(os.path.dirname(os.path.dirname(os.path.dirname(elrun.__file__)))).st_mode & 0o777), file=f)
PY
ENV="PYTHON_EXEC=$PY"
run --standalone "$T/train.py" "$T/plain"
is "no option: exit status" "$status" 0
is "no option: the package, no agent, for this user only" "$(cat "$T/plain")" "None None FOLDER 0o700"
is_clean "no option"
run --standalone --no-python sh -c "cp -r \${PYTHONPATH%%:*}/elrun $T/package"
is "the package is what lies in src/client/elrun" "$(cd "$T/package" && sha256sum *.py)" "$(cd "$HERE/../../src/client/elrun" && sha256sum *.py)"
ENV="PYTHON_EXEC=$PY PYTHONPATH=/somewhere:/else"
run --standalone --no-python sh -c "exec $PY $T/train.py $T/program"
is "a program that starts python, and a PYTHONPATH of one's own" "$(cat "$T/program")" "None None FOLDER:/somewhere:/else 0o700"
ENV="PYTHON_EXEC=$PY"

run --standalone --boundary-wait=1 "$T/train.py" "$T/wait"
is "--boundary-wait on one node: nobody to talk to" "$(cat "$T/wait")" "None None FOLDER 0o700"

# Whatever an end comes from, the folder goes: what is wrong is found before, at, and behind the start of workers.
run --standalone --no-python "$T/not-there"
is_clean "no such program ($status)"
run --standalone --numa-binding=node --nproc-per-node=1 --rdzv-conf=nonsense=1 "$T/train.py" "$T/numa"
is_clean "an option that is wrong ($status)"
run --standalone --ckpt-mem=100000T "$T/train.py" "$T/much"
is_clean "more memory than there is ($status)"
for signal in TERM KILL; do
    start --standalone --no-python "$PY" -c "import elrun, time; open('$T/$signal', 'w').close(); time.sleep(600)"
    wait_for test -e "$T/$signal"
    files "$T/tmp/elrun-*/py/elrun" 1; result $? "SIG$signal: the folder is there meanwhile"
    kill -$signal "$elrun_pid"
    wait "$elrun_pid"
    wait_for no_leftovers
    is "SIG$signal: the folder is gone" "$(ls -d "$T"/tmp/elrun-*/py 2>/dev/null)" ""
done
rm -rf "$T"/tmp/* # the folder for logs, after a SIGKILL

# The kernel's choice is as it was, unless snapshots are kept.
run --standalone --no-python sh -c "cat /proc/self/oom_score_adj >$T/oom"
is "oom_score_adj without snapshots" "$(cat "$T/oom")" "$(cat /proc/self/oom_score_adj)"
run --standalone --ckpt-mem=1M --no-python sh -c "cat /proc/self/oom_score_adj >$T/oom"
ok "and with them" test "$(cat "$T/oom")" -ge 300

# Nowhere can a folder be written: what lies in /tmp is not seen there.
V=$(mktemp -d /var/tmp/e2e.XXXXXX) || exit 1
at_exit() { rm -rf "$V"; }
cat >"$V/nowhere" <<'SH'
for folder in /dev/shm /tmp; do mount -t tmpfs -o "$1" none "$folder" || exit 99; done
shift
exec "$@"
SH
cat >"$V/without.py" <<'PY'
import os, sys
try:
    import elrun
except ImportError as e:
    open(sys.argv[1], "w").write(f"{e} {os.environ.get('PYTHONPATH')}")
PY
OUT=$V/out ERR=$V/err
cp "$ELRUN" "$V/elrun" && ELRUN=$V/elrun
if unshare -m sh "$V/nowhere" ro true 2>/dev/null; then
    for how in ro size=4k,nr_inodes=3 size=8k; do
        PREFIX="env -u XDG_RUNTIME_DIR TMPDIR=/tmp unshare -m sh $V/nowhere $how"
        run --standalone -vv --log-dir="$V/logs" "$V/without.py" "$V/said"
        is "no folder can be written ($how): exit status" "$status" 0
        is "no folder can be written ($how): nothing else is missing" "$(cat "$V/said")" "No module named 'elrun' None"
        like "no folder can be written ($how): a line for who asks" "$(cat "$ERR")" "debug: workers cannot import elrun: .*: (Read-only file system|No space left on device)"
        run --standalone --log-dir="$V/logs" --ckpt-mem=1M "$V/without.py" "$V/said"
        is "no folder can be written ($how), and snapshots are asked for: exit status" "$status" 73
        like "no folder can be written ($how), and snapshots are asked for: why" "$(cat "$ERR")" "^elrun: .*: (Read-only file system|No space left on device)"
        rm -rf "$V/said"
    done
    PREFIX=
else
    skip "no right to mount" "no folder can be written"
fi
is_clean "nowhere"
finished
