"""Random graphs of objects, what happens to them between two snapshots, and what must come back.

A case is plain data: descriptions of what is declared (kinds.py), and for each snapshot what is done before it.  run_case()
builds the objects, lets it all happen, puts the last snapshot into fresh objects, and compares with what was there at the
moment of the snapshot (canon.py).  An object that is refused by name when it is declared is a right answer."""
import collections
import copy
import os
import random
import types

import numpy as np
import torch
from hypothesis import strategies as st

import kinds
from alone import Alone
from canon import canon, first_difference
from kinds import Builder

# --- what there is ------------------------------------------------------------------------------------------------------

seeds = st.integers(0, 99)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3), st.complex_numbers())
plain = st.one_of(scalars, st.sampled_from(kinds.VALUES))
hashable = st.one_of(st.integers(-2, 5), st.text(max_size=3), st.sampled_from(("a", "a.b", "b", 1, "1", None, True, (1, "x"), kinds.Colour.RED, 0.5, b"k")))
values = plain.map(lambda v: ("v", v))
leaves = st.one_of(
    values,
    st.tuples(st.just("tensor"), st.integers(0, len(kinds.TORCH) - 1), shapes, st.integers(0, len(kinds.FORMS) - 1), seeds),
    st.tuples(st.just("tensor"), st.integers(0, 1), shapes, st.integers(0, 4), seeds),
    st.tuples(st.just("array"), st.integers(0, len(kinds.NUMPY) - 1), shapes,
              st.sampled_from(("plain", "strided", "fortran", "flipped", "matrix", "record", "masked", "object", "readonly")), seeds),
    st.tuples(st.just("ref"), st.integers(0, 9)),
    st.tuples(st.just("view"), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("sparse"), st.sampled_from(("coo", "doubled", "hybrid", "csr", "csc", "bsr", "bsc")), seeds),
    st.tuples(st.just("odd"), st.sampled_from(("quantized", "channels", "nested", "mkldnn", "lazy", "lazy_buffer")), seeds),
    st.tuples(st.just("set"), st.lists(hashable, max_size=3)),
    st.tuples(st.just("counter"), st.lists(hashable, max_size=3)),
    st.tuples(st.just("bytearray"), st.binary(max_size=5)),
    st.tuples(st.just("typed"), st.sampled_from("iBd"), st.lists(st.integers(0, 9), max_size=3)),
    st.tuples(st.just("generator"), st.sampled_from(sorted(kinds.GENERATORS)), seeds),
    st.tuples(st.just("counted"), st.integers(0, 5)),
)
heavy = st.one_of(
    st.tuples(st.just("module"), st.sampled_from(sorted(kinds.MODULES)), seeds),
    st.tuples(st.just("trainer"), st.sampled_from(("linear", "norm", "mixed", "nested", "half", "many")), st.sampled_from(sorted(kinds.OPTIMS)),
              st.sampled_from(sorted(kinds.SCHEDS)), seeds),
    st.tuples(st.just("row"), st.integers(14, 18), seeds),
)
bad = st.tuples(st.just("bad"), st.integers(0, len(kinds.BAD) - 1))


