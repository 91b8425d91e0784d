# 200,000 lines of 70 bytes from one worker through the launcher's tee.  Same interpreter, same flags (-u), stdout a file on
# the same file system each time: once the script alone, once under each launcher, whose console is that file.
. "$(dirname "$0")/../lib/bench.sh"
export BENCH_LINES=200000
cat >"$T/lines.py" <<'PYTHON'
import os, sys, time
with open(os.environ["BENCH_STAMPS"], "a") as stamps:
    stamps.write(f"start 0 0 {time.monotonic_ns()}\n")
for i in range(int(sys.argv[1])):
    print(f"{i:07d} {'.' * 61}")
PYTHON
# The worker's lines must all have come through, each once and in order: else the sample does not count.  elrun may put a
# prefix only at the begin of a line; torchrun also puts it into the middle of one, where a read of its tail ended.
FIT=is_whole
is_whole() {
    if [ "$1" = torchrun ]; then all=g; begin=; else all=; begin=^; fi
    sed "s/$begin\[default0\]://$all" "$T/stamps.out" |
        awk -v n="$BENCH_LINES" '/^[0-9]+ \.+$/ && $1 + 0 == i && length($0) == 69 { i++ } END { exit i != n }'
}
for i in $(seq "$RUNS"); do
    rm -rf "$T/logs"; take elrun tee lines 1 "$ELRUN" --standalone --tee=3 --log-dir="$T/logs" "$T/lines.py" $BENCH_LINES || exit 1
    rm -rf "$T/logs"; take torchrun tee lines 1 $TORCHRUN --standalone --tee=3 --log-dir="$T/logs" "$T/lines.py" $BENCH_LINES
    take "script alone" tee lines 1 "$PY" -u "$T/lines.py" $BENCH_LINES || exit 1
done
for who in elrun torchrun "script alone"; do
    emit "$who" tee.whole "200,000 lines of 70 bytes through the tee, whole run" ms "before the fork of the launcher" "its exit" "<= 1.3 x script alone"
    emit "$who" tee.lines "the same without the start" ms "the script's first line" "exit of the launcher" "<= 1.3 x script alone"
    emit "$who" tee.rate "lines per second through the tee, without the start" "lines/s" "the script's first line" "exit of the launcher"
done
