# A step is wanted on disk, and a rank of another node comes to no snapshot of it, while nobody needs a slot: the coordinator says
# for whom the step waits, once, and writes it when that rank has come.
# Seen to fail: a coordinator that says nothing before it gives the step up, ten minutes later.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3} D=$T/d
mkdir "$D"

serve
for i in 0 1; do
    OUT=$D/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
    start --nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=behind --ckpt-mem=64M --ckpt-dir="$D/ckpt" \
        --node-rank=$i "$HERE/persist_worker.py" "$D" "$D/ckpt" behind 3 1
    eval "node_$i=$elrun_pid"
done
ok "it is said for whom it waits" wait_for holds "$T/store" 'checkpoint: step 1 has waited 30 s'
like "for which part, of which node, and what would be right" "$(cat "$T/store")" \
    'step 1 has waited 30 s to be written: no node holds part "state" of it yet .shard "rank2", of [^)]+.; every rank has to call snapshot\(\) for it, and after 600 s it is given up'
touch "$D/go"
for i in 0 1; do
    eval "elrun_pid=\$node_$i"; finish
    is "node $i ends" "$status" 0
done
is "the rank has come to it: it is on disk" "$(ls "$D/ckpt" | grep step)" step-000000001
is "it is said once" "$(grep -c 'has waited 30 s' "$T/store")" 1
killed
is_clean "a rank behind"
finished
