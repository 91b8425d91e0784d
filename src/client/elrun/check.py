"""--ckpt-check: is what lies in the slot what the objects hold?

It is found out by another way than the one by which it came there: the objects are asked through their public
state_dict(), without the blocks of objects.py; the file is read by its header alone, without the layout that wrote it.
Both become nested tuples, and these are compared.  Slow: everything is copied twice."""

from __future__ import annotations

import array
import collections
import hashlib
import json
import pickle
import struct
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import special
from .generators import generator, layer_below
from .objects import fields_of
from .packets import Extent
from .parts import AnyPart, Part
from .special import PICKLE
from .tree import (ArrayNode, BytesNode, DoorNode, EmptyNode, FieldsNode, GeneratorNode, MappingNode, ModuleNode, OptimizerNode,
                   Packed, Plain, SavedNode, SequenceNode, SetNode, ShardedOptimizerNode, SparseNode, TensorNode)
from .values import has_pair, is_value, numpy, torch

SAID_MAX = 5  # differences of one part that are told


def compare(parts: List[AnyPart], memory: memoryview, where: List[Extent]) -> Iterator[str]:
    """One text for each part that differs: where, and how."""
    for part, extent in zip(parts, where):
        if not isinstance(part, Part):
            continue
        saved = _Saved(memory[extent.at : extent.at + extent.bytes])
        found = list(differences(live(part.value), saved.value(saved.tree), ""))
        if found:
            more = f" and {len(found) - SAID_MAX} more" if len(found) > SAID_MAX else ""
            yield f'part "{part.name}": {"; ".join(found[:SAID_MAX])}{more}'


def differences(a: Any, b: Any, path: str) -> Iterator[str]:
    """a: what the object holds; b: what was saved."""
    where = path or "(itself)"
    if not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] != b[0]:
        if a != b and not (a != a and b != b):
            yield f"{where} is {_short(a)}, saved is {_short(b)}"
    elif a[0] == "items":
        mine, theirs = a[1], b[1]
        if list(mine) != list(theirs):
            lost, new = [k for k in mine if k not in theirs], [k for k in theirs if k not in mine]
            yield f"{where} has other keys: {_short(lost)} not saved, {_short(new)} not there" if lost or new else f"{where}: keys in another order"
        for key in mine:
            if key in theirs:
                yield from differences(mine[key], theirs[key], f"{path}.{key}" if path else str(key))
    elif a[:-1] != b[:-1]:
        yield f"{where} is {_short(a[:-1])}, saved is {_short(b[:-1])}"
    elif a[-1] != b[-1]:
        yield f"{where} has other values"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


# --- what the objects hold ----------------------------------------------------------------------------------------------


def _bytes_of(tensor: Any) -> Tuple[Any, ...]:
    th = torch()
    t = getattr(tensor, "_local_tensor", tensor).detach().cpu()
    for undo in ("resolve_conj", "resolve_neg"):
        t = getattr(t, undo)() if hasattr(t, undo) else t
    t = t.clone(memory_format=th.contiguous_format)  # contiguous() leaves odd strides where a dimension has one element
    data = bytes(t.reshape(-1).view(th.uint8).numpy()) if t.numel() else b""
    return "tensor", str(t.dtype).replace("torch.", ""), tuple(t.shape), hashlib.blake2b(data, digest_size=16).digest()


def live(value: Any, inside: bool = False) -> Any:
    """inside: a state_dict() gave it, so it is not asked for one itself."""
    th, np = torch(), numpy()
    if th is not None and isinstance(value, th.Tensor):
        return _live_tensor(value)
    if np is not None and isinstance(value, np.ndarray):
        return _live_array(value)
    if inside:
        return _live_container(value, True)
    if th is not None and isinstance(value, th.nn.Module):
        return _live_module(special.unwrap(value))
    if th is not None and isinstance(value, th.optim.Optimizer):
        if special.is_zero_optimizer(value):
            groups = [live({k: v for k, v in g.items() if k != "params"}, True) for g in value.param_groups]
            return _items({"local": live(value.optim), "groups": _items(dict(enumerate(groups)))})
        kind, items = live(value.state_dict(), True)
        return _items({**items, "state": _in_order(items["state"])}) if special.is_stock_optimizer(value) else (kind, items)
    node = generator(value)
    if node is not None:
        return _live_generator(value, node)
    if has_pair(value):
        return live(special.state_of(value), True)
    return _live_container(value, False)


