"""A worker of several nodes with snapshots, for snapshots_nodes.sh: trains steps, all ranks in step, and records what it
went back to.

snapshots_nodes_worker.py FOLDER STEPS HOLD: in its first round it stands still behind step HOLD, once all ranks have committed it
("held.RANK" holds its pid), and waits to be killed; with "flip.RANK" there it writes into that slot first.  Each round
appends "ROUND RANK RESTORED COUNT" to FOLDER/log.RANK.  With FOLDER/late.RANK it calls restore() only when that is gone;
with FOLDER/slow.RANK it says "reads.RANK" before it reads, and waits until that is gone."""
import os
import signal
import sys
import time

import elrun
import within

folder, steps, hold = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank, world, number = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["ELRUN_ROUND"].split(".")[0]


def there(name):
    return os.path.exists(f"{folder}/{name}")


def wait_while(good):
    while good():
        time.sleep(0.01)


def mark(name):
    with open(f"{folder}/{name}~{rank}", "w") as f:
        f.write(f"{os.getpid()}\n")
    os.rename(f"{folder}/{name}~{rank}", f"{folder}/{name}")


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def everybody(name):
    mark(f"{name}.{number}.{rank}")
    wait_while(lambda: not all(there(f"{name}.{number}.{r}") for r in range(world)))


state = {"count": 0, "rank": rank, "bytes": bytearray(1 << 20)}
ck = elrun.connect()
ck.declare("state", state)
ck.declare("common", {"text": "x"}, shard_id="all")

load = ck._load


def slow_load(*args):
    if there(f"slow.{rank}"):
        mark(f"reads.{rank}")
        wait_while(lambda: there(f"slow.{rank}"))
    return load(*args)


ck._load = slow_load
mark(f"asks.{number}.{rank}")
wait_while(lambda: there(f"late.{rank}"))
try:
    step = ck.restore()
except elrun.NoSnapshot as e:
    write(f"{number} {rank} none: {e}")
    sys.exit(9)
write(f"{number} {rank} {step} {state['count']} {state['bytes'][:1].hex()}")
for now in range(0 if step is None else step + 1, steps):
    state["count"] = 10 * now + rank
    state["bytes"][:] = bytes([now]) * len(state["bytes"])
    while not ck.snapshot(now):
        time.sleep(0.01)
    ck.wait()
    everybody(f"step{now}")
    if now == hold and not there(f"went.{rank}"):
        mark(f"went.{rank}")
        if there(f"flip.{rank}"):
            within.spoil(ck, now)
        mark(f"held.{rank}")
        signal.pause()
ck.close()
