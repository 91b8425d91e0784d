"""Modules that are rebound, changed and wrapped in every way that trainings do, for state_modules.sh (see state_run.py).
Most cases train the module with an optimizer that is declared beside it: after a restart the next steps must be the same,
so the optimizer has to hold the parameters that the module has."""
import collections
import copy
import types
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from state_run import case, main

warnings.filterwarnings("ignore")
F = torch.nn.functional
A = types.SimpleNamespace


def optimizer(m):
    params = [p for p in m.parameters() if p.requires_grad]
    return torch.optim.SGD(params, lr=.05, momentum=.9) if params else None


def fit(m, *shape, calls=1):
    """A step of training, without an optimizer's: the parameters move against their gradients."""
    for _ in range(calls):
        loss = m(torch.randn(*(shape or (4, 4)))).square().mean()
        grads = torch.autograd.grad(loss, [p for p in m.parameters() if p.requires_grad], allow_unused=True)
        with torch.no_grad():
            for p, g in zip((p for p in m.parameters() if p.requires_grad), grads):
                if g is not None:
                    p.sub_(g, alpha=.1)


def fit_with(x, *shape):
    x.optim.zero_grad()
    x.net(torch.randn(*(shape or (4, 4)))).float().square().mean().backward()
    x.optim.step()


def module(name, make, change=None, shape=(4, 4), **more):
    """A module alone: change(module, step), then a step of training."""

    def train(m, s):
        if change is not None:
            change(m, s)
        fit(m, *shape)

    case(name, make, train, **more)


def pair(name, make, change=None, shape=(4, 4), again=None, optim=optimizer):
    """A module and its optimizer, declared in one part: change(x, step) with x.net and x.optim."""

    def build(how):
        def both():
            net = how()
            return A(net=net, optim=optim(net))

        return both

    def train(x, s):
        fit_with(x, *shape)
        if change is not None:
            change(x, s)

    case(name, build(make), train, what=lambda x: {"net": x.net, "optim": x.optim}, again=build(again or make))


def linear():
    return nn.Linear(4, 4)


def two():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def values(m, f):
    with torch.no_grad():
        for p in m.parameters():
            f(p)


# --- parameters that are rebound -------------------------------------------------------------------------------------------

pair("data_set", linear, lambda x, s: values(x.net, lambda p: setattr(p, "data", p.data.clamp(-.1, .1))))
pair("data_copied_into", linear, lambda x, s: values(x.net, lambda p: p.data.copy_(p.data * .5)))
pair("data_swapped_by_set_", linear, lambda x, s: values(x.net, lambda p: p.set_((p * .5).detach())))
pair("vector_to_parameters", two, lambda x, s: nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(x.net.parameters()).detach() * .5, x.net.parameters()))


def follow(x, old):
    """The optimizer goes on with the module's new parameters, and their states move."""
    new = list(x.net.parameters())
    states = [x.optim.state.pop(p, {}) for p in old]
    x.optim.state.update(zip(new, states))
    x.optim.param_groups[0]["params"] = new


def new_parameter(x, s):
    old = list(x.net.parameters())
    x.net.weight = nn.Parameter(x.net.weight.detach() * .5)
    follow(x, old)


def assigned(x, s):
    old = list(x.net.parameters())
    x.net.load_state_dict({k: t.clone() * .5 for k, t in x.net.state_dict().items()}, assign=True)
    follow(x, old)


module("new_parameter", linear, lambda m, s: setattr(m, "weight", nn.Parameter(m.weight.detach() * .5)))
pair("new_parameter_in_optimizer", linear, new_parameter)
module("load_state_dict_assign", two, lambda m, s: m.load_state_dict({k: t.clone() * .5 for k, t in m.state_dict().items()}, assign=True))
pair("load_state_dict_assign_in_optimizer", linear, assigned)
module("layer_replaced", two, lambda m, s: m.__setitem__(1, nn.Linear(4, 4)) if s in (1, 4) else None)
module("layer_replaced_by_setattr", two, lambda m, s: setattr(m, "0", nn.Linear(4, 4, bias=True)))
module("swapped_layers", two, lambda m, s: (lambda a, b: (m.__setitem__(0, b), m.__setitem__(1, a)))(m[0], m[1]))
module("deleted_and_registered", linear, lambda m, s: (delattr(m, "bias"), m.register_parameter("bias", nn.Parameter(torch.randn(4)))))
module("parameters_list", lambda: (lambda m: (setattr(m, "more", nn.ParameterList([torch.randn(2)])), m)[1])(linear()),
       lambda m, s: m.more.__setitem__(0, nn.Parameter(torch.randn(2))))
