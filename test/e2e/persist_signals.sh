# A second SIGTERM or SIGINT ends the wait for last words on a disk that stands still, with one line that says what was not
# written.
# Seen to fail: a build without persisting_signal() (the end comes at --lastwords-timeout, and says that).
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
    ENV="PYTHON_EXEC=$PY" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --lastwords-timeout=100 "$HERE/persist_worker.py" "$D" "$R" wait 3 ""
    wait_for files "$D/ready.*" 2
    fsfreeze -f "$T/mnt" && frozen=yes
    kill -"$2" "$elrun_pid"
    ok "$1: the last words are waited for" wait_for holds "$ERR" 'checkpoint: waiting until step 2 is on disk; one more signal ends that'
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

if [ -n "$LONG" ]; then # the limit is 30 s
    fsfreeze -f "$T/mnt" && frozen=yes
    start --standalone --ckpt-dir="$T/mnt/new" /bin/true
    ok "a directory that does not answer at the start" wait_for holds "$ERR" "^elrun: (error: )?--ckpt-dir: $T/mnt/new has not answered within 30 s: its file system stands still"
    fsfreeze -u "$T/mnt" && frozen=
    finish
    is "a directory that does not answer: exit status" "$status" 73
fi
finished
