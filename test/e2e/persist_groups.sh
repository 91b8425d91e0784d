# Groups of ranks that share different shards, as with HSDP, and a checkpoint in which the own piece of a rank that has died is missing:
# it goes on with what the ranks of its shard have, not with another shard's.
# Seen to fail: with the own piece of the lowest rank in its place, whatever that shares.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3} D=$T/d
mkdir "$D"
job() { # NAME
    OUT=$D/out.$1 ERR=$D/err.$1 ENV="PYTHON_EXEC=$PY"
    start --standalone --nproc-per-node=4 --ckpt-mem=64M --ckpt-dir="$D/ckpt" "$HERE/persist_groups.py" "$D"
    finish
}
job first
is "one has died" "$status" 3
like "what the others had is on disk" "$(cat "$D/err.first")" 'step 6 \(emergency\) is on disk'
is "one rank's own piece is missing" "$("$PY" -c 'import json, sys; print(*sorted(json.load(open(sys.argv[1]))["parts"]["@rank"]))' \
    "$D/ckpt/step-000000006/MANIFEST.json")" "rank0 rank2 rank3"
: >"$D/log"
job second
is "another job ends" "$status" 0 || note "$(tail -5 "$D/err.second")"
is "each has its shard" "$(sort "$D/log" | tr '\n' ';')" "0 6 60 60;1 6 61 61;2 6 60 60;3 6 61 61;"
is_clean "groups"
finished
