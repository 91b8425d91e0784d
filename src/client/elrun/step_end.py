"""The end of a step: what is noted of the state there, so that a change behind it is noticed, and what is laid aside of it, so
that it can be captured although it moves.

Values that are no tensors, buffers and arrays may change between two steps, and are laid aside at the end of each; so is what
was made in inference mode, and what may be an array's memory, of which torch counts no change.  Of the others a change is
noticed: by torch's count, by the place of their memory, by elements that are compared, since what is written through `.data`
is counted by nobody, and by who still holds them."""

from __future__ import annotations

import collections
import itertools
import operator
import random
import sys
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from .blocks import Block, local_of
from .objects import fields_of
from .packets import Error
from .parts import Held, Part, copy_all
from .special import has_memory
from .special import is_tensor as _is_tensor
from .values import SIMPLE, has_pair, numpy, torch

ASIDE_MAX = 1 << 20  # bytes of values, and of buffers, that are laid aside behind each step,
UNCOUNTED_MAX = 64 << 20  # … and of arrays and tensors of which nobody counts the changes: some 5 ms; to sum them takes longer
SAMPLED_MAX = 512  # tensors of which elements are compared: weights first, of more by lot
SAMPLES = 64  # elements of each, side by side: one kernel of a device copies those of all tensors

_VERSION = operator.attrgetter("_version")
_IS_INFERENCE = operator.methodcaller("is_inference")


class TooLarge(Error):
    """More would have to be laid aside than a step should cost."""


class Plan(NamedTuple):
    """What of the sources of one layout is laid aside, and how the others are watched."""

    layouts: List[Any]
    places: List[int]  #: where the memory of the sources is
    dense: List[bool]  #: whether they are contiguous
    uncounted: Set[int]  #: numbers of sources: tensors made in inference mode, where torch counts no changes
    aside: List[int]
    rest: List[int]
    copies: List[Any]  #: of those that are laid aside
    numpys: List[int]  #: numbers of some of the rest: their memory may become an array's
    picked: List[int]  #: numbers of some of the rest,
    views: List[Any]  #: elements of them,
    looked: List[int]  #: … at these places
    samples: List[Any]  #: … as they were behind the step
    loose: List[int]  #: of the rest: in no block,
    reached: Set[int]  #: … and in a container
    keep: List[Any]  #: at these places


def planned(had: Optional[Plan], held: List[Held], sources: List[Any], parts: List[Any]) -> Plan:
    """The plan for what the parts hold; had: the one of the step before, which is used again if it fits.  TooLarge, or Error:
    nothing of it can be captured."""
    if any(one.layout is None for one in held):
        raise Error("files (declare_file) are not copied beside the script")
    if sum(len(one.blob) for one in held) > ASIDE_MAX:
        raise TooLarge(f"more than {ASIDE_MAX >> 10} KiB of values that are no tensors")
    layouts = [one.layout for one in held]
    if sources and all(layout.plain for layout in layouts if layout):
        places = list(map(torch().Tensor.data_ptr, sources))
        dense = list(map(torch().Tensor.is_contiguous, sources))
    else:
        places = [s.data_ptr() if _is_tensor(s) else id(s) for s in sources]
        dense = [not _is_tensor(s) or s.is_contiguous() for s in sources]
    if had is not None and had.dense == dense and had.layouts == layouts and not _has_arrays(had.numpys, sources):
        if had.places == places and _places_of(had.views) == had.looked:
            return had
        if had.uncounted == _uncounted(sources):
            plan = _elsewhere(had, sources, places, parts)
            if plan is not None:
                return plan
    return _plan(layouts, sources, places, dense, parts)


def _uncounted(sources: List[Any]) -> Set[int]:
    tensors = [i for i, s in enumerate(sources) if _is_tensor(s)]
    return set(itertools.compress(tensors, map(_IS_INFERENCE, [sources[i] for i in tensors])))


