# Several nodes find each other: in any order, by any name and address, with ranks, roles and slots of their own.  Hosts are
# network namespaces; each worker meets the others at MASTER_ADDR before it records what it was told.
# Seen to fail: with announced() of membership_store_io.c always "" ("slots"), without only_run_id in the
# coordinator ("another job's agent"), without is_static in membership_io.c ("static"), without say_trouble() (both "says so").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3

# --- order
job 2 --nproc-per-node=1
agent a 1; agent b 2
gathers "two nodes, the coordinator's first" "node1 node2"
is "two nodes: exactly one round" "$(round_number)" 1
all_end "two nodes: status" "a b" 0

job 3 --nproc-per-node=2
agent c 3; agent b 2
ok "agents before the coordinator's host: they say so" wait_for holds "$T/b.err" 'no coordinator at node1 port 29400 yet .10.9.0.1:29400: '
agent a 1
gathers "agents before the coordinator's host" "node1 node1 node2 node2 node3 node3"
r=$(newest)
is "six ranks: each once" "$(column 6 "$r")" "0 1 2 3 4 5"
is "six ranks: nodes in a row" "$(column 8 "$r")" "0 0 1 1 2 2"
is "six ranks: restart count" "$(column 5 "$r")" "0 0 0 0 0 0"
is "six ranks: one address for all" "$(hosts_told | tr ' ' '\n' | sort -u | wc -l)" 1
all_end "agents before the coordinator's host: status" "a b c" 0

# --- a name that does not resolve at first, and one that moves
cp "$T/hosts.2" "$T/hosts"; grep -v 'node1$' "$T/hosts" >"$T/hosts.2" # in place: the file is mounted
job 2
agent b 2; agent a 1
ok "a name that is not known yet: it waits and says so" wait_for holds "$T/b.err" 'no coordinator at node1 port 29400 yet .node1: '
ok "a name that is not known yet: it does not end" kill -0 "$(pid b)"
cat "$T/hosts" >"$T/hosts.2"
gathers "a name that is known later" "node1 node2"
all_end "a name that is known later: status" "a b" 0

# --- slots, roles, ranks
job 3 --role=trainer
agent a 1 --nproc-per-node=1 --node-rank=2; agent b 2 --nproc-per-node=3 --node-rank=0; agent c 3 --nproc-per-node=2 --node-rank=1
reaches "node ranks decide, slots differ" "node2 node2 node2 node3 node3 node1"
r=$(newest)
is "slots: local world" "$(column 11 "$r")" "3 3 3 2 2 1"
is "slots: local ranks" "$(column 10 "$r")" "0 1 2 0 1 0"
is "slots: the store is on the host of rank 0" "$(hosts_told)" "10.9.0.2 10.9.0.2 10.9.0.2 10.9.0.2 10.9.0.2 10.9.0.2"
agent x 3 --nproc-per-node=2 --node-rank=1 --rdzv-conf=join_timeout=1 # not at once: it may replace a node about to be lost
status_of x
is "a node rank twice: refused" "$status" 78
like "a node rank twice: says which, and who has it" "$(err x)" 'node-rank=1, which node3 .*alive'
reaches "a node rank twice: the round goes on" "node2 node2 node2 node3 node3 node1"
is "a node rank twice: no new round" "$(round_number)" 1
all_end "slots: status" "a b c" 0

job 3 --nproc-per-node=2
agent a 1 --role=actor --node-rank=0; agent b 2 --role=learner --node-rank=1; agent c 3 --role=actor --node-rank=2
reaches "roles" "node1 node1 node2 node2 node3 node3"
r=$(newest)
is "roles: names" "$(column 12 "$r")" "actor actor learner learner actor actor"
is "roles: ranks" "$(column 13 "$r")" "0 1 0 1 2 3"
is "roles: worlds" "$(column 14 "$r")" "4 4 2 2 4 4"
all_end "roles: status" "a b c" 0

# --- static: one port for coordinator and store
static="--nnodes=2 --nproc-per-node=2 --master-addr=node1 --master-port=29777"
job 2; JOB="$static --node-rank=1"; agent b 2; JOB="$static --node-rank=0"; agent a 1
reaches "static: world" "node1 node1 node2 node2"
is "static: MASTER_ADDR is what was given" "$(hosts_told)" "node1 node1 node1 node1"
all_end "static: status" "a b" 0
job 2; JOB="$static --node-rank=1"; agent b 1; sleep 0.1; JOB="$static --node-rank=0"; agent a 1
reaches "static, both on one host, node 1 first: world" "node1 node1 node1 node1"
all_end "static, both on one host: status" "a b" 0
job 2; JOB="$static --node-rank=0"; agent b 2; status_of b
is "static: node rank 0 elsewhere" "$status" 78
like "static: says whose place that is" "$(err b)" 'node-rank=0: it must be on the host of --master-addr, node1'

# --- no endpoint
job 2; JOB="--nnodes=2 --nproc-per-node=1"
ENV="SLURM_JOB_NUM_NODES=2 SLURM_NNODES=2"; agent a 1; ENV=; status_of a
is "a scheduler's word, no endpoint: never a job of one node" "$status" 78
like "a scheduler's word: its variable is named" "$(err a)" 'SLURM_JOB_NUM_NODES'
agent a 1; agent b 1
gathers "several agents on one host, no endpoint" "node1 node1"
like "no endpoint: one line says who can join" "$(err a)" 'only agents on this host can join'
WORK="sleep 1"; agent x 1; status_of x
is "another job's agent: refused" "$status" 78
like "another job's agent: both commands are named" "$(err x)" 'sleep 1.*meet enter|meet enter.*sleep 1'
is "another job's agent: the round is the first" "$(round_number)" 1
all_end "several agents on one host: status" "a b" 0
is_clean "start"
finished
