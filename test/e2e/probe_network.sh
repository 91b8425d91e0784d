# `elrun probe` over four hosts, one of which has a network of a low rate: it is named, nobody else is, and each node ends
# with its own verdict.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 4
rate 80mbit 1 2 3 4 # and who has less than half is slow: what this machine does beside decides nothing
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1}\n' >"$T/easy.json"
probe() { # NAME: on all four at once; the statuses in $all, what node1 printed in $T/NAME.1
    for i in 1 2 3 4; do
        PREFIX="nsenter -t $(pid_of $i) -n -m -u --wdns=/" OUT=$T/$1.$i ERR=$T/$1.err$i
        start probe --nnodes=4 --node-rank=$((i - 1)) --rdzv-endpoint=node1 --rdzv-id="$1" --checks=limits --limits="$T/easy.json" --quick --straggler-min=50 --exclude-straggler --json
        PREFIX=
        eval "probe_$i=$elrun_pid"
    done
    all=
    for i in 2 3 4 1; do eval "elrun_pid=\$probe_$i"; finish; all="$all node$i:$status"; done
}
# verdicts FILE: each node's, from the JSON
verdicts() { "$PY" -c 'import json, sys; print(*(n["name"] + ":" + n["state"] for n in json.load(open(sys.argv[1]))["nodes"]))' "$1"; }
told() { for f in "$T/$1".err*; do note "$(tail -4 "$f")"; done; }

probe well
is "four nodes that are well" "$all" " node2:0 node3:0 node4:0 node1:0" || told well
is "are all good" "$(verdicts "$T/well.1")" "node1:good node2:good node3:good node4:good"
is "only the coordinator's node prints all of it" "$(cat "$T/well.2" "$T/well.3" "$T/well.4" | grep -c '"rounds"')" 0
is "the others one line each" "$(cat "$T/well.2" "$T/well.3" "$T/well.4" | grep -c '"state":"good".*"summary":"4 good of 4 nodes')" 3

rate 4mbit 3
probe slow
is "one with a low rate: it ends with 1, and so does the one that prints all" "$all" " node2:0 node3:1 node4:0 node1:1" || told slow
is "it is slow, the others are good" "$(verdicts "$T/slow.1")" "node1:good node2:good node3:slow node4:good"
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
