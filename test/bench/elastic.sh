# Several nodes: agents of one job on this machine, each with one worker.  What torchrun
# waits for by a fixed time is measured with its default settings and with short ones ("best settings").  It does not watch
# its peers, so a loss is measured with workers that fail by themselves in the moment of the loss.  With its default
# settings it cannot grow a job: since it shares the rendezvous' store, the newcomer waits for an address that the others
# have kept from the round before; TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 belongs to the best settings.
. "$(dirname "$0")/../lib/bench.sh"
NODES=$BUILD/test/bench/nodes
FEW=${FEW:-5}                                         # samples of what takes more than half a minute
JOB="--nproc-per-node=1 --max-restarts=3 --rdzv-id=bench"
LOCAL="--rdzv-endpoint=localhost:@PORT@"
C10D="--rdzv-backend=c10d $LOCAL"
TUNED="env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 $TORCHRUN"
BEST="--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=2,last_call_timeout=1"

# sample WHO KEY COMMAND...: each line "METRIC VALUE" of the command is a sample.  May run beside others.
sample() {
    sample_who=$1 sample_key=$2 sample_at=$T/$(echo "$1.$2.$i" | tr -d ' ,'); shift 2
    if "$@" >"$sample_at.lines" 2>"$sample_at.err"; then
        sed "s/^/$sample_who:$sample_key./" "$sample_at.lines" >>"$T/samples"
    else
        echo "$BENCH: no sample of $sample_who $sample_key" >&2
        tail -n 3 "$sample_at.err" "$sample_at".stamps.out >&2 2>/dev/null
        [ "$sample_who" != elrun ]
    fi
}
# nodes WHO KEY MODE AGENTS LAUNCHER... : LAUNCHER up to its worker
nodes() {
    nodes_who=$1 nodes_key=$2 nodes_mode=$3 nodes_n=$4; shift 4
    sample "$nodes_who" "$nodes_key" "$NODES" "$nodes_mode" "$T/$(echo "$nodes_who.$nodes_key.$i" | tr -d ' ,').stamps" "$nodes_n" "$@"
}

# --- agents with workers --------------------------------------------------------------------------------------------
for i in $(seq "$RUNS"); do
    for n in 2 3; do
        nodes elrun    $n join $n "$ELRUN" --nnodes=$n $JOB $LOCAL --no-python "$STAMP" idle || exit 1
        nodes torchrun $n join $n $TORCHRUN --nnodes=$n $JOB $C10D --no-python "$STAMP" idle
    done
    nodes elrun calm lose 3 "$ELRUN" --nnodes=2:3 $JOB $LOCAL --no-python "$STAMP" idle || exit 1
    nodes elrun fail lose 3 "$ELRUN" --nnodes=2:3 $JOB $LOCAL --no-python "$STAMP" peer || exit 1
    for key in leadcalm:idle leadfail:peer; do
        nodes elrun ${key%:*} lead 3 "$ELRUN" --nnodes=2:3 $JOB $LOCAL --no-python "$STAMP" ${key#*:} || exit 1
    done
    nodes elrun late late 2 "$ELRUN" --nnodes=1:2 $JOB $LOCAL --no-python "$STAMP" idle || exit 1
    nodes "torchrun, best settings" fail lose 3 $TUNED --nnodes=2:3 $JOB $C10D $BEST --no-python "$STAMP" peer
    nodes "torchrun, best settings" late late 2 $TUNED --nnodes=1:2 $JOB $C10D --rdzv-conf=last_call_timeout=1 --no-python "$STAMP" idle
done
# They wait for half a minute and do nothing: side by side, one started after the other.
for i in $(seq "$FEW"); do
    nodes torchrun late late 1 $TORCHRUN --nnodes=1:2 $JOB $C10D --no-python "$STAMP" idle &
    sleep 3
    nodes torchrun fail lose 3 $TORCHRUN --nnodes=2:3 $JOB $C10D --no-python "$STAMP" peer &
    sleep 4
done
wait

# --- a cable that is pulled -----------------------------------------------------------------------------------------
# Two hosts: processes that sleep in network namespaces of their own, joined by a pair of interfaces.
hosts_up() {
    [ "$(id -u)" = 0 ] && unshare -n ip link add v0 type veth peer name v1 2>/dev/null || return 1
    for h in 0 1; do
        unshare -n sleep 600 </dev/null >/dev/null 2>&1 &
        echo $! >"$T/host.$h"
    done
    trap 'kill $(cat "$T"/host.?); rm -rf "$T"' EXIT
    for h in 0 1; do
        host=$(cat "$T/host.$h")
        for try in $(seq 100); do [ "$(readlink "/proc/$host/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break; sleep 0.05; done
        nsenter -t "$host" -n ip link set lo up
        [ $h = 1 ] || nsenter -t "$host" -n ip link add cable type veth peer name cable netns "$(cat "$T/host.1")" || return 1
    done
    for h in 0 1; do
        nsenter -t "$(cat "$T/host.$h")" -n ip addr add "10.9.1.$((h + 1))/24" dev cable && cable up $h || return 1
    done
    echo 'h=$1; shift; exec nsenter -t "$(cat "$(dirname "$0")/host.$h")" -n "$@"' >"$T/on_host"
}
cable() { nsenter -t "$(cat "$T/host.$2")" -n ip link set cable "$1"; }
if hosts_up; then
    export BENCH_CUT="nsenter -t $(cat "$T/host.1") -n ip link set cable down"
    for i in $(seq "$RUNS"); do
        nodes elrun cut cut 2 sh "$T/on_host" @AGENT@ "$ELRUN" --nnodes=1:2 $JOB --rdzv-endpoint=10.9.1.1:@PORT@ --no-python "$STAMP" idle || exit 1
        cable up 1
    done
else
    echo "$BENCH: SKIP a cable that is pulled: namespaces want root, iproute2 and a kernel with veth" >&2
fi

# --- tables ---------------------------------------------------------------------------------------------------------
FORK="before the fork of the first agent" RUN="main() of the last worker" NEW="main() of the survivors' last new worker"
for who in elrun torchrun "torchrun, best settings"; do
    best=; [ "$who" != "torchrun, best settings" ] || best=yes
    for n in 2 3; do [ "$best" ] || emit "$who" $n.joined "$n agents start" ms "$FORK" "$RUN"; done
    [ "$who" != elrun ] || emit elrun calm.lost "one of three agents killed, workers notice nothing (torchrun: never)" ms "kill -9 of the third agent" "$NEW" "<= 300 ms"
    for key in calm fail; do
        did="notice nothing"; [ $key = calm ] || did="of the others fail in that moment"
        [ "$who" != elrun ] || emit elrun lead$key.lost "the agent with the coordinator killed, workers $did (torchrun: never)" ms \
            "kill -9 of the first of three agents on a host" "$NEW" "<= 300 ms"
    done
    emit "$who" fail.lost "one of three agents killed, workers of the others fail in that moment" ms "kill -9 of the third agent" "$NEW" "<= 300 ms"
    emit "$who" late.alone "one node of a job of 1:2 starts" ms "before the fork of the agent" "main() of its worker"
    emit "$who" late.joined "the second joins" ms "before the fork of the second agent" "$RUN of both"
done
emit elrun cut.lost "cable of one of two hosts pulled (torchrun: never)" ms "before ip link set down" "$NEW" "<= 6000 ms"
