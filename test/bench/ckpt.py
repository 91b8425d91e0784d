"""What ckpt.sh measures inside of a training script: appends lines "WHO:KEY.METRIC VALUE" to FOLDER/samples.

ckpt.py FOLDER blocked RUNS: under elrun with snapshots, one rank.  The first attempt takes snapshots and saves; each later one
goes back, reads the same state from disk as well, and dies.
ckpt.py FOLDER sizes RUNS: under elrun with snapshots: a model, its optimizer and its counters, in the size SIZE of SIZES, on
DEVICE.  On a GPU "copy" is one of the same bytes into page-locked memory that is there.
ckpt.py FOLDER persist RUNS: under elrun with --ckpt-dir=FOLDER/disk.
ckpt.py FOLDER heal RUNS: under elrun with snapshots, or any launcher with torch.save: both ranks are killed, RUNS times; when
does the next step end?"""
import ctypes
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist

folder, mode, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
MIB = int(os.environ["MIB"])  # of state
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
now = time.monotonic


def sample(who, what, value):
    with open(f"{folder}/samples", "a") as f:
        f.write(f"{who}:{what} {value:.6g}\n")


def make(tensors, mib):
    return {f"layer.{i}": torch.full(((mib << 20) // tensors // 4,), float(i)) for i in range(tensors)}


def agent_mib():
    """What elrun's agent has beside the slots, in MiB."""
    for line in open(f"/proc/{os.getppid()}/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no RssAnon")


def drop(path):
    """Out of the page cache: a machine that starts anew has nothing in it."""
    for name in [path] if os.path.isfile(path) else [f"{path}/{n}" for n in os.listdir(path)]:
        fd = os.open(name, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def blocked():
    if "ELRUN_SOCK" not in os.environ:  # what an agent has by itself
        sample("off", "agent.mib", agent_mib())
        return
    import elrun
    import torch.distributed.checkpoint as dcp

    state = make(32, MIB)
    n = sum(t.numel() * 4 for t in state.values())
    ck = elrun.connect()
    ck.declare("state", state)
    begin = now()
    step = ck.restore()
    if attempt == 0:
        sample("elrun", "first.ms", (now() - begin) * 1e3)
        dist.init_process_group("gloo")
        warm = mmap.mmap(-1, n)
        to = ctypes.addressof(ctypes.c_char.from_buffer(warm))
        ctypes.memset(to, 1, n)
        for i in range(-2, runs):  # the first into each slot is not counted: it touches what is new
            begin, at = now(), to
            for t in state.values():
                ctypes.memmove(at, t.data_ptr(), t.numel() * 4)
                at += t.numel() * 4
            copied = now() - begin
            begin = now()
            assert ck.snapshot(i + 2)
            taken = now() - begin
            ck.wait()
            counted = now() - begin
            if i >= 0:
                sample("memcpy", "call.gb_s", n / copied / 1e9)
                sample("elrun", "call.gb_s", n / taken / 1e9)
                sample("elrun", "blocked.ms", taken * 1e3)
                sample("elrun", "counted.ms", counted * 1e3)
        for i in range(-1, runs):
            begin = now()
            torch.save(state, f"{folder}/state.pt")
            if i >= 0:
                sample("torch.save", "blocked.ms", (now() - begin) * 1e3)
            shutil.rmtree(f"{folder}/dcp", ignore_errors=True)
            begin = now()
            future = dcp.async_save(state, storage_writer=dcp.FileSystemWriter(f"{folder}/dcp"))
            if i >= 0:
                sample("async DCP", "blocked.ms", (now() - begin) * 1e3)
            future.result()
        sample("elrun", "agent.mib", agent_mib())
    else:
        assert step == runs + 1 and float(state["layer.31"][5]) == 31
        sample("elrun", "restore.ms", (now() - begin) * 1e3)
        drop(f"{folder}/state.pt")
        begin = now()
        for name, tensor in torch.load(f"{folder}/state.pt").items():
            state[name].copy_(tensor)
        sample("torch.load", "restore.ms", (now() - begin) * 1e3)
        dist.init_process_group("gloo")
        drop(f"{folder}/dcp")
        begin = now()
        dcp.load(state, storage_reader=dcp.FileSystemReader(f"{folder}/dcp"))
        sample("DCP", "restore.ms", (now() - begin) * 1e3)
    if attempt < runs:
        os.kill(os.getpid(), signal.SIGKILL)


SIZES = {"tiny": (8, 128), "many": (2000, 8), "mid": (12, 1560), "large": (40, 1640), "huge": (40, 3000)}  # layers without a bias, their width
DEVICE = os.environ.get("DEVICE", "cpu")  # of the training in `sizes`


def sizes():
    """One size of a training: what its calls cost, beside a plain copy of the same bytes and other checkpoints."""
    import elrun
    import torch.distributed.checkpoint as dcp

    size = os.environ["SIZE"]
    layers, width = SIZES[size]
    gpu = DEVICE != "cpu"
    model = torch.nn.ModuleList(torch.nn.Linear(width, width, bias=False, device=DEVICE) for _ in range(layers))
    optim = torch.optim.AdamW(model.parameters()) if size != "many" else torch.optim.SGD(model.parameters())
    state = {"model": model, "optim": optim, "loss": []}
    for param in model.parameters():
        param.grad = torch.zeros_like(param)

    def settle():
        if gpu:
            torch.cuda.synchronize()

    def copy():
        for a, b in zip(to, tensors):
            if gpu:
                a.copy_(b, non_blocking=True)
            else:
                ctypes.memmove(a.data_ptr(), b.data_ptr(), b.numel() * b.element_size())

    def timed(who, metric, call):
        settle()  # what was begun before on the device is not this call's
        begin = now()
        call()
        settle()
        sample(who, f"{size}.{metric}", (now() - begin) * 1e3)

    ck = elrun.connect()
    ck.declare("state", state)
    timed("elrun", "restore.ms", ck.restore)
    time.sleep(2)  # a script's data and first batch
    optim.step()
    tensors = [*model.parameters(), *(t for s in optim.state.values() for t in s.values() if isinstance(t, torch.Tensor))]
    to = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) if gpu else t.detach().clone() for t in tensors]
    timed("elrun", "first.ms", lambda: ck.snapshot(0))
    ck.wait()
    dist.init_process_group("gloo")

    def update(step):
        with ck.update(step):
            state["loss"].append(float(step))

    update(1)
    timed("elrun", "second_update.ms", lambda: update(2))  # the first that has an older end of a step to look at
    for i in range(2, runs + 2):
        update(2 * i)
        ck.snapshot(2 * i)  # each slot has been written once
        ck.wait()
        timed("elrun", "update.ms", lambda: update(2 * i + 1))
        timed("elrun", "snapshot.ms", lambda: ck.snapshot(2 * i + 1))
        ck.wait()
        timed("copy" if gpu else "memcpy", "snapshot.ms", copy)
        whole = {"model": model.state_dict(), "optim": optim.state_dict()}
        timed("torch.save", "snapshot.ms", lambda: torch.save({"model": model.state_dict(), "optim": optim.state_dict()}, f"{folder}/state.pt"))
        shutil.rmtree(f"{folder}/dcp", ignore_errors=True)
        futures = []
        timed("async DCP", "snapshot.ms", lambda: futures.append(dcp.async_save(whole, storage_writer=dcp.FileSystemWriter(f"{folder}/dcp"))))
        futures[0].result()


def persist():
    """Until a checkpoint is on disk, in turn with dd of as many bytes to the same one."""
    import elrun

    state = make(32, MIB)
    n = sum(t.numel() * 4 for t in state.values())
    ck = elrun.connect()
    ck.declare("state", state)
    ck.restore()
    for i in range(-1, runs):  # the first is not counted
        assert ck.snapshot(i + 1, persist=True)
        ck.wait()
        begin = now()
        while not os.path.exists(f"{folder}/disk/step-{i + 1:09d}/MANIFEST.json"):
            time.sleep(0.001)
        took = now() - begin
        begin = now()
        subprocess.run(["dd", "if=/dev/zero", f"of={folder}/disk.dd", "bs=16M", f"count={n >> 24}", "oflag=direct", "conv=fsync"],
                       check=True, stderr=subprocess.DEVNULL)
        if i >= 0:
            sample("elrun", "persist.gb_s", n / took / 1e9)
            sample("dd", "persist.gb_s", n / (now() - begin) / 1e9)


def heal():
    """Attempt 0 takes ten steps; each later one goes back, takes one, and tells how long it was since the kill."""
    who = os.environ["WHO"]
    dist.init_process_group("gloo")
    state = make(8, MIB // 8)
    path, begun = f"{folder}/heal.{who}.pt", f"{folder}/heal.{who}.killed"
    ck = None
    if "ELRUN_SOCK" in os.environ:
        import elrun

        ck = elrun.connect()
        ck.declare("state", state)
        step = ck.restore()
    elif os.path.exists(path):
        for name, tensor in torch.load(path).items():
            state[name].copy_(tensor)
    for i in range(10 if attempt == 0 else 1):
        for tensor in state.values():
            tensor.add_(1)
        dist.all_reduce(next(iter(state.values()))[:1000])
        if ck:
            while not ck.snapshot(10 * attempt + i):
                time.sleep(0.001)
    if ck:
        ck.wait()
    elif rank == 0 and attempt == 0:
        torch.save(state, path)
    dist.barrier()
    if rank == 0 and attempt > 0:
        with open(begun) as f:
            sample(who, "heal.s", now() - float(f.read()))
    pids = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(pids, torch.tensor([os.getpid()]))
    if attempt < runs and rank == 0:
        with open(begun, "w") as f:
            f.write(str(now()))
        for pid in reversed([int(p) for p in pids]):
            os.kill(pid, signal.SIGKILL)
    if attempt < runs:
        time.sleep(1000)


{"blocked": blocked, "sizes": sizes, "persist": persist, "heal": heal}[mode]()
