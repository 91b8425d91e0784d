# A node whose workers all stand still (--hang-timeout): the published case of eight workers of which rank 1 is stopped, a
# deadlock, and what must not be taken for a hang.
# Seen to fail: a build that takes the option and never looks; tell_incidents() with all that elrun ended passed over (events).
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:=python3}"
export PYTHON_EXEC="$PY"

# A group of workers that meet in every step, as a collective does; the first one is the meeting place.
cat >"$T/train.py" <<'PYTHON'
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
again = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
place = f"{sys.argv[1]}/meet{again}"

def connect():
    for _ in range(3000):
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect(place)
            return s
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(place)

if rank == 0:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place + "~")
    server.listen(world)
    os.rename(place + "~", place)
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    peers = [connect()]

def all_reduce():
    if rank:
        peers[0].sendall(b"x")
        peers[0].recv(1)
    else:
        for p in peers: p.recv(1)
        for p in peers: p.sendall(b"x")

open(f"{sys.argv[1]}/up{again}.{rank}", "w").write(str(os.getpid()))
for step in range(10 if again else 1000000):
    all_reduce()
    if rank == 0 and step % 10 == 0: print("step", step, flush=True)
    time.sleep(0.01)
PYTHON

start --standalone --nproc-per-node=8 --max-restarts=1 --hang-timeout=2 --redirects=3 --log-dir="$T/logs" --events="$T/events" \
    --hook=incident="cat >>$T/hook" "$T/train.py" "$T"
ok "eight workers: they run" wait_for files "$T/up0.*" 8
kill -STOP "$(cat "$T/up0.1")"
finish
err=$(cat "$ERR")
is "rank 1 is stopped: found, and the restart ends well" "$status" 0
ok "rank 1 is stopped: there was a second attempt" test -s "$T/up1.0"
like "the verdict: for how long, and what each one did" "$err" 'hung: no output and no processor time from any worker for 2\.0s; rank 1 stopped by a signal.*; ranks 0,2-7 asleep in '
like "the verdict: rank 1 is the cause" "$err" '^elrun: rank 1 failed: it hung'
for i in 0 2 7; do
    like "rank $i has printed where it stood" "$(cat "$T"/logs/*/attempt_0/$i/stderr.log)" 'Fatal Python error: Aborted'
    like "rank $i: in the collective" "$(cat "$T"/logs/*/attempt_0/$i/stderr.log)" 'in all_reduce'
