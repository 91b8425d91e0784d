# An agent that is stopped (SIGSTOP, a debugger, a starved container) cannot kill its workers when the others go on
# without it: its guard does, so that no rank has two live holders.
# Seen to fail: before the guard knew the fence, workers of the stopped agent lived on beside those of the next round.
. "$(dirname "$0")/../lib/e2e.sh"
at_exit() { kill -KILL $store $first $second 2>/dev/null; }
cat >"$T/worker.sh" <<'EOF'
echo "$$ $RANK $WORLD_SIZE" >>"$1/$2.$WORLD_SIZE"
until test -e "$1/finish"; do sleep 0.05; done
EOF
E2E_MARK=$T "$ELRUN" store --port=0 --port-file="$T/port" >"$T/store.log" 2>&1 &
store=$!
wait_for test -s "$T/port"
agent() { # NAME
    exec env E2E_MARK="$T" TMPDIR="$T/tmp" "$ELRUN" --nnodes=1:2 --nproc-per-node=2 --no-python --rdzv-endpoint="localhost:$(cat "$T/port")" \
        --rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2 sh "$T/worker.sh" "$T" "$1" >"$T/$1.log" 2>&1
}
lines() { test "$(cat "$1" 2>/dev/null | wc -l)" = "$2"; }
none_of() { for p in $(cut -d ' ' -f 1 "$1"); do ended "$p" || return 1; done; } # FILE: its processes have ended
agent a &
first=$!
agent b &
second=$!
ok "two nodes run" wait_for lines "$T/b.4" 2
ok "on both" wait_for lines "$T/a.4" 2

kill -STOP $second
ok "the other goes on without the stopped agent" wait_for lines "$T/a.2" 2
ok "the stopped agent's workers are dead" wait_for none_of "$T/b.4"
ok "and it is still stopped" grep -q '^State:.T' /proc/$second/status
kill -CONT $second
ok "awake, it joins again" wait_for lines "$T/b.4" 4
ok "so does the other" wait_for lines "$T/a.4" 4
touch "$T/finish"
wait $first; is "the first agent succeeds" $? 0
wait $second; is "the second one too" $? 0
kill $store; wait $store
is_clean "at the end"
finished
