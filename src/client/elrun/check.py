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
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import special
from .generators import generator, layer_below
from .objects import fields_of
from .packets import Extent
from .parts import OWN, AnyPart, Part, one_segment
from .special import PICKLE
from .tree import (ArrayNode, BytesNode, DoorNode, EmptyNode, FieldsNode, GeneratorNode, MappingNode, ModuleNode, OptimizerNode,
                   Packed, Plain, SavedNode, SequenceNode, SetNode, ShardedOptimizerNode, SparseNode, TensorNode, a_class)
from .values import has_pair, is_value, numpy, torch

SAID_MAX = 5  # differences of one part that are told
_open: List[int] = []  # ids of the containers that are being looked at


def compare(parts: List[AnyPart], memory: memoryview, where: List[Extent]) -> Iterator[str]:
    """One text for each part that differs: where, and how."""
    images = {part.name: memory[extent.at : extent.at + extent.bytes] for part, extent in zip(parts, where)}
    own = _Saved(images[OWN]) if OWN in images else None
    for part in parts:
        if not isinstance(part, Part):
            continue
        holds, names = live(part.value), _names_of(part.value)
        shared = _Saved(images[part.name])
        yield from _told(f'part "{part.name}"', holds, names, shared)
        if own is not None and part.name in own.tree:
            what = f'part "{part.name}", what this rank has of its own'
            yield from _told(what, holds, names, _Saved(images[part.name], own, part.name))


def _told(what: str, holds: Any, names: Dict[str, str], saved: "_Saved") -> Iterator[str]:
    found = list(differences(holds, saved.value(saved.tree), ""))
    kept = {path: first for path, first in saved.names().items() if path in names}
    found += [f"{path} is {_the_same(first)}, saved is {_the_same(kept[path])}"
              for path, first in names.items() if path in kept and kept[path] != first]
    if found:
        more = f" and {len(found) - SAID_MAX} more" if len(found) > SAID_MAX else ""
        yield f'{what}: {"; ".join(found[:SAID_MAX])}{more}'


def _the_same(first: str) -> str:
    return f'the same as {first or "the whole"}' if first != "-" else "another one"


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _names_of(value: Any) -> Dict[str, str]:
    """Of what stands in containers, by path: where the same object stood before; "-": it is the first."""
    seen: Dict[int, str] = {}
    names: Dict[str, str] = {}

    def visit(path: str, one: Any) -> None:
        if is_value(one):
            return
        names[path] = seen.setdefault(id(one), path) if seen.get(id(one), path) != path else "-"
        seen.setdefault(id(one), path)
        if names[path] == "-" and not has_pair(one):
            for key, child in _members(one):
                visit(_join(path, key), child)

    visit("", value)
    return names


def _members(value: Any) -> List[Tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, collections.deque)):
        return list(enumerate(value))
    if isinstance(value, tuple):
        return list(zip(getattr(type(value), "_fields", None) or range(len(value)), value))
    return list((fields_of(value) or {}).items()) if generator(value) is None and not special.is_tensor(value) else []


def differences(a: Any, b: Any, path: str) -> Iterator[str]:
    """a: what the object holds; b: what was saved."""
    where = path or "(itself)"
    if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0] == "items" and a[2] and b[2] and a[2] != b[2]:
        yield f"{where} is {a[2]}, saved is {b[2]}"
    elif not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] != b[0]:
        if a != b and not (a != a and b != b):
            yield f"{where} is {_short(a)}, saved is {_short(b)}"
    elif a[0] == "items":
        mine, theirs = a[1], b[1]
        if list(mine) != list(theirs):
            lost, new = [k for k in mine if k not in theirs], [k for k in theirs if k not in mine]
            yield f"{where} has other keys: {_short(lost)} not saved, {_short(new)} not there" if lost or new else f"{where}: keys in another order"
        for key in mine:
            if key in theirs:
                yield from differences(mine[key], theirs[key], _join(path, key))
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
    if tensor.is_meta:  # only within what was pickled whole
        return "meta", str(tensor.dtype).replace("torch.", ""), tuple(tensor.shape)
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
        whole = live(value.state_dict(), True)
        return _items({**whole[1], "state": _in_order(whole[1]["state"])}) if special.is_stock_optimizer(value) else whole
    node = generator(value)
    if node is not None:
        return _live_generator(value, node)
    if has_pair(value):
        return live(special.state_of(value), True)
    return _live_container(value, False)


