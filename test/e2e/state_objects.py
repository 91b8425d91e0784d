"""Objects that are no modules and no optimizers, for state_objects.sh (see state_run.py): containers and values of Python,
arrays of numpy, tensors of every kind, generators, and classes with a state of their own."""
import array
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import math
import operator
import pathlib
import random
import threading
import types
import typing
import uuid
import warnings
import weakref

import numpy as np
import torch

import elrun
from state_run import case, main, refused

warnings.filterwarnings("ignore")
rand = torch.randn
A = types.SimpleNamespace


def put(name, make, change=None, **more):
    """A value in a dict, which is rebound in each step: {"v": value}; change(old, step) returns the new one."""
    case(name, lambda: {"v": make(), "n": 0}, lambda d, s: d.update(v=(change or (lambda v, s: make()))(d["v"], s), n=s), **more)


def tensor(name, make, **more):
    """A tensor that is filled in place, and one that is replaced in each step."""

    def change(d, s):
        new = make(s + 2)
        with torch.no_grad():
            if d["held"].shape == new.shape:
                d["held"].copy_(new)
        d["rebound"] = make(s + 3)

    case(name, lambda: {"held": make(1), "rebound": make(1)}, change, **more)


# --- containers ----------------------------------------------------------------------------------------------------------

case("list_that_grows", lambda: [], lambda x, s: x.extend([s + .5] * 2000))
case("list_that_shrinks", lambda: list(range(5000)), lambda x, s: x.__delitem__(slice(100 * (s + 1), None)))
case("list_cleared", lambda: [1, [2], rand(3)], lambda x, s: x.clear() if s == 2 else x.append(s))
case("list_of_tensors_that_grows", lambda: [rand(4)], lambda x, s: x.append(rand(s, 2)))
case("list_entry_rebound", lambda: [rand(4), rand(4)], lambda x, s: x.__setitem__(0, x[0] + 1))
case("list_of_records", lambda: {"best": []}, lambda d, s: d["best"].append({"step": s, "loss": 1 / (s + 1), "w": rand(2)}))
case("list_reversed", lambda: {"l": [rand(2), rand(3), 7]}, lambda d, s: d["l"].reverse())
case("heap_of_tuples", lambda: [], lambda x, s: x.insert(0, (-s, f"step {s}", (s, (None, s)))))
case("dict_entry_rebound", lambda: {"ema": rand(4), "n": 0}, lambda d, s: d.update(ema=d["ema"] * .9 + s, n=s))
case("dict_keys_come_and_go", lambda: {"a": 1, "b": rand(2)}, lambda d, s: (d.pop(list(d)[0]), d.update({f"k{s}": rand(s + 1)})))
case("dict_order", lambda: {"a": 1, "b": 2, "c": 3}, lambda d, s: d.update({k: d.pop(k) for k in ("abc"[s % 3],)}))
case("dict_emptied", lambda: {"a": 1, "b": rand(2)}, lambda d, s: d.clear())
case("empty_dict_that_fills", lambda: {}, lambda d, s: d.update({s: {"deep": [rand(1)]}}))
case("key_without_letters", lambda: {"": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])},
     lambda d, s: d.update({"": torch.nested.nested_tensor([rand(2), rand(s + 1)])}))
case("empty_list_in_dict", lambda: {"l": [], "d": {}, "s": set(), "t": ()}, lambda d, s: None)
case("nested_dict_rebound", lambda: {"h": {"best": []}}, lambda d, s: d.update(h={"best": [*d["h"]["best"], s], "x": {"y": rand(2)}}))
case("value_becomes_tensor", lambda: {"best": None}, lambda d, s: d.update(best=rand(3) if s % 2 else float(s)))
case("tensor_becomes_value", lambda: {"best": rand(3)}, lambda d, s: d.update(best=None if s in (2, 5) else "none yet"))
case("tensor_changes_shape", lambda: {"t": rand(3)}, lambda d, s: d.update(t=rand(s + 1, 4)))
case("tensor_changes_dtype", lambda: {"t": rand(3)},
     lambda d, s: d.update(t=rand(3).to([torch.float16, torch.int64, torch.complex64, torch.float64, torch.bool, torch.bfloat16][s])))
case("list_becomes_dict", lambda: {"x": [1, 2]}, lambda d, s: d.update(x={"one": rand(1)} if s % 2 == 0 else [rand(2)]))
case("set", lambda: {1}, lambda x, s: (x.add(f"s{s}"), x.discard(s)))
case("set_in_dict", lambda: {"seen": {1, 2}}, lambda d, s: d["seen"].add((s, "x")))
case("frozenset_in_dict", lambda: {"v": frozenset({1})}, lambda d, s: d.update(v=d["v"] | {s}))
case("deque", lambda: collections.deque([1.0], maxlen=4), lambda x, s: x.extend([s, rand(2)]))
case("deque_in_dict", lambda: {"w": collections.deque(maxlen=3)}, lambda d, s: d["w"].append(rand(1)))
case("deque_without_end", lambda: collections.deque(), lambda x, s: x.appendleft([s]))
case("defaultdict", lambda: collections.defaultdict(list), lambda d, s: d[f"k{s}"].append(rand(2)))
case("defaultdict_in_dict", lambda: {"m": collections.defaultdict(int)}, lambda d, s: d["m"].__setitem__(s, d["m"][s - 1] + 1))
case("ordered_dict", lambda: collections.OrderedDict(a=1, b=rand(2), c=3), lambda d, s: d.move_to_end("abc"[s % 3]))
case("counter", lambda: collections.Counter("aab"), lambda x, s: x.update("abc" * s))
case("bytearray_in_dict", lambda: {"b": bytearray(b"ab")}, lambda d, s: d["b"].extend(bytes([s])))
case("namespace", lambda: A(step=0, ema=rand(3), inner=A(l=[])), lambda x, s: (x.__dict__.update(step=s, ema=x.ema + s), x.inner.l.append(s)))
case("namespace_new_attribute", lambda: {"x": A(a=1)}, lambda d, s: setattr(d["x"], f"a{s}", rand(2)))
case("deeply_nested", lambda: {"a": [{"b": ({"c": [rand(2)]}, 1)}]}, lambda d, s: d["a"][0]["b"][0]["c"].append(rand(1)))
case("tuple_of_tensors", lambda: {"hidden": (rand(2, 3), rand(2, 3))}, lambda d, s: d.update(hidden=tuple(t + 1 for t in d["hidden"])))
case("tuple_with_a_list", lambda: {"t": (1, [2])}, lambda d, s: d["t"][1].append(s))
case("thousand_tensors", lambda: {f"t{i}": rand(3) for i in range(1000)}, lambda d, s: [t.add_(1) for t in d.values()])
case("ten_thousand_keys", lambda: {}, lambda d, s: d.update({(s, i): i for i in range(2000)}))
case("large_bytes", lambda: {"b": b""}, lambda d, s: d.update(b=random.randbytes(3 << 20 if s == 2 else 9)))
case("large_tensor_comes", lambda: {"t": rand(1)}, lambda d, s: d.update(t=rand(1 << 20) if s in (2, 5) else rand(5)))

