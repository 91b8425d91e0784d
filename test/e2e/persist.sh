# Snapshots on their way to disk, on one node: what the script wants there is a checkpoint, what a job leaves behind when it
# ends badly is one, and nothing that is wrong with the disk hurts the training.
# Seen to fail: a build that ends the job while a checkpoint is being written ("last"); one without an emergency checkpoint ("one",
# "all", "term"); one that ends with 0 although it owes a checkpoint; one that publishes without comparing what was written with what was committed ("late").
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}

begin() { # NAME MODE STEPS PERSIST ELRUN-OPTIONS...: workers in the background
    D=$T/$1; mkdir -p "$D"; R=${ROOT:-$D/ckpt}
    mode=$2 steps=$3 persist=$4; shift 4
    ENV="PYTHON_EXEC=$PY $WORDS" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" "$@" "$HERE/persist_worker.py" "$D" "$R" "$mode" "$steps" "$persist"
}
train() { begin "$@"; finish; }
WORDS= ROOT=
went_back() { cat "$D"/log.* | sed -n "s/^1 \([01]\) /\1:/p" | tr '\n' ' '; }
went_back_first() { cat "$D"/log.* | sed -n "s/^0 \([01]\) /\1:/p" | tr '\n' ' '; }
list() { "$ELRUN" ckpt ls "$R" --json | "$PY" -c '
import json, sys
for x in json.load(sys.stdin)["checkpoints"]:
    print(x["step"], x["state"], x["files"], *sorted(x["flags"]))'; }
whole() { "$ELRUN" ckpt verify --deep "$R/step-00000000$1" >"$T/verify" 2>&1; echo $?; }

train plain "" 6 2,4
is "steps that the script wants on disk: exit status" "$status" 0
is "they are checkpoints, each with a file for each part" "$(list)" "2 valid 5
4 valid 5 latest"
is "and whole, byte by byte" "$(whole 2) $(whole 4)" "0 0"
like "it is said, with size and place" "$(cat "$ERR")" 'checkpoint: step 4 is on disk: 2\.[0-9]* MB in [0-9.]* s, .*/ckpt/step-000000004$'
is "no stage is left" "$(ls -A "$R/.stage")" ""
is_clean plain

train keep keep 6 0,1,2,3 --ckpt-keep-last=2
is "--ckpt-keep-last: the older ones are gone" "$(list)" "2 valid 5
3 valid 5 latest"

train last none 4 3
is "the last step is wanted, and all workers end at once: exit status" "$status" 0
is "the job waits until it is on disk" "$(list)" "3 valid 5 latest"

train one one 4 ""
is "a worker dies and there is no restart: exit status" "$status" 137
is "emergency checkpoint: the newest step" "$(list)" "3 valid 5 emergency latest"
is "which is whole" "$(whole 3)" 0

train all all 4 ""
is "all workers die at once" "$(list)" "3 valid 5 emergency latest"

train off all 4 "" --emergency-timeout=0
is "--emergency-timeout=0: no emergency checkpoint" "$(list)" ""

train restart all 4 "" --max-restarts=1
is "all die, and are started again: exit status" "$status" 0
is "from memory" "$(went_back)" "0:3 30 1:3 30 "
is "and what they went back to is on disk" "$(list)" "3 valid 5 emergency latest"

begin term wait 4 1
wait_for files "$D/ready.*" 2
kill -TERM "$elrun_pid"; finish
is "SIGTERM to elrun: exit status" "$status" 143
is "emergency checkpoint, beside what the script wanted" "$(list)" "1 valid 5
3 valid 5 emergency latest"
is_clean term

train late late 4 ""
is "a worker wrote into its slot after the commit: the step before is kept" "$(list)" "2 valid 5 emergency latest"
like "and it is said why" "$(cat "$ERR")" 'checkpoint: step 3 is not on disk: part "state" was written to after its commit'

train megatron megatron 4 2 --ckpt-layout=megatron
is "--ckpt-layout=megatron: the files that the script names, and nothing else" "$(cd "$R" && find iter_* -type f | sort | tr '\n' ' ')" \
    "iter_0000002/MANIFEST.json iter_0000002/mp_rank_00/model_optim_rng.pt iter_0000002/mp_rank_01/model_optim_rng.pt "
is "with what they are now" "$(cat "$R"/iter_*/mp_rank_01/*)" "rank 1 step 2"
is "and Megatron's tracker" "$(cat "$R/latest_checkpointed_iteration.txt")" 2
is "no stage of that name is left" "$(ls -d "$R"/*_tmp 2>/dev/null)" ""

ROOT=$R
train again megatron 4 2 --ckpt-layout=megatron
ROOT=
is "another job there, which declares more than files: it does not begin anew in silence" "$status" 9
like "and is told why" "$(cat "$D/log.0")" 'step 2 in .*: part "(state|common)" is no file: with --ckpt-layout=megatron only declare_file\(\) is on disk'
train files files 4 3 --ckpt-layout=megatron
ROOT=$R
train more files 6 5 --ckpt-layout=megatron
ROOT=
is "files alone: the next job is given them, from disk" "$(went_back_first)" "0:3 3 1:3 3 "
is "and writes what they are then" "$(cat "$R"/iter_0000005/mp_rank_01/a/b/c/d/e.pt)" xxxxx
is "both are whole, however deep their files lie and whatever is in them" "$("$ELRUN" ckpt verify --deep "$R" | sed 's/^.*iter_0*//')" \
    "3: valid (megatron, 2 files, 6 B, 0 tensors)
5: valid (megatron, 2 files, 10 B, 0 tensors)"
is "and gc may delete" "$("$ELRUN" ckpt gc "$R" --keep-last=1 >"$T/gc" 2>&1; echo $?; ls -d "$R"/iter_* | wc -l)" "0
1"

train named file 2 ""
is "declare_file() with another layout: an error that names the option" "$(grep -h megatron "$D"/log.* | sort -u)" \
    'declare_file("a/b.pt") is for elrun --ckpt-layout=megatron; declare() is for tensors and values'
is "and the script goes on as it likes" "$status" 0

owes() { holds "$ERR" "^elrun: the script wanted step $1 on disk .persist=True., and neither it nor a later one is there\$"; }
train events events 4 1,2
is "wait_persist(): it is a checkpoint; events() say so" "$(cat "$D"/log.* | sed -n '/^told 1/p; /1)\]$/p' | sort | uniq -c | tr -s ' ')" " 2 events [('persisted', 1), ('committed', 1)]
 2 told 1 True"
is "it will not be one: why" "$(grep -ch '^step 2 is not on disk: .*No such file or directory' "$D"/log.* | tr '\n' ' ')" "1 1 "
is "and the event" "$(grep -ch "^events \[('failed', 2)\]" "$D"/log.* | tr '\n' ' ')" "1 1 "
is "the job has trained to its end, and owes a checkpoint" "$status" 74
ok "which one is said" owes 2

# --- the disk -----------------------------------------------------------------------------------------------------
refused() { # NAME STATUS REGEX OPTIONS...
    name=$1 want=$2 text=$3; shift 3
    run --standalone "$@" /bin/true
    is "$name: exit status" "$status" "$want"
    like "$name: one line" "$(cat "$ERR")" "^elrun: (error: )?$text"
    [ "$want" = 2 ] || is "$name: no more" "$(wc -l <"$ERR")" 1
}
echo x >"$T/file"
refused "a file" 66 "--ckpt-dir: $T/file: (File exists|Not a directory)" --ckpt-dir="$T/file"
mkdir "$T/linked" "$T/elsewhere"; ln -s "$T/elsewhere" "$T/linked/.stage"
refused "a link out of it" 77 "--ckpt-dir: use $T/linked/.stage: a component of this path is a link" --ckpt-dir="$T/linked"
is "nothing was made where it leads" "$(ls -A "$T/elsewhere")" ""
refused "without a directory" 2 "--ckpt-keep-last is for checkpoints on disk: say where, with --ckpt-dir=DIR" --ckpt-keep-last=3

D=$T/other R=$T/other/ckpt; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --rdzv-id=first --nproc-per-node=1 --ckpt-dir="$R" "$HERE/persist_worker.py" "$D" "$R" none 2 1
is "without --ckpt-mem there is memory, too" "$status" 0
run --rdzv-id=second --nproc-per-node=1 --ckpt-dir="$R" /bin/true
is "a directory of another job: exit status" "$status" 78
like "a directory of another job: one line with both" "$(cat "$ERR")" "^elrun: .*--ckpt-dir: $R holds checkpoints of another job: step-000000001 is of run id first, this one is second"

small() { mkdir "$T/$1" && mount -t tmpfs -o "$2" none "$T/$1" 2>/dev/null; }
at_exit() { umount "$T/full" "$T/ro" 2>/dev/null; }
seen_failed() { holds "$ERR" "checkpoint: step $1 is not on disk: $2"; }
if small full size=6m; then # room for two of them
    ROOT=$T/full
    begin disk fails 6 0,1,2
    for s in 0 1; do wait_for test -e "$ROOT/step-00000000$s/MANIFEST.json"; touch "$D/failed.$s"; done
    wait_for seen_failed 2 ".*No space left on device"
    is "a full disk: older checkpoints are untouched" "$(whole 0) $(whole 1)" "0 0"
    touch "$D/failed.2"; finish
    is "a full disk: the training goes on, and it owes a checkpoint at the end" "$status" 74
    ok "a full disk: which one is said" owes 2
    is "a full disk: no half of one is left" "$(ls -A "$ROOT/.stage")" ""
    is "a full disk: why is said once" "$(grep -c 'No space left' "$ERR")" 1
    is "a full disk: what is needed and how to get it" "$(grep -c 'bytes are needed; older checkpoints are untouched; `elrun ckpt gc` makes room' "$ERR")" 1
    rm -rf "$ROOT"/step-*
    begin room fails 6 0,1,2,3
    for s in 0 1 3; do touch "$D/failed.$s"; done
    wait_for seen_failed 2 ".*No space left on device"
    mount -o remount,size=32m "$ROOT"; touch "$D/failed.2"; finish
    is "a disk that was full for a while: a later one is there, and nothing is owed" "$status $(whole 3)" "0 0"
    ROOT=
else
    skip "no right to mount" "a full disk"
fi
if small ro size=16m; then
    ROOT=$T/ro
    begin readonly fails 4 0,1
    wait_for test -e "$ROOT/step-000000000/MANIFEST.json"
    mount -o remount,ro "$ROOT"; touch "$D/failed.0"
    wait_for seen_failed 1 ".*Read-only file system"
    touch "$D/failed.1"; finish
    is "the disk becomes read-only: the training goes on" "$status" 74
    is "the disk becomes read-only: what is there is whole" "$(whole 0)" 0
    refused "read-only from the start" 73 "--ckpt-dir: $ROOT cannot be written to: Read-only file system" --ckpt-dir="$ROOT"
    ROOT=
else
    skip "no right to mount" "a read-only disk"
fi
begin vanished fails 4 0,1
wait_for test -e "$R/step-000000000/MANIFEST.json"
mv "$R" "$R.gone" && rm -rf "$R.gone"; touch "$D/failed.0"
wait_for seen_failed 1 ".*No such file or directory"
touch "$D/failed.1"; finish
is "the directory vanishes: the training goes on" "$status" 74
begin moved fails 4 0,1
wait_for test -e "$R/step-000000000/MANIFEST.json"
mv "$R" "$R.moved" && mkdir "$R"; touch "$D/failed.0"
wait_for seen_failed 1 ".*another directory than it was at the start: it was moved or replaced"
touch "$D/failed.1"; finish
is "the directory is moved and another one made: the training goes on" "$status" 74
is "nothing is written where nobody looks" "$(ls "$R" "$R.moved" | grep -c step-000000001)" 0
is_clean vanished
finished
