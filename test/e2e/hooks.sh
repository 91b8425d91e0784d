# --hook: when they run and with what; one that fails, hangs, floods, leaves daemons, reads nothing, kills whom it should not.
# Seen to fail: a build whose reap_orphans() does not spare helpers (pre-stop is swept with the workers' leftovers); one that
# kills nobody when a helper ends in reap_scan() (what a hook leaves running); one whose may_begin() lets every start begin
# (post-stop comes too late); one without the sweeps of tell_io.c (daemons).
. "$(dirname "$0")/../lib/e2e.sh"
# told FILE: a command that appends its event, its variables and its input to FILE, whole
told() { echo 'read -r l; echo "$ELRUN_EVENT|$ELRUN_RUN_ID|$ELRUN_ROUND_NUMBER|$ELRUN_TEXT|$l" >>'"$1"; }
words() { cut -d'|' -f1 "$1" | tr '\n' ' ' | sed 's/ $//'; }
of() { grep "^$1|" "$2" | head -1 | cut -d'|' -f"$3"; } # EVENT FILE COLUMN

# start_hooked N OPTIONS...: N workers that do what $W says; hooked: until they have ended
W=
start_hooked() { start_n=$1; shift; start --standalone --nproc-per-node="$start_n" "$@" --no-python "$WORKER" $W; }
hooked() { start_hooked "$@"; finish; }

# --- all of them, over a restart
F=$T/all
set --
for e in pre-start post-start pre-stop round end; do set -- "$@" --hook "$e=$(told "$F")"; done
set -- "$@" --hook "post-stop=sleep 0.3; $(told "$F")"
run --rdzv-id=job1 --nproc-per-node=2 --max-restarts=1 "$@" --on-incident="$(told "$F")" --no-python "$WORKER" \
    +0 @0 await "$T/never~" +0 @1 sleep 300 +0 @1 exit 7
is "all: status" "$status" 0
is "all: each of them" "$(words "$F" | tr ' ' '\n' | sort | tr '\n' ' ')" \
    "end incident post-start post-start post-stop post-stop pre-start pre-start pre-stop round round "
is "all: the start waits for pre-start, post-stop comes before the next start" \
    "$(words "$F" | tr ' ' '\n' | grep -E 'pre-start|post-stop|end' | tr '\n' ' ')" "pre-start post-stop pre-start post-stop end "
is "all: run id" "$(of incident "$F" 2)" job1
is "all: round" "$(of incident "$F" 3)" 1
like "all: what happened" "$(of incident "$F" 4)" "^rank 1 .*exit code 7"
ok "all: the input is JSON" "$PY" -c 'import json, sys
for l in open(sys.argv[1]): json.loads(l.split("|", 4)[4])' "$F"
like "all: of that event" "$(of post-start "$F" 5)" '"event":"workers_started"'
like "all: an incident has DLRover's line" "$(of incident "$F" 5)" '"dlrover":"job1 .* restart 0 fails: '

# --- pre-start
W="touch $T/ran"; hooked 1 --hook 'pre-start=echo the disk is full; exit 9'
is "pre-start fails: status" "$status" 72
like "pre-start fails: says why" "$(cat "$ERR")" "hook pre-start .*: exit status 9; its last line: the disk is full"
ok "pre-start fails: nothing was started" test ! -e "$T/ran"
W="touch $T/ran"; hooked 1 --hook 'pre-start=sleep 600' --hook-timeout=0.2
is "pre-start hangs: status" "$status" 72
ok "pre-start hangs: nothing was started" test ! -e "$T/ran"
W="touch $T/ran"; hooked 1 --hook "pre-start=touch $T/first" --hook "pre-start=test -e $T/first && exit 1" --hook "pre-start=touch $T/third"
is "the second pre-start fails: status" "$status" 72
ok "the second pre-start fails: the first was there, the third is not" test -e "$T/first" -a ! -e "$T/third" -a ! -e "$T/ran"
W="exit 5"; hooked 1 --max-restarts=1 --hook 'pre-start=test $ELRUN_ROUND_NUMBER = 1'
is "pre-start of a restart fails: the worker's status" "$status" 5
like "pre-start of a restart fails: says so" "$(cat "$ERR")" "restart 1 of 1 could not be made: hook pre-start"
W="touch $T/ran"; hooked 1 --exit-code=torchrun --hook 'pre-start=false'
is "pre-start fails: status as torchrun" "$status" 1
W="touch $T/ran"; start_hooked 1 --hook "pre-start=touch $T/waits; sleep 600"
wait_for test -e "$T/waits"
kill -TERM "$elrun_pid"; finish
is "a signal while pre-start runs: status" "$status" 143
ok "a signal while pre-start runs: nothing was started" test ! -e "$T/ran"

