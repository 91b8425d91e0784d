# With a GPU: the node check with NCCL, and snapshots of a training whose state lives on the device, beside a bare copy of the
# same bytes into page-locked memory, torch.save and torch's asynchronous checkpoint.
. "$(dirname "$0")/../lib/bench.sh"
here=$(cd "$(dirname "$0")" && pwd)
[ -e /dev/nvidiactl ] || { echo "gpu: there is no GPU here" >&2; exit 1; }
SOME=$((RUNS < 3 ? RUNS : 3)) # of what takes seconds
# SIZES="tiny ... huge": the largest takes minutes beside torch.save, and is not among them by itself.
export MIB=0 DEVICE=cuda
for size in ${SIZES-tiny many mid large}; do
    runs=$RUNS; [ $size = huge ] && runs=$SOME
    SIZE=$size timeout 600 "$ELRUN" --standalone --nproc-per-node=1 --ckpt-mem="${MEM:-12G}" --ckpt-busy=wait "$here/ckpt.py" "$T" sizes "$runs" \
        >"$T/run.out" 2>&1 || { tail -20 "$T/run.out" >&2; exit 1; }
    what=$(size_of $size)
    for who in elrun copy "torch.save" "async DCP"; do
        emit "$who" $size.snapshot.ms "a snapshot from the GPU, training is blocked, $what" ms "the call" "it returns, the device is idle"
    done
    emit elrun $size.update.ms "a step's ck.update() on the GPU, $what" ms "it begins" "it has ended, the device is idle"
    emit elrun $size.second_update.ms "the second ck.update() on the GPU, the first that compares, $what" ms "it begins" "it has ended, the device is idle"
    emit elrun $size.first.ms "the first snapshot from the GPU, 2 s later, $what" ms "the call" "it returns"
done
