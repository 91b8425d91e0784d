# The sources that tracebacks name lie on a file system that stands still: what ended the ranks is told without them, and
# nothing else waits for them.
# Seen to fail: with the agent's pool for the sources, and with a look that is given up where only the source is missing.
. "$(dirname "$0")/../lib/e2e.sh"
export PYTHON_EXEC=${PY:-python3}

# A FUSE mount that nobody serves: whoever asks it for a file waits.
cat >"$T/mount.py" <<'END'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
how = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
if libc.mount(b"still", sys.argv[1].encode(), b"fuse", 0, how):
    sys.exit(os.strerror(ctypes.get_errno()))
open(sys.argv[2], "w").close()
time.sleep(600)
END
mkdir "$T/still"
holder=
at_exit() {
    [ -z "$holder" ] || kill -KILL "$holder"
    umount -l "$T/still" 2>/dev/null
}
"$PYTHON_EXEC" "$T/mount.py" "$T/still" "$T/mounted" 2>"$T/why" & holder=$!
mounted_or_not() { [ -e "$T/mounted" ] || ended "$holder"; }
wait_for mounted_or_not
[ -e "$T/mounted" ] || skip_all "no file system can be mounted: $(tail -1 "$T/why")"

cat >"$T/still.py" <<'END'
import json, linecache, os, sys, time, traceback
rank, path = int(os.environ["RANK"]), sys.argv[1] + "/x.py"
text = "def f():\n    raise ConnectionRefusedError(111, 'Connection refused')\ntry:\n    f()\nexcept OSError as e:\n    e2 = e\n"
if rank < 5:
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    space = {}
    try:
        exec(compile(text.replace("    e2 = e\n", "    import traceback; traceback.print_exc()\n"), path, "exec"), space)
    finally:
        sys.stderr.flush()
        os._exit(1)
time.sleep(1.5)
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
    json.dump({"message": {"message": "ValueError: the cause", "extraInfo": {"py_callstack": "", "timestamp": str(int(time.time()))}}}, f)
os._exit(1)
END
"$ELRUN" --standalone --nproc-per-node=6 "$T/still.py" "$T/still" >"$T/out" 2>&1
like "sources stand still: who says that a peer is gone is no cause, and the error file of another one is read" \
    "$(cause_of "$T/out")" "rank 5 failed: ValueError: the cause"
finished