def _containers(inner):
    items = st.lists(inner, max_size=4)
    return st.one_of(
        st.tuples(st.just("dict"), st.sampled_from(("dict", "dict", "ordered", "default", "mine")), st.lists(st.tuples(hashable, inner), max_size=4)),
        st.tuples(st.just("list"), st.sampled_from(("list", "list", "mine")), items),
        st.tuples(st.just("tuple"), items),
        st.tuples(st.just("named"), inner, inner),
        st.tuples(st.just("deque"), st.sampled_from((None, 2, 9)), items),
        st.tuples(st.just("data"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("frozen"), inner),
        st.tuples(st.just("slots"), inner, inner),
        st.tuples(st.just("space"), items),
        st.tuples(st.just("holder"), inner),
    )


specs = st.recursive(st.one_of(leaves, leaves, leaves, heavy), _containers, max_leaves=10)
roots = st.one_of(*[st.tuples(st.just("dict"), st.just("dict"), st.lists(st.tuples(hashable, specs), max_size=5))] * 6,
                  *[_containers(specs).filter(lambda s: s[0] not in ("tuple", "named"))] * 3, specs)
ops = st.one_of(
    st.tuples(st.sampled_from(("inplace", "alias", "copy", "shrink", "dtype", "data", "swap", "turn", "train", "resize", "grad", "group", "buffer", "retype",
                               "extend", "device")), st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.sampled_from(("rebind", "grow", "attribute")), st.integers(0, 30), st.one_of(specs, specs, specs, specs, specs, specs, specs, specs, specs, bad)),
)
cases = st.fixed_dictionaries({
    "parts": st.lists(st.tuples(st.sampled_from(("all", "all", None)), roots), min_size=1, max_size=3),
    "rounds": st.lists(st.lists(ops, max_size=5), min_size=1, max_size=3),
    "world": st.sampled_from((1, 1, 2)),
    "plant": st.integers(0, 50),
})


# --- what happens to it -------------------------------------------------------------------------------------------------


def places(root):
    """Where something stands that can be replaced, and what stands there."""
    found, seen, todo = [], set(), [root]
    while todo:
        value = todo.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            here = [(value, k, v) for k, v in value.items()]
        elif isinstance(value, (list, collections.deque)):
            here = [(value, i, v) for i, v in enumerate(value)]
        elif isinstance(value, (kinds.Data, kinds.Slots, types.SimpleNamespace, kinds.Holder)):
            names = [n for n in ("a", "b") if hasattr(value, n)] if isinstance(value, kinds.Slots) else sorted(vars(value))
            here = [(value, n, getattr(value, n)) for n in names if n != "calls"]
        elif isinstance(value, (tuple, kinds.Frozen)):
            todo += list(value) if isinstance(value, tuple) else [value.a]
            here = []
        else:
            here = []
        if type(value) is not collections.Counter:
            found += here
        todo += [v for _, _, v in here]
    return found


def objects(root):
    """All that is there, and can change."""
    out, seen = [], set()
    todo = [root]
    while todo:
        value = todo.pop(0)
        if id(value) in seen or isinstance(value, (int, str, float, bytes, type)) or value is None:
            continue
        seen.add(id(value))
        out.append(value)
        if isinstance(value, (tuple, kinds.Frozen)):
            todo += list(value) if isinstance(value, tuple) else [value.a]
        elif isinstance(value, dict):
            todo += list(value.values())
        elif isinstance(value, (list, collections.deque)):
            todo += list(value)
        elif isinstance(value, (kinds.Data, kinds.Slots, types.SimpleNamespace, kinds.Holder)):
            todo += [getattr(value, n) for n in ("a", "b")] if isinstance(value, kinds.Slots) else list(vars(value).values())
    return out


def put(container, key, value):
    if isinstance(container, (dict, list, collections.deque)):
        container[key] = value
    else:
        setattr(container, key, value)


def reaches(value, what):
    return any(v is what for v in objects(value))


class Play:
    """Does what a case says to one graph."""

    def __init__(self, root, builder):
        self.root, self.builder = root, builder

    def do(self, op):
        name, a, b = op
        with torch.no_grad():
            getattr(self, "_" + name)(a, b)

    def _place(self, n, kind=object):
        some = [p for p in places(self.root) if isinstance(p[2], kind)]
        return some[n % len(some)] if some else None

    def _object(self, n, *of):
        some = [v for v in objects(self.root) if isinstance(v, of)]
        return some[n % len(some)] if some else None

    def _rebind(self, n, spec):
        place, value = self._place(n), self.builder.build(spec)
        if place and not reaches(value, place[0]):
            put(place[0], place[1], value)

    def _grow(self, n, spec):
        to = self._object(n, dict, list, collections.deque)
        if type(to) is collections.Counter or to is None:
            return
        value = self.builder.build(spec)
        if not reaches(value, to):
            if isinstance(to, dict):
                to[f"new{n}"] = value
            else:
                to.append(value)

    def _attribute(self, n, spec):
        to = self._object(n, kinds.Data, types.SimpleNamespace)
        if to is not None:
            value = self.builder.build(spec)
            if not reaches(value, to):
                setattr(to, "extra", value)

    def _shrink(self, n, b):
        to = self._object(n, dict, list, collections.deque, set)
        if to:
            if isinstance(to, dict):
                del to[list(to)[b % len(to)]]
            elif isinstance(to, list):
                del to[b % len(to)]
            else:
                to.pop()

    def _alias(self, n, b):
        place, value = self._place(n), self._object(b, object)
        if place and value is not None and not isinstance(value, kinds.Frozen) and not reaches(value, place[0]):
            put(place[0], place[1], value)

    def _copy(self, n, b):
        place = self._place(n, (torch.Tensor, np.ndarray, list, dict, collections.deque, set, kinds.Data, bytearray))
        if place:
            put(place[0], place[1], copy.copy(place[2]) if not isinstance(place[2], torch.Tensor) else copy.deepcopy(place[2].detach()))

    def _swap(self, n, b):
        to = self._object(n, dict, list)
        keys = [k for k, v in (to.items() if isinstance(to, dict) else enumerate(to or ())) if not is_door(v)]
        if len(keys) > 1:
            i, j = keys[b % len(keys)], keys[(b + 1) % len(keys)]
            to[i], to[j] = to[j], to[i]

    def _turn(self, n, b):
        to = self._object(n, dict, list, collections.deque)
        if isinstance(to, dict):
            items = list(to.items())[::-1]
            to.clear()
            for k, v in items:
                to[k] = v
        elif to is not None and not any(map(is_door, to)):
            to.reverse()

    def _inplace(self, n, b):
        to = self._object(n, torch.Tensor, np.ndarray)
        if isinstance(to, np.ndarray):
            if to.flags.writeable and not to.dtype.hasobject:
                np.asarray(to)[...] = kinds.numpy_array(0, to.shape, "plain", b).astype("u1").astype("S3" if to.dtype.kind == "V" else to.dtype, casting="unsafe") \
                    if not to.dtype.names and to.dtype.kind not in "V" else np.asarray(to)[...]
        elif to is not None and is_dense(to) and 0 not in to.stride():
            to.data.copy_(kinds.tensor(to.dtype, tuple(to.shape), b))

    def _dtype(self, n, b):
        place = self._place(n, torch.Tensor)
        if place and is_dense(place[2]):
            put(place[0], place[1], place[2].detach().to([torch.float64, torch.int64, torch.bfloat16, torch.complex64][b % 4]))

    def _data(self, n, b):
        tensors = self._tensors()
        if tensors:
            t = tensors[n % len(tensors)]
            t.data = kinds.tensor(t.dtype, tuple(t.shape), b)

    def _retype(self, n, b):
        """The same memory is looked at in another way."""
        tensors = [t for t in self._tensors() if t.dim() and t.is_contiguous() and t.dtype in (torch.float32, torch.int32, torch.int64, torch.float64)]
        if tensors:
            t = tensors[n % len(tensors)]
            other = {torch.float32: torch.int32, torch.int32: torch.float32, torch.int64: torch.float64, torch.float64: torch.int64}
            if b % 3 == 0 and not t.requires_grad:
                t.data = t.data.view(other[t.dtype])
            elif b % 3 == 1:
                t.data = t.data.reshape(-1)
            else:
                t.data = t.data.reshape(*t.shape, 1).transpose(-1, -2)

    def _tensors(self):
        module = self._object(0, torch.nn.Module)
        tensors = [t for t in objects(self.root) if type(t) in (torch.Tensor, torch.nn.Parameter) and is_dense(t)]
        return tensors + ([p for p in module.parameters() if is_dense(p)] if module is not None else [])

    def _resize(self, n, b):
        some = [t for t in objects(self.root) if type(t) is torch.Tensor and is_dense(t) and not t.requires_grad and t._base is None and t.is_contiguous()
                and not t.is_conj() and t.numel() * t.element_size() == t.untyped_storage().nbytes()]
        if some:
            t = some[n % len(some)]
            t.set_(kinds.tensor(t.dtype, (b % 4, 2), b))

    def _grad(self, n, b):
        t = self._object(n, torch.Tensor)
        if t is not None and is_dense(t) and t.is_floating_point() and t.is_leaf and t._base is None:
            t.requires_grad_(bool(b % 2))

    def _extend(self, n, b):
        to = self._object(n, bytearray, set, kinds.Counted)
        if isinstance(to, bytearray):
            to += b"more"[: b % 5]
        elif isinstance(to, set):
            to.add(b)
        elif to is not None:
            to.n += 1
            to.log.append(b)

    def _device(self, n, b):
        """A module is converted, as .half() does it."""
        module = self._object(n, torch.nn.Linear)
        if module is not None:
            module.to([torch.float32, torch.float64][b % 2])

    def _buffer(self, n, b):
        module = self._object(n, kinds.Mixed)
        if module is not None:
            module.later = torch.zeros(b % 3) if b % 2 else None
            module.count = torch.tensor(b)

    def _group(self, n, b):
        optim = self._object(n, torch.optim.Optimizer)
        if optim is not None and not isinstance(optim, torch.optim.LBFGS):
            optim.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))], "lr": 0.5})

    def _train(self, n, b):
        """Steps, draws and counts."""
        for value in objects(self.root):
            if isinstance(value, torch.optim.Optimizer):
                self._step(value, b)
            elif isinstance(value, torch.optim.lr_scheduler.ReduceLROnPlateau):
                value.step(1.0 + b)
            elif isinstance(value, torch.optim.lr_scheduler.LRScheduler) and getattr(value, "_step_count", 0) < 40:
                value.step()
            elif isinstance(value, (np.random.Generator, np.random.RandomState)):
                value.normal()
            elif isinstance(value, np.random.BitGenerator):
                value.random_raw(b)
            elif isinstance(value, random.Random):
                value.gauss(0, 1)
            elif isinstance(value, torch.Generator):
                torch.rand(b + 1, generator=value)
            elif isinstance(value, kinds.Extra):
                value.n += 1

    def _step(self, optim, b):
        for k, p in enumerate(p for g in optim.param_groups for p in g["params"]):
            if (k + b) % 3 or isinstance(optim, torch.optim.LBFGS):  # some have no gradient yet
                p.grad = torch.tensor(np.random.RandomState(b + k).rand(*p.shape)).to(p.dtype)
        optim.step((lambda: torch.tensor(1.0)) if isinstance(optim, torch.optim.LBFGS) else None)


