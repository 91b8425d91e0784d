"""Emergency copies: a thread that copies this worker's state into a slot when the agent asks for it.

Another worker has failed, and the main thread may stand in a collective for ever.  The state is that behind the last
step, as long as only steps change it.  What else moves between two steps, the values that are no tensors, buffers and
arrays, is laid aside at the end of each, and so is what was made in inference mode, of which torch counts no change.  A step that begins meanwhile, or a tensor that was changed outside
of one, is noticed, and the copy does not count: by torch's count of changes, by the place of its memory, by elements
that are compared, since what is written through `.data` is counted by nobody, and by who still holds it.  Whether a script
changes something between any two steps, an average of the weights for example, is looked at now and then: nothing would
tell it from a failure that comes just before."""

from __future__ import annotations

import atexit
import collections
import contextlib
import itertools
import operator
import os
import random
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Set, Tuple

from .blocks import local_of
from .objects import fields_of
from .packets import BEAT, BOUNDARY, LIMIT, NO_STEP, PACKET_MAX, Error, end_of, extents, images_text, pack, unpack
from .parts import Held, Part, copy_all
from .special import is_tensor as _is_tensor
from .texts import cut
from .tree import Refused
from .values import SIMPLE, counting_changes, has_pair, numpy, torch

if TYPE_CHECKING:
    from .snapshots import Snapshots

ASIDE_MAX = 1 << 20  # bytes of values, and of buffers, that are laid aside behind each step,
UNCOUNTED_MAX = 64 << 20  # … and of arrays and tensors of which nobody counts the changes: some 5 ms; to sum them takes longer
SAMPLED_MAX = 512  # tensors of which elements are compared: weights first, of more by lot
SAMPLES = 2  # elements of each, side by side: one kernel of a device copies those of all tensors
LOOKS = 64  # one step in so many begins with a look at what was changed behind the one before; early ones more often
HABIT_STEPS = 100  # without a change behind them, for which nothing is captured once one was seen
LARGE_STEPS = 100  # for which who has too many values is not asked for them
FAILING_MAX = 180.0  # seconds that a script which has failed waits until it is captured

_VERSION = operator.attrgetter("_version")
_IS_INFERENCE = operator.methodcaller("is_inference")


class _Plan(NamedTuple):
    """What of the sources of one layout is laid aside, and how the others are watched."""

    layouts: List[Any]
    places: List[int]  #: where the memory of the sources is
    dense: List[bool]  #: of the tensors among them: they are contiguous
    uncounted: Set[int]  #: numbers of sources: tensors made in inference mode, where torch counts no changes
    refused: str  #: why they cannot be captured
    aside: List[int]
    rest: List[int]
    copies: List[Any]  #: of those that are laid aside
    picked: List[int]  #: numbers of some of the rest,
    views: List[Any]  #: elements of them,
    samples: List[Any]  #: … as they were behind the step
    loose: List[int]  #: of the rest: in no block,
    reached: Set[int]  #: … and in a container
    keep: List[Any]  #: at these places


