# elrun probe on this machine alone: a healthy node, limits that make it sick, every kind of bad input, checks that hang,
# a probe that stands still or is interrupted, two at the same time, what is remembered.
. "$(dirname "$0")/../lib/e2e.sh"

CHEAP=memory,limits,processes # groups that need no second and differ from no host to the next
json() { # EXPRESSION over d, the object of $T/out, and its only node n
    "${PY:-python3}" -c 'import json,sys; d = json.load(open(sys.argv[1])); n = d["nodes"][0]; print('"$1"')' "$T/out" 2>&1
}
state_of() { json "[f['state'] for f in n['findings'] if f['check'] == '$1']"; }
# Limits that every host keeps, so that each test has one reason for its verdict.
cat >"$T/easy.json" <<-END
	{"memory_free": 0, "swap_used": "1024GiB", "shm_size": 0, "shm_free": 0, "zombies": 100000, "stuck_processes": 100000,
	 "nofile": 0, "memlock": 0, "numa_balancing": 1}
END
probe() { run probe --limits="$T/easy.json" --checks=$CHEAP "$@"; }
limits() { printf '%s\n' "$1" >"$T/limits.json"; }

# --- verdicts ---
probe --json
is "a healthy node: status 0" "$status" 0
is "as JSON" "$(json "n['state']")" good
is "with every check and its value" "$(json "[f['limit'] for f in n['findings'] if f['check'] == 'nofile']")" "[0]"
limits '{"memory_free": {"limit": 101, "severity": "bad"}}'
run probe --checks=memory-free --limits="$T/limits.json"
is "what is wrong by a limit of the site: status 1" "$status" 1
like "with the value, the limit and what to do" "$(cat "$T/out")" 'memory.free.*10[0-9.]* ?%'
limits '{"memory_free": {"limit": 101, "severity": "warn"}}'
run probe --checks=memory-free --limits="$T/limits.json" --json
is "a warning: status 0" "$status" 0
is "but told" "$(state_of memory_free)" "['warn']"
run probe --checks=memory-free --limits="$T/limits.json" --strict
is "with --strict 3" "$status" 3
probe --backend=nccl --checks=gpu --json
[ -e /dev/nvidiactl ] && skip "no GPU where one is wanted: status 1" "GPU: there is one" || is "no GPU where one is wanted: status 1" "$status" 1
run probe
like "everything, on this host: an ending" "$status" '^[013]$'

# --- on a terminal ---
TERM=xterm script -qec "'$ELRUN' probe --checks=speed --quick" "$T/typescript" </dev/null >/dev/null 2>&1
like "on a terminal it is told what is looked at, and for how long" "$(tr '\r' '\n' <"$T/typescript")" 'elrun: checks, [0-9]+ s: '
like "then comes the verdict" "$(cat "$T/typescript")" 'probe.* of .*: (good|bad|undecided)'
TERM=xterm script -qec "stty cols 30; '$ELRUN' probe --checks=speed --quick" "$T/typescript" </dev/null >/dev/null 2>&1
tr '\r' '\n' <"$T/typescript" | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' | grep '^elrun: ' >"$T/lines"
ok "on a narrow one, too" test -s "$T/lines"
is "no wider than it is: what wraps cannot be wiped" "$(awk 'length > 29' "$T/lines")" ""
like "and what stands there last is wiped" "$(tr -d '\n' <"$T/typescript" | tr '\033\r' '^<')" 'elrun: [^<^]*<\^\[K(\^\[1m)?probe'
TERM=dumb script -qec "'$ELRUN' probe --checks=speed --quick" "$T/typescript" </dev/null >/dev/null 2>&1
unlike "not where a line cannot be wiped" "$(cat "$T/typescript")" 'elrun: checks, '

# --- bad input ---
limits '{"memory_fre": 1}'
run probe --limits="$T/limits.json"
is "a limit for a check that is not known: status 2" "$status" 2
like "named, and what was meant" "$(cat "$T/err")" 'memory_fre.*memory_free'
limits 'nonsense'
run probe --limits="$T/limits.json"
like "a file of limits that is no JSON names the file" "$status $(cat "$T/err")" '^2 .*limits.json'
run probe --limits="$T/none.json"
like "one that is not there" "$(cat "$T/err")" 'none.json.*No such file'
run probe --checks=memory,bogus
is "a check that is not known" "$status" 2
run probe extra
is "an operand" "$status" 2
run probe --nnodes=1:1
like "one node in other words is no job" "$status $(cat "$T/err")" '^2 .*--nnodes=1:1: leave it out'
for word in state-dir baseline save-baseline limits checkpoint-dir helper-dir nccl-lib cuda-lib; do
    run probe --$word=
    is "--$word without a name" "$status $(sed -n 1p "$T/err")" "2 elrun: --$word=: want the name of a file or folder"
