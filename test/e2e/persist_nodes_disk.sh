# Checkpoints of several nodes where the disk of one of them fails: that ends the order for all, the older checkpoint stays
# as it is, it is said once, and the job trains on; what is called a checkpoint is one.
# Seen to fail: a build that publishes what others say they have written without looking ("each its own directory").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

# job NAME MODE STEPS PERSIST OPTIONS...: two nodes with a worker each, node I writes into $R.I
job() {
    D=$T/$1 R=$T/$1/ckpt name=$1 ARGS="$2 $3"
    PERSIST=$4; shift 4
    mkdir -p "$D"
    for i in 0 1; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$name --ckpt-mem=64M "$@" \
            --ckpt-dir="$R.$i" --node-rank=$i "$HERE/persist_worker.py" "$D" "$R.0" $ARGS "$PERSIST"
        eval "node_$i=$elrun_pid"
    done
}
ends() { # STATUS
    for i in 0 1; do
        eval "elrun_pid=\$node_$i"; finish
        is "$name: node $i ends" "$status" "$1" || note "$(tail -8 "$D/err.$i")"
    done
}
said() { grep -c "job $name: checkpoint: $1" "$T/store"; } # REGEX
whole() { for i in 0 1; do "$ELRUN" ckpt verify --deep "$R.$i" >"$T/verify" 2>&1; echo $?; done | tr '\n' ' '; }
steps() { for i in 0 1; do ls "$R.$i" | grep -c '^step'; done | tr '\n' ' '; }
went_back() { cat "$D"/log.? | sed -n 's/^0 \([01]\) \([^ ]*\) .*/\1:\2/p' | tr '\n' ' '; }

serve
# The directories have one name on two hosts, and are not one.
job apart none 6 5
ends 74
is "each its own directory: that is no checkpoint of both" "$(steps)" "0 0 "
is "each its own directory: what is wrong" "$(said 'step 5 is not on disk: .* is missing: is --ckpt-dir one directory for all nodes')" 1

small() { mkdir "$1" && mount -t tmpfs -o "$2" none "$1" 2>"$T/mount"; }
# What the job has just gone back to is not written anew, in whose place it would have to go first.
job same keep 2 1 --ckpt-store=local
ends 0
places() { stat -c %Y.%y "$R".?/step-000000001/MANIFEST.json | md5sum | cut -c1-8; }
before=$(places)
rm "$D"/log.?
killed; serve # which knows nothing of the one that has ended
job same back 4 "" --ckpt-store=local
ends 137
is "emergency checkpoint of a step that was read from disk: it stays" "$(went_back)$(places) $(whole)" "0:1 1:1 $before 0 0 "
# A manifest that was written before steps had a lineage.
for i in 0 1; do "$PY" "$HERE/manifest_edit.py" "$R.$i/step-000000001/MANIFEST.json" lineage -; done
rm "$D"/log.?
killed; serve
job same keep 3 "" --ckpt-store=local
ends 0
is "manifests of an older elrun: all go on from them" "$(went_back)$(whole)" "0:1 1:1 0 0 "

# Two steps with one number: the directory of one node is from before the job began anew.
job two keep 2 1 --ckpt-store=local
ends 0
mv "$R.0" "$R.0.old" && mv "$R.1" "$R.1.old"
killed; serve
job two keep 2 1 --ckpt-store=local
ends 0
mv "$R.1" "$R.1.new" && mv "$R.1.old" "$R.1"
rm "$D"/log.?
killed; serve
job two keep 3 "" --ckpt-store=local
ends 9
is "a step of two histories: nobody goes on from it" "$(went_back)" ""
ok "a step of two histories: it is said" holds "$D/err.0" \
    'no snapshot is left that every rank can have .step 1 is of one history on .*, of another on .*; --allow-fresh would'
mv "$R.1" "$R.1.old" && mv "$R.1.new" "$R.1"
killed; serve
job two keep 3 "" --ckpt-store=local
ends 0
is "a step of two histories: with the right directory all go on" "$(went_back)" "0:1 1:1 "

frozen=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/frozen/ckpt.1"
    umount "$T/full/ckpt.1" "$T/half/ckpt.1" "$T/frozen/ckpt.1" 2>"$T/umount"
}
if mkdir "$T/full" && small "$T/full/ckpt.1" size=3300k; then # room for two of node 1's
    job full fails 6 0,1,2 --ckpt-store=local
    for s in 0 1; do wait_for test -e "$R.1/step-00000000$s/MANIFEST.json"; touch "$D/failed.$s"; done
    ok "a full disk of one node: it is said" wait_for holds "$T/store" \
        'checkpoint: step 2 is not on disk: .*No space left on device .*ckpt gc'
    touch "$D/failed.2"
    ends 74
    ok "a full disk of one node: both say what they owe" holds "$D/err.0" "^elrun: the script wanted step 2 on disk .*: .*No space left"
    is "a full disk of one node: once" "$(said 'step 2 is not on disk')" 1
    is "a full disk of one node: both have what was there before" "$(steps)$(whole)" "2 2 0 0 "
    is "a full disk of one node: no half of one is left" "$(ls -A "$R.0/.stage" "$R.1/.stage" | grep -c step)" 0
    rm "$D"/log.?
    killed; serve # which knows nothing of the one that has ended
    job full keep 3 "" --ckpt-store=local
    ends 0
    is "a full disk of one node: all go on from the one before" "$(went_back)" "0:1 1:1 "
else
    skip "a full disk of one node" "no right to mount"
fi

# All files are written, but on one node there is no room for the manifest: of the other one it is no checkpoint either.
if mkdir "$T/half" && small "$T/half/ckpt.1" nr_inodes=7; then
    job half fails 3 1 --ckpt-store=local
    ok "a disk that is full at the last moment: it is said" wait_for holds "$T/store" \
        'job half: checkpoint: step 1 is not on disk: .*MANIFEST.*No space left'
    touch "$D/failed.1"
    ends 74
    is "a disk that is full at the last moment: nobody calls it a checkpoint" "$(cat "$D"/err.? | grep -c 'step 1 is on disk')" 0
fi

# The coordinator dies in the middle of an order, for one of the disks stands still.
mkdir -p "$T/frozen/ckpt.1"
if dd if=/dev/zero of="$T/img" bs=1M count=32 2>"$T/mount" && mkfs.ext4 -q "$T/img" 2>"$T/mount" &&
    mount -o loop "$T/img" "$T/frozen/ckpt.1" 2>"$T/mount"; then
    rmdir "$T/frozen/ckpt.1/lost+found"
    job frozen gate 3 1 --ckpt-store=local
    wait_for files "$D/at.?" 2
    fsfreeze -f "$R.1" && frozen=yes
    : >"$D/go"
    wait_for files "$R.0/.stage/*/shard*" 1
    killed
    ok "the coordinator dies: there is another one" wait_for holds "$D/err.?" 'round 1 is rebuilt'
    fsfreeze -u "$R.1" && frozen=
    ends 0
    is "the coordinator dies in the middle of an order: the next one gives it again" "$(steps)$(whole)" "1 1 0 0 "
else
    skip "a coordinator that dies in the middle of an order" "no right to mount a file system"
    killed
fi
wait_for no_leftovers
finished
