# On a terminal: pdb and Ctrl-C in rank 0, the status line, colours, job control in a shell.
# Seen to fail: builds without AGENT_DO_SUSPEND (agent.c), and without output_resized() at SIGWINCH ("size").
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3}"
"$PY" -c 'import pty' 2>/dev/null || skip_all "no python3"
export PYTHON_EXEC="$PY" TERM=xterm TMPDIR="$T/tmp" OMP_NUM_THREADS=1 # or a line about it comes at any time
play() { env --default-signal E2E_MARK="$T" $ENV "$PY" "$HERE/terminal.py" "$@" >"$OUT" 2>&1 </dev/null; status=$(sed -n 's/^status //p' "$OUT"); }
seen() { ! grep -q '^not seen:' "$OUT"; }
screen() { tr -d '\r' <"$OUT"; }

# pdb, with one worker: automatic.
cat >"$T/debug.py" <<'PYTHON'
import os
x = 6 * 7
breakpoint()
print("after", x + 1)
PYTHON
play '=\(Pdb\) ' '<p x\n' '=42' '<x = 99\n' '=\(Pdb\) ' '<c\n' '=after 100' -- "$ELRUN" --standalone "$T/debug.py"
ok "pdb with one worker: the dialogue" seen
is "pdb with one worker: exit status" "$status" 0
# With two workers it must be asked for; rank 1 does not read the terminal.
cat >"$T/two.py" <<'PYTHON'
import os, sys, time
if os.environ["RANK"] == "0":
    breakpoint()
    open(sys.argv[1], "w").close()
else:
    print("rank 1 reads", repr(sys.stdin.read()))
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
PYTHON
play "=rank 1 reads ''.*\(Pdb\) |\(Pdb\) .*rank 1 reads ''" '<p 6*7\n' '=\n42\r' '<c\n' -- "$ELRUN" --standalone --nproc-per-node=2 --interactive "$T/two.py" "$T/two.go"
ok "pdb with two workers and --interactive: the dialogue" seen
is "pdb with two workers and --interactive: exit status" "$status" 0

# Ctrl-C goes to the debugged rank, not to elrun; afterwards the terminal is elrun's again.
cat >"$T/int.py" <<'PYTHON'
import time
try:
    print("ready"); time.sleep(600)
except KeyboardInterrupt:
    print("interrupted, going on")
