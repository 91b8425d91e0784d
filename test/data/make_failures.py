#!/usr/bin/env python3
"""Makes test/data/failures anew: runs small programs that fail as real ones do, and keeps their last output.

    python3 test/data/make_failures.py [NAME…]      with PyTorch (CPU), rich and tqdm; g++; root for the memory cgroup

Each case becomes a folder: stderr (paths and the host's name made neutral), how ("exit 1", "signal 9", "signal 9 oom"
if the kernel's out-of-memory killer was seen), error.json where @record wrote one, and truth: what a person says of it
(class, follower or not, words that the verdict must hold).  The truth stands here, beside the program, and was written
down before any rule was tuned: it is never taken from what elrun says.
"""
import os, re, shutil, signal, socket, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CODE, OOM, GPU, HW = "code error", "out of memory", "out of GPU memory", "hardware suspect"
NET, OUT, HANG, UNK = "network", "killed from outside", "hang", "unknown"
CASES = {}


def case(name, truth, cause, source, **how):
    """how: follower=True; ranks=N, rank=K: N workers of one group, K's words are kept; sh=…: this command instead of
    python train.py; fault=False: without PYTHONFAULTHANDLER; memory=MiB: in a memory cgroup of that size."""
    CASES[name] = (truth, cause, source.strip("\n") + "\n", how)


GROUP = """
import os, sys, time, datetime, torch, torch.distributed as dist
def start(seconds=20):
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
    return dist.get_rank()
"""
CXX = r"""
#include <stdexcept>
#include <thread>
#include <cstdlib>
#include <cassert>
#include <new>
extern "C" void boom() { throw std::runtime_error("CUDA error: an illegal memory access was encountered"); }
extern "C" void boom_thread() { std::thread([] { throw std::out_of_range("vector::_M_range_check: __n (which is 9)"); }).join(); }
extern "C" void boom_alloc() { char *volatile p = new char[(size_t)-1 / 4]; (void)p; }
extern "C" void twice() { char *volatile p = (char *)malloc(100); free(p); free(p); }
extern "C" void check(int x) { assert(x > 0 && "batch must not be empty"); }
"""

