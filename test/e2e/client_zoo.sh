# Every optimizer, scheduler, scaler and average of PyTorch trains with snapshots as without, bit for bit, and goes on from what
# was kept as if nothing had happened (test/client/zoo.py).  With LONG those of pytorch_optimizer, schedulefree, torch_ema and
# ema_pytorch, too, in the versions that test/lib/zoo_venv.sh names.
# Seen to fail: the eigenvectors of SOAP are put back row by row, and its sums are others.
. "$(dirname "$0")/../lib/e2e.sh"
"$PY" -c 'import torch, numpy' 2>/dev/null || skip_all "this python has no torch: $PY"

zoo() { # NAME PYTHON WHICH TRIED
    "$2" "$HERE/../client/zoo.py" "$3" >"$T/zoo" 2>&1; zoo_status=$?
    is "$1: nothing is wrong" "$zoo_status" 0
    like "$1: so many were tried" "$(tail -1 "$T/zoo")" "^$4 were tried"
    note "$(cat "$T/zoo")"
}
zoo "of torch" "$PY" torch '[5-9][0-9]'
if [ "$LONG" ]; then
    (cd "$HERE/../.." && sh test/lib/zoo_venv.sh "$PY") >"$T/venv" 2>&1
    if [ -e "$HERE/../../.venv-zoo/.complete" ]; then zoo "of others" "$HERE/../../.venv-zoo/bin/python" others '1[0-9][0-9]'
    else skip "of others" "no packages can be installed here"; note "$(tail -3 "$T/venv")"; fi
fi
finished
