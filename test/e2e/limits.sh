# The system refuses: fork fails at the first worker or half-way, the argument list is as long as the kernel takes, the
# descriptors are used up.  Workers that had been started are stopped, the status is 71, and the message names what failed.
# Seen to fail: builds that do not raise the soft limit of open files, or do not give it back to workers (spawn_io.c).
. "$(dirname "$0")/../lib/e2e.sh"
cp "$ELRUN" "$T/elrun"; cp "$WORKER" "$T/worker"; chmod 755 "$T/elrun" "$T/worker"; chmod 777 "$T" "$T/tmp"
WORKER=$T/worker

# RLIMIT_NPROC counts all processes of a user, and never binds root: a user of our own, that nobody else is.
if [ "$(id -u)" = 0 ]; then
    uid=$((200000 + $$ % 100000))
    real=$ELRUN ELRUN=$T/elrun
    # 16 processes and threads for elrun, its guard, its threads and its workers: of 64 workers some start.
    PREFIX="setpriv --reuid=$uid --regid=$uid --clear-groups prlimit --nproc=16"
    start_workers 64 -- record "$T/np" on TERM 0 forever; finish
    is "RLIMIT_NPROC reached: exit status" "$status" 71
    like "RLIMIT_NPROC reached: half-way, it says at which worker" "$(cat "$ERR")" 'worker ([1-9]|1[0-9])[^0-9]'
    like "RLIMIT_NPROC reached: the message" "$(cat "$ERR")" 'fork|process.*(limit|ulimit)|Resource temporarily unavailable'
    is_clean "RLIMIT_NPROC reached"
    PREFIX="setpriv --reuid=$uid --regid=$uid --clear-groups prlimit --nproc=1"
    run_workers 2 -- touch "$T/n1"
    is "no process at all: exit status" "$status" 71
    ok "no process at all: no worker ran" test ! -e "$T/n1.0.0"
    is_clean "no process at all"
    PREFIX= ELRUN=$real
else
    skip "RLIMIT_NPROC" "needs root, to become a user of its own"
fi

# Few descriptors: 2 pipes and 2 files for each of 64 workers do not fit in 64.
PREFIX="prlimit --nofile=64:64"
run_workers 64 --tee=3 --log-dir="$T/nofile" -- touch "$T/nf"
like "RLIMIT_NOFILE reached: exit status" "$status" '^(71|73)$'
like "RLIMIT_NOFILE reached: the message" "$(cat "$ERR")" 'descriptors|open files|[Tt]oo many'
PREFIX=
is_clean "RLIMIT_NOFILE reached"
# A soft limit that is too low is raised.
PREFIX="prlimit --nofile=64:4096"
run_workers 64 --tee=3 --log-dir="$T/soft" -- touch "$T/sf"
is "a low soft limit of open files: exit status" "$status" 0
ok "a low soft limit of open files: all workers ran" files "$T/sf.0.*" 64
run --standalone --log-dir=/dev/null --no-python sh -c 'ulimit -n >"$1"' sh "$T/files"
is "a low soft limit of open files: the worker has it as it was" "$(cat "$T/files")" 64
PREFIX=

# Too few for elrun itself: libev would abort, and the temporary folder could not be tidied away.
for files in 4 8 14 15 16 20 31; do
    PREFIX="prlimit --nofile=$files:$files"
    run_workers 2 -- touch "$T/few"
    is "$files descriptors: exit status" "$status" 71
    like "$files descriptors: one line with what to do" "$(cat "$ERR")" "^elrun: .*$files are allowed: raise ulimit -n\); about [0-9]+ are needed for 2 workers$"
    is "$files descriptors: nothing more" "$(wc -l <"$ERR" | tr -d ' ')" 1
done
PREFIX=
ok "too few descriptors: no worker ran" test ! -e "$T/few.0.0"

# The longest argument the kernel takes passes; one more byte of environment for the worker may not, and is told.
head -c 131071 /dev/zero | tr '\0' x >"$T/arg" # MAX_ARG_STRLEN with its 0
run --standalone --no-python sh -c 'printf %s "$1" | wc -c >"$2"' sh "$(cat "$T/arg")" "$T/len"
is "an argument of the largest size: exit status" "$status" 0
is "an argument of the largest size: reaches the worker" "$(tr -d ' ' <"$T/len" 2>/dev/null)" 131071

# All arguments and the environment together: as many as the kernel takes for elrun.  The worker's environment is larger,
# so its exec is refused; a little less fits.
cat >"$T/fill" <<'SCRIPT'
spare=$1
stack=$(ulimit -s); [ "$stack" != unlimited ] || stack=24576
limit=$((stack * 1024 / 4))
[ $limit -lt 6291456 ] || limit=6291456
# Each string costs its bytes, its 0 and a pointer.
used=$(env | awk '{ n += length($0) + 9 } END { print n }')
left=$((limit - used - spare))
big=$(head -c 99991 /dev/zero | tr '\0' y)
set --
while [ $left -gt 100000 ]; do set -- "$@" "$big"; left=$((left - 100000)); done
exec "$ELRUN" --standalone --no-python true "$@" "$(head -c $left /dev/zero | tr '\0' z)"
SCRIPT
fill() { env E2E_MARK="$T" TMPDIR="$T/tmp" ELRUN="$ELRUN" sh "$T/fill" "$1" >"$OUT" 2>"$ERR"; status=$?; }
fill 20000
is "arguments close to the kernel's limit: exit status" "$status" 0
# The last sizes at which elrun itself can be started: its worker cannot.
for spare in 600 500 400 300 250 200; do fill $spare; [ "$status" = 126 ] || last=$status; cp "$ERR" "$T/err.$status"; done
is "arguments at the kernel's limit: exit status" "$last" 71
like "arguments at the kernel's limit: the message" "$(cat "$T/err.71" 2>/dev/null)" 'larger than the kernel takes|[Aa]rgument list too long'
is_clean "at the end"
finished