done
told() { "$PY" -c '
import json, sys
x = [e for e in map(json.loads, open(sys.argv[1])) if e["event"] == "incident"]
print(len(x), *[(e["rank"], e["class"]) for e in x if e["cause"]])' "$1"; }
is "each is an incident of class hang, with one cause: events" "$(told "$T/events")" "8 (1, 'hang')"
is "each is an incident of class hang: the hook is told of the cause" "$(told "$T/hook")" "1 (1, 'hang')"
run report "$T/events"
like "elrun report tells of it, from the events alone" "$(cat "$OUT")" 'rank 1 .*hung'
is_clean "rank 1 is stopped"

# No restart left, and nobody is stopped: the stacks tell who stands elsewhere.
cat >"$T/stuck.py" <<'PYTHON'
import os, time
def all_reduce(): time.sleep(1000)
def load_batch(): time.sleep(1000)
if os.environ["RANK"] == "2": load_batch()
all_reduce()
PYTHON
run --standalone --nproc-per-node=4 --hang-timeout=1 --exit-code=class --redirects=3 --log-dir="$T/dead" "$T/stuck.py"
err=$(cat "$ERR")
is "no restart left: the class is the exit status" "$status" 75
like "no restart left: what they did at that moment" "$err" '^  at that moment: ranks 0-3 asleep in '
like "no restart left: the others in one line" "$err" '^  hung too: 0-1,3$'
unlike "no restart left: that is all" "$err" 'failed too|stopped by elrun'
like "no restart left: equal stacks are told together" "$err" '^  their stacks: rank 2 in load_batch \(stuck\.py:3\)[^;]*; 0-1,3 in all_reduce \(stuck\.py:2\)'
like "no restart left: the cause is the one that stood elsewhere" "$(cause_of "$ERR")" 'rank 2 failed: it hung: .* stood in load_batch'
is_clean "no restart left"

# A thread raises, and the main thread waits for it, as all others wait for that rank.
cat >"$T/loader.py" <<'PYTHON'
import os, queue, sys, threading, time
def load(): raise KeyError("no image")
if os.environ["RANK"] == "1":
    threading.Thread(target=load, daemon=True).start()
    queue.Queue().get()
time.sleep(float(sys.argv[1]))
raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 3000ms for recv operation")
PYTHON
run --standalone --nproc-per-node=3 --hang-timeout=1 "$T/loader.py" 1000
like "a thread has raised: its rank is the cause, and the exception is told" "$(cause_of "$ERR")" \
    "rank 1 failed: a thread or child process of it ended with KeyError: 'no image' \(loader\.py:2\), and then it hung"
like "a thread has raised: what to do" "$(cat "$ERR")" '^  advice: .*raise it again in the main thread'
run --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/loader.py" 0.6
like "... also where the others run into their own time limit" "$(cause_of "$ERR")" \
    "rank 1 failed: in a thread or child process of it, and the main thread went on: KeyError: 'no image' \(loader\.py:2\)"
like "... they are its victims" "$(cat "$ERR")" '^  2 others ended because of it: ranks 0,2 \(RuntimeError: Timed out'
is_clean "a thread has raised"

# The main thread raises, and another one, which is no daemon, keeps the process alive.
cat >"$T/kept.py" <<'PYTHON'
import os, sys, threading, time, traceback
if os.environ["RANK"] == "1":
    if sys.argv[1] == "raises":
        threading.Thread(target=time.sleep, args=(1000,)).start()
        raise ValueError("bad batch")
    try:
        raise ValueError("bad batch")
    except ValueError:
        traceback.print_exc()
time.sleep(1000)
PYTHON
run --standalone --nproc-per-node=3 --hang-timeout=1 "$T/kept.py" raises
like "it raised and could not exit: it is the cause, and the exception is told" "$(cause_of "$ERR")" \
    "rank 1 failed: ValueError: bad batch \(kept\.py:5\), and it could not exit: no output, no processor time; ended by elrun$"
like "... what to do" "$(cat "$ERR")" '^  advice: .*a thread runs that is no daemon'
like "... the others" "$(cat "$ERR")" '^  hung too: 0,2$'
run --standalone --nproc-per-node=3 --hang-timeout=1 "$T/kept.py" catches
unlike "... not who had caught and printed the same" "$(cat "$ERR")" 'could not exit'
is_clean "it raised and could not exit"

# Without a time-out: that it raised and does not exit is said while it stands; not of one that computes, or where all have.
cat >"$T/stands.py" <<'PYTHON'
import os, sys, threading, time, traceback
how, rank = sys.argv[1], os.environ["RANK"]
if how == "raises" and rank == "1":
    threading.Thread(target=time.sleep, args=(9,)).start()
    raise ValueError("bad batch")
if how == "all" or rank == "1":
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
    try:
        raise ValueError("bad batch")
    except ValueError:
        traceback.print_exc()
until = time.monotonic() + 9
while how == "computes" and rank == "1" and time.monotonic() < until:
    for i in range(100000): pass
    time.sleep(0.05)
threading.Event().wait(max(0.1, until - time.monotonic()))
PYTHON
for how in raises computes all; do
    "$ELRUN" --standalone --nproc-per-node=2 "$T/stands.py" $how >"$T/stands.$how" 2>&1 &
done
wait
is "it raised and does not exit: said once" "$(grep -c 'rank 1 (pid [0-9]*) raised ValueError: bad batch (stands.py:5) [4-9] s ago and does not exit' "$T/stands.raises")" 1
like "... it is the cause in the end" "$(cause_of "$T/stands.raises")" 'rank 1 failed: ValueError: bad batch'
for how in computes all; do
    unlike "... nothing of the kind ($how)" "$(cat "$T/stands.$how")" 'does not exit'
done

# What is no hang: one worker that computes, one that prints, a child that computes, all asleep for less than the time-out.
cat >"$T/alive.py" <<'PYTHON'
import os, subprocess, sys, time
until = time.monotonic() + 3
if os.environ["RANK"] == "0":
    time.sleep(3)
elif sys.argv[1] == "computes":
    while time.monotonic() < until: pass
elif sys.argv[1] == "prints":
    while time.monotonic() < until:
        print(".", flush=True)
        time.sleep(0.2)
elif sys.argv[1] == "child":
    subprocess.run([sys.executable, "-c", "import time\nt = time.monotonic() + 3\nwhile time.monotonic() < t: pass"])
PYTHON
for how in computes prints child; do
    for out in --redirects=3 --tee=3; do
        run --standalone --nproc-per-node=2 --hang-timeout=1 $out --log-dir="$T/$how" "$T/alive.py" $how
        is "a worker that $how ($out) keeps all of them alive" "$status" 0
    done
done
# A console that stands stops the worker that prints to it; that is not the worker's fault.
mkfifo "$T/fifo"
exec 9<>"$T/fifo"
OUT=$T/fifo
start --standalone --nproc-per-node=1 --hang-timeout=1 --tee=1 --log-dir="$T/fifologs" --no-python sh -c \
    'i=0; while [ $i -lt 6000 ]; do echo "a line that goes to a console that nobody reads, number $i"; i=$((i + 1)); done'
sleep 4
cat <&9 >"$T/read" &
reader=$!
finish
kill $reader 2>/dev/null
exec 9>&-
OUT=$T/out
is "a console that stood still is no hang" "$status" 0
unlike "a console that stood still: nothing was said" "$(cat "$ERR")" 'hung'
is_clean "no hang"

# Typed wrong.
run --standalone --hang-timeout=soon --no-python true
is "a time-out that is no time: exit status" "$status" 2
like "a time-out that is no time: said so" "$(cat "$ERR")" 'hang-timeout'
finished