def is_dense(t):
    return (not torch.nn.parameter.is_lazy(t) and t.layout is torch.strided and not t.is_quantized and not t.is_nested and not t.is_mkldnn
            and not t.is_conj() and not t.is_neg() and t.dtype is not getattr(torch, "complex32", None) and not t.is_meta)


def is_door(value):
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer)) or hasattr(value, "load_state_dict")


# --- what must come back ------------------------------------------------------------------------------------------------


def doors(root):
    """What is filled by its own load_state_dict(), by its place: what may be a misfit."""
    out, first = {}, {}

    def visit(path, value, depth=0):
        if is_door(value):
            out[path] = ("again", first[id(value)]) if id(value) in first else _signature(value)
            first.setdefault(id(value), path)
        elif isinstance(value, dict):
            for k, v in value.items():
                visit((*path, repr(k)), v)
        elif isinstance(value, (list, tuple, collections.deque)):
            for i, v in enumerate(value):
                visit((*path, i), v)
        elif isinstance(value, kinds.Slots):
            visit((*path, "a"), value.a), visit((*path, "b"), value.b)
        elif isinstance(value, (kinds.Data, kinds.Frozen, types.SimpleNamespace)):
            for k, v in vars(value).items():
                visit((*path, k), v)

    visit((), root)
    return out


