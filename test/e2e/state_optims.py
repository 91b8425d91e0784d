"""Optimizers, schedulers and scalers, for state_optims.sh (see state_run.py): each trains a small net to the same bits with
snapshots as without, before and after two restarts, whatever was done to it before and after declare()."""
import copy
import types
import warnings

import torch
from torch import nn

from state_run import case, main

warnings.filterwarnings("ignore")
O, S = torch.optim, torch.optim.lr_scheduler
A = types.SimpleNamespace


def net():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))


def backward(x):
    for group in x.optim.param_groups:
        for p in group["params"]:
            p.grad = None
    x.net(torch.randn(4, 4).to(x.net[0].weight.dtype)).float().square().mean().backward()


def fit(x, s):
    backward(x)
    x.optim.step()


def grads(x):
    """What a hidden step would leave behind: identities, gradients, counts of changes, and which states exist."""
    params = [p for group in x.optim.param_groups for p in group["params"]]
    return [[(id(p), p._version, p.requires_grad, id(p.grad), p.grad) for p in params],
            [id(key) if isinstance(key, torch.Tensor) else key for key in x.optim.state],
            [id(value) for state in x.optim.state.values() if isinstance(state, dict) for value in state.values()]]


def of(make_net, make_optim, **more):
    def build():
        n = make_net()
        o = make_optim(n)
        return A(net=n, optim=o, **{key: make(o) for key, make in more.items()})

    return build


def declared(x):
    return dict(vars(x))


def optim(name, make, change=fit, make_net=net, again=None, **more):
    """make(net) is the optimizer; change(x, step) a step with x.net and x.optim."""
    case(name, of(make_net, make, **more), change, what=declared, beside=grads, again=again and of(make_net, again, **more))


def params(n):
    return list(n.parameters())


def groups(n):
    return [{"params": params(n[0]), "lr": .01}, {"params": params(n[1]), "lr": .02, "name": "head", "weight_decay": .1}]


# --- every optimizer of torch ---------------------------------------------------------------------------------------------

EVERY = {
    "Adadelta": [lambda n: O.Adadelta(n.parameters(), weight_decay=.1)],
    "Adafactor": [lambda n: O.Adafactor(n.parameters(), weight_decay=.1)],
    "Adagrad": [lambda n: O.Adagrad(n.parameters(), weight_decay=.1, initial_accumulator_value=.1)],
    "Adam": [lambda n: O.Adam(n.parameters(), amsgrad=True, weight_decay=.1), lambda n: O.Adam(n.parameters(), fused=True),
             lambda n: O.Adam(n.parameters(), foreach=True, maximize=True), lambda n: O.Adam(n.parameters(), lr=torch.tensor(.01), foreach=False)],
    "AdamW": [lambda n: O.AdamW(n.parameters()), lambda n: O.AdamW(groups(n), betas=(.8, .9)), lambda n: O.AdamW(n.named_parameters())],
    "Adamax": [lambda n: O.Adamax(n.parameters(), weight_decay=.1)],
    "ASGD": [lambda n: O.ASGD(n.parameters(), weight_decay=.1, t0=1)],
    "LBFGS": [lambda n: O.LBFGS(n.parameters(), lr=.1, max_iter=3, history_size=3), lambda n: O.LBFGS(n.parameters(), lr=.1, max_iter=2, line_search_fn="strong_wolfe")],
    "Muon": [lambda n: O.Muon([p for p in n.parameters() if p.ndim == 2])],
    "NAdam": [lambda n: O.NAdam(n.parameters(), weight_decay=.1, decoupled_weight_decay=True)],
    "RAdam": [lambda n: O.RAdam(n.parameters(), weight_decay=.1)],
    "RMSprop": [lambda n: O.RMSprop(n.parameters(), momentum=.9, centered=True, weight_decay=.1)],
    "Rprop": [lambda n: O.Rprop(n.parameters())],
    "SGD": [lambda n: O.SGD(n.parameters(), lr=.01), lambda n: O.SGD(groups(n), momentum=.9, dampening=.5, weight_decay=.1), lambda n: O.SGD(n.parameters(), lr=.01, momentum=.9, nesterov=True)],
    "SparseAdam": [lambda n: O.SparseAdam(n.parameters())],
}
missing = [n for n in dir(O) if isinstance(getattr(O, n), type) and issubclass(getattr(O, n), O.Optimizer) and n != "Optimizer" and n not in EVERY]
assert not missing, f"torch has optimizers that are not tried here: {missing}"