module("parameters_dict", lambda: (lambda m: (setattr(m, "more", nn.ParameterDict({"a.b".replace(".", "_"): torch.randn(2)})), m)[1])(linear()),
       lambda m, s: m.more.update({"a_b": nn.Parameter(torch.randn(2))}))
case("requires_grad_toggled", two, lambda m, s: (m[0].requires_grad_(s % 2 == 1), fit(m)))
pair("tied", lambda: (lambda m: (setattr(m[1], "weight", m[0].weight), m)[1])(two()))
module("tied_later", two, lambda m, s: setattr(m[1], "weight", m[0].weight) if s == 1 else None,
       again=lambda: (lambda m: (setattr(m[1], "weight", m[0].weight), m)[1])(two()))
module("tied_no_more", lambda: (lambda m: (setattr(m[1], "weight", m[0].weight), m)[1])(two()),
       lambda m, s: setattr(m[1], "weight", nn.Parameter(m[0].weight.detach().clone() + 1)) if s in (1, 4) else None, again=two)
module("one_module_twice", lambda: (lambda l: nn.Sequential(l, nn.ReLU(), l))(linear()))
pair("shared_by_two_models", lambda: (lambda m: nn.ModuleDict({"a": m, "b": nn.Sequential(m, linear())}))(linear()).__getitem__("b"))

# --- form and type -----------------------------------------------------------------------------------------------------------

conv = lambda: nn.Conv2d(3, 4, 3)
module("to_channels_last", conv, lambda m, s: m.to(memory_format=torch.channels_last), (2, 3, 8, 8))
# A device computes other last bits in another memory format, which load_state_dict() leaves as it is: it is set before.
pair("to_channels_last_in_optimizer", conv, lambda x, s: x.net.to(memory_format=torch.channels_last), (2, 3, 8, 8),
     again=lambda: conv().to(memory_format=torch.channels_last))


def cast(dtype):
    def change(m, s):
        if s == 1:
            m.to(dtype)
        values(m, lambda p: p.mul_(.7))

    return change


for dtype in (torch.bfloat16, torch.float16, torch.float64):
    case(f"cast_to_{str(dtype)[6:]}", two, cast(dtype), again=lambda dtype=dtype: two().to(dtype))
case("cast_to_bfloat16_and_back", two, lambda m, s: (m.bfloat16(), values(m, lambda p: p.mul_(.7)), m.float()))
case("complex_module", lambda: nn.Linear(3, 2, dtype=torch.complex128), lambda m, s: values(m, lambda p: p.mul_(1j + s)))
case("float8_buffer", lambda: (lambda m: (m.register_buffer("w8", torch.zeros(3).to(torch.float8_e4m3fn)), m)[1])(linear()),
     lambda m, s: setattr(m, "w8", torch.full((3,), s + .5).to(torch.float8_e4m3fn)))
case("integer_parameter", lambda: nn.ParameterList([nn.Parameter(torch.arange(3), requires_grad=False)]), lambda m, s: m[0].add_(s))
case("no_parameter_at_all", lambda: nn.Sequential(nn.ReLU()), lambda m, s: None, may_refuse=True)
case("zero_size_parameter", lambda: nn.Sequential(nn.Linear(0, 3), nn.Linear(3, 0)), lambda m, s: values(m, lambda p: p.add_(s)))

# --- buffers ------------------------------------------------------------------------------------------------------------------


class Center(nn.Module):
    """As the loss of DINO: the forward pass puts another tensor under the name of a buffer."""

    def __init__(self):
        super().__init__()
        self.l = linear()
        self.register_buffer("center", torch.zeros(4))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("own", torch.zeros(2), persistent=False)

    def forward(self, x):
        y = self.l(x)
        self.center = self.center * .9 + y.detach().mean(0) * .1
        self.count = self.count + 1
        return y - self.center


class Queue(nn.Module):
    """As MoCo and codebooks: buffers that grow, that begin as None, or whose type changes."""

    def __init__(self):
        super().__init__()
        self.l = linear()
        self.register_buffer("queue", torch.zeros(0, 4))
        self.register_buffer("mask", None)

    def forward(self, x):
        return self.l(x)

    def _load_from_state_dict(self, state, prefix, *rest):
        self.queue = torch.zeros_like(state[prefix + "queue"])
        if prefix + "mask" in state:
            self.mask = torch.zeros_like(state[prefix + "mask"])
        super()._load_from_state_dict(state, prefix, *rest)


