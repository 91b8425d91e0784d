# The image of a slot is a file that others read: every type, shape and name, by the safetensors package, by PyTorch's reader of
# Hugging Face directories (pieces of two ranks), by elrun ckpt; and what comes back into the script is what was there.
# Seen to fail: a bool that lies there under its own type; pieces of a sharded bool whose offset has one dimension too few.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
W=$HERE/snapshots_compat.py
mkdir "$T/d"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-mem=64M "$W" "$T/d" worker
is "two ranks: exit status" "$status" 0
is "what was taken comes back: every type, shape and name" "$(cat "$T/d/log.0" "$T/d/log.1" 2>&1)" "7 38 wrong: [], other names: [5, 6, 7, 8, 9], samples: 640
7 38 wrong: [], other names: [5, 6, 7, 8, 9], samples: 640"
rm -f "$T"/d/log.*
ENV="PYTHON_EXEC=$PY" run --standalone --max-restarts=1 --ckpt-mem=128M "$W" "$T/d" many
is "100,000 tensors: exit status" "$status" 0
is "all come back" "$(cat "$T/d/log.0" 2>&1)" "1 100000"
ok "the readers run" sh -c "'$PY' '$W' '$T/d' read >'$T/read' 2>'$T/read.err'"
is "what other readers find" "$(cat "$T/read")" "safetensors, rank 0: 35 tensors, 13 as bytes, wrong: [], step 7
safetensors, rank 1: 35 tensors, 13 as bytes, wrong: [], step 7
torch's reader, rows: True
torch's reader, flags: True
torch's reader, one rank: 18 tensors, wrong: []
many: 100001 99999.0"
for part in all.0 all.1 rows.0 rows.1 many.0; do
    mv "$T/d/$part" "$T/d/$part.safetensors"
    ok "elrun ckpt verify --deep: $part" "$ELRUN" ckpt verify --deep "$T/d/$part.safetensors"
done
is_clean "compatibility"
finished
