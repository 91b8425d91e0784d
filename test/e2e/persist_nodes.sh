# Checkpoints on disk of several nodes: whoever dies, what is there is old or new and whole, and a node that lost its
# memory goes on from disk together with all others.  LONG=1: also a coordinator that dies, and nodes that do not agree
# about the directory.  Seen to fail: with later steps of one node deleted when all go back; with an emergency checkpoint that say nothing of a step that a lost node alone held ("gone").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

LOCAL=

# job NAME MODE STEPS PERSIST OPTIONS...: two nodes with two workers each, one directory
job() {
    D=$T/$1 R=$T/$1/ckpt name=$1 SCRIPT="$2|$3|$4"; shift 4
    OPTIONS="--nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$name --ckpt-mem=64M $*"
    mkdir -p "$D"
    for i in 0 1; do node $i; done
}
node() { # I
    OUT=$T/out.$1 ERR=$D/err.$1 ENV="PYTHON_EXEC=$PY"
    old_ifs=$IFS; IFS='|'; set -- "$1" $SCRIPT; IFS=$old_ifs
    start $OPTIONS --ckpt-dir="$R${LOCAL:+.$1}" --node-rank="$1" "$HERE/persist_worker.py" "$D" "$R" "$2" "$3" "$4"
    eval "node_$1=$elrun_pid"
}
ends() { # I STATUS TEXT
    eval "elrun_pid=\$node_$1"; finish
    is "$3" "$status" "$2" || note "$(tail -8 "$D/err.$1")"
}
all_end() { ends 0 "$1" "$name: node 0 ends"; ends 1 "$1" "$name: node 1 ends"; }
went_back() { cat "$D"/log.? | sed -n "s/^$1 \([0-3]\) \([^ ]*\) .*/\1:\2/p" | tr '\n' ' '; } # ATTEMPT
list() { "$ELRUN" ckpt ls "$R" --json | "$PY" -c '
import json, sys
for x in json.load(sys.stdin)["checkpoints"]:
    print(x["step"], x["state"], x["files"], *sorted(x["flags"]))'; }
whole() { "$ELRUN" ckpt verify --deep "$R/step-00000000$1" >"$T/verify" 2>&1; echo $?; }
said() { cat "$D"/err.?; }

serve
job plain "" 6 2,4
all_end 0
is "plain: what the script wants, a file for each part of all nodes" "$(list)" "2 valid 9
4 valid 9 latest"
is "plain: whole, byte by byte" "$(whole 2) $(whole 4)" "0 0"
is "plain: no stage is left" "$(ls -A "$R/.stage")" ""

job one one 4 ""
all_end 137
is "emergency checkpoint of all nodes" "$(list)" "3 valid 9 emergency latest"
is "one: whole" "$(whole 3)" 0

job term hold 4 1
wait_for files "$D/ready.?" 4
kill -TERM "$node_1"
ends 1 143 "term: a node is told to leave"
is "term: it stays until the emergency checkpoint of all nodes is on disk" "$(list)" "1 valid 9
3 valid 9 emergency latest"
kill -TERM "$node_0"
ends 0 143 "term: the other one"
is "term: whole" "$(whole 1) $(whole 3)" "0 0"

job gone hold 4 1
wait_for files "$D/ready.?" 4
kill -KILL "$node_1"
ok "what it alone held of the last step is gone, and that is said" wait_for holds "$T/store" \
    'checkpoint: step 3 is not on disk: no node that is left holds part "state"'
rm "$D"/log.?
node 1
all_end 0
is "a node is lost with its memory: all go on from disk" "$(went_back 0)" "0:1 1:1 2:1 3:1 "
is "and nothing half is left" "$(list)" "1 valid 9 latest"

# --- a directory for each node ------------------------------------------------------------------------------------
LOCAL=1
job local hold 4 1 --ckpt-store=local
wait_for files "$D/ready.?" 4
kill -TERM "$node_1" "$node_0"
all_end 143
each() { for i in 0 1; do R=$D/ckpt.$i; list; done; }
is "local: each node has its part of both" "$(each)" "1 valid 5
3 valid 5 emergency latest
1 valid 5
3 valid 5 emergency latest"
"$ELRUN" ckpt gc "$D/ckpt.0" --keep-last=1 >"$T/gc" 2>&1 # when it is not known whether the other node has 3
like "local: gc does not rely on one node's part alone" "$? $(cat "$T/gc")" '^4 elrun: nothing is deleted: .*step-000000003, is one node.s part'
rm -r "$D/ckpt.1/step-000000003" "$D"/log.?
job local hold 4 2 --ckpt-store=local
all_end 0
is "local: one of them is gone: all go back to what each has" "$(went_back 0)" "0:1 1:1 2:1 3:1 "
is "local: and what was beyond is of another history, set aside and not deleted" "$(each)" "1 valid 5
2 valid 5 latest
3 aside 5 emergency
1 valid 5
2 valid 5 latest"
like "local: it is said once, by the node that has it" "$(said | grep aside)" "^elrun: warning: checkpoint: step 3, later than what all nodes go on from, moved to $D/ckpt.0/.aside, not deleted: .elrun ckpt gc. does that when the job is as far again$"
# Its directory is there again, as the other one had it: so is the step, where it stood.
mv "$D"/ckpt.0/.aside/step-000000003.* "$D/ckpt.0/step-000000003"
R=$D/ckpt.0
is "local: it can be moved back" "$(whole 3)" 0
mkdir -p "$D/ckpt.0/.aside" && mv "$D/ckpt.0/step-000000003" "$D/ckpt.0/.aside/step-000000003.x"
"$ELRUN" ckpt gc "$D/ckpt.0" --keep-last=9 >"$T/gc" 2>&1
is "local: gc leaves it while the job is not as far again" "$(ls "$D/ckpt.0/.aside")" step-000000003.x
rm "$D"/log.?
killed; serve # which knows nothing of the one that has ended
job local hold 5 4 --ckpt-store=local --ckpt-keep-last=9
all_end 0
is "local: once it is, it goes" "$(each)" "1 valid 5
2 valid 5
4 valid 5 latest
1 valid 5
2 valid 5
4 valid 5 latest"
# Where another node lacks the newest all go back to the one before it: gc relies on both.
R=$D/ckpt.0 part=$(ls "$D/ckpt.0/step-000000002/"*.safetensors | head -n 1)
cp "$part" "$T/part"
printf x | dd of="$part" bs=1 seek=$(($(wc -c <"$part") - 1)) conv=notrunc 2>/dev/null
"$ELRUN" ckpt gc "$R" --keep-last=2 >"$T/gc" 2>&1
like "local: gc proves the one before the newest, too" "$? $(cat "$T/gc")" '^1 elrun: nothing is deleted: the one before the newest checkpoint, step-000000002, is damaged: '
cp "$T/part" "$part"
"$ELRUN" ckpt gc "$R" --keep-last=2 --dry-run >"$T/gc" 2>&1
is "local: and says of both that they are whole" "$? $(grep -c 'found whole, every byte, before anything older goes' "$T/gc") $(grep -c '^would go' "$T/gc")" "0 2 1"
rm -r "$D/ckpt.1" "$D"/log.?
killed; serve
job local hold 2 1 --ckpt-store=local
all_end 9
is "local: one of the directories is empty: nothing is begun anew, and nothing is moved" "$(R=$D/ckpt.0; list)" "1 valid 5
2 valid 5
4 valid 5 latest"
killed; serve
job local none 2 1 --ckpt-store=local --allow-fresh
all_end 0
is "local: with --allow-fresh it is, and nothing is deleted" "$(each)" "1 aside 5
1 valid 5 latest
2 aside 5
4 aside 5
1 valid 5 latest"
LOCAL=

if [ -n "${LONG:-}" ]; then
# A byte of one node's part differs: that step is of no use to anybody.
flip() { "$PY" -c '
import sys
f = open(sys.argv[1], "r+b"); f.seek(-1000, 2); b = f.read(1); f.seek(-1000, 2); f.write(bytes([b[0] ^ 1]))' "$1"; }
flip "$T/plain/ckpt/step-000000004/$("$PY" -c '
import json, sys
m = json.load(open(sys.argv[1]))
p = m["parts"]["state"]; print(p[sorted(p)[-1]])' "$T/plain/ckpt/step-000000004/MANIFEST.json")"
rm "$T"/plain/log.?
killed; serve # which knows nothing of the one that has ended
job plain "" 6 ""
all_end 0
is "a file is damaged: all nodes pass the step over" "$(went_back 0)" "0:2 1:2 2:2 3:2 "
like "and say why" "$(said)" 'step 4.*: step-000000004/shard-[0-9]*-model-00001-of-00001.safetensors: bytes .* have CRC32C'

job other hold 4 1
node_2=$node_1
wait_for holds "$T/store" 'job other: .* has joined' # whoever is first says what the job is
D=$T/other2; mkdir "$D"; OPTIONS="$OPTIONS --ckpt-store=local" LOCAL=1 node 1
ends 1 78 "a node with another --ckpt-store"
like "other: one line" "$(cat "$D/err.1")" 'was started with --ckpt-dir and --ckpt-store=local, job other with --ckpt-dir and --ckpt-store=shared: give all its nodes the same'
D=$T/other node_1=$node_2
wait_for files "$D/ready.?" 4
kill -KILL "$node_0" "$node_1"; wait "$node_0" "$node_1" 2>/dev/null

job coord gate 3 1
wait_for files "$D/at.?" 4
killed
: >"$D/go"
all_end 0
is "the coordinator dies: the next one brings it to disk" "$(list) $(whole 1)" "1 valid 9 latest 0"
serve
fi
killed
wait_for no_leftovers
finished
