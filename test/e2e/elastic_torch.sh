# Real PyTorch: DDP over gloo on three hosts; one is shot half-way.  Training goes on from the checkpoint with the others,
# and a run in which rank 0's host is shot and replaced ends with the parameters of a run without faults.
# Seen to fail: without the last two statements of rdzv_lose() of round.c (a loss is no membership, and stops nothing).
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch' 2>/dev/null || skip_all "this python3 has no torch: $PY"
net_up 3
# Nothing here is random but the start: every step's data follow from step and rank, so that what is lost is done again alike.
cat >"$T/train.py" <<'PYTHON'
import os, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
out, steps, hold = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
done = 0
if os.path.exists(out + ".pt"):
    saved = torch.load(out + ".pt", weights_only=True)
    model.load_state_dict(saved["model"])
    done = saved["done"]
net = DistributedDataParallel(model)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(done, steps):
    x = torch.randn(12, 8, generator=torch.Generator().manual_seed(step))[rank::world]
    optimizer.zero_grad()
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    if rank == 0:
        torch.save({"model": model.state_dict(), "done": step + 1}, out + ".tmp")
        os.replace(out + ".tmp", out + ".pt")
        with open(out + ".log", "a") as log:
            log.write(f"{step} {world} {os.environ['ELRUN_ROUND']} {loss.item():.6f}\n")
    while step == hold and not os.path.exists(out + ".go"):
        time.sleep(0.01)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # gloo's threads may abort an interpreter that ends
PYTHON
train() { # NAME HOST OPTIONS...: an agent that trains
    train_name=$1 train_host=$2; shift 2
    OUT=$T/$train_name.out ERR=$T/$train_name.err PREFIX="nsenter -t $(pid_of "$train_host") -n -m -u --wdns=/"
    start $JOB "$@" "$T/train.py" "$T/$run_name" 30 15
    PREFIX=
    eval "agent_$train_name=$elrun_pid"
}
export PYTHON_EXEC="$PY"
ENV=OMP_NUM_THREADS=1
steps_done() { [ "$(tail -1 "$T/$run_name.log" 2>/dev/null | cut -d' ' -f1)" = 15 ]; }
three() { # NAME: one agent on each host, until half-way
    run_name=$1
    job 2:3 --nproc-per-node=1 --rdzv-conf=last_call_timeout=60 --settle=5 --replace-wait="$2"
    for i in 1 2 3; do train "t$i" $i --node-rank=$((3 - i)); done
    ok "$1: half of the steps" wait_for steps_done
}

three plain 0
touch "$T/plain.go"
all_end "plain: status" "t1 t2 t3" 0
is "plain: each step once, with three" "$(cut -d' ' -f1,2 "$T/plain.log" | sort -u | wc -l) $(wc -l <"$T/plain.log")" "30 30"

three shot 60
kill -KILL "$(pid t3)"; status_of t3 # rank 0, and the store's host
train t3 3 --node-rank=0
touch "$T/shot.go"
all_end "rank 0's host shot and replaced: status" "t1 t2 t3" 0
is "rank 0's host shot: two rounds" "$(cut -d' ' -f3 "$T/shot.log" | sort -u | wc -l)" 2
is "rank 0's host shot: the next step follows the checkpoint" "$(cut -d' ' -f1 "$T/shot.log" | tr '\n' ' ')" "$(seq 0 29 | tr '\n' ' ')"
is "rank 0's host shot: the loss of each step is that of the plain run" "$(cut -d' ' -f4 "$T/shot.log" | sha256sum)" "$(cut -d' ' -f4 "$T/plain.log" | sha256sum)"
ok "rank 0's host shot: the parameters are those of the plain run" "$PY" -c '
import sys, torch
a, b = (torch.load(f, weights_only=True)["model"] for f in sys.argv[1:])
assert all(torch.allclose(a[k], b[k], rtol=1e-4, atol=1e-6) for k in a) # gloo adds in another order after a restart' "$T/plain.pt" "$T/shot.pt"

three fewer 0
kill -KILL "$(pid t2)"; status_of t2
touch "$T/fewer.go"
all_end "a host shot, not replaced: status" "t1 t3" 0
is "a host shot, not replaced: the rest is done by two" "$(cut -d' ' -f1,2 "$T/fewer.log" | tail -14)" "$(seq 16 29 | sed 's/$/ 2/')"
wait_for no_leftovers
is "torch: no process is left" "$(leftovers)" ""
finished
