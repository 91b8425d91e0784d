# elrun probe over four hosts, one of which has a network that loses packets, delays them, or carries nothing for others:
# that node is named, nobody else is.  LONG=1: also one that loses 40 %.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 4
rate 80mbit 1 2 3 4
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1}\n' >"$T/easy.json"
probe_n=0
# probe OPTIONS...: on all four; $states of all, $all exit statuses
probe() {
    probe_n=$((probe_n + 1))
    for i in 1 2 3 4; do
        OUT=$T/$i.out ERR=$T/$i.err PREFIX="nsenter -t $(pid_of $i) -n -m -u --wdns=/"
        start probe --nnodes=4 --node-rank=$((i - 1)) --rdzv-endpoint=node1 --rdzv-id=w$probe_n --backend=tcp --checks=limits \
            --limits="$T/easy.json" --quick --straggler-min=50 --exclude-straggler --json "$@"
        PREFIX=
        eval "probe_$i=$elrun_pid"
    done
    all=
    for i in 2 3 4 1; do eval "elrun_pid=\$probe_$i"; finish; all="$all $i:$status"; done
    states=$("${PY:-python3}" -c 'import json, sys; print(*(n["name"] + ":" + n["state"] for n in json.load(open(sys.argv[1]))["nodes"]))' "$T/1.out" 2>&1)
}
# named TEXT STATE: node3 is in that state, nobody else is anything but good
named() {
    is "$1" "$states" "node1:good node2:good node3:$2 node4:good" || for i in 1 2 3 4; do note "$(tail -5 "$T/$i.err")"; note "$(head -c 3000 "$T/$i.out")"; done
    is "$1: exit statuses" "$all" " 2:0 3:1 4:0 1:1"
}
why() { "${PY:-python3}" -c 'import json, sys; print([n["reasons"] for n in json.load(open(sys.argv[1]))["nodes"] if n["name"] == "node3"])' "$T/1.out"; }
# losing THOUSANDTHS WAY: the switch loses so much of what node3 sends (from) or gets (to).  Not at the host itself: its kernel
# would know.
losing() {
    case $2 in from) losing_if="iifname v3" ;; *) losing_if="oifname v3" ;; esac
    losing_some="numgen random mod 1000 < $1"
    [ "$1" != 1000 ] || losing_some=
    nsenter -t $switch -n nft "table bridge loss { chain c { type filter hook forward priority 0; tcp dport 29400 accept; tcp sport 29400 accept; ether type ip $losing_if $losing_some drop; } ; }"
}
mended() { nsenter -t $switch -n nft delete table bridge loss; }

# delayed MS: what node3 sends and gets takes so much longer on its way to the switch
delayed() {
    for i in 1 2 3 4; do on $i "${PY:-python3}" "$HERE/delay_line.py" plain eth0; done
    nsenter -t $switch -n ip link add line type veth peer name lineb
    nsenter -t $switch -n ip link set v3 nomaster
    nsenter -t $switch -n ip link set line up
    nsenter -t $switch -n ip link set lineb master br0 up
    setpriv --pdeathsig KILL nsenter -t $switch -n "${PY:-python3}" "$HERE/delay_line.py" v3 line "$1" "$T/line.up" &
    hosts="$hosts $!"
    wait_for test -e "$T/line.up"
}

probe
is "four that are well" "$states $all" "node1:good node2:good node3:good node4:good  2:0 3:0 4:0 1:0"

for way in from to; do
    losing 120 $way
    probe
    named "12 % of what goes $way it is lost" slow
    like "by what was lost, $way" "$(why)" 'lost TCP segments [0-9.]+ %, at most'
    mended
done

if [ -n "${LONG:-}" ]; then
    losing 400 from
    probe
    # What two rounds can tell is luck: a pair that does not meet beside one that is only slow leaves it undecided.
    like "40 % is lost: it is slow or bad, or one of each and undecided, and nobody else is" "$states" '^node1:good node2:good node3:(slow|bad|undecided) node4:good$'
    mended
fi

losing 1000 from
probe
named "nothing that it sends arrives" bad
like "who heard nothing from whom is told" "$(why)" 'nothing came back from 10[.]9|did not connect'
mended

delayed 20
probe
named "20 ms more on its way" slow
like "by its latency" "$(why)" 'TCP latency [0-9.]+ us, at most'

wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