def _items(items: Dict[Any, Any], kind: str = "") -> Tuple[str, Dict[Any, Any], str]:
    """kind: what contains them, "" where that does not count."""
    return "items", items, kind


def _kind(cls: Any, factory: Any, maxlen: Any) -> str:
    more = [f" of {getattr(factory, '__name__', factory)}"] if factory is not None else []
    return a_class(cls) + "".join(more + ([f" of {maxlen} at most"] if maxlen is not None else []))


def _kind_of(value: Any) -> str:
    return _kind(type(value), getattr(value, "default_factory", None), getattr(value, "maxlen", None))


def _in_order(state: Any) -> Any:
    """States of parameters are listed as they came into being, or by number."""
    return _items(dict(sorted(state[1].items(), key=lambda item: (type(item[0]).__name__, item[0] if type(item[0]) is int else repr(item[0])))))


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
    state = module.state_dict()
    return _items({k: live(v, True) for k, v in state.items()}) if isinstance(state, dict) else live(state, True)


def _live_container(value: Any, inside: bool) -> Any:
    if id(value) in _open:  # within itself: only in what was pickled whole
        return "again", len(_open) - _open.index(id(value))
    _open.append(id(value))
    try:
        return _content(value, inside)
    finally:
        _open.pop()


def _content(value: Any, inside: bool) -> Any:
    if isinstance(value, dict):
        return _items({k: live(v, inside) for k, v in value.items()}, _kind_of(value))
    if isinstance(value, (list, collections.deque)):
        return _items({i: live(v, inside) for i, v in enumerate(value)}, _kind_of(value))
    if isinstance(value, set):
        return "set", a_class(value), frozenset(map(_frozen, value))
    if is_value(value):
        return "value", type(value).__name__, _frozen(value)
    if type(value) is tuple or hasattr(type(value), "_fields"):
        return _items({i: live(v, inside) for i, v in enumerate(value)}, _kind_of(value))
    if isinstance(value, bytearray):
        return "bytes", a_class(value), bytes(value)
    if isinstance(value, array.array):
        return "bytes", a_class(value) + value.typecode, value.tobytes()
    names = None if inside else fields_of(value)
    if names is not None:
        return _items({k: live(v) for k, v in names.items()}, _kind_of(value))
    data = pickle.dumps(value, PICKLE)
    return "odd", special.to_bytes(value) if b"torch" in data else data


def _frozen(value: Any) -> Any:
    """Something that can be compared, a number that is none included."""
    if isinstance(value, frozenset):
        return type(value).__name__, frozenset(map(_frozen, value))
    return (type(value).__name__, *map(_frozen, value)) if isinstance(value, tuple) else pickle.dumps(value, PICKLE)


# --- what was saved -----------------------------------------------------------------------------------------------------


