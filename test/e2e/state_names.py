"""Names that could be one name for two, for state_names.sh: of parts, of keys, of shards, of files.

state_names.py FOLDER parts|files: the first attempt saves and kills itself, the second one must have all of it back."""
import os
import pickle
import signal
import sys

import numpy as np

import elrun

folder, mode = sys.argv[1:]
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
LONG = "iter_0000001/" + "x" * 200 + "/" + "y" * 120 + "/mp_rank_00/model_optim_rng.pt"  # its last 128 bytes are those of others
FILES = [LONG, "z" + LONG, "a/b.pt", "ключ" * 30 + ".pt", "и" + "ключ" * 30 + ".pt"]


def keys(*names):
    """Arrays of one shape under these keys, and beside them what is no tensor."""
    return {"n": 0, **{name: np.zeros(3) for name in names}}


# name, shard_id, keys: each line is called as another one, if only slashes are put between
PARTS = [
    ("a", "all", ("b/c", "c", "obj/all/a", "obj/all/q", "~obj/all/a", "b%2Fc", "__metadata__", "r00000/w", "g/w", "g/h/w", "@rank/w")),
    ("a/b", "all", ("c", "d")),
    ("a%2Fb", "all", ("c", "d")),
    ("q", "g", ("w", "h/w", "obj/g/q")),
    ("q/w", "g", ("w",)),
    ("h", "g/h", ("w",)),
    ("w", "obj", ("all/a", "a")),
    ("all", "obj", ("a",)),
    ("z", "r00000", ("w", "z/w")),
    ("mine", None, ("w", "a/b/c", "a/c", "@rank/a/c")),
    ("r00000", None, ("w", "mine/w")),
]


def fill(name, state, salt):
    for i, key in enumerate(k for k in state if k != "n"):
        state[key][...] = np.frombuffer(f"{name} {key} {salt}".encode().ljust(24)[-24:], "u1").reshape(3, 8).sum(1) + i * 1000 + salt
    state["n"] = f"{name} {salt}"


def say(ok, what, why=""):
    with open(f"{folder}/result", "a") as f:
        f.write(f"ok {what}\n" if ok else f"not ok {what}: {' '.join(str(why).split())}\n")


ck = elrun.connect()
if mode == "parts":
    state = {(name, shard): keys(*names) for name, shard, names in PARTS}
    for (name, shard), value in state.items():
        ck.declare(name, value, shard_id=shard)
    step = ck.restore()
    if attempt == 0:
        for n, ((name, shard), value) in enumerate(state.items()):
            fill(f"{name} {shard}", value, n + 1)
        assert ck.snapshot(1) and ck.wait() == 1
        with open(f"{folder}/kept", "wb") as f:
            pickle.dump(state, f)
        os.kill(os.getpid(), signal.SIGKILL)
    with open(f"{folder}/kept", "rb") as f:
        kept = pickle.load(f)
    for part, value in state.items():
        bad = [k for k in kept[part] if not np.array_equal(kept[part][k], value[k])]
        say(step == 1 and not bad and list(value) == list(kept[part]), f"part {part[0]} of {part[1]}", bad)
else:
    got = {}
    for name in FILES:
        ck.declare_file(name, lambda name=name: f"{name} has it".encode(), load=lambda data, name=name: got.update({name: data}))
    step = ck.restore()
    if attempt == 0:
        assert ck.snapshot(1) and ck.wait() == 1
        os.kill(os.getpid(), signal.SIGKILL)
    for i, name in enumerate(FILES):
        say(step == 1 and got.get(name) == f"{name} has it".encode(), f"file {i}", got.get(name))
with open(f"{folder}/result", "a") as f:
    f.write("end\n")
