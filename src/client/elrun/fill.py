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
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import special
from .generators import put_generator
from .handlers import raise_of_handler
from .memory import Memory, copy_array, copy_tensor, fits_memory, is_alike
from .objects import fields_of
from .blocks import local_of, look_for_meshes, mesh_of
from .sharing import Sharing, placed, with_places
from .tree import (ArrayNode, BytesNode, DoorNode, EmptyNode, FieldsNode, GeneratorNode, MappingNode, Misfit, ModuleNode,
                   OptimizerNode, Packed, Plain, SavedNode, SequenceNode, SetNode, ShardedOptimizerNode, SparseNode, Spread,
                   TensorNode, a_class, class_name, join)
from .values import has_pair, is_value, numpy, torch

_NONE = object()
DOORS = (DoorNode, ModuleNode, OptimizerNode, ShardedOptimizerNode)


class Door(NamedTuple):
    """A load_state_dict() that is to be called."""

    part: str
    sure: bool  #: names and shapes were compared: it is not known to fail
    call: Callable[[], Optional[Callable[[], None]]]  #: returns what takes it back, None: nothing does


class Fill:
    """One going back.  tensors: what gives the saved bytes of a name, as a tensor or an array that may only be read."""

    def __init__(self, tensors: Callable[[str, Any, Any], Any], sharing: Sharing):
        self.tensors, self.sharing = tensors, sharing
        self.part = ""
        self.meshes: List[Any] = []
        self.made: Dict[int, Any] = {}  # by the id of a node: the object that stands for it
        self.used: Dict[int, str] = {}  # by the id of an object that stands for a node: in which part; there it stands for no other
        self.content: Dict[int, Any] = {}  # by the id of an object that will be filled: with what
        self.memory = Memory()
        self.names: Dict[int, List[str]] = {}  # of parameters of declared modules, by their ids: those that are there,
        self.saved_names: Dict[int, List[str]] = {}  # and those that were saved
        self.for_door = False  # what is made is for a load_state_dict()
        self.doors: List[Door] = []
        self.copies: List[Callable[[], None]] = []
        self.last: List[Callable[[], None]] = []
        self.views: Dict[int, Set[int]] = {}  # by the address of their memory: ids of tensors that are there
        self.ends: List[Tuple[str, int, int]] = []  # part by part: how long these two lists were then
        self.kept: List[Any] = []  # nodes and objects, whose ids are in made and used
        self.unpacked: Dict[int, Any] = {}

    def look(self, part: str, value: Any, node: Any) -> None:
        """Comes before plan(), for all parts: what there is that others are to agree with."""
        self.part = part
        look_for_meshes(value, self.meshes)
        self._look_for_modules(part, value, node)

    def _look_for_modules(self, path: str, old: Any, node: Any) -> None:
        """What load_state_dict() will write into their tensors; and which tensors of containers have one memory."""
        node = self._unpack(node)
        if isinstance(node, DOORS):
            if special.is_module(old):
                self._module_takes(path, old, node)
        elif isinstance(node, MappingNode) and type(old) is node.cls:
            for key, child in node.items:
                self._look_for_modules(join(path, key), old.get(key), child)
        elif isinstance(node, SequenceNode) and type(old) is node.cls:
            for i, (value, child) in enumerate(zip(old, node.items)):
                self._look_for_modules(join(path, i), value, child)
        elif isinstance(node, FieldsNode) and type(old) is node.cls:
            for name, child in node.items.items():
                self._look_for_modules(join(path, name), getattr(old, name, None), child)
        elif isinstance(node, TensorNode) and special.is_tensor(old) and special.is_block_tensor(old) and special.can_grow(old):
            self.views.setdefault(old.untyped_storage().data_ptr(), set()).add(id(old))

    def _module_takes(self, path: str, module: Any, node: Any) -> None:
        if isinstance(node, ModuleNode):
            saved = dict(zip(node.keys, node.tensors))
        elif isinstance(node, DoorNode) and type(node.state) is tuple:
            saved = dict(node.state[0].items)
        else:
            return
        for entry in special.module_entries(special.unwrap(module), [], [], {}):
            was, tensor = saved.get(entry.key), local_of(entry.tensor)
            self.names.setdefault(id(entry.tensor), []).append(join(path, entry.key))
            if isinstance(was, TensorNode) and was.place is not None:
                self.saved_names.setdefault(was.place.object, []).append(join(path, entry.key))
            if isinstance(was, TensorNode) and special.is_block_tensor(tensor) and tuple(tensor.shape) == was.shape and str(tensor.dtype) == f"torch.{was.dtype}":
                if not special.has_memory(tensor):
                    raise self.misfit(join(path, entry.key), special.GIVEN_BACK)
                if not self._takes(tensor, self.tensors(was.name, was.dtype, was.shape)):
                    raise self.misfit(path, f"{entry.key} is one memory with another tensor here, and was saved with values of its own")
                self.sharing.fills(was, entry.tensor)

    def plan(self, part: str, value: Any, node: Any) -> None:
        """What has to be done for one declared object.  Misfit: it cannot be."""
        self.part = part
        if self.put("", value, node) is not value:
            raise self.misfit("", f"{_kind_of(self._unpack(node))} was saved, and {a_class(value)} is declared")
        self.ends.append((part, len(self.copies), len(self.last)))

    def carry_out(self) -> None:
        back: List[Optional[Callable[[], None]]] = []
        for door in sorted(self.doors, key=lambda d: d.sure):  # first those that may fail
            try:
                back.append(door.call())
            except Exception as e:
                raise Misfit(f'part "{door.part}": load_state_dict() does not take what was saved: {_cause_of(e)}',
                             not _take_back(back) or getattr(e, "spoiled", True)) from e
        th = torch()
        if th is None:
            self._take_steps(self.copies, 0)
        else:
            with th.no_grad():
                self._take_steps(self.copies, 0)
        self._take_steps(self.last, 1)

    def _take_steps(self, steps: List[Callable[[], None]], which: int) -> None:
        """The steps that fill what is there.  They are not known to fail; if one does, some of it is filled."""
        for n, step in enumerate(steps):
            try:
                step()
            except Exception as e:
                part = next((name for name, *ends in self.ends if n < ends[which]), self.part)
                raise Misfit(f'part "{part}": what was saved cannot be put there: {_cause_of(e)}', True) from e

    def misfit(self, path: str, why: str) -> Misfit:
        return Misfit(f'part "{self.part}"{f", {path}" if path else ""}: {why}')

    # -- one value: what is there, and what was saved

    def put(self, path: str, old: Any, node: Any) -> Any:
        """What stands in the place of `old` afterwards: `old` itself, filled, where that can be."""
        if isinstance(node, Plain) and not isinstance(node.value, (list, dict)):
            return node.value
        if id(node) in self.made:
            return self.made[id(node)]
        if self.used.get(id(old)) == self.part:
            if isinstance(self._unpack(node), DOORS):
                raise self.misfit(path, f"two objects were saved where {a_class(old)} is declared twice")
            old = _NONE
        value = self._put(path, old, node)
        self.made[id(node)] = value
        if value is old:
            self.used[id(old)] = self.part
        self.kept += (node, old)
        return value

    def _put(self, path: str, old: Any, node: Any) -> Any:
        if isinstance(node, Packed):
            return self._put(path, old, self._unpack(node))
        if isinstance(node, Plain):
            return self._plain(old, node)
        if isinstance(node, TensorNode):
            return self._tensor(path, old, node)
        if isinstance(node, (MappingNode, SequenceNode, SetNode, BytesNode, FieldsNode)):
            return self._container(path, old, node)
        if isinstance(node, ArrayNode):
            return self._array(path, old, node)
        if isinstance(node, GeneratorNode):
            return put_generator(self, path, old, node)
        if isinstance(node, DOORS):
            return self._owner(path, old, node)
        if isinstance(node, SparseNode):
            members = [self.new_tensor(path, m) for m in node.members]
            made = special.make_sparse(node.layout, node.shape, members, node.coalesced)
            return self._replace(path, old, made.requires_grad_(node.requires_grad))
        if isinstance(node, SavedNode):
            return self._saved(path, old, node)
        if isinstance(node, EmptyNode):
            return old if special.is_tensor(old) and special.is_lazy(old) else self.new_tensor(path, node)
        raise self.misfit(path, f"{class_name(node)} is no node of a tree of this version")

    def _unpack(self, node: Any) -> Any:
        """The node that a Packed one stands for; any other node stands for itself."""
        if not isinstance(node, Packed):
            return node
        if id(node) not in self.unpacked:
            self.unpacked[id(node)] = _whole_optimizer(node) if node.values else with_places(pickle.loads(node.tree), node.places)
            self.kept.append(node)
        return self.unpacked[id(node)]

    def _plain(self, old: Any, node: Plain) -> Any:
        value = node.value
        content = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        if type(old) is type(value) and self.fills(old, content, lambda: _refill(old, value)):
            return old
        return copy.copy(value)

    def fills(self, old: Any, content: List[Any], fill: Callable[[], None], to: Optional[List[Callable[[], None]]] = None) -> bool:
        """Notes that an object will be filled.  False: it stands in another part, too, and is filled with something else
        there."""
        if id(old) in self.content:
            return _hold_alike(self.content[id(old)], content)
        self.content[id(old)] = content
        self.kept.append(old)
        (self.copies if to is None else to).append(fill)
        return True

    # -- tensors and arrays

    def _tensor(self, path: str, old: Any, node: TensorNode) -> Any:
        th = torch()
        if th is None:
            raise self.misfit(path, "a tensor of torch was saved, and torch is not imported")
        if not special.is_tensor(old) or not special.is_block_tensor(old) or not special.is_plain_class(old):
            return self.new_tensor(path, node)
        local = local_of(old)
        if not special.has_memory(local):
            raise self.misfit(path, special.GIVEN_BACK)
        same_kind = (spread_shape(old) == (node.spread.shape if node.spread else None)
                     and str(local.dtype) == f"torch.{node.dtype}")
        saved = self.tensors(node.name, node.dtype, node.shape)
        if same_kind and tuple(local.shape) == node.shape and self._takes(local, saved) \
                and node.parameter == isinstance(old, th.nn.Parameter):
            self.copies.append(lambda: copy_tensor(local, saved))
            self.sharing.fills(node, old)
            if node.attributes:
                self.copies.append(lambda: set_attributes(old, node))
            if old.is_leaf and old.requires_grad != node.requires_grad:
                self.copies.append(lambda: old.requires_grad_(node.requires_grad))
            return old
        if not path:
            raise self.misfit("", f"a tensor {node.dtype} of shape {list(node.shape)} was saved, and one "
                                  f"{str(local.dtype)[6:]} of {list(local.shape)} is declared")
        if same_kind and not node.spread and not node.parameter and not old.requires_grad and type(old) is th.Tensor and old._base is None \
                and not old.is_inference() and self.memory.is_free(old):
            views = special.can_grow(old) and len(self.views.get(old.untyped_storage().data_ptr(), ())) > 1
            if views and node.stride is None and old.is_contiguous() and not old.storage_offset():
                self.copies.append(lambda: old.resize_(node.shape).copy_(saved).requires_grad_(node.requires_grad))
                return old  # its views stay views of it
            new = self._values(node)
            self.sharing.stands(node, old)
            self.copies.append(lambda: old.set_(new.to(old.device)).requires_grad_(node.requires_grad))
            return old
        return self.new_tensor(path, node)

    def _takes(self, tensor: Any, saved: Any) -> bool:
        """It can be filled in place, and nothing else is changed by that."""
        if not fits_memory(tensor, saved):
            return False
        if tensor.is_conj():
            tensor, saved = tensor.conj(), saved.conj().resolve_conj()
        if tensor.is_neg():
            tensor, saved = torch()._neg_view(tensor), -saved
        return self.memory.takes(tensor, saved)

    def new_tensor(self, path: str, node: Any) -> Any:
        """A tensor of its own with the saved values."""
        th = torch()
        if isinstance(node, EmptyNode):
            return th.nn.UninitializedParameter() if node.parameter else th.nn.parameter.UninitializedBuffer()
        same = self.sharing.same_object(node, self.for_door)
        if same is not None:
            return same
        made = self._values(node)
        if node.spread:
            made = self._spread(path, made, node.spread)
        want = node.requires_grad
        made = th.nn.Parameter(made, requires_grad=want) if node.parameter else made.requires_grad_(want)
        if node.attributes:
            set_attributes(made, node)
        self.sharing.makes(node, made, self.for_door)
        return made

    def _values(self, node: TensorNode) -> Any:
        """The saved values in memory of their own, or in that which they shared with others."""
        saved = self.tensors(node.name, node.dtype, node.shape)
        device = self.device(node.device)
        live = None if self.for_door else self.sharing.live_memory(node)
        if live is not None and self._takes(live, saved):
            self.copies.append(lambda: copy_tensor(live, saved))
            return live
        made = self.sharing.new_memory(node, saved, device, self.for_door)
        if made is not None:
            return made
        if node.stride is None:
            return saved.clone().to(device)
        made = torch().empty_strided(node.shape, node.stride, dtype=saved.dtype, device=device)
        copy_tensor(made, saved)
        return made

    def device(self, name: str) -> Any:
        th = torch()
        device = th.device(name)
        if device.type == "cuda":
            return th.device("cuda", th.cuda.current_device()) if th.cuda.is_available() else th.device("cpu")
        return device

    def _spread(self, path: str, local: Any, spread: Spread, old: Any = None) -> Any:
        """old: what the values will be copied to, which torch allows only on the very mesh that it has."""
        from torch.distributed.tensor import DTensor

        of_old = getattr(old, "device_mesh", None)
        meshes = [*([of_old] if of_old is not None else []), *[m for m in self.meshes if mesh_of(m) == spread.mesh], *self.meshes]
        for mesh in meshes:
            if mesh.mesh.tolist() == spread.mesh.ranks:
                return DTensor.from_local(local, mesh, spread.placements, run_check=False, shape=torch().Size(spread.shape),
                                          stride=spread.stride)
        raise self.misfit(path, f"it was spread over the ranks {spread.mesh.ranks}, and nothing that is declared is")

    def _array(self, path: str, old: Any, node: ArrayNode) -> Any:
        np = numpy()
        if np is None:
            raise self.misfit(path, "an array of numpy was saved, and numpy is not imported")
        saved = self.tensors(node.name, node.dtype, node.shape)
        same = type(old) is getattr(np, node.cls) or (type(old) is np.memmap and node.cls == "ndarray")
        if same and old.dtype == node.dtype and tuple(old.shape) == node.shape and old.flags.writeable and node.writeable \
                and self.memory.takes(old, saved):
            self.copies.append(lambda: np.copyto(old, saved))
            return old
        if not path and not self.for_door:
            have = f"{old.dtype} of shape {list(old.shape)}" if isinstance(old, np.ndarray) else class_name(old)
            raise self.misfit("", f"an array {node.dtype} of shape {list(node.shape)} was saved, and {have} is declared")
        order = node.order or tuple(range(saved.ndim))
        made = saved.transpose(order).copy().transpose([order.index(i) for i in range(saved.ndim)]).view(getattr(np, node.cls))
        made.flags.writeable = node.writeable
        return made

    def _replace(self, path: str, old: Any, new: Any) -> Any:
        """A tensor without plain bytes: copied in place where torch can."""
        if special.is_tensor(old) and special.takes_odd(old, new) and self.fills(old, special.bits_of(new), lambda: special.copy_odd(old, new)):
            return old
        if not path and not self.for_door:
            raise self.misfit("", f"a tensor {new.dtype}, {new.layout}, was saved that cannot be copied into the one that is declared")
        return new

    def _saved(self, path: str, old: Any, node: SavedNode) -> Any:
        np = numpy()
        try:
            new = special.from_bytes(node.data) if node.how == "torch" else pickle.loads(node.data)
        except Exception as e:
            raise self.misfit(path, f"what was saved there cannot be read: {type(e).__name__}: {e}") from None
        if special.is_tensor(new):
            return self._replace(path, old, new)
        if np is not None and isinstance(old, np.ndarray) and type(old) is type(new) and old.shape == new.shape and old.dtype == new.dtype \
                and self.fills(old, [node.data], lambda: copy_array(old, new)):
            return old
        return new

    # -- containers

    def _container(self, path: str, old: Any, node: Any) -> Any:
        same = type(old) is node.cls and (not path or _is_made_alike(old, node))
        if isinstance(node, MappingNode):
            return self._mapping(path, old if same else _NONE, node)
        if isinstance(node, SetNode):
            new = [n.value for n in node.items]
            return old if same and self.fills(old, sorted(map(_bytes_of, new)), lambda: _refill_set(old, new)) else node.cls(new)
        if isinstance(node, BytesNode):
            return self._bytes(path, old if same else _NONE, node)
        if isinstance(node, FieldsNode):
            return self._fields(path, old if same else _NONE, node)
        return self._sequence(path, old if same else _NONE, node)

    def _mapping(self, path: str, old: Any, node: MappingNode) -> Any:
        if old is not _NONE:
            known = {key for key, _ in node.items}
            for key in old:
                if key not in known and has_pair(old[key]):
                    raise self.misfit(join(path, key), f"{a_class(old[key])} is declared there, and its state was not saved")
        items = [(key, self.put(join(path, key), _NONE if old is _NONE else old.get(key, _NONE), child)) for key, child in node.items]
        if old is not _NONE and self.fills(old, items, lambda: _fill_mapping(old, items, node.attributes)):
            return old
        return _fill_mapping(self._new_mapping(node), items, node.attributes)

    def _new_mapping(self, node: MappingNode) -> Any:
        if issubclass(node.cls, collections.defaultdict):
            return node.cls(node.extra)
        return _new(node.cls)

    def _sequence(self, path: str, old: Any, node: SequenceNode) -> Any:
        if issubclass(node.cls, tuple):
            return self._tuple(path, old, node)
        if old is not _NONE and node.maxlen is not None and old.maxlen < len(node.items):
            raise self.misfit(path, f"{len(node.items)} elements were saved, and there is room for {old.maxlen} (maxlen)")
        before = list(old) if old is not _NONE else []
        items = [self.put(join(path, i), before[i] if i < len(before) else _NONE, child) for i, child in enumerate(node.items)]
        if old is not _NONE and self.fills(old, list(enumerate(items)), lambda: _refill(old, items)):
            return old
        if node.maxlen is not None:
            return node.cls(items, node.maxlen)
        made = _new(node.cls)
        made.extend(items)
        return made

    def _tuple(self, path: str, old: Any, node: SequenceNode) -> Any:
        before = list(old) if old is not _NONE else []
        names = getattr(node.cls, "_fields", None) or range(len(node.items))
        items = [self.put(join(path, name), before[i] if i < len(before) else _NONE, child)
                 for i, (name, child) in enumerate(zip(names, node.items))]
        if old is not _NONE and _are_alike(items, before):
            return old
        return node.cls._make(items) if hasattr(node.cls, "_make") else node.cls(items)

    def _bytes(self, path: str, old: Any, node: BytesNode) -> Any:
        new = node.cls(node.code, node.data) if node.code else node.cls(node.data)
        if old is _NONE or (node.code and old.typecode != node.code):
            return new
        if len(old) == len(new):
            fill = lambda: memoryview(old).cast("B").__setitem__(slice(None), memoryview(new).cast("B"))  # noqa: E731
        elif _can_grow(old):
            fill = lambda: old.__setitem__(slice(None), new)  # noqa: E731
        else:
            return new
        return old if self.fills(old, [(0, node.data)], fill) else new

    def _fields(self, path: str, old: Any, node: FieldsNode) -> Any:
        have = fields_of(old) or {} if old is not _NONE else {}
        items = [(n, self.put(join(path, n), have.get(n, _NONE), child)) for n, child in node.items.items()]
        gone = [n for n in have if n not in node.items]
        if old is not _NONE and self.fills(old, items, lambda: _fill_fields(old, items, gone)):
            return old
        return _fill_fields(node.cls.__new__(node.cls), items, [])

    # -- doors

    def door(self, sure: bool, call: Callable[[], Optional[Callable[[], None]]]) -> None:
        self.doors.append(Door(self.part, sure, call))

    def _owner(self, path: str, old: Any, node: Any) -> Any:
        if special.is_tensor(old) or not has_pair(old):
            kind = node.cls if isinstance(node, DoorNode) else "module" if isinstance(node, ModuleNode) else "optimizer"
            raise self.misfit(path, f"the state of a {kind} was saved, and there is {_described(old)}: create it before restore()")
        from .doors import plan_door

        plan_door(self, path, old, node)
        return old

    def make(self, path: str, node: Any) -> Any:
        """A value of its own, for a door."""
        before, self.for_door = self.for_door, True
        try:
            return self.put(path, _NONE, node)
        finally:
            self.for_door = before


