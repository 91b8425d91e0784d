# A script that goes back by itself, from step 10 to step 4: what it trains then is what counts, for wait(), for a restart,
# and on disk, where what lies beyond is set aside.  On one node and on two, with a directory and without.
# Seen to fail: with keeper_comes_to() that never begins another lineage; with `latest` left as it was ("hint").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

log() { cat "$D"/log.? | sed -n "s/^$1 //p" | sort -u | tr '\n' ';'; } # WORD
disk() { # steps with their state
    "$ELRUN" ckpt ls "$D/ckpt" --json | "$PY" -c '
import json, sys
print(", ".join(str(x["step"]) + " " + x["state"] for x in json.load(sys.stdin)["checkpoints"]))'
}
hint() { # NAME: of 2 and 10 the second is given up, and none is written behind it
    is "$1: 10 is set aside" "$(disk)" "2 valid, 10 aside"
    is "$1: and the hint names what is left" "$(cat "$D/ckpt/latest") $("$ELRUN" ckpt verify "$D/ckpt" | grep -v ': valid')" "step-000000002 "
}
judge() { # NAME
    is "$1: the last step that counts" "$(log last)" "5;"
    is "$1: a restart goes back to it, as it was trained anew" "$(log 1)" "5 5 1;"
}

D=$T/memory; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-mem=64M "$HERE/snapshots_back_worker.py" "$D" /
is "one node: status" "$status" 0 || note "$(tail -3 "$ERR")"
judge "one node"

D=$T/disk; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-dir="$D/ckpt" "$HERE/snapshots_back_worker.py" "$D" 8,10/4
judge "one node with a directory"
is "what was wanted is on disk" "$(log disk)" "10 True;4 True;8 True;"
is "and then set aside" "$(disk)" "4 valid, 5 valid, 8 aside, 10 aside"

D=$T/again; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-dir="$D/ckpt" --emergency-timeout=0 \
    "$HERE/snapshots_back_worker.py" "$D" 4,10/4
judge "a step that is wanted both times"
is "is the second one's on disk" "$(disk)" "4 aside, 4 valid, 10 aside"

D=$T/hint; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-dir="$D/ckpt" --emergency-timeout=0 \
    "$HERE/snapshots_back_worker.py" "$D" 2,10/
hint "one node"

serve
two() { # NAME PERSIST OPTIONS...
    D=$T/$1 name=$1 persist=$2; shift 2; mkdir "$D"
    for i in 0 1; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$name" --node-rank=$i --max-restarts=1 "$@" \
            "$HERE/snapshots_back_worker.py" "$D" "$persist"
        eval "node_$i=$elrun_pid"
    done
    for i in 0 1; do
        eval "elrun_pid=\$node_$i"; finish
        is "two nodes, $name: node $i ends" "$status" 0 || note "$(tail -3 "$D/err.$i")"
    done
    judge "two nodes, $name"
}
two memory2 / --ckpt-mem=64M
two disk2 8,10/4 --ckpt-dir="$T/disk2/ckpt"
is "what was wanted is on disk" "$(log disk)" "10 True;4 True;8 True;"
is "and then set aside" "$(disk)" "4 valid, 5 valid, 8 aside, 10 aside"
two hint2 2,10/ --ckpt-dir="$T/hint2/ckpt" --emergency-timeout=0
hint "two nodes"
killed
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
