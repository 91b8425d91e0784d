"""Training that grows and shrinks between two steps: the global batch stays, no step is lost when a node leaves.

    elrun --nnodes=1:4 --rdzv-endpoint=HOST --nproc-per-node=2 --boundary-wait=30 --ckpt-mem=64M examples/elastic.py

Send SIGTERM to the elrun of one node: all ranks finish the same step, and the other nodes go on behind it, from memory.
Start one more, and all ranks finish the same step, and go on behind it with the new ones.

All state is alike on every rank (shard_id="all"), so it fits whatever the number of ranks is.  A node that is new has none of
it in memory: share() gives it to its ranks."""
import os
import time

import torch
import torch.distributed as dist

from training import PAUSE, STEPS, end

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None

GLOBAL_BATCH, MICRO_BATCH = 48, 8


def samples(step, rank, world, micro):
    """The same samples in each step, however many ranks share them: drawn by the step's number, not by random state."""
    x = torch.randn(GLOBAL_BATCH, 16, generator=torch.Generator().manual_seed(step))
    at = (rank + micro * world) * MICRO_BATCH
    return x[at : at + MICRO_BATCH]


def make(step, optim, rank, world):
    """All that belongs to the step: what is done behind ck.update() is not done in the last step of a round."""
    optim.step()
    if os.environ.get("MARK") and rank == 0:  # the test of this example counts steps
        with open(f"{os.environ['MARK']}/steps", "a") as f:
            f.write(f"{step} {world}\n")


def share(image):
    """Called on every rank: one that has no snapshot gets the bytes of the first that has one."""
    have = [None] * dist.get_world_size()
    dist.all_gather_object(have, image is not None)
    if all(have):
        return None
    source = have.index(True)
    given = [bytes(image) if dist.get_rank() == source else None]
    dist.broadcast_object_list(given, src=source)
    return given[0]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    # With the global batch kept the learning rate stays; else elrun.scale_lr(0.01, "linear") is the one for this world.
    optim = torch.optim.SGD(ddp.parameters(), lr=elrun.scale_lr(0.01, "none") if elrun else 0.01, momentum=0.9)
    parts = elrun.accumulate(GLOBAL_BATCH, MICRO_BATCH) if elrun else GLOBAL_BATCH // MICRO_BATCH // world

    ck = elrun.connect() if elrun else None
    done = None
    if ck:
        ck.declare("model", ddp, shard_id="all")
        ck.declare("optim", optim, shard_id="all")
        done = ck.restore(share=share)
    start = 0 if done is None else done + 1
    if rank == 0:
        print(f"{world} ranks, {parts} micro batches each, from step {start}", flush=True)

    for step in range(start, STEPS):
        optim.zero_grad()
        for micro in range(parts):
            x = samples(step, rank, world, micro)
            ((ddp(x).squeeze(1) - x.sum(1)).square().mean() / parts).backward()
        if ck:
            with ck.update(step):  # behind it elrun.Regroup ends this process when the job changes
                make(step, optim, rank, world)
            ck.snapshot(step)
        else:
            make(step, optim, rank, world)
        time.sleep(PAUSE)

    end(rank, sum(float(t.detach().double().sum()) for t in model.parameters()))


if __name__ == "__main__":
    main()