pair("buffer_rebound", Center)
case("buffer_grows", Queue, lambda m, s: (fit(m), setattr(m, "queue", torch.cat([m.queue, torch.randn(s + 1, 4)])), setattr(m, "mask", torch.randn(s + 1) > 0)))
module("buffer_not_persistent", Center, lambda m, s: m.own.fill_(0))
module("buffer_data_set", Center, lambda m, s: setattr(m.center, "data", m.center + 1))
module("buffer_registered_later", linear, lambda m, s: m.register_buffer("late", torch.randn(s + 1)) if s == 1 else None,
       again=lambda: (lambda m: (m.register_buffer("late", torch.zeros(2)), m)[1])(linear()))
pair("batch_norm", lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)))
pair("batch_norm_no_momentum", lambda: nn.Sequential(linear(), nn.BatchNorm1d(4, momentum=None)))
module("batch_norm_swapped", lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)), lambda m, s: m.__setitem__(1, nn.BatchNorm1d(4)) if s in (1, 4) else None)
module("batch_norm_reset", lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)), lambda m, s: m[1].reset_running_stats() if s == 2 else None)
module("batch_norm_statistics_set", lambda: nn.Sequential(linear(), nn.BatchNorm1d(4)), lambda m, s: (setattr(m[1], "running_mean", torch.randn(4)), setattr(m[1], "num_batches_tracked", torch.tensor(s))))
module("instance_norm", lambda: nn.InstanceNorm1d(3, track_running_stats=True, affine=True), shape=(2, 3, 5))

# --- masks, parametrizations, layers that are made late -----------------------------------------------------------------------


def pruned(m):
    prune.l1_unstructured(m[0], "weight", .2)
    return m


pair("pruned_again", lambda: pruned(two()), lambda x, s: prune.l1_unstructured(x.net[0], "weight", .2))
module("pruned_later", two, lambda m, s: pruned(m) if s in (1, 4) else None, again=lambda: pruned(two()))
module("pruning_made_permanent", lambda: pruned(two()), lambda m, s: prune.remove(m[0], "weight") if s == 1 else None, again=two)
pair("weight_norm", lambda: parametrizations.weight_norm(linear()))
pair("weight_norm_old", lambda: nn.utils.weight_norm(linear()))
pair("spectral_norm", lambda: parametrizations.spectral_norm(linear()))
pair("spectral_norm_old", lambda: nn.utils.spectral_norm(linear()))
pair("orthogonal", lambda: parametrizations.orthogonal(linear()))
module("parametrized_later", two, lambda m, s: parametrizations.weight_norm(m[1]) if s == 1 else None,
       again=lambda: (lambda m: (parametrizations.weight_norm(m[1]), m)[1])(two()))
module("parametrization_removed", lambda: nn.Sequential(parametrizations.weight_norm(linear())),
       lambda m, s: parametrize.remove_parametrizations(m[0], "weight") if s == 1 else None, again=lambda: nn.Sequential(linear()))
case("lazy_layers", lambda: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), lambda m, s: fit(m) if s else m(torch.randn(4, 4)))
case("lazy_until_later", lambda: nn.Sequential(linear(), nn.LazyLinear(3)), lambda m, s: fit(m[0]) if s < 2 else m(torch.randn(4, 4)) if s == 2 else fit(m),
     see=lambda m: [m[0], *m[1].parameters()])

# --- states of a module's own -------------------------------------------------------------------------------------------------


class Extra(nn.Module):
    def __init__(self, value=None):
        super().__init__()
        self.l, self.value = linear(), value

    def forward(self, x):
        return self.l(x)

    def get_extra_state(self):
        return self.value

    def set_extra_state(self, state):
        self.value = state


class Version(nn.Module):
    """_save_to_state_dict and _load_from_state_dict of its own: two tensors are one in the state, and a number is beside it."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3)), 0

    def forward(self, x):
        return x[:, :3] * self.a + self.b

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        both = torch.cat([self.a, self.b])
        destination[prefix + "both"] = both if keep_vars else both.detach()
        destination[prefix + "n"] = self.n

    def _load_from_state_dict(self, state, prefix, local_metadata, strict, missing, unexpected, errors):
        assert local_metadata.get("version") == 2, local_metadata
        with torch.no_grad():
            self.a.copy_(state[prefix + "both"][:3])
            self.b.copy_(state[prefix + "both"][3:])
        self.n = state[prefix + "n"]


class Adapter(nn.Module):
    """Its state is the trained part alone, as libraries of adapters give it; load_state_dict() has no other argument."""

    def __init__(self):
        super().__init__()
        self.base, self.low = linear().requires_grad_(False), nn.Parameter(torch.randn(4, 1))
        values(self.base, lambda p: p.fill_(.5))  # as loaded from its own file

    def forward(self, x):
        return self.base(x) + x @ self.low @ self.low.T

    def state_dict(self, *_, **__):
        return {"adapter": {"low": self.low.detach()}, "kind": "low rank"}

    def load_state_dict(self, state):
        assert state["kind"] == "low rank"
        with torch.no_grad():
            self.low.copy_(state["adapter"]["low"])


class Wrapper(nn.Module):
    """As DataParallel: names begin with "module."."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class Unwrapping(Wrapper):
    """It hides itself in the names, as FSDP and compiled modules do."""

    def state_dict(self, *args, **more):
        return self.module.state_dict(*args, **more)

    def load_state_dict(self, state, *args, **more):
        return self.module.load_state_dict(state, *args, **more)


