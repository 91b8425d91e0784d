# What the program that starts elrun has done to its signals is not passed on: neither to elrun, which must hear of its
# children, nor to workers, which must be able to end.
. "$(dirname "$0")/../lib/e2e.sh"

# With SIGCHLD ignored the kernel throws the status of every child away.
SIGNALS=--ignore-signal=CHLD
run_workers 2 -- @1 exit 3
is "SIGCHLD ignored at start: the status of the worker is known" "$status" 3
is_clean "SIGCHLD ignored at start"

# As a Python program leaves them behind that calls exec.
SIGNALS="--default-signal --ignore-signal=PIPE --ignore-signal=XFSZ --ignore-signal=CHLD"
run_workers 1 -- record "$T/ign"
is "signals ignored at start: none is ignored in the worker" \
    "$((0x$(sed -n 's/^status SigIgn:[^0-9a-f]*//p' "$T/ign.0.0") & 0x7fffffff))" 0

# A worker with SIGTERM blocked could neither save its state nor end before it is shot.
SIGNALS="--default-signal --block-signal=TERM --block-signal=INT --block-signal=USR1"
start_workers 2 -- record "$T/mask" catch TERM "$T/term.got" on TERM 0 touch "$T/mask.up" forever
wait_for files "$T/mask.up.0.*" 2
is "signals blocked at start: none is blocked in the worker" \
    "$(sed -n 's/^status SigBlk:[^0-9a-f]*//p' "$T/mask.0.0")" 0000000000000000
kill -TERM "$elrun_pid"; finish
is "signals blocked at start: SIGTERM ends the job" "$status" 143
is "signals blocked at start: the workers got it" "$(sort "$T/term.got" | tr '\n' ';')" "15 0;15 1;"
is_clean "signals blocked at start"
finished
