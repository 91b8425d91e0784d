"""Cases that went wrong once, as small as they can be.  Exit status 0: all are right now."""
import array
import collections
import copy
import gc
import random
import sys
import traceback
import warnings
import weakref

import numpy as np
import torch

import kinds
from alone import Alone
from canon import canon, first_difference

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def back(make, change=lambda it: None):
    """What was declared is changed, kept, and put back into what make() makes once more."""
    it, fresh, job, again = make(), make(), Alone(), Alone()
    job.declare("it", it)
    job.take_into(0, 0)
    change(it)
    shot = job.take_into(1, 1)
    assert job.differences(shot) == [], job.differences(shot)
    again.declare("it", fresh)
    _, memory = shot.copy()
    trouble, _ = again.put_back(memory, shot.where)
    assert not trouble, trouble
    found = first_difference(canon(it), canon(fresh))
    assert not found, found
    return fresh


def two_that_were_one_list():
    def make():
        x = [1]
        return {"a": x, "b": x}

    back(make, lambda it: it.update(b=[2]))


def two_that_were_one_tensor():
    def make():
        x = torch.zeros(3)
        return {"a": x, "b": x, "view": x[:2]}

    back(make, lambda it: it.update(b=torch.ones(3), view=torch.full((2,), 5.0)))


def the_best_weights_were_a_view_of_the_module():
    def make():
        net = torch.nn.Linear(2, 2)
        return {"best": net.state_dict(), "net": net}

    back(make, lambda it: it.update(best=collections.OrderedDict((k, v.clone() * 0) for k, v in it["best"].items())))


def one_that_were_two():
    fresh = back(lambda: {"a": torch.zeros(2), "b": torch.ones(2), "c": [1], "d": [2]}, lambda it: it.update(a=it["b"], c=it["d"]))
    assert fresh["a"] is fresh["b"] and fresh["c"] is fresh["d"]


def gradients_are_wanted_of_what_is_made_anew():
    fresh = back(lambda: {"w": torch.zeros(2)}, lambda it: it.update(w=torch.ones(3, requires_grad=True), p=torch.nn.Parameter(torch.ones(1), False)))
    assert fresh["w"].requires_grad and not fresh["p"].requires_grad


def classes_of_numpy():
    back(dict, lambda it: it.update(m=np.matrix([[1.0, 2]]), r=np.zeros(2, [("a", "<i4")]).view(np.recarray),
                                    masked=np.ma.masked_array([1.0, 2], [0, 1], fill_value=7)))


def elements_of_twelve_bytes_before_complex_numbers():
    it = {"s": np.zeros(1, "<U3"), "z": torch.zeros(3, dtype=torch.complex128), "f": torch.zeros(1)}
    job = Alone()
    job.declare("it", it)
    job.take_into(0, 0)
    layout = job.parts[0].layout
    for row, at in zip(layout.rows, layout.offsets):
        assert (len(layout.header) + at) % min(row.size & -row.size, 16) == 0, (row.spec.name, at)
    back(lambda: it)


def containers_that_were_made_in_another_way():
    back(lambda: {"q": collections.deque([1], 2), "d": collections.defaultdict(list)},
         lambda it: it.update(q=collections.deque(range(5), 9), d=collections.defaultdict(int, a=1)))


def another_kind_of_generator():
    back(lambda: {"g": np.random.default_rng(1)}, lambda it: it.update(g=np.random.Generator(np.random.MT19937(3))))


def arrays_of_which_there_are_views():
    kept = []

    def make():
        it = {"b": bytearray(b"abc"), "a": array.array("d", [1, 2])}
        kept.append((memoryview(it["b"]), memoryview(it["a"])))
        return it

    back(make, lambda it: (it["b"].__setitem__(0, 9), it["a"].__setitem__(0, 5.0)))
    back(make, lambda it: it.update(b=bytearray(b"longer"), a=array.array("d", range(9))))


def tensors_of_types_that_pickle_loses():
    kind = getattr(torch, "uint16", torch.int16)
    back(lambda: kinds.Holder(None), lambda it: setattr(it, "value", kinds.Data(torch.zeros(3, dtype=kind), np.zeros(2, ">c8"))))