# --- exceptions and exit codes ---
case("exception", CODE, "KeyError: 'b'", """
import os
def f(x):
    return {"a": 1}[x]
f("b")
""")
case("exit3", UNK, "exit code 3", """
import sys
print("epoch 1", file=sys.stderr)
sys.exit(3)
""")
case("exit_silent", UNK, "exit code 1", "import sys; sys.exit(True)")
case("exit_text", UNK, "data set not found: /data/x", """
raise SystemExit("data set not found: /data/x")
""")
case("argparse", CODE, "argument --lr: invalid float value: 'x'", """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float)
p.parse_args(["--lr", "x"])
""")
case("argparse_unknown", CODE, "unrecognized arguments: --local-rank=0", """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float)
p.parse_args(["--local-rank=0"])
""")
case("no_script", CODE, "No such file or directory", "", sh="$PY nowhere.py")
case("no_command", CODE, "not found", "", sh="sh -c 'trainer --lr 1'")
case("not_executable", CODE, "Permission denied", "", sh="sh -c './train.py'")
case("import_error", CODE, "ModuleNotFoundError: No module named 'torchvison'", "import torchvison")
case("import_name", CODE, "ImportError: cannot import name 'Linaer'", "from torch.nn import Linaer")
case("syntax", CODE, "SyntaxError: '(' was never closed", "def f(\n    x = 1\n")
case("indent", CODE, "IndentationError", "def f():\nprint(1)\n")
case("attribute", CODE, "AttributeError: 'Linear' object has no attribute 'wieght'", """
import torch
def main():
    print(torch.nn.Linear(2, 2).wieght)
main()
""")
case("assertion", CODE, "AssertionError: batch must divide", """
def check(n):
    assert n % 8 == 0, "batch must divide"
check(9)
""")
case("recursion", CODE, "RecursionError", "def f(n): return f(n+1)\nf(0)\n")
case("chained", CODE, "RuntimeError: cannot load checkpoint", """
def load():
    try:
        int("x")
    except ValueError:
        raise KeyError("missing layer")
def main():
    try:
        load()
    except KeyError as e:
        raise RuntimeError("cannot load checkpoint") from e
main()
""")
case("chained_memory", OOM, "RuntimeError: batch 7 failed", """
def load():
    return bytearray(1 << 62)
def main():
    try:
        load()
    except MemoryError as e:
        raise RuntimeError("batch 7 failed") from e
main()
""")
case("cache_miss", NET, "ConnectionRefusedError", """
import urllib.request
cache = {}
def get(k):
    try:
        return cache[k]
    except KeyError:
        import socket
        return socket.create_connection(("127.0.0.1", 1))
get("shard-7")
""")
case("group", UNK, "ExceptionGroup: two went wrong", """
def main():
    e = []
    for m in ("disk", "net"):
        try:
            raise OSError(m)
        except OSError as x:
            e.append(x)
    raise ExceptionGroup("two went wrong", e + [ExceptionGroup("inner", [TypeError("no shape")])])
main()
""")
case("group_memory", OOM, "ExceptionGroup: loaders", """
def main():
    e = []
    for n in (1 << 62, 1 << 61):
        try:
            bytearray(n)
        except MemoryError as x:
            e.append(x)
    raise ExceptionGroup("loaders", e)
main()
""")
case("notes", CODE, "ValueError: bad sample", """
e = ValueError("bad sample")
e.add_note("in shard 7")
e.add_note("at offset 1024: Connection reset by peer")
raise e
""")
case("not_utf8", CODE, "ValueError: file caf", """
import sys
sys.stderr.reconfigure(errors="surrogateescape")
raise ValueError("file " + b"caf\\xe9\\xff.bin".decode("utf-8", "surrogateescape") + " \\0 missing")
""")
case("multi_line", CODE, "ValueError: first line", """
raise ValueError("first line\\n\\n  Connection reset by peer\\nlast: line")
""")
case("thread", UNK, "ValueError: thread broke", """
import threading, sys
def work(): raise ValueError("thread broke")
t = threading.Thread(target=work); t.start(); t.join()
sys.exit(1)
""")
case("thread_and_main", CODE, "KeyError: 'main'", """
import threading
def work(): raise ValueError("thread broke")
t = threading.Thread(target=work); t.start(); t.join()
raise KeyError("main")
""")
case("del_ignored", CODE, "ValueError: first", """
class A:
    def __del__(self): raise KeyError("late")
def main():
    a = A()
    raise ValueError("first")
main()
""")
case("assertion_no_cuda", CODE, "Torch not compiled with CUDA enabled", "import torch\ntorch.ones(1).cuda()\n")
case("shape", CODE, "mat1 and mat2 shapes cannot be multiplied", """
import torch
m = torch.nn.Linear(3, 4)
def step():
    return m(torch.ones(2, 5))
step()
""")
case("state_dict", CODE, "Error(s) in loading state_dict for Linear", """
import torch
torch.nn.Linear(2, 3).load_state_dict({"weight": torch.ones(2, 2)})
""")
case("backward_twice", CODE, "Trying to backward through the graph a second time", """
import torch
x = torch.ones(2, requires_grad=True).exp().sum()
x.backward()
x.backward()
""")
case("runtime_other", UNK, "RuntimeError: loss is not finite at step 12", """
def check(x):
    raise RuntimeError("loss is not finite at step 12")
check(float("nan"))
""")
case("file_missing", UNK, "FileNotFoundError", "open('/data/shard-0007.tar')")
case("permission", UNK, "PermissionError", """
import os
os.setuid(65534)
open('/etc/shadow')
""")
case("disk_full", UNK, "No space left on device", """
import torch
torch.save(torch.ones(1 << 16), open("/dev/full", "wb", buffering=0))
""")
case("too_many_files", UNK, "Too many open files", """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
k = [open("/dev/null") for i in range(50)]
""")
case("checkpoint_torn", UNK, "PytorchStreamReader failed", """
import torch
torch.save({"a": torch.ones(1000)}, "c.pt")
b = open("c.pt", "rb").read()
open("c.pt", "wb").write(b[: len(b) // 2])
torch.load("c.pt")
""")
case("subprocess_failed", UNK, "CalledProcessError", """
import subprocess
subprocess.run(["sh", "-c", "echo copying >&2; exit 5"], check=True)
""")
case("record", CODE, "ValueError: bad shape (3, 4)", """
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise ValueError("bad shape (3, 4)\\nsecond line \\u00e9")
main()
""", env={"TORCHELASTIC_ERROR_FILE": "error.json"})
# --- memory ---
case("memory_error", CODE, "Unable to allocate 8.00 PiB", """
import numpy
def big():
    return numpy.zeros((1<<40,1<<10))
big()
""")
case("memory_plain", OOM, "MemoryError", "x = [0] * (1 << 60)\n")
case("torch_alloc", CODE, "DefaultCPUAllocator: can't allocate memory", """
import torch
def big():
    return torch.zeros(1<<52)
big()
""")
case("bad_alloc", OOM, "std::bad_alloc", "import ctypes\nctypes.CDLL('./boom.so').boom_alloc()\n")
case("oom_kill", OOM, "out of memory", """
import sys
print("loading", file=sys.stderr)
x = []
while True: x.append(bytearray(b"1" * (1 << 20)))
""", memory=100)
case("dataloader_oom", OOM, "DataLoader worker", """
import torch
from torch.utils.data import DataLoader, Dataset
class D(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        x = []
        while i == 7: x.append(bytearray(b"1" * (1 << 20)))
        return 1.0
def main():
    for b in DataLoader(D(), num_workers=1): pass
if __name__ == "__main__": main()
""", memory=1200)
case("caught_memory", CODE, "ValueError: batch of 4 is too small", """
import logging
logging.basicConfig(level=logging.INFO)
def step(n):
    if n > 4: raise MemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    raise ValueError("batch of 4 is too small")
n = 16
while True:
    try:
        step(n)
    except MemoryError:
        logging.info("batch of %d is too big, trying half", n, exc_info=True)
        n //= 2
""")
# --- crashes ---
case("segfault", UNK, "Segmentation fault", """
import ctypes
def crash():
    ctypes.string_at(0)
crash()
""")
case("segfault_bare", UNK, "SIGSEGV", "import ctypes\nctypes.string_at(0)\n", fault=False)
case("abort", UNK, "Aborted", """
import os
def stop():
    os.abort()
stop()
""")
case("terminate", UNK, "an illegal memory access was encountered", """
import ctypes
def call():
    ctypes.CDLL("./boom.so").boom()
call()
""")
case("terminate_bare", UNK, "an illegal memory access was encountered", "import ctypes\nctypes.CDLL('./boom.so').boom()\n", fault=False)
case("terminate_thread", UNK, "std::out_of_range", "import ctypes\nctypes.CDLL('./boom.so').boom_thread()\n")
case("double_free", UNK, "free(): double free detected in tcache 2", "import ctypes\nctypes.CDLL('./boom.so').twice()\n")
case("assert_c", UNK, "Assertion `x > 0", "import ctypes\nctypes.CDLL('./boom.so').check(0)\n")
# --- from outside ---
case("interrupt", OUT, "KeyboardInterrupt", """
import os, signal
def train():
    os.kill(os.getpid(), signal.SIGINT)
    return 1
train()
""")
case("terminated", OUT, "SIGTERM", """
import os, signal, sys
print("ERROR: no checkpoint found, starting anew", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
""")
case("killed", OUT, "SIGKILL", "import os\nos.kill(os.getpid(), 9)\n")
case("sigterm_handler", OUT, "exit code 143", """
import os, signal, sys
def stop(*a):
    print("caught SIGTERM, checkpoint saved", file=sys.stderr)
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
os.kill(os.getpid(), signal.SIGTERM)
""")
# --- helpers: data loaders, pools, threads ---
LOADER = """
import os, signal, time
from torch.utils.data import DataLoader, Dataset
class D(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        if i == 7: %s
        return 1.0
def main():
    for b in DataLoader(D(), num_workers=2%s): pass
if __name__ == "__main__": main()
"""
case("dataloader_exception", CODE, "ValueError: sample 7 is broken", LOADER % ('raise ValueError("sample 7 is broken")', ""))
case("dataloader_killed", UNK, "DataLoader", LOADER % ("os.kill(os.getpid(), 9)", ""))
# The same by chance of timing: the loader died while it handed over a batch.
case("dataloader_reset", UNK, "ConnectionResetError", LOADER % ("os.kill(os.getpid(), 9)", ""))
case("dataloader_segfault", UNK, "DataLoader worker", LOADER % ("os.kill(os.getpid(), signal.SIGSEGV)", ", batch_size=1"))
case("dataloader_bus", OOM, "Bus error", LOADER % ("os.kill(os.getpid(), signal.SIGBUS)", ", batch_size=1"))
case("dataloader_timeout", HANG, "DataLoader timed out", LOADER % ("time.sleep(60)", ", timeout=1"))
case("spawn", CODE, "ValueError: spawned broke", """
import torch.multiprocessing as mp
def work(i):
    if i == 1: raise ValueError("spawned broke")
def main(): mp.spawn(work, nprocs=2)
if __name__ == "__main__": main()
""")
case("spawn_killed", UNK, "ProcessExitedException: process 1 terminated with signal SIGKILL", """
import os, time
import torch.multiprocessing as mp
def work(i):
    if i == 1: os.kill(os.getpid(), 9)
    time.sleep(20)
def main(): mp.spawn(work, nprocs=2)
if __name__ == "__main__": main()
""")
case("process_pool", CODE, "ValueError: pool broke", """
from concurrent.futures import ProcessPoolExecutor
def work(i):
    raise ValueError("pool broke")
def main():
    with ProcessPoolExecutor(1) as p: list(p.map(work, [1]))
if __name__ == "__main__": main()
""")
case("process_pool_killed", UNK, "BrokenProcessPool", """
import os
from concurrent.futures import ProcessPoolExecutor
def work(i):
    os.kill(os.getpid(), 9)
def main():
    with ProcessPoolExecutor(1) as p: list(p.map(work, [1]))
if __name__ == "__main__": main()
""")
case("child_process", UNK, "IndexError: child broke", """
import multiprocessing, sys
def work(): raise IndexError("child broke")
if __name__ == "__main__":
    p = multiprocessing.Process(target=work); p.start(); p.join(); sys.exit(p.exitcode)
""")
case("deadlock_dump", HANG, "faulthandler's time limit", """
import faulthandler, threading
def wait():
    l = threading.Lock(); l.acquire(); l.acquire()
faulthandler.dump_traceback_later(0.5, exit=True); wait()
""")
case("deadlock_abort", UNK, "Aborted", """
import multiprocessing, os, signal, threading
def wait():
    l = multiprocessing.Lock(); l.acquire(); l.acquire()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGABRT)).start(); wait()
""")
case("deadlock_timeout", HANG, "exit code 124", """
import multiprocessing
l = multiprocessing.Lock(); l.acquire(); l.acquire()
""", sh="timeout 1 $PY train.py")
# --- the group ---
case("ddp_exception", CODE, "ValueError: bad batch", GROUP + """
def main():
    start()
    if dist.get_rank() == 1: raise ValueError("bad batch")
    dist.all_reduce(torch.ones(1))
main()
""", ranks=2, rank=1)
case("gloo_reset", NET, "Connection reset by peer", GROUP + """
def main():
    start()
    if dist.get_rank() == 1: time.sleep(1); os.kill(os.getpid(), 9)
    dist.all_reduce(torch.ones(1))
main()
""", ranks=2, rank=0, follower=True)
case("gloo_peer_left", NET, "Connection closed by peer", GROUP + """
def main():
    start()
    if dist.get_rank() == 1: time.sleep(1); sys.exit(0)
    dist.all_reduce(torch.ones(1))
main()
""", ranks=2, rank=0, follower=True)
case("gloo_reset_three", NET, "gloo", GROUP + """
def main():
    start()
    if dist.get_rank() == 2: time.sleep(1); os._exit(7)
    dist.broadcast(torch.ones(1 << 20), src=2)
main()
""", ranks=3, rank=0, follower=True)
case("gloo_timeout", HANG, "Timed out waiting 2000ms", GROUP + """
def main():
    if start(2) == 0: dist.all_reduce(torch.ones(1))
    time.sleep(6)
main()
""", ranks=2, rank=0, follower=True)
case("monitored_barrier", HANG, "failed to pass monitoredBarrier", GROUP + """
def main():
    if start() == 1: time.sleep(6)
    else: dist.monitored_barrier(timeout=datetime.timedelta(seconds=2))
main()
""", ranks=2, rank=0, follower=True)
case("store_alone", HANG, "waiting for clients", GROUP + """
def main():
    dist.TCPStore("127.0.0.1", 0, 2, True, timeout=datetime.timedelta(seconds=2))
main()
""", follower=True)
case("store_no_host", NET, "DistNetworkError", GROUP + """
def main():
    dist.TCPStore("127.0.0.1", 9, 2, False, timeout=datetime.timedelta(seconds=2))
main()
""", follower=True)
case("store_wait", HANG, "wait timeout after 1000ms", GROUP + """
def main():
    s = dist.TCPStore("127.0.0.1", 0, 1, True)
    s.wait(["step/7"], datetime.timedelta(seconds=1))
main()
""", follower=True)
case("store_gone", NET, "DistNetworkError", GROUP + """
def main():
    start()
    if dist.get_rank() == 0: time.sleep(1); os._exit(3)
    dist.distributed_c10d._get_default_store().get("nothing")
main()
""", ranks=2, rank=1, follower=True)
case("port_taken", NET, "EADDRINUSE", GROUP + """
import socket
def main():
    s = socket.socket(); s.bind(("", 0)); s.listen()
    dist.TCPStore("127.0.0.1", s.getsockname()[1], 1, True)
main()
""")
case("no_nccl", CODE, "NCCL", GROUP + """
dist.init_process_group("nccl")
""", ranks=1, rank=0)
case("reset_after_cause", CODE, "ValueError: sample 9", GROUP + """
def main():
    start()
    if dist.get_rank() == 1: time.sleep(1); os._exit(3)
    try:
        raise ValueError("sample 9 has no label")
    except ValueError:
        time.sleep(2)
        dist.barrier()
main()
""", ranks=2, rank=0)
case("unused_parameters", CODE, "Expected to have finished reduction in the prior iteration", GROUP + """
class M(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.a = torch.nn.Linear(2, 2); self.b = torch.nn.Linear(2, 2)
    def forward(self, x): return self.a(x)
def main():
    start()
    m = torch.nn.parallel.DistributedDataParallel(M())
    for i in range(2): m(torch.ones(1, 2)).sum().backward()
main()
""", ranks=2, rank=0)
# --- the network ---
case("connection_refused", NET, "ConnectionRefusedError", """
import socket
socket.create_connection(("127.0.0.1", 1))
""")
case("name_resolution", NET, "gaierror", """
import socket
socket.create_connection(("data.invalid", 443))
""")
case("url_refused", NET, "Connection refused", """
import urllib.request
urllib.request.urlopen("http://127.0.0.1:1/shard-7.tar")
""")
case("connection_reset", NET, "ConnectionResetError", """
import socket, struct
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); p = s.accept()[0]
p.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); p.close()
c.recv(1)
""")
# --- what stands around the cause ---
case("rich", CODE, "JSONDecodeError", """
from rich.traceback import install
import json
install()
def load(text):
    return json.loads(text)
def main():
    load("{broken")
main()
""")
case("tqdm", CODE, "IndexError: list index out of range", """
from tqdm import tqdm
import time
data = list(range(7))
def main():
    for i in tqdm(range(10)):
        time.sleep(0.05); data[i]
main()
""")
case("tqdm_killed", OUT, "SIGTERM", """
from tqdm import tqdm
import os, time
for i in tqdm(range(10), desc="epoch 1"):
    time.sleep(0.02)
    if i == 6: os.kill(os.getpid(), 15)
""")
case("log_then_cause", CODE, "TypeError: 'int' object is not callable", """
import logging
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
def fetch():
    try:
        raise ConnectionResetError(104, "Connection reset by peer")
    except OSError:
        logging.info("shard 7: trying again", exc_info=True)
for i in range(2): fetch()
logging.info("Error rate 0.02")
1()
""")
case("cause_then_log", CODE, "ZeroDivisionError: division by zero", """
import atexit, logging
logging.basicConfig(level=logging.INFO)
def bye():
    try:
        raise ConnectionResetError(104, "Connection reset by peer")
    except OSError:
        logging.warning("the tracker did not answer", exc_info=True)
atexit.register(bye)
1 / 0
""")
case("logged_then_exit", CODE, "KeyError: 'lr'", """
import logging, sys
def main():
    {}["lr"]
try:
    main()
except Exception:
    logging.exception("training failed")
    sys.exit(1)
""")
case("warnings_behind", CODE, "ValueError: bad batch", GROUP + """
import warnings, atexit
from multiprocessing import shared_memory
k = shared_memory.SharedMemory(create=True, size=10)
def main():
    start()
    warnings.warn("the learning rate is large")
    raise ValueError("bad batch")
main()
""", ranks=2, rank=0)
case("error_words", UNK, "exit code 3", """
import logging, sys
logging.basicConfig(level=logging.INFO)
logging.error("Error: could not read the cache, MemoryError was raised, going on")
logging.info("retrying: Connection reset by peer")
logging.info("done: CUDA out of memory was seen 0 times")
sys.exit(3)
""")
NESTED = """
import os, signal, time
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"]=="1": %s
    time.sleep(20)
main()
"""
case("nested_record", CODE, "ValueError: bad shape (3, 4)", NESTED % 'raise ValueError("bad shape (3, 4)")',
     sh="$BIN/torchrun --nproc-per-node 2 train.py")
