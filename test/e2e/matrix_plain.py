"""The package elrun without torch, by whatever Python runs it, for matrix.sh.

matrix_plain.py FOLDER: under elrun.  Attempt 0 takes a snapshot of step 2, changes what it has and dies; attempt 1 goes back to it
and compares.  matrix_plain.py outside: without elrun connect() is None and every module of the package can be imported."""
import array
import collections
import importlib
import os
import pkgutil
import random
import signal
import sys
import time
import types

try:
    import numpy
except ImportError:  # not every interpreter has it
    numpy = None


def values(rank, step):
    """Plain objects of many kinds, which all change with the step."""
    found = {
        "dict": {"step": step, "name": "é" * step, "deep": {"a": [1, 2.5 * step, None, (True, b"\0\xff" * step)]}, 7: float("inf")},
        "list": [{"loss": 0.1 * i} for i in range(10 * (step + 1))],
        "ordered": collections.OrderedDict((str(i), i * step) for i in range(3)),
        "default": collections.defaultdict(list, {"x": [step]}),
        "bytes": {"raw": bytearray(b"x" * step), "array": array.array("d", [step, rank])},
        "space": types.SimpleNamespace(epoch=step, best=(step, rank)),
        "random": random.Random(step),
    }
    if numpy is not None:
        found["numpy"] = {"f": numpy.arange(12.0).reshape(3, 4) * step, "b": numpy.array([True, step == 1]), "n": numpy.int64(step)}
        found["drawn"] = numpy.random.default_rng(step)
    return found


def plain(x):
    """What can be compared with ==, and says its types."""
    if isinstance(x, random.Random):
        return x.getstate()
    if numpy is not None and isinstance(x, numpy.random.Generator):
        return repr(x.bit_generator.state)
    if isinstance(x, types.SimpleNamespace):
        return ("space", plain(vars(x)))
    if isinstance(x, dict):
        return (type(x).__name__, [(k, plain(v)) for k, v in x.items()])
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [plain(v) for v in x])
    return (type(x).__name__, x.tobytes() if hasattr(x, "tobytes") else x)


def under(folder):
    import elrun

    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    ck = elrun.connect()
    assert ck is not None
    state = values(rank, 2 if attempt == 0 else 1)
    for name, x in state.items():
        ck.declare(name, x)
    step = ck.restore()
    if attempt == 0:
        ck.snapshot(2)
        ck.wait()
        open(f"{folder}/taken.{rank}", "w").close()
        while not all(os.path.exists(f"{folder}/taken.{r}") for r in (0, 1)):
            time.sleep(0.01)
        state["list"].append("after the snapshot")
        os.kill(os.getpid(), signal.SIGKILL)
    want = values(rank, 2)
    bad = [name for name in want if plain(want[name]) != plain(state[name])]
    with open(f"{folder}/result.{rank}", "w") as f:
        f.write(f"rank {rank}: step {step}, {bad or 'all the same'}\n")
    ck.close()


def outside():
    import elrun

    assert elrun.connect() is None
    names = [m.name for m in pkgutil.iter_modules(elrun.__path__)]
    assert len(names) > 15, names
    for name in names:
        importlib.import_module("elrun." + name)


if __name__ == "__main__":
    outside() if sys.argv[1] == "outside" else under(sys.argv[1])