PYTHON
play '=ready' '<\x03' '=interrupted, going on' -- "$ELRUN" --standalone "$T/int.py"
ok "Ctrl-C with one worker reaches the script" seen
is "Ctrl-C with one worker: exit status" "$status" 0
# A worker that makes an exit status of its own of it is not started again; one that fails later, for another reason, is.
cat >"$T/own.py" <<'PYTHON'
import os, sys, time
open(sys.argv[2], "w").write(str(os.getpid()))
try:
    print("ready", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
    time.sleep(600 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
except KeyboardInterrupt:
    time.sleep(float(sys.argv[1]))
    sys.exit(1)
PYTHON
play '=ready' '<\x03' -- "$ELRUN" --standalone --max-restarts=1 "$T/own.py" 0.3 "$T/own.pid"
is "Ctrl-C with one worker that exits with 1: exit status" "$status" 130
unlike "… and no restart" "$(screen)" 'ready 1'
like "… and elrun says so" "$(screen)" 'ended by SIGINT'
play '=ready' '<\x03' '=ready 1' -- "$ELRUN" --standalone --max-restarts=1 --shutdown-timeout=0.2 "$T/own.py" 1 "$T/own.pid"
ok "one that ends long after Ctrl-C has failed by itself" seen
is "… and is started again" "$status" 0
play '=ready' "!kill -INT \$(cat $T/own.pid)" '=ready 1' -- "$ELRUN" --standalone --max-restarts=1 "$T/own.py" 0 "$T/own.pid"
ok "a SIGINT of kill(1) to the worker alone is no Ctrl-C" seen
play '=ready' '<\x03' -- "$ELRUN" --standalone --no-interactive "$T/int.py"
is "Ctrl-C without --interactive ends the job" "$status" 130
play '=up' '<\x03' -- "$ELRUN" --standalone --nproc-per-node=2 --no-python "$WORKER" catch INT "$T/int.got" on INT 0 touch "$T/int" @1 await "$T/int.0.0" @1 out up forever
is "Ctrl-C with two workers: exit status" "$status" 130
is "Ctrl-C with two workers: both got SIGINT once" "$(sort "$T/int.got" | tr '\n' ';')" "2 0;2 1;"
is_clean "debugger and Ctrl-C"

# Ctrl-S: a terminal that stands still stops nothing but the output.
play '=up' '<\x13' "!: >$T/xoff.go; sleep 0.5; kill -TERM \$PID; until [ \"\$(wc -l <$T/xoff.got)\" = 2 ]; do sleep 0.02; done" '<\x11' -- \
    "$ELRUN" --standalone --nproc-per-node=2 --tee=1 --log-dir="$T/xoff" --no-python "$WORKER" catch TERM "$T/xoff.got" on TERM 0 \
    touch "$T/x" @1 await "$T/x.0.0" @1 out "up
" await "$T/xoff.go" flood 100000 100 forever
ok "a stopped terminal, SIGTERM: the workers were told" seen
is "a stopped terminal, SIGTERM: exit status" "$status" 143

# Job control: Ctrl-Z stops the job, fg continues it.
cat >"$T/jobs.sh" <<'SCRIPT'
set -m
"$@"
echo "stopped with $?"
fg >/dev/null
echo "over with $?"
SCRIPT
play '=up' '<\x1a' '=stopped with 14[78]' '=over with 0' -- bash "$T/jobs.sh" "$ELRUN" --standalone --nproc-per-node=2 --no-python "$WORKER" touch "$T/jc" \
    @1 await "$T/jc.0.0" @1 out up sleep 1500
ok "Ctrl-Z and fg in a shell" seen
# … and the status line does not stand in the shell's way meanwhile.  The terminal echoes ^Z after it has sent the signal.
play '=running, round 1' '<\x1a' '=\x1b\[K(\^Z|\s)*(\[1\][^\r\n]*[\s]*)?stopped with 14[78]' '=running, round 1' '=over with 0' -- bash "$T/jobs.sh" "$ELRUN" --standalone \
    --nproc-per-node=2 --redirects=3 --log-dir="$T/jl" --no-python "$WORKER" sleep 5000
ok "Ctrl-Z and fg: the status line is wiped, and drawn again" seen
is_clean "job control"

# The status line is for terminals; colours honour NO_COLOR.
esc=$(printf '\033')
play '=running' -- "$ELRUN" --standalone --nproc-per-node=2 --redirects=3 --log-dir="$T/st" --no-python "$WORKER" sleep 1500
ok "a status line on a terminal" seen
ENV=NO_COLOR=1
play -- "$ELRUN" --standalone --redirects=3 --log-dir="$T/nc" --no-python "$WORKER" exit 3
unlike "NO_COLOR: no colours in the report" "$(screen)" "$esc\[[0-9;]*[1-9][0-9;]*m"
ENV=
play -- "$ELRUN" --standalone --redirects=3 --log-dir="$T/co" --no-python "$WORKER" exit 3
like "colours in the report otherwise" "$(screen)" "$esc\[[0-9;]*m"
run_workers 2 --redirects=3 --log-dir="$T/nt" -- sleep 300
unlike "no status line and no escape sequence in a file" "$(cat "$ERR")" "$esc|running ·"

# stderr that is a terminal is read on its way, unless it is to be left alone.
cat >"$T/tty.py" <<'PYTHON'
import sys
print("stderr is a terminal:", sys.stderr.isatty())
raise KeyError("deep inside")
PYTHON
play -- "$ELRUN" --standalone --no-interactive --capture-stderr=no "$T/tty.py"
like "--capture-stderr=no: stderr on a terminal is left alone" "$(screen)" 'stderr is a terminal: True'
like "… and the report says how to get more" "$(screen)" 'capture-stderr'
play -- "$ELRUN" --standalone --no-interactive "$T/tty.py"
like "in a terminal: one for the worker" "$(screen)" 'stderr is a terminal: True'
like "in a terminal: the report has the exception" "$(screen | sed -n '/elrun: rank 0 failed: /,$p')" "KeyError: 'deep inside'"
like "in a terminal: the last line says what becomes of the job" "$(screen | grep 'elrun:' | tail -1)" "elrun:.* ended with status 1 after "
# Its size is that of the real one, also later; its bytes arrive as they were: colours, progress bars, half lines.
cat >"$T/size.py" <<'PYTHON'
import os, sys, time
print("size", *os.get_terminal_size(2), file=sys.stderr, flush=True)
while os.get_terminal_size(2) != (132, 43): time.sleep(0.01)
sys.stderr.write("\r\x1b[31m 50%|\u2588\u2588  |\x1b[0m\r100%|\u2588\u2588\u2588\u2588|\n\tand sized anew\n")
PYTHON
play '=size 80 24' '@43x132' '=and sized anew' -- "$ELRUN" --standalone --no-interactive "$T/size.py"
ok "in a terminal: the window's size is followed" seen
ok "in a terminal: every byte as it was, but for the terminal's own line ends" grep -qF "$(printf '\r\033[31m 50%%|██  |\033[0m\r100%%|████|\r')" "$OUT"
is_clean "at the end"
finished
