# What elrun promises beside the bytes: persist=True is on disk or it is said; all ranks always have a step to go back to;
# what does not fit is refused and costs nothing; a script that goes back by itself is followed; an emergency checkpoint holds
# a state that was.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

# begin NAME RANKS MODE OPTIONS...: state_promises.py in a folder of its own, $D; what it says is in $D/err
begin() {
    D=$T/$1 ranks=$2 mode=$3; shift 3
    mkdir -p "$D"; [ -e "$D/result" ] || : >"$D/result"
    OUT=$D/out ERR=$D/err
    ENV="PYTHON_EXEC=$PY PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $with" \
        start --standalone --nproc-per-node="$ranks" "$@" "$HERE/state_promises.py" "$D" "$mode"
}
job() { begin "$@"; finish; }
ends() { # TITLE [STATUS]: its verdicts and its exit status
    verdicts "$1" "$D/result"
    is "$1: exit status" "$status" "${2:-0}"
}
on_disk() { "$ELRUN" ckpt ls "$D/ckpt" --json | "$PY" -c 'import json, sys
print(*sorted(x["step"] for x in json.load(sys.stdin)["checkpoints"] if x["state"] == "valid"))'; }
with=

# A rank that does not come is awaited for 10 s: meanwhile the rest of this test runs.
begin absent 2 absent --ckpt-mem=16M --ckpt-restore-timeout=12 $CHECK
absent_pid=$elrun_pid
# So is one that takes no snapshots, for 30 s.
begin alone 2 alone --ckpt-mem=16M --ckpt-dir="$T/alone/ckpt" $CHECK
alone_pid=$elrun_pid

# --- persist=True
job persist1 1 persist --ckpt-dir="$T/persist1/ckpt"
is "persist=True, one rank: all are taken" "$(cat "$D/taken.0")" "9 19 29 39"
is "persist=True, one rank: all are on disk" "$(on_disk)" "9 19 29 39"
is "persist=True, one rank: exit status" "$status" 0
job persist2 2 persist --ckpt-dir="$T/persist2/ckpt"
is "persist=True, one of two ranks says so: all are taken" "$(cat "$D/taken.0")" "9 19 29 39"
is "persist=True, one of two ranks says so: each is on disk, or an event says that it is not" \
    "$({ on_disk; cat "$D/failed.0"; } | tr ' ' '\n' | grep . | sort -nu | tr '\n' ' ')" "9 19 29 39 "
is "persist=True, one of two ranks says so: exit status, of the last one" "$status" "$(on_disk | grep -qw 39 && echo 0 || echo 74)"
for how in room refused skipped; do
    with=HOW=$how
    job "lacks_$how" 2 lacks --ckpt-mem=64M --ckpt-dir="$T/lacks_$how/ckpt"
    ends "persist=True, and a rank has it not, $how" 74
    is "persist=True, and a rank has it not, $how: a line for each" \
        "$(sed -n 's/.*checkpoint: step \([0-9]*\) is not on disk: .*/\1/p' "$D/err" | tr '\n' ' ')" "1 5 "
    like "persist=True, and a rank has it not, $how: and why" "$(grep 'step 5 is not on disk' "$D/err")" \
        "$([ $how = room ] && echo 'no room in --ckpt-mem' || echo 'a rank has left it out')"
done
with=
for how in one both; do
    with=HOW=$how
    job "twice_$how" 2 twice --ckpt-mem=16M --max-restarts=1 --restart-policy=always
    ends "a step that is taken twice, $how"
done
with=
job memory_only 1 memory_only --ckpt-mem=16M
ends "persist=True without --ckpt-dir"
is "persist=True without --ckpt-dir: it is said once" "$(grep -c 'there is no --ckpt-dir' "$D/err")" 1
with=CKPT_DIR=$T/broken/ckpt
job broken 1 broken_dir --ckpt-dir="$T/broken/ckpt"
ends "the folder goes away" 74
like "the folder goes away: elrun says so" "$(cat "$ERR")" 'step 1 .*not on disk|not on disk.*step 1|step 1.*(failed|could not|cannot)'
with=

# --- a step to go back to: all ranks are killed, eight times, at moments that a seed gives
begin kills 3 kills --ckpt-mem=256M --max-restarts=8 --restart-policy=always $CHECK
ready() { files "$D/ready.$1.*" 3 || ended "$elrun_pid"; }
kill_all() { # ATTEMPT SECONDS
    wait_for ready "$1"
    files "$D/ready.$1.*" 3 || return 1 # all have tried five snapshots by then, at least
    sleep "$2"
    kill -KILL $(cat "$D/ready.$1".*) 2>/dev/null || : # elrun may have stopped the others before their turn comes
}
SEED=${SEED:-7}
note "SEED=$SEED"
n=0
for s in $(awk -v seed="$SEED" 'BEGIN { srand(seed); for (i = 0; i < 8; i++) printf "%.3f ", rand() * .4 }'); do
    kill_all $n "$s" || break
    n=$((n + 1))
done
wait_for ready 8
ok "kills: the ninth attempt runs" files "$D/ready.8.*" 3
kill -TERM "$elrun_pid" 2>/dev/null; finish
"$PY" - "$D" >"$D/result" <<'P'
import sys
logs = {}
for r in range(3):
    for line in open(f"{sys.argv[1]}/log.{r}"):
        a, what, *rest = line.split()
        logs.setdefault(int(a), {}).setdefault(what, {}).setdefault(r, []).append(rest)
for a in range(1, 9):
    back = {r: tuple(x[0]) for r, x in logs.get(a, {}).get("restored", {}).items()}
    before = logs.get(a - 1, {})
    common = set.intersection(*({int(x[0]) for x in before.get("taken", {}).get(r, [])} | {int(x[0]) for x in before.get("restored", {}).get(r, [])} for r in range(3)))
    common = sorted(common - {-1})
    least = common[-2] if len(common) > 1 else common[-1] if common else -1
    steps = {int(s) for s, _ in back.values()}
    good = len(back) == 3 and len(steps) == 1 and {g for _, g in back.values()} == {"True"}
    print("ok" if good else "not ok", f"kill {a} comes back to one step with its values" + ("" if good else f": {back}"))
    good = bool(steps) and min(steps) >= least
    print("ok" if good else "not ok", f"kill {a} loses one snapshot at most" + ("" if good else f": {back}, all had taken {common[-4:]}"))
print("end")
P
verdicts kills "$D/result"

# --- more than fits, and what cannot be saved
job reserved 2 reserved --ckpt-mem=64M --ckpt-busy=wait $CHECK
ends "memory that one rank has reserved and another one needs"
job growth 1 growth --ckpt-mem=24M --ckpt-busy=wait --max-restarts=2 --restart-policy=always $CHECK
ends growth
said=$(grep 'step [0-9]* is not kept' "$ERR")
like "growth: what is needed and what there is is said" "$said" 'step 6 .*[0-9] MiB are needed.*24 MiB of --ckpt-mem.*the one before it stays'
is "growth: once for each time that it begins" "$(printf '%s\n' "$said" | wc -l)" 2
job late 1 late --ckpt-mem=24M --ckpt-busy=wait --max-restarts=2 --restart-policy=always $CHECK
ends "what cannot be saved"
job steps 1 steps --ckpt-mem=24M --ckpt-busy=wait $CHECK
ends steps

# --- going back by oneself
with=FROM=disk
job rewind 1 rewind --ckpt-dir="$T/rewind/ckpt" --ckpt-busy=wait --max-restarts=1 --restart-policy=always $CHECK
ends rewind
: >"$D/result"
job rewind 1 rewind --ckpt-dir="$T/rewind/ckpt" --ckpt-busy=wait $CHECK
ends "rewind, another job"
for how in twice behind; do
    with=HOW=$how
    job "counted_$how" 1 counted --ckpt-mem=16M $CHECK
    ends "steps, $how"
    is "steps, $how: it is said once, and nothing of steps that are right" "$(grep -c 'update(' "$ERR")" 1
    like "steps, $how: and which" "$(grep 'update(' "$ERR")" \
        "$([ $how = twice ] && echo 'rank 0: update\(3\) comes twice' || echo 'rank 0: update\(0\) comes behind update\(3\)')"
done
with=

# --- emergency checkpoints
ready_or_ended() { [ -e "$D/ready" ] || ended "$elrun_pid"; }
for how in array copy data told over raised stays; do
    with=HOW=$how
    begin "swap_$how" 1 swap --ckpt-dir="$T/swap_$how/ckpt" $CHECK
    wait_for ready_or_ended
    kill -TERM "$elrun_pid" 2>/dev/null; finish
    mv "$ERR" "$D/err.1"
    job "swap_$how" 1 swap --ckpt-dir="$T/swap_$how/ckpt" $CHECK
    ends "swapped weights, $how"
    newest=$(cat "$D/step.0")
    case $how in
    over) is "swapped weights, $how: the newest step counts" "$newest" 5 ;;
    raised | stays | told) [ "$newest" = 5 ] || like "swapped weights, $how: that an older step counts is said" "$(cat "$D/err.1")" 'swapped' ;;
    *) [ "$newest" = 5 ] || like "swapped weights, $how: that an older step counts is said" "$(cat "$D/err.1")" 'changed' ;;
    esac
