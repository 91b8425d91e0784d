"""Which objects are values: they cannot change, so another one like it can stand in its place."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import re
import sys
import types
import uuid
from typing import Any, Iterator

SIMPLE = frozenset((type(None), bool, int, float, complex, str, bytes))
_IMMUTABLE = (int, float, complex, str, bytes, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time,
              datetime.timedelta, datetime.tzinfo, pathlib.PurePath, uuid.UUID, range, slice, re.Pattern, enum.Enum, type,
              types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
              operator.itemgetter, operator.attrgetter, type(functools.lru_cache(len)), type(Ellipsis), type(NotImplemented))


def torch() -> Any:
    return sys.modules.get("torch")  # whoever has a tensor has imported it


def numpy() -> Any:
    return sys.modules.get("numpy")


@contextlib.contextmanager
def counting_changes() -> Iterator[None]:
    """Tensors that are made in inference mode could be written to in it alone: here they are made outside of it."""
    th = torch()
    if th is None or not hasattr(th, "is_inference_mode_enabled") or not th.is_inference_mode_enabled():
        yield
        return
    with th.inference_mode(False), th.no_grad():
        yield


def is_value(value: Any) -> bool:
    """It has no state that could change, all the way down.  Functions and classes are pickled by their
    names, a functools.partial() of values by these."""
    kind = type(value)
    if kind in SIMPLE:
        return True
    if isinstance(value, (tuple, frozenset)):
        return (kind in (tuple, frozenset) or _is_record(kind)) and all(map(is_value, value))
    if kind is functools.partial:
        return not vars(value) and is_value(value.func) and is_value(value.args) and all(map(is_value, value.keywords.values()))
    if isinstance(value, (types.BuiltinFunctionType, types.MethodType)):  # bound to something that may change, or to a module
        return value.__self__ is None or isinstance(value.__self__, types.ModuleType) or is_value(value.__self__)
    if isinstance(value, _IMMUTABLE):
        return isinstance(value, (enum.Enum, type, types.FunctionType, types.BuiltinFunctionType, pathlib.PurePath)) or not getattr(
            value, "__dict__", None
        )
    np, th = numpy(), torch()
    if np is not None and (isinstance(value, np.ufunc) or type(value) is type(np.sum)):
        return True
    if np is not None and isinstance(value, (np.generic, np.dtype)):
        return not (isinstance(value, np.void) and value.dtype.hasobject)
    if th is not None and isinstance(value, (th.dtype, th.device, th.layout, th.memory_format, th.Size)):
        return True
    return False


def _is_record(kind: type) -> bool:
    th = torch()
    return hasattr(kind, "_fields") or hasattr(kind, "n_sequence_fields") or (th is not None and kind is th.Size)


def has_pair(value: Any) -> bool:
    """It can say what it holds, and take it back."""
    return (callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))
            and not isinstance(value, type))
