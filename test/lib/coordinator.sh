# A coordinator that hosts no workers, for tests of several nodes: serve starts one ($coordinator, $port), killed kills it.
serve() {
    rm -f "$T/port"
    E2E_MARK="$T" TMPDIR="$T/tmp" "$ELRUN" store --port 0 --port-file "$T/port" >>"$T/store" 2>&1 &
    coordinator=$!
    wait_for test -s "$T/port"
    port=$(cat "$T/port")
}
killed() { kill -KILL $coordinator; wait $coordinator 2>/dev/null; }