class _Saved:
    """A file, read by its header.  own: that with a rank's own pieces, of which those of one part count before the file's."""

    def __init__(self, image: memoryview, own: Optional["_Saved"] = None, part: str = ""):
        data = image
        (n,) = struct.unpack("<Q", data[:8])
        self.rows: Dict[str, Any] = json.loads(bytes(data[8 : 8 + n]))
        mine = json.loads(self.rows.pop("__metadata__")["elrun"])
        notes, self.rank = mine["tensors"], mine["shard_id"][4:]
        self.data = data[8 + n :]
        [blob] = [name for name, note in notes.items() if note.get("object") == "pickle"]
        at, _ = self.rows[blob]["data_offsets"]
        (n,) = struct.unpack("<Q", self.data[at : at + 8])
        self.tree: Any = pickle.loads(own.tree[part] if own else bytes(self.data[at + 8 : at + 8 + n]))
        self.own, self.part = own, part

    def bytes_of(self, name: str) -> memoryview:
        if self.own:
            mine = f"r{int(self.own.rank):05d}/{one_segment(self.part)}/{name}"
            if mine in self.own.rows:
                return self.own.bytes_of(mine)
        at, end = self.rows[name]["data_offsets"]
        return self.data[at:end]

    def digest(self, name: str) -> bytes:
        return hashlib.blake2b(self.bytes_of(name), digest_size=16).digest()

    def value(self, node: Any) -> Any:
        return self._READ[type(node)](self, node)

    def names(self) -> Dict[str, str]:
        """As _names_of() has it, of what was saved."""
        seen: Dict[Any, str] = {}
        names: Dict[str, str] = {}

        def visit(path: str, node: Any, of: int = 0) -> None:
            if isinstance(node, Plain) and not isinstance(node.value, (list, dict)):
                return
            if isinstance(node, TensorNode) and node.place is not None:
                of = node.place.object
            key = ("object", of) if of else ("node", id(node))
            names[path] = seen[key] if key in seen else "-"
            seen.setdefault(key, path)
            if names[path] != "-":
                return
            children: Any = ()
            if isinstance(node, Packed) and not node.values:
                block, (_, objects, _) = pickle.loads(node.tree), pickle.loads(node.places)
                if isinstance(block, (MappingNode, SequenceNode)):
                    items = block.items if isinstance(block, MappingNode) else enumerate(block.items)
                    for (key_, child), tensor in zip(items, objects):
                        visit(_join(path, key_), child, tensor)
                return
            if isinstance(node, MappingNode):
                children = node.items
            elif isinstance(node, SequenceNode):
                children = zip(getattr(node.cls, "_fields", None) or range(len(node.items)), node.items)
            elif isinstance(node, FieldsNode):
                children = node.items.items()
            for key, child in children:
                visit(_join(path, key), child)

        visit("", self.tree)
        return names

    def _plain(self, node: Plain) -> Any:
        return _live_container(node.value, False)

    def _tensor(self, node: TensorNode) -> Any:
        return "tensor", node.dtype, tuple(node.shape), self.digest(node.name)

    def _array(self, node: ArrayNode) -> Any:
        data = self.bytes_of(node.name)
        found = numpy().frombuffer(data, "u1").view(node.dtype) if len(data) else numpy().empty(0, node.dtype)
        return "array", node.dtype.str, tuple(node.shape), _digest(found)

    def _sparse(self, node: SparseNode) -> Any:
        names = {"sparse_coo": ("indices", "values"), "sparse_csr": ("crow_indices", "col_indices", "values"),
                 "sparse_bsr": ("crow_indices", "col_indices", "values")}
        return _items(dict(zip(names.get(node.layout, ("ccol_indices", "row_indices", "values")), map(self.value, node.members))))

    def _odd(self, node: SavedNode) -> Any:
        value = special.from_bytes(node.data) if node.how == "torch" else pickle.loads(node.data)
        if isinstance(value, (dict, list, tuple, set, collections.deque, bytearray, array.array)):
            return live(value, True)  # a container of another class was pickled whole
        return "odd", node.data

    def _mapping(self, node: MappingNode) -> Any:
        return _items({k: self.value(v) for k, v in node.items}, _kind(node.cls, node.extra, None))

    def _sequence(self, node: SequenceNode) -> Any:
        return _items({i: self.value(v) for i, v in enumerate(node.items)}, _kind(node.cls, None, node.maxlen))

    def _set(self, node: SetNode) -> Any:
        return "set", a_class(node.cls), frozenset(_frozen(n.value) for n in node.items)

    def _fields(self, node: FieldsNode) -> Any:
        return _items({k: self.value(v) for k, v in node.items.items()}, _kind(node.cls, None, None))

    def _generator(self, node: GeneratorNode) -> Any:
        return "generator", _frozen((node.kind, node.detail, node.state)), None if node.inner is None else self.value(node.inner)

    def _door(self, node: DoorNode) -> Any:
        if type(node.state) is tuple:
            return self.value(node.state[0])  # of a module: the state and its versions
        return self.value(node.state)

    def _module(self, node: ModuleNode) -> Any:
        return _items(dict(zip(node.keys, map(self.value, node.tensors))))

    def _optimizer(self, node: OptimizerNode) -> Any:
        groups, n = [], 0
        for group, shapes in zip(node.groups, node.shapes):
            items = self.value(group)[1]
            groups.append(_items({**items, "params": live(list(range(n, n + len(shapes))))}))
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
        cls, shapes, layout, at, tensors, _ = tree
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
        BytesNode: lambda self, node: ("bytes", a_class(node.cls) + node.code, node.data), EmptyNode: lambda self, node: ("empty",),
    }
