"""The objects that the graphs of graphs.py are made of: each is built anew from its description, always alike.

A description is a tuple: its kind, then what the kind wants.  Builder.build() makes the object.  The bytes of tensors and
arrays come from a seed: any bits at all, not-a-numbers included."""
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import random
import threading
import types
import typing

import numpy as np
import torch

TORCH = [d for d in (getattr(torch, n, None) for n in (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
    "complex32", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64")) if d is not None]
NUMPY = [np.dtype(d) for d in ("<f8", "<f4", ">f4", ">i2", "?", "u1", "<i8", "<c16", ">c8", "<f2", "<U3", "S5", "<M8[ns]", "<m8[s]", "V3")]
NUMPY += [np.dtype([("a", "<i4"), ("b", ">f8")]), np.dtype([("a", "u1"), ("b", "<f8")], align=True), np.dtype([("x", "<f4", (2,)), ("y", "S3")])]


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Bits(enum.Flag):
    A = 1
    B = 2


class Named(typing.NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Data:
    a: object
    b: object = None
    c: object = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = 0


@dataclasses.dataclass
class Slots:
    __slots__ = ("a", "b")
    a: object
    b: object


class MyDict(dict):
    pass


class MyList(list):
    pass


class Holder:
    """Anything with the pair: it keeps what it is given."""

    def __init__(self, value):
        self.value = value
        self.calls = 0

    def state_dict(self):
        return {"value": self.value, "n": 3}

    def load_state_dict(self, state):
        assert state["n"] == 3
        self.value = state["value"]


class Counted:
    """With the pair, and numbers alone."""

    def __init__(self, n):
        self.n = n
        self.log = []

    def state_dict(self):
        return {"n": self.n, "log": list(self.log), "deep": {"a": [self.n, {"b": (self.n, None)}]}}

    def load_state_dict(self, state):
        self.n, self.log = state["n"], list(state["log"])
        assert state["deep"] == {"a": [self.n, {"b": (self.n, None)}]}


class Extra(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(3))
        self.n = 0

    def get_extra_state(self):
        return {"n": self.n}

    def set_extra_state(self, state):
        self.n = state["n"]

    def forward(self, x):
        return x


class Mixed(torch.nn.Module):
    """Buffers of many kinds, a tied weight and one that is not kept."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2)
        self.b = torch.nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mask", torch.zeros(3, dtype=torch.bool))
        self.register_buffer("spectrum", torch.zeros(2, dtype=torch.complex128))
        self.register_buffer("low", torch.zeros(5, dtype=torch.bfloat16))
        self.register_buffer("table", torch.zeros(4), persistent=False)
        self.register_buffer("later", None)


class Deep(torch.optim.Optimizer):
    """States that are more than a dict of tensors."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if p.grad is None:
                    continue
                if not s:
                    s["step"] = 0
                    s["deep"] = {"m": torch.zeros_like(p, dtype=torch.float32), "names": ["a", "b"]}
                    s["many"] = [torch.zeros_like(p, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)]
                s["step"] += 1
                s["deep"]["m"].add_(p.grad.float() * 0.123456789)
                s["many"][0].sub_(p.grad.double() / 3)
                s["many"][1] += 1
                p.add_(p.grad, alpha=-group["lr"])


def bits(seed, n):
    return np.random.RandomState(seed % (1 << 32)).bytes(n)


def tensor(dtype, shape, seed):
    """A contiguous tensor of any bits."""
    n = int(np.prod(shape, dtype=int))
    if not n:
        return torch.empty(shape, dtype=dtype)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.frombuffer(bytearray(bits(seed, n * size)), dtype=torch.uint8)
    if dtype is torch.bool:
        return (raw & 1).bool().reshape(shape)
    return raw.view(dtype).reshape(shape).clone()


FORMS = ("plain", "param", "frozen", "leaf", "slice", "turned", "expanded", "conj", "neg", "column", "flipped")


def shaped(dtype, shape, form, seed):
    """A tensor of that shape that lies in memory as `form` says."""
    shape = tuple(shape)
    floating = dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)
    if form == "slice":
        return tensor(dtype, (2, *shape), seed)[1]
    if form == "turned" and len(shape) == 2:
        return tensor(dtype, shape[::-1], seed).t()
    if form == "expanded":
        return tensor(dtype, (1, *shape[1:]), seed).expand(shape) if shape else tensor(dtype, (), seed)
    if form == "conj" and dtype.is_complex and dtype is not getattr(torch, "complex32", None):
        return tensor(dtype, shape, seed).conj()
    if form == "neg" and dtype.is_complex and dtype is not getattr(torch, "complex32", None):
        return tensor(dtype, shape, seed).conj().imag
    if form == "column" and shape:
        return tensor(dtype, (*shape, 3), seed)[..., 1]
    t = tensor(dtype, shape, seed)
    if floating and form == "param":
        return torch.nn.Parameter(t)
    if floating and form == "leaf":
        return t.requires_grad_()
    if form == "frozen":
        return torch.nn.Parameter(t, requires_grad=False)
    return t


def sparse(layout, seed):
    rng = np.random.RandomState(seed)
    dense = torch.tensor(rng.randint(0, 3, (4, 6)) * (rng.rand(4, 6) < 0.4), dtype=[torch.float32, torch.float64, torch.int64][seed % 3])
    if layout == "coo":
        return dense.to_sparse()
    if layout == "doubled":
        i = torch.tensor(rng.randint(0, 4, (2, 5)))
        return torch.sparse_coo_tensor(i, torch.tensor(rng.rand(5)), (4, 4))
    if layout == "hybrid":
        return torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor(rng.rand(2, 3)), (4, 3))
    if layout == "csr":
        return dense.to_sparse_csr()
    if layout == "csc":
        return dense.to_sparse_csc()
    return dense.to_sparse_bsr((2, 2)) if layout == "bsr" else dense.to_sparse_bsc((2, 2))


def odd(kind, seed):
    x = torch.tensor(np.random.RandomState(seed).rand(3, 4).astype("f4"))
    if kind == "quantized":
        return torch.quantize_per_tensor(x, 0.1 + seed % 3, seed % 5, torch.qint8)
    if kind == "channels":
        return torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3 + seed % 3]), torch.tensor([0, 1, 2]), 0, torch.quint8)
    if kind == "nested":
        return torch.nested.nested_tensor([x[0], x[1, :2], x[2, : 1 + seed % 3]])
    if kind == "mkldnn":
        return x.to_mkldnn()
    return torch.nn.parameter.UninitializedParameter() if kind == "lazy" else torch.nn.parameter.UninitializedBuffer()