def _kind_of(node: Any) -> str:
    """What a node stands for, with an article."""
    if isinstance(node, (MappingNode, SequenceNode, SetNode, BytesNode, FieldsNode)):
        return a_class(node.cls)
    if isinstance(node, Plain):
        return a_class(node.value)
    if isinstance(node, ArrayNode):
        return f"an array {node.dtype} of shape {list(node.shape)}"
    return "a generator of random numbers" if isinstance(node, GeneratorNode) else "a tensor"


def _cause_of(e: Exception) -> str:
    cause = e.__cause__ if isinstance(e, Misfit) and e.__cause__ else e
    return f"{type(cause).__name__}: {cause}"


def _take_back(back: List[Optional[Callable[[], None]]]) -> bool:
    """What was loaded is loaded no more.  False: not all of it."""
    failed: List[Exception] = []
    for undo in reversed(back):
        try:
            if undo:
                undo()
        except Exception as e:  # the first failure is told
            failed.append(e)
    clean = not failed and None not in back
    try:
        while failed:
            raise_of_handler(failed.pop(0))
        return clean
    finally:
        failed.clear()  # this frame is in their tracebacks


def _whole_optimizer(node: Packed) -> OptimizerNode:
    groups, others, inner = node.values
    cls, shapes, layout, at, tensors, ids = pickle.loads(node.tree)
    tensors = placed(tensors, node.places)
    by_place, rest = dict(zip(at, tensors)), iter(others)
    state, n = [], 0
    for owner, keys in layout:
        items = [(key, by_place[i] if i in by_place else Plain(next(rest))) for i, key in enumerate(keys, n)]
        state.append((owner, MappingNode(dict, items, None)))
        n += len(keys)
    return OptimizerNode(cls, shapes, groups, state, inner, ids)


