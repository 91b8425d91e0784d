# What a newcomer sees first: make demo.  It tells the story to its end, and leaves nothing but the logs that it names.
# Seen to fail: without the line of say_last_lines() of report_end_io.c after a restart; with torchrun 2.13 in elrun's place, at
# whatever elrun says.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch, sklearn' 2>/dev/null || skip_all "this python3 has no torch: $PY"
E2E_MARK="$T" TMPDIR="$T/tmp" timeout -k 5 $((2 * DEADLINE)) sh "$HERE/../../examples/demo.sh" >"$OUT" 2>"$ERR" </dev/null
is "exit status" "$?" 0
like "worker 1 is shot" "$(cat "$OUT")" '^--- half-way: kill -9 [0-9]+, which is worker 1$'
like "both ranks resume" "$(grep -c 'resumes after epoch [6-9]$\|resumes after epoch 1[0-2]$' "$OUT")" '^2$'
like "accuracy" "$(cat "$OUT")" 'accuracy on the test images: 9[0-9]\.[0-9]%$'
like "the restart is told" "$(cat "$ERR")" '^elrun: rank 1 failed: .*SIGKILL'
like "one line accounts for the time" "$(cat "$ERR")" 'time: .* starting, .* running \([0-9.]+%\), .* stopping; 1 restart: siblings signalled in .*, all up again in '
like "the logs are named" "$(cat "$OUT")" "^$T/tmp/elrun-demo\.[^/]*/logs/.*/attempt_1/0/stdout\.log$"
rm -rf "$T/tmp/torchinductor_"*
is "the logs are all that is left" "$(cd "$T/tmp" && ls -d -- * */* | sed 's/elrun-demo\.[^/]*/elrun-demo/' | tr '\n' ' ')" "elrun-demo elrun-demo/logs "
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
