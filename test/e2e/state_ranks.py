"""The manual's first example on two ranks, for state_ranks.sh: DDP with BatchNorm and everything under shard_id="all", though
statistics, random numbers, counters and samplers are each rank's own; and a part whose parameters differ by mistake.
state_ranks.py FOLDER: the first job trains and kills itself when the step is on disk, its second attempt comes back from memory; a
job of three ranks comes back from disk, the third one with what its place in the ranks gives it: nobody's own."""
import os
import pickle
import signal
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

import elrun
from state_truth import differences, freeze

folder = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
torch.manual_seed(3 + attempt)
net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Dropout(.5))
ddp = nn.parallel.DistributedDataParallel(net)
optim = torch.optim.AdamW(ddp.parameters(), lr=.01)
sched = torch.optim.lr_scheduler.StepLR(optim, 2)
torch.manual_seed(1000 * attempt + rank)
np.random.seed(1000 * attempt + rank)
wrong = nn.Linear(3, 2)  # each rank has made its own: a mistake
loader = {"at": -1, "seen": [], "generator": torch.Generator().manual_seed(rank), "small": torch.zeros(2)}

ck = elrun.connect()
ck.declare("model", ddp, shard_id="all")
ck.declare("train", {"optim": optim, "sched": sched, "rng": elrun.Rng(), "loader": loader}, shard_id="all")
ck.declare("mistake", wrong, shard_id="all")
step = ck.restore()


def see():
    return {"shared": freeze([dict(net.named_parameters()), optim, sched]),
            "own": freeze([dict(net.named_buffers()), torch.get_rng_state(), np.random.get_state(legacy=False), loader])}


def verdict(ok, what, why=""):
    with open(f"{folder}/result.{rank}", "a") as f:
        f.write(f"ok {what}\n" if ok else f"not ok {what}: {' '.join(str(why).split())}\n")


if step is None:
    for step in range(4):
        ddp(torch.randn(16, 8)).square().mean().backward()
        optim.step()
        sched.step()
        optim.zero_grad()
        loader["at"] = 10 * step + rank
        loader["seen"].append(rank)
        loader["small"] = torch.rand(2 + rank, generator=loader["generator"])
        assert ck.snapshot(step, persist=step == 3)
    assert ck.wait_persist(3)
    with open(f"{folder}/kept.{rank}", "wb") as f:
        pickle.dump(see(), f)
    dist.barrier()
    time.sleep(.2 * rank)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
now = see()
who = f"{'from disk' if world == 3 else 'from memory'}, rank {rank}"
with open(f"{folder}/kept.{min(rank, 1)}", "rb") as f:
    kept = pickle.load(f)
bad = differences(kept["shared"], now["shared"])
verdict(step == 3 and not bad, f"{who} has what all have", [step, *bad])
if rank < 2:
    bad = differences(kept["own"], now["own"])
    verdict(not bad, f"{who} has its own statistics and numbers and counters", bad)
else:
    with open(f"{folder}/kept.0", "rb") as f:
        bad = differences(pickle.load(f)["own"], now["own"])
    verdict(not bad, f"{who} has those of the lowest rank", bad)
with open(f"{folder}/result.{rank}", "a") as f:
    f.write("end\n")
dist.barrier()
