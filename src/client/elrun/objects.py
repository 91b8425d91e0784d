"""Asks an object what it holds: a tree (tree.py), and the tensors that stand in it by name.

An object is asked anew at each snapshot; what is large and seldom changes its shape is a block (blocks.py), whose names
and tree are used again."""

from __future__ import annotations

import array
import collections
import dataclasses
import dis
import inspect
import pickle
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import special
from .blocks import Block, DictBlock, ModuleBlock, OptimizerBlock, Spec, StateBlock, local_of, spread_of, tensor_node
from .generators import generator, layer_below
from .handlers import raise_of_handler
from .sharing import pack_places
from .special import PICKLE
from .tree import (ArrayNode, BytesNode, DoorNode, EmptyNode, FieldsNode, GeneratorNode, MappingNode, OptimizerNode, Packed, Plain,
                   Refused, SavedNode, SequenceNode, SetNode, ShardedOptimizerNode, SparseNode, a_class, class_name, join)
from .values import SIMPLE, has_pair, is_value, numpy, torch

CONTAINERS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter, list, collections.deque, set,
              bytearray, array.array)
_MADE_BY = ("__new__", "__init__", "__setitem__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "append", "extend",
            "add")
BLOCK_MIN = 16  # tensors in a dict or list that make it a block
TRY_MAX = 16 << 20  # bytes of what torch.save() gives that is tried with torch.load() when it is declared,
TRY_LATER_MAX = 1 << 18  # … and at each snapshot


class Taken(NamedTuple):
    """What one object held: the pickled tree, and the tensors in chunks of which each has its specs."""

    tree: Any
    chunks: List[Tuple[Tuple[Spec, ...], List[Any]]]