# --- those that only tell
W="sleep 200 exit 6"; hooked 1 --hook 'post-start=exit 3' --hook 'incident=exit 4' --hook 'end=kill -9 $$'
is "failing ones: status" "$status" 6
is "failing ones: each is warned of" "$(grep -c 'warning: hook [a-z-]* (.*): \(exit status [34]\|ended by SIGKILL\)' "$ERR")" 3
W="@1 catch TERM $T/stopped @1 on TERM 0 @1 touch $T/ready @0 await $T/ready.0.1 @0 exit 2 @1 await $T/never~"; hooked 2 --hook-timeout=0.3 --hook 'pre-stop=trap "" TERM; while :; do sleep 0.1; done' --hook 'post-start=sleep 600' --shutdown-timeout=60
is "hanging ones: status" "$status" 2
ok "hanging ones: the others were stopped" test -e "$T/stopped"
is "hanging ones: are ended" "$(grep -c 'warning: hook p.*: was ended after 0.3 s' "$ERR")" 2
W="await $T/flooded"; hooked 1 --hook "post-start=head -c 100000000 /dev/zero | tr '\\0' x; touch $T/flooded"
is "a flood: status" "$status" 0
ok "a flood: the log has little of it" test "$(wc -c <"$ERR")" -lt 40000
like "a flood: and says how much it lacks" "$(cat "$ERR")" "hook post-start: 99983616 more bytes of output are left out"
W="sleep 200"; hooked 1 --hook 'post-start=printf "a\0b\033[31mc\n"; printf "no newline"'
like "odd bytes" "$(cat "$ERR")" 'hook post-start: a\?b\?\[31mc'
like "no newline" "$(cat "$ERR")" 'hook post-start: no newline'
W="sleep 200"; hooked 1 --hook 'post-start=exec 0<&-; exec sleep 0.1'
is "one that reads nothing: status" "$status" 0
unlike "one that reads nothing: no warning" "$(cat "$ERR")" warning
W="exit 0"; hooked 1 --hook "round=ls -l /proc/self/fd >$T/fds; cat /proc/self/status >>$T/fds"
is "descriptors: three and the folder" "$(grep -c ' -> ' "$T/fds")" 4
like "signals: none is blocked" "$(cat "$T/fds")" 'SigBlk:.0000000000000000'

# --- what they leave behind, and whom they kill
daemon='(sleep 1000 & setsid sleep 1001 & setsid sh -c "setsid sleep 1002 & exec sleep 1003" &)'
W="+0 exit 1 +1 exit 0"; hooked 2 --max-restarts=1 --hook "post-start=$daemon" --hook "incident=$daemon" --hook "end=$daemon"
is "daemons: status" "$status" 0
is_clean "daemons"
W="await $T/go"
start_hooked 1 --hook "post-start=sleep 1000 & echo \$! >$T/left"
wait_for test -s "$T/left"
ok "what it leaves running ends with it, while the workers run" wait_for ended "$(cat "$T/left")"
touch "$T/go"; finish
is "what it leaves running: status" "$status" 0
W="sleep 300"; hooked 1 --hook 'post-start=kill -TERM 0; sleep 600'
is "one that kills its own group: status" "$status" 0
like "one that kills its own group: is warned of" "$(cat "$ERR")" "hook post-start .*: ended by SIGTERM"
W="await $T/never~"; start_hooked 2 --hook "post-start=touch $T/up; exec sleep 1000" --hook "incident=sleep 1000"
wait_for test -e "$T/up"
kill -KILL "$elrun_pid"; finish
rm -rf "$T/tmp/elrun_"* # nobody was left who could
is_clean "kill -9 of elrun while a hook runs"
W="exit 0"; start_hooked 1 --hook 'end=kill -KILL $PPID; sleep 1000'
finish
rm -rf "$T/tmp/elrun_"*
is_clean "one that kills elrun"
W="exit 0"; start_hooked 1 --hook "end=touch $T/last; sleep 1000"
wait_for test -e "$T/last"
kill -INT "$elrun_pid"; finish
is "Ctrl-C while the last one runs: status" "$status" 0

# --- too many
W="exit 1"; hooked 1 --max-restarts=24 --max-fruitless-restarts=100 --hook "incident=echo x >>$T/many; [ -e $T/last-one ] || sleep 600" --hook-timeout=600 --hook "pre-start=[ \$ELRUN_ROUND_NUMBER != 25 ] || touch $T/last-one" &
many=$!
wait_for holds "$ERR" 'restarts: 24 of 24' # the last of them has come
for p in $(grep -lzsx "ELRUN_EVENT=incident" /proc/[0-9]*/environ 2>/dev/null | sed 's/[^0-9]*\([0-9]*\).*/\1/'); do
    grep -qzx "E2E_MARK=$T" "/proc/$p/environ" 2>/dev/null && kill -KILL "$p" 2>/dev/null
done
wait $many
is "too many: the oldest are kept" "$(grep -c x "$T/many")" 17
like "too many: one warning counts the rest" "$(cat "$ERR")" "warning: hook incident: 8 events came while 16 others waited, and were left out"

# --- spelled wrong
for h in x=y incident =true pre-start= ; do
    run --standalone --hook "$h" --no-python "$WORKER" touch "$T/ran"
    is "--hook '$h': status" "$status" 2
done
run --standalone --hook-timeout=0 --no-python "$WORKER" touch "$T/ran"
is "--hook-timeout=0: status" "$status" 2
ok "nothing was started" test ! -e "$T/ran"

# --- two nodes: the one whose pre-start fails leaves, the other one goes on
port=$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
node() { # N OPTIONS...
    node_n=$1; shift
    OUT=$T/out.$node_n ERR=$T/err.$node_n
    start --nnodes=1:2 --settle=1 --rdzv-id=two --node-rank="$node_n" --rdzv-endpoint="127.0.0.1:$port" "$@" \
        --no-python "$WORKER" touch "$T/node.$node_n" await "$T/go2"
}
node 0; good=$elrun_pid
wait_for "$ELRUN" status --endpoint "127.0.0.1:$port"
node 1 --hook 'pre-start=echo bad GPU; false'; bad=$elrun_pid
elrun_pid=$bad; finish
is "two nodes: the bad one's status" "$status" 72
wait_for files "$T/node.0*" 1
touch "$T/go2"
elrun_pid=$good; finish
is "two nodes: the good one's status" "$status" 0
ok "two nodes: no worker on the bad one" test "$(ls "$T" | grep -c '^node.1')" = 0

is_clean "hooks"
finished
