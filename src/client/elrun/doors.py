"""Calls load_state_dict() of modules, optimizers and other objects, once it is known that what was saved fits."""

from __future__ import annotations

import collections
import copy
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import special
from .blocks import local_of
from .handlers import raise_of_handler
from .memory import is_alike
from .objects import is_small
from .tree import (DoorNode, MappingNode, Misfit, ModuleNode, OptimizerNode, Plain, ShardedOptimizerNode, TensorNode, a_class,
                   class_name, join)
from .values import torch

if TYPE_CHECKING:
    from .fill import Fill

UNDO_MAX = 64 << 20  # bytes of a state that is copied so that it can be put back
NAMES_MAX = 4  # that differ, in one text
DEPTH_MAX = 8  # of the state of an optimizer in another object; one may also stand in itself

Undo = Optional[Callable[[], None]]


def plan_door(fill: "Fill", path: str, old: Any, node: Any) -> None:
    """Checks, and notes what is to be called.  Misfit: names, shapes, groups or classes differ."""
    th = torch()
    if isinstance(node, DoorNode):
        target = special.unwrap(old)
        if class_name(target) != node.cls:
            raise fill.misfit(path, f"the state of a {node.cls} was saved, and {a_class(target)} is declared")
        _plan_pair(fill, path, target, node)
    elif isinstance(node, ModuleNode):
        if th is None or not isinstance(old, th.nn.Module):
            raise fill.misfit(path, f"the state of a module was saved, and {a_class(old)} is declared")
        _plan_module(fill, path, special.unwrap(old), node)
    elif th is None or not isinstance(old, th.optim.Optimizer):
        raise fill.misfit(path, f"the state of an optimizer was saved, and {a_class(old)} is declared")
    elif isinstance(node, ShardedOptimizerNode):
        _plan_sharded(fill, path, old, node)
    else:
        _plan_optimizer(fill, path, old, node)


# --- modules ------------------------------------------------------------------------------------------------------------


