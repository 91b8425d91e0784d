"""The state of an object as a tree: what is pickled beside the tensors of a snapshot.

A tree consists of the nodes below.  Tensors and arrays stand in it by the name under which their bytes lie in the part's
safetensors file; everything else is in the tree itself.  Nodes are pickled by the names of their classes, so these are
part of the format of a snapshot.  A node that is met twice stands for one object that was met twice."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple


class Misfit(RuntimeError):
    """What was saved does not fit what is declared: the text says which part and what differs.  spoiled: some of it was
    filled all the same, by a load_state_dict() that failed half-way."""

    def __init__(self, text: str, spoiled: bool = False):
        super().__init__(text)
        self.spoiled = spoiled


class Refused(TypeError):
    """An object that could not be put back: the text says where it is and why."""


class Plain(NamedTuple):
    """An immutable value, or a list, tuple or dict of nothing but such values."""

    value: Any


class Mesh(NamedTuple):
    """Which torch.distributed.device_mesh.DeviceMesh a tensor was spread over."""

    ranks: Any  #: nested lists
    names: Optional[Tuple[str, ...]]


class Spread(NamedTuple):
    """A DTensor: the whole, of which each rank saves its own piece."""

    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    placements: Tuple[Any, ...]
    mesh: Mesh


class Place(NamedTuple):
    """Where a tensor lay in the memory of the process that saved it: what shares memory there shares it again where it is
    made anew.  Numbers of one snapshot can be compared with each other, whatever the part."""

    storage: int  #: its address; 0: it shares nothing
    size: int  #: of the storage, in bytes
    offset: int  #: in bytes
    stride: Tuple[int, ...]  #: in elements
    object: int  #: id() of the tensor: the same object may stand at two places


class TensorNode(NamedTuple):
    name: str  #: of its bytes
    dtype: str  #: "float32"
    shape: Tuple[int, ...]  #: of the piece that is here
    device: str
    spread: Optional[Spread]
    parameter: bool
    requires_grad: bool
    stride: Optional[Tuple[int, ...]]  #: None: its elements lie one behind the other
    place: Optional[Place] = None  #: None: it shares nothing, or a Packed node has it
    attributes: Optional[Dict[str, Any]] = None  #: that were set on it, as far as they are values


class ArrayNode(NamedTuple):
    name: str
    dtype: Any  #: numpy's
    shape: Tuple[int, ...]
    cls: str  #: numpy's name: "ndarray", "matrix", "recarray"
    order: Optional[Tuple[int, ...]] = None  #: its dimensions, the outermost in memory first; None: as they are listed
    writeable: bool = True


class SparseNode(NamedTuple):
    """A sparse tensor: its indices and values are tensors of their own."""

    layout: str  #: "sparse_coo"
    shape: Tuple[int, ...]
    members: Tuple[TensorNode, ...]
    coalesced: bool
    requires_grad: bool


class SavedNode(NamedTuple):
    """What torch.save() or pickle makes of an object that has no plain bytes: a quantized tensor, a masked array."""

    how: str  #: "torch", "pickle"
    data: bytes


class EmptyNode(NamedTuple):
    """A parameter of a lazy module that has no shape yet."""

    parameter: bool


class MappingNode(NamedTuple):
    cls: Any
    items: List[Tuple[Any, Any]]
    extra: Any  #: a defaultdict's default_factory
    attributes: Optional[Dict[str, Any]] = None  #: of an OrderedDict: a state_dict() has the versions of its modules there


class SequenceNode(NamedTuple):
    cls: Any  #: list, tuple, deque, a namedtuple
    items: List[Any]
    maxlen: Optional[int]


class SetNode(NamedTuple):
    cls: Any
    items: List[Any]


class BytesNode(NamedTuple):
    """A bytearray, or an array of the module array."""

    cls: Any
    code: str
    data: bytes


class FieldsNode(NamedTuple):
    """A dataclass, or a namespace: an object that is its attributes."""

    cls: Any
    items: Dict[str, Any]


class GeneratorNode(NamedTuple):
    """A generator of random numbers."""

    kind: str  #: "torch", "python", "numpy", "numpy-legacy", "numpy-bits", "numpy-seed"
    detail: Any  #: the device; the class; the name of numpy's bit generator
    state: Any
    inner: Any = None  #: what it draws from, or was seeded with


class DoorNode(NamedTuple):
    """What state_dict() gave, to be given to load_state_dict()."""

    cls: str
    state: Any
    inner: Dict[str, Any]  #: optimizers that this one holds beside its own state


class ModuleNode(NamedTuple):
    """What state_dict() of a torch.nn.Module gave."""

    keys: List[str]
    tensors: List[Any]
    metadata: Dict[str, Any]  #: versions of its modules, by prefix
    raw: bool  #: FSDP1: the shards themselves, without its collective state_dict()


class OptimizerNode(NamedTuple):
    """A torch.optim.Optimizer without a state_dict() of its own.  shapes: of its parameters, by group; state: by number
    of the parameter, or by a key of the optimizer's own."""

    cls: str
    shapes: List[List[Tuple[int, ...]]]
    groups: List[Any]
    state: List[Tuple[Any, Any]]
    inner: Dict[str, Any]
    ids: List[List[int]] = []  #: id() of its parameters: modules beside it have their names


class ShardedOptimizerNode(NamedTuple):
    """torch's ZeroRedundancyOptimizer: the optimizer of this rank's parameters, and the hyperparameters of all."""

    local: Any
    groups: List[Any]


class Packed(NamedTuple):
    """A node that is pickled already, since it is large and seldom changes; beside it the values that do."""

    tree: bytes
    values: List[Any]
    places: bytes = b""  #: of its tensors, in their order (sharing.py)


def join(path: str, key: Any) -> str:
    """The path of an item; never "", which stands for the whole object."""
    return f"{path}.{key}" if path else str(key) or '""'


def class_name(value: Any) -> str:
    cls = value if isinstance(value, type) else type(value)
    return cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"


def a_class(value: Any) -> str:
    """Its class with an article, for a text."""
    name = class_name(value)
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"
