# Reaction: a worker dies; the launcher is told to stop.
. "$(dirname "$0")/../lib/bench.sh"
for i in $(seq "$RUNS"); do
    take elrun    8 death 8 "$ELRUN" --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" die || exit 1
    take torchrun 8 death 8 $TORCHRUN --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" die
    take elrun    8shot death 8 "$ELRUN" --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" shot || exit 1
    take torchrun 8shot death 8 $TORCHRUN --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" shot
    take elrun    8told death 8 "$ELRUN" --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" told || exit 1
    take torchrun 8told death 8 $TORCHRUN --standalone --nproc-per-node=8 --max-restarts=1 --no-python "$STAMP" told
    take elrun    8 term 8 "$ELRUN" --standalone --nproc-per-node=8 --no-python "$STAMP" idle || exit 1
    take torchrun 8 term 8 $TORCHRUN --standalone --nproc-per-node=8 --no-python "$STAMP" idle
done
for who in elrun torchrun; do
    emit $who 8.term "worker's death to its siblings' signal, 8 workers" ms "last instruction of the dying worker" "SIGTERM handler of the last sibling" "<= 2 ms"
    emit $who 8.restart "worker's death to all 8 running again" ms "last instruction of the dying worker" "main() of the last restarted worker" "<= 15 ms"
    emit $who 8shot.term "worker's death by SIGKILL to its siblings' signal, 8 workers" ms "raise(SIGKILL) of the dying worker" "SIGTERM handler of the last sibling"
    emit $who 8shot.restart "worker's death by SIGKILL to all 8 running again" ms "raise(SIGKILL) of the dying worker" "main() of the last restarted worker"
    emit $who 8told.restart "worker's death by SIGTERM to all 8 running again (elrun waits 20 ms: is it told, too?)" ms "raise(SIGTERM) of the dying worker" "main() of the last restarted worker"
    emit $who 8.gone "SIGTERM to gone, 8 obedient workers" ms "kill() of the launcher" "its exit"
done
