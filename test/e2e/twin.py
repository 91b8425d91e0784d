"""The training of twin.sh, and who disturbs it.

twin.py train FOLDER STEPS FAULTS: a worker.  Behind every sixth step it waits until FOLDER/gate.N is there, so that each fault
falls between two gates, however fast the machine is.  At its end it writes a digest of all it has to FOLDER/result.RANK.
twin.py faults FOLDER FAULTS AGENT SEED: disturbs it so often, opens a gate after each, and says what it did.
twin.py disk FOLDER FAULTS SEED ROOT ELRUN: likewise a training that it starts itself, with checkpoints in ROOT; there agents
end, too, and are started again.
twin.py nodes FOLDER FAULTS SEED ELRUN: likewise one of two agents with a rank each, and a coordinator."""
import hashlib
import os
import random
import re
import signal
import subprocess
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
    rank = dist.get_rank()
    attempt = time.monotonic_ns()  # a later one is a higher number, whoever started it
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
        while not ck.snapshot(step, persist=step % 3 == 1):
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
    limit = time.monotonic() + DEADLINE
    while not test():
        if time.monotonic() > limit:
            raise SystemExit(f"deadline passed while waiting for {what}: {[last(r) for r in (0, 1)]}")
        time.sleep(0.005)


def send(rank, number):
    try:
        os.kill(last(rank)[2], number)
    except ProcessLookupError:
        pass  # as dead as it was to be


class Memory:
    """Faults that leave the agent alone: everything comes back from its memory."""

    kinds = ["kill one", "kill all", "flip", "stop", "stop and kill"]
    at_gate = ["flip"]  # what needs workers that stand still

    def __init__(self, agent, rng):
        self.agents, self.rng = [agent], rng

    def make(self, kind, rank):
        """The fault.  (more words about it, whether a new attempt follows)"""
        if kind == "flip":
            return f", the newest snapshot was of step {self.flip_slot()}", self.kill(rank)
        if kind in ("stop", "stop and kill"):
            send(rank, signal.SIGSTOP)
            time.sleep(0.3)
            send(rank, signal.SIGCONT if kind == "stop" else signal.SIGKILL)
            return "", kind != "stop"
        return "", self.kill(*([rank] if kind == "kill one" else [rank, 1 - rank]))

    def kill(self, *ranks):
        for r in ranks:
            send(r, signal.SIGKILL)
        return True

    def flip_slot(self):
        """One bit of a committed slot of one rank, through the agent's own descriptor."""
        slots = []
        for path in [f"/proc/{agent}/fd/{fd}" for agent in self.agents for fd in os.listdir(f"/proc/{agent}/fd")]:
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
        step, path = self.rng.choice([n for n in newest if n[0] == max(newest)[0]])
        flip_bit(path, 4096, os.stat(path).st_size // 2, self.rng)
        return step

    def come_back(self):
        """What is to be seen when the next attempt has begun."""

    def stand_still(self, agent):
        os.kill(agent, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(agent, signal.SIGCONT)
        return "", False


class Nodes(Memory):
    """The same with two agents, which agree by a coordinator on what they go back to, also when that one dies meanwhile."""

    kinds = ["coordinator dies", *Memory.kinds, "agent stands still"]

    def __init__(self, elrun, rng):
        self.rng = rng
        port = f"{folder}/port"
        with open(f"{folder}/err.store", "w") as err:
            self.coordinator = subprocess.Popen([elrun, "store", "--port", "0", "--port-file", port], stdin=subprocess.DEVNULL,
                                                stdout=err, stderr=err)
        wait_for("a coordinator", lambda: os.path.exists(port) and read(port).strip())
        endpoint = f"127.0.0.1:{read(port).decode().strip()}"
        self.processes = []
        for node in (0, 1):
            with open(f"{folder}/err.{node}", "w") as err:
                self.processes.append(subprocess.Popen(
                    [elrun, "--nnodes=2", "--nproc-per-node=1", f"--node-rank={node}", f"--rdzv-endpoint={endpoint}", "--rdzv-id=twin",
                     "--max-restarts=200", "--restart-policy=always", "--ckpt-mem=64M", __file__, "train", folder, *length()],
                    stdin=subprocess.DEVNULL, stdout=err, stderr=err))
        self.agents = [p.pid for p in self.processes]

    def make(self, kind, rank):
        if kind == "coordinator dies":  # one of the agents takes its place, once, while they agree on what to go back to
            self.kill(rank)
            time.sleep(self.rng.random() * 2)
            self.coordinator.kill()
            self.coordinator.wait()
            return "", True
        if kind == "agent stands still":
            return self.stand_still(self.agents[rank])
        return super().make(kind, rank)

    def finish(self):
        return f"two agents, they end with {[p.wait(DEADLINE) for p in self.processes]}"


class Disk(Memory):
    """The same, and what only a disk survives: the end of the agent, with bits flipped in what it wrote, with a full disk."""

    kinds = ["agent dies", "full disk, agent ends", "agent ends", "full disk, kill all", *Memory.kinds, "agent stands still"]
    at_gate = ["flip", "agent dies", "full disk, agent ends", "full disk, kill all"]

    def __init__(self, root, elrun, rng):
        self.root, self.elrun, self.rng, self.life, self.damaged, self.least, self.most = root, elrun, rng, 0, set(), -1, 1 << 60
        self.start()

    def start(self):
        self.life += 1
        with open(f"{folder}/err.{self.life}", "w") as err:
            self.process = subprocess.Popen(
                [self.elrun, "--standalone", "--nproc-per-node=2", "--max-restarts=200", "--restart-policy=always", "--ckpt-mem=64M",
                 f"--ckpt-dir={self.root}", "--ckpt-keep-last=4", __file__, "train", folder, *length()],
                stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.agents = [self.process.pid]

    def stored(self):
        """Steps on disk that nobody has damaged, the highest first, with their directories."""
        found = []
        for name in os.listdir(self.root):
            path = f"{self.root}/{name}"
            if re.fullmatch(r"step-\d+", name) and os.path.exists(f"{path}/MANIFEST.json"):
                found.append((int(name[5:]), path))
        return [(step, path) for step, path in sorted(found, reverse=True) if os.stat(path).st_ino not in self.damaged]

    def end(self, number, status):
        self.process.send_signal(number)
        got = self.process.wait(DEADLINE)
        if got != status:
            raise SystemExit(f"elrun ended with {got}, not with {status}; see err.{self.life}")

    def make(self, kind, rank):
        if kind == "agent dies":
            wait_for("two checkpoints", lambda: len(self.stored()) >= 2)
            self.end(signal.SIGKILL, -signal.SIGKILL)
            (step, path), (before, _) = self.stored()[:2]
            name = self.rng.choice(sorted(os.listdir(path)))
            flip_bit(f"{path}/{name}", 0, os.stat(f"{path}/{name}").st_size, self.rng)
            self.damaged.add(os.stat(path).st_ino)
            self.least = self.most = before
            self.start()
            return f", a bit of step {step} on disk is flipped, in {name}", True
        if kind == "agent ends":
            self.least = min(last(0)[1], last(1)[1])
            self.end(signal.SIGTERM, 128 + signal.SIGTERM)
            self.start()
            return "", True
        if kind.startswith("full disk"):
            return self.fill_disk(kind, rank)
        if kind == "agent stands still":
            return self.stand_still(self.agents[0])
        return super().make(kind, rank)

    def fill_disk(self, kind, rank):
        """The step at the gate was not wanted on disk, so it would be there as last words; now it cannot."""
        wait_for("a checkpoint", lambda: self.stored() and self.stored()[0][0] >= last(0)[1] - 1)
        with open(f"{self.root}/.filler", "wb", buffering=0) as f:
            try:
                while f.write(bytes(4096)):
                    pass
            except OSError:
                pass
        if kind == "full disk, kill all":
            self.kill(rank, 1 - rank)
        else:
            self.least = self.most = self.stored()[0][0]
            self.end(signal.SIGTERM, 128 + signal.SIGTERM)
        wait_for("the full disk to be seen", lambda: b"No space left on device" in read(f"{folder}/err.{self.life}"))
        os.remove(f"{self.root}/.filler")
        if kind != "full disk, kill all":
            self.start()
        return "", True

    def come_back(self):
        """Nothing that was committed is lost that need not be."""
        for rank in (0, 1):
            step = int(read(f"{folder}/back.{rank}").split()[-1])
            if not self.least <= step <= self.most:
                raise SystemExit(f"rank {rank} went back to step {step}, not to {self.least} to {self.most}; see err.{self.life}")
        self.least, self.most = -1, 1 << 60

    def finish(self):
        return f"{self.life} agents, the last one ends with {self.process.wait(DEADLINE)}"


def length():
    """Of the training, as its arguments."""
    return [str(BETWEEN * faults + 5), str(faults)]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def flip_bit(path, begin, end, rng):
    with open(path, "r+b", buffering=0) as f:
        at = rng.randrange(begin, end)
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1 << rng.randrange(8)]))