def numpy_array(number, shape, form, seed):
    dtype, shape = NUMPY[number], tuple(shape)
    if dtype.isalignedstruct or not dtype.isnative:
        form = "plain"  # bytes between the fields are pickled as they happen to be; the order of bytes is lost if not contiguous
    whole = (*shape[:-1], shape[-1] * 2) if form == "strided" and shape else shape
    n = int(np.prod(whole, dtype=int))
    if dtype.kind == "U":
        a = np.array([str(v)[:3] for v in np.frombuffer(bits(seed, n), "u1")], dtype=dtype).reshape(whole)
    elif dtype.kind == "b":
        a = (np.frombuffer(bits(seed, n), "u1") & 1).astype(bool).reshape(whole)
    else:
        a = np.frombuffer(bits(seed, n * dtype.itemsize), "u1").view(dtype).reshape(whole).copy()
    if form == "strided" and shape:
        return a[..., ::2]
    if form == "fortran":
        return np.asfortranarray(a)
    if form == "flipped" and shape:
        return a[::-1]
    if form == "matrix" and len(shape) == 2:
        return a.view(np.matrix)
    if form == "record" and dtype.names:
        return a.view(np.recarray)
    if form == "masked" and dtype.kind == "f" and dtype.isnative:  # numpy loses the order of bytes there
        return np.ma.masked_array(a, mask=np.frombuffer(bits(seed + 1, n), "u1").reshape(shape) & 1, fill_value=seed % 7)
    if form == "object":
        return np.array([None, seed, "x"], dtype=object)
    if form == "readonly":
        a.flags.writeable = False
    return a