def _described(value: Any) -> str:
    return "nothing" if value is _NONE or value is None else a_class(value)


def set_attributes(tensor: Any, node: TensorNode) -> None:
    """What the script has set on it: values as they are, all else as torch.save() keeps it."""
    for name, value in (node.attributes or {}).items():
        vars(tensor)[name] = special.from_bytes(value.data) if isinstance(value, SavedNode) else value


def spread_shape(tensor: Any) -> Optional[Tuple[int, ...]]:
    return tuple(tensor.shape) if hasattr(tensor, "_local_tensor") else None


def _can_grow(value: Any) -> bool:
    """Nothing else looks at the memory of a bytearray or an array of the module array."""
    try:
        value.append(0)
        value.pop()
    except BufferError:
        return False
    return True


def _is_made_alike(old: Any, node: Any) -> bool:
    """What was given when the container was made is the same: what it makes of a missing key, how much it takes."""
    if isinstance(node, MappingNode):
        return bool(getattr(old, "default_factory", None) == node.extra)
    if isinstance(node, SequenceNode):
        return bool(getattr(old, "maxlen", None) == node.maxlen)
    return True


def _new(cls: Any) -> Any:
    """An empty one.  As pickle does it, its __init__() is not asked where it has no __reduce__() that would."""
    return cls.__new__(cls) if issubclass(cls, (dict, list)) and cls.__reduce__ is object.__reduce__ else cls()


