"""One part as it lies in a slot: a safetensors file whose data begin at a multiple of 4096 bytes.

    u64 length of the JSON | JSON, padded with blanks | tensors, those first whose elements want the roundest addresses

The tree of what is no tensor (tree.py) lies there as bytes, as the tensor "obj/SHARD/PART": its length in 8 bytes, the
pickle, and room for it to grow.  Types that PyTorch's own reader of safetensors does not know (bool, unsigned, float8,
complex128) lie there as bytes, with their type beside them."""

from __future__ import annotations

import json
import pickle
import struct
import warnings
from typing import Any, Dict, List, NamedTuple, Tuple

from .blocks import Spec
from .special import PICKLE
from .tree import Misfit
from .values import numpy, torch

PAGE = 4096
STEP_DIGITS = 20
OWN_MAX = 1 << 20  # bytes of a tensor that each rank keeps for itself, unless it is a buffer

_TORCH_DTYPES = {
    "float64": ("F64", 8), "float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2), "int64": ("I64", 8),
    "int32": ("I32", 4), "int16": ("I16", 2), "int8": ("I8", 1), "uint8": ("U8", 1), "complex64": ("C64", 8),
}
_NUMPY_DTYPES = {
    "<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8", "|u1": "U8",
    "<c8": "C64",
}


class Row(NamedTuple):
    """Where the bytes of one tensor lie."""

    spec: Spec
    tag: str  #: safetensors' name of its type
    size: int  #: bytes of an element
    shape: List[int]  #: as the header has it
    bytes: int
    note: Dict[str, Any]

    @property
    def own(self) -> bool:
        """It may differ on ranks that share the part: a buffer, or a small tensor that is no parameter and no moment."""
        return not self.spec.shared and self.spec.spread is None and (self.spec.moves or self.bytes <= OWN_MAX)


def _is_numpy(dtype: Any) -> bool:
    np = numpy()
    return np is not None and isinstance(dtype, np.dtype)


def _row(spec: Spec) -> Row:
    count = 1
    for n in spec.shape:
        count *= n
    note: Dict[str, Any] = {}
    if _is_numpy(spec.dtype):
        tag, size, kind = _NUMPY_DTYPES.get(spec.dtype.str), spec.dtype.itemsize, spec.dtype.str
    else:
        kind = str(spec.dtype).replace("torch.", "")
        tag, size = _TORCH_DTYPES.get(kind, (None, 0))
        size = size or element_size(spec.dtype)
    shape = list(spec.shape)
    if spec.spread is not None:
        note["global_shape"] = list(spec.spread.shape)
        note["offset"] = list(spec.where or [0] * len(shape))
    if tag is None:
        tag, shape = "U8", shape + [size]
        note["dtype"] = kind
        if "offset" in note:
            note["offset"] = note["offset"] + [0]
    return Row(spec, tag, size, shape, count * size, note)


def _grain(size: int) -> int:
    """What the address of such elements has to be a multiple of."""
    return min(size & -size, 16) if size else 16


def element_size(dtype: Any) -> int:
    """Bytes of an element of one of torch's types."""
    return int(torch().empty(0, dtype=dtype).element_size())


class Layout:
    """Where everything of a part lies, for one set of names, shapes and types.  room: bytes for the pickled tree.
    shared: other ranks may declare it, too, and elrun compares what must be alike."""

    def __init__(self, part: str, shard_id: str, blob: str, chunks: Tuple[Tuple[Spec, ...], ...], room: int, shared: bool):
        self.part, self.shard_id, self.blob = part, shard_id, blob
        self.room = room
        rows = [_row(spec) for chunk in chunks for spec in chunk]
        self.rows = rows
        order = sorted(range(len(rows)), key=lambda i: (-_grain(rows[i].size), i))
        at, self.offsets = 0, [0] * len(rows)
        for i in order:
            self.offsets[i] = at
            at += rows[i].bytes
        self.plain = all(row.bytes and not _is_numpy(row.spec.dtype) for row in rows)  #: tensors with elements, all of them
        self.blob_at = at
        self.header = self._header(order, at + 8 + room, shared)
        self.bytes = len(self.header) + at + 8 + room

    def _alike(self) -> str:
        """Which tensors must be alike on all ranks, by their numbers in the order of their bytes: "0-147,150": parameters and
        moments, and what is too large to be kept for each rank."""
        place = sorted(range(len(self.rows)), key=lambda i: (self.offsets[i], self.offsets[i] + self.rows[i].bytes,
                                                             self.rows[i].spec.name.encode()))
        spans: List[List[int]] = []
        for n, i in enumerate(place):
            row = self.rows[i]
            if not row.spec.shared and (row.own or row.spec.spread is not None):
                continue
            if spans and spans[-1][1] == n - 1:
                spans[-1][1] = n
            else:
                spans.append([n, n])
        return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in spans)

    def _header(self, order: List[int], end: int, shared: bool) -> bytes:
        mine: Dict[str, Any] = {"part": self.part, "shard_id": self.shard_id, "step": "0" * STEP_DIGITS,
                                "tensors": {self.blob: {"object": "pickle"}}}
        offsets: Dict[str, Any] = {self.blob: {"saved_offsets": [0]}}
        for row in self.rows:
            if row.note or row.own:
                mine["tensors"][row.spec.name] = {**row.note, **({"own": True} if row.own else {})}
            offsets[row.spec.name] = {"saved_offsets": row.note.get("offset", [0] * len(row.shape))}
        head: Dict[str, Any] = {"__metadata__": {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(offsets),
                                                 "elrun": json.dumps(mine)}}
        if shared:
            head["__metadata__"]["elrun_alike"] = self._alike()
        for i in order:
            row, at = self.rows[i], self.offsets[i]
            head[row.spec.name] = {"dtype": row.tag, "shape": row.shape, "data_offsets": [at, at + row.bytes]}
        head[self.blob] = {"dtype": "U8", "shape": [8 + self.room], "data_offsets": [self.blob_at, end]}
        text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-(8 + len(text)) % PAGE)
        whole = struct.pack("<Q", len(text)) + text
        mark = b'\\"step\\": \\"' + b"0" * STEP_DIGITS
        self.step_at = whole.index(mark) + len(mark) - STEP_DIGITS
        return whole

    def views(self, image: memoryview) -> List[Any]:
        """What copies into each tensor of an image of this layout; None for those without elements."""
        return [_view(row.spec, image, len(self.header) + at, row.bytes) for row, at in zip(self.rows, self.offsets)]

    def write(self, image: memoryview, step: int, blob: bytes) -> None:
        """All but the tensors."""
        image[: len(self.header)] = self.header
        image[self.step_at : self.step_at + STEP_DIGITS] = b"%0*d" % (STEP_DIGITS, step)
        at = len(self.header) + self.blob_at
        image[at : at + 8] = struct.pack("<Q", len(blob))
        image[at + 8 : at + 8 + len(blob)] = blob