def _plan(layouts: List[Any], sources: List[Any], places: List[int], dense: List[bool], parts: List[Any]) -> Plan:
    th = torch()
    uncounted = _uncounted(sources)
    rows = [row for one in layouts for row in (one.rows if one else [])]
    free = [i for i, s in enumerate(sources) if i in uncounted or not _is_tensor(s)]
    _check_size([rows[i] for i in free])
    aside = free[:]
    small = [i for i in sorted(set(range(len(rows))).difference(free)) if rows[i].bytes <= ASIDE_MAX]
    numpys = [i for i in small if not rows[i].spec.shared and not rows[i].spec.moves and _may_be_of_numpy(sources[i])]
    of_numpy = [i for i in numpys if not sources[i].untyped_storage().resizable()]
    for some in ([i for i in small if rows[i].spec.moves], of_numpy):
        left = ASIDE_MAX
        for i in sorted(some, key=lambda i: rows[i].bytes):
            left -= rows[i].bytes
            if left >= 0:
                aside.append(i)  # one that is larger is a constant, most likely; if it is not, that is noticed
    picked = set(aside).union(free)
    rest = [i for i in range(len(rows)) if i not in picked]
    copies = [th.empty_like(sources[i]) if _is_tensor(sources[i]) else _array_like(sources[i]) for i in aside]
    drawn = random.Random(len(rest)).sample(rest, len(rest))
    weights = sorted(drawn, key=lambda i: not sources[i].requires_grad)[:SAMPLED_MAX]  # first: they are what scripts swap
    looked = {i: view for i in weights for view in [_watched(sources[i])] if view is not None}
    loose, reached = _in_no_block(rest, sources, parts)
    views = list(looked.values())
    return Plan(layouts, places, dense, uncounted, aside, rest, copies, sorted(set(numpys).difference(of_numpy)), list(looked), views, _places_of(views),
                [v.clone() for v in views], loose, reached, list(sources))


def _elsewhere(had: Plan, sources: List[Any], places: List[int], parts: List[Any]) -> Optional[Plan]:
    """The same plan for tensors that lie elsewhere, as they do if a state_dict() gives copies; None: they differ otherwise."""
    views = list(had.views)
    there = _places_of(views)  # the memory that a view is of may have been given back
    for k, (i, sample) in enumerate(zip(had.picked, had.samples)):
        if places[i] != had.places[i] or there[k] != had.looked[k]:
            view = _watched(sources[i])
            if view is None or view.shape != sample.shape or view.device != sample.device:
                return None
            views[k] = view
    loose, reached = _in_no_block(had.rest, sources, parts)
    return had._replace(places=places, views=views, looked=_places_of(views), loose=loose, reached=reached, keep=list(sources))


def _in_no_block(rest: List[int], sources: List[Any], parts: List[Any]) -> Tuple[List[int], Set[int]]:
    """Which of them are, and which of these stand in a container."""
    in_blocks = {id(t) for part in parts if isinstance(part, Part) for block in part.blocks.values() for t in block.locals}
    loose = [i for i in rest if id(sources[i]) not in in_blocks]
    there: Set[int] = set().union(*(in_containers(part.value, part.blocks.values())[0] for part in parts if isinstance(part, Part))) if loose else set()
    return loose, {i for i in loose if id(sources[i]) in there}


class _Contents(NamedTuple):
    """What a part consists of."""

    part: Part
    blocks: List[Block]
    tensors: int  #: so many stand in containers,
    objects: List[Any]  #: … and these objects that have a state_dict(), if they are no blocks, and sparse tensors


class Outline(NamedTuple):
    """The end of a step without the script's own tensors: what was laid aside of it, and elements of the rest."""

    step: int
    samples_consumed: int
    parts: List[Tuple[Any, Any]]  #: layout and pickled tree of each
    plan: Plan


def again(outline: Outline, held: List[Held], parts: List[Any]) -> Optional[StepEnd]:
    """The end of that step, from what the parts hold now, with what was laid aside then; None: a tensor is gone, has another
    shape, or is another one by the elements that are compared.  A tensor of an object's own state_dict() that has another
    place is taken as it is: a copy, as averages keep one of the weights that they have swapped.  held is used up."""
    had = outline.plan
    now = {row.spec[:3]: source for one in held if one.layout for row, source in zip(one.layout.rows, one.sources)}
    aside = dict(zip(had.aside, had.copies))
    specs = [spec for layout, _ in outline.parts for spec in _specs(layout)]
    sources: List[Any] = [aside[i] if i in aside else now.get(spec[:3]) for i, spec in enumerate(specs)]
    now.clear()
    held.clear()  # who holds a tensor is counted below
    if any(source is None for source in sources):
        return None
    places = [s.data_ptr() if _is_tensor(s) else id(s) for s in sources]
    loose, reached = _in_no_block(had.rest, sources, parts)
    free = set(loose).difference(reached)
    views, samples = [], []
    for i, sample in zip(had.picked, had.samples):
        view = _watched(sources[i])
        if view is None or view.shape != sample.shape or view.device != sample.device:
            return None
        views.append(view)
        samples.append(view.clone() if i in free and places[i] != had.places[i] else sample)
    if _first_other(views, samples) >= 0:
        return None
    dense = [not _is_tensor(s) or s.is_contiguous() for s in sources]
    plan = had._replace(places=places, dense=dense, views=views, looked=_places_of(views), samples=samples, loose=loose, reached=reached,
                        keep=list(sources))
    left = iter(sources)
    as_then = [Held(layout, blob, list(itertools.islice(left, len(_specs(layout))))) for layout, blob in outline.parts]
    return StepEnd(outline.step, outline.samples_consumed, as_then, sources, plan, parts)


