# The workers of a node that stays get other ranks, since the node before it was lost and another one came: what is on disk from then
# on has the shards of all ranks, and each rank goes on from its own, also where its node holds the step in memory with what was its
# former rank's piece of a shared part.
# Seen to fail: with the list of what a node holds made before its workers have declared in the new round (both had "rank1", which
# was written once); with what is held of a step taken for the rank's own, whichever rank wrote it (both had 104).
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

# job NAME [ARGUMENT]: what nodes are of from now on
job() { JOB=$1 WITH=$2 D=$T/$1; mkdir "$D"; }

node() { # NAME
    OUT=$D/out.$1 ERR=$D/err.$1 ENV="PYTHON_EXEC=$PY"
    start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$JOB" --ckpt-mem=64M --ckpt-dir="$D/ckpt" --max-restarts=1 \
        "$HERE/persist_moved.py" "$D" $WITH
    eval "node_$1=$elrun_pid"
}
ends() { # NAME TEXT
    eval "elrun_pid=\$node_$1"; finish
    is "$2" "$status" 0 || note "$(tail -8 "$D/err.$1")"
}
# parts STEP: what its manifest says of parts and shards
parts() { "$PY" -c 'import json, sys
print(*(f"{part}:{shard}" for part, of in sorted(json.load(open(sys.argv[1]))["parts"].items()) for shard in sorted(of)))' "$D/ckpt/step-00000000$1/MANIFEST.json"; }
moves() { # PARTS: of the manifests
    : >"$T/store"
    serve
    node a
    ok "the first has ranks from 0 on" wait_for holds "$T/store" 'has joined'
    node b
    ok "steps are on disk" wait_for test -d "$D/ckpt/step-000000004"
    wait_for holds "$D/err.b" 'ranks 1-1 of 2'
    kill -KILL "$node_a"
    node c
    ok "the node that stays has other ranks" wait_for holds "$D/err.b" 'ranks 0-0 of 2'
    touch "$D/go"
    ends b "the node that stays ends"
    ends c "so does the one that came"
    is "before: each rank's" "$(parts 4)" "$1"
    is "behind it: each rank's" "$(parts 8)" "$1"
}

job moved
moves "@rank:rank0 @rank:rank1 own:rank0 own:rank1 shared:all"
is "each went on from its own" "$(sort "$D/log" | tr '\n' ';')" "0 4 4 4;0 None 0 0;1 4 104 104;1 None 1 1;"

killed; serve # it knows that the job has ended
: >"$D/log"
node a; node b
ends a "another job ends"; ends b "on both nodes"
is "each goes on from its own" "$(sort "$D/log" | tr '\n' ';')" "0 8 8 8;1 8 108 108;"
killed

job shared shared # the slots of a node that stays are of use to its new ranks, but for their own piece
moves "@rank:rank0 @rank:rank1 shared:all"
is "each went on from its own piece" "$(sort "$D/log" | tr '\n' ';')" "0 4 0 4;0 None 0 0;1 4 1 104;1 None 1 1;"
ok "which the node that stays has read from disk" holds "$D/err.b" 'going back to step 4, from disk'
killed
rm -rf "$T/tmp/elrun_"* # of the agent that was killed
is_clean "ranks that have moved"
finished
