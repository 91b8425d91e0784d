# Ranks that declare a part with the same shard_id are alike in its parameters: where they are not, one warning and one event name
# part, ranks and tensors, on one node and over two.  What may differ (statistics, counters, random numbers) is not named, and a part
# of each rank's own neither.
# Seen to fail: a build whose keeper_compare_next() does nothing, one that lists all tensors in image.py (statistics are named), one
# whose saving_take_alike() returns at once.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}
cat >"$T/train.py" <<'PY'
import os, sys, time
import torch
from torch import nn
import elrun
folder, wrong = sys.argv[1:]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
mine, extra = nn.Linear(2, 2), nn.Linear(3, 3)
optim = torch.optim.AdamW(net.parameters())
torch.manual_seed(rank)
if rank == world - 1 and wrong == "one":
    net[2].bias.data.add_(1)
if wrong == "two":
    nn.init.normal_(extra.weight)
    nn.init.normal_(extra.bias)
    nn.init.normal_(net[0].weight)
nn.init.normal_(mine.weight)  # declared without shard_id: its own
ck = elrun.connect()
ck.declare("model", {"net": net, "optim": optim, "rng": elrun.Rng(), "seen": torch.zeros(3) + rank}, shard_id="all")
ck.declare("extra", extra, shard_id="all")
ck.declare("mine", mine)
ck.restore()
grads = [torch.ones_like(p) for p in net.parameters()]
for step in range(5, 9):
    net(torch.randn(16, 8))  # statistics move, each rank's own way
    for p, g in zip(net.parameters(), grads):
        p.grad = g
    optim.step()
    assert ck.snapshot(step)
    open(f"{folder}/{step}.{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/{step}.{r}") for r in range(world)):
        time.sleep(0.01)
PY
ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1"
differs() { "$PY" -c '
import json, sys
for line in open(sys.argv[1]):
    x = json.loads(line)
    if x["event"] == "replicas_differ":
        print(x["part"], x["shard_id"], x["rank"], x["other_rank"], x["tensors"], x["text"])' "$1" | sort; }

one() { # WRONG
    D=$T/one.$1; mkdir "$D"
    run --standalone --nproc-per-node=2 --ckpt-dir="$D/ckpt" --ckpt-busy=wait --events="$D/events" "$T/train.py" "$D" "$1"
    is "$1, one node: exit status" "$status" 0 || note "$(tail -5 "$ERR")"
}
one none
unlike "ranks are alike: nothing is said" "$(cat "$ERR")" differ
is "and there is no event" "$(differs "$D/events")" ""
one one
is "one tensor: it is said once" "$(grep -c differ "$ERR")" 1
like "which part, ranks, tensor, and what to do" "$(cat "$ERR")" \
    'warning: part "model" \(shard_id="all"\) differs between rank 0 and rank 1 at step 5, in 1 tensor: "net.2.bias": .*without shard_id'
is "an event says the same" "$(differs "$D/events")" 'model all 0 1 1 "net.2.bias"'
one two
is "two parts: each is said once" "$(differs "$D/events" | cut -d' ' -f1-6)" 'extra all 0 1 2 "bias",
model all 0 1 1 "net.0.weight"'

serve
both() { # WRONG
    D=$T/two.$1; mkdir "$D"
    for i in 0 1; do
        OUT=$T/out.$i ERR=$D/err.$i
        start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$1" --ckpt-dir="$D/ckpt" --ckpt-busy=wait \
            --node-rank=$i "$T/train.py" "$D" "$1"
        eval "node_$i=$elrun_pid"
    done
    for i in 0 1; do
        eval "elrun_pid=\$node_$i"; finish
        is "$1, node $i of two: exit status" "$status" 0 || note "$(tail -5 "$D/err.$i")"
    done
}
both none
unlike "two nodes, alike: nothing is said" "$(cat "$T/store")" differ
both one
is "two nodes: it is said once" "$(grep -c differ "$T/store")" 1
like "which part, and which nodes" "$(cat "$T/store")" 'part "model" \(shard_id="all"\) differs between .* and .* at step [5-8]: .*without shard_id'
killed
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
