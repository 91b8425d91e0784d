# elrun store seen from other hosts, and with clocks that jump.
# Seen to fail: with permitted() of server_io.c always true, with a client_new() that closes everybody when a second has
# passed since it was last called ("after a gap").  Not seen to fail: "another clock".
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3

open_on() { # HOST OPTIONS...: in $port
    open_host=$1; shift
    rm -f "$T/port"
    PREFIX="nsenter -t $(pid_of "$open_host") -n -m -u --wdns=/"
    start store --port 0 --port-file "$T/port" --verbose "$@"
    PREFIX=
    wait_for test -s "$T/port" || { note "$(cat "$ERR")"; return 1; }
    port=$(cat "$T/port")
}
verb_on() { verb_host=$1; v=$2; shift 2; on "$verb_host" "$ELRUN" store "$v" --timeout 5s "$@" >"$T/said" 2>"$T/verb.err"; status=$?; }

# Only the second host is allowed; this host itself always is.
open_on 1 --bind 10.9.0.1 --allow 10.9.0.2/32
verb_on 2 set --endpoint "10.9.0.1:$port" k v
is "an allowed host: status" "$status" 0
verb_on 3 get --endpoint "10.9.0.1:$port" k
is "a host that is not in the list: status" "$status" 69
like "the store says whom it refused" "$(cat "$ERR")" '10\.9\.0\.3:[0-9]+: refused: not in the list of --allow'
verb_on 2 get --endpoint "10.9.0.1:$port" k
is "the others never notice" "$(cat "$T/said")" v
kill -TERM "$elrun_pid"; finish

# Open to everybody: allowed, but never without a word.
open_on 1 --bind 0.0.0.0 --wait-report 0.2
like "a public store without a list says so" "$(cat "$ERR")" 'warning.*(--allow|everybody|anybody)'
verb_on 3 add --endpoint "10.9.0.1:$port" n 2
is "and serves" "$(cat "$T/said")" 2

# The store stands still for longer than any of its own periods, then goes on: a clock that jumps forward.  A client that
# waits, one that says nothing yet and one that is idle are all still there.
"$ELRUN" store --help >/dev/null
on 2 "$ELRUN" store wait --endpoint "10.9.0.1:$port" --timeout 60s later >"$T/waited" 2>&1 &
waiter=$!
wait_for holds "$ERR" 'connected|10\.9\.0\.2' || true
kill -STOP "$elrun_pid"
sleep 2
kill -CONT "$elrun_pid"
verb_on 3 set --endpoint "10.9.0.1:$port" later now
is "after a gap: a new client is served" "$status" 0
wait "$waiter"
is "after a gap: the one that waited is woken" $? 0
kill -TERM "$elrun_pid"; finish
is "after a gap: it ends as ever" "$status" 0

# A monotonic clock that begins elsewhere (a time namespace): nothing compares it with the wall clock.
if unshare -T --monotonic 100000000 true 2>/dev/null; then
    rm -f "$T/port"
    PREFIX="unshare -T --monotonic 100000000 --boottime 100000000 --"
    start store --port 0 --port-file "$T/port"
    PREFIX=
    wait_for test -s "$T/port"
    "$ELRUN" store set --endpoint "127.0.0.1:$(cat "$T/port")" k v
    is "another clock: served" "$("$ELRUN" store get --endpoint "127.0.0.1:$(cat "$T/port")" k)" v
    "$ELRUN" store wait --endpoint "127.0.0.1:$(cat "$T/port")" --timeout 100ms none 2>/dev/null
    is "another clock: a wait times out" $? 1
    for p in $(leftovers); do kill -TERM "$p" 2>/dev/null; done
else
    skip "another clock" "time namespaces are refused"
fi
is_clean "at the end"
finished
