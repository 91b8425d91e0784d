"""What is declared after a restart does not take what was saved, for state_misfit.sh: restore() refuses it whole.

The first attempt saves one part for each case below and kills itself.  Each of the next ones declares all of them again, but
one as a user may have changed it: restore() must raise elrun.Error (and no NoSnapshot), its text must name the part and what differs, and no
part may have changed.  The last attempt declares what fits: everything is back, so no refusal has cost the snapshot.
state_misfit.py FOLDER torch|plain: plain has no tensors, so it starts in no time.  Attempts: 2 more than there are cases."""
import os
import pickle
import signal
import sys

import numpy as np

if sys.argv[2] == "torch":
    import torch
    from torch import nn
import elrun
from state_truth import differences, freeze, replaced, held

folder, kind = sys.argv[1:]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])


class Vocabulary:
    """Its own load_state_dict() says no."""

    def __init__(self, size):
        self.size, self.words = size, ["a"] * size

    def state_dict(self):
        return {"size": self.size, "words": list(self.words)}

    def load_state_dict(self, state):
        if state["size"] != self.size:
            raise ValueError(f"a vocabulary of {state['size']} words, not {self.size}")
        self.words = list(state["words"])


def net(*sizes, **layers):
    m = nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])))
    for name, layer in layers.items():
        m.add_module(name, layer)
    return m


def adam(*groups):
    o = torch.optim.Adam([{"params": [nn.Parameter(torch.randn(3)) for _ in range(n)], "lr": .1} for n in groups])
    return o

def two(first, second, **more):
    """Two layers of one shape, and an optimizer that has them in that order."""
    net = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    params = [*net[first].named_parameters(prefix=first), *net[second].named_parameters(prefix=second)]
    return {"net": net, "opt": torch.optim.Adam(params if more.get("named") else [p for _, p in params])}


def two_named(*order):
    """The names stand in the optimizer, and its module beside it is not declared."""
    return {"opt": two(*order, named=True)["opt"]}


# name: what was saved, what is declared later, and what the text must say: each of these, or one of those with "|".
TORCH = {
    "group_less": (lambda: adam(1, 1), lambda: adam(1), ["2", "1", "group"]),
    "parameters_of_a_group": (lambda: adam(1, 3), lambda: adam(1, 2), ["3", "2"]),
    "layers": (lambda: net(2, 2, late=nn.Linear(2, 3)), lambda: net(2, 2, fresh=nn.Linear(2, 3)), ["late.weight", "fresh.weight"]),
    "shape_deep_in_a_dict": (lambda: {"nets": [net(2, 2), net(2, 5)]}, lambda: {"nets": [net(2, 2), net(2, 7)]}, ["nets", "0.weight", "5", "7"]),
    "tensor_type": (lambda: torch.zeros(3), lambda: torch.zeros(3, dtype=torch.float16), ["float32|F32", "float16|F16"]),
    "tensor_shape": (lambda: torch.zeros(2, 3), lambda: torch.zeros(2, 4), ["2, 3", "2, 4"]),
    "layers_in_another_order": (lambda: two("a", "b"), lambda: two("b", "a"), ["opt", "group 0", "parameter 0", "a.weight", "b.weight"]),
    "names_in_another_order": (lambda: two_named("a", "b"), lambda: two_named("b", "a"), ["opt", "group 0", "parameter 0", "a.weight", "b.weight"]),
    "nothing_there": (lambda: {"a": [net(2, 2)]}, lambda: {"a": [None]}, ["a.0", "before restore()"]),
    "other_class": (lambda: net(2, 2), lambda: adam(1), ["0.weight|Sequential|param_groups|Adam"]),
}
PLAIN = {
    "array_shape": (lambda: np.zeros((2, 3)), lambda: np.zeros((2, 4)), ["2, 3", "2, 4"]),
    "array_type": (lambda: np.zeros(3), lambda: np.zeros(3, ">f4"), ["float64|f8|F64", "float32|f4|F32"]),
    "other_kind": (lambda: {"a": [1]}, lambda: [1], ["dict", "list"]),
    "other_class": (lambda: Vocabulary(3), lambda: {"a": [1]}, ["Vocabulary|words|size|dict"]),
    "own_no": (lambda: Vocabulary(3), lambda: Vocabulary(4), ["a vocabulary of 3 words, not 4"]),
}
CASES = TORCH if kind == "torch" else PLAIN
names = list(CASES)
wrong = names[attempt - 1] if 0 < attempt <= len(names) else None


def change(x):
    """Other values than a new one has."""
    if hasattr(x, "param_groups"):
        for p in [p for g in x.param_groups for p in g["params"]]:
            p.grad = torch.ones_like(p)
        x.step()
    elif hasattr(x, "parameters"):
        for p in x.parameters():
            p.data += 1
    elif isinstance(x, Vocabulary):
        x.words[0] = "b"
    elif "opt" in x if isinstance(x, dict) else False:
        change(x["opt"])
    elif "nets" in x if isinstance(x, dict) else False:
        change(x["nets"][1])
    elif isinstance(x, dict):
        x["a"].append(2)
    else:
        x += 1


def say(ok, what, why=""):
    with open(f"{folder}/result", "a") as f:
        f.write(f"ok {what}\n" if ok else f"not ok {what}: {' '.join(str(why).split())}\n")


if kind == "torch":
    torch.manual_seed(attempt)
ck = elrun.connect()
mine = {name: CASES[name][1 if name == wrong else 0]() for name in names}
for name, x in mine.items():
    ck.declare(name, x)
if attempt == 0:
    assert ck.restore() is None
    for x in mine.values():
        change(x)
    assert ck.snapshot(7) and ck.wait() == 7
    with open(f"{folder}/kept", "wb") as f:
        pickle.dump({name: freeze(x) for name, x in mine.items()}, f)
elif wrong:
    before = {name: freeze(x) for name, x in mine.items()}
    try:
        step = ck.restore()
    except elrun.Error as e:
        text, bad = str(e), []
        if type(e).__name__ != "Error":
            bad.append(f"{type(e).__name__} and not Error")
        if wrong not in text:
            bad.append("the part is not named")
        bad += [f"{want} is not in it" for want in CASES[wrong][2] if not any(w in text for w in want.split("|"))]
        say(not bad, f"{wrong} is refused", f"{'; '.join(bad)}: {text}")
    else:
        say(False, f"{wrong} is refused", f"restore() returned {step}")
    bad = [f"{name}{line}" for name, x in mine.items() for line in differences(before[name], freeze(x))]
    say(not bad, f"{wrong} leaves everything as it was", bad)
else:
    own = {name: held(x) for name, x in mine.items()}
    step = ck.restore()
    with open(f"{folder}/kept", "rb") as f:
        kept = pickle.load(f)
    bad = [f"{name}{line}" for name, x in mine.items() for line in differences(kept[name], freeze(x)) + replaced(own[name], x)]
    say(step == 7 and not bad, "what fits comes back behind all refusals", [step, *bad])
    with open(f"{folder}/result", "a") as f:
        f.write("end\n")
    sys.exit(0)
os.kill(os.getpid(), signal.SIGKILL)
