"""What this module and the agent say to each other (src/snapshot/worker_msg.h), and the status page that both map
(src/snapshot/worker_status.h)."""

from __future__ import annotations

import json
import mmap
import struct
import threading
import time
from typing import Any, Dict, List, NamedTuple, Tuple

PROTO = 2
PACKET_MAX = 60 << 10
PAGE = 4096
_MAGIC = 0x31434C45
_HEAD = struct.Struct("<IHHII")
TYPES = {
    "HELLO": 1, "DECLARE": 2, "GRANT": 3, "SNAP_BEGIN": 4, "SNAP_SLOT": 5, "SNAP_COMMIT": 6, "SNAP_ACK": 7,
    "SNAP_ABORT": 8, "EVENT": 9, "RESTORE_QUERY": 10, "RESTORE_OFFER": 11, "RESTORE_DONE": 12,
    "EMERGENCY": 14, "REFUSED": 15, "DONE": 16, "NOTICE": 24, "AT_BOUNDARY": 25, "WELCOME": 26, "PART": 27,
    "CAPTURED": 29, "FAILING": 30, "RESERVE": 31, "NOTE": 32,
}
_NAMES = {number: name for name, number in TYPES.items()}


class Error(RuntimeError):
    """The agent refused something, or is gone; the text says what and why."""

    def __init__(self, text: str, code: str = ""):
        super().__init__(text)
        self.code = code  # of a refusal


def pack(kind: str, seq: int, body: Dict[str, Any]) -> bytes:
    text = json.dumps(body).encode()
    packet = _HEAD.pack(_MAGIC, TYPES[kind], 0, seq, len(text)) + text
    if len(packet) > PACKET_MAX:
        raise Error(f"{kind} would have {len(packet)} bytes, {PACKET_MAX} at most: shorter names are needed")
    return packet


def unpack(packet: bytes) -> Tuple[str, int, Dict[str, Any]]:
    if len(packet) < _HEAD.size:
        raise Error("elrun's agent has closed the connection; its log says why")
    magic, kind, _, seq, n = _HEAD.unpack_from(packet)
    if magic != _MAGIC or n != len(packet) - _HEAD.size:
        raise Error("what elrun's agent says is not the protocol of this module")
    return _NAMES.get(kind, str(kind)), seq, json.loads(packet[_HEAD.size :])


class Extent(NamedTuple):
    """Where the image of a part lies in a slot."""

    at: int
    header_bytes: int
    bytes: int


def extents(sizes: List[Tuple[int, int]]) -> List[Extent]:
    """Parts lie in the order of their declaration, each at the next multiple of a page."""
    out, at = [], 0
    for header, n in sizes:
        out.append(Extent(at, header, n))
        at += -(-n // PAGE) * PAGE
    return out


def end_of(parts: List[Extent]) -> int:
    """Bytes of a slot that holds them."""
    return -(-(parts[-1].at + parts[-1].bytes) // PAGE) * PAGE if parts else 0


def images_text(sizes: List[Tuple[int, int]]) -> str:
    return " ".join(f"{header}/{n}" for header, n in sizes)


def images_of(text: str) -> List[Extent]:
    return extents([(int(h), int(n)) for h, n in (one.split("/") for one in text.split())])


# --- the status page: where this worker is, and where it is to stop ------------------------------------------------------

INIT, STABLE, UPDATING, SNAPSHOT, BLOCKED, EXITING = range(6)
WHY = ("", "scale up", "drain", "eviction", "operator")
NO_STEP = (1 << 63) - 1
SEQ, LIVE, LIMIT, BEAT, STARTED, BOUNDARY, DEADLINE, BEGIN, AT = 5, 6, 8, 9, 10, 11, 12, 14, 15  # 8 bytes each
PHASE, REASON = 14, 26  # 4 bytes each


class Page:
    """The page as words.  The agent reads it at any time, so each word is written at once, and what belongs together
    stands between two odd values of the sequence."""

    def __init__(self, fd: int):
        self.map = mmap.mmap(fd, PAGE)
        self.long = memoryview(self.map).cast("q")
        self.word = memoryview(self.map).cast("I")

    def fence(self) -> None:
        """What was written is visible to the agent before what is read next."""
        with threading.Lock():  # a new one: since Python 3.14 a handler that raises may leave one taken
            pass

    def begin(self, step: int) -> None:
        odd = self._odd()
        self.long[BEGIN] = step
        self.long[STARTED] = time.monotonic_ns()
        self.word[PHASE] = UPDATING
        self.long[SEQ] = odd + 1
        self.fence()

    def end(self, step: int) -> bool:
        """The step is done.  True: a boundary lies here, and this worker stops."""
        odd = self._odd()
        self.long[LIVE] = step
        self.long[BEAT] = time.monotonic_ns()
        self.word[PHASE] = STABLE
        self.fence()
        stops = step >= self.long[BOUNDARY]
        if stops:
            self.long[AT] = step
        self.long[SEQ] = odd + 1
        self.fence()
        return stops

    def _odd(self) -> int:
        """The sequence is odd from here on; it may be already, where a handler of signals has raised an exception before it was
        even again."""
        odd: int = self.long[SEQ] | 1
        self.long[SEQ] = odd
        return odd
