# Planned changes at a step boundary: a scale-up and a node that is told to leave lose no step; and when a worker does not
# come to the boundary, the time for it decides.
# Seen to fail: a coordinator that sets the boundary to the highest step instead of one more; agents that let their workers
# begin steps while they are asked.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
PY=${PY:-python3}
net_up 2
WORKER_ARG=

train() { # NAME HOST STATUS OPTIONS...: an agent with $JOB on that host
    name=$1 host=$2 code=$3; shift 3
    OUT=$T/$name.out ERR=$T/$name.err ENV="PYTHON_EXEC=$PY" PREFIX="nsenter -t $(pid_of "$host") -n -m -u --wdns=/"
    start $JOB "$@" --nproc-per-node=2 "$HERE/boundary_worker.py" "$D" "$code" $WORKER_ARG
    ENV= PREFIX=
    eval "agent_$name=$elrun_pid"
}
new_job() { # NNODES OPTIONS...
    job "$@"
    D=$T/d.$job_n; mkdir "$D"; : >"$D/log"
}
steps_with() { # WORLD COUNT: that many steps were made by so many ranks
    [ "$(awk -v w="$1" '$1 == "step" && $4 == w { n[$2 "." $5]++ } END { for (k in n) if (n[k] == w) full++; print full + 0 }' "$D/log")" -ge "$2" ]
}
# Each step by every rank of exactly one round, none left out.
account() {
    awk '$1 == "step" { if (++seen[$5, $3] > 1) print "step " $5 " twice by rank " $3; n[$5]++; world[$5] = $4
             if ($5 in round && round[$5] != $2) print "step " $5 " in two rounds"; round[$5] = $2; top = $5 > top ? $5 : top }
         END { for (i = 0; i <= top; i++) if (n[i] != world[i]) print "step " i " by " n[i] + 0 " of " world[i] + 0 " ranks" }' "$D/log"
}
regroups() { awk '$1 == "regroup" { print $2 ":" $3 ":" $5 }' "$D/log" | sort | tr '\n' ' '; }
boundaries() { awk '$1 == "regroup" { print $2, $4 }' "$D/log" | sort -u | wc -l | tr -d ' '; } # one for each round, if all agree

new_job 1:2 --boundary-wait=100 --scale-up-delay=0.2
train a 1 3
ok "one node trains" wait_for steps_with 2 5
train b 2 0
ok "another comes: both train" wait_for steps_with 4 5
is "the scale-up was at one step for both ranks, and its exits cost nothing" "$(regroups) $(boundaries)" "1:0:scale-up 1:1:scale-up  1"
like "the agent says where" "$(err a)" 'stopping behind step [0-9]+: more nodes are here'
kill -TERM "$(pid b)"
status_of b
is "the node that leaves: exit status" "$status" 143
ok "the other one trains on" wait_for steps_with 2 10
is "the drain was at one step for all four ranks" "$(regroups | tr ' ' '\n' | grep -c '^2:[0-3]:eviction') $(boundaries)" "4 2"
: >"$D/go"
status_of a
is "exit status" "$status" 0
is "every step was made once, by all ranks of one round" "$(account)" ""
unlike "no restart is charged" "$(err a)" 'one restart'

# A rank that does not come: its node says that it waits, and the time is over.
new_job 1:2 --boundary-wait=2 --scale-up-delay=0.2 --max-restarts=3
train a 1 0
ok "again" wait_for steps_with 2 5
stuck=$(for p in $(leftovers); do tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx RANK=1 && echo "$p"; done | head -1)
kill -STOP "$stuck"
train b 2 0
ok "a worker stands still: the change comes all the same" wait_for steps_with 4 5
: >"$D/go"
status_of a; got=$status; status_of b
is "exit statuses" "$got $status" "0 0"

# A snapshot that has no room: the boundary is left all the same, long before the time is over.
new_job 1:2 --boundary-wait=3600 --scale-up-delay=0.2 --max-restarts=3 --ckpt-mem=16M --allow-fresh
WORKER_ARG=grow
train a 1 0
ok "and again" wait_for steps_with 2 5
train b 2 0
ok "no room for a snapshot: the change comes all the same" wait_for steps_with 4 5
like "and it is said" "$(err a)" 'no snapshot at the boundary: --ckpt-mem has no room for it'
: >"$D/go"
status_of a; got=$status; status_of b
is "exit statuses" "$got $status" "0 0"

# Steps whose numbers are not all there: the boundary lies between two of them.
new_job 1:2 --boundary-wait=3600 --scale-up-delay=0.2 --max-restarts=3
WORKER_ARG=sparse
train a 1 0
ok "steps 0, 10, 20 ..." wait_for steps_with 2 5
train b 2 0
ok "numbers that are left out: the change comes all the same" wait_for steps_with 4 5
is "both ranks have left at one step" "$(regroups) $(boundaries)" "1:0:scale-up 1:1:scale-up  1"
: >"$D/go"
status_of a; got=$status; status_of b
is "exit statuses" "$got $status" "0 0"

# Nobody listens: no wait at all.
job 1:2 --boundary-wait=100 --scale-up-delay=0.2
agent n1 1 --nproc-per-node=1
reaches "workers that do not import elrun" "node1"
agent n2 2 --nproc-per-node=1
gathers "nobody is waited for" "node1 node2"
all_end "exit statuses" "n1 n2" 0
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
