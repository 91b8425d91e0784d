# elrun probe where many things are wrong at once: each is told, by a node alone, by one of three on a host, in words and in
# JSON, and in a job it starts with the others.  Short: make check-san runs it with sanitizers in elrun itself.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 1
inside() { PREFIX="nsenter -t $(pid_of 1) -n -m -u --wdns=/"; } # a host of its own: its ports are nobody else's
printf '{"nofile": 0, "memlock": 0, "numa_balancing": 1, "memory_free": 0, "swap_used": "off", "shm_size": 0, "shm_free": 0}\n' >"$T/easy.json"
cat >"$T/never.json" <<-END
	{"memory_free": {"limit": 101, "severity": "bad"}, "nofile": {"limit": 1e12, "severity": "bad"},
	 "shm_size": {"limit": "1000TiB", "severity": "bad"}, "memlock": "off", "numa_balancing": 1}
END
WRONG="memory_free.*; also shm_size, nofile"
look="--checks=memory,limits"
json() { "${PY:-python3}" -c 'import json, sys; d = json.load(open(sys.argv[1])); print('"$1"')' "$T/$2" 2>&1; }

inside
run probe $look --limits="$T/never.json" --json
is "three things are wrong: status 1" "$status" 1
like "and all of them are the reason" "$(json 'd["nodes"][0]["state"], *d["nodes"][0]["reasons"]' out)" "bad local.*$WRONG"
run probe $look --limits="$T/never.json"
like "in words, too" "$(tr '\n' ' ' <"$T/out")" "bad +memory_free .*bad +shm_size .*bad +nofile "
run probe $look --limits="$T/never.json" --state-dir="$T/state" --baseline="$T/easy.json"
is "what is to be a baseline is none: status" "$status" 78
like "and it is said" "$(cat "$T/err")" 'easy.json: '

# three LIMITS-OF-THE-THIRD OPTIONS...
three() {
    third=$1; shift
    for i in 1 2 3; do
        OUT=$T/$i.out ERR=$T/$i.err
        [ $i = 3 ] && limits=$third || limits=easy
        start probe --nnodes=3 --node-rank=$((i - 1)) --rdzv-endpoint=127.0.0.1 --rdzv-id=$third --backend=tcp --quick $look \
            --pair-bytes=1MiB --pair-time=100ms --straggler-min=90 --limits="$T/$limits.json" "$@"
        eval "probe_$i=$elrun_pid"
        wait_for grep -qs 'has joined' "$T/1.err" # the first one is to host the coordinator
    done
    all=
    for i in 2 3 1; do eval "elrun_pid=\$probe_$i"; finish; all="$all $i:$status"; done
}
three never --json --state-dir="$T/state" || note "$(cat "$T/1.err")"
is "one of three on a host is bad: it says so, and so does the one that prints all" "$all" " 2:0 3:1 1:1"
like "with all reasons" "$(json 'd["nodes"][2]["name"], d["nodes"][2]["state"], *d["nodes"][2]["reasons"]' 1.out)" "node1:3 bad local.*$WRONG"
like "where it is itself, too" "$(json 'd["node"], d["state"], d["text"]' 3.out)" "node1:3 bad.*$WRONG"
three easy --all
is "three that are well" "$all" " 2:0 3:0 1:0"

PREFIX=
inside
run run --standalone --health-check=start --probe-$(echo "$look" | cut -c3-) --probe-limits="$T/never.json" --hook "node-bad=cat >$T/hook" --no-python \
    "$WORKER" touch "$T/ran"
is "in a job: 72" "$status" 72
like "the hook is told why" "$(cat "$T/hook")" "$WRONG"
run run --standalone --health-check=start --probe-$(echo "$look" | cut -c3-) --probe-limits="$T/easy.json" --no-python "$WORKER" touch "$T/ran"
is "a job that may start" "$status" 0
PREFIX=
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
