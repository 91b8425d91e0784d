# behind.sh LOG COMMAND FRONT: runs the shell command FRONT, and COMMAND behind it, on what FRONT leaves of the processors: tests
# wait much, and compiling and searching do not mind when they are done.  The words of COMMAND go to LOG, and are shown when it has
# ended.  Fails if either fails.
log=$1 command=$2 front=$3
mkdir -p "$(dirname "$log")"
(
    # A session of its own: a kernel that shares processors among sessions first would not hear how nice one is inside of it.
    setsid sh -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 sh -c "$1"' sh "$command" </dev/null >"$log" 2>&1 &
    session=$!
    trap 'kill -s TERM -- -$session; exit 143' TERM
    wait $session
    rc=$?
    sed 's/^/behind: /' "$log"
    exit $rc
) &
behind=$!
trap 'kill -TERM $behind; exit 143' INT TERM HUP
sh -c "$front"
rc=$?
[ $rc = 0 ] || echo "behind: what stands in front has failed; still at work, see $log"
wait $behind && exit $rc
echo "behind: FAILED, see above or $log"
exit 1
