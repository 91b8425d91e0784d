"""Trainings in every parallel form of PyTorch, side by side in one job, for state_parallel.sh: each must go on bit for bit
after a kill.

state_parallel.py FOLDER FORMS STEPS KILL: trains the FORMS (names with commas between) to STEPS; rank 1 kills itself with
SIGKILL behind step KILL (-1: never), in the first attempt of a job that began at step 0.

The truth does not come from elrun: each rank writes its own tensors with torch.save after every step, and compares with the
file of the step that restore() returns.  FOLDER/result.RANK gets a line for each form, FOLDER/final.FORM.RANK the last state.
STATE_DEVICE: "cuda" has all ranks share the first GPU."""
import os
import signal
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import elrun

warnings.simplefilter("ignore")  # FSDP1 is deprecated: people train with it all the same
torch.set_num_threads(1)
DEVICE = os.environ.get("STATE_DEVICE", "cpu")
if DEVICE != "cpu":
    torch.set_default_device(f"{DEVICE}:0")


class Net(nn.Module):
    """Sizes that no number of ranks divides, a parameter of one element, and buffers that move in each forward pass."""

    def __init__(self, norm=nn.LayerNorm):
        super().__init__()
        self.a, self.norm, self.b, self.c = nn.Linear(16, 64), norm(64), nn.Linear(64, 7), nn.Linear(7, 1, bias=False)

    def forward(self, x):
        return self.c(torch.relu(self.b(self.norm(self.a(x)))))


class Form:
    """One model with its optimizer.  parts: what a script declares, name -> (object, shard_id)."""

    def __init__(self, model, optim, shard_id=None, same_data=False, validate=True):
        self.model, self.optim, self.same_data, self.validate = model, optim, same_data, validate
        self.rates = torch.optim.lr_scheduler.StepLR(optim, 2, 0.5)
        self.parts = {"model": (model, shard_id), "optim": (optim, shard_id), "rates": (self.rates, None)}

    def backward(self, step):
        generator = torch.Generator(DEVICE).manual_seed(step) if self.same_data else None
        self.optim.zero_grad()
        self.model(torch.randn(8, 16, generator=generator)).square().mean().backward()

    def step(self):
        self.optim.step()
        self.rates.step()

    def after_step(self):
        """A validation: FSDP may leave whole parameters in the module behind it, where before were its pieces."""
        if self.validate:
            self.model.eval()
            with torch.no_grad():
                self.model(torch.ones(8, 16))
            self.model.train()

    def tensors(self):
        """The state as this rank holds it, by no way that elrun has: the optimizer's own references to the parameters."""
        optim = getattr(self.optim, "optim", self.optim)  # ZeroRedundancyOptimizer and PostLocalSGDOptimizer wrap one
        seen = {f"buffer {n}": b for n, b in self.model.named_buffers()}
        for g, group in enumerate(self.optim.param_groups):
            seen[f"group {g} lr"] = group["lr"]
            for i, p in enumerate(group["params"]):
                seen[f"param {g}.{i}"] = p
        for i, p in enumerate(p for group in optim.param_groups for p in group["params"]):
            seen.update((f"state {i} {k}", v) for k, v in optim.state.get(p, {}).items())
        seen["rates"] = self.rates.last_epoch
        return seen


class Flat(Form):
    """FSDP1: between two steps the truth is the flat parameter's piece."""

    def tensors(self):
        seen = super().tensors()
        handles = [m._handle for m in FSDP.fsdp_modules(self.model) if m._handle]
        seen = {k: v for k, v in seen.items() if not k.startswith("param")}
        seen.update((f"piece {i}", getattr(h.flat_param, "_local_shard", h.flat_param.data)) for i, h in enumerate(handles))
        return seen


class Pieces:
    """No module: DTensors in a plain dict, which the script replaces in each step."""

    def __init__(self):
        mesh = init_device_mesh(DEVICE, (dist.get_world_size(),))
        self.values = {"even": distribute_tensor(torch.randn(8, 3), mesh, [Shard(0)]),
                       "uneven": distribute_tensor(torch.randn(3, 5), mesh, [Shard(0)]),
                       "columns": distribute_tensor(torch.randn(3, 6), mesh, [Shard(1)]),
                       "whole": distribute_tensor(torch.randn(4), mesh, [Replicate()]), "steps": 0}
        self.parts = {"values": (self.values, None)}

    def backward(self, step):
        pass

    def step(self):
        for name, value in self.values.items():
            self.values[name] = value * 0.5 + 1 if isinstance(value, DTensor) else value + 1

    def after_step(self):
        pass

    def tensors(self):
        return self.values


def adam(params, **kind):
    return torch.optim.AdamW(params, lr=1e-2, **kind)


def ddp():
    model = nn.parallel.DistributedDataParallel(Net(nn.BatchNorm1d))  # its statistics differ from rank to rank
    return Form(model, adam(model.parameters()), "all", validate=False)  # whose forward pass would make them alike


def zero1():
    model = nn.parallel.DistributedDataParallel(Net())
    groups = [{"params": list(model.module.a.parameters()), "lr": 3e-2}, {"params": list(model.module.b.parameters())}]
    return Form(model, ZeroRedundancyOptimizer(groups, torch.optim.AdamW, lr=1e-2))


def local_sgd():
    model = Net()  # each rank trains by itself, and every second step they are averaged
    optim = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    return Form(model, PostLocalSGDOptimizer(optim, PeriodicModelAverager(period=2, warmup_steps=1)))


def fsdp1(norm=nn.BatchNorm1d, optim=adam, **kind):
    kind.setdefault("auto_wrap_policy", ModuleWrapPolicy({nn.Linear}))
    model = FSDP(Net(norm), device_id=torch.get_default_device(), **kind)
    return Flat(model, optim(model.parameters()))


