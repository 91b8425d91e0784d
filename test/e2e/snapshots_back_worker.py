"""A rank whose script goes back by itself, for snapshots_back.sh: takes steps 1 to 10, then 4 and 5 anew.

snapshots_back_worker.py FOLDER PERSIST: PERSIST is a list of the first time's steps, and then of the second's, that are
wanted on disk, such as 8,10/4.  Each attempt writes "ATTEMPT RESTORED STEP TIME" to FOLDER/log.RANK."""
import os
import signal
import sys
import time

import elrun

folder = sys.argv[1]
persist = [[int(s) for s in x.split(",") if s] for x in sys.argv[2].split("/")]
rank, world, attempt = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def everybody(name):
    open(f"{folder}/{name}.{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/{name}.{r}") for r in range(world)):
        time.sleep(0.01)


ck = elrun.connect()
state = {"step": 0, "time": 0}
ck.declare("state", state)
restored = ck.restore()
write(f"{attempt} {restored} {state['step']} {state['time']}")
if attempt:
    sys.exit(0)
for state["time"], steps in enumerate((range(1, 11), range(4, 6))):
    wanted = persist[state["time"]]
    for state["step"] in steps:
        while not ck.snapshot(state["step"], persist=state["step"] in wanted):
            time.sleep(0.01)
        ck.wait()
        everybody(f"step.{state['time']}.{state['step']}")
    for s in wanted:
        write(f"disk {s} {ck.wait_persist(s, 100)}")
write(f"last {ck.wait()}")
everybody("end")
if rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