def with_closure(x, s):
    def closure():
        backward(x)
        return x.net(torch.ones(2, 4)).square().mean()

    x.optim.step(closure)


def closure_of_batch(x, s):
    batch = torch.randn(8, 4)

    def closure():
        x.optim.zero_grad()
        loss = (x.net(batch) - 1).square().mean()
        loss.backward()
        return loss

    x.optim.step(closure)


def embedding():
    return nn.Sequential(nn.Embedding(9, 4, sparse=True))


def sparse(x, s):
    x.optim.zero_grad()
    x.net(torch.tensor([s, s + 1, 1])).square().mean().backward()
    x.optim.step()


for name, makes in EVERY.items():
    for i, make in enumerate(makes):
        change = {"LBFGS": closure_of_batch, "SparseAdam": sparse}.get(name, fit)
        optim(f"{name}_{i}" if i else name, make, change, embedding if name == "SparseAdam" else net)
optim("SGD_of_sparse_gradients", lambda n: O.SGD(n.parameters(), lr=.1, momentum=.9), sparse, embedding)
optim("Adagrad_of_sparse_gradients", lambda n: O.Adagrad(n.parameters()), sparse, embedding)
optim("AdamW_of_closure", lambda n: O.AdamW(n.parameters()), with_closure)

# --- what is done to an optimizer before and after declare() ------------------------------------------------------------------


def touched(which):
    def make(n):
        o = O.AdamW(n.parameters(), lr=.1)
        for p in which(n):
            o.state[p]  # loggers do this, Lookahead, schedulefree's train()
        return o

    return make


optim("touched_all", touched(params))
optim("touched_one", touched(lambda n: [n[0].bias]))
optim("touched_by_a_logger", touched(lambda n: []), lambda x, s: (fit(x, s), [x.optim.state[p] for p in x.net[1].parameters()]))


def trained(n):
    o = O.AdamW(n.parameters(), lr=.1)
    for p in n.parameters():
        p.grad = torch.ones_like(p)
    o.step()
    return o


def one_group(n):
    return O.Adam(n[0].parameters(), lr=.1)


def both_groups(n):
    o = one_group(n)
    o.add_param_group({"params": params(n[1]), "lr": .01})
    return o


def adds_group(x, s):
    if s == 1 and len(x.optim.param_groups) == 1:
        x.optim.add_param_group({"params": params(x.net[1]), "lr": .01})
    fit(x, s)


def unfreezes(x, s):
    for p in x.net[0].parameters():
        p.requires_grad_(s >= 2)
    fit(x, s)


def freezes(x, s):
    for p in x.net[0].parameters():
        p.requires_grad_(s < 1)
        p.grad = None
    fit(x, s)


def rarely_used(x, s):
    x.optim.zero_grad()
    (x.net(torch.randn(4, 4)) if s >= 2 else x.net[0](torch.randn(4, 4))).square().mean().backward()
    x.optim.step()


def clears(x, s):
    if s in (2, 4):
        x.optim.state.clear()
    if s != 2:
        fit(x, s)


