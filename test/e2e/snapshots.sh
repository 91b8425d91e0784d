# Snapshots in the agent's memory: what is committed outlives its worker, and all ranks go back to one step.
# Seen to fail: a build whose keeper gives out the slot that was committed last ("one"); one that does not verify before it
# offers ("late"); one that hears the end of a worker before its last packets ("commit").
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3}

train() { # MODE ELRUN-OPTIONS...
    mode=$1; shift
    D=$T/$mode; mkdir "$D"
    ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --max-restarts=1 "$@" "$HERE/snapshots_worker.py" "$D" "$mode"
}
went_back() { cat "$D"/log.* | sed -n "s/^1 \([01]\) /\1:/p" | tr '\n' ' '; }
no_trace() { # NAME: no folder of elrun, no process
    is "$1: the run folder is gone" "$(ls -d "$T"/tmp/elrun-* 2>/dev/null)" ""
    is_clean "$1"
}

train one --ckpt-mem=64M
is "one rank is killed: exit status" "$status" 0
is "both go back to the step that both had committed" "$(went_back)" "0:3 30 03 1:3 30 03 "
is "no slot has more memory than counts" "$(cat "$D"/log.* | grep slots | sort -u)" "slots have what they need"
like "it is said" "$(cat "$ERR")" 'going back to step 3, from memory'
no_trace one

train all --ckpt-mem=64M
is "all ranks are killed at once: both go back" "$(went_back)" "0:3 30 03 1:3 30 03 "

train copying --ckpt-mem=64M
is "a rank dies while it copies: its last whole snapshot is taken" "$(went_back)" "0:3 30 03 1:3 30 03 "

train commit --ckpt-mem=64M
is "both die right behind the commit: nothing is lost" "$(went_back)" "0:4 40 04 1:4 40 04 "

# Memory of the agent's own: neither what is mounted nor what may be locked bounds it.
printf 'mount -t tmpfs -o size=4k none /dev/shm && ulimit -l 0 || exit 99\nexec "$@"\n' >"$T/little"
if unshare -m sh "$T/little" true 2>/dev/null; then
    D=$T/tiny; mkdir "$D"
    ENV="PYTHON_EXEC=$PY" PREFIX="unshare -m sh $T/little" run --standalone --nproc-per-node=2 --max-restarts=1 --ckpt-mem=64M "$HERE/snapshots_worker.py" "$D" all
    is "a tiny /dev/shm, and no memory may be locked: both go back" "$(went_back)" "0:3 30 03 1:3 30 03 "
    PREFIX=
else
    skip "no right to mount" "a tiny /dev/shm"
fi

train late --ckpt-mem=64M
is "a slot that was written to after its commit is not used: all go back to the step before" "$(went_back)" "0:2 20 02 1:2 20 02 "
like "and it is said which part and where" "$(cat "$ERR")" 'rank 1: the snapshot of step 3 is not used: part "state" was written to after its commit: the 4 MiB from byte 0 on differ'

train sizes --ckpt-mem=256M
is "a state that grows from step to step: what was committed stays, and all of it comes back into one of another size" \
    "$(went_back)" "0:3 30 03 1:3 30 03 "
is "as it was saved, and nothing else in it" "$(cat "$D"/log.* | grep holds | sort | uniq -c | tr -s ' ')" " 2 holds 100, more: False
 2 holds 3145728, more: False"

train parts --ckpt-mem=64M
is "another part after a restart: the job fails rather than begin anew" "$(cat "$D"/log.* | grep -c '^1 [01] none: no snapshot is left')" 2
is "with the worker's status" "$status" 9
D=; rm -rf "$T/parts"
train parts --ckpt-mem=64M --allow-fresh
is "with --allow-fresh it begins at the beginning" "$(went_back)" "0:None 0 00 1:None 0 00 "
is "and ends well" "$status" 0

train misfit --ckpt-mem=64M --allow-fresh
is "an array of another shape on one rank: nothing is filled, not an older one either, and each rank is told whose it is, where and why" \
    "$(cat "$D"/log.* | sed -n '/^1 /p')" \
    '1 0 refused, count 30: what was saved does not fit what rank 1 declares (step 3): part "array": an array float64 of shape [5] was saved, and float64 of shape [6] is declared
1 1 refused, count 0: what was saved does not fit what is declared here, and nothing was changed: part "array": an array float64 of shape [5] was saved, and float64 of shape [6] is declared'
is "which --allow-fresh does not change: the worker's status" "$status" 9

train large --ckpt-mem=3M
is "declaring and going back to nothing needs no memory" "$(sort "$D"/log.* | grep -c '^None$')" 2
is "a snapshot that is more than --ckpt-mem: a rank is told what is needed and what is left, or leaves it out as another is" \
    "$(cat "$D"/log.* | grep -cE '^refused: two slots of [0-9]+ MiB are needed and [0-9]+ MiB of --ckpt-mem are left|^taken: False$')" 2
like "one is told" "$(cat "$D"/log.*)" '^refused: '

train declare --ckpt-mem=64M
is "a part after the first restore, and a second connection of one rank" "$(cat "$D/log.0")" \
    'refused: declare("late") after the first restore() or snapshot(): parts are declared before
refused: this rank has connected already, in this process or in another one: call elrun.connect() once'

train garbage --ckpt-mem=64M
like "garbage ends a connection with a word" "$(cat "$ERR")" 'rank 0: its connection for snapshots is closed: the packet does not begin with ELC1'
is "and nothing else" "$status" 0


# Another number of ranks: the global batch is kept, or the learning rate is not.
cat >"$T/scale.py" <<'PY'
import elrun

print(elrun.accumulate(24, 2), elrun.accumulate(24, 2, 6))
print(elrun.scale_lr(0.5), elrun.scale_lr(0.5, "sqrt", 16, 4), elrun.scale_lr(0.5, "none"), elrun.scale_lr(0.5, first=1))
for wrong in (lambda: elrun.accumulate(25, 2), lambda: elrun.accumulate(0, 0), lambda: elrun.scale_lr(0.5, "cubic")):
    try:
        print(wrong())
    except ValueError as e:
        print(e)
PY
is "accumulate() and scale_lr()" "$(WORLD_SIZE=4 ELRUN_WORLD_SIZE_FIRST=2 PYTHONPATH=$HERE/../../src/client "$PY" "$T/scale.py" 2>&1)" \
    '3 2
1.0 1.0 0.5 2.0
a global batch of 25 is not a multiple of 2 samples x 4 ranks
a batch has at least one sample: not a global batch of 0 in micro batches of 0
rule "cubic": want linear, sqrt or none'
run --standalone --ckpt-mem=100000T /bin/true
is "more than the host has: exit status" "$status" 78
like "and one line with both" "$(cat "$ERR")" '^elrun: .*--ckpt-mem wants [0-9]+ MiB for snapshots, and this host has [0-9]+ MiB available'
run --standalone --ckpt-mem=lots /bin/true
is "no size: usage" "$status" 2
like "with what would be right" "$(cat "$ERR")" 'want a size, such as 500M or 16G .K, M, G, T., or a share'
no_trace "wrong use"
finished
