"""What workers of tests do with a connection that no script does: they reach into elrun's package."""
import os

from elrun.packets import extents, images_text


def begin(ck, step):
    """A snapshot that is begun, of what is declared, and not committed: the answer."""
    ck._grant()
    return ck._ask("SNAP_BEGIN", {"step": step, "images": images_text([one.size for one in ck._take()])}, "SNAP_SLOT")[0]


def slot_of(ck, step):
    """The memory of the slot with that step, whose first part says it."""
    mark = b'\\"step\\": \\"' + b"%020d" % step
    [memory] = [slot.memory for slot in ck._slots if mark in bytes(slot.memory)]
    return memory


def spoil(ck, step):
    """Writes into the slot of that step."""
    slot_of(ck, step)[300000] ^= 1


def memory_of_slots(ck):
    """(bytes that they have, bytes that two snapshots of what is declared need)."""
    end = extents([one.size for one in ck._take()])[-1]
    return sum(os.fstat(slot.fd).st_blocks * 512 for slot in ck._slots), 2 * (-(-(end.at + end.bytes) // 4096) * 4096)


def images(ck, step):
    """(name, bytes) of each part, in the slot of that step, where nothing has changed its size since."""
    memory = slot_of(ck, step)
    for part, at in zip(ck.parts, extents([one.size for one in ck._take()])):
        yield part.name, bytes(memory[at.at : at.at + at.bytes])