done
ELRUN_NCCL_LIB= run probe --checks=limits --limits="$T/easy.json"
is "a variable that is empty is not there" "$status" 0
run probe --nnodes=2 --rdzv-endpoint=localhost:29656 --local-addr=a..b
is "an address of this node that nobody knows: one line, at once" "$status $(cat "$T/err")" "78 elrun: --local-addr=a..b: there is no host of that name"
run probe --rdzv-endpoint=node1
like "several nodes are meant, but not how many" "$status $(cat "$T/err")" '^2 .*--rdzv-endpoint .*--nnodes=N'
probe --baseline="$T/none.json"
like "a baseline that is not there" "$(cat "$T/err")" 'none.json.*No such file'
probe --save-baseline="$T/base.json" --checks=system,memory
is "a baseline is written" "$status" 0
sed -i 's/"memory_gib": *"[^"]*"/"memory_gib":"3"/; s/"cores": *"[^"]*"/"cores":"3333"/' "$T/base.json"
probe --baseline="$T/base.json" --checks=system,memory
like "one of other hardware is refused by name" "$status $(cat "$T/err")" '^78 .*base.json.*(3333|memory)'
: >"$T/file"
probe --state-dir="$T/file/x"
is "a state folder that cannot be is no reason against the node" "$status" 0
is "told once" "$(grep -c 'not remembered' "$T/err")" 1
probe --helper-dir="$T/none" --backend=nccl --checks=gpu
like "a folder for the helper that is not there is told" "$(cat "$T/out" "$T/err")" "$T/none|none"
probe --backend=nccl --checks=gpu --json --nccl-lib="$T/file"
like "a wrong library is no crash" "$status" '^[013]$'

# --- what is remembered ---
limits '{"memory_free": {"limit": 101, "severity": "bad"}}'
for i in 1 2; do run probe --checks=memory-free --limits="$T/limits.json" --state-dir="$T/state"; done
like "a node that failed before is told so" "$(cat "$T/out")" 'failed 2 of 2 probes'
probe --state-dir="$T/state"
like "also when it is well again" "$status $(cat "$T/out")" '^0.*failed 2 of 3 probes|failed 2 of 3 probes'

unlike "verdicts alone are nothing strange" "$(cat "$T/err")" 'left aside'
printf '\001\002garbage\n{"time":1}\n' >>"$T/state/probes"
probe --state-dir="$T/state"
like "what is no verdict is told, and the others count" "$status $(cat "$T/err") $(cat "$T/out")" '^0.*warning: .*/state/probes: 2 lines are no verdicts of probes and are left aside$|failed 2 of 4 probes'
like "in one line" "$(cat "$T/err")" '^elrun: warning: .*/state/probes: 2 lines are no verdicts of probes and are left aside$'

# --- beside each other, without /proc, by a relative path ---
for i in 1 2 3; do OUT=$T/out.$i ERR=$T/err.$i start probe --limits="$T/easy.json" --checks=$CHEAP,disk; eval "pid_$i=$elrun_pid"; done
for i in 1 2 3; do eval "elrun_pid=\$pid_$i"; finish; is "one of three at the same time" "$status" 0; done
mkdir "$T/root" && cp "$ELRUN" "$T/root/elrun"
chroot "$T/root" /elrun probe --checks=limits >"$T/out.root" 2>&1
like "in a root with nothing but the program" "$? $(cat "$T/out.root")" '^[03] '
unlike "its children were started" "$(cat "$T/out.root")" 'cannot execute|own program'
rm -rf "$T/root"
(ulimit -n 12 && exec "$ELRUN" probe --checks=limits --json) >"$T/out.few" 2>&1
like "too few open files for its children: undecided, and why" "$? $(cat "$T/out.few")" '^3 .*"undecided".*Too many open files'
if unshare -m true 2>/dev/null; then
    printf 'umount -l /proc && exec "$@"\n' >"$T/no-proc"
    PREFIX="unshare -m sh $T/no-proc"
    run probe --checks=processes --json --all
    is "without a /proc nothing is said of processes" "$(state_of zombies) $(state_of stuck_processes)" "['unchecked'] ['unchecked']"
    PREFIX=