def many_tensors_in_a_state():
    def make():
        many = {str(i): torch.full((2, 3), float(i)) for i in range(20)}
        return {"holder": kinds.Holder({"many": many, "other": many["3"], "row": many["4"][0]}), "beside": many["5"]}

    def put(key, value):
        back(make, lambda it: it["holder"].value["many"].update({key: value}))

    back(make, lambda it: it["holder"].value["many"]["2"].add_(1))
    back(make, lambda it: it["holder"].value["many"].pop("7"))
    back(make, lambda it: it["holder"].value["many"].update(a=it["holder"].value["many"].pop("7")))
    back(make, lambda it: it["holder"].value["many"].update({"1": it["holder"].value["many"]["2"]}))
    back(make, lambda it: it["holder"].value.update(many=collections.OrderedDict(it["holder"].value["many"])))
    back(make, lambda it: it["holder"].value.update(many={int(k): v for k, v in it["holder"].value["many"].items()}))
    back(lambda: kinds.Holder({i: torch.zeros(2) for i in range(20)}), lambda it: setattr(it, "value", {(i if i != 1 else True): v for i, v in it.value.items()}))
    back(make, lambda it: setattr(it["holder"].value["many"]["6"], "note", 7))
    for value in (1, torch.ones(4), torch.ones(3, 2).t(), torch.ones(2, 3, dtype=torch.int32), torch.ones(2, 3, requires_grad=True),
                  torch.nn.Parameter(torch.ones(2, 3)), torch.eye(3).to_sparse(), torch.ones(2, 3, dtype=torch.complex64).conj(),
                  torch.ones(3).expand(2, 3), torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8), [torch.ones(2, 3)]):
        put("8", value)


def many_tensors_in_a_state_are_not_kept_for_the_next_one():
    given = []

    class Copies:
        def state_dict(self):
            state = {str(i): torch.zeros(2) for i in range(20)}
            given.append(weakref.ref(state["3"]))
            return state

        def load_state_dict(self, state):
            pass

    job = Alone()
    job.declare("it", Copies())
    for step in range(3):
        job.take_into(0, step)
    gc.collect()
    assert not any(ref() is not None for ref in given)


def an_object_in_a_state_and_beside_it():
    def make():
        inner = kinds.Counted(1)
        return [kinds.Holder(inner), inner]

    back(make, lambda it: setattr(it[1], "n", 5))


def nested_and_inference_tensors():
    if torch.__version__ >= "2":
        back(lambda: {"n": kinds.odd("nested", 1)}, lambda it: it.update(n=kinds.odd("nested", 2)))

    def inference():
        with torch.inference_mode():
            return {"i": torch.zeros(2)}

    back(inference, lambda it: it.update(i=torch.ones(2)))


def other_views_of_the_same_memory():
    def change(it):
        it[3].data = it[3].data.view(torch.int32)
        it[4].data = it[4].data.reshape(-1)

    back(lambda: [torch.rand(1, 2) for _ in range(20)], change)


def a_subclass_of_tensor():
    if torch.__version__ < "2":
        return  # torch.save() of that release loses it, which declare() says
    class_of = type("Marked", (torch.Tensor,), {})
    globals()["Marked"] = class_of
    class_of.__module__ = __name__
    fresh = back(dict, lambda it: it.update(t=torch.zeros(2).as_subclass(class_of)))
    assert type(fresh["t"]) is class_of


def a_tuple_whose_tensor_stands_elsewhere_too():
    def make():
        x = torch.zeros(2)
        return {"a": None, "t": (x, None)}

    fresh = back(make, lambda it: it.update(a=it["t"][0]))
    assert fresh["a"] is fresh["t"][0]


def eigenvectors_lie_by_column():
    fresh = back(dict, lambda it: it.update(q=torch.rand(3, 4).t()))
    assert fresh["q"].stride() == (1, 4)


def sets_and_numbers_that_are_none():
    back(lambda: {"s": {1}, "f": 0.0}, lambda it: it.update(s={float("nan"), (frozenset({"a", "b"}),)}, f=float("nan")))


def generators_with_what_they_have_left():
    back(lambda: {"r": random.Random(1), "l": np.random.RandomState(1)}, lambda it: (it["r"].gauss(0, 1), it["l"].normal()))


def lazy_parameters_that_came_later():
    back(dict, lambda it: it.update(p=torch.nn.parameter.UninitializedParameter()))


def told(saved, holds):
    """What --ckpt-check says if an object holds something else than was saved."""
    job = Alone()
    job.declare("it", saved)
    shot = job.take_into(0, 0)
    assert job.differences(shot) == [], job.differences(shot)
    job.parts[0].value = holds
    return " ".join(job.differences(shot))