# --- keys: what could be one name for two ---------------------------------------------------------------------------------

case("keys_of_many_types", lambda: {1: rand(1), "1": rand(1), (1,): rand(1), None: rand(1), True and "True": rand(1), b"1": rand(1)},
     lambda d, s: [t.add_(s) for t in d.values()])
case("key_one_and_float", lambda: {1.5: rand(1), "1.5": rand(1), -1: rand(2)}, lambda d, s: [t.add_(s) for t in d.values()])
case("keys_with_dots", lambda: {"a.b": rand(2), "a": {"b": rand(3)}, "a/b": rand(4)},
     lambda d, s: (d["a.b"].add_(1), d["a"]["b"].add_(2), d["a/b"].add_(3)))
case("keys_of_list_and_dict", lambda: {"x": [rand(1)], "x.0": rand(1), "x[0]": rand(1)}, lambda d, s: (d["x"][0].add_(1), d["x.0"].add_(2)))
case("odd_keys", lambda: {"": rand(1), "__metadata__": rand(1), "ключ 鍵 \u0301": rand(1), "a\nb\t\"'\\": rand(1), " ": rand(1), "\0": rand(1)},
     lambda d, s: [t.add_(s) for t in d.values()])
case("key_that_is_no_utf8", lambda: {"\udc80": rand(1), "v": "\ud800"}, lambda d, s: d["\udc80"].add_(1), may_refuse=True)
case("long_keys", lambda: {"k" * 3000: rand(1), "k" * 3001: rand(2)}, lambda d, s: [t.add_(s) for t in d.values()])
case("key_part_and_step", lambda: {"part": rand(1), "step": rand(1), "shard_id": 1, "v": rand(1)}, lambda d, s: d["step"].add_(1))


class Level(enum.Enum):
    LOW, HIGH = 1, 2


class Flag(enum.IntFlag):
    A, B = 1, 2


case("keys_enum", lambda: {Level.LOW: rand(1), "Level.LOW": rand(2)}, lambda d, s: d[Level.LOW].add_(1))

# --- values --------------------------------------------------------------------------------------------------------------

put("numbers", lambda: [0, -1, 1 << 70, True, False, -0.0, 1e308, 5e-324, float("inf"), float("nan"), 1 + 2j], lambda v, s: v + [s * .1])
put("texts", lambda: ["", "ключ", "\0", b"\xff\0", "x" * 10000], lambda v, s: v + [f"{s}"])
put("decimal", lambda: decimal.Decimal("1.10"), lambda v, s: v * decimal.Decimal("1.1"))
put("fraction", lambda: fractions.Fraction(1, 3), lambda v, s: v + fractions.Fraction(s, 7))
put("enum", lambda: Level.LOW, lambda v, s: Level.HIGH if s in (2, 5) else Level.LOW)
put("flag", lambda: Flag.A, lambda v, s: Flag.A | Flag.B)
put("datetime", lambda: datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), lambda v, s: v + datetime.timedelta(days=s, microseconds=1))
put("date_time_delta", lambda: (datetime.date(2020, 1, 1), datetime.time(1, 2, 3, 4), datetime.timedelta(-1)),
    lambda v, s: (v[0] + datetime.timedelta(s), v[1], v[2] * 2))
put("path", lambda: pathlib.PurePosixPath("/a"), lambda v, s: v / f"b{s}")
put("uuid", lambda: uuid.UUID(int=1), lambda v, s: uuid.UUID(int=v.int + s + 1))
put("range_and_slice", lambda: (range(3), slice(1, 2)), lambda v, s: (range(s), slice(s, None, 2)))
put("types_of_torch", lambda: (torch.float16, torch.device("cpu"), torch.Size([2, 3]), torch.channels_last), lambda v, s: (torch.int8, *v[1:]))
put("numpy_scalars", lambda: [np.float32(1), np.int64(2), np.bool_(True), np.complex128(1j), np.datetime64("2020-01-01", "s"), np.str_("a")],
    lambda v, s: [np.float32(s) / 3, np.int64(-s), np.bool_(s % 2), np.complex128(s), v[4] + np.timedelta64(s, "s"), np.str_("b" * s)])
put("numpy_dtype", lambda: np.dtype("<f4"), lambda v, s: np.dtype([("a", ">i2"), ("b", "f8", (2,))]))
put("functions_of_values", lambda: [np.add, str.upper, math.sqrt, torch.relu, operator.itemgetter(1), functools.partial(round, ndigits=2)],
    lambda v, s: [np.sum if s % 2 else np.add, str.lower, math.cos, torch.sigmoid, operator.itemgetter(s), functools.partial(round, ndigits=s), "x".join],
    see=lambda d: [d["n"], [f(x) for f, x in zip(d["v"], ((1, 2) if d["v"][0] is np.add else (1,), "aB", .5, None, range(9), 1.23456, "ab")) if x is not None and not isinstance(x, tuple)],
                   [f.__name__ for f in d["v"][:4]]])
put("python_array", lambda: array.array("d", [1, 2]), lambda v, s: array.array("d", [*v, s]), may_refuse=True)
put("user_dict", lambda: collections.UserDict(a=rand(1)), lambda v, s: collections.UserDict(a=rand(1), b=s), may_refuse=True)


@dataclasses.dataclass
class Progress:
    step: int = 0
    best: float = float("inf")
    ema: typing.Any = None
    history: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Outer:
    inner: Progress = dataclasses.field(default_factory=Progress)
    table: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Slots:
    step: int = 0
    ema: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    step: int
    ema: typing.Any


@dataclasses.dataclass
class Derived(Progress):
    more: int = 0
    unset: int = dataclasses.field(init=False)
    kind: typing.ClassVar[str] = "x"


@dataclasses.dataclass
class Strict:
    """Its constructor has a condition, and it counts its calls: what is filled in place does not go through it."""

    step: int
    made: typing.ClassVar[int] = 0

    def __post_init__(self):
        Strict.made += 1
        assert self.step == 7


class Point(typing.NamedTuple):
    x: int
    t: typing.Any = None


class Lr(float):
    """A number with a class of its own."""


class Marked(torch.Tensor):
    """A tensor of a class of its own."""


class Stats(dict):
    """A dict with a class and an attribute of its own."""


class Obj:
    def __init__(self):
        self.n, self.t = 0, rand(2)


def stats():
    d = Stats(a=rand(2))
    d.note = "first"
    return d


def change_progress(x, s):
    x.step, x.best, x.ema = s, 1 / (s + 1), rand(2) if x.ema is None else x.ema * .9
    x.history.append(s)


