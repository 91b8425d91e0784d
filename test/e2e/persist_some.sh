# Ranks that declare different things: some have only what all have alike, and one has more.  All of it is brought to disk,
# and all go on from there.
# Seen to fail: a build that waits for a rank which has ended ("left"), and one for which the first worker's layout is the node's, and nodes' layouts are equal or nothing is written.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}
cat >"$T/some.py" <<'PY'
import os
import sys
import time

import elrun

folder = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ck = elrun.connect()
state, own = {"n": 0}, {"n": rank}
ck.declare("state", state, shard_id="all")
if rank == world - 1:
    ck.declare("own", own)
step = ck.restore()
with open(f"{folder}/log.{rank}", "a") as f:
    f.write(f"{step} {state['n']} {own['n']}\n")
now = 0 if step is None else step + 1
state["n"] = own["n"] = 10 * now + 10
while folder.endswith("/one") and rank == 0 and not os.path.exists(f"{folder}/taken.{now}"):
    time.sleep(0.01)  # so what all have alike is written of the other one, and waits for this one's own
ck.snapshot(now, persist=True)
ck.wait()
open(f"{folder}/taken.{now}", "w").close()
ck.wait_persist(now)
ck.close()
PY
went_on() { for r in 0 1 2; do [ -e "$D/log.$r" ] && sed -n "2s/^/$r:/p" "$D/log.$r"; done | tr '\n' ' '; }

D=$T/one; mkdir "$D"
for turn in 1 2; do
    ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --ckpt-dir="$D/ckpt" "$T/some.py" "$D"
    is "one node, run $turn: status" "$status" 0 || note "$(tail -3 "$ERR")"
done
is "one node: all go on from disk" "$(went_on)" "0:0 10 0 1:0 10 10 "

begin() { # STORE: three nodes with a rank each
    D=$T/$1; mkdir -p "$D"
    for i in 0 1 2; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=3 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="$1" --ckpt-store="$1" \
            --ckpt-dir="$D/ckpt$([ "$1" = shared ] || echo ".$i")" --node-rank=$i "$T/some.py" "$D"
        eval "$1_$i=$elrun_pid"
    done
}
ends() { # STORE TEXT
    for i in 0 1 2; do
        eval "elrun_pid=\$$1_$i"; finish
        is "$1, $2: node $i ends" "$status" 0 || note "$(tail -3 "$T/$1/err.$i")"
    done
}
for turn in 1 2; do
    serve # another one, which knows nothing of the one that has ended
    begin shared; begin local
    ends shared "run $turn"; ends local "run $turn"
    killed
done
for D in "$T/shared" "$T/local"; do is "${D##*/}: all go on from disk" "$(went_on)" "0:0 10 0 1:0 10 1 2:0 10 10 "; done

# A rank that ends without a step that the others want on disk, while a rank beside it goes on.
cat >"$T/left.py" <<'PY'
import os
import sys
import time

import elrun

folder, rank = sys.argv[1], int(os.environ["RANK"])
ck = elrun.connect()
ck.declare("own", {"n": rank})
ck.restore()
if rank == 3:
    while not all(os.path.exists(f"{folder}/taken.{r}") for r in range(3)):
        time.sleep(0.01)
    ck.close()
    sys.exit(0)
ck.snapshot(7, persist=True)
ck.wait()
open(f"{folder}/taken.{rank}", "w").close()
try:
    said = ck.wait_persist(7, timeout=60)
except elrun.Error as e:
    said = e
with open(f"{folder}/said.{rank}", "w") as f:
    print(said, file=f)
ck.close()
PY
serve
D=$T/left; mkdir "$D"
for i in 0 1; do
    OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
    start --nnodes=2 --nproc-per-node=2 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=left --ckpt-dir="$D/ckpt" --node-rank=$i "$T/left.py" "$D"
    eval "left_$i=$elrun_pid"
done
for i in 0 1; do
    eval "elrun_pid=\$left_$i"; finish
    is "left: node $i ends" "$status" 74 || note "$(tail -3 "$D/err.$i")"
done
is "left: the others are told at once, and why" "$(cat "$D"/said.* | sort | uniq -c | tr -s ' ')" \
    ' 3 step 7 is not on disk: no node that is left holds part "own" of it (shard "rank3")'
killed
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
