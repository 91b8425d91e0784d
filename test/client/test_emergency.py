"""What is laid aside behind each step, and what a change behind it is noticed by.  Exit status 0: all is as it should be."""
import copy
import functools
import gc
import io
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import types
import weakref

import numpy as np
import torch

from alone import Alone
from elrun import connection, emergency, pagelock, step_end
from elrun.objects import Walk
from elrun.packets import BOUNDARY, LIMIT, NO_STEP, PAGE, SEQ, Error, Page, end_of, images_of, pack
from elrun.snapshots import Snapshots, number_of

torch.set_num_threads(1)
SIZE = 256 << 20


class Watched(Alone):
    """One that an agent has asked for nothing yet."""

    def __init__(self, folder, **parts):
        super().__init__()
        for name, value in parts.items():
            self.declare(name, value)
        self.take_into(0, 0)
        self._page = types.SimpleNamespace(long={}, word={})
        self._slots = [self.slots[0]]
        os.ftruncate(self.slots[0].fd, SIZE)
        path = tempfile.mktemp(dir=folder)
        self.agent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.agent.bind(path)
        self.agent.listen()
        self._emergency = emergency.Emergency(self, path)
        self.plans = 0
        make = emergency.planned

        def counted(had, *what):
            plan = make(had, *what)
            self.plans += plan is not had
            return plan

        emergency.planned = counted

    def keep(self, *steps):
        for step in steps:
            self._emergency.keep(step)

    def captured(self, step, **parts):
        """Why nothing is; "": it is, and these were filled with it."""
        why, images, _ = self._emergency._copy(0, step, SIZE)
        if why:
            return why
        if not parts:
            return ""
        again, where = Alone(), images_of(images)
        for name, value in parts.items():
            again.declare(name, value)
        trouble, _ = again.put_back(memoryview(bytes(self.slots[0].memory[: end_of(where)])), where)
        assert not trouble, trouble
        return ""


def inferred(n, value=0.0):
    with torch.inference_mode():
        return torch.full((n,), value)


def made_in_inference_mode(folder):
    state = {"q": inferred(8), "many": [inferred(4, i) for i in range(20)]}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    with torch.inference_mode():
        state["q"][0] = 99
        state["many"][3].add_(1)
    back = {"q": torch.ones(8), "many": [torch.ones(4) for _ in range(20)]}
    assert job.captured(1, state=back) == ""
    assert back["q"].tolist() == [0] * 8 and back["many"][3].tolist() == [3] * 4, back


def made_in_inference_mode_and_kept_there(folder):
    state = {"q": inferred(8)}
    job = Watched(folder, state=state)
    with torch.inference_mode():
        job._emergency.keep(1)
        state["q"][0] = 99
    job._emergency.keep(2)
    with torch.inference_mode():
        state["q"][1] = 98
    back = {"q": torch.ones(8)}
    assert job.captured(2, state=back) == ""
    assert back["q"].tolist() == [99] + [0] * 7, back


def replaced_by_one_made_in_inference_mode(folder):
    state = {"q": torch.zeros(8)}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    state["q"] = inferred(8, 1)
    job._emergency.keep(2)
    with torch.inference_mode():
        state["q"][0] = 99
    back = {"q": torch.zeros(8)}
    assert job.captured(2, state=back) == ""
    assert back["q"].tolist() == [1] * 8, back


