"""Puts back what was saved: a module, an optimizer or anything with load_state_dict() by that door, a container and what
is in it in place, so that whoever holds it has it.

It is done in three turns.  First everything is compared and nothing is changed: a Misfit says what differs.  Then the
doors are called; if one of them fails, those before it are called once more with what they held.  What cannot fail comes
last: tensors and containers are filled, and random numbers are what they were when all else has been done."""

from __future__ import annotations

import array
import collections
import copy
import pickle
import random
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import special
from .objects import fields_of, local_of, mesh_of
from .tree import (ArrayNode, BytesNode, DoorNode, EmptyNode, FieldsNode, GeneratorNode, MappingNode, Mesh, Misfit, ModuleNode,
                   OptimizerNode, Packed, Plain, SavedNode, SequenceNode, SetNode, ShardedOptimizerNode, SparseNode, Spread,
                   TensorNode, a_class, class_name, join)
from .values import has_pair, numpy, torch

_NONE = object()
NAMES_MAX = 4  # that differ, in one text


class Fill:
    """One going back.  tensors: what gives the saved bytes of a name, as a tensor or an array that may only be read."""

    def __init__(self, tensors: Callable[[str, Any, Any], Any]):
        self.tensors = tensors
        self.part = ""
        self.meshes: List[Any] = []
        self.made: Dict[int, Any] = {}  # by the id of a node: the object that stands for it
        self.doors: List[Callable[[], Optional[Callable[[], None]]]] = []  # each returns what takes it back
        self.copies: List[Callable[[], None]] = []
        self.last: List[Callable[[], None]] = []
        self.kept: List[Any] = []  # unpacked nodes, whose ids are in made

    def plan(self, part: str, value: Any, node: Any) -> None:
        """What has to be done for one declared object.  Misfit: it cannot be."""
        self.part = part
        look_for_meshes(value, self.meshes)
        if self.put("", value, node) is not value:
            raise self.misfit("", f"{a_class(value)} cannot be filled in place with what was saved")

    def carry_out(self) -> None:
        back: List[Callable[[], None]] = []
        try:
            for door in self.doors:
                undo = door()
                if undo:
                    back.append(undo)
        except Exception:
            for undo in reversed(back):
                try:
                    undo()
                except Exception:  # it has failed before; the first failure is told
                    pass
            raise
        th = torch()
        if th is None:
            for step in self.copies + self.last:
                step()
            return
        with th.no_grad():
            for step in self.copies:
                step()
        for step in self.last:
            step()

    def misfit(self, path: str, why: str) -> Misfit:
        return Misfit(f'part "{self.part}"{f", {path}" if path else ""}: {why}')

    # -- one value: what is there, and what was saved

    def put(self, path: str, old: Any, node: Any) -> Any:
        """What stands in the place of `old` afterwards: `old` itself, filled, where that can be."""
        if isinstance(node, Plain):
            return self._plain(path, old, node)
        if id(node) in self.made:
            made = self.made[id(node)]
            if made is old or not isinstance(node, (TensorNode, ArrayNode)):
                return made
        value = self._put(path, old, node)
        self.made[id(node)] = value
        self.kept.append(node)
        return value

    def _put(self, path: str, old: Any, node: Any) -> Any:
        if isinstance(node, Packed):
            return self._packed(path, old, node)
        if isinstance(node, TensorNode):
            return self._tensor(path, old, node)
        if isinstance(node, (MappingNode, SequenceNode, SetNode, BytesNode, FieldsNode)):
            return self._container(path, old, node)
        if isinstance(node, ArrayNode):
            return self._array(path, old, node)
        if isinstance(node, GeneratorNode):
            return self._generator(path, old, node)
        if isinstance(node, (DoorNode, ModuleNode, OptimizerNode, ShardedOptimizerNode)):
            return self._owner(path, old, node)
        if isinstance(node, SparseNode):
            return self._replace(path, old, lambda: special.make_sparse(
                node.layout, node.shape, [self.new_tensor(path, m) for m in node.members], node.coalesced))
        if isinstance(node, SavedNode):
            return self._saved(path, old, node)
        if isinstance(node, EmptyNode):
            if not special.is_tensor(old) or not special.is_lazy(old):
                raise self.misfit(path, "a parameter without a shape was saved")
            return old
        raise self.misfit(path, f"{class_name(node)} is no node of a tree of this version")

    def _packed(self, path: str, old: Any, node: Packed) -> Any:
        tree = pickle.loads(node.tree)
        if not node.values:
            self.kept.append(tree)
            return self._put(path, old, tree)
        groups, others, inner = node.values
        cls, shapes, layout, at, tensors = tree
        flat: List[Any] = [None] * (len(at) + len(others))
        where = set(at)
        for i, tensor in zip(at, tensors):
            flat[i] = tensor
        rest = iter(others)
        flat = [v if i in where else Plain(next(rest)) for i, v in enumerate(flat)]
        state, n = [], 0
        for owner, keys in layout:
            state.append((owner, MappingNode(dict, list(zip(keys, flat[n : n + len(keys)])), None)))
            n += len(keys)
        whole = OptimizerNode(cls, shapes, groups, state, inner)
        self.kept.append(whole)
        return self._put(path, old, whole)

    def _plain(self, path: str, old: Any, node: Plain) -> Any:
        value = node.value
        if isinstance(value, (list, dict)) and type(old) is type(value):
            self.copies.append(lambda: _refill(old, value))
            return old
        return copy.copy(value) if isinstance(value, (list, dict)) else value

    # -- tensors and arrays

    def _tensor(self, path: str, old: Any, node: TensorNode) -> Any:
        th = torch()
        if th is None:
            raise self.misfit(path, "a tensor of torch was saved, and torch is not imported")
        if not special.is_tensor(old) or not special.is_block_tensor(old):
            return self.new_tensor(path, node)
        local = local_of(old)
        same_kind = (spread_shape(old) == (node.spread.shape if node.spread else None)
                     and str(local.dtype) == f"torch.{node.dtype}")
        saved = self.tensors(node.name, node.dtype, node.shape)
        if same_kind and tuple(local.shape) == node.shape and fits_memory(local, saved):
            self.copies.append(lambda: copy_tensor(local, saved))
            return old
        if not path:
            raise self.misfit("", f"a tensor {node.dtype} of shape {list(node.shape)} was saved, and one "
                                  f"{str(local.dtype)[6:]} of {list(local.shape)} is declared")
        if same_kind and not node.spread and not old.requires_grad and type(old) is th.Tensor and old._base is None:
            new = self.new_tensor(path, node)
            self.copies.append(lambda: old.set_(new.to(old.device)))
            return old
        return self.new_tensor(path, node)

    def new_tensor(self, path: str, node: Any) -> Any:
        """A tensor of its own with the saved values."""
        th = torch()
        if isinstance(node, EmptyNode):
            return th.nn.UninitializedParameter() if node.parameter else th.nn.parameter.UninitializedBuffer()
        made = self.tensors(node.name, node.dtype, node.shape).clone().to(self._device(node.device))
        if node.spread:
            made = self._spread(path, made, node.spread)
        return th.nn.Parameter(made, requires_grad=made.is_floating_point() or made.is_complex()) if node.parameter else made

    def _device(self, name: str) -> Any:
        th = torch()
        device = th.device(name)
        if device.type == "cuda":
            return th.device("cuda", th.cuda.current_device()) if th.cuda.is_available() else th.device("cpu")
        return device

    def _spread(self, path: str, local: Any, spread: Spread) -> Any:
        from torch.distributed.tensor import DTensor

        for mesh in self.meshes:
            if mesh_of(mesh) == spread.mesh or Mesh(mesh.mesh.tolist(), None) == Mesh(spread.mesh.ranks, None):
                return DTensor.from_local(local, mesh, spread.placements, run_check=False, shape=torch().Size(spread.shape),
                                          stride=spread.stride)
        raise self.misfit(path, f"it was spread over the ranks {spread.mesh.ranks}, and nothing that is declared is")

    def _array(self, path: str, old: Any, node: ArrayNode) -> Any:
        np = numpy()
        if np is None:
            raise self.misfit(path, "an array of numpy was saved, and numpy is not imported")
        saved = self.tensors(node.name, node.dtype, node.shape)
        if isinstance(old, np.ndarray) and old.dtype == node.dtype and tuple(old.shape) == node.shape and old.flags.writeable:
            self.copies.append(lambda: np.copyto(old, saved))
            return old
        if not path:
            have = f"{old.dtype} of shape {list(old.shape)}" if isinstance(old, np.ndarray) else class_name(old)
            raise self.misfit("", f"an array {node.dtype} of shape {list(node.shape)} was saved, and {have} is declared")
        return saved.copy()

    def _replace(self, path: str, old: Any, make: Callable[[], Any]) -> Any:
        """A tensor without plain bytes: copied in place where torch can."""
        new = make()
        if special.is_tensor(old) and old.layout == new.layout and old.dtype == new.dtype and old.shape == new.shape:
            self.copies.append(lambda: _copy_odd(old, new))
            return old
        if not path:
            raise self.misfit("", f"a tensor {new.dtype}, {new.layout}, of shape {list(new.shape)} was saved")
        return new

    def _saved(self, path: str, old: Any, node: SavedNode) -> Any:
        np = numpy()
        try:
            new = special.from_bytes(node.data) if node.how == "torch" else pickle.loads(node.data)
        except Exception as e:
            raise self.misfit(path, f"what was saved there cannot be read: {type(e).__name__}: {e}") from None
        if node.how == "torch":
            return self._replace(path, old, lambda: new)
        if np is not None and isinstance(old, np.ndarray) and type(old) is type(new) and old.shape == new.shape and old.dtype == new.dtype:
            self.copies.append(lambda: old.__setitem__(..., new))
            return old
        return new

    # -- containers

    def _container(self, path: str, old: Any, node: Any) -> Any:
        same = type(old) is node.cls
        if isinstance(node, MappingNode):
            return self._mapping(path, old if same else _NONE, node)
        if isinstance(node, SetNode):
            new = [n.value for n in node.items]
            if not same:
                return node.cls(new)
            self.copies.append(lambda: _reset(old, new))
            return old
        if isinstance(node, BytesNode):
            return self._bytes(old if same else _NONE, node)
        if isinstance(node, FieldsNode):
            return self._fields(path, old if same else _NONE, node)
        return self._sequence(path, old if same else _NONE, node)

    def _soon(self, old: Any, fill: Callable[[], None]) -> None:
        """At once where a container is new: a door is to be given it."""
        if old is _NONE:
            fill()
        else:
            self.copies.append(fill)

    def _mapping(self, path: str, old: Any, node: MappingNode) -> Any:
        target = old if old is not _NONE else self._new_mapping(node)
        self.made[id(node)] = target
        items = [(key, self.put(join(path, key), target.get(key, _NONE) if old is not _NONE else _NONE, child)) for key, child in node.items]

        def fill() -> None:
            target.clear()
            for key, value in items:  # not update(): a Counter adds there
                target[key] = value

        self._soon(old, fill)
        return target

    def _new_mapping(self, node: MappingNode) -> Any:
        if issubclass(node.cls, collections.defaultdict):
            return node.cls(node.extra)
        return node.cls()

    def _sequence(self, path: str, old: Any, node: SequenceNode) -> Any:
        if issubclass(node.cls, tuple):
            return self._tuple(path, old, node)
        target = old if old is not _NONE else node.cls([], node.maxlen) if node.maxlen is not None else node.cls()
        maxlen = getattr(target, "maxlen", None)
        if maxlen is not None and maxlen < len(node.items):
            raise self.misfit(path, f"{len(node.items)} elements were saved, and there is room for {maxlen} (maxlen)")
        self.made[id(node)] = target
        before = list(target) if old is not _NONE else []
        items = [self.put(join(path, i), before[i] if i < len(before) else _NONE, child) for i, child in enumerate(node.items)]

        def fill() -> None:
            target.clear()
            target.extend(items)

        self._soon(old, fill)
        return target

    def _tuple(self, path: str, old: Any, node: SequenceNode) -> Any:
        before = list(old) if old is not _NONE else []
        names = getattr(node.cls, "_fields", None) or range(len(node.items))
        items = [self.put(join(path, name), before[i] if i < len(before) else _NONE, child)
                 for i, (name, child) in enumerate(zip(names, node.items))]
        if len(items) == len(before) and all(a is b for a, b in zip(items, before)):
            return old
        return node.cls._make(items) if hasattr(node.cls, "_make") else node.cls(items)

    def _bytes(self, old: Any, node: BytesNode) -> Any:
        if node.cls is not array.array:
            if old is _NONE:
                return node.cls(node.data)
            self.copies.append(lambda: old.__setitem__(slice(None), node.data))
            return old
        if old is _NONE or old.typecode != node.code:
            return array.array(node.code, node.data)

        def fill() -> None:
            del old[:]
            old.frombytes(node.data)

        self._soon(old, fill)
        return old

    def _fields(self, path: str, old: Any, node: FieldsNode) -> Any:
        target = old if old is not _NONE else node.cls.__new__(node.cls)
        self.made[id(node)] = target
        have = fields_of(target) if old is not _NONE else {}
        items = {n: self.put(join(path, n), (have or {}).get(n, _NONE), child) for n, child in node.items.items()}

        def fill() -> None:
            for name in [n for n in (have or {}) if n not in items]:
                object.__delattr__(target, name)
            for name, value in items.items():
                object.__setattr__(target, name, value)

        self._soon(old, fill)
        return target

    # -- generators

    def _at_last(self, live: bool, step: Callable[[], None]) -> None:
        if live:
            self.last.append(step)
        else:
            step()

    def _generator(self, path: str, old: Any, node: GeneratorNode) -> Any:
        th, np = torch(), numpy()
        if node.kind == "python":
            new = old if isinstance(old, random.Random) else random.Random()
            self._at_last(new is old, lambda: new.setstate(node.state))
            return new
        if node.kind == "torch":
            generator = old if th is not None and isinstance(old, th.Generator) else th.Generator(self._device(node.detail))
            self._at_last(generator is old, lambda: generator.set_state(th.frombuffer(bytearray(node.state), dtype=th.uint8)))
            return generator
        if np is None:
            raise self.misfit(path, "a generator of numpy was saved, and numpy is not imported")
        return self._numpy_generator(path, old, node)

    def _numpy_generator(self, path: str, old: Any, node: GeneratorNode) -> Any:
        np = numpy()
        if node.kind == "numpy-legacy":
            legacy = old if isinstance(old, np.random.RandomState) else np.random.RandomState()
            self._at_last(legacy is old, lambda: legacy.set_state(node.state))
            return legacy
        bits = old.bit_generator if isinstance(old, np.random.Generator) else old
        if not isinstance(bits, np.random.BitGenerator):
            bits = getattr(np.random, node.detail)()
        if type(bits).__name__ != node.detail:
            raise self.misfit(path, f"random numbers of {node.detail} were saved, and {type(bits).__name__} is declared")
        self._at_last(old is not _NONE, lambda: setattr(bits, "state", node.state))
        if node.kind == "numpy-bits":
            return bits
        return old if isinstance(old, np.random.Generator) else np.random.Generator(bits)

    # -- doors

    def _owner(self, path: str, old: Any, node: Any) -> Any:
        if special.is_tensor(old) or not has_pair(old):
            kind = node.cls if isinstance(node, DoorNode) else "module" if isinstance(node, ModuleNode) else "optimizer"
            raise self.misfit(path, f"the state of a {kind} was saved, and there is {_described(old)}")
        from .doors import plan_door

        plan_door(self, path, old, node)
        return old

    def make(self, path: str, node: Any) -> Any:
        """A value of its own, for a door."""
        return self.put(path, _NONE, node)


