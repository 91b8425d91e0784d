"""A dict like those that the state_dict() of an optimizer, a scheduler or a gradient scaler gives: is it the state of one
that lives, which would not be restored out of it, or a copy to be kept, of the best epoch for example?

It shows in what the two share.  state_dict() makes the dicts that hold all of it anew, but what stands in them is the
object's: moments, lists, or in a dict of a script's own, the groups and their parameters.  A deep copy has nothing of that.  Where there is nothing to be shared, before the first step or
in a dict of numbers, one looks like the other.  Then it is a copy if every object that lives and could have given it is
declared itself, which is restored by that: a second optimizer that is not would begin anew."""

from __future__ import annotations

import collections
import gc
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from .handlers import raise_of_handler
from .objects import fields_of
from .special import is_module, is_tensor
from .tree import join
from .values import has_pair, torch


class _Kind(NamedTuple):
    name: str
    keys: Set[str]  # of its state
    attributes: Set[str]  # of the object


_KINDS = (_Kind("an optimizer", {"state", "param_groups"}, {"state", "param_groups"}),
          _Kind("a scheduler", {"last_epoch", "_step_count"}, {"last_epoch"}),
          _Kind("a scheduler", {"last_epoch", "num_bad_epochs"}, {"last_epoch"}),
          _Kind("a scaler", {"scale", "growth_factor", "backoff_factor"}, {"_growth_factor"}))


def fault(value: Any, others: List[Any]) -> str:
    """Where in what is being declared such a state stands, out of which nobody is restored; "": nowhere.  others: what has
    been declared already."""
    found: List[Tuple[str, Dict[Any, Any], _Kind]] = []
    declared = [o for one in others for o in _look("", one, [], set())] + _look("", value, found, set())
    for path, state, kind in found:
        bare = [o for one in declared for o in (_inside(one, kind) if type(one).__name__ in _WRAPPERS else [one])]
        way = _way_out(state, kind, [o for o in bare if _is_owner(o, kind)])
        if way:
            return (f"{path or 'what is declared'}: this is a copy of {kind.name}'s state, out of which {kind.name} is not "
                    f"restored: declare the {kind.name.split()[-1]} itself; {way}")
    return ""


_WRAPPERS = {"AcceleratedOptimizer": "optimizer", "AcceleratedScheduler": "scheduler"}  # of accelerate, and whose state theirs is


def _way_out(state: Dict[Any, Any], kind: _Kind, declared: List[Any]) -> str:
    """What to do instead; "": nothing, it is a copy to be kept."""
    mine = _shared_by_state_dict(state, kind)
    alive = declared + list(_alive(kind))
    shared = mine | _identities(state["param_groups"]) if kind.name == "an optimizer" else mine
    if shared and any(not shared.isdisjoint(_identities(vars(o))) for o in alive):
        return "what is to be kept beside it, as the best one so far, is its copy.deepcopy()"
    if not alive:
        return _BEHIND + "it"
    del alive
    other = _other_owner(state, kind, declared, bool(mine))
    if other:
        gc.collect()  # it may be one that nobody has any more
        other = _other_owner(state, kind, declared, bool(mine))
    if not other:
        return ""
    return _BEHIND + (f"every {kind.name.split()[-1]}, and {other} is not declared yet" if declared else "it")


_BEHIND = "a copy that is to be kept beside it, as the best one so far, is declared behind "


def _other_owner(state: Dict[Any, Any], kind: _Kind, declared: List[Any], has_own: bool) -> str:
    """The class of an object that lives, is not declared and may have given this state; "": none.  has_own: the state has
    something that would be such an object's, and none has it."""
    known = {id(d) for one in declared for d in [one, *_inside(one, kind)]}
    for o in _alive(kind):
        if id(o) not in known and _may_have_given(o, state, kind, has_own):
            return f"one of class {type(o).__name__}"
    return ""


def _inside(value: Any, kind: _Kind) -> Iterator[Any]:
    """Those that one of several parts restores with itself, as SequentialLR its schedulers."""
    if type(value).__name__ in _WRAPPERS:
        yield vars(value).get(_WRAPPERS[type(value).__name__])
        return
    for one in vars(value).values():
        yield from (o for o in (one if isinstance(one, (list, tuple)) else [one]) if _is_owner(o, kind))


