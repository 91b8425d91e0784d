# --step-pattern: steps are read from rank 0's lines wherever they pass through elrun, and nothing of the output changes.
# Seen to fail against a build in which stream_io.c does not call steps_feed(): no line has a share, and the test of
# repeated steps fails.
. "$(dirname "$0")/../lib/e2e.sh"

# Rank 0 prints steps, 20 ms each; the first attempt ends at step 12 with a failure, the second begins at step 8.
cat >"$T/train.sh" <<'S'
n=1 last=12
[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || { n=8 last=20; }
while [ $n -le $last ]; do
    echo "rank $RANK: iteration    $n/     20 | loss 0.$n" >&$1
    sleep 0.02
    n=$((n + 1))
done
# The other one shall get as far.
here=${0%/*}/$TORCHELASTIC_RUN_ID
[ "$RANK" = 0 ] || : >"$here.$TORCHELASTIC_RESTART_COUNT"
while [ $RANK$WORLD_SIZE = 02 ] && ! [ -e "$here.$TORCHELASTIC_RESTART_COUNT" ]; do sleep 0.01; done
[ "$TORCHELASTIC_RESTART_COUNT" != 0 ] || [ "$RANK" != 0 ] || exit 3
S
# steps NAME STREAM OPTION...
steps() {
    name=$1 stream=$2; shift 2
    run --rdzv-id="$(echo "$name" | tr ' ' -)" --nproc-per-node=2 --max-restarts=1 "$@" --log-dir="$T/logs" --no-python /bin/sh "$T/train.sh" "$stream"
    is "$name: exit status" "$status" 0
    line=$(grep -h 'time: ' "$ERR")
    like "$name: twenty steps, five of them twice" "$line" 'effective [0-9.]+%: 20 new steps of [0-9.]+m?s, 5 made again \([0-9.]+m?s\)'
    like "$name: the share of running" "$line" 'running \([0-9]+\.[0-9]%\)'
}
P="--step-pattern=iteration %d/"
steps "standard output to a file" 1 "$P"
is "standard output to a file: its lines are all there" "$(grep -c 'rank 0: iteration ' "$OUT")" 25
is "standard output to a file: unchanged" "$(grep -c '^rank 0: iteration    20/     20 | loss 0\.20$' "$OUT")" 1
steps "redirected" 1 "$P" --redirects=3
is "redirected: the console stays empty" "$(cat "$OUT")" ""
is "redirected: the files are whole" "$(cat "$T"/logs/*/attempt_1/0/stdout.log | grep -c iteration)" 13
steps "teed" 1 "$P" --tee=3
like "teed: with prefixes" "$(cat "$OUT")" '^\[default0\]:rank 0: iteration    20/'
steps "standard error" 2 "$P"
rm -rf "$T/logs"
steps "the last rank" 1 "--step-pattern=rank 1: iteration %d/" --step-rank=last --redirects=3
run --nproc-per-node=1 -v "--step-pattern=epoch %d" --no-python /bin/sh "$T/train.sh" 1
unlike "no line fits: no share of effective work is made up" "$(grep 'time: ' "$ERR")" 'effective'
run --step-pattern=loss --no-python /bin/true
is "a pattern without a place for the number" "$status" 2
like "it says what is wanted" "$(cat "$ERR")" '^elrun: --step-pattern=loss: want text of a line with one %d where the number stands'
if command -v script >/dev/null; then
    TERM=xterm E2E_MARK="$T" TMPDIR="$T/tmp" timeout "$DEADLINE" script -qec "'$ELRUN' --no-interactive --nproc-per-node=2 '$P' --no-python /bin/true" /dev/null >"$OUT" 2>&1 </dev/null
    like "on a terminal it says why nothing is counted" "$(tr -d '\r' <"$OUT")" 'step-pattern: local rank 0 prints straight to the terminal, .*--tee=1'
else
    skip "on a terminal it says why nothing is counted" "no script(1) here"
fi
is_clean "steps"
finished
