"""Emergency copies: a thread that copies this worker's state into a slot when the agent asks for it.

Another worker has failed, and the main thread may stand in a collective for ever.  The state is that behind the last
step, as long as only steps change it (step_end.py).  A step that begins meanwhile, or a tensor that was changed outside
of one, is noticed, and the copy does not count.  Whether a script changes something between any two steps, an average of the
weights for example, is looked at now and then: nothing would tell it from a failure that comes just before."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

from .handlers import raise_of_handler
from .packets import BEAT, BOUNDARY, LIMIT, NO_STEP, PACKET_MAX, Error, end_of, extents, images_text, pack, unpack
from .parts import Part, copy_all
from .step_end import Outline, Plan, StepEnd, TooLarge, again, planned
from .texts import cut
from .tree import Refused
from .values import counting_changes, torch

if TYPE_CHECKING:
    from .snapshots import Snapshots

LOOKS = 64  # one step in so many begins with a look at what was changed behind the one before; early ones more often
HABIT_STEPS = 100  # without a change behind them, for which nothing is captured once one was seen
PAUSE_MAX = 100  # steps at most for which who has too many values is not asked for them
FAILING_MAX = 180.0  # seconds that a script which has failed waits until it is captured


class Emergency:
    """The thread, and what the main thread leaves for it behind each step."""

    def __init__(self, ck: "Snapshots", path: str):
        th = torch()
        self.ck = ck
        self.end: Optional[StepEnd] = None  # of the last step: whose state would be captured
        self.plan: Optional[Plan] = None  # of the last one that could be
        self.trouble = ""  # why there is none
        self.steps = self.clean = 0  # steps that were begun; looks in a row that have found nothing
        self.habit = ""  # what the script changes behind its steps: nothing counts that is captured
        self.pause = self.next_pause = 0  # steps for which nothing is laid aside: it was too much
        self.too_large = ""
        self.counts: List[Tuple[str, Any, int]] = []  # learning rate schedulers, and their steps so far, behind the step
        self.said_stepped = False
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
        self.end, self.counts = None, []
        if self.pause:
            self.pause -= 1
            self.trouble = self.too_large
            return
        try:
            end = self._end_of(step)
        except TooLarge as e:
            self.pause, self.next_pause = self.next_pause, min(2 * self.next_pause + 1, PAUSE_MAX)
            why = self.too_large = str(e)
        except (Error, Refused) as e:
            why = str(e)
        except Exception as e:  # a snapshot will say so
            raise_of_handler(e)
            why = f"{type(e).__name__}: {e}"
        else:
            self.end, self.trouble, self.next_pause = end, "", 0
            self.counts = [] if self.said_stepped else list(end.counts())
            return
        self.plan, self.trouble = None, why

    def _end_of(self, step: int) -> StepEnd:
        held = self.ck._take()
        sources = [s for one in held for s in one.sources]
        samples = self.ck._samples()
        with counting_changes():
            self.plan = planned(self.plan, held, sources, self.ck.parts)  # the one before goes: who holds a tensor is counted
            end = StepEnd(step, samples, held, sources, self.plan, self.ck.parts)
        if self.mark:
            self.mark.record()
        return end

    def changed_behind(self) -> str:
        """As a step begins: what was changed since the last one ended, if this is a step for a look; "": nothing, or it is
        none.  Who has been seen to do so is looked at in each step, until it was not for HABIT_STEPS."""
        self.steps += 1
        if not self.end or not (self.habit or self.steps & (self.steps - 1) == 0 or self.steps % LOOKS == 0):
            return ""
        try:
            what = self.end.changed() or self.end.sampled()
        except Exception as e:  # of what the script has put there: a capture will say so
            raise_of_handler(e)
            return ""
        self.clean = 0 if what else self.clean + 1
        if self.clean == HABIT_STEPS:
            self.habit = ""
        return what

    def let_go(self, why: str) -> Tuple[Optional[Outline], str]:
        """Nothing of the state is held until take_up(), and nothing captured.  What it was at the end of the step; None: the
        text says why nothing could be captured before either."""
        try:
            what = self.end.changed() if self.end else ""
        except Exception as e:  # of what the script has put there
            raise_of_handler(e)
            what = f"something ({type(e).__name__}: {e})"
        outline = self.end.outline() if self.end and not what else None
        before = _outside(what) if what else self.trouble
        self.forget(why)
        self.plan = None
        return outline, before

    def take_up(self, outline: Outline) -> str:
        """The objects hold what they did, or a text: something else, so that nothing is captured until the next step is done."""
        self.trouble = f"behind swapped() the weights are not what they were after step {outline.step}"
        end = None
        try:
            with counting_changes():
                end = again(outline, self.ck._take(), self.ck.parts)
        except Exception as e:
            raise_of_handler(e)
            self.trouble += f" ({e})"
        if end is None:
            return self.trouble
        if self.mark:
            self.mark.record()
        self.end, self.plan, self.trouble = end, end.plan, ""
        return ""

    def stepped(self) -> str:
        """The part of a scheduler that has made a step since, whose copy is behind; "": none has.  It is asked for until
        one has."""
        for name, scheduler, count in self.counts:
            if getattr(scheduler, "last_epoch", count) != count:
                self.said_stepped = True
                return name
        return ""

    def forget(self, why: str) -> None:
        """What stands in the objects now is no state that a step has left."""
        self.end = None
        self.trouble = why

    def restored(self, anything: bool) -> None:
        """What the schedulers count is of before, and if anything was put back, what stands in the objects is, too."""
        self.counts = []
        if anything:
            self.forget("restore() was called since")
            self.plan = None

    def _failed(self, *what: Any) -> None:
        """sys.excepthook: the script ends badly.  Its state is whole, unless it failed inside of a step."""
        self.hook(*what)
        if os.getpid() != self.ck.pid:
            return
        self.over.clear()
        try:
            self.sock.send(pack("FAILING", 0, {"step": self.end.step if self.end else -1}))
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
        except OSError as e:
            raise_of_handler(e)
        self.thread.join(1)
        atexit.unregister(self.close)
        if sys.excepthook == self._failed:
            sys.excepthook = self.hook
        self.end = self.plan = None

    # -- in its own

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            try:
                kind, _, body = unpack(self.sock.recv(PACKET_MAX))
                if kind == "EMERGENCY":
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
        images, samples = "", 0
        try:
            why, images, samples = self._copy(number, step, slot_bytes)
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
        self.sock.send(pack("CAPTURED", 0, {"slot": number, "step": step, "ok": not why, "why": cut(why), "images": images,
                                            "consumed_samples": samples}))

    def _copy(self, number: int, step: int, slot_bytes: int) -> Tuple[str, str, int]:
        """Why it does not count, or ""; what lies where, and the samples that were consumed by then."""
        ck, turn = self.ck, self.ck._turn
        end = self.end
        if turn & 1 or end is None or end.step != step:
            return self.trouble or "it is not between these steps any more", "", 0
        if self.habit:
            return self.habit, "", 0
        while self.mark and not self.mark.query():  # the step's work on the device
            self._beat()
            time.sleep(0.001)
            if ck._turn != turn:
                return "a step began before it was copied", "", 0
        sizes = [one.size for one in end.held]
        where = extents(sizes)
        n = end_of(where)
        if n > slot_bytes:
            return f"its state has grown to {n} bytes, and the slot has {slot_bytes}", "", 0
        what = end.changed()  # memory that was given back cannot be read
        if ck._turn != turn:
            return _NOT_BETWEEN, "", 0
        if what:
            return _outside(what), "", 0
        slot = ck._slots[number]
        slot.grow(slot_bytes, n, hung=True)
        with torch().cuda.stream(self.side) if self.side else contextlib.nullcontext():  # not behind what the main thread waits for
            written = self._write(slot, where, end)
            why = _changed(end, written)
        if ck._turn != turn:  # asked last: what was read before may be of either step
            why = _NOT_BETWEEN
        return why, images_text(sizes), end.samples_consumed

    def _write(self, slot: Any, where: Any, end: StepEnd) -> List[Any]:
        """In pieces, with a sign of life after each.  What they were written to."""
        written: List[Any] = []
        sources = end.copied()
        splits = slot.lock.splits(end_of(where))
        for one, extent in zip(end.held, where):
            assert one.layout is not None
            image = slot.memory[extent.at : extent.at + extent.bytes]
            one.layout.write(image, end.step, one.blob)
            for view in one.layout.views(image):
                self._beat()
                source = sources[len(written)]
                copy_all([view], [source.cpu() if splits and getattr(source, "is_cuda", False) else source])
                written.append(view)
        return written

    def _beat(self) -> None:
        self.ck._page.long[BEAT] = time.monotonic_ns()


_NOT_BETWEEN = "a step, or ck.swapped(), began or ended while it was copied"


def _outside(what: str) -> str:
    return f"{what} was changed outside of ck.update()"


def _changed(end: StepEnd, written: List[Any]) -> str:
    """What was changed outside of a step, or ""."""
    what = end.changed()
    if what:
        return _outside(what)
    name = end.differs(written)
    if name:
        return (f"tensor {name} and maybe other tensors were changed outside of ck.update(), past torch's count (through .data): weights "
                "swapped for a validation belong into `with ck.swapped():`")
    return ""
