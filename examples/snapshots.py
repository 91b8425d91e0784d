"""Training whose state outlives it: a small model on every rank, a snapshot after every step.

    elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=64M examples/snapshots.py

Kill a worker while it runs (`kill -9`): all ranks go back to the last step, and the printed result is the same, bit for bit,
as without.  Run by itself or under torchrun it trains as well, without snapshots."""
from contextlib import nullcontext

import torch
import torch.distributed as dist

from training import STEPS, end, step_is_over

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(17)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optim = torch.optim.AdamW(ddp.parameters(), lr=1e-2)
    rates = torch.optim.lr_scheduler.StepLR(optim, 10, 0.5)
    torch.manual_seed(1000 + rank)  # each rank draws its own data

    snapshots = elrun.connect() if elrun else None
    done = None
    if snapshots:
        snapshots.declare("model", ddp)
        snapshots.declare("train", {"optim": optim, "rates": rates, "rng": elrun.Rng()})
        done = snapshots.restore()

    for step in range(0 if done is None else done + 1, STEPS):
        x = torch.randn(32, 16)
        loss = (ddp(x).squeeze(1) - x.sum(1)).square().mean()
        optim.zero_grad()
        loss.backward()
        with snapshots.update(step) if snapshots else nullcontext():  # elrun knows from it that between two the state is whole
            optim.step()
            rates.step()
        if snapshots:
            snapshots.snapshot(step, persist=step % 10 == 9)  # with --ckpt-dir these go to disk
        step_is_over(rank, step)

    end(rank, sum(float(t.double().sum()) for t in model.state_dict().values()))


if __name__ == "__main__":
    main()
