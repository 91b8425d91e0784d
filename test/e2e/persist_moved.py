"""persist_moved.py FOLDER [shared]: a job whose ranks hold something that is no other rank's; it stops in step 5 until FOLDER/go is
there, and each start appends "RANK STEP OWN OWN-OF-SHARED" to FOLDER/log.  shared: there is no part but that which all share."""
import os
import sys
import time

import elrun

folder, rank = sys.argv[1], int(os.environ["RANK"])
shared, own = {"of": rank}, {"of": rank}  # the first is the same on all ranks but for this: a rank's own piece
ck = elrun.connect()
ck.declare("shared", shared, shard_id="all")
if "shared" not in sys.argv[2:]:
    ck.declare("own", own)
step = ck.restore()
with open(f"{folder}/log", "a") as f:
    f.write(f"{rank} {step} {own['of']} {shared['of']}\n")
for i in range(0 if step is None else step + 1, 9):
    while i == 5 and not os.path.exists(f"{folder}/go"):
        time.sleep(0.02)
    with ck.update(i):
        own["of"] = shared["of"] = 100 * rank + i
    assert ck.snapshot(i, persist=True)
    assert ck.wait_persist(i, 60)