def _signature(value):
    if isinstance(value, torch.nn.Module):
        return type(value), [(k, tuple(v.shape), v.dtype) for k, v in value.state_dict().items() if isinstance(v, torch.Tensor)
                             and not torch.nn.parameter.is_lazy(v)]
    if isinstance(value, torch.optim.Optimizer):
        return type(value), [[tuple(p.shape) for p in g["params"]] for g in value.param_groups]
    return type(value)


class Wrong(AssertionError):
    pass


def may_be_misfit(then, fresh):
    """A door is where none was, or another one, or what cannot be filled in place is another one as a whole."""
    if isinstance(fresh, (torch.Tensor, np.ndarray)) or isinstance(then, bytearray):
        return True
    at_start = doors(fresh)
    return any(at_start.get(path) != door for path, door in doors(then).items())


count = collections.Counter()
unseen = []  # why the test itself cannot look at an object


def randoms():
    return torch.get_rng_state().numpy().tobytes(), str(np.random.get_state()), random.getstate()


def build(case):
    builder = Builder()
    return [builder.build(root) for _, root in case["parts"]], builder


def declare(job, case, roots):
    """TypeError: refused."""
    for i, ((shard, _), root) in enumerate(zip(case["parts"], roots)):
        job.declare(f"part{i}", root, shard_id=shard)


