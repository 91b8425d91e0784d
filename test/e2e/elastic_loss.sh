# What is lost and who goes on: agents, hosts, workers, at rank 0 or elsewhere, one or two at once; who leaves; replacements;
# what costs a restart.  Seen to fail: without rdzv_stop() at the end of rdzv_lose() of round.c (all but
# the first), with `costs` of round.c without `!r->membership` ("peers notice a loss themselves").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 4

# trio OPTIONS...: a job of one to three nodes with ranks, all there
trio() {
    job 1:3 --nproc-per-node=2 "$@"
    for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
    reaches "three nodes" "node1 node1 node2 node2 node3 node3"
    first=$(newest)
}

# --- kill -9
trio
kill -KILL "$(pid n3)"
reaches "kill -9 of an agent: the others go on" "node1 node1 node2 node2"
is "kill -9 of an agent: one new round" "$(round_number)" 2
is "kill -9 of an agent: no restart is charged" "$(column 5 "$(newest)")" "0 0 0 0"
ok "kill -9 of an agent: all workers of the first round are gone" all_gone "$(round_pids "$first")"
agent n3 3 --node-rank=2
reaches "a replacement gets its place" "node1 node1 node2 node2 node3 node3"
is "a replacement: one new round" "$(round_number)" 3
kill -KILL "$(pid n2)"
reaches "a node in the middle is lost" "node1 node1 node3 node3"
agent n2 4 --node-rank=1
reaches "a replacement from another host gets its place" "node1 node1 node4 node4 node3 node3"
kill -KILL "$(pid n2)" "$(pid n3)"
reaches "two at once" "node1 node1"
ok "two at once: one new round, or two" test "$(round_number)" -le 7
all_end "kill -9: status of the last" "n1" 0
for n in n2 n3; do status_of $n; done

# --- the node of rank 0, with the coordinator elsewhere
job 1:3 --nproc-per-node=2
agent n1 1 --node-rank=2; agent n2 2 --node-rank=0; agent n3 3 --node-rank=1
reaches "rank 0 beside the coordinator's host" "node2 node2 node3 node3 node1 node1"
kill -KILL "$(pid n2)"
reaches "rank 0's node is lost" "node3 node3 node1 node1"
is "rank 0's node is lost: the store moved" "$(hosts_told)" "10.9.0.3 10.9.0.3 10.9.0.3 10.9.0.3"
all_end "rank 0's node is lost: status" "n1 n3" 0
status_of n2

# --- power off: silence only
job 1:3 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5
for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
reaches "three nodes" "node1 node2 node3"
power_off 3
reaches "power off: silence is noticed" "node1 node2"
ok "power off: the workers on the silent host have killed themselves" wait_for ended "$(awk '$1 == "in" && $15 == "node3" { print $3 }' "$LOG")"
is "power off: its agent lives" "$(ended "$(pid n3)"; echo $?)" 1
power_on 3
reaches "power on: the node is back" "node1 node2 node3"
is "power on: one round without it, one with it" "$(round_number)" 3
kill -TERM "$(pid n3)"; status_of n3
all_end "power: status" "n1 n2" 0

# --- who leaves
trio
kill -TERM "$(pid n3)"; status_of n3
is "SIGTERM to one agent: its status" "$status" 143
reaches "SIGTERM to one agent: the others go on" "node1 node1 node2 node2"
is "SIGTERM to one agent: no restart is charged" "$(column 5 "$(newest)")" "0 0 0 0"
kill -TERM "$(pid n1)"
reaches "SIGTERM to the endpoint's agent: its coordinator serves on" "node2 node2"
ok "SIGTERM to the endpoint's agent: it stays" kill -0 "$(pid n1)"
agent n3 3 --node-rank=2
reaches "SIGTERM to the endpoint's agent: others still join there" "node2 node2 node3 node3"
all_end "SIGTERM to the endpoint's agent: the others' status" "n2 n3" 0
status_of n1
is "SIGTERM to the endpoint's agent: its status" "$status" 143

# --- budget
job 1:3 --nproc-per-node=2 --max-restarts=1
WORK="meet enter $LOG @3 await $T/b1 @3 +0 exit 7 @1 +1 await $T/b2 @1 +1 exit 9 await $GO"
for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
reaches "budget: three nodes" "node1 node1 node2 node2 node3 node3"
kill -KILL "$(pid n3)"; status_of n3
reaches "budget: a node is lost" "node1 node1 node2 node2"
touch "$T/b1" # rank 3, on node 2, fails
counts_are() { [ "$(column 5 "$(newest)")" = "$1" ]; }
wait_for counts_are "1 1 1 1"
is "budget: a worker's failure costs one, on every node" "$(column 5 "$(newest)")" "1 1 1 1"
is "budget: the loss of a node cost none" "$(round_number)" 3
touch "$T/b2"; status_of n1; one=$status; status_of n2
is "budget: the second failure ends the job with its code, on every node" "$one $status" "9 9"
like "budget: rank and host of the cause are named on the other node" "$(err n2)" 'rank 1 on node1'

job 1:3 --nproc-per-node=1 --max-restarts=0
for i in 1 2 3; do agent "n$i" $i --node-rank=$((i - 1)); done
reaches "no restarts allowed: three nodes" "node1 node2 node3"
kill -KILL "$(pid n2)"; status_of n2
reaches "no restarts allowed: the loss of a node is none" "node1 node3"
all_end "no restarts allowed: status" "n1 n3" 0

# Workers that fail because a node is lost: every order of the news ends in the same.
job 1:3 --nproc-per-node=1 --max-restarts=0
cat >"$T/peer" <<'SCRIPT'
#!/bin/sh
# ends with 5 as soon as the worker of rank 1 of round 1 is gone: as NCCL does when its peer is
"$@" || exit
case $ELRUN_ROUND in 1.*) ;; *) while [ ! -e "$GO" ]; do sleep 0.02; done; exit 0 ;; esac
p=
until [ -n "$p" ]; do p=$(awk '$1 == "in" && $6 == 1 { print $3; exit }' "$LOG"); done
while grep -qs '^State:.[^ZX]' "/proc/$p/status"; do sleep 0.01; done
exit 5
SCRIPT
chmod +x "$T/peer"
WORKER_WAS=$WORKER; WORK="$WORKER meet enter $LOG"; WORKER=$T/peer; ENV="LOG=$LOG GO=$GO"
for i in 1 3; do agent "n$i" $i --node-rank=$((i - 1)); done
WORKER=$WORKER_WAS; WORK="meet enter $LOG forever"; agent n2 2 --node-rank=1; ENV=
reaches "peers notice a loss themselves: three nodes" "node1 node2 node3"
kill -STOP "$(pid n2)" # so that the news of the others' failures comes first
kill -KILL "$(awk '$1 == "in" && $15 == "node2" { print $3 }' "$LOG")"
ok "peers notice a loss themselves: they fail first" wait_for holds "$T/n1.err" 'exit code 5'
kill -KILL "$(pid n2)"; status_of n2
reaches "peers notice a loss themselves: the job goes on" "node1 node3"
all_end "peers notice a loss themselves: status" "n1 n3" 0
is_clean() { wait_for no_leftovers; is "$1: no process is left" "$(leftovers | tr '\n' ' ')" ""; } # who is shot leaves files
is_clean "loss"
finished
