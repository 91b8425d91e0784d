"""Images of slots, as other people's readers see them, for snapshots_compat.sh.

snapshots_compat.py FOLDER worker|many: under elrun.  Declares every type, shape and name; the first attempt takes a snapshot,
writes each part of the slot to FOLDER/PART.RANK and dies; the second one goes back to it and compares.
snapshots_compat.py FOLDER read: outside.  What safetensors and torch's reader of Hugging Face directories find there."""
import json
import os
import signal
import sys

import numpy
import torch

folder, mode = sys.argv[1:3]
ODD = '層.🔥.é "q" \\ \u202e\x7f'
WITHOUT_UTF8 = ("__metadata__", "nul\0", "nul?", "\ud800", "?")  # and what stands in a file for such names
FLOATS = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex64 complex128"
INTEGERS = "int64 int32 int16 int8 uint8 uint16 uint32 uint64"
# What lies in the file under its own type: the others lie there as bytes, with a note, because torch's reader knows no name for them.
OWN = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 complex64".split()


def values(rank):
    """Every type; shapes without elements, of no dimension, of many; any name."""
    state = {}
    for name in FLOATS.split():
        state[name] = (torch.arange(24, dtype=torch.float32) + rank).reshape(2, 3, 4).to(getattr(torch, name))
    for name in INTEGERS.split():
        state[name] = (torch.arange(24) + rank).reshape(4, 6).to(getattr(torch, name))
    state["bool"] = torch.arange(7) % 2 == rank % 2
    state["scalar"] = torch.tensor(2.5 + rank)
    state["empty"], state["empty2"] = torch.zeros(0, 4), torch.zeros(3, 0, 2, dtype=torch.int64)
    state["transposed"] = torch.arange(12.0).reshape(3, 4).t()
    state["deep"] = torch.full((1,) * 8 + (2,), float(rank))
    state[ODD], state[""], state["a.b"] = torch.tensor([1.0, rank]), torch.tensor([3]), torch.tensor([4])
    state["numpy"] = {"f": numpy.arange(5, dtype=numpy.float32), "none": numpy.zeros((0, 3)), "one": numpy.array(7.5),
                      "bool": numpy.array([True, False]), "big": numpy.arange(3, dtype=">i4"), "text": numpy.array(["ab", "c"])}
    state["plain"] = {"text": "é" * 100, "list": [1, {"x": (2, 3)}], "none": None, "bytes": b"\0\xff"}
    return state


def flat(state, prefix=""):
    for key, value in state.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def raw(value):
    if isinstance(value, torch.Tensor):
        return value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return value.tobytes() if isinstance(value, numpy.ndarray) else repr(value).encode()


def worker():
    import elrun
    import within
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo")
    rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    state = values(rank)
    rows = distribute_tensor(torch.arange(44.0).reshape(11, 4), init_device_mesh("cpu", (2,)), [Shard(0)])
    flags = distribute_tensor(torch.arange(11) % 3 == 0, init_device_mesh("cpu", (2,)), [Shard(0)])
    want = {name: raw(value) for name, value in flat(state)}
    if attempt:
        for _, value in flat(state):
            if isinstance(value, torch.Tensor):
                value.zero_()
            elif isinstance(value, numpy.ndarray):
                value[...] = numpy.zeros_like(value)
        state["plain"].update(text="", list=[0, {"x": ()}], none=1, bytes=b"")
        rows.to_local().zero_()
        flags.to_local().zero_()
    names = {name: numpy.full(2, attempt or i + 5) for i, name in enumerate(WITHOUT_UTF8)}
    ck = elrun.connect()
    ck.declare("all", state)
    ck.declare("names", names)
    ck.declare("rows", {"rows": rows, "flags": flags}, shard_id=f"rows{rank}")
    step = ck.restore()
    if attempt == 0:
        ck.consumed_samples = 640
        ck.snapshot(7)
        ck.wait()
        for part, image in within.images(ck, 7):
            with open(f"{folder}/{part}.{rank}", "wb") as f:
                f.write(image)
        dist.barrier()
        os.kill(os.getpid(), signal.SIGKILL)
    bad = [name for name, value in flat(state) if raw(value) != want[name]]
    if not torch.equal(rows.full_tensor(), torch.arange(44.0).reshape(11, 4)):
        bad.append("rows")
    if not torch.equal(flags.to_local(), torch.arange(11)[rank * 6 : rank * 6 + 6] % 3 == 0):
        bad.append("flags")
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{step} {len(want)} wrong: {bad}, other names: {[int(a[1]) for a in names.values()]}, samples: {ck.consumed_samples}\n")


