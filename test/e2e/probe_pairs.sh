# elrun probe over several hosts: who is sick is named and nobody else is, whatever the fault; a node or the coordinator
# that is lost, one that stands still, two probes at the same time.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 4
# All networks are slow and alike, and who has less than half is slow: what the machine does beside decides nothing.
rate 80mbit 1 2 3 4

printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1}\n' >"$T/easy.json"
# node NAME HOST OPTIONS...: elrun probe on a host, in the background; $PROBE its common options
PROBE=
node() {
    node_name=$1 node_host=$2; shift 2
    OUT=$T/$node_name.out ERR=$T/$node_name.err
    rm -f "$OUT" "$ERR" # what an earlier one said is not what this one says
    PREFIX="nsenter -t $(pid_of "$node_host") -n -m -u --wdns=/"
    start probe $PROBE "$@"
    PREFIX=
    eval "agent_$node_name=$elrun_pid"
}
EACH="--backend=tcp --checks=limits --limits=$T/easy.json --pair-bytes=1MiB --pair-time=300ms --straggler-min=50"
probe_n=0
# begin N OPTIONS...: a new probe of the hosts 1 to N, named a1 … aN
begin() {
    probe_n=$((probe_n + 1))
    begin_n=$1; shift
    PROBE="--nnodes=$begin_n --rdzv-endpoint=node1 --rdzv-id=p$probe_n $EACH $*"
    for i in $(seq "$begin_n"); do node "a$i" "$i" --json; done
}
# ends "HOST:STATUS ...": waits for all; what each ended with
ends() { # TEXT WANT
    ends_got=
    for i in $(seq "$begin_n"); do status_of "a$i"; ends_got="$ends_got$i:$status "; done
    is "$1" "${ends_got% }" "$2" || for i in $(seq "$begin_n"); do note "--- a$i"; note "$(tail -12 "$T/a$i.err")"; done
}
json() { "${PY:-python3}" -c 'import json,sys; d = json.load(open(sys.argv[1])); s = {n["name"]: n["state"] for n in d["nodes"]}; print('"$1"')' "$T/${2:-a1}.out" 2>&1; }
states() { json '" ".join(f"{k}:{v}" for k, v in sorted(s.items()))' "$1"; }
own() { "${PY:-python3}" -c 'import json,sys; d = json.load(open(sys.argv[1])); print('"$1"')' "$T/$2.out" 2>&1; }
shut() { # HOST: pairs cannot reach it nor it them; the coordinator can
    on "$1" nft "table inet t {
        chain o {
            type filter hook output priority 0
            tcp dport 29400 accept
            tcp sport 29400 accept
            tcp flags syn reject with tcp reset
        }
        chain i {
            type filter hook input priority 0
            tcp dport 29400 accept
            tcp sport 29400 accept
            tcp flags syn drop
        }
    }"
}
open_up() { on "$1" nft delete table inet t; }
pairing() { grep -qs 'round 1: ' "$T/a1.err"; }

# The coordinator is lost: the others wait for it a while, and other probes run meanwhile.
PROBE="--nnodes=3 --rdzv-endpoint=node1:29402 --rdzv-id=lost --backend=tcp --checks=limits --limits=$T/easy.json --pair-time=5s"
for i in 1 2 3; do node "c$i" "$i"; done
wait_for grep -qs 'round 1: ' "$T/c1.err"
kill -KILL "$agent_c1"

# The same with all agents on one host, where another one could take the coordinator over, and would wait for one that is gone.
PROBE="--nnodes=3 --rdzv-endpoint=node2:29404 --rdzv-id=one --backend=tcp --checks=limits --limits=$T/easy.json --pair-time=5s"
node o1 2
wait_for grep -qs 'has joined' "$T/o1.err"
node o2 2
node o3 2
wait_for grep -qs 'round 1: ' "$T/o1.err"
kill -KILL "$agent_o1"

# Two racks with every second host, and no way between them for the addresses of this probe.
for i in 1 2 3 4; do on $i ip addr add 10.9.1.$i/24 dev eth0; done
for i in 2 4; do
    on $i nft 'table inet racks {
        chain o { type filter hook output priority 0; ip daddr { 10.9.1.1, 10.9.1.3 } drop; }
        chain i { type filter hook input priority 0; ip saddr { 10.9.1.1, 10.9.1.3 } drop; }
    }'