def _some(names: List[str]) -> str:
    return ", ".join(names[:NAMES_MAX]) + (f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")


def _compare(fill: "Fill", path: str, node: ModuleNode, live: Dict[str, Any]) -> None:
    """Names, then shapes, then whether values would be lost."""
    saved = dict(zip(node.keys, node.tensors))
    missing = [k for k in saved if k not in live]
    unknown = [k for k in live if k not in saved]
    if missing or unknown:
        say = [f"it has no {_some(missing)}, which was saved"] if missing else []
        say += [f"{_some(unknown)} was not saved"] if unknown else []
        raise fill.misfit(path, "; ".join(say))
    for key, tensor in live.items():
        was, local = saved[key], local_of(tensor)
        if special.is_lazy(tensor):
            continue
        if tuple(local.shape) != was.shape:
            raise fill.misfit(path, f"{key} was saved with shape {list(was.shape)}, and has {list(local.shape)}")
        _keeps_values(fill, path, key, local, was)


def _keeps_values(fill: "Fill", path: str, key: str, local: Any, was: TensorNode) -> None:
    if str(local.dtype) != f"torch.{was.dtype}" and not _holds_all(local.dtype, was.dtype):
        raise fill.misfit(path, f"{key} was saved as {was.dtype}, and is {str(local.dtype)[6:]}: values would be lost; "
                                "convert the module before restore()")


def _holds_all(dtype: Any, saved: str) -> bool:
    """Every value of the saved type has its like in the other."""
    th = torch()
    was = getattr(th, saved)
    return bool(th.promote_types(was, dtype) == dtype) and not (was is th.int64 and dtype.is_floating_point)


def _plan_module(fill: "Fill", path: str, module: Any, node: ModuleNode) -> None:
    if node.raw != special.is_fsdp1(module):
        raise fill.misfit(path, "it was saved wrapped in FSDP, and is not" if node.raw else "it was not wrapped in FSDP when it was saved")
    own = special.own_loaders(module)
    plain = node.raw or (special.is_stock_module(module) and not own)
    live: Dict[str, Any] = {}
    if plain:
        special.reshard(module)
        live = {e.key: e.tensor for e in special.module_entries(module, [], [], {})}
        _compare(fill, path, node, live)
    if node.raw:
        for key, was in zip(node.keys, node.tensors):
            fill.put(join(path, key), live[key], was)
        return
    values = []
    for key, was in zip(node.keys, node.tensors):
        saved = fill.tensors(was.name, was.dtype, was.shape)
        if not plain:  # the module may keep it: as torch.load() gives it
            saved = saved.clone().to(fill.device(was.device) if key.startswith(own) else "cpu")
        values.append((key, fill._spread(join(path, key), saved, was.spread, live.get(key)) if was.spread else saved))
    state: Any = collections.OrderedDict(values)
    state._metadata = collections.OrderedDict(node.metadata)
    fill.door(plain, lambda: _load_module(module, state, plain))


def _load_module(module: Any, state: Any, plain: bool) -> Undo:
    before = None if plain else _copy_of(module.state_dict)
    try:
        with special.writing_to([*module.parameters(), *module.buffers()]):
            module.load_state_dict(state)
    except Exception as e:
        raise _failed(e, before is not None and (lambda: module.load_state_dict(before)))
    return (lambda: module.load_state_dict(before)) if before is not None else None


# --- optimizers ---------------------------------------------------------------------------------------------------------


def _plan_optimizer(fill: "Fill", path: str, optim: Any, node: OptimizerNode) -> None:
    if class_name(optim) != node.cls:
        raise fill.misfit(path, f"the state of a {node.cls} was saved, and {a_class(optim)} is declared")
    groups = optim.param_groups
    if len(groups) != len(node.shapes):
        raise fill.misfit(path, f"{len(node.shapes)} parameter groups were saved, and there are {len(groups)}")
    for i, (group, shapes) in enumerate(zip(groups, node.shapes)):
        if len(group["params"]) != len(shapes):
            raise fill.misfit(path, f"group {i} was saved with {len(shapes)} parameters, and has {len(group['params'])}")
        for k, (param, shape) in enumerate(zip(group["params"], shapes)):
            if tuple(param.shape) != tuple(shape):
                raise fill.misfit(path, f"parameter {k} of group {i} was saved with shape {list(shape)}, and has {list(param.shape)}")
    _compare_order(fill, path, groups, node)
    for name, inner in node.inner.items():
        fill.put(join(path, name), getattr(optim, name, None), inner)
    state = {key: fill.make(join(path, key), value) for key, value in node.state}
    saved, n = [], 0
    for i, (group, hyper) in enumerate(zip(groups, node.groups)):
        saved.append({**fill.make(join(path, f"param_groups.{i}"), hyper), "params": list(range(n, n + len(group["params"])))})
        n += len(group["params"])
    fill.door(special.loads_as_torch(optim), lambda: _load_optimizer(optim, state, saved))


def _compare_order(fill: "Fill", path: str, groups: List[Any], node: OptimizerNode) -> None:
    """Parameters of one shape in another order would get each other's moments.  It is known by the names that they have in
    the modules beside it, or in the groups; names that are not the same set of names mean nothing."""
    live = [[fill.names.get(id(p), []) for p in g["params"]] for g in groups]
    saved = [[fill.saved_names.get(i, []) for i in ids] for ids in node.ids]
    for i, hyper in enumerate(node.groups):
        was, now = _param_names(fill.make("", hyper)), _param_names(groups[i])
        if was and now:
            saved[i], live[i] = [[n] for n in was], [[n] for n in now]
    there = {n for g in live for names in g for n in names}
    for i, (before, after) in enumerate(zip(saved, live)):
        for k, (a, b) in enumerate(zip(before, after)):
            if a and b and not set(a) & set(b) and set(a) <= there:
                raise fill.misfit(path, f"parameter {k} of group {i} was {a[0]} when it was saved, and is {b[0]}: give it the "
                                        "parameters in their old order")


def _param_names(group: Any) -> List[str]:
    names = group.get("param_names")
    return list(names) if isinstance(names, (list, tuple)) and len(set(names)) == len(names) else []


def _load_optimizer(optim: Any, state: Dict[Any, Any], groups: List[Dict[str, Any]]) -> Undo:
    before = dict(vars(optim))
    held, hyper = dict(optim.state), [dict(g) for g in optim.param_groups]

    def undo() -> None:
        vars(optim).update(before)
        optim.state.clear()
        optim.state.update(held)
        for group, old in zip(optim.param_groups, hyper):
            group.clear()
            group.update(old)

    try:
        optim.load_state_dict({"state": dict(state), "param_groups": groups})
    except Exception as e:
        raise _failed(e, undo)
    _keep_dtypes(optim, state)
    return undo


def _keep_dtypes(optim: Any, state: Dict[Any, Any]) -> None:
    """torch casts what it loads to the type of the parameter: moments in float32 of a parameter in bfloat16 would lose
    their low bits."""
    params = [p for g in optim.param_groups for p in g["params"]]
    for key, saved in state.items():
        param = params[key] if type(key) is int and key < len(params) else None
        live = optim.state.get(param) if param is not None else None
        if not isinstance(live, dict) or not isinstance(saved, dict):
            continue
        for name, value in saved.items():
            if name in live and name != "step":
                live[name] = _as_saved(live[name], value)


def _as_saved(live: Any, saved: Any) -> Any:
    """The tensors that torch has made, but of the type that was saved; and what it casts that is no tensor, as it was."""
    if special.is_tensor(saved):
        if not special.is_tensor(live):
            return saved
        return saved.to(live.device) if live.dtype != saved.dtype else live
    if type(saved) is dict and isinstance(live, dict):
        return {k: _as_saved(live.get(k), v) for k, v in saved.items()}
    if type(saved) in (list, tuple) and isinstance(live, (list, tuple)) and len(live) == len(saved):
        return type(saved)(_as_saved(a, b) for a, b in zip(live, saved))
    return saved


class _Loaded(NamedTuple):
    """What the load_state_dict() of torch was given, of an optimizer in another object."""

    optim: Any
    state: Dict[Any, Any]
    ids: List[Any]  #: of its parameters there, in their order


def _load_wrapped(target: Any, state: Any) -> None:
    """Calls load_state_dict() of an object, and does the same for torch's optimizers in its attributes: what they are given
    is noted, however the object arranges it.  One that keeps its moments in a narrow type and gives them in a wide one goes on
    so; that shows in what it gives then.  It is asked for what it is, not for what was cast: on all ranks, or on none."""
    th = torch()
    kind = th.optim.Optimizer if th else None
    inner = [v for v in getattr(target, "__dict__", {}).values() if isinstance(v, kind) and type(v).load_state_dict is kind.load_state_dict
             and "load_state_dict" not in vars(v)] if kind else []
    if not inner:
        target.load_state_dict(state)
        return
    dtypes = dict(_dtypes(state))  # it may be taken apart
    loaded: List[_Loaded] = []
    undo: List[Callable[[], None]] = []
    try:
        for optim in inner:
            undo.append(_note_loads(target, optim, loaded))
        target.load_state_dict(state)
    finally:
        for forget in undo:
            forget()
    try:
        now = dict(_dtypes(special.state_of(target)))
    except Exception as e:  # a snapshot will say so
        raise_of_handler(e)
        return
    if any(now.get(path, dtype) != dtype for path, dtype in dtypes.items()):
        for one in loaded:
            for param, values in zip((p for g in one.optim.param_groups for p in g["params"]), map(one.state.get, one.ids)):
                _cast_back(one.optim.state.get(param), values, param.dtype)


def _note_loads(target: Any, optim: Any, loaded: List[_Loaded]) -> Callable[[], None]:
    """Adds to loaded what load_state_dict() of torch's optimizer is given from now on, until what is returned is called."""

    def note(optim: Any, state_dict: Any) -> None:
        if isinstance(state_dict, dict) and {"state", "param_groups"} <= state_dict.keys():
            loaded.append(_Loaded(optim, _levels(state_dict["state"]), [i for g in state_dict["param_groups"] for i in g["params"]]))

    if hasattr(optim, "register_load_state_dict_pre_hook"):
        hook = optim.register_load_state_dict_pre_hook(note)
        return lambda: hook.remove()

    def load(state_dict: Any) -> Any:  # torch before 2.1
        note(optim, state_dict)
        return type(optim).load_state_dict(optim, state_dict)

    def forget() -> None:
        for one in (optim, target):  # some wrappers take all attributes of what they wrap
            if vars(one).get("load_state_dict") is load:
                del vars(one)["load_state_dict"]

    vars(optim)["load_state_dict"] = load
    return forget


def _cast_back(live: Any, saved: Any, dtype: Any) -> None:
    """What torch has cast to this type is what it was given, if it has not been changed since."""
    if not (isinstance(live, dict) and isinstance(saved, dict)) and not (type(live) is type(saved) is list and len(live) == len(saved)):
        return
    for key, value in saved.items() if isinstance(saved, dict) else enumerate(saved):
        now = live.get(key) if isinstance(live, dict) else live[key]
        if not special.is_tensor(now) or not special.is_tensor(value):
            _cast_back(now, value, dtype)
        elif key != "step" and special.is_block_tensor(local_of(value)) and value.dtype != now.dtype == dtype and now.shape == value.shape \
                and is_alike(local_of(value.to(now.device, now.dtype)), local_of(now)):
            live[key] = value.to(now.device, copy=True)


def _levels(value: Any) -> Any:
    """Dicts and lists of their own, with what stands in them."""
    if isinstance(value, dict):
        return {k: _levels(v) for k, v in value.items()}
    return [_levels(v) for v in value] if type(value) is list else value


def _dtypes(value: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Any]]:
    """Of the tensors in it, by their place."""
    if special.is_tensor(value):
        yield path, value.dtype
    elif isinstance(value, (dict, list, tuple)) and len(path) < DEPTH_MAX:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _dtypes(one, (*path, key))