def the_check_tells_kinds_of_containers():
    deque = collections.deque
    for a, b, words in ([[1], deque([1]), "a list"], [deque([1], 3), deque([1], 4), "of 3 at most"], [{}, collections.OrderedDict(), "a dict"],
                        [collections.defaultdict(int), collections.defaultdict(list), "of int"], [(1, [2]), [1, [2]], "a tuple"]):
        assert f"saved is {words}" in told({"v": a}, {"v": b}) or words in told({"v": a}, {"v": b}), (a, b, told({"v": a}, {"v": b}))


def the_check_tells_what_is_one_object():
    one, t = [1], torch.ones(2)
    assert "b is another one, saved is the same as a" in told({"a": one, "b": one}, {"a": [1], "b": [1]})
    assert "b is the same as a, saved is another one" in told({"a": [1], "b": [1]}, {"a": one, "b": one})
    assert "b is another one" in told({"a": t, "b": t}, {"a": t, "b": t.clone()})
    many = {f"t{i}": torch.ones(1) for i in range(20)}
    assert "b is another one, saved is the same as a.t3" in told({"a": many, "b": many["t3"]}, {"a": many, "b": many["t3"].clone()})


def the_check_reads_a_ranks_own_pieces():
    job = Alone(world=2)
    job.declare("a/b", {"n": 1, "w": np.zeros(3), "t": [torch.zeros(2)]}, "all")
    shot = job.take_into(0, 0)
    assert job.differences(shot) == [], job.differences(shot)
    own = next(i for i, part in enumerate(job.parts) if part.own)
    at = shot.where[own]
    views = job.parts[own].layout.views(shot.slot.memory[at.at : at.at + at.bytes])
    assert len(views) == 2
    for view in views:
        view[...] = 7
    text = " ".join(job.differences(shot))
    assert "of its own" in text and "w has other values" in text and "t.0 has other values" in text, text


def misfit(make, change, fresh):
    """What is said of a state that does not fit; and whether something was filled all the same."""
    it, job, again = make(), Alone(), Alone()
    job.declare("it", it)
    change(it)
    shot = job.take_into(0, 0)
    again.declare("it", fresh)
    _, memory = shot.copy()
    trouble, text = again.put_back(memory, shot.where)
    assert text, trouble
    return text, again._spoiled


def one_tensor_that_was_two():
    tied = {"m": torch.nn.ModuleList([torch.nn.Linear(1, 1, bias=False) for _ in range(2)])}
    tied["m"][1].weight = tied["m"][0].weight
    text, spoiled = misfit(lambda: {"m": torch.nn.ModuleList([torch.nn.Linear(1, 1, bias=False) for _ in range(2)])}, lambda it: None, tied)
    assert "one memory with another tensor" in text and not spoiled, text


class Brittle(dict):
    def __setitem__(self, key, value):
        raise OSError("no such device")


def what_fails_in_the_end_is_not_called_unchanged():
    text, spoiled = misfit(lambda: {"w": torch.ones(2), "b": Brittle(a=1)}, lambda it: dict.update(it["b"], a=2), {"w": torch.zeros(2), "b": Brittle(a=1)})
    assert 'part "it"' in text and "OSError: no such device" in text and spoiled, (text, spoiled)


class Hooked(torch.nn.Linear):
    def state_dict(self, *args, **more):
        return super().state_dict(*args, **more)


def a_large_module_with_a_state_of_its_own_is_compared_first():
    fresh = torch.nn.Sequential(torch.nn.Linear(2, 2), Hooked(2, 3))
    before = [p.clone() for p in fresh.parameters()]
    text, spoiled = misfit(lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), Hooked(2, 4)), lambda it: None, fresh)
    assert "1.weight was saved with shape [4, 2], and has [3, 2]" in text and not spoiled, (text, spoiled)
    assert all(map(torch.equal, before, fresh.parameters()))


def what_is_set_on_a_tensor_of_a_block_later():
    def change(it):
        it["t3"].tag = "hello"

    assert back(lambda: {f"t{i}": torch.zeros(2) for i in range(20)}, change)["t3"].tag == "hello"


def keys_of_a_block_that_are_of_another_type_later():
    def change(it):
        for k in list(it):
            it[float(k)] = it.pop(k)

    assert set(map(type, back(lambda: {i: torch.zeros(2) for i in range(20)}, change))) == {float}


