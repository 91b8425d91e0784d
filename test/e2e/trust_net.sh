# Which addresses a coordinator listens to: --control-allow, v4 and v6, and its commands.
# Seen to fail: with permitted() always true ("refused"), without is_own_host() of server_io.c ("a job on three hosts"),
# with may_change() always true ("no node's host").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
FAMILY=both
net_up 5

asks() { # HOST IP COMMAND...: in $status and $T/said
    asks_host=$1 asks_at=$2 asks_what=$3; shift 3
    on "$asks_host" timeout "$DEADLINE" "$ELRUN" "$asks_what" --endpoint="$asks_at" --timeout 2s "$@" >"$T/said" 2>&1
    status=$?
}
# In the list are node2 by v4, node3 by v6, which have places, and node5 by v6, which has none; node4 is not.
job 3 --control-allow=10.9.0.2/32,fd00:9::3,fd00:9::5/128
agent a 1
agent b 2 --rdzv-endpoint=10.9.0.1
agent c 3 --rdzv-endpoint='[fd00:9::1]'
lines() { [ "$(wc -l <"$LOG")" -ge "$1" ]; }
ok "a job on three hosts" wait_for lines 3
like "the start says whom it trusts" "$(err a)" 'who reaches port 29400 here from a network of --control-allow may join it'
for ip in 10.9.0.1 '[fd00:9::1]'; do
    asks 4 "$ip" status
    is "$ip: a host that is not in it is refused: status" "$status" 69
    like "$ip: … and told what happened" "$(cat "$T/said")" 'not a coordinator of elrun|closed|reset'
    asks 1 "$ip" status
    is "$ip: the own host, by its own address: status" "$status" 0
done
like "the coordinator says whom it refused" "$(err a)" '10\.9\.0\.4:[0-9]+: refused: not in the list of --allow or --control-allow'
like "by v6 too" "$(err a)" '\[fd00:9::4\]:[0-9]+: refused'
asks 5 10.9.0.1 status
is "v4 of a host whose v6 is in the list: refused" "$status" 69
asks 5 '[fd00:9::1]' status
is "its v6: answered" "$status" 0

# What changes a job, or shows what its workers print: hosts of its nodes, not each host of the list.
for what in "stop" "restart" "scale --max=1" "drain node1" "logs 0"; do
    asks 5 '[fd00:9::1]' $what
    is "$what from no node's host: status" "$status" 1
    like "$what: … and why" "$(cat "$T/said")" 'not from fd00:9::5: a job is (changed|read) from its coordinator'
    asks 4 10.9.0.1 $what
    is "$what from a host that is not in the list: status" "$status" 69
done
for way in "2 10.9.0.1" "3 [fd00:9::1]"; do
    asks $way logs -n 1 0
    unlike "host $way has a node: logs" "$(cat "$T/said")" 'not from|closed'
    asks $way drain node9
    like "… drain" "$(cat "$T/said")" 'node9'
    asks $way scale --max=3
    is "… scale" "$status" 0
done
asks 2 10.9.0.1 restart
is "restart from a node's host: v4" "$status" 0
ok "… and it happens" wait_for lines 6
asks 3 '[fd00:9::1]' stop
is "stop from a node's host: v6" "$status" 0
for name in a b c; do elrun_pid=$(pid $name); finish; done

# A list that is empty opens nothing by mistake.
run --nnodes=1:2 --rdzv-endpoint=127.0.0.1 --control-allow= --no-python true
is "an empty list is refused" "$status" 2
like "and said" "$(cat "$ERR")" '--control-allow.*want networks'
finished