def _plan_sharded(fill: "Fill", path: str, optim: Any, node: ShardedOptimizerNode) -> None:
    if not special.is_zero_optimizer(optim):
        raise fill.misfit(path, f"a ZeroRedundancyOptimizer was saved, and {a_class(optim)} is declared")
    if len(optim.param_groups) != len(node.groups):
        raise fill.misfit(path, f"{len(node.groups)} parameter groups were saved, and there are {len(optim.param_groups)}")
    fill.put(join(path, "local"), optim.optim, node.local)
    hyper = [fill.make(join(path, f"param_groups.{i}"), g) for i, g in enumerate(node.groups)]

    def door() -> Undo:
        before = [dict(g) for g in optim.param_groups]
        for group, values in zip(optim.param_groups, hyper):
            group.update(values)
        def undo() -> None:
            for group, old in zip(optim.param_groups, before):
                group.update(old)

        return undo

    fill.door(True, door)


# --- anything with the pair ---------------------------------------------------------------------------------------------


def _failed(cause: Exception, undo: Any) -> Misfit:
    """It does not take the state; what it had is put back if that can be done."""
    failed = Misfit(str(cause), True)
    failed.__cause__ = cause
    try:
        if undo:
            undo()
            failed.spoiled = False
    except Exception as e:  # the first failure is told
        raise_of_handler(e)
    return failed


