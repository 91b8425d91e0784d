"""Blocks: many tensors of one object that are looked up together.

What is large and seldom changes its shape, a module, an optimizer, a dict of many tensors, is a block: if the same objects
with the same shapes still stand in the same dicts, its names and its pickled tree are used again, and only bytes are
copied."""

from __future__ import annotations

import itertools
import operator
import pickle
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

from . import special
from .handlers import raise_of_handler
from .special import PICKLE
from .sharing import pack_places
from .tree import MappingNode, Mesh, ModuleNode, Packed, Refused, SequenceNode, Spread, TensorNode, class_name, join
from .values import SIMPLE, torch

if TYPE_CHECKING:
    from .objects import Walk

_PARAMETERS, _BUFFERS = operator.attrgetter("_parameters"), operator.attrgetter("_buffers")
_SHAPE = operator.attrgetter("shape", "dtype")
_GRAD = operator.attrgetter("requires_grad")
_LOOK = operator.attrgetter("shape", "dtype", "device", "requires_grad", "is_leaf", "layout")
_DICT = operator.attrgetter("__dict__")  # of a tensor: what a script has set on it


class Spec(NamedTuple):
    """How the bytes of one tensor lie in the file."""

    name: str
    shape: Tuple[int, ...]
    dtype: Any  #: torch's or numpy's
    shared: bool  #: alike on all ranks that share the part, or so the script says: a parameter, a moment
    spread: Optional[Spread]
    moves: bool = False  #: a buffer of a module: it may change in the forward pass, outside of any step
    where: Optional[Tuple[int, ...]] = None  #: of the piece of a DTensor in the whole


def local_of(tensor: Any) -> Any:
    """This rank's piece of a DTensor; any other tensor is its own piece."""
    return getattr(tensor, "_local_tensor", tensor)


def spread_of(tensor: Any) -> Optional[Spread]:
    if not hasattr(tensor, "_local_tensor") or not hasattr(tensor, "placements"):
        return None
    mesh = tensor.device_mesh
    return Spread(tuple(tensor.shape), tuple(tensor.stride()), tuple(tensor.placements), mesh_of(mesh))


def mesh_of(mesh: Any) -> Mesh:
    names = mesh.mesh_dim_names
    return Mesh(mesh.mesh.tolist(), tuple(names) if names else None)


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


class Block:
    """Tensors that are looked up together.  guard() says whether the same ones are still there, with the shapes that
    they had; the block is made anew otherwise."""

    def __init__(self, specs: List[Spec], tensors: List[Any], tree: Any, path: str):
        self.path = path
        self.specs = tuple(specs)
        self.tensors = tensors
        self.of: Any = None  #: the object that it stands for
        self.spread = any(s.spread is not None for s in specs)
        self.locals = [local_of(t) for t in tensors]
        self.shapes = list(map(_SHAPE, self.locals))
        self.whole: List[int] = []  #: where they lie, and have all of their memory
        self.places = self._places()
        self.packed = pickle.dumps(tree, PICKLE)
        self.shared = b""  # their places, for the addresses that they have
        self.keep: Tuple[Any, ...] = ()  # what guards compare by id must stay alive

    def same_shapes(self) -> bool:
        """A tensor that is given another shape gets other memory, or another number of elements or dimensions.  What is
        left, a view of the same elements with as many dimensions, is noticed when it is copied."""
        if self.spread:
            self.locals = [local_of(t) for t in self.tensors]
        places = self._places()
        if places == self.places:
            return True
        if list(map(_SHAPE, self.locals)) != self.shapes:
            return False
        self.shared = b""
        self.places = places
        return True

    def pack(self, values: List[Any]) -> Packed:
        self.shared = self.shared or pack_places(self.tensors)
        return Packed(self.packed, values, self.shared)

    def _places(self) -> Tuple[Any, ...]:
        """What can be asked of thousands of tensors at each step."""
        kind = torch().Tensor
        numbers = list(map(kind.numel, self.locals))
        places = list(map(kind.data_ptr, self.locals))
        self._check_memory(self.locals, places)
        empty = [tuple(t.shape) for t, n in zip(self.locals, numbers) if not n] if 0 in numbers else []
        return places, numbers, list(map(kind.dim, self.locals)), list(map(kind.dtype.__get__, self.locals)), empty

    def _check_memory(self, tensors: List[Any], places: List[int]) -> None:
        i = special.given_back(tensors, places, self.whole)
        if i >= 0:
            raise Refused(f'"{self.specs[i].name}": {special.GIVEN_BACK}')
        self.whole = places

    def guard(self) -> bool:
        raise NotImplementedError

    def holds_the_same(self) -> bool:
        """The same tensors are there that were, whatever is set on them; safe to ask from another thread, and while the
        object is at work."""
        raise NotImplementedError

    def values(self, walk: "Walk") -> List[Any]:
        """What is pickled at each snapshot beside the tree."""
        return []