def a_parameter_of_another_shape_than_the_tensor_that_is_there():
    def change(it):
        it["t"], it["many"][6] = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3), requires_grad=False)

    fresh = back(lambda: {"t": torch.zeros(3, 3), "many": [torch.zeros(2) for _ in range(20)]}, change)
    assert type(fresh["t"]) is type(fresh["many"][6]) is torch.nn.Parameter and fresh["t"].requires_grad and not fresh["many"][6].requires_grad


def moments_of_another_device():
    """As saved with a GPU; torch says that there is one, and makes them on the CPU."""
    import elrun.fill

    fill, cuda, asked = elrun.fill.Fill(None, None), torch.cuda, []
    was = cuda.is_available, cuda.current_device
    cuda.is_available, cuda.current_device = lambda: True, lambda: asked.append(1) or 0
    try:
        assert fill.device("cuda:3") == torch.device("cuda", 0) and asked
    finally:
        cuda.is_available, cuda.current_device = was


def page_locked_is_what_the_snapshot_occupies():
    """Of what a GPU would write to: a slot whose snapshots grow and shrink, with calls of CUDA that only note what they are asked."""
    import mmap
    from elrun.pagelock import LOCKS_MAX, PageLock

    class Cudart:
        locked, calls, refuses = {}, [], False

        def cudaHostRegister(self, at, n, flags):
            assert flags == 1 and not any(a < at + n and at < a + m for a, m in self.locked.items())
            self.calls.append("+")
            if not self.refuses:
                self.locked[at] = n
            return 2 * self.refuses

        def cudaHostUnregister(self, at):
            del self.locked[at]
            self.calls.append("-")
            return 0

    runtime, cuda, zeros = Cudart(), torch.cuda, torch.zeros
    was, cuda.cudart = cuda.cudart, lambda: runtime
    try:
        memory, lock = memoryview(mmap.mmap(-1, 1 << 20)), PageLock()
        for used, calls in ((8192, "+"), (8192, "+"), (4096, "+-+"), (65536, "+-+-+")):
            lock.keep(used)
            assert used in [*runtime.locked.values(), 0] or not runtime.locked
            lock.take(memory[:used])
            assert list(runtime.locked.values()) == [used] and "".join(runtime.calls) == calls, (used, runtime.calls)
        lock.keep(4096)  # the agent may take back what lies behind that: nothing of it is locked
        assert not runtime.locked
        lock.take(memory[:4096])
        assert not lock.splits(4096) and lock.splits(8192)
        assert lock.splits(4096)  # what it has had of the slot since was less, or more: these may be other pages
        lock.keep(4096)
        assert not runtime.locked
        lock.take(memory[:4096])
        lock.leave(memory)  # in an emergency CUDA is asked nothing
        assert list(runtime.locked.values()) == [4096] and not lock.splits(8192) and lock.left
        runtime.locked.clear()
        for i in range(2 * LOCKS_MAX):
            lock.keep(4096 * (i + 1))
            lock.take(memory[: 4096 * (i + 1)])
        assert runtime.calls.count("+") == LOCKS_MAX and not runtime.locked
        runtime.locked.clear()
        lock, torch.zeros = PageLock(), lambda *_, **__: None
        lock.take(memory[:4096])
        runtime.cudaHostUnregister = lambda at: 1
        lock.keep(8192)  # it stays locked, so nothing is copied past it in an emergency, and nothing is locked over it
        lock.take(memory[:8192])
        assert lock.splits(8192) and lock.bytes == 4096 and list(runtime.locked.values()) == [4096]
        runtime.locked.clear()
        runtime.calls, runtime.refuses, lock, torch.zeros = [], True, PageLock(), lambda *_, **__: runtime.calls.append("!")
        lock.take(memory)
        lock.take(memory)
        lock.keep(0)
        assert runtime.calls == ["+", "!"], runtime.calls  # tried once, and its error is not left for others to report
    finally:
        cuda.cudart, torch.zeros = was, zeros


def what_its_own_loader_keeps_lies_where_it_lay():
    """As saved on a GPU, which is the meta device here: a module that keeps what it is given, beside one that copies."""
    import elrun.doors
    import elrun.fill

    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.zeros(3))

        def _load_from_state_dict(self, state, prefix, *rest):
            self.queue = state[prefix + "queue"]

    given, module = {}, torch.nn.ModuleDict({"plain": torch.nn.BatchNorm1d(2), "keeps": Keeps()})
    load, was = elrun.doors._load_module, elrun.fill.Fill.device
    elrun.fill.Fill.device = lambda self, name: torch.device("meta")
    elrun.doors._load_module = lambda module, state, plain: given.update(state)
    try:
        job = Alone()
        job.declare("m", module)
        _, memory = job.take_into(0, 0).copy()
        job.put_back(memory, job.take_into(0, 0).where)
    finally:
        elrun.doors._load_module, elrun.fill.Fill.device = load, was
    assert {k: v.device.type for k, v in given.items()}["keeps.queue"] == "meta", given
    assert all(v.device.type == "cpu" for k, v in given.items() if k.startswith("plain")) and len(given) == 6, given


