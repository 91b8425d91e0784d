"""elrun.Snapshots without an agent: what is declared, taken and put back, with a slot of its own."""
import mmap
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "client"))

from elrun.snapshots import Snapshots  # noqa: E402
from elrun.check import compare  # noqa: E402
from elrun.handlers import raise_of_handler  # noqa: E402
from elrun.packets import end_of, extents, images_of, images_text  # noqa: E402
from elrun.parts import OwnPart, Part, Slot  # noqa: E402


class Alone(Snapshots):
    def __init__(self, rank=0, world=1):
        self.rank, self.local_rank, self.world, self.pid = rank, rank, world, os.getpid()
        self.parts, self._layouts, self.consumed_samples = [], [], 0
        self._granted, self.keeps, self._files = False, True, True
        self._turn, self._swapped, self._emergency = 0, 0, None
        self.slots = []

    def grant(self):
        """As _grant() does it."""
        if not self._granted:
            self._granted = True
            if self.world > 1 and any(isinstance(p, Part) and p.shard_id != f"rank{self.rank}" for p in self.parts):
                self.parts.append(OwnPart(self.rank))
            self.parts.sort(key=lambda p: p.file != "")

    def take_into(self, number, step):
        """A snapshot in one of two slots."""
        self.grant()
        while len(self.slots) <= number:
            fd = os.memfd_create("slot")
            self.slots.append(Slot(fd))
        held, slot = self._take(), self.slots[number]
        text = images_text([one.size for one in held])
        where = images_of(text)
        if end_of(where) > os.fstat(slot.fd).st_size:
            os.ftruncate(slot.fd, end_of(where))
        slot.grow(os.fstat(slot.fd).st_size, end_of(where))
        try:
            slot.write(held, where, step)
        except RuntimeError as e:  # as _take_snapshot() does it
            raise_of_handler(e)
            for part in self.parts:
                getattr(part, "blocks", {}).clear()
            again = self._take()
            if images_text([one.size for one in again]) != text:
                raise
            slot.write(again, where, step)
        return Shot(slot, where, text)

    def differences(self, shot):
        """What --ckpt-check finds."""
        return list(compare(self.parts, shot.slot.memory, shot.where))

    def put_back(self, memory, where):
        self.grant()
        return self._put_back(memory, where)

    def close(self):
        for slot in self.slots:
            slot.views.clear()
            slot.memory = None
            os.close(slot.fd)


class Shot:
    """A snapshot as it lies in a slot."""

    def __init__(self, slot, where, text):
        self.slot, self.where, self.text = slot, where, text

    def copy(self):
        """As another process finds it."""
        fd = os.memfd_create("copy")
        os.pwrite(fd, bytes(self.slot.memory[: end_of(self.where)]) or b"\0", 0)
        to = mmap.mmap(fd, os.fstat(fd).st_size, access=mmap.ACCESS_READ)
        return fd, memoryview(to)