class Counting(nn.Module):
    """Hooks of both directions: they are called, once for each restore()."""

    def __init__(self):
        super().__init__()
        self.l, self.loads = linear(), 0
        self.register_state_dict_post_hook(self.renamed)
        self.register_load_state_dict_pre_hook(self.back)
        self.register_load_state_dict_post_hook(self.loaded)

    def forward(self, x):
        return self.l(x)

    @staticmethod
    def renamed(module, state, prefix, _):
        state[prefix + "old.weight"] = state.pop(prefix + "l.weight")

    @staticmethod
    def back(module, state, prefix, *_):
        state[prefix + "l.weight"] = state.pop(prefix + "old.weight")

    @staticmethod
    def loaded(module, incompatible):
        module.loads += 1


class Deep(nn.Module):
    """A dict of tensors that the module holds beside its parameters, in its extra state."""

    def __init__(self):
        super().__init__()
        self.l, self.memory = linear(), {}

    def forward(self, x):
        return self.l(x)

    def get_extra_state(self):
        return {"memory": self.memory, "n": len(self.memory)}

    def set_extra_state(self, state):
        self.memory = state["memory"]
        assert len(self.memory) == state["n"]


module("extra_state_number", Extra, lambda m, s: setattr(m, "value", s))
module("extra_state_tensor", lambda: Extra(torch.zeros(1)), lambda m, s: setattr(m, "value", torch.randn(s + 1)))
module("extra_state_dict", lambda: Extra({}), lambda m, s: m.value.update({f"k{s}": [torch.randn(2), s]}))
module("extra_state_in_child", lambda: nn.Sequential(Extra(0), Extra(None)), lambda m, s: setattr(m[1], "value", {"s": s}))
module("extra_state_tensors_grow", Deep, lambda m, s: m.memory.update({s: torch.randn(3)}))
module("own_save_and_load", Version, lambda m, s: setattr(m, "n", s))
module("own_save_and_load_in_child", lambda: nn.ModuleDict({"x": Version()}).__getitem__("x"), lambda m, s: setattr(m, "n", s))
case("own_state_dict", Adapter, lambda m, s: fit(m), see=lambda m: m.low)
case("wrapper", lambda: Wrapper(two()), lambda m, s: fit(m))
case("wrapper_that_unwraps", lambda: Unwrapping(two()), lambda m, s: fit(m), see=lambda m: m.module)
case("data_parallel", lambda: nn.DataParallel(nn.Sequential(linear(), nn.BatchNorm1d(4))), lambda m, s: fit(m.module))
case("hooks_of_state_dict", Counting, lambda m, s: fit(m), see=lambda m: m.l)
case("hooks_called_once", Counting, lambda m, s: fit(m), see=lambda m: [m.l.weight, m.loads > 1])
case("script_module", lambda: torch.jit.script(two()), lambda m, s: fit(m))
case("traced_module", lambda: torch.jit.trace(two(), torch.randn(1, 4)), lambda m, s: fit(m))
case("module_list_in_dict", lambda: {"nets": [linear(), two()], "n": 0}, lambda d, s: ([fit(m) for m in d["nets"]], d.update(n=s)))
case("module_and_tensor_of_it", lambda: (lambda m: {"net": m, "w": m.weight})(linear()), lambda d, s: fit(d["net"]))
case("module_replaced_in_dict", lambda: {"net": two()}, lambda d, s: d.update(net=copy.deepcopy(d["net"])) if s == 1 else fit(d["net"]), own=False)

# --- averages -----------------------------------------------------------------------------------------------------------------


def averaged(make):
    def both():
        net = nn.Sequential(linear(), nn.BatchNorm1d(4))
        return A(net=net, ema=make(net))

    return both


def average(x, s):
    fit(x.net)
    x.ema.update_parameters(x.net)


