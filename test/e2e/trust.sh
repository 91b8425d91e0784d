# What other users of the host get from a job: its state, but no commands, no store of the workers, no place of its
# coordinator or of an agent with snapshots.  Seen to fail: with peer_is_foreign() saying false, without is_foreign().
. "$(dirname "$0")/../lib/e2e.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip_all "another user's processes need root and setpriv"
E=$T/elrun
install -m 755 "$ELRUN" "$E"
chmod 711 "$T"
# beside PROGRAM...: with & alone, for it becomes the program, whose number $! then is
beside() { cd / && E2E_MARK="$T" exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
other() { (beside "$@"); }
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')

umask 022
E2E_MARK="$T" "$ELRUN" --nnodes=1:2 --rdzv-endpoint="127.0.0.1:$port" --rdzv-conf=last_call_timeout=1 --settle=0.1 --rdzv-id=mine --no-python \
    --nproc-per-node=1 --log-dir="$T/log" --redirects=3 --events="$T/events" sh -c 'printf "\033[2J\033]0;mine\007\302\233Kplain\n"; echo "$MASTER_PORT" >"$0/port"; exec sleep 100' "$T" --token=abc 2>"$T/err" &
job=$!
ok "a job" wait_for test -s "$T/port"
other "$E" status --endpoint="127.0.0.1:$port" >"$T/out" 2>&1
like "another user sees that it runs" "$(cat "$T/out")" 'job mine: running'
other "$E" stop --endpoint="127.0.0.1:$port" >"$T/out" 2>&1; status=$?
is "but does not stop it" $status 1
like "and is told why" "$(cat "$T/out")" "another user's: its coordinator listens to that user and to root"
other "$E" logs --endpoint="127.0.0.1:$port" >"$T/out" 2>&1; status=$?
is "nor reads what its workers print" $status 1
other "$PY" -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
s.sendall(b"\0\xce\xf7\x85\x3c\x0d\1\2\3\4")
s.settimeout(10)
try:
    print("answered" if s.recv(4) else "closed")
except ConnectionError:
    print("closed")' "$(cat "$T/port")" >"$T/out" 2>&1
is "nor gets the workers' store" "$(cat "$T/out")" closed
is "log files are for their owner" "$(find "$T/log" -type f -perm /077 | wc -l)" 0
is "so are their folders" "$(find "$T/log" -type d -perm /077 | wc -l)" 0
is "and the file of events" "$(find "$T/events" -perm /077 | wc -l)" 0
# What a worker of another host prints may steer no terminal; a file gets it as it is.
"$ELRUN" logs --endpoint="127.0.0.1:$port" --stream=stdout >"$T/out" 2>/dev/null
printf '\033[2J\033]0;mine\007\302\233Kplain\n' >"$T/want"
ok "logs: a file has each byte" cmp "$T/out" "$T/want"
"$PY" -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$ELRUN" logs --endpoint="127.0.0.1:$port" --stream=stdout >"$T/out" 2>&1 </dev/null
like "logs: a terminal has the text" "$(cat "$T/out")" 'plain'
is "logs: … and nothing that steers it" "$(LC_ALL=C tr -d '\r\n\040-\176' <"$T/out" | sed "s/$(printf '\302\267')//g" | od -An -c)" ""
"$ELRUN" stop --endpoint="127.0.0.1:$port" >"$T/out" 2>&1
is "its own user stops it" $? 0
wait $job

# A store on loopback is of its user and of root, too; unless all are asked in, by --any-user or by --bind.
opened() { # OPTIONS...: a store of uid 65534, at $sport
    rm -f "$T/sdir/port"
    beside "$E" store --port 0 --port-file "$T/sdir/port" "$@" >/dev/null 2>"$T/store.err" &
    store=$!
    wait_for test -s "$T/sdir/port"
    sport=$(cat "$T/sdir/port")
}
third() { (cd / && exec setpriv --reuid=65533 --regid=65533 --clear-groups timeout 20 "$E" "$@") >"$T/out" 2>&1; status=$?; }
mkdir -m 777 "$T/sdir"
opened
third store set --endpoint="127.0.0.1:$sport" k v
is "a store on loopback: not for another user" $status 69
like "… and it says why" "$(cat "$T/store.err")" "its process is another user's \(--any-user\)"
third stop --endpoint="127.0.0.1:$sport"
is "… nor his commands" $status 1
other "$E" store set --endpoint="127.0.0.1:$sport" k v
is "its own user is served" $? 0
is "so is root" "$("$ELRUN" store get --endpoint="127.0.0.1:$sport" k)" v
kill $store; wait $store 2>/dev/null
for how in --any-user --bind=0.0.0.0; do
    opened $how
    third store set --endpoint="127.0.0.1:$sport" k v
    is "$how: for all" $status 0
    kill $store; wait $store 2>/dev/null
done

# Who has the port of the endpoint, and is another user, is no coordinator.
beside "$PY" -c '
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(16)
print("there", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"ELR1" + b"{\0\0\0\1\0\x18\0")' "$port" >"$T/there" 2>/dev/null &
fake=$!
wait_for test -s "$T/there"
E2E_MARK="$T" timeout 60 "$ELRUN" --nnodes=2 --rdzv-endpoint="127.0.0.1:$port" --rdzv-conf=is_host=false,join_timeout=3 --no-python true 2>"$T/err"
like "a coordinator of another user is none" "$(cat "$T/err")" "a process of another user of this host has that port"
kill $fake; wait $fake 2>/dev/null

# An agent's socket of another user says what it likes of the snapshots.
mkdir -m 777 "$T/socks"
beside "$PY" -c '
import json, os, socket, struct, sys
lie = json.dumps({"run_id": "x", "host": "h", "pid": 1, "workers": 1, "budget_bytes": 1, "step": 99999, "age_ms": 1, "dir": "/d",
                  "disk_step": 99999, "disk_age_ms": 1, "writing": -1, "failed": -1, "more": False,
                  "text": "step 99999 is on disk", "workers": 1}).encode()
folder = sys.argv[1] + "/elrun-abcdef"
os.mkdir(folder)
s = socket.socket(socket.AF_UNIX)
s.bind(folder + "/control")
s.listen(16)
kept = []
print("there", flush=True)
while True:
    kept.append(s.accept()[0])
    try:
        kept[-1].sendall(b"ELR1" + struct.pack("<IBBH", len(lie) + 4, 1, 0, 72) + lie)
    except OSError:
        pass' "$T/socks" >"$T/there2" 2>/dev/null &
fake=$!
wait_for test -s "$T/there2"
timeout 60 "$ELRUN" ckpt save --run-id=x >"$T/out" 2>&1; status=$?
ok "an agent of another user is not believed" [ $status != 0 ]
unlike "whatever it says" "$(cat "$T/out")" 99999
kill $fake; wait $fake 2>/dev/null
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
