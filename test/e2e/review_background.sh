# The status line belongs to whoever has the terminal: a job in the background must not paint over the shell's prompt.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3}"
python3=$PY; [ -x "$python3" ] || python3=python3
at_terminal() { # STEPS... -- COMMAND...: what the terminal showed is in $OUT
    env $SIGNALS E2E_MARK="$T" TMPDIR="$T/tmp" TERM=xterm "$python3" "$HERE/terminal.py" "$@" >"$OUT" 2>"$ERR"
}
line='running, round 1'

at_terminal "=$line" '=over 0' -- bash -mc '"$0" --nproc-per-node=1 --no-interactive --tee=3 --no-python sleep 1.5; echo over $?' "$ELRUN"
like "in the foreground there is a status line" "$(cat "$OUT")" "$line"

# A shell with job control starts it in a group of its own and keeps the terminal.
at_terminal '=first' '=second' '=over 0' -- bash -mc \
    '"$0" --nproc-per-node=2 --tee=3 --log-dir="$2" --no-python "$1" @0 out first sleep 1500 @0 out second & wait $!; echo over $?' "$ELRUN" "$WORKER" "$T/logs"
like "in the background: the output of workers is shown" "$(cat "$OUT")" 'second'
unlike "in the background: there is no status line" "$(cat "$OUT")" "$line"

# Back in the foreground it is there again.
at_terminal '=first' "=$line" '=over 0' -- bash -mc \
    '"$0" --nproc-per-node=2 --tee=3 --log-dir="$2" --no-python "$1" @0 out first sleep 2500 & fg %1 >/dev/null; echo over $?' "$ELRUN" "$WORKER" "$T/logs"
like "fg: the status line is back" "$(cat "$OUT")" "$line"
is_clean "background and foreground"
finished