def _items(items: Dict[Any, Any]) -> Tuple[str, Dict[Any, Any]]:
    return "items", items


def _in_order(state: Any) -> Any:
    """States of parameters are listed as they came into being, or by number."""
    return _items(dict(sorted(state[1].items(), key=lambda item: (type(item[0]).__name__, item[0]))))


def _live_tensor(value: Any) -> Any:
    if special.is_lazy(value):
        return ("empty",)
    if special.has_members(value):
        members, _ = special.sparse_members(value)
        return _items({name: _bytes_of(member) for name, member in members})
    if value.layout is not torch().strided or special.is_odd(value) or not special.is_plain_class(value):
        return "odd", special.to_bytes(value)
    return _bytes_of(value)


def _live_array(value: Any) -> Any:
    np = numpy()
    if type(value) not in (np.ndarray, np.memmap, np.recarray, np.matrix) or value.dtype.hasobject:
        return "odd", pickle.dumps(value, PICKLE)
    return "array", value.dtype.str, tuple(value.shape), _digest(value)


def _digest(value: Any) -> Any:
    """Of all elements; of those with fields without what lies between them."""
    value = numpy().asarray(value)
    if value.dtype.names:
        return tuple(_digest(value[name]) for name in value.dtype.names)
    return hashlib.blake2b(value.tobytes(), digest_size=16).digest()


def _live_generator(value: Any, node: GeneratorNode) -> Any:
    name, below = layer_below(value)
    return "generator", _frozen((node.kind, node.detail, node.state)), live(below) if name else None


def _live_module(module: Any) -> Any:
    if special.is_fsdp1(module):
        return _items({e.key: _bytes_of(e.tensor) for e in special.module_entries(module, [], [], {})})
    return _items({k: live(v, True) for k, v in module.state_dict().items()})


def _live_container(value: Any, inside: bool) -> Any:
    if isinstance(value, dict):
        return _items({k: live(v, inside) for k, v in value.items()})
    if isinstance(value, (list, collections.deque)):
        return _items({i: live(v, inside) for i, v in enumerate(value)})
    if isinstance(value, set):
        return "set", frozenset(map(_frozen, value))
    if is_value(value):
        return "value", type(value).__name__, _frozen(value)
    if type(value) is tuple or hasattr(type(value), "_fields"):
        return _items({i: live(v, inside) for i, v in enumerate(value)})
    if isinstance(value, bytearray):
        return "bytes", bytes(value)
    if isinstance(value, array.array):
        return "bytes", value.tobytes()
    names = None if inside else fields_of(value)
    if names is not None:
        return _items({k: live(v) for k, v in names.items()})
    data = pickle.dumps(value, PICKLE)
    return "odd", special.to_bytes(value) if b"torch" in data else data


def _frozen(value: Any) -> Any:
    """Something that can be compared, a number that is none included."""
    if isinstance(value, frozenset):
        return type(value).__name__, frozenset(map(_frozen, value))
    return (type(value).__name__, *map(_frozen, value)) if isinstance(value, tuple) else pickle.dumps(value, PICKLE)


# --- what was saved -----------------------------------------------------------------------------------------------------


