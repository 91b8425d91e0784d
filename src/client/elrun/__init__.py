"""Snapshots of a training script's state in memory that outlives the script, and planned changes between two steps.

    import elrun
    ck = elrun.connect()                      # None outside elrun: the script stays portable
    if ck:
        ck.declare("train", {"model": model, "optim": optim, "rng": elrun.Rng()})
        step = ck.restore()                   # None: begin at the beginning
    ...
        with ck.update(step):                 # what changes the state; ends the script between two steps if elrun asks
            optim.step()
        ck.snapshot(step)                     # copies; from then on nothing that happens to this process loses it

The bytes belong to elrun's agent on this node.  Each part that is declared is one safetensors file in its memory.
Standard library only; torch and numpy are used where their tensors and arrays are given.  Not thread-safe: one thread
calls; a thread of the module's own copies the state for last words (_Words).  The protocol is elrun's own (src/ckpt/wmsg.h); elrun puts the fitting version of this file on PYTHONPATH.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import mmap
import os
import pickle
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

__all__ = ["connect", "Snapshots", "Change", "Event", "Image", "Regroup", "Rng", "Error", "NoSnapshot", "accumulate", "scale_lr"]

PROTO = 1
PACKET_MAX = 60 << 10
PAGE = 4096
_MAGIC = 0x31434C45
_HEAD = struct.Struct("<IHHII")
_TYPES = {
    "HELLO": 1, "DECLARE": 2, "GRANT": 3, "SNAP_BEGIN": 4, "SNAP_SLOT": 5, "SNAP_COMMIT": 6, "SNAP_ACK": 7,
    "SNAP_ABORT": 8, "EVENT": 9, "RESTORE_QUERY": 10, "RESTORE_OFFER": 11, "RESTORE_DONE": 12,
    "LASTWORDS": 14, "REFUSED": 15, "DONE": 16, "NOTICE": 24, "AT_BOUNDARY": 25, "WELCOME": 26, "PART": 27, "SNAP_PART": 28,
    "CAPTURED": 29, "FAILING": 30,
}
_NAMES = {number: name for name, number in _TYPES.items()}


class Error(RuntimeError):
    """The agent refused something, or is gone; the text says what and why."""


class NoSnapshot(Error):
    """restore(): snapshots were taken, and none is left that every rank can have."""


class Change(NamedTuple):
    """A planned change of the job: its last step of this round is announced."""

    why: str  #: "scale up", "drain", "spare comes in", "eviction", "operator"
    step: int  #: the round's last step
    deadline: float  #: seconds from now; then the workers are stopped wherever they are


class Event(NamedTuple):
    """What became of a snapshot on its way to --ckpt-dir."""

    kind: str  #: "persisted": this node's files are written; "committed": it is a checkpoint; "failed"
    step: int
    text: str  #: where it is, or why it is not


class Regroup(SystemExit):
    """Raised between two steps where elrun stops all ranks for a planned change.  A script that does not catch it ends;
    one that does may close files, and ends then: its exit status means nothing.  The next round goes on from here."""

    def __init__(self, change: Optional[Change]):
        super().__init__()
        self.change = change  #: what was announced

    def __str__(self) -> str:
        return f"the round ends behind step {self.change.step}: {self.change.why}" if self.change else "the round ends"


# --- the status page: where this worker is, and where it is to stop (src/ckpt/page.h) -----------------------------------

_INIT, _STABLE, _UPDATING, _SNAPSHOT, _BLOCKED, _EXITING = range(6)
_WHY = ("", "scale up", "drain", "spare comes in", "eviction", "operator")
_NO_STEP = (1 << 63) - 1
_SEQ, _LIVE, _LIMIT, _BEAT, _STARTED, _BOUNDARY, _DEADLINE, _BEGIN, _AT = 5, 6, 8, 9, 10, 11, 12, 14, 15  # 8 bytes each
_PHASE, _REASON = 14, 26  # 4 bytes each
EVENTS_MAX = 1000  # that nobody has asked for: the oldest go
_FREEZE_MAX = 180.0  # seconds that a step waits for whoever forbade it


class _Page:
    """The page as words.  The agent reads it at any time, so each word is written at once, and what belongs together
    stands between two odd values of the sequence."""

    def __init__(self, fd: int):
        self.map = mmap.mmap(fd, PAGE)
        self.long = memoryview(self.map).cast("q")
        self.word = memoryview(self.map).cast("I")
        self._fence = threading.Lock()

    def fence(self) -> None:
        """What was written is visible to the agent before what is read next."""
        with self._fence:
            pass

    def begin(self, step: int) -> None:
        self.long[_SEQ] += 1
        self.long[_BEGIN] = step
        self.long[_STARTED] = time.monotonic_ns()
        self.word[_PHASE] = _UPDATING
        self.long[_SEQ] += 1
        self.fence()

    def end(self, step: int) -> bool:
        """The step is done.  True: a boundary lies here, and this worker stops."""
        self.long[_SEQ] += 1
        self.long[_LIVE] = step
        self.long[_BEAT] = time.monotonic_ns()
        self.word[_PHASE] = _STABLE
        self.fence()
        stops = step >= self.long[_BOUNDARY]
        if stops:
            self.long[_AT] = step
        self.long[_SEQ] += 1
        self.fence()
        return stops


class Image(NamedTuple):
    """What a rank was restored from, for restore(share=...); bytes(image) is for a rank that has nothing."""

    consumed_samples: int
    slot: mmap.mmap

    def __bytes__(self) -> bytes:
        return struct.pack("<Q", self.consumed_samples) + self.slot[:]


class _Update:
    """What ck.update() returns."""

    __slots__ = ("ck", "step")

    def __init__(self, ck: "Snapshots", step: int):
        self.ck, self.step = ck, step

    def __enter__(self) -> None:
        self.ck._begin(self.step)

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.ck._end(self.step)


# --- leaves: where bytes come from and go to ---------------------------------------------------------------------------


def _torch() -> Any:
    return sys.modules.get("torch")  # whoever has a tensor has imported it


def _numpy() -> Any:
    return sys.modules.get("numpy")


_TORCH_DTYPES = {
    "float64": ("F64", 8), "float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2), "int64": ("I64", 8),
    "int32": ("I32", 4), "int16": ("I16", 2), "int8": ("I8", 1), "uint8": ("U8", 1), "complex64": ("C64", 8),
}
_NUMPY_DTYPES = {
    "<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8", "|u1": "U8",
    "<c8": "C64",
}


class _Leaf:
    """One tensor of a part: its name, how it lies in the file, and how it is copied.  Types that PyTorch's own reader of
    safetensors does not know (bool, unsigned, float8, complex128) lie there as bytes, with their type beside them."""

    def __init__(self, name: str, dtype: str, size: int, shape: Tuple[int, ...], note: Dict[str, Any]):
        self.name, self.dtype, self.size, self.shape, self.note = name, dtype, size, shape, note
        self.bytes = size
        for n in shape:
            self.bytes *= n
        self.at = 0  # in the part

    def view(self, part: memoryview) -> Any:
        """What copies to and from these bytes of a mapped slot; made once for each slot."""
        raise NotImplementedError

    def save(self, view: Any) -> None:
        raise NotImplementedError

    def load(self, view: Any) -> None:
        raise NotImplementedError


class _Tensor(_Leaf):
    def __init__(self, name: str, tensor: Any, moves: bool = False):
        torch = _torch()
        self.moves = moves  # a buffer: it may change in the forward pass, outside of any step
        note: Dict[str, Any] = {}
        local = tensor
        if hasattr(tensor, "to_local"):  # a DTensor: this rank's piece of it
            local = tensor.to_local()
            note["global_shape"] = list(tensor.shape)
            note["offset"] = _offset(tensor)
        self.tensor = local.detach()
        kind = str(self.tensor.dtype).replace("torch.", "")
        dtype, size = _TORCH_DTYPES.get(kind, ("U8", self.tensor.element_size()))
        shape = tuple(self.tensor.shape)
        if kind not in _TORCH_DTYPES:
            note["dtype"] = kind
            shape, size = shape + (size,), 1
            if "offset" in note:
                note["offset"].append(0)
        super().__init__(name, dtype, size, shape, note)
        self.torch = torch

    def view(self, part: memoryview) -> Any:
        torch = self.torch
        if self.bytes == 0:
            return None
        with warnings.catch_warnings():  # of memory that cannot be written to: it is only read
            warnings.simplefilter("ignore")
            raw = torch.frombuffer(part, dtype=torch.uint8, count=self.bytes, offset=self.at)
        return raw.view(self.tensor.dtype).view(self.tensor.shape)

    def save(self, view: Any) -> None:
        if view is not None:
            view.copy_(self.tensor, non_blocking=False)

    def load(self, view: Any) -> None:
        if view is not None:
            with self.torch.no_grad():
                self.tensor.copy_(view)


class _State(_Tensor):
    """A tensor of an optimizer's state, looked up each time: it is not there before the first step (an absent one is
    saved as zeros), and load_state_dict() puts another one in its place."""

    def __init__(self, name: str, states: "_States", index: int, key: str):
        self.states, self.index, self.key = states, index, key
        super().__init__(name, states.of(index)[key])

    def _now(self) -> bool:
        tensor = self.states.of(self.index).get(self.key)
        if tensor is None:
            return False
        self.tensor = (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()
        return True

    def save(self, view: Any) -> None:
        if self._now():
            super().save(view)
        elif view is not None:
            view.zero_()

    def load(self, view: Any) -> None:
        if not self._now():
            self.states.make()
            self._now()
        super().load(view)


class _States:
    """The states of an optimizer's parameters, by their number.  It makes them at its first step; what is declared, and
    filled, has to be known before, so one is made for that.  It is taken away again before training goes on: a momentum
    of a step that never was, with weight decay in it, would be a step."""

    def __init__(self, optim: Any):
        self.optim = optim
        self.params = [param for group in optim.param_groups for param in group["params"]]

    def of(self, index: int) -> Dict[str, Any]:
        state: Dict[str, Any] = self.optim.state.get(self.params[index], {})
        return state

    def absent(self) -> List[int]:
        return [i for i in range(len(self.params)) if not self.of(i)]

    def forget(self, absent: List[int]) -> None:
        for i in absent:
            self.optim.state.pop(self.params[i], None)

    def make(self) -> None:
        """A state for each parameter that may be trained and has none: the values mean nothing."""
        if not any(self.params[i].requires_grad for i in self.absent()):
            return
        kept = dict(self.optim.state)
        self.optim.state.clear()
        try:
            _step_of_nothing(self.optim)
        except Exception as e:
            raise Error(f"{type(self.optim).__name__}: its state cannot be made without a step of the training ({e}): "
                        "declare it after its first step") from None
        finally:
            self.optim.state.update(kept)


def _step_of_nothing(optim: Any) -> None:
    """Gradients of zero and a learning rate of zero: no parameter changes, as torch's own checkpoints do it."""
    torch = _torch()
    rates = [g["lr"] for g in optim.param_groups]
    grads = [[p.grad for p in g["params"]] for g in optim.param_groups]
    try:
        for group in optim.param_groups:
            group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], torch.Tensor) else 0.0
            for param in group["params"]:
                if param.requires_grad:
                    param.grad = torch.zeros_like(param)
        optim.step()
    finally:
        for group, rate, old in zip(optim.param_groups, rates, grads):
            group["lr"] = rate
            for param, grad in zip(group["params"], old):
                param.grad = grad


