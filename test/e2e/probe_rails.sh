# elrun probe over three hosts with two networks: each is a rail, and a card that is dead is named by its rail though the
# host's other one works.  With --all, what each host has looked at is told, too.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
# A second network, on a switch of its own: 10.8.0.I on eth1.
net_second() {
    nsenter -t $switch -n ip link add br1 type bridge && nsenter -t $switch -n ip link set br1 up || return 1
    for i in 1 2 3; do
        nsenter -t $switch -n ip link add "w$i" type veth peer name eth1 netns "$(pid_of $i)" &&
            nsenter -t $switch -n ip link set "w$i" master br1 up && on $i ip addr add "10.8.0.$i/24" dev eth1 &&
            on $i ip link set eth1 up || return 1
    done
}
net_second || exit 1
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1}\n' >"$T/easy.json"
probe_n=0
# probe OPTIONS...: on all three; $all exit statuses, $states "node1:good: …"
probe() {
    probe_n=$((probe_n + 1))
    for i in 1 2 3; do
        OUT=$T/$i.out ERR=$T/$i.err PREFIX="nsenter -t $(pid_of $i) -n -m -u --wdns=/"
        start probe --nnodes=3 --node-rank=$((i - 1)) --rdzv-endpoint=node1 --rdzv-id=r$probe_n --backend=tcp --checks=limits \
            --limits="$T/easy.json" --quick --pair-bytes=1MiB --pair-time=200ms --straggler-min=90 "$@"
        PREFIX=
        eval "probe_$i=$elrun_pid"
    done
    all=
    for i in 2 3 1; do eval "elrun_pid=\$probe_$i"; finish; all="$all $i:$status"; done
    note "$(grep -v '^elrun: coordinator' "$T/1.err" | tail -3)"
}
states() { "${PY:-python3}" -c 'import json, sys
for n in json.load(open(sys.argv[1]))["nodes"]: print(n["name"], n["state"], n["rails"], *n["reasons"])' "$T/1.out" 2>&1; }

probe --probe-rails=eth0,eth1 --all
is "two networks that work" "$all" " 2:0 3:0 1:0"
like "each host's checks are told where all is" "$(tr '\n' ' ' <"$T/1.out")" 'all checks of node1 .* ok +nofile .*all checks of node3 .* ok +nofile '
unlike "and there alone" "$(cat "$T/2.out" "$T/3.out")" 'all checks'

nsenter -t $switch -n ip link set w3 down
probe --probe-rails=eth0,eth1 --json
is "the second card of the third host is dead" "$all" " 2:0 3:1 1:1"
like "it is named by its rail" "$(states)" 'node3 bad \[1\] rail 1: failed with .*both good.* on eth1'
like "and nobody else" "$(states | tr '\n' ' ')" '^node1 good \[\] node2 good \[\] node3 bad'
probe --probe-rails=2 --json
is "two connections over the network that works" "$all" " 2:0 3:0 1:0"
is "each of them was tried" "$("${PY:-python3}" -c 'import json, sys; print({tuple(p["ok"]) for r in json.load(open(sys.argv[1]))["rounds"] for p in r["results"]})' "$T/1.out")" "{(0, 1)}"
is "and has the speed of the other, with which it shares the network" "$("${PY:-python3}" -c 'import json, sys; print({len(set(p["metrics"]["tcp_bw64m"])) for r in json.load(open(sys.argv[1]))["rounds"] for p in r["results"]})' "$T/1.out")" "{1}"

nsenter -t $switch -n ip link set w3 up
on 2 ip link del eth1
probe --probe-rails=eth0,eth1 --json
is "a host without that card is bad, too" "$all" " 2:1 3:0 1:1"
like "by that rail" "$(states)" 'node2 bad \[1\]'
is_clean "all probes"
finished
