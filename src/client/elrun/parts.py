"""What a script has declared, part by part: how its state at one moment is laid out, written into a slot, and put back."""

from __future__ import annotations

import hashlib
import mmap
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from .fill import Fill
from .handlers import raise_of_handler
from .image import Image, Layout, pickled, room_for
from .blocks import Block, Spec
from .objects import Walk
from .packets import Error, Extent
from .pagelock import PageLock, devices_of, may_be_queued
from .sharing import Sharing
from .tree import Misfit, Refused
from .values import counting_changes, numpy, torch

_POPULATE_WRITE = 23  # Linux: MADV_POPULATE_WRITE
NAME_MAX = 128  # bytes of the name of a part
OWN = "@rank"  # the part of a rank's own pieces of what it shares


class Held(NamedTuple):
    """The state of a part at one moment.  Tensors are those of the script: they are read when they are written."""

    layout: Optional[Layout]  #: None: a file
    blob: Any  #: bytes: the pickled tree; of a file all of it
    sources: List[Any]

    @property
    def size(self) -> Tuple[int, int]:
        if self.layout is None:
            return 0, len(self.blob)
        return len(self.layout.header), self.layout.bytes


class Part:
    """A declared object.  prefix: of the names of its tensors in the file, which no other file of a checkpoint may have;
    pieces of DTensors have none, since all ranks have pieces of one name.  shared: other ranks may have the same."""

    file = ""
    own = False

    def __init__(self, name: str, value: Any, shard_id: str, prefix: str, shared: bool = False):
        self.name, self.value, self.shard_id = name, value, shard_id
        self.prefix, self.piece_prefix, self.shared = f"{one_segment(prefix[:-1])}/" if prefix and shared else prefix, "", shared
        self.blob_name = f"obj/{self.prefix or shard_id + '/'}{one_segment(name)}"
        self.blocks: Dict[str, Block] = {}
        self.layout: Optional[Layout] = None
        self.chunks: Tuple[Tuple[Spec, ...], ...] = ()
        self.room = 0

    def take(self, first: bool = False) -> Held:
        """Asks the object.  first: it is being declared."""
        taken = Walk(self.prefix, self.piece_prefix, self.blocks, first).object(self.value)
        blob = pickled(taken.tree)
        chunks = tuple(specs for specs, _ in taken.chunks)
        if self.layout is None or chunks != self.chunks or len(blob) > self.layout.room:
            if self.blocks and not _are_different(chunks):  # one was made before there was another of its name
                self.blocks.clear()
                return self.take(first)
            self.layout = None  # a handler of signals may raise at any line: what it is for comes first
            self.chunks, self.room = chunks, room_for(len(blob), self.room)
            self.layout = Layout(self.name, self.shard_id, self.blob_name, chunks, self.room, self.shared)
        sources = taken.chunks[0][1] if len(taken.chunks) == 1 else [s for _, some in taken.chunks for s in some]
        return Held(self.layout, blob, sources)

    def names(self) -> Set[str]:
        """Of its tensors, as take() has found them."""
        return {spec.name for chunk in self.chunks for spec in chunk}

    def rename(self) -> None:
        """Another part has tensors of these names: from now on they begin with that of the part."""
        name = one_segment(self.name)
        self.blocks.clear()
        self.layout = None
        self.prefix, self.piece_prefix = f"{self.prefix}{name}/", f"{self.piece_prefix}{name}/"


def _are_different(chunks: Tuple[Tuple[Spec, ...], ...]) -> bool:
    names = [spec.name for chunk in chunks for spec in chunk]
    return len(set(names)) == len(names)


class OwnPart:
    """This rank's own pieces of the parts that it shares with others: what is no tensor, and small tensors that are
    neither parameters nor moments: the statistics of a batch normalisation, random numbers, the place in the data.  It
    lies beside the shared parts, which hold all of it once more, as it is on one of the ranks."""

    name = OWN
    file = ""
    own = True

    def __init__(self, rank: int):
        self.shard_id = f"rank{rank}"
        self.prefix = f"r{rank:05d}/"
        self.layout: Optional[Layout] = None
        self.chunks: Tuple[Any, ...] = ()
        self.picked: List[List[int]] = []
        self.room = 0

    def take(self, shared: List[Tuple[Part, Held]]) -> Held:
        blob = pickled({part.name: held.blob for part, held in shared})
        chunks = tuple(part.chunks for part, _ in shared)
        if self.layout is None or chunks != self.chunks or len(blob) > self.layout.room:
            self.layout = None  # as Part does it
            picked: List[List[int]] = []
            specs: List[Spec] = []
            for part, held in shared:
                assert held.layout is not None
                rows = held.layout.rows
                pick = [i for i, row in enumerate(rows) if row.own]
                specs += [rows[i].spec._replace(name=own_name(self.prefix, part.name, rows[i].spec.name)) for i in pick]
                picked.append(pick)
            self.chunks, self.picked, self.room = chunks, picked, room_for(len(blob), self.room)
            self.layout = Layout(self.name, self.shard_id, f"obj/{self.prefix}{self.name}", (tuple(specs),), self.room, False)
        sources = [held.sources[i] for (_, held), pick in zip(shared, self.picked) for i in pick]
        return Held(self.layout, blob, sources)


