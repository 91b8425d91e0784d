"""Exceptions that a handler of signals has raised while elrun was at work: a script's way to be told to end, at any line."""

from __future__ import annotations

import signal
from typing import Any, Iterator, Optional, Set


def raise_of_handler(e: BaseException) -> None:
    """Raises the exception of a handler that has led to this one, if one has: it is for the script."""
    codes: Set[Any] = set()
    for one in _chain(e):
        codes = codes or {code for code in map(_code, map(signal.getsignal, signal.valid_signals())) if code}
        at = one.__traceback__
        while at is not None:
            if at.tb_frame.f_code in codes:
                raise one
            at = at.tb_next


def _chain(e: BaseException) -> Iterator[BaseException]:
    seen: Set[int] = set()
    one: Optional[BaseException] = e
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (one.__context__ if one.__suppress_context__ else None)  # not what the script was handling


def _code(handler: Any) -> Any:
    """Of a function, a method, a functools.partial() or an object that can be called; None: of no Python function."""
    if not callable(handler):
        return None
    handler = getattr(handler, "func", handler)
    handler = getattr(handler, "__func__", handler)
    return getattr(handler, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)
