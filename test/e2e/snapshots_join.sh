# A training that grows, from memory alone: a third node joins at a step boundary, and its rank gets the state from the others by
# the script (examples/elastic.py, restore(share=...)).  No step is lost or made twice, all ranks have the same parameters and optimizer
# behind each step, and they are those of a training on one rank.
# Seen to fail: without share= in the example (nothing is left that every rank can have); with a share() that gives nothing back; with frames
# of elrun's own package taken for the script's, which lie elsewhere on each node ("does not share").
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
E2E_MARK="$T" TMPDIR="$T/tmp" "$ELRUN" store --port 0 --port-file "$T/port" >"$T/store" 2>&1 &
store=$!
wait_for test -s "$T/port"
mkdir "$T/grows" "$T/one"
agent() { # NAME
    OUT=$T/$1.out ERR=$T/$1.err
    ENV="PYTHON_EXEC=$PY STEPS=1000000 PAUSE=0.02 OMP_NUM_THREADS=1"
    start --nnodes=2:3 --nproc-per-node=1 --rdzv-endpoint="127.0.0.1:$(cat "$T/port")" --rdzv-id=grows --scale-up-delay=0.2 \
        --boundary-wait=100 --ckpt-mem=64M "$HERE/snapshots_join.py" "$T/grows"
    eval "agent_$1=$elrun_pid"
}
made() { [ "$(grep -c "^[0-9]* $2 " "$T/grows/log.$1")" -ge "$3" ]; } # RANK WORLD STEPS
agent a; agent b
ok "two nodes train" wait_for made 1 2 5
agent c
ok "a third one joins, and all three train" wait_for made 2 3 5
like "its rank got the state from another one" "$(cat "$T/c.err")" 'going back to step [0-9]+, which ranks of other nodes have: the script shares it'
for n in a b c; do eval "kill -TERM \$agent_$n"; done
for n in a b c; do eval "elrun_pid=\$agent_$n"; finish; done
last=$(tail -1 "$T/grows/log.2" | cut -d' ' -f1)
is "every step was made once" "$(awk 'NR > 1 && $1 != last + 1 { print last " then " $1 } { last = $1 }' "$T/grows/log.0")" ""
is "first by two ranks, then by three" "$(cut -d' ' -f2 "$T/grows/log.0" | uniq | tr '\n' ' ')" "2 3 "
is "the new rank began where the others went on" "$(head -1 "$T/grows/log.2" | cut -d' ' -f1)" "$(awk '$2 == 3 { print $1; exit }' "$T/grows/log.0")"
is "all ranks have the same parameters and momenta behind each step" "$(cat "$T"/grows/log.? | sort -u | cut -d' ' -f1 | uniq -d | tr '\n' ' ')" ""
OUT=$T/one.out ERR=$T/one.err ENV="PYTHON_EXEC=$PY STEPS=$((last + 1)) PAUSE=0 OMP_NUM_THREADS=1"
run --standalone --nproc-per-node=1 "$HERE/snapshots_join.py" "$T/one"
is "one rank alone: exit status" "$status" 0
near() { # but for the order in which floating point numbers are added
    awk -v s="$last" '$1 == s { n++; if (n == 1) { a = $3; b = $4 } else bad = ($3 - a) ^ 2 + ($4 - b) ^ 2 > 1e-6 } END { print n ":" bad + 0 }' \
        "$T/grows/log.0" "$T/one/log.0"
}
is "and has come to the same" "$(near)" "2:0"

# A script that shares nothing: nothing is left that the new rank could have, in the next round as in this one.
mkdir "$T/alone"
cat >"$T/alone.py" <<'PY'
import os
import sys
import time

import elrun

ck = elrun.connect()
state = {"step": 0}
ck.declare("state", state, shard_id="all")
step = ck.restore()
with open(f"{sys.argv[1]}/rounds.{os.environ['RANK']}", "a") as f:
    print(os.environ["WORLD_SIZE"], step, file=f)
for now in range(1000000):
    with ck.update(now):
        state["step"] = now
    ck.snapshot(now)
    time.sleep(0.02)
PY
alone() { # NAME
    OUT=$T/$1.out ERR=$T/$1.err ENV="PYTHON_EXEC=$PY"
    start --nnodes=2:3 --nproc-per-node=1 --rdzv-endpoint="127.0.0.1:$(cat "$T/port")" --rdzv-id=alone --scale-up-delay=0.2 \
        --max-restarts=5 --boundary-wait=100 --ckpt-mem=64M "$T/alone.py" "$T/alone"
    eval "agent_$1=$elrun_pid"
}
alone d; alone e
wait_for files "$T/alone/rounds.*" 2
alone f
for n in d e f; do
    eval "elrun_pid=\$agent_$n"; finish
    is "a script that does not share: node $n ends" "$status" 1
done
ok "a script that does not share: it is not tried until the restarts are spent" holds "$T/store" \
    'job alone has ended: status 1: no restart: two rounds in a row ended so: NoSnapshot at alone.py:'
is "a script that does not share: no rank began anew" "$(cat "$T"/alone/rounds.? | sort | uniq -c | tr -s ' ')" " 2 2 None"
kill -TERM $store
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
