"""Who disturbs the training of twin.py; test/lib/twins.sh starts it.

twin_faults.py FOLDER FAULTS SEED ELRUN NODES RANKS STORE [ROOT...]: starts the training, NODES agents with RANKS ranks each, and
a coordinator for several.  It makes FAULTS faults, drawn from SEED, opens a gate behind each and says what it did; an agent that
has ended is started again.  STORE is none (snapshots in memory alone), shared (a ROOT for all nodes) or local (one for each)."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from twin import BETWEEN, note

DEADLINE = float(os.environ.get("E2E_DEADLINE", "120"))
KINDS = []  # (what, which trainings it is for, whether their workers stand still at a gate, whether it comes once, how)


def fault(what, where=lambda t: True, at_gate=False, once=False):
    """A function (training, rank) that gives (more words about it, whether a new attempt follows)."""
    def add(make):
        KINDS.append((what, where, at_gate, once, make))
        return make
    return add


class Training:
    def __init__(self, folder, faults, seed, elrun, nodes, ranks, store, *roots):
        self.folder, self.faults, self.elrun, self.store, self.roots = folder, int(faults), elrun, store, roots
        self.nodes, self.ranks = range(int(nodes)), range(int(nodes) * int(ranks))
        self.rng, self.damaged, self.coordinator = random.Random(int(seed)), set(), None
        self.least, self.most = -1, 1 << 60  # where the next attempt may go back to
        self.options = [f"--nproc-per-node={ranks}", "--max-restarts=200", "--restart-policy=always", "--ckpt-mem=64M"]
        if store != "none":
            self.options += [f"--ckpt-store={store}", "--ckpt-keep-last=4"]
        if len(self.nodes) == 1:
            self.options.append("--standalone")
        else:
            self.coordinate()
        self.lives, self.agents = [0 for _ in self.nodes], [None for _ in self.nodes]
        for node in self.nodes:
            self.start(node)

    def spawn(self, name, *arguments):
        with open(f"{self.folder}/err.{name}", "w") as err:
            return subprocess.Popen([self.elrun, *arguments], stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def coordinate(self):
        port = f"{self.folder}/port"
        self.coordinator = self.spawn("store", "store", "--port", "0", "--port-file", port)
        self.wait_for("a coordinator", lambda: os.path.exists(port) and read(port).strip())
        self.options += [f"--rdzv-endpoint=127.0.0.1:{read(port).decode().strip()}", "--rdzv-id=twin", f"--nnodes={len(self.nodes)}"]

    def start(self, node):
        self.lives[node] += 1
        own = [f"--node-rank={node}"] if self.coordinator else []
        if self.roots:
            own.append(f"--ckpt-dir={self.root(node)}")
        script = [f"{os.path.dirname(__file__)}/twin.py", self.folder, str(BETWEEN * self.faults + 5), str(self.faults)]
        self.agents[node] = self.spawn(f"{node}.{self.lives[node]}", *self.options, *own, *script)

    def root(self, node):
        return self.roots[node % len(self.roots)]

    def node_of(self, rank):
        return rank * len(self.nodes) // len(self.ranks)

    def end(self, node, number):
        """Where it hosts the coordinator it stays when it was asked to end, for the other nodes: then its host goes, too."""
        agent, err = self.agents[node], f"{self.folder}/err.{node}.{self.lives[node]}"
        want = -number if number == signal.SIGKILL else 128 + number
        agent.send_signal(number)
        self.wait_for("an agent's end", lambda: agent.poll() is not None or b"hosts the coordinator: it stays" in read(err))
        if agent.poll() is None:
            want = -signal.SIGKILL
            agent.kill()
        if agent.wait() != want:
            raise SystemExit(f"agent {node} ended with {agent.returncode}, not with {want}")

    def last(self, rank):
        """(attempt, step, pid) that this rank noted last; (-1, -1, 0)."""
        try:
            return tuple(map(int, read(f"{self.folder}/step.{rank}").decode().split("\n")[-2].split()))
        except (OSError, IndexError):
            return -1, -1, 0

    def reached(self):
        return min(self.last(r)[1] for r in self.ranks)

    def wait_for(self, what, test):
        limit = time.monotonic() + DEADLINE
        while not test():
            if time.monotonic() > limit:
                raise SystemExit(f"deadline passed while waiting for {what}: {[self.last(r) for r in self.ranks]}")
            time.sleep(0.005)

    def said(self):
        """How often a full disk was spoken of so far."""
        return sum(read(f"{self.folder}/{name}").count(b"No space left on device")
                   for name in os.listdir(self.folder) if name.startswith("err."))

    def send(self, number, *ranks):
        for r in ranks:
            try:
                os.kill(self.last(r)[2], number)
            except ProcessLookupError:
                pass  # as dead as it was to be

    def stored(self):
        """(step, its directories) of what every node has on disk and nobody has damaged, the highest first."""
        found = {}
        for root in self.roots:
            for name in os.listdir(root):
                path = f"{root}/{name}"
                if re.fullmatch(r"step-\d+", name) and os.path.exists(f"{path}/MANIFEST.json"):
                    found.setdefault(int(name[5:]), []).append(path)
        return [(step, paths) for step, paths in sorted(found.items(), reverse=True)
                if len(paths) == len(self.roots) and not any(os.stat(p).st_ino in self.damaged for p in paths)]

    def came_back(self):
        """Nothing that was committed is lost that need not be."""
        for rank in self.ranks:
            step = int(read(f"{self.folder}/back.{rank}").split()[-1])
            if not self.least <= step <= self.most:
                raise SystemExit(f"rank {rank} went back to step {step}, not to {self.least} to {self.most}")
        self.least, self.most = -1, 1 << 60

    def plan(self):
        """The first kinds for certain, then what chance gives."""
        kinds = [k for k in KINDS if k[1](self)]
        plan = kinds[:self.faults]
        plan += self.rng.choices([k for k in kinds if not k[3]], k=self.faults - len(plan))
        self.rng.shuffle(plan)
        early = next(i for i, kind in enumerate(plan) if kind[-1] != agent_dies)
        return [plan.pop(early), *plan]  # one that dies wants two checkpoints to be there

    def disturb(self):
        for n, (what, _, at_gate, _, make) in enumerate(self.plan()):
            point = BETWEEN * n + self.rng.randrange(BETWEEN - 1)
            if at_gate:  # both slots of each rank hold a snapshot: one alone may be lost
                self.wait_for(f"gate {n}", lambda: all(os.path.exists(f"{self.folder}/at.{n}.{r}.{self.last(r)[0]}") for r in self.ranks))
            else:
                self.wait_for(f"step {point}", lambda: self.reached() >= point)
                time.sleep(self.rng.random() * 0.02)
            before, rank = [self.last(r)[0] for r in self.ranks], self.rng.choice(self.ranks)
            more, again = make(self, rank)
            if again:
                self.wait_for(f"the attempt after {what}", lambda: all(self.last(r)[0] > before[r] for r in self.ranks))
                self.came_back()
            note(self.folder, "faults", what)
            print(f"{n}: {what}, rank {rank}, at step {point}{more}", flush=True)
            note(self.folder, f"gate.{n}", "")
        print("agents:", sum(self.lives), "end with", [a.wait(DEADLINE) for a in self.agents])

    def stop(self):
        for process in [self.coordinator, *self.agents]:
            if process:
                process.kill()
                process.wait()


def on_disk(t):
    return bool(t.roots)


def on_nodes(t):
    return len(t.nodes) > 1


@fault("agent dies", on_disk, at_gate=True)
def agent_dies(t, rank):
    """Its memory is lost with it; and one bit of what its ranks would read."""
    node = t.node_of(rank)
    wait_for_newest(t, 2)
    t.end(node, signal.SIGKILL)
    (step, paths), (t.least, _) = t.stored()[:2]
    t.most = t.least
    path = next(p for p in paths if p.startswith(t.root(node) + "/"))
    parts = json.loads(read(f"{path}/MANIFEST.json"))["parts"].values()
    name = t.rng.choice(["MANIFEST.json", *(shards[f"rank{r}"] for shards in parts for r in t.ranks if t.node_of(r) == node)])
    flip_bit(f"{path}/{name}", 0, os.stat(f"{path}/{name}").st_size, t.rng)
    t.damaged.add(os.stat(path).st_ino)
    t.start(node)
    return f", a bit of step {step} on disk is flipped, in {name}", True


@fault("coordinator dies", on_nodes, once=True)
def coordinator_dies(t, rank):
    """One of the agents takes its place, while they agree on what to go back to."""
    t.send(signal.SIGKILL, rank)
    time.sleep(t.rng.random() * 2)
    t.coordinator.kill()
    t.coordinator.wait()
    return "", True


@fault("full disk, agent ends", on_disk, at_gate=True)
def full_disk_agent_ends(t, rank):
    """The step at the gate was not wanted on disk, so it would be there as an emergency checkpoint; now it cannot."""
    node = t.node_of(rank)
    with full_disk(t, node):
        t.least = t.most = t.stored()[0][0]
        t.end(node, signal.SIGTERM)
    t.start(node)
    return "", True


@fault("full disk, kill all", on_disk, at_gate=True)
def full_disk_kill_all(t, rank):
    with full_disk(t, t.node_of(rank)):
        t.send(signal.SIGKILL, *t.ranks)
    return "", True


@fault("agent ends", on_disk)
def agent_ends(t, rank):
    node = t.node_of(rank)
    t.least = t.reached()
    t.end(node, signal.SIGTERM)
    t.start(node)
    return "", True


@fault("kill one")
def kill_one(t, rank):
    t.send(signal.SIGKILL, rank)
    return "", True


@fault("kill all")
def kill_all(t, rank):
    t.send(signal.SIGKILL, *t.ranks)
    return "", True


@fault("kill all of a node", on_nodes)
def kill_node(t, rank):
    t.send(signal.SIGKILL, *(r for r in t.ranks if t.node_of(r) == t.node_of(rank)))
    return "", True


@fault("flip", at_gate=True)
def flip(t, rank):
    """One bit of a committed slot of one rank, through its agent's own descriptor."""
    newest = []  # the later of the two slots of each rank: where the step stands in the first header
    for path in [f"/proc/{agent.pid}/fd/{fd}" for agent in t.agents for fd in os.listdir(f"/proc/{agent.pid}/fd")]:
        try:
            if "elrun-slot" not in os.readlink(path):
                continue
        except OSError:
            continue  # closed meanwhile
        with open(path, "rb") as f:
            head = f.read(65536)
            at = head.find(b'\\"step\\": \\"')
            newest.append((int(head[at + 12 : at + 32]), path))
    step, path = t.rng.choice([n for n in newest if n[0] == max(newest)[0]])
    flip_bit(path, 4096, os.stat(path).st_size // 2, t.rng)
    t.send(signal.SIGKILL, rank)
    return f", the newest snapshot was of step {step}", True


@fault("stop")
def stop(t, rank):
    t.send(signal.SIGSTOP, rank)
    time.sleep(0.3)
    t.send(signal.SIGCONT, rank)
    return "", False


@fault("stop and kill")
def stop_and_kill(t, rank):
    t.send(signal.SIGSTOP, rank)
    time.sleep(0.3)
    t.send(signal.SIGKILL, rank)
    return "", True


@fault("agent stands still")
def agent_stands_still(t, rank):
    agent = t.agents[t.node_of(rank)]
    agent.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    agent.send_signal(signal.SIGCONT)
    return "", False


def wait_for_newest(t, least):
    """What is wanted on disk before a gate is there, and so many steps in all."""
    t.wait_for("checkpoints", lambda: len(t.stored()) >= least and t.stored()[0][0] >= t.reached() - 1)


class full_disk:
    """with full_disk(...): no byte is free on the node's disk, until that was seen."""

    def __init__(self, t, node):
        self.t, self.path = t, f"{t.root(node)}/.filler"

    def __enter__(self):
        wait_for_newest(self.t, 1)
        self.before = self.t.said()
        with open(self.path, "wb", buffering=0) as f:
            try:
                while f.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def __exit__(self, *_):
        self.t.wait_for("the full disk to be seen", lambda: self.t.said() > self.before)
        os.remove(self.path)


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


training = Training(*sys.argv[1:])
try:
    training.disturb()
finally:
    training.stop()