def disturb(who, rng):
    plan = who.kinds[:faults] + rng.choices(who.kinds[1:], k=max(0, faults - len(who.kinds)))
    rng.shuffle(plan)
    if plan[0] == "agent dies":  # two checkpoints are to be there
        plan.append(plan.pop(0))
    for n, kind in enumerate(plan):
        point = BETWEEN * n + rng.randrange(BETWEEN - 1)
        if kind in who.at_gate:  # both slots hold a snapshot: one alone may be lost
            wait_for(f"gate {n}", lambda: all(os.path.exists(f"{folder}/at.{n}.{r}.{last(r)[0]}") for r in (0, 1)))
        else:
            wait_for(f"step {point}", lambda: min(last(0)[1], last(1)[1]) >= point)
            time.sleep(rng.random() * 0.02)
        before, rank = (last(0)[0], last(1)[0]), rng.randrange(2)
        more, again = who.make(kind, rank)
        if again:
            wait_for(f"the attempt after {kind}", lambda: last(0)[0] > before[0] and last(1)[0] > before[1])
            who.come_back()
        note("faults", kind)
        print(f"{n}: {kind}, rank {rank}, at step {point}{more}", flush=True)
        note(f"gate.{n}", "")


DEADLINE = float(os.environ.get("E2E_DEADLINE", "120"))
if sys.argv[1] == "train":
    train()
else:
    faults = int(sys.argv[3])
    if sys.argv[1] == "faults":
        chance = random.Random(int(sys.argv[5]))
        disturb(Memory(int(sys.argv[4]), chance), chance)
    else:
        chance = random.Random(int(sys.argv[4]))
        trainer = Disk(*sys.argv[5:7], chance) if sys.argv[1] == "disk" else Nodes(sys.argv[5], chance)
        disturb(trainer, chance)
        print(trainer.finish())