case("dataclass", Progress, change_progress)
case("dataclass_nested", Outer, lambda x, s: (change_progress(x.inner, s), x.table.update({s: rand(1)})))
case("dataclass_rebound", Outer, lambda x, s: setattr(x, "inner", Progress(s, s * .5, rand(2), [s])))
case("dataclass_slots", lambda: Slots(0, rand(2)), lambda x, s: (setattr(x, "step", s), setattr(x, "ema", x.ema + 1)))
case("dataclass_in_dict", lambda: {"p": Progress()}, lambda d, s: change_progress(d["p"], s))
case("dataclass_in_list", lambda: [Progress(), Slots()], lambda x, s: (change_progress(x[0], s), x.append(Slots(s, rand(1)))))
case("dataclass_derived", Derived, lambda x, s: (change_progress(x, s), setattr(x, "more", s), setattr(x, "unset", s)))
case("dataclass_frozen_in_dict", lambda: {"f": Frozen(0, rand(2))}, lambda d, s: d.update(f=dataclasses.replace(d["f"], step=s, ema=rand(3))))
case("dataclass_own_init", lambda: Strict(7), lambda x, s: setattr(x, "step", s), see=lambda x: [x, x.step])
put("namedtuple", lambda: Point(0, rand(2)), lambda v, s: v._replace(x=s, t=v.t + 1))
put("namedtuple_nested", lambda: Point(0, Point(1, [rand(2)])), lambda v, s: Point(s, Point(s, v.t.t + [rand(1)])))
put("packed_sequence", lambda: torch.nn.utils.rnn.pack_sequence([rand(3), rand(2)]), lambda v, s: torch.nn.utils.rnn.pack_sequence([rand(s + 2), rand(2)]),
    may_refuse=True)
put("number_of_own_class", lambda: Lr(1), lambda v, s: Lr(v + 1), may_refuse=True)
case("dict_of_own_class", lambda: {"s": stats()}, lambda d, s: (d["s"].update(a=rand(s + 1)), setattr(d["s"], "note", f"step {s}")), may_refuse=True)
case("own_object", Obj, lambda x, s: x.__dict__.update(n=s, t=x.t + 1), may_refuse=True)
case("own_object_in_dict", lambda: {"o": Obj()}, lambda d, s: d["o"].__dict__.update(n=s, t=d["o"].t + 1), may_refuse=True)

# --- the same object twice -------------------------------------------------------------------------------------------------


def shared_list():
    x = [1]
    return {"a": x, "b": x, "c": {"d": x}}


def shared_tensor():
    t = rand(3)
    return {"a": t, "b": [t], "c": t}


def views_of_one():
    t = rand(6)
    return {"all": t, "head": t[:2], "column": t.view(2, 3)[:, 1]}


def comes_back_to_itself():
    d = {"n": 0, "l": [rand(1)]}
    d["self"] = d
    return d


case("shared_list", shared_list, lambda d, s: d["a"].append(s))
case("shared_tensor", shared_tensor, lambda d, s: d["a"].add_(1))
case("shared_later", lambda: {"a": [1], "b": [1], "t": rand(2), "u": rand(2)}, lambda d, s: d.update(b=d["a"], u=d["t"]) if s == 2 else d["a"].append(s))
case("shared_no_more", shared_list, lambda d, s: d.update(b=list(d["a"]) + [s]) if s == 2 else d["a"].append(s))
case("shared_tensor_no_more", shared_tensor, lambda d, s: d.update(c=d["a"].clone() + 1))
case("views_of_one", views_of_one, lambda d, s: d["all"].add_(s + 1))
case("cycle", comes_back_to_itself, lambda d, s: (d.update(n=s), d["l"].append(rand(1))), may_refuse=True)


def later(name, fill, *keys, make=None, **more):
    """fill(d) in the first step: a restarted script has none of it when it restores.  keys: dicts that it has then."""
    case(name, make or (lambda: {k: {} for k in keys}), lambda d, s: fill(d) if s == 0 else grow(d), **more)


def grow(x):
    """Every tensor in it, each once, without another one in its place."""
    found = {}
    for t in flat(x):
        found.setdefault(t.untyped_storage().data_ptr(), torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()))
    for bytes_ in found.values():
        bytes_.add_(1)


def flat(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for v in (x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()) for t in flat(v)]


def views_later(d):
    t = rand(6)
    d["v"].update(all=t, head=t[:2], column=t.view(2, 3)[:, 1], bits=t.view(torch.int32), back=t)


def head_first(d):
    t = rand(6)
    d["v"].update(head=t[1:3], all=t, apart=t.clone(), tail=[t[4:]])


def block_and_elsewhere(d):
    d["many"].update({f"t{i}": rand(3) for i in range(20)})
    d["one"].update(same=d["many"]["t3"], part=d["many"]["t4"][1:], row=(d["many"]["t5"],))


def elsewhere_and_block(d):
    whole = rand(30)
    d["one"].update(same=rand(3), whole=whole)
    d["many"].update({f"t{i}": whole[i : i + 2] for i in range(20)}, last=d["one"]["same"])


def moments_elsewhere(d):
    p = d["p"]
    p.grad = torch.ones(3)
    d["o"].step()
    d["m"] = d["o"].state[p]["exp_avg"]


def moments_in_one_buffer(d):
    p = d["p"]
    p.grad = torch.ones(3)
    d["o"].step()
    d["flat"] = rand(6)
    d["o"].state[p].update(exp_avg=d["flat"][:3], exp_avg_sq=d["flat"][3:])


def an_optimizer():
    p = torch.nn.Parameter(torch.zeros(3))
    return {"o": torch.optim.Adam([p]), "p": p}


def moments(d):
    return {k: v for k, v in d.items() if k != "o"}, list(d["o"].state[d["p"]].values()) if d["o"].state else []


later("views_come_later", views_later, "v")
later("view_before_its_base", head_first, "v")
later("block_and_elsewhere", block_and_elsewhere, "many", "one")
later("elsewhere_and_block", elsewhere_and_block, "one", "many")
later("half_of_it_there", lambda d: d["late"].update(t=d["t"], head=d["t"][:2], l=[d["t"].view(2, 3)]), make=lambda: {"late": {}, "t": rand(6)})
later("view_of_a_parameter", lambda d: d["late"].update(w=d["m"].weight, row=d["m"].weight.data[1]), make=lambda: {"late": {}, "m": torch.nn.Linear(2, 2)},
      see=lambda d: [d["m"].weight, d["late"]])
later("moments_elsewhere", moments_elsewhere, make=an_optimizer, see=moments)
later("moments_in_one_buffer", moments_in_one_buffer, make=an_optimizer, see=moments)
later("view_of_one_that_grew", lambda d: d["v"].update(t=rand(7)) or d["v"].update(head=d["v"]["t"][2:]), make=lambda: {"v": {"t": rand(3), "head": rand(2)}}, own=False)
later("views_that_can_grow", views_later, "v", see=lambda d: (len(d["v"]), [t.untyped_storage().resizable() for t in flat(d)]))
later("expanded_later", lambda d: d["v"].update(t=rand(1, 3)) or d["v"].update(wide=d["v"]["t"].expand(4, 3), alone=rand(1, 2).expand(3, 2), steps=rand(20)[::3]), "v")
later("arrays_by_column", lambda d: d["v"].update(f=np.asfortranarray(rand(3, 4).numpy()), r=np.frombuffer(b"abcdefgh", "<i4"), c=np.zeros((2, 2))), "v")
case("best_is_a_copy", lambda: {"now": rand(4), "best": None}, lambda d, s: d.update(now=d["now"] + 1, best=d["now"].clone() if s == 1 else d["best"]))

