# Snapshots: what a call costs beside a plain copy of the same bytes, beside torch.save and torch's asynchronous checkpoints to
# the same disk; what going back costs; how long a job stands still when all its workers are killed; CRC32C.  512 MiB of state
# ($MIB, a multiple of 32; with MIB=64 and RUNS=2 a quick look).
# torchrun's workers find addresses of dead ones after a restart unless the rendezvous' store is not shared: it is not.
. "$(dirname "$0")/../lib/bench.sh"
export MIB="${MIB:-512}"
SLOTS=$((2 * MIB + 64))M HEAL=$((MIB / 8)) # of each of two ranks
here=$(cd "$(dirname "$0")" && pwd)
# script WHO RUNS MODE LAUNCHER...: ckpt.py under a launcher; a peer that cannot run leaves no samples
script() {
    s_who=$1 s_runs=$2 s_mode=$3; shift 3
    WHO=$s_who timeout "${LIMIT:-600}" "$@" "$here/ckpt.py" "$T" "$s_mode" "$s_runs" >"$T/run.out" 2>&1 && return
    echo "$BENCH: no samples of $s_who, $s_mode" >&2; tail -5 "$T/run.out" >&2
    [ "$s_who" != elrun ]
}
for i in $(seq "$RUNS"); do
    "$BUILD/test/bench/crc" >"$T/crc" || exit 1
    for rate in crc table sum memcpy; do
        who=$rate; [ $rate = crc ] && who=elrun
        for from in "" _cached; do
            sed -n "s/.*\"$rate${from}_gb_s\": \([0-9.]*\).*/$who:crc$from.gb_s \1/p" "$T/crc" >>"$T/samples"
        done
    done
done
script elrun "$RUNS" blocked "$ELRUN" --standalone --nproc-per-node=1 --max-restarts="$RUNS" --restart-policy=always --ckpt-mem="$SLOTS" || exit 1
for size in tiny many mid large; do
    SIZE=$size script elrun "$RUNS" sizes "$ELRUN" --standalone --nproc-per-node=1 --ckpt-mem=5G --ckpt-busy=wait || exit 1
done
rm -rf "$T/dcp" "$T/state.pt"
script off "$RUNS" blocked "$ELRUN" --standalone --nproc-per-node=1
script elrun "$RUNS" persist "$ELRUN" --standalone --nproc-per-node=1 --ckpt-mem="$SLOTS" --ckpt-dir="$T/disk" --ckpt-keep-last=1 || exit 1
rm -rf "$T/disk" "$T/disk.dd" "$T/dcp" "$T/state.pt"
script elrun "$RUNS" heal "$ELRUN" --standalone --nproc-per-node=2 --max-restarts="$RUNS" --restart-policy=always --ckpt-mem="$((4 * HEAL + 64))M" || exit 1
script torchrun "$RUNS" heal env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 $TORCHRUN --standalone --nproc-per-node=2 --max-restarts="$RUNS"

call="snapshot() is called" back="the state of all $MIB MiB is what it was"
for who in elrun memcpy; do
    emit $who call.gb_s "a snapshot's call, beside memcpy of the same bytes into warm memory" GB/s "$call" "it returns" ">= 0.9 x memcpy"
done
for who in elrun "torch.save" "async DCP"; do
    emit "$who" blocked.ms "training is blocked, $MIB MiB" ms "the call" "it returns"
done
emit elrun counted.ms "until a snapshot counts, $MIB MiB" ms "$call" "its checksums are made"
for who in elrun dd; do
    emit $who persist.gb_s "a checkpoint to disk, beside dd oflag=direct conv=fsync, $MIB MiB" GB/s "a snapshot counts" "its manifest is there" ">= 0.9 x dd"
done
for who in elrun "torch.load" DCP; do
    emit "$who" restore.ms "going back, from memory and from disk (out of the page cache), $MIB MiB" ms "the call" "$back"
done
emit elrun first.ms "the first restore(), $MIB MiB: there is nothing" ms "the call" "it returns"
for size in tiny many mid large; do
    what=$(size_of $size)
    for who in elrun memcpy "torch.save" "async DCP"; do
        emit "$who" $size.snapshot.ms "a snapshot, training is blocked, $what" ms "the call" "it returns"
    done
    emit elrun $size.update.ms "a step's ck.update(), $what" ms "it begins" "it has ended"
    emit elrun $size.restore.ms "the first restore(), there is nothing, $what" ms "the call" "it returns"
    emit elrun $size.first.ms "the first snapshot, 2 s later, $what" ms "the call" "it returns"
done
for who in elrun torchrun; do
    emit $who heal.s "kill -9 of all workers to the next training step (2 ranks, $HEAL MiB each)" s "before the first kill" "the step's last barrier"
done
for who in elrun off; do
    emit $who agent.mib "memory of the agent beside the slots; off: without snapshots" MiB "RssAnon of the agent" "with two slots of $MIB MiB"
done
for who in elrun table sum memcpy; do
    emit $who crc_cached.gb_s "CRC32C on one core, of what is in its cache; by a table; a plain sum of words; memcpy" GB/s \
        "a piece of 4 MiB" "64 times the same" ">= 10 GB/s"
done
for who in elrun table sum memcpy; do
    emit $who crc.gb_s "CRC32C on one core, of what is in memory; by a table; a plain sum of words; memcpy" GB/s \
        "256 MiB" "in pieces of 4 MiB" ">= 0.9 x sum"
done