def _offset(tensor: Any) -> List[int]:
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    return list(compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)[1])


class _Array(_Leaf):
    def __init__(self, name: str, array: Any):
        self.array = array
        dtype = _NUMPY_DTYPES.get(array.dtype.str)
        if array.dtype.hasobject:
            raise TypeError(f"{name}: an array of Python objects has no bytes of its own")
        if dtype:
            super().__init__(name, dtype, array.dtype.itemsize, tuple(array.shape), {})
        else:
            super().__init__(name, "U8", 1, tuple(array.shape) + (array.dtype.itemsize,), {"dtype": array.dtype.str})

    def view(self, part: memoryview) -> Any:
        numpy = _numpy()
        flat = numpy.frombuffer(part, dtype=self.array.dtype, count=self.array.size, offset=self.at)
        return flat.reshape(self.array.shape)

    def save(self, view: Any) -> None:
        view[...] = self.array

    def load(self, view: Any) -> None:
        self.array[...] = view


class _Blob(_Leaf):
    """Everything of a part that is no tensor, pickled: its length in 8 bytes, then the bytes.  Room is left to grow."""

    def __init__(self, name: str, get: Callable[[], Any], put: Callable[[Any], None], room: Optional[int], kept: int):
        self.get, self.put = get, put
        self.keys: List[str] = []
        now = len(self.pickled())
        # In coarse steps: a process that comes later, with a little more or less to pickle, fits what is on disk.
        want = 2 * now + 8
        grain = 1 << want.bit_length() - (0 if want < 1 << 20 else 4)
        room = room or max(PAGE, -(-want // grain) * grain) - 8
        if now <= kept - 8:  # as it was declared in an earlier round: then the same slots fit again
            room = kept - 8
        super().__init__(name, "U8", 1, (8 + room,), {"object": "pickle"})

    def pickled(self) -> bytes:
        return pickle.dumps(self.get(), protocol=4)

    def view(self, part: memoryview) -> Any:
        return part[self.at : self.at + self.bytes]

    def save(self, view: Any) -> None:
        self.write(view, self.pickled())

    def write(self, view: Any, data: bytes) -> None:
        if len(data) + 8 > self.bytes:
            raise Error(
                f"{self.name}: its values have grown to {len(data)} bytes pickled, and {self.bytes - 8} were declared: "
                f"declare(..., blob_bytes={2 * len(data)})"
            )
        view[:8] = struct.pack("<Q", len(data))
        view[8 : 8 + len(data)] = data

    def saved(self, view: Any) -> Any:
        """What is to be put: nothing is changed yet."""
        (n,) = struct.unpack("<Q", view[:8])
        if n > self.bytes - 8:
            raise Error(f"{self.name}: {n} bytes in room for {self.bytes - 8}")
        return pickle.loads(view[8 : 8 + n])


# --- parts: what was declared, as one safetensors file -----------------------------------------------------------------


class _Collector:
    """Walks through what was declared: tensors and arrays become leaves, the rest goes into one pickled object."""

    def __init__(self) -> None:
        self.leaves: List[_Leaf] = []
        self.values: List[Tuple[str, Callable[[], Any], Callable[[Any], None]]] = []
        self.fresh: List[Callable[[], None]] = []  # called where nothing is restored after all

    def add(self, name: str, value: Any, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        """get and put: where the value lies, for what is replaced and not filled in place."""
        torch, numpy = _torch(), _numpy()
        if torch is not None and isinstance(value, torch.Tensor):
            self.leaves.append(_Tensor(name, value))
        elif numpy is not None and isinstance(value, numpy.ndarray):
            self.leaves.append(_Array(name, value))
        elif torch is not None and isinstance(value, torch.nn.Module):
            self._module(name, value)
        elif torch is not None and isinstance(value, torch.optim.Optimizer):
            self._optimizer(name, value)
        elif hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            self.values.append((name, value.state_dict, value.load_state_dict))
        elif isinstance(value, (dict, list)) and _is_plain(value):
            self.values.append((name, lambda: value, lambda saved: _fill(value, saved)))
        elif isinstance(value, (dict, list)):
            for key in list(value) if isinstance(value, dict) else range(len(value)):
                self._item(_join(name, str(key)), value, key)
        else:
            self.values.append((name, get, put))

    def _item(self, name: str, where: Any, key: Any) -> None:
        self.add(name, where[key], lambda: where[key], lambda v: where.__setitem__(key, v))

    def _module(self, name: str, module: Any) -> None:
        module = getattr(module, "module", module) if type(module).__name__ == "DistributedDataParallel" else module
        buffers = {key for key, _ in module.named_buffers()}
        for key, value in module.state_dict().items():
            if hasattr(value, "detach") and not key.endswith("_extra_state"):
                self.leaves.append(_Tensor(_join(name, key), value, key in buffers))
            else:  # what get_extra_state() returns, made anew at each call
                self._extra(_join(name, key), module, key)

    def _extra(self, name: str, module: Any, key: str) -> None:
        where, _, last = key.rpartition(".")
        try:  # asked for behind each step: not by way of all the others
            get = module.get_submodule(where).get_extra_state if last == "_extra_state" else None
        except AttributeError:  # its name in the state is not where it stands
            get = None
        self.values.append((name, get or (lambda: module.state_dict()[key]),
                            lambda value: module.load_state_dict({key: value}, strict=False)))

    def _optimizer(self, name: str, optim: Any) -> None:
        states = _States(optim)
        absent = states.absent()
        states.make()
        for index in range(len(states.params)):
            for key, value in states.of(index).items():
                called = f"{_join(name, str(index))}.{key}"
                if hasattr(value, "detach"):
                    self.leaves.append(_State(called, states, index, key))
                else:
                    self._plain_state(called, states, index, key)
        states.forget(absent)

        def get() -> Dict[str, Any]:
            groups = [{k: v for k, v in g.items() if k != "params"} for g in optim.param_groups]
            return {"groups": groups, "absent": states.absent()}

        def put(saved: Dict[str, Any]) -> None:
            for mine, group in zip(optim.param_groups, saved["groups"]):
                mine.update(group)
            states.forget(saved["absent"])

        self.values.append((_join(name, "groups"), get, put))
        self.fresh.append(lambda: states.forget(absent))

    def _plain_state(self, name: str, states: _States, index: int, key: str) -> None:
        def put(value: Any) -> None:
            if states.of(index):
                states.of(index)[key] = value

        self.values.append((name, lambda: states.of(index).get(key), put))

    def blob(self, name: str, room: Optional[int], kept: int) -> None:
        values = self.values
        if not values:
            return

        def put(saved: Dict[str, Any]) -> None:
            for key, _, back in values:
                back(saved[key])

        leaf = _Blob(name, lambda: {key: get() for key, get, _ in values}, put, room, kept)
        leaf.keys = [key for key, _, _ in values]
        self.leaves.append(leaf)


def _is_plain(value: Any) -> bool:
    """Nothing in it has bytes or a state of its own.  Such a dict or list is taken as a whole: it may grow and shrink."""
    if isinstance(value, (dict, list)):
        return all(_is_plain(v) for v in (value.values() if isinstance(value, dict) else value))
    torch, numpy = _torch(), _numpy()
    if torch is not None and isinstance(value, torch.Tensor) or numpy is not None and isinstance(value, numpy.ndarray):
        return False
    return not (hasattr(value, "state_dict") and hasattr(value, "load_state_dict"))


def _fill(mine: Any, saved: Any) -> None:
    """Makes a dict or list what was saved, in place, and those in it that were there before: the script may hold them."""
    if isinstance(mine, dict):
        for key in [key for key in mine if key not in saved]:
            del mine[key]
    else:
        del mine[len(saved) :]
        mine.extend(saved[len(mine) :])
    for key, value in list(saved.items() if isinstance(mine, dict) else enumerate(saved)):
        old = mine.get(key) if isinstance(mine, dict) else mine[key]
        if isinstance(value, (dict, list)) and type(old) is type(value) and old is not value:
            _fill(old, value)
        else:
            mine[key] = value


def _join(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


class _Part:
    """A part as it lies in a slot: a safetensors file whose data begin at a multiple of 4096."""

    def __init__(self, name: str, shard_id: str, leaves: List[_Leaf]):
        self.name, self.shard_id, self.file = name, shard_id, ""
        self.leaves: List[_Leaf] = sorted(leaves, key=lambda leaf: (-leaf.size, leaf.name))
        seen = set()
        for leaf in self.leaves:
            if leaf.name == "__metadata__" or "\0" in leaf.name:
                raise ValueError(f'part "{name}": no tensor of a safetensors file can be called {leaf.name!r}')
            if leaf.name in seen:
                raise ValueError(f'part "{name}": the name "{leaf.name}" stands for two tensors')
            seen.add(leaf.name)
        at = 0
        for leaf in self.leaves:
            leaf.at = at
            at += leaf.bytes
        self.step_at = 0
        self.header = self._header()
        for leaf in self.leaves:
            leaf.at += len(self.header)
        self.bytes = len(self.header) + at
        blank = self.header[: self.step_at] + b"0" * 20 + self.header[self.step_at + 20 :]
        self.sig = hashlib.blake2b(blank, digest_size=8).hexdigest().lstrip("0") or "0"

    def _header(self) -> bytes:
        mine: Dict[str, Any] = {"part": self.name, "shard_id": self.shard_id, "step": "0" * 20}
        mine["tensors"] = {leaf.name: leaf.note for leaf in self.leaves if leaf.note}
        offsets = {leaf.name: {"saved_offsets": leaf.note.get("offset", [0] * len(leaf.shape))} for leaf in self.leaves}
        head: Dict[str, Any] = {
            "__metadata__": {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(offsets),
                             "elrun": json.dumps(mine)}
        }
        for leaf in self.leaves:
            head[leaf.name] = {"dtype": leaf.dtype, "shape": list(leaf.shape),
                               "data_offsets": [leaf.at, leaf.at + leaf.bytes]}
        text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-(8 + len(text)) % PAGE)
        whole = struct.pack("<Q", len(text)) + text
        self.step_at = whole.index(b'\\"step\\": \\"' + b"0" * 20) + len(b'\\"step\\": \\"')
        return whole

    def check(self, header: bytes) -> None:
        """The header of what was saved: the same tensors at the same places, whatever its step."""
        end = self.step_at + 20
        if header[: self.step_at] == self.header[: self.step_at] and header[end:] == self.header[end:]:
            return
        saved, mine = (json.loads(h[8 : 8 + struct.unpack_from("<Q", h)[0]]) for h in (header, self.header))
        for name in sorted(set(saved) ^ set(mine)) or [n for n in mine if n[:2] != "__" and saved[n] != mine[n]]:
            raise Error(f'part "{self.name}": tensor "{name}" is not what was saved: '
                        f"{saved.get(name, 'none')}, declared {mine.get(name, 'none')}")

    def views(self, slot: memoryview, offset: int) -> List[Any]:
        part = slot[offset : offset + self.bytes]
        return [leaf.view(part) for leaf in self.leaves]


class _File(_Leaf):
    """A file as the framework names it: its bytes as they are, and behind the room for them their number."""

    def __init__(self, name: str, data: Union[bytes, bytearray, memoryview, Callable[[], Any]], room: Optional[int],
                 put: Optional[Callable[[bytes], Any]]):
        self.get: Callable[[], Any] = data if callable(data) else (lambda: data)
        self.put = put
        now = memoryview(self.get()).nbytes
        if room is not None and room < now:
            raise ValueError(f'declare_file("{name}"): {now} bytes now, and max_bytes={room}')
        self.room = now if room is None else room
        super().__init__(name, "U8", 1, (self.room + 8,), {})
        self.filled = now

    def view(self, part: memoryview) -> Any:
        return part

    def save(self, view: Any) -> None:
        data = memoryview(self.get()).cast("B")
        if data.nbytes > self.room:
            raise Error(
                f'file "{self.name}" has grown to {data.nbytes} bytes, and {self.room} were declared: '
                f"declare_file(..., max_bytes={2 * data.nbytes})"
            )
        view[: data.nbytes] = data
        view[self.room :] = struct.pack("<Q", data.nbytes)
        self.filled = data.nbytes

    def load(self, view: Any) -> None:
        (n,) = struct.unpack("<Q", view[self.room :])
        if n > self.room:
            raise Error(f'file "{self.name}": {n} bytes in room for {self.room}')
        if self.put:
            self.put(bytes(view[:n]))


class _FilePart(_Part):
    """A part that is one file."""

    def __init__(self, leaf: _File, shard_id: str):
        self.name, self.shard_id, self.file = leaf.name[-128:], shard_id, leaf.name
        self.leaves, self.header, self.step_at, self.bytes = [leaf], b"", 0, leaf.bytes
        self.sig = "1"


def _kept_sizes(fd: int, n: int) -> Dict[Tuple[str, str], int]:
    """Bytes of each tensor, by part and name, in a slot of an earlier round."""
    sizes: Dict[Tuple[str, str], int] = {}
    with mmap.mmap(fd, n, access=mmap.ACCESS_READ) as slot:
        at = 0
        while at < n:
            (length,) = struct.unpack_from("<Q", slot, at)
            if slot[at + 8 : at + 9] != b"{" or length > n - at - 8:
                break  # files come last
            try:
                head = json.loads(slot[at + 8 : at + 8 + length])
                part = json.loads(head.pop("__metadata__")["elrun"])["part"]
            except (ValueError, KeyError, TypeError, AttributeError):
                break
            end = 0
            for name, tensor in head.items():
                begin, end_of = tensor["data_offsets"]
                sizes[(part, name)] = end_of - begin
                end = max(end, end_of)
            at += -(-(8 + length + end) // PAGE) * PAGE
    return sizes


class Rng:
    """The random numbers of this process: Python's, numpy's and torch's (CPU and CUDA), if these are imported."""

    def state_dict(self) -> Dict[str, Any]:
        torch, numpy = _torch(), _numpy()
        state: Dict[str, Any] = {"python": random.getstate()}
        if numpy is not None:
            state["numpy"] = numpy.random.get_state()
        if torch is not None:
            state["torch"] = torch.get_rng_state().numpy().tobytes()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                state["cuda"] = [s.numpy().tobytes() for s in torch.cuda.get_rng_state_all()]
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        torch, numpy = _torch(), _numpy()
        random.setstate(state["python"])
        if numpy is not None and "numpy" in state:
            numpy.random.set_state(state["numpy"])
        if torch is not None and "torch" in state:
            torch.set_rng_state(torch.frombuffer(bytearray(state["torch"]), dtype=torch.uint8))
        if torch is not None and "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([torch.frombuffer(bytearray(s), dtype=torch.uint8) for s in state["cuda"]])


# --- packets -----------------------------------------------------------------------------------------------------------


def _pack(kind: str, seq: int, body: Dict[str, Any]) -> bytes:
    text = json.dumps(body).encode()
    packet = _HEAD.pack(_MAGIC, _TYPES[kind], 0, seq, len(text)) + text
    if len(packet) > PACKET_MAX:
        raise Error(f"{kind} would have {len(packet)} bytes, {PACKET_MAX} at most: shorter names are needed")
    return packet


def _unpack(packet: bytes) -> Tuple[str, int, Dict[str, Any]]:
    if len(packet) < _HEAD.size:
        raise Error("elrun's agent has closed the connection; its log says why")
    magic, kind, _, seq, n = _HEAD.unpack_from(packet)
    if magic != _MAGIC or n != len(packet) - _HEAD.size:
        raise Error("what elrun's agent says is not the protocol of this module")
    return _NAMES.get(kind, str(kind)), seq, json.loads(packet[_HEAD.size :])


# --- last words --------------------------------------------------------------------------------------------------------

ASIDE_MAX = 1 << 20  # bytes of what is no tensor, and of buffers, that are laid aside behind each step
_FAILING_MAX = 180.0  # seconds that a script which has failed waits until it is captured


class _Words:
    """A thread that copies this worker's state into a slot when the agent asks for it: another worker has failed, and the
    main thread may stand in a collective for ever.  The state is that behind the last step as long as only steps change
    it; what else moves between two steps, the values that are no tensors and the buffers of modules, is laid aside at the
    end of each.  A step that begins meanwhile, or a parameter that was changed outside of one, is noticed, and the copy
    does not count."""

    def __init__(self, ck: "Snapshots", path: str, blobs: List[_Blob], buffers: List[_Tensor], rest: List[_Tensor]):
        torch = _torch()
        self.ck, self.blobs, self.buffers = ck, blobs, buffers
        self.rest = [leaf for leaf in rest if not leaf.tensor.is_inference()]  # such a one has no count of its changes
        self.aside: Dict[_Leaf, Any] = {leaf: leaf.tensor.clone() for leaf in buffers}
        self.step: Optional[int] = None  # whose values are laid aside
        self.samples = 0
        self.versions: List[int] = []
        self.trouble = ""
        self.busy = False
        self.over = threading.Event()  # the agent has what it wanted
        self.side = self.mark = None
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            self.side, self.mark = torch.cuda.Stream(), torch.cuda.Event()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(path)
        self.thread = threading.Thread(target=self._run, name="elrun last words", daemon=True)
        self.thread.start()
        self.hook = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self.close)

    @classmethod
    def of(cls, ck: "Snapshots", path: str) -> Optional["_Words"]:
        """None: there is too much to lay aside, or what no thread can copy beside the script."""
        leaves = [leaf for part in ck.parts for leaf in part.leaves]
        blobs = [leaf for leaf in leaves if isinstance(leaf, _Blob)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, _Tensor)]
        left = ASIDE_MAX - sum(len(leaf.pickled()) for leaf in blobs)
        if left < 0 or any(isinstance(leaf, _File) for leaf in leaves) or not _one_device(tensors):
            return None
        buffers: List[_Tensor] = []
        for leaf in sorted((leaf for leaf in tensors if leaf.moves), key=lambda leaf: leaf.bytes):
            left -= leaf.bytes
            if left >= 0:
                buffers.append(leaf)  # one that is larger is a constant, most likely; if it is not, that is noticed
        rest = [leaf for leaf in tensors if leaf not in buffers and not isinstance(leaf, _State)]
        try:
            return cls(ck, path, blobs, buffers, rest)
        except OSError:
            return None

    # -- in the main thread

    def keep(self, step: int) -> None:
        """Behind a step: nothing of its state moves before the next one begins but what is laid aside here."""
        self.step = None
        try:
            self.aside.update((leaf, leaf.pickled()) for leaf in self.blobs)
            if self.buffers:
                with _torch().no_grad():
                    _torch()._foreach_copy_([self.aside[leaf] for leaf in self.buffers], [leaf.tensor for leaf in self.buffers])
            if self.mark:
                self.mark.record()
        except Exception as e:  # a snapshot will say so
            self.trouble = f"{type(e).__name__}: {e}"
            return
        self.versions = [leaf.tensor._version for leaf in self.rest]
        self.samples = self.ck.consumed_samples
        self.step = step

    def _failed(self, *what: Any) -> None:
        """sys.excepthook: the script ends badly.  Its state is whole, unless it failed inside of a step."""
        self.hook(*what)
        if os.getpid() != self.ck.pid:
            return
        self.over.clear()
        try:
            self.sock.send(_pack("FAILING", 0, {"step": -1 if self.step is None else self.step}))
        except OSError:
            return
        until = time.monotonic() + _FAILING_MAX
        while not self.over.wait(10) and self._is_frozen() and time.monotonic() < until:
            pass  # an agent that heard it forbids the next step, or says that it is over

    def _is_frozen(self) -> bool:
        page = self.ck._page
        return bool(page.long[_LIMIT] != _NO_STEP and page.long[_BOUNDARY] == _NO_STEP)

    def close(self) -> None:
        """The process ends, or wants no more of it; a copy that was begun is ended first."""
        if os.getpid() != self.ck.pid:
            return
        now = time.monotonic()
        soon, until = now + 10, now + _FAILING_MAX
        while self._is_frozen() and time.monotonic() < soon and not self.over.wait(0.05):
            pass  # it is about to be asked
        while self.busy and time.monotonic() < until:
            time.sleep(0.005)
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(1)

    # -- in its own

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            try:
                kind, _, body = _unpack(self.sock.recv(PACKET_MAX))
                if kind == "LASTWORDS":
                    self.busy = True
                    self._answer(body["slot"], body["step"])
                elif kind == "DONE":
                    self.over.set()
            except (OSError, Error):
                self.over.set()
                return
            finally:
                self.busy = False

    def _answer(self, number: int, step: int) -> None:
        try:
            why = self._copy(number, step)
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
        self.sock.send(_pack("CAPTURED", 0, {"slot": number, "step": step, "ok": not why, "why": why[:400],
                                             "consumed_samples": self.samples}))

    def _copy(self, number: int, step: int) -> str:
        ck, turn = self.ck, self.ck._turn
        if turn & 1 or self.step != step:
            return self.trouble or "it is not between these steps any more"
        while self.mark and not self.mark.query():  # the step's work on the device
            self._beat()
            time.sleep(0.001)
            if ck._turn != turn:
                return "a step began before it was copied"
        if self.side:
            with _torch().cuda.stream(self.side):  # what the main thread waits for does not hold it up
                self._fill(number, step)
        else:
            self._fill(number, step)
        if ck._turn != turn:
            return "a step began while it was copied"
        for leaf, version in zip(self.rest, self.versions):
            if leaf.tensor._version != version:
                return f"{leaf.name} was changed outside of ck.update()"
        return ""

    def _fill(self, number: int, step: int) -> None:
        slot, views = self.ck._slots[number]
        at = 0
        for part, mine in zip(self.ck.parts, views):
            self.ck._head(slot, at, part, step)
            for leaf, view in zip(part.leaves, mine):
                self._beat()
                if isinstance(leaf, _Blob):
                    leaf.write(view, self.aside[leaf])
                elif leaf not in self.aside:
                    leaf.save(view)
                elif view is not None:
                    view.copy_(self.aside[leaf])
            at += -(-part.bytes // PAGE) * PAGE

    def _beat(self) -> None:
        self.ck._page.long[_BEAT] = time.monotonic_ns()


def _one_device(tensors: List[_Tensor]) -> bool:
    return len({str(leaf.tensor.device) for leaf in tensors} - {"cpu"}) < 2


# --- the agent ---------------------------------------------------------------------------------------------------------


class Snapshots:
    """The connection to this node's agent; elrun.connect() makes it."""

    def __init__(self, path: str):
        self.rank, self.local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        self.round, self.coord = os.environ["ELRUN_ROUND"].split(".")
        self.pid = os.getpid()
        self.parts: List[_Part] = []
        self._fresh: List[Callable[[], None]] = []
        self.consumed_samples = 0  #: saved with each snapshot, and filled by restore()
        self._seq = 0
        self._granted = False
        self._slots: List[Tuple[mmap.mmap, List[List[Any]]]] = []
        self._acks: Dict[int, int] = {}  # seq of SNAP_COMMIT: its step
        self._trouble: Optional[str] = None  # why the last snapshot did not count
        self._last: Optional[int] = None
        self._image: Optional[mmap.mmap] = None  # what restore() has read last, while it runs
        self._sent: Optional[int] = None  # step of the last commit
        self._events: List[Event] = []  # that nobody has been told
        self._settled: Dict[int, Event] = {}  # of the newest steps that are on disk, or are not
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.connect(path)
        welcome, fds = self._ask("HELLO", {"proto": PROTO, "rank": self.rank, "local_rank": self.local_rank,
                                           "round": int(self.round)}, "WELCOME")
        self.keeps = bool(welcome.get("snapshots"))  #: False: elrun keeps no snapshots, only steps are watched
        self._files = bool(welcome.get("files"))
        self._waits = bool(welcome.get("waits"))
        self._live_path = path + ".live" if welcome.get("live") else ""
        self._words: Optional[_Words] = None
        self._turn = 0  # odd while a step changes the state; another number after each
        self._page = _Page(fds[0])
        self._kept = _kept_sizes(fds[1], welcome["kept_bytes"]) if len(fds) > 1 else {}
        for fd in fds:
            os.close(fd)

    # -- declaring

    def declare(self, name: str, state: Any, shard_id: Optional[str] = None, blob_bytes: Optional[int] = None) -> None:
        """Names one part of the state: tensors, arrays, modules, optimizers, anything with state_dict() and
        load_state_dict(), plain values; or dicts and lists of these.  They are read at each snapshot and written by
        restore(), in place.  A dict or list of plain values alone may grow and shrink; one that holds more keeps the
        keys that it has now.

        shard_id is a string that is equal on the ranks which hold identical bytes of this part, and only there: "all"
        for what every rank has alike.  By default the part is this rank's own.  blob_bytes: room for what is no
        tensor, pickled, if it may grow to more than twice of what it is now.

        Once for each part, before the first restore() or snapshot()."""
        self._may_declare("declare", name)
        if isinstance(state, (bytes, str, int, float, bool, tuple)) or state is None:
            raise TypeError(f'part "{name}": a {type(state).__name__} cannot be filled in place: put it into a dict')
        found = _Collector()
        found.add("", state, lambda: state, lambda v: state.__setitem__(slice(None), v))
        # Files of one checkpoint are read together: what a rank has of its own gets a name of its own, but for pieces of
        # a DTensor.
        own = f"r{self.rank:05d}/" if shard_id is None else ""
        for leaf in found.leaves:
            leaf.name = leaf.name if "offset" in leaf.note else own + leaf.name
        blob = f"obj/{own or f'{shard_id}/'}{name}"
        found.blob(blob, blob_bytes, self._kept.get((name, blob), 0))
        if not found.leaves:
            raise ValueError(f'part "{name}" has nothing in it')
        self.parts.append(_Part(name, shard_id or f"rank{self.rank}", found.leaves))
        self._fresh += found.fresh

    def declare_file(self, name: str, data: Union[bytes, bytearray, memoryview, Callable[[], Any]],
                     shard_id: Optional[str] = None, max_bytes: Optional[int] = None,
                     load: Optional[Callable[[bytes], Any]] = None) -> None:
        """Names a file of the checkpoint as the framework calls it, below the step's directory, such as
        "mp_rank_00_000/model_optim_rng.pt".  data: its bytes, or a function that returns them, called at each snapshot;
        max_bytes: room for them if they may grow, also in an earlier job that this one goes on from.  load: called by
        restore() with the bytes, from memory or from disk; without it the framework reads the file itself, of the step
        that restore() returns.  Raises Error without elrun --ckpt-layout=megatron: no other layout has such files."""
        self._may_declare("declare_file", name)
        if self.keeps and not self._files:
            raise Error(f'declare_file("{name}") is for elrun --ckpt-layout=megatron; declare() is for tensors and values')
        if name.startswith("/") or not name or any(c in ("", ".", "..") for c in name.split("/")):
            raise ValueError(f'declare_file("{name}"): want a name below the directory of the step, such as a/b.pt')
        self.parts.append(_FilePart(_File(name, data, max_bytes, load), shard_id or f"rank{self.rank}"))

    def _may_declare(self, call: str, name: str) -> None:
        if self._granted:
            raise Error(f'{call}("{name}") after the first restore() or snapshot(): parts are declared before')
        if any(name in (p.name, p.file) for p in self.parts):
            raise ValueError(f'two parts are called "{name}"')

    def _grant(self) -> None:
        if self._granted:
            return
        if not self.parts:
            raise Error("nothing was declared: ck.declare(name, state) comes first")
        self.parts.sort(key=lambda p: p.file != "")  # files last
        for i, p in enumerate(self.parts):
            self._send("PART", {"index": i, "name": p.name, "shard_id": p.shard_id, "file": p.file,
                                "header_bytes": len(p.header), "bytes": p.bytes, "sig": p.sig})
        grant, fds = self._ask("DECLARE", {"layout_id": self._layout(), "parts": len(self.parts)}, "GRANT")
        for fd in fds:
            # mapped at once: else the first snapshots would find each page of it by a fault
            slot = mmap.mmap(fd, grant["slot_bytes"], flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
            os.close(fd)
            self._slots.append((slot, self._views(memoryview(slot))))
        self._granted = True

    def _layout(self) -> str:
        """Equal where the parts mean the same.  What every rank has alike does not depend on how many they are."""
        return "all" if all(p.shard_id == "all" for p in self.parts) else f"world{os.environ.get('WORLD_SIZE', '1')}"

    def _views(self, slot: memoryview) -> List[List[Any]]:
        views, at = [], 0
        for p in self.parts:
            views.append(p.views(slot, at))
            at += -(-p.bytes // PAGE) * PAGE
        return views

    # -- going back

    def restore(self, share: Optional[Callable[[Optional[Image]], Optional[bytes]]] = None) -> Optional[int]:
        """Fills what was declared with the newest snapshot that every rank can have, the same step on all of them, and
        returns that step; None: there never was one.  All ranks must call it.  NoSnapshot: there was one, and none is
        left (elrun --allow-fresh turns that into None).

        share: for ranks of a node that is new, whose agent has nothing, where all parts are alike on all ranks
        (shard_id="all").  Then one node that has a step will do.  On all ranks share(image) is called once, behind the
        agreement: image is None on a rank that has nothing, and there it returns bytes(image) of one that has it, by
        whatever way the script has, a broadcast for example (examples/elastic.py)."""
        if not self.keeps:
            return None
        self._grant()
        if share is not None and self._layout() != "all":
            raise Error('restore(share=...) is for parts that every rank has alike: declare(..., shard_id="all")')
        query = {"layout_id": self._layout(), "elsewhere": share is not None}
        offer, fds = self._ask("RESTORE_QUERY", query, "RESTORE_OFFER")
        while True:
            step = offer["step"]
            if step < 0 and not offer.get("fresh"):
                raise NoSnapshot(offer.get("text") or "no snapshot is left")
            trouble, has = "", not offer.get("elsewhere")
            if step >= 0 and has:
                try:
                    self._load(fds[0], offer["slot_bytes"])
                except Exception as e:  # the agent offers another one
                    trouble = f"{type(e).__name__}: {e}"[:400]
            samples = offer.get("consumed_samples", 0)
            done = {"step": step, "ok": not trouble, "why": trouble}
            offer, fds = self._ask("RESTORE_DONE", done, "RESTORE_OFFER", "DONE")
            if "step" not in offer:
                for forget in self._fresh if step < 0 else ():
                    forget()  # an offer before may have been read in part
                self._last = step if step >= 0 else None
                self.consumed_samples = samples
                image, self._image = self._image, None
                if share is not None and step >= 0:
                    self._share(share, Image(samples, image) if has and image is not None else None)
                self._live(self._last)
                return self._last

    def _load(self, fd: int, n: int) -> None:
        self._image = mmap.mmap(fd, n, access=mmap.ACCESS_READ)
        os.close(fd)
        self._fill_from(self._image)

    def _share(self, share: Callable[[Optional[Image]], Optional[bytes]], image: Optional[Image]) -> None:
        given = share(image)
        if image is not None:
            return
        if given is None:
            raise Error("restore(share=...): this rank has no snapshot, and share() gave it none")
        (self.consumed_samples,) = struct.unpack_from("<Q", given)
        self._fill_from(memoryview(given)[8:])

    def _fill_from(self, slot: Any) -> None:
        every, at = list(zip(self.parts, self._views(memoryview(slot)))), 0
        for p in self.parts:  # nothing is filled before all of it fits
            p.check(slot[at : at + len(p.header)])
            at += -(-p.bytes // PAGE) * PAGE
        pairs = [(leaf, view) for p, views in every for leaf, view in zip(p.leaves, views)]
        blobs = [(leaf, leaf.saved(view)) for leaf, view in pairs if isinstance(leaf, _Blob)]
        self._turn |= 1  # what last words would copy changes from here on
        for leaf, saved in blobs:
            for key in set(leaf.keys) ^ set(saved):
                raise Error(f'"{key}" is {"declared" if key in leaf.keys else "saved"} and not '
                            f'{"saved" if key in leaf.keys else "declared"} in {leaf.name}')
        for any_leaf, view in pairs:
            if not isinstance(any_leaf, _Blob):
                any_leaf.load(view)
        for leaf, saved in blobs:  # last: the state of random numbers is to be what it was
            leaf.put(saved)

    # -- snapshots

    def snapshot(self, step: int, persist: bool = False) -> bool:
        """Copies what was declared into the agent's memory, as the state after `step`.  True: done, it cannot be lost
        by this process any more.  False: the last snapshot is still being dealt with and this one was left out (elrun
        --ckpt-busy=wait waits instead).  persist is remembered with the snapshot, for elrun --ckpt-dir.

        What follows a commit may find that a snapshot does not count (its image was not what was declared); the next
        call then raises Error, once."""
        self._check_process()
        if not self.keeps:
            return False
        before = self._page.word[_PHASE]
        if before != _INIT:
            self._page.word[_PHASE] = _SNAPSHOT
        try:
            return self._take_snapshot(step, persist)
        finally:
            self._page.word[_PHASE] = before

    def _take_snapshot(self, step: int, persist: bool) -> bool:
        self._grant()
        self._drain()
        self._complain()
        slot, _ = self._ask("SNAP_BEGIN", {"step": step}, "SNAP_SLOT")
        while slot.get("busy"):
            if not self._waits:
                if persist:
                    self._settle(Event("failed", step, "this rank has left it out (--ckpt-busy=wait would have it wait)"))
                return False
            time.sleep(slot.get("retry_ms", 50) / 1000)
            slot, _ = self._ask("SNAP_BEGIN", {"step": step}, "SNAP_SLOT")
        number = slot.get("slot", 0)
        try:
            self._save(number, step)
        except BaseException:
            self._send("SNAP_ABORT", {"slot": number, "why": "an exception"})
            raise
        for i, p in enumerate(self.parts):
            if isinstance(p.leaves[0], _File):
                self._send("SNAP_PART", {"index": i, "bytes": p.leaves[0].filled})
        self._acks[self._seq + 1] = step
        self._sent = step
        if persist:
            self._settled.pop(step, None)  # whatever became of it when it was left out, or before going back
        self._send("SNAP_COMMIT", {"slot": number, "step": step, "persist": persist,
                                   "consumed_samples": self.consumed_samples})
        return True

    def _save(self, number: int, step: int) -> None:
        torch = _torch()
        slot, views = self._slots[number]
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        at = 0
        for p, mine in zip(self.parts, views):
            self._head(slot, at, p, step)
            for leaf, view in zip(p.leaves, mine):
                leaf.save(view)
            at += -(-p.bytes // PAGE) * PAGE

    def _head(self, slot: mmap.mmap, at: int, p: _Part, step: int) -> None:
        if p.header:
            slot[at : at + len(p.header)] = p.header
            slot[at + p.step_at : at + p.step_at + 20] = b"%020d" % step

    def _complain(self) -> None:
        if self._trouble:
            trouble, self._trouble = self._trouble, None
            raise Error(trouble)

    def wait(self) -> Optional[int]:
        """Waits until the agent has summed every snapshot that was committed; returns the last step that counts."""
        while self._acks:
            self._take(*self._receive())
        self._complain()
        return self._last

    def events(self) -> List[Event]:
        """What has become of snapshots on their way to disk since the last call; of other ranks' wishes, too."""
        self._check_process()
        self._drain()
        events, self._events = self._events, []
        return events

    def wait_persist(self, step: int, timeout: float = 600.0) -> bool:
        """Waits until the snapshot of that step, taken with persist=True, is a checkpoint in --ckpt-dir.  True: it is;
        False: it is not yet known after `timeout` seconds, or there are no snapshots.  Error: it will not be, or this rank
        has left it out (snapshot() was False), and why.
        Training needs it for nothing; a script that hands its checkpoints on does."""
        self._check_process()
        until = time.monotonic() + timeout
        while self.keeps:
            self._drain()
            event = self._settled.get(step)
            if event:
                if event.kind == "failed":
                    raise Error(f"step {step} is not on disk: {event.text}")
                return True
            left = until - time.monotonic()
            if left <= 0:
                break
            select.select([self._sock], [], [], left)
        return False

    def close(self) -> None:
        """Says goodbye.  What was committed stays with the agent."""
        if self._words:
            self._words.close()
        self._sock.close()

    # -- steps

    def update(self, step: int) -> _Update:
        """Around what changes the state in a step, `with ck.update(step): optim.step()`: model, optimizer, scheduler,
        counters, all that was declared.  Steps count up by one, the same on all ranks, and every rank makes them.  The
        agent knows from it how far this worker is, and when workers must be stopped it may capture the state behind its
        last step: nothing that was declared may change outside of a step, but for buffers of modules and what is no
        tensor, up to ASIDE_MAX bytes, which are laid aside at the end of each.

        Raises Regroup where all ranks stop for a planned change (elrun --boundary-wait): behind the announced step, after
        a snapshot of it."""
        return _Update(self, step)

    @property
    def change(self) -> Optional[Change]:
        """What is announced, or None: for a script that wants to know before update() raises Regroup."""
        page = self._page
        step = page.long[_BOUNDARY]
        if step == _NO_STEP:
            return None
        left = (page.long[_DEADLINE] - time.monotonic_ns()) / 1e9
        return Change(_WHY[page.word[_REASON] % len(_WHY)], step, max(0.0, left))

    def _live(self, step: Optional[int]) -> None:
        """This worker has the state after that step."""
        if step is not None:
            self._page.long[_LIVE] = step
            self._sent = step

    def _begin(self, step: int) -> None:
        page = self._page
        page.begin(step)
        if step > page.long[_LIMIT]:
            self._stand(step)
        self._turn = (self._turn | 1) + 2

    def _stand(self, step: int) -> None:
        """No step may be begun beyond a limit: soon the boundary is known, or the limit is lifted."""
        page, since = self._page, time.monotonic_ns()
        while step > page.long[_LIMIT]:
            page.word[_PHASE] = _BLOCKED
            boundary = page.long[_BOUNDARY]
            if page.long[_LIVE] < boundary < step:  # steps are counted otherwise; between two of them we are
                page.long[_AT] = boundary
                self._part(page.long[_LIVE])
            until = since + int(_FREEZE_MAX * 1e9) if boundary == _NO_STEP else page.long[_DEADLINE] + int(10e9)
            if time.monotonic_ns() > until:
                break  # nobody leads any more
            time.sleep(0.002)
            page.word[_PHASE] = _UPDATING
            page.fence()
        page.begin(step)

    def _end(self, step: int) -> None:
        if self._live_path and self._granted:
            path, self._live_path = self._live_path, ""
            self._words = _Words.of(self, path)
        if self._words:
            self._words.keep(step)
        self._turn = (self._turn | 1) + 1
        if not self._page.end(step):
            return
        change = self.change
        if self.keeps and self.parts:
            try:
                while self._sent != step and not self.snapshot(step):
                    time.sleep(0.01)  # the last one is being summed
                self.wait()
            except Error as e:  # the change comes all the same, and goes back to an older one
                warnings.warn(f"no snapshot at the boundary: {e}")
        self._part(step, change)

    def _part(self, step: int, change: Optional[Change] = None) -> None:
        change = change or self.change
        self._send("AT_BOUNDARY", {"step": step})
        self._page.word[_PHASE] = _EXITING
        raise Regroup(change)

    # -- packets

    def _check_process(self) -> None:
        if os.getpid() != self.pid:
            raise Error("this process was forked from the one that called elrun.connect(): snapshots are taken there")

    def _send(self, kind: str, body: Dict[str, Any]) -> int:
        self._seq += 1
        packet = _pack(kind, self._seq, body)
        try:
            self._sock.send(packet)
        except OSError as e:
            raise Error(f"elrun's agent is gone: {e}") from None
        return self._seq

    def _receive(self, flags: int = 0) -> Tuple[str, int, Dict[str, Any], List[int]]:
        try:
            packet, beside, _, _ = self._sock.recvmsg(PACKET_MAX, socket.CMSG_LEN(4 * 4), flags | socket.MSG_CMSG_CLOEXEC)
        except OSError as e:
            if isinstance(e, BlockingIOError):
                raise
            raise Error(f"elrun's agent is gone: {e}") from None
        name, seq, body = _unpack(packet)
        fds = [fd for level, kind_of, data in beside if (level, kind_of) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
               for fd in memoryview(data).cast("i")]
        return name, seq, body, fds

    def _ask(self, kind: str, body: Dict[str, Any], *answers: str) -> Tuple[Dict[str, Any], List[int]]:
        self._check_process()
        seq = self._send(kind, body)
        while True:
            name, to, answer, fds = self._receive()
            if to == seq and name in answers:
                return answer, fds
            if to in (seq, 0) and name == "REFUSED":
                raise Error(f"{answer.get('text', 'refused')} ({answer.get('code', '?')})")
            self._take(name, to, answer, fds)

    def _take(self, name: str, to: int, answer: Dict[str, Any], fds: List[int]) -> None:
        """What comes between a question and its answer: what became of earlier snapshots."""
        for fd in fds:
            os.close(fd)
        if name == "EVENT":
            self._note(Event(answer.get("kind", ""), answer.get("step", -1), answer.get("why", "")))
            return
        step = self._acks.pop(to, None)
        if step is not None and name == "SNAP_ACK":
            self._last = step
        elif step is not None and name == "REFUSED":
            self._trouble = f"the snapshot of step {step} does not count: {answer.get('text')}"

    def _note(self, event: Event) -> None:
        self._events.append(event)
        del self._events[:-EVENTS_MAX]
        if event.kind != "persisted":
            self._settle(event)

    def _settle(self, event: Event) -> None:
        self._settled.pop(event.step, None)  # a step that failed may be on disk later
        self._settled[event.step] = event
        while len(self._settled) > EVENTS_MAX:
            self._settled.pop(next(iter(self._settled)))

    def _drain(self) -> None:
        try:
            while True:
                self._take(*self._receive(socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass


def connect() -> Optional[Snapshots]:
    """The agent of this node.  None outside elrun, and where it was asked for neither snapshots (--ckpt-mem, --ckpt-dir)
    nor step boundaries (--boundary-wait)."""
    path = os.environ.get("ELRUN_SOCK")
    return Snapshots(path) if path else None


# --- batches and rates when the number of ranks changes ----------------------------------------------------------------


def accumulate(global_batch: int, micro_batch: int, world: Optional[int] = None) -> int:
    """How many micro batches each rank accumulates so that a step sees global_batch samples whatever the world size is.
    world: by default WORLD_SIZE.  ValueError: it does not come out even."""
    world = world or int(os.environ.get("WORLD_SIZE", "1"))
    if global_batch % (micro_batch * world):
        raise ValueError(f"a global batch of {global_batch} is not a multiple of {micro_batch} samples x {world} ranks")
    return global_batch // (micro_batch * world)


def scale_lr(lr: float, rule: str = "linear", world: Optional[int] = None, first: Optional[int] = None) -> float:
    """The learning rate where the batch of each rank stays and the world size changes: `linear` in the number of ranks,
    `sqrt`, or `none`.  lr is meant for the job's first world size (first: by default ELRUN_WORLD_SIZE_FIRST)."""
    world = world or int(os.environ.get("WORLD_SIZE", "1"))
    first = first or int(os.environ.get("ELRUN_WORLD_SIZE_FIRST", str(world)))
    if rule == "none":
        return lr
    if rule == "linear":
        return lr * world / first
    if rule == "sqrt":
        return lr * math.sqrt(world / first)
    raise ValueError(f'rule "{rule}": want linear, sqrt or none')