# --- numpy -----------------------------------------------------------------------------------------------------------------

DTYPES = ["<f8", "<f2", ">f4", ">i2", ">u8", ">c16", "<u2", "?", "<c8", "g", "S3", "<U5", ">U2", "M8[us]", "m8[s]", "V5"]


def typed(dtype, n):
    raw = np.random.default_rng(n).integers(1, 100, 4 * n)
    return raw.astype("S3" if dtype == "V5" else dtype).astype(dtype).reshape(4, n)


def numpy(name, make, **more):
    def change(d, s):
        new = make(s + 2)
        if new.shape == d["held"].shape:
            d["held"][...] = new
        d["rebound"] = make(s + 3)

    case(name, lambda: {"held": make(1), "rebound": make(1)}, change, **more)


case("numpy_of_many_types", lambda: {t: typed(t, 3) for t in DTYPES}, lambda d, s: [a.__setitem__(Ellipsis, typed(t, s + 4)[:, :3]) for t, a in d.items()])
case("numpy_rebound_of_many_types", lambda: {t: typed(t, 3) for t in DTYPES}, lambda d, s: d.update({t: typed(t, s + 1) for t in DTYPES}))
case("numpy_alone", lambda: np.zeros(3), lambda a, s: a.__iadd__(s))
case("numpy_structured", lambda: {"t": np.zeros(3, [("a", "<i4"), ("b", ">f8"), ("s", "S4"), ("v", "<f4", (2, 2))])},
     lambda d, s: (d["t"]["a"].__iadd__(s), d["t"]["b"].fill(s / 3), d["t"]["s"].fill(b"ab"), d["t"]["v"].fill(s)))
case("numpy_aligned_structure", lambda: np.zeros(4, np.dtype([("a", "u1"), ("b", "<f8")], align=True)), lambda a, s: a["b"].fill(s))
case("numpy_rec", lambda: {"r": np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])}, lambda d, s: d["r"].a.fill(s), may_refuse=True)
numpy("numpy_zero_size", lambda s: np.zeros((0, 3), "<f4"))
numpy("numpy_0d", lambda s: np.array(s * 1.5))
numpy("numpy_0d_structured", lambda s: np.array((s, s), [("a", "<i8"), ("b", ">u2")]))
numpy("numpy_fortran", lambda s: np.asfortranarray(np.arange(6.0).reshape(2, 3) * s))
numpy("numpy_strided", lambda s: (np.arange(20) * s)[::-2])
numpy("numpy_grows", lambda s: np.arange(s * 10))
numpy("numpy_large", lambda s: np.full(1 << 17, s, "<i8"))
put("numpy_read_only", lambda: np.frombuffer(b"abcdefgh", "<i4"), lambda v, s: np.frombuffer(bytes([s] * 8), "<i4"))
put("numpy_broadcast", lambda: np.broadcast_to(np.arange(3), (2, 3)), lambda v, s: np.broadcast_to(np.arange(3) + s, (s + 1, 3)))
put("numpy_objects", lambda: np.array([1, "a", None], object), lambda v, s: np.array([s, [s], {"x": s}], object), may_refuse=True)
put("numpy_masked", lambda: np.ma.array([1, 2], mask=[0, 1]), lambda v, s: np.ma.array([s, 2, 3], mask=[1, 0, s % 2]), may_refuse=True)
put("numpy_matrix", lambda: np.asmatrix(np.eye(2)), lambda v, s: np.asmatrix(np.eye(2) * s), may_refuse=True)

# --- tensors ---------------------------------------------------------------------------------------------------------------

TORCH = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int64, torch.uint8, torch.uint16, torch.uint32,
         torch.uint64, torch.bool, torch.complex64, torch.complex128, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2,
         torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


def bits(dtype, s, *shape):
    """Any bits at all: NaN and others that arithmetic would not keep."""
    size = torch.empty((), dtype=dtype).element_size()
    n = int(np.prod(shape))
    raw = torch.from_numpy(np.random.default_rng(s).integers(0, 2 if dtype is torch.bool else 256, n * size).astype("u1"))
    return raw.view(dtype).reshape(shape)


def refill(d, s):
    for i, (key, t) in enumerate(d.items()):
        t.view(torch.uint8).copy_(bits(t.dtype, s + 10 + i, *t.shape).view(torch.uint8))


case("types_side_by_side", lambda: {str(t): bits(t, 1, 3) for t in TORCH}, refill)
case("complex128_beside_another", lambda: {"a": rand(3), "c": torch.zeros(5, dtype=torch.complex128)}, lambda d, s: d["c"].add_(1j))
case("types_rebound", lambda: {str(t): bits(t, 1, 3) for t in TORCH}, lambda d, s: d.update({str(t): bits(t, s, s + 1, 2) for t in TORCH}))
case("types_0d", lambda: {str(t): bits(t, 1) for t in TORCH}, lambda d, s: d.update({str(t): bits(t, s + 1) for t in TORCH}))
case("tensor_alone", lambda: rand(3), lambda t, s: t.add_(s))
case("tensor_expanded_alone", lambda: rand(1, 3).expand(4, 3), lambda t, s: t[:1].add_(1), may_refuse=True)
case("tensor_data_set", lambda: {"t": rand(3)}, lambda d, s: setattr(d["t"], "data", rand(s + 1, 2)))
case("tensor_resized", lambda: {"t": rand(3)}, lambda d, s: d["t"].resize_(s + 4).copy_(rand(s + 4)))
case("parameter_in_dict", lambda: {"p": torch.nn.Parameter(rand(3))}, lambda d, s: d["p"].data.add_(1))
case("tensor_that_wants_gradients", lambda: {"t": rand(3, requires_grad=True)}, lambda d, s: setattr(d["t"], "data", d["t"].data + 1))
case("tensor_of_a_graph", lambda: {"loss": rand(3, requires_grad=True).sum()}, lambda d, s: d.update(loss=d["loss"] + s),
     see=lambda d: d["loss"].item(), own=False)