def too_large_to_be_laid_aside(folder):
    most = step_end.UNCOUNTED_MAX
    for state, name in (({"t": inferred(most // 4 + 1), "a": np.zeros(3)}, "t"),
                        ({"t": inferred(most // 8), "a": np.zeros(most // 16 + 1)}, "a")):
        job = Watched(folder, state=state)
        job._emergency.keep(1)
        why = job.captured(1)
        assert why == (f"more than 64 MiB of arrays of numpy and tensors made in inference mode, whose changes nothing counts: 64 MiB, the "
                       f"largest is r00000/{name}"), why
        assert job._emergency.plan is None


def as_many_as_can_be_laid_aside(folder):
    state = {"a": np.zeros(step_end.UNCOUNTED_MAX // 8, "<f8")[1:], "large": torch.zeros(1 << 19)}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    state["a"][-1] = 7
    back = {"a": np.ones(len(state["a"])), "large": torch.ones(1 << 19)}
    assert job.captured(1, state=back) == ""
    assert not back["a"].any()


def buffers_have_a_limit_of_their_own(folder):
    """Arrays leave them their room, and a larger one is watched."""
    net = torch.nn.Linear(2, 2)
    net.register_buffer("small", torch.zeros(10))
    net.register_buffer("large", torch.zeros(step_end.ASIDE_MAX // 4 + 1))
    state = {"a": np.zeros(step_end.ASIDE_MAX // 8)}
    job = Watched(folder, net=net, state=state)
    job._emergency.keep(1)
    net.small.add_(1)
    assert job.captured(1) == ""
    net.large.add_(1)
    assert job.captured(1) == "tensor r00000/large was changed outside of ck.update()", job.captured(1)


def connected(folder, kind=connection.Connection):
    """A connection, and the agent's end of it."""
    path = tempfile.mktemp(dir=folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
        agent.bind(path)
        agent.listen()
        job = kind.__new__(kind)
        connection.Connection.__init__(job, path)
        return job, agent.accept()[0]


class Given:
    """give() makes of its tensors what its state_dict() gives."""

    def __init__(self, give, n=600):
        self.tensors, self.give = {i: torch.full((4,), float(i)) for i in range(n)}, give

    def state_dict(self):
        return {"n": 1, "t": {k: self.give(v) for k, v in self.tensors.items()}}

    def load_state_dict(self, state):
        self.tensors = state["t"]


def of_views(parts):
    it = Given(lambda t: t, 0)
    it.tensors = dict(enumerate(parts))
    return it


def buffers(parts):
    net = torch.nn.Linear(2, 2)
    for i, part in enumerate(parts):
        net.register_buffer(f"part{i}", part)
    return net


def copies_cost_no_plan_and_no_walk(folder):
    it = Given(torch.clone)
    job = Watched(folder, it=it)
    job._emergency.keep(0)
    samples, looks, look = job._emergency.plan.samples, [], Walk.loose_tensor
    Walk.loose_tensor = lambda *what: looks.append(what) or look(*what)
    try:
        for step in range(1, 5):
            it.tensors[9].fill_(step)
            job._emergency.keep(step)
            assert job._emergency.changed_behind() == ""
    finally:
        Walk.loose_tensor = look
    assert job._emergency.plan.samples is samples
    assert not looks, len(looks)
    it.tensors[9].fill_(77)
    back = Given(torch.clone)
    assert job.captured(4, it=back) == ""
    assert back.tensors[9].tolist() == [4] * 4 and back.tensors[10].tolist() == [10] * 4


def tensors_that_become_other_ones(folder):
    """Of another shape or kind: the plan is made anew, and what is captured is right."""
    with torch.inference_mode():
        inference = torch.full((4,), 5.0)
    for other in (torch.full((8,), 5.0)[::2], torch.full((2, 4), 5.0), torch.full((4,), 5.0, dtype=torch.float64), torch.full((4, 2), 5.0).t()[:1], torch.tensor(5.0),
                  torch.empty(0), inference, torch.full((4,), 5.0).to_sparse()):
        it = Given(lambda t: t, 20)
        job = Watched(folder, it=it)
        job._emergency.keep(0)
        job._emergency.keep(1)
        it.tensors[3] = other
        job._emergency.keep(2)
        back = Given(torch.clone, 20)
        assert job.captured(2, it=back) == "", job.captured(2)
        assert type(back.tensors[3]) is torch.Tensor and torch.equal(back.tensors[3].to_dense(), other.to_dense()), (other, back.tensors[3])


def what_a_state_gives_of_the_object_itself(folder):
    for give in (lambda t: t, torch.detach, lambda t: t[:3]):
        it = Given(give)
        job = Watched(folder, it=it)
        job._emergency.keep(0)
        job._emergency.keep(1)
        assert job.captured(1) == ""
        it.tensors[9].add_(1)
        assert job.captured(1) == "tensor r00000/t.9 was changed outside of ck.update()", job.captured(1)
        job._emergency.keep(2)
        few = Given(give, 20)
        job = Watched(folder, it=few)
        job._emergency.keep(0)
        few.tensors = {k: v + 1 for k, v in few.tensors.items()}
        job._emergency.keep(1)
        few.tensors[19].data[1:3] = 7
        assert "past torch's count" in job.captured(1), job.captured(1)


def one_that_is_replaced(folder):
    it = Given(lambda t: t)
    job = Watched(folder, it=it)
    for step in range(2):
        job._emergency.keep(step)
    it.tensors[9] = torch.ones(4)
    assert job.captured(1) == "tensor r00000/t.9 was changed outside of ck.update()", job.captured(1)


def memory_of_an_array(folder):
    """Changed through the array, which torch does not count, in elements that are not compared."""
    array = np.zeros(640, np.float32)
    state = {"t": torch.from_numpy(array), "v": torch.from_numpy(array)[8:16]}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    array[1] = 99
    back = {"t": torch.ones(640)}
    back["v"] = back["t"][8:16]
    assert job.captured(1, state=back) == ""
    tells = hasattr(torch.Tensor, "untyped_storage")  # the manual says what torch 1.13 does not
    assert back["t"].tolist() == [0, 0 if tells else 99] + [0] * 638, back


def memory_that_becomes_an_array(folder):
    """When the tensor was looked at already: by numpy(), or since one of from_numpy() comes to stand in its place."""
    if not hasattr(torch.Tensor, "untyped_storage"):
        return
    for place in (lambda: torch.zeros(64), lambda: torch.zeros(128)[::2], lambda: torch.zeros(8, 8)):
        for becomes in (lambda t: t, lambda t: torch.from_numpy(np.zeros(t.shape, np.float32))):
            state = {"u": torch.zeros(3), "t": place()}
            job = Watched(folder, state=state)
            job.keep(1)
            state["t"] = becomes(state["t"])
            array = state["t"].numpy()
            job.keep(2, 3)
            array.flat[1] = 99
            back = {"u": torch.ones(3), "t": place() + 1}
            assert job.captured(3, state=back) == ""
            assert not back["t"].any(), back


def what_no_step_needs_is_let_go(folder):
    """While nothing can be captured, no tensor of the last step that could be is held."""
    net = torch.nn.Linear(2, 2)
    state = {"net": net, "n": [], "t": torch.zeros(4)}
    job = Watched(folder, state=state)
    job.keep(1)
    net.weight = torch.nn.Parameter(torch.ones(2, 2))
    was = [weakref.ref(net.weight), weakref.ref(state["t"])]
    state["t"] = torch.ones(4)
    job.keep(2)
    net.weight = torch.nn.Parameter(torch.ones(2, 2))
    state["n"].append("x" * (2 * step_end.ASIDE_MAX))
    job.keep(3)
    job._take()
    assert job._emergency.end is None and not any(ref() is not None for ref in was), was


def too_much_once_costs_one_step(folder):
    """More of it, up to a hundred: who is too large is seldom asked."""
    state = {"n": ["x" * (2 * step_end.ASIDE_MAX)]}
    job = Watched(folder, state=state)
    job.keep(1)
    assert job._emergency.end is None
    del state["n"][:]
    job.keep(2)
    assert job._emergency.end, job._emergency.trouble
    state["n"].append("x" * (2 * step_end.ASIDE_MAX))
    taken, take = [], job._take
    job._take = lambda: taken.append(0) or take()
    job.keep(*range(1000))
    assert 10 <= len(taken) <= 20, len(taken)


def containers_that_cannot_be_looked_through(folder):
    """An exception in a property of the script's ends no step."""
    job = Watched(folder, state={"n": 1})
    looked, step_end.in_containers = step_end.in_containers, lambda *_: 1 / 0
    try:
        job.keep(1)
    finally:
        step_end.in_containers = looked
    assert job._emergency.end is None and job._emergency.trouble == "ZeroDivisionError: division by zero"


def a_step_that_begins_while_it_is_compared(folder):
    """What was read until then may be of either step."""
    job = Watched(folder, state={"t": torch.zeros(8, requires_grad=True)})
    job.keep(1)
    compared, emergency._changed = emergency._changed, lambda *_: setattr(job, "_turn", job._turn + 1) or ""
    try:
        assert "a step, or ck.swapped(), began" in job.captured(1), job.captured(1)
    finally:
        emergency._changed = compared


def an_arrays_memory_in_another_guise(folder):
    """As a Parameter, in the place of one, and beside buffers that leave no room."""
    if not hasattr(torch.Tensor, "untyped_storage"):
        return
    array = np.zeros(64, np.float32)

    def replaced(state):
        state["t"] = torch.from_numpy(array)

    for first, then in ((torch.zeros(64), replaced), (torch.nn.Parameter(torch.zeros(64)), replaced),
                        (torch.nn.Parameter(torch.from_numpy(array)), lambda state: None)):
        state = {"net": torch.nn.BatchNorm1d(150000), "t": first}
        job = Watched(folder, state=state)
        job.keep(1)
        then(state)
        job.keep(2)
        array[1] = 99
        back = {"net": torch.nn.BatchNorm1d(150000), "t": type(state["t"])(torch.ones(64))}
        assert job.captured(2, state=back) == ""
        assert not back["t"].any(), back["t"]
        array[1] = 0


def copies_that_others_know_weakly(folder):
    """Nobody else holds them, behind any step: they were not replaced."""

    class Cached:
        def __init__(self):
            self.known, self.of = weakref.WeakValueDictionary(), torch.zeros(4)

        def state_dict(self):
            one = self.known.get("t")
            if one is None:
                one = self.known["t"] = self.of.clone()
            return {"t": one, "n": torch.get_rng_state()}

        def load_state_dict(self, state):
            pass

    job = Watched(folder, it=Cached())
    for step in range(10):
        job.keep(step)
        assert job.captured(step) == "", (step, job.captured(step))
        if step % 2:
            with job.swapped():
                pass
            assert job.captured(step) == "", (step, job.captured(step))


def memory_that_was_given_back(folder):
    """As moments are that are moved elsewhere for a while: it cannot be read."""
    state = {"t": torch.zeros(1 << 16, requires_grad=True), "other": torch.zeros(1 << 19)}
    job = Watched(folder, state=state)
    job.keep(1)
    storage = state["other"].untyped_storage() if hasattr(torch.Tensor, "untyped_storage") else state["other"].storage()
    notes, job._send = [], lambda name, body: notes.append(body["text"])
    with job.swapped():
        storage.resize_(0)
    assert len(notes) == 1 and notes[0].startswith("behind swapped() the weights are not what they were after step 1 (part"), notes
    assert "memory of this tensor was given back" in job.captured(1), job.captured(1)
    storage.resize_(1 << 21)
    job.keep(2)
    storage.resize_(0)
    assert job._emergency.changed_behind() == "tensor r00000/other"
    assert job.captured(2) == "tensor r00000/other was changed outside of ck.update()", job.captured(2)


def memory_that_was_given_back_in_a_step(folder):
    """It is no state: that is said, and the process lives.  The next one at its place is another tensor."""
    net = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.BatchNorm1d(100))
    optim = torch.optim.AdamW(net.parameters())
    net(torch.ones(2, 100)).sum().backward()
    optim.step()
    state = {"net": net, "optim": optim, "t": torch.ones(1000), "d": {i: torch.ones(100) for i in range(20)}}
    job = Watched(folder, state=state)
    job.keep(1)
    for name, tensor in (("net.0.weight", net[0].weight), ("net.1.running_mean", net[1].running_mean), ("t", state["t"]), ("d.3", state["d"][3]),
                         ("optim.0.exp_avg", optim.state[net[0].weight]["exp_avg"])):
        storage = tensor.untyped_storage() if hasattr(torch.Tensor, "untyped_storage") else tensor.storage()
        size = storage.nbytes() if hasattr(torch.Tensor, "untyped_storage") else storage.size()
        storage.resize_(0)
        job.keep(2)
        assert "the memory of this tensor was given back" in job._emergency.trouble and name in job._emergency.trouble, (name, job._emergency.trouble)
        try:
            Watched(folder, state=state)
        except TypeError as e:
            assert "the memory of this tensor was given back" in str(e), e
        else:
            assert False, name
        storage.resize_(size)
        tensor.data.fill_(1)
        job.keep(3)
        assert job.captured(3) == ""


def views_of_memory_that_was_given_back(folder):
    """They do not begin at 0: as a buffer, in a dict, and out of a state_dict()."""
    for make in (buffers, lambda parts: dict(enumerate(parts)), of_views):
        flat = torch.ones(4000)
        job = Watched(folder, state=make([flat[10 * i : 10 * i + 10] for i in range(1, 300)]))
        job.keep(1, 2)
        (flat.untyped_storage() if hasattr(torch.Tensor, "untyped_storage") else flat.storage()).resize_(0)
        job.keep(3)
        assert "the memory of this tensor was given back" in job._emergency.trouble, job._emergency.trouble


def another_at_the_place_of_one_given_back(folder):
    place = torch.zeros(4000)
    state = {"t": place}
    job = Watched(folder, state=state)
    job.keep(1)
    plan = job._emergency.plan
    job._emergency.plan = plan._replace(looked=[1])  # as its view says when its memory was given back
    job.keep(2)
    assert job._emergency.plan is not plan and job._emergency.plan.looked == plan.looked
    assert job.captured(2) == ""


def changed_before_a_swap(folder):
    """A change outside of a step is none of ck.swapped(), and not forgotten behind it."""
    net = torch.nn.Linear(50, 50)
    job = Watched(folder, net=net)
    job.keep(1)
    with torch.no_grad():
        net.weight[3, 3] += 1
    with job.swapped():
        with job.swapped():
            pass
    assert job.captured(1) == 'tensor r00000/weight was changed outside of ck.update()', job.captured(1)
    job.keep(2)
    with job.swapped():
        pass
    assert job.captured(2) == ""


def a_look_that_fails(folder):
    """It ends no step."""
    job = Watched(folder, state={"t": torch.zeros(4)})
    job.keep(1)
    job._emergency.end.changed = lambda: 1 / 0
    assert job._emergency.changed_behind() == ""
    with job.swapped():
        pass
    assert job.captured(1) == "something (ZeroDivisionError: division by zero) was changed outside of ck.update()", job.captured(1)


def objects_that_are_replaced(folder):
    """Whatever a snapshot has seen since."""
    net = torch.nn.Linear(2, 2)
    state = {"ema": copy.deepcopy(net), "own": Given(torch.clone, 2), "d": {i: torch.zeros(9, requires_grad=True) for i in range(20)}}
    changes = {
        "ema": lambda: state.update(ema=copy.deepcopy(net)),
        "own": lambda: state.update(own=Given(torch.clone, 2)),
        "d": lambda: state.update(d={i: torch.ones(9, requires_grad=True) for i in range(20)}),
    }
    for change in changes.values():
        for walks in (False, True):
            job = Watched(folder, state=state)
            job.keep(1)
            change()
            if walks:
                job._take()
            assert job._emergency.changed_behind() == 'part "state"'
            assert job.captured(1) == 'part "state" was changed outside of ck.update()', job.captured(1)
    job = Watched(folder, state=state)
    job.keep(1)
    state["d"][3].tag = 1  # no change of what it holds: its block is made anew all the same
    job._take()
    assert job._emergency.changed_behind() == job.captured(1) == ""


def restored_since(folder):
    """Where there was nothing to restore, all is as it was."""
    job = Watched(folder, state={"t": torch.zeros(4)})
    job.keep(1)
    job._live(None)
    assert job.captured(1) == ""
    job._live(0)
    assert job.captured(1) == "restore() was called since" and job._emergency.plan is None


def nested_swaps(folder):
    job = Watched(folder, state={"t": torch.zeros(4)})
    job.keep(1)
    with job.swapped():
        with job.swapped():
            pass
        assert job.captured(1) == "other weights are in its place (ck.swapped())"
    assert job.captured(1) == ""


def closed(folder):
    """It holds nothing any more."""
    net = torch.nn.Linear(2, 2)
    job = Watched(folder, net=net)
    job._page.long = {LIMIT: NO_STEP, BOUNDARY: NO_STEP}
    hook = sys.excepthook
    job.keep(1)
    job._emergency.close()
    assert job._emergency.end is job._emergency.plan is None and sys.excepthook != hook


def what_was_loaded(folder):
    """It looks like an array's memory, and is captured, however large it is."""
    net = torch.nn.Linear(2200, 2200)
    optim = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2200)).sum().backward()
    optim.step()
    data = io.BytesIO()
    torch.save({"optim": optim.state_dict(), "mean": {"w": torch.ones(3000, 3000)}}, data)
    data.seek(0)
    loaded = torch.load(data)
    optim.load_state_dict(loaded["optim"])
    job = Watched(folder, state={"net": net, "optim": optim, "mean": loaded["mean"]})
    job._emergency.keep(1)
    assert job.captured(1) == "" and not {s.numel() for s in job._emergency.plan.copies} & {2200 * 2200, 3000 * 3000}


def buffers_come_before_what_was_loaded(folder):
    data = io.BytesIO()
    torch.save({i: torch.zeros(1000) for i in range(300)}, data)
    data.seek(0)
    net = torch.nn.BatchNorm1d(2048)
    job = Watched(folder, net=net, ema=torch.load(data))
    job._emergency.keep(1)
    net(torch.randn(4, 2048))
    assert job.captured(1) == "", job.captured(1)


def asked_in_the_mode_of_the_script(folder):
    """An object's state_dict() may need inference mode, and gradients to be off."""

    class Packs:
        def __init__(self):
            self.to = inferred(4)

        def state_dict(self):
            assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
            self.to.add_(1)
            return {"to": self.to}

        def load_state_dict(self, state):
            self.to.copy_(state["to"])

    with torch.inference_mode():
        job = Watched(folder, it=Packs())
        job._emergency.keep(1)
        assert job._emergency.end, job._emergency.trouble
        job.take_into(0, 0)


def planned_in_inference_mode(folder):
    """A step, or ck.swapped(), that ends there: what is laid aside then can be written to behind it."""
    state = {"w": torch.zeros(4, requires_grad=True), "b": torch.zeros(2), "n": []}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    state["n"].extend([0.1] * 400)  # another layout
    with torch.inference_mode():
        job._emergency.keep(2)
    for step in (3, 4):
        with torch.no_grad():
            state["w"].add_(1)
        job._emergency.keep(step)
        assert job._emergency.end, job._emergency.trouble
    back = {"w": torch.ones(4, requires_grad=True), "b": torch.ones(2), "n": []}
    assert job.captured(4, state=back) == ""
    assert back["w"].tolist() == [2] * 4 and len(back["n"]) == 400, back


def a_plan_that_failed(folder):
    """It is not used again."""
    state = {"w": torch.zeros(4), "b": torch.zeros(2)}
    job = Watched(folder, state=state)
    job._emergency.keep(1)
    copied, step_end.copy_all = step_end.copy_all, lambda *_: 1 / 0
    try:
        job._emergency.keep(2)
    finally:
        step_end.copy_all = copied
    assert not job._emergency.end and job.plans == 1
    job._emergency.keep(3)
    assert job._emergency.end and job.plans == 2


def a_parameter_set_anew_before_a_snapshot_that_was_left_out(folder):
    """The snapshot has looked at the module, and the step before it must not be told with what it saw."""
    net = torch.nn.Linear(2, 2)
    job = Watched(folder, net=net)
    job._emergency.keep(1)
    net.weight = torch.nn.Parameter(torch.ones(2, 2))
    job._take()
    assert job.captured(1) == 'part "net" was changed outside of ck.update()', job.captured(1)


def turned_within_a_step(folder):
    """Square, so that its address and shape stay the same."""
    state = {"w": torch.arange(9.0).reshape(3, 3).requires_grad_(), "b": torch.zeros(2)}
    job = Watched(folder, state=state)
    for step in range(3):
        state["w"].data = state["w"].data.t()
        job._emergency.keep(step)
        back = {"w": torch.zeros(3, 3, requires_grad=True), "b": torch.ones(2)}
        assert job.captured(step, state=back) == "" and torch.equal(back["w"], state["w"]), (step, back)


def swapped_by_reference(folder):
    """Other tensors in the place of those of the step, and not put back: that is found as what copy_() writes is."""
    def data(state):
        state["net"].weight.data = torch.ones(2, 2)

    def parameter(state):
        state["net"].weight = torch.nn.Parameter(torch.ones(2, 2))

    def entry(state):
        state["l"][0] = torch.ones(3)

    for change in (data, parameter, entry):
        state = {"net": torch.nn.Linear(2, 2), "l": [torch.zeros(3), 1]}
        job = Watched(folder, state=state)
        job.keep(1)
        notes, job._send = [], lambda name, body: notes.append(body["text"])
        before = dict(state, net=copy.copy(state["net"]), l=list(state["l"]))
        with job.swapped():
            change(state)
        assert len(notes) == 1 and "are not what they were after step 1: until" in notes[0], notes
        assert job.captured(1) == "behind swapped() the weights are not what they were after step 1", job.captured(1)
        job.keep(2)
        weight, data_of, first = state["net"].weight, state["net"].weight.data, state["l"][0]
        with job.swapped():
            change(state)
            state["net"].weight, state["l"][0] = weight, first
            weight.data = data_of
        assert job.captured(2) == "" and len(notes) == 1, (job.captured(2), notes)


def nothing_is_held_while_it_is_swapped(folder):
    """What is moved elsewhere for a while is to free its memory."""
    net = torch.nn.Linear(4, 4, bias=False)
    optim = torch.optim.AdamW(net.parameters())
    net(torch.ones(4)).sum().backward()
    optim.step()
    state = {"net": net, "optim": optim, "d": {i: torch.zeros(9) for i in range(20)}, "t": torch.zeros(2)}
    job = Watched(folder, state=state)
    job.keep(1, 2)
    with job.swapped():
        moments, kept = optim.state[net.weight], copy.deepcopy(state)
        gone = [weakref.ref(t) for t in (moments["exp_avg"], state["d"][3], state["t"])]
        moments["exp_avg"], state["d"], state["t"] = None, None, None
        assert [ref() for ref in gone] == [None] * 3
        moments["exp_avg"], state["d"], state["t"] = kept["optim"].state[kept["net"].weight]["exp_avg"], kept["d"], kept["t"]
    assert job.captured(2) == ""


def values_that_move_while_it_is_swapped(folder):
    """They are those of the end of the step, as they are without ck.swapped()."""
    state = {"net": torch.nn.BatchNorm1d(3), "n": 0, "losses": [0.5], "w": torch.zeros(3)}
    job = Watched(folder, state=state)
    job.keep(1)
    with job.swapped():
        state["net"](torch.randn(8, 3))
        state["n"] = 7
        state["losses"] += [0.25] * 400
    back = {"net": torch.nn.BatchNorm1d(3), "n": 3, "losses": [], "w": torch.ones(3)}
    assert job.captured(1, state=back) == ""
    assert (back["n"], back["losses"], back["net"].num_batches_tracked.item(), back["net"].running_mean.tolist()) == (0, [0.5], 0, [0, 0, 0]), back
    job.keep(2)
    assert job.captured(2, state=back) == "" and back["n"] == 7


def an_average_that_keeps_a_copy_of_what_it_swaps(folder):
    """As torch_ema does: its state_dict() has the copy from then on, and another one each time."""
    class Average:
        def __init__(self, net):
            self.net, self.shadow, self.kept = net, [p.detach() + 1 for p in net.parameters()], None

        def swap(self):
            self.kept = [p.detach().clone() for p in self.net.parameters()]
            for p, s in zip(self.net.parameters(), self.shadow):
                p.data.copy_(s)

        def back(self):
            for p, k in zip(self.net.parameters(), self.kept):
                p.data.copy_(k)

        def state_dict(self):
            return {"shadow": self.shadow, "kept": self.kept}

        def load_state_dict(self, state):
            self.shadow, self.kept = state["shadow"], state["kept"]

    net = torch.nn.Linear(3, 3)
    average = Average(net)
    job = Watched(folder, net=net, average=average)
    for step in range(4):
        with torch.no_grad():
            net.weight.add_(1)
        job.keep(step)
        with job.swapped():
            average.swap()
            average.back()
        back = torch.nn.Linear(3, 3)
        assert job.captured(step, net=back, average=Average(back)) == "", (step, job.captured(step))
        assert torch.equal(back.weight, net.weight)


def what_may_move_does_so_while_it_is_swapped(folder):
    """An array that grows, a list of tensors, one that is read by numpy(), values beyond all measure: all as they were."""
    state = {"net": torch.nn.Linear(2, 2), "a": np.zeros(3), "l": [torch.zeros(1)], "s": torch.zeros(4), "v": [1.0]}
    job = Watched(folder, state=state)
    job.keep(1)
    with job.swapped():
        state["a"] = np.append(state["a"], 1)
        state["l"].append(torch.ones(1))
        state["s"].numpy()
        state["v"] = [0.1] * 400000
        state["new"] = torch.zeros(7)
    back = {"net": torch.nn.Linear(2, 2), "a": np.ones(9), "l": [], "s": torch.ones(4), "v": []}
    assert job.captured(1, state=back) == "", job.captured(1)
    assert back["a"].tolist() == [0] * 3 and len(back["l"]) == 1 and not back["s"].any() and back["v"] == [1.0] and "new" not in back, back


def stepped_while_it_is_swapped(folder):
    rates = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.zeros(1)], lr=1), 1)
    job = Watched(folder, state={"rates": rates})
    job.keep(1)
    with job.swapped():
        rates.optimizer.step()
        rates.step()
    assert job._emergency.stepped() == "state"
    rates, other = (torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.zeros(1)], lr=1), 1) for _ in range(2))
    job = Watched(folder, state=(state := {"rates": rates, "odd": types.SimpleNamespace()}))
    job.keep(1)
    gone, state["rates"] = weakref.ref(rates), other
    del rates
    job.keep(2)
    gc.collect()
    assert gone() is None
    other.optimizer.step()
    other.step()
    assert job._emergency.stepped() == "state"


def steps_that_are_no_number(folder):
    class Odd(Given):
        last_epoch = None

        def step(self):
            self.last_epoch = np.zeros(3)

    odd = Odd(torch.clone, 2)
    odd.step()
    job = Watched(folder, odd=odd)
    job.keep(1)
    odd.step()
    assert job._emergency.stepped() == "" and job.captured(1) == ""


def memory_that_was_given_back_in_part(folder):
    """A view may begin far into what is no more; storage may be left with a few bytes."""
    if not hasattr(torch.Tensor, "untyped_storage"):
        return
    flat = torch.empty((4 << 30) + 4096, dtype=torch.uint8)
    for state in ({i: flat[(4 << 30) + 64 * i :][:64] for i in range(20)}, {"w": flat[4 << 30 :][:64]}):
        flat.untyped_storage().resize_((4 << 30) + 4096)
        job = Watched(folder, state=state)
        job.keep(1)
        for left in (0, 64):
            flat.untyped_storage().resize_(left)
            try:
                job._take()
            except Exception as e:
                assert "the memory of this tensor was given back" in str(e), e
            else:
                raise AssertionError(f"{left} bytes are left, and it was read")
            assert "was changed outside of ck.update()" in job.captured(1)


def a_sparse_tensor_that_is_replaced(folder):
    state = {"s": torch.eye(3).to_sparse(), "w": torch.zeros(3)}
    job = Watched(folder, state=state)
    job.keep(1)
    assert job._emergency.changed_behind() == job.captured(1) == ""
    state["s"] = (2 * torch.eye(3)).to_sparse()
    assert job._emergency.changed_behind() == 'part "state"'


def a_handler_of_signals_that_raises(folder):
    """It is for the script, wherever it comes."""
    class Preempted(Exception):
        pass

    class Slow:
        def state_dict(self):
            if self.now:
                os.kill(os.getpid(), signal.SIGUSR1)
            return {}

        def load_state_dict(self, state):
            pass

        now = False

    class Handler:
        def told(self, number, frame):
            raise Preempted

        def __call__(self, number, frame):
            raise Preempted

    it = Slow()
    job = Watched(folder, it=it)
    it.now = True
    for handler in (Handler().told, Handler(), functools.partial(Handler.told, None)):
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            job._emergency.keep(1)
        except Preempted:
            pass
        else:
            raise AssertionError("it does not come out")
        finally:
            signal.signal(signal.SIGUSR1, before)


def a_handler_that_raises_at_any_line(folder):
    """It has given its signal back before, so that a second one ends the process."""
    kinds_of = [type("Preempted", (kind,), {}) for kind in (RuntimeError, TypeError, OSError, ValueError, Exception)]
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    odd = torch.zeros(2)
    odd.beside = [1, 2]
    state = {"net": net, "optim": torch.optim.AdamW(net.parameters()), "average": Given(torch.clone, 2), "d": {i: torch.zeros(2) for i in range(20)},
             "odd": odd, "sparse": torch.eye(2).to_sparse(), "masked": np.ma.masked_array([1, 2], [0, 1]), "rng": np.random.default_rng(0)}
    job, again = Watched(folder, state=state), Alone()
    again.declare("state", copy.deepcopy(state))

    def taken():
        for part in job.parts:
            part.blocks.clear()
        return job.take_into(0, 1)

    def kept():
        job.keep(1)
        with job.swapped():
            pass

    shot, seen = taken(), []
    _, memory = shot.copy()
    for call in (taken, kept, lambda: again.put_back(memory, shot.where)):
        n = 1
        while n:
            kind, left = kinds_of[n % len(kinds_of)], n

            def told(number, frame):
                signal.signal(number, signal.SIG_DFL)
                raise kind

            def trace(frame, event, arg):
                nonlocal left
                if not frame.f_globals.get("__name__", "").startswith("elrun") or frame.f_code.co_name == "swapped":
                    return None
                left -= event == "line"
                if not left and event == "line":
                    seen.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
                    os.kill(os.getpid(), signal.SIGUSR1)
                return trace

            before = signal.signal(signal.SIGUSR1, told)
            sys.settrace(trace)
            try:
                call()
            except kind:
                n += 19
            else:
                assert left > 0, (kind.__bases__, seen[-1])
                n = 0
            finally:
                sys.settrace(None)
                signal.signal(signal.SIGUSR1, before)
    assert len(seen) > 100, len(seen)


def a_handler_that_raises_while_a_snapshot_is_written(folder):
    """What torch raises there is that a tensor has another view of its elements now; this is something else."""
    class Preempted(RuntimeError):
        pass

    def told(number, frame):
        raise Preempted

    job = Watched(folder, state={"t": torch.zeros(3)})
    job._complain = job._drain = lambda: None
    job._begin_snapshot = lambda *what: {"slot": 0, "slot_bytes": SIZE}
    sent, written = [], []
    job._write = lambda *what: written.append(what) or (len(written) == 1 and os.kill(os.getpid(), signal.SIGUSR1))
    job._granted = True

    def send(kind, body):
        sent.append(kind)
        raise Error("elrun's agent is gone")

    job._send = send
    before = signal.signal(signal.SIGUSR1, told)
    try:
        job._take_snapshot(1, False)
    except Preempted:
        assert sent == ["SNAP_ABORT"], sent
    else:
        raise AssertionError("it does not come out")
    finally:
        signal.signal(signal.SIGUSR1, before)


def a_handler_that_raises_while_an_answer_is_waited_for(folder):
    """An OSError there is not always that the agent is gone."""
    def told(number, frame):
        raise TimeoutError("too slow")

    job, agent = connected(folder)
    before = signal.signal(signal.SIGALRM, told)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            try:
                job._ask("HELLO", {}, "WELCOME")
            except TimeoutError:
                continue
            raise AssertionError("there is no answer")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        agent.close()


def an_answer_that_has_come_when_a_handler_raises(folder):
    """Whatever line it comes at, the answer is not waited for once more."""
    n, left = 0, 0
    while left <= 0:
        n += 1
        left = n
        job, agent = connected(folder, Snapshots)
        job._acks, job._last, job._trouble, job._events = {1: 6, 2: 7}, None, None, []
        for seq in (1, 2):
            agent.send(pack("SNAP_ACK", seq, {}))
        agent.close()

        def trace(frame, event, arg):
            nonlocal left
            if frame.f_code.co_filename.rpartition("/")[2] not in ("connection.py", "snapshots.py"):
                return None
            left -= event == "line"
            if event == "line" and not left:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            job.wait()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert job.wait() == 7, n
    assert n > 20, n


class Preempted(Exception):
    pass


def handled(call, kind=Preempted):
    """Calls it with a handler of SIGUSR1 that raises such an exception; whether it came out."""
    def told(number, frame):
        raise kind

    kind = type("Preempted", (kind,), {})
    before = signal.signal(signal.SIGUSR1, told)
    try:
        call()
    except kind:
        return True
    finally:
        signal.signal(signal.SIGUSR1, before)
    return False


def signalled(*_):
    os.kill(os.getpid(), signal.SIGUSR1)


def a_handler_that_raises_where_an_exception_is_expected(folder):
    job, agent = connected(folder)
    job._sock = types.SimpleNamespace(recvmsg=signalled)
    assert handled(job._drain, BlockingIOError)
    assert handled(lambda: number_of(type("Odd", (), {"__index__": signalled})(), "a step"), TypeError)
    zeros = torch.zeros
    torch.zeros = lambda *_, **__: signalled()
    try:
        assert handled(lambda: pagelock._cleared(1), RuntimeError)
    finally:
        torch.zeros = zeros
    job = Watched(folder, state={"n": 1})
    job._page.long = {LIMIT: NO_STEP, BOUNDARY: NO_STEP}
    sock, job._emergency.sock = job._emergency.sock, types.SimpleNamespace(shutdown=signalled)
    assert handled(job._emergency.close, OSError)
    job._emergency.sock = sock
    job._emergency.close()


class Undone:
    """It may be signalled, or fail, when it is given a certain number."""

    def __init__(self, n, signals=(), fails=()):
        self.n, self.signals, self.fails = n, signals, fails

    def state_dict(self):
        return {"n": self.n}

    def load_state_dict(self, state):
        if state["n"] in self.signals:
            signalled()
        if state["n"] in self.fails:
            raise ValueError("not this one")
        self.n = state["n"]


def a_handler_that_raises_while_it_is_taken_back(folder):
    """It is for the script; the others are taken back all the same."""
    for middle, last in ((Undone(2, signals=[2]), Undone(3, fails=[30])), (Undone(2), Undone(3, fails=[30], signals=[3]))):
        saved, first = Alone(), Undone(1)
        saved.declare("all", [Undone(10), Undone(20), Undone(30)])
        shot, fresh = saved.take_into(0, 0), Alone()
        fresh.declare("all", [first, middle, last])
        _, memory = shot.copy()
        assert handled(lambda: fresh.put_back(memory, shot.where))
        assert first.n == 1, first.n


def what_a_handler_has_raised_holds_nothing(folder):
    """Once it is dealt with, nothing is kept until the next gc.collect()."""
    gone = []

    class Slow(Given):
        now = False

        def called(self, signals):
            large = torch.zeros(4)
            gone.append(weakref.ref(large))
            if self.now and signals:
                signalled()
            return {}

        def state_dict(self):
            return self.called(True)

        def load_state_dict(self, state):
            try:
                self.called(True)
            except Exception:
                raise ValueError("from this") from None

    it = Slow(torch.clone, 0)
    job = Watched(folder, it=it)
    shot = job.take_into(0, 0)
    _, memory = shot.copy()
    gc.collect()
    gc.disable()
    try:
        for call in (lambda: job._emergency.keep(1), lambda: job.put_back(memory, shot.where)):
            it.now = True
            assert handled(call)
            it.now = False
            assert not any(ref() is not None for ref in gone), (call, [gc.get_referrers(ref()) for ref in gone if ref() is not None])
    finally:
        gc.enable()


def a_handler_that_looks_at_the_frames(folder):
    """It may put another one in the place of its argument."""
    def told(number, frame):
        while frame:
            frame = frame.f_back
        raise Preempted

    class Handler:
        def __call__(self, number, frame):
            told(number, frame)
            frame = None

        def method(self, number, frame):
            frame = None
            raise Preempted

        def called(self, number, frame):
            frame = None
            raise Preempted

    Other = type("Other", (Handler,), {"__call__": Handler.called})
    it = Given(torch.clone, 0)
    job = Watched(folder, it=it)
    it.state_dict = signalled
    for handler in (told, Handler().method, Other(), functools.partial(Handler.called, None), functools.partial(functools.partial(Handler().called))):
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            job._emergency.keep(1)
        except Preempted:
            continue
        finally:
            signal.signal(signal.SIGUSR1, before)
        raise AssertionError(f"it does not come out: {handler}")


def a_function_that_has_changed_its_arguments(folder):
    """It is told as what it is, and so is one that fails while the script deals with what a handler has raised."""
    class Odd(Given):
        def state_dict(self, *args):
            if self.give is None:
                return {}
            args = self.give
            raise ValueError("not now") from None

    it = Odd(None, 0)
    job = Watched(folder, it=it)
    for value in (torch.zeros(2), 7):
        it.give = value
        job.keep(1)
        assert "not now" in job._emergency.trouble
    try:
        handler = signal.signal(signal.SIGUSR1, lambda number, frame: (_ for _ in ()).throw(Preempted()))
        signalled()
        raise AssertionError("it does not come")
    except Preempted:
        job.keep(1)
        assert "not now" in job._emergency.trouble
    finally:
        signal.signal(signal.SIGUSR1, handler)


class Torn:
    """A lock as it is since Python 3.14: a handler may raise when it is taken, and the block has not begun."""

    def __init__(self):
        self.taken = False

    def __enter__(self):
        assert not self.taken, "it is waited for without end"
        self.taken = True
        raise Preempted

    def __exit__(self, *what):
        self.taken = False


def a_handler_that_raises_as_a_lock_is_taken(folder):
    lock, fd = threading.Lock, os.memfd_create("page")
    os.ftruncate(fd, PAGE)
    threading.Lock = Torn
    try:
        job, agent = connected(folder)
        agent.send(pack("WELCOME", 1, {}))
        page = Page(fd)
        for _ in range(2):
            try:
                page.fence()
            except Preempted:
                pass
        job._ask("HELLO", {}, "WELCOME")
    finally:
        threading.Lock = lock
        os.close(fd)


def a_handler_that_raises_as_a_step_begins(folder):
    """What is written at once is so again at the next one."""
    fd = os.memfd_create("page")
    os.ftruncate(fd, PAGE)
    page = Page(fd)
    os.close(fd)
    for call in (page.begin, page.end):
        now = time.monotonic_ns
        time.monotonic_ns = lambda: 1 / 0
        try:
            call(1)
        except ZeroDivisionError:
            pass
        finally:
            time.monotonic_ns = now
        assert page.long[SEQ] & 1
        page.begin(2)
        assert not page.long[SEQ] & 1, call


def an_exception_that_the_script_has_handled(folder):
    """It is no news, whatever fails behind it."""
    class Stop(Exception):
        pass

    class Odd:
        def state_dict(self):
            if self.now:
                raise ValueError("not now")
            return {}

        def load_state_dict(self, state):
            pass

        now = False

    def told(number, frame):
        raise Stop

    it = Odd()
    job = Watched(folder, it=it)
    it.now = True
    before = signal.signal(signal.SIGUSR1, told)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        raise AssertionError("it does not come")
    except Stop:
        job._emergency.keep(1)
        assert "not now" in job._emergency.trouble
    finally:
        signal.signal(signal.SIGUSR1, before)


def swapped_ends_where_it_did_not_begin(folder):
    """A handler may raise there."""
    job = Watched(folder, state={"t": torch.zeros(3)})
    job.keep(1)
    job._emergency.let_go = lambda why: 1 / 0
    try:
        with job.swapped():
            raise AssertionError("it has begun")
    except ZeroDivisionError:
        pass
    assert job._swapped == 0


def elements_of_what_has_only_a_few(folder):
    """All of them."""
    for shape, at in (((4,), 0), ((60,), 3), ((8, 8), (0, 0)), ((1000,), 500)):
        w = torch.zeros(shape, requires_grad=True)
        job = Watched(folder, state={"w": w})
        job.keep(1)
        w.data[at] += 1
        assert job._emergency.end.sampled() == "tensor r00000/w", shape


def elements_of_what_is_not_contiguous(folder):
    """Those in the middle."""
    w = torch.zeros(4, 4, 5, 5, requires_grad=True).to(memory_format=torch.channels_last).detach().requires_grad_()
    for at in ((2, 2, 2, 2), (2, 2, 2, 4)):
        job = Watched(folder, state={"w": w})
        job.keep(1)
        w.data[at] += 1
        assert job._emergency.end.sampled() == "tensor r00000/w", at
    for shape, ats in (((4, 4), [(i, k) for i in range(4) for k in range(4)]), ((4, 20), [(0, 19), (2, 10)]), ((80, 2), [(17, 1), (79, 1)]),
                       ((9, 7), [(0, 0), (8, 6), (0, 6)])):
        for at in ats:
            w = torch.zeros(shape).t().detach().requires_grad_()
            job = Watched(folder, state={"w": w})
            job.keep(1)
            w.data[at[::-1]] += 1
            assert job._emergency.end.sampled() == "tensor r00000/w", (shape, at)
            with torch.no_grad():
                w.add_(1)
            job.keep(2)
            assert job.captured(2) == ""


if __name__ == "__main__":
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name, test in list(globals().items()):
            if getattr(test, "__module__", "") == "__main__" and isinstance(test, types.FunctionType) and name not in ("inferred", "of_views", "buffers", "connected", "handled", "signalled"):
                try:
                    test(folder)
                except Exception:
                    bad.append(name)
                    traceback.print_exc()
    print(*bad, file=sys.stderr)
    sys.stderr.flush()
    os._exit(bool(bad))
