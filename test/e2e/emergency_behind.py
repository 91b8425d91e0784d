"""emergency_behind.py FOLDER: attempt N changes something outside of ck.update() in the way of MODES[N], and fails; it appends
"MODE: STEPS" to FOLDER/log, how many steps behind its first one the next attempt goes on from."""
import os
import sys

import numpy as np
import torch

import elrun

MODES = ["replaced", "parameter", "average, made anew", "average, in place", "copies", "held", "another", "object", "buffer",
         "a layer that is unfrozen once", "inference", "arrays", "nothing", "end"]
SNAPSHOT, LAST = 2, 9
AGAIN = 108  # a change was seen long ago

folder, attempt = sys.argv[1], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
mode = MODES[attempt]
torch.manual_seed(5)
model = torch.nn.Linear(3, 2)
model.register_buffer("mean", torch.ones(2))
many = [torch.zeros(1) for _ in range(20)]
optim = torch.optim.SGD(model.parameters(), 0.1)
average = {name: value.clone() for name, value in model.state_dict().items()}
extra = {}


class Copies:
    """What its state_dict() gives is another tensor each time."""

    def __init__(self):
        self.number = 0

    def state_dict(self):
        return {"number": torch.tensor(self.number), "weight": model.weight.clone()}

    def load_state_dict(self, state):
        self.number = int(state["number"])


class Object:
    def __init__(self):
        self.tensor = torch.zeros(3)

    def state_dict(self):
        return vars(self)

    def load_state_dict(self, state):
        self.tensor.copy_(state["tensor"])


with torch.inference_mode():
    extra["made in inference mode"] = torch.zeros(8)
copies, an_object = Copies(), Object()
ck = elrun.connect()
for name, value in (("model", model), ("optim", optim), ("average", average), ("extra", extra), ("copies", copies), ("object", an_object), ("many", many)):
    ck.declare(name, value)
done = ck.restore()
first = 0 if done is None else done + 1
if attempt:
    with open(f"{folder}/first") as f, open(f"{folder}/log", "a") as log:
        log.write(f"{MODES[attempt - 1]}: {done - int(f.read())}\n")
    if extra["made in inference mode"].any():
        sys.exit("a state that no step has left")
    extra.pop("large", None)
if mode == "end":
    sys.exit(0)
with open(f"{folder}/first", "w") as f:
    f.write(str(first))
last = AGAIN if mode.endswith("once") else LAST
for k in range(last + 1):
    optim.zero_grad()
    model(torch.full((3,), float(k))).sum().backward()
    if mode == "buffer":
        model.mean = model.mean * 0.9
        for p in many:
            p.requires_grad_(k % 2 == 0)
    if mode == "arrays" and k == SNAPSHOT + 1:
        extra["large"] = np.zeros((8 << 20) + 1)
    with ck.update(first + k):
        optim.step()
        copies.number += 1
    if mode.startswith("average"):
        if k == last:
            break
        for name, value in model.state_dict().items():
            if mode.endswith("anew"):
                average[name] = average[name] * 0.5 + value * 0.5
            else:
                average[name].mul_(0.5).add_(value, alpha=0.5)
    if k == SNAPSHOT:
        ck.snapshot(first + k)
        ck.wait()
    if mode.startswith("a layer") and k == SNAPSHOT + 1:
        extra["layer"] = torch.ones(4)
if mode == "inference":
    with torch.inference_mode():
        extra["made in inference mode"][0] = 99
if mode == "replaced":
    average["bias"] = average["bias"] + 1
if mode == "held":
    old = average["bias"]
    average["bias"] = old + 1
if mode == "another":
    extra["another"] = torch.ones(2)
if mode == "object":
    an_object.tensor = an_object.tensor + 1
if mode == "parameter":
    model.bias = torch.nn.Parameter(model.bias.detach() + 1)
raise RuntimeError("a validation that fails")
