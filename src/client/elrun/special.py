"""What has to be known of torch's own classes, and of those that stand in for them: which of them keep their state where
state_dict() would show it, which do it by a collective, and which show something else than the state."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import operator
import sys
import warnings
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Set, Tuple, cast

from .handlers import raise_of_handler
from .tree import Place
from .values import torch

SPARSEST = 4  # times its bytes, a tensor that is made anew may take so that it lies as the saved one
_NONE = object()
PICKLE = 5  # that every Python from 3.8 on reads; numpy's byte order is lost by those before it


class Entry(NamedTuple):
    """A tensor of a module, by its key in the module's state_dict()."""

    key: str
    tensor: Any
    parameter: bool


# --- tensors ------------------------------------------------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    th = torch()
    return th is not None and isinstance(value, th.Tensor)


def is_lazy(tensor: Any) -> bool:
    """A parameter of a lazy module, before the first forward has given it a shape."""
    lazy = sys.modules.get("torch.nn.parameter")
    return lazy is not None and hasattr(lazy, "is_lazy") and bool(lazy.is_lazy(tensor))


def is_odd(tensor: Any) -> bool:
    """It has no plain bytes: quantized, of another library's memory, or a subclass that wraps other tensors."""
    if hasattr(tensor, "_local_tensor"):
        return False
    return bool(tensor.is_quantized or tensor.is_mkldnn or getattr(tensor, "is_nested", False)
                or hasattr(tensor, "__tensor_flatten__") or type(tensor).__name__ in ("FakeTensor", "ShardedTensor"))


def is_block_tensor(value: Any) -> bool:
    """A tensor of the ordinary kind."""
    th = torch()
    return (th is not None and isinstance(value, th.Tensor) and not is_lazy(value) and value.layout is th.strided
            and not value.is_meta and not is_odd(value))


def has_memory(tensor: Any) -> bool:
    """All of it: none was given back, by resize_(0) of its storage.  To read what was would be the end of the process."""
    n = tensor.numel()
    if not n:
        return True
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    extent = n if tensor.is_contiguous() else 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return bool(storage.nbytes() >= (tensor.storage_offset() + extent) * tensor.element_size())


GIVEN_BACK = "the memory of this tensor was given back (its storage has fewer bytes than it needs)"


def given_back(tensors: List[Any], places: List[int], before: List[int]) -> int:
    """The first of them whose memory was given back, -1: none.  What can be asked of thousands at each step: storage that is
    made smaller lies elsewhere then, so only those are looked at that do not lie where they did when they were whole."""
    if places == before:
        return -1
    moved = itertools.compress(range(len(places)), map(operator.ne, places, before)) if len(before) == len(places) else range(len(places))
    return next((i for i in moved if not has_memory(tensors[i])), -1)


def is_plain_class(tensor: Any) -> bool:
    """A tensor or parameter of torch's own: another one with its values is like it."""
    th = torch()
    return type(tensor) in (th.Tensor, th.nn.Parameter) or hasattr(tensor, "_local_tensor")


def stride_of(tensor: Any) -> Optional[Tuple[int, ...]]:
    """How another one like it is to lie in memory, as eigenvectors do by column: sums are made in that order.  None: one
    element behind the other.  Of one that lies scattered in a much larger one, or whose elements overlap, that is not kept."""
    if tensor.is_contiguous():  # of a dimension of one element it may have any step, by which convolutions choose their order
        return None if not tensor.numel() or tuple(tensor.stride()) == _row_steps(tensor.shape) else tuple(tensor.stride())
    steps = sorted((step, n) for n, step in zip(tensor.shape, tensor.stride()) if n > 1 and step)
    extent, count = 1, 1
    for step, n in steps:
        if step < extent:
            break
        extent, count = extent + (n - 1) * step, count * n
    else:
        if extent <= SPARSEST * count:
            return tuple(tensor.stride())
    return tuple(torch().empty_like(tensor, device="meta").stride())


def _row_steps(shape: Any) -> Tuple[int, ...]:
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def storage_of(tensor: Any) -> Any:
    """The memory that it is a view of, by bytes."""
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()  # torch 1.13


def place_of(tensor: Any) -> Optional[Place]:
    """None: it shares its memory in no way that could be made anew."""
    if hasattr(tensor, "_local_tensor"):
        return None
    storage = storage_of(tensor)
    at, own = storage.data_ptr(), tensor.data_ptr()
    if not tensor.numel() or own < at or tensor.is_conj() or tensor.is_neg():
        at = own = 0
    return Place(at, storage.nbytes(), own - at, tuple(tensor.stride()), id(tensor))