def one_container_in_two_parts():
    for make, change in ((list, lambda q: q.append({"i": [1, torch.ones(1)]})), (dict, lambda q: q.update(a={"i": 1})),
                         (collections.deque, lambda q: q.append(torch.ones(2))),
                         (list, lambda q: q.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) if hasattr(torch.Tensor, "untyped_storage") else 0))):
        job, again, q, fresh = Alone(), Alone(), make(), make()
        for one, held in ((job, q), (again, fresh)):
            one.declare("a", {"q": held})
            one.declare("b", held)
        change(q)
        shot = job.take_into(0, 0)
        _, memory = shot.copy()
        trouble, _ = again.put_back(memory, shot.where)
        assert not trouble and not first_difference(canon(q), canon(fresh)), trouble


def an_array_and_a_tensor_of_one_memory():
    for order in ("at", "ta"):
        def make():
            a = np.zeros(4, np.float32)
            both = {"a": a, "t": torch.from_numpy(a)}
            return {k: both[k] for k in order}

        def change(it):
            it["a"] += 1

        fresh = back(make, change)
        fresh["a"] += 1
        assert fresh["t"].tolist() == [2.0] * 4


def a_view_of_what_is_resized():
    def make():
        b = torch.zeros(4)
        return {"b": b, "v": b[1:3]}

    def change(it):
        it["b"].resize_(8).fill_(1)

    fresh = back(make, change)
    fresh["b"].add_(1)
    assert fresh["v"].tolist() == ([2.0, 2.0] if hasattr(fresh["b"], "untyped_storage") else [1.0, 1.0])  # the manual says so of 1.13


def what_is_set_on_a_tensor_and_is_no_value():
    def change(it):
        it["t"].lst, it["t"].arr, it["t"].dt = [1, 2], np.ones(2), {"t": torch.ones(1)}

    fresh = back(lambda: {"t": torch.zeros(2)}, change)["t"]
    assert fresh.lst == [1, 2] and fresh.arr.tolist() == [1, 1] and fresh.dt["t"].item() == 1


def keys_of_an_optimizers_state_in_no_order():
    p = torch.nn.Parameter(torch.zeros(2))
    optim, job = torch.optim.SGD([p], lr=.1), Alone()
    optim.state[("a", 1)], optim.state[("a", None)] = {"x": torch.ones(1)}, {"x": torch.ones(1)}
    job.declare("o", optim)
    shot = job.take_into(0, 0)
    assert job.differences(shot) == [], job.differences(shot)


def within_itself_where_it_is_pickled_whole():
    job, holder = Alone(), Holder()
    holder.v = Marked2(a=1)
    holder.v.mark, holder.v["self"], holder.v["meta"] = 1, [holder.v], torch.zeros(2, device="meta")
    job.declare("h", holder)
    shot = job.take_into(0, 0)
    assert job.differences(shot) == [], job.differences(shot)


def strides_of_dimensions_of_one_element():
    """By which a convolution chooses its layout, and so the order of its sums."""
    def change(it):
        it["x"] = torch.zeros(8, 1, 20, 20).to(memory_format=torch.channels_last)
        it["q"] = torch.zeros(1, 300).t()
        it["n"] = 3

    fresh = back(lambda: {"x": None, "q": None, "n": 0}, change)
    assert fresh["x"].stride() == torch.zeros(8, 1, 20, 20).to(memory_format=torch.channels_last).stride(), fresh["x"].stride()
    assert fresh["q"].stride() == torch.zeros(1, 300).t().stride()


class Wrapped:
    """As accelerate wraps an optimizer."""

    def __init__(self, optim):
        self.optimizer = optim

    state = property(lambda self: self.optimizer.state)
    param_groups = property(lambda self: self.optimizer.param_groups)

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state)


class Outer:
    """As Lookahead does."""

    def __init__(self, optim):
        self.base, self.param_groups = optim, optim.param_groups

    def state_dict(self):
        return {"slow": {}, "base": self.base.state_dict()}

    def load_state_dict(self, state):
        self.base.load_state_dict(state["base"])


