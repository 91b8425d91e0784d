"""Tensors that shared memory when they were saved, and share it again where they are made anew.

What a script has already is filled in place, and shares what it shares there.  Only what has to be made would come apart: a
view in a dict that was filled later, a tensor that stands in two parts.  So it is planned twice: the first time it is noted
what is filled in place and what is made; if these shared memory, the second one knows which storage to use."""

from __future__ import annotations

import array
import operator
import pickle
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from . import special
from .memory import Cells, Region, fits_place
from .tree import MappingNode, ModuleNode, Place, SequenceNode, TensorNode
from .values import numpy, torch

_GRAIN = 16  # bytes: where a new storage begins is a multiple of it in the saved one


def pack_places(tensors: List[Any]) -> bytes:
    """Of the tensors of a block, in few bytes: what is alone in its storage has two numbers."""
    storages, objects = array.array("Q"), array.array("Q")
    odd: Dict[int, Tuple[int, int, Tuple[int, ...]]] = {}
    alone = _alone(tensors)
    if alone is not None:
        return pickle.dumps((array.array("Q", alone), array.array("Q", map(id, tensors)), odd), special.PICKLE)
    for i, tensor in enumerate(tensors):
        place = special.place_of(tensor) or Place(0, 0, 0, (), 0)
        storages.append(place.storage)
        objects.append(place.object)
        if place.storage and (place.offset or place.size != tensor.numel() * tensor.element_size() or not tensor.is_contiguous()):
            odd[i] = (place.size, place.offset, place.stride)
    return pickle.dumps((storages, objects, odd), special.PICKLE)


def _alone(tensors: List[Any]) -> Optional[List[int]]:
    """Where the storages of many ordinary tensors lie, if each fills its own; None: not all do.  In few calls of Python."""
    th = torch()
    kind = th.Tensor
    if not {kind, th.nn.Parameter}.issuperset(map(type, tensors)):
        return None
    storages = list(map(kind.untyped_storage if hasattr(kind, "untyped_storage") else special.storage_of, tensors))
    at = [s.data_ptr() for s in storages]
    sizes = list(map(operator.mul, map(kind.numel, tensors), map(kind.element_size, tensors)))
    fills = (0 not in at and at == list(map(kind.data_ptr, tensors)) and [s.nbytes() for s in storages] == sizes
             and all(map(kind.is_contiguous, tensors)) and not any(map(kind.is_neg, tensors)) and not any(map(kind.is_conj, tensors)))
    return at if fills else None


def placed(nodes: List[Any], packed: bytes) -> List[Any]:
    """The same nodes, with their places."""
    if not packed:
        return nodes
    storages, objects, odd = pickle.loads(packed)
    done = []
    for i, (node, storage, of) in enumerate(zip(nodes, storages, objects)):
        if isinstance(node, TensorNode) and of:
            stride = _dense(node.shape)
            size, offset, stride = odd.get(i) or (_bytes_in(node), 0, stride)
            node = node._replace(place=Place(storage, size, offset, stride, of))
        done.append(node)
    return done


def with_places(tree: Any, packed: bytes) -> Any:
    """The tree of a block of a module, a dict or a list."""
    if isinstance(tree, ModuleNode):
        return tree._replace(tensors=placed(tree.tensors, packed))
    if isinstance(tree, MappingNode):
        nodes = placed([node for _, node in tree.items], packed)
        return tree._replace(items=[(key, node) for (key, _), node in zip(tree.items, nodes)])
    return tree._replace(items=placed(tree.items, packed)) if isinstance(tree, SequenceNode) else tree


