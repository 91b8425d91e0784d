"""Cases that went wrong once, as small as they can be.  Exit status 0: all are right now."""
import array
import collections
import random
import sys
import traceback
import warnings

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


def main():
    bad = 0
    for name, test in list(globals().items()):
        if callable(test) and getattr(test, "__module__", "") == __name__ and name not in ("main", "back", "told", "Marked"):
            try:
                test()
            except Exception:
                bad += 1
                print(f"{name.replace('_', ' ')}: {traceback.format_exc(limit=-3)}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