def _may_have_given(owner: Any, state: Dict[Any, Any], kind: _Kind, has_own: bool) -> bool:
    if not _shares_what_it_has(owner):
        return True
    return not has_own and (kind.name != "an optimizer" or _sizes(owner) == _sizes(state))


def _sizes(optimizer: Any) -> List[int]:
    """How many tensors each of its groups has, or of its state's."""
    groups = optimizer["param_groups"] if isinstance(optimizer, dict) else optimizer.param_groups
    return [len(g["params"]) for g in groups]


# --- what is declared ---------------------------------------------------------------------------------------------------


def _look(path: str, value: Any, found: List[Tuple[str, Dict[Any, Any], _Kind]], seen: Set[int]) -> List[Any]:
    """The objects in it that have load_state_dict(); such states go to found."""
    if id(value) in seen:
        return []
    seen.add(id(value))
    if is_module(value) or has_pair(value):
        return [value]
    items: Any = ()
    if isinstance(value, dict):
        kind = next((k for k in _KINDS if k.keys <= value.keys() and (k.name != "an optimizer" or _is_of_optimizer(value))), None)
        if kind is not None:
            found.append((f'"{path}"' if path else "", value, kind))
            return []
        items = value.items()
    elif isinstance(value, (list, tuple, collections.deque)):
        items = enumerate(value)
    elif hasattr(value, "__dict__") and not is_tensor(value):
        items = (fields_of(value) or {}).items()
    return [o for k, v in items for o in _look(join(path, k), v, found, seen)]


def _is_of_optimizer(value: Dict[Any, Any]) -> bool:
    groups = value["param_groups"]
    return (isinstance(value["state"], dict) and isinstance(groups, list)
            and all(isinstance(g, dict) and "params" in g for g in groups))


# --- who shares it ------------------------------------------------------------------------------------------------------


def _alive(kind: _Kind) -> Iterator[Any]:
    """Objects of the process whose state such a dict may be."""
    has: Dict[type, bool] = {}
    for o in gc.get_objects():
        cls = type(o)
        if cls not in has:
            has[cls] = isinstance(cls, type) and _has_pair(cls) and not is_module(o)
        if has[cls] and _is_owner(o, kind):
            yield o


def _has_pair(cls: type) -> bool:
    try:
        return callable(getattr(cls, "state_dict", None)) and callable(getattr(cls, "load_state_dict", None))
    except Exception as e:
        raise_of_handler(e)
        return False


def _is_owner(value: Any, kind: _Kind) -> bool:
    try:
        return bool(kind.attributes <= vars(value).keys())
    except Exception as e:
        raise_of_handler(e)
        return False


def _shares_what_it_has(value: Any) -> bool:
    """An optimizer with a state_dict() or a hook of its own may make all of it anew."""
    th = torch()
    return not hasattr(value, "param_groups") or (th is not None and type(value).state_dict is th.optim.Optimizer.state_dict
                                                  and not getattr(value, "_optimizer_state_dict_post_hooks", None))


def _shared_by_state_dict(state: Dict[Any, Any], kind: _Kind) -> Set[Tuple[str, int]]:
    """What stands in it and may be an object's own."""
    if kind.name != "an optimizer":
        return _identities(*state.values())
    return _identities(*state["state"].values(), *(v for g in state["param_groups"] for k, v in g.items() if k != "params"))


def _identities(*values: Any) -> Set[Tuple[str, int]]:
    """Of what can change in them, all the way down: tensors by their memory, too."""
    ids: Set[Tuple[str, int]] = set()
    seen: Set[int] = set()
    left = list(values)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, (dict, list, tuple, set, collections.deque)):
            left += one.values() if isinstance(one, dict) else one
        elif not is_tensor(one):
            continue
        if not isinstance(one, tuple):
            ids.add(("", id(one)))
        if is_tensor(one):
            ids.add(("at", _address(one)))
    return ids - {("at", 0)}


def _address(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except Exception as e:  # of a kind that has none
        raise_of_handler(e)
        return 0
