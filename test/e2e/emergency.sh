# Emergency checkpoint of workers that live: a worker fails many steps behind the last snapshot, and the others' state is copied by
# a thread of theirs before they are stopped.  Where that cannot be, the snapshot counts, and nothing is held up.
# Seen to fail: a build in which a script that fails does not wait ("raise"); one that waits for nobody who is in a step ("late");
# one in which a worker that was signalled while it waited had not failed ("both").
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}

begin() { # NAME MODE WORKERS ELRUN-OPTIONS...
    D=$T/$1; mkdir -p "$D" "$D/w"
    mode=$2 n=$3; shift 3
    ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node="$n" --ckpt-mem=64M "$@" "$HERE/emergency_worker.py" "$D/w" "$mode"
}
train() { begin "$@"; finish; }
went_back() { cat "$D"/w/log.* | sed -n 's/^1 \([0-9]*\) /\1:/p' | tr '\n' ' '; }
ends() { cat "$D"/w/log.* | sed -n 's/^end //p' | sort | uniq -c | tr -s ' '; }
said() { grep -o 'emergency checkpoint: .*' "$ERR" | sed 's/: [0-9.]* MiB in [0-9.]* s$//'; }
in_turn() { grep -oE '^elrun: (rank [0-9]+ has failed|emergency checkpoint|checkpoint: step [0-9]+ .emergency. is on disk)' "$ERR" | sed 's/^elrun: //' | tr '\n' ';'; }
once="--max-restarts=1 --restart-policy=always"

train one one 2 $once
is "a worker is killed: the others' step is not lost" "$(went_back)" "0:6 60 1:6 60 "
is "and the training ends as it should" "$status$(ends)" "0 2 90 True"
is "it is said" "$(said)" "emergency checkpoint: step 6 is captured from 1 live worker"
is_clean one

train raise raise 2 $once
is "a script fails, each rank has a shard of its own: its own state is captured, too" "$(went_back)" "0:6 60 1:6 60 "
is "it ends as it should" "$status$(ends)" "0 2 90 True"
is "that it failed is said before what came of it, though that was captured before" "$(in_turn)" "rank 1 has failed;emergency checkpoint;"

train deaf deaf 2 $once
is "the agent does not hear that it failed: it does not wait for ever, and the other one is captured" "$(went_back)" "0:6 60 1:6 60 "

train inside inside 2 $once
is "it fails in the middle of a step: that state is worth nothing" "$(went_back)" "0:0 0 1:0 0 "
like "and it is said why" "$(said)" "emergency checkpoint: nothing newer is captured, the snapshot of step 0 counts: step 7 of rank 1 is held by nobody: its script has failed within ck.update\(\)"

train both both 2 --ckpt-dir="$T/both/ckpt"
is "two scripts fail, the first one ends last: it is the cause, and none was stopped by elrun" \
    "$status $(sed -n 's/^elrun: \(rank . failed\)/\1/p; s/^  \(rank . failed too\).*/\1/p; /stopped by/p' "$ERR" | sed "s/worker.py:[0-9]*/worker.py:LINE/" | tr '\n' ';')" \
    "1 rank 1 failed: RuntimeError: the first (emergency_worker.py:LINE);rank 0 failed too;"
is_clean both

train late late 2 $once
is "whoever is in a step ends it first" "$(went_back)" "0:7 70 1:7 70 "

train shard shard 2 $once
is "a shard that the dead one alone held: the snapshot" "$(went_back)" "0:0 0 1:0 0 "
like "why" "$(said)" "emergency checkpoint: nothing newer is captured, the snapshot of step 0 counts: step 6 of rank 1 is held by nobody: it has ended"

train less less 2 $once --ckpt-dir="$T/less/ckpt"
is "all that the dead one held is held, with more, by others: it has that from disk" "$(went_back)" "0:6 60 1:6 60 "

is "that it was killed is said first, though all is over before it is said" "$(in_turn)" \
    "rank 1 has failed;emergency checkpoint;checkpoint: step 6 (emergency) is on disk;"

train tensors less 2 $once --ckpt-dir="$T/tensors/ckpt" --ckpt-layout=megatron
is "--ckpt-layout=megatron, where parts of tensors are never on disk: the snapshot" "$(went_back)" "0:0 0 1:0 0 "
like "why" "$(said)" "emergency checkpoint: nothing newer is captured, the snapshot of step 0 counts: step 6 of rank 1 is held by nobody: it has ended"

begin all all 2 $once
wait_for files "$D/w/ready.*" 2
kill -STOP "$elrun_pid" # so that it sees both deaths together
kill -KILL "$(cat "$D/w/ready.0")" "$(cat "$D/w/ready.1")"
kill -CONT "$elrun_pid"; finish
is "all are killed: the snapshot" "$(went_back)" "0:0 0 1:0 0 "

train copying copying 3 $once
is "the holder is killed while it copies: another one is asked" "$(went_back)" "0:6 60 1:6 60 2:6 60 "

train busy busy 2 $once --emergency-timeout=1
is "both slots are in use: the snapshot" "$(went_back)" "0:0 0 1:0 0 "
like "why" "$(said)" "both its slots were in use"

train noupdate noupdate 2 $once
is "without ck.update(): the snapshot" "$(went_back)" "0:0 0 1:0 0 "
is "and not a word" "$(said)" ""

train large large 2 $once
is "nothing happens: exit status" "$status$(ends)" "0 2 90 True"

train off one 2 $once --emergency-timeout=0
is "--emergency-timeout=0: nothing is captured" "$(went_back)$(said)" "0:0 0 1:0 0 "

begin term term 2 --ckpt-dir="$T/term/ckpt"
wait_for files "$D/w/ready.*" 2
kill -TERM "$elrun_pid"; finish
is "SIGTERM to elrun: exit status" "$status" 143
is "what the workers held is on disk" "$("$ELRUN" ckpt ls "$T/term/ckpt" --json | "$PY" -c '
import json, sys
for x in json.load(sys.stdin)["checkpoints"]:
    print(x["step"], x["state"], *sorted(x["flags"]))')" "6 valid emergency latest"
is "and whole" "$("$ELRUN" ckpt verify --deep "$T/term/ckpt/step-000000006" >/dev/null 2>&1; echo $?)" 0
is_clean term

begin handler handler 2 --ckpt-dir="$T/handler/ckpt"
wait_for files "$D/w/ready.*" 2
kill -TERM "$elrun_pid"; finish
like "scripts that handle SIGTERM: their state is captured, of each what is its own" "$(said)" "step 6 is captured from 2 live workers"
is "then they take the steps that they want to" "$(ends)" " 2 90 True"
is_clean handler

train hang hang 2 $once --hang-timeout=4
is "all stand still: what they held" "$(went_back)" "0:6 60 1:6 60 "
is_clean hang

train silent silent 2 $once --emergency-timeout=1
is "the holder does not answer: the snapshot" "$(went_back)" "0:0 0 1:0 0 "
like "why" "$(said)" "step 6 was not copied in time"
is_clean silent
finished
