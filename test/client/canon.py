"""What an object holds, as nested tuples that can be compared: an independent look, which knows nothing of elrun.

Bits are compared, so that a not-a-number is equal to itself; an object that is met twice is told by the place where it was
met first."""
import array
import collections
import dataclasses
import random
import types

import numpy as np
import torch


def canon(value):
    return _Look().of(value)


def first_difference(a, b, path=""):
    """Where two of them differ, and how; None: nowhere."""
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            found = first_difference(x, y, f"{path}/{x[1]!r:.30}" if type(x) is tuple and x[:1] == ("item",) else path)
            if found:
                return found
    return None if type(a) is type(b) and a == b else f"{path}: {str(a)[:300]} and {str(b)[:300]}"


class _Look:
    """inside: it is in what a state_dict() gave.  Objects there are pickled one by one."""

    def __init__(self, inside=False):
        self.inside = inside
        self.seen = {}
        self.alive = []

    def of(self, value):
        if _is_plain(value):
            return "value", type(value).__name__, _plain(value)
        if id(value) in self.seen:
            return "again", self.seen[id(value)]
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        return self._open(value)

    def _open(self, value):
        if isinstance(value, torch.Tensor):
            return ("meta", tuple(value.shape)) if self.inside and value.is_meta else _tensor(value)
        if isinstance(value, np.ndarray):
            return _array(value)
        if isinstance(value, (torch.nn.Module, torch.optim.Optimizer)) or hasattr(value, "state_dict"):
            return "state", type(value).__name__, _Look(True).of(value.state_dict())
        if isinstance(value, (random.Random, torch.Generator, np.random.Generator, np.random.BitGenerator, np.random.RandomState)):
            return "generator", type(value).__name__, _random(value)
        if isinstance(value, dict):
            extra = getattr(value, "default_factory", None)
            return "dict", type(value).__name__, extra, tuple(("item", _plain(k), self.of(v)) for k, v in value.items())
        if isinstance(value, (list, tuple, collections.deque)):
            return type(value).__name__, getattr(value, "maxlen", None), tuple(("item", i, self.of(v)) for i, v in enumerate(value))
        if isinstance(value, set):
            return "set", tuple(sorted(map(str, map(_plain, value))))
        if isinstance(value, bytearray):
            return "bytearray", bytes(value)
        if isinstance(value, array.array):
            return "array.array", value.typecode, value.tobytes()
        return (_Look(True) if self.inside else self)._fields(value)

    def _fields(self, value):
        names = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        names += [n for n in sorted(getattr(value, "__dict__", ())) if n not in names]
        if isinstance(value, types.SimpleNamespace) or dataclasses.is_dataclass(value):
            return "fields", type(value).__name__, tuple(("item", n, self.of(getattr(value, n))) for n in names if hasattr(value, n))
        if self.inside:
            return "opaque", type(value).__name__
        raise AssertionError(f"canon: a {type(value)}")


def _is_plain(value):
    if isinstance(value, tuple):
        return type(value) is not torch.Size and all(map(_is_plain, value)) or type(value) is torch.Size
    return not isinstance(value, (torch.Tensor, np.ndarray, list, dict, set, bytearray, collections.deque, array.array, torch.nn.Module,
                                  torch.optim.Optimizer, random.Random, torch.Generator, np.random.Generator, np.random.BitGenerator,
                                  np.random.RandomState, types.SimpleNamespace)) \
        and (isinstance(value, type) or not (dataclasses.is_dataclass(value) or hasattr(value, "state_dict")))


def _plain(value):
    if isinstance(value, types.MethodType):
        return "method", value.__qualname__
    if isinstance(value, np.generic):
        return type(value).__name__, value.dtype.str, value.tobytes()
    if isinstance(value, (float, complex)):
        return type(value).__name__, repr(value)
    if isinstance(value, tuple):
        return (type(value).__name__, *map(_plain, value))
    if isinstance(value, (frozenset, set)):
        return (type(value).__name__, *sorted(map(str, map(_plain, value))))
    return type(value).__name__, "" if " at 0x" in repr(value) and not callable(value) else repr(value)


def _bytes(t):
    t = t.detach()
    t = t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return bytes(t.reshape(-1).view(torch.uint8).numpy()) if t.numel() else b""


def _tensor(t):
    if torch.nn.parameter.is_lazy(t):
        return "tensor", type(t).__name__, "lazy"
    kind = "Parameter" if isinstance(t, torch.nn.Parameter) else type(t).__name__
    grad = t.requires_grad if t.is_leaf and t.numel() else None  # an empty view that was written to belongs to its base's graph
    head = "tensor", kind, str(t.dtype), str(t.layout), grad
    if t.is_nested:
        return (*head, tuple(map(_tensor, t.unbind())))
    if t.is_quantized:
        how = t.qscheme()
        scales = (t.q_scale(), t.q_zero_point()) if how is torch.per_tensor_affine else (_bytes(t.q_per_channel_scales()), _bytes(t.q_per_channel_zero_points()))
        return (*head, tuple(t.shape), str(how), scales, _bytes(t.int_repr()))
    if t.is_mkldnn:
        return (*head, tuple(t.shape), _bytes(t.to_dense()))
    if t.layout is torch.sparse_coo:
        return (*head, tuple(t.shape), t.is_coalesced(), _bytes(t._indices()), tuple(t._values().shape), _bytes(t._values()))
    if t.layout in (torch.sparse_csr, torch.sparse_bsr):
        return (*head, tuple(t.shape), _bytes(t.crow_indices()), _bytes(t.col_indices()), tuple(t.values().shape), _bytes(t.values()))
    if t.layout is not torch.strided:
        return (*head, tuple(t.shape), _bytes(t.ccol_indices()), _bytes(t.row_indices()), tuple(t.values().shape), _bytes(t.values()))
    return (*head, tuple(t.shape), _bytes(t))


def _array(a):
    head = "array", type(a).__name__, str(a.dtype), a.dtype.str, a.shape
    if isinstance(a, np.ma.MaskedArray):
        return (*head, _elements(np.ma.getdata(a)), np.ma.getmaskarray(a).tobytes(), repr(a.fill_value))
    if a.dtype.hasobject:
        return (*head, tuple(map(repr, a.reshape(-1))))
    return (*head, _elements(a))


def _elements(a):
    a = np.asarray(a)
    if a.dtype.names:  # what lies between the fields is nothing
        return tuple((n, _elements(a[n])) for n in a.dtype.names)
    return a.tobytes()


def _random(g):
    if isinstance(g, torch.Generator):
        return bytes(g.get_state().numpy())
    if isinstance(g, random.Random):
        return g.getstate()
    if isinstance(g, np.random.RandomState):
        return _tree(g.get_state(legacy=False))
    bits = g.bit_generator if isinstance(g, np.random.Generator) else g
    return type(bits).__name__, _tree(bits.state)


def _tree(value):
    if isinstance(value, dict):
        return tuple((k, _tree(v)) for k, v in value.items())
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)
