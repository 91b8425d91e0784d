# kill -9 of who hosts the coordinator, at moments that last an instant: group rank 0 opens the store, the journal records
# the round, or the end.  strace, attached from outside, holds them open: the listen() of the agent,
# pwrite64() and fdatasync() of the journal.  After the restart there is one round, the same for all, with a higher number.
# Seen to fail: with WORLD sent before its record is on the disk (on_store_ready() of report.c), the same of END (rdzv_end()
# of round.c), with HELLO of member_message.c that reports no round and no number seen.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
command -v strace >/dev/null || skip_all "there is no program strace"
strace -qq -o /dev/null -e trace=listen -e inject=listen:delay_enter=1 true 2>/dev/null || skip_all "strace is refused here"

store() { # a coordinator that stands alone, on host 1
    nsenter -t "$(pid_of 1)" -n -m -u --wdns=/ env E2E_MARK="$T" "$ELRUN" store --bind=:: --allow=10.9.0.0/24 --state-dir="$T/state" \
        >>"$T/store.err" 2>&1 </dev/null &
    coordinator=$!
    wait_for listening
}
listening() { on 1 ss -Hltn sport = :29400 | grep -q .; }
# hold PID CALL: it stands still in front of CALL, until let_go
hold() {
    strace -qq -f -o /dev/null -p "$1" -e trace="$2" -e inject="$2:delay_enter=600000000" >"$T/strace" 2>&1 </dev/null &
    holding="$holding $!"
    wait_for grep -q '^TracerPid:.*[1-9]' "/proc/$1/status"
}
let_go() {
    for tracer in $holding; do kill -KILL "$tracer"; wait "$tracer"; done 2>/dev/null
    holding=
}
at_exit() { let_go; net_at_exit; }
holding=
state_is() { on 3 "$ELRUN" status --endpoint=node1 --json 2>/dev/null | grep -q "\"state\": *\"$1\""; }
in_journal() { grep -q ' number=2 ' "$T/state/journal"; }

# begin OPTIONS...: round 1 of three nodes, the last one on host $last; then held, told to form a round again, killed
begin() {
    rm -rf "$T/state"
    job 3 --nproc-per-node=1 "$@"
    WORK="meet enter $LOG pulse $LOG.pulse"
    [ $last = 1 ] || store
    agent a 2 --node-rank=0
    agent b 3 --node-rank=1
    agent c $last --node-rank=2
    [ $last = 1 ] && coordinator=$(pid c)
    reaches "$what: round 1" "node2 node3 node$last"
    old=$(round_pids "$(newest)")
}
form() { # STATE: a round is being formed
    on 3 "$ELRUN" restart --endpoint=node1 >"$T/asked" 2>&1 || note "$(cat "$T/asked")"
    ok "$what: a round is being formed" wait_for state_is "$1"
    ok "$what: the old workers are gone" all_gone "$old"
}
dies() {
    kill -KILL "$coordinator"
    let_go
    wait "$coordinator" 2>/dev/null
    is "$what: nobody has begun" "$(in_rounds)" 1
}
is_new() { [ "$(round_number)" -gt 1 ]; }
goes_on() {
    wait_for is_new
    reaches "$what: started again, it forms the round" "node2 node3 node$last"
    is "$what: one round, and nothing is mixed" "$(in_rounds) $(mixed)" "2 "
    is "$what: no rank had two holders" "$(overlap)" ""
    is "$what: no restart is charged" "$(column 5 "$(newest)")" "0 0 0"
    shoot_all TERM a b c
    all_end "$what: they leave" "a b c" 143
    [ $last = 1 ] || { kill -KILL "$coordinator"; wait "$coordinator" 2>/dev/null; }
}

last=3
what="opening"
begin
hold "$(pid a)" listen
form opening
dies
store
goes_on

what="recording, not written"
begin --rdzv-conf=keep_alive_interval=0.3,keep_alive_max_attempt=5
hold "$coordinator" pwrite64
form recording
in_journal
is "$what: the journal does not have it" $? 1
dies
store
goes_on

what="recording, written and not told"
begin --rdzv-conf=keep_alive_interval=0.3,keep_alive_max_attempt=60 # node a is silent while it is held
hold "$(pid a)" listen
form opening
hold "$coordinator" fdatasync # not of the record before: that round 1 is over
kill -KILL ${holding% *}
ok "$what: the journal has it" wait_for in_journal
ok "$what: and nobody knows" state_is recording
dies
store
goes_on
is "$what: its number is not used again" "$(round_number)" 3

what="the end, not written"
rm -rf "$T/state"
job 2 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.3,keep_alive_max_attempt=5
store
agent a 2 --node-rank=0
agent b 3 --node-rank=1
reaches "$what: a round" "node2 node3"
hold "$coordinator" pwrite64
: >"$GO"
ok "$what: all have succeeded" wait_for state_is closing
ok "$what: nobody knows" kill -0 "$(pid a)" "$(pid b)"
dies
store
all_end "$what: started again, it ends the job" "a b" 0
is "$what: nobody has begun again" "$(in_rounds)" 1
kill -KILL "$coordinator"
wait "$coordinator" 2>/dev/null

last=1
what="opening, coordinator in an agent"
begin --rdzv-conf=keep_alive_interval=0.5,keep_alive_max_attempt=5
hold "$(pid a)" listen
form opening
dies
status_of c
agent c 1 --node-rank=2
goes_on
wait_for no_leftovers
is "forming: no process is left" "$(leftovers)" ""
finished
