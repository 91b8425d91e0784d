"""What connect() returns: declaring, snapshots, going back, and where a step begins and ends."""

from __future__ import annotations

import contextlib
import mmap
import operator
import os
import select
import struct
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import packets
from .check import compare
from .declaring import Declaring
from .emergency import HABIT_STEPS, Emergency
from .handlers import raise_of_handler
from .packets import (BLOCKED, BOUNDARY, DEADLINE, EXITING, INIT, LIMIT, LIVE, NO_STEP, PHASE, PROTO, REASON, SNAPSHOT, UPDATING, WHY,
                      Error, Extent, Page, end_of, extents, images_of, images_text)
from .parts import FilePart, Held, Saved, put_back, unmade
from .records import Change, Event, NoSnapshot, Regroup, SavedImage, from_outside
from .texts import cut
from .tree import Misfit, Refused
from .values import torch

MISFIT = "what was saved does not fit what "  # begins what other ranks are told of one (src/snapshot/slot_table_restore.c)
EVENTS_MAX = 1000  # that nobody has asked for: the oldest go
STEP_MAX = 10**15 - 1  # what a checkpoint can be called (CKPT_STEP_MAX of src/ckpt/layout.h)
SAMPLES_MAX = (1 << 63) - 2
_FREEZE_MAX = 180.0  # seconds that a step waits for whoever forbade it
_WORD_AFTER = 10.0  # seconds: who waits for a slot says so
_AHEAD = 65536  # bytes that are reserved for emergency copies beyond what they need now


class _Update:
    """What ck.update() returns."""

    __slots__ = ("ck", "step")

    def __init__(self, ck: "Snapshots", step: int):
        self.ck, self.step = ck, step

    def __enter__(self) -> None:
        self.ck._check_process()
        self.ck._begin(self.step)

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.ck._inside = None
        if kind is None:
            self.ck._end(self.step)


def number_of(value: Any, what: str, most: int = STEP_MAX) -> int:
    """A step, or a number of samples, as an int.  TypeError, ValueError: it is none."""
    text = f"{what} is a whole number from 0 to {most}, not {value!r}"
    if value is None:
        text += "; restore() returns None where nothing was saved: begin with 0 then"
    try:
        n = operator.index(value)
    except TypeError as e:
        raise_of_handler(e)
        raise TypeError(text) from None
    if isinstance(value, bool) or not 0 <= n <= most:
        raise ValueError(text)
    return n