class StepEnd:
    """What the parts held behind one step.  It is made by the main thread, and does not change then, but for what its plan
    lays aside, which the end of the next step writes to."""

    def __init__(self, step: int, samples_consumed: int, held: List[Held], sources: List[Any], plan: Plan, parts: List[Any]):
        self.step, self.samples_consumed = step, samples_consumed
        self.held, self.sources, self.plan = held, sources, plan
        self.versions = list(map(_VERSION, [sources[i] for i in plan.rest]))
        self.places = [plan.places[i] for i in plan.rest]
        copy_all(plan.copies, [sources[i] for i in plan.aside])
        copy_all(plan.samples, plan.views)
        self.contents = [_contents(part) for part in parts if isinstance(part, Part)]
        self.loose = [sources[i] for i in plan.loose]  # whose holders are counted,
        self.holders = list(map(sys.getrefcount, self.loose))

    def name(self, i: int) -> str:
        return [row.spec.name for one in self.held if one.layout for row in one.layout.rows][i]

    def changed(self) -> str:
        """What is not any more as it was behind the step, or "": nothing is known to be.  Safe to ask from another thread."""
        i = self._moved()
        return f"tensor {self.name(i)}" if i >= 0 else self._replaced()

    def sampled(self) -> str:
        """The tensor of which elements that are compared have changed, past torch's count of changes; "": none."""
        for i, view in zip(self.plan.picked, self.plan.views):
            if not has_memory(view) or not has_memory(self.sources[i]):  # nothing of it can be read
                return f"tensor {self.name(i)}"
        k = _first_other(self.plan.views, self.plan.samples)
        return f"tensor {self.name(self.plan.picked[k])}" if k >= 0 else ""

    def counts(self) -> Iterator[Tuple[str, Any, int]]:
        """Learning rate schedulers that were declared, with their part, and how many steps each has counted."""
        for part, _, _, objects in self.contents:
            for one in objects:
                count = getattr(one, "__dict__", {}).get("last_epoch")
                if type(count) is int and hasattr(type(one), "step"):
                    yield part.name, one, count

    def outline(self) -> Outline:
        """From now on no step's end is made with this plan: what it laid aside stays as it is."""
        return Outline(self.step, self.samples_consumed, [(one.layout, one.blob) for one in self.held], self.plan._replace(views=[], keep=[]))

    def copied(self) -> List[Any]:
        """What a copy of the state is made of."""
        sources = list(self.sources)
        for i, copy in zip(self.plan.aside, self.plan.copies):
            sources[i] = copy
        return sources

    def differs(self, written: List[Any]) -> str:
        """The same as sampled() while the state is copied: elements of what was written are compared, too, since a change may
        have ended meanwhile."""
        th, plan = torch(), self.plan
        for i, view, sample in zip(plan.picked, plan.views, plan.samples):
            there = _elements(written[i], self.sources[i].is_contiguous())
            if not th.equal(_bits(view), _bits(sample)) or not th.equal(_bits(there), _bits(sample.cpu())):
                return self.name(i)
        return ""

    def _moved(self) -> int:
        """A source that torch has counted a change of since the step, or that lies elsewhere, or otherwise; -1: none."""
        for i, version, place in zip(self.plan.rest, self.versions, self.places):
            source = self.sources[i]
            if source._version != version or source.data_ptr() != place or source.is_contiguous() != self.plan.dense[i] or not has_memory(source):
                return i
        return -1

    def _replaced(self) -> str:
        """What stood in the objects behind the step and does not any more, or "".  No object is asked, since this may be
        another thread, and the other ranks may stand still.  A block knows by itself whether it is what it was, containers
        are looked through, and of what a state_dict() has given, a tensor that nobody holds but this module was replaced; if
        nobody else has held it behind the step, the state_dict() gives copies, or views of what it has."""
        for part, blocks, _, _ in self.contents:
            if not all(block.holds_the_same() for block in blocks):
                return f'part "{part.name}"'
        plan = self.plan
        ours = collections.Counter(map(id, itertools.chain(self.sources, plan.keep, *(one.sources for one in self.held))))
        alone = next(map(sys.getrefcount, [object()]))  # for what one list counts
        holders = list(map(sys.getrefcount, self.loose))
        there: Set[int] = set()
        for part, blocks, count, objects in self.contents:
            here, others = in_containers(part.value, blocks)
            if len(here) != count or set(map(id, others)) != set(map(id, objects)):
                return f'part "{part.name}"'
            there |= here
        for i, tensor, was, now in zip(plan.loose, self.loose, self.holders, holders):
            if i in plan.reached and id(tensor) not in there or now < was and now <= alone + ours[id(tensor)]:
                return f"tensor {self.name(i)}"
        return ""


