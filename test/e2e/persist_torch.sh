# A real PyTorch training whose checkpoints are written by the agent: Python's safetensors and PyTorch's own reader of
# sharded files load them, with the values that the training had, also those of an emergency checkpoint.
# Seen to fail: two ranks' tensors under one name in the files of one directory.
. "$(dirname "$0")/../lib/e2e.sh"
E=$HERE/../../examples/snapshots.py R=$T/ckpt
mkfifo "$T/step.1.14" # that nobody reads: rank 1 stands there until it is killed
ENV="PYTHON_EXEC=$PY MARK=$T STEPS=30 PAUSE=0.05" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --ckpt-busy=wait "$E"
wait_for test -e "$R/step-000000009/MANIFEST.json"
wait_for test -s "$T/step.1.13" && kill -KILL "$(tail -1 "$T/step.1.13")"
finish
like "a worker is killed: the job fails" "$status" '^(134|137)$' # torch itself may abort when it is told to stop
S=$(ls -d "$R"/step-* | tail -1)
like "and its emergency checkpoint is a later step" "${S##*/}" '^step-00000001[2-9]$|^step-00000002'
"$PY" - "$R/step-000000009" "$S" >"$T/read" 2>"$T/read.err" <<'P'
import glob, json, sys
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file

for path in sys.argv[1:]:
    manifest = json.load(open(path + "/MANIFEST.json"))
    mine = {}
    for name in sorted(glob.glob(path + "/*.safetensors")):
        mine.update(load_file(name))
    models = [{k.split("/", 1)[1]: v for k, v in mine.items() if k.startswith(f"r0000{r}/") and k.split("/", 1)[1][0] in "01234"}
              for r in (0, 1)]
    same = all(torch.equal(models[0][k], models[1][k]) for k in models[0] if "running" not in k)
    steps = {float(v) for k, v in mine.items() if k.endswith(".step")}
    other = {k: torch.zeros_like(v) for k, v in mine.items()}
    dcp.load(other, storage_reader=dcp.HuggingFaceStorageReader(path), no_dist=True)
    equal = all(torch.equal(mine[k], other[k]) for k in mine)
    print(manifest["step"] + 1 == steps.pop() and not steps, same, equal, len(mine) > 30, manifest.get("emergency", False))
P
is "both are read by both, and hold what the ranks had" "$(cat "$T/read")" "True True True True False
True True True True True"
is "elrun ckpt verify --deep agrees" "$("$ELRUN" ckpt verify --deep "$S" >/dev/null 2>&1; echo $?)" 0
is_clean torch
finished
