"""A worker that takes its steps in ck.update(), for boundary.sh: every rank waits in each step for all others, as in a
collective, so that one which stops alone would hang the others.

boundary_worker.py FOLDER [STATUS [grow | sparse]]: FOLDER/log gets "step ROUND RANK WORLD STEP" and "regroup ROUND RANK STEP WHY"; a rank
that is told to regroup ends with STATUS.  FOLDER/go ends the training.  FOLDER/slow-RANK makes that rank's steps slow.  grow: what
rank 0 has declared has no room in --ckpt-mem any more once a change is announced.
sparse: steps are numbered 0, 10, 20, ..."""
import os
import sys
import time

import elrun

folder, status = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
round_ = os.environ["ELRUN_ROUND"].split(".")[0]


def write(what):
    fd = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (what + "\n").encode())
    os.close(fd)


def mark(name, text=""):
    with open(f"{folder}/{name}~{rank}", "w") as f:
        f.write(text)
    os.replace(f"{folder}/{name}~{rank}", f"{folder}/{name}")


def everybody(step):
    mark(f"at.{round_}.{step}.{rank}")
    while not all(os.path.exists(f"{folder}/at.{round_}.{step}.{r}") for r in range(world)):
        time.sleep(0.002)


def read(name, default):
    try:
        with open(f"{folder}/{name}") as f:
            return int(f.read())
    except FileNotFoundError:
        return default


ck = elrun.connect()
grows = sys.argv[3:] == ["grow"] and round_ == "1"
if sys.argv[3:] == ["grow"]:
    state = {"w": bytearray(1 << 20)}
    ck.declare("w", state)
    ck.restore()
step, stride = read("state", -1) + 1, 10 if sys.argv[3:] == ["sparse"] else 1
try:
    while True:
        if rank == 0 and os.path.exists(f"{folder}/go"):
            mark("last", str(step))
        everybody(step)
        if read("last", 1 << 60) <= step:
            break
        if os.path.exists(f"{folder}/slow-{rank}"):
            time.sleep(0.2)
        with ck.update(step):
            write(f"step {round_} {rank} {world} {step}")
            if grows and rank == 0 and ck.change:
                state["w"] = bytearray(32 << 20)
        if grows:
            ck.snapshot(step)
        step += stride
except elrun.Regroup as e:
    write(f"regroup {round_} {rank} {step} {e.change.why.replace(' ', '-')}")
    if rank == 0:
        mark("state", str(step))
    sys.exit(status)