class Popper(Outer):
    """It takes apart what it is given."""

    def load_state_dict(self, state):
        self.base.load_state_dict(state.pop("base"))


class Taker(Wrapped):
    """It takes apart all of it."""

    def load_state_dict(self, state):
        super().load_state_dict(copy.copy(state))
        for values in state["state"].values():
            values.clear()
        state["state"].clear()


class Named(Wrapped):
    """Its state is by the names of the parameters, and by classes of moments."""

    def state_dict(self):
        return {"by_name": {f"p{k}": {"all": v} for k, v in self.optimizer.state_dict()["state"].items()}}

    def load_state_dict(self, state):
        groups = [{**g, "params": [f"p{i}" for i in g["params"]]} for g in self.optimizer.state_dict()["param_groups"]]
        self.optimizer.load_state_dict({"state": {k: v["all"] for k, v in state["by_name"].items()}, "param_groups": groups})


class Keyword(Wrapped):
    """It calls what it wraps as torch.distributed.checkpoint does."""

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state_dict=state)


class Copying(Wrapped):
    """It takes all attributes of what it wraps, as Lightning Fabric's optimizers do."""

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state)
        self.__dict__.update(self.optimizer.__dict__)


class HookedInside(Wrapped):
    """A hook that does nothing is called after each load of what it wraps."""

    def __init__(self, optim):
        super().__init__(optim)
        if hasattr(optim, "register_load_state_dict_post_hook"):
            optim.register_load_state_dict_post_hook(lambda optim: None)


class Zero1(Wrapped):
    """One of two ranks, of which each has the moments of one parameter: what it gives is gathered of both."""

    def __init__(self, optim, rank, ranks):
        super().__init__(optim)
        self.rank, self.ranks, self.asked = rank, ranks, 0
        ranks.append(self)

    def state_dict(self):
        self.asked += 1
        state = [one.optimizer.state_dict() for one in self.ranks]
        return {"state": {i: one["state"][0] for i, one in enumerate(state)}, "param_groups": state[0]["param_groups"]}

    def load_state_dict(self, state):
        self.optimizer.load_state_dict({"state": {0: state["state"][self.rank]}, "param_groups": state["param_groups"]})


class Wide(Wrapped):
    """It gives in float32 what it keeps in bfloat16."""

    def state_dict(self):
        state = self.optimizer.state_dict()
        return {**state, "state": {k: {n: v.float() for n, v in values.items()} for k, values in state["state"].items()}}


class Two:
    """Two of one kind: whose state is whose is known by it alone."""

    def __init__(self, *optims):
        self.f, self.g = optims

    def state_dict(self):
        return {"f": self.f.state_dict(), "g": self.g.state_dict()}

    def load_state_dict(self, state):
        self.f.load_state_dict(state["f"])
        self.g.load_state_dict(state["g"])


def with_masters(n):
    """An optimizer that holds float32 values of a parameter in bfloat16."""
    p = torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    optim = torch.optim.SGD([p], lr=.1)
    optim.state[p]["master"] = torch.full((3,), n + 2**-20)
    return optim


def masters(optim):
    return next(iter(optim.state.values()))["master"]


def put_into(saved, fresh):
    job, again = Alone(), Alone()
    job.declare("o", saved)
    shot = job.take_into(0, 0)
    again.declare("o", fresh)
    _, memory = shot.copy()
    trouble, _ = again.put_back(memory, shot.where)
    assert not trouble, trouble


def float32_state_of_an_optimizer_that_is_wrapped():
    """torch casts it to the parameter's type."""
    for kind in (Wrapped, Outer, Popper, Taker, Named, Keyword, Copying, HookedInside):
        a, b = with_masters(1.0), with_masters(2.0)
        hooks = len(getattr(b, "_optimizer_load_state_dict_pre_hooks", ()))
        wrapper = kind(b)
        put_into(kind(a), wrapper)
        assert "load_state_dict" not in {**vars(b), **vars(wrapper)}, kind
        assert len(getattr(b, "_optimizer_load_state_dict_pre_hooks", ())) == hooks, kind
        assert masters(b).dtype == torch.float32 and masters(b).tolist() == [1 + 2**-20] * 3, (kind, masters(b))
    optims = [with_masters(float(n)) for n in range(4)]
    put_into(Two(*optims[:2]), Two(*optims[2:]))
    assert [masters(o).tolist() for o in optims[2:]] == [masters(o).tolist() for o in optims[:2]]