def _fill_mapping(target: Any, items: List[Tuple[Any, Any]], attributes: Optional[Dict[str, Any]]) -> Any:
    target.clear()
    for key, value in items:  # not update(): a Counter adds there
        target[key] = value
    if attributes:
        vars(target).update(copy.deepcopy(attributes))
    return target


def _fill_fields(target: Any, items: List[Tuple[str, Any]], gone: List[str]) -> Any:
    for name in gone:
        object.__delattr__(target, name)
    for name, value in items:
        object.__setattr__(target, name, value)
    return target


def _refill_set(old: Any, new: List[Any]) -> None:
    old.clear()
    old.update(new)


def _bytes_of(value: Any) -> bytes:
    return pickle.dumps(value, special.PICKLE)


def _are_alike(a: List[Any], b: List[Any]) -> bool:
    """The same objects, or values that are alike, in the same places."""
    return len(a) == len(b) and all(x is y or _is_alike(x, y) for x, y in zip(a, b))


def _is_alike(x: Any, y: Any) -> bool:
    if isinstance(x, tuple) and type(x) is type(y):
        return _are_alike(list(x), list(y))
    return is_value(x) and is_value(y) and _bytes_of(x) == _bytes_of(y)


def _hold_alike(x: Any, y: Any) -> bool:
    """Of two objects that were made anew of what was saved twice: one container, in two parts."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if special.is_tensor(x):
        if not special.is_block_tensor(x) or not special.is_block_tensor(y):
            return special.to_bytes(x) == special.to_bytes(y)
        return bool((x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device) and is_alike(x, y))
    if isinstance(x, dict):
        return _hold_alike(list(x.items()), list(y.items()))
    if isinstance(x, (tuple, list, collections.deque)):
        return len(x) == len(y) and all(map(_hold_alike, x, y))
    if is_value(x):
        return is_value(y) and _bytes_of(x) == _bytes_of(y)
    mine, theirs = fields_of(x), fields_of(y)
    return mine is not None and theirs is not None and _hold_alike(list(mine.items()), list(theirs.items()))


def _refill(old: Any, value: Any) -> None:
    old.clear()
    if isinstance(old, dict):
        old.update(value)
    else:
        old.extend(value)
