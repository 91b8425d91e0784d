"""zoo.py torch | others: every optimizer, scheduler, scaler and average that can be had, with elrun.Snapshots and without.

* Declared, and with a snapshot behind each step, it trains to the same bits as without; nothing changes but what the script
  changes itself.
* What was kept at a step, put back into fresh objects, goes on to the same bits as without a break.  Where torch.save() and
  load_state_dict() do not either, that is told: nobody has it in a state_dict().

A line for each that is wrong, or cannot be started here; the last line counts.  Exit status 0: nothing is wrong."""
import copy
import io
import random
import sys
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler as L

from alone import Alone
from canon import canon, first_difference

warnings.simplefilter("ignore")
torch.set_num_threads(1)
STEPS, KEPT = 6, (None, 0, 2, 4)  # None: before the first step


class Net(torch.nn.Module):
    """late: has no gradient, and so no state, before step 3."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.a, self.late, self.out = torch.nn.Linear(6, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)
        self.to(dtype)

    def forward(self, x, step):
        x = torch.tanh(self.a(x))
        return self.out(torch.tanh(self.late(x)) if step >= 3 else x)


class Flat(torch.nn.Module):
    """Matrices alone."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 8, bias=False), torch.nn.Linear(8, 4, bias=False)

    def forward(self, x, step):
        return self.b(torch.tanh(self.a(x)))


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4, sparse=True)

    def forward(self, x, step):
        return self.table((x.abs() * 3).long() % 10)


class Run:
    """One script: its objects, by name, and its step."""

    def __init__(self, build, seed=0):
        torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)
        self.it = build()

    def step(self, n):
        torch.manual_seed(1000 + n), np.random.seed(n), random.seed(n)
        net, opt = self.it["net"], self.it["opt"]
        dtype = next(net.parameters()).dtype
        x = torch.randn(5, 6).to(dtype)

        def closure():
            with torch.enable_grad():
                opt.zero_grad()
                loss = (net(x, n).float() ** 2).mean()
                loss.backward(create_graph=self.it.get("second", False))
            return loss

        how = self.it.get("how", "plain")
        if how == "closure":
            opt.step(closure)
        elif how == "both":
            closure()
            opt.step(closure)
        elif how == "scaled":
            opt.zero_grad()
            loss = (net(x, n).float() ** 2).mean() * (float("inf") if n == 3 else 1)
            self.it["scaler"].scale(loss).backward()
            self.it["scaler"].step(opt)
            self.it["scaler"].update()
        else:
            closure()
            opt.step()
        for name, value in self.it.items():
            if name.startswith("sched"):
                value.step(*([0.5 * (n % 2)] if isinstance(value, L.ReduceLROnPlateau) else []))
            if name.startswith("ema"):
                self.it["follow"](value, net)

    def steps(self, begin, end):
        for n in range(begin, end):
            self.step(n)
        return self

    def parts(self):
        return {k: v for k, v in self.it.items() if hasattr(v, "load_state_dict")}

    def end(self):
        """What counts when it is over."""
        net = self.it["net"]
        values = [(k, v.detach().clone()) for k, v in net.state_dict().items()]
        values += [(k, copy.deepcopy(v.state_dict())) for k, v in self.it.items() if k.startswith(("sched", "ema", "scaler"))]
        values.append(("lr", [_number(g.get("lr")) for g in getattr(self.it["opt"], "param_groups", ())]))
        return canon(values)

    def all(self):
        """All that a snapshot could change."""
        opt = self.it["opt"]
        grads = [None if p.grad is None else canon(p.grad) for p in self.it["net"].parameters()]
        ids = [id(p) for p in self.it["net"].parameters()] + [id(v) for s in getattr(opt, "state", {}).values() if isinstance(s, dict) for v in s.values()]
        state = [vars(opt).get(k) for k in ("_step_count", "_opt_called")]
        rng = torch.get_rng_state().numpy().tobytes(), str(np.random.get_state()), random.getstate()
        return grads, ids, state, rng, [canon(v) for v in self.parts().values()]


def _number(lr):
    return float(lr) if isinstance(lr, torch.Tensor) else lr


def kept_by_elrun(run, at):
    """The run as it is now, in a process that has begun anew."""
    job = Alone()
    for name, value in run.parts().items():
        job.declare(name, value)
    shot = job.take_into(0, 0)
    found = job.differences(shot)
    if found:
        raise AssertionError(f"--ckpt-check: {found}")
    return shot


def put_back(shot, fresh):
    job = Alone()
    for name, value in fresh.parts().items():
        job.declare(name, value)
    _, memory = shot.copy()
    trouble, _ = job.put_back(memory, shot.where)
    if trouble:
        raise AssertionError(trouble)


def saved_by_torch(run):
    to = io.BytesIO()
    torch.save({k: v.state_dict() for k, v in run.parts().items()}, to)
    return to.getvalue()


def load_by_torch(data, fresh):
    for name, state in torch.load(io.BytesIO(data), weights_only=False).items():
        fresh.it[name].load_state_dict(state)


