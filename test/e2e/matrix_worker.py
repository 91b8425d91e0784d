"""One version of PyTorch, for matrix.sh: it runs with the names that all of 1.13 and later have, or asks whether they are there.

matrix_worker.py store HOST:PORT: outside of elrun.  Every method that this version's TCPStore has, against its own server and
elrun's; groups of processes; many clients; and that a client which is idle for long takes no processor.  Prints TAP.

matrix_worker.py train FOLDER: under elrun, two ranks.  Objects of many kinds are trained by DDP.  Attempt 0: a snapshot of step 2,
beside it torch.save() of the same; then rank 1 raises, and its connections close before it has ended.  Attempt 1: what restore()
has filled is compared with that file; rank 1 is killed.  Attempt 2: as attempt 1, then it trains on to the end, which is compared
with a training without elrun.  FOLDER/result gets a line for each comparison.

matrix_worker.py KIND -: under elrun, two ranks.  Rank 1 raises and ends slowly; rank 0 dies of it in between, of KIND.
"""
import copy
import datetime
import os
import signal
import socket
import sys
import time
import warnings

import torch
import torch.distributed as dist

from state_truth import differences, freeze

warnings.simplefilter("ignore")
torch.set_num_threads(1)
SNAPPED, LAST = 2, 5
VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].replace("a0", "").split(".")[:2])


# --- the store ----------------------------------------------------------------------------------------------------


def idle(store, since):
    """Processor seconds of this process in half a second, when a hello would have been due for long."""
    time.sleep(max(0, since + 11.5 - time.monotonic()))
    before = time.process_time()
    time.sleep(0.5)
    return time.process_time() - before + (store.get("idle") != b"yes")


def store(address):
    import store_api
    import store_group

    host, port = address.rsplit(":", 1)
    opened = dist.TCPStore(host, int(port), 1, is_master=False, wait_for_workers=False)  # says nothing yet
    since = time.monotonic()
    asked = dist.TCPStore(host, int(port), 1, is_master=False)
    store_api.methods(host, int(port))
    store_group.groups(host, port, 4, store_api.check)
    asked.set("idle", "yes")
    many = [dist.TCPStore(host, int(port), 1, is_master=False, wait_for_workers=False) for _ in range(100)]
    store_api.check("100 clients add", [s.add("many", 1) for s in many] == list(range(1, 101)))
    store_api.check("all are served behind that", all(s.get("many") == b"100" for s in many))
    del many
    spent = idle(asked, since)
    store_api.check("an idle client takes no processor", spent < 0.2, spent, "0")
    store_api.check("a client that had said nothing for so long is served", opened.get("idle") == b"yes")
    store_api.end()


# --- what State promises ------------------------------------------------------------------------------------------


class Norm(torch.nn.Module):
    """Its buffers are assigned anew at each step, as many do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        self.seen = self.seen + 1
        return x - self.mean


class Training:
    """Unlike in different attempts at its start, so that what restore() leaves out is seen."""

    def __init__(self, rank, attempt, ddp=True):
        torch.manual_seed(1 + 10 * attempt)
        linear = torch.nn.Linear(8, 8)
        self.net = torch.nn.Sequential(linear, Norm(), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        self.frozen = torch.nn.Linear(1, 1)
        self.frozen.requires_grad_(False)
        self.model = torch.nn.parallel.DistributedDataParallel(self.net, broadcast_buffers=False) if ddp else self.net
        self.adamw = torch.optim.AdamW(self.net.parameters(), lr=0.01)
        self.rates = torch.optim.lr_scheduler.CosineAnnealingLR(self.adamw, 10)
        self.sgd = torch.optim.SGD(self.frozen.parameters(), lr=0.1, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**attempt, growth_interval=2) if VERSION >= (2, 3) else None
        self.generator = torch.Generator()
        self.generator.manual_seed(rank + 100 * attempt)
        self.average = copy.deepcopy(self.net)
        self.progress = {"losses": [], "epoch": attempt, "best": None}
        torch.manual_seed(1000 + rank + 10 * attempt)

    def objects(self):
        found = {"net": self.net, "frozen": self.frozen, "adamw": self.adamw, "rates": self.rates, "sgd": self.sgd,
                 "average": self.average, "scaler": self.scaler, "generator": self.generator, "progress": self.progress}
        return {name: x for name, x in found.items() if x is not None}

    def step(self, step):
        if step >= 1:  # a layer is unfrozen
            self.frozen.requires_grad_(True)
        x = torch.randn(4, 8, generator=self.generator)
        y = self.frozen(self.model(x) + 0.1 * torch.randn(4, 1))
        loss = y.square().mean()
        self.adamw.zero_grad()
        self.sgd.zero_grad()
        if self.scaler:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.adamw)
            self.scaler.update()
        else:
            loss.backward()
            self.adamw.step()
        if self.frozen.weight.requires_grad:
            self.sgd.step()
        self.rates.step()
        with torch.no_grad():
            for a, b in zip(self.average.parameters(), self.net.parameters()):
                a.lerp_(b, 0.1)
        self.progress["losses"].append(loss.item())
        self.progress.update(epoch=step, best=min(self.progress["losses"]))

    def state(self):
        """What a script would save by itself."""
        found = {name: x.state_dict() if hasattr(x, "state_dict") else x for name, x in self.objects().items()}
        found["generator"] = self.generator.get_state()
        found["random"] = torch.get_rng_state()
        return copy.deepcopy(found)


def shut_connections():
    """What a tear-down does to the others: every connection ends, this process not yet."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + fd).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(fd))) as s:
                    if s.family in (socket.AF_INET, socket.AF_INET6) and s.getpeername():
                        s.shutdown(socket.SHUT_RDWR)
        except OSError:  # one that listens
            pass