def many():
    import elrun
    import within

    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    state = {f"layer.{i}": numpy.full(3, i if attempt == 0 else 0, dtype=numpy.float32) for i in range(100000)}
    ck = elrun.connect()
    ck.declare("many", state)
    step = ck.restore()
    if attempt == 0:
        ck.snapshot(1)
        ck.wait()
        for _, image in within.images(ck, 1):
            with open(f"{folder}/many.0", "wb") as f:
                f.write(image)
        os.kill(os.getpid(), signal.SIGKILL)
    with open(f"{folder}/log.0", "a") as f:
        f.write(f"{step} {sum(int(a[0]) == i for i, a in enumerate(state.values()))}\n")


def read():
    """One line for each thing that is compared."""
    import safetensors
    import safetensors.torch
    import torch.distributed.checkpoint as dcp

    for rank in (0, 1):
        state, wrong, noted = dict(flat(values(rank))), [], 0
        with safetensors.safe_open(f"{folder}/all.{rank}", "pt") as f:
            notes = json.loads(f.metadata()["elrun"])
            names = set(f.keys())
            own_names = {n: f"r{rank:05d}/{n or chr(34) * 2}" for n in state}
            for name, value in state.items():
                if not isinstance(value, (torch.Tensor, numpy.ndarray)):
                    continue
                got = f.get_tensor(own_names[name])
                kind = str(value.dtype).replace("torch.", "")
                own = kind in OWN and not (isinstance(value, numpy.ndarray) and value.dtype.byteorder == ">")
                noted += not own
                if raw(got) != raw(value) or own and (tuple(got.shape) != tuple(value.shape) or str(got.dtype).replace("torch.", "") != kind):
                    wrong.append(name)
                if not own and notes["tensors"][own_names[name]]["dtype"] not in (kind, getattr(value.dtype, "str", "")):
                    wrong.append(f"{name}: note")
        print(f"safetensors, rank {rank}: {len(names)} tensors, {noted} as bytes, wrong: {wrong}, step {int(notes['step'])}")
    # The pieces of two ranks are one tensor to torch's reader.
    os.mkdir(f"{folder}/hf")
    for rank in (0, 1):
        os.link(f"{folder}/rows.{rank}", f"{folder}/hf/shard-0000{rank + 1}-model-00001-of-00001.safetensors")
    whole = {"rows": torch.zeros(11, 4), "flags": torch.zeros(11, 1, dtype=torch.uint8)}
    dcp.load(whole, storage_reader=dcp.HuggingFaceStorageReader(f"{folder}/hf"), no_dist=True)
    print("torch's reader, rows:", torch.equal(whole["rows"], torch.arange(44.0).reshape(11, 4)))
    print("torch's reader, flags:", torch.equal(whole["flags"][:, 0] == 1, torch.arange(11) % 3 == 0))
    os.mkdir(f"{folder}/one")
    os.link(f"{folder}/all.0", f"{folder}/one/model.safetensors")
    state = {k: v for k, v in flat(values(0)) if isinstance(v, torch.Tensor) and str(v.dtype).replace("torch.", "") in OWN}
    with safetensors.safe_open(f"{folder}/all.0", "pt") as f:
        state = {f"r00000/{k or chr(34) * 2}": v for k, v in state.items()}
    got = {k: torch.zeros_like(v) for k, v in state.items()}
    dcp.load(got, storage_reader=dcp.HuggingFaceStorageReader(f"{folder}/one"), no_dist=True)
    print(f"torch's reader, one rank: {len(got)} tensors, wrong: {[k for k in got if raw(got[k]) != raw(state[k])]}")
    with safetensors.safe_open(f"{folder}/many.0", "np") as f:
        print("many:", len(list(f.keys())), float(f.get_tensor(next(k for k in f.keys() if k.endswith("layer.99999")))[2]))


{"worker": worker, "many": many, "read": read}[mode]()
