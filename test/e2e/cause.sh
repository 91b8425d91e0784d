# Who is named as the cause, where it ends more slowly than its victims: failures drawn from kinds x tear-downs x what the victims
# say x nodes (cause.py), with the words of PyTorch 1.13 to 2.14, Gloo, NCCL, UCC, tensorpipe and Horovod.  With LONG=1 200 of them.
# Seen to fail: with `.consequence = 0` in agent_io.c 31 of 40 were wrong.
. "$(dirname "$0")/../lib/e2e.sh"
count=30
[ "$LONG" != 1 ] || count=200
ELRUN=$ELRUN "${PY:-python3}" "$HERE/cause.py" corpus "${SEED:-1}" $count >"$T/corpus" 2>&1
is "every failure was judged" "$(grep -c '^ok\|^wrong' "$T/corpus")" $count
is "of $count failures in which the victims end first nobody else was named" "$(grep '^wrong' "$T/corpus")" ""
grep -v '^ok' "$T/corpus" | head -200
one() { ELRUN=$ELRUN "${PY:-python3}" "$HERE/cause.py" one "$@"; }
like "a rank that raised and cannot end, since a thread of it runs on" "$(one value thread gloo-closed 1 3 2)" "^ok"
like "a rank that lost a connection of its own, before those that lost the rank" "$(one reset finally gloo-closed 1 3 1)" "^ok"
like "... over nodes" "$(one reset finally gloo-closed 2 2 1)" "^ok"
"$ELRUN" --standalone --nproc-per-node=2 --shutdown-timeout=2 "$HERE/cause.py" worker "$T/flag" 1 stay none reset-error >"$T/stay" 2>&1
like "nobody fails by itself: that the wait is one is said" "$(cat "$T/stay")" "rank 0 .* its last output only says that a peer is gone: waiting up to 2 s for the rank that made it so"
like "... and the victim is named in the end" "$(cause_of "$T/stay")" "rank 0 failed: ConnectionResetError"

# Ranks that end with 0 while the others still work: nobody failed by itself, and who left is named.
cat >"$T/left.py" <<'END'
import os, sys, time
rank = int(os.environ["RANK"])
time.sleep(0.3 if rank == 1 else 0.9)
if rank != 1:
    raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:9927")
