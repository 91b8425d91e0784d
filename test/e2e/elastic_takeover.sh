# Several agents on the endpoint's host: when the one that hosts the coordinator is killed, another one takes the port
# over and rebuilds the coordinator; the job goes on.  What a coordinator leaves on its host (its mark) is gone after a
# good end, and does not stay for ever after a bad one.
# Seen to fail: with link_resolved() of membership_io.c taken out (nobody takes over); with remove_stale() of mark_io.c
# taken out ("another boot's mark"); with mark_is_dead() that is always false ("go on at once"); with a mark written by every agent that looks for one ("nobody waits").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 2
listening() { on 1 ss -Hltn sport = :29400 | grep -q .; }
marks() { on 1 sh -c 'ls -A /dev/shm' | grep -c '^elrun-[0-9]*-'; } # each host has its own
no_marks() { [ "$(marks)" = 0 ]; }
marked() { [ "$(marks)" = "$1" ]; }

AGENT="env -u XDG_RUNTIME_DIR"
job 1:4 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=0.2,keep_alive_max_attempt=5 --scale-up-delay=0.2
agent a 1
wait_for listening
for name in b c; do agent $name 1; done
agent d 2
gathers "four agents, three of them on the endpoint's host" "node1 node1 node1 node2"
ok "the coordinator has left its mark" marked 1
on 1 "$ELRUN" store >"$T/store.out" 2>"$T/store.err" # it was to stand alone, but an agent was first
is "a store that comes too late: 78" $? 78
like "a store that comes too late: who has the port" "$(cat "$T/store.err")" 'Address already in use; a coordinator of elrun is there, .* leads job job1: round [0-9]+ runs on 4 nodes'
number=$(round_number)
kill -KILL "$(pid a)"; status_of a
gathers "its agent is killed: the others go on, with a coordinator of their own" "node1 node1 node2"
ok "with a higher number" test "$(round_number)" -gt "$number"
ok "somebody says that he hosts it now" holds "$T/[bc].err" 'this agent hosts the coordinator from now on'
agent e 2
gathers "a newcomer is taken in as usual" "node1 node1 node2 node2"
kill -KILL "$(for n in b c; do grep -q 'hosts the coordinator from now on' "$T/$n.err" && pid $n; done)"
gathers "and once more" "node1 node2 node2"
echo >"$GO"
all_end "the job ends well on the other host" "d e" 0
left=; for n in b c; do status_of $n; left="$left $status"; done
is "and on the endpoint's, but for the one that was killed" "$(echo $left | tr ' ' '\n' | sort -n | tr '\n' ' ')" "0 137 "
ok "no mark is left" wait_for no_marks

# A mark of a process that is gone: of another boot it means nothing, and goes; of a moment ago the next one waits.
on 1 sh -c "echo 'elrun-mark 1 1 1 1 1 another-boot' >/dev/shm/elrun-$(id -u)-29400-0123456789abcdef"
on 1 sh -c "echo 'no mark' >/dev/shm/elrun-$(id -u)-29400-fedcba9876543210"
job 1 --nproc-per-node=1; JOB="$(echo "$JOB" | sed 's/nnodes=1/nnodes=1:2/')"
agent a 1
reaches "a job beside old marks" "node1"
ok "another boot's mark is removed, what is none is left alone" marked 2
all_end "it ends" a 0
ok "and takes its own away" marked 1

# The process of the agent that is killed is of this host, and known to be dead: nobody waits a keep-alive limit for it, which
# is longer here than this test has.
job 2:3 --nproc-per-node=1 --rdzv-conf=keep_alive_interval=200,keep_alive_max_attempt=3
agent p 1
wait_for listening
agent q 1; agent r 1
gathers "three agents of one host" "node1 node1 node1"
kill -KILL "$(pid p)"; status_of p
gathers "the one with the coordinator is killed: the others go on at once" "node1 node1"
echo >"$GO"
all_end "and end well" "q r" 0

# Agents of one host that start in the same moment: one has the port, and the others' looking for it leaves nothing behind
# that would make it wait for nodes of an earlier round.
for round in 1 2 3 4 5 6 7 8 9 10; do
    started=
    for name in x y z; do
        on 1 env -u XDG_RUNTIME_DIR E2E_MARK="$T" "$ELRUN" --nnodes=3 --nproc-per-node=1 --rdzv-id=job$round --rdzv-endpoint=node1 \
            --no-python true </dev/null >>"$T/together" 2>&1 &
        started="$started $!"
    done
    wait $started
done
is "ten jobs of three agents that start together: each ends well" "$(grep -c 'all 3 workers of round 1 have succeeded' "$T/together")" 30
unlike "nobody waits for nodes of an earlier round" "$(cat "$T/together")" 'may come back'
ok "no mark is left by those that had not the port" marked 1
wait_for no_leftovers
is "takeover: no process is left" "$(leftovers)" ""
finished
