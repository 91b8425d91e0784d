# elrun store from outside: its command line, its verbs, bad input, strangers and crowds.  Needs python3, no torch.
# Fails against a build without limits in wire.c, without the list of un-greeted in server_io.c, without accept_pause(),
# without reclaim().
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3}"
open_store() { # OPTIONS...: in $port
    rm -f "$T/port"
    ERR=$T/err start store --port 0 --port-file "$T/port" "$@"
    wait_for test -s "$T/port" || { note "$(cat "$T/err")"; return 1; }
    port=$(cat "$T/port")
    at=127.0.0.1:$port
}
close_store() { kill -TERM "$elrun_pid"; finish; is "$1: SIGTERM ends it with" "$status" 0; }
verb() { v=$1; shift; "$ELRUN" store "$v" --endpoint "$at" "$@" >"$T/said" 2>"$T/verb.err"; status=$?; }
said() { is "$1: status" "$status" "$2" && is "$1: answer" "$(cat "$T/said")" "$3"; }
refuse() { # NAME STATUS REGEX OPTIONS...
    r_name=$1 r_status=$2 r_like=$3; shift 3
    timeout 20 "$ELRUN" store "$@" >"$T/said" 2>"$T/refused"; is "$r_name: status" $? "$r_status"
    like "$r_name: message" "$(cat "$T/refused")" "$r_like"
}
crowd() { # NAME SCENE ARG...
    c_name=$1 c_scene=$2; shift 2
    timeout 300 "$PY" "$HERE/store_crowd.py" "$c_scene" "$at" "$@" >"$T/crowd" 2>&1; result $? "$c_name" || note "$(tail -5 "$T/crowd")"
    grep '^#' "$T/crowd"
}

# --- options
refuse "port 70000" 2 'port=70000' --port 70000
refuse "an address with a name" 2 'numeric address' --bind localhost
refuse "an address not ours" 78 'cannot listen on 192.0.2.1:[0-9]+: Cannot assign' --bind 192.0.2.1
refuse "a network with too many bits" 2 '10.0.0.0/33' --allow 10.0.0.0/33
refuse "a network with host bits" 2 'bits set behind' --allow 10.0.0.1/8
refuse "too little memory" 2 'from 1M up' --max-memory 1000
refuse "an operand" 2 'no such verb: sett' sett
refuse "a port file in a folder that is not there" 73 'port file .*No such file' --port 0 --port-file "$T/no/port"
open_store -v
like "port 0 is printed" "$(cat "$OUT")" "^$port\$"
refuse "port in use" 78 "cannot listen on 127.0.0.1:$port: Address already in use; a coordinator of elrun is there, .* and has no job" --port "$port"
"$PY" -c 'import socket,sys; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); c, a = s.accept(); c.sendall(b"SSH-2.0-x\r\n"); c.recv(100)' >"$T/ssh" &
wait_for test -s "$T/ssh"
refuse "port in use by something else" 78 'Address already in use; .*is an SSH server' --port "$(cat "$T/ssh")"

# --- verbs
verb set k 'some value';            said set 0 ''
verb get k;                         said get 0 'some value'
verb get none;                      said "get, missing" 1 ''
verb get --timeout 50ms none;       said "get, timed out" 1 ''
verb add n 5;                       said add 0 5
verb add n -7;                      said "add, negative" 0 -2
verb add n;                         said "add one" 0 -1
verb add k 1;                       is "add on text" "$status" 69
like "add on text: it is said" "$(cat "$T/verb.err")" 'closed the connection; its log says why; is the value of the key a whole number'
like "add on text: the store says so" "$(cat "$T/err")" 'closed: an addition to a value that is no number'
verb wait k n;                      said wait 0 ''
verb wait --timeout 50ms k none;    said "wait, timed out" 1 ''
like "wait, timed out: it is said" "$(cat "$T/verb.err")" 'not all keys are there after 0.05 s'
# The time-out that nobody named: not waited for here, but read from the system call in which it waits, in milliseconds.
"$ELRUN" store wait --endpoint "$at" none & waiter=$!
polls() { ms=$(awk '$1 == 7 { print $4 }' "/proc/$waiter/syscall"); [ -n "$ms" ] && ms=$((ms)); }
if [ "$(uname -m)" = x86_64 ] && cat "/proc/$waiter/syscall" >/dev/null 2>&1; then
    wait_for polls
    ok "wait without --timeout waits for 5 minutes" test "$ms" -gt 280000 -a "$ms" -le 300000