class Shadow:
    """As torch_ema and many scripts: tensors in a dict or a list that are rebound, and load_state_dict() keeps what it is given."""

    def __init__(self, net):
        self.shadow = {k: p.detach().clone() for k, p in net.named_parameters()}
        self.updates = 0

    def update_parameters(self, net):
        self.updates += 1
        self.shadow = {k: .9 * self.shadow[k] + .1 * p.detach() for k, p in net.named_parameters()}

    def state_dict(self):
        return {"shadow": self.shadow, "updates": self.updates}

    def load_state_dict(self, state):
        self.shadow, self.updates = state["shadow"], state["updates"]


class InPlace(Shadow):
    def update_parameters(self, net):
        self.updates += 1
        for k, p in net.named_parameters():
            self.shadow[k].lerp_(p.detach(), .1)


SWA = torch.optim.swa_utils
state_of = dict(what=lambda x: {"net": x.net, "ema": x.ema})
case("averaged_model", averaged(SWA.AveragedModel), average, **state_of)
case("averaged_model_ema", averaged(lambda m: SWA.AveragedModel(m, multi_avg_fn=SWA.get_ema_multi_avg_fn(.9), use_buffers=True)), average, **state_of)
case("averaged_model_alone", averaged(SWA.AveragedModel), lambda x, s: (values(x.net, lambda p: p.copy_(torch.randn_like(p))), x.ema.update_parameters(x.net)), what=lambda x: x.ema)
case("ema_by_deepcopy", averaged(lambda m: A(m=copy.deepcopy(m))), lambda x, s: (fit(x.net), values(x.ema.m, lambda p: p.mul_(.9))),
     what=lambda x: {"net": x.net, "ema": x.ema.m})
case("ema_class_rebinds", averaged(Shadow), average, **state_of)
case("ema_class_in_place", averaged(InPlace), average, **state_of)
case("ema_dict_of_the_script", averaged(lambda m: dict(m.state_dict())), lambda x, s: (fit(x.net), x.ema.update({k: .9 * x.ema[k] + .1 * t for k, t in x.net.state_dict().items()})),
     own=False, **state_of)  # what it begins with is the net's own memory
case("best_weights", averaged(lambda m: {"best": None}), lambda x, s: (fit(x.net), x.ema.update(best=copy.deepcopy(x.net.state_dict())) if s in (1, 4) else None), **state_of)
case("state_dict_object_itself", lambda: (lambda m: A(net=m, sd=m.state_dict()))(linear()), lambda x, s: fit(x.net), what=lambda x: x.sd,
     see=lambda x: [x.sd, x.net.weight])

# --- layers whose parameters are held elsewhere, too ----------------------------------------------------------------------------



class First(nn.Module):
    def forward(self, x):
        return x[0]


module("lstm", lambda: nn.Sequential(nn.LSTM(4, 3, 2), First()), shape=(5, 2, 4))
module("lstm_data_set", lambda: nn.Sequential(nn.LSTM(4, 3), First()), lambda m, s: values(m, lambda p: setattr(p, "data", p.data * .5)), (5, 2, 4))
module("gru", lambda: nn.Sequential(nn.GRU(4, 3), First()), shape=(5, 2, 4))
module("transformer", lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0), shape=(5, 2, 4))
module("embedding_with_norm", lambda: nn.Sequential(nn.Flatten(), linear()), shape=(4, 2, 2))
case("embedding_max_norm", lambda: nn.Embedding(5, 3, max_norm=.5), lambda m, s: m(torch.tensor([s % 5])))


def observers():
    from torch.ao.quantization import FakeQuantize, HistogramObserver, MovingAveragePerChannelMinMaxObserver, PerChannelMinMaxObserver

    return nn.ModuleList([PerChannelMinMaxObserver(), HistogramObserver(bins=16), FakeQuantize(),
                          FakeQuantize(observer=MovingAveragePerChannelMinMaxObserver, qscheme=torch.per_channel_affine)])


case("observers_of_quantization", observers, lambda m, s: [o(torch.randn(3, 4)) for o in m])
case("packed_linear", lambda: torch.ao.nn.quantized.dynamic.Linear(4, 3), lambda m, s: m.set_weight_bias(torch.quantize_per_tensor(torch.randn(3, 4), .1, 0, torch.qint8), torch.randn(3)),
     see=lambda m: [*m._packed_params._weight_bias()], own=False)
case("compiled_module", lambda: (lambda m: A(net=m, fast=torch.compile(m, backend="eager")))(two()), lambda x, s: fit(x.net), what=lambda x: x.fast, see=lambda x: x.net)
case("state_dict_of_ordered_keys", lambda: collections.OrderedDict(linear().state_dict()), lambda d, s: [t.add_(1) for t in d.values()])

if __name__ == "__main__":
    main()