class DictBlock(Block):
    """A dict or list of nothing but tensors."""

    def __init__(self, walk: "Walk", path: str, value: Any):
        self.value = value
        self.names = list(value) if isinstance(value, dict) else None
        tensors = list(value.values()) if isinstance(value, dict) else list(value)
        nodes = [walk.loose_tensor(join(path, k), t) for k, t in zip(self.names or itertools.count(), tensors)]
        super().__init__(walk.take_loose(len(nodes)), tensors, _container(value, list(zip(self.names, nodes)) if self.names else nodes), path)
        self.of = value
        self.ids = list(map(id, tensors))
        self.keep = tuple(tensors)
        self.grads = list(map(_GRAD, tensors))
        self.kinds = None if self.names is None or set(map(type, self.names)) == {str} else list(map(type, self.names))

    def guard(self) -> bool:
        value = self.value
        if list(map(_GRAD, self.keep)) != self.grads or any(map(_DICT, self.keep)):
            return False
        if isinstance(value, dict):
            return (list(map(id, value.values())) == self.ids and list(value) == self.names
                    and (self.kinds is None or list(map(type, value)) == self.kinds))
        return list(map(id, value)) == self.ids

    def holds_the_same(self) -> bool:
        return list(map(id, self.value.values() if isinstance(self.value, dict) else self.value)) == self.ids


class StateBlock(Block):
    """A dict of nothing but tensors that a state_dict() gives: another one each time, and the tensors in it may be, too.  It
    holds none of them: copies would be kept until there are others."""

    def __init__(self, walk: "Walk", path: str, value: Any):
        tensors = list(value.values())
        nodes = [walk.loose_tensor(join(path, k), t) for k, t in value.items()]
        tree = MappingNode(type(value), [(k, node._replace(place=None)) for k, node in zip(value, nodes)], None)
        super().__init__(walk.take_loose(len(nodes)), [], tree, path)
        self.names, self.kinds, self.classes = list(value), list(map(type, value)), list(map(type, tensors))
        self.alike = _alike(tensors)

    def fits(self, value: Any, tensors: List[Any]) -> bool:
        if (list(value) != self.names or list(map(type, value)) != self.kinds or list(map(type, tensors)) != self.classes
                or len(set(map(id, tensors))) < len(tensors)):
            return False
        try:
            if _alike(tensors) != self.alike:
                return False
        except RuntimeError as e:  # a sparse one, or a nested one, has not all of that
            raise_of_handler(e)
            return False
        self._check_memory(tensors, list(map(torch().Tensor.data_ptr, tensors)))
        return True

    def holds_the_same(self) -> bool:
        return True  # who holds them is counted

    @staticmethod
    def may_be(value: Any) -> bool:
        tensors = list(value.values())
        return (type(value) is dict and all(map(special.is_block_tensor, tensors))
                and not any(map(_DICT, tensors)) and all(map(special.is_plain_class, tensors))
                and not any(hasattr(t, "_local_tensor") for t in tensors) and len(set(map(id, tensors))) == len(tensors))


def _alike(tensors: List[Any]) -> List[Any]:
    """All that is saved of tensors, but for their values and where they lie."""
    kind = torch().Tensor
    return [list(map(_LOOK, tensors)), list(map(kind.stride, tensors)), any(map(_DICT, tensors))]


def _container(value: Any, items: Any) -> Any:
    if isinstance(value, dict):
        return MappingNode(type(value), items, getattr(value, "default_factory", None))
    return SequenceNode(type(value), items, getattr(value, "maxlen", None))


class ModuleBlock(Block):
    """A module without a way of its own to say what it holds: what state_dict() would give, without calling it."""

    def __init__(self, walk: "Walk", path: str, module: Any):
        self.module = module
        self.dicts: List[Any] = []
        self.sets: List[Any] = []
        metadata: Dict[str, Any] = {}
        keys, specs, tensors = [], [], []
        nodes = []
        special.reshard(module)
        for entry in special.module_entries(module, self.dicts, self.sets, metadata):
            node, spec = walk.block_tensor(join(path, entry.key), entry.tensor, entry.parameter)
            spec = spec if entry.parameter else spec._replace(moves=True)
            keys.append(entry.key)
            nodes.append(node)
            specs.append(spec)
            tensors.append(entry.tensor)
        self.modules = list(module.modules())
        self.full = [d for d in self.dicts if d]
        self.empty = [d for d in (*self.dicts, *self.sets) if not d]  # a buffer or a hook may come
        self.sets = [s for s in self.sets if s]
        self.contents = [list(s) for s in self.sets]
        raw = special.is_fsdp1(module)
        super().__init__(specs, tensors, ModuleNode(keys, nodes, metadata, raw), path)
        self.of = module
        self.parameters, self.buffers = list(map(_PARAMETERS, self.modules)), list(map(_BUFFERS, self.modules))
        self.ids, self.names = self._look()
        self.swaps = raw or self.spread  # FSDP puts whole parameters there while it computes
        self.parameter_ids = self._parameter_ids()
        self.keep = tuple(self.dicts) + tuple(v for d in self.dicts for v in d.values())

    def _look(self) -> Tuple[List[int], List[Any]]:
        return (list(map(id, itertools.chain.from_iterable(map(dict.values, self.full)))),
                list(itertools.chain.from_iterable(self.full)))

    def guard(self) -> bool:
        """The same tensors and modules stand in the same dicts, these are still the modules', and no hook has come."""
        return (not any(self.empty) and self._look() == (self.ids, self.names) and list(map(list, self.sets)) == self.contents
                and all(map(operator.is_, map(_PARAMETERS, self.modules), self.parameters))
                and all(map(operator.is_, map(_BUFFERS, self.modules), self.buffers)))

    def _parameter_ids(self) -> List[int]:
        return list(map(id, itertools.chain.from_iterable(map(dict.values, map(_PARAMETERS, self.modules)))))

    def holds_the_same(self) -> bool:
        """Buffers may be made anew in each forward pass."""
        return self.swaps or self._parameter_ids() == self.parameter_ids