def run_case(case):
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    roots, builder = build(case)
    job, again = Alone(0, case["world"]), Alone(0, case["world"])
    try:
        _play(case, roots, builder, job, again)
    finally:
        job.close(), again.close()


def play(todo, roots, builder):
    """What happens before one snapshot."""
    for i, op in enumerate(todo):
        try:
            Play(roots[i % len(roots)], builder).do(op)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            count[f"not done: {op[0]}"] += 1


def _unchanged(what, roots, call):
    before, rng = canon_all(roots), randoms()
    out = call()
    if randoms() != rng:
        raise Wrong(f"{what} drew random numbers")
    found = first_difference(before, canon_all(roots))
    if found:
        raise Wrong(f"{what} changed {found}")
    return out


def canon_all(roots):
    """What objects of two parts share comes back only where it is shared when the script begins: each part by itself."""
    return tuple(map(canon, roots))


def _play(case, roots, builder, job, again):
    try:
        declare(job, case, roots)
    except (TypeError, ValueError) as e:
        if 'part "part' not in str(e) and "has nothing in it" not in str(e):
            raise
        count["refused"] += 1
        return
    shot = None
    for n, todo in enumerate(case["rounds"]):
        play(todo, roots, builder)
        if any(not _can_be_seen(r) for r in roots):
            return _must_refuse(job, n)
        try:
            shot = _unchanged("snapshot()", roots, lambda: job.take_into(n % 2, n))
        except Exception as e:
            if type(e).__name__ == "Error" and 'part "part' in str(e):
                count["refused later"] += 1
                return
            raise
    _checked(case, roots, job, shot)
    _back(case, roots, job, again, shot)


def _can_be_seen(root):
    try:
        canon(root)
        return True
    except (AssertionError, RuntimeError, NotImplementedError, TypeError, AttributeError) as e:
        unseen.append(e)
        return False


def _must_refuse(job, n):
    try:
        job.take_into(n % 2, n)
    except Exception as e:
        if type(e).__name__ != "Error" or 'part "part' not in str(e):
            raise
        count["refused later"] += 1
        return
    raise Wrong(f"a snapshot of what cannot be put back was taken: {unseen[-1]!r}")


def _checked(case, roots, job, shot):
    """--ckpt-check finds nothing, and what is planted."""
    found = job.differences(shot)
    if found:
        raise Wrong(f"--ckpt-check: {found}")
    rows = [(extent.at + len(part.layout.header) + at, row.bytes) for part, extent in zip(job.parts, shot.where) if part.name != "@rank"
            for row, at in zip(part.layout.rows, part.layout.offsets) if row.bytes and not getattr(row.spec.dtype, "names", None)]
    if rows:
        at, n = rows[case["plant"] % len(rows)]
        at += case["plant"] % n
        shot.slot.memory[at] ^= 1
        if not job.differences(shot):
            raise Wrong("--ckpt-check does not see a byte that is another one")
        shot.slot.memory[at] ^= 1
    count["planted"] += bool(rows)


def _back(case, roots, job, again, shot):
    then = canon_all(roots)
    fresh, _ = build(case)
    declare(again, case, fresh)
    before = canon_all(fresh)
    fd, memory = shot.copy()
    trouble, misfit = again.put_back(memory, shot.where)
    if misfit:
        if not any(may_be_misfit(a, b) for a, b in zip(roots, fresh)) and not _doors_shared(roots, fresh):
            raise Wrong(f"it would fit: {misfit}")
        found = first_difference(before, canon_all(fresh))
        if found:
            raise Wrong(f"a misfit changed {found}: {misfit}")
        count["misfit"] += 1
        return
    if trouble:
        raise Wrong(f"it cannot be read: {trouble}")
    os.pwrite(fd, b"\xaa" * len(memory), 0)  # nothing may still stand there
    os.close(fd)
    found = first_difference(then, canon_all(fresh))
    if found:
        raise Wrong(f"then, and now: {found}")
    count["back"] += 1
    fd, memory = again.take_into(0, 9).copy()
    os.close(fd)
    if again.differences(again_shot := again.take_into(1, 10)):
        raise Wrong(f"after going back: {again.differences(again_shot)}")


def _doors_shared(roots, fresh):
    return doors(roots) != doors(fresh)