def _described(value: Any) -> str:
    return "nothing" if value is _NONE or value is None else a_class(value)


def spread_shape(tensor: Any) -> Optional[Tuple[int, ...]]:
    return tuple(tensor.shape) if hasattr(tensor, "_local_tensor") else None


def fits_memory(to: Any, saved: Any) -> bool:
    """Where elements share one place in memory (expand()) the saved ones have to be alike."""
    one = saved
    for dim, (n, step) in enumerate(zip(to.shape, to.stride())):
        one = one.narrow(dim, 0, 1) if n > 1 and step == 0 else one
    return one.shape == saved.shape or bool(torch().equal(one.expand_as(saved), saved))


def copy_tensor(to: Any, saved: Any) -> None:
    """In place, also where elements share one place in memory: then the saved ones are alike, too."""
    to = to.detach() if to.requires_grad else to
    for dim, (n, step) in enumerate(zip(to.shape, to.stride())):
        if n > 1 and step == 0:
            to, saved = to.narrow(dim, 0, 1), saved.narrow(dim, 0, 1)
    to.copy_(saved)


def _copy_odd(old: Any, new: Any) -> None:
    old.detach().copy_(new) if not old.is_sparse else old.detach().copy_(new)._coalesced_(new.is_coalesced())


def _reset(old: Any, value: Any) -> None:
    old.clear()
    old.update(value)


def _refill(old: Any, value: Any) -> None:
    old.clear()
    if isinstance(old, dict):
        old.update(value)
    else:
        old.extend(value)


def look_for_meshes(value: Any, to: List[Any], depth: int = 4) -> None:
    """Meshes of the DTensors in what is declared: what is made anew is spread over them."""
    th = torch()
    if th is None or not depth:
        return
    found: List[Any] = []
    if isinstance(value, th.Tensor):
        found = [value]
    elif isinstance(value, th.nn.Module):
        found = [*value.parameters(), *value.buffers()]
    elif isinstance(value, th.optim.Optimizer):
        found = [p for g in value.param_groups for p in g["params"]]
    elif isinstance(value, (dict, list, tuple)):
        for one in value.values() if isinstance(value, dict) else value:
            look_for_meshes(one, to, depth - 1)
    for tensor in found:
        mesh = getattr(tensor, "device_mesh", None)
        if mesh is not None and not any(mesh is m for m in to):
            to.append(mesh)
