# e2e.sh: what every test/e2e/*.sh starts with:  . "$(dirname "$0")/../lib/e2e.sh"
#
# Gives: a scratch folder $T, removed at the end · ok, is, like, unlike, skip · start, finish, run for elrun · wait_for ·
# leftovers.  Every process that elrun starts carries E2E_MARK=$T in its environment: so a test finds what was left
# behind, and cleans up, without guessing by name.  No assertion is about time; every wait has a deadline.
: "${ELRUN:?path of the elrun to test}" "${BUILD:?folder with the built test programs}"
WORKER=$BUILD/test/e2e/worker
HERE=$(cd "$(dirname "$0")" && pwd)
DEADLINE=${E2E_DEADLINE:-120} # seconds until a wait gives up: generous, since it only bounds a test that fails anyway
T=$(mktemp -d "${TMPDIR:-/tmp}/e2e.XXXXXX") || exit 1
mkdir "$T/tmp"
chmod 755 "$T"
export XDG_RUNTIME_DIR="$T/tmp" # what lies in memory otherwise, where nobody would see what is left
tap_n=0 tap_bad=0
status= elrun_pid=

at_exit() { :; } # a test may define its own: called first
cleanup() {
    trap - EXIT INT TERM
    at_exit
    for p in $(leftovers); do kill -KILL "$p" 2>/dev/null; done
    rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- TAP ----------------------------------------------------------------------------------------------------------
note() { printf '%s\n' "$*" | sed 's/^/# /'; }
result() { # RC NAME
    tap_n=$((tap_n + 1))
    if [ "$1" = 0 ]; then echo "ok $tap_n - $2"; else echo "not ok $tap_n - $2"; tap_bad=$((tap_bad + 1)); return 1; fi
}
ok() { # NAME COMMAND...
    ok_name=$1; shift
    "$@" >"$T/ok.out" 2>&1; result $? "$ok_name" || { note "command: $*"; note "$(tail -5 "$T/ok.out")"; return 1; }
}
is() { # NAME GOT WANT
    [ "$2" = "$3" ]; result $? "$1" || { note " got: $2"; note "want: $3"; return 1; }
}
like() { # NAME TEXT EXTENDED-REGEX, of one line: to grep several are a choice, and none is everything
    case $3 in
    '' | *"
"*) result 1 "$1"; note "this pattern cannot fail: $3"; return 1 ;;
    esac
    printf '%s\n' "$2" | grep -Eq -- "$3"; result $? "$1" || { note "no match for: $3"; note "in: $(printf '%s' "$2" | head -c 3000)"; return 1; }
}
unlike() { # NAME TEXT EXTENDED-REGEX
    ! printf '%s\n' "$2" | grep -Eq -- "$3"; result $? "$1" || { note "matches: $3"; note "in: $(printf '%s' "$2" | head -c 3000)"; return 1; }
}
skip() { tap_n=$((tap_n + 1)); echo "ok $tap_n # SKIP $2: $1"; } # NAME REASON
skip_all() { echo "1..0 # SKIP $1"; exit 0; }
# The last line of every test; the plan is written only here, so that a test that dies half-way fails.
finished() { echo "1..$tap_n"; [ $tap_bad = 0 ]; exit $?; }

# --- waiting ------------------------------------------------------------------------------------------------------
wait_for() { # COMMAND...: until it succeeds; 1 and a note at the deadline
    wait_end=$(($(date +%s) + DEADLINE))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt $wait_end ] || { note "deadline passed while waiting for: $*"; return 1; }
        sleep 0.02
    done
}
# Ended: gone, or a zombie that only its parent can see.
ended() { ! grep -qE '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }
files() { [ "$(ls -d $1 2>/dev/null | grep -cv '~$')" -ge "$2" ]; } # GLOB COUNT: so many are there
holds() { grep -qE -- "$2" $1; } # GLOB REGEX

# --- elrun --------------------------------------------------------------------------------------------------------
# start OPTIONS...: elrun in the background, with stdin from $IN, stdout to $OUT, stderr to $ERR, environment words in $ENV.
# A shell starts background jobs with SIGINT and SIGQUIT ignored: $SIGNALS, options of env, put that right.  $PREFIX: words
# of a program that execs elrun.
ENV= IN=/dev/null OUT=$T/out ERR=$T/err SIGNALS=--default-signal PREFIX=
start() {
    status=
    env $SIGNALS -u TORCHELASTIC_ERROR_FILE E2E_MARK="$T" TMPDIR="$T/tmp" $ENV $PREFIX "$ELRUN" "$@" <$IN >$OUT 2>$ERR &
    elrun_pid=$!
}
# finish: waits for what start began; its exit status is in $status, "hung" if it had to be killed.
finish() {
    if wait_for ended "$elrun_pid"; then wait "$elrun_pid"; status=$?
    else kill -KILL "$elrun_pid"; wait "$elrun_pid"; status=hung; fi
}
run() { start "$@"; finish; }
# workers ARGUMENTS-OF-ELRUN... -- VERBS...: a group of worker programs
run_workers() { start_workers "$@"; finish; }
start_workers() {
    start_n=$1; shift
    start_o=; while [ "$1" != -- ]; do start_o="$start_o $1"; shift; done; shift
    start --standalone --nproc-per-node="$start_n" $start_o --no-python "$WORKER" "$@"
}

# --- what workers recorded (verb "record") ------------------------------------------------------------------------
# field FILE WORD: "pid", "ppid", "pgid", "sid";  envof FILE NAME: a variable, "(unset)" if it was not there
field() { sed -n "s/^$2 //p" "$1"; }
envof() { if grep -q "^env $2=" "$1"; then sed -n "s/^env $2=//p" "$1" | head -1; else echo "(unset)"; fi; }

# --- what was left behind -----------------------------------------------------------------------------------------
# Processes that carry the mark, zombies not counted (they have no environment any more).
leftovers() { grep -lzsx "E2E_MARK=$T" /proc/[0-9]*/environ 2>/dev/null | sed 's/[^0-9]*\([0-9]*\).*/\1/' ; }
no_leftovers() { [ -z "$(leftovers)" ]; }
# is_clean NAME: nothing runs any more and the temporary folder is empty
is_clean() {
    wait_for no_leftovers
    rm -rf "$T/tmp/torchinductor_"* # torch makes it at import
    rm -f "$T"/tmp/elrun-[0-9]*-[0-9]*-* # a coordinator that was killed leaves its mark for the next one
    is "$1: no process is left" "$(leftovers | tr '\n' ' ')" ""
    is "$1: no temporary file is left" "$(ls -A "$T/tmp")" ""
}
zombies_of() { # PID: how many of its children are zombies
    cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | awk -v p="$1" '$1 == "Z" && $2 == p { n++ } END { print n + 0 }'
}

# --- the report on a failure: its first line, the cause; all of it.  Of several in a file the last one.
cause_of() { grep -E '^elrun: (rank [0-9]+ (on [^ ]+ )?failed: |no worker failed by itself: )' "$1" | tail -1; }
report_of() { awk '{ l[NR] = $0 } /^elrun: (rank [0-9]+ (on [^ ]+ )?failed: |no worker failed by itself: )/ { from = NR } END { for (i = from; from && i <= NR; i++) print l[i] }' "$1"; }
