# A disk of one of several nodes that takes what is written and fails when it is to be kept: fsync() says EIO, as it does once
# the kernel could not write a page.  That ends the order for all nodes; the checkpoint before it stays as it is, the job trains
# on, what comes later is written again, and what has the name of a checkpoint is one.  strace, attached to one agent, answers.
# Seen to fail: a build whose root_sync() passes the error over; one whose publish() passes over that of the last rename.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}
command -v strace >/dev/null || skip_all "there is no program strace"
strace -qq -o "$T/strace" -e trace=fsync -e inject=fsync:error=EIO true 2>/dev/null || skip_all "strace is refused here"

# job NAME STORE STEPS PERSIST OPTIONS...: two nodes with a worker each; node I writes into $(root I)
job() {
    D=$T/$1 name=$1 store=$2 ARGS="$3 $4"; shift 4
    mkdir -p "$D"
    for i in 0 1; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=$name --ckpt-mem=64M "$@" \
            --ckpt-store=$store --ckpt-dir="$(root $i)" --node-rank=$i "$HERE/persist_worker.py" "$D" "$(root 0)" fails $ARGS
        eval "node_$i=$elrun_pid"
    done
}
root() { [ $store = local ] && echo "$D/ckpt.$1" || echo "$D/ckpt"; }
all_end() { # STATUS
    for i in 0 1; do
        eval "elrun_pid=\$node_$i"; finish
        is "$name: node $i ends" "$status" "$1" || note "$(tail -8 "$D/err.$i")"
    done
}
# under NODE OPTIONS OF STRACE...: from here on
tracers=
under() {
    eval "spoilt=\$node_$1"; shift
    strace -qq -f -o "$T/strace" -p "$spoilt" "$@" >"$T/strace.err" 2>&1 </dev/null &
    tracers="$tracers $!"
    wait_for grep -q '^TracerPid:.*[1-9]' /proc/"$spoilt"/task/*/status
}
# spoil NODE N OPTIONS...: its calls of fsync() fail, from each thread's Nth on
spoil() { node=$1 nth=$2; shift 2; under $node -e trace=fsync -e inject="fsync:error=EIO:when=$nth+" "$@"; }
heal() { kill -KILL $tracers; wait $tracers 2>/dev/null; tracers=; }
at_exit() { [ -z "$tracers" ] || heal; }
said() { grep -cE "job $name: checkpoint: $1" "$T/store"; } # REGEX
whole() { for d in "$D"/ckpt*; do "$ELRUN" ckpt verify --deep "$d" >"$T/verify" 2>&1; echo $?; done | tr '\n' ' '; }
steps() { for d in "$D"/ckpt*; do (cd "$d" && echo step-*); done | sed 's/step-0*//g' | tr '\n' ';'; }
stages() { for d in "$D"/ckpt*; do ls -A "$d/.stage"; done | grep -c step; }
of_each() { [ $store = local ] && echo "$1$1" || echo "$1"; } # what is said of each directory
on_disk() { wait_for test -e "$(root 0)/step-00000000$1/MANIFEST.json"; } # STEP
only_store() { [ "$(leftovers)" = "$coordinator" ]; }
seen() { touch "$D/failed.$1"; }
went_back() { cat "$D"/log.? | sed -n 's/^0 \([01]\) \([^ ]*\) .*/\1:\2/p' | tr '\n' ' '; }

serve
for kind in local shared; do
    job $kind $kind 5 1,2,3
    on_disk 1
    spoil 1 1 # that of the stage or of a file, as the threads share the work
    seen 1
    ok "$kind: it is said which file could not be kept, and why" wait_for holds "$T/store" \
        "job $kind: checkpoint: step 2 is not on disk: .*: (make|write) $(root 1)/\.stage/step-000000002\.r[0-9]+\.[^/: ]+(/[^/: ]+)?: Input/output error"
    is "$kind: it was the disk" "$(grep -c INJECTED "$T/strace" | sed 's/[1-9][0-9]*/some/')" some
    heal
    is "$kind: both have what was there before, whole" "$(steps) $(whole)" "$(of_each '1;') $(of_each '0 ')"
    seen 2
    on_disk 3
    seen 3
    all_end 0
    is "$kind: once" "$(said 'step 2 is not on disk')" 1
    is "$kind: the disk is well again: so is what comes then" "$(steps) $(whole)" "$(of_each '1 3;') $(of_each '0 ')"
    is "$kind: no half of one is left" "$(stages)" 0
done

# All of it is written; what fails is the last sync, behind the rename that made it a checkpoint: it is one or it is none.
for kind in local shared; do
    job last.$kind $kind 4 1,2 --max-restarts=0
    on_disk 1
    spoil 1 1 -P "$(root 1)"
    [ $kind = local ] || spoil 0 1 -P "$(root 0)" # one of them publishes
    seen 1
    ok "last sync, $kind: it is said" wait_for holds "$T/store" \
        "job last.$kind: checkpoint: step 2 is not on disk: .*: commit $D/ckpt.*/step-000000002: Input/output error"
    heal
    is "last sync, $kind: nobody has called it a checkpoint" "$(cat "$D"/err.? | grep -c 'step 2 is on disk')" 0
    is "last sync, $kind: what has the name of one is whole" "$(whole)" "$(of_each '0 ')"
    kill -KILL "$node_0" "$node_1"; wait "$node_0" "$node_1" 2>/dev/null
    wait_for only_store
    rm -f "$D"/log.?; seen 2
    killed; serve # which knows nothing of the one that has ended
    job last.$kind $kind 4 3
    on_disk 3
    seen 3
    all_end 0
    like "last sync, $kind: all go on from one of the two" "$(went_back)" '^0:([12]) 1:\1 $'
    is "last sync, $kind: whole" "$(whole)" "$(of_each '0 ')"
done

# A disk that is read slowly, longer than --ckpt-restore-timeout for one checkpoint: as long as bytes come it is waited for.
STATE_BYTES=25165824; export STATE_BYTES
job slow local 2 1 --ckpt-mem=256M
on_disk 1
seen 1
all_end 0
rm -f "$D"/log.?
killed; serve
job slow local 3 2 --ckpt-mem=256M --ckpt-restore-timeout=2
under 1 -P "$(root 1)/step-000000001/shard-00001-model-00001-of-00001.safetensors" -e trace=pread64 \
    -e inject=pread64:delay_enter=400000 # in time: a coordinator that has just begun waits for nodes of an earlier round
wait_for files "$D/log.?" 2
delays=$(grep -c DELAYED "$T/strace")
heal
on_disk 2
seen 2
all_end 0
ok "a disk that is read slowly: it took longer than --ckpt-restore-timeout" [ "$delays" -ge 6 ] || note "$delays delays of 0.4 s"
is "a disk that is read slowly: all go on" "$(went_back)" "0:1 1:1 "
unset STATE_BYTES
killed
wait_for no_leftovers
finished
