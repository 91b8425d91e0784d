# A second SIGTERM or SIGINT ends the wait for an emergency checkpoint on a disk that stands still, with one line that says what was not
# written.  A step that is wanted on disk waits for a disk that stands still; any other is left out meanwhile.
# Seen to fail: a build without persisting_signal() (the end comes at --emergency-timeout, and says that); one for which that time
# does not count; a snapshot(persist=True) that was left out.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
frozen= mounted=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/mnt"
    [ -z "$mounted" ] || umount "$T/mnt"
}
dd if=/dev/zero of="$T/img" bs=1M count=32 2>/dev/null && mkfs.ext4 -q "$T/img" 2>/dev/null && mkdir "$T/mnt" &&
    mount -o loop "$T/img" "$T/mnt" 2>/dev/null || skip_all "no right to mount a file system"
mounted=yes

cut() { # NAME FIRST SECOND: signals
    D=$T/$1 R=$T/mnt/$1; mkdir "$D"
    ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --emergency-timeout=100 "$HERE/persist_worker.py" "$D" "$R" wait 3 ""
    wait_for files "$D/ready.*" 2
    fsfreeze -f "$T/mnt" && frozen=yes
    kill -"$2" "$elrun_pid"
    ok "$1: the emergency checkpoint is waited for" wait_for holds "$ERR" 'checkpoint: waiting until step 2 is on disk; one more signal ends that'
    kill -"$3" "$elrun_pid"
    ok "$1: the second signal ends that, and it is said" wait_for holds "$ERR" "checkpoint: step 2 is not on disk: a second signal, SIG$3, came before it was written"
    fsfreeze -u "$T/mnt" && frozen=
    finish
    is "$1: exit status" "$status" "$4"
    is "$1: it is said once" "$(grep -c 'is not on disk' "$ERR")" 1
    is_clean "$1"
}
cut term TERM TERM 143
cut int INT TERM 130

# Without a second one --emergency-timeout ends it: of a job that ends badly, and of one that has ended well from a signal on.
D=$T/bad R=$T/mnt/bad; mkdir "$D"
ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --emergency-timeout=1 "$HERE/persist_worker.py" "$D" "$R" wait 3 ""
wait_for files "$D/ready.*" 2
fsfreeze -f "$T/mnt" && frozen=yes
kill -TERM "$elrun_pid"
ok "the job ends badly: its emergency checkpoint has its time, and no more" wait_for holds "$ERR" 'checkpoint: step 2 is not on disk: it was not written within 1 s of the workers. end \(--emergency-timeout\)'
fsfreeze -u "$T/mnt" && frozen=
finish
is "the job ends badly: exit status" "$status $(grep -c 'is not on disk' "$ERR")" "143 1"
is_clean bad

D=$T/well R=$T/mnt/well; mkdir "$D"
ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --emergency-timeout=1 "$HERE/persist_worker.py" "$D" "$R" gate 3 2
wait_for files "$D/at.*" 2
fsfreeze -f "$T/mnt" && frozen=yes
: >"$D/go"
ok "the job ends well: what its script wants on disk is waited for" wait_for holds "$ERR" 'checkpoint: waiting until step 2 is on disk$'
sleep 2 # longer than --emergency-timeout
is "the job ends well: as long as that takes" "$(grep -c 'is not on disk' "$ERR")" 0
kill -TERM "$elrun_pid"
ok "the job ends well: a signal bounds it" wait_for holds "$ERR" 'checkpoint: step 2 is not on disk: it was not written within 1 s of SIGTERM \(--emergency-timeout\)'
fsfreeze -u "$T/mnt" && frozen=
finish
is "the job ends well, but for that: exit status" "$status" 74
is_clean well

# Both slots are in use as long as that disk stands still: one step is being written, one is what all could go back to.
D=$T/left R=$T/mnt/left; mkdir "$D"
ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" "$HERE/persist_worker.py" "$D" "$R" left 4 1,3
wait_for files "$D/at.*" 2
fsfreeze -f "$T/mnt" && frozen=yes
: >"$D/go"
ok "a snapshot that is not wanted on disk is left out" wait_for files "$D/left.*" 2
: >"$D/thawed"
fsfreeze -u "$T/mnt" && frozen=
finish
is "one that is wanted there is waited for until the disk goes on, and is written" "$(cat "$D"/log.* | sort | uniq -c | sed 's/^ *//' | grep -v ' 0 . None')" \
    "2 not wanted on disk: False
2 taken True, thawed True
2 told 3 True"
is "and the job ends well" "$status" 0
is_clean left

if [ -n "$LONG" ]; then # the limit is 30 s
    fsfreeze -f "$T/mnt" && frozen=yes
    start --standalone --ckpt-dir="$T/mnt/new" /bin/true
    ok "a directory that does not answer at the start" wait_for holds "$ERR" "^elrun: (error: )?--ckpt-dir: $T/mnt/new has not answered within 30 s: its file system stands still"
    fsfreeze -u "$T/mnt" && frozen=
    finish
    is "a directory that does not answer: exit status" "$status" 73
fi
finished
