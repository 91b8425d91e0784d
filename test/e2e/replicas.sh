# Ranks that declare a part with the same shard_id are alike in its parameters: where they are not, one warning and one event name
# part, ranks and tensors, on one node and over several, whether or not snapshots go to disk.  What may differ (statistics, counters,
# random numbers) is not named, and a part of each rank's own neither; nor are takes of a step compared that are not the same one.
# Seen to fail: a build whose keeper_compare_next() does nothing, one that lists all tensors in image.py (statistics are named), one
# whose comparing_take() returns at once, one whose digests are told with --ckpt-dir alone.
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
if wrong == "ddp":
    torch.distributed.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(net)
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
if wrong == "back" and rank == 0:
    ck.declare("alone", nn.Linear(2, 2), shard_id="all")  # no other rank has it
ck.restore()
grads = [torch.ones_like(p) for p in net.parameters()]
for take, step in enumerate([5, 6, 7, 5, 6, 7] if wrong == "back" else range(5, 9)):
    loss = net(torch.randn(16, 8)).square().sum()  # statistics move, each rank's own way
    if wrong == "ddp":
        optim.zero_grad()
        loss.backward()
    else:
        for p, g in zip(net.parameters(), grads):
            p.grad = g
    optim.step()
    assert ck.snapshot(step)
    open(f"{folder}/{take}.{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/{take}.{r}") for r in range(world)):
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
nodes() { # NAME WRONG NODES OPTION...
    D=$T/$1; mkdir "$D"
    name=$1 wrong=$2 n=$3; shift 3
    i=0
    while [ $i -lt "$n" ]; do
        OUT=$T/out.$i ERR=$D/err.$i
        start --nnodes="$n" --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$name" --ckpt-busy=wait --node-rank=$i \
            --events="$D/events.$i" "$@" "$T/train.py" "$D" "$wrong"
        eval "node_$i=$elrun_pid"
        i=$((i + 1))
    done
    i=0
    while [ $i -lt "$n" ]; do
        eval "elrun_pid=\$node_$i"; finish
        is "$name, node $i: exit status" "$status" 0 || note "$(tail -5 "$D/err.$i")"
        i=$((i + 1))
    done
    grep "job $name:" "$T/store" | grep differ >"$D/said"
}
if [ "$LONG" ]; then # torch is imported twice for each
    nodes memory-none none 2 --ckpt-mem=64M
    is "two nodes, in memory alone, alike (but for statistics of BatchNorm): nothing is said" "$(cat "$D/said")" ""
    nodes disk-none none 2 --ckpt-dir="$T/ckpt-none"
    is "with a directory, alike: nothing is said" "$(cat "$D/said")" ""
    nodes memory-two two 2 --ckpt-mem=64M
    is "two parts: each is said once" "$(sed -n 's/.*part "\([a-z]*\)".* in \([0-9]*\) tensors*: \(.*\): a check.*/\1 \2 \3/p' "$D/said" | sort)" \
    'extra 2 "bias", "weight"
model 1 "net.0.weight"'
    nodes disk-one one 2 --ckpt-dir="$T/ckpt-one"
    is "with a directory: it is said once, and the tensor is named" "$(grep -c '1 tensor: "net.2.bias"' "$D/said")" 1
fi
nodes memory-one one 3 --ckpt-mem=64M
is "three nodes, in memory alone, one tensor of the last one: it is said once" "$(grep -c differ "$D/said")" 1
like "which part, ranks, nodes and tensor" "$(cat "$D/said")" \
    'part "model" \(shard_id="all"\) differs between rank [012] on [^ ]+ and rank [012] on [^ ]+ at step [5-8], in 1 tensor: "net.2.bias": .*without shard_id'
like "the last one is one of the two" "$(cat "$D/said")" 'rank 2 on'
nodes memory-ddp ddp 2 --ckpt-mem=64M
is "two nodes, DistributedDataParallel with BatchNorm: nothing is said" "$(cat "$D/said")" ""
nodes memory-back back 2 --ckpt-mem=64M
is "the script goes back by itself, and a part is on one node alone: nothing is said" "$(cat "$D/said")" ""
killed
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
nodes hosted one 2 --ckpt-mem=64M
is "a coordinator that an agent hosts: its event says the same, once" \
    "$(grep -h '"event":"finding"' "$D/events.0" "$D/events.1" | grep -c 'in 1 tensor: .*net.2.bias')" 1
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
