# The store under real PyTorch: its servers' answers byte by byte, every method of its client, process groups, and its own
# torchrun agents.  Fails against a build whose COMPARE_SET, BARRIER or CANCEL_WAIT is taken out of session.c.
. "$(dirname "$0")/../lib/e2e.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch' 2>/dev/null || skip_all "this python3 has no torch: $PY"
TORCHRUN=$(dirname "$PY")/torchrun
[ -x "$TORCHRUN" ] || TORCHRUN="$PY -m torch.distributed.run"
export OMP_NUM_THREADS=1

# open_store NAME: a store on a free port, in $port
open_store() {
    rm -f "$T/port"
    ERR=$T/store.$1 start store --port 0 --port-file "$T/port" -v --wait-report 0
    wait_for test -s "$T/port" || { note "$(cat "$T/store.$1")"; return 1; }
    port=$(cat "$T/port")
}
close_store() { kill -TERM "$elrun_pid"; finish; is "$1: SIGTERM ends the store with" "$status" 0; }
# tap NAME FILE: one result for a program that speaks TAP itself, with what it complains about
tap() {
    grep -q '^1\.\.[1-9]' "$2" && ! grep -q '^not ok' "$2"; result $? "$1 ($(grep -c '^ok' "$2") results)" ||
        note "$(grep -A2 '^not ok' "$2" | head -20; grep -v '^frame' "$2.err" | tail -5)"
}

open_store compare
timeout 300 "$PY" "$HERE/store_compare.py" "127.0.0.1:$port" >"$T/compare" 2>"$T/compare.err"
tap "the answers of both of torch's servers, byte by byte" "$T/compare"
close_store compare
open_store api
timeout 300 "$PY" "$HERE/store_api.py" "127.0.0.1:$port" >"$T/api" 2>"$T/api.err"
tap "every method of torch's client" "$T/api"
close_store api
for world in 1 2 8 32; do
    open_store group$world
    timeout 300 "$PY" "$HERE/store_group.py" "127.0.0.1:$port" $world >"$T/group$world" 2>"$T/group$world.err"
    tap "process groups of $world" "$T/group$world"
    close_store "group of $world"
done

# --- two torchrun agents meet here, train, one is killed and comes again
cat >"$T/steps.py" <<'PYTHON'
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
folder, rank, world = sys.argv[1], dist.get_rank(), dist.get_world_size()
restart = os.environ["TORCHELASTIC_RESTART_COUNT"]
for step in range(10000):
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == world
    if step == 5:
        open(f"{folder}/pid.{os.getppid()}.{rank}.{world}", "w").close()
    stop = torch.tensor([float(os.path.exists(folder + "/stop"))])
    dist.broadcast(stop, 0)
    if stop.item():
        break
    time.sleep(0.02)
open(f"{folder}/done.{rank}.{world}", "w").close()
# Not a barrier: who is through it first and goes may break it for the other one, which torchrun would start again, alone.
while not all(os.path.exists(f"{folder}/done.{r}.{world}") for r in range(world)):
    time.sleep(0.02)
os._exit(0)  # gloo's threads may abort an interpreter that ends
PYTHON
# Shared worker stores are torchrun's default, and with them it does not survive the loss of an agent, whatever store it
# meets in: the survivor does not publish MASTER_ADDR again, and the new agent waits for it (the same with torch's own).
agent() { # NAME: a real torchrun in the background; its pid in $agent_pid
    env E2E_MARK="$T" TMPDIR="$T/tmp" TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 $TORCHRUN --nnodes=2 --nproc-per-node=1 --max-restarts=3 --rdzv-backend=c10d --rdzv-id=job \
        --rdzv-endpoint="127.0.0.1:$port" --rdzv-conf=is_host=0,join_timeout=120,last_call_timeout=1 "$T/steps.py" "$T/work" >"$T/agent.$1" 2>&1 &
    agent_pid=$!
}
trained_by() { files "$T/work/pid.$1.*.2" 1; }
mkdir "$T/work"
open_store torchrun
agent a; a=$agent_pid
agent b; b=$agent_pid
if ok "two torchrun agents meet in the store" wait_for trained_by "$a" && ok "and the other one too" wait_for trained_by "$b"; then
    # The worker of rank 0 hosts the store of the workers: the other one dies.
    [ -e "$T/work/pid.$b.1.2" ] || { agent_pid=$a; a=$b; b=$agent_pid; }
    kill -KILL "$b"; wait "$b" 2>/dev/null
    for p in $(grep -lzsx "E2E_MARK=$T" /proc/[0-9]*/environ | sed 's/[^0-9]*\([0-9]*\).*/\1/'); do
        # torchrun's workers outlive a killed agent: they are what a user would have to kill by hand
        case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in *steps.py*work*) [ "$(sed -n 's/^PPid:.//p' "/proc/$p/status" 2>/dev/null)" != "$a" ] && [ "$p" != "$a" ] && kill -KILL "$p" ;; esac
    done
    agent c; c=$agent_pid
    ok "a new agent takes the place of the killed one" wait_for trained_by "$c"
    touch "$T/work/stop"
    wait_for ended "$a"; wait "$a"; is "the survivor ends well" $? 0
    wait_for ended "$c"; wait "$c"; is "and so does the new one" $? 0
    ok "both ranks have trained to the end" files "$T/work/done.*.2" 2
else
    note "$(tail -5 "$T"/agent.?)"
fi
close_store torchrun
unlike "nobody was refused" "$(cat "$T/store.torchrun")" "warning"
wait_for no_leftovers
is "no process is left" "$(leftovers | tr '\n' ' ')" ""
finished
