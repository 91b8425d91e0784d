# Nodes that come while a round runs: scale-up, the unit rule, spares; nodes lost while a round forms.
# Seen to fail: without rdzv_plan() for newcomers
# in rdzv.c ("two come", "unit 2, node 6"), with down_to_unit() of choose.c giving back what it gets ("unit 2, node 5").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3

# --- scale-up and spares
job 1:3 --nproc-per-node=2 --scale-up-delay=0.3
agent n1 1 --redirects=1 --log-dir="$T/logs"
reaches "one node starts alone after the settle time" "node1 node1"
agent n2 2; agent n3 3
gathers "two come: they are taken in" "node1 node1 node2 node2 node3 node3"
is "two come: the old one keeps its ranks" "$(world | cut -d' ' -f1-2)" "node1 node1"
is "two come: one new round for both" "$(round_number)" 2
is "two come: no restart is charged" "$(column 5 "$(newest)")" "0 0 0 0 0 0"
ok "two come: logs of the round before are kept beside the new ones" wait_for files "$T/logs/*/attempt_0*/0/stdout.log" 2
agent s 2
ok "a fourth: it waits as a spare and is told so" wait_for holds "$T/s.err" 'round 2 runs on 3 nodes|spare'
is "a fourth: no new round" "$(round_number)" 2
kill -KILL "$(pid n3)"; status_of n3
gathers "a spare takes the place of a lost node" "node1 node1 node2 node2 node2 node2"
agent s2 3
ok "another spare" wait_for holds "$T/s2.err" 'round 3 runs on 3 nodes|spare'
all_end "scale-up: status on every agent, the spare's too" "n1 n2 s s2" 0

# --- the published example: six nodes, unit 2; node 5 is lost; its replacement comes, and later node 6
job 2:6 --nproc-per-node=1 --node-unit=2 --scale-up-delay=0.2 --settle=1
for i in 0 1 2 3 4 5; do agent "u$i" $((i / 2 + 1)) --node-rank=$i; done
reaches "unit 2: six nodes" "node1 node1 node2 node2 node3 node3"
before=$(round_pids "$(newest)")
kill -KILL "$(pid u5)"; status_of u5
reaches "unit 2, node 5 lost: a world of four" "node1 node1 node2 node2"
ok "unit 2, node 5 lost: node 4 waits" kill -0 "$(pid u4)"
ok "unit 2, node 5 lost: node 4 has no worker" all_gone "$before"
number=$(round_number)
ok "unit 2, node 5 lost: node 4 is told why" wait_for holds "$T/u4.err" 'round [23] runs on 4 nodes|spare'
agent u6 3 --node-rank=6
reaches "unit 2, node 6 arrives: six again" "node1 node1 node2 node2 node3 node3"
is "unit 2: one round more" "$(round_number)" $((number + 1))
all_end "unit 2: status" "u0 u1 u2 u3 u4 u6" 0

# --- a node is lost while a round forms: wherever it is then, the others start without it, or with it and again
for ms in 0 2 4 8 16 32; do
    job 2:3 --nproc-per-node=1 --settle=0.2
    agent n1 1 --node-rank=1; agent n2 2 --node-rank=2
    ok "forming, $ms ms: two wait" wait_for holds "$T/n1.err" 'node2 .*has joined'
    agent n3 3 --node-rank=0 # the third completes it, and would host the store
    sleep "0.0$(printf %02d $ms)"
    kill -KILL "$elrun_pid" 2>/dev/null
    status_of n3
    gathers "forming, $ms ms: the others start" "node1 node2"
    is "forming, $ms ms: no restart is charged" "$(column 5 "$(newest)")" "0 0"
    all_end "forming, $ms ms: status" "n1 n2" 0
done
wait_for no_leftovers
is "scale: no process is left" "$(leftovers)" ""
finished
