# Emergency checkpoint of a real PyTorch training (DDP over gloo, a snapshot every ten steps): after a failure it goes on from the step
# before, captured from the ranks that live, and ends bit for bit like one without a fault; also where the buffers of a
# module and the random numbers had moved on since, and where each rank has pieces of the parameters alone (FSDP2).
# Seen to fail: a capture of the buffers, or of the random numbers, as they are at that moment ("raised"); one that does not
# look at the versions of parameters ("outside"); one that copies no tensors of a module ("killed", "raised", and of FSDP2).
. "$(dirname "$0")/../lib/e2e.sh"
train() { # NAME [SCRIPT]
    D=$T/$1; mkdir "$D"
    ENV="PYTHON_EXEC=$PY OMP_NUM_THREADS=1" run --standalone --nproc-per-node=2 --max-restarts=1 --restart-policy=always --ckpt-mem=64M "$HERE/${2:-emergency_torch.py}" "$D" "${1#fsdp2_}"
}
result_of() { sed -n 's/^result //p' "$D/log.$1"; }
went_back() { cat "$D/log.0" "$D/log.1" | grep -v result | tr '\n' ' '; }

train plain
want0=$(result_of 0) want1=$(result_of 1)
is "without faults: exit status" "$status" 0
like "and a result" "$want0" '^-?0x1\.[0-9a-f]+p'

train killed
is "a rank is killed: it goes on from the step before, not from the snapshot" "$(went_back)" "None 16 None 16 "
is "the same result, bit for bit" "$status $(result_of 0) $(result_of 1)" "0 $want0 $want1"
is_clean killed

train outside
is "parameters were changed outside of ck.update(): the snapshot" "$(went_back)" "None 10 None 10 "
like "it is said which" "$(grep 'emergency checkpoint' "$ERR")" '0\.bias was changed outside of ck\.update\(\)'

train own
want0=$(result_of 0) want1=$(result_of 1)
is "each rank has its own: exit status" "$status" 0
train raised
is "a rank's script fails: also what it alone held is captured" "$(went_back)" "None 16 None 16 "
is "the same result and random numbers, bit for bit" "$status $(result_of 0) $(result_of 1)" "0 $want0 $want1"
is_clean raised

train fsdp2_plain emergency_fsdp2.py
want0=$(result_of 0) want1=$(result_of 1)
is "pieces of FSDP2: exit status" "$status" 0
unlike "each rank has its own" "$want0" "^$want1\$"
train fsdp2_raised emergency_fsdp2.py
is "a rank's script fails: both go on from the pieces of the step before" "$(went_back)" "None 5 None 5 "
is "the same pieces and random numbers, bit for bit" "$status $(result_of 0) $(result_of 1)" "0 $want0 $want1"
is_clean fsdp2
finished