def offset_of(tensor: Any) -> Tuple[int, ...]:
    """Where this rank's piece of a DTensor begins."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    return tuple(compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)[1])


def writing_to(tensors: List[Any]) -> ContextManager[Any]:
    """What was made in inference mode may be changed in it alone."""
    th = torch()
    if hasattr(th, "inference_mode") and any(t.is_inference() for t in tensors if not is_lazy(t)):
        return cast(ContextManager[Any], th.inference_mode())
    return contextlib.nullcontext()


def can_grow(tensor: Any) -> bool:
    """Its memory is torch's own, and resize_() keeps it for the views of it."""
    return (type(tensor) in (torch().Tensor, torch().nn.Parameter) and hasattr(tensor, "untyped_storage")
            and bool(tensor.untyped_storage().resizable()))


def to_bytes(tensor: Any) -> bytes:
    to = io.BytesIO()
    torch().save(tensor, to, pickle_protocol=PICKLE)
    return to.getvalue()


def from_bytes(data: bytes) -> Any:
    th = torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return th.load(io.BytesIO(data), weights_only=False)
        except TypeError as e:  # before torch 1.13
            raise_of_handler(e)
            return th.load(io.BytesIO(data))


def has_members(tensor: Any) -> bool:
    """A sparse tensor that is made of dense ones, and is like another one that is made of them."""
    th = torch()
    return bool(tensor.layout is not th.strided and type(tensor) is th.Tensor and not is_odd(tensor))


def sparse_members(tensor: Any) -> Tuple[List[Tuple[str, Any]], bool]:
    """The dense tensors that a sparse one consists of, and whether it is coalesced."""
    th = torch()
    tensor = tensor.detach()
    if tensor.layout is th.sparse_coo:
        return [("indices", tensor._indices()), ("values", tensor._values())], tensor.is_coalesced()
    if tensor.layout in (getattr(th, "sparse_csr", None), getattr(th, "sparse_bsr", None)):
        return [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices()), ("values", tensor.values())], False
    return [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices()), ("values", tensor.values())], False


def bits_of(tensor: Any) -> List[bytes]:
    """What a tensor without plain bytes holds, to be compared."""
    if tensor.layout is torch().strided or is_odd(tensor):
        return [to_bytes(tensor)]
    return [to_bytes(member) for _, member in sparse_members(tensor)[0]]


def make_sparse(layout: str, shape: Tuple[int, ...], members: List[Any], coalesced: bool) -> Any:
    th = torch()
    with warnings.catch_warnings():  # of invariants that nobody looks at, of what is new in torch: the script has chosen it
        warnings.simplefilter("ignore")
        if layout == "sparse_coo":
            return th.sparse_coo_tensor(members[0], members[1], shape, device=members[0].device)._coalesced_(coalesced)
        return th.sparse_compressed_tensor(*members, shape, layout=getattr(th, layout), device=members[0].device)


def copy_odd(old: Any, new: Any) -> None:
    """A tensor without plain bytes into another one.  Not into what detach() gives: its scale, its indices are its own."""
    if old.layout is not torch().strided and hasattr(old, "resize_as_sparse_") and not old.is_mkldnn:
        old.resize_as_sparse_(new)
    old.copy_(new)
    if old.is_sparse:
        old._coalesced_(new.is_coalesced())


def takes_odd(old: Any, new: Any) -> bool:
    """copy_odd() makes one of the other: it is tried on a copy, since torch has many conditions."""
    if getattr(new, "is_nested", False) or getattr(old, "is_nested", False) or type(old) is not type(new):
        return False
    if old.layout != new.layout or old.dtype != new.dtype or old.shape != new.shape or old.requires_grad != new.requires_grad:
        return False
    try:
        with torch().no_grad():
            twin = old.detach().clone()
            copy_odd(twin, new.detach())
            return to_bytes(twin) == to_bytes(new.detach().clone())
    except Exception as e:
        raise_of_handler(e)
        return False


