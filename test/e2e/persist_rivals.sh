# A command that was given twice: two jobs of several nodes, each with its own coordinator, that have one run id and one
# directory.  Whoever comes second with a step is told, and what the other one wrote stays; later, when it is alone, it
# goes on.  Seen to fail: a build that looks at the run id only.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/coordinator.sh"
PY=${PY:-python3}
R=$T/ckpt

job() { # NAME PERSIST
    D=$T/$1; mkdir -p "$D"
    for i in 0 1; do
        OUT=$T/out.$i ERR=$D/err.$i ENV="PYTHON_EXEC=$PY"
        start --nnodes=2 --nproc-per-node=1 --rdzv-endpoint=127.0.0.1:$port --rdzv-id=same --ckpt-mem=64M \
            --ckpt-dir="$R" --node-rank=$i "$HERE/persist_worker.py" "$D" "$R" gate 5 "$2"
        eval "$1_$i=$elrun_pid"
    done
}
at() { wait_for files "$T/$1/at.*" 2; touch "$T/$1/go"; }
ends() { # NAME STATUS
    for i in 0 1; do
        eval "elrun_pid=\$$1_$i"; finish
        is "$1: node $i ends" "$status" "$2" || note "$(tail -8 "$T/$1/err.$i")"
    done
}
list() { "$ELRUN" ckpt ls "$R" --json | "$PY" -c '
import json, sys
for x in json.load(sys.stdin)["checkpoints"]:
    print(x["step"], x["state"], *sorted(x["flags"]))'; }

serve; first=$coordinator; job first 2
serve; job second 4
wait_for files "$T/first/at.*" 2; wait_for files "$T/second/at.*" 2 # both began when the directory was empty
at first; ends first 0
at second; ends second 74
is "two at the same time: the second one's step is not written among the first one's" "$(list)" "2 valid latest"
like "and it is said why" "$(cat "$T/store")" \
    "step 4 is not on disk: .*another job that runs now has the run id same, too, and has written $R/step-000000002: end one of them"
kill -KILL "$first"; wait "$first" 2>/dev/null; killed

serve; rm -r "$T/second"; job second 4
at second; ends second 0
is "one after the other: it goes on from there" "$(sed -n 's/^0 0 \([0-9]*\) .*/\1/p' "$T/second/log.0") $(list)" "2 2 valid
4 valid latest"
killed
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