done
with=
for how in begins ends part told not; do
    with=HOW=$how
    begin "during_$how" 1 during --ckpt-dir="$T/during_$how/ckpt" $CHECK
    wait_for ready_or_ended
    kill -TERM "$elrun_pid" 2>/dev/null; finish
    mv "$ERR" "$D/err.1"
    job "during_$how" 1 during --ckpt-dir="$T/during_$how/ckpt" $CHECK
    ends "weights that are swapped while they are captured, $how"
    is "weights that are swapped while they are captured, $how: the step that counts" "$(cat "$D/step.0")" "$([ $how = not ]; echo $((5 * !$?)))"
    [ $how = not ] || like "weights that are swapped while they are captured, $how: it is said" "$(cat "$D/err.1")" '[0-9]+\.weight and maybe other tensors were changed outside|a step, or ck.swapped\(\), began'
done
with=
job captured 2 captured --ckpt-mem=64M --max-restarts=1 --restart-policy=always $CHECK
echo end >>"$D/result"
ends "a state that has grown is captured"
is "a state that has grown is captured: it is the newest" "$(cat "$D/step.0" "$D/step.1" | sort -u)" 6

for how in within behind; do
    with=HOW=$how
    job "scheduled_$how" 1 scheduled --ckpt-mem=16M $CHECK
    ends "a scheduler that is stepped $how"
    is "a scheduler that is stepped $how: lines that say so" "$(grep -c 'a scheduler was stepped between' "$ERR")" \
        "$([ $how = within ]; echo $?)"
