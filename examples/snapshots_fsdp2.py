"""Training with FSDP2 (fully_shard, DTensor) whose state outlives it: each rank keeps its own pieces of the parameters and
of the optimizer's state in the agent's memory.

    elrun --standalone --nproc-per-node=2 --max-restarts=3 --ckpt-mem=64M examples/snapshots_fsdp2.py

Kill a worker while it runs (`kill -9`): all ranks go back to the last step, and the printed result is the same, bit for bit,
as without."""
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from training import STEPS, end, step_is_over

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(17)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rates = torch.optim.lr_scheduler.StepLR(optim, 10, 0.5)
    torch.manual_seed(1000 + rank)  # each rank draws its own data

    ck = elrun.connect() if elrun else None
    done = None
    if ck:
        shard = f"fsdp{rank}"  # equal on the ranks that hold the same pieces: with HSDP those of one column
        ck.declare("model", model, shard_id=shard)
        ck.declare("optim", optim, shard_id=shard)
        ck.declare("rank", {"rates": rates, "rng": elrun.Rng()})
        done = ck.restore()

    for step in range(0 if done is None else done + 1, STEPS):
        x = torch.randn(32, 16)
        loss = (model(x) - x[:, :2]).square().mean()
        optim.zero_grad()
        loss.backward()
        if ck:
            with ck.update(step):
                optim.step()
                rates.step()
            ck.snapshot(step)
        else:
            optim.step()
            rates.step()
        step_is_over(rank, step)

    own = torch.stack([p.detach().to_local().double().sum() for p in model.parameters()]).sum()
    dist.all_reduce(own)
    end(rank, float(own))


if __name__ == "__main__":
    main()