else
    skip "without a /proc" "no mount namespaces"
fi

# --- checks that hang, a probe that stands still, Ctrl-C: side by side, since each has to wait ---
stat_of() { sed 's/.*) //' "/proc/$1/stat"; }
child_of() { pgrep -P "$1" -x elrun-check | head -1; }
has_child() { [ -n "$(child_of "$1")" ]; }
# As soon as there is a child it is stopped: SIGSTOP is what a device looks like that does not answer.
catch() { # NAME PROBE-OPTIONS...: $pid_NAME is elrun, $child_NAME its child, which stands still
    catch_name=$1; shift
    for i in $(seq 50); do
        OUT=$T/out.$catch_name ERR=$T/err.$catch_name start probe --json "$@"
        while child=$(child_of $elrun_pid); [ -z "$child" ] && ! ended $elrun_pid; do :; done
        kill -STOP "$child" 2>/dev/null && ! ended "$child" && break
        finish
    done
    eval "pid_$catch_name=$elrun_pid child_$catch_name=$child"
}
catch hang --checks=speed
catch late --checks=speed --probe-timeout=1s
catch break --checks=speed
catch frozen --checks=speed --quick

kill -INT "$pid_break"
elrun_pid=$pid_break; finish
is "Ctrl-C: status 130" "$status" 130
is "one line" "$(grep -c . "$T/err.break")" 1
like "which says so" "$(cat "$T/err.break")" 'elrun: stopped after [0-9.]+ s'
cp "$T/out.break" "$T/out"
is "and what was found by then, still JSON" "$(json "len(d['nodes'])")" 1
is "of which nobody says that it is good" "$(json "d['verdict'], n['state']")" "undecided undecided"

elrun_pid=$pid_late; finish
is "--probe-timeout: undecided" "$status" 3
like "which says why" "$(cat "$T/err.late")" 'probe-timeout'
cp "$T/out.late" "$T/out"
is "and so does its object" "$(json "d['verdict'], n['state'], n['reasons']")" "undecided undecided ['the time was over before all was looked at']"

# The agent sleeps longer than any check may take, and its child, which runs, is done long before.
kill -STOP "$pid_frozen"
kill -CONT "$child_frozen"
wait_for ended "$child_frozen"
elrun_pid=$pid_hang; finish
cp "$T/out.hang" "$T/out"
is "a check that hangs is a finding" "$(json "len([f for f in n['findings'] if f['check'] == 'hang'])")" 1
like "and the probe has its end" "$status" '^[013]$'
kill -CONT "$pid_frozen"
elrun_pid=$pid_frozen; finish
cp "$T/out.frozen" "$T/out"
is "a probe that stood still condemns nobody" "$(json "[f['check'] for f in n['findings'] if f['check'] in ('hang', 'crash')]")" "[]"
is "and has its verdict" "$status" 0

# A file system that stands still: a check that not even SIGKILL ends (20 s, so only in the long form).
frozen= mounted=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/mnt"
    [ -z "$mounted" ] || umount "$T/mnt"
}
if [ -n "${LONG:-}" ] && dd if=/dev/zero of="$T/img" bs=1M count=16 2>/dev/null && mkfs.ext4 -q "$T/img" 2>/dev/null &&
    mkdir "$T/mnt" && mount -o loop "$T/img" "$T/mnt" 2>/dev/null; then
    mounted=yes
    fsfreeze -f "$T/mnt" && frozen=yes
    run probe --checks=disk --checkpoint-dir="$T/mnt" --json
    is "a check that cannot be killed: the node is bad" "$status" 1
    like "and it is told where it stands" "$(json "[f['text'] for f in n['findings'] if f['check'] == 'hang']")" 'cannot be killed: .*state D'
    fsfreeze -u "$T/mnt" && frozen=
    wait_for no_leftovers
    umount "$T/mnt" && mounted=
fi
is "no mark is left in shared memory" "$(ls /dev/shm | grep -c '^elrun-probe')" 0
is_clean "all probes"
finished
