"""From a worker's death to the summary that a person reads: three nodes on loopback with eight workers each.

    summary.py WHO PORT LAUNCHER...

Starts three agents of one job, waits until all workers are there, ends one worker of the third node by SIGSEGV and prints
"rank0 MS", the time until the agent of rank 0 has printed the line behind its summary, and "own MS", until the agent of
the worker has named the cause.  torchrun prints a summary on the node of the worker only.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time

NODES, WORKERS, LIMIT_S = 3, 8, 120
END_OF_SUMMARY = b"elrun: ended with status"  # the line right behind it


def start(launcher, folder, node):
    script = f"{folder}/worker.sh"  # a file: launchers substitute $ in arguments
    with open(script, "w") as f:
        f.write(f'echo $$ >"{folder}/pid.$RANK~" && mv "{folder}/pid.$RANK~" "{folder}/pid.$RANK"; exec sleep 1000\n')
    command = launcher + [f"--nnodes={NODES}", f"--nproc-per-node={WORKERS}", "--no-python", "sh", script]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, "NODE": str(node)})


def pids(folder):
    return {int(name[4:]): int(open(f"{folder}/{name}").read()) for name in os.listdir(folder)
            if name.startswith("pid.") and not name.endswith("~")}


def node_of(pid, agents):
    """Which agent's child (or grandchild) this worker is."""
    while pid > 1:
        pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        for node, agent in enumerate(agents):
            if agent.pid == pid:
                return node
    raise SystemExit("summary: a worker without an agent")


def main():
    who, launcher = sys.argv[1], sys.argv[2:]
    mark = b"failed: " if who == "elrun" else b"Root Cause"
    with tempfile.TemporaryDirectory() as folder:
        agents = [start(launcher, folder, node) for node in range(NODES)]
        try:
            limit = time.monotonic() + LIMIT_S
            while len(pids(folder)) < NODES * WORKERS:
                if time.monotonic() > limit or any(a.poll() is not None for a in agents):
                    raise SystemExit("summary: the workers do not start")
                time.sleep(0.05)
            time.sleep(2)
            worker = pids(folder)
            first, victim = node_of(worker[0], agents), worker[NODES * WORKERS - 1]
            own = node_of(victim, agents)
            begun = time.monotonic()
            os.kill(victim, signal.SIGSEGV)
            print_times(who, agents, first, own, begun, mark)
        finally:
            for a in agents:
                if a.poll() is None:
                    a.terminate()
            for a in agents:
                try:
                    a.wait(10)
                except subprocess.TimeoutExpired:
                    a.kill()


def print_times(who, agents, first, own, begun, mark):
    """The last line of each that holds the mark, seen before the agent ended."""
    seen, text = {}, {a.stderr.fileno(): b"" for a in agents}
    node = {a.stderr.fileno(): i for i, a in enumerate(agents)}
    # Who has named the cause has; agents that say nothing more and do not end are not waited for.
    while text and time.monotonic() < begun + (10 if own in seen else LIMIT_S) and not (own in seen and first in seen):
        for fd in select.select(list(text), [], [], 1)[0]:
            data = os.read(fd, 65536)
            if not data:
                del text[fd]
                continue
            *lines, text[fd] = (text[fd] + data).split(b"\n")
            for line in lines:
                at = node[fd]
                whole = who == "elrun" and at == first  # elsewhere the cause is one line
                wanted = END_OF_SUMMARY if whole else mark
                if wanted in line and at not in seen:
                    seen[at] = (time.monotonic() - begun) * 1000
    for name, i in (("rank0", first), ("own", own)):
        if i in seen:
            print(name, f"{seen[i]:.3f}")


main()
