"""Reads an object to the last bit and says where two readings differ, for the state_*.sh tests.

freeze(x) turns x into tuples of plain values that can be pickled: types, dtypes, shapes, bytes, order of keys, and which
mutable objects and which storages are the same ones.  It knows nothing of elrun and shares no code with it.  What it has
no rule for is a TypeError, so no test passes because nothing was looked at."""
import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import random
import struct
import sys
import types
import uuid

import numpy as np

torch = sys.modules.get("torch")  # only where the script has imported it: it takes seconds

_BY_REPR = (decimal.Decimal, fractions.Fraction, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
            datetime.timezone, pathlib.PurePath, uuid.UUID, range, slice, complex, type, types.FunctionType,
            types.BuiltinFunctionType)


def freeze(value):
    return _Reader(True).read(value, "")


class _Reader:
    def __init__(self, aliases):
        self.aliases = aliases  # False: which objects are the same does not count (a state_dict() makes and takes copies)
        self.module = 0  # within one: what it trains, and which tensors lie in one storage, is not in its state
        self.sparse = 0  # within one: it keeps room for more in its members
        self.seen = {}  # id: path
        self.storages = {}  # (address, device): path
        self.alive = []  # so that no id is used twice

    def read(self, x, path):
        kind = type(x)
        if x is None or kind in (bool, int, str, bytes):
            return (kind.__name__, x)
        if kind is float:
            return ("float", struct.pack(">d", x))
        if isinstance(x, enum.Enum):
            return ("enum", kind.__qualname__, x.name)
        if isinstance(x, np.generic):
            return ("numpy " + _dtype(x.dtype), x.tobytes())
        if isinstance(x, np.dtype):
            return ("numpy.dtype", _dtype(x))
        if torch is not None and isinstance(x, (torch.dtype, torch.device, torch.Size, torch.memory_format, torch.layout)):
            return (kind.__name__, repr(x))
        if isinstance(x, _BY_REPR):
            return (kind.__name__, getattr(x, "__qualname__", None) or repr(x))
        self.alive.append(x)
        if not isinstance(x, (tuple, frozenset)):
            first = self.seen.setdefault(id(x), path)
            if first != path and self.aliases:
                return ("the same as", first)
        return self.kind(x, path)

    def kind(self, x, path):
        kind, name = type(x), type(x).__qualname__
        if torch is not None:
            if isinstance(x, torch.Tensor):
                return self.tensor(x, path)
            if isinstance(x, torch.nn.Module):
                return (name, self.state(x, path))
            if isinstance(x, torch.Generator):
                return (name, x.get_state().numpy().tobytes())
            if hasattr(x, "state_dict"):
                return (name, _Reader(False).read(_in_order(x.state_dict()), path))
        if isinstance(x, np.ndarray):
            return self.array(x, path)
        if isinstance(x, np.random.Generator):
            return (name, self.read(x.bit_generator, path + ".bit_generator"))
        if isinstance(x, np.random.BitGenerator):
            return (name, self.read(x.state, path + ".state"), self.read(getattr(x, "seed_seq", None), path + ".seed_seq"))
        if isinstance(x, np.random.RandomState):
            return (name, self.read(x.get_state(legacy=False), path + ".state"), self.read(x._bit_generator, path + "._bit_generator"))
        if isinstance(x, np.random.SeedSequence):
            return (name, self.read(x.state, path + ".state"))
        if isinstance(x, random.Random):
            return (name, x.getstate())
        if isinstance(x, (bytearray, array.array)):
            return (name, bytes(x), getattr(x, "typecode", ""))
        if isinstance(x, (set, frozenset)):
            return (name, sorted((self.read(v, f"{path}{{{v!r}}}") for v in x), key=repr))
        if isinstance(x, dict):
            more = getattr(x, "default_factory", None)
            extra = _attributes(x) if kind.__module__ not in ("builtins", "collections") else {}
            items = [(self.read(k, path), self.read(v, f"{path}[{k!r}]")) for k, v in x.items()]
            return (name, getattr(more, "__name__", None), items, self.read(extra, path + ".__dict__") if extra else None)
        if isinstance(x, (list, tuple, collections.deque)):
            items = [self.read(v, f"{path}[{i}]") for i, v in enumerate(x)]
            return (name, getattr(x, "maxlen", None), getattr(x, "_fields", None), items)
        if isinstance(x, (collections.UserDict, collections.UserList)):
            return (name, self.read(x.data, path + ".data"))
        if dataclasses.is_dataclass(x):
            fields = [(f.name, self.read(getattr(x, f.name, "(unset)"), f"{path}.{f.name}")) for f in dataclasses.fields(x)]
            return (name, fields)
        if isinstance(x, types.SimpleNamespace) or hasattr(x, "__dict__"):
            return (name, [(k, self.read(v, f"{path}.{k}")) for k, v in sorted(vars(x).items())])
        raise TypeError(f"{path}: no rule to read a {kind}")

    def state(self, module, path):
        """Its state_dict(), sorted: the order depends on how a module came to what it is."""
        self.module += 1
        try:
            return self.read(dict(sorted(module.state_dict(keep_vars=True).items())), path)
        finally:
            self.module -= 1

    def tensor(self, t, path):
        if isinstance(t, torch.nn.parameter.UninitializedTensorMixin):
            return (type(t).__name__, "not made yet")
        shape = "nested" if t.is_nested else tuple(t.shape)
        what = [type(t).__name__, str(t.dtype), shape, str(t.layout), str(t.device), t.requires_grad and not self.module]
        t = t.detach()
        if t.device.type == "meta":
            return (*what, "no values")
        if t.is_nested:
            return (*what, [self.tensor(p, f"{path}<{i}>") for i, p in enumerate(t.unbind())])
        if t.layout != torch.strided and not t.is_mkldnn:
            self.sparse += 1
            try:
                return self.members(t, path, what)
            finally:
                self.sparse -= 1
        if t.is_quantized:
            scheme = t.qscheme()
            how = ((t.q_scale(), t.q_zero_point()) if scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric) else
                   (t.q_per_channel_scales().tolist(), t.q_per_channel_zero_points().tolist(), t.q_per_channel_axis()))
            return (*what, str(scheme), how, _raw(t.int_repr()))
        if self.aliases and not self.module and t.numel():
            key = ((t.untyped_storage if hasattr(t, "untyped_storage") else t.storage)().data_ptr(), str(t.device))
            first = self.storages.setdefault(key, path)
            if first != path:
                what.append(f"in the storage of {first}")
            if not _overlaps(t) and not self.sparse:
                what.append(("stride", *t.stride()))
        return (*what, _raw(t))

    def members(self, t, path, what):
        if t.layout == torch.sparse_coo:
            return (*what, t.is_coalesced(), self.tensor(t._indices(), path + ".indices"),
                    self.tensor(t._values(), path + ".values"))
        if t.layout in (torch.sparse_csr, torch.sparse_bsr):
            return (*what, *(self.tensor(p, path) for p in (t.crow_indices(), t.col_indices(), t.values())))
        if t.layout in (torch.sparse_csc, torch.sparse_bsc):
            return (*what, *(self.tensor(p, path) for p in (t.ccol_indices(), t.row_indices(), t.values())))
        raise TypeError(f"{path}: no rule to read {t.layout}")

    def array(self, a, path):
        extra = []
        if isinstance(a, np.ma.MaskedArray):
            extra = [self.array(np.asarray(np.ma.getmaskarray(a)), path + ".mask"), self.read(a.fill_value, path)]
            a = a.data
        if a.dtype.hasobject:
            return ("ndarray", "object", a.shape, [self.read(v, f"{path}.flat[{i}]") for i, v in enumerate(a.flat)], *extra)
        layout = ("by column" if a.flags.f_contiguous and not a.flags.c_contiguous else "", a.flags.writeable)
        return (type(a).__name__, _dtype(a.dtype), a.shape, layout, _array_bytes(a), *extra)


