"""A worker that goes on from disk, for snapshots_disk.sh: records what it went back to, then trains two steps (MODE one: one) and waits for each
of them to be a checkpoint.

snapshots_disk_worker.py FOLDER ROOT [MODE]: appends "RANK RESTORED COUNT BYTES" to FOLDER/log.RANK, "RANK none: WHY" or
"RANK refused, COUNT: WHY"."""
import os
import sys
import time

import elrun
import numpy

folder, root, mode = sys.argv[1], sys.argv[2], "".join(sys.argv[3:])
rank = int(os.environ["RANK"])


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{rank} {what}\n")


state = {"count": 0, "bytes": numpy.zeros((1 << 20) + (4096 if mode == "larger" else 0), dtype="u1"), "rng": elrun.Rng()}
if mode == "larger":
    state["more"] = 1
ck = elrun.connect()
ck.declare("state", state)
if mode != "fewer":
    ck.declare("names" if mode == "other" else "nomen", numpy.zeros(65 if mode == "misfit" else 64))
ck.declare("common", {"text": bytearray(b"x" * 99)}, shard_id="all")
try:
    step = ck.restore()
except elrun.NoSnapshot as e:
    write(f"none: {e}")
    sys.exit(9)
except elrun.Error as e:
    write(f"refused, {state['count']}: {e}")
    sys.exit(9)
if mode == "larger":
    write(f"{len(state['bytes'])} {state.keys() - {'count', 'bytes', 'rng'}}")
write(f"{step} {state['count']} {bytes(state['bytes'][:1]).hex()}")
if mode not in ("", "one", "fewer"):
    sys.exit(0)
first = 0 if step is None else step + 1
for now in range(first, first + (1 if mode == "one" else 2)):
    state["count"] = 10 * now + rank
    state["bytes"][:] = now
    while not ck.snapshot(now, persist=True):
        time.sleep(0.01)
    while not os.path.exists(f"{root}/step-{now:09d}/MANIFEST.json"):
        time.sleep(0.01)
