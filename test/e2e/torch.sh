# Real PyTorch: a DDP training that is killed half-way and resumes, data loaders, the failure report of real exceptions, and
# the same script under elrun and under torchrun.
# Seen to fail: torchrun 2.13 in its place: data loaders that survive, a cause that is not the last line.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch, sklearn' 2>/dev/null || skip_all "this python3 has no torch: $PY"
export PYTHON_EXEC="$PY"
ENV=OMP_NUM_THREADS=1

# --- the example, killed from outside when three of six epochs are done
start --standalone --nproc-per-node=2 --max-restarts=1 --redirects=3 --log-dir="$T/train" "$HERE/../../examples/train.py" \
    --checkpoint="$T/digits.pt" --epochs=6
out() { cat "$T"/train/*_*/attempt_$1/$2/stdout.log; }
says() { out "$1" "$2" | grep -Eq "$3"; }
if ok "training: half of the epochs" wait_for says 0 0 '^epoch +3 '; then
    kill -KILL "$(out 0 1 | sed -n 's/.*(pid \([0-9]*\)).*/\1/p')"
fi
finish
is "training: exit status" "$status" 0
like "training: rank 0 resumes behind a checkpoint" "$(out 1 0)" '^rank 0 of 2 .* resumes after epoch [3-6]$'
is "training: both ranks resume at the same epoch" "$(out 1 0 | sed -n 's/.*resumes after//p')" "$(out 1 1 | sed -n 's/.*resumes after//p')"
like "training: accuracy" "$(out 1 0)" '^accuracy on the test images: 9[0-9]\.[0-9]%$'
ok "training: the checkpoint is whole" "$PY" -c 'import sys, torch; assert torch.load(sys.argv[1], weights_only=True)["epochs_done"] == 6' "$T/digits.pt"
is_clean "training"

# --- data loaders: kill -9 of elrun takes them too
cat >"$T/loader.py" <<'PYTHON'
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        open(f"{sys.argv[1]}.{os.getpid()}", "w").close()
        time.sleep(600)
if __name__ == "__main__":
    for _ in DataLoader(Slow(), num_workers=2): pass
PYTHON
for how in KILL TERM; do
    start --standalone --nproc-per-node=2 "$T/loader.py" "$T/loader$how"
    ok "data loaders run" wait_for files "$T/loader$how.*" 4
    kill -$how "$elrun_pid"; finish
    [ $how = TERM ] || rm -rf "$T/tmp/"* # nobody was left to remove it
    is_clean "data loaders, SIG$how of elrun"
done

# --- exceptions, with and without @record: the last line is the exception
cat >"$T/fails.py" <<'PYTHON'
import os, sys
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
def main():
    dist.init_process_group("gloo")
    says = sys.excepthook
    sys.excepthook = lambda *e: (says(*e), os._exit(1))  # gloo's threads may abort an interpreter that ends
    if dist.get_rank() == 1:
        raise ValueError(f"bad shape in attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}")
    dist.barrier()
(record(main) if sys.argv[1] == "record" else main)()
PYTHON
for how in record plain; do
    run --standalone --nproc-per-node=2 --redirects=2 --log-dir="$T/f$how" "$T/fails.py" $how
    is "an exception, $how: exit status" "$status" 1
    like "an exception, $how: rank 1 is the cause" "$(cause_of "$ERR")" 'rank 1 failed: ValueError: bad shape in attempt 0'
    like "an exception, $how: its traceback" "$(cat "$ERR")" 'fails\.py", line 9'
    like "an exception, $how: the peers' complaints are one line" "$(report_of "$ERR")" '^  1 other ended because of it: rank 0 \('
done
is_clean "exceptions"

# --- side by side: what a script sees, says and computes
torchrun=$(dirname "$PY")/torchrun
[ -x "$torchrun" ] || torchrun="$PY -m torch.distributed.run"
cat >"$T/same.py" <<'PYTHON'
import json, os, sys
import torch, torch.distributed as dist
where, change = sys.argv[1], {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE"}
mine = ("RANK", "WORLD", "LOCAL_", "GROUP_", "ROLE_", "TORCH", "MASTER_", "OMP_", "CUDA_")
dist.init_process_group("gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()
store.set(f"from{rank}", f"hello {rank}")
count = store.add("count", 1)
dist.barrier()
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
seen = {
    "argv": sys.argv[2:],
    "how": [sys.stdout.write_through, sys.flags.safe_path, __name__, os.path.basename(__file__)],
    "env": {k: "set" if k in change else v for k, v in os.environ.items() if k.startswith(mine)},
    "stdin": sys.stdin.read(),
    "leader": [os.getpid() == os.getpgid(0), os.getpid() == os.getsid(0)],
    "error_file": os.environ["TORCHELASTIC_ERROR_FILE"].split("/")[-3:],
    "peer": store.get(f"from{1 - rank}").decode(), "count": count <= 2, "sum": total.item(),
    "elastic": dist.is_torchelastic_launched(),
}
dist.barrier()
dist.destroy_process_group()
json.dump(seen, open(f"{where}.{os.environ['TORCHELASTIC_RESTART_COUNT']}.{rank}", "w"), indent=1, sort_keys=True)
os._exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and rank == 1 else 0)  # gloo may abort what ends otherwise
PYTHON
# Torchrun's own store for the workers keeps the keys of the attempt before, so that its restart hangs here (2.13): it is
# told to let rank 0 serve.
side() { # NAME: the same command line under either launcher
    set -- --standalone --nproc_per_node=2 --max_restarts=1 --role=trainer "$T/same.py" "$T/$1" --lr=0.1 '${local_rank}' '$$' 'a b'
    env -u TORCHELASTIC_ERROR_FILE E2E_MARK="$T" TMPDIR="$T/tmp" OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
        timeout -k 5 $((2 * DEADLINE)) $side "$@" >"$T/side.out" 2>&1 </dev/null
}
side=$ELRUN; side by-elrun
is "side by side: elrun's status" "$?" 0
is_clean "side by side"
side=$torchrun; side by-torchrun
is "side by side: torchrun's status" "$?" 0
for f in 0.0 0.1 1.0 1.1; do
    ok "side by side: attempt and rank $f see and compute the same" diff "$T/by-torchrun.$f" "$T/by-elrun.$f"
done
finished
