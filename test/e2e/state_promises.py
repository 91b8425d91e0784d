"""Workers for state_promises.sh: what elrun promises of steps, of disk and of memory, with arrays of numpy so that they start in
no time.  Each keeps its own truth in FOLDER: what it holds after each step.
state_promises.py FOLDER MODE"""
import contextlib
import mmap
import os
import pickle
import signal
import sys
import time

import numpy as np

import elrun

folder, mode = sys.argv[1:3]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt = int(os.environ["ELRUN_ROUND"].split(".")[0]) - 1


def write(what, name="log"):
    """One line of this rank, whole whenever the process is killed."""
    fd = os.open(f"{folder}/{name}.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, f"{what}\n".encode())
    os.close(fd)


def verdict(ok, what, why=""):
    with open(f"{folder}/result", "a") as f:
        f.write(f"ok {what}\n" if ok else f"not ok {what}: {' '.join(str(why).split())}\n")


def end():
    with open(f"{folder}/result", "a") as f:
        f.write("end\n")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def keep(step, state):
    with open(f"{folder}/truth.{rank}.{step}", "wb") as f:
        pickle.dump(state, f)


def kept(step):
    with open(f"{folder}/truth.{rank}.{step}", "rb") as f:
        return pickle.load(f)


def same(a, b):
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def pid_file(name):
    with open(f"{folder}/{name}~", "w") as f:
        f.write(f"{os.getpid()}\n")
    os.rename(f"{folder}/{name}~", f"{folder}/{name}")


class Barrier:
    """Ranks go on together, as a collective has it: a word for each in a file."""

    def __init__(self):
        path = f"{folder}/barrier.{attempt}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 8 * world)
        self.words = np.frombuffer(mmap.mmap(fd, 8 * world), "i8")

    def __call__(self):
        self.words[rank] += 1
        while self.words.min() < self.words[rank]:
            time.sleep(.0005)


# --- persist=True ------------------------------------------------------------------------------------------------------------


def persist():
    """The default --ckpt-busy=skip, steps that are faster than a snapshot: what was asked for with persist=True is on disk at the
    end.  With two ranks they differ in size, and the first one alone says persist=True."""
    state = {"w": np.zeros((30 if rank == 0 else 1) << 20, "u1")}
    ck.declare("w", state)
    ck.restore()
    meet, said = Barrier(), {}
    for step in range(40):
        meet()
        state["w"] += 1
        answer = ck.snapshot(step, persist=step % 10 == 9 and rank == 0)
        if step % 10 == 9:
            said[step] = answer
    failed = set()
    for step, answer in said.items():
        try:
            if rank == 0 and answer is True and not ck.wait_persist(step, 60):
                failed.add(step)
        except elrun.Error:
            failed.add(step)
    events = {e.step for e in ck.events() if e.kind == "failed"}
    write(f"{' '.join(str(s) for s in sorted(said) if said[s] is True)}", "taken")
    write(f"{' '.join(map(str, sorted(failed | events)))}", "failed")


def alone():
    """One of two ranks takes snapshots for the disk: it is not kept waiting for ever, and learns that none comes to disk."""
    ck.declare("w", {"w": np.zeros(1 << 10)})
    ck.restore()
    if rank == 1:
        while not os.path.exists(f"{folder}/over"):
            time.sleep(0.1)
        return
    for step in range(3):
        verdict(ck.snapshot(step, persist=True) in (True, False), f"step {step}: it ends")
    for step in range(3):
        try:
            done = ck.wait_persist(step, 60)
        except elrun.Error:
            done = "said"
        verdict(done == "said", f"step {step}: wait_persist() says that it will not be", done)
    failed = [e.step for e in ck.events() if e.kind == "failed"]
    verdict(failed == [0, 1, 2], "an event for each", failed)
    open(f"{folder}/over", "w").close()
    end()


def lacks():
    """One step is wanted on disk, and rank 1 has it not: HOW=room: it is too large there; refused: it cannot be saved; skipped: it
    is not asked for.  That is said, and costs no other step but the next one; the first time perhaps one more, until it is known
    that this script goes on without a step that is left out."""
    how = os.environ["HOW"]
    state = {"w": np.zeros(1 << 10, "u1")}
    ck.declare("w", state)
    ck.restore()
    meet, taken = Barrier(), []
    for step in range(9):
        meet()
        bad = rank == 1 and step in (1, 5)
        if bad:
            state["w"] = np.zeros(60 << 20, "u1") if how == "room" else (lambda: 0) if how == "refused" else state["w"]
        try:
            if not (bad and how == "skipped") and ck.snapshot(step, persist=step in (1, 5)):
                taken.append(step)
        except elrun.Error:
            pass
        state["w"] = np.zeros(1 << 10, "u1")
        ck.wait()
    verdict({0, 4, 7, 8} <= set(taken), f"rank {rank}: the others are taken", taken)
    meet()
    failed = [e.step for e in ck.events() if e.kind == "failed"]
    verdict(failed == [1, 5], f"rank {rank}: an event for each that is not on disk", failed)
    meet()
    if rank == 0:
        end()


def twice():
    """Both ranks take step 5; rank 0 takes it again, with another state, and HOW=both: so does the other one; then rank 1 is
    killed.  What they go back to is of one take."""
    how = os.environ["HOW"]
    state = {"x": 0}
    ck.declare("x", state)
    step = ck.restore()
    if attempt:
        want = 2 if how == "both" else 1
        verdict(step == 5 and state["x"] == want, f"rank {rank}: both go back to take {want} of step 5", (step, state))
        Barrier()()
        if rank == 0:
            end()
        return
    meet = Barrier()
    for state["x"] in (1, 2):
        meet()
        if state["x"] == 1 or rank == 0 or how == "both":
            verdict(ck.snapshot(5) is True and ck.wait() == 5, f"rank {rank}: take {state['x']}")
    meet()
    if rank == 1:
        die()
    time.sleep(60)


def memory_only():
    """persist=True, and there is no --ckpt-dir."""
    ck.declare("w", {"w": np.zeros(1 << 10)})
    ck.restore()
    for step in range(3):
        verdict(ck.snapshot(step, persist=True) is True, f"step {step} is taken")
        ck.wait()
    failed = [(e.step, e.text) for e in ck.events() if e.kind == "failed"]
    verdict(failed == [(s, "there is no --ckpt-dir") for s in range(3)], "an event for each says that it is not on disk", failed)
    end()


def reserved():
    """Rank 0 has reserved memory for more than it holds; then rank 1 needs it."""
    state = {"w": np.ones((20 if rank == 0 else 1) << 20, "u1")}
    ck.declare("w", state)
    ck.restore()
    meet = Barrier()
    state["w"] = np.ones(1 << 20, "u1")
    for step in range(3):
        meet()
        verdict(ck.snapshot(step) is True, f"rank {rank}: step {step}")
        ck.wait()
    if rank == 1:
        state["w"] = np.full(14 << 20, 7, "u1")
    for step in (3, 4):
        meet()
        verdict(ck.snapshot(step) is True, f"rank {rank}: step {step}")
        ck.wait()
    state["w"] = np.zeros(len(state["w"]), "u1")
    verdict(ck.restore() == 4 and bool((state["w"] == (7 if rank == 1 else 1)).all()), f"rank {rank}: what is kept is right")
    end()


def broken_dir():
    """The folder of the checkpoints is gone when one is to be written: an event, and wait_persist() raises."""
    state = {"w": np.zeros(1 << 20)}
    ck.declare("w", state)
    ck.restore()
    path = os.environ["CKPT_DIR"]
    verdict(ck.snapshot(0, persist=True) is True and ck.wait_persist(0) is True, "a first one is on disk")
    os.rename(path, path + ".away")
    open(path, "w").close()
    answer = ck.snapshot(1, persist=True)
    try:
        done = ck.wait_persist(1, 60)
    except elrun.Error as e:
        verdict("1" in str(e), "wait_persist() says that it is not on disk", e)
    else:
        verdict(False, "wait_persist() says that it is not on disk", done)
    verdict(any(e.kind == "failed" and e.step == 1 for e in ck.events()) or answer is not True, "an event says so")
    os.unlink(path)
    os.rename(path + ".away", path)
    end()


# --- a step to go back to ----------------------------------------------------------------------------------------------------


def kills():
    """Parts of 32 MB, 1 MB and 8 KB on as many ranks, killed together at any time."""
    state = {"n": -1, "w": np.zeros([32 << 20, 1 << 20, 8 << 10, 4 << 20][rank], "u1"), "grown": []}
    ck.declare("w", state)
    step = ck.restore()
    good = step is None or state["n"] == step and bool((state["w"] == step % 251).all()) and len(state["grown"]) == step + 1
    write(f"{attempt} restored {-1 if step is None else step} {good}")
    meet = Barrier()
    for step in range(0 if step is None else step + 1, 100000):
        meet()
        state["n"], state["w"][...] = step, step % 251
        state["grown"].append(step)
        if ck.snapshot(step):
            write(f"{attempt} taken {step}")
        if step % 8 == 3:
            pid_file(f"ready.{attempt}.{rank}")


# --- more than fits ----------------------------------------------------------------------------------------------------------


def growth():
    """An array that grows beyond --ckpt-mem=24M: the training goes on, the snapshot before stays, smaller ones are taken again."""
    state = {"w": np.zeros(1), "n": 0}
    ck.declare("big", state)
    step = ck.restore()
    if attempt == 0:
        taken, other = [], []
        for step in range(12):
            state["w"], state["n"] = np.full((step + 1) << 20, step, "u1") if step < 6 else np.full(20 << 20, step, "u1"), step
            answer = ck.snapshot(step)
            if answer is True:
                taken.append(step)
                keep(step, state)
            else:
                other.append(answer)
            verdict(ck.wait() == min(step, 5), f"wait() behind step {step}", ck.wait())
        verdict(taken == list(range(6)) and other == [False] * 6, "it is taken while it fits, then snapshot() is False", (taken, other))
        die()
    if attempt == 1:
        verdict(step == 5 and same(state, kept(5)), "the older snapshot comes back", (step, state["n"], state["w"].size))
        state["w"], state["n"] = np.full(100, 7, "u1"), 7
        verdict(ck.snapshot(7) is True and ck.wait() == 7, "a smaller one is taken")
        keep(7, state)
        state["w"] = np.full(20 << 20, 8, "u1")
        verdict(ck.snapshot(8) is False and ck.wait() == 7, "a larger one is not")
        state["w"], state["n"] = np.full(3 << 20, 9, "u1"), 9
        verdict(ck.snapshot(9) is True and ck.wait() == 9, "one behind a refusal is taken")
        keep(9, state)
        die()
    verdict(step == 9 and same(state, kept(9)), "and that one comes back", (step, state["n"], state["w"].size))
    end()


def late():
    """What cannot be saved comes into a dict after declare(): snapshot() names its path, and the one before stays."""

    class Moody:
        no = False

        def state_dict(self):
            if self.no:
                raise ValueError("not now")
            return {"n": 1}

        def load_state_dict(self, state):
            pass

    moody, state = Moody(), {"deep": {"n": 0}}
    ck.declare("things", state)
    ck.declare("moody", moody)
    step = ck.restore()
    if attempt == 0:
        ck.snapshot(0)
        ck.wait()
        keep(0, state)
        for what, bad, words in (("lambda", lambda: 0, ("things", "fn")), ("file", sys.stdout, ("things", "fn"))):
            state["deep"]["fn"] = bad
            try:
                ck.snapshot(1)
                ck.wait()
                verdict(False, f"a {what} is refused", "snapshot() took it")
            except Exception as e:
                verdict(all(w in str(e) for w in words), f"a {what} is refused by its path", f"{type(e).__name__}: {e}")
            del state["deep"]["fn"]
        moody.no = True
        try:
            ck.snapshot(1)
            ck.wait()
            verdict(False, "a state_dict() that raises", "snapshot() took it")
        except Exception as e:
            verdict("moody" in str(e) and "not now" in str(e), "a state_dict() that raises", f"{type(e).__name__}: {e}")
        die()
    if attempt == 1:
        verdict(step == 0 and same(state, kept(0)), "the snapshot before them comes back", (step, state))
        state["deep"]["n"] = 2
        verdict(ck.snapshot(2) is True and ck.wait() == 2, "and the next one is taken")
        die()
    verdict(step == 2 and state["deep"] == {"n": 2}, "it comes back", (step, state))
    end()


# --- steps -------------------------------------------------------------------------------------------------------------------


def steps():
    """What a step can be."""
    state = {"n": 0}
    ck.declare("n", state)
    ck.restore()
    for step, what in ((None, "None"), (1.5, "a fraction"), ("3", "a text"), (float("nan"), "not a number"), ([1], "a list"), (1 << 70, "too large"), (10**15, "the first without a name"), (-1, "negative")):
        for name, call in (("snapshot", lambda: ck.snapshot(step)), ("update", lambda: ck.update(step).__enter__())):
            try:
                answer = call()
            except (TypeError, ValueError, elrun.Error) as e:
                verdict("step" in str(e), f"{name}() of a step that is {what}", f"{type(e).__name__}: {e}")
            except BaseException as e:
                verdict(False, f"{name}() of a step that is {what}", f"{type(e).__name__}: {e}")
            else:
                verdict(False, f"{name}() of a step that is {what}", f"it answers {answer!r}")
    for i, (step, what) in enumerate(((np.int64(4), "int64 of numpy"), (np.uint8(5), "uint8 of numpy"), (np.array(6), "array of numpy"), (True + 6, "int"))):
        try:
            with ck.update(step):
                state["n"] = i
            verdict(ck.snapshot(step) is True and ck.wait() == 4 + i, f"a step that is an {what}", ck.wait())
        except Exception as e:
            verdict(False, f"a step that is an {what}", f"{type(e).__name__}: {e}")
    try:
        answer = ck.snapshot(8.0)
    except (TypeError, ValueError, elrun.Error) as e:
        verdict("step" in str(e), "a whole number of type float is taken, or refused", e)
    else:
        verdict(answer is True and ck.wait() == 8, "a whole number of type float is taken, or refused", answer)
    ck.consumed_samples = np.int64(5)
    try:
        verdict(ck.snapshot(9) is True and ck.wait() == 9, "consumed_samples that are an int64 of numpy")
    except Exception as e:
        verdict(False, "consumed_samples that are an int64 of numpy", f"{type(e).__name__}: {e}")
    ck.consumed_samples = 0
    verdict(ck.snapshot(10, persist=np.bool_(False)) is True and ck.wait() == 10, "persist that is a bool of numpy")
    try:
        verdict(False, "persist that is a text is refused", ck.snapshot(11, persist="no"))
    except TypeError as e:
        verdict("persist='no'" in str(e), "persist that is a text is refused", e)
    end()


# --- going back by oneself ---------------------------------------------------------------------------------------------------


def rewind():
    """The script goes back from step 5 to 2 by itself and makes another step 3: that one counts, in memory and on disk."""
    state = {"history": [], "w": np.zeros(1000)}
    ck.declare("w", state)
    step = ck.restore()
    if step is None:
        for step in range(6):
            state["history"].append(step)
            state["w"][...] = step
            ck.snapshot(step, persist=True)
            ck.wait_persist(step)
        del state["history"][3:]
        state["history"].append("again")
        state["w"][...] = 33
        verdict(ck.snapshot(3, persist=True) is True, "a lower step is taken")
        verdict(ck.wait() == 3, "wait() names it", ck.wait())
        verdict(ck.wait_persist(3) is True, "it is on disk")
        die()
    good = step == 3 and state["history"] == [0, 1, 2, "again"] and bool((state["w"] == 33).all())
    verdict(good, f"restored from {os.environ['FROM'] if attempt == 0 else 'memory'}", (step, state["history"]))
    end()


def counted():
    """How steps are counted: what is refused, what is named, what may be."""
    state = {"n": 0}
    ck.declare("state", state)
    ck.restore()
    with ck.update(1):
        try:
            with ck.update(2):
                verdict(False, "update() within update() is refused")
        except elrun.Error as e:
            verdict("update(2) within update(1)" in str(e), "update() within update() is refused", e)
        for name, call in (("snapshot(1) within update(1)", lambda: ck.snapshot(1)), ("restore() within update(1)", ck.restore)):
            try:
                verdict(False, f"{name} is refused", call())
            except elrun.Error as e:
                verdict(name in str(e), f"{name} is refused", e)
    with ck.update(2):
        state["n"] = 2
    verdict(ck.snapshot(2) is True, "and the next step is one")
    try:
        with ck.update(3):
            raise KeyError
    except KeyError:
        pass
    with ck.update(3):
        pass
    with ck.update(7):
        pass
    verdict(ck.restore() == 2, "restored")
    with ck.update(3):
        pass
    for step in (3, 1, 0) if os.environ["HOW"] == "twice" else (0, 0):
        with ck.update(step):
            state["n"] = step
    verdict(ck.snapshot(step) is True, "it is a warning only")
    end()


# --- emergency checkpoints ---------------------------------------------------------------------------------------------------


def scheduled():
    """A scheduler that is stepped within a step, or behind it; random numbers and a loader move behind it, as they may."""
    import torch
    how = os.environ["HOW"]
    weight = torch.nn.Parameter(torch.zeros(4))
    optim = torch.optim.SGD([weight], 0.1)
    sched = torch.optim.lr_scheduler.StepLR(optim, 2)
    ck.declare("optim", {"w": weight, "optim": optim, "more": [sched]})
    ck.declare("rng", elrun.Rng())
    ck.restore()
    for step in range(4):
        with ck.update(step):
            optim.step()
            if how == "within":
                sched.step()
        torch.rand(3)
        if how == "behind":
            sched.step()
        elif step == 1:
            ck.snapshot(step)
            sched.step()
            ck.restore()
    verdict(ck.snapshot(3) is True, "the training goes on")
    end()


def swap():
    """Weights of an average stand in for the model's while the job is told to end.  HOW: array, copy or data: put there as
    numpy, torch_ema and others do it; told: by ck.swapped(); over: that has ended before; raised, stays: that has ended, by an
    exception or not, and the weights are not back."""
    how = os.environ["HOW"]
    if how in ("copy", "data", "raised", "stays"):
        import torch

        net = torch.nn.Linear(500, 100)
        state = {"net": net, "ema": torch.zeros(100, 500)}
    else:
        net, state = None, {"w": np.zeros(50000), "ema": np.zeros(50000)}
    ck.declare("model", state)
    step = ck.restore()
    weights = net.weight.data.numpy() if net else state["w"]
    ema = state["ema"].numpy() if net else state["ema"]
    if step is not None:
        good = same({"w": weights, "ema": ema}, kept(step))
        verdict(good, "the checkpoint holds the weights", f"restored step {step}, the average is {'there' if same(weights, ema) else 'not there, either'}")
        write(step, "step")
        end()
        return
    for step in range(6):
        with ck.update(step):
            if net:
                with torch.no_grad():
                    net.weight.add_(1)
                    state["ema"].add_(.1)
            else:
                weights += 1
                ema += .1
        keep(step, {"w": weights, "ema": ema})
        if step == 0:
            ck.snapshot(step)
            ck.wait()

    def validate():
        mine = weights.copy()
        if how == "copy":
            net.weight.data.copy_(state["ema"])
        elif how == "data":
            net.weight.data = state["ema"].clone()
        else:
            weights[...] = ema
        if how == "raised":
            raise ValueError("the validation fails")
        if how not in ("over", "stays"):
            pid_file("ready")
            time.sleep(60)
        if how != "stays":
            weights[...] = mine

    if how in ("told", "over", "raised", "stays"):
        with contextlib.suppress(ValueError), ck.swapped():
            validate()
    else:
        validate()
    pid_file("ready")
    time.sleep(60)


def during():
    """Weights are swapped past torch's count while they are captured: in the middle of it, before HOW=ends, from then on HOW=begins;
    within ck.swapped(), HOW=told; or one of 400 tensors, before and behind it, HOW=part."""
    import torch
    how = os.environ["HOW"]
    nets = torch.nn.ModuleList(torch.nn.Linear(8, 1, bias=False) for _ in range(400))
    weights = [p.data for p in nets.parameters()]
    ck.declare("nets", nets)
    step = ck.restore()
    if step is not None:
        good = all(float(w[0, 0]) == step + 1 and bool((w == step + 1).all()) for w in weights)
        verdict(good, f"the checkpoint holds the weights of step {step}", [float(w[0, 0]) for w in weights][::40])
        write(step, "step")
        end()
        return
    for step in range(6):
        with ck.update(step), torch.no_grad():
            for p in nets.parameters():
                p.fill_(step + 1)
        if step == 0:
            ck.snapshot(step)
            ck.wait()
    seen = []

    swapped = ck.swapped()

    def beat():  # before each tensor that is copied
        seen.append(None)
        if how == "told" and len(seen) in (200, 300):
            swapped.__enter__() if len(seen) == 200 else swapped.__exit__(None, None, None)
        if len(seen) == 200 and how in ("begins", "ends"):
            for w in weights:
                w.fill_(-1 if how == "begins" else 6)

    ck._emergency._beat = beat
    for w in weights if how == "ends" else weights[24:25] if how == "part" else ():
        w.fill_(-1)
    pid_file("ready")
    time.sleep(60)


def captured():
    """The other rank is killed when the state has become much larger than that of the only snapshot."""
    state = {"n": 0, "w": np.zeros(10), "rows": []}
    ck.declare("w", state, shard_id="all")
    step = ck.restore()
    if attempt:
        verdict(step in (0, 6) and same(state, kept(step)), f"rank {rank}: what was captured, or the snapshot", (step, state["n"], state["w"].size))
        write(step, "step")
        return
    meet = Barrier()
    for step in range(8):
        if step == 7 and rank == 1:
            die()  # the other one waits between two steps
        meet()
        with ck.update(step):
            state["n"], state["w"] = step, np.full(10 + step * 200000, step)
            state["rows"].append({"step": step})
        keep(step, state)
        meet()
        if step == 0:
            ck.snapshot(0)
            ck.wait()


# --- without snapshots; a rank that does not come ------------------------------------------------------------------------------


def nothing():
    verdict(ck is None, "connect() is None", ck)
    with open("/proc/self/oom_score_adj") as f:
        mine = f.read().strip()
    verdict(mine == os.environ["OOM"], "oom_score_adj is as it was", f"{mine}, not {os.environ['OOM']}")
    end()


def absent():
    ck.declare("n", {"n": 0})
    if rank == 1:
        time.sleep(120)
    ck.restore()


ck = elrun.connect()
globals()[mode]()