def _in_order(state):
    """The states of an optimizer stand in the order of their first use, which means nothing."""
    if isinstance(state, dict) and isinstance(state.get("state"), dict):
        state = {**state, "state": dict(sorted(state["state"].items(), key=lambda item: str(item[0]).zfill(9)))}
    return state


def _attributes(x):
    return {k: v for k, v in getattr(x, "__dict__", {}).items() if not callable(v)}


def _dtype(dtype):
    return repr(dtype.descr) if dtype.names else dtype.str


def _array_bytes(a):
    """Its elements in C order.  Bytes between the fields of a structure belong to nobody."""
    if a.dtype.names:
        return tuple(_array_bytes(a[name]) for name in a.dtype.names)
    if a.dtype.char in "gG":  # 10 of the 16 bytes of an x87 number are its own
        return [repr(v) for v in a.flat]
    return np.ascontiguousarray(a).tobytes()


def _overlaps(t):
    """Two elements may lie at one address."""
    extent = 1
    for step, n in sorted((step, n) for n, step in zip(t.shape, t.stride()) if n > 1):
        if 0 < step < extent:
            return True
        extent += (n - 1) * step
    return False


def _raw(t):
    t = t.resolve_conj().resolve_neg().contiguous().reshape(-1).cpu()
    if t.numel() == 0:
        return b""
    return bytes(t.clone().view(torch.uint8).numpy())  # of a clone: an array of numpy pins the storage that it views


