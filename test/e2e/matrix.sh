# The versions of PyTorch and of Python that people have (test/lib/torch_versions.sh).  Each PyTorch: its own client against elrun's
# store and against its own server, a DDP training that is restarted, the naming of the first cause, and snapshots against that
# version's torch.save().  Each Python: the package without torch.  With LONG=1 all versions, else those that are always there.
# Seen to fail: with a store that closes silent connections the client of 1.13 takes a whole processor.
. "$(dirname "$0")/../lib/e2e.sh"
. "$HERE/../lib/torch_versions.sh"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

store_begins() { # VERSION PYTHON: its client is idle for long, so the training runs beside it
    rm -f "$T/port"
    ERR=$T/store.err start store --port 0 --port-file "$T/port" --wait-report 0
    store_pid=$elrun_pid
    wait_for test -s "$T/port"
    timeout 300 "$2" "$HERE/matrix_worker.py" store "127.0.0.1:$(cat "$T/port")" >"$T/store.$1" 2>"$T/store.$1.err" &
    client_pid=$!
}
store_ends() {
    wait "$client_pid"
    grep -q '^1\.\.[1-9]' "$T/store.$1" && ! grep -q '^not ok' "$T/store.$1"
    result $? "PyTorch $1: the store ($(grep -c '^ok' "$T/store.$1") results)" ||
        note "$(grep -A2 '^not ok' "$T/store.$1" | head -20; grep -v '^frame' "$T/store.$1.err" | tail -5)"
    kill -TERM "$store_pid"; elrun_pid=$store_pid; finish
}
train_with() { # VERSION PYTHON
    D=$T/train.$1; mkdir "$D"
    ENV="PYTHON_EXEC=$2" ERR=$D/err run --standalone --nproc-per-node=2 --max-restarts=2 --ckpt-mem=64M --ckpt-busy=wait --ckpt-check=1 \
        "$HERE/matrix_worker.py" train "$D"
    said=$(cat "$D/err")
    is "PyTorch $1: after two failures the job ends with" "$status" 0 || note "$(tail -15 "$D/err")"
    is "PyTorch $1: a training that goes on is one that never stopped" "$(grep -hv '^ok ' "$D"/result.* 2>&1)" ""
    is "... after which both ranks have compared so many things" "$(for r in 0 1; do grep -c '^ok .*torch.save' "$D/result.$r"; done | tr '\n' ' ')" \
        "$(n=$(grep -c '^ok rank 0, attempt 2.*torch.save' "$D/result.0"); [ "$n" -ge 9 ] && echo "$((2 * n)) $((2 * n)) ")"
    is "... and the end" "$(cat "$D"/result.* | grep -c '^ok .*the end is that')" 2
    like "PyTorch $1: the words of a rank whose peer is gone are known" "$said" 'rank 0 .* its last output only says that a peer is gone'
    is "... so the cause of each restart is the rank that failed by itself" \
        "$(sed -n 's/^elrun: \(rank [0-9]*\) failed: \([^(,]*\).*/\1, \2/p' "$D/err" | sed 's/ *$//')" \
        "rank 1, ValueError: the true cause
rank 1, signal 9"
}
fail_with() { # VERSION PYTHON
    for kind in all_reduce recv objects monitored time-out time-out-group time-out-init; do
        ENV="PYTHON_EXEC=$2" run --standalone --nproc-per-node=2 "$HERE/matrix_worker.py" "$kind" -
        like "PyTorch $1, $kind: the rank that raised is named" "$(cause_of "$ERR")" 'rank 1 failed: ValueError: the true cause'
    done
}

for version in $TORCH_ALWAYS ${LONG:+$TORCH_LONG}; do
    if python=$(python_with_torch "$version"); then
        note "PyTorch $version: $(torch_of "$python")"
        store_begins "$version" "$python"
        train_with "$version" "$python"
        [ -z "$LONG" ] || fail_with "$version" "$python"
        for test in found emergency; do
            ok "PyTorch $version: client/test_$test" env PYTHONPATH="$HERE/../../src/client" "$python" "$HERE/../client/test_$test.py"
        done
        store_ends "$version"
        is_clean "PyTorch $version"
    else absent "PyTorch $version" "no python has it: PY_TORCH_$(echo "$version" | tr . _) may name one"; fi
done

# --- Python: by its own interpreter, without torch
for version in $PYTHONS; do
    if python=$(python_of "$version"); then
        D=$T/python.$version; mkdir "$D"
        ok "Python $version: the package compiles" env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$D/cache" \
            "$python" -W error -m compileall -q "$HERE/../../src/client/elrun"
        ENV="PYTHON_EXEC=$python PYTHONWARNINGS=error" ERR=$D/err run --standalone --nproc-per-node=2 --max-restarts=2 --ckpt-mem=16M --ckpt-busy=wait \
            --ckpt-check=1 "$HERE/matrix_plain.py" "$D"
        is "Python $version: exit status" "$status" 0 || note "$(tail -15 "$D/err")"
        is "Python $version: what was declared comes back" "$(cat "$D"/result.* 2>&1)" "rank 0: step 2, all the same
rank 1: step 2, all the same"
        ok "Python $version: the package outside of elrun" env PYTHONPATH="$HERE/../../src/client" "$python" "$HERE/matrix_plain.py" outside
    elif [ -n "$LONG" ]; then absent "Python $version" "no such interpreter: PY_$(echo "$version" | tr . _) may name one"
    else note "Python $version: no such interpreter here"; fi
done
is_clean "Python"
finished