END
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/left.py" >"$T/left" 2>&1
like "a rank had left with 0: the cause names it, and when" "$(cause_of "$T/left")" "Connection closed by peer.*; rank 1 had ended with 0, 0\.[4-9] s before"
like "... and what to do" "$(cat "$T/left")" "^  advice: a rank that ends early leaves the others"
sed 's/time.sleep(.*/time.sleep(1.2 if rank == 1 else 0.4)/' "$T/left.py" >"$T/left2.py"
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/left2.py" >"$T/left2" 2>&1
like "a rank leaves with 0 only after the others died of it: it is named" "$(cause_of "$T/left2")" "Connection closed by peer.*; rank 1 ended with 0, [01]\.[0-9] s after"
sed 's/time.sleep(.*/time.sleep({2: 0.7, 3: 1.4}.get(rank, 0.4))/; s/rank != 1/rank != 3/' "$T/left.py" >"$T/left3.py"
port=$("${PY:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for i in 0 1; do
    "$ELRUN" --nnodes=2 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=left --nproc-per-node=2 --shutdown-timeout=2 \
        "$T/left3.py" >"$T/left3.$i" 2>&1 &
done
wait
like "... also where a rank on another node failed first" "$(cat "$T/left3.0")" "failed: .*Connection closed by peer.*; rank 3 ended with 0, [0-9.]* s after"
cat >"$T/last.py" <<'END'
import os, time
time.sleep(6.5 if os.environ["RANK"] == "2" else 0.2)
END
"$ELRUN" --standalone --nproc-per-node=3 "$T/last.py" >"$T/last" 2>&1
is "all but one have ended: whom the job waits for is said once" "$(grep -v OMP_NUM_THREADS "$T/last")" "elrun: rank 2 of 3 is still running; the others have ended"

# Gloo's barrier that names who did not come: that rank lives, and waits for something.
cat >"$T/barrier.py" <<'END'
import os, sys, time
rank = int(os.environ["RANK"])
time.sleep(30 if rank == 2 else 0.3)
raise RuntimeError("[Rank 0]: Rank 2 failed to pass monitoredBarrier in 2000 ms\n Original exception: \n"
                   "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 2000ms for recv operation to complete"
                   if rank == 0 else "Rank %d successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                   "from rank 0. Please check rank 0 logs for faulty rank." % rank)
END
"$ELRUN" --standalone --nproc-per-node=4 --shutdown-timeout=2 "$T/barrier.py" >"$T/barrier" 2>&1
is "a barrier's words name who did not come: the status is that of an exception" $? 1
like "... that rank is the cause" "$(cause_of "$T/barrier")" "rank 2 failed: did not come to a barrier, ended by elrun"
like "... who says so" "$(cat "$T/barrier")" "^  because: \[Rank 0\]: Rank 2 failed to pass monitoredBarrier in 2000 ms"
like "... and where it stood" "$(cat "$T/barrier")" "^  at that moment: .*rank 2 asleep in "
port=$("${PY:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for i in 0 1; do
    "$ELRUN" --nnodes=2 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=barrier --nproc-per-node=2 --shutdown-timeout=2 \
        "$T/barrier.py" >"$T/barrier.$i" 2>&1 &
done
wait
like "... on another node: first is who names it" "$(cause_of "$T/barrier.0")" "rank 0 on .* failed: RuntimeError: \[Rank 0\]: Rank 2 failed to pass"
like "... and it is told as no victim" "$(cat "$T/barrier.0")" "^  rank 2 did not come, by these words"

# PyTorch's Gloo at init_process_group: the key that is waited for in vain is that of the rank that did not come.
cat >"$T/absent.py" <<'END'
import os, time
rank = int(os.environ["RANK"])
time.sleep(30 if rank == 2 else 0.3)
class DistStoreError(RuntimeError):
    pass
DistStoreError.__module__ = "torch.distributed"
raise DistStoreError("wait timeout after 4000ms, keys: /default_pg/0//cpu//0/2")
END
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/absent.py" >"$T/absent" 2>&1
is "an address is missing in the store: the status is that of an exception" $? 1
like "... whose it is is the cause" "$(cause_of "$T/absent")" "rank 2 failed: did not come to the rendezvous, ended by elrun"
like "... by whose words" "$(cat "$T/absent")" "^  because: rank [01]: wait timeout after 4000ms, keys: /default_pg/0//cpu//0/2"
like "... and where it stood" "$(cat "$T/absent")" "^  at that moment: .*rank 2 asleep in "
port=$("${PY:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for i in 0 1; do
    "$ELRUN" --nnodes=2 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=absent --nproc-per-node=$((2 - i)) --shutdown-timeout=2 \
        "$T/absent.py" >"$T/absent.$i" 2>&1 &
done
wait
like "... on another node it is told who did not come" "$(cat "$T/absent.0")" "^  rank 2 did not come, by these words|rank 2 on .* failed: did not come to the rendezvous"

# A rank that sleeps, while the time of the others' collective runs out, or their connection to one whose time ran out.
cat >"$T/asleep.py" <<'END'
import os, time
rank = int(os.environ["RANK"])
time.sleep(60 if str(rank) in os.environ["ASLEEP"] else (0.3, 0.5, 0, 0.8)[rank])
at = "[/pytorch/third_party/gloo/gloo/transport/tcp/"
raise RuntimeError(at + "pair.cc:553] Connection closed by peer [127.0.0.1]:2192" if rank == 0 else
                   at + "unbound_buffer.cc:78] Timed out waiting 6000ms for %s operation to complete" % ("recv" if rank == 1 else "send"))
END
ASLEEP=2 "$ELRUN" --standalone --nproc-per-node=4 --shutdown-timeout=2 "$T/asleep.py" >"$T/asleep" 2>&1
is "a collective's time ran out: the status is that of an exception" $? 1
like "... who said nothing is the cause" "$(cause_of "$T/asleep")" "rank 2 failed: did not take part in a collective, ended by elrun \\(SIGTERM\\)"
like "... whose time ran out" "$(cat "$T/asleep")" "^  because: rank 1: .*Timed out waiting 6000ms for recv"
like "... and where it stood" "$(cat "$T/asleep")" "^  at that moment: .*rank 2 asleep in "
sed 's/(0.3, 0.5, 0, 0.8)/(1.6, 0.2, 0, 1.6)/' "$T/asleep.py" >"$T/late.py"
ASLEEP=2 "$ELRUN" --standalone --nproc-per-node=4 --shutdown-timeout=2 "$T/late.py" >"$T/late" 2>&1
like "... that the others wait for such a one is said" "$(cat "$T/late")" "rank 1 .* its last output only says that it waited for a peer in vain: waiting up to 2 s"
like "... the others ended of it, each by its own words" "$(cat "$T/asleep")" \
    "^  3 others ended because of it: ranks 0 \\(.*closed by peer\\), 1 \\(.*for recv operation.*\\), 3 \\(.*for send operation.*\\)$"
ASLEEP=2,3 "$ELRUN" --standalone --nproc-per-node=4 --shutdown-timeout=2 "$T/asleep.py" >"$T/asleep2" 2>&1
like "... two said nothing: one of them may have come late, and wait" "$(cause_of "$T/asleep2")" \
    "rank 2 failed: came late to a collective, or not at all, ended by elrun"
like "... both are told" "$(cat "$T/asleep2")" "^  1 other failed in the same way: rank 3$"
cat >"$T/meeting.py" <<'END'
import os, time
def init_process_group():
    raise RuntimeError("Socket Timeout")
time.sleep(60 if os.environ["RANK"] == "1" else 0.3)
init_process_group()
END
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/meeting.py" >"$T/meeting" 2>&1
like "PyTorch 1.13 says no key: who said nothing did not come to the rendezvous" "$(cause_of "$T/meeting")" \
    "rank 1 failed: did not come to the rendezvous, ended by elrun"
for ranks in 2 2,3 2alone; do
    port=$("${PY:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for i in 0 1; do
        nproc=2
        [ $ranks$i != 2alone1 ] || nproc=1
        ASLEEP=$ranks "$ELRUN" --nnodes=2 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=asleep --nproc-per-node=$nproc \
            --shutdown-timeout=2 --log-dir="$T/logs$i" "$T/asleep.py" >"$T/asleep$ranks.$i" 2>&1 &
    done
    wait
done
like "... over nodes: beside one whose time ran out" "$(cause_of "$T/asleep2.0")" "rank 2 on .* failed: did not take part in a collective"
unlike "... nobody contradicts that" "$(cat "$T/asleep2.0")" "by themselves|no rank failed by itself"
like "... two on another node: first is whose time ran out" "$(cause_of "$T/asleep2,3.0")" "rank 1 on .* failed: RuntimeError: .*Timed out waiting"
like "... and they are told as no victims" "$(cat "$T/asleep2,3.0")" "^  ranks 2-3 said nothing of a time-out, and had to be stopped by elrun: look there"
like "... they do not count" "$(cat "$T/asleep2,3.0")" "^  by class: network 1, hang 1$"
like "... one alone on another node" "$(cause_of "$T/asleep2alone.0")" "rank 2 on .* failed: did not take part in a collective, ended by elrun"
like "... whose time ran out" "$(cat "$T/asleep2alone.0")" "^  because: rank 1: .*Timed out waiting 6000ms for recv"
like "... where it stood" "$(cat "$T/asleep2alone.0")" "^  at that moment: rank 2 asleep in "
like "... the others ended of it" "$(cat "$T/asleep2alone.0")" "^  2 others ended because of it: ranks 1 \\(.*for recv operation.*\\), 0 \\(.*closed by peer\\)$"

# An exception that was logged and survived decides nothing: not what is named, and not whether it is tried again.
cat >"$T/survived.py" <<'END'
import logging, os, sys, time
if os.environ["RANK"] != "1":
    time.sleep(20)
logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
try:
    {}["metric"]
except KeyError:
    logging.exception("evaluation failed")
for i in range(12):
    logging.info("step %d", i)
sys.exit("no data is left")
END
"$ELRUN" --standalone --nproc-per-node=2 --max-restarts=1 "$T/survived.py" >"$T/survived" 2>&1
like "the cause is what was said at the end" "$(cause_of "$T/survived")" "rank 1 failed: exit code 1; its last line: no data is left"
like "... the survived one is told beside it" "$(cat "$T/survived")" "^  an earlier error, after which it went on: KeyError: 'metric' \(survived\.py:6\)"
like "... and it is tried again" "$(cat "$T/survived")" "^elrun: restart 1 of 1"

# One that every rank printed and survived explains neither what ends one of them, nor why the others are stopped.
cat >"$T/caught.py" <<'END'
import ctypes, os, sys, time, traceback
rank, how = os.environ["RANK"], sys.argv[1]
try:
    raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
except RuntimeError:
    traceback.print_exc()
if how == "hardware":
    print("falling back to cpu", file=sys.stderr, flush=True)
time.sleep(0.6 if how == "hardware" else 1.2)
if rank == "1":
    if how == "segv":
        ctypes.string_at(0)
    if how == "exit":
        sys.exit(3)
    raise ConnectionResetError(104, "Connection reset by peer")
time.sleep(30)
END
caught() { "$ELRUN" --standalone --nproc-per-node=2 --shutdown-timeout=2 --exit-code=class --on-text-suspect=act "$T/caught.py" "$@" >"$T/caught" 2>&1; echo $?; }
is "a connection is lost after that: no host is suspected" "$(caught reset)" 75
like "... who lost it is named" "$(cause_of "$T/caught")" "rank 1 failed: ConnectionResetError"
like "... the other one is only one that elrun stopped" "$(cat "$T/caught")" "^  1 other ended because of it: rank 0 \(stopped by elrun\)"
is "... soon after, where it is said that the program goes on" "$(caught hardware)" 75
like "... who lost it is named" "$(cause_of "$T/caught")" "rank 1 failed: ConnectionResetError"
caught segv >"$T/status"
like "a crash has its own words" "$(cause_of "$T/caught")" "rank 1 failed: signal 11 \(SIGSEGV\): Fatal Python error: Segmentation fault \(caught\.py:12\)"
caught exit >"$T/status"
like "a status of the program's own is not explained by it" "$(cause_of "$T/caught")" "rank 1 failed: exit code 3; it had printed: RuntimeError: CUDA error"
unlike "... and nobody else failed" "$(cat "$T/caught")" "failed too"
# A rank raises, and clears up for a while; another one notices, and gives up without a word of what it saw.
cat >"$T/gives_up.py" <<'END'
import atexit, os, sys, time, traceback
rank, how = int(os.environ["RANK"]), sys.argv[1]
if rank == 1:
    if how == "goes-on":
        try:
            {}["labels"]
        except KeyError:
            traceback.print_exc()
        while True:
            time.sleep(0.05)
            print("step", file=sys.stderr, flush=True)
    atexit.register(time.sleep, 1.2)
    {}["labels"]
time.sleep(0.5)
sys.exit("training failed, see the other ranks" if how == "words" else 1)
END
for how in silent words goes-on; do
    "$ELRUN" --standalone --nproc-per-node=2 "$T/gives_up.py" $how >"$T/gives_up.$how" 2>&1
    is "a rank gives up ($how): the status" $? 1
done
like "... who had raised before, and ended by it, is the cause" "$(cause_of "$T/gives_up.silent")" "rank 1 failed: KeyError: 'labels' \\(gives_up.py:"
like "... that it is waited for is said" "$(cat "$T/gives_up.silent")" "rank 0 .* failed with exit code 1, but rank 1 had raised KeyError: 'labels' .* before: waiting up to 5 s for its end"
like "... also where the other one has words" "$(cause_of "$T/gives_up.words")" "rank 1 failed: KeyError: 'labels' \\(gives_up.py:"
like "... which are told" "$(cat "$T/gives_up.words")" "^  rank 0 failed too: exit code 1; its last line: training failed, see the other ranks"
like "... but not a rank that goes on" "$(cause_of "$T/gives_up.goes-on")" "rank 0 failed: exit code 1"
unlike "... nobody waits for it" "$(cat "$T/gives_up.goes-on")" "waiting up to"
port=$("${PY:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for i in 0 1; do
    "$ELRUN" --nnodes=2 --node-rank=$i --rdzv-endpoint=127.0.0.1:$port --rdzv-id=gives --nproc-per-node=1 "$T/gives_up.py" words >"$T/gives_up.$i" 2>&1 &
done
wait
like "... over nodes" "$(cat "$T/gives_up.0")" "rank 1 on .* failed: KeyError: 'labels' \\(gives_up.py:"
like "... the words of the other one" "$(cat "$T/gives_up.0")" "^  rank 0 on .* failed too: exit code 1; its last line: training failed"
like "... and the wait is said there" "$(cat "$T/gives_up.1")" "rank 1 had raised KeyError: 'labels' .* before: waiting up to 5 s for its end"

# Two fail in one instant, and one that has raised does not exit.
cat >"$T/two.py" <<'END'
import atexit, os, signal, sys, threading, time
rank, how = int(os.environ["RANK"]), sys.argv[1]
if rank == 2 and how == "both":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    atexit.register(time.sleep, 0.6)
if rank == 1 and how == "stays":
    threading.Thread(target=time.sleep, args=(60,)).start()
time.sleep({1: 0.3, 2: 0.1}.get(rank, 20) if how == "both" or rank == 1 else 0.8)
if rank in (1, 2) and how == "both" or rank == 1:
    raise ValueError("of rank %d" % rank)
raise RuntimeError("[/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1")
END
"$ELRUN" --standalone --nproc-per-node=4 "$T/two.py" both >"$T/both" 2>&1
like "a rank raises, and another one had before, whose end elrun's signal only met" "$(cause_of "$T/both")" "rank 2 failed: ValueError: of rank 2"
like "... the later one is no victim" "$(cat "$T/both")" "^  rank 1 failed too: ValueError: of rank 1"
"$ELRUN" --standalone --nproc-per-node=3 --shutdown-timeout=2 "$T/two.py" stays >"$T/stays" 2>&1
is "a rank that raised and does not exit: the status of its exception" $? 1
like "... which is what is said" "$(cause_of "$T/stays")" "rank 1 failed: ValueError: of rank 1"
like "... and that elrun ended it" "$(cat "$T/stays")" "did not exit, ended by elrun \(SIGTERM\)"

# A message longer than all that is kept of a stream.
cat >"$T/long.py" <<'END'
class Key(RuntimeError):
    pass
raise Key("first line\n\tMissing: " + ", ".join("layer.%06d" % i for i in range(30000)))
END
for how in "" "--redirects=3 --log-dir=$T/long-logs" "--tee=3 --log-dir=$T/long-logs"; do
    "$ELRUN" --standalone $how "$T/long.py" >"$T/long" 2>&1
    like "a message of 400 KB ($how)" "$(cause_of "$T/long")" "failed: Key: first line \(long\.py:3\)\$"
done
is_clean "cause"
finished
