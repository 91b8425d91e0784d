# No two things that are saved have one name, whatever slashes, percent signs and reserved words stand in those of parts, shards,
# keys and files.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

names() { # KIND OPTIONS...
    kind=$1; shift
    mkdir "$T/$kind"; : >"$T/$kind/result"
    ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1" run --standalone --max-restarts=1 --restart-policy=always \
        --ckpt-mem=64M --ckpt-busy=wait $CHECK "$@" "$HERE/state_names.py" "$T/$kind" "$kind"
    verdicts "names of $kind" "$T/$kind/result"
    is "names of $kind: exit status" "$status" 0
    unlike "names of $kind: no snapshot differs from the objects" "$(cat "$ERR")" 'ckpt-check'
    is_clean "names of $kind"
}

names parts
names files --ckpt-layout=megatron --ckpt-dir="$T/ckpt"

# All files of a checkpoint are one namespace to a reader.
D=$T/disk; mkdir "$D"; : >"$D/result"
cat >"$T/persist.py" <<'P'
import sys
import numpy as np
import elrun
ck = elrun.connect()
for name, shard, keys in (("a", "all", ("b/c", "g/w", "r00000/w", "obj/g/q")), ("a/b", "all", ("c",)), ("q", "g", ("w",)), ("m", None, ("w", "a/b/c", "c"))):
    ck.declare(name, {k: np.zeros(2) for k in keys}, shard_id=shard)
ck.restore()
ck.snapshot(1, persist=True)
ck.wait_persist(1)
P
ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1" run --standalone --ckpt-dir="$D/ckpt" "$T/persist.py"
is "names on disk: exit status" "$status" 0 || note "$(tail -5 "$ERR")"
"$PY" - "$D/ckpt" >"$D/names" <<'P'
import collections, glob, json, struct, sys
found = collections.Counter()
for path in glob.glob(sys.argv[1] + "/**/*.safetensors", recursive=True):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        pairs = json.loads(f.read(n), object_pairs_hook=list)
    found.update(k for k, _ in pairs if k != "__metadata__")
print(len(found), *(k for k, n in found.items() if n > 1))
P
is "names on disk: each once" "$(cat "$D/names")" 20
finished