class OptimizerBlock(Block):
    """An optimizer without a state_dict() of its own, whose states are dicts of tensors and plain values."""

    def __init__(self, walk: "Walk", path: str, optim: Any):
        self.optim = optim
        self.params = [p for g in optim.param_groups for p in g["params"]]
        self.lengths = [len(g["params"]) for g in optim.param_groups]
        self.states = [optim.state[p] for p in self.params if p in optim.state]
        self.owners = [i for i, p in enumerate(self.params) if p in optim.state]
        self.keys = list(itertools.chain.from_iterable(self.states))
        flat = list(itertools.chain.from_iterable(map(dict.values, self.states)))
        self.at = [i for i, v in enumerate(flat) if special.is_tensor(v)]
        self.others = [i for i, v in enumerate(flat) if not special.is_tensor(v)]
        tensors = [flat[i] for i in self.at]
        owner = list(itertools.chain.from_iterable(itertools.repeat(o, len(s)) for o, s in zip(self.owners, self.states)))
        nodes, specs = [], []
        for i, tensor in zip(self.at, tensors):
            node, spec = walk.block_tensor(join(path, f"{owner[i]}.{self.keys[i]}"), tensor, True)
            nodes.append(node)
            specs.append(spec)
        layout = [(o, list(s)) for o, s in zip(self.owners, self.states)]
        ids = [[id(p) for p in g["params"]] for g in optim.param_groups]
        super().__init__(specs, tensors, (class_name(optim), self._shapes(), layout, self.at, nodes, ids), path)
        self.of = optim
        self.ids = self._ids()
        self.sizes = list(map(len, self.states))
        self.tensor_ids = list(map(id, tensors))
        self.numels = list(map(torch().Tensor.numel, self.params))
        self.keep = tuple(self.params)

    @staticmethod
    def fits(optim: Any) -> bool:
        """Its states are dicts of tensors and small values by parameter, and nothing else."""
        params = {id(p) for g in optim.param_groups for p in g["params"]}
        return (sum(len(g["params"]) for g in optim.param_groups) == len(params)
                and all(id(k) in params and type(v) is dict for k, v in optim.state.items())
                and all(special.is_block_tensor(v) or type(v) in SIMPLE for s in optim.state.values() for v in s.values()))

    def _shapes(self) -> List[List[Tuple[int, ...]]]:
        return [[tuple(p.shape) for p in g["params"]] for g in self.optim.param_groups]

    def _ids(self) -> List[int]:
        return list(map(id, itertools.chain.from_iterable(g["params"] for g in self.optim.param_groups)))

    def guard(self) -> bool:
        return (list(map(torch().Tensor.numel, self.params)) == self.numels and special.is_stock_optimizer(self.optim)
                and self.holds_the_same())

    def holds_the_same(self) -> bool:
        optim = self.optim
        if (self._ids() != self.ids or [len(g["params"]) for g in optim.param_groups] != self.lengths
                or len(optim.state) != len(self.states)):
            return False
        get, params = optim.state.get, self.params
        states = [get(params[i]) for i in self.owners]
        if not all(map(operator.is_, states, self.states)) or list(map(len, states)) != self.sizes:
            return False
        flat = list(itertools.chain.from_iterable(map(dict.values, states)))
        if list(itertools.chain.from_iterable(states)) != self.keys:
            return False
        return ([id(flat[i]) for i in self.at] == self.tensor_ids
                and all(type(flat[i]) in SIMPLE for i in self.others))

    def values(self, walk: "Walk") -> List[Any]:
        flat = list(itertools.chain.from_iterable(map(dict.values, self.states)))
        groups = [walk.take(join(self.path, f"param_groups.{i}"), {k: v for k, v in g.items() if k != "params"}, True)
                  for i, g in enumerate(self.optim.param_groups)]
        return [groups, [flat[i] for i in self.others]]


def tensor_node(spec: Spec, tensor: Any, local: Any) -> TensorNode:
    return TensorNode(spec.name, str(spec.dtype).replace("torch.", ""), spec.shape, str(local.device), spec.spread,
                      isinstance(tensor, torch().nn.Parameter), bool(tensor.requires_grad and tensor.is_leaf), special.stride_of(local))