def own_name(prefix: str, part: str, name: str) -> str:
    return f"{prefix}{one_segment(part)}/{name}"


def one_segment(name: str) -> str:
    """The name of a shard or a part as it stands before a slash.  No other one is written the same, nor is a rank's own
    "r00000" or "obj"."""
    name = name.replace("%", "%25").replace("/", "%2F")
    return f"%{ord(name[0]):02X}{name[1:]}" if name == "obj" or (name[:1] == "r" and name[1:].isdigit()) else name


def part_of_file(name: str) -> str:
    """What the part of a file is called: its name, or if that is too long, a sum of it and its end."""
    if len(name.encode()) <= NAME_MAX:
        return name
    end = name.encode()[-(NAME_MAX - 40) :].decode(errors="ignore")
    return f"{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}...{end}"


class FilePart:
    """A file of the checkpoint as the framework calls it: its bytes as they are."""

    own = False

    def __init__(self, name: str, data: Any, shard_id: str, load: Optional[Callable[[bytes], Any]]):
        self.name, self.file, self.shard_id = part_of_file(name), name, shard_id
        self.get: Callable[[], Any] = data if callable(data) else (lambda: data)
        self.load = load

    def take(self, first: bool = False) -> Held:
        return Held(None, memoryview(self.get()).cast("B"), [])


AnyPart = Union[Part, OwnPart, FilePart]


def asked(part: Union[Part, FilePart]) -> Held:
    """What a part holds now.  Error: it cannot be kept, or could not be asked."""
    try:
        return part.take()
    except Refused as e:
        raise_of_handler(e)
        raise Error(f'part "{part.name}": {e}') from e.__cause__
    except Exception as e:  # of a state_dict() of the script
        raise_of_handler(e)
        raise Error(f'part "{part.name}" could not be asked what it holds: {type(e).__name__}: {e}') from e


def unmade(parts: List[AnyPart]) -> int:
    """Bytes of the moments that optimizers are going to make at their first step: two of each parameter for Adam and its
    kin, one where there is a momentum."""
    th = torch()
    if th is None:
        return 0
    found: List[Any] = []
    for part in parts:
        value = getattr(part, "value", None)
        found += [value] if not isinstance(value, dict) else list(value.values())
    n = 0
    moments_of = {th.optim.Adam: 2, th.optim.AdamW: 2, th.optim.NAdam: 2, th.optim.RAdam: 2}
    for o, group in ((o, g) for o in found if isinstance(o, th.optim.Optimizer) and not o.state for g in o.param_groups):
        moments = moments_of[type(o)] if type(o) in moments_of else 1 if group.get("momentum") else 0
        n += sum(moments * p.numel() * p.element_size() for p in group["params"] if p.requires_grad)
    return n


class Slot:
    """Memory of the agent into which a snapshot is written; it may grow."""

    def __init__(self, fd: int):
        self.fd = fd
        self.bytes = 0
        self.ready = 0  # of them are mapped with their memory
        self.used = 0  # by the newest snapshot
        self.map: Optional[mmap.mmap] = None
        self.memory = memoryview(bytearray())  # files may be empty, all of them
        self.views: Dict[int, Tuple[Any, int, List[Any]]] = {}  # by number of the part: for which layout, where
        self.lock = PageLock()

    def grow(self, n: int, used: int, hung: bool = False) -> None:
        """The agent has made it n bytes long, and has had memory for those that are used; what lies behind them has none
        yet, and must not get any before it counts as part of --ckpt-mem.  hung: calls of CUDA may never return."""
        if not hung:
            self.lock.keep(0 if n > self.bytes else used)
        self.used = used
        if n > self.bytes:
            self.lock.leave(self.map)
            self.views.clear()
            self.map = mmap.mmap(self.fd, n)
            self.memory = memoryview(self.map)
            self.bytes, self.ready = n, 0
        if self.map is not None and used > self.ready:
            try:  # all at once: else the first snapshots would find each page of it by a fault
                self.map.madvise(_POPULATE_WRITE, self.ready, used - self.ready)
            except OSError as e:  # Linux before 5.14
                raise_of_handler(e)
            self.ready = used

    def write(self, held: List[Held], where: List[Extent], step: int) -> None:
        """All of a snapshot."""
        to: List[Any] = []
        sources: List[Any] = []
        plain = True
        for i, (one, extent) in enumerate(zip(held, where)):
            image = self.memory[extent.at : extent.at + extent.bytes]
            if one.layout is None:
                image[:] = one.blob
                continue
            one.layout.write(image, step, one.blob)
            views = self.views.get(i)
            if views is None or views[0] is not one.layout or views[1] != extent.at:
                with counting_changes():
                    views = self.views[i] = (one.layout, extent.at, one.layout.views(image))
            to += views[2]
            sources += one.sources
            plain = plain and one.layout.plain
        devices = devices_of(sources)
        if devices:
            self.lock.take(self.memory[: self.used])
        copy = copy_tensors if plain else copy_all
        copy(to, sources, bool(devices) and may_be_queued(sources))
        for device in devices:
            torch().cuda.current_stream(device).synchronize()