def bit_equal_when_watched(build, truth):
    run, job = Run(build), Alone()
    before = run.all()
    for name, value in run.parts().items():
        job.declare(name, value)
    if run.all() != before:
        return "declare() changed something"
    for n in range(STEPS):
        run.step(n)
        before = run.all()
        job.differences(job.take_into(n % 2, n))
        if run.all() != before:
            return f"snapshot() changed something at step {n}"
    found = first_difference(truth, run.end())
    return f"it trains to other weights: {found[:200]}" if found else ""


def goes_on(build, truth, at, save, load):
    """"" or what is wrong, when state is handed on at a step."""
    try:
        run = Run(build)
        run.steps(0, 0 if at is None else at + 1)
        kept = save(run)
        fresh = Run(build, seed=7)
        load(kept, fresh)
        fresh.steps(0 if at is None else at + 1, STEPS)
        found = first_difference(truth, fresh.end())
        return f"goes on to other weights: {found[:150]}" if found else ""
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:200]}"


def try_one(build):
    """What is wrong; None: nothing."""
    truth = Run(build).steps(0, STEPS).end()
    if first_difference(truth, Run(build).steps(0, STEPS).end()):
        return None, ["is not the same from run to run"]
    wrong, lost = [], []
    try:
        text = bit_equal_when_watched(build, truth)
    except Exception as e:
        text = f"{type(e).__name__}: {str(e)[:200]}"
    if text:
        wrong.append(text)
    for at in KEPT:
        ours = goes_on(build, truth, at, lambda run: kept_by_elrun(run, at), put_back)
        if ours:
            theirs = goes_on(build, truth, at, saved_by_torch, load_by_torch)
            (lost if theirs else wrong).append(f"step {at}: {ours}" + (f" (torch: {theirs[:80]})" if theirs else ""))
    return wrong, lost


# --- who is there -------------------------------------------------------------------------------------------------------


def with_net(make, net=Net, **more):
    def build():
        one = net()
        opt = make(one)
        return {"net": one, "opt": opt, **{k: v(one, opt) if callable(v) and k != "follow" else v for k, v in more.items()}}

    return build


def over(make, net=Net, **more):
    return with_net(lambda one: make(list(one.parameters())), net, **more)


O = torch.optim
TWO = lambda make: lambda p: make([{"params": p[:2], "lr": 0.02}, {"params": p[2:], "weight_decay": 0.1}])  # noqa: E731


def of_torch():
    yield "SGD", over(lambda p: O.SGD(p, lr=0.05))
    yield "SGD with momentum, two groups", over(TWO(lambda p: O.SGD(p, lr=0.05, momentum=0.9, dampening=0.5)))
    for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Adafactor"):
        if hasattr(O, name):
            yield name, over(lambda p, name=name: getattr(O, name)(p))
            yield name + " in bfloat16", over(lambda p, name=name: getattr(O, name)(p), lambda: Net(torch.bfloat16))
    yield "Adam with amsgrad, lr a tensor", over(lambda p: O.Adam(p, lr=torch.tensor(0.01), amsgrad=True, foreach=False))
    yield "Adam, fused", over(lambda p: O.Adam(p, fused=True))
    yield "AdamW, foreach", over(lambda p: O.AdamW(p, foreach=True))
    yield "RMSprop, centered", over(lambda p: O.RMSprop(p, momentum=0.9, centered=True))
    yield "LBFGS", over(lambda p: O.LBFGS(p, lr=0.5, max_iter=3, history_size=2, line_search_fn="strong_wolfe"), how="closure")
    yield "LBFGS without a search", over(lambda p: O.LBFGS(p, lr=0.1, max_iter=2), how="closure")
    yield "SparseAdam", over(lambda p: O.SparseAdam(p), Table)
    if hasattr(O, "Muon"):
        yield "Muon", over(lambda p: O.Muon(p), Flat)
    yield from of_torch_schedules()


