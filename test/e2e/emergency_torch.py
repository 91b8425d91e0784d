"""A PyTorch training with a snapshot every ten steps, for emergency_torch.sh: rank 1 fails at step 17 of the first attempt, as
MODE says.  emergency_torch.py FOLDER MODE: each attempt appends the step that it goes back to to FOLDER/log.RANK, and its
result at the end.  STATE_DEVICE: where the model lives."""
import os
import signal
import sys

import torch
import torch.distributed as dist

import elrun

folder, mode = sys.argv[1:3]
device = torch.device(os.environ.get("STATE_DEVICE", "cpu"))
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
STEPS, FAULT = 24, 17
alike = mode in ("plain", "killed", "outside")  # every rank has the same, and nothing but that


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{what}\n")


dist.init_process_group("gloo")
torch.manual_seed(17)
middle = torch.nn.LayerNorm(64) if alike else torch.nn.Sequential(torch.nn.BatchNorm1d(64), torch.nn.Dropout(0.2))
model = torch.nn.Sequential(torch.nn.Linear(16, 64), middle, torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
# Its buckets stay as they are: sums of more than two ranks depend on them, and behind a restart's first step they change.
ddp = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
optim = torch.optim.AdamW(ddp.parameters(), lr=1e-2)
rates = torch.optim.lr_scheduler.StepLR(optim, 5, 0.5)
torch.manual_seed(1000 + rank)
ck = elrun.connect()
ck.declare("model", ddp, shard_id="all" if alike else None)
ck.declare("train", {"optim": optim, "rates": rates}, shard_id="all" if alike else None)
if not alike:
    ck.declare("numbers", {"rng": elrun.Rng()})
done = ck.restore()
write(done)
for step in range(0 if done is None else done + 1, STEPS):
    if step == FAULT and attempt == 0:
        dist.barrier()  # both have done the step before
    now = step == FAULT and attempt == 0 and rank == 1
    if now and mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "outside" and step == FAULT and attempt == 0:
        with torch.no_grad():
            model[0].bias.add_(1)
        dist.barrier()
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
    drawn = torch.Generator(device).manual_seed(step * 100 + rank) if alike else None
    x = torch.randn(32, 16, generator=drawn, device=device)
    loss = (ddp(x).squeeze(1) - x.sum(1)).square().mean()  # moves the buffers, and draws
    if now and mode == "raised":
        raise RuntimeError("between forward and backward")
    optim.zero_grad()
    loss.backward()
    with ck.update(step):
        optim.step()
        rates.step()
    if step % 10 == 0:
        ck.snapshot(step)
        ck.wait()
write(f"result {sum(float(t.double().sum()) for t in model.state_dict().values()).hex()} {torch.rand((), device=device).item() if not alike else 0}")
ck.close()
dist.barrier()
os._exit(0)  # no interpreter's shutdown, in which PyTorch's threads may abort
