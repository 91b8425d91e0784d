# elrun store and clients of every kind over sockets, some of which say anything and read what they like: whoever keeps to
# the protocol is told what is right, byte for byte, and memory is bounded.  Fails against a store that forgets what it has
# sent of an answer, that serves what comes behind a long answer too early, or that reads on into memory that it gave back.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3}"
steps=${STEPS:-50000}
[ -z "${LONG:-}" ] || steps=2000000
seed=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
note "SEED=$seed STEPS=$steps repeats what the clients do"
crowd() { # NAME MEMORY OPTIONS...
    rm -f "$T/port"
    name=$1 memory=$2; shift 2
    ERR=$T/err start store --port 0 --port-file "$T/port" --max-memory "${memory}M"
    wait_for test -s "$T/port"
    timeout 600 "$PY" "$HERE/store_peers.py" "127.0.0.1:$(cat "$T/port")" "$seed" "$steps" "$@" >"$T/said" 2>&1
    result $? "$name: all that is answered is right" || note "$(tail -5 "$T/said")"
    grep '^#.*answers' "$T/said"
    peak=$(($(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$elrun_pid/status") >> 10))
    kill -TERM "$elrun_pid"
    finish
    is "$name: SIGTERM ends it with" "$status" 0
    [ "$status" = 0 ] || note "$(tail -5 "$T/err")"
}
crowd "enough memory" 128
crowd "too little memory" 4 --short
grep -q __asan_init "$ELRUN" || # which takes memory of its own
    ok "too little memory: it is bounded: $peak MiB at most, of which $memory may be the store's" test "$peak" -lt $((memory + 24))
# Each holds some, and any of them may be the one that holds most, also while it is what asks: with sanitizers (make check-san)
# fails against a store that sheds a client while it feeds on what that has sent.
steps=$((steps * 2))
crowd "a crowd, and too little memory" 4 --short --clients=150
is_clean "at the end"
finished