class Snapshots(Declaring):
    """The connection to this node's agent; elrun.connect() makes it."""

    _said_swapped = False
    _half = ""  # why what was declared may be filled in part

    def __init__(self, path: str):
        super().__init__(path)
        self.round, self.coord = os.environ["ELRUN_ROUND"].split(".")
        self.consumed_samples = 0  #: saved with each snapshot, and filled by restore()
        self._reserved = 0
        self._acks: Dict[int, int] = {}  # seq of SNAP_COMMIT: its step
        self._trouble: Optional[str] = None  # why the last snapshot did not count
        self._last: Optional[int] = None
        self._image: Optional[SavedImage] = None  # what restore() has read last, while it runs
        self._sent: Optional[int] = None  # step of the last commit
        self._taken = 0  # snapshots of this process
        self._said_habit = False
        self._full = False  # it was said that --ckpt-mem is too small
        self._lacks_room = False  # it was for the last snapshot
        self._busy = ""  # why there was no slot for one
        self._events: List[Event] = []  # that nobody has been told
        self._settled: Dict[int, Event] = {}  # of the newest steps that are on disk, or are not
        self._before: Dict[int, Event] = {}  # the same of those that were taken before this process came
        self._from = -1  # the step that restore() has put back: what was taken of later ones is given up
        welcome, fds = self._ask("HELLO", {"proto": PROTO, "rank": self.rank, "local_rank": self.local_rank,
                                           "round": int(self.round)}, "WELCOME")
        self.keeps = bool(welcome.get("snapshots"))  #: False: elrun keeps no snapshots, only steps are watched
        self._files = bool(welcome.get("files"))
        self._waits = bool(welcome.get("waits"))
        self._disk = bool(welcome.get("disk"))
        self._check = int(welcome.get("check", 0))
        self._live_path = path + ".live" if welcome.get("live") else ""
        self._emergency: Optional[Emergency] = None
        self._swapped = 0
        self._warned = False  # that nothing is written to disk
        self._spoiled = False  # a restore() that failed has filled something
        self._turn = 0  # odd while a step changes the state; another number after each
        self._inside: Optional[int] = None  # the step that changes it
        self._ended = -1  # the last one that has ended, or was restored
        self._miscounted = False  # it was said that steps do not count up
        self._page = Page(fds[0])
        for fd in fds:
            os.close(fd)

    # -- going back

    def restore(self, share: Optional[Callable[[Optional[SavedImage]], Optional[bytes]]] = None) -> Optional[int]:
        """Fills what was declared with the newest snapshot that every rank can have, the same step on all of them, and
        returns that step; None: there never was one, and nothing was changed.  All ranks must call it.  NoSnapshot:
        there was one, and none is left (elrun --allow-fresh turns that into None).  Error: what was saved does not fit
        what is declared here, the text says where; nothing was changed.

        share: for ranks of a node that is new, whose agent has nothing, where all parts are alike on all ranks
        (shard_id="all").  Then one node that has a step will do.  On all ranks share(image) is called once, behind the
        agreement: image is None on a rank that has nothing, and there it returns bytes(image) of one that has it, by
        whatever way the script has, a broadcast for example (examples/elastic.py)."""
        if not self.keeps:
            return None
        if self._swapped:
            raise Error("restore() within swapped(): the weights are not the model's there")
        if self._inside is not None:
            raise Error(f"restore() within update({self._inside}): the rest of that step would change what is put back; call it "
                        "between two steps")
        self._grant()
        if share is not None and self._layout() != "all":
            raise Error('restore(share=...) is for parts that every rank has alike: declare(..., shard_id="all")')
        offer, fds = self._ask("RESTORE_QUERY", {"layout_id": self._layout(), "elsewhere": share is not None}, "RESTORE_OFFER")
        misfit = ""
        while True:
            step = offer["step"]
            if step < 0 and not offer.get("fresh"):
                if misfit:
                    raise Error(f"what was saved does not fit what is declared here, and {'some of it is filled' if self._spoiled else 'nothing was changed'}: {misfit}")
                text = offer.get("text") or "no snapshot is left"
                raise Error(text) if text.startswith(MISFIT) else NoSnapshot(text)
            trouble, has = "", not offer.get("elsewhere")
            if step >= 0 and has:
                trouble, misfit = self._load(fds[0], offer)
            samples = offer.get("consumed_samples", 0)
            done = {"step": step, "ok": not trouble, "misfit": bool(misfit), "why": cut(trouble)}
            offer, fds = self._ask("RESTORE_DONE", done, "RESTORE_OFFER", "DONE")
            if "step" in offer:
                continue
            self._last = step if step >= 0 else None
            self._from = step
            self.consumed_samples = samples
            image, self._image = self._image, None
            if share is not None and step >= 0:
                self._share(share, image if has else None, samples)
            self._live(self._last)
            self._reserve()
            return self._last

    def _load(self, fd: int, offer: Dict[str, Any]) -> Tuple[str, str]:
        """Why an offer could not be read, and the same if another one would not do either."""
        where = images_of(offer.get("images", ""))
        n = end_of(where)
        memory = memoryview(mmap.mmap(fd, n, access=mmap.ACCESS_READ) if n else b"")
        os.close(fd)
        self._image = SavedImage(offer.get("consumed_samples", 0), offer.get("images", ""), memory)
        return self._put_back(self._image.memory, where)

    def _put_back(self, memory: memoryview, where: List[Extent]) -> Tuple[str, str]:
        if len(where) != len(self.parts):
            return f"{len(where)} parts were saved, and {len(self.parts)} are declared", ""
        self._spoiled = False
        self._turn |= 1  # what an emergency copy would take changes from here on
        before = self._half
        try:
            put_back(self.parts, Saved(memory, where), self._begin_to_fill)
        except Exception as e:  # the agent offers another one, unless it is the script's load_state_dict() that fails
            raise_of_handler(e)
            self._spoiled = getattr(e, "spoiled", False)
            self._half = before if not self._spoiled else f"restore() has failed ({e})"
            if isinstance(e, (Misfit, Refused)):
                return str(e), str(e)
            text = f"{type(e).__name__}: {e}"
            return text, "" if isinstance(e, (ValueError, KeyError, struct.error, Error)) and not from_outside(e) else text
        self._half = ""
        return "", ""

    def _begin_to_fill(self) -> None:
        self._half = "restore() was ended by an exception"

    def _check_whole(self, call: str) -> None:
        if self._half:
            raise Error(f"{call}: {self._half}, and some of what was declared is filled and some is not; call restore() again first")

    def _share(self, share: Callable[[Optional[SavedImage]], Optional[bytes]], image: Optional[SavedImage], samples: int) -> None:
        given = share(image)
        if image is not None:
            return
        if given is None:
            raise Error("restore(share=...): this rank has no snapshot, and share() gave it none")
        consumed, n = struct.unpack_from("<QI", given)
        where = images_of(bytes(given[12 : 12 + n]).decode())
        self.consumed_samples = consumed
        trouble, misfit = self._put_back(memoryview(given)[12 + n :], where)
        if trouble:
            raise Error(trouble)

    # -- snapshots

    def snapshot(self, step: int, persist: bool = False) -> bool:
        """Copies what was declared into the agent's memory, as the state after `step`.  True: done, it cannot be lost
        by this process any more.  False: the last snapshot is still being dealt with and this one was left out (elrun
        --ckpt-busy=wait waits instead), or it has no room in --ckpt-mem, which is said once; an older one stays.

        persist: it is to be written to --ckpt-dir.  That is waited for: such a snapshot is not left out because another
        is being dealt with, unless that takes 30 minutes; ranks that come to no snapshot are waited for 30 seconds.  Then
        False, an event and a line in the log say that it is not on disk.  What became of it is told by wait_persist() and
        events().

        A step that is taken a second time counts as that when all ranks have taken it a second time; until then the first
        take counts.

        What follows a commit may find that a snapshot does not count (its image was not what was declared); the next
        call then raises Error, once."""
        step = number_of(step, "snapshot(step): a step")
        if persist != bool(persist):
            raise TypeError(f"snapshot({step}, persist={persist!r}): persist is True or False")
        self._check_process()
        if not self.keeps:
            return False
        if self._swapped:
            raise Error("snapshot() within swapped(): the weights are not the model's there")
        if self._inside is not None:
            raise Error(f"snapshot({step}) within update({self._inside}): the state is half changed there; take it behind the `with` "
                        "block")
        self._check_whole(f"snapshot({step})")
        if persist and not self._disk:
            self._memory_only(step)
        before = self._page.word[PHASE]
        self._page.word[PHASE] = SNAPSHOT if before != INIT else INIT
        try:
            return self._take_snapshot(step, bool(persist))
        finally:
            self._page.word[PHASE] = before

    def _memory_only(self, step: int) -> None:
        why = "there is no --ckpt-dir"
        if not self._warned:
            self._warned = True
            self._send("NOTE", {"error": False, "text": f"snapshot(persist=True) keeps steps in memory only: {why}"})
        self._note(Event("failed", step, why))

    def _take_snapshot(self, step: int, persist: bool) -> bool:
        self._grant()
        self._drain()
        self._complain()
        samples = self._samples()
        held = self._take()
        slot = self._begin_snapshot(step, persist, images_text([one.size for one in held]))
        if slot is None:
            return False
        number = slot.get("slot", 0)
        try:
            self._slots[number].grow(slot.get("slot_bytes", 0), end_of(extents([one.size for one in held])))
            try:
                self._write(number, held, step)
            except RuntimeError as e:  # a tensor has another view of its elements now
                raise_of_handler(e)
                for part in self.parts:
                    getattr(part, "blocks", {}).clear()
                again = self._take()
                if [one.size for one in again] != [one.size for one in held]:
                    raise
                self._write(number, again, step)
        except BaseException:
            with contextlib.suppress(Error):  # of an agent that is gone: what has happened first is told
                self._send("SNAP_ABORT", {"slot": number, "why": "an exception"})
            raise
        self._taken += 1
        self._forget_fates(step)
        if persist:
            self._settled.pop(step, None)  # whatever became of it when it was left out, or before going back
        self._acks[self._send("SNAP_COMMIT", {"slot": number, "step": step, "persist": persist, "consumed_samples": samples})] = step
        self._sent = step
        return True

    def _forget_fates(self, step: int) -> None:
        """What became of this step before it is taken again, and of later ones if the script has gone back by itself."""
        self._before.pop(step, None)
        if self._sent is not None and step < self._sent:
            self._before = {n: event for n, event in self._before.items() if n < step}
            self._settled = {n: event for n, event in self._settled.items() if n < step}

    def _samples(self) -> int:
        return number_of(self.consumed_samples, "ck.consumed_samples", SAMPLES_MAX)

    def _begin_snapshot(self, step: int, persist: bool, images: str) -> Optional[Dict[str, Any]]:
        """The slot to write into; None: this snapshot is left out."""
        ask = {"step": step, "images": images, "persist": persist}
        since, said = time.monotonic(), False
        self._lacks_room = False
        while True:
            try:
                slot, _ = self._ask("SNAP_BEGIN", ask, "SNAP_SLOT")
            except Error as e:
                if e.code != "NOMEM" or not self._taken:
                    raise
                self._left_out(step, persist, str(e))
                return None
            if not slot.get("busy"):
                return slot
            self._busy = slot.get("text", "")
            if slot.get("give_up") or not (self._waits or persist):
                if persist:
                    self._settle(Event("failed", step, self._busy))
                return None
            if not said and time.monotonic() - since > _WORD_AFTER:
                said = True
                text = f"snapshot() of step {step} has waited {_WORD_AFTER:.0f} s for a slot, and goes on waiting: {self._busy}"
                self._send("NOTE", {"error": False, "text": cut(text)})
            time.sleep(slot.get("retry_ms", 50) / 1000)

    def _left_out(self, step: int, persist: bool, why: str) -> None:
        if not self._full:
            self._send("NOTE", {"error": True, "text": cut(f"the snapshot of step {step} is not kept: {why}; the one before it stays")})
        self._full = self._lacks_room = True
        if persist:
            self._settle(Event("failed", step, why))

    def _write(self, number: int, held: List[Held], step: int) -> None:
        th = torch()
        if th is not None and th.cuda.is_available() and th.cuda.is_initialized():
            th.cuda.synchronize()
        where = extents([one.size for one in held])
        slot = self._slots[number]
        slot.write(held, where, step)
        if self._check and self._taken % self._check == 0:
            self._compare(slot.memory, where, step)

    def _compare(self, memory: memoryview, where: List[Extent], step: int) -> None:
        """--ckpt-check, which ends nothing."""
        try:
            for text in compare(self.parts, memory, where):
                self._send("NOTE", {"error": True, "text": cut(f"--ckpt-check: the snapshot of step {step} is not what was declared: {text}")})
        except Exception as e:
            raise_of_handler(e)
            self._send("NOTE", {"error": True, "text": cut(f"--ckpt-check: the snapshot of step {step} cannot be compared: {type(e).__name__}: {e}")})

    def _reserve(self) -> None:
        """So that the memory is there when the first snapshot comes: about what there is now, and the moments of an
        optimizer that has not made them yet."""
        try:
            n = end_of(extents([one.size for one in self._take()])) + unmade(self.parts)
        except Error:  # the first snapshot will say so
            return
        if n > self._reserved:
            self._reserved = n
            self._send("RESERVE", {"bytes": n})

    def _complain(self) -> None:
        if self._trouble:
            trouble, self._trouble = self._trouble, None
            raise Error(trouble)

    def wait(self) -> Optional[int]:
        """Waits until the agent has summed every snapshot that was committed; returns the last step that counts."""
        while self._acks:
            self._deal()
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
        False: it is not yet known after `timeout` seconds, or there are no snapshots.  Error: it will not be, and why.
        Training needs it for nothing; a script that hands its checkpoints on does."""
        step = number_of(step, "wait_persist(step): a step")
        self._check_process()
        until = time.monotonic() + timeout
        if self.keeps and not self._disk:
            raise Error(f"step {step} is not on disk: elrun has no --ckpt-dir")
        while self.keeps:
            self._drain()
            event = self._settled.get(step) or (self._before.get(step) if step <= self._from else None)
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
        if self._emergency:
            self._emergency.close()
        self._sock.close()
        self._closed = True

    # -- steps

    def update(self, step: int) -> _Update:
        """Around what changes the state in a step, `with ck.update(step): optim.step()`: model, optimizer, scheduler,
        counters, all that was declared.  Steps count up by one, the same on all ranks, and every rank makes them.  The
        agent knows from it how far this worker is, and when workers must be stopped it may copy the state behind its
        last step: nothing that was declared may change outside of a step, but for what is laid aside at the end of each:
        buffers of modules and values, up to 1 MiB, and arrays and tensors made in inference mode, up to 64 MiB.

        Error: within another update().  A step that is not higher than the last one is named in elrun's log, once: only
        a script that has gone back by itself makes it.  Where a number is left out, a planned change goes back to the last
        snapshot.

        Raises Regroup where all ranks stop for a planned change (elrun --boundary-wait): behind the announced step, after
        a snapshot of it."""
        if self._swapped:
            raise Error("update() within swapped(): the weights are not the model's there")
        self._check_whole("update()")
        return _Update(self, number_of(step, "update(step): a step"))

    @contextlib.contextmanager
    def swapped(self) -> Iterator[None]:
        """Around what puts other values into what was declared for a while, an average of the weights for a validation:
        no state is copied meanwhile.  Afterwards all of it is taken for what it was before, unless an exception leaves the
        block, or elements that are compared are not back."""
        self._swapped += 1
        emergency, outline, trouble, back = self._emergency, None, "", False
        try:
            if emergency:
                outline, trouble = emergency.let_go("other weights are in its place (ck.swapped())")
            self._turn += 2  # a copy that has begun does not count
            for part in self.parts:
                getattr(part, "blocks", {}).clear()  # nothing is held meanwhile: memory that the script lets go is free
            yield
            back = True
        finally:
            self._swapped -= 1
            self._turn += 2
            if emergency and back and not self._swapped:
                if outline is None:
                    emergency.forget(trouble)
                elif not self._turn & 1:
                    text = emergency.take_up(outline)
                    if text and not self._said_swapped:
                        self._said_swapped = True
                        self._send("NOTE", {"error": False, "text": cut(f"{text}: until the next step is done nothing newer than the last "
                                            "snapshot can be captured")})

    @property
    def change(self) -> Optional[Change]:
        """What is announced, or None: for a script that wants to know before update() raises Regroup."""
        page = self._page
        step = page.long[BOUNDARY]
        if step == NO_STEP:
            return None
        left = (page.long[DEADLINE] - time.monotonic_ns()) / 1e9
        return Change(WHY[page.word[REASON] % len(WHY)], step, max(0.0, left))

    def _live(self, step: Optional[int]) -> None:
        """This worker has the state after that step."""
        self._ended = -1 if step is None else step
        if self._emergency:
            self._emergency.restored(step is not None)
        if step is not None:
            self._page.long[LIVE] = step
            self._sent = step

    def _begin(self, step: int) -> None:
        if self._inside is not None:
            raise Error(f"update({step}) within update({self._inside}): a step has one, around all that changes the state in it")
        if step <= self._ended and not self._miscounted:
            self._warn_miscounted(step)
        if self._emergency:
            self._look_behind(step, self._emergency)
        page = self._page
        page.begin(step)
        if step > page.long[LIMIT]:
            self._stand(step)
        self._turn = (self._turn | 1) + 2
        self._inside = step

    def _look_behind(self, step: int, emergency: Emergency) -> None:
        name = emergency.stepped()
        if name:
            text = (f"part {name}: a scheduler was stepped between update({self._ended}) and update({step}): what is captured when a "
                    "worker fails has it as it was before; call its step() within ck.update()")
            self._send("NOTE", {"error": False, "text": cut(text)})
        what = emergency.changed_behind()
        if what:
            text = f"{what} was changed between update({self._ended}) and update({step})"
            if not self._said_habit:
                self._said_habit = True
                self._send("NOTE", {"error": False, "text": cut(f"{text}: until {HABIT_STEPS} steps were without such a change, nothing newer "
                                    "than the last snapshot is captured when a worker fails; what is declared changes within ck.update()")})
            emergency.habit = cut(text)

    def _warn_miscounted(self, step: int) -> None:
        """No exception: the training is not wrong, and may be hours old when its second epoch begins."""
        self._miscounted = True
        if step == self._ended:
            text = (f"update({step}) comes twice: all that changes the state in a step belongs into one, for a failure may go back "
                    "to between the two")
        else:
            text = (f"update({step}) comes behind update({self._ended}): unless the script has gone back by itself, count steps on from "
                    "one epoch to the next, or a failure may go back to a step that is not the newest")
        self._send("NOTE", {"error": True, "text": cut(text)})

    def _stand(self, step: int) -> None:
        """No step may be begun beyond a limit: soon the boundary is known, or the limit is lifted."""
        page, since = self._page, time.monotonic_ns()
        while step > page.long[LIMIT]:
            page.word[PHASE] = BLOCKED
            boundary = page.long[BOUNDARY]
            if page.long[LIVE] < boundary < step:  # steps are counted otherwise; between two of them we are
                page.long[packets.AT] = boundary
                self._part(page.long[LIVE])
            until = since + int(_FREEZE_MAX * 1e9) if boundary == NO_STEP else page.long[DEADLINE] + int(10e9)
            if time.monotonic_ns() > until:
                break  # nobody leads any more
            time.sleep(0.002)
            page.word[PHASE] = UPDATING
            page.fence()
        page.begin(step)

    def _end(self, step: int) -> None:
        if self._live_path and self._granted and not any(isinstance(p, FilePart) for p in self.parts):
            path, self._live_path = self._live_path, ""
            try:
                self._emergency = Emergency(self, path)
            except (OSError, RuntimeError) as e:  # no socket, or no thread
                raise_of_handler(e)
        if self._emergency:
            self._emergency.keep(step)
            self._reserve_for(self._emergency.end.held if self._emergency.end else [])
        self._turn = (self._turn | 1) + 1
        self._ended = step
        if not self._page.end(step):
            return
        change = self.change
        if self.keeps and self.parts:
            try:
                self._snapshot_until(step, self._page.long[DEADLINE])
            except Error as e:  # the change comes all the same, and goes back to an older one
                warnings.warn(f"no snapshot at the boundary: {e}")
        self._part(step, change)

    def _snapshot_until(self, step: int, until_ns: int) -> None:
        """One that is summed by then, when the workers are stopped anyway."""
        while self._sent != step and not self.snapshot(step):
            if self._lacks_room:
                raise Error("--ckpt-mem has no room for it")
            if time.monotonic_ns() >= until_ns:
                raise Error(f"no slot was free in the time that there was (elrun --boundary-wait): {self._busy}")
            time.sleep(0.01)
        while self._acks:
            left = (until_ns - time.monotonic_ns()) / 1e9
            if left <= 0 or not self._inbox and not select.select([self._sock], [], [], left)[0]:
                raise Error("it was not summed in the time that there was (elrun --boundary-wait)")
            self._deal()
        self._complain()

    def _reserve_for(self, held: List[Held]) -> None:
        """An emergency copy cannot wait for memory, so lists may grow into some that is there already."""
        n = end_of(extents([one.size for one in held])) + _AHEAD // 2
        if n > self._reserved and n > min((slot.bytes for slot in self._slots), default=0):
            self._reserved = n + _AHEAD // 2
            self._send("RESERVE", {"bytes": self._reserved})

    def _part(self, step: int, change: Optional[Change] = None) -> None:
        change = change or self.change
        self._send("AT_BOUNDARY", {"step": step})
        self._page.word[PHASE] = EXITING
        raise Regroup(change)

    # -- packets that come by themselves

    def _take_packet(self, name: str, to: int, answer: Dict[str, Any]) -> None:
        """What comes between a question and its answer: what became of earlier snapshots."""
        if name == "EVENT":
            event = Event(answer.get("kind", ""), answer.get("step", -1), answer.get("why", ""))
            if answer.get("before"):
                self._before[event.step] = event
            else:
                self._note(event)
            return
        step = self._acks.get(to)
        if step is not None and name == "SNAP_ACK":
            self._last = step
        elif step is not None and name == "REFUSED":
            self._trouble = f"the snapshot of step {step} does not count: {answer.get('text')}"
        self._acks.pop(to, None)

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
