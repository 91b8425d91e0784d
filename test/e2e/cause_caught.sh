# An exception that a rank has caught and printed shortly before is no cause, whatever ends that rank or another one: its source says
# that it went on.  One that nothing is around is the cause, also where the rank still clears up when another one fails.
# Seen to fail: with handler_find() that always answers HANDLER_UNKNOWN.
. "$(dirname "$0")/../lib/e2e.sh"
export PYTHON_EXEC=${PY:-python3}

cat >"$T/caught.py" <<'END'
import atexit, os, signal, subprocess, sys, time, traceback
rank, how = int(os.environ["RANK"]), sys.argv[1]
def main():
    for epoch in range(3):
        try:
            open("/no/such/file")
        except OSError:
            traceback.print_exc()
        time.sleep(20)
time.sleep(0.2)
if rank == 0 and how == "function":
    main()
if rank == 0 and how == "program":
    subprocess.run([sys.executable, "-c", "import json; json.loads('{')"])
    time.sleep(20)
if rank == 0 and how == "status":
    status = 0
    try:
        raise ValueError("the cause")
    except Exception:
        traceback.print_exc()
        status = 1
    time.sleep(0.4)
    sys.exit(status)
if rank == 0 and how == "method":
    class Trainer:
        def run(self):
            ok = True
            try:
                main_loop()
            except Exception:
                traceback.print_exc()
                ok = False
            return ok
    def main_loop():
        print("""
no line of the program
""", flush=True)
        raise ValueError("the cause")
    if not Trainer().run():
        time.sleep(0.4)
        sys.exit(1)
if rank == 0:
    try:
        if how in ("killed", "chooses"):
            raise ConnectionRefusedError(111, "Connection refused")
        import no_such_module
    except (ImportError, OSError):
        traceback.print_exc()
    time.sleep(0.4)
    if how == "exit":
        os._exit(1)
    if how == "words":
        sys.exit("no data is left")
    if how == "chooses":
        sys.exit(3)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(20)
time.sleep(20 if how in ("status", "method", "exit", "words", "killed", "chooses") else 0.4)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
raise ConnectionResetError(104, "Connection reset by peer")
END
run() { "$ELRUN" --standalone --nproc-per-node=2 --shutdown-timeout=2 "$T/caught.py" "$1" >"$T/$1" 2>&1; }
for how in module function program; do
    run $how
    like "a rank loses a connection of its own, another one had caught something ($how): that is not named" \
        "$(cause_of "$T/$how")" "rank 1 failed: ConnectionResetError"
    like "... it is one that elrun stopped" "$(cat "$T/$how")" "^  1 other ended because of it: rank 0 \(stopped by elrun\)"
done
run kill
like "a rank is killed, and another one had caught something" "$(cause_of "$T/kill")" "rank 1 failed: signal 9"
unlike "... it has not failed too" "$(cat "$T/kill")" "rank 0 failed"
run exit
like "a rank ends with 1 a while after something that it had caught" "$(cause_of "$T/exit")" \
    "rank 0 failed: exit code 1; it had printed: ModuleNotFoundError: No module named 'no_such_module'"

for how in status method; do
    run $how
    like "a rank has caught its exception, and ends with a status that tells of it ($how): it is the cause" \
        "$(cause_of "$T/$how")" "rank 0 failed: ValueError: the cause"
done

run words
like "... with its own last word" "$(cause_of "$T/words")" "rank 0 failed: exit code 1; its last line: no data is left"
like "... the other one is told beside it" "$(cat "$T/words")" \
    "^  an earlier error, after which it went on: ModuleNotFoundError: No module named 'no_such_module'"
run killed
like "a rank is killed, and had gone on without a service" "$(cause_of "$T/killed")" "rank 0 failed: signal 9 .*it had printed: ConnectionRefused"
unlike "... that has not ended it" "$(cat "$T/killed")" "network|see the service there|a peer is gone"
run chooses
like "... and has chosen its status: that is told" "$(cause_of "$T/chooses")" "rank 0 failed: exit code 3; it had printed: ConnectionRefused"
unlike "... nobody waits for another rank" "$(cat "$T/chooses")" "a peer is gone"

cat >"$T/clears.py" <<'END'
import atexit, os, signal, sys, time
rank, how = int(os.environ["RANK"]), sys.argv[1]
time.sleep(0.2)
if rank == 1:
    atexit.register(time.sleep, 20)
    raise ValueError("the first")
time.sleep(0.4)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
raise KeyError("the second")
END
for how in raise kill; do
    "$ELRUN" --standalone --nproc-per-node=2 --tee=3 --log-dir="$T/logs.$how" "$T/clears.py" $how >"$T/clears.$how" 2>&1
    like "a rank clears up, and another one fails by itself ($how): the first one is the cause" "$(cause_of "$T/clears.$how")" \
        "rank 1 failed: ValueError: the first"
    "$ELRUN" report "$T/logs.$how" >"$T/report.$how" 2>&1
    is "... the report says the same" "$(cause_of "$T/report.$how")" "$(cause_of "$T/clears.$how")"
    like "... the second one is told" "$(cat "$T/clears.$how")" "^  rank 0 failed too: (KeyError: 'the second'|signal 9)"
done
cat >"$T/lets_go.py" <<'END'
import os, time, traceback
def destroy_process_group():
    time.sleep(20)
time.sleep(0.3)
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the cause")
    time.sleep(0.3)
    raise RuntimeError("[/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1")
try:
    main()
except ValueError:
    traceback.print_exc()
destroy_process_group()
END
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/lets_go.py" >"$T/lets_go" 2>&1
like "a rank has caught it, and lets go of the others: that is why they end" "$(cause_of "$T/lets_go")" "rank 1 failed: ValueError: the cause"
is_clean "caught"
finished
