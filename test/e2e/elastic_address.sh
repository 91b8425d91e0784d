# The address that a node announces: own name mapped to loopback, two networks, IPv6 only.  The workers meet at it.
# Seen to fail: with announced() of membership_store_io.c always "", with tenants_has() of tenants_io.c looking at own
# addresses only, without announce_hostname in announced() ("names are wanted").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"

try() { # TEXT WANT-ADDRESS: two rounds of worlds, rank 0 on the coordinator's host, then elsewhere
    job 3 --nproc-per-node=1
    for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
    reaches "$1: rank 0 on the endpoint's host" "node1 node2 node3"
    is "$1: MASTER_ADDR" "$(hosts_told)" "$2$3 $2$3 $2$3"
    all_end "$1: status" "n1 n2 n3" 0
    job 3 --nproc-per-node=1
    for i in 1 2 3; do agent "n$i" $i --node-rank=$((3 - i)); done
    reaches "$1: rank 0 elsewhere" "node3 node2 node1"
    is "$1: MASTER_ADDR elsewhere" "$(hosts_told)" "$2$4 $2$4 $2$4"
    all_end "$1: status elsewhere" "n1 n2 n3" 0
}

OWN=127.0.1.1; net_up 3
try "own name at 127.0.1.1" 10.9.0. 1 3
net_at_exit; hosts=

OWN=; net_up 3
job 2 --nproc-per-node=1 --rdzv-conf=use_hostname=1
agent n1 1 --node-rank=1; agent n2 2 --node-rank=0
reaches "names are wanted: rank 0 beside the coordinator's host" "node2 node1"
is "names are wanted: MASTER_ADDR" "$(hosts_told)" "node2 node2"
all_end "names are wanted: status" "n1 n2" 0

# A second network, on which the third host reaches the first one; its default way to the second is the first network.
for i in 1 3; do
    eval "p=\$host_$i"
    nsenter -t $switch -n ip link add "w$i" type veth peer name eth1 netns "$p"
done
nsenter -t $switch -n ip link add br1 type bridge
nsenter -t $switch -n ip link set br1 up
for i in 1 3; do
    nsenter -t $switch -n ip link set "w$i" master br1 up
    on $i ip addr add "172.29.0.$i/24" dev eth1
    on $i ip link set eth1 up
done
{ grep -v 'node1$' "$T/hosts.3"; echo "172.29.0.1 node1"; } >"$T/hosts"; cat "$T/hosts" >"$T/hosts.3"
job 3 --nproc-per-node=1
agent n1 1 --node-rank=0 --local-addr=10.9.0.1; agent n2 2 --node-rank=1; agent n3 3 --node-rank=2
reaches "two networks: the coordinator by one, the store by the other" "node1 node2 node3"
is "two networks: --local-addr is told" "$(hosts_told)" "10.9.0.1 10.9.0.1 10.9.0.1"
all_end "two networks: status" "n1 n2 n3" 0
net_at_exit; hosts=

FAMILY=6; net_up 3
try "IPv6 only" fd00:9:: 1 3
is "addresses: no process is left" "$(wait_for no_leftovers; leftovers)" ""
finished