def _plan_pair(fill: "Fill", path: str, target: Any, node: DoorNode) -> None:
    th = torch()
    for name, inner in node.inner.items():
        fill.put(join(path, name), getattr(target, name, None), inner)
    if th is not None and isinstance(target, th.nn.Module):
        tree, metadata = node.state if type(node.state) is tuple else (node.state, Plain(None))
        saved = dict(tree.items) if isinstance(tree, MappingNode) else {}
        for entry in special.module_entries(target, [], [], {}):
            was, local = saved.get(entry.key), local_of(entry.tensor)
            if isinstance(was, TensorNode) and special.is_block_tensor(local):
                if not special.own_loaders(target) and tuple(local.shape) != was.shape:
                    raise fill.misfit(path, f"{entry.key} was saved with shape {list(was.shape)}, and has {list(local.shape)}")
                _keeps_values(fill, path, entry.key, local, was)
        state = fill.make(path, tree)
        if metadata.value is not None:
            state._metadata = collections.OrderedDict(metadata.value)
        fill.door(False, lambda: _load_module(target, state, False))
        return
    made = fill.make(path, node.state)
    if made is None:
        return  # an iterator that was not begun

    def call() -> Undo:
        return _load_pair(target, made)

    def at_last() -> None:
        call()

    if getattr(target, "restore_last", False):
        fill.last.append(at_last)
    else:
        fill.door(False, call)


def _load_pair(target: Any, state: Any) -> Undo:
    before, wrapped = _copy_of(lambda: special.state_of(target)), special.with_its_groups(target)
    try:
        _load_wrapped(target, state)
        for optim in wrapped:
            if optim.param_groups is not target.param_groups:
                target.param_groups[:] = optim.param_groups
                optim.param_groups = target.param_groups
    except Exception as e:
        raise _failed(e, before is not None and (lambda: target.load_state_dict(before)))
    return (lambda: target.load_state_dict(before)) if before is not None else None


def _copy_of(state_dict: Callable[[], Any]) -> Any:
    """What it holds now, so that it can be put back; None: it is too large for that, or cannot be copied."""
    try:
        state = state_dict()
        return copy.deepcopy(state) if is_small(state, [UNDO_MAX]) else None
    except Exception as e:
        raise_of_handler(e)
        return None

