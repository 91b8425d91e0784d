"""Every optimizer of PyTorch with snapshots, for snapshots_optim.sh: what is declared trains as if it were not, before
and after a restart, wherever the snapshot was taken.

snapshots_optim.py FOLDER KILL-AT: six steps; the first attempt ends behind a snapshot of KILL-AT (-1: before the first
step).  FOLDER/result gets a line for each optimizer."""
import os
import sys

import torch

import elrun

folder, kill_at = sys.argv[1], int(sys.argv[2])
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
O = torch.optim
MADE = {
    "Adadelta": lambda p: O.Adadelta(p, weight_decay=0.1), "Adagrad": lambda p: O.Adagrad(p, weight_decay=0.1),
    "Adam": lambda p: O.Adam(p, weight_decay=0.1, amsgrad=True), "AdamW": lambda p: O.AdamW(p),
    "Adamax": lambda p: O.Adamax(p, weight_decay=0.1), "ASGD": lambda p: O.ASGD(p, weight_decay=0.1),
    "NAdam": lambda p: O.NAdam(p, weight_decay=0.1), "RAdam": lambda p: O.RAdam(p, weight_decay=0.1),
    "RMSprop": lambda p: O.RMSprop(p, momentum=0.9, weight_decay=0.1, centered=True), "Rprop": lambda p: O.Rprop(p),
    "SGD": lambda p: O.SGD(p, lr=0.01),
    "SGD with momentum": lambda p: O.SGD(p, lr=0.01, momentum=0.9, dampening=0.5, weight_decay=0.1),
}


class Net(torch.nn.Module):
    """One layer is used from step 3 on only: until then its parameters have no state.  And it counts, in a way of its
    own."""

    def __init__(self):
        super().__init__()
        self.a, self.late = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.calls = 0

    def forward(self, x, step):
        self.calls += 1
        x = self.a(x)
        return self.late(x) if step >= 3 else x

    def get_extra_state(self):
        return torch.tensor([self.calls])

    def set_extra_state(self, state):
        self.calls = int(state[0])


def make(name):
    torch.manual_seed(1)
    net = Net()
    return net, MADE[name](net.parameters())


def train(net, optim, steps):
    for step in steps:
        torch.manual_seed(100 + step)
        optim.zero_grad()
        net(torch.randn(4, 8), step).pow(2).sum().backward()
        optim.step()


def result(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()] + [torch.tensor([float(net.calls)])])


want = {}
for name in MADE:
    plain = make(name)
    train(*plain, range(6))
    want[name] = result(plain[0])

mine = {name: make(name) for name in MADE}
ck = elrun.connect()
ck.declare("train", {name: {"net": net, "optim": optim} for name, (net, optim) in mine.items()})
step = ck.restore()
begin = 0 if step is None else step - 1  # steps are counted from 1 here, 1 is the state before the first
if first:
    for net, optim in mine.values():
        train(net, optim, range(begin, kill_at + 1))
    ck.snapshot(kill_at + 2)
    ck.wait()
    sys.exit(1)
with open(f"{folder}/result", "a") as f:
    f.write(f"goes on from step {begin}\n")
    for name, (net, optim) in mine.items():
        train(net, optim, range(begin, 6))
        f.write(f"{name}: {'the same' if torch.equal(result(net), want[name]) else 'ANOTHER RESULT'}\n")
