# Workers that do wrong with snapshots: each wrong word is answered by one that says so, garbage ends a connection, and none of
# it touches the agent, other ranks, or the last whole snapshot.
# Seen to fail: a build whose feed() takes a RESTORE_QUERY for a reason to wait longer ("asked"); one without a deadline between
# an offer and its answer ("offered"); one that does not check a worker's rank ("other rank");
# one that SIGXFSZ ends, and that says "No such file" of a file that is too large ("ulimit -f").
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}

train() { # MODE ELRUN-OPTIONS...
    mode=$1; shift
    D=$T/$mode; mkdir "$D"
    ENV="PYTHON_EXEC=$PY" run --standalone --ckpt-mem=64M "$@" "$HERE/snapshots_bad.py" "$D" "$mode"
}

train words
is "wrong words: exit status" "$status" 0
is "each has its answer" "$(cat "$D/log.0")" "other round: ROUND
other rank: RANK
other local rank: RANK
other protocol: PROTO
no HELLO: REFUSED STATE, then closed
two HELLOs: REFUSED STATE
a snapshot of nothing: REFUSED STATE
a restore of nothing: REFUSED STATE
an index that is not the next: REFUSED PARTS
a part without a name: REFUSED PARTS
a file without its layout: REFUSED PARTS
at last: GRANT
other parts: REFUSED DECLARED
the same again: GRANT
images, a header larger than its part: REFUSED IMAGE
images, a header of 7 bytes: REFUSED IMAGE
images, no header: REFUSED IMAGE
images, a part that was not declared: REFUSED IMAGE
images, one that is not said: REFUSED IMAGE
images, nothing of a part: REFUSED IMAGE
images, no numbers: REFUSED IMAGE
images, an end: REFUSED IMAGE
images, more than anybody has: REFUSED IMAGE
images, more than there is: REFUSED NOMEM
what was held then: SNAP_ACK
a commit without a begin: REFUSED STATE
a commit of another step: REFUSED STATE
a commit: SNAP_ACK
the same commit twice: REFUSED STATE
an image larger than was said: REFUSED IMAGE
a header smaller than was said: REFUSED IMAGE
an image that is none: REFUSED IMAGE
a step below 0: REFUSED STATE
a step that is a time in nanoseconds: REFUSED STATE
read before it is offered: REFUSED STATE
an agent's word: REFUSED STATE, then closed
closed in the middle, twice; the last whole one: 2 2 DONE"

train memory
is "memory of the agent: exit status" "$status" 0
is "it can be filled, and a slot be made longer; nothing else; what was spoiled is not used" "$(cat "$D/log.0")" "page, grow: PermissionError
page, shrink: PermissionError
page, write behind its end: PermissionError
page, seal: PermissionError
slot, shrink: PermissionError
slot, seal: PermissionError
slot, grow: None
a page of ff: SNAP_ACK
a page of 00: SNAP_ACK
a page of 7f: SNAP_ACK
offer, map for writing: PermissionError
offer, write: OSError
a hole in a committed slot: 0, then 7 7 DONE
in slots that are longer than the agent has made them: SNAP_ACK SNAP_ACK 10 10 DONE"

train frames
is "1500 frames that are none: exit status" "$status" 0
is "the agent is as it was" "$(cat "$D/log.0")" "after 1500 frames: SNAP_ACK
descriptors of the agent: as before"

train offered --nproc-per-node=2 --max-restarts=3 --ckpt-restore-timeout=2
is "a rank gets an offer and says nothing: exit status" "$status" 0
is "the other one is told who and why, and the next round goes on" "$(cat "$D/log.0")" \
    "1 RESTORE_OFFER -1 local rank 1 did not read the snapshot within 2 s (--ckpt-restore-timeout)
2 3 3 DONE"
train asked --nproc-per-node=2 --max-restarts=3 --ckpt-restore-timeout=2
is "a rank asks again and again, another one never: exit status" "$status" 0
is "the time runs from the first question" "$(cat "$D/log.0")" \
    "1 RESTORE_OFFER -1 rank 1 has not called restore() within 2 s (--ckpt-restore-timeout): every rank must call it
2 3 3 DONE"
is_clean "wrong"

# A limit on the size of files counts for slots, too: it is told, and ends nobody but those who asked for more.
PREFIX="prlimit --fsize=1000000:1000000"
mkdir "$T/fsize"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --ckpt-mem=64M "$HERE/emergency_worker.py" "$T/fsize" large
is "slots larger than ulimit -f: exit status" "$status" 1
like "slots larger than ulimit -f: the worker hears it" "$(cat "$ERR")" "^elrun\.Error: a slot for snapshots of [0-9]+ bytes, more than a file may have here \(ulimit -f, .*: File too large$"
is_clean "slots larger than ulimit -f"
PREFIX="prlimit --fsize=20000:20000"
ENV="PYTHON_EXEC=$PY" run --standalone --ckpt-mem=64M "$HERE/emergency_worker.py" "$T/fsize" large
is "no room for the Python package: exit status" "$status" 73
like "no room for the Python package: one line" "$(cat "$ERR")" "^elrun: .*/py/elrun/[a-z_]+\.py: File too large$"
PREFIX=
finished
