# elrun probe where the network is not as usual: a host without IPv4, also on loopback.  LONG=1: a rack whose only host has a
# dead uplink among three of another rack, and an agent that stands still for 12 and for 20 s in the middle of a pair.  Seen to
# fail: with 127.0.0.1 for all who are on one host.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1}\n' >"$T/easy.json"
if [ -n "${LONG:-}" ]; then hosts_n=4; else hosts_n=1; fi
net_up $hosts_n

# --- loopback without IPv4 ---
on 1 ip addr del 127.0.0.1/8 dev lo
for i in 1 2; do
    OUT=$T/six.$i ERR=$T/six.err.$i PREFIX="nsenter -t $(pid_of 1) -n -m -u --wdns=/"
    start probe --nnodes=2 --rdzv-endpoint='[::1]:29655' --backend=tcp --quick --pair-bytes=1MiB --pair-time=200ms --checks=limits \
        --limits="$T/easy.json"
    PREFIX=
    eval "six_$i=$elrun_pid"
done
for i in 1 2; do eval "elrun_pid=\$six_$i"; finish; is "loopback without IPv4: end $i is good" "$status" 0 || note "$(cat "$T/six.$i" "$T/six.err.$i")"; done
like "the pair was measured" "$(cat "$T/six.1" "$T/six.2")" '2 are good; [1-9] rounds? of pairs'
on 1 ip addr add 127.0.0.1/8 dev lo

probe_n=0
# begin OPTIONS...: on all four, in racks $racks; ends: $states, $all
begin() {
    probe_n=$((probe_n + 1))
    for i in 1 2 3 4; do
        OUT=$T/$i.out ERR=$T/$i.err PREFIX="nsenter -t $(pid_of $i) -n -m -u --wdns=/"
        start probe --nnodes=4 --node-rank=$((i - 1)) --rdzv-endpoint=node1 --rdzv-id=s$probe_n --backend=tcp --checks=limits \
            --limits="$T/easy.json" --straggler-min=90 --json "$@" $(echo "$racks" | cut -d' ' -f$i)
        PREFIX=
        eval "probe_$i=$elrun_pid"
    done
}
ends() {
    all=
    for i in 2 3 4 1; do eval "elrun_pid=\$probe_$i"; finish; all="$all $i:$status"; done
    states=$("${PY:-python3}" -c 'import json, sys; print(*(n["name"] + ":" + n["state"] for n in json.load(open(sys.argv[1]))["nodes"]))' "$T/1.out" 2>&1)
    note "$("${PY:-python3}" -c 'import json, sys
for n in json.load(open(sys.argv[1]))["nodes"]: print(n["name"], *n["reasons"])' "$T/1.out" 2>&1)"
}

# stands SECONDS: node3's agent stands still for so long while its first pair runs
stands() {
    racks=
    rm -f "$T/3.err"
    begin --pair-bytes=64MiB --pair-time=3s
    in_pair() { grep -q 'round 1:' "$T/3.err"; }
    ok "$1 s: the pairs have begun" wait_for in_pair
    kill -STOP "$probe_3"
    sleep "$1" # what is tested is that time
    kill -CONT "$probe_3"
    ends
    unlike "an agent that stands still for $1 s in a pair: nobody is bad" "$states" ':bad'
    like "those who did not are good" "$states" 'node1:good node2:good node3:[a-z]+ node4:good'
    unlike "and no status says so" "$all" ':1'
}

if [ -n "${LONG:-}" ]; then
    racks='--domain=rack-a --domain=rack-b --domain=rack-b --domain=rack-b'
    nsenter -t $switch -n nft "table bridge loss { chain c { type filter hook forward priority 0; tcp dport 29400 accept; tcp sport 29400 accept; ether type ip iifname v1 drop; } ; }"
    begin --quick --pair-bytes=1MiB --pair-time=200ms
    ends
    is "the uplink of a rack of one is dead: the others are good" "$states" "node1:bad node2:good node3:good node4:good"
    like "and that it may be the uplink is said" "$(cat "$T/1.out")" 'a bad uplink of that could look the same'
    nsenter -t $switch -n nft delete table bridge loss
    stands 12
    stands 20
fi
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
