"""Exceptions that a handler of signals has raised while elrun was at work: a script's way to be told to end, at any line."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Iterator, Optional, Set

import _signal  # whose getsignal() makes no Enum of what it finds: that is slow


def raise_of_handler(e: BaseException) -> None:
    """Raises the exception of a handler that has led to this one, if one has: it is for the script."""
    for one in _chain(e):
        at = one.__traceback__.tb_next if one.__traceback__ else None  # what has caught it still holds it: its variables are not read
        while at is not None:
            if _is_of_handler(at.tb_frame):
                before = one.__context__
                try:
                    raise one
                finally:
                    one.__context__ = before
                    del e, one, at, before  # a cycle of exceptions and frames would keep tensors until the next gc.collect()
            at = at.tb_next


def _chain(e: BaseException) -> Iterator[BaseException]:
    """What was raised before it within this call; not what the script was handling when it called."""
    seen: Set[int] = set()
    one: Optional[BaseException] = e
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (one.__context__ if one.__suppress_context__ else None)
        if one is not None and _is_handled_by_caller(one):
            return


def _is_handled_by_caller(e: BaseException) -> bool:
    """The function of the script that has caught it has not returned: it has called elrun, from its `except` clause."""
    caught_in = e.__traceback__.tb_frame if e.__traceback__ else None
    frame: Any = sys._getframe(1)
    while frame is not None and frame is not caught_in:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] != __name__.partition(".")[0]


def _is_of_handler(frame: Any) -> bool:
    """It was called with the frame that it has interrupted, as nothing else is, or is a handler's that is registered now.  That
    may be another one: many a handler gives its signal back first, so that a second one ends the process; and one may have
    put something else in the place of its argument."""
    names, rest, _, values = inspect.getargvalues(frame)
    more = values.get(rest) if rest else ()
    given = [values.get(name) for name in names] + list(more if type(more) is tuple else ())
    if frame.f_back is not None and any(value is frame.f_back for value in given):
        return True
    return any(_code_of(handler) is frame.f_code for handler in map(_signal.getsignal, range(1, _signal.NSIG)) if callable(handler))


def _code_of(handler: Any) -> Any:
    """None: it is none of Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if callable(handler) and not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
        handler = getattr(type(handler), "__call__", None)
    return getattr(getattr(handler, "__func__", handler), "__code__", None)