case("nested_signal", UNK, "Segmentation fault", NESTED % "os.kill(os.getpid(), signal.SIGSEGV)",
     sh="$BIN/torchrun --nproc-per-node 2 train.py")
case("nested_plain", CODE, "NameError: name 'modle' is not defined", """
import os, time
if os.environ["RANK"] == "1": modle.train()
time.sleep(20)
""", sh="$BIN/torchrun --nproc-per-node 2 train.py")


def neutral(data, folder):
    """Paths of this machine and its name, replaced."""
    venv = os.path.dirname(os.path.dirname(sys.executable)).encode()
    for old, new in ((os.path.realpath(folder).encode(), b"/home/user"), (folder.encode(), b"/home/user"),
                     (venv, b"/home/user/venv"), (os.path.dirname(os.__file__).encode(), b"/usr/lib/python3.11"),
                     (socket.gethostname().encode(), b"node-1")):
        data = data.replace(old, new)
    for p in sys.path:  # packages that were installed elsewhere
        if p and not p.startswith(("/usr", venv.decode())) and p not in (HERE, os.path.dirname(os.__file__)):
            data = data.replace(p.encode(), b"/home/user/venv/lib/python3.11/site-packages")
    return re.sub(tempfile.gettempdir().encode() + rb"/torchelastic_\w+", b"/tmp/torchelastic_abc", data)


