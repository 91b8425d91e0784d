# No rank has two live holders: one-way cuts, processes that stand still, another clock.  Workers
# write a line every few milliseconds, so when each lived can be read whatever ended it.
# Seen to fail: without member_fence() of member_link.c (deaf, mute, cut off), without ops.fence() in membership_io.c ("an
# agent stands still"), with the coordinator's clock for one's own in member_beat_reply() ("a clock that jumps"), with
# nodes that take each other's word for a proof that the coordinator is dead ("two nodes"), with report_was_signalled() that
# does not ask for the fence ("in the events"), with refusals that count without another node's word ("resets").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3

trio() { # OPTIONS: three nodes that pulse; silence counts after one second
    job 1:3 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5 --scale-up-delay=0.2 "$@"
    WORK="meet enter $LOG pulse $LOG.pulse"
    for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
    reaches "$what: three nodes" "node1 node2 node3"
}
ends() { # every node is told to leave; nothing else would end a pulse
    shoot_all TERM n1 n2 n3
    all_end "$what: they leave" "n2 n3 n1" 143
}

for what in deaf mute resets; do
    trio
    $what 2
    reaches "$what: the others go on, rank 1 elsewhere" "node1 node3"
    sleep 0.3 # some more pulses
    is "$what: no rank has two holders" "$(overlap)" ""
    ok "$what: its agent lives" kill -0 "$(pid n2)"
    hears 2
    reaches "$what: it is back" "node1 node2 node3"
    is "$what: one round without it, one with it" "$(round_number)" 3
    is "$what: no rank had two holders" "$(overlap)" ""
    ends
done

what="the endpoint's host is cut off"
trio
power_off 1
silent() { [ "$(awk '$1 == "pulse" && $4 > 0 { t[$4] = $2 } END { for (r in t) n++; print n }' "$LOG.pulse")" = 2 ] && all_gone "$cut"; }
cut=$(awk '$1 == "in" && $15 != "node1" { print $3 }' "$LOG")
ok "$what: the others' workers are dead" wait_for silent
reaches "$what: its own node goes on with what it sees" "node1"
power_on 1
reaches "$what: all are back" "node1 node2 node3"
is "$what: no rank had two holders" "$(overlap)" ""
ends

what="two nodes are cut off together, the store's host among them"
job 1:3 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5 --scale-up-delay=0.2
WORK="meet enter $LOG pulse $LOG.pulse"
for i in 1 2 3; do agent "n$i" $i --node-rank=$(((i + 1) % 3)); done
reaches "$what: three nodes" "node2 node3 node1"
power_off 1 # the coordinator's side; the others hear each other
reaches "$what: the coordinator's side goes on with their ranks" "node1"
sleep 0.3
is "$what: no rank has two holders" "$(overlap)" ""
like "$what: they say why their workers were killed" "$(err n2)" "the coordinator's host has been silent for 1 s: .*killed"
power_on 1
reaches "$what: all are back" "node2 node3 node1"
is "$what: no rank had two holders" "$(overlap)" ""
ends

what="an agent stands still"
trio --events="$T/events"
kill -STOP "$(pid n3)"
reaches "$what: the others go on" "node1 node2"
is "$what: exactly one round without it" "$(round_number)" 2
agent r 2 --node-rank=2
reaches "$what: another node takes its rank" "node1 node2 node2"
is "$what: no rank has two holders" "$(overlap)" ""
kill -TERM "$(pid r)"; status_of r
reaches "$what: that one leaves" "node1 node2"
kill -CONT "$(pid n3)"
reaches "$what: it is back" "node1 node2 node3"
unlike "$what: its worker was killed by elrun, as it says" "$(err n3)" "from outside elrun"
like "$what: in the events too" "$(grep '"worker_ended".*"rank":2,' "$T/events")" '"host":"node3".*"signal":9,.*"stopped":true'
is "$what: in one new round" "$(in_rounds) $(mixed)" "5 "
number=$(round_number)
cut=$(awk -v r="$(newest)" '$1 == "in" && $4 == r && $6 > 0 { print $3 }' "$LOG")
kill -STOP "$(pid n1)" # hosts the coordinator, and the store
sleep 2 # twice the limit; its host takes what the others say meanwhile
kill -CONT "$(pid n1)"
sleep 1.2
ok "$what, the coordinator's: the others' workers run on" kill -0 $cut
is "$what, the coordinator's: no new round" "$(round_number)" "$number"
is "$what: no rank had two holders" "$(overlap)" ""
ends

what="a clock that jumps"
pulses() { [ "$(grep -c "^pulse .* $1\$" "$LOG.pulse")" -ge "$2" ]; } # RANK COUNT: one in five milliseconds at most
if unshare -T --monotonic 100000 true 2>/dev/null; then
    job 1:3 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5
    WORK="meet enter $LOG pulse $LOG.pulse"
    agent n1 1 --node-rank=0
    AGENT="unshare -T --monotonic 100000 --boottime 100000 --"; agent n2 2 --node-rank=1; AGENT=
    agent n3 3 --node-rank=2
    reaches "$what: hosts whose clocks differ by a day" "node1 node2 node3"
    ok "$what: they run on for longer than silence may last" wait_for pulses 1 300
    is "$what: nobody was lost" "$(in_rounds) $(mixed)" "1 "
    kill -KILL "$(pid n3)"; status_of n3
    reaches "$what: a node is lost" "node1 node2"
    shoot_all TERM n1 n2
    all_end "$what: they leave" "n2 n1" 143
else
    skip "no time namespaces" "$what"
fi
wait_for no_leftovers
is "fence: no process is left" "$(leftovers)" ""
finished
