"""A training on a GPU that has what such a training has: autocast with a GradScaler, a fused AdamW, dropout and a generator of
the device, BatchNorm, an average of the weights, a tensor in page-locked memory, a stream of its own for the data, a bf16 and a
channels-last tensor.  gpu_state.py FOLDER MODE: appends the step that it goes back to to FOLDER/log, and writes what it has
at the end to FOLDER/MODE.pt.  At step FAULT of the first attempt it fails as MODE says."""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn

import elrun

folder, mode = sys.argv[1:3]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
STEPS, FAULT = 24, 17
torch.use_deterministic_algorithms(True)


class Average:
    """What a script has for a mean of the weights, when it uses no library: new tensors in each step."""

    def __init__(self, net):
        self.shadow = {n: p.detach().clone() for n, p in net.named_parameters()}

    def update(self, net):
        self.shadow = {n: self.shadow[n] * 0.9 + p.detach() * 0.1 for n, p in net.named_parameters()}


dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
torch.manual_seed(17 + attempt)  # nothing comes back by being drawn again
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(512, 4)).cuda()
net = net.to(memory_format=torch.channels_last)
ddp = nn.parallel.DistributedDataParallel(net, device_ids=[0])
optim = torch.optim.AdamW(ddp.parameters(), lr=1e-2, fused=True)
rates = torch.optim.lr_scheduler.CosineAnnealingLR(optim, STEPS)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=5)
mean = Average(net)
draws = torch.Generator("cuda").manual_seed(attempt)
side = torch.cuda.Stream()
more = {
    "pinned": torch.zeros(1000).pin_memory(), "half": torch.zeros(33, 7, dtype=torch.bfloat16, device="cuda"),
    "last": torch.zeros(2, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last), "steps": 0, "losses": [],
}
if mode.startswith("plain"):
    os.environ.pop("ELRUN_SOCK", None)  # the truth: elrun has no part in it but starting it
    ck = None
else:
    ck = elrun.connect()
    ck.declare("model", ddp)
    ck.declare("train", {"optim": optim, "rates": rates, "scaler": scaler, "mean": vars(mean), "draws": draws, "rng": elrun.Rng()})
    ck.declare("more", more)
done = ck.restore() if ck else None
if attempt == 0:
    torch.manual_seed(5)
    draws.manual_seed(6)
with open(f"{folder}/log", "a") as f:
    f.write(f"{done} ")
x = torch.empty(16, 3, 8, 8, device="cuda")
for step in range(0 if done is None else done + 1, STEPS):
    fault = step == FAULT and attempt == 0
    with torch.cuda.stream(side):  # the data of this step, beside the work of the last
        x.normal_(generator=draws)
    torch.cuda.current_stream().wait_stream(side)
    if fault and mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = (ddp(x) - x.mean((1, 2, 3))[:, None]).square().mean()
    if fault and mode == "raised":
        raise RuntimeError("between forward and backward")
    if fault and mode == "device":
        torch.ones(3, device="cuda")[torch.tensor([7], device="cuda")].cpu()  # a device-side assertion: CUDA is lost for this process
    optim.zero_grad(set_to_none=step % 2 == 0)
    scaler.scale(loss).backward()

    def update():
        scaler.step(optim)
        scaler.update()
        rates.step()
        mean.update(net)
        more["pinned"].add_(step)
        more["half"].add_(float(loss))
        more["last"].add_(x[:2])
        more["steps"] += 1
        more["losses"].append(float(loss))

    if ck is None:
        update()
        continue
    with ck.update(step):
        update()
    if step % 5 == 0:
        ck.snapshot(step)
        ck.wait()
torch.cuda.synchronize()
torch.save({"model": net.state_dict(), "optim": optim.state_dict(), "rates": rates.state_dict(), "scaler": scaler.state_dict(), "mean": mean.shadow,
            "draws": draws.get_state(), "rng": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state(), "more": more}, f"{folder}/{mode}.pt")
if ck:
    ck.close()
dist.destroy_process_group()
