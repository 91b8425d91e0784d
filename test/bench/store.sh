# The store: one load generator (test/bench/store.c, one thread) against elrun, both of torch's servers, a server that answers
# without looking (bare.c) and, with its own generator, redis.  All on loopback; generator and server share the cores.
. "$(dirname "$0")/../lib/bench.sh"
ulimit -n "$(ulimit -H -n)"
LOAD=$BUILD/test/bench/store BARE=$BUILD/test/bench/bare SECONDS_EACH=${SECONDS_EACH:-0.2} USER_SECONDS=${USER_SECONDS:-8}
pids=
stop_all() { for p in $pids; do kill "$p" 2>/dev/null; done; pids=; }
trap 'stop_all; rm -rf "$T"' EXIT

# up NAME COMMAND...: a server that prints its port on a line of its own; its port in port_NAME, its pid in pid_NAME
up() {
    up_name=$1; shift
    "$@" >"$T/$up_name.port" 2>"$T/$up_name.err" &
    pids="$pids $!"; eval "pid_$up_name=$!"
    up_i=0
    until grep -q '^[0-9][0-9]*$' "$T/$up_name.port"; do
        up_i=$((up_i + 1)); [ $up_i -lt 600 ] || { echo "store: $up_name did not start" >&2; return 1; }
        sleep 0.1
    done
    eval "port_$up_name=$(cat "$T/$up_name.port")"
}
TORCH='import sys, time, torch.distributed as d
s = d.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=sys.argv[1] == "1")
print(s.port, flush=True); time.sleep(100000)'
# Torch's servers look up the name of each client that connects, in the thread that serves all of them, and stand still while
# a name server is silent.  That is not what is measured here: they are given a host without name servers, where that can be.
printf 'hosts: files\n' >"$T/nsswitch.conf"
NODNS=
unshare -m mount --bind "$T/nsswitch.conf" /etc/nsswitch.conf 2>/dev/null &&
    NODNS="unshare -m sh -c 'mount --bind $T/nsswitch.conf /etc/nsswitch.conf; exec \"\$@\"' sh"
torch() { eval "exec $NODNS \"\$PY\" -c \"\$TORCH\" $1"; }
start_all() {
    up elrun "$ELRUN" store --port 0 --wait-report 0 || exit 1
    up torch torch 1
    up legacy torch 0
    up bare_get "$BARE" 32 12; up bare_add "$BARE" 25 8; up bare_set "$BARE" 49 4; up bare_release "$BARE" release
}
# sample WHO KEY SERVER ARGS-BEFORE-PORT... : one run of the generator; each line it prints becomes a sample
sample() {
    s_who=$1 s_key=$2 s_server=$3; shift 3
    eval "s_port=\${port_$s_server:-} s_pid=\${pid_$s_server:-}"
    [ -n "$s_port" ] || return 0
    case $1 in load | idle) set -- "$@" "$s_port" "$s_pid" ;; *) set -- "$@" "$s_port" ;; esac
    if timeout 60 "$LOAD" "$@" >"$T/lines"; then sed "s/^/$s_who:$s_key./" "$T/lines" >>"$T/samples"
    else echo "store: no sample of $s_who $s_key" >&2; [ "$s_who" != elrun ] || exit 1; fi
}

LOADS="get:1 get:16 get:64 get:1000 set:1 set:16 set:64 set:1000 add:1 add:16 add:64 add:1000"
for i in $(seq "$RUNS"); do
    start_all # fresh servers, so that memory of one run is not what the next one finds
    sample elrun idle elrun idle 5000
    sample torch idle torch idle 5000
    for load in $LOADS; do
        op=${load%%:*} conns=${load#*:}
        for who in elrun torch legacy; do sample $who $op$conns $who load $op $conns 1 "$SECONDS_EACH" 4; done
        sample bare $op$conns bare_$op load $op $conns 1 "$SECONDS_EACH" 4
    done
    for op in get set add; do
        for who in elrun torch; do sample $who deep$op $who load $op 64 16 "$SECONDS_EACH" 4; done
    done
    # The kernel counts user time by looking a few hundred times a second: often enough, or the figure is noise.  What bare
    # needs is the floor: the user side of the system calls.
    for op in get set add; do
        for who in elrun torch; do sample $who user$op $who load $op 64 1 "$USER_SECONDS" 4; done
        sample bare user$op bare_$op load $op 64 1 "$USER_SECONDS" 4
    done
    for op in get set; do
        for who in elrun torch legacy; do sample $who big$op $who load $op 4 1 "$SECONDS_EACH" 1048576; done
    done
    for n in 1000 10000; do
        for who in elrun torch; do sample $who storm$n $who storm $n; sample $who release$n $who release $n; done
        sample bare release$n bare_release release $n
    done
    if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
        redis_port=$((20000 + $$ % 10000))
        redis-server --port $redis_port --bind 127.0.0.1 --save '' --appendonly no --dir "$T" >/dev/null 2>&1 & pids="$pids $!"
        sleep 0.5
        for conns in 1 16 64 1000; do
            redis-benchmark -p $redis_port -c $conns -n 20000 -d 4 -t get,set,incr --csv 2>/dev/null |
                sed -nE "s/^\"(GET|SET|INCR)\",\"([0-9.]+)\".*/\1 \2/p" | sed "s/^GET/get/; s/^SET/set/; s/^INCR/add/" |
                while read -r op rate; do echo "redis:$op$conns.requests_per_s $rate" >>"$T/samples"; done
        done
    fi
    stop_all
    wait 2>/dev/null
done

full="the request's last byte sent" end="the answer's last byte received"
for load in $LOADS; do
    op=${load%%:*} conns=${load#*:}
    budget=; [ $conns = 64 ] && budget=">= 0.9 x bare"
    for who in elrun torch legacy bare redis; do
        emit $who $op$conns.requests_per_s "$op, $conns connection$([ $conns = 1 ] || echo s), one request in flight" requests/s "$full" "$end" "$budget"
    done
done
for op in get set add; do
    for who in elrun torch; do
        emit $who deep$op.requests_per_s "$op, 64 connections, 16 requests in flight" requests/s "$full" "$end" ">= 3 x torch"
    done
done
for op in get set add; do
    for who in elrun torch bare; do
        emit $who user$op.user_ns "$op, 64 connections, one in flight: user-mode processor time of the server" ns/request "$full" "$end" "<= 1/3 x torch"
    done
done
for op in get set add; do # where the rest of a request's time goes: profile.sh has the user side by function
    for who in elrun torch bare; do
        emit $who user$op.system_ns "$op, 64 connections, one in flight: time of the server in system calls" ns/request "$full" "$end"
    done
done
for who in elrun torch legacy; do
    emit $who bigget.requests_per_s "get of 1 MiB, 4 connections" requests/s "$full" "$end"
    emit $who bigset.requests_per_s "set of 1 MiB, 4 connections" requests/s "$full" "its echo"
done
for n in 1000 10000; do
    for who in elrun torch; do emit $who storm$n.ms "$n clients connect and greet" ms "before the first connect()" "the last echo of a PING"; done
    for who in elrun torch bare; do
        budget=; [ $n = 10000 ] && budget="<= 1.2 x bare"
        emit $who release$n.ms "$n waiters released by one set" ms "before the send of SET" "the last waiter's byte received" "$budget"
    done
done
for who in elrun torch; do
    emit $who idle.bytes "memory of an idle connection" bytes "before 5000 connections" "after their hellos" "< 4096"
    emit $who idle.user_ms_per_s "processor time of 5000 idle connections" ms/s "one second" "the next"
done