class Cgroup:
    """A memory cgroup (v1) and the number of out-of-memory kills in it."""

    def __init__(self, mib):
        self.path = "/sys/fs/cgroup/memory/elrun_case_%d" % os.getpid()
        os.mkdir(self.path)
        for name, value in (("limit_in_bytes", mib << 20), ("swappiness", 0)):
            with open(self.path + "/memory." + name, "w") as f:
                f.write(str(value))

    def enter(self):
        with open(self.path + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))

    def kills(self):
        return int(re.search(r"oom_kill (\d+)", open(self.path + "/memory.oom_control").read())[1])


def make(name):
    truth, cause, source, how = CASES[name]
    folder = tempfile.mkdtemp(prefix="case_")
    with open(folder + "/train.py", "w") as f:
        f.write(source)
    if "boom.so" in source:
        with open(folder + "/boom.cc", "w") as f:
            f.write(CXX)
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-pthread", "-o", folder + "/boom.so", folder + "/boom.cc"], check=True)
    env = dict(os.environ, PYTHONFAULTHANDLER="1", OMP_NUM_THREADS="1", COLUMNS="80", **how.get("env", {}))
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p and not p.startswith("/usr") and p != HERE and "site-packages" not in p)
    if not how.get("fault", True):
        del env["PYTHONFAULTHANDLER"]
    command = [sys.executable, "train.py"]
    if "sh" in how:
        command = how["sh"].replace("$PY", sys.executable).replace("$BIN", os.path.dirname(sys.executable))
        command = ["sh", "-c", "exec " + command]
    group = Cgroup(how["memory"]) if "memory" in how else None
    ranks, kept = how.get("ranks", 0), how.get("rank", 0)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    procs = []
    for rank in range(ranks or 1):
        e = dict(env, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port) if ranks else env
        err = open(folder + "/stderr", "wb") if rank == kept else subprocess.DEVNULL
        procs.append(subprocess.Popen(command, cwd=folder, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=err, preexec_fn=group.enter if group else None))
    code = procs[kept].wait(120)
    for p in procs:
        p.kill(), p.wait()
    out = os.path.join(HERE, "failures", name)
    os.makedirs(out, exist_ok=True)
    with open(folder + "/stderr", "rb") as f:
        data = neutral(f.read(), folder)
    with open(out + "/stderr", "wb") as f:
        f.write(data)
    if os.path.exists(folder + "/error.json"):
        with open(folder + "/error.json", "rb") as f, open(out + "/error.json", "wb") as g:
            g.write(neutral(f.read(), folder))
    oom = ""
    if group:
        oom = " oom" if group.kills() else ""
        os.rmdir(group.path)
    with open(out + "/how", "w") as f:
        f.write(("exit %d" % code if code > 0 else "signal %d" % -code) + oom + "\n")
    write_truth(name)
    shutil.rmtree(folder)
    print("%-22s %-12s %6d bytes" % (name, ("exit %d" if code > 0 else "signal %d") % abs(code) + oom, len(data)), flush=True)


def write_truth(name):
    truth, cause, _, how = CASES[name]
    with open(os.path.join(HERE, "failures", name, "truth"), "w") as f:
        f.write("class: %s\nfollower: %s\nsays: %s\n" % (truth, "yes" if how.get("follower") else "no", cause))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    names = sys.argv[1:] or list(CASES)
    if names == ["--truth"]:
        for n in CASES:
            write_truth(n)
    else:
        for n in names:
            make(n)
