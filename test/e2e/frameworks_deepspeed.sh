# A DeepSpeed engine (examples/deepspeed_snapshots.py), and what of it declare() refuses.
. "$(dirname "$0")/../lib/frameworks.sh"
for stage in 0 1 2 3; do
    WITH=ZERO=$stage
    as_without deepspeed 2 12 5
done
WITH=
train refused 1 "$T/refused" 0 -1 --ckpt-mem=64M
is "DeepSpeed: what cannot be kept is refused" "$status" 0 || note "$(tail -n 20 "$ERR")"
is "by name, with the way that there is" "$(cat "$T/refused/log.0")" "engine: refused
module: refused
optimizer: refused
its own: refused"
is_clean "deepspeed"
finished
