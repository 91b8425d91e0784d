"""A worker for ckpt_save.sh: a step each time that FOLDER/go.STEP.RANK comes, until FOLDER/end.  FOLDER/held.STEP.RANK:
its snapshot is committed."""
import os
import sys
import time

import elrun

folder, rank = sys.argv[1], os.environ["RANK"]
ck = elrun.connect()
state = {"bytes": bytearray(1 << 20)}
ck.declare("state", state)
ck.restore()
step = 1
while not os.path.exists(f"{folder}/end"):
    if not os.path.exists(f"{folder}/go.{step}.{rank}"):
        time.sleep(0.01)
        continue
    with ck.update(step):
        state["bytes"][:] = bytes([step]) * (1 << 20)
    while not ck.snapshot(step):
        time.sleep(0.01)
    ck.wait()
    open(f"{folder}/held.{step}.{rank}", "w").close()
    step += 1
ck.close()