optim("trained_before_declare", trained)
optim("group_added", one_group, adds_group, again=both_groups)
optim("layers_unfrozen", lambda n: O.AdamW(n.parameters(), lr=.1), unfreezes)
optim("layers_frozen", lambda n: O.AdamW(n.parameters(), lr=.1), freezes)
optim("layer_used_later", lambda n: O.AdamW(n.parameters(), lr=.1), rarely_used)
optim("state_cleared", lambda n: O.AdamW(n.parameters(), lr=.1), clears)
optim("state_replaced", lambda n: O.AdamW(n.parameters(), lr=.1), lambda x, s: (fit(x, s), x.optim.load_state_dict(copy.deepcopy(x.optim.state_dict()))))
optim("no_step_yet", lambda n: O.AdamW(n.parameters(), lr=.1), lambda x, s: fit(x, s) if s > 2 else None)
optim("half_of_the_gradients", lambda n: O.AdamW(n.parameters(), lr=.1), lambda x, s: (backward(x), setattr(x.net[0].weight, "grad", None), x.optim.step()))
optim("group_edited", lambda n: O.AdamW(groups(n)), lambda x, s: (x.optim.param_groups[1].update(lr=.1 / (s + 1), note={"s": [s]}, betas=(.5, .6)), fit(x, s)))
optim("gradients_accumulate", lambda n: O.AdamW(n.parameters()), lambda x, s: (backward(x), x.optim.step() if s % 2 else None))


def renewed(x, s):
    """Another optimizer with the same object's name in the script's dict: what is declared is the dict."""
    if s == 1:
        x["optim"] = O.SGD(x["net"].parameters(), lr=.05, momentum=.9)
    fit(A(**x), s)


def dict_of(how):
    return lambda: (lambda n: {"net": n, "optim": how(n)})(net())


case("optimizer_renewed_in_dict", dict_of(lambda n: O.SGD(n.parameters(), lr=.05, momentum=.9)), renewed, own=False)
case("two_optimizers_in_list", lambda: (lambda n: {"net": n, "optims": [O.Adam(n[0].parameters()), O.SGD(n[1].parameters(), lr=.1, momentum=.9)]})(net()),
     lambda d, s: [fit(A(net=d["net"], optim=o), s) for o in d["optims"]])
case("optimizer_before_its_net", lambda: (lambda n: {"optim": O.AdamW(n.parameters()), "net": n})(net()), lambda d, s: fit(A(**d), s))
case("two_optimizers_of_one_net", lambda: (lambda n: {"net": n, "a": O.AdamW(n.parameters()), "b": O.AdamW(n.parameters(), lr=.1)})(net()),
     lambda d, s: (fit(A(net=d["net"], optim=d["a"]), s), fit(A(net=d["net"], optim=d["b"]), s)))

# --- types --------------------------------------------------------------------------------------------------------------------


class Custom(O.Optimizer):
    """The step is made by update(p, state, group); `start` is the first state."""

    def __init__(self, ps, lr=.01, **more):
        super().__init__(ps, {"lr": lr, **more})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            self.group(group)
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, self.state[p], group)

    def group(self, group):
        pass


class Master(Custom):
    """Parameters of 16 bits, and a state of 32: what is lost in a cast is lost for ever."""

    def update(self, p, state, group):
        if not state:
            state.update(master=p.float(), m=torch.zeros_like(p, dtype=torch.float32), n=0)
        state["n"] += 1
        state["m"].mul_(.9).add_(p.grad.float(), alpha=.1)
        state["master"].sub_(state["m"], alpha=group["lr"])
        p.copy_(state["master"])


class Bytes(Custom):
    """A state of 8 bits with its scale, as optimizers that save memory have it."""

    def update(self, p, state, group):
        m = (state["m8"].float() - 128) * state["scale"] if state else torch.zeros_like(p)
        m = .9 * m + .1 * p.grad
        state["scale"] = m.abs().max() / 127 + 1e-9
        state["m8"] = (m / state["scale"] + 128).round().to(torch.uint8)
        state["seen"] = p.grad > 0
        state["double"] = p.grad.double()
        p.sub_(m, alpha=group["lr"])


