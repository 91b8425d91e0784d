# Something else than a coordinator listens at the endpoint: each agent says plainly what it is, and gives up with 69.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
: "${PY:?a python3 with torch}"
net_up 2
serve() { # PORT PYTHON: a program on host 1 that makes the file $T/up.PORT when it listens
    nsenter -t "$(pid_of 1)" -n -m -u --wdns=/ env E2E_MARK="$T" "$PY" -c "$2" "$1" "$T/listens.$1" >"$T/serve.$1" 2>&1 </dev/null &
    servers="$servers $1"
}
