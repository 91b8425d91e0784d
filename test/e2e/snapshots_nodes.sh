# Snapshots of several nodes: whoever dies, all ranks of all nodes go back to the same step, also if the coordinator dies
# while they agree.  Seen to fail: with restore_take() of restore.c deciding without the last node ("late"), taking no
# decision from a node that was told one ("the coordinator dies behind its decision"), member_link.c without
# member_restore_tell() ("the coordinator dies while they agree").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}


# job NAME OPTIONS...: two nodes with two workers each; held: all stand still behind step 3
job() {
    D=$T/$1 name=$1; shift
    OPTIONS="--nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$name --max-restarts=2 --ckpt-mem=64M $*"
    mkdir -p "$D"
    for i in 0 1; do node $i; done
}
node() { # I
    OUT=$T/out.$1 ERR=$D/err.$1 ENV="PYTHON_EXEC=$PY"
    start $OPTIONS --node-rank="$1" "$HERE/snapshots_nodes_worker.py" "$D" 6 3
    eval "node_$1=$elrun_pid"
}
held() { wait_for files "$D/held.?" 4 || { tail -5 "$D"/err.*; return 1; }; }
shoot() { for r in "$@"; do kill -KILL "$(cat "$D/held.$r")"; done; } # RANK...
asked() { for r in "$@"; do wait_for files "$D/asks.2.$r" 1 || return 1; done; } # RANK...: they ask, or are about to
ends() { # I STATUS TEXT
    eval "elrun_pid=\$node_$1"; finish
    is "$3" "$status" "$2" || note "$(tail -8 "$D/err.$1")"
}
all_end() { ends 0 "$1" "$name: node 0 ends"; ends 1 "$1" "$name: node 1 ends"; }
went_back() { cat "$D"/log.? | sed -n "s/^2 \([0-3]\) \([^ ]*\).*/\1:\2/p" | tr '\n' ' '; } # in round 2
counts() { cat "$D"/log.? | sed -n "s/^2 \([0-3]\) [^ ]* \(.*\)/\1:\2/p" | tr '\n' ' '; }
said() { cat "$D"/err.?; }
ready() { ok "$name: all four stand behind step 3" held; }

serve

job one
ready
shoot 2
all_end 0
is "one worker is killed: all ranks of both nodes go back to one step" "$(went_back)" "0:3 1:3 2:3 3:3 "
is "each has what was its own" "$(counts)" "0:30 03 1:31 03 2:32 03 3:33 03 "
is "each node says it, with source, bytes and seconds" "$(said | grep -cE 'going back to step 3, from memory: [0-9.]+ MiB in [0-9.]+ s')" 2

job node
ready
shoot 2 3
all_end 0
is "all workers of a node are killed: its agent has the bytes" "$(went_back)" "0:3 1:3 2:3 3:3 "

mkdir "$T/flip"; : >"$T/flip/flip.1"
job flip
ready
shoot 3
all_end 0
is "a snapshot of one rank is broken: both nodes go back to the step before" "$(went_back)" "0:2 1:2 2:2 3:2 "
like "and its node says why" "$(said)" 'local rank 1: the snapshot of step 3 is not used: part "state" was written to after its commit'

# While they agree: three have asked and the fourth has not; then the coordinator dies, and an agent takes its place.
job agree
ready
: >"$D/late.0"
shoot 2
ok "agree: the others ask" asked 1 2 3
killed
rm "$D/late.0"
all_end 0
is "the coordinator dies while they agree: the same step everywhere" "$(went_back)" "0:3 1:3 2:3 3:3 "

# Behind its decision: one still reads when the coordinator dies.
serve
job reads
ready
: >"$D/slow.1"
shoot 3
ok "reads: one rank reads, slowly" wait_for files "$D/reads.1" 1
killed
rm "$D/slow.1"
all_end 0
is "the coordinator dies behind its decision: it holds" "$(went_back)" "0:3 1:3 2:3 3:3 "

# A whole agent, and its memory with it.
serve
job lost
ready
kill -KILL "$node_1"
node 1
wait_for files "$D/log.3" 1 # so that this process is waited for, not the one that was killed
all_end 9
like "a node's memory is gone: nothing is begun anew in silence" "$(cat "$D/log.0")" \
    'none: no snapshot is left that every rank can have \(.* is new and has none; .*\); --allow-fresh would begin at the beginning'

job fresh --allow-fresh
ready
kill -KILL "$node_1"
node 1
all_end 0
is "with --allow-fresh all begin at the beginning" "$(went_back)" "0:None 1:None 2:None 3:None "
like "and it is said" "$(said)" 'no snapshot is left that every rank can have( \(.* is new and has none.*\))?: beginning at the beginning \(--allow-fresh\)'

killed
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
