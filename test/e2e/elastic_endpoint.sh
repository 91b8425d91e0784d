# Something else than a coordinator listens at the endpoint: the agent says plainly what, and gives up with 69.
# Seen to fail: without stranger_name() in msg.c, without stranger_ask() in membership_io.c.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
: "${PY:?a python3 with torch}"
net_up 2

serve() { # PORT PROGRAM: Python on host 1
    nsenter -t "$(pid_of 1)" -n -m -u --wdns=/ env E2E_MARK="$T" "$PY" -c "$2" "$1" >"$T/serve.$1" 2>&1 </dev/null &
}
serve_bytes() { # PORT STATEMENT: what is done with a connection c
    serve "$1" "
import socket, sys, threading, time
s = socket.create_server(('', int(sys.argv[1])))
def one(c):
    $2
while True: threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()"
}
serve_store() { # PORT LIBUV
    serve "$1" "
import sys, time, torch.distributed as dist
store = dist.TCPStore('0.0.0.0', int(sys.argv[1]), is_master=True, wait_for_workers=False, use_libuv=$2)
time.sleep(600)"
}
listens() { on 1 ss -Hltn "sport = :$1" | grep -q .; }

serve_bytes 29401 'c.recv(100); c.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n"); c.close()'
serve_bytes 29402 'c.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"); c.recv(100)'
serve_bytes 29403 'c.sendall(b"good morning"); time.sleep(100)'
serve_bytes 29404 'c.recv(100); c.close()'
serve_bytes 29405 'time.sleep(100)'
ports="29401 29402 29403 29404 29405"
if "$PY" -c 'import torch' 2>/dev/null; then
    serve_store 29406 True
    serve_store 29407 False
    ports="$ports 29406 29407"
else
    skip "a store of PyTorch" "this python3 has no torch: $PY"
fi
for port in $ports; do wait_for listens "$port" || note "$(cat "$T/serve.$port")"; done

serve 29408 "
import socket, sys, time
a = socket.create_server(('127.0.0.1', 0))
c = socket.socket()
c.bind(('127.0.0.1', int(sys.argv[1])))
c.connect(a.getsockname())
time.sleep(600)"
connected() { on 1 ss -Htn "sport = :$1" | grep -q .; }
wait_for connected 29408 || note "$(cat "$T/serve.29408")"

job 2 --nproc-per-node=1 --rdzv-conf=join_timeout=4
for port in $ports; do agent "a$port" 2 --rdzv-endpoint="node1:$port"; done
agent blocked 1 --rdzv-endpoint=node1:29408
says() { # PORT TEXT REGEX: while it waits, and at the end
    status_of "a$1"
    is "$2: 69" "$status" 69
    like "$2: said while it waits" "$(err "a$1")" "no coordinator at node1 port $1 yet \\($3\\)"
    like "$2: said at the end" "$(err "a$1")" "no coordinator within the join time-out: $3"
}
says 29401 "an HTTP server" 'an HTTP server listens there, not a coordinator of elrun'
says 29402 "an SSH server" 'an SSH server listens there, not a coordinator of elrun'
says 29403 "something unknown" "the other side does not speak elrun's control protocol"
says 29404 "who closes without a word" '.* without a word: not a coordinator of elrun .*'
status_of a29405
is "a port that says nothing: 69" "$status" 69
like "a port that says nothing: said at the end" "$(err a29405)" 'no coordinator within the join time-out: .*no answer.*coordinator'
if [ -e "$T/serve.29406" ]; then
    says 29406 "PyTorch's store" "a c10d store \\(PyTorch's TCPStore\\) listens there, not a coordinator of elrun"
    says 29407 "PyTorch's store without libuv" "a c10d store \\(PyTorch's TCPStore\\) listens there, not a coordinator of elrun"
    ok "PyTorch's store: it still listens" listens 29406
fi
status_of blocked
is "a connection has the endpoint's port: 69" "$status" 69
like "a connection has the endpoint's port: said" "$(err blocked)" \
    "warning: port 29408 of this host, the endpoint's, cannot be had, and nobody answers there: a connection .* choose a port below"
ok "no worker was started" test ! -s "$LOG"
finished