def of_torch_schedules():
    sgd = lambda p: O.SGD(p, lr=0.05, momentum=0.9)  # noqa: E731
    makes = {
        "LambdaLR": lambda o: L.LambdaLR(o, lambda n: 0.9**n), "MultiplicativeLR": lambda o: L.MultiplicativeLR(o, lambda n: 0.9),
        "StepLR": lambda o: L.StepLR(o, 2), "MultiStepLR": lambda o: L.MultiStepLR(o, [1, 3]), "ConstantLR": lambda o: L.ConstantLR(o, total_iters=3),
        "LinearLR": lambda o: L.LinearLR(o, total_iters=4), "ExponentialLR": lambda o: L.ExponentialLR(o, 0.9),
        "PolynomialLR": lambda o: L.PolynomialLR(o, 5), "CosineAnnealingLR": lambda o: L.CosineAnnealingLR(o, 5),
        "CosineAnnealingWarmRestarts": lambda o: L.CosineAnnealingWarmRestarts(o, 2), "CyclicLR": lambda o: L.CyclicLR(o, 0.01, 0.1, 2),
        "CyclicLR with a function": lambda o: L.CyclicLR(o, 0.01, 0.1, 2, scale_fn=lambda x: 0.5, scale_mode="cycle"),
        "OneCycleLR": lambda o: L.OneCycleLR(o, 0.1, 20), "ReduceLROnPlateau": lambda o: L.ReduceLROnPlateau(o, patience=1),
        "ChainedScheduler": lambda o: L.ChainedScheduler([L.ConstantLR(o), L.ExponentialLR(o, 0.9)], optimizer=o),
        "SequentialLR": lambda o: L.SequentialLR(o, [L.ConstantLR(o), L.ExponentialLR(o, 0.9)], [2]),
        "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.01, anneal_epochs=3),
    }
    for name, make in makes.items():
        yield name, over(sgd, sched=lambda net, opt, make=make: make(opt))
    yield "GradScaler", over(sgd, scaler=lambda net, opt: torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2), how="scaled")
    A = torch.optim.swa_utils.AveragedModel
    follow = lambda ema, net: ema.update_parameters(net)  # noqa: E731
    yield "AveragedModel", over(sgd, ema=lambda net, opt: A(net), follow=follow)
    yield "AveragedModel, exponential", over(sgd, ema=lambda net, opt: A(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True),
                                             follow=follow)


def of_others():
    import ema_pytorch
    import pytorch_optimizer as po
    import schedulefree as sf
    import torch_ema

    how = {"bsam": "both", "lbfgs": "closure", "alig": "closure", "emofact": "closure", "emolynx": "closure", "emonavi": "closure"}
    second = ("adahessian", "sophiah")
    extra = {"bsam": {"num_data": 100}, "ranger21": {"num_iterations": 10}}
    muons = ("adago", "adamuon", "distributedmuon", "muon", "muonclip", "normuon")
    for name in po.get_supported_optimizers():
        kind, given = po.load_optimizer(name), {"lr": 1e-2, **extra.get(name, {})}
        more = {"how": how.get(name, "plain"), "second": name in second}
        if name in ("adalomo", "adammini", "lomo"):
            build = with_net(lambda net, kind=kind: kind(net, lr=1e-2), **more)
        elif name in muons:
            build = over(lambda p, kind=kind: kind([{"params": [q for q in p if (q.dim() == 2) is is_matrix], "use_muon": is_matrix}
                                                    for is_matrix in (True, False)], lr=1e-2), **more)
        else:
            build = over(lambda p, kind=kind, given=given: kind(p, **given), Flat if name == "spectralsphere" else Net, **more)
        yield f"pytorch_optimizer {name}", build
    for name, make in {"Lookahead": lambda p: po.Lookahead(O.AdamW(p)), "OrthoGrad": lambda p: po.OrthoGrad(O.AdamW(p)), "TRAC": lambda p: po.TRAC(O.AdamW(p)),
                       "ScheduleFreeWrapper": lambda p: _in_train(po.ScheduleFreeWrapper(O.AdamW(p)))}.items():
        yield f"pytorch_optimizer {name}", over(make)
    for name in ("SAM", "FriendlySAM", "LookSAM"):
        if hasattr(po, name):
            yield f"pytorch_optimizer {name}", over(lambda p, name=name: getattr(po, name)(p, O.SGD, lr=0.05, momentum=0.9), how="both")
    for name in sf.__all__ if hasattr(sf, "__all__") else [n for n in dir(sf) if "ScheduleFree" in n]:
        kind = getattr(sf, name)
        if "Wrapper" in name:
            yield f"schedulefree {name}", over(lambda p, kind=kind: _in_train(kind(O.SGD(p, lr=0.05))))
        else:
            yield f"schedulefree {name}", over(lambda p, kind=kind: _in_train(kind(p, lr=0.01)), how="closure" if "Closure" in name else "plain")
    sgd = lambda p: O.SGD(p, lr=0.05, momentum=0.9)  # noqa: E731
    yield "torch_ema", over(sgd, ema=lambda net, opt: torch_ema.ExponentialMovingAverage(list(net.parameters()), 0.9), follow=lambda e, net: e.update())
    yield "ema_pytorch", over(sgd, ema=lambda net, opt: ema_pytorch.EMA(net, beta=0.9, update_after_step=1, update_every=2), follow=lambda e, net: e.update())


def _in_train(opt):
    if hasattr(opt, "train"):
        opt.train()
    return opt


def main():
    tried = bad = 0
    some = sys.argv[2:]
    for name, build in {"torch": of_torch, "others": of_others}[sys.argv[1]]():
        if some and not any(s in name for s in some):
            continue
        try:
            wrong, lost = try_one(build)
        except Exception as e:
            print(f"cannot be started here: {name}: {type(e).__name__}: {str(e)[:150]}")
            continue
        tried += 1
        bad += bool(wrong)
        for text in wrong or ():
            print(f"WRONG: {name}: {text}")
        for text in lost:
            print(f"lost by its own state_dict(), too: {name}: {text}")
    print(f"{tried} were tried, {bad} are wrong")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