class Fused(Custom):
    """As FusedAdam: steps are counted in the group; a hidden step would change what follows."""

    def group(self, group):
        group["step"] = group.get("step", 0) + 1
        group["sum"] = group.get("sum", 0.0) + 1 / group["step"]

    def update(self, p, state, group):
        m = state.setdefault("m", torch.zeros_like(p)).mul_(.9).add_(p.grad, alpha=.1)
        p.sub_(m / (1 - .9 ** group["step"]), alpha=group["lr"])


class Tensors(Fused):
    """As schedules in the group that are tensors."""

    def group(self, group):
        group["step"] = group.get("step", torch.tensor(0)) + 1
        group.setdefault("history", []).append(group["step"] * 2)


class Decay(Custom):
    """It decays whatever the learning rate, and draws random numbers: even a step with lr=0 would be seen."""

    def update(self, p, state, group):
        p.mul_(.99).add_(torch.randn_like(p), alpha=.01).sub_(p.grad, alpha=group["lr"])


class Kinds(Custom):
    """States of many kinds."""

    def update(self, p, state, group):
        state["n"] = state.get("n", 0) + 1
        state["history"] = [*state.get("history", []), p.grad.clone()][-2:]
        state["deep"] = {"a": {"b": p.grad * 2, "c": (1, "x", None)}, "l": [[p.grad.mean()], state["n"] * .5]}
        state["none"], state["flag"], state["text"] = None, state["n"] > 2, f"step {state['n']}"
        state["rows"] = p.grad.sum(0)[None].expand(2, *p.grad.sum(0).shape).clone()
        state[f"key{state['n'] % 2}"] = torch.tensor(state["n"])
        p.sub_(p.grad, alpha=group["lr"])

    def group(self, group):
        self.state["all"] = self.state.get("all", 0) + 1  # no parameter's


class Late(Custom):
    """Its state changes its form: as Shampoo's and others that begin after a warm-up."""

    def update(self, p, state, group):
        state["n"] = state.get("n", 0) + 1
        if state["n"] == 2:
            state["pre"] = torch.eye(p.shape[0])
        if state["n"] == 5:
            del state["pre"]
            state["long"] = torch.zeros(p.numel() * 3)
        p.sub_(p.grad, alpha=group["lr"])


class OwnPair(Fused):
    """Its own state_dict() and load_state_dict(), with something beside what torch knows."""

    def __init__(self, ps, **more):
        super().__init__(ps, **more)
        self.gathered, self.loads = 0, 0

    def group(self, group):
        super().group(group)
        self.gathered += 1

    def state_dict(self):
        return {"base": super().state_dict(), "gathered": self.gathered}

    def load_state_dict(self, state):
        super().load_state_dict(state["base"])
        self.gathered = state["gathered"]


class Lookahead:
    """A wrapper that is no Optimizer."""

    def __init__(self, inner):
        self.inner, self.param_groups, self.n = inner, inner.param_groups, 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in inner.param_groups]
        self.state = inner.state

    def step(self):
        self.inner.step()
        self.n += 1
        if self.n % 2 == 0:
            for group, slow in zip(self.inner.param_groups, self.slow):
                for p, q in zip(group["params"], slow):
                    q.add_(p.detach() - q, alpha=.5)
                    p.data.copy_(q)

    def state_dict(self):
        return {"inner": self.inner.state_dict(), "slow": self.slow, "n": self.n}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])
        self.slow, self.n = state["slow"], state["n"]
        self.param_groups, self.state = self.inner.param_groups, self.inner.state


class Sam(Custom):
    """Two passes for each step; the base optimizer shares its groups."""

    def __init__(self, ps, **more):
        super().__init__(ps, rho=.05, **more)
        self.base = O.SGD(self.param_groups, lr=.05, momentum=.9)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.detach().clone()
                p.add_(p.grad, alpha=group["rho"])
        with torch.enable_grad():
            closure()
        for p in self.state:
            p.data = self.state[p]["old"]
        self.base.step()

    def state_dict(self):
        return {"sam": super().state_dict(), "base": self.base.state_dict()}

    def load_state_dict(self, state):
        super().load_state_dict(state["sam"])
        self.base.load_state_dict(state["base"])
        self.base.param_groups = self.param_groups


