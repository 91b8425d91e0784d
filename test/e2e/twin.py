"""The training of twin.sh, and who disturbs it.

twin.py train FOLDER STEPS FAULTS: a worker.  Behind every sixth step it waits until FOLDER/gate.N is there, so that each fault
falls between two gates, however fast the machine is.  At its end it writes a digest of all it has to FOLDER/result.RANK.
twin.py faults FOLDER FAULTS AGENT SEED: disturbs it so often, opens a gate after each, and says what it did."""
import hashlib
import os
import random
import signal
import sys
import time

BETWEEN = 6  # steps from gate to gate
folder = sys.argv[2]


def note(name, text):
    """A whole line at once: nobody reads half of one."""
    with open(f"{folder}/{name}", "a") as f:
        f.write(text + "\n")


def train():
    import torch
    import torch.distributed as dist

    import elrun

    steps, faults = int(sys.argv[3]), int(sys.argv[4])
    dist.init_process_group("gloo")
    rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.BatchNorm1d(128), torch.nn.Dropout(0.2), torch.nn.ReLU(),
                                torch.nn.Linear(128, 128).bfloat16().float(), torch.nn.Linear(128, 1))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optim = torch.optim.AdamW(ddp.parameters(), lr=1e-2, amsgrad=True)
    rates = torch.optim.lr_scheduler.OneCycleLR(optim, 0.02, total_steps=steps + 1)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 32))
    where = {"epoch": 0, "sample": 0, "losses": []}
    torch.manual_seed(100 + rank)
    ck = elrun.connect()
    ck.declare("model", ddp)
    ck.declare("train", {"optim": optim, "rates": rates, "rng": elrun.Rng(), "where": where}, blob_bytes=1 << 18)
    done = ck.restore()
    note(f"back.{rank}", f"{attempt} {done}")
    for step in range(0 if done is None else done + 1, steps):
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(where["epoch"]))
        x = data.tensors[0][order[where["sample"] : where["sample"] + 64][rank::2]]
        where["sample"] += 64
        if where["sample"] >= len(data) // 8:
            where["epoch"], where["sample"] = where["epoch"] + 1, 0
        loss = (ddp(x).squeeze(1) - x.sum(1)).square().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        rates.step()
        where["losses"] = [*where["losses"][-9:], loss.item()]
        while not ck.snapshot(step):
            time.sleep(0.001)
        if step % BETWEEN == 0:
            ck.wait()
        note(f"step.{rank}", f"{attempt} {step} {os.getpid()}")
        gate = step // BETWEEN
        while step % BETWEEN == BETWEEN - 1 and gate < faults and not os.path.exists(f"{folder}/gate.{gate}"):
            ck.wait()
            if not os.path.exists(f"{folder}/at.{gate}.{rank}.{attempt}"):
                note(f"at.{gate}.{rank}.{attempt}", "")
            time.sleep(0.005)
    digest = hashlib.sha256()
    for value in [*ddp.state_dict().values(), *(t for s in optim.state.values() for t in s.values())]:
        digest.update(torch.as_tensor(value).contiguous().numpy().tobytes())
    digest.update(repr((where, optim.param_groups[0]["lr"], torch.rand(4).tolist())).encode())
    note(f"result.{rank}", digest.hexdigest())
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # PyTorch's threads may abort in an interpreter's shutdown


def last(rank):
    """(attempt, step, pid) that this rank noted last; (-1, -1, 0)."""
    try:
        with open(f"{folder}/step.{rank}") as f:
            return tuple(map(int, f.read().split("\n")[-2].split()))
    except (OSError, IndexError):
        return -1, -1, 0


def wait_for(what, test):
    limit = time.monotonic() + float(os.environ.get("E2E_DEADLINE", "120"))
    while not test():
        if time.monotonic() > limit:
            raise SystemExit(f"deadline passed while waiting for {what}: {[last(r) for r in (0, 1)]}")
        time.sleep(0.005)


def send(rank, number):
    try:
        os.kill(last(rank)[2], number)
    except ProcessLookupError:
        pass  # as dead as it was to be


def flip(agent, rng):
    """One bit of a committed slot of one rank, through the agent's own descriptor."""
    slots = []
    for fd in os.listdir(f"/proc/{agent}/fd"):
        path = f"/proc/{agent}/fd/{fd}"
        try:
            if "elrun-slot" in os.readlink(path):
                slots.append(path)
        except OSError:
            pass
    newest = []  # the later of the two slots of each rank: where the step stands in the first header
    for path in slots:
        with open(path, "rb") as f:
            head = f.read(65536)
            at = head.find(b'\\"step\\": \\"')
            newest.append((int(head[at + 12 : at + 32]), path))
    step, path = rng.choice([n for n in newest if n[0] == max(newest)[0]])
    size = os.stat(path).st_size
    with open(path, "r+b", buffering=0) as f:
        at = rng.randrange(4096, size // 2)
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1 << rng.randrange(8)]))
    return step


def disturb():
    faults, agent, rng = int(sys.argv[3]), int(sys.argv[4]), random.Random(int(sys.argv[5]))
    kinds = ["kill one", "kill all", "flip", "stop", "stop and kill"]
    plan = kinds[:faults] + rng.choices(kinds, k=max(0, faults - len(kinds)))
    rng.shuffle(plan)
    for n, kind in enumerate(plan):
        point = BETWEEN * n + rng.randrange(BETWEEN - 1)
        if kind == "flip":  # both slots hold a snapshot: one alone may be lost
            wait_for(f"gate {n}", lambda: all(os.path.exists(f"{folder}/at.{n}.{r}.{last(r)[0]}") for r in (0, 1)))
        else:
            wait_for(f"step {point}", lambda: min(last(0)[1], last(1)[1]) >= point)
            time.sleep(rng.random() * 0.02)
        before, rank, more = last(0)[0], rng.randrange(2), ""
        if kind == "flip":
            more = f", the newest snapshot was of step {flip(agent, rng)}"
        if kind in ("stop", "stop and kill"):
            send(rank, signal.SIGSTOP)
            time.sleep(0.3)
            send(rank, signal.SIGCONT if kind == "stop" else signal.SIGKILL)
        elif kind == "kill one":
            send(rank, signal.SIGKILL)
        else:
            for r in (rank, 1 - rank):
                send(r, signal.SIGKILL)
        if kind != "stop":
            wait_for(f"the attempt after {kind}", lambda: min(last(0)[0], last(1)[0]) > before)
        note("faults", kind)
        print(f"{n}: {kind}, rank {rank}, at step {point}{more}", flush=True)
        note(f"gate.{n}", "")


train() if sys.argv[1] == "train" else disturb()
