# Health checks in jobs of several nodes: who is bad leaves with 72 and the others train, nodes and coordinators that
# vanish or stand still condemn nobody, too few nodes are told what is missing, one node checks itself.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
rate 80mbit 1 2 3 # a pair takes a moment
keep=--rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5,join_timeout=60 # silent for 1 s: lost
check="--health-check=start --probe-checks=limits --probe-quick"
echo '{"nofile":{"limit":1e12,"severity":"bad"}}' >"$T/strict.json"
echo '{"nofile":{"limit":1,"severity":"bad"},"memlock":"off"}' >"$T/mild.json"
mild="--probe-limits=$T/mild.json"
probing() { grep -q "round 1: " "$T/$1.err"; }
agents() { for i in $1; do agent "n$i" "$i" --node-rank=$((i - 1)) $2; done; }

# --- one that is bad by its own checks
job 2:3 --nproc-per-node=1 $keep $check
agents "1 2" "$mild"
agent n3 3 --node-rank=2 --probe-limits="$T/strict.json" --hook "node-bad=echo \$ELRUN_NODE >>$T/bad.nodes"
status_of n3
is "a bad node leaves with 72" "$status" 72
reaches "the others train" "node1 node2"
like "it was told why" "$(err n3)" "this node is bad: .*nofile"
like "and so was the coordinator's node" "$(err n1)" "node3 +bad +.*nofile"
is "its hook ran" "$(sort -u "$T/bad.nodes")" node3
is "the others' next step is theirs alone" "$(mixed)" ""
all_end "and end well" "n2 n1" 0

# --- one that is bad and waits, until too few others are there
job 2:3 --nproc-per-node=1 $keep $check --on-bad=park
agents "1 2" "$mild"
agent n3 3 --node-rank=2 --probe-limits="$T/strict.json"
reaches "--on-bad=park: the others train" "node1 node2"
waits() { grep -q 'set aside, and comes in only if too few others are there: .*nofile' "$T/n3.err"; }
ok "the bad one is told that it waits, and why" wait_for waits
kill -KILL "$(pid n2)"
wait "$(pid n2)" 2>/dev/null
reaches "one of them is killed: the bad one is better than none" "node1 node3"
all_end "and they end well" "n3 n1" 0

# --- too few are left
job 3 --nproc-per-node=1 --rdzv-conf=join_timeout=5 $check
agents "1 2" "$mild"
agent n3 3 --node-rank=2 --probe-limits="$T/strict.json"
for n in n3 n2 n1; do status_of $n; said="$said $n:$status"; done
is "too few are left: they give up" "$said" " n3:72 n2:69 n1:69"
like "and say what is missing" "$(err n2)" "2 of 3 nodes are here: at least 3 are needed; the health check has excluded node3"
is "nobody has trained" "$(cat "$LOG")" ""

# --- a node that is killed in the middle of a pair
job 2:3 --nproc-per-node=1 $keep $check $mild
agents "1 2 3"
wait_for probing n1
kill -KILL "$(pid n2)"
wait "$(pid n2)" 2>/dev/null
reaches "a node is killed in the middle of a pair: the others train" "node1 node3"
unlike "nobody is called bad for it" "$(err n1)$(err n3)" "node is bad|leaves the job"
all_end "a node was killed: the others end well" "n3 n1" 0

# --- an agent that stands still for three times the time that silence may last, then the coordinator
for who in 3 1; do
    job 3 --nproc-per-node=1 $keep $check $mild
    agents "1 2 3"
    wait_for probing n1
    kill -STOP "$(pid n$who)"
    sleep 3
    kill -CONT "$(pid n$who)"
    reaches "node$who stands still during a check: all train" "node1 node2 node3"
    unlike "node$who stands still: nobody is condemned" "$(err n1)$(err n2)$(err n3)" "node is bad|leaves the job"
    all_end "node$who stood still: all end well" "n3 n2 n1" 0
done

# --- the coordinator is lost
store() {
    nsenter -t "$(pid_of 1)" -n -m -u --wdns=/ env E2E_MARK="$T" "$ELRUN" store --bind=:: --allow=10.9.0.0/24 >>"$T/store.err" 2>&1 </dev/null &
    coordinator=$!
    wait_for listening
}
listening() { on 1 ss -Hltn sport = :29400 | grep -q .; }
store
job 2 --nproc-per-node=1 $keep $check $mild
agents "2 3"
wait_for probing n2
kill -KILL $coordinator
wait $coordinator 2>/dev/null
store
reaches "the coordinator is lost during a check: another one begins anew, all train" "node2 node3"
unlike "the coordinator was lost: nobody is condemned" "$(err n2)$(err n3)" "node is bad|leaves the job"
all_end "the coordinator was lost: all end well" "n3 n2" 0
kill -TERM $coordinator
wait $coordinator

# --- two checks at the same time on one host
job 2 --nproc-per-node=1 $check $mild
agents "1 2"
first=$LOG go=$GO
JOB2="--nnodes=2 --rdzv-endpoint=node1:29500 --rdzv-id=other --nproc-per-node=1 $check $mild"
JOB=$JOB2 LOG=$T/log.other GO=$T/go.other
WORK="meet enter $LOG await $GO"
agent m1 1 --node-rank=0
agent m2 2 --node-rank=1
reaches "two checks at once on the same hosts: one job trains" "node1 node2"
all_end "and ends" "m2 m1" 0
LOG=$first GO=$go
reaches "and so does the other" "node1 node2"
all_end "and ends, too" "n2 n1" 0

# --- one node
run --standalone --health-check=start --probe-checks=limits --probe-limits="$T/strict.json" --no-python "$WORKER" touch "$T/ran"
is "one node that is bad: 72" "$status" 72
ok "and nothing was started" test -z "$(ls -d "$T"/ran* 2>/dev/null)"
run --standalone --network-check --probe-checks=limits $mild --no-python "$WORKER" touch "$T/ran"
is "one node that is well: 0" "$status" 0
ok "and it ran" files "$T/ran*" 1
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
