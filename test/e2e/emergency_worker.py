"""A worker that takes its steps in ck.update() and a snapshot of the first one only, for emergency.sh: what is newer can come
from live workers alone.

emergency_worker.py FOLDER MODE: each attempt appends "ATTEMPT RANK RESTORED COUNT" to FOLDER/log.RANK.  At step 7 of the first
attempt happens what MODE says."""
import atexit
import os
import signal
import socket
import sys
import time

import elrun
import within
from elrun.emergency import Emergency
from elrun.packets import LIMIT, NO_STEP

folder, mode = sys.argv[1:3]
rank = int(os.environ["RANK"])
attempt = min(int(os.environ["ELRUN_ROUND"].split(".")[0]) - 1, 1)  # one node alone counts its attempts
world = int(os.environ["WORLD_SIZE"])
FAULT, STEPS = 7, 10


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def mark(name):
    open(f"{folder}/{name}", "w").close()


def wait_for(*names):
    while not all(os.path.exists(f"{folder}/{n}") for n in names):
        time.sleep(0.005)


def everybody(name):
    """Stands for a collective: whoever waits for a dead rank waits for ever."""
    mark(f"{name}.{attempt}.{rank}")
    wait_for(*[f"{name}.{attempt}.{r}" for r in range(world)])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def ready():
    with open(f"{folder}/ready.{rank}~", "w") as f:
        f.write(str(os.getpid()))
    os.rename(f"{folder}/ready.{rank}~", f"{folder}/ready.{rank}")
    signal.pause()


def frozen():
    return ck._page.long[LIMIT] != NO_STEP


def in_step(now):
    """Within update(), or where it would be."""
    if attempt or now != FAULT:
        return
    if mode == "inside" and rank == 1:
        raise RuntimeError("half of a step is done")
    if mode in ("late", "behind") and rank == 0:
        mark("inside")
        while not frozen():  # the other one is dead; this step was begun and is ended
            time.sleep(0.005)


def before_step(now):
    """Where a forward and a backward pass would be."""
    if attempt or now != FAULT:
        return
    if mode in ("one", "less", "shard", "noupdate", "copying", "busy", "silent") and rank == world - 1:
        die()
    if mode == "behind" and rank > 1:  # another node's: it comes when no step may be begun any more
        mark(f"step{now}.{attempt}.{rank}")
        while not frozen():
            time.sleep(0.005)
    if mode in ("late", "behind") and rank == 1:
        mark(f"step{now}.{attempt}.{rank}")
        wait_for("inside")
        die()
    if mode in ("raise", "exit", "deaf", "mute") and rank == 1:
        if mode == "deaf":  # an agent without descriptors: it takes no connection, and what is sent waits there
            ck._emergency.sock = far[0]
        if mode != "exit":
            raise RuntimeError("it cannot go on")
        sys.exit(3)
    if mode == "both" and rank < 2:
        if rank == 1:  # the first to fail is the last to end
            atexit.register(time.sleep, 60)
            raise RuntimeError("the first")
        while not frozen():
            time.sleep(0.005)
        raise RuntimeError("the second")
    if mode in ("all", "term", "hang", "handler", "leave"):
        ready()
    if mode == "slow" and rank == world - 1:
        die()
    if mode == "slowexit" and rank == world - 1:
        os._exit(3)


far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if mode == "handler":
    signal.signal(signal.SIGTERM, lambda *_: None)
ck = elrun.connect()
state = {"count": 0, "steps": []}
own = mode in ("shard", "raise", "inside", "term", "hang", "exit", "mute")
ck.declare("state", state, shard_id=f"s{rank}" if own else "all")
if mode == "large":
    ck.declare("more", {"bytes": bytearray(2 << 20)}, shard_id="all")
if mode == "less" and rank < world - 1:  # so none has declared the same as the one that dies
    ck.declare("more", {"rank": "any"}, shard_id="all")
if mode == "copying" and rank == 0 and attempt == 0:  # it dies when it has begun to copy
    Emergency._copy = lambda *_: die()
if mode == "both" and rank == 0:  # the copy comes behind the word that its script has failed
    pack, first_copy = elrun.emergency.pack, Emergency._copy

    def told(kind, *what):
        if kind == "FAILING":
            mark("second")
        return pack(kind, *what)

    elrun.emergency.pack = told
    Emergency._copy = lambda *what: wait_for("second") or first_copy(*what)
if mode in ("silent", "mute") and rank == 0 and attempt == 0:  # as if it had been stopped
    Emergency._copy = lambda *_: time.sleep(1000)
if mode in ("slow", "slowexit") and attempt == 0:  # a copy takes its time, so that something can happen meanwhile
    copy = Emergency._copy

    def slowly(*what):
        mark(f"copies.{rank}")
        wait_for("go")
        return copy(*what)

    Emergency._copy = slowly
step = ck.restore()
write(f"{attempt} {rank} {step} {state['count']}")
for now in range(0 if step is None else step + 1, STEPS):
    before_step(now)
    everybody(f"step{now}")
    if mode == "noupdate":
        state["count"] = 10 * now
    else:
        with ck.update(now):
            in_step(now)
            state["count"] = 10 * now
            state["steps"].append(now)
    if now == 0:
        ck.snapshot(now)
        ck.wait()
    if now == FAULT - 1 and mode == "busy" and attempt == 0:
        within.begin(ck, now)  # and is never committed
    everybody(f"done{now}")
write(f"end {state['count']} {state['steps'] == list(range(STEPS))}")
ck.close()
