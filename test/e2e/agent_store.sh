# The store that elrun opens for the workers of each attempt (--worker-store=agent), with real PyTorch and restarts.
# Seen to fail: with one store for all attempts (meet_open() and meet_close() of meet_io.c that keep it), without
# store_server_world() in membership_io.c ("two agents: who is missing").
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1"

# Three attempts in one run: each finds an empty store, and nobody finds the store of an attempt before.
mkdir "$T/a"
run --standalone --nproc-per-node=3 --max-restarts=2 "$HERE/agent_store.py" "$T/a" 2
is "three attempts: exit status" "$status" 0
for a in 0 1 2; do
    is "attempt $a: every rank met the others in an empty store of its own" "$(sort -u "$T/a"/seen.$a.*)" \
        "sum 6.0 stale False old False objects [0, 1, 2]"
done
is "a port of its own in each attempt" "$(sort -u "$T/a"/address.* | wc -l)" 3
is_clean "three attempts"

# A port that the user chose is the same in every attempt, and the store behind it is still a new one.
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$T/b"
run --nproc-per-node=2 --max-restarts=1 --master-port="$port" "$HERE/agent_store.py" "$T/b" 1
is "--master-port: exit status" "$status" 0
is "--master-port: the port" "$(sed 's/.* //' "$T/b"/address.* | sort -u)" "$port"
is "--master-port: empty in the second attempt" "$(cat "$T/b"/seen.1.* | sort -u)" "sum 3.0 stale False old False objects [0, 1]"

# The other way: worker rank 0 serves, on a port that elrun keeps free.
mkdir "$T/c"
ENV="$ENV TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
cat >"$T/trainer.py" <<'SCRIPT'
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1); dist.all_reduce(t)
open(f"{sys.argv[1]}/{os.environ['TORCHELASTIC_RESTART_COUNT']}.{os.environ['RANK']}", "w").write(
    f"{t.item()} {os.environ['TORCHELASTIC_USE_AGENT_STORE']}\n")
dist.barrier()
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    os._exit(3)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # gloo's threads may abort an interpreter that ends
SCRIPT
run --standalone --nproc-per-node=2 --max-restarts=1 --worker-store=trainer "$T/trainer.py" "$T/c"
is "--worker-store=trainer: exit status" "$status" 0
is "--worker-store=trainer: both attempts" "$(cat "$T/c"/* | sort | uniq -c | tr -s ' ')" " 4 2.0 False"

# Who has not come is said when the start fails.
cat >"$T/late.py" <<'SCRIPT'
import os, sys, time
if os.environ["RANK"] == "2":
    while len([f for f in os.listdir(sys.argv[1]) if f.startswith("here")]) < 2:
        time.sleep(0.01)
    time.sleep(0.5)
    sys.exit(4)
import torch.distributed as dist
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
open(f"{sys.argv[1]}/here.{os.environ['RANK']}", "w").close()
store.wait(["never"])
SCRIPT
mkdir "$T/d"
run --standalone --nproc-per-node=3 "$T/late.py" "$T/d"
is "a rank that does not come: exit status" "$status" 4
like "the key, who waits and who is missing are named" "$(cat "$ERR")" 'store.*never.*2 clients.*rank [01] .*rank [01] .*rank 2 has not come'

# The same of a round of two agents: ranks of the other node are known by the keys they set.
cat >"$T/late2.py" <<'SCRIPT'
import os, sys, time
rank = os.environ["RANK"]
if rank == "1":
    while len([f for f in os.listdir(sys.argv[1]) if f.startswith("here")]) < 3:
        time.sleep(0.01)
    time.sleep(0.5)
    sys.exit(4)
import torch.distributed as dist
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
store.set(f"default_pg/0//cpu//0/{rank}", "here")
open(f"{sys.argv[1]}/here.{rank}", "w").close()
store.wait(["default_pg/0//cpu//0/1"])
SCRIPT
mkdir "$T/e"
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
JOB="--nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=late$$"
first=$ERR
start $JOB --node-rank=0 "$T/late2.py" "$T/e"
host=$elrun_pid OUT=$T/second.out ERR=$T/second.err
start $JOB --node-rank=1 "$T/late2.py" "$T/e"
finish
is "two agents: status of the other" "$status" 4
elrun_pid=$host
finish
is "two agents: status of the store's host" "$status" 4
like "two agents: who is missing is named" "$(cat "$first")" 'default_pg/0//cpu//0/1.*3 clients.*of 4 ranks, rank 1 has not come'
is_clean "at the end"
finished
