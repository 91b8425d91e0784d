#!/bin/sh
# What a worker is given, environment and command, is the same under torchrun and under elrun, but for the differences
# that spec and manual name.  Both launchers start the same workers, which record what they got; then the records are
# compared.  Seen to fail against a build whose table lacks TORCHELASTIC_SIGNALS_TO_HANDLE, and one without the template.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if ! "$PY" -c 'import torch' 2>/dev/null; then
    echo "1..0 # SKIP no PyTorch to compare with"
    exit 0
fi

mkdir -p "$dir/pkg"
# Records environment, command and flags under OUT; fails once if told so, to be started again.
cat > "$dir/pkg/dump.py" <<'END'
import json, os, sys, time
out, attempt = os.environ["OUT"], os.environ["TORCHELASTIC_RESTART_COUNT"]
path = os.path.join(out, "%s-%s" % (attempt, os.environ["RANK"]))
with open(path + ".new", "w") as f:
    json.dump({"env": dict(os.environ), "argv": sys.argv[1:], "command": sys.orig_argv[1:]}, f)
os.rename(path + ".new", path)
if "--fail-once" in sys.argv and attempt == "0":
    for _ in range(3000):  # the first to fail ends the others: all must have written
        if len([n for n in os.listdir(out) if not n.endswith(".new")]) == int(os.environ["WORLD_SIZE"]):
            break
        time.sleep(0.01)
    sys.exit(3)
END

# Prints a line for each difference that is not one of the named ones.
cat > "$dir/same.py" <<'END'
import json, os, re, sys
torchrun, elrun = sys.argv[1:]
# Another place, another id, another store: same name, another value.
DIFFER = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE",
          "OUT"}
ELRUN_ONLY = {"PYTHONFAULTHANDLER", "ELRUN_ROUND", "ELRUN_WORLD_SIZE_FIRST", "ELRUN_WORLD_SIZE_PREVIOUS", "ELRUN_SOCK"}
FOLDER = re.compile(r"/[^:]*/elrun-[^/:]{6}/py(?=:|$)")  # in front, so that every worker can import elrun
TORCHRUN_ONLY = {"ELRUN_SECRET"}
if sorted(os.listdir(torchrun)) != sorted(os.listdir(elrun)):
    print("workers:", sorted(os.listdir(torchrun)), sorted(os.listdir(elrun)))
if not os.listdir(torchrun):
    print("torchrun started no worker")
for who in sorted(set(os.listdir(torchrun)) & set(os.listdir(elrun))):
    a, b = (json.load(open(os.path.join(d, who))) for d in (torchrun, elrun))
    for key in ("argv", "command"):
        if a[key] != b[key]:
            print(who, key, a[key], b[key])
    a, b = a["env"], b["env"]
    for name in sorted(set(a) | set(b)):
        if name == "PYTHONPATH" and FOLDER.match(b.get(name, "")):
            b[name] = FOLDER.sub("", b[name]).lstrip(":")
            a.setdefault(name, "")
        if name in ELRUN_ONLY and name in b and (name not in a or a[name] != b[name]):
            continue
        if name in TORCHRUN_ONLY and name not in b or name in DIFFER and name in a and name in b:
            continue
        if a.get(name) != b.get(name):
            print(who, name, "torchrun:", a.get(name), "elrun:", b.get(name))
END

n=0
# same WHAT VARIABLES OPTIONS: runs both with `env -i` and these variables, and compares.
same() {
    what=$1 variables=$2
    shift 2
    n=$((n + 1))
    for launcher in torchrun elrun; do
        mkdir -p "$dir/$n/$launcher"
        if [ $launcher = torchrun ]; then set -- "$PY" -m torch.distributed.run "$@"; else shift 3; set -- "$ELRUN" "$@"; fi
        # shellcheck disable=SC2086
        (cd "$dir" && env -i PATH="$PATH" HOME="$dir" LC_ALL=C.UTF-8 TMPDIR="$dir" PYTHON_EXEC="$PY" \
            OUT="$dir/$n/$launcher" $variables timeout 120 "$@") > "$dir/log" 2>&1
        echo $? > "$dir/$n.$launcher"
    done
    difference=$("$PY" "$dir/same.py" "$dir/$n/torchrun" "$dir/$n/elrun" 2>&1)
    if [ -z "$difference" ] && [ "$(cat "$dir/$n.torchrun")" = 0 ] && [ "$(cat "$dir/$n.elrun")" = 0 ]; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        printf '%s\nstatus: torchrun %s, elrun %s\n' "$difference" "$(cat "$dir/$n.torchrun")" "$(cat "$dir/$n.elrun")" |
            sed 's/^/# /'
        tail -5 "$dir/log" | sed 's/^/# log: /'
    fi
}

# The words in single quotes are for the launchers' template, not for this shell.
# shellcheck disable=SC2016
same "two workers, nothing set, started again once, templates in the arguments" "" \
    --nproc-per-node=2 --max-restarts=2 --role=trainer pkg/dump.py --fail-once '--file=$local_rank/${local_rank}.txt' \
    '$$HOME $HOME ${x} $' --nproc-per-node=7 '' 'a b'
same "what is inherited stays: threads, devices, NCCL's choice, names that look alike" \
    "PYTHONPATH=/somewhere:/else OMP_NUM_THREADS= CUDA_VISIBLE_DEVICES=3,4 TORCH_NCCL_ASYNC_ERROR_HANDLING=3 RANK=9 RANKS=9 ELRUN_SECRET=x FOO=" \
    --nproc-per-node=2 --standalone --signals-to-handle=SIGTERM,SIGUSR2 -m pkg.dump --x
same "each worker sees one device of the list as its own" "CUDA_VISIBLE_DEVICES=5,GPU-6" \
    --nproc-per-node=2 --virtual-local-rank pkg/dump.py
echo "1..$n"
