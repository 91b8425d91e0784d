# elrun probe over two hosts and what each keeps in files of its own: verdicts of past probes, and the speeds of healthy
# hardware, by which two hosts can be called slow though there is nobody faster.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 2
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1, "memory_free": 0, "swap_used": "1024GiB", "shm_size": 0, "shm_free": 0}\n' >"$T/easy.json"
printf '{"memory_free": {"limit": 101, "severity": "bad"}}\n' >"$T/never.json"
n=0
# probe OPTIONS...: on both hosts, %h stands for the host's number; $status_1, $status_2, $T/1.out … are what came of it
probe() {
    n=$((n + 1))
    for h in 1 2; do
        OUT=$T/$h.out ERR=$T/$h.err
        PREFIX="nsenter -t $(pid_of $h) -n -m -u --wdns=/"
        start probe --nnodes=2 --rdzv-endpoint=node1 --rdzv-id=f$n --backend=tcp --quick --pair-bytes=1MiB --pair-time=300ms \
            --checks=memory,system $(printf '%s ' "$@" | sed "s/%h/$h/g")
        PREFIX=
        eval "pid_$h=$elrun_pid"
    done
    for h in 1 2; do eval "elrun_pid=\$pid_$h"; finish; eval "status_$h=$status"; done
}

probe --limits="$T/easy.json" --state-dir="$T/state%h" --save-baseline="$T/base%h"
is "two healthy hosts" "$status_1 $status_2" "0 0"
is "each remembers that" "$(cat "$T/state1/probes" "$T/state2/probes" | sed 's/"time":[0-9]*/"time":T/')" '{"time":T,"node":"node1","verdict":"good"}
{"time":T,"node":"node2","verdict":"good"}'
like "and writes how fast it was" "$(cat "$T/base2")" '"tcp_bw64m": [0-9]'
unlike "a host without failures has no past" "$(cat "$T/1.out" "$T/2.err")" 'probes? within'

# By this file both are a thousand times too slow, and by this one they are other hosts.
sed 's/"tcp_bw64m": [0-9.]*/"tcp_bw64m": 4000000/; s/"tcp_lat_us": [0-9.]*,*//' "$T/base2" >"$T/fast"
sed 's/"cores": "[0-9]*"/"cores": "3333"/' "$T/base2" >"$T/other"
probe --limits="$T/easy.json" --state-dir="$T/state%h" --baseline="$T/fast" --exclude-straggler
is "slower than such hardware was, and nobody else to ask whose fault that is" "$status_1 $status_2" "3 3"
like "what was expected is told" "$(cat "$T/1.out")" 'node2 .*TCP bandwidth [0-9.]+ [GM]B/s, at least [0-9]+ GB/s expected'
probe --limits="$T/easy.json" --baseline="$T/other"
is "a baseline of other hardware: nothing can be said" "$status_1" 3
like "and both are named" "$(cat "$T/1.out" "$T/1.err")" 'other hardware: processors: 3333 there, [0-9]+ here'

probe --limits="$T/never.json" --state-dir="$T/state%h" --save-baseline="$T/none%h"
is "hosts that are sick" "$status_1 $status_2" "1 1"
like "a sick host writes no baseline, and says so" "$(ls "$T") $(cat "$T/2.err")" "none2 is not written: this node is not known to be healthy"
# What was undecided is not counted.
like "it says itself how often" "$(cat "$T/2.err")" 'this node failed 1 of 2 probes within 7 days'
probe --limits="$T/easy.json" --state-dir="$T/state%h"
is "well again" "$status_1 $status_2" "0 0"
like "but the coordinator tells of the past" "$(cat "$T/1.out")" 'failed 1 of 2 probes within 7 days'

: >"$T/file"
probe --limits="$T/easy.json" --state-dir="$T/file/x"
is "a folder that cannot be made is nobody's fault" "$status_1 $status_2" "0 0"
is "and told once" "$(grep -c 'verdicts are not remembered' "$T/2.err")" 1

# A disk without room, on one of them.
mkdir "$T/full"
on 1 mount -t tmpfs -o size=4k none "$T/full"
on 1 dd if=/dev/zero of="$T/full/x" bs=4k count=1 2>/dev/null
probe --limits="$T/easy.json" --state-dir="$T/full"
is "a folder without room is nobody's fault" "$status_1 $status_2" "0 0"
like "and is told" "$(cat "$T/1.err")" "cannot write $T/full/probes: No space left on device; this verdict is not remembered"
like "the other one's verdict is kept" "$(cat "$T/full/probes")" '"node":"node2","verdict":"good"'

# Jobs remember, too, and know what such hardware can do.
job 2 --nproc-per-node=1 --health-check=start --probe-checks=memory --probe-quick --probe-limits="$T/easy.json" --rdzv-conf=join_timeout=60
for i in 1 2; do agent n$i $i --node-rank=$((i - 1)) --probe-state-dir="$T/job$i"; done
reaches "a job whose nodes are well" "node1 node2"
written() { grep -q good "$T/job1/probes" && grep -q good "$T/job2/probes"; }
ok "each has remembered its verdict while the job runs" wait_for written
all_end "it ends well" "n2 n1" 0

OUT=$T/out ERR=$T/err
alone() { run --standalone --health-check=start --probe-checks=memory --probe-limits="$T/$1.json" --probe-state-dir="$T/alone" --no-python "$WORKER" touch "$T/ran"; }
alone never
is "a job of one node that is bad: 72" "$status" 72
alone easy
is "well again: it runs" "$status $(ls -d "$T"/ran* | wc -l)" "0 1"
like "and the past is told" "$(cat "$T/err")" 'this node failed 1 of 2 probes within 7 days'
run probe --checks=system,speed --save-baseline="$T/own"
sed 's/"cores": "[0-9]*"/"cores": "3333"/' "$T/own" >"$T/other"
sed 's/"metrics": *{[^}]*}/"metrics": {"cpu": 1000000, "host_mem": 1000000}/' "$T/own" >"$T/fast"
baseline() { run --standalone --health-check=start --probe-checks=system,speed --probe-baseline="$T/$1" "$2" --no-python "$WORKER" touch "$T/ran2"; }
baseline other --on-undecided=stop
is "its baseline is of other hardware: undecided, and it may not start so" "$status" 72
like "it is told why" "$(cat "$T/err")" 'this node is undecided: --probe-baseline=.*processors: 3333 there'
baseline none --on-undecided=stop
like "a baseline that is not there: 66" "$status $(cat "$T/err")" '^66 .*none'
if grep -q '"cpu"' "$T/own"; then # where a busy thread gets no processor nothing is measured, and nobody is slow
    baseline fast --on-straggler=exclude
    like "slower than such hardware is, or not to be measured now" "$status $(tail -1 "$T/err")" '^(72 .*this node is slow: .* at least|0)'
fi
# Another probe stands still and holds the file.
exec 8>>"$T/alone/probes"
flock 8
run probe --checks=memory --limits="$T/easy.json" --state-dir="$T/alone"
exec 8>&-
is "a file that another process has locked is nobody's fault" "$status" 0
like "and is told" "$(cat "$T/err")" "another process has locked $T/alone/probes for 2 s; verdicts are not remembered"
is_clean "all probes"
finished
