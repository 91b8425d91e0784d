"""Runs the cases of state_objects.py, state_modules.py and state_optims.py: many objects, each a part, in one process that
kills itself twice.

The first attempt trains a twin of every object without elrun, and keeps its readings (state_truth.freeze); then it
declares the objects, trains them for steps 0 to 2 with a snapshot of each, for step 3 without one, and kills itself with
SIGKILL.  The second attempt makes the objects with other values, restores step 2, goes on to step 5 with snapshots, and
kills itself; the third restores step 5.  Every reading is compared with the twin's: after declare(), restore() and
snapshot(), which change nothing, behind each step, and after each restore().  FOLDER/result gets one line for each case.

SCRIPT.py FOLDER [CASE...]: no CASE runs all; CASE "refused" tries what declare() must refuse.  STATE_DEVICE: where tensors are
made that no case makes elsewhere."""
import gc
import os
import pickle
import random
import signal
import sys
import threading
import traceback
import warnings
import zlib

import numpy as np

from state_truth import differences, freeze, held, replaced, torch

CASES = []
REFUSED = []
SNAPPED, BEHIND, LAST = 2, 3, 5  # steps: of the first kill, made and lost then, of the second kill


class Case:
    """make() returns whatever the case needs, change(x, step) trains it for a step.  what(x): the object that is declared,
    see(x): what is compared; x itself if they are not given.  again(): instead of make() after a restart, where a user
    would have changed the script, such as for a layer that was added.  may_refuse: declare() may say no, with a reason.
    own: the script's own variables must be filled in place, not replaced.  beside(x): what is no state, and must be the same
    before and after declare(), snapshot() and restore() of nothing."""

    def __init__(self, name, make, change, what=None, see=None, again=None, may_refuse=False, own=True, beside=None):
        self.name, self.make, self.change, self.again = name, make, change, again or make
        self.what = what or (lambda x: x)
        self.look = see
        self.may_refuse, self.own, self.beside = may_refuse, own, beside or (lambda x: None)
        self.bad = []
        self.refused = ""
        self.x = self.it = None

    def fail(self, when, lines):
        self.bad += [f"{when}: {line}" for line in lines]

    def reseed(self, salt):
        seed = zlib.crc32(f"{self.name} {salt}".encode())
        random.seed(seed)
        np.random.seed(seed)
        if torch is not None:
            torch.manual_seed(seed)

    def build(self, attempt):
        self.reseed(f"made in attempt {attempt}")
        self.x = (self.again if attempt else self.make)()
        self.it = self.what(self.x)

    def see(self):
        return self.look(self.x) if self.look else self.it

    def held(self):
        """What the script's variables name; not what see() has just made."""
        return {path: x for path, x in held(self.see()).items() if path or not self.look}

    def step(self, step):
        self.reseed(f"step {step}")
        self.change(self.x, step)

    def compare(self, when, want):
        if not self.refused:
            self.fail(when, differences(want, freeze(self.see())))

    def all(self):
        return {"state": freeze(self.see()), "beside": freeze(self.beside(self.x))}

    def untouched(self, when, before):
        now = self.all()
        self.fail(f"{when} has changed it", differences(before["state"], now["state"]))
        self.fail(f"{when} has changed what is beside it", differences(before["beside"], now["beside"]))


def case(name, make, change, **more):
    assert all(name != c.name for c in CASES), name
    CASES.append(Case(name, make, change, **more))


def refused(name, make, words):
    """declare() must say no, and its text must match `words` and name the part."""
    REFUSED.append((name, make, words))


# --- the surroundings: what a training has beside its objects ---------------------------------------------------------