done
like "a scheduler that is stepped behind: which" "$(cat "$ERR")" 'part optim: a scheduler was stepped between update\(0\) and update\(1\)'
with=

# --- no snapshots; the rank that did not come
with="OOM=$(cat /proc/self/oom_score_adj)"
job nothing 1 nothing
ends "without any option"
job nothing2 1 nothing --max-restarts=1 --nnodes=1
ends "without snapshots"
with=
D=$T/absent elrun_pid=$absent_pid; finish
like "a rank that never calls restore() is named while the others wait" "$(head -3 "$D/err")" 'rank 1 .*restore\(\)'
like "and at the end" "$(sed 1d "$D/err")" 'rank 1.*restore\(\)|restore\(\).*rank 1'
D=$T/alone elrun_pid=$alone_pid ERR=$T/alone/err; finish
ends "persist=True where another rank takes no snapshots" 74
like "persist=True where another rank takes no snapshots: it is named" "$(cat "$D/err")" 'rank 1 has come to no snapshot for 30 s'
like "persist=True where another rank takes no snapshots: who waits says so" "$(cat "$D/err")" \
    'rank 0: snapshot\(\) of step 2 has waited 10 s for a slot.*not every rank'
is "persist=True where another rank takes no snapshots: each step is said not to be on disk" \
    "$(sed -n 's/.*checkpoint: step \([0-9]*\) is not on disk.*/\1/p' "$D/err" | sort -n | tr '\n' ' ')" "0 1 2 "
is_clean promises
finished