def half(**kind):
    return fsdp1(nn.LayerNorm, mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16), **kind)


def fsdp2(shape=None, names=None, shard_id=None, norm=nn.BatchNorm1d, **kind):
    model = Net(norm)
    kind["mesh"] = init_device_mesh(DEVICE, shape or (dist.get_world_size(),), mesh_dim_names=names)
    for layer in (model.a, model.b):
        fully_shard(layer, **kind)
    fully_shard(model, **kind)
    return Form(model, adam(model.parameters()), shard_id)


def hsdp():
    """Two groups of two: the ranks of one column hold the same pieces."""
    return fsdp2((2, 2), ("replicate", "shard"), f"column{dist.get_rank() % 2}", nn.LayerNorm)


def tp():
    model = Net()
    plan = {"a": ColwiseParallel(output_layouts=Replicate()), "b": ColwiseParallel(output_layouts=Replicate())}
    parallelize_module(model, init_device_mesh(DEVICE, (dist.get_world_size(),)), plan)
    return Form(model, adam(model.parameters(), foreach=False), same_data=True)


def fsdp_tp():
    mesh = init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("data", "tensor"))
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 6))
    parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    return Form(model, adam(model.parameters(), foreach=False), same_data=True)


FORMS = {
    "ddp": ddp, "zero1": zero1, "local_sgd": local_sgd, "tp": tp, "pieces": Pieces,
    "fsdp1_flat": lambda: fsdp1(use_orig_params=False),
    "fsdp1_orig": lambda: fsdp1(use_orig_params=True),
    "fsdp1_whole": lambda: fsdp1(use_orig_params=False, auto_wrap_policy=None),
    "fsdp1_half": lambda: half(use_orig_params=True),
    "fsdp1_half_flat": lambda: half(use_orig_params=False),
    "fsdp1_grad_op": lambda: fsdp1(use_orig_params=True, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP),
    "fsdp1_hybrid": lambda: fsdp1(nn.LayerNorm, use_orig_params=True, sharding_strategy=ShardingStrategy.HYBRID_SHARD,
                                  device_mesh=init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("between", "within"))),
    "fsdp2": fsdp2,
    "fsdp2_keep": lambda: fsdp2(reshard_after_forward=False),
    "fsdp2_half": lambda: fsdp2(norm=nn.LayerNorm, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)),
    "hsdp": hsdp, "fsdp_tp": fsdp_tp,
}


def refused(ck):
    """A ZeroRedundancyOptimizer that steps in DDP's hooks has no optimizer of its own when it is declared."""
    optim = ZeroRedundancyOptimizer(Net().parameters(), torch.optim.AdamW, overlap_with_ddp=True, lr=1e-2)
    try:
        ck.declare("refused", optim)
    except Exception as e:
        return "overlap_with_ddp" in str(e)
    return False


def local(value):
    value = value.to_local() if isinstance(value, DTensor) else value
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def seen(form):
    return {name: local(value) for name, value in form.tensors().items()}


def differs(want, got):
    """The first name whose value is not the same to the last bit; None: all are."""
    for name in sorted(want.keys() | got.keys()):
        a, b = want.get(name), got.get(name)
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            same = a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))
        else:
            same = type(a) is type(b) and a == b
        if not same:
            return name
    return None


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def main():
    folder, names, steps, kill = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
    if DEVICE == "cpu":
        dist.init_process_group("gloo")
    else:  # NCCL lets no two ranks of one host share a device
        os.environ["NCCL_HOSTID"] = os.environ["RANK"]
        torch.cuda.set_device(0)
        dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    rank = dist.get_rank()
    forms = {}
    for name in names:
        torch.manual_seed(17)
        forms[name] = FORMS[name]()
    ck, done = elrun.connect(), None
    if ck and not refused(ck):
        raise RuntimeError("ZeroRedundancyOptimizer(overlap_with_ddp=True) is not refused by name")
    torch.manual_seed(1000 + rank)  # each rank draws its own data
    if ck:
        for name, form in forms.items():
            for part, (value, shard_id) in form.parts.items():
                ck.declare(f"{name}/{part}", value, shard_id=shard_id)
        ck.declare("rng", elrun.Rng())
        done = ck.restore()
    result = open(f"{folder}/result.{rank}", "a")

    def compare(what, name, want, form):
        bad = differs(torch.load(want, weights_only=False), seen(form))
        result.write(f"{name} {what} {'the same' if bad is None else f'DIFFERENT: {bad}'}\n")

    if done is not None:
        result.write(f"back to {done}\n")
        for name, form in forms.items():
            compare("restored", name, f"{folder}/truth.{name}.{done}.{rank}", form)

    for step in range(0 if done is None else done + 1, steps):
        for form in forms.values():
            form.backward(step)
        if ck:
            with ck.update(step):
                for form in forms.values():
                    form.step()
        else:
            for form in forms.values():
                form.step()
        for form in forms.values():
            form.after_step()
        if ck:
            for name, form in forms.items():
                torch.save(seen(form), f"{folder}/truth.{name}.{step}.{rank}")
            ck.snapshot(step, persist=step % 2 == 1)
        if step == kill and done is None:
            ck.wait()
            if os.environ.get("DISK"):
                ck.wait_persist(step)
            dist.barrier()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    for name, form in forms.items():
        if ck is None:
            torch.save(seen(form), f"{folder}/final.{name}.{rank}")
        else:
            compare("trained on", name, f"{folder}/final.{name}.{rank}", form)
    result.close()
    dist.barrier()
    os._exit(0)  # no interpreter's shutdown, in which PyTorch's threads may abort


main()
