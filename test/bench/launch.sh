# Start: a whole run of a program that does nothing, and the time until the first instruction of a worker.
. "$(dirname "$0")/../lib/bench.sh"
for i in $(seq "$RUNS"); do
    for n in 1 8 64; do
        take elrun    $n whole $n "$ELRUN" --standalone --nproc-per-node=$n --no-python /bin/true || exit 1
        take torchrun $n whole $n $TORCHRUN --standalone --nproc-per-node=$n --no-python /bin/true
    done
    for n in 1 64; do
        take elrun    $n first $n "$ELRUN" --standalone --nproc-per-node=$n --no-python "$STAMP" once || exit 1
        take torchrun $n first $n $TORCHRUN --standalone --nproc-per-node=$n --no-python "$STAMP" once
    done
done
for who in elrun torchrun; do
    emit $who 1.whole "whole run of /bin/true, 1 worker" ms "before the fork of the launcher" "its exit" "<= 5 ms"
    for n in 8 64; do
        emit $who $n.whole "whole run of /bin/true, $n workers" ms "before the fork of the launcher" "its exit"
    done
    emit $who 1.first "launch to a worker's first instruction, 1 worker" ms "before the fork of the launcher" "main() of the worker"
    emit $who 64.last "launch to the last worker's first instruction, 64 workers" ms "before the fork of the launcher" "main() of the last worker"
done