def copy_all(to: List[Any], sources: List[Any], queued: bool = False) -> None:
    """Tensors and arrays into the views that stand for them; None: it has no elements.  queued: copies of a device's memory
    need not have ended yet."""
    np = numpy()
    _check_number(to, sources)
    tensors: List[Any] = []
    values: List[Any] = []
    for view, source in zip(to, sources):
        if view is None:
            continue
        if np is not None and isinstance(view, np.ndarray):
            np.copyto(view, source)
        else:
            tensors.append(view)
            values.append(source)
    copy_tensors(tensors, values, queued)


def copy_tensors(to: List[Any], sources: List[Any], queued: bool = False) -> None:
    """The same for tensors that have elements."""
    th = torch()
    _check_number(to, sources)
    if not to:
        return
    with th.no_grad():
        if hasattr(th, "_foreach_copy_"):
            th._foreach_copy_(to, sources, queued)
        else:
            for view, source in zip(to, sources):
                view.copy_(source, queued)


def _check_number(to: List[Any], sources: List[Any]) -> None:
    if len(to) != len(sources):
        raise Error(f"{len(sources)} tensors are to be written where {len(to)} have room; please report this")


class Saved(NamedTuple):
    """The images of a slot, by the name of their part."""

    memory: memoryview
    where: List[Extent]


def put_back(parts: List[AnyPart], saved: Saved, begins: Callable[[], None]) -> None:
    """Fills all that is declared.  Misfit: it does not fit, and if it is not spoiled, nothing was changed; any other exception:
    an image cannot be read.  begins: called before anything is changed."""
    images: Dict[str, memoryview] = {}
    for part, extent in zip(parts, saved.where):
        images[part.name] = saved.memory[extent.at : extent.at + extent.bytes]
    own = Image(images[OWN]) if images.get(OWN) else None
    trees = own.tree() if own else {}
    todo = []
    for part in parts:
        if isinstance(part, Part):
            image = Image(images[part.name])
            tree = own.unpickle(trees[part.name]) if own and part.name in trees else image.tree()
            todo.append((part, tree, _reader(part.name, image, own if part.name in trees else None)))
    fill = _planned(todo, Sharing())
    shared = fill.sharing.settled()
    if shared:
        del fill
        fill = _planned(todo, shared)
    begins()
    fill.carry_out()
    for part in parts:
        if isinstance(part, FilePart) and part.load:
            try:
                part.load(bytes(images[part.name]))
            except Exception as e:
                raise Misfit(f'part "{part.name}": load() does not take what was saved: {type(e).__name__}: {e}', True) from e


def _planned(todo: List[Tuple[Part, Any, Callable[[str, Any, Any], Any]]], sharing: Sharing) -> Fill:
    """All that has to be done; nothing is changed yet."""
    fill = Fill(lambda name, dtype, shape: None, sharing)
    for call in (fill.look, fill.plan):
        for part, tree, fill.tensors in todo:
            call(part.name, part.value, tree)
    return fill


def _reader(part: str, image: Image, own: Optional[Image]) -> Callable[[str, Any, Any], Any]:
    def read(name: str, dtype: Any, shape: Any) -> Any:
        mine = own_name(own.prefix, part, name) if own else ""
        if own and own.has(mine):
            return own.tensor(mine, dtype, shape)
        if not image.has(name):
            raise Error(f'tensor "{name}" is in no image of part "{part}"')
        return image.tensor(name, dtype, shape)

    return read