class Emergency:
    """The thread, and what the main thread leaves for it behind each step."""

    def __init__(self, ck: "Snapshots", path: str):
        th = torch()
        self.ck = ck
        self.plan: Optional[_Plan] = None
        self.held: List[Held] = []
        self.sources: List[Any] = []
        self.step: Optional[int] = None  # whose state this is
        self.samples_consumed = 0
        self.versions: List[int] = []
        self.places: List[int] = []
        self.trouble = ""
        self.loose: List[Any] = []  # tensors whose holders are counted,
        self.holders: List[int] = []  # … and how many they had behind the step
        self.blocks: List[Tuple[str, List[Any]]] = []  # of each part behind the step
        self.tensors: List[int] = []  # how many stand in the containers of each part
        self.kept = False  # what stands here is of the last step, and may be compared with what is there when the next begins
        self.steps = self.clean = 0  # steps that were begun; looks in a row that have found nothing
        self.habit = ""  # what the script changes behind its steps: nothing counts that is captured
        self.large = 0  # steps for which nothing is laid aside: it was too much
        self.schedulers = [(part.name, s) for part in ck.parts if isinstance(part, Part) for s in _schedulers(part.value)]
        self.counts: List[Any] = []  # of their steps, behind the step
        self.busy = False
        self.over = threading.Event()  # the agent has what it wanted
        self.side = self.mark = None
        if th is not None and th.cuda.is_available() and th.cuda.is_initialized():
            self.side, self.mark = th.cuda.Stream(), th.cuda.Event()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(path)
        self.thread = threading.Thread(target=self._run, name="elrun emergency", daemon=True)
        self.thread.start()
        self.hook = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self.close)

    # -- in the main thread

    def keep(self, step: int) -> None:
        """Behind a step: nothing of its state moves before the next one begins but what is laid aside here."""
        self.step = None
        self.kept = False
        if self.schedulers:
            self.counts = [s.last_epoch for _, s in self.schedulers]
        if self.large:
            self.large -= 1
            return
        try:
            held = self.ck._take()
            sources = [s for one in held for s in one.sources]
            samples = self.ck._samples()
            with counting_changes():
                why = self._watch(held, sources)
        except (Error, Refused) as e:
            why = str(e)
        except Exception as e:  # a snapshot will say so
            why, self.plan = f"{type(e).__name__}: {e}", None
        self.trouble = why
        if why:
            return
        self.held, self.sources, self.samples_consumed = held, sources, samples
        self.loose = [sources[i] for i in self.plan.loose] if self.plan else []
        self.holders = list(map(sys.getrefcount, self.loose))
        self.blocks = [(part.name, list(part.blocks.values())) for part in self.ck.parts if isinstance(part, Part)]
        self.tensors = [len(_in_containers(part)) for part in self.ck.parts]
        if self.mark:
            self.mark.record()
        self.kept = True
        self.step = step

    def changed_behind(self) -> str:
        """As a step begins: what was changed since the last one ended, if this is a step for a look; "": nothing, or it is
        none.  Who has been seen to do so is looked at in each step, until it was not for HABIT_STEPS."""
        self.steps += 1
        if not self.kept or not (self.habit or self.steps & (self.steps - 1) == 0 or self.steps % LOOKS == 0):
            return ""
        plan = self.plan
        assert plan is not None
        i = self._moved()
        what = f"tensor {self._name(i)}" if i >= 0 else self._replaced()
        k = -1 if what else _first_other(plan.views, plan.samples)
        what = f"tensor {self._name(plan.picked[k])}" if k >= 0 else what
        self.clean = 0 if what else self.clean + 1
        if self.clean == HABIT_STEPS:
            self.habit = ""
        return what

    def _name(self, i: int) -> str:
        return [name for one in self.held for name in _names(one)][i]

    def stepped(self) -> str:
        """The part of a scheduler that has made a step since, whose copy is behind; "": none has.  It is asked for until
        one has."""
        for (name, s), count in zip(self.schedulers, self.counts):
            if s.last_epoch != count:
                self.schedulers = []
                return name
        return ""

    def forget(self, why: str) -> None:
        """What stands in the objects now is no state that a step has left."""
        self.step = None
        self.kept = False
        self.trouble = why

    def is_as_kept(self) -> bool:
        """The elements that are compared are what they were behind the step that was kept last."""
        return self.plan is None or _first_other(self.plan.views, self.plan.samples) < 0

    def _watch(self, held: List[Held], sources: List[Any]) -> str:
        """Lays aside, and notes by what a change will be seen; why not, or ""."""
        if any(one.layout is None for one in held):
            return "files (declare_file) are not copied beside the script"
        if sum(len(one.blob) for one in held) > ASIDE_MAX:
            self.large = LARGE_STEPS
            return f"more than {ASIDE_MAX >> 10} KiB of values that are no tensors"
        if sources and all(one.layout.plain for one in held if one.layout):
            places = list(map(torch().Tensor.data_ptr, sources))
            dense = list(map(torch().Tensor.is_contiguous, sources))
        else:
            places = [s.data_ptr() if _is_tensor(s) else id(s) for s in sources]
            dense = [s.is_contiguous() for s in sources if _is_tensor(s)]
        plan = self.plan
        if plan is None or plan.places != places or plan.dense != dense or plan.layouts != [one.layout for one in held]:
            plan = self.plan = self._plan(held, sources, places, dense)
        if plan.refused:
            self.large = LARGE_STEPS
            return plan.refused
        self.versions = list(map(_VERSION, [sources[i] for i in plan.rest]))
        self.places = [places[i] for i in plan.rest]
        copy_all(plan.copies, [sources[i] for i in plan.aside])
        copy_all(plan.samples, plan.views)
        return ""

    def _plan(self, held: List[Held], sources: List[Any], places: List[int], dense: List[bool]) -> _Plan:
        th = torch()
        layouts = [one.layout for one in held]
        tensors = [i for i, s in enumerate(sources) if _is_tensor(s)]
        uncounted = set(itertools.compress(tensors, map(_IS_INFERENCE, [sources[i] for i in tensors])))
        had = self.plan
        if had is not None and had.layouts == layouts and had.uncounted == uncounted and had.dense == dense:
            plan = self._same_elsewhere(had, sources, places)
            if plan is not None:
                return plan
        rows = [row for one in layouts for row in (one.rows if one else [])]
        free = [i for i, s in enumerate(sources) if i in uncounted or not _is_tensor(s)]
        refused = _too_many([rows[i] for i in free])
        aside = [] if refused else free
        left = ASIDE_MAX
        moves = (i for i, row in enumerate(rows) if row.spec.moves or (row.bytes <= ASIDE_MAX and not row.spec.shared and _is_of_numpy(sources[i])))
        for i in sorted(set(moves).difference(free), key=lambda i: (not rows[i].spec.moves, rows[i].bytes)):
            left -= rows[i].bytes
            if left >= 0:
                aside.append(i)  # one that is larger is a constant, most likely; if it is not, that is noticed
        picked = set(aside).union(free)
        rest = [i for i in range(len(rows)) if i not in picked]
        copies = [th.empty_like(sources[i]) if _is_tensor(sources[i]) else _array_like(sources[i]) for i in aside]
        drawn = random.Random(len(rest)).sample(rest, len(rest))
        some = sorted(drawn, key=lambda i: not sources[i].requires_grad)[:SAMPLED_MAX]  # weights are what scripts swap
        looked = {i: view for i in some for view in [_watched(sources[i])] if view is not None}
        samples = [v.clone() for v in looked.values()]
        loose, reached = self._in_no_block(rest, sources)
        return _Plan(layouts, places, dense, uncounted, refused, aside, rest, copies, list(looked), list(looked.values()), samples, loose, reached,
                     list(sources))

    def _same_elsewhere(self, had: _Plan, sources: List[Any], places: List[int]) -> Optional[_Plan]:
        """The same plan for tensors that lie elsewhere, as they do if a state_dict() gives copies; None: they differ otherwise."""
        views = list(had.views)
        for k, (i, sample) in enumerate(zip(had.picked, had.samples)):
            if places[i] != had.places[i]:
                view = _watched(sources[i])
                if view is None or view.shape != sample.shape or view.device != sample.device:
                    return None
                views[k] = view
        loose, reached = self._in_no_block(had.rest, sources)
        return had._replace(places=places, views=views, loose=loose, reached=reached, keep=list(sources))

    def _in_no_block(self, rest: List[int], sources: List[Any]) -> Tuple[List[int], Set[int]]:
        """Which of them are, and which of these stand in a container."""
        in_blocks = {id(t) for part in self.ck.parts if isinstance(part, Part) for block in part.blocks.values() for t in block.locals}
        loose = [i for i in rest if id(sources[i]) not in in_blocks]
        there = set().union(*map(_in_containers, self.ck.parts)) if loose else set()
        return loose, {i for i in loose if id(sources[i]) in there}

    def _moved(self) -> int:
        """A source that torch has counted a change of since the step, or that lies elsewhere; -1: none."""
        plan = self.plan
        assert plan is not None
        for i, version, place in zip(plan.rest, self.versions, self.places):
            if self.sources[i]._version != version or self.sources[i].data_ptr() != place:
                return i
        return -1

    def _replaced(self) -> str:
        """What stood in the objects behind the step and does not any more, or "".  No object is asked, since this may be
        another thread, and the other ranks may stand still.  A block knows by itself whether it is what it was, containers
        are looked through, and of what a state_dict() has given, a tensor that nobody holds but this module was replaced; if
        nobody else has held it behind the step, the state_dict() gives copies, or views of what it has."""
        for name, blocks in self.blocks:
            if not all(block.holds_the_same() for block in blocks):
                return f'part "{name}"'
        plan = self.plan
        if plan is None:
            return ""
        ours = collections.Counter(map(id, itertools.chain(self.sources, plan.keep, *(one.sources for one in self.held))))
        alone = next(map(sys.getrefcount, [object()]))  # for what one list counts
        holders = list(map(sys.getrefcount, self.loose))
        there: Set[int] = set()
        for part, count in zip(self.ck.parts, self.tensors):
            here = _in_containers(part)
            if len(here) != count:
                return f'part "{part.name}"'
            there |= here
        for i, tensor, was, now in zip(plan.loose, self.loose, self.holders, holders):
            if i in plan.reached and id(tensor) not in there or now < was and now <= alone + ours[id(tensor)]:
                return f"tensor {self._name(i)}"
        return ""

    def _failed(self, *what: Any) -> None:
        """sys.excepthook: the script ends badly.  Its state is whole, unless it failed inside of a step."""
        self.hook(*what)
        if os.getpid() != self.ck.pid:
            return
        self.over.clear()
        try:
            self.sock.send(pack("FAILING", 0, {"step": -1 if self.step is None else self.step}))
        except OSError:
            return
        until = time.monotonic() + FAILING_MAX
        while not self.over.wait(10) and self._is_frozen() and time.monotonic() < until:
            pass  # an agent that heard it forbids the next step, or says that it is over

    def _is_frozen(self) -> bool:
        page = self.ck._page
        return bool(page.long[LIMIT] != NO_STEP and page.long[BOUNDARY] == NO_STEP)

    def close(self) -> None:
        """The process ends, or wants no more of it; a copy that was begun is ended first."""
        if os.getpid() != self.ck.pid:
            return
        now = time.monotonic()
        soon, until = now + 10, now + FAILING_MAX
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
                kind, _, body = unpack(self.sock.recv(PACKET_MAX))
                if kind == "LASTWORDS":
                    self.busy = True
                    self._answer(body["slot"], body["step"], body.get("slot_bytes", 0))
                elif kind == "DONE":
                    self.over.set()
            except (OSError, Error):
                self.over.set()
                return
            finally:
                self.busy = False

    def _answer(self, number: int, step: int, slot_bytes: int) -> None:
        images = ""
        try:
            why, images = self._copy(number, step, slot_bytes)
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
        self.sock.send(pack("CAPTURED", 0, {"slot": number, "step": step, "ok": not why, "why": cut(why), "images": images,
                                            "consumed_samples": self.samples_consumed}))

    def _copy(self, number: int, step: int, slot_bytes: int) -> Tuple[str, str]:
        ck, turn = self.ck, self.ck._turn
        if turn & 1 or self.step != step:
            return self.trouble or "it is not between these steps any more", ""
        if self.habit:
            return self.habit, ""
        while self.mark and not self.mark.query():  # the step's work on the device
            self._beat()
            time.sleep(0.001)
            if ck._turn != turn:
                return "a step began before it was copied", ""
        held, plan = self.held, self.plan
        assert plan is not None
        where = extents([one.size for one in held])
        if end_of(where) > slot_bytes:
            return f"its state has grown to {end_of(where)} bytes, and the slot has {slot_bytes}", ""
        slot = ck._slots[number]
        slot.grow(slot_bytes, end_of(where), hung=True)
        sources = list(self.sources)
        for i, copy in zip(plan.aside, plan.copies):
            sources[i] = copy
        with torch().cuda.stream(self.side) if self.side else contextlib.nullcontext():  # not behind what the main thread waits for
            written = self._write(slot, held, where, step, sources)
            del sources  # who holds a tensor is counted
            why = self._changed(turn, plan, written)
        return why, images_text([one.size for one in held])

    def _write(self, slot: Any, held: List[Held], where: Any, step: int, sources: List[Any]) -> List[Any]:
        """In pieces, with a sign of life after each.  What they were written to."""
        written: List[Any] = []
        splits = slot.lock.splits(end_of(where))
        for one, extent in zip(held, where):
            assert one.layout is not None
            image = slot.memory[extent.at : extent.at + extent.bytes]
            one.layout.write(image, step, one.blob)
            for view in one.layout.views(image):
                self._beat()
                source = sources[len(written)]
                copy_all([view], [source.cpu() if splits and getattr(source, "is_cuda", False) else source])
                written.append(view)
        return written

    def _changed(self, turn: int, plan: _Plan, written: List[Any]) -> str:
        """What was changed outside of a step, or "".  What was written is looked at, too: a change may have ended
        meanwhile."""
        if self.ck._turn != turn:
            return "a step, or ck.swapped(), began or ended while it was copied"
        i = self._moved()
        what = f"{self._name(i)}" if i >= 0 else self._replaced()
        if what:
            return f"{what} was changed outside of ck.update()"
        th = torch()
        for i, view, sample in zip(plan.picked, plan.views, plan.samples):
            copied = _elements(written[i], self.sources[i].is_contiguous())
            if not th.equal(_bits(view), _bits(sample)) or not th.equal(_bits(copied), _bits(sample.cpu())):
                return (f"{self._name(i)} and maybe other tensors were changed outside of ck.update(), past torch's count (through "
                        ".data): weights swapped for a validation belong into `with ck.swapped():`")
        return ""

    def _beat(self) -> None:
        self.ck._page.long[BEAT] = time.monotonic_ns()


