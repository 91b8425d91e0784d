# Emergency checkpoint of workers that live, over several nodes: the agents hold their workers back, the coordinator finds the newest
# step that all could go back to, and it is copied before anybody is stopped.
# Seen to fail: agents that hold nobody back ("one" and all that capture something); a coordinator that does not allow the
# step that others are in ("behind"), counts nodes of which nothing is left ("memory"), and no limit of its own ("deaf").
# Agents that kill what is copied as soon as another node says that the round is over ("exits").
# An agent for which a worker that was signalled while it waited had not failed ("both").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

# job NAME MODE NODES WORKERS OPTIONS...: the nodes, with so many workers each; in OPTIONS @ is the node's number
job() {
    name=$1 mode=$2 nodes=$3 each=$4 D=$T/$1; shift 4
    mkdir -p "$D/w"
    OPTIONS="--nproc-per-node=$each --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$name --ckpt-mem=64M --restart-policy=always --max-restarts=1 $*"
    case $OPTIONS in *--nnodes*) ;; *) OPTIONS="--nnodes=$nodes $OPTIONS" ;; esac
    for i in $(seq 0 $((nodes - 1))); do node "$i"; done
}
node() { # I
    OUT=$D/out.$1 ERR=$D/err.$1 ENV="PYTHON_EXEC=$PY"
    start $(echo "$OPTIONS" | sed "s/@/$1/") --node-rank="$1" "$HERE/emergency_worker.py" "$D/w" "$mode"
    eval "node_$1=$elrun_pid"
}
ends() { # STATUS NODE...: each of these
    want=$1; shift
    for i in "$@"; do
        eval "elrun_pid=\$node_$i"; finish
        is "$name: node $i ends" "$status" "$want" || note "$(tail -8 "$D/err.$i")"
    done
}
went_back() { cat "$D"/w/log.* | sed -n 's/^1 \([0-9]*\) /\1:/p' | tr '\n' ' '; }
right() { cat "$D"/w/log.* | sed -n 's/^end //p' | sort | uniq -c | tr -s ' '; }
said() { sed -n "s/.*job $name: \(emergency checkpoint: .*\)/\1/p" "$T/store" | sed 's/: [0-9.]* MiB in [0-9.]* s$//'; }
list() { "$ELRUN" ckpt ls "$D/${1:-ckpt}" --json | "$PY" -c '
import json, sys
for x in json.load(sys.stdin)["checkpoints"]:
    print(x["step"], x["state"], *sorted(x["flags"]))'; }
serve

job one one 2 2
ends 0 0 1
is "one: a worker is killed, none of the others' step is lost" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "
is "one: and the training ends as it should" "$(right)" " 4 90 True"
is "one: it is said, each live rank has pieces of its own" "$(said)" "emergency checkpoint: step 6 is captured from 3 live workers of 2 nodes"

job raise raise 2 2
ends 0 0 1
is "raise: a script fails, each rank has a shard of its own: its own state is captured, too" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "
is "raise: it ends as it should" "$(right)" " 4 90 True"

is "raise: why it stops is said before what came of it" "$(grep -oE 'job raise: (round 1 stops|emergency checkpoint)' "$T/store" | cut -d' ' -f3- | tr '\n' ';')" "round 1 stops;emergency checkpoint;"

job both both 2 1 --max-restarts=0 --ckpt-dir="$T/both/ckpt"
ends 1 0 1
like "both: scripts of two nodes fail, the first one ends last: it is the cause" \
    "$(sed -n 's/.*job both: first to fail: //p' "$T/store")" '^rank 1 on .*: exit code 1: RuntimeError: the first '

job late late 2 2
ends 0 0 1
is "late: whoever is in a step ends it, on all nodes" "$(went_back)" "0:7 70 1:7 70 2:7 70 3:7 70 "

job behind behind 2 2
ends 0 0 1
is "behind: whoever is not in it yet may begin it" "$(went_back)" "0:7 70 1:7 70 2:7 70 3:7 70 "

job shard shard 3 1
ends 0 0 1 2
is "shard: what the dead one alone held: the snapshot" "$(went_back)" "0:0 0 1:0 0 2:0 0 "

job memory one 2 1
ends 0 0 1
is "memory: all workers of a node are dead, and nothing is written: the snapshot" "$(went_back)" "0:0 0 1:0 0 "
like "memory: why" "$(said)" "^emergency checkpoint: nothing newer is captured, the snapshot of step 0 counts: step 6 cannot be had by all: .* has no live worker that could be asked$"

job disk one 3 1 --ckpt-dir="$T/disk/ckpt"
ends 0 0 1 2
is "disk: all workers of a node are dead, and others hold the same: it has it from disk" "$(went_back)" "0:6 60 1:6 60 2:6 60 "
is "disk: where it is" "$(list)" "6 valid emergency latest"

job own raise 2 2 --ckpt-dir="$T/own/ckpt.@" --ckpt-store=local
ends 0 0 1
is "own: a directory for each node: the same step in both" "$(went_back) $(list ckpt.0) $(list ckpt.1)" "0:6 60 1:6 60 2:6 60 3:6 60  6 valid emergency latest 6 valid emergency latest"

job tensors one 2 1 --ckpt-dir="$T/tensors/ckpt.@" --ckpt-store=local --ckpt-layout=megatron
ends 0 0 1
like "tensors: a layout in which parts of tensors are never on disk: the snapshot" "$(went_back) $(said)" \
    "^0:0 0 1:0 0  emergency checkpoint: nothing newer is captured, the snapshot of step 0 counts: step 6 cannot be had by all: "

job hang hang 2 2 --hang-timeout=4
ends 0 0 1
is "hang: the workers of all nodes stand still: none of their steps is lost" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "

job term leave 2 2 --nnodes=1:2 --boundary-wait=0 --ckpt-dir="$T/term/ckpt"
wait_for files "$D/w/ready.*" 4
kill -TERM "$node_1"
ends 143 1
ends 0 0
is "term: a node is told to leave, the other goes on from what all held" "$(went_back)" "0:6 60 1:6 60 "

job silent silent 2 2 --emergency-timeout=1
ends 0 0 1
is "silent: a holder of what others hold, too, does not answer: they do" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "

job mute mute 2 2 --emergency-timeout=1
ends 0 0 1
is "mute: what it alone holds: the snapshot" "$(went_back)" "0:0 0 1:0 0 2:0 0 3:0 0 "
# Whichever time-out is over first, the coordinator's or that of the rank which ends.
like "mute: why" "$(said)" "step 6 (was not copied in time|of rank [0-9] is held by nobody: it has ended, or cannot be asked)"

job deaf leave 2 2 --emergency-timeout=2 --shutdown-timeout=1
wait_for files "$D/w/ready.*" 4
kill -STOP "$(cat "$D/w/ready.2")" "$(cat "$D/w/ready.3")"
kill -KILL "$(cat "$D/w/ready.0")"
ends 0 0 1
like "deaf: the workers of a node stand still: they are not waited for" "$(said)" "step 6 was not copied in time"
like "deaf: all go back to one step" "$(went_back)" "^(0:0 0 1:0 0 2:0 0 3:0 0|0:6 60 1:6 60 2:6 60 3:6 60) $" # one that goes on when it is told to end may end its copy first

job inside inside 2 2
ends 0 0 1
is "inside: a script fails in the middle of a step that others end: no node has one that all have" "$(went_back)" "0:0 0 1:0 0 2:0 0 3:0 0 "
like "inside: why" "$(said)" "nothing newer is captured, the snapshot of step 0 counts: .*: step 7 of rank [0-3] is held by nobody"

job off one 2 2 --emergency-timeout=0
ends 0 0 1
is "off: --emergency-timeout=0: nothing is captured" "$(went_back)" "0:0 0 1:0 0 2:0 0 3:0 0 "

job stopped leave 2 2 --ckpt-dir="$T/stopped/ckpt"
wait_for files "$D/w/ready.*" 4
kill -STOP "$node_1"
kill -KILL "$(cat "$D/w/ready.0")"
wait_for holds "$D/err.0" "step 6 .*is on disk|emergency checkpoint: step 6"
kill -CONT "$node_1"
ends 0 0 1
is "stopped: an agent stands still: what the others hold is enough, and it comes back to that" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "

job gone slow 2 2 --ckpt-dir="$T/gone/ckpt"
wait_for files "$D/w/copies.*" 2
kill -KILL "$node_1"
touch "$D/w/go"
node 1
ends 0 0 1
is "gone: a node dies while it copies: another one in its place has it from disk" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "
is "gone: of whom there is nothing in it" "$(said)" "emergency checkpoint: step 6 is captured from 2 live workers of 1 node, nothing of 1 lost node"

job lost slow 2 2
wait_for files "$D/w/copies.*" 2
killed
touch "$D/w/go"
wait_for holds "$D/err.0" "the coordinator is away"
serve "$port"
ends 0 0 1
is "lost: the coordinator dies while they copy: they end that, and go on from it" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "

job exits slowexit 2 2
wait_for files "$D/w/copies.*" 2
wait_for holds "$D/err.0" "^elrun: stopping: rank 3 .* failed: exit code 3"
killed
touch "$D/w/go"
wait_for holds "$D/err.[01]" "the coordinator is away"
serve "$port"
ends 0 0 1
is "exits: the same when all were told why they are stopped, and tell each other" "$(went_back)" "0:6 60 1:6 60 2:6 60 3:6 60 "
killed
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