def room_for(blob: int, had: int) -> int:
    """Bytes for a pickled tree that may grow: what there was, if it will do, else half as much again, of a large one an
    eighth: they are summed, and written to disk, each time."""
    return had if blob <= had else -(-(blob + min(blob // 2, 65536 + blob // 8) + 512) // 512) * 512


def _view(spec: Spec, image: memoryview, at: int, n: int) -> Any:
    np = numpy()
    if np is not None and isinstance(spec.dtype, np.dtype):
        return np.frombuffer(image, dtype=np.uint8, count=n, offset=at).view(spec.dtype).reshape(spec.shape) if n else None
    return torch_view(image, at, n, spec.dtype, spec.shape) if n else None


def torch_view(image: Any, at: int, n: int, dtype: Any, shape: Any) -> Any:
    th = torch()
    with warnings.catch_warnings():  # of memory that cannot be written to: it is only read
        warnings.simplefilter("ignore")
        return th.frombuffer(image, dtype=th.uint8, count=n, offset=at).view(dtype).view(shape)


class Image:
    """A part that was saved, to be read.  ValueError: it is no such image."""

    def __init__(self, image: memoryview):
        (length,) = struct.unpack_from("<Q", image)
        if length > len(image) - 8:
            raise ValueError(f"its header has {length} bytes, and all of it {len(image)}")
        head = json.loads(bytes(image[8 : 8 + length]))
        mine = json.loads(head.pop("__metadata__")["elrun"])
        self.part = mine["part"]
        self.image, self.start = image, 8 + length
        self.head, self.notes = head, mine["tensors"]
        self.prefix = f"r{int(mine['shard_id'][4:]):05d}/" if mine["shard_id"].startswith("rank") and mine["shard_id"][4:].isdigit() else ""
        self.blob = next(name for name, note in self.notes.items() if note.get("object"))

    def tree(self) -> Any:
        at, end = self.head[self.blob]["data_offsets"]
        (n,) = struct.unpack_from("<Q", self.image, self.start + at)
        if n > end - at - 8:
            raise ValueError(f"{self.blob}: {n} bytes in room for {end - at - 8}")
        return self.unpickle(self.image[self.start + at + 8 : self.start + at + 8 + n])

    @staticmethod
    def unpickle(data: Any) -> Any:
        """Misfit: the script has no class of a name that it had."""
        try:
            return pickle.loads(data)
        except (AttributeError, ImportError) as e:
            raise Misfit(f"what was saved has an object of a class that is not there any more: {e}") from None

    def has(self, name: str) -> bool:
        return name in self.head

    def tensor(self, name: str, dtype: Any, shape: Tuple[int, ...]) -> Any:
        """The saved values, which may only be read: a tensor of that type, or an array if it is one of numpy's."""
        at, end = self.head[name]["data_offsets"]
        np = numpy()
        if np is not None and isinstance(dtype, np.dtype):
            if end == at:
                return np.empty(shape, dtype)
            return np.frombuffer(self.image, dtype=np.uint8, count=end - at, offset=self.start + at).view(dtype).reshape(shape)
        th = torch()
        kind = getattr(th, dtype)
        return torch_view(self.image, self.start + at, end - at, kind, shape) if end > at else th.empty(shape, dtype=kind, device="cpu")


def pickled(tree: Any) -> bytes:
    return pickle.dumps(tree, PICKLE)
