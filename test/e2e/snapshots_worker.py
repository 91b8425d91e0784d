"""A worker with snapshots, for snapshots.sh: counts steps, records what it went back to, and dies as it is told.

snapshots_worker.py FOLDER MODE: each attempt appends "ATTEMPT RANK RESTORED COUNT" to FOLDER/log.RANK."""
import os
import signal
import socket
import sys
import time

import elrun
import numpy
import within

folder, mode = sys.argv[1:3]
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
world = int(os.environ["WORLD_SIZE"])


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def there(name):
    return os.path.exists(f"{folder}/{name}")


def wait_for(*names):
    while not all(there(n) for n in names):
        time.sleep(0.01)


def mark(name):
    open(f"{folder}/{name}", "w").close()


def everybody(name):
    mark(f"{name}.{attempt}.{rank}")
    wait_for(*[f"{name}.{attempt}.{r}" for r in range(world)])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


ck = elrun.connect()
state = {"count": 0, "rank": rank, "bytes": bytearray(b"\0" * (1 << 20))}
if mode == "sizes" and attempt == 0:
    state["bytes"] = bytearray(100)  # and larger from step to step
if mode == "sizes" and attempt == 1:
    state["more"] = bytearray(8 << 20)
if mode == "large":
    state["bytes"] = bytearray(2 << 20)
ck.declare("state", state)
ck.declare("common", {"text": "x" * attempt}, shard_id="all")
if mode == "parts" and attempt == 1:
    ck.declare("more", {"count": 0})
if mode == "misfit":
    ck.declare("array", numpy.zeros(5 + (attempt and rank)))
if mode == "large":
    write(f"{ck.restore()}")
    try:
        write(f"taken: {ck.snapshot(0)}")
    except elrun.Error as e:
        write(f"refused: {e}")
    sys.exit(0)
if mode == "declare":
    ck.restore()
    for call in (lambda: ck.declare("late", {}), lambda: elrun.connect()):
        try:
            call()
            write("taken")
        except (elrun.Error, ValueError) as e:
            write(f"refused: {e}")
    # a frame that is none, in another process of this worker: that connection is closed, nothing else happens
    sys.exit(0)
if mode == "garbage" and attempt == 0:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ck._sock.send(b"GET / HTTP/1.1\r\n\r\n")
    try:
        ck.restore()
    except elrun.Error as e:
        write(f"closed: {e}")
    s.close()
    ck.close()
    while (ck := elrun.connect()) is None:
        pass
    ck.declare("state", state)

try:
    step = ck.restore()
except elrun.NoSnapshot as e:
    write(f"{attempt} {rank} none: {e}")
    sys.exit(9)
except elrun.Error as e:
    write(f"{attempt} {rank} refused, count {state['count']}: {e}")
    sys.exit(9)
if mode == "sizes":
    write(f"holds {len(state['bytes'])}, more: {'more' in state}")
write(f"{attempt} {rank} {step} {state['count']} {state['bytes'][:1].hex()}")
for now in range(0 if step is None else step + 1, 6):
    state["count"] = 10 * now
    if mode == "sizes":
        state["bytes"] = bytearray(now << 20)
    state["bytes"][:] = bytes([now]) * len(state["bytes"])
    if attempt == 0 and mode == "copying" and now == 4 and rank == 1:
        within.begin(ck, now)  # and dies in the middle of it
        die()
    taken = ck.snapshot(now)
    while not taken:
        taken = ck.snapshot(now)
    if attempt == 0 and mode == "commit" and now == 4:
        everybody("committed")  # nobody has waited for the sums
        die()
    ck.wait()
    everybody(f"step{now}")
    if now == 5 and mode == "one":
        have, need = within.memory_of_slots(ck)
        write(f"slots have {'what they need' if have == need else f'{have} of {need}'}")
    if attempt == 0 and now == 3:
        if mode == "one" and rank == 1 or mode == "all":
            die()
        if mode == "late" and rank == 1:
            within.spoil(ck, now)
            die()
        if mode in ("sizes", "parts", "misfit") and rank == 0:
            die()
        if mode in ("one", "late", "sizes", "parts", "misfit"):
            signal.pause()
ck.close()