MODULES = {
    "linear": lambda: torch.nn.Linear(3, 2), "norm": lambda: torch.nn.BatchNorm1d(3), "mixed": Mixed, "extra": Extra,
    "nested": lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.LayerNorm(2), torch.nn.Identity())),
    "lstm": lambda: torch.nn.LSTM(2, 3), "many": lambda: torch.nn.ModuleList([torch.nn.Linear(1, 1) for _ in range(10)]),
    "params": lambda: torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.zeros(2)), "b": torch.nn.Parameter(torch.zeros(0, 3))}),
    "weight_norm": lambda: getattr(torch.nn.utils.parametrizations, "weight_norm", torch.nn.utils.weight_norm)(torch.nn.Linear(2, 2)),
    "spectral": lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2)),
    "old_spectral": lambda: torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2)),
    "half": lambda: torch.nn.Linear(2, 2).to(torch.bfloat16), "double": lambda: torch.nn.Conv1d(1, 2, 1).double(),
    "empty_bias": lambda: torch.nn.Linear(2, 2, bias=False), "attention": lambda: torch.nn.MultiheadAttention(2, 1),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(torch.nn.Linear(2, 2)),
}
OPTIMS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "adam": lambda p: torch.optim.Adam(p, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, foreach=False), "rprop": lambda p: torch.optim.Rprop(p),
    "lbfgs": lambda p: torch.optim.LBFGS(p, max_iter=2, history_size=2), "asgd": lambda p: torch.optim.ASGD(p), "deep": Deep,
    "tensor_lr": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), foreach=False), "nadam": lambda p: torch.optim.NAdam(p),
}
SCHEDS = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2), "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 9),
    "plateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o), "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
    "cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 50, cycle_momentum=False),
    "chain": lambda o: torch.optim.lr_scheduler.SequentialLR(o, [torch.optim.lr_scheduler.ConstantLR(o), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)], [3]),
}
GENERATORS = {
    "torch": lambda s: torch.Generator().manual_seed(s), "python": random.Random, "numpy": np.random.default_rng,
    "philox": lambda s: np.random.Generator(np.random.Philox(s)), "legacy": np.random.RandomState, "bits": np.random.PCG64,
}
BAD = (
    lambda: (lambda: 0), threading.Lock, lambda: iter([1]), lambda: torch.zeros(2, device="meta"), lambda: _partial(),
    lambda: _cycle(), lambda: _attributed(), lambda: type("Local", (dict,), {})(), lambda: {(1, torch.zeros(1)): 2}, lambda: memoryview(b"x"),
    lambda: {1, threading.Lock()}, lambda: Exception("x"),
)


def _partial():
    it = functools.partial(int, "1")
    vars(it)  # whoever looks makes it, and it is pickled as {} from then on and not as None
    return it


def _cycle():
    a = [1]
    a.append({"back": a})
    return a


def _attributed():
    d = MyDict(a=1)
    d.beside = torch.zeros(2)
    return d


def values_of(module, seed):
    """Other values in all of a module's parameters and buffers."""
    with torch.no_grad():
        for i, t in enumerate([*module.parameters(), *module.buffers()]):
            if not torch.nn.parameter.is_lazy(t):
                t.copy_(torch.tensor(np.random.RandomState(seed + i).rand(*t.shape)) + 0.1)
    return module


