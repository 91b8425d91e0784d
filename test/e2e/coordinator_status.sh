# elrun status, scale, drain, restart and stop against a real coordinator with agents that have no workers; and against
# endpoints that are something else.
. "$(dirname "$0")/../lib/e2e.sh"
AGENT=$BUILD/test/e2e/fake_agent
E2E_MARK="$T" "$ELRUN" store --port 0 --port-file "$T/port" >"$T/store" 2>&1 &
store=$!
wait_for test -s "$T/port"
at="--endpoint 127.0.0.1:$(cat "$T/port")"
ask() { out=$("$ELRUN" "$@" 2>"$T/ask.err"); status=$?; err=$(cat "$T/ask.err"); } # in $out, $err, $status
came() { [ "$(grep -cE "$2" "$T/$1")" -ge "$3" ]; }
# agents NAME OPTIONS...: fake agents that record in $T/NAME; those of the first call obey descriptor 9
agents() { agents_name=$1; shift; E2E_MARK="$T" "$AGENT" "$@" "127.0.0.1:$(cat "$T/port")" >"$T/$agents_name" 2>&1 & }

ask status $at
is 'no job: refused' $status 1
like 'and says so' "$err" 'no job is known here'
mkfifo "$T/in"
exec 9<>"$T/in"
agents one --run-id one --agents 3 --min 1 --slots 8 --keep-alive 300 <"$T/in"
wait_for came one 'WORLD 1 ' 3
wait_for sh -c "'$ELRUN' status $at | grep -c ' running ' | grep -qx 3" # all have said STARTED
ask status $at
is 'status of a job' $status 0
like 'what it does' "$out" '^job one: running, round 1$'
like 'how many' "$out" '3 here, 3 in the round, 0 spare; wanted 1 to 3'
like 'a node and its ranks' "$out" '^ +1  8-15 +fake-[012] +running +[0-9.]+ m?s$'
unlike 'no colours in a pipe' "$out" "$(printf '\033')"
ask status $at --json
is 'as JSON' "$(echo "$out" | "$PY" -c '
import json, sys
j = json.load(sys.stdin)["jobs"][0]
print(j["run_id"], j["state"], j["group_size"], j["world_size"], sorted(n["group_rank"] for n in j["nodes"]))')" \
    'one running 3 24 [0, 1, 2]'
"$ELRUN" status $at --json --watch >"$T/watch" 2>&1 &
watch=$!
ok 'again and again with --watch' wait_for came watch '^\{"jobs":\[.*\]\}$' 2
kill $watch; wait $watch 2>/dev/null

ask scale $at --min 4
is 'scale beyond the maximum: refused' $status 1
like 'with the reason' "$err" 'refused: .*4:3'
ask scale $at
is 'scale to nothing: usage' $status 2
ask scale $at --max 2
is 'scale down' "$status $out" '0 nodes 1:2'
ok 'a round of two follows' wait_for came one 'WORLD [0-9]+ rank . of 2' 2
ask drain $at fake-9
is 'drain of a stranger: refused' $status 1
like 'who is named' "$err" 'no node fake-9'
ask drain $at fake-0
is 'drain' "$status $out" '0 fake-0 is drained'
ok 'the node is told to go' wait_for came one '^0 END 75 ' 1
ask drain $at
is 'drain of nobody: usage' $status 2
before=$(grep -c WORLD "$T/one")
wait_for sh -c "'$ELRUN' status $at | grep -q '^job one: running'"
ask restart $at
is 'restart' $status 0
ok 'a new round' wait_for came one 'WORLD' $((before + 1))
ask stop $at --rdzv-id two
is 'stop of another job: refused' $status 1
like 'naming those there are' "$err" 'there is no job two; known: one'
agents two --run-id two --agents 64 </dev/null
wait_for came two 'WORLD 1 ' 64
ask stop $at
is 'two jobs, none named: refused' $status 1
like 'naming both' "$err" 'one, two'
ask status $at --rdzv-id two
is '64 nodes are listed' "$(echo "$out" | grep -c fake-)" 64
agents big --run-id big --agents 100 </dev/null
wait_for came big 'WORLD 1 ' 100
ok 'of 100 nodes' wait_for sh -c "'$ELRUN' status $at --rdzv-id big | grep -q '100 running'"
ask status $at --rdzv-id big
ok 'only those are listed that are not as the rest' [ "$(echo "$out" | wc -l)" -lt 16 ]
ask stop $at --rdzv-id one --grace 1s
is 'stop' "$status $out" '0 the job is stopped'
ok 'its agents are told' wait_for came one 'END 143' 1
ask status $at --rdzv-id one
like 'how it ended is known' "$out" 'job one: (ending|over).*status 143'
ask restart $at --rdzv-id one
is 'nothing more can be done with it' $status 1

# Endpoints that are something else.
answering() { # TEXT: a server that says this to everybody, and then no more
    rm -f "$T/other.port"
    "$PY" -c '
import os, socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
open(sys.argv[2] + ".part", "w").write(str(s.getsockname()[1])); os.rename(sys.argv[2] + ".part", sys.argv[2])
while True:
    c = s.accept()[0]; c.recv(100); c.sendall(sys.argv[1].encode()); c.close()' "$1" "$T/other.port" &
    other=$!
    wait_for test -s "$T/other.port"
}
says() { # NAME TEXT REGEX
    answering "$2"
    ask status --endpoint "127.0.0.1:$(cat "$T/other.port")" --timeout 5s
    kill $other; wait $other 2>/dev/null
    is "$1: 69" $status 69
    like 'and what it is' "$err" "$3"
}
says 'an HTTP server' 'HTTP/1.1 400 Bad Request' 'is an HTTP server, not a coordinator'
says 'an SSH server' 'SSH-2.0-OpenSSH_9.2' 'is an SSH server, not a coordinator'
says "PyTorch's store, which closes" '' 'without a word.*PyTorch.s own store'
says 'something unknown' 'hello there' 'begins with "hello there"'
kill -STOP $store
ask status $at --timeout 0.2s
kill -CONT $store
is 'a coordinator that stands still: 69' $status 69
like 'and that it may be one' "$err" "coordinator at .*:$(cat "$T/port") does not answer within 0.2 s: it stands still, or"
ask status --endpoint 127.0.0.1:1
is 'nobody listens: 69' $status 69
like 'and where' "$err" '127.0.0.1:1: Connection refused'
ask status --endpoint name.invalid
is 'a name that does not resolve: 69' $status 69
ask status --endpoint 'host:99999'
is 'no endpoint at all: 2' $status 2
exec 9>&-
for p in $(leftovers); do kill -KILL $p; done
wait
finished