class ScheduleFree(Custom):
    """As schedulefree: the group says which weights stand in the parameters, and z is a state from the start."""

    def __init__(self, ps, **more):
        super().__init__(ps, train_mode=True, k=0, **more)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["z"] = p.detach().clone()

    def group(self, group):
        assert group["train_mode"]
        group["k"] += 1

    def update(self, p, state, group):
        state["z"].sub_(p.grad, alpha=group["lr"])
        p.lerp_(state["z"], 1 / group["k"])


def half():
    return net().bfloat16()


optim("AdamW_of_bfloat16", lambda n: O.AdamW(n.parameters(), lr=.1), make_net=half)
optim("state_of_32_bits_for_16", lambda n: Master(n.parameters()), make_net=half)
optim("state_of_8_bits", lambda n: Bytes(n.parameters()))
optim("AdamW_of_double", lambda n: O.AdamW(n.parameters(), lr=.1), make_net=lambda: net().double())
optim("AdamW_of_mixed_types", lambda n: O.AdamW(n.parameters(), lr=.1), lambda x, s: ([setattr(p, "grad", torch.randn_like(p)) for p in x.net], x.optim.step()),
      lambda: nn.ParameterList([torch.randn(2).bfloat16(), torch.randn(2), torch.randn(2).double(), torch.randn(2).half()]))
optim("counts_in_the_group", lambda n: Fused(n.parameters()))
optim("tensors_in_the_group", lambda n: Tensors(n.parameters()))
optim("decays_and_draws", lambda n: Decay(n.parameters()))
optim("state_of_many_kinds", lambda n: Kinds(n.parameters()))
optim("state_changes_its_form", lambda n: Late(n.parameters()))
optim("own_pair", lambda n: OwnPair(n.parameters()))
optim("lookahead", lambda n: Lookahead(O.AdamW(n.parameters(), lr=.1)))
optim("sam", lambda n: Sam(n.parameters()), closure_of_batch)
optim("schedule_free", lambda n: ScheduleFree(n.parameters()))
optim("complex_parameters", lambda n: O.Adam([n[0].weight]), lambda x, s: (setattr(x.net[0].weight, "grad", torch.randn(3, 3, dtype=torch.complex64)), x.optim.step()),
      lambda: nn.Sequential(nn.Linear(3, 3, dtype=torch.complex64)))
optim("parameter_0d", lambda n: O.Adam(n.parameters()), lambda x, s: (setattr(x.net[0], "grad", torch.randn(())), x.optim.step()),
      lambda: nn.ParameterList([torch.randn(())]))
optim("hundred_parameters", lambda n: O.AdamW(n.parameters()), lambda x, s: ([setattr(p, "grad", torch.randn(2)) for p in x.net], x.optim.step()),
      lambda: nn.ParameterList([torch.randn(2) for _ in range(100)]))


class Counted:
    """Hooks of the optimizer; the calls are a part of what is declared, so a hidden one stays seen after restarts."""

    def __init__(self, o):
        self.n = {"pre": 0, "post": 0}
        o.register_step_pre_hook(lambda *_: self.n.update(pre=self.n["pre"] + 1))
        o.register_step_post_hook(lambda *_: self.n.update(post=self.n["post"] + 1))

    def state_dict(self):
        return dict(self.n)

    def load_state_dict(self, state):
        self.n.update(state)


class Hooked:
    """Hooks of its state: what one takes out the other puts back."""

    def __init__(self, o):
        o.register_state_dict_post_hook(lambda o, d: {"mine": d, "kind": "hooked"})
        o.register_load_state_dict_pre_hook(lambda o, d: d["mine"])

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


optim("hooks_of_step", lambda n: O.AdamW(n.parameters()), calls=Counted)
optim("hooks_of_state", lambda n: O.AdamW(n.parameters()), calls=Hooked)

# --- schedulers and scalers -----------------------------------------------------------------------------------------------------


