"""The first cause, where it ends more slowly than its victims: a corpus of failures, drawn from kinds x tear-downs x what the
victims say x nodes.  As a worker it fails as it is told; as a driver (corpus SEED COUNT; one CASE...) it starts elrun, four
runs at a time, and prints "ok CASE" or "wrong CASE: whom" for each.
"""
import atexit
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

GLOO = "/pytorch/third_party/gloo/gloo/transport/tcp/"
# What victims say: type and words as the versions of PyTorch and others print them; None: they abort, 0: they log it and leave.
VICTIMS = {
    "gloo-closed-1.13": ("RuntimeError", "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:46983"),
    "gloo-reset-1.13": ("RuntimeError", "[./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:23969: Connection reset by peer"),
    "gloo-closed": ("RuntimeError", f"[{GLOO}pair.cc:553] Connection closed by peer [127.0.0.1]:27557. This is typically caused by a "
                    "remote worker crashing or exiting"),
    "gloo-read": ("RuntimeError", f"[{GLOO}pair.cc:537] Read error [127.0.0.1]:2755: Connection reset by peer"),
    "gloo-write": ("RuntimeError", f"[{GLOO}pair.cc:537] Write error [127.0.0.1]:2755: Broken pipe"),
    "gloo-wait": ("RuntimeError", f"[{GLOO}unbound_buffer.cc:81] Timed out waiting 3000ms for recv operation to complete"),
    "gloo-mesh": ("RuntimeError", f"Gloo connectFullMesh failed with [{GLOO}pair.cc:144] no error"),
    "store-recv": ("torch.distributed.DistNetworkError", "failed to recv, got 0 bytes"),
    "store-reset": ("torch.distributed.DistNetworkError", "Connection reset by peer"),
    "store-1.13": ("RuntimeError", "Connection reset by peer"),
    "store-pipe-1.13": ("RuntimeError", "Broken pipe"),
    "store-wait": ("torch.distributed.DistStoreError", "wait timeout after 300000ms, keys: /default_pg/0//cpu//0/0"),
    "store-barrier": ("RuntimeError", "Timed out initializing process group in store based barrier on rank: 1, for key: store_based_barrier_key:1"),
    "nccl-remote": ("torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a "
                    "network error, NCCL version 2.18.1\nncclRemoteError: A call failed possibly due to a network error or a remote process "
                    "exiting prematurely."),
    "reset-error": ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
    "pipe-error": ("BrokenPipeError", "[Errno 32] Broken pipe"),
    "refused-error": ("ConnectionRefusedError", "[Errno 111] Connection refused"),
    "aborted-error": ("ConnectionAbortedError", "[Errno 103] Software caused connection abort"),
    "monitored": ("RuntimeError", "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 300000 ms"),
    "tensorpipe": ("RuntimeError", "RPCErr:2:eof (this error originated at tensorpipe/transport/shm/connection_impl.cc:259)"),
    "horovod": ("horovod.common.exceptions.HorovodInternalError", "[/tmp/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:1"),
    "ucc": ("RuntimeError", "[/opt/pytorch/torch/csrc/distributed/c10d/ProcessGroupUCC.cpp:482] [Rank 0][ProcessGroupUCC][COLL_POST]"
            "Connection reset by remote peer"),
    "mpi": (0, "[node1:123] *** An error occurred in MPI_Allreduce\n[node1:123] *** MPI_ERR_PROC_FAILED: Process Failure"),
    "horovod-down": ("RuntimeError", "Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to "
                     "allreduce a tensor after one of the ranks finished execution."),
    "grpc": ("RuntimeError", "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = \"Socket closed\""),
    "cleanup": ("RuntimeError", f"[{GLOO}pair.cc:553] Connection closed by peer [127.0.0.1]:27558"),
    # Raised again "from None", by the program: in another type, or shortened.
    "again-type": ("ValueError", f"training step 6 failed: [{GLOO}pair.cc:553] Connection closed by peer [127.0.0.1]:27558"),
    "again-short": ("RuntimeError", "training step 6 failed: lost a rank (Connection reset by peer)"),
    "watchdog": (None, "[rank0]:[E1126 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
                 "WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1) ran for 600000 milliseconds before timing out."),
    "logged": (0, f"ERROR train: all_reduce failed: [{GLOO}pair.cc:553] Connection closed by peer [127.0.0.1]:1"),
}
CAUSES = ["value", "key", "runtime", "assert", "own", "chained", "group", "exit", "exit-word", "os-exit", "segv", "abort", "kill"]
RAISES = CAUSES[: CAUSES.index("exit")]
SUDDEN = CAUSES[CAUSES.index("os-exit") :]
TEARDOWNS = ["none", "finally", "late", "atexit", "thread"]
SLOW = {"finally": 1.2, "late": 2.0, "atexit": 0.7}


class Own(Exception):
    pass