def state_of_other_types_of_an_optimizer_that_is_wrapped():
    def make(n):
        p = torch.nn.Parameter(torch.zeros(2))
        optim = torch.optim.SGD([p], lr=.1)
        values = (torch.full((2,), float(n), dtype=torch.float16), torch.full((2,), 2**40 + n), torch.tensor([True, False]), torch.full((2,), n * 1j))
        optim.state[p].update(a=values[0], b=values[1], c=values[2], d={"deep": [values[3]]})
        return optim

    a, b = make(1), make(2)
    put_into(Wrapped(a), Wrapped(b))
    found = first_difference(canon(list(a.state.values())), canon(list(b.state.values())))
    assert not found, found


def state_that_another_rank_has_too():
    """Each gets its own, and all are asked as often: what it gives may be gathered."""
    def two(n):
        ranks = []
        wide = torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))], lr=.1)
        wide.state[wide.param_groups[0]["params"][0]]["master"] = torch.full((3,), 9.0)
        return [Zero1(with_masters(n), 0, ranks), Zero1(with_masters(n + 0.5), 1, ranks), Zero1(wide, 0, ranks)]

    a, b = two(1.0), two(5.0)
    for one in a + b:
        one.asked = 0
    for saved, fresh in zip(a, b):
        put_into(saved, fresh)
    assert [masters(x.optimizer).tolist() for x in b] == [masters(x.optimizer).tolist() for x in (a[0], a[1], a[0])]
    assert len({x.asked for x in b}) == 1, [x.asked for x in b]


def state_that_stands_in_itself_beside_an_optimizer():
    class Ring(Wrapped):
        ring = None

        def state_dict(self):
            ring = Marked2(a=1)
            ring.mark, ring["self"], ring["meta"] = 1, [ring], torch.zeros(2, device="meta")
            return {"o": super().state_dict(), "ring": ring, "sparse": torch.eye(2).to_sparse()}

        def load_state_dict(self, state):
            self.ring = state["ring"]
            super().load_state_dict(state["o"])

    a, b = with_masters(1.0), Ring(with_masters(2.0))
    a.state[a.param_groups[0]["params"][0]]["sparse"] = torch.eye(2).to_sparse()
    put_into(Ring(a), b)
    assert masters(b.optimizer).tolist() == masters(a).tolist() and b.ring["self"][0] is b.ring


def state_that_was_changed_as_it_was_loaded():
    class Doubles(Wrapped):
        def load_state_dict(self, state):
            super().load_state_dict(state)
            masters(self.optimizer).mul_(2)

    a, b = with_masters(1.0), with_masters(2.0)
    put_into(Doubles(a), Doubles(b))
    assert masters(b).tolist() == [2.0] * 3


class Raised(Exception):
    """As a handler of signals raises it, at any line."""


def raises_at(n, files, call):
    """Before the n-th line of these files; whether there is one."""
    left = n

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename.rpartition("/")[2] not in files or frame.f_code.co_name.startswith("<"):
            return None
        left -= event == "line"
        if event == "line" and not left:
            raise Raised
        return trace

    sys.settrace(trace)
    try:
        call()
    except Exception:
        pass
    finally:
        sys.settrace(None)
    return left <= 0


def snapshots_behind_one_that_was_interrupted():
    """At any line: the next one is whole, of a rank's own pieces, too."""
    def make():
        return {"a": np.zeros(3), "many": {i: torch.zeros(2) for i in range(20)}, "n": torch.zeros(1)}

    n, more = 0, True
    while more:
        n += 1
        it, fresh, job, again = make(), make(), Alone(world=2), Alone(world=2)
        job.declare("it", it, "all")
        job.take_into(0, 0)
        it["a"], it["x"] = np.ones(4), np.full(5, 7.0)
        it["many"][3].data = torch.ones(3)
        more = raises_at(n, ("parts.py", "blocks.py"), lambda: job.take_into(0, 1))
        shot = job.take_into(0, 2)
        again.declare("it", fresh, "all")
        _, memory = shot.copy()
        trouble, _ = again.put_back(memory, shot.where)
        found = trouble or first_difference(canon(it), canon(fresh))
        assert not found, (n, found)
    assert n > 50, n


def more_tensors_than_there_is_room_for():
    import elrun.parts

    for copy_them in (elrun.parts.copy_all, elrun.parts.copy_tensors):
        try:
            copy_them([torch.zeros(1)], [torch.ones(1)] * 2)
        except RuntimeError:
            continue
        raise AssertionError(copy_them)


