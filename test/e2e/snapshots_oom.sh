# Out of memory in a cgroup with full slots: the kernel shoots a worker and never the agent, whose memory the slots are, and all
# ranks go on from the snapshot.
# Seen to fail: a build whose spawn_io.c does not raise the children's oom_score_adj: the agent is shot, and everything is gone.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}
mem=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts) file=memory.limit_in_bytes
[ -n "$mem" ] || {
    mem=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts) file=memory.max
    grep -qw memory "$mem/cgroup.subtree_control" 2>/dev/null || mem=
}
group=$mem/elrun-snapshots.$$
[ -n "$mem" ] && mkdir "$group" 2>/dev/null || skip_all "no memory cgroup can be made"
arrays=$(mktemp -d "$BUILD/oom.XXXXXX") # not below /tmp, which may be memory itself
at_exit() { rmdir "$group" 2>/dev/null; rm -rf "$arrays"; }
echo 600M >"$group/$file"; echo 600M >"$group/memory.memsw.limit_in_bytes" 2>/dev/null
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
printf 'echo $$ >"$1/cgroup.procs" || exit 99\nshift; exec "$@"\n' >"$T/in-group"

cat >"$T/train.py" <<'PY'
import os
import sys
import time

import elrun
import numpy

folder, arrays, rank, attempt = sys.argv[1], sys.argv[2], int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# In a file: the kernel can take its memory back at any time, so the slots are nearly all that there is.
state = {"count": 0, "array": numpy.memmap(f"{arrays}/{os.path.basename(folder)}.{rank}.{attempt}", "u1", "w+", shape=100 << 20)}
ck = elrun.connect()
ck.declare("state", state)
step = ck.restore()
with open(f"{folder}/log.{rank}", "a") as f:
    f.write(f"{attempt} {step} {state['count']}\n")
for now in range(0 if step is None else step + 1, 3):
    state["count"] = 10 * now
    while not ck.snapshot(now):
        time.sleep(0.01)
    ck.wait()
    open(f"{folder}/step{now}.{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/step{now}.{r}") for r in (0, 1)):
        time.sleep(0.01)
    if attempt == 0 and now == 1:
        hog = []
        while rank == 1 or os.path.exists(f"{folder}/both"):
            hog.append(b"x" * (1 << 20))
        while True:
            time.sleep(1)
PY
# What others in the group hold is not there any more.
sh "$T/in-group" "$group" "$PY" -c "import time; x = b'x' * (450 << 20); open('$T/full', 'w'); time.sleep(600)" &
hog=$!
wait_for test -e "$T/full"
PREFIX="sh $T/in-group $group" run --standalone --ckpt-mem=200M --no-python true
kill -KILL $hog 2>/dev/null
wait $hog 2>/dev/null
is "200M of 600M, of which 450M are taken: exit status" "$status" 78
like "what there is" "$(cat "$ERR")" "wants 200 MiB for snapshots, and this host has 1[0-9][0-9] MiB available .within its cgroup's limit"

in_group() { # NAME: two ranks with two slots of 100 MiB each in 600 MiB, and one or both grow
    D=$T/$1; mkdir "$D"
    [ "$1" = one ] || : >"$D/both"
    ENV="PYTHON_EXEC=$PY" PREFIX="sh $T/in-group $group" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-mem=410M "$T/train.py" "$D" "$arrays"
}
in_group one
is "a rank grows until it is shot: exit status" "$status" 0
is "both go on from the snapshot" "$(cat "$D/log.0" "$D/log.1")" "0 None 0
1 1 10
0 None 0
1 1 10"
like "it is said what it died of" "$(cat "$ERR")" 'out of memory'
in_group both
is "both grow: exit status" "$status" 0
is "both go on from the snapshot, again" "$(cat "$D/log.0" "$D/log.1")" "0 None 0
1 1 10
0 None 0
1 1 10"
PREFIX=
is_clean "out of memory"
finished
