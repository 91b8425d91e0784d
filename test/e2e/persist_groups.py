"""persist_groups.py FOLDER: ranks 0 and 2 share one shard, 1 and 3 another; rank 1 dies in step 6 of the first job.  Each start
appends "RANK STEP VALUE ARRAY" to FOLDER/log."""
import os
import sys
import time

import numpy as np

import elrun

folder, rank = sys.argv[1], int(os.environ["RANK"])
group = rank % 2
small, large = {"value": -1}, np.zeros(200000)
ck = elrun.connect()
ck.declare("small", small, shard_id=f"shard{group}")
ck.declare("large", large, shard_id=f"shard{group}")
step = ck.restore()
with open(f"{folder}/log", "a") as f:
    f.write(f"{rank} {step} {small['value']} {large[7]:.0f}\n")
for i in range(0 if step is None else step + 1, 7 if step is None else step + 2):
    with ck.update(i):
        small["value"] = large[:] = 10 * i + group
    while i == 6 and step is None:
        time.sleep(0.1)
        if rank == 1:
            os._exit(3)
