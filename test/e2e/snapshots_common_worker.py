"""A rank whose part is as large as its rank says, so that ranks are not ready for the next snapshot together, for
snapshots_common.sh.

snapshots_common_worker.py FOLDER STEPS MODE: in the first attempt it trains until it is killed, or ends; each attempt
writes "ATTEMPT RESTORED" to FOLDER/log.RANK, each step that it has taken "took STEP".  MODE: sync, ranks train in step; again, so they do, and ask for each
step until it is taken; apart."""
import os
import sys
import time

import elrun

folder, steps, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rank, world, attempt = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
log = open(f"{folder}/log.{rank}", "a", buffering=1)
state = {"step": 0, "bytes": bytearray((1 + 11 * rank % 24) << 20)}
ck = elrun.connect()
ck.declare("state", state)
restored = ck.restore()
log.write(f"{attempt} {restored} {state['step']}\n")
if attempt:
    sys.exit(0)
log.write(f"pid {os.getpid()}\n")
at = os.open(f"{folder}/at.{rank}", os.O_RDWR | os.O_CREAT)


def others():
    for r in range(world):
        try:
            yield int(open(f"{folder}/at.{r}").read() or 0)
        except FileNotFoundError:
            yield 0


for step in range(1, steps):
    state["step"] = step
    time.sleep(0.001 * (1 + (rank * 7 + step) % 5))
    taken = ck.snapshot(step)
    while not taken and mode == "again":
        time.sleep(0.01)
        taken = ck.snapshot(step)
    if taken:
        log.write(f"took {step}\n")
    os.pwrite(at, b"%d\n" % step, 0)
    while mode != "apart" and min(others()) < step:
        time.sleep(0.0005)
ck.close()