class Walk:
    """One look at one declared object.  blocks are kept from one look to the next, by path."""

    def __init__(self, prefix: str, piece_prefix: str, blocks: Dict[str, Block], first: bool = False):
        self.prefix, self.piece_prefix = prefix, piece_prefix
        self.first = first  #: it is being declared: what can be tried of it is tried
        self.blocks = blocks
        self.used: Set[str] = set()
        self.names: Set[str] = set()
        self.specs: List[Spec] = []
        self.sources: List[Any] = []
        self.chunks: List[Tuple[Tuple[Spec, ...], List[Any]]] = []
        self.seen: Dict[Tuple[int, bool], Any] = {}  # nodes by the id of their object, and whether it stands in a state_dict()
        self.alive: List[Any] = []  # whose ids are in seen
        self.open: Set[int] = set()  # containers that are being looked at
        self.of_pair = False  # within what the state_dict() of an object has given that is neither a module nor an optimizer

    def object(self, value: Any) -> Taken:
        why = alone_fault(value) if self.first else ""
        if why:
            raise Refused(f"{why} cannot be filled in place: put it into a dict")
        tree = self.take("", value, False)
        if self.specs:
            self.chunks.append((tuple(self.specs), self.sources))
        for path in [p for p in self.blocks if p not in self.used]:
            del self.blocks[path]
        return Taken(tree, self.chunks)

    # -- one object

    def take(self, path: str, value: Any, inside: bool) -> Any:
        """The node of a value.  inside: it is part of what a state_dict() gave, so it is made anew and not filled in
        place, and all that can be pickled will do."""
        if type(value) in SIMPLE:
            return Plain(value)
        node = self.seen.get((id(value), inside))
        if node is not None:
            return node
        if id(value) in self.open:
            raise Refused(f"{self.where(path)} contains itself")
        self.open.add(id(value))
        node = self._node(path, value, inside)
        self.open.discard(id(value))
        self.seen[id(value), inside] = node
        self.alive.append(value)
        return node

    def _node(self, path: str, value: Any, inside: bool) -> Any:
        th, np = torch(), numpy()
        if th is not None and isinstance(value, th.Tensor):
            return self.loose_tensor(path, value)
        if np is not None and isinstance(value, np.ndarray):
            return self.array(path, value)
        if not inside:
            node = self._owner(path, value)
            if node is not None:
                return node
        return self._container(path, value, inside)

    def _owner(self, path: str, value: Any) -> Any:
        """An object with a door of its own; None: it has none."""
        th = torch()
        if th is not None and not isinstance(value, type):
            if isinstance(value, th.nn.Module):
                return self._module(path, value)
            if isinstance(value, th.optim.Optimizer):
                return self._optimizer(path, value)
        node = generator(value)
        if node is not None:
            return self._generator(path, value, node)
        if has_pair(value):
            why = special.pair_refusal(value)
            state = None if why else self._asked(path, lambda: special.state_of(value))
            why = why or (door_fault(value, state) if self.first else "")
            if why:
                raise Refused(f"{self.where(path)}: {why}")
            outer, self.of_pair = self.of_pair, True
            try:
                tree = self.take(path, state, True)
            finally:
                self.of_pair = outer
            return DoorNode(class_name(value), tree, {})
        return None

    def _generator(self, path: str, value: Any, node: GeneratorNode) -> Any:
        self.pickled(path, node)
        name, below = layer_below(value)
        if not name:
            return node
        if below is None or generator(below) is not None:
            return node._replace(inner=self.take(join(path, name), below, False))
        return node._replace(inner=self._saved_object(join(path, name), below))

    def _asked(self, path: str, state_dict: Callable[[], Any]) -> Any:
        try:
            return state_dict()
        except Exception as e:
            raise Refused(f"{self.where(path)}: its state_dict() fails: {type(e).__name__}: {e}") from e

    def where(self, path: str) -> str:
        return f'"{path}"' if path else "what is declared"

    # -- tensors

    def unique(self, path: str) -> str:
        path = path.replace("/", "%2F")  # what is before a slash is no name of a tensor: a rank, a shard, a part, "obj"
        path = path.replace("\0", "?").encode(errors="replace").decode()  # half of a surrogate pair has no UTF-8
        name = self.prefix + (path or "tensor")
        if name == "__metadata__":
            name = "__metadata__~"
        unique, n = name, 1
        while unique in self.names:
            n += 1
            unique = f"{name}~{n}"
        self.names.add(unique)
        return unique

    def block_tensor(self, path: str, tensor: Any, shared: bool) -> Tuple[Any, Spec]:
        if tensor.is_meta:
            raise Refused(f"{self.where(path)}: a tensor on the meta device has no values")
        local, spread = local_of(tensor), spread_of(tensor)
        if not special.has_memory(local):
            raise Refused(f"{self.where(path)}: {special.GIVEN_BACK}")
        spec = Spec(self.unique(path) if spread is None else self.unique_piece(path), tuple(local.shape), local.dtype, shared, spread)
        if spread is not None:
            spec = spec._replace(where=special.offset_of(tensor))
        return tensor_node(spec, tensor, local), spec

    def unique_piece(self, path: str) -> str:
        """Pieces of one DTensor have one name on all ranks: they are read together."""
        prefix, self.prefix = self.prefix, self.piece_prefix
        name = self.unique(path)
        self.prefix = prefix
        return name

    def loose_tensor(self, path: str, tensor: Any) -> Any:
        th = torch()
        if special.is_lazy(tensor):
            return EmptyNode(isinstance(tensor, th.nn.Parameter))
        if special.has_members(tensor):
            return self._sparse(path, tensor)
        if tensor.layout is not th.strided or special.is_odd(tensor) or not special.is_plain_class(tensor):
            return self._saved_tensor(path, tensor)
        node, spec = self.block_tensor(path, tensor, False)
        self.specs.append(spec)
        self.sources.append(local_of(tensor))
        return node._replace(place=special.place_of(tensor), attributes=self._beside(path, tensor) if tensor.__dict__ and spec.spread is None else None)

    def _beside(self, path: str, tensor: Any) -> Optional[Dict[str, Any]]:
        """What a script has set on a tensor; not what nothing can bring back, a handle of a hook for example."""
        found: Dict[str, Any] = {}
        for name, value in vars(tensor).items():
            try:
                found[name] = value if is_value(value) and self.pickled(path, value) else self._saved_tensor(path, value)
            except Refused as e:
                raise_of_handler(e)
        return found or None

    def _saved_object(self, path: str, value: Any) -> Any:
        """pickle alone does not bring back tensors of every type."""
        data = self.pickled(path, value)
        return SavedNode("pickle", data) if b"torch" not in data else self._saved_tensor(path, value)

    def _saved_tensor(self, path: str, tensor: Any) -> Any:
        try:
            data = special.to_bytes(tensor)
            if len(data) < (TRY_MAX if self.first else TRY_LATER_MAX):
                special.from_bytes(data)
        except Exception as e:
            raise Refused(f"{self.where(path)}: {a_class(tensor)} that torch.save() and torch.load() do not take: {e}") from None
        return SavedNode("torch", data)

    def take_loose(self, n: int) -> List[Spec]:
        """The last n loose tensors, which become a block."""
        specs = self.specs[-n:]
        del self.specs[-n:], self.sources[-n:]
        return specs

    def _sparse(self, path: str, tensor: Any) -> Any:
        members, coalesced = special.sparse_members(tensor)
        nodes = tuple(self.loose_tensor(join(path, name), member) for name, member in members)
        return SparseNode(str(tensor.layout).replace("torch.", ""), tuple(tensor.shape), nodes, coalesced,
                          bool(tensor.requires_grad and tensor.is_leaf))

    def array(self, path: str, value: Any) -> Any:
        np = numpy()
        if type(value) not in (np.ndarray, np.memmap, np.recarray, np.matrix) or value.dtype.hasobject:
            return SavedNode("pickle", self.pickled(path, value))
        spec = Spec(self.unique(path), tuple(value.shape), value.dtype, False, None)
        self.specs.append(spec)
        self.sources.append(value)
        order = None
        if not value.flags.c_contiguous and 0 not in value.strides:
            order = tuple(sorted(range(value.ndim), key=lambda i: -abs(value.strides[i])))
        return ArrayNode(spec.name, value.dtype, spec.shape, type(value).__name__ if type(value) is not np.memmap else "ndarray",
                         order if order != tuple(range(value.ndim)) else None, value.flags.writeable)

    # -- modules and optimizers

    def _reuse(self, path: str, kind: type, value: Any) -> Optional[Block]:
        """The block of the last look, if it still stands for the same tensors."""
        block = self.blocks.get(path)
        if block is not None and type(block) is kind and block.of is value and block.guard() and block.same_shapes():
            return self._use(path, block)
        return None

    def _use(self, path: str, block: Block) -> Block:
        self.used.add(path)
        self.blocks[path] = block
        self.chunks.append((block.specs, block.locals))
        return block

    def _module(self, path: str, module: Any) -> Any:
        module = special.unwrap(module)
        block = self._reuse(path, ModuleBlock, module)
        if block is None:
            why = special.module_refusal(module)
            if why:
                raise Refused(f"{self.where(path)}: {why}")
            if not special.is_stock_module(module) and not special.is_fsdp1(module):
                return self._own_module(path, module)
            block = self._use(path, ModuleBlock(self, path, module))
        return block.pack([])

    def _own_module(self, path: str, module: Any) -> Any:
        """A module with hooks, or a state_dict() of its own: it is called."""
        state = self._asked(path, module.state_dict)
        if type(state) not in (dict, collections.OrderedDict) or set(getattr(state, "__dict__", ())) - {"_metadata"}:
            return DoorNode(class_name(module), self.take(path, state, True), {})
        params = {name for name, _ in module.named_parameters()}
        items = []
        for key, value in state.items():
            first = len(self.specs)
            items.append((key, self.take(join(path, key), value, True)))
            if key in params:
                self._share(first)
            else:
                self.specs[first:] = [spec._replace(moves=True) for spec in self.specs[first:]]
        metadata = getattr(state, "_metadata", None)
        versions = Plain(dict(metadata) if metadata else None)
        return DoorNode(class_name(module), (MappingNode(type(state), items, None), versions), {})

    def _share(self, first: int) -> None:
        """The loose tensors from this one on are alike on all ranks."""
        for i in range(first, len(self.specs)):
            self.specs[i] = self.specs[i]._replace(shared=True)

    def _hyper(self, path: str, optim: Any) -> List[Any]:
        return [self.take(join(path, f"param_groups.{i}"), {k: v for k, v in g.items() if k != "params"}, True)
                for i, g in enumerate(optim.param_groups)]

    def _optimizer(self, path: str, optim: Any) -> Any:
        block = self._reuse(path, OptimizerBlock, optim)
        if block is not None:
            return block.pack([*block.values(self), self._inner(path, optim)])
        why = special.optimizer_refusal(optim)
        if why:
            raise Refused(f"{self.where(path)}: {why}")
        if special.is_zero_optimizer(optim):
            return ShardedOptimizerNode(self._optimizer(join(path, "local"), optim.optim), self._hyper(path, optim))
        if not special.is_stock_optimizer(optim):
            first = len(self.specs)
            state = self.take(path, self._asked(path, optim.state_dict), True)
            self._share(first)
            return DoorNode(class_name(optim), state, {})
        if not OptimizerBlock.fits(optim):
            return self._odd_optimizer(path, optim)
        block = self._use(path, OptimizerBlock(self, path, optim))
        return block.pack([*block.values(self), self._inner(path, optim)])

    def _inner(self, path: str, optim: Any) -> Dict[str, Any]:
        return {name: self._optimizer(join(path, name), one) for name, one in special.inner_optimizers(optim).items()}

    def _odd_optimizer(self, path: str, optim: Any) -> Any:
        """Its states hold lists, dicts or other objects."""
        number = {id(p): i for i, p in enumerate(p for g in optim.param_groups for p in g["params"])}
        first = len(self.specs)
        state = []
        for key, value in optim.state.items():
            if special.is_tensor(key) and id(key) not in number:
                raise Refused(f"{self.where(path)}: it has the state of a parameter that is in none of its groups")
            k = number[id(key)] if id(key) in number else key
            state.append((k, self.take(join(path, k), value, True)))
        self._share(first)
        shapes = [[tuple(p.shape) for p in g["params"]] for g in optim.param_groups]
        ids = [[id(p) for p in g["params"]] for g in optim.param_groups]
        return OptimizerNode(class_name(optim), shapes, self._hyper(path, optim), state, self._inner(path, optim), ids)

    # -- containers and values

    def _container(self, path: str, value: Any, inside: bool) -> Any:
        if inside and isinstance(value, CONTAINERS) and type(value) not in CONTAINERS and not _is_like_its_base(value):
            return self._saved_object(path, value)
        if isinstance(value, dict):
            return self._dict(path, value, inside)
        if isinstance(value, (list, collections.deque)):
            return self._list(path, value, inside)
        if isinstance(value, set):
            self._no_attributes(path, value, inside)
            return SetNode(type(value), [self._constant(join(path, "element"), v, inside) for v in value])
        if is_value(value):
            self.pickled(path, value)
            return Plain(value)
        if isinstance(value, tuple):
            return self._tuple(path, value, inside)
        if isinstance(value, (bytearray, array.array)):
            self._no_attributes(path, value, inside)
            return BytesNode(self._by_name(path, type(value)), getattr(value, "typecode", ""), bytes(memoryview(value).cast("B")))
        names = fields_of(value)
        if names is not None and not inside:
            return FieldsNode(self._by_name(path, type(value)),
                              {n: self.take(join(path, n), v, inside) for n, v in names.items()})
        if inside:
            return self._saved_object(path, value)
        if isinstance(value, types.ModuleType) and value.__name__ in ("random", "numpy.random", "torch.random"):
            raise Refused(f"{self.where(path)}: the module {value.__name__} is no object: declare elrun.Rng(), which has the random "
                          "numbers of Python, numpy and torch")
        if special.is_loader(value):
            raise Refused(f"{self.where(path)}: {a_class(value)} does not say where it stands: see \"Data and random numbers\" in "
                          "elrun-worker(7)")
        for has, lacks in (("state_dict", "load_state_dict"), ("load_state_dict", "state_dict")):
            if callable(getattr(value, has, None)) and not isinstance(value, type):
                raise Refused(f"{self.where(path)}: {a_class(value)} has {has}(), but no {lacks}(): it cannot be put back "
                              "without that")
        raise Refused(f"{self.where(path)}: {a_class(value)} has no state_dict() and load_state_dict() and is no container, "
                      "number or array: give it that pair, or declare what is in it")

    def _dict(self, path: str, value: Any, inside: bool) -> Any:
        many = None if type(value) is not dict else self._given(path, value) if inside else self._many(path, value, value.values())
        if many is not None:
            return many
        self._no_attributes(path, value, inside)
        if type(value) is dict and SIMPLE.issuperset(map(type, value.values())) and SIMPLE.issuperset(map(type, value)):
            return MappingNode(dict, [], None) if not value else Plain(dict(value))
        self._by_name(path, type(value))
        items = [(self._key(path, k, inside), self.take(join(path, k), v, inside)) for k, v in value.items()]
        factory = getattr(value, "default_factory", None)
        if factory is not None:
            self.pickled(join(path, "default_factory"), factory)
        beside = vars(value) if type(value) is collections.OrderedDict else None
        if beside:
            self.pickled(path, beside)
        return MappingNode(type(value), items, factory, dict(beside) if beside else None)

    def _list(self, path: str, value: Any, inside: bool) -> Any:
        many = None if inside or type(value) is not list else self._many(path, value, value)
        if many is not None:
            return many
        self._no_attributes(path, value, inside)
        if type(value) is list and SIMPLE.issuperset(map(type, value)):
            return Plain(list(value))
        self._by_name(path, type(value))
        items = [self.take(join(path, i), v, inside) for i, v in enumerate(value)]
        return SequenceNode(type(value), items, getattr(value, "maxlen", None))

    def _many(self, path: str, value: Any, members: Any) -> Optional[Packed]:
        """A dict or list of many tensors and nothing else; None: it is none."""
        block = self._reuse(path, DictBlock, value)
        if block is None:
            if len(value) < BLOCK_MIN or not all(map(_is_ordinary, members)):
                return None
            if len(set(map(id, members))) < len(value):  # one that stands there twice is one
                return None
            block = self._use(path, DictBlock(self, path, value))
        return block.pack([])

    def _given(self, path: str, value: Any) -> Optional[Packed]:
        """The same of a dict in what a state_dict() gave."""
        if not self.of_pair or len(value) < BLOCK_MIN:
            return None
        block, tensors = self.blocks.get(path), list(value.values())
        if type(block) is not StateBlock or not block.fits(value, tensors):
            if not StateBlock.may_be(value):
                return None
            block = StateBlock(self, path, value)
        self.used.add(path)
        self.blocks[path] = block
        self.chunks.append((block.specs, tensors))
        return Packed(block.packed, [], pack_places(tensors))

    def _tuple(self, path: str, value: Any, inside: bool) -> Any:
        kind = type(value)
        if (kind is not tuple and not hasattr(kind, "_fields")) or (inside and _attributes_of(value)):
            if inside:
                return self._saved_object(path, value)
            raise Refused(f"{self.where(path)}: {a_class(value)} is a tuple that cannot be made anew")
        self._no_attributes(path, value, inside)
        self._by_name(path, kind)
        names = getattr(kind, "_fields", None) or range(len(value))
        return SequenceNode(kind, [self.take(join(path, n), v, inside) for n, v in zip(names, value)], None)

    def _key(self, path: str, key: Any, inside: bool) -> Any:
        return self._constant(join(path, key) + " (a key)", key, inside).value if not inside else key

    def _constant(self, path: str, value: Any, inside: bool) -> Any:
        if not is_value(value) and not inside:
            raise Refused(f"{self.where(path)}: {a_class(value)} can be no key or element of a set here: it may change")
        if type(value) not in SIMPLE:
            self.pickled(path, value)
        return Plain(value)

    def _no_attributes(self, path: str, value: Any, inside: bool) -> None:
        names = [] if inside or type(value) is collections.OrderedDict else _attributes_of(value)
        if names:
            raise Refused(f"{self.where(path)}: {a_class(value)} keeps attributes beside its items: "
                          f"{', '.join(map(str, names[:3]))}")

    def _by_name(self, path: str, kind: type) -> type:
        self.pickled(path, kind)
        return kind

    def pickled(self, path: str, value: Any) -> bytes:
        try:
            return pickle.dumps(value, PICKLE)
        except Exception as e:
            raise Refused(f"{self.where(path)}: {a_class(value)} that cannot be pickled: {e}") from None


