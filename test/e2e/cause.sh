# Who is named as the cause, where it ends more slowly than its victims: failures drawn from kinds x tear-downs x what the victims
# say x nodes (cause.py), with the words of PyTorch 1.13 to 2.14, Gloo, NCCL, UCC, tensorpipe and Horovod.  With LONG=1 200 of them.
# Seen to fail: with `.consequence = 0` in agent_io.c 31 of 40 were wrong.
. "$(dirname "$0")/../lib/e2e.sh"
count=30
[ "$LONG" != 1 ] || count=200
ELRUN=$ELRUN "${PY:-python3}" "$HERE/cause.py" corpus "${SEED:-1}" $count >"$T/corpus" 2>&1
is "every failure was judged" "$(grep -c '^ok\|^wrong' "$T/corpus")" $count
is "of $count failures in which the victims end first nobody else was named" "$(grep '^wrong' "$T/corpus")" ""
grep -v '^ok' "$T/corpus" | head -200
one() { ELRUN=$ELRUN "${PY:-python3}" "$HERE/cause.py" one "$@"; }
like "a rank that raised and cannot end, since a thread of it runs on" "$(one value thread gloo-closed 1 3 2)" "^ok"
"$ELRUN" --standalone --nproc-per-node=2 --shutdown-timeout=2 "$HERE/cause.py" worker "$T/flag" 1 stay none reset-error >"$T/stay" 2>&1
like "nobody fails by itself: that the wait is one is said" "$(cat "$T/stay")" "rank 0 .* its last words only say that a peer is gone: waiting up to 2 s for the rank that made it so"
like "... and the victim is named in the end" "$(tail -1 "$T/stay")" "rank 0 .*failed: exit code 1: ConnectionResetError"
is_clean "cause"
finished
