# Every parallel form of PyTorch at the same number of ranks: killed with SIGKILL, each goes back to what its ranks held, bit for
# bit, and trains on to the same weights as a training that nobody killed; from memory, and from disk in a second job.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch' 2>/dev/null || skip_all "this python3 has no torch: $PY"
STEPS=8 KILL=4

# job RANKS FOLDER FORMS KILL OPTIONS...
job() {
    n=$1 folder=$2 forms=$3 kill=$4; shift 4
    ENV="$ENV PYTHON_EXEC=$PY OMP_NUM_THREADS=1" run --standalone --nproc-per-node="$n" "$@" "$HERE/state_parallel.py" "$folder" "$forms" $STEPS "$kill"
    ENV=
}
# counts FOLDER: how often each answer stands in the results of all ranks, one line for each
counts() { cat "$1"/result.* | sed 's/^[a-z0-9_]* //' | sort | uniq -c | sed 's/^ *//'; }
# as_without RANKS FORMS: the trainings of all forms side by side, one job for each way to lose it
as_without() {
    ranks=$1 forms=$2 all=$(($1 * $(echo "$2" | tr , '\n' | wc -l)))
    for way in memory disk; do mkdir -p "$T/$ranks.$way"; done
    job "$ranks" "$T/$ranks.memory" "$forms" -1
    is "$ranks ranks, nobody is killed and nothing is kept: exit status" "$status" 0 || note "$(tail -n 20 "$ERR")"
    rm -f "$T/$ranks.memory"/result.*
    cp "$T/$ranks.memory"/final.* "$T/$ranks.disk"

    job "$ranks" "$T/$ranks.memory" "$forms" $KILL --max-restarts=1 --ckpt-mem=256M --ckpt-busy=wait --ckpt-check=2
    is "$ranks ranks, one is killed: exit status" "$status" 0 || note "$(tail -n 30 "$ERR")"
    is "all go back to the step that they had" "$(counts "$T/$ranks.memory")" "$all restored the same
$ranks to $KILL
$all trained on the same" || note "$(grep -h DIFFERENT "$T/$ranks.memory"/result.*)"
    unlike "what was read back was right" "$(cat "$ERR")" 'elrun: error:.*ckpt-check'

    ENV=DISK=1 job "$ranks" "$T/$ranks.disk" "$forms" $((KILL + 1)) --ckpt-dir="$T/$ranks.ckpt" --ckpt-mem=256M --ckpt-busy=wait
    is "$ranks ranks, one is killed and the job ends: exit status" "$status" 137 || note "$(tail -n 30 "$ERR")"
    "$ELRUN" ckpt verify --deep "$T/$ranks.ckpt" >"$T/verify" 2>&1
    is "what it left on disk is valid" $? 0 || note "$(cat "$T/verify")"
    job "$ranks" "$T/$ranks.disk" "$forms" $((KILL + 1)) --ckpt-dir="$T/$ranks.ckpt" --ckpt-mem=256M --ckpt-busy=wait
    is "$ranks ranks, the next job: exit status" "$status" 0 || note "$(tail -n 30 "$ERR")"
    is "goes on from disk" "$(counts "$T/$ranks.disk")" "$all restored the same
$ranks to $((KILL + 1))
$all trained on the same" || note "$(grep -h DIFFERENT "$T/$ranks.disk"/result.*)"
}

as_without 2 "${FORMS2:-ddp,zero1,local_sgd,tp,pieces,fsdp1_flat,fsdp1_orig,fsdp1_whole,fsdp1_half,fsdp1_half_flat,fsdp1_grad_op,fsdp2,fsdp2_keep,fsdp2_half}"
as_without 4 "${FORMS4:-hsdp,fsdp_tp,fsdp1_hybrid}"
is_clean "parallel forms"
finished