def _specs(layout: Any) -> List[Any]:
    return [row.spec for row in layout.rows] if layout else []


def _contents(part: Part) -> _Contents:
    blocks = list(part.blocks.values())
    tensors, objects = in_containers(part.value, blocks)
    return _Contents(part, blocks, len(tensors), objects)


def in_containers(value: Any, blocks: Iterable[Block]) -> Tuple[Set[int], List[Any]]:
    """The ids of the tensors that stand in containers, and the objects there that can say what they hold, without asking any,
    sparse tensors among them; those of blocks aside, which know by themselves."""
    found: Set[int] = set()
    objects: List[Any] = []
    seen: Set[int] = {id(block.of) for block in blocks}
    todo = [value]
    while todo:
        value = todo.pop()
        if type(value) in SIMPLE or id(value) in seen:
            continue
        seen.add(id(value))
        if _is_tensor(value) and local_of(value).layout is torch().strided:
            found.add(id(local_of(value)))
        elif _is_tensor(value):
            objects.append(value)
        elif isinstance(value, (dict, list, tuple, collections.deque)):
            members = value.values() if isinstance(value, dict) else value
            todo += () if SIMPLE.issuperset(map(type, members)) else members
        elif has_pair(value):
            objects.append(value)
        else:
            todo += (fields_of(value) or {}).values()
    return found, objects


def _check_size(rows: List[Any]) -> None:
    n = sum(row.bytes for row in rows)
    if n > UNCOUNTED_MAX:
        most = max(rows, key=lambda row: row.bytes)
        raise TooLarge(f"more than {UNCOUNTED_MAX >> 20} MiB of arrays of numpy and tensors made in inference mode, whose changes nothing counts: "
                       f"{n >> 20} MiB, the largest is {most.spec.name}")


def _may_be_of_numpy(tensor: Any) -> bool:
    """Its memory may be an array's, or become it.  torch says so since 2.0."""
    th = torch()
    return (th is not None and type(tensor) in (th.Tensor, th.nn.Parameter) and tensor.device.type == "cpu" and tensor.layout is th.strided
            and hasattr(tensor, "untyped_storage"))


def _has_arrays(numbers: List[int], sources: List[Any]) -> bool:
    """The memory of one of them is an array's, by from_numpy() or numpy(), so that torch does not count what is written to it
    through that.  What torch.load() has read looks the same."""
    th = torch()
    if not numbers:
        return False
    storages = map(th.Tensor.untyped_storage, [sources[i] for i in numbers])
    return not all(map(th.UntypedStorage.resizable, storages))


def _places_of(tensors: List[Any]) -> List[int]:
    return list(map(torch().Tensor.data_ptr, tensors)) if tensors else []


def _array_like(array: Any) -> Any:
    return numpy().empty_like(array, subok=False)


def _watched(tensor: Any) -> Any:
    """A view of the elements that are compared; None: there are none."""
    view = _elements(tensor, tensor.is_contiguous())
    return None if view is None or view.is_conj() or view.is_neg() else view


def _elements(tensor: Any, middle: bool) -> Any:
    """A view of a few elements from the middle of the tensor, of all if these are a few; None: it has none.  middle: it is contiguous."""
    tensor = tensor.detach()
    if not tensor.numel():
        return None
    if middle:
        tensor = tensor.view(-1)
    left, some = SAMPLES, []
    for n in reversed(tensor.shape):
        take = min(n, left)
        left //= take
        first = min(n // 2, n - take)
        some.append(slice(first, first + take))
    return tensor[tuple(reversed(some))]


def _bits(tensor: Any) -> Any:
    """Not a number is equal to itself here."""
    th = torch()
    return tensor.clone(memory_format=th.contiguous_format).reshape(-1).view(th.uint8)


def _first_other(views: List[Any], samples: List[Any]) -> int:
    """The first of the samples that its view is not equal to; -1: there is none.  Those of a device are compared at once."""
    th = torch()
    for device in {view.device for view in views}:
        here = [i for i, view in enumerate(views) if view.device == device]
        if not th.equal(th.cat([_bits(views[i]) for i in here]), th.cat([_bits(samples[i]) for i in here])):
            return next(i for i in here if not th.equal(_bits(views[i]), _bits(samples[i])))
    return -1
