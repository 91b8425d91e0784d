"""Training in one process, a plain module with its optimizer, whose state outlives it: a snapshot after every step.

    elrun --standalone --max-restarts=3 --ckpt-dir=/tmp/ckpt --ckpt-busy=wait examples/snapshots_plain.py

Kill the worker while it runs (`kill -9`): it goes back to the last step.  Start the same line again when it has ended in
between: it goes on from the newest checkpoint on disk.  The result is the same, bit for bit, as without."""
from contextlib import nullcontext

import torch

from training import STEPS, end, step_is_over

try:
    import elrun
except ImportError:  # not under elrun
    elrun = None

torch.manual_seed(17)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optim = torch.optim.AdamW(model.parameters(), lr=1e-2)

ck = elrun.connect() if elrun else None
done = None
if ck:
    ck.declare("train", {"model": model, "optim": optim, "rng": elrun.Rng()})
    done = ck.restore()

for step in range(0 if done is None else done + 1, STEPS):
    x = torch.randn(32, 16)
    loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
    optim.zero_grad()
    loss.backward()
    with ck.update(step) if ck else nullcontext():  # elrun knows from it that between two the state is whole
        optim.step()
    if ck:
        ck.snapshot(step, persist=step % 10 == 9)
    step_is_over(0, step)

if ck and (STEPS - 1) % 10 == 9:
    ck.wait_persist(STEPS - 1)  # the job waits for it by itself; who hands the checkpoint on wants to know
end(0, sum(float(t.double().sum()) for t in model.state_dict().values()))