tensor("tensor_0d", lambda s: torch.tensor(s * 1.5))
tensor("tensor_zero_size", lambda s: torch.zeros(0, s))
tensor("tensor_zero_size_kept", lambda s: torch.zeros(3, 0, 2))
tensor("tensor_transposed", lambda s: torch.arange(6.).reshape(2, 3).mul(s).t())
tensor("tensor_strided", lambda s: (torch.arange(40.) * s)[1::3])
tensor("tensor_channels_last", lambda s: rand(2, 3, 4, 5).mul(s).to(memory_format=torch.channels_last))
tensor("tensor_conj_view", lambda s: torch.view_as_complex(rand(3, 2)).mul(s).conj())
tensor("tensor_neg_view", lambda s: torch.view_as_complex(rand(3, 2)).mul(s).conj().imag)
tensor("tensor_pinned_like", lambda s: rand(3).mul(s).share_memory_())
tensor("tensor_of_numpy", lambda s: torch.from_numpy(np.arange(5) * s))
put("tensor_expanded", lambda: rand(1, 3).expand(4, 3), lambda v, s: rand(1, 3).expand(s + 1, 3))
put("tensor_overlapping", lambda: rand(6).as_strided((3, 3), (1, 1)), lambda v, s: rand(6).as_strided((3, 3), (1, 1)), own=False)
put("tensor_sparse_coo", lambda: torch.eye(3).to_sparse(), lambda v, s: (v * 2 + torch.eye(3).roll(s, 0).to_sparse()))
put("tensor_sparse_not_coalesced", lambda: torch.sparse_coo_tensor([[0, 0]], [1., 2.], (2,)), lambda v, s: torch.sparse_coo_tensor([[1, 1, 0]], [1., 2., s], (2,)))
put("tensor_sparse_hybrid", lambda: torch.sparse_coo_tensor([[0]], rand(1, 2), (3, 2)), lambda v, s: torch.sparse_coo_tensor([[0, 2]], rand(2, 2), (3, 2)))
put("tensor_sparse_empty", lambda: torch.zeros(3).to_sparse(), lambda v, s: torch.zeros(4).to_sparse())
put("tensor_csr", lambda: torch.eye(3).to_sparse_csr(), lambda v, s: (torch.eye(3) * (s + 1)).roll(1, 0).to_sparse_csr())
put("tensor_csc", lambda: torch.eye(3).to_sparse_csc(), lambda v, s: (torch.eye(3) * (s + 1)).to_sparse_csc(), may_refuse=True)
put("tensor_bsr", lambda: torch.eye(4).to_sparse_bsr((2, 2)), lambda v, s: (torch.eye(4) * (s + 1)).to_sparse_bsr((2, 2)), may_refuse=True)
put("tensor_quantized", lambda: torch.quantize_per_tensor(rand(4), .1, 3, torch.qint8), lambda v, s: torch.quantize_per_tensor(rand(4), .1 + s, s, torch.quint8))
put("tensor_quantized_channels", lambda: torch.quantize_per_channel(rand(2, 3), torch.tensor([.1, .2]), torch.tensor([0, 1]), 0, torch.qint8),
    lambda v, s: torch.quantize_per_channel(rand(2, 3), torch.tensor([.1 * (s + 1), .2]), torch.tensor([s, 1]), 0, torch.qint8))
put("tensor_nested", lambda: torch.nested.nested_tensor([rand(2), rand(3)]), lambda v, s: torch.nested.nested_tensor([rand(s + 1), rand(3)]), may_refuse=True)
case("sparse_in_place", lambda: {"g": torch.zeros(3).to_sparse()}, lambda d, s: d["g"].add_(torch.tensor([1., 0, s]).to_sparse()))
put("quantized_scale_changes", lambda: torch.quantize_per_tensor(rand(4), .1, 3, torch.qint8), lambda v, s: torch.quantize_per_tensor(rand(4), .1 * (s + 2), s, torch.qint8))
case("quantized_in_place", lambda: {"q": torch.quantize_per_tensor(rand(4), .1, 3, torch.qint8)},
     lambda d, s: d["q"].copy_(torch.quantize_per_tensor(rand(4), .1, 3, torch.qint8)))

case("sparse_alone", lambda: torch.zeros(3).to_sparse(), lambda t, s: t.add_(torch.tensor([1., 0, s]).to_sparse()))
case("sparse_that_wants_gradients", lambda: {"p": torch.nn.Parameter(torch.eye(3).to_sparse()), "t": torch.eye(2).to_sparse().requires_grad_()},
     lambda d, s: (d["p"].data.mul_(2), d["t"].data.mul_(s + 2)))
case("csr_alone", lambda: torch.eye(3).to_sparse_csr(), lambda t, s: t.resize_as_sparse_((torch.ones(3, 3) * s).to_sparse_csr()).copy_((torch.ones(3, 3) * s).to_sparse_csr()))
case("quantized_alone", lambda: torch.quantize_per_tensor(rand(4), .1, 3, torch.qint8), lambda t, s: t.copy_(torch.quantize_per_tensor(rand(4), .1 * (s + 2), s, torch.qint8)))


def inference():
    with torch.inference_mode():
        return {"t": rand(3) + 1}


def in_inference(d, s):
    with torch.inference_mode():
        d["t"].add_(s)


case("tensor_of_inference_mode", inference, in_inference)
case("tensor_of_inference_mode_alone", lambda: inference()["t"], lambda t, s: in_inference({"t": t}, s))
case("tied_across_names", lambda: (lambda t: A(a={"w": t}, b={"w": t}))(rand(3)), lambda x, s: x.a["w"].add_(1))

# --- generators --------------------------------------------------------------------------------------------------------------

case("generator_of_torch", torch.Generator, lambda g, s: torch.rand(3 + s, generator=g))
case("generator_of_numpy", lambda: np.random.default_rng(1), lambda g, s: g.normal(size=3 + s))
case("generator_of_random", lambda: random.Random(1), lambda g, s: [g.gauss(0, 1) for _ in range(3 + s)])
case("random_state_of_numpy", lambda: np.random.RandomState(1), lambda g, s: g.normal(size=3 + s))
for kind in (np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM):
    case(f"generator_{kind.__name__}", lambda kind=kind: {"g": np.random.Generator(kind(1))}, lambda d, s: d["g"].integers(0, 9, 3 + s))
case("generators_in_dict", lambda: {"t": torch.Generator().manual_seed(1), "n": np.random.default_rng(1), "r": random.Random(1)},
     lambda d, s: (torch.rand(2, generator=d["t"]), d["n"].random(), d["r"].random()))


def spawn(rng):
    return [child.bit_generator.random_raw() for child in rng.spawn(2)]


def one_below_two():
    bits = np.random.MT19937(5)
    return {"a": np.random.Generator(bits), "b": np.random.Generator(bits), "old": np.random.RandomState(bits), "seed": bits.seed_seq, "bits": bits}


class Dice(random.Random):
    """A generator with a class of its own."""


case("generator_that_spawns", lambda: np.random.default_rng(1), lambda g, s: spawn(g))
case("generator_that_spawns_of_any_seed", lambda: {"g": np.random.default_rng()}, lambda d, s: d.update(drawn=spawn(d["g"])) if s else
     d.update(g=np.random.default_rng(7)))
case("seed_sequences", lambda: {"s": np.random.SeedSequence(1), "wide": np.random.SeedSequence([2, 3], spawn_key=(4,), pool_size=8)},
     lambda d, s: [seed.spawn(s + 1) for seed in d.values()])
case("seed_sequence_rebound", lambda: {"s": np.random.SeedSequence(1)}, lambda d, s: d.update(s=d["s"].spawn(1)[0]))
case("two_generators_of_one_source", lambda: {}, lambda d, s: d["a"].random() if s else d.update(one_below_two()))
case("two_generators_of_one_source_kept", one_below_two, lambda d, s: (d["a"].spawn(1), d["old"].normal()))
case("bit_generator_alone", lambda: np.random.PCG64(1), lambda b, s: (b.random_raw(), b.seed_seq.spawn(2)))
case("random_state_of_another_source", lambda: {"r": np.random.RandomState(1)}, lambda d, s: d["r"].normal() if s else d.update(r=np.random.RandomState(np.random.Philox(4))),
     own=False)
