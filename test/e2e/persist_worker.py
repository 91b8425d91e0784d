"""A worker whose snapshots go to disk, for persist*.sh: counts steps, and does at one of them what it is told.

persist_worker.py FOLDER ROOT MODE STEPS PERSIST: PERSIST is a list of steps, such as 2,4, that are wanted on disk.  Each
attempt appends "ATTEMPT RANK RESTORED COUNT" to FOLDER/log.RANK, and each step that was on disk "disk STEP"."""
import os
import shutil
import signal
import sys
import time

import elrun
import within

folder, root, mode, steps = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
persist = [int(s) for s in sys.argv[5].split(",") if s]
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
world = int(os.environ["WORLD_SIZE"])
size = int(os.environ.get("STATE_BYTES", 1 << 20))
last = steps - 1


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def mark(name):
    open(f"{folder}/{name}", "w").close()


def wait_for(*names):
    while not all(os.path.exists(n) for n in names):
        time.sleep(0.01)


def everybody(name):
    mark(f"{name}.{attempt}.{rank}")
    wait_for(*[f"{folder}/{name}.{attempt}.{r}" for r in range(world)])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def told(step):
    try:
        write(f"told {step} {ck.wait_persist(step, 100)}")
    except elrun.Error as e:
        write(str(e))


ck = elrun.connect()
state = {"count": 0, "bytes": bytearray(size)}
common = {"text": "x", "count": 0}
if mode != "files":
    ck.declare("state", state)
    ck.declare("common", common, shard_id="all")
if mode == "file":
    try:
        ck.declare_file("a/b.pt", b"x")
    except elrun.Error as e:
        write(str(e))
if mode == "megatron":
    ck.declare_file(f"mp_rank_{rank:02d}/model_optim_rng.pt", lambda: b"rank %d step %d" % (rank, common["count"]))
if mode == "files":  # nothing else, and it grows
    ck.declare_file(f"mp_rank_{rank:02d}/a/b/c/d/e.pt", lambda: b"x" * common["count"],
                    load=lambda data: (state.update(count=len(data)), common.update(count=len(data))))
try:
    step = ck.restore()
except elrun.NoSnapshot as e:
    write(str(e))
    sys.exit(9)
write(f"{attempt} {rank} {step} {state['count']}")
if mode == "back" and step is not None:
    while not all(os.path.exists(f"{folder}/log.{r}") for r in range(world)):
        time.sleep(0.01)  # the others are stopped as soon as this one ends
    die()
for now in range(0 if step is None else step + 1, steps):
    state["count"] = 10 * now
    common["count"] = now
    state["bytes"][:] = bytes([now % 256]) * size
    wanted = now in persist
    if wanted and mode in ("gate", "left") or wanted and mode == "behind" and rank == 2:
        mark(f"at.{rank}")
        wait_for(f"{folder}/go")
    if wanted and mode == "left" and now == last:
        write(f"not wanted on disk: {ck.snapshot(now)}")
        mark(f"left.{rank}")
        write(f"taken {ck.snapshot(now, persist=True)}, thawed {os.path.exists(f'{folder}/thawed')}")
        told(now)
        break
    while not ck.snapshot(now, persist=wanted):
        time.sleep(0.01)
    ck.wait()
    everybody(f"step{now}")
    if wanted and mode in ("", "keep"):
        wait_for(f"{root}/step-{now:09d}/MANIFEST.json")
        everybody(f"disk{now}")
    if wanted and mode == "events":
        told(now)
        write(f"events {[(e.kind, e.step) for e in ck.events()]}")
        everybody(f"told{now}")
        if rank == 0 and os.path.exists(root):  # from now on there is no directory
            os.rename(root, root + ".first")
            shutil.rmtree(root + ".first")
        everybody(f"gone{now}")
    if wanted and mode == "fails":
        wait_for(f"{folder}/failed.{now}")  # the test has seen it
    if now == last and mode == "hold" and step is None:  # whoever has gone back to a step runs on
        mark(f"ready.{rank}")
        signal.pause()
    if now == last and attempt == 0:
        if mode == "one" and rank == 1 or mode == "all":
            die()
        if mode == "wait":
            mark(f"ready.{rank}")
        if mode in ("one", "wait"):
            signal.pause()
        if mode == "late" and rank == 1:
            within.spoil(ck, now)
            die()
        if mode == "late":
            signal.pause()
ck.close()