class Rule:
    """A rule with a state of its own: LambdaLR keeps what is in such an object."""

    def __init__(self):
        self.calls = 0

    def __call__(self, epoch):
        self.calls += 1
        return .9 ** epoch


SCHEDULERS = {
    "LambdaLR": [lambda o: S.LambdaLR(o, lambda e: .9 ** e), lambda o: S.LambdaLR(o, Rule())],
    "MultiplicativeLR": [lambda o: S.MultiplicativeLR(o, lambda e: .95)],
    "StepLR": [lambda o: S.StepLR(o, 2)], "MultiStepLR": [lambda o: S.MultiStepLR(o, [1, 3, 3])],
    "ConstantLR": [lambda o: S.ConstantLR(o, .5, 2)], "LinearLR": [lambda o: S.LinearLR(o, .1, total_iters=4)],
    "ExponentialLR": [lambda o: S.ExponentialLR(o, .9)], "PolynomialLR": [lambda o: S.PolynomialLR(o, 6, 2.0)],
    "CosineAnnealingLR": [lambda o: S.CosineAnnealingLR(o, 5)],
    "CosineAnnealingWarmRestarts": [lambda o: S.CosineAnnealingWarmRestarts(o, 2, 2)],
    "CyclicLR": [lambda o: S.CyclicLR(o, .001, .1, 2), lambda o: S.CyclicLR(o, .001, .1, 2, mode="exp_range", gamma=.9)],
    "OneCycleLR": [lambda o: S.OneCycleLR(o, .1, total_steps=9)],
    "ReduceLROnPlateau": [lambda o: S.ReduceLROnPlateau(o, patience=0, cooldown=1)],
    "SequentialLR": [lambda o: S.SequentialLR(o, [S.LinearLR(o, .1, total_iters=2), S.ExponentialLR(o, .9)], [2])],
    "ChainedScheduler": [lambda o: S.ChainedScheduler([S.ConstantLR(o, .5, 2), S.ExponentialLR(o, .9)])],
    "SWALR": [lambda o: torch.optim.swa_utils.SWALR(o, .05, 3)],
}
untried = [n for n in dir(S) if isinstance(getattr(S, n), type) and issubclass(getattr(S, n), S.LRScheduler)
           and n not in ("LRScheduler", "_LRScheduler") and n not in SCHEDULERS]
assert not untried, f"torch has schedulers that are not tried here: {untried}"


def scheduled(x, s):
    fit(x, s)
    if isinstance(x.sched, S.ReduceLROnPlateau):
        x.sched.step(1.0 + s)
    else:
        x.sched.step()


for name, makes in SCHEDULERS.items():
    for i, make in enumerate(makes):
        optim(f"{name}_{i}" if i else name, lambda n: O.SGD(groups(n), lr=.1, momentum=.9), scheduled, sched=make)
optim("scheduler_of_a_tensor", lambda n: O.Adam(n.parameters(), lr=torch.tensor(.1)), scheduled, sched=lambda o: S.ExponentialLR(o, .9))
optim("two_schedulers", lambda n: O.AdamW(n.parameters(), lr=.1), lambda x, s: (fit(x, s), [y.step() for y in x.scheds]),
      scheds=lambda o: [S.LinearLR(o, .1, total_iters=2), S.StepLR(o, 2)])


def scaled(x, s):
    x.optim.zero_grad()
    x.scaler.scale(x.net(torch.randn(4, 4) * (float("inf") if s == 1 else 1)).square().mean()).backward()
    x.scaler.step(x.optim)
    x.scaler.update()


optim("grad_scaler", lambda n: O.AdamW(n.parameters()), scaled, scaler=lambda o: torch.amp.GradScaler("cpu", init_scale=64., growth_interval=1))
optim("grad_scaler_off", lambda n: O.AdamW(n.parameters()), scaled, scaler=lambda o: torch.amp.GradScaler("cpu", enabled=False))

if __name__ == "__main__":
    main()
