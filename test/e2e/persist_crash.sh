# kill -9 of elrun while it writes checkpoints: whenever it comes, what is called a checkpoint is whole, and the next job goes
# on in the same directory.
# Seen to fail: a build that writes into step-… at once.
. "$(dirname "$0")/../lib/e2e.sh"
PY=${PY:-python3} R=$T/ckpt
all=$("$PY" -c 'print(",".join(map(str, range(200))))')
good() { # every directory that has a checkpoint's name is one, byte by byte
    for s in "$R"/step-*; do
        [ ! -e "$s" ] || "$ELRUN" ckpt verify --deep "$s" >"$T/verify" 2>&1 || { cat "$T/verify"; return 1; }
    done
}
newest() { ls -d "$R"/step-* 2>/dev/null | tail -1; }
later() { [ "$(newest)" != "$1" ]; }
for n in 1 2 3 4 5 6; do
    D=$T/$n; mkdir "$D"; before=$(newest)
    rm -rf "$R/.stage"
    ENV="PYTHON_EXEC=$PY STATE_BYTES=4000000" start --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --allow-fresh "$HERE/persist_worker.py" "$D" "$R" none 200 "$all"
    case $n in
    1 | 2 | 3) wait_for files "$R/.stage/*" 1 ;;  # in the first one
    4) wait_for later "$before" ;;                # behind a rename
    *) wait_for files "$R/.stage/*/*.safetensors" "$((n - 4))" ;;
    esac
    kill -KILL "$elrun_pid"; finish
    wait_for no_leftovers # the guard ends the workers
    ok "killed, $n: every checkpoint is whole" good
done
ok "there are some" test -n "$(newest)"
rm -rf "$T"/tmp/elrun-*
D=$T/last; mkdir "$D"
ENV="PYTHON_EXEC=$PY" run --standalone --nproc-per-node=2 --ckpt-mem=64M --ckpt-dir="$R" --allow-fresh "$HERE/persist_worker.py" "$D" "$R" none 301 300
is "the next job writes beside them: status" "$status" 0
is "its step is the newest" "$(newest)" "$R/step-000000300"
ok "and all are whole" good
finished