def load(path):
    return torch.load(path, **({"weights_only": False} if VERSION >= (2, 0) else {}))


def train(folder):
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

    def say(name, bad):
        with open(f"{folder}/result.{rank}", "a") as f:
            f.write(f"not ok rank {rank}, {name}: {' | '.join(map(str, bad[:3]))}\n" if bad else f"ok rank {rank}, {name}\n")

    if attempt == 0:  # the same training, without elrun
        twin = Training(rank, 0)
        for step in range(LAST + 1):
            twin.step(step)
        torch.save(twin.state(), f"{folder}/end.{rank}")
    import elrun

    ours = Training(rank, attempt)
    ck = elrun.connect()
    for name, x in ours.objects().items():
        ck.declare(name, x)
    ck.declare("random", {"rng": elrun.Rng()})
    before = freeze(ours.state())
    done = ck.restore()
    if attempt:
        say(f"attempt {attempt}: the step", [done] if done != SNAPPED else [])
        want = load(f"{folder}/truth.{rank}")
        now = ours.state()
        for name in want:
            say(f"attempt {attempt}: {name} is what torch.save() has", differences(freeze(want[name]), freeze(now[name])))
    else:
        say("declare() and restore() of nothing change nothing", differences(before, freeze(ours.state())))
    if attempt == 1:
        dist.barrier()  # both have compared
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    for step in range(0 if done is None else done + 1, LAST + 1):
        if attempt == 0 and step == SNAPPED + 1:
            ours.step(step)
            dist.barrier()
            if rank == 1:
                try:
                    raise ValueError("the true cause")
                finally:
                    shut_connections()
                    time.sleep(2.5)
        if attempt == 1:
            dist.barrier()  # with who is dead
        ours.step(step)
        if step == SNAPPED:
            ck.snapshot(step)
            ck.wait()
            torch.save(ours.state(), f"{folder}/truth.{rank}")
    say("the end is that of a training without elrun", differences(freeze(load(f"{folder}/end.{rank}")), freeze(ours.state())))
    ck.close()
    dist.barrier()
    os._exit(0)  # gloo's threads may abort an interpreter that ends


# --- the first cause ----------------------------------------------------------------------------------------------

WAITS = {
    "all_reduce": lambda t: dist.all_reduce(t),
    "recv": lambda t: dist.recv(t, src=1),
    "objects": lambda t: dist.all_gather_object([None, None], 1),
    "monitored": lambda t: dist.monitored_barrier(),
    "time-out": lambda t: dist.all_reduce(t),
    "time-out-group": lambda t: dist.new_group([0, 1], timeout=datetime.timedelta(seconds=2)),
    "time-out-init": lambda t: None,
}


def fail(kind):
    rank, late = int(os.environ["RANK"]), kind.startswith("time-out")
    if kind != "time-out-init" or rank == 0:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2 if late else 60))
        dist.barrier()
    if rank == 1:
        try:
            raise ValueError("the true cause")
        finally:
            if not late:
                shut_connections()
            time.sleep(4.5 if late else 2.5)  # within the 5 s that elrun waits for who failed by itself
    WAITS[kind](torch.ones(4))


if __name__ == "__main__":
    if sys.argv[1] in WAITS:
        fail(sys.argv[1])
    else:
        {"store": store, "train": train}[sys.argv[1]](sys.argv[2])
