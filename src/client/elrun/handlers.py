"""Exceptions that a handler of signals has raised while elrun was at work: a script's way to be told to end, at any line."""

from __future__ import annotations

import inspect
from typing import Any, Iterator, Optional, Set


def raise_of_handler(e: BaseException) -> None:
    """Raises the exception of a handler that has led to this one, if one has: it is for the script."""
    for one in _chain(e):
        at = one.__traceback__
        while at is not None:
            if _is_of_handler(at.tb_frame):
                raise one
            at = at.tb_next


def _chain(e: BaseException) -> Iterator[BaseException]:
    seen: Set[int] = set()
    one: Optional[BaseException] = e
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (one.__context__ if one.__suppress_context__ else None)  # not what the script was handling


def _is_of_handler(frame: Any) -> bool:
    """It was called with the frame that it has interrupted, as nothing else is.  What is registered now may be another one:
    many a handler gives its signal back first, so that a second one ends the process."""
    names, rest, _, values = inspect.getargvalues(frame)
    given = [values.get(name) for name in names] + list(values.get(rest) or () if rest else ())
    return frame.f_back is not None and any(value is frame.f_back for value in given)