case("generator_of_own_class", lambda: {"r": None}, lambda d, s: d["r"].random() if s else d.update(r=Dice(3)))


class Sampler:
    """A loader's sampler: it holds the generator that is declared."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(1)
        self.source = np.random.default_rng(1)


case("generator_that_a_loader_holds", lambda: (lambda x: A(x=x, loader=A(g=x.generator, n=x.source)))(Sampler()),
     lambda c, s: (torch.randperm(5, generator=c.loader.g), c.loader.n.permutation(5)), what=lambda c: {"t": c.x.generator, "n": c.x.source},
     see=lambda c: {"loader": c.loader.g, "sampler": c.loader.n, "mine": c.x.generator})

# --- classes with a state of their own -----------------------------------------------------------------------------------------


class Loader:
    """Keeps what it is given: it must stay what it was when later snapshots are written, and it must be the loader's own."""

    def __init__(self):
        self.state = {"epoch": 0, "order": rand(4), "inner": {"seen": []}}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


class Copies(Loader):
    """As an EMA of diffusers: a copy out, and values of many kinds."""

    def state_dict(self):
        return {"order": self.state["order"].clone(), "epoch": self.state["epoch"], "inner": {"seen": list(self.state["inner"]["seen"])}}


class Listed(Loader):
    """Its state is no dict."""

    def state_dict(self):
        return [self.state["order"], self.state["epoch"]]

    def load_state_dict(self, state):
        self.state.update(order=state[0], epoch=state[1])


class Grows(Loader):
    """A cursor whose state has other keys in each step, and whose load looks for all of them."""

    def state_dict(self):
        return {"epoch": self.state["epoch"], **{f"worker{i}": {"at": i, "t": torch.full((1,), float(i))} for i in range(self.state["epoch"] + 1)}}

    def load_state_dict(self, state):
        assert sorted(state) == sorted(["epoch", *(f"worker{i}" for i in range(state["epoch"] + 1))])
        self.state["epoch"] = state["epoch"]


class Nothing(Loader):
    """Its state is empty or None until it has begun."""

    def __init__(self):
        self.n = None

    def state_dict(self):
        return {} if self.n is None else {"n": self.n}

    def load_state_dict(self, state):
        self.n = state.get("n")


def move_on(x, s):
    x.state["epoch"] = s
    x.state["order"] = x.state["order"] + 1
    x.state["inner"]["seen"].append(s)


def in_place(x, s):
    x.state["epoch"] = s
    x.state["order"].add_(1)


class Given(Loader):
    """Its state is whatever it was given."""

    def state_dict(self):
        return self.state["epoch"]

    def load_state_dict(self, state):
        self.state["epoch"] = state


class Ordered(collections.OrderedDict):
    pass


class Rows(list):
    """Its constructor wants something."""

    def __init__(self, what):
        super().__init__([what])


class Window(collections.deque):
    pass


class Kinds(set):
    pass


class Buffer(bytearray):
    pass


class Numbers(array.array):
    pass


class Noted(Point):
    """A namedtuple that has room for attributes."""


class Slotted(dict):
    __slots__ = ("note",)


def noted(x, note):
    x.note = note
    return x


OWN = {
    "dict": lambda s: noted(Stats(a=rand(2)), s), "ordered": lambda s: noted(Ordered(b=rand(1), a=s), [s]), "list": lambda s: noted(Rows(rand(2)), s),
    "deque": lambda s: noted(Window([s, 1, 2, 3], maxlen=3), s), "set": lambda s: noted(Kinds([s]), s), "bytearray": lambda s: noted(Buffer(b"ab"), s),
    "array": lambda s: Numbers("d", [s]), "namedtuple": lambda s: noted(Noted(s, rand(2)), s), "slots": lambda s: noted(Slotted(a=s), s),
    "ordered_dict": lambda s: noted(collections.OrderedDict(a=s), s), "defaultdict": lambda s: collections.defaultdict(list, {s: [rand(1)]}),
    "without_attributes": lambda s: Stats(a=rand(2), b=Ordered(c=s)),
}


def read_own(x):
    """All of it, attributes, too."""
    if isinstance(x, torch.Tensor):
        return [x, sorted(vars(x).items())]
    more = [sorted(vars(x).items())] if hasattr(x, "__dict__") else []
    more += [x.note] if isinstance(x, Slotted) else []
    if isinstance(x, dict):
        return [type(x), [(k, read_own(v)) for k, v in x.items()], *more]
    return [type(x), [read_own(v) for v in x], *more] if isinstance(x, (list, tuple)) else [type(x), x, *more]


for kind, of in OWN.items():
    case(f"state_of_own_{kind}", Given, lambda x, s, of=of: x.state.update(epoch={"deep": [of(s)]}), see=lambda x: read_own(x.state["epoch"]), own=False)
    case(f"state_that_is_own_{kind}", Given, lambda x, s, of=of: x.state.update(epoch=of(s)), see=lambda x: read_own(x.state["epoch"]), own=False)
for kind, of in {"array": lambda s: np.arange(s), "generator": lambda s: np.random.default_rng(s), "sparse": lambda s: torch.eye(2).mul(s).to_sparse(),
                 "tensor_class": lambda s: torch.rand(2).as_subclass(Marked)}.items():
    case(f"state_that_is_{kind}", Given, lambda x, s, of=of: x.state.update(epoch=of(s + 1)), see=lambda x: x.state["epoch"], own=False)
case("own_containers_come_later", lambda: {}, lambda d, s: d.update(a=Stats(x=s), l=Rows(s), n=Numbers("d", [s]), b=Buffer(b"abc"), o=Ordered(a=rand(2))), see=read_own, own=False)
case("tensor_with_attributes", lambda: {"t": rand(2), "p": torch.nn.Parameter(rand(2))}, lambda d, s: (noted(d["t"], s), d.update(new=noted(rand(2), f"step {s}"))),
     see=lambda d: [read_own(t) for t in d.values()])
class Counts(Loader):
    """What it has loaded is seen from outside: declare() must not have tried it."""

    loads = []

    def load_state_dict(self, state):
        self.loads.append(state["epoch"])
        self.state = state


class CountsPlain(Counts):
    """It would be copied without a trace."""

    def __init__(self):
        self.state = {"epoch": 0, "order": 0, "inner": {"seen": []}}


for kind in (Counts, CountsPlain):
    case(f"own_pair_{kind.__name__}", kind, move_on, beside=lambda x: list(Counts.loads))
case("own_pair", Loader, move_on)
case("own_pair_in_place", Loader, in_place)
case("own_pair_copies", Copies, move_on)
case("own_pair_of_a_list", Listed, move_on)
case("own_pair_in_dict", lambda: {"loader": Loader(), "n": 0}, lambda d, s: (move_on(d["loader"], s), d.update(n=s)))
case("own_pair_in_list", lambda: [Loader(), {"x": [Copies()]}], lambda x, s: (move_on(x[0], s), move_on(x[1]["x"][0], s)))
case("own_pair_grows", Grows, move_on)
case("own_pair_begins_empty", Nothing, lambda x, s: setattr(x, "n", s if s > 1 else None))
case("own_pair_in_dataclass", lambda: Progress(ema=Loader()), lambda x, s: (move_on(x.ema, s), setattr(x, "step", s)))
case("own_pair_in_tuple", lambda: {"t": (Loader(), 1)}, lambda d, s: move_on(d["t"][0], s), may_refuse=True)

