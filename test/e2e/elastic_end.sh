# How a job of several nodes ends, on every agent: done, failed, never formed, coordinator lost.
# Seen to fail: without give_up() in member_link.c (69 and 75); an agent that stayed for nobody, and for ever, with
# core.leaving as the condition in on_staying() of membership_io.c.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3

job 3 --nproc-per-node=2
for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
reaches "three nodes" "node1 node1 node2 node2 node3 node3"
all_end "done: 0 on every agent" "n1 n2 n3" 0

job 3 --nproc-per-node=1
WORK="meet enter $LOG @2 await $GO @2 exit 43 @0 forever"
for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
reaches "failed: three nodes" "node1 node2 node3"
all_end "failed: the worker's code on every agent, also where all had succeeded" "n1 n2 n3" 43
like "failed: the cause is named on another node" "$(err n1)" 'rank 2 on node3'

job 3 --nproc-per-node=1 --rdzv-conf=join_timeout=1
agent n1 1; agent n2 2; all_end "not enough nodes: 69 on every agent" "n1 n2" 69
like "not enough nodes: how many there were" "$(err n2)" '2 of 3 nodes'

job 2 --nproc-per-node=1 --rdzv-conf=join_timeout=1
agent n2 2; all_end "nobody there: 69" n2 69
like "nobody there: where it looked" "$(err n2)" 'refused|10\.9\.0\.1'

job 2 --nproc-per-node=1
agent n1 1; wait_for holds "$T/n1.err" '1 of 2 nodes'; agent x 2 --max-restarts=3; status_of x
is "other settings: 78" "$status" 78
like "other settings: the option and both values" "$(err x)" 'with --max-restarts=3, job .* with --max-restarts=0: give all'
JOB="$(echo "$JOB" | sed 's/nnodes=2/nnodes=3/')"; agent x 2; status_of x
is "other number of nodes: 78" "$status" 78
like "other number of nodes: the option and both values" "$(err x)" 'with --nnodes=3, job .* with --nnodes=2: give all'
kill -KILL "$(pid n1)"; status_of n1

job 3 --nproc-per-node=1
agent n1 1 --node-rank=0; agent n2 2 --node-rank=1
wait_for holds "$T/n1.err" 'node2 .*has joined'
like "two agents of one host could be told apart" "$(err n1)" "node2 \\(node rank 1, pid $(pid n2)\\) has joined"
agent x 3 --node-rank=1 --rdzv-conf=join_timeout=1; status_of x
is "a node rank given twice: 78 when the time is over" "$status" 78
like "a node rank given twice: who has it, and how long this one tries" "$(err x)" "which node2 \\(node rank 1, pid $(pid n2)\\) has, .*tries again for 1 s"
shoot_all KILL n1 n2; status_of n1; status_of n2

# --- the coordinator is lost for good, with the host of rank 0 elsewhere: workers run on, then 75
job 1:3 --nproc-per-node=1 --coordinator-timeout=3
agent n1 1 --node-rank=2; agent n2 2 --node-rank=0; agent n3 3 --node-rank=1
reaches "coordinator lost: three nodes" "node2 node3 node1"
pids=$(round_pids "$(newest)")
kill -KILL "$(pid n1)"; status_of n1
set -- $pids
ok "coordinator lost: the others' workers run on" kill -0 "$1" "$2"
status_of n2; two=$status; status_of n3
is "coordinator lost: 75 on every agent" "$two $status" "75 75"
ok "coordinator lost: no worker is left" all_gone "$pids"
like "coordinator lost: said" "$(err n2)" 'coordinator was lost'

# --- the agent that hosts the coordinator is done
job 1:2 --nproc-per-node=1
echo 'no program' >"$T/noprogram"; chmod 755 "$T/noprogram"
worker=$WORKER WORKER=$T/noprogram; agent n1 1; WORKER=$worker; status_of n1
is "alone, and its workers cannot be started: it does not wait for others" "$status" 66
job 1:2 --nproc-per-node=1
agent n1 1; agent n2 2
gathers "it leaves: two nodes" "node1 node2"
kill -TERM "$(pid n1)"
reaches "it leaves: the other one goes on" "node2"
ok "it leaves: it stays for the other one" wait_for holds "$T/n1.err" 'it stays for 1 other node, until the job has ended$'
kill -TERM "$(pid n1)"
ok "a signal then: what another one would do" wait_for holds "$T/n1.err" 'it stays for 1 other node, .* or one more signal comes$'
kill -INT "$(pid n1)"; status_of n1
is "one more: it ends" "$status" 143
is "the other one runs on" "$(world)" "node2"
kill -TERM "$(pid n2)"; status_of n2
is "and leaves when it is told" "$status" 143

wait_for no_leftovers
is "end: no process is left" "$(leftovers)" ""
finished