else
    skip "no /proc/PID/syscall" "wait without --timeout waits for 5 minutes"
fi
kill $waiter; wait $waiter 2>/dev/null
verb set --hex bin '00ff 0a';       said "set, hex" 0 ''
verb get --hex bin;                 said "get, hex" 0 00ff0a
verb get bin -;                     is "get, raw bytes" "$(od -An -tx1 <"$T/said" | tr -d ' \n')" 00ff0a
verb get --json bin;                said "get, json of bytes" 0 '{"value_hex":"00ff0a","found":true}'
verb get --json none;               said "get, json of nothing" 1 '{"found":false}'
head -c 3000000 /dev/urandom >"$T/blob"
verb set blob - <"$T/blob";         said "set from stdin" 0 ''
verb get blob -;                    ok "3 MB come back" cmp "$T/blob" "$T/said"
head -c 8388609 /dev/zero >"$T/toobig"
verb set toobig - <"$T/toobig";     is "a value over 8 MiB" "$status" 2
verb delete blob;                   said delete 0 ''
verb delete blob;                   said "delete, missing" 1 ''
verb keys;                          is "keys" "$(sort "$T/said" | tr '\n' ' ')" "bin k n "
verb keys --raw;                    is "keys as they are" "$(sort "$T/said" | tr '\n' ' ')" "/bin /k /n "
verb num-keys;                      said num-keys 0 3
verb ping;                          like ping "$(cat "$T/said")" '^[0-9]+\.[0-9]{3}$'
verb get;                           is "get without a key" "$status" 2
verb set --hex k 0g;                is "bad hex" "$status" 2
verb add k 1.5;                     is "bad number" "$status" 2
long=$(head -c 8191 /dev/zero | tr '\0' k)
verb set "$long" x;                 said "the longest key" 0 ''
verb get "$long";                   said "comes back" 0 x
verb delete "$long";                is "and goes" "$status" 0
verb set "k$long" x;                is "a key that is too long" "$status" 2
like "a key that is too long: it is said" "$(cat "$T/verb.err")" 'key k+[.]+ has 8192 bytes, 8191 are the most'
verb wait k "k$long";               is "a key that is too long, behind another" "$status" 2
verb add n 9223372036854775808;     is "a number of more than 64 bits" "$status" 2
# What is closed must not become the connection: neither is the store read as a value nor is a value sent as a request.
"$ELRUN" store set --endpoint "$at" closed - <&- 2>"$T/verb.err"
is "set from a closed stdin" $? 66
like "set from a closed stdin: it is said" "$(cat "$T/verb.err")" 'standard input: Bad file descriptor'
verb get --timeout 0 closed;        said "and nothing is stored" 1 ''
"$ELRUN" store get --endpoint "$at" k >&- 2>"$T/verb.err"
is "get to a closed stdout" $? 73
unlike "get to a closed stdout: the store is not told the value" "$(cat "$T/err")" 'an opcode that this protocol does not have'
at=[::1;               verb ping;   is "endpoint with half a bracket" "$status" 2
at=127.0.0.1:1;        verb ping;   is "nobody there" "$status" 69
at=127.0.0.1:70000;    verb ping;   is "endpoint with port 70000" "$status" 2
at=[::1]:$port;        verb get k;  said "over IPv6" 0 'some value'
at=localhost:$port;    verb get k;  said "by the name localhost" 0 'some value'
at=127.0.0.1:$port
( sleep 0.2; "$ELRUN" store set --endpoint "$at" later now ) &
verb get --timeout 60 later;        said "get waits" 0 now

# --- without the streams of a shell
rm -f "$T/bare"
sh -c 'exec "$@" <&- >&- 2>&-' sh env E2E_MARK="$T" "$ELRUN" store --port 0 --port-file "$T/bare" --state-dir "$T/journal" -v & bare=$!
wait_for test -s "$T/bare"
"$ELRUN" store set --endpoint "127.0.0.1:$(cat "$T/bare")" k v; is "a store without streams serves" $? 0
is "its 0, 1 and 2 are nothing" "$(for i in 0 1 2; do readlink /proc/$bare/fd/$i; done | sort -u)" /dev/null
kill -TERM $bare; wait $bare; is "and ends well" $? 0

# --- strangers and crowds
crowd "HTTP, TLS, scanners, random bytes, half-open connections" strangers
like "HTTP is named" "$(cat "$T/err")" 'closed: an HTTP request'
like "TLS is named" "$(cat "$T/err")" 'closed: a TLS hello'
ok "lines are bounded, and how many were left out is said" wait_for holds "$T/err" 'more lines like these were left out'
crowd "random requests" junk
crowd "10,000 waiters, and a storm of hang-ups in the middle of their release" storm
close_store storm
open_store # a store that has said little: its lines per second are limited
crowd "a client that does not read" miser "$elrun_pid"
crowd "a store that stood still for longer than a hello may take" frozen "$elrun_pid"
close_store crowd
hard=$(ulimit -H -n)
if [ "$hard" = unlimited ] || [ "$hard" -ge 19000 ]; then
    PREFIX="prlimit --nofile=256:" # it raises that by itself
    open_store
    PREFIX=
    crowd "18,000 idle connections" many "$elrun_pid"
    close_store idle
else
    skip "18,000 idle connections" "the hard limit of descriptors is $hard"
fi
open_store --max-memory 16M
crowd "the dialect of torch 2.1" torch21
like "it is named, with what to use instead" "$(cat "$T/err")" 'closed: an opcode of torch 2\.1, .*use torch 2\.2 or later'
crowd "more values than memory" memory
ok "it is named" wait_for holds "$T/err" 'memory limit is reached'
close_store memory
open_store --max-memory 16M
crowd "an answer that is larger than the store" long 16
close_store long
open_store --max-memory 64M
crowd "hoards of answers and of halves of requests" hoards 64
ok "it is named" wait_for holds "$T/err" 'does not read, or not finish what it sends, and .* memory limit is reached'
close_store hoards
open_store
crowd "lists of keys beside a million keys that are waited for" lists
close_store lists
open_store --max-clients 8
crowd "more clients than places" places 8
close_store places
( ulimit -n 64; exec "$ELRUN" store --port 0 --max-clients 1000 --port-file "$T/port64" 2>"$T/err64" >/dev/null ) &
few=$!
wait_for test -s "$T/port64"; at=127.0.0.1:$(cat "$T/port64")
crowd "descriptors run out" descriptors "$few"
ok "it is named" wait_for holds "$T/err64" 'not accepting for a moment, [0-9]+ clients are connected: Too many open files'
kill -TERM $few; wait $few; is "and it ends well" $? 0

# --- who is missing
open_store --wait-report 0.3
"$ELRUN" store wait --endpoint "$at" --timeout 60 ready 2>/dev/null & waiter=$!
ok "a wait that is too long is reported" wait_for holds "$T/err" '"/ready" is waited for by 1 client for [0-9]+ s: pid [0-9]+ \(127\.0\.0\.1:[0-9]+\)'
verb set ready 1
wait $waiter; is "and the waiter is released" $? 0
close_store report

# --- systemd
"$PY" - "$T/notify" >"$T/ready" <<'PYTHON' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
print(s.recv(100).decode())
PYTHON
reader=$!
wait_for test -S "$T/notify"
ENV="NOTIFY_SOCKET=$T/notify" open_store
wait $reader
is "systemd is told" "$(cat "$T/ready")" READY=1
close_store notify
unlike "nothing of the sanitizers" "$(cat "$T"/err*)" 'Sanitizer|runtime error'
is_clean "store"
finished
