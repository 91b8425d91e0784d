# A sink that stands still stops nothing but the output: a full pipe as stdout, a frozen file system under the logs.
# What the workers record lies outside of what is stuck.
# Seen to fail: a build that never holds a worker's pipe back (stream_io.c).
. "$(dirname "$0")/../lib/e2e.sh"
mounted= frozen=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/mnt"
    [ -z "$mounted" ] || umount "$T/mnt" || umount -l "$T/mnt"
}

# stdout is a pipe that nobody reads: full after 64 KiB.  drain: somebody reads it after all.
begin_stuck() { # OPTIONS -- VERBS: elrun with such a pipe
    rm -f "$T/pipe"; mkfifo "$T/pipe"
    sleep 600 <"$T/pipe" & reader=$!
    OUT=$T/pipe; start_workers 2 "$@"; OUT=$T/out
}
reads() { ended "$1" || grep -q '^cat$' "/proc/$1/comm"; } # or has done so
drain() {
    cat <"$T/pipe" >"$T/drained" & drainer=$!
    wait_for reads "$drainer" # it has opened the pipe: the first reader may go
    kill "$reader"; wait "$reader" 2>/dev/null
}
told() { [ "$(sort "$1" 2>/dev/null | tr '\n' ';')" = "15 0;15 1;" ]; }
no_worker() { [ -z "$(pgrep -P "$1" -x worker)" ]; }

# This one is never read: looked at again at the end of the test.
begin_stuck --tee=1 --log-dir="$T/l0" -- catch TERM "$T/s0.got" on TERM 0 touch "$T/s0" flood 2000000 100 forever
wait_for files "$T/s0.0.*" 2; sleep 0.5
never_pid=$elrun_pid never_reader=$reader
peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$never_pid/status")
ok "stdout a full pipe, 400 MB are coming: elrun's memory is bounded ($peak KiB)" test "$peak" -lt 32768
kill -TERM "$never_pid"

begin_stuck --tee=1 --log-dir="$T/l1" -- catch TERM "$T/s1.got" on TERM 0 touch "$T/s1" flood 100000 100 forever
wait_for files "$T/s1.0.*" 2; sleep 0.5
kill -TERM "$elrun_pid"
ok "stdout a full pipe, SIGTERM: the workers are told" wait_for told "$T/s1.got"
ok "stdout a full pipe, SIGTERM: the workers are gone" wait_for no_worker "$elrun_pid"
drain; finish; wait "$drainer"
is "stdout a full pipe, SIGTERM: exit status once it is read again" "$status" 143
begin_stuck --tee=1 --max-restarts=1 --log-dir="$T/l2" -- touch "$T/s2" @0 +0 flood 100000 100 @1 +0 await "$T/s2.0.0" @1 +0 sleep 500 @1 +0 exit 3 +0 forever
ok "stdout a full pipe, a worker fails: all start again" wait_for files "$T/s2.1.*" 2
drain; finish; wait "$drainer"
is "stdout a full pipe, a worker fails: exit status" "$status" 0

# A reader that is late gets every line.
begin_stuck --tee=1 --log-dir="$T/l4" -- touch "$T/s4" flood 100000 100
wait_for files "$T/s4.0.*" 2; sleep 1
drain; finish; wait "$drainer"
is "a late reader of stdout: exit status" "$status" 0
is "a late reader of stdout: every line is there" "$(grep -c '^\[default[01]\]:[0-9]* \.*$' "$T/drained")" 200000
is "a late reader of stdout: every line is in the files" "$(cat "$T"/l4/*_*/attempt_0/?/stdout.log | wc -l)" 200000

# stdout is a pipe whose reader has gone.
rm -f "$T/pipe"; mkfifo "$T/pipe"; : <"$T/pipe" & reader=$!
OUT=$T/pipe; run_workers 2 --tee=1 --log-dir="$T/l3" -- sleep 100 flood 1000 100 touch "$T/s3"; OUT=$T/out
wait "$reader"
is "stdout a closed pipe, with tee: exit status" "$status" 0
ok "stdout a closed pipe, with tee: the workers went on" files "$T/s3.0.*" 2
is "stdout a closed pipe, with tee: the file has every line" "$(cat "$T"/l3/*_*/attempt_0/1/stdout.log | wc -l)" 1000

# stderr too, and nothing open at all.
sh -c 'exec "$@" <&- >&- 2>&-' sh env E2E_MARK="$T" TMPDIR="$T/tmp" "$ELRUN" --standalone --nproc-per-node=2 --no-python "$WORKER" record "$T/closed"
is "no standard stream is open: exit status" "$?" 0
is "no standard stream is open: the workers have all three" "$(sed -n 's/^fd \([0-9]*\) .*/\1/p' "$T/closed.0.1" | sort | tr '\n' ' ')" "0 1 2 "

# A frozen file system under the logs.
if dd if=/dev/zero of="$T/img" bs=1M count=16 2>/dev/null && mkfs.ext4 -q "$T/img" 2>/dev/null && mkdir "$T/mnt" &&
    mount -o loop "$T/img" "$T/mnt" 2>/dev/null; then
    mounted=yes
    start_workers 2 --tee=1 --log-dir="$T/mnt/logs" -- catch TERM "$T/f.got" on TERM 0 touch "$T/f" await "$T/f.go" flood 20000 100 touch "$T/f.over" forever
    wait_for files "$T/f.0.*" 2
    fsfreeze -f "$T/mnt" && frozen=yes
    : >"$T/f.go"; sleep 0.5
    kill -TERM "$elrun_pid"
    ok "frozen log folder, SIGTERM: the workers are told" wait_for told "$T/f.got"
    ok "frozen log folder, SIGTERM: the workers are gone" wait_for no_worker "$elrun_pid"
    fsfreeze -u "$T/mnt" && frozen=
    finish
    is "frozen log folder, SIGTERM: exit status" "$status" 143

    # A full disk: the workers go on, the loss is told.
    start_workers 1 --tee=1 --log-dir="$T/mnt/full" -- flood 300000 100 touch "$T/full"
    finish
    is "full disk: exit status" "$status" 0
    ok "full disk: the worker was not disturbed" test -e "$T/full.0.0"
    is "full disk: the console has every line" "$(wc -l <"$OUT")" 300000
    like "full disk: told in one line" "$(cat "$ERR")" 'No space left'
else
    skip "frozen log folder and full disk" "no right to mount a file system"
fi
# Nobody has read it to this moment: elrun has ended all the same.
elrun_pid=$never_pid; finish
is "stdout a full pipe for ever, SIGTERM: exit status" "$status" 143
ok "stdout a full pipe for ever, SIGTERM: the workers were told" told "$T/s0.got"
kill "$never_reader"; wait "$never_reader" 2>/dev/null
is_clean "at the end"
finished