class _Saved:
    """A file, read by its header."""

    def __init__(self, image: memoryview):
        data = image
        (n,) = struct.unpack("<Q", data[:8])
        self.rows: Dict[str, Any] = json.loads(bytes(data[8 : 8 + n]))
        notes = json.loads(self.rows.pop("__metadata__")["elrun"])["tensors"]
        self.data = data[8 + n :]
        [blob] = [name for name, note in notes.items() if note.get("object") == "pickle"]
        at, _ = self.rows[blob]["data_offsets"]
        (n,) = struct.unpack("<Q", self.data[at : at + 8])
        self.tree = pickle.loads(bytes(self.data[at + 8 : at + 8 + n]))

    def digest(self, name: str) -> bytes:
        at, end = self.rows[name]["data_offsets"]
        return hashlib.blake2b(self.data[at:end], digest_size=16).digest()

    def value(self, node: Any) -> Any:
        return self._READ[type(node)](self, node)

    def _plain(self, node: Plain) -> Any:
        return _live_container(node.value, False)

    def _tensor(self, node: TensorNode) -> Any:
        return "tensor", node.dtype, tuple(node.shape), self.digest(node.name)

    def _array(self, node: ArrayNode) -> Any:
        at, end = self.rows[node.name]["data_offsets"]
        found = numpy().frombuffer(self.data[at:end], "u1").view(node.dtype) if end > at else numpy().empty(0, node.dtype)
        return "array", node.dtype.str, tuple(node.shape), _digest(found)

    def _sparse(self, node: SparseNode) -> Any:
        names = {"sparse_coo": ("indices", "values"), "sparse_csr": ("crow_indices", "col_indices", "values"),
                 "sparse_bsr": ("crow_indices", "col_indices", "values")}
        return _items(dict(zip(names.get(node.layout, ("ccol_indices", "row_indices", "values")), map(self.value, node.members))))

    def _odd(self, node: SavedNode) -> Any:
        return "odd", node.data

    def _mapping(self, node: MappingNode) -> Any:
        return _items({k: self.value(v) for k, v in node.items})

    def _sequence(self, node: SequenceNode) -> Any:
        return _items({i: self.value(v) for i, v in enumerate(node.items)})

    def _set(self, node: SetNode) -> Any:
        return "set", frozenset(_frozen(n.value) for n in node.items)

    def _fields(self, node: FieldsNode) -> Any:
        return _items({k: self.value(v) for k, v in node.items.items()})

    def _generator(self, node: GeneratorNode) -> Any:
        return "generator", _frozen((node.kind, node.detail, node.state)), None if node.inner is None else self.value(node.inner)

    def _door(self, node: DoorNode) -> Any:
        if isinstance(node.state, tuple) and len(node.state) == 2 and isinstance(node.state[1], Plain) and not hasattr(node.state, "_fields"):
            return self.value(node.state[0])  # of a module: the state and its versions
        return self.value(node.state)

    def _module(self, node: ModuleNode) -> Any:
        return _items(dict(zip(node.keys, map(self.value, node.tensors))))

    def _optimizer(self, node: OptimizerNode) -> Any:
        groups, n = [], 0
        for group, shapes in zip(node.groups, node.shapes):
            kind, items = self.value(group)
            groups.append((kind, {**items, "params": live(list(range(n, n + len(shapes))))}))
            n += len(shapes)
        state = {k: self.value(v) for k, v in node.state}
        return _items({"state": _in_order(_items(state)), "param_groups": _items(dict(enumerate(groups)))})

    def _sharded(self, node: ShardedOptimizerNode) -> Any:
        return _items({"local": self.value(node.local), "groups": _items(dict(enumerate(map(self.value, node.groups))))})

    def _packed(self, node: Packed) -> Any:
        tree = pickle.loads(node.tree)
        if not node.values:
            return self.value(tree)
        groups, others, inner = node.values
        cls, shapes, layout, at, tensors = tree
        by_place, rest = dict(zip(at, tensors)), iter(others)
        state, n = [], 0
        for owner, keys in layout:
            items = [(key, by_place[i] if i in by_place else Plain(next(rest))) for i, key in enumerate(keys, n)]
            state.append((owner, MappingNode(dict, items, None)))
            n += len(keys)
        return self._optimizer(OptimizerNode(cls, shapes, groups, state, inner))

    _READ: Dict[type, Callable[["_Saved", Any], Any]] = {
        Plain: _plain, TensorNode: _tensor, ArrayNode: _array, SparseNode: _sparse, SavedNode: _odd, MappingNode: _mapping,
        SequenceNode: _sequence, SetNode: _set, FieldsNode: _fields, GeneratorNode: _generator, DoorNode: _door, ModuleNode: _module,
        OptimizerNode: _optimizer, ShardedOptimizerNode: _sharded, Packed: _packed,
        BytesNode: lambda self, node: ("bytes", node.data), EmptyNode: lambda self, node: ("empty",),
    }