def surroundings():
    found = {
        "random": random.getstate(), "numpy": freeze(np.random.get_state(legacy=False)), "cwd": os.getcwd(),
        "environ": dict(os.environ), "signals": {s: signal.getsignal(s) for s in (2, 10, 12, 14, 15, 17)},
        "wakeup": _wakeup(), "warnings": list(warnings.filters), "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "switch": sys.getswitchinterval(), "recursion": sys.getrecursionlimit(), "umask": _umask(), "path": list(sys.path),
    }
    if torch is not None:
        found["torch"] = torch.get_rng_state().numpy().tobytes()
        found["flags"] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
                          torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(),
                          torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu"))
        if torch.cuda.is_available():
            found["cuda"] = (torch.cuda.get_rng_state().numpy().tobytes(), torch.cuda.current_device(), torch.cuda.current_stream())
    return found


def _wakeup():
    old = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(old)
    return old


def _umask():
    old = os.umask(0o22)
    os.umask(old)
    return old


def _same_surroundings(before, when, bad):
    now = surroundings()
    bad += [f"{when}: {key} has changed" for key in before if before[key] != now[key]]


# --- the three attempts ---------------------------------------------------------------------------------------------------


class Run:
    def __init__(self, folder, cases, ck, error):
        self.folder, self.cases, self.ck, self.error = folder, cases, ck, error
        self.attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        self.around = []  # what is wrong and belongs to no case
        self.truth = {}

    def say(self, ok, name, lines=()):
        with open(f"{self.folder}/result", "a") as f:
            text = " | ".join(str(line).replace("\n", " ") for line in list(lines)[:4])
            f.write(f"ok {name}\n" if ok else f"not ok {name}: {text}\n")

    def guard(self, c, when, call, *args):
        """A case that fails by itself fails alone."""
        try:
            return call(*args)
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            c.fail(when, [f"{type(e).__name__}: {e} ({os.path.basename(where.filename)}:{where.lineno})"])
            return None

    def read(self):
        return {c.name: self.guard(c, "reading", lambda c=c: freeze(c.see())) for c in self.cases}

    def all(self):
        return {c.name: self.guard(c, "reading", c.all) for c in self.cases}

    def train(self, step):
        for c in self.cases:
            self.guard(c, f"step {step}", c.step, step)

    def check(self, when, step):
        for c in self.cases:
            self.guard(c, when, c.compare, when, self.truth[step][c.name])

    def build(self):
        for c in self.cases:
            self.guard(c, "making it", c.build, self.attempt)

    def declare(self):
        for c in self.cases:
            before, beside = self.guard(c, "reading", c.all), surroundings()
            try:
                self.ck.declare(c.name, c.it)
            except (TypeError, ValueError, self.error) as e:
                c.refused = f"{type(e).__name__}: {e}"
                if not c.may_refuse:
                    c.fail("declare()", [c.refused])
                elif c.name not in str(e):
                    c.fail("declare()", [f"does not name the part: {c.refused}"])
            except Exception as e:
                c.refused = "crashed"
                self.guard(c, "declare()", _raise, e)
            self.guard(c, "after declare()", c.untouched, "declare()", before)
            _same_surroundings(beside, f"declare() of {c.name}", self.around)

    def snapshot(self, step):
        before, beside = self.all(), surroundings()
        if not self.ck.snapshot(step):
            self.around.append(f"snapshot({step}) is not True, with --ckpt-busy=wait")
        for c in self.cases:
            self.guard(c, "after snapshot()", c.untouched, f"snapshot({step})", before[c.name])
        _same_surroundings(beside, f"snapshot({step})", self.around)

    def restore(self, want):
        before, beside = self.all(), surroundings()
        got = self.ck.restore()
        if got != want or type(got) is not type(want):
            self.around.append(f"restore() in attempt {self.attempt} returned {got!r}, not {want!r}")
        if want is None:
            for c in self.cases:
                self.guard(c, "restore()", c.untouched, "restore() of nothing", before[c.name])
        if want is None or not any(c.name == "random_numbers" for c in self.cases):
            _same_surroundings(beside, "restore()", self.around)

    def wait(self, want):
        got = self.ck.wait()
        if got != want:
            self.around.append(f"wait() returned {got!r}, not {want}")

    def refuse(self):
        """Every object that declare() must refuse; then one that it takes, to see that none of them left anything behind."""
        for name, make, words in REFUSED:
            c = Case(name, make, None)
            try:
                self.ck.declare(name, make())
            except (TypeError, ValueError, self.error) as e:
                text = str(e)
                if name not in text or not any(w in text for w in words.split("|")):
                    c.bad.append(f"the text does not name the part {name} or one of {words}: {type(e).__name__}: {text}")
            except Exception as e:
                self.guard(c, "declare()", _raise, e)
            else:
                c.bad.append("declare() took it")
            self.say(not c.bad, name, c.bad)
        last = {"n": 1}
        self.ck.declare("last", last)
        if self.ck.restore() is not None or not self.ck.snapshot(0) or self.ck.wait() != 0:
            self.around.append("behind what was refused, a dict is not kept")
        self.say(not self.around, "what comes behind them", self.around)
        self.end()

    def end(self):
        with open(f"{self.folder}/result", "a") as f:
            f.write("end\n")

    # -- attempts

    def first(self):
        self.build()
        for step in range(LAST + 1):
            self.train(step)
            self.truth[step] = self.read()
        self.build()
        self.declare()
        self.restore(None)
        for step in range(SNAPPED + 1):
            self.train(step)
            self.snapshot(step)
            self.check(f"step {step} with snapshots is not as without", step)
        self.wait(SNAPPED)
        self.train(BEHIND)
        self.check(f"step {BEHIND} is not as without", BEHIND)
        self.die()

    def go_back(self, step):
        with open(f"{self.folder}/kept", "rb") as f:
            self.truth, bad, self.around, gone = pickle.load(f)
        self.cases = [c for c in self.cases if c.name in bad]
        for c in self.cases:
            c.bad, c.refused = bad[c.name], gone[c.name]
        for c in self.cases:
            if c.refused:
                self.say(not c.bad, c.name, c.bad)
        self.cases = [c for c in self.cases if not c.refused]
        self.build()
        mine = {c.name: c.held() for c in self.cases if not c.bad}
        self.declare()
        self.restore(step)
        self.check(f"restored step {step}", step)
        for c in self.cases:
            if c.own and c.name in mine and not c.bad:
                c.fail("restored", replaced(mine[c.name], c.see()))

    def second(self):
        self.go_back(SNAPPED)
        for step in range(BEHIND, LAST + 1):
            self.train(step)
            self.check(f"step {step} after the restart", step)
            self.snapshot(step)
        self.wait(LAST)
        self.check("behind three more snapshots", LAST)
        self.die()

    def third(self):
        self.go_back(LAST)
        for c in self.cases:
            self.say(not c.bad, c.name, c.bad)
        self.say(not self.around, "surroundings", self.around)
        self.end()

    def die(self):
        bad, gone = {c.name: c.bad for c in self.cases}, {c.name: c.refused for c in self.cases}
        with open(f"{self.folder}/kept", "wb") as f:
            pickle.dump((self.truth, bad, self.around, gone), f)
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


def _raise(e):
    raise e


def main():
    import elrun

    folder, names = sys.argv[1], sys.argv[2:]
    if "STATE_DEVICE" in os.environ:
        torch.set_default_device(os.environ["STATE_DEVICE"])
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.deterministic = True
    assert names == ["refused"] or not set(names) - {c.name for c in CASES}, names
    run = Run(folder, [c for c in CASES if not names or c.name in names], elrun.connect(), elrun.Error)
    if run.attempt and not os.path.exists(f"{folder}/kept"):
        sys.exit("the first attempt has failed before its end")
    try:
        if names == ["refused"]:
            run.refuse()
        else:
            (run.first, run.second, run.third)[run.attempt]()
    except Exception as e:
        for c in run.cases:
            if c.bad:
                run.say(False, c.name, c.bad)
        run.say(False, f"attempt {run.attempt}", [f"{type(e).__name__}: {e}"])
        raise
