# elrun probe: this machine alone; 2, 8 and 64 nodes over TCP, all on this machine's loopback; the plan and the verdict for
# thousands of nodes.  DLRover's node check says 1 to 3 minutes of itself; it cannot run here (GPUs), so its cell is blank.
# Wall time is what a user waits, processor time what all processes of all nodes use together.  A node of 64 on one machine
# has a sixty-fourth of it: nodes are not timed against each other here, so speeds of the host are left out, and a pair
# exchanges less (--pair-bytes).
. "$(dirname "$0")/../lib/bench.sh"
SIZES=${SIZES-2 8 64}
SOME=$((RUNS < 5 ? RUNS : 5)) # of what takes half a minute

# timed KEY COMMAND...: wall ms and processor ms of a command and all it starts, into $T/samples
timed() {
    timed_key=$1; shift
    "$PY" - "$timed_key" "$@" >>"$T/samples" <<-'END'
	import os, resource, subprocess, sys, time
	key, command = sys.argv[1], sys.argv[2:]
	began = time.monotonic()
	code = subprocess.call(command, stdout=open(os.environ["T"] + "/out", "w"), stderr=open(os.environ["T"] + "/err", "w"))
	wall = time.monotonic() - began
	used = resource.getrusage(resource.RUSAGE_CHILDREN)
	if code not in (0, 1, 3):
	    sys.exit(f"probe: status {code}: {open(os.environ['T'] + '/err').read()[-500:]}")
	print(f"elrun:{key}.wall {wall * 1000:.3f}")
	print(f"elrun:{key}.cpu {(used.ru_utime + used.ru_stime) * 1000:.3f}")
	END
}
export T
both() { # KEY "what" [TAIL]
    emit elrun "$1.wall" "$2: wall time" ms "start of the command" "its end" "" "${3-}"
    emit elrun "$1.cpu" "$2: processor time of all its processes" ms "start of the command" "its end"
}

for i in $(seq "$RUNS"); do
    timed alone "$ELRUN" probe --backend=tcp || exit 1
    timed cheap "$ELRUN" probe --backend=tcp --checks=-speed || exit 1
done
again="a process of this host waited in the kernel: a look 100 ms later says whether it still does (stuck_processes)"
both alone "this machine alone, all checks" "$again"
both cheap "this machine alone, without measuring speeds" "$again"

# many N OPTIONS...: N agents on this machine; the shell ends when all have ended, with the worst status
cat >"$T/many" <<'END'
n=$1 port=$2; shift 2
for i in $(seq "$n"); do "$ELRUN" probe --nnodes="$n" --rdzv-endpoint="127.0.0.1:$port" --local-addr=127.0.0.1 "$@" & pids="$pids $!"; done
for p in $pids; do wait "$p" || worst=$?; done
exit ${worst:-0}
END
free_port() { "$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
for n in $SIZES; do
    [ "$n" -ge 64 ] && times=$SOME || times=$RUNS
    for i in $(seq "$times"); do
        timed "$n" sh "$T/many" "$n" "$(free_port)" --backend=tcp --checks=-speed --pair-bytes=4MiB --pair-time=500ms || exit 1
        timed "quick$n" sh "$T/many" "$n" "$(free_port)" --backend=tcp --checks=-speed --quick --pair-bytes=1MiB --pair-time=100ms || exit 1
    done
    both "$n" "$n nodes over loopback, 4 MiB each exchange, with a second arrangement"
    both "quick$n" "$n nodes over loopback, --quick, 1 MiB each exchange"
done

# plan NODES: each fiftieth node bad, each hundredth slow, eight rails
plan() { "$BUILD/test/bench/plan" "$1" 8 $(($1 / 50)) $(($1 / 100)) | sed "s/^/elrun:plan$1./" >>"$T/samples"; }
for n in 256 1024 4096; do
    for i in $(seq "$SOME"); do plan $n || exit 1; done
    budget=; [ $n = 4096 ] && budget='<= 1000 ms'
    emit elrun "plan$n.cpu" "plan and verdict of $n nodes with 8 rails, 2 % bad and 1 % slow: processor time" ms "an empty plan" "the verdict of each node" "$budget"
    emit elrun "plan$n.peak" "plan and verdict of $n nodes: memory" KiB "an empty plan" "the verdict of each node (peak)"
    emit elrun "plan$n.rounds" "plan and verdict of $n nodes: rounds of pairs" "" "first round" "last round"
done

# No samples: the cells stay blank where there is no GPU.
gpu() { [ -e /dev/nvidiactl ]; }
if gpu; then for i in $(seq "$SOME"); do timed gpu "$ELRUN" probe --backend=nccl || exit 1; done; fi
emit elrun gpu.wall "this machine alone with its GPUs (blank: there is none here): wall time" ms "start of the command" "its end" "<= 10000 ms"
printf '{"bench":"probe","metric":"DLRover node check, published: 1 to 3 minutes (cannot run here: needs GPUs)","unit":"ms","who":"DLRover","from":"the agent starts the check","to":"verdict","samples":[]}\n'