class Builder:
    """Makes objects of descriptions.  shared: those that may be met once more."""

    def __init__(self):
        self.shared = []

    def build(self, spec):
        kind, *args = spec
        value = getattr(self, "_" + kind)(*args)
        if kind not in ("v", "ref"):
            self.shared.append(value)
        return value

    def _v(self, value):
        return value

    def _ref(self, n):
        return self.shared[n % len(self.shared)] if self.shared else n

    def _tensor(self, dtype, shape, form, seed):
        return shaped(TORCH[dtype % len(TORCH)], shape, FORMS[form % len(FORMS)], seed)

    def _view(self, n, start):
        """A view of a tensor or an array that is there already."""
        some = [t for t in self.shared if type(t) in (torch.Tensor, np.ndarray) and _can_be_cut(t)]
        return some[n % len(some)][start % 2 :] if some else n

    def _sparse(self, layout, seed):
        return sparse(layout, seed)

    def _odd(self, kind, seed):
        return odd(kind, seed)

    def _array(self, number, shape, form, seed):
        return numpy_array(number % len(NUMPY), shape, form, seed)

    def _list(self, cls, items):
        return {"list": list, "mine": MyList}[cls](self.build(i) for i in items)

    def _tuple(self, items):
        return tuple(self.build(i) for i in items)

    def _named(self, left, right):
        return Named(self.build(left), self.build(right))

    def _dict(self, cls, items):
        to = {"dict": dict, "ordered": collections.OrderedDict, "default": lambda: collections.defaultdict(list), "mine": MyDict}[cls]()
        for key, item in items:
            to[key] = self.build(item)
        return to

    def _counter(self, items):
        return collections.Counter(items)

    def _deque(self, maxlen, items):
        return collections.deque([self.build(i) for i in items], maxlen)

    def _set(self, items):
        return set(items)

    def _data(self, items):
        return Data(*(self.build(i) for i in items))

    def _frozen(self, item):
        return Frozen(self.build(item))

    def _slots(self, left, right):
        return Slots(self.build(left), self.build(right))

    def _space(self, items):
        return types.SimpleNamespace(**{f"n{i}": self.build(s) for i, s in enumerate(items)})

    def _bytearray(self, data):
        return bytearray(data)

    def _typed(self, code, items):
        return array.array(code, items)

    def _generator(self, kind, seed):
        return GENERATORS[kind](seed)

    def _module(self, kind, seed):
        return values_of(MODULES[kind](), seed)

    def _trainer(self, module, optim, sched, seed):
        """What a script has: a module, its optimizer and what goes with it."""
        net = values_of(MODULES[module](), seed)
        opt = OPTIMS[optim](list(net.parameters()))
        sched = SCHEDS[sched](opt)
        return {"net": net, "opt": opt, "sched": sched, "scaler": torch.amp.GradScaler("cpu") if hasattr(torch.amp, "GradScaler") else None,
                "weight": next(net.parameters()), "epoch": 0, "losses": [], "best": float("inf")}

    def _row(self, n, seed):
        """A list or dict of many tensors."""
        some = [tensor(torch.float32, (2,), seed + i) for i in range(n)]
        return some if seed % 2 else dict(enumerate(some))

    def _holder(self, item):
        return Holder(self.build(item))

    def _counted(self, n):
        return Counted(n)

    def _bad(self, n):
        return BAD[n % len(BAD)]()


def _can_be_cut(t):
    return (not getattr(t, "is_nested", False) and len(t.shape) and getattr(t, "layout", torch.strided) is torch.strided
            and not getattr(t, "is_quantized", False) and not getattr(t, "is_mkldnn", False) and not getattr(t, "requires_grad", False))


VALUES = (decimal.Decimal("1.10"), fractions.Fraction(1, 3), datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), datetime.timedelta(3),
          Colour.RED, Colour.BLUE, Level.HIGH, Bits.A | Bits.B, range(3), slice(1, 2), pathlib.PurePosixPath("/x"), torch.float32, torch.Size([1, 2]),
          torch.device("cpu"), np.float32(0.1), np.int64(5), np.bool_(True), np.dtype(">i4"), np.float64("nan"), int, Named, len, values_of, ...,
          frozenset({1, "a"}), (1, (2.5, "x"), frozenset()), Named(1, "r"), np.str_("s"), 1 << 80, "\ud800", torch.strided, types.MappingProxyType)