def what_was_interrupted_as_it_was_filled():
    """It is neither trained nor saved until all of it is filled."""
    class Late:
        now = False

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            if self.now:
                raise KeyboardInterrupt

    late = Late()
    job = Alone()
    job._closed, job._inside = False, None
    job.declare("it", {"w": torch.ones(2), "late": late})
    shot = job.take_into(0, 0)
    _, memory = shot.copy()
    late.now = True
    try:
        job.put_back(memory, shot.where)
        raise AssertionError("it does not come out")
    except KeyboardInterrupt:
        pass
    for call in (lambda: job.snapshot(1), lambda: job.update(1)):
        try:
            call()
        except RuntimeError as e:
            assert "call restore() again first" in str(e), e
        else:
            raise AssertionError("it goes on")
    job.put_back(memory[:8], shot.where)  # one that cannot be read changes nothing
    assert job._half
    late.now = False
    assert job.put_back(memory, shot.where) == ("", "")
    job.update(1)


def a_file_that_is_not_taken():
    def load(data):
        raise ValueError("not this one")

    w = torch.ones(2)
    job = Alone()
    job.declare("w", {"w": w})
    job.declare_file("a/b.pt", b"xyz", load=load)
    shot = job.take_into(0, 0)
    _, memory = shot.copy()
    trouble, misfit = job.put_back(memory, shot.where)
    assert 'part "a/b.pt": load() does not take what was saved: ValueError: not this one' in misfit and job._spoiled, (misfit, job._spoiled)


def declared_once_more():
    """A handler has interrupted the question to the agent."""
    job = Alone(world=2)
    job.declare("it", {"w": torch.ones(2)}, "all")
    job._send, asked = lambda *what: 0, []

    def ask(kind, body, *answers):
        asked.append(body["parts"])
        if len(asked) == 1:
            raise Raised
        return {}, []

    job._ask = ask
    try:
        job._grant()
    except Raised:
        job._grant()
    assert asked == [2, 2], asked


def state_that_is_wide_only_where_it_is_given():
    a, b = with_masters(1.0), with_masters(2.0)
    for optim in (a, b):
        optim.state[optim.param_groups[0]["params"][0]]["master"] = masters(optim).bfloat16()
    put_into(Wide(a), Wide(b))
    assert masters(b).dtype == torch.bfloat16 and masters(b).tolist() == masters(a).tolist(), masters(b)


def memory_that_was_given_back_before_it_is_filled():
    for make in (lambda: torch.nn.Linear(300, 300), lambda: {"t": torch.zeros(90000)}):
        it, fresh, job, again = make(), make(), Alone(), Alone()
        job.declare("it", it)
        shot = job.take_into(0, 0)
        again.declare("it", fresh)
        tensor = fresh.weight if isinstance(fresh, torch.nn.Module) else fresh["t"]
        (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).resize_(0)
        _, memory = shot.copy()
        trouble, _ = again.put_back(memory, shot.where)
        assert "the memory of this tensor was given back" in trouble, trouble


def an_empty_tensor_where_others_are_made_elsewhere():
    if not hasattr(torch, "set_default_device"):
        return
    torch.set_default_device("meta")
    try:
        back(lambda: {"e": torch.zeros(0, device="cpu"), "t": torch.zeros(2, device="cpu")}, lambda it: it["t"].add_(1))
        ones = torch.ones(3, 3, device="cpu")
        for sparse in (ones.to_sparse(), ones.to_sparse_csr(), ones.to_sparse_csc()):
            fresh = back(lambda: {"s": None}, lambda it, sparse=sparse: it.update(s=sparse))
            assert fresh["s"].device.type == "cpu", fresh["s"].device
    finally:
        torch.set_default_device("cpu")


class Holder:
    v = None

    def state_dict(self):
        return {"v": self.v}

    def load_state_dict(self, state):
        self.v = state["v"]


class Marked2(dict):
    pass


def main():
    bad = 0
    for name, test in list(globals().items()):
        if callable(test) and getattr(test, "__module__", "") == __name__ and name not in ("main", "back", "told", "misfit", "Marked", "Marked2", "Holder", "Hooked", "Brittle", "Wrapped", "Outer", "Popper", "Wide", "Two", "with_masters", "masters", "put_into", "Taker", "Named", "Keyword", "Copying", "HookedInside", "Zero1", "Raised", "raises_at"):
            try:
                test()
            except Exception:
                bad += 1
                print(f"{name.replace('_', ' ')}: {traceback.format_exc(limit=-3)}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
