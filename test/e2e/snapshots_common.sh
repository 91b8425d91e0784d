# There is always a step to go back to.  Ranks whose parts are of different sizes leave out snapshots (--ckpt-busy=skip),
# alone and on several nodes without a directory; they are killed at any moment, and go back to the newest step that all
# had taken.  Seen to fail: with pin_slot() of a slot with the common step ("one node"), common_advance() that finds none
# ("three nodes"), a keeper that takes a step that was left out once for one that never comes ("three nodes, again").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}

log() { cat "$D/log.$1" 2>/dev/null; }
took() { log "$1" | sed -n 's/^took //p'; } # RANK
# The newest step that ranks 0 to N-1 have all taken; 0: none.
newest() {
    for r in $(seq 0 $(($1 - 1))); do took "$r"; done | sort -n | uniq -c | awk -v n="$1" '$1 == n { s = $2 } END { print s + 0 }'
}
shoot() { kill -KILL "$(log "$1" | sed -n 's/^pid //p')"; } # RANK
trained() { [ "$(newest "$1")" -ge "$2" ]; }                # RANKS STEP
# Where all went back to, if that is one step, and what they had in it.
went_back() {
    for r in $(seq 0 $(($1 - 1))); do log "$r" | sed -n 's/^1 //p'; done | sort -u | tr '\n' ';'
}
# judge RANKS NAME: they went back to one step, that which all had taken last.
judge() {
    last=$(newest "$1") back=$(went_back "$1")
    is "$2: all go back to one step, what it was" "$back" "${back%% *} ${back%% *};"
    ok "$2: the newest that all had taken ($last), or a newer one (${back%% *})" [ "${back%% *}" -ge "$last" ]
}

for turn in 1 2 3; do
    for mode in sync apart again; do
        D=$T/one.$mode.$turn; mkdir "$D"
        OUT=$T/out ERR=$D/err ENV="PYTHON_EXEC=$PY"
        start --standalone --nproc-per-node=3 --max-restarts=1 --ckpt-mem=200M "$HERE/snapshots_common_worker.py" "$D" 100000 $mode
        wait_for trained 3 $((4 * turn))
        shoot $((turn % 3)); finish
        is "one node, $mode, turn $turn: status" "$status" 0 || note "$(tail -3 "$ERR")"
        judge 3 "one node, $mode, turn $turn"
    done
done

serve
for turn in 1 2 3 4; do
    mode=sync
    [ $turn -le 2 ] || mode=again
    D=$T/three.$turn; mkdir "$D"
    for i in 0 1 2; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=3 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id="three$turn" --node-rank=$i --max-restarts=1 \
            --ckpt-mem=100M "$HERE/snapshots_common_worker.py" "$D" 100000 $mode
        eval "node_$i=$elrun_pid"
    done
    wait_for trained 3 $((5 * turn))
    shoot $((turn % 3))
    for i in 0 1 2; do
        eval "elrun_pid=\$node_$i"; finish
        is "three nodes, $mode, turn $turn: node $i ends" "$status" 0 || note "$(tail -3 "$D/err.$i")"
    done
    judge 3 "three nodes, $mode, turn $turn"
done
killed
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
