# What a launcher costs while eight workers do nothing: seven windows of two seconds.
. "$(dirname "$0")/../lib/bench.sh"
take elrun    8 idle 8 "$ELRUN" --standalone --nproc-per-node=8 --no-python "$STAMP" idle || exit 1
take torchrun 8 idle 8 $TORCHRUN --standalone --nproc-per-node=8 --no-python "$STAMP" idle
for who in elrun torchrun; do
    emit $who 8.rss "memory of the agent, idle, 8 workers (RSS)" KiB "one second after the last worker's start" "each two seconds later" "<= 4096 KiB"
    emit $who 8.rss_all "the same with its helper processes, shared pages counted twice" KiB "one second after the last worker's start" "each two seconds later"
    emit $who 8.cpu "processor time while idle, 8 workers" "ms/s" "each window's begin" "two seconds later"
done