def _dense(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    stride, step = [], 1
    for n in reversed(shape):
        stride.append(step)
        step *= max(n, 1)
    return tuple(reversed(stride))


def _size_of(node: TensorNode) -> int:
    return int(torch().empty(0, dtype=getattr(torch(), node.dtype)).element_size())


def _bytes_in(node: TensorNode) -> int:
    n = _size_of(node)
    for k in node.shape:
        n *= k
    return n


def _cells(node: TensorNode) -> Cells:
    assert node.place is not None
    size = _size_of(node)
    return Cells(node.place.offset, tuple(node.shape), tuple(n * size for n in node.place.stride), size)


class _Made(NamedTuple):
    node: TensorNode
    saved: Any
    door: bool  #: it is given to a load_state_dict(), which wants the values at once


class _Storage:
    """One saved storage: what of it is filled in place, and what is made anew."""

    def __init__(self) -> None:
        self.live: Any = None  #: a tensor of the script that lies in its own storage as the saved one did
        self.made: List[_Made] = []
        self.memory: Dict[Tuple[bool, str], Any] = {}  #: for doors or not, by device: where it begins, and its bytes


class Sharing:
    """settled() of the first planning is what the second one goes by."""

    def __init__(self) -> None:
        self.final = False
        self.storages: Dict[int, _Storage] = {}
        self.objects: Dict[int, Any] = {}  #: by the id of a saved tensor: the script's own that stands for it
        self.made: Dict[Tuple[int, bool], Any] = {}  #: and those that were made, for doors or not
        self.wanted: Dict[int, int] = {}  #: how often a saved tensor is made
        self.loose: Set[int] = set()  #: which of them are made for no door

    # -- what the planning says

    def fills(self, node: TensorNode, tensor: Any) -> None:
        """A tensor of the script is filled in place."""
        if node.place is None or self.final:
            return
        self.stands(node, tensor)
        if node.place.storage and fits_place(tensor, node.place):
            storage = self._storage(node.place)
            storage.live = tensor if storage.live is None else storage.live

    def stands(self, node: TensorNode, tensor: Any) -> None:
        """A tensor of the script stands for a saved one."""
        if node.place is not None and not self.final:
            self.objects.setdefault(node.place.object, tensor)

    def makes(self, node: TensorNode, made: Any, door: bool) -> None:
        if node.place is None:
            return
        self.wanted[node.place.object] = self.wanted.get(node.place.object, 0) + 1
        if not door:
            self.loose.add(node.place.object)
        self.made.setdefault((node.place.object, door and self._apart(node.place)), made)

    # -- what it asks

    def same_object(self, node: TensorNode, door: bool) -> Any:
        """The tensor that stands for the same one; None: there is none."""
        if node.place is None or not self.final:
            return None
        if not door and node.place.object in self.objects:
            return self.objects[node.place.object]
        return self.made.get((node.place.object, door and self._apart(node.place)))

    def live_memory(self, node: TensorNode) -> Any:
        """A view of the script's own memory that stands for the saved one."""
        storage = self._of(node)
        if storage is None or storage.live is None or not self.final:
            return None
        assert node.place is not None
        base = storage.live.detach()
        if str(base.dtype) != f"torch.{node.dtype}":
            base = torch().empty(0, dtype=getattr(torch(), node.dtype), device=base.device)
        return _in_storage(base, special.storage_of(storage.live), node.place.offset // _size_of(node), node)

    def new_memory(self, node: TensorNode, saved: Any, device: Any, door: bool) -> Any:
        """The same of memory that is new; None: it has its own."""
        if node.place is None or not node.place.storage or numpy() is None:
            return None
        if not self.final:
            self._storage(node.place).made.append(_Made(node, saved, door))
            return None
        storage = self._of(node)
        if storage is None or len(storage.made) < 2:
            return None
        door = door and storage.live is not None
        key = (door, str(device))
        if key not in storage.memory:
            storage.memory[key] = _lay_out([m for m in storage.made if m.door or not door], device)
        begin, memory, members = storage.memory[key]
        if _cells(node) not in members:
            return None
        offset = (node.place.offset - begin) // _size_of(node)
        return _in_storage(torch().empty(0, dtype=saved.dtype, device=device), special.storage_of(memory), offset, node)

    # -- between the two

    def settled(self) -> Optional["Sharing"]:
        """None: nothing that is made shares anything."""
        some = any(len(s.made) > 1 or (s.live is not None and not all(m.door for m in s.made)) for s in self.storages.values())
        if not some and not any(n > 1 for n in self.wanted.values()) and self.loose.isdisjoint(self.objects):
            return None
        other = Sharing()
        other.final, other.storages, other.objects = True, self.storages, self.objects
        return other

    def _apart(self, place: Place) -> bool:
        """What a load_state_dict() is given is not what the script has and fills only later."""
        storage = self.storages.get(place.storage)
        return place.object in self.objects or (storage is not None and storage.live is not None)

    def _storage(self, place: Place) -> _Storage:
        return self.storages.setdefault(place.storage, _Storage())

    def _of(self, node: TensorNode) -> Optional[_Storage]:
        return self.storages.get(node.place.storage) if node.place is not None and node.place.storage else None


def _in_storage(empty: Any, storage: Any, offset: int, node: TensorNode) -> Any:
    assert node.place is not None
    th = torch()
    return th.empty(0, dtype=empty.dtype, device=empty.device).set_(storage, offset, node.shape, node.place.stride)


def _lay_out(made: List[_Made], device: Any) -> Tuple[int, Any, Any]:
    """Memory that holds all of them: where it begins in the saved storage, its bytes, and the cells of those that agree
    with each other."""
    all_cells = [_cells(m.node) for m in made]
    bounds = [cells.bounds() for cells in all_cells]
    low = min(a for a, _ in bounds) // _GRAIN * _GRAIN
    region = Region(low, max(b for _, b in bounds), {})
    members = {cells for cells, m in zip(all_cells, made) if region.takes(cells, m.saved)}
    th = torch()
    return low, th.from_numpy(region.content()).clone().to(device), members
