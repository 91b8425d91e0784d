# What it costs that elrun reads stderr to find the traceback: 100 MB a second, in lines of 80 bytes, for two seconds.  The console is
# a file each time: under elrun the lines come by its pipe and its ring, alone the worker writes them there itself.
. "$(dirname "$0")/../lib/bench.sh"
export BENCH_LINES=2500000
LINE=$(printf '%79s' | tr ' ' .)
# All lines must have come through whole.
FIT=is_whole
is_whole() { [ "$(LC_ALL=C grep -cxF "$LINE" "$T/stamps.out")" = $BENCH_LINES ]; }
for i in $(seq "$RUNS"); do
    take elrun paced lines 1 "$ELRUN" --standalone --no-python "$STAMP" pour 1250000 $BENCH_LINES || exit 1
    take "script alone" paced lines 1 "$STAMP" pour 1250000 $BENCH_LINES || exit 1
    take elrun free lines 1 "$ELRUN" --standalone --no-python "$STAMP" pour 1000000000 $BENCH_LINES || exit 1
    take "script alone" free lines 1 "$STAMP" pour 1000000000 $BENCH_LINES || exit 1
done
for who in elrun "script alone"; do
    emit "$who" paced.lines "200 MB on stderr at 100 MB/s, watched" ms "the worker's first line" "exit of the launcher" "<= 1.2 x script alone"
    emit "$who" paced.busy "the same: processor time" ms "fork of the launcher" "its exit, with the worker's"
    emit "$who" free.lines "200 MB on stderr as fast as the worker can" ms "the worker's first line" "exit of the launcher"
done
