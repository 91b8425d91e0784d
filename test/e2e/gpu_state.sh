# State that lives on a GPU comes back bit for bit: a training with what such trainings have (gpu_state.py) that is killed, that
# raises, or whose device refuses all further work, beside one without elrun's snapshots; then the cases of state_modules.py and
# state_optims.py with all their tensors on the device, and two ranks of emergency_torch.py that share it.
# GPU_STATE: some of these alone, out of "killed raised device words cases".
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || skip_all "GPU: there is none"
"$PY" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || skip_all "GPU: this PyTorch has no CUDA"
GPUENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 CUBLAS_WORKSPACE_CONFIG=:4096:8 NCCL_SOCKET_IFNAME=lo"
mkdir "$T/state"
wanted() { case " ${GPU_STATE-$1} " in *" $1 "*) ;; *) false ;; esac; }
# train MODE: what it has gone back to, in $back
train() {
    : >"$T/state/log"
    ENV=$GPUENV run --standalone --nproc-per-node=1 --max-restarts=1 --restart-policy=always --ckpt-mem=64M "$HERE/gpu_state.py" "$T/state" "$1"
    back=$(cat "$T/state/log")
}
# same MODE: its end is that of the plain run, in every object, to the bit
same() {
    (cd "$HERE" && "$PY" -c '
import sys, torch
from state_truth import differences, freeze
a, b = (torch.load(p, weights_only=False, map_location="cpu") for p in sys.argv[1:])
found = differences(freeze(a), freeze(b))
print(*found[:5], sep="\n")
sys.exit(bool(found))' "$T/state/plain.pt" "$T/state/$1.pt")
}
train plain
is "without faults, without snapshots" "$status $back" "0 None " || note "$(tail -20 "$ERR")"
train alone
is "with snapshots, without faults" "$status $back" "0 None " || note "$(tail -20 "$ERR")"
ok "the same result" same alone
for mode in killed raised device; do
    wanted $mode || continue
    train $mode
    back_to="None 15 "; [ $mode = raised ] && back_to="None 16 "
    is "$mode: it goes back" "$status $back" "0 $back_to" || note "$(tail -30 "$ERR")"
    ok "$mode: the same result, bit for bit" same $mode
    [ $mode != device ] || like "$mode: the cause is named" "$(cat "$ERR")" 'device-side assert'
    is_clean "$mode"
done

words() {
    D=$T/$1; mkdir "$D"
    ENV="$GPUENV STATE_DEVICE=cuda:0" run --standalone --nproc-per-node=2 --max-restarts=1 --restart-policy=always --ckpt-mem=64M "$HERE/emergency_torch.py" "$D" "$1"
}
results() { cat "$D/log.0" "$D/log.1" | sed -n 's/^result //p'; }
if wanted words; then
    words own; want=$(results)
    is "two ranks on the GPU" "$status" 0 || note "$(tail -20 "$ERR")"
    words raised
    is "two ranks, one raises: both go on from the step before" "$(cat "$D/log.0" "$D/log.1" | grep -v result | tr '\n' ' ')" "None 16 None 16 "
    is "the same result, bit for bit" "$status $(results)" "0 $want" || note "$(tail -20 "$ERR")"
    is_clean "two ranks"
fi

if wanted cases; then
    E2E_ENV="STATE_DEVICE=cuda CUBLAS_WORKSPACE_CONFIG=:4096:8"
    cases "modules on the GPU" state_modules.py
    cases "optimizers on the GPU" state_optims.py
fi
finished