def _schedulers(value: Any, depth: int = 4) -> List[Any]:
    """Learning rate schedulers in what was declared: what counts its steps."""
    if "last_epoch" in getattr(value, "__dict__", ()) and hasattr(type(value), "step"):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [s for member in members if depth for s in _schedulers(member, depth - 1)]


def _in_containers(part: Any) -> Set[int]:
    """The ids of the tensors that stand in containers of the part, without asking any object; those of blocks aside, which
    know by themselves."""
    found: Set[int] = set()
    seen: Set[int] = {id(block.of) for block in part.blocks.values()} if isinstance(part, Part) else set()
    todo = [part.value] if isinstance(part, Part) else []
    while todo:
        value = todo.pop()
        if type(value) in SIMPLE or id(value) in seen:
            continue
        seen.add(id(value))
        if _is_tensor(value):
            found.add(id(local_of(value)))
        elif isinstance(value, (dict, list, tuple, collections.deque)):
            members = value.values() if isinstance(value, dict) else value
            todo += () if SIMPLE.issuperset(map(type, members)) else members
        elif not has_pair(value):
            todo += (fields_of(value) or {}).values()
    return found


def _names(one: Held) -> List[str]:
    return [row.spec.name for row in one.layout.rows] if one.layout else []


def _too_many(rows: List[Any]) -> str:
    """Why these are not laid aside, or ""."""
    n = sum(row.bytes for row in rows)
    if n <= UNCOUNTED_MAX:
        return ""
    most = max(rows, key=lambda row: row.bytes)
    return (f"more than {UNCOUNTED_MAX >> 20} MiB of arrays of numpy and tensors made in inference mode, whose changes nothing counts: {n >> 20} "
            f"MiB, the largest is {most.spec.name}")


def _is_of_numpy(tensor: Any) -> bool:
    """Its memory may be an array's, as from_numpy() gives it: torch does not count what is written through that.  What
    torch.load() has read looks the same."""
    th = torch()
    return (th is not None and type(tensor) is th.Tensor and tensor.device.type == "cpu" and tensor.layout is th.strided
            and hasattr(tensor, "untyped_storage") and not tensor.untyped_storage().resizable())


def _array_like(array: Any) -> Any:
    return numpy().empty_like(array, subok=False)


def _watched(tensor: Any) -> Any:
    """A view of the elements that are compared; None: there are none."""
    view = _elements(tensor, tensor.is_contiguous())
    return None if view is None or view.is_conj() or view.is_neg() else view


def _elements(tensor: Any, middle: bool) -> Any:
    """A view of a few elements from the middle of the tensor, or of the first; None: it has none."""
    tensor = tensor.detach()
    n = tensor.numel()
    if not n:
        return None
    if not middle:
        return tensor[(slice(0, 1),) * tensor.dim()]
    return tensor.view(-1).narrow(0, n // 2, min(SAMPLES, n - n // 2))


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
