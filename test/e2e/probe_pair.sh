# One pair of the probe over TCP, its two ends on two hosts: what each says when the way between them is good, closed,
# silent, slow, without large packets, used by strangers, or when an end stands still.  The ends are elrun in a hidden
# role, as `elrun probe` starts them: the order on standard input, results on descriptor 3.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 2

# end NAME HOST MEMBERS: an end of the pair in the background; $T/NAME has what it says.
MEMBERS='"latency_count":20,"bytes":1048576,"count":5,"spend_ms":1000,"limit_ms":120000'
QUIET=60000 MEET=60000
end() {
    : >"$T/$1"
    printf '{"t":"pair_order",%s,"quiet_ms":%s,"meet_ms":%s,%s}\n' "$3" "$QUIET" "$MEET" "$MEMBERS" >"$T/$1.order"
    on "$2" env E2E_MARK="$T" bash -c 'exec -a elrun-pair "$0" <"$1" 3>"$2" 2>"$2.err"' "$ELRUN" "$T/$1.order" "$T/$1" &
    eval "pid_$1=$!"
}
said() { grep -q '"t":"end"' "$T/$1"; }
has_id() { grep -q '"t":"id"' "$T/host"; }
host() { end host 1 '"local":"10.9.0.1","peer":"node2"'; wait_for has_id; id=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' "$T/host"); }
guest() { end guest 2 "\"guest\":true,\"id\":\"$id\",\"local\":\"10.9.0.2\",\"peer\":\"node1\""; }
both() { wait_for said host; wait_for said guest; h=$(tr '\n' ' ' <"$T/host") g=$(tr '\n' ' ' <"$T/guest"); wait "$pid_host" "$pid_guest"; }
pair() { host; guest; both; }
filter() { on "$1" nft "add table inet t; add chain inet t $2 { type filter hook $2 priority 0; }; add rule inet t $2 $3"; } # HOST HOOK RULE
open_up() { on "$1" nft "delete table inet t"; }

pair
like "a good way: the host end says so" "$h" '"t":"end","ok":true'
like "and the guest end" "$g" '"t":"end","ok":true'
like "each names interface and address" "$h$g" '"interface":"eth0","local":"10.9.0.1".*"interface":"eth0","local":"10.9.0.2"'
like "latency is measured" "$h" '"name":"tcp_lat_us","rail":0,"n":20'
like "bandwidth by the host end" "$h" '"name":"tcp_bw64m","rail":0,"n":[1-5],.*"unit":"GB/s"'
like "and by the guest end" "$g" '"name":"tcp_bw64m","rail":0,"n":[1-5],'
like "and what was sent again" "$h" '"name":"tcp_retrans","rail":0'

filter 2 output "ip daddr 10.9.0.1 tcp flags syn reject with tcp reset"
MEET=2000 pair
like "a closed way: who cannot reach whom, and from where" "$g" 'cannot connect to 10.9.0.1:[0-9]+ \(node1\), from 10.9.0.2 on eth0: Connection refused'
like "it is the network's fault" "$g" '"class":"network"'
like "the host end says who did not come" "$h" 'node2 did not connect to 10.9.0.1:[0-9]+ on eth0'
open_up 2

filter 1 input "tcp flags syn drop"
MEET=2000 pair
like "a firewall that drops: nothing came back from where" "$g" 'nothing came back from 10.9.0.1:[0-9]+ \(node1\), from 10.9.0.2 on eth0 for 2 s: does a firewall drop'
open_up 1

filter 2 output "ip length > 1400 drop"
QUIET=3000 pair
like "large packets do not pass: that is guessed" "$h$g" 'small messages went both ways: do packets of full size pass'
unlike "and it is not good" "$h$g" '"ok":true.*"ok":true'
open_up 2

host
port=${id%:*} port=${port##*:}
for i in $(seq 20); do # more than there is room for; some say something, some nothing
    on 2 env E2E_MARK="$T" PORT="$port" SAY="$((i % 2))" bash -c 'exec 3<>/dev/tcp/10.9.0.1/$PORT; [ $SAY = 0 ] || echo hello >&3; cat <&3' >/dev/null 2>&1 &
done
guest; both
like "strangers do not disturb" "$h$g" '"ok":true.*"ok":true'
end guest 2 "\"guest\":true,\"id\":\"10.9.0.1:9:00112233445566778899aabbccddeeff\",\"local\":\"10.9.0.7\""
wait_for said guest
like "an address that this host has not is told" "$(cat "$T/guest")" 'cannot use the address 10.9.0.7: Cannot assign'

host
guest
on 2 tc qdisc add dev eth0 root tbf rate 20mbit burst 32k latency 50ms
both
like "a slow way ends well, in time" "$h$g" '"ok":true.*"ok":true'
bw=$(printf "%s" "$h" | grep -o "tcp_bw64m[^}]*" | sed "s/.*\"median\":\([0-9.e-]*\).*/\1/")
ok "and is known as slow: $bw GB/s" awk "BEGIN { exit !($bw < 0.05) }"
on 2 tc qdisc del dev eth0 root

MEMBERS='"latency_count":20,"bytes":67108864,"count":1000,"spend_ms":100000,"limit_ms":200000'
QUIET=3000
host; guest
wait_for grep -q tcp_lat_us "$T/host"
guest_pid=$(pgrep -P "$pid_guest")
kill -STOP "$guest_pid"
wait_for said host
kill -CONT "$guest_pid"
both
like "an end that stood still: the other one hears nothing" "$h" 'nothing came back from 10.9.0.2:[0-9]+ \(node2\), to 10.9.0.1 on eth0'
like "but it says itself that it stood still" "$g" '"class":"stalled"'
is_clean "all ends"
finished
