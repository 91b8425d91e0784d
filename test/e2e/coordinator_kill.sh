# A stand-alone coordinator is killed and started again while agents hold their world: they do not notice.  Seen to fail
# against a build whose coordinator takes no reports (rebuild_hear() taken out), and one whose journal is not read.
. "$(dirname "$0")/../lib/e2e.sh"
AGENT=$BUILD/test/e2e/fake_agent
coordinator= agents=
# serve OPTIONS...: a coordinator on $port (0: any); its pid in $coordinator
serve() {
    rm -f "$T/port"
    E2E_MARK="$T" "$ELRUN" store --port "$port" --port-file "$T/port" "$@" >>"$T/store" 2>&1 &
    coordinator=$!
    wait_for test -s "$T/port"
    port=$(cat "$T/port")
}
# agents NAME OPTIONS...: fake agents that obey descriptor 9 and record in $T/NAME
agents() {
    agents_name=$1; shift
    rm -f "$T/in"; mkfifo "$T/in"
    E2E_MARK="$T" "$AGENT" "$@" "127.0.0.1:$port" <"$T/in" >"$T/$agents_name" 2>&1 &
    agents=$!
    exec 9>"$T/in"
}
count() { grep -cE "$2" "$T/$1"; }
came() { [ "$(count "$1" "$2")" -ge "$3" ]; } # FILE REGEX TIMES
stopped() { exec 9>&-; kill -KILL $agents; wait $agents 2>/dev/null; }
killed() { kill -KILL $coordinator; wait $coordinator 2>/dev/null; }

for how in journal reports; do
    port=0
    state=; [ $how = reports ] || state="--state-dir $T/state"
    serve $state
    agents $how --agents 3 --min 2 --keep-alive 200 --settle 100
    ok "$how: three agents hold a world" wait_for came $how 'WORLD 1 ' 3
    killed
    ok "$how: the coordinator is killed, and they see it" wait_for came $how CLOSED 3
    serve $state
    ok "$how: it starts again and knows the round" wait_for holds "$T/store" 'round 1 is rebuilt from the reports of 3 of 3'
    is "$how: nobody was stopped" "$(count $how STOP)" 0
    is "$how: nor given another world" "$(count $how WORLD)" 3
    : >"$T/store"
    echo "kill 1" >&9
    ok "$how: a loss is noticed as before" wait_for came $how 'WORLD 2 .* of 2' 2
    echo "succeed all" >&9
    ok "$how: and the end" wait_for came $how 'END 0' 2
    if [ $how = journal ]; then
        killed
        serve $state
        stopped
        agents late --agents 2 --min 2 --max 3
        ok "a training that has ended is not started again by who comes late" wait_for came late 'END 0' 2
        is "no world" "$(count late WORLD)" 0
    fi
    stopped
    killed
done

# In the other states, with a journal; test/e2e/coordinator_forming.sh has those that last an instant.
state_is() { "$ELRUN" status --endpoint "127.0.0.1:$port" --json 2>/dev/null | grep -q "\"state\": *\"$1\""; }
port=0
serve --state-dir "$T/kept"
agents phases --agents 3 --min 2 --keep-alive 200 --settle 100
wait_for came phases 'WORLD 1 ' 3
echo "hold 0" >&9
echo "fail 1" >&9
ok 'stopping: one still stops its workers' wait_for state_is stopping
wait_for came phases 'STOP 1' 3
killed
serve --state-dir "$T/kept"
ok 'stopping: started again, it stops the round' wait_for state_is stopping
is 'stopping: nobody has begun another one' "$(count phases WORLD)" 3
echo "stopped 0" >&9
ok 'stopping: then the next one forms' wait_for came phases 'WORLD 2 .* of 3' 3
killed
echo "kill 2" >&9
serve --state-dir "$T/kept"
ok 'rebuilding: it listens for the one that is lost' wait_for state_is rebuilding
killed
serve --state-dir "$T/kept"
ok 'rebuilding: started once more, it goes on with the others' wait_for came phases 'WORLD 3 .* of 2' 2
echo "mute 0" >&9
echo "succeed all" >&9
ok 'ending: one has not heard of the end' wait_for state_is ending
killed
serve --state-dir "$T/kept"
echo "cut 0" >&9
ok 'ending: it is told by the next one' wait_for came phases '^0 END 0' 1
is 'ending: nobody began again' "$(count phases 'WORLD 4')" 0
stopped
killed

# Nobody holds a world yet.
port=0
serve
agents early --agents 2 --min 3 --max 3 --keep-alive 200
wait_for came early WAIT 2
killed
serve
echo join >&9
ok 'killed while nodes gather: they gather again' wait_for came early 'WORLD 1 .* of 3' 3
E2E_MARK="$T" "$ELRUN" store --port 0 --state-dir "$T/state" >"$T/other" 2>&1 &
other=$!
wait_for holds "$T/other" listening
"$ELRUN" store --port 0 --state-dir "$T/state" >"$T/second" 2>&1
is 'a second coordinator on one state folder: 75' $? 75
like 'with its reason' "$(cat "$T/second")" "in use by another coordinator, process $other"
kill $other; wait $other
is 'told to end, it ends with 0' $? 0
stopped
killed
is_clean coordinator
finished
