# Going on from disk: a job that is started again fills its ranks from the newest checkpoint that all of them can read, with every
# byte compared, and begins at the beginning only where it should.  Seen to fail: with load_read() of load_io.c without its
# comparison ("one byte of the newest"), with choose() there taking what was given up ("a history that was given up"), with a
# commit that takes a step for whole by its sizes ("in its place"), a load that says nothing of what is not declared ("named, once").
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
R=$T/root n=0

train() { # NPROC MODE OPTIONS...: in $BACK what each rank went back to
    n=$((n + 1)) D=$T/run.$n procs=$1 mode=$2
    shift 2
    mkdir "$D"
    ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node="$procs" --ckpt-mem=64M --ckpt-dir="$R" "$@" \
        "$HERE/snapshots_disk_worker.py" "$D" "$R" $mode
    BACK=$(cat "$D"/log.? | tr '\n' ';')
}
flip() { # FILE OFFSET: another byte there
    printf '\377\376' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

train 2 ""
is "an empty directory is a beginning" "$BACK" "0 None 0 00;1 None 0 00;"
is "and two steps are trained" "$status" 0
train 2 ""
is "started again: the newest step on disk, each rank its own" "$BACK" "0 1 10 01;1 1 11 01;"
like "it is said, with source, bytes and seconds" "$(cat "$ERR")" 'going back to step 1, from disk: [0-9.]+ MiB in [0-9.]+ s'
train 2 read
is "and again" "$BACK" "0 3 30 03;1 3 31 03;"

big=$(ls -S "$R"/step-000000003/shard-* | head -1)
flip "$big" 500000
train 2 read
is "one byte of the newest is another: all go back to the one before" "$BACK" "0 2 20 02;1 2 21 02;"
like "and it is said which file, where and why" "$(cat "$ERR")" \
    'step 3 on disk is not used: step-000000003/shard-.*: bytes 0-[0-9]+ have CRC32C [0-9a-f]{8}, the manifest says [0-9a-f]{8}'
cp -a "$R" "$T/again"
R=$T/again
train 2 one
is "trained anew, that step is written in its place" "$BACK $("$ELRUN" ckpt verify --deep "$R" >"$T/deep"; echo $?)" \
    "0 2 20 02;1 2 21 02; 0"
like "and it is said why" "$(cat "$ERR")" 'it takes the place of one of the same step: shard-.* have CRC32C'
"$PY" "$HERE/manifest_edit.py" "$R/step-000000003/MANIFEST.json" created $(($(date +%s) + 86400))
train 2 one
train 2 read
is "a clock that was put back by a day: the step that was trained last" "$BACK" "0 4 40 04;1 4 41 04;"
R=$T/root
train 2 read --ckpt-max-rollback=0
like "--ckpt-max-rollback=0: no step may be lost" "$BACK" \
    '0 none: the newest step that every rank can have is 2, and step 3 was reached: 1 steps would be lost, more than --ckpt-max-rollback=0'
flip "$R/step-000000002/MANIFEST.json" 20
truncate -s 1000 "$(ls -S "$R"/step-000000001/shard-* | head -1)"
train 2 read
is "a manifest that is damaged, a file that is cut off: the one before these" "$BACK" "0 0 0 00;1 0 1 00;"
like "the newest that is passed over is named" "$(cat "$ERR")" \
    'warning: step [0-9]* in [^ ]*: .*: it is passed over; step 0 is the newest that can be gone back to here$'
mv "$R/step-000000003" "$T/moved"
ln -s "$T/moved" "$R/step-000000003"
train 2 read
is "one that was moved, with a link in its place, is not followed" "$BACK" "0 0 0 00;1 0 1 00;"
like "and is named" "$(cat "$ERR")" 'warning: step 3 in [^ ]*: step-000000003 is a link, which is not followed: it is passed over; step 0 is the newest'
rm "$R/step-000000003"
mv "$T/moved" "$R/step-000000003"

train 1 read
like "another number of ranks: nothing is loaded, and why" "$BACK" '0 none: no snapshot is left .*it is of layout world2 \(2 ranks\), this job has world1'
train 2 larger
is "an array of another size in a dict, and a value more: there is what was saved, and no more" "$BACK" \
    "0 1048576 set();0 0 0 00;1 1048576 set();1 0 1 00;"
train 2 other
like "a part of another name: nothing is loaded" "$BACK" '0 none: no snapshot is left .*;1 none: no snapshot is left'
cp -a "$R" "$T/fewer"
R=$T/fewer
train 2 fewer
is "a part that is not declared any more: the others are put back" "$BACK" "0 0 0 00;1 0 1 00;"
is "and it is named, once" "$(grep -c 'holds what' "$ERR") $(sed -n 's/^elrun: warning: \(.* holds what\)/\1/p' "$ERR")" \
    '1 the checkpoint of step 0 holds what the script does not declare, "nomen": it is not put back, and is in no later checkpoint'
train 2 fewer
is "of a later one there is nothing to say" "$BACK $(grep -c 'holds what' "$ERR")" "0 2 20 02;1 2 21 02; 0"
R=$T/root
train 2 misfit --allow-fresh
is "an array of another shape: nothing is filled, and --allow-fresh does not change that" "$BACK" \
    "$(for r in 0 1; do echo "$r refused, 0: what was saved does not fit what is declared here, and nothing was changed: part \"nomen\": an array float64 of shape [64] was saved, and float64 of shape [65] is declared"; done | tr '\n' ';')"
is "with the worker's status" "$status" 9
mkfifo "$T/end"
ENV="PYTHON_EXEC=$PY" start --standalone --ckpt-dir="$T/locked" --no-python sh -c ": >$T/runs; cat $T/end"
first=$elrun_pid
wait_for test -e "$T/runs"
OUT=$T/out2 ERR=$T/err2 run --standalone --ckpt-dir="$T/locked" --no-python true
is "two jobs at the same time in one directory: exit status" "$status" 78
like "the second one is told" "$(cat "$T/err2")" 'another elrun that runs now writes its checkpoints into .*/locked: give each job a directory of its own'
kill -KILL "$first"
wait "$first" 2>/dev/null
run --standalone --ckpt-dir="$T/locked" --no-python true
is "a job that was killed does not hold it" "$status" 0
rm -rf "$T"/tmp/elrun* # that killed one's
rm -rf "$R/step-000000001" "$R/step-000000002" "$R/step-000000003"
rm -f "$R"/step-000000000/shard-00001*
train 2 read
like "nothing is left: not begun anew in silence" "$BACK" '0 none: no snapshot is left .*is missing'
is "with the worker's status" "$status" 9
train 2 read --allow-fresh
is "--allow-fresh" "$BACK" "0 None 0 00;1 None 0 00;"
is_clean "disk"
finished