# --- what cannot be put back ---------------------------------------------------------------------------------------------------

CANNOT = "in place|put back|put it|restore|fill|cannot"


class Unloadable:
    def state_dict(self):
        return {"a": 1}


class LoadArgs:
    """As DeepSpeed's ZeRO optimizer: it wants another form than it gives."""

    def state_dict(self):
        return {"a": 1}

    def load_state_dict(self, state_dict_list, load_optimizer_states=True):
        return state_dict_list[0]["a"]


class LoadIndex(LoadArgs):
    """The same, which only its body shows."""

    def load_state_dict(self, x, strict=True):
        return x[0]["a"]


class IntKeys(Loader):
    """It looks for a number, and there it is."""

    def state_dict(self):
        return {0: self.state["epoch"]}

    def load_state_dict(self, state):
        self.state["epoch"] = state[0]


class Abstract:
    def state_dict(self):
        return {"a": 1}

    def load_state_dict(self, state):
        """To be written."""
        raise NotImplementedError("later")


class OnlyLoads:
    def load_state_dict(self, state):
        pass


class FailingModule(torch.nn.Module):
    def state_dict(self, *args, **more):
        raise RuntimeError("gather it first")


class Raises:
    def state_dict(self):
        raise RuntimeError("gather it first")

    def load_state_dict(self, state):
        pass


refused("bad_int", lambda: 5, CANNOT)
refused("bad_float", lambda: 5.5, CANNOT)
refused("bad_text", lambda: "text", CANNOT)
refused("bad_bytes", lambda: b"text", CANNOT)
refused("bad_none", lambda: None, CANNOT)
refused("bad_tuple", lambda: (1, 2), CANNOT)
refused("bad_frozenset", lambda: frozenset({1}), CANNOT)
refused("bad_decimal", lambda: decimal.Decimal(1), CANNOT)
refused("bad_enum", lambda: Level.LOW, CANNOT)
refused("bad_numpy_scalar", lambda: np.float64(1), CANNOT)
refused("bad_read_only_array", lambda: np.frombuffer(b"abcdefgh", "<i4"), CANNOT)
refused("bad_seed_sequence", lambda: np.random.SeedSequence(1), CANNOT)
for kind in ("dict", "ordered", "list", "deque", "set", "bytearray", "namedtuple", "slots"):
    refused(f"bad_attributes_of_{kind}", lambda kind=kind: {"deep": [OWN[kind](1)]}, "note")
refused("bad_nested", lambda: torch.nested.nested_tensor([rand(2)]), CANNOT)
refused("bad_meta", lambda: torch.zeros(3, device="meta"), "meta")
refused("bad_meta_in_dict", lambda: {"deep": [{"x": torch.zeros(3, device="meta")}]}, "meta")
refused("bad_meta_module", lambda: torch.nn.Linear(2, 2, device="meta"), "meta")
refused("bad_lambda", lambda: {"fn": lambda: 0}, "fn")
refused("bad_deep_lambda", lambda: {"a": [1, {"fn": lambda: 0}]}, "fn")
refused("bad_lock", lambda: {"lock": threading.Lock()}, "lock")
refused("bad_file", lambda: {"log": io.BufferedReader(io.BytesIO())}, "log")
refused("bad_python_generator", lambda: {"it": (i for i in range(3))}, "it")
refused("bad_module", lambda: {"os": types}, "os")
refused("bad_weakref", lambda: {"ref": weakref.ref(Obj)}, "ref")
refused("bad_thread", lambda: {"t": threading.Thread()}, "t")
refused("bad_system_random", lambda: random.SystemRandom(), "SystemRandom|state")
refused("bad_no_load", Unloadable, "no load_state_dict()")
refused("bad_only_loads", OnlyLoads, "no state_dict()")
refused("bad_no_load_in_dict", lambda: {"deep": [Unloadable()]}, "no load_state_dict()")
refused("bad_index", LoadIndex, "wants a list")
refused("bad_abstract", Abstract, "NotImplementedError")
refused("bad_class_itself", lambda: torch.nn.Linear, "declare an object of it")
refused("bad_bound_method", lambda: {"f": [1].append}, "f")
refused("bad_partial", lambda: {"f": functools.partial(print, [1])}, "f")
refused("bad_module_whose_state_fails", lambda: FailingModule(), "gather it first")
refused("bad_other_form", LoadArgs, "load_state_dict|state_dict_list")
refused("bad_raises", Raises, "gather it first")
refused("bad_class", lambda: Obj, CANNOT + "|class|type")
refused("bad_function", lambda: rand, CANNOT + "|function")


def optim_state(steps=0, kind=torch.optim.Adam):
    net = torch.nn.Linear(2, 2)
    optim = kind(net.parameters())
    for _ in range(steps):
        net(rand(2)).sum().backward()
        optim.step()
    return optim.state_dict()


def schedule_state(kind, *args):
    return kind(torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1), *args).state_dict()


ITSELF = "this is a copy of {0}'s state, out of which {0} is not restored: declare the "
refused("bad_copy_of_an_optimizer", optim_state, ITSELF.format("an optimizer") + "optimizer itself")
refused("bad_copy_of_an_optimizer_that_has_stepped", lambda: optim_state(2), ITSELF.format("an optimizer") + "optimizer itself")
refused("bad_copies_as_in_a_checkpoint", lambda: {"model": torch.nn.Linear(2, 2).state_dict(), "optim": optim_state(1), "epoch": 3},
        '"optim": ' + ITSELF.format("an optimizer") + "optimizer itself")
refused("bad_copy_of_a_schedule", lambda: {"sched": schedule_state(torch.optim.lr_scheduler.StepLR, 3)}, '"sched": ' + ITSELF.format("a scheduler"))
refused("bad_copy_of_a_plateau", lambda: schedule_state(torch.optim.lr_scheduler.ReduceLROnPlateau), ITSELF.format("a scheduler"))
refused("bad_copy_of_a_scaler", lambda: torch.amp.GradScaler("cpu").state_dict(), ITSELF.format("a scaler"))


class Beside:
    """Lives on beside what is declared."""

    alive: list = []

    def __init__(self, kind=torch.optim.Adam, schedule=torch.optim.lr_scheduler.StepLR, steps=2, layers=1, stays=True, **how):
        self.net = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(layers)])
        self.optim = kind(self.net.parameters(), lr=.1, **how)
        self.schedule = schedule(self.optim, 3)
        for _ in range(steps):
            self.step()
        if stays:
            Beside.alive.append(self)

    def step(self):
        self.net(rand(2)).sum().backward()
        self.optim.step()
        self.schedule.step()

    def states(self, how=copy.deepcopy):
        return {"optim": how(self.optim.state_dict()), "epoch": 1}


