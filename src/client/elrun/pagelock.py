"""Memory of a snapshot that a GPU copies into by itself.

Into page-locked memory a GPU writes at the speed of its bus; into other memory the driver has to copy once more.  Locked is
exactly what the newest snapshot in a slot occupies, never more: the agent may give back what lies behind it (fallocate() with
FALLOC_FL_PUNCH_HOLE), and a GPU would then go on writing into pages that are no longer those of the slot."""

from __future__ import annotations

import ctypes
from typing import Any, List

from .handlers import raise_of_handler
from .values import torch

LOCKS_MAX = 8  # locking takes longer than a copy: a state that changes its size all the time is not locked
_PORTABLE = 1  # cudaHostRegisterPortable: for the contexts of all devices


def devices_of(tensors: List[Any]) -> List[Any]:
    """The CUDA devices on which some of them lie."""
    th = torch()
    if th is None or not th.cuda.is_available() or not th.cuda.is_initialized():
        return []
    return list({t.device for t in tensors if getattr(t, "is_cuda", False)})


def may_be_queued(tensors: List[Any]) -> bool:
    """Copies of them to the host may end later.  torch turns the sign of a conjugated or negated view on the host, behind the
    copy that it has only begun."""
    return not any(t.is_conj() or t.is_neg() for t in tensors if hasattr(t, "is_conj"))


class PageLock:
    """Of one slot.  Where CUDA refuses it nothing is locked, and copies are slower."""

    def __init__(self) -> None:
        self.at = self.bytes = 0
        self.taken = 0  # how often
        self.stale = False  # the slot was used for less since
        self.left: List[Any] = []  # memory that stays mapped because it is locked

    def keep(self, n: int) -> None:
        """The slot is going to be used for n bytes: what is locked for another number of them is not locked any more."""
        if self.bytes and (n != self.bytes or self.stale):
            if _cleared(torch().cuda.cudart().cudaHostUnregister(self.at)):
                self.bytes, self.stale = 0, False
            else:
                self.stale, self.taken = True, LOCKS_MAX

    def leave(self, memory: Any) -> None:
        """The slot is going to be mapped anew."""
        if self.bytes:
            self.left.append(memory)
            self.bytes, self.stale = 0, False

    def splits(self, used: int) -> bool:
        """The slot is used for so many bytes without a keep(): some of them are locked and some not, or more than they.  CUDA
        copies nothing into a range that is partly locked."""
        self.stale = self.stale or self.bytes not in (0, used)
        return self.stale

    def take(self, memory: memoryview) -> None:
        """Locks it, if it is not."""
        n = len(memory)
        if self.bytes == n or self.taken >= LOCKS_MAX:
            return
        self.taken += 1
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        try:
            locked = _cleared(torch().cuda.cudart().cudaHostRegister(at, n, _PORTABLE))
        except (AttributeError, RuntimeError) as e:
            raise_of_handler(e)
            locked = False
        if locked:
            self.at, self.bytes = at, n
        else:
            self.taken = LOCKS_MAX


def _cleared(status: Any) -> bool:
    """Whether a call of CUDA has succeeded.  If not, its error is reported a second time, by whatever torch starts next on
    the device: that is done here."""
    if int(status) == 0:
        return True
    try:
        torch().zeros(1, device="cuda")
    except RuntimeError as e:
        raise_of_handler(e)
    return False
