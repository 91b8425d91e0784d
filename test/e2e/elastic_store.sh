# A stand-alone coordinator (elrun store) on a host that does not train: killed and started again while training runs; two
# jobs at once.  Seen to fail: with HELLO of member_message.c reporting round 0 ("restarted"), without `latecomer` of on_end() of
# member.c ("who comes after").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
"$ELRUN" help store 2>&1 | grep -q state-dir || skip_all "elrun store has no coordinator"

coordinator() { # the host is node1
    nsenter -t "$(pid_of 1)" -n -m -u --wdns=/ env E2E_MARK="$T" "$ELRUN" store --bind=:: --allow=10.9.0.0/24 --state-dir="$T/state" >>"$T/store.out" 2>>"$T/store.err" </dev/null &
    coordinator_pid=$!
}
listening() { on 1 ss -Hltn sport = :29400 | grep -q .; }
mkdir "$T/state"
coordinator
ok "it listens" wait_for listening
settings="--rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5"
job 1:3 --nproc-per-node=1 "$settings" --scale-up-delay=0.2
for i in 2 3; do agent "n$i" $i --node-rank=$((i - 2)); done
reaches "two nodes" "node2 node3"
pids=$(round_pids "$(newest)")

kill -KILL $coordinator_pid; wait $coordinator_pid 2>/dev/null
sleep 1.5 # longer than silence may last
ok "killed: workers do not notice" kill -0 $pids
coordinator
wait_for listening
known() { on 2 "$ELRUN" status --endpoint=node1 --json 2>/dev/null | grep -q running; }
ok "restarted: it knows the job again" wait_for known
ok "restarted: workers have not noticed" kill -0 $pids
is "restarted: no new round" "$(round_number)" 1
agent n4 3 --node-rank=2
reaches "restarted: a newcomer is taken in as usual" "node2 node3 node3"
is "restarted: the next number" "$(round_number)" 2

kill -KILL $coordinator_pid; wait $coordinator_pid 2>/dev/null
kill -KILL "$(pid n4)"; status_of n4 # a node is lost while nobody coordinates
coordinator
reaches "a node lost meanwhile: the others go on" "node2 node3"
pids=$(round_pids "$(newest)")

LOG1=$LOG GO1=$GO
job 2 --nproc-per-node=1; agent m2 2; agent m3 3
gathers "a second job at the same time" "node2 node3"
all_end "the second job ends" "m2 m3" 0
LOG=$LOG1 GO=$GO1
ok "the first does not notice" kill -0 $pids
agent late 3; status_of late
is "who comes after the second job's end gets its status" "$status" 0
like "who comes after the end is told so" "$(err late)" 'job2 had ended before this node came .*another --rdzv-id'
all_end "the first job ends" "n2 n3" 0
kill -TERM $coordinator_pid; wait $coordinator_pid; is "the coordinator ends" $? 0
wait_for no_leftovers
is "store: no process is left" "$(leftovers)" ""
finished