done
PROBE="--nnodes=4 --rdzv-endpoint=node1:29403 --rdzv-id=racks $EACH --json"
for i in 1 2 3 4; do node "r$i" "$i" --local-addr=10.9.1.$i --domain=rack$((i % 2)); done

begin 4
ends "four healthy hosts" "1:0 2:0 3:0 4:0"
is "all are good" "$(states)" "node1:good node2:good node3:good node4:good"
is "their pairs are told with what was measured" "$(json 'all(r["metrics"]["tcp_bw64m"][0] > 0 for x in d["rounds"] for r in x["results"])')" True

rate 4mbit 3
begin 4 --exclude-straggler
ends "one host with a slow card, which is not wanted" "1:1 2:0 3:1 4:0"
is "it is named and nobody else is" "$(states)" "node1:good node2:good node3:slow node4:good"
rate 80mbit 3

shut 3
begin 3 --quick
ends "one host that only reaches the coordinator" "1:1 2:0 3:1"
is "it is named and nobody else is" "$(states)" "node1:good node2:good node3:bad"
is "the others print their own verdict" "$(own 'd["node"], d["state"]' a2) $(own 'd["node"], d["state"]' a3)" "node2 good node3 bad"
like "and that of all" "$(own 'd["summary"]' a2)" "^2 good, 1 bad of 3 nodes.*; bad: node3$"
unlike "nothing is said of workers" "$(cat "$T"/a[123].err)" "worker|running"
open_up 3

begin 3 --pair-bytes=64MiB --pair-time=3s
wait_for pairing
kill -KILL "$agent_a3"
status_of a1; one=$status; status_of a2
is "a host that is lost during a pair: the others come to their end" "$one $status" "1 0"
is "it has left, and nobody else is to blame" "$(states)" "node1:good node2:good node3:bad local"

begin 3 --pair-bytes=64MiB --pair-time=3s
wait_for pairing
kill -STOP "$agent_a3"
sleep 6
kill -CONT "$agent_a3"
for i in 1 2 3; do status_of "a$i"; done
unlike "an agent that stood still is not bad" "$(states)" 'node[123]:bad'
like "but good, slow in that pair, or undecided" "$(states)" 'node3:(good|slow|undecided)'

begin 2
PROBE="--nnodes=2 --rdzv-endpoint=node1:29401 --rdzv-id=other $EACH"
node b1 1; node b2 2
both_got=
for n in a1 a2 b1 b2; do status_of $n; both_got="$both_got$n:$status "; done
is "two probes at the same time on the same hosts" "$both_got" "a1:0 a2:0 b1:0 b2:0 "
like "in words, too, a node that does not host them prints its verdict and all nodes'" "$(tr '\n' '|' <"$T/b2.out")" '^node2 is (good|slow).*[|]all nodes: .* of 2 nodes'

status_of c2; two=$status; status_of c3
like "the coordinator is lost: status" "$two $status" '^(69|75) (69|75)$'
like "and it is said" "$(cat "$T/c2.err")" 'coordinator'

status_of o2; two=$status; status_of o3
is "the coordinator is lost where all are on one host: status" "$two $status" "75 75"
unlike "nobody goes on without it" "$(cat "$T/o2.err" "$T/o3.err")" 'hosts the coordinator from now on'

racks=
for i in 1 2 3 4; do status_of r$i; racks="$racks$status "; done
is "no way between two racks" "$racks" "0 0 0 0 "
is "no node is to blame" "$(states r1)" "node1:good node2:good node3:good node4:good"
is "those of one rack meet first" "$(json '[tuple(d["nodes"][p[x]]["domain"] for x in "ab") for p in d["rounds"][0]["pairs"]]' r1)" \
    "[('rack0', 'rack0'), ('rack1', 'rack1')]"
is "the way between the racks is named" "$(json 'len(d["links"]) > 0 and all(l["across"] for l in d["links"])' r1)" True

begin 3 --pair-bytes=64MiB --pair-time=3s
wait_for pairing
kill -INT "$agent_a2"
status_of a2
is "Ctrl-C on one of them: status 130" "$status" 130
status_of a1; one=$status; status_of a3
is "the others come to their end: it has said goodbye, they are good with each other" "$one $status" "3 0"
is "which is nobody's fault" "$(states)" "node1:good node2:absent node3:good"
is_clean "all probes"
finished