class AcceleratedOptimizer:
    """As that of accelerate: its groups are another object's."""

    def __init__(self, b, scaler=None):
        self.optimizer, self.scaler = b.optim, scaler

    param_groups = property(lambda self: self.optimizer.param_groups)

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state)


def shallow(state):
    return {**state, "state": {k: dict(v) for k, v in state["state"].items()}}


def views(state):
    return {**state, "state": {k: {n: t.detach() for n, t in v.items()} for k, v in state["state"].items()}}


def living_groups():
    b = Beside()
    return {"state": copy.deepcopy(b.optim.state_dict()["state"]), "param_groups": b.optim.param_groups}


def shallow_groups():
    state = living_groups()
    return {**state, "param_groups": [dict(g) for g in state["param_groups"]]}


def with_epoch(state):
    return {**state, "epoch": 3}


EVERY = "itself; a copy that is to be kept beside it, as the best one so far, is declared behind every optimizer, and one of class "
BEHIND, DEEP = "itself; a copy that is to be kept beside it, as the best one so far, is declared behind it", "itself; what is to be kept beside it, as the best one so far, is its copy.deepcopy()"
for how in (dict, copy.copy, shallow, views, with_epoch):
    refused(f"bad_{how.__name__}_of_a_living_optimizer", lambda how=how: Beside().states(how), '"optim": ' + ITSELF.format("an optimizer") + "optimizer " + DEEP)
for half in (living_groups, shallow_groups):
    refused(f"bad_copy_with_{half.__name__}", half, ITSELF.format("an optimizer") + "optimizer " + DEEP)
refused("bad_copy_beside_its_optimizer", lambda: (lambda b: {"best": b.optim.state_dict(), "optim": b.optim})(Beside()), '"best": ' + ITSELF.format("an optimizer") + "optimizer " + DEEP)
refused("bad_copy_of_a_living_schedule", lambda: {"sched": Beside().schedule.state_dict()}, '"sched": ' + ITSELF.format("a scheduler") + "scheduler " + DEEP)
refused("bad_copy_before_the_first_step", lambda: Beside(steps=0).states(), BEHIND)
refused("bad_copy_without_moments", lambda: Beside(torch.optim.SGD).states(), BEHIND)
case("best_optimizer_so_far", lambda: Beside().states(), lambda d, s: d.update(Beside(steps=s + 1).states()) if s in (1, 4) else None)
case("best_optimizer_so_far_changed", lambda: Beside().states(), lambda d, s: d["optim"]["state"][0]["exp_avg"].add_(1))
case("best_schedule_so_far", lambda: {"sched": copy.deepcopy(Beside().schedule.state_dict())}, lambda d, s: d["sched"].update(last_epoch=s))
refused("bad_copy_beside_another_optimizer", lambda: (lambda g, d: {"g": g.optim, "d": d.optim.state_dict()})(Beside(steps=0), Beside(steps=0)),
        '"d": ' + ITSELF.format("an optimizer") + "optimizer " + EVERY)
refused("bad_copy_without_moments_beside_another_optimizer", lambda: (lambda g, d: {"g": g.optim, "d": d.states()})(Beside(torch.optim.SGD), Beside(torch.optim.SGD)),
        '"d.optim": ' + ITSELF.format("an optimizer") + "optimizer " + EVERY)
refused("bad_copy_beside_another_scaler", lambda: (lambda g, d: Beside.alive.extend([g, d]) or {"g": g, "d": d.state_dict()})(torch.amp.GradScaler("cpu"), torch.amp.GradScaler("cpu")),
        '"d": ' + ITSELF.format("a scaler") + "scaler " + EVERY.replace("optimizer", "scaler"))
case("best_of_two_optimizers", lambda: (lambda g, d: {"g": g.optim, "best": g.states()})(Beside(), Beside()), lambda d, s: d["best"].update(epoch=s),
     see=lambda d: [d["best"], d["g"].state_dict()])
case("best_of_two_before_the_first_step", lambda: (lambda g, d: {"best": g.states(), "g": g.optim, "d": d.optim})(Beside(steps=0, layers=3, stays=False), Beside(steps=0, layers=3, stays=False)),
     lambda d, s: d["best"].update(epoch=s), see=lambda d: [d["best"], d["g"].state_dict(), d["d"].state_dict()])
for first in ("best", "optim"):
    case(f"best_before_the_first_step_{first}_first", lambda first=first: (lambda b: dict(sorted({"optim": b.optim, **{"best": b.states()}}.items(), reverse=first == "optim")))(Beside(steps=0, layers=2 + (first == "best") * 2, stays=False)),
         lambda d, s: d["best"].update(epoch=s), see=lambda d: [d["best"], d["optim"].state_dict()])
for steps in (0, 2):
    case(f"best_beside_a_wrapped_optimizer_of_{steps}", lambda steps=steps: (lambda b: {"it": AcceleratedOptimizer(b), "best": copy.deepcopy(b.states())})(Beside(steps=steps, layers=17 + steps, stays=False)),
         lambda d, s: d["best"].update(epoch=s), see=lambda d: [d["best"], d["it"].state_dict()])
refused("bad_scaler_beside_a_wrapped_optimizer", lambda: (lambda s: Beside.alive.append(s) or {"it": AcceleratedOptimizer(Beside(torch.optim.SGD), s), "scaler": s.state_dict()})(torch.amp.GradScaler("cpu")),
        '"scaler": ' + ITSELF.format("a scaler") + "scaler ")
refused("bad_copy_beside_its_schedule_alone", lambda: (lambda b: {"sched": b.schedule, "optim": b.states()})(Beside(steps=0, layers=31)),
        '"optim.optim": ' + ITSELF.format("an optimizer") + "optimizer " + BEHIND)
case("own_dict_like_an_optimizer_state", lambda: {"state": {"x": 1}, "param_groups": ["a"]}, lambda d, s: d["state"].update(x=s))
case("state_dict_of_a_module", lambda: torch.nn.Linear(2, 2).state_dict(), lambda d, s: d["weight"].data.add_(1))
case("copy_that_comes_later", lambda: {"best": None}, lambda d, s: d.update(best=optim_state(s)))
refused("bad_module_random", lambda: {"rng": random}, '"rng": the module random is no object: declare elrun.Rng()')
refused("bad_module_of_numpys_random_numbers", lambda: np.random, 'the module numpy.random is no object: declare elrun.Rng()')
refused("bad_loader_without_a_place", lambda: {"data": torch.utils.data.DataLoader([1, 2, 3])}, 'DataLoader does not say where it stands: see "Data and random numbers"')
refused("bad_data_loader", lambda: {"it": iter(torch.utils.data.DataLoader([1, 2, 3]))}, "it")

case("own_pair_with_numbers", IntKeys, lambda x, s: x.state.update(epoch=s))

# --- random numbers: last, since every case before draws some ------------------------------------------------------------------

case("random_numbers", elrun.Rng, lambda r, s: (torch.rand(s + 3), random.gauss(0, 1), np.random.normal()),
     see=lambda r: [torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate()], own=False)

if __name__ == "__main__":
    main()
