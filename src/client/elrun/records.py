"""What a script is given by Snapshots beside its state: changes of the job, events, a saved image, and the exceptions."""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

from .packets import Error


class NoSnapshot(Error):
    """restore(): snapshots were taken, and none is left that every rank can have."""


class Change(NamedTuple):
    """A planned change of the job: its last step of this round is announced."""

    why: str  #: "scale up", "drain", "eviction", "operator"
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


class SavedImage(NamedTuple):
    """What a rank was restored from, for restore(share=...); bytes(image) is for a rank that has nothing."""

    consumed_samples: int
    images: str
    memory: memoryview

    def __bytes__(self) -> bytes:
        text = self.images.encode()
        return struct.pack("<QI", self.consumed_samples, len(text)) + text + bytes(self.memory)


def from_outside(e: BaseException) -> bool:
    """It was raised in somebody else's code, by a load_state_dict() for example: another snapshot would not help."""
    at = e.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and not at.tb_frame.f_globals.get("__name__", "").startswith("elrun")
