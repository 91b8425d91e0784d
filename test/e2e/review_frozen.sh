# The error file that elrun's own parent asked for (TORCHELASTIC_ERROR_FILE) lies on a file system that stands still: the
# report comes, and elrun ends.  So does $XDG_RUNTIME_DIR: workers start all the same.
. "$(dirname "$0")/../lib/e2e.sh"
frozen= mounted=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/mnt"
    [ -z "$mounted" ] || umount "$T/mnt"
}
if dd if=/dev/zero of="$T/img" bs=1M count=16 2>/dev/null && mkfs.ext4 -q "$T/img" 2>/dev/null && mkdir "$T/mnt" &&
    mount -o loop "$T/img" "$T/mnt" 2>/dev/null; then
    mounted=yes
    ENV="TORCHELASTIC_ERROR_FILE=$T/mnt/error.json"
    run_workers 2 -- @1 exit 3 forever
    ok "a file system that works: the error file is written" grep -q '"message"' "$T/mnt/error.json"
    rm "$T/mnt/error.json"
    fsfreeze -f "$T/mnt" && frozen=yes
    start_workers 2 -- @1 exit 3 forever
    ok "a frozen error file: the report comes all the same" wait_for grep -q 'rank 1 failed: exit code 3' "$ERR"
    ok "a frozen error file: elrun ends" wait_for ended "$elrun_pid"
    like "a frozen error file: told in one line" "$(cat "$ERR")" "warning: error file $T/mnt/error.json: could not be written"
    fsfreeze -u "$T/mnt" && frozen=
    finish
    is "a frozen error file: exit status" "$status" 3
    is_clean "a frozen error file"

    # The folder of the Python package is made elsewhere.
    fsfreeze -f "$T/mnt" && frozen=yes
    ENV="XDG_RUNTIME_DIR=$T/mnt"
    start_workers 1 -- record "$T/rec" forever
    ok "a frozen \$XDG_RUNTIME_DIR: the job runs" wait_for files "$T/rec*" 1
    fsfreeze -u "$T/mnt" && frozen=
    like "a frozen \$XDG_RUNTIME_DIR: the package lies elsewhere" "$(envof "$(ls $T/rec* | head -1)" PYTHONPATH)" "^/dev/shm/elrun-[^/]{6}/py(:|$)"
    kill "$elrun_pid"
    finish
    ENV=
    rm -rf "$T"/mnt/*
    is_clean "a frozen \$XDG_RUNTIME_DIR"
else
    skip "frozen error file" "no right to mount a file system"
fi
finished