def victim_error(name, words):
    module, _, last = name.rpartition(".")
    known = getattr(__import__("builtins"), name, None)
    return (known or type(last, (RuntimeError,), {"__module__": module}))(words)


def cause(kind):
    if kind == "value":
        raise ValueError("the true cause")
    if kind == "key":
        {}["the true cause"]
    if kind == "runtime":
        raise RuntimeError("the true cause")
    if kind == "assert":
        assert False, "the true cause"
    if kind == "own":
        raise Own("the true cause")
    if kind == "exit":
        sys.exit(3)
    if kind == "exit-word":
        sys.exit("the true cause")
    if kind == "os-exit":
        os._exit(7)
    if kind in SUDDEN:
        os.kill(os.getpid(), {"segv": signal.SIGSEGV, "abort": signal.SIGABRT, "kill": signal.SIGKILL}[kind])
    if kind == "group" and sys.version_info >= (3, 11):
        raise ExceptionGroup("several", [ValueError("the true cause"), OSError("beside it")])  # noqa: F821
    if kind == "reset":  # its own connection, to a service
        raise ConnectionResetError(104, "Connection reset by peer")
    if kind == "stay":  # it has closed its connections, and stands
        time.sleep(60)
    try:
        {}["x"]
    except KeyError as e:
        raise ValueError("the true cause") from e


def victim_dies(flag, rank, victim):
    until = time.monotonic() + 60
    while not os.path.exists(flag) and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(0.01 * rank)
    name, words = VICTIMS[victim]
    if name:
        try:
            raise victim_error(name, words)
        finally:
            if victim == "cleanup":
                {}["wandb_run"]
    print(words, file=sys.stderr, flush=True)
    if name is None:
        os.abort()
    sys.exit(1)


def worker(flag, bad, kind, teardown, victim):
    """The bad rank makes the flag as its connections go, then tears down; the others die of it."""
    rank = int(os.environ["RANK"])
    if rank != bad:
        victim_dies(flag, rank, victim)

    def gone():
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))

    if teardown == "none":
        gone()
    if teardown == "atexit":
        atexit.register(lambda: (gone(), time.sleep(SLOW["atexit"])))
    if teardown == "thread":  # it raises, prints that, and cannot end: the thread is no daemon
        threading.Thread(target=lambda: (time.sleep(0.3), gone(), time.sleep(30))).start()
    try:
        time.sleep(0.05)
        if kind not in SUDDEN:
            cause(kind)
    finally:
        if teardown in SLOW and teardown != "atexit":
            gone()
            time.sleep(SLOW[teardown])
    cause(kind)


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def draw(rng):
    kind, teardown = rng.choice(CAUSES), rng.choice(TEARDOWNS)
    if teardown in ("thread", "atexit") and kind not in RAISES:
        teardown = "late"  # who leaves so has said nothing before its threads are done, or runs no such thing
    nodes, workers = rng.choice([(1, 2), (1, 3), (1, 4), (2, 1), (2, 2)])
    return kind, teardown, rng.choice(sorted(VICTIMS)), nodes, workers, rng.randrange(nodes * workers)


def run(case):
    """The ranks that the last lines of the nodes name, and all that was printed."""
    kind, teardown, victim, nodes, workers, bad = case
    with tempfile.TemporaryDirectory() as folder:
        flag = os.path.join(folder, "flag")
        meet = ["--standalone"] if nodes == 1 else [f"--nnodes={nodes}", f"--rdzv-endpoint=127.0.0.1:{port()}", "--rdzv-id=cause"]
        started = [subprocess.Popen([os.environ["ELRUN"], *meet, *([] if nodes == 1 else [f"--node-rank={i}"]), f"--nproc-per-node={workers}",
                                     os.path.abspath(__file__), "worker", flag, str(bad), kind, teardown, victim],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env={**os.environ, "PYTHON_EXEC": sys.executable}) for i in range(nodes)]
        said = [p.communicate(timeout=100)[0] for p in started]
    named = {int(n) for text in said for n in re.findall(r"^elrun: (?:.*?: )?rank (\d+) [^:]*failed: ", text, re.M)[-1:]}
    return named, "".join(said)


def judge(case):
    named, text = run(case)
    tag = " ".join(map(str, case))
    return f"ok {tag}" if named == {case[5]} else f"wrong {tag}: named {sorted(named)}\n" + "".join(f"#  {line}\n" for line in text.splitlines()[-60:])


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "worker":
        worker(rest[0], int(rest[1]), *rest[2:])
    elif what == "one":
        print(judge((*rest[:3], *map(int, rest[3:]))))
    else:
        draws = random.Random(int(rest[0]))
        with ThreadPoolExecutor(4) as pool:
            for line in pool.map(judge, [draw(draws) for _ in range(int(rest[1]))]):
                print(line.rstrip(), flush=True)