def _is_ordinary(value: Any) -> bool:
    """A tensor of torch's own that is nothing but its values."""
    return special.is_block_tensor(value) and special.is_plain_class(value) and not value.__dict__


def _attributes_of(value: Any) -> List[str]:
    """What a container has beside its items."""
    own = [c.__dict__.get("__slots__", ()) for c in type(value).__mro__ if c.__module__ not in ("builtins", "collections", "array")]
    slots = [n for names in own for n in ((names,) if isinstance(names, str) else names)]
    return [*getattr(value, "__dict__", ()), *(n for n in slots if n not in ("__dict__", "__weakref__") and hasattr(value, n))]


def _is_like_its_base(value: Any) -> bool:
    """A container of a class that adds nothing to one of Python's but its name: another one is made of its items."""
    own = [c for c in type(value).__mro__ if c.__module__ not in ("builtins", "collections", "array", "typing")]
    return not _attributes_of(value) and not any(name in vars(c) for c in own for name in _MADE_BY)


def fields_of(value: Any) -> Optional[Dict[str, Any]]:
    """The attributes of an object that is nothing but them; None: it is another kind of object."""
    if isinstance(value, type):
        return None
    kind = type(value)
    names: List[str] = []
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [a.name for a in kind.__attrs_attrs__]
    elif not isinstance(value, (types.SimpleNamespace,)) and not (kind.__module__ == "argparse" and kind.__name__ == "Namespace"):
        return None
    names += [n for n in getattr(value, "__dict__", ()) if n not in names]
    return {n: getattr(value, n) for n in names if hasattr(value, n)}


