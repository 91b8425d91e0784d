"""A worker for ckpt_save.sh: a step each time that FOLDER/go.STEP.RANK comes, until FOLDER/end.  FOLDER/held.STEP.RANK:
its snapshot is committed.

ckpt_save_worker.py FOLDER [share]: share: the part is the same on both ranks, and one that has nothing gets it from the
other by FOLDER/image; FOLDER/back.STEP.RANK: it has been restored."""
import os
import sys
import time

import elrun

folder, rank = sys.argv[1], os.environ["RANK"]
ck = elrun.connect()
state = {"bytes": bytearray(1 << 20)}


def share(image):
    if image is not None:
        with open(f"{folder}/image.new", "wb") as f:
            f.write(bytes(image))
        os.rename(f"{folder}/image.new", f"{folder}/image")
        return None
    while not os.path.exists(f"{folder}/image"):
        time.sleep(0.01)
    with open(f"{folder}/image", "rb") as f:
        return f.read()


if sys.argv[2:] == ["share"]:
    ck.declare("state", state, shard_id="all")
    step = (ck.restore(share) or 0) + 1
    open(f"{folder}/back.{step - 1}.{rank}", "w").close()
else:
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