def differences(want, got, path=""):
    """Where two readings differ: lines "PATH: WHAT", at most a few."""
    if want == got:
        return []
    if type(want) is type(got) and isinstance(want, (tuple, list)) and len(want) == len(got):
        found = []
        for i, (a, b) in enumerate(zip(want, got)):
            found += differences(a, b, _deeper(path, want, i))
            if len(found) > 4:
                break
        return found
    return [f"{path or 'it'}: want {_short(want)}, got {_short(got)}"]


def _deeper(path, parent, i):
    """A pair ("key", value) gives its key to the path; the rest counts."""
    first = parent[0] if len(parent) == 2 else None
    if isinstance(first, tuple) and len(first) == 2 and i == 1:
        return f"{path}[{first[1]!r}]"
    if isinstance(first, str) and i == 1:
        return f"{path}<{first}>" if not isinstance(parent[1], (bytes, int)) else path
    return f"{path}/{i}" if isinstance(parent, list) else path


def _short(x):
    text = repr(x)
    return text if len(text) < 160 else f"{text[:120]}… ({len(text)} characters)"


# --- objects that the script holds, and that must be filled where they are ----------------------------------------------

_HELD = [list, dict, set, collections.deque, bytearray, np.ndarray, np.random.Generator, random.Random,
         np.random.RandomState, types.SimpleNamespace]


def held(x, path="", found=None):
    """The mutable objects below x that a variable of the script may name: {path: object}."""
    found = {} if found is None else found
    if any(x is o for o in found.values()):
        return found
    mutable = isinstance(x, tuple(_HELD)) or dataclasses.is_dataclass(x) and not isinstance(x, type)
    if torch is not None:
        mutable = mutable or isinstance(x, (torch.Tensor, torch.Generator))
    if mutable or hasattr(x, "load_state_dict"):
        found[path] = x
    if isinstance(x, dict):
        for k, v in x.items():
            held(v, f"{path}[{k!r}]", found)
    elif isinstance(x, list):
        for i, v in enumerate(x):
            if not isinstance(v, (list, dict, set)):  # an inner list may stand elsewhere in the saved one
                held(v, f"{path}[{i}]", found)
    elif dataclasses.is_dataclass(x) or isinstance(x, types.SimpleNamespace):
        names = [f.name for f in dataclasses.fields(x)] if dataclasses.is_dataclass(x) else list(vars(x))
        for name in names:
            if hasattr(x, name):
                held(getattr(x, name), f"{path}.{name}", found)
    return found


def replaced(before, now):
    """Paths where another object lies than before, though the old one could have taken the values."""
    after = held(now)
    lines = []
    for path, old in before.items():
        new = after.get(path)
        if new is None or new is old or type(new) is not type(old) or not _fits(old, new):
            continue
        if any(new is o for o in before.values()):  # the script had it elsewhere: shared now
            continue
        lines.append(f"{path or 'it'}: another {type(old).__name__} than the script's own")
    return lines


def _fits(old, new):
    if isinstance(old, np.ndarray):
        return old.dtype == new.dtype and old.shape == new.shape and old.flags.writeable and not old.dtype.hasobject
    if torch is not None and isinstance(old, torch.Tensor):
        return not (old.is_nested or new.is_nested) and (old.dtype == new.dtype and old.shape == new.shape and old.layout == new.layout == torch.strided and
                not old.is_quantized and (old.numel() < 2 or 0 not in old.stride()))
    if isinstance(old, collections.deque):
        return old.maxlen == new.maxlen
    if dataclasses.is_dataclass(old):
        return not old.__dataclass_params__.frozen
    return True