def alone_fault(value: Any) -> str:
    """What this is, if it can be replaced by another one but not filled; "": it can be filled, or it is something else."""
    th, np = torch(), numpy()
    if np is not None and isinstance(value, np.ndarray) and not value.flags.writeable:
        return "an array that may only be read"
    if np is not None and isinstance(value, np.random.SeedSequence):
        return "a SeedSequence"
    if th is not None and isinstance(value, th.Tensor) and getattr(value, "is_nested", False):
        return "a nested tensor"
    return ""


def door_fault(value: Any, state: Any) -> str:
    """Why its load_state_dict() would not take what its state_dict() gives, as far as that can be seen without calling it:
    it may write files, or count what it has loaded.  "": nothing is known against it."""
    try:
        names = [p for p in inspect.signature(value.load_state_dict).parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    except (TypeError, ValueError) as e:
        raise_of_handler(e)
        return ""
    if not names:
        return "its load_state_dict() takes no state"
    must = [p.name for p in names[1:] if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if must:
        return f"its load_state_dict() wants more than a state: {', '.join(must)}"
    if _only_says_no(value.load_state_dict):
        return "its load_state_dict() only raises NotImplementedError"
    name = names[0].name
    if isinstance(state, dict) and (name.endswith("_list") or not _indexes(value.load_state_dict, name) <= set(state)):
        return f"its load_state_dict() wants a list, {name}, and its state_dict() gives {a_class(state)}"
    return ""


def _indexes(method: Any, name: str) -> Set[int]:
    """The numbers by which it looks into that argument."""
    code = getattr(method, "__code__", None)
    if code is None:
        return set()
    steps = [(i.opname, i.argval, i.argrepr) for i in dis.get_instructions(code)
             if i.opname not in ("CACHE", "NOP", "EXTENDED_ARG")]
    if any(op.startswith("STORE_FAST") and arg == name for op, arg, _ in steps):
        return set()  # it means something else later
    return {key for (load, of, _), (_, key, _), (op, _, sign) in zip(steps, steps[1:], steps[2:])
            if load.startswith("LOAD_FAST") and of == name and type(key) is int and (op == "BINARY_SUBSCR" or sign == "[]")}


def _only_says_no(method: Any) -> bool:
    code = getattr(method, "__code__", None)
    return bool(getattr(method, "__isabstractmethod__", False) or (code is not None and code.co_names == ("NotImplementedError",)))


def is_small(value: Any, left: List[int], depth: int = 8) -> bool:
    """Plain values and a few tensors alone: it can be copied without a trace."""
    th, np = torch(), numpy()
    if is_value(value):
        left[0] -= 64
    elif th is not None and isinstance(value, th.Tensor):
        left[0] -= value.numel() * value.element_size() if type(value) is th.Tensor else TRY_MAX + 1
    elif np is not None and isinstance(value, np.ndarray) and not value.dtype.hasobject:
        left[0] -= value.nbytes
    elif depth and isinstance(value, dict):
        return all(is_small(v, left, depth - 1) for v in value.values()) and left[0] >= 0
    elif depth and isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return all(is_small(v, left, depth - 1) for v in value) and left[0] >= 0
    else:
        return False
    return left[0] >= 0
