"""A training whose parameters are pieces (FSDP2: fully_shard, DTensor), of which each rank alone holds its own, with a
snapshot of its first step only, for emergency_torch.sh: rank 1 raises at step 6 of the first attempt, if MODE is "raised".
emergency_fsdp2.py FOLDER MODE: each attempt appends the step that it goes back to to FOLDER/log.RANK, and its result at the end."""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import elrun

folder, mode = sys.argv[1:3]
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
STEPS, FAULT = 9, 6


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{what}\n")


dist.init_process_group("gloo")
torch.manual_seed(17)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2), torch.nn.Linear(2, 2))  # the last one is the root's own
for part in (model[0], model[2], model):
    fully_shard(part, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optim = torch.optim.AdamW(model.parameters(), lr=1e-2)
rates = torch.optim.lr_scheduler.StepLR(optim, 3, 0.5)
torch.manual_seed(1000 + rank)
ck = elrun.connect()
ck.declare("model", model, shard_id=f"fsdp{rank}")
ck.declare("optim", optim, shard_id=f"fsdp{rank}")
ck.declare("rank", {"rates": rates, "rng": elrun.Rng()})
done = ck.restore()
write(done)
for step in range(0 if done is None else done + 1, STEPS):
    if mode == "raised" and step == FAULT and attempt == 0:
        dist.barrier()  # both have done the step before
    x = torch.randn(32, 16)
    loss = (model(x) - x[:, :2]).square().mean()
    if mode == "raised" and step == FAULT and attempt == 0 and rank == 1:
        raise RuntimeError("a loss that is none")  # whole parameters stand in the model until the backward pass is over
    optim.zero_grad()
    loss.backward()
    with ck.update(step):
        optim.step()
        rates.step()
    if step == 0:
        ck.snapshot(step)
        ck.wait()
own = sum(float(p.detach().to_local().double().sum()) for p in model.parameters())
write(f"result {own.hex()} {torch.rand(()).item()}")
ck.close()
dist.barrier()
os._exit(0)  # no interpreter's shutdown, in which PyTorch's threads may abort
