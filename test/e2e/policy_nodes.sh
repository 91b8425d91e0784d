# --restart-policy with several nodes: the coordinator decides when the round is closed; a node whose worker's last output
# make its hardware suspect is set aside if there are enough others.  Real Python, without torch.
# Seen to fail: a build whose nodes send no DIGEST (member.c); one that sets nobody aside (round.c).
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
ENV="PYTHON_EXEC=$PY PYTHONNOUSERSITE=1"

# script NAME: its text from stdin, behind lines that leave $T/NAME.ATTEMPT.RANK with the host's name in it and define
# meet(), which waits until all ranks are there, and last().
script() {
    { cat <<END
import os, socket, sys, time
rank, attempt, world = (int(os.environ[n]) for n in ("RANK", "TORCHELASTIC_RESTART_COUNT", "WORLD_SIZE"))
host = socket.gethostname()
def path(r): return "$T/$1.%d.%d" % (attempt, r)
with open(path(rank) + "~", "w") as f: f.write(host)
os.rename(path(rank) + "~", path(rank))
def meet():
    while not all(os.path.exists(path(r)) for r in range(world)): time.sleep(0.005)
def last():
    while not os.path.exists("$T/$1.go"): time.sleep(0.01)
    sys.exit(0)
END
    cat <&3; } 3<&0 >"$T/try_$1.py"
}
# nodes NAME NNODES COUNT OPTIONS...: agents n1, n2, ... of a new job
nodes() {
    NAME=$1; nodes_n=$2 nodes_count=$3; shift 3
    for i in $(seq "$nodes_count"); do
        ERR=$T/n$i.err OUT=$T/n$i.out PREFIX="nsenter -t $(pid_of "$i") -n -m -u --wdns=/"
        start --nnodes="$nodes_n" --rdzv-endpoint=node1 --rdzv-id="$NAME" --node-rank=$((i - 1)) --settle=0.3 \
            --log-dir="$T/logs.$i" --redirects=3 "$@" "$T/try_$NAME.py"
        PREFIX=
        eval "agent_n$i=$elrun_pid"
    done
}
hosts() { for f in "$T/$NAME.$1".[0-9]; do cat "$f"; echo; done | tr '\n' ' '; } # ATTEMPT: in the order of ranks
attempts() { ls "$T" | sed -n "s/^$NAME\.\([0-9]*\)\.[0-9]*\$/\1/p" | sort -nu | tr '\n' ' '; }
there() { [ "$(ls "$T" | grep -c "^$NAME\.$1\.[0-9]*\$")" = "$2" ]; } # ATTEMPT COUNT
all_say() { [ "$(grep -lE -- "$1" "$T"/n[123].err 2>/dev/null | wc -l)" -ge "$2" ]; } # REGEX COUNT
# ends TEXT COUNT STATUS
ends() {
    ends_got=
    for i in $(seq "$2"); do status_of "n$i"; ends_got="$ends_got $status"; done
    is "$1" "${ends_got# }" "$(for i in $(seq "$2"); do echo "$3"; done | tr '\n' ' ' | sed 's/ $//')" ||
        for i in $(seq "$2"); do note "--- n$i"; note "$(tail -15 "$T/n$i.err")"; done
}

script aside <<'END'
meet()
if host == "node2" and not attempt:
    print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr)
    sys.exit(1)
last()
END
nodes aside 2:3 3 --max-restarts=2 --on-text-suspect=act --hook="node-bad=echo \$ELRUN_NODE: \$ELRUN_TEXT >>$T/bad"
wait_for there 1 2
is "a hardware suspect is set aside: who goes on" "$(hosts 1)" "node1 node3 "
wait_for on 1 sh -c "'$ELRUN' status --endpoint node1:29400 | grep -q 'set aside.*node2'"
shown=$(on 1 "$ELRUN" status --endpoint node1:29400 2>&1)
like "a hardware suspect is set aside: status has it" "$shown" '^  set aside +node2 until the job ends \(.*uncorrectable ECC error'
like "a hardware suspect is set aside: and the node's row" "$shown" ' node2 +set aside '
like "a hardware suspect is set aside: the coordinator's log" "$(err n1)" 'node2 is set aside: .*uncorrectable ECC error'
: >"$T/aside.go"
ends "a hardware suspect is set aside: the job succeeds" 3 0
like "a hardware suspect is set aside: the hook node-bad" "$(cat "$T/bad")" '^node2: .*uncorrectable ECC error'
is "a hardware suspect is set aside: once" "$(wc -l <"$T/bad")" 1

script words <<'END'
meet()
if host == "node2" and not attempt:
    print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr)
    sys.exit(1)
last()
END
nodes words 2:3 3 --max-restarts=2 --hook="node-bad=echo \$ELRUN_NODE >>$T/bad.words"
wait_for there 1 3
is "only words make the hardware suspect: the host stays" "$(hosts 1)" "node1 node2 node3 "
: >"$T/words.go"
ends "only words: the job succeeds" 3 0
like "only words: that is said, with what checks it" "$(err n1)" "only the program's words say so, and the host stays in use .*elrun probe"
ok "only words: the hook node-bad is not fired" test ! -e "$T/bad.words"

script stays <<'END'
meet()
if host == "node2" and not attempt:
    print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr)
    sys.exit(1)
last()
END
nodes stays 3 3 --max-restarts=2 --on-text-suspect=act
wait_for there 1 3
is "where all are needed it stays, with its rank" "$(hosts 1)" "node1 node2 node3 "
like "where all are needed: and that is said" "$(err n1)" 'node2 stays, since too few others are here, but its hardware is suspect: .*ECC'
: >"$T/stays.go"
ends "where all are needed: the job succeeds" 3 0

script import <<'END'
meet()
import no_such_module_anywhere
END
nodes import 2 2 --max-restarts=3 --nproc-per-node=2
ends "import error everywhere: status" 2 1
is "import error everywhere: one attempt" "$(attempts)" "0 "
ok "import error everywhere: each node says why" all_say 'no restart: ModuleNotFoundError at try_import\.py:[0-9]+ .*--restart-policy=always' 2

script both <<'END'
meet()
if rank == attempt:
    raise ValueError("the same, here and there")
last()
END
nodes both 2 2 --max-restarts=9
ends "the same ValueError on one node and on the other: status" 2 1
is "the same ValueError on one node and on the other: two attempts" "$(attempts)" "0 1 "
ok "the same ValueError on one node and on the other: why" all_say 'no restart: two rounds in a row ended so: ValueError at try_both\.py' 2

script alone <<'END'
meet()
if rank == 1 and attempt < 3:
    raise ValueError("of this node, perhaps of its data")
time.sleep(0 if attempt == 3 else 100)
END
nodes alone 2 2 --max-restarts=3
ends "the same ValueError on one node only: tried again" 2 0
is "the same ValueError on one node only: attempts" "$(attempts)" "0 1 2 3 "

script never <<'END'
meet()
if rank == 1:
    sys.exit(7)
last()
END
nodes never 2 2 --max-restarts=3 --restart-policy=never
ends "never: the worker's status" 2 7
is "never: one attempt" "$(attempts)" "0 "
is_clean "policy of several nodes"
finished
