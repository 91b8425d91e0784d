"""The socket between a worker and its agent: packets that are sent, and those that are waited for."""

from __future__ import annotations

import os
import socket
from typing import Any, Dict, List, Tuple

from .handlers import raise_of_handler
from .packets import PACKET_MAX, Error, pack, unpack


class Nothing(Exception):
    """No packet has come."""


class Connection:
    """One connection of this process to the agent of its node.  Error: there is no agent at that path."""

    def __init__(self, path: str):
        self.pid = os.getpid()
        self._seq = 0
        self._closed = False
        self._asking = False
        self._inbox: List[Any] = []  # packets that have come and were not dealt with
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.connect(path)

    def _check_process(self) -> None:
        if self._closed:
            raise Error("the connection was closed by ck.close()")
        if os.getpid() != self.pid:
            raise Error("this process was forked from the one that called elrun.connect(): snapshots are taken there")

    def _send(self, kind: str, body: Dict[str, Any]) -> int:
        if self._closed:
            raise Error("the connection was closed by ck.close()")
        self._seq += 1
        packet = pack(kind, self._seq, body)
        try:
            self._sock.send(packet)
        except OSError as e:
            raise_of_handler(e)
            raise Error(f"elrun's agent is gone: {e}") from None
        return self._seq

    def _receive(self, flags: int = 0) -> Tuple[str, int, Dict[str, Any], List[int]]:
        """The next packet.  It stays in the inbox until it was dealt with, and comes there at once: a handler of signals may
        raise at any line, and an answer that is lost would be waited for again."""
        while not self._inbox:
            try:
                self._inbox.extend(map(self._sock.recvmsg, (PACKET_MAX,), (socket.CMSG_LEN(4 * 4),), (flags | socket.MSG_CMSG_CLOEXEC,)))
            except OSError as e:
                raise_of_handler(e)
                if isinstance(e, BlockingIOError):
                    raise Nothing from None
                raise Error(f"elrun's agent is gone: {e}") from None
        packet, beside, _, _ = self._inbox[0]
        name, seq, body = unpack(packet)
        fds = [fd for level, kind_of, data in beside if (level, kind_of) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
               for fd in memoryview(data).cast("i")]
        return name, seq, body, fds

    def _ask(self, kind: str, body: Dict[str, Any], *answers: str) -> Tuple[Dict[str, Any], List[int]]:
        self._check_process()
        if self._asking:
            raise Error("another thread, or a signal handler, is in a call of this connection: one thread calls, one call after another")
        try:  # no lock: since Python 3.14 a handler that raises may come between __enter__() and the block
            self._asking = True
            return self._answer(self._send(kind, body), answers)
        finally:
            self._asking = False

    def _answer(self, seq: int, answers: Tuple[str, ...]) -> Tuple[Dict[str, Any], List[int]]:
        while True:
            name, to, answer, fds = self._receive()
            if to == seq and name in answers:
                del self._inbox[:1]
                return answer, fds
            if to in (seq, 0) and name == "REFUSED":
                del self._inbox[:1]
                raise Error(answer.get("text", "refused"), answer.get("code", ""))
            self._deal()

    def _deal(self, flags: int = 0) -> None:
        """Takes the next packet, which answers nothing that is waited for here."""
        name, to, answer, fds = self._receive(flags)
        packet = self._inbox[:1]
        if not fds:
            self._take_packet(name, to, answer)
        if self._inbox[:1] == packet:  # a handler may have called, too
            del self._inbox[:1]
        for fd in fds:  # of an answer that nobody waits for any more
            os.close(fd)

    def _take_packet(self, name: str, to: int, answer: Dict[str, Any]) -> None:
        """A packet that comes between a question and its answer.  The same one comes again if a handler raises meanwhile."""
        raise NotImplementedError

    def _drain(self) -> None:
        """Takes what has come, without waiting."""
        try:
            while True:
                self._deal(socket.MSG_DONTWAIT)
        except Nothing:  # which no handler raises
            pass