def is_loader(value: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(value, data.DataLoader)


# --- modules ------------------------------------------------------------------------------------------------------------


def _comes_from(value: Any, *packages: str) -> bool:
    """One of its classes is defined in one of these packages."""
    return any(c.__module__ == p or c.__module__.startswith(p + ".") for c in type(value).__mro__ for p in packages)


def is_module(value: Any) -> bool:
    th = torch()
    return th is not None and isinstance(value, th.nn.Module)


def unwrap(module: Any) -> Any:
    """The module that DDP or DataParallel wraps: its names do not depend on the number of ranks."""
    while type(module).__name__ in ("DistributedDataParallel", "DataParallel") and hasattr(module, "module"):
        module = module.module
    return module


def module_refusal(module: Any) -> str:
    """Why this module cannot be kept; "": it can."""
    if _comes_from(module, "deepspeed"):
        return ("a DeepSpeed engine keeps its state in pieces of its own: examples/deepspeed_snapshots.py has an object to "
                "declare in its place")
    if _comes_from(module, "torchmetrics") and not module.state_dict():
        return "a metric keeps nothing in its state_dict(): call its persistent(True) first"
    for name, param in module.named_parameters():
        if hasattr(param, "ds_id") or hasattr(param, "ds_tensor"):
            return (f"parameter {name} is a placeholder of DeepSpeed ZeRO-3: examples/deepspeed_snapshots.py has an object to "
                    "declare in its place")
    return ""


def fsdp1_modules(module: Any) -> List[Any]:
    fsdp = sys.modules.get("torch.distributed.fsdp.fully_sharded_data_parallel")
    if fsdp is None:
        return []
    return [m for m in module.modules() if isinstance(m, fsdp.FullyShardedDataParallel)]


def is_fsdp1(module: Any) -> bool:
    return bool(fsdp1_modules(module))


def _is_fsdp2_hook(hook: Any) -> bool:
    return str(getattr(getattr(hook, "hook", hook), "__module__", "")).startswith("torch.distributed.fsdp")


def _has_fsdp2(module: Any) -> bool:
    fsdp = sys.modules.get("torch.distributed.fsdp")
    kind = getattr(fsdp, "FSDPModule", None)
    return kind is not None and any(isinstance(m, kind) for m in module.modules())


def reshard(module: Any) -> None:
    """FSDP2: after a forward without a backward a module may still have its whole parameters.  Its own hook puts the
    shards back; what it returns is not needed."""
    if _has_fsdp2(module):
        module.state_dict()


def is_stock_module(module: Any) -> bool:
    """Its state_dict() would give its parameters and persistent buffers, and nothing else is called for that."""
    base = torch().nn.Module
    extra = getattr(base, "get_extra_state", None)
    if type(module).__module__.startswith("torch.jit"):
        return False
    for m in module.modules():
        kind = type(m)
        if kind.state_dict is not base.state_dict or kind._save_to_state_dict is not base._save_to_state_dict:
            return False
        if getattr(kind, "get_extra_state", None) is not extra or "state_dict" in m.__dict__ or kind.__module__.startswith("torch.jit"):
            return False
        hooks = [*m._state_dict_hooks.values(), *getattr(m, "_state_dict_pre_hooks", {}).values()]
        if not all(map(_is_fsdp2_hook, hooks)):
            return False
        if not all(is_block_tensor(t) for d in (m._parameters, m._buffers) for t in d.values() if t is not None):
            return False
    return True


def own_loaders(module: Any) -> Tuple[str, ...]:
    """With what the names of tensors begin that load_state_dict() does more with than to copy their values into those of the
    module, which may be to keep them.  "": that may be so for all."""
    return tuple(name + "." if name else "" for name, m in module.named_modules() if not _loads_plainly(m))


def _loads_plainly(m: Any) -> bool:
    kind = type(m)
    return ("load_state_dict" not in m.__dict__ and kind.load_state_dict.__module__.startswith("torch.")
            and kind._load_from_state_dict.__module__.startswith(("torch.nn.modules.module", "torch.nn.modules.batchnorm"))
            and all(map(_is_fsdp2_hook, m._load_state_dict_pre_hooks.values())))


def module_entries(module: Any, dicts: List[Any], sets: List[Any], metadata: Dict[str, Any]) -> List[Entry]:
    """The tensors of a module as state_dict() would give them, in its order.  dicts and sets: where they stand, and what
    decides which of them count; metadata: versions, as state_dict() keeps them."""
    entries: List[Entry] = []
    flat: Set[Tuple[int, str]] = set()
    for m in fsdp1_modules(module):
        flat |= _flat_names(m)
    _visit(module, "", entries, dicts, sets, metadata, flat)
    return entries


def _visit(m: Any, prefix: str, entries: List[Entry], dicts: List[Any], sets: List[Any], metadata: Dict[str, Any], flat: Set[Tuple[int, str]]) -> None:
    dicts += (m._parameters, m._buffers, m._modules)
    sets += (m._non_persistent_buffers_set, m._state_dict_hooks, getattr(m, "_state_dict_pre_hooks", ()))
    metadata[prefix[:-1]] = {"version": m._version}
    shard = flat_shard(m)
    if shard is not None:
        entries.append(Entry(prefix + "_flat_param", shard, True))
    entries += [Entry(prefix + k, p, True) for k, p in m._parameters.items() if p is not None and (id(m), k) not in flat]
    entries += [Entry(prefix + k, b, False) for k, b in m._buffers.items() if b is not None and k not in m._non_persistent_buffers_set]
    for key, child in m._modules.items():
        if child is not None:
            _visit(child, f"{prefix}{key}.", entries, dicts, sets, metadata, flat)


def flat_shard(module: Any) -> Any:
    """FSDP1: this rank's shard of the parameters that a module manages; None: it manages none."""
    handle = getattr(module, "_handle", None)
    if handle is None or not hasattr(handle, "flat_param"):
        return None
    shard = getattr(handle.flat_param, "_local_shard", None)
    return handle.flat_param.data if shard is None else shard


def _flat_names(module: Any) -> Set[Tuple[int, str]]:
    """FSDP1: which names of which modules (by id) stand for pieces of its flat parameter: views of it, of the shard or,
    behind a forward, of the whole."""
    handle = getattr(module, "_handle", None)
    if handle is None or not hasattr(handle, "flat_param"):
        return set()
    flat = handle.flat_param
    infos = [*(getattr(flat, "_param_infos", None) or ()), *(getattr(flat, "_shared_param_infos", None) or ())]
    own = {(id(m), name) for m in module.modules() for name, p in m._parameters.items() if p is flat}
    return own | {(id(info.module), info.param_name) for info in infos}


# --- optimizers ---------------------------------------------------------------------------------------------------------


def is_zero_optimizer(optim: Any) -> bool:
    """torch's ZeroRedundancyOptimizer: its own state_dict() wants a collective before it."""
    return type(optim).__name__ == "ZeroRedundancyOptimizer" and _comes_from(optim, "torch.distributed.optim")


def state_of(value: Any) -> Any:
    """What an object's state_dict() gives, where it can be asked without a change.  torchdata's StatefulDataLoader makes
    its iterator for that, which draws random numbers and starts processes: before that its state is what it was given."""
    if _comes_from(value, "torchdata.stateful_dataloader") and getattr(value, "_iterator", _NONE) is None:
        return value.next_iter_state
    return value.state_dict()


def pair_refusal(value: Any) -> str:
    """Why an object's state_dict() and load_state_dict() are no pair; "": nothing is known against them."""
    if _comes_from(value, "deepspeed"):
        return ("an object of DeepSpeed takes back the states of all ranks at once: examples/deepspeed_snapshots.py has one to "
                "declare in its place")
    return ""


def optimizer_refusal(optim: Any) -> str:
    """Why this optimizer cannot be kept; "": it can."""
    if pair_refusal(optim):
        return pair_refusal(optim)
    if is_zero_optimizer(optim) and getattr(optim, "_overlap_with_ddp", False):
        return "ZeroRedundancyOptimizer(overlap_with_ddp=True) has no optimizer of its own before its third step"
    if is_zero_optimizer(optim):
        return ""
    if is_stock_optimizer(optim):
        known = {id(p) for g in optim.param_groups for p in g["params"]}
        if any(is_tensor(k) and id(k) not in known for k in optim.state):
            return ("it has the state of a parameter that is in none of its groups: they were replaced, by DeepSpeed or by "
                    "load_state_dict(assign=True) for example")
    return ""


def is_stock_optimizer(optim: Any) -> bool:
    """state_dict() is torch's own, and no hook changes what it gives."""
    base = torch().optim.Optimizer
    return (type(optim).state_dict is base.state_dict and "state_dict" not in vars(optim)
            and not getattr(optim, "_optimizer_state_dict_pre_hooks", None)
            and not getattr(optim, "_optimizer_state_dict_post_hooks", None))


def loads_as_torch(optim: Any) -> bool:
    """load_state_dict() is torch's own, and no hook is called."""
    return (type(optim).load_state_dict is torch().optim.Optimizer.load_state_dict
            and not getattr(optim, "_optimizer_load_state_dict_pre_hooks", None)
            and not getattr(optim, "_optimizer_load_state_dict_post_hooks", None))


def inner_optimizers(optim: Any) -> Dict[str, Any]:
    """Optimizers that stand in an optimizer's attributes: SAM and Lookahead have the real one there."""
    base = torch().optim.Optimizer
    return {name: v for name, v in vars(optim).items() if isinstance(v, base) and v is not optim and v.state is not optim.state}


def with_its_groups(value: Any) -> List[Any]:
    """Optimizers in an object's attributes that have one list of groups with it, as PostLocalSGDOptimizer: schedules change
    the learning rate there, and load_state_dict() of the inner one makes itself another."""
    th, its = torch(), getattr(value, "__dict__", {})
    groups = its.get("param_groups")
    if th is None or groups is None:
        return []
    return [v for v in its.values() if isinstance(v, th.optim.Optimizer) and v is not value and v.param_groups is groups]
