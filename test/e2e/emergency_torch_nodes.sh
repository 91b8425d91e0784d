# Emergency checkpoint of a real PyTorch training over two nodes (DDP over gloo, a snapshot every ten steps): a rank is killed, and all
# go on from the step before, which the ranks that live were captured at, bit for bit as without a fault; from memory, and
# where all ranks of a node are gone from disk.
# Then FSDP2 with a directory for each node: the half of the tensors that is in it is whole, and a second job goes on from there.
# Seen to fail: agents that hold nobody back ("killed", "disk"), a half that is called incomplete ("own").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
SCRIPT=emergency_torch.py CKPT= ENDS=0
train() { # NAME MODE WORKERS-PER-NODE OPTIONS...
    D=$T/$1 name=$1 mode=$2 each=$3; mkdir -p "$D"; shift 3
    for i in 0 1; do
        OUT=$D/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1"
        start --nnodes=2 --nproc-per-node="$each" --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$name" --node-rank=$i \
            --max-restarts=1 --restart-policy=always --ckpt-mem=64M ${CKPT:+--ckpt-dir="$CKPT.$i"} "$@" "$HERE/$SCRIPT" "$D" "$mode"
        eval "node_$i=$elrun_pid"
    done
    for i in 0 1; do
        eval "elrun_pid=\$node_$i"; finish
        is "$name: node $i ends" "$status" $ENDS || note "$(tail -8 "$D/err.$i")"
    done
}
results() { cat "$D"/log.? | sed -n 's/^result //p' | tr '\n' ' '; }
went_back() { cat "$D"/log.? | grep -v result | tr '\n' ' '; }
serve

train plain plain 2
want=$(results)
like "plain: a result" "$want" '^-?0x1\.[0-9a-f]+p'

train killed killed 2
is "killed: all ranks of both nodes go on from the step before, not from the snapshot" "$(went_back)" "None 16 None 16 None 16 None 16 "
is "killed: the same results, bit for bit" "$(results)" "$want"

train one plain 1
want=$(results)
train disk killed 1 --ckpt-dir="$T/disk/ckpt"
is "disk: a node without a rank that lives has it from disk" "$(went_back)" "None 16 None 16 "
is "disk: the same results, bit for bit" "$(results)" "$want"

SCRIPT=emergency_fsdp2.py
train pieces none 1
want=$(results)
CKPT=$T/own.ckpt ENDS=1
train own raised 1 --ckpt-store=local --max-restarts=0
for i in 0 1; do
    "$ELRUN" ckpt verify --deep "$CKPT.$i" >"$T/verify" 2>&1
    is "own: the half of node $i" "$? $(grep -c 'step-000000005: valid' "$T/verify")" "0 1" || note "$(cat "$T/verify")"
done
ENDS=0
killed
serve
train own none 1 --ckpt-store=local
is "own: both go on from the step before" "$(went_back)" "None 5 None 5 "
is "own: the same results, bit for bit" "$(results)" "$want"
killed
is_clean torch
finished
