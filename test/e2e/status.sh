# Exit statuses: the worker's own, 128+n, elrun's own numbers, and what --exit-code makes of them.
# Seen to fail: a build that gives a signal's number without 128 (failure.c); torchrun 2.13 in its place.
. "$(dirname "$0")/../lib/e2e.sh"
for code in 0 1 3 85 255; do
    run_workers 1 -- exit $code
    is "a worker exits with $code" "$status" $code
done
for pair in SEGV:139 KILL:137 TERM:143 ABRT:134 USR1:138; do
    run_workers 2 -- @1 raise ${pair%:*} forever
    is "a worker is ended by SIG${pair%:*}" "$status" ${pair#*:}
done
run_workers 3 -- touch "$T/w" @2 await "$T/w.0.0" @2 await "$T/w.0.1" @2 exit 9 on TERM 33 forever
is "the first failure decides, not what its siblings say when they are stopped" "$status" 9

for pair in 0:0 1:1 85:1 255:1; do
    run_workers 1 --exit-code=torchrun -- exit ${pair%:*}
    is "--exit-code=torchrun: worker ${pair%:*}" "$status" ${pair#*:}
done
run_workers 1 --exit-code=torchrun -- raise SEGV
is "--exit-code=torchrun: a signal" "$status" 1
run --exit-code=torchrun --standalone --no-python "$T/none"
is "--exit-code=torchrun: missing program" "$status" 1
run --exit-code=torchrun --no-such-option x
is "--exit-code=torchrun: usage" "$status" 2
run_workers 1 --exit-code=class -- raise KILL
is "--exit-code=class: killed from outside" "$status" 75

run --standalone --no-python "$T/none"
is "missing program" "$status" 66
run
is "no script" "$status" 2
run help
is "help" "$status" 0
run --help
is "--help" "$status" 0
run version
is "version" "$status" 0
run version --json
is "version --json" "$status" 0
ok "version --json is JSON" sh -c "tr -d '\n' <'$OUT' | grep -Eq '^\{.*\"version\": ?\"[^\"]+\".*\}\$'"
for shell in bash zsh fish; do run completion $shell; is "completion $shell" "$status" 0; ok "completion $shell says something" test -s "$OUT"; done
run --nproc-per-mode=2 x
is "misspelt option: status" "$status" 2
like "misspelt option: what was meant" "$(cat "$ERR")" 'nproc-per-node'
run rnu --x
like "misspelt command or missing script: one clear line" "$(cat "$ERR")" 'rnu'
is_clean "at the end"
finished
