# The worked examples with real PyTorch: FSDP2, whose ranks go back bit for bit after a kill; a plain module, which goes on
# from disk in a later job; and a training that shrinks at
# a step boundary when a node leaves: every step is made once, and the other node goes on from its memory.
# Seen to fail: an example that counted its steps behind ck.update(), where the last step of a round does not come to.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
: "${PY:?a python3 with torch}"
"$PY" -c 'import torch' 2>/dev/null || skip_all "this python3 has no torch: $PY"
net_up 2
EX=$HERE/../../examples
result_of() { sed -n 's/^result \([^ ]*\) .*/\1/p' "$OUT"; }

train() { ENV="PYTHON_EXEC=$PY MARK=$T STEPS=8 PAUSE=0" start --standalone --nproc-per-node=2 --max-restarts=3 --restart-policy=always --ckpt-mem=64M --ckpt-dir="$T/fsdp" "$EX/snapshots_fsdp2.py"; }
train
finish
want=$(result_of)
is "FSDP2 without faults: exit status" "$status" 0
like "and a result" "$want" '^-?0x1\.[0-9a-f]+p'
rm -f "$T"/step.*
# A pipe that nobody reads holds the rank at step 4, so that the job is never over before the kill.
mkfifo "$T/step.1.4"
train
wait_for test -s "$T/step.1.3" && kill -KILL "$(tail -n 1 "$T/step.1.3")"
exec 8<>"$T/step.1.4"
finish
is "a rank is killed: exit status" "$status" 0
is "the same result, bit for bit" "$(result_of)" "$want"
like "it went back to what was in memory" "$(cat "$ERR")" 'going back to step [34]'
"$ELRUN" ckpt verify --deep "$T/fsdp" >"$T/verify" 2>&1
is "its emergency checkpoint: pieces of DTensors, and beside them scalars that each rank has" "$? $(grep -c ': valid ' "$T/verify")" "0 1" || note "$(cat "$T/verify")"

# --- a plain module: the job ends half-way, and the next one goes on from disk
plain() { # STEPS
    rm -f "$T"/step.*
    ENV="PYTHON_EXEC=$PY MARK=$T STEPS=$1 PAUSE=0" run --standalone --ckpt-mem=64M --ckpt-dir="$T/plain" --ckpt-busy=wait "$EX/snapshots_plain.py"
}
plain 20
is "a plain module: exit status" "$status" 0
want=$(result_of)
rm -rf "$T/plain"
plain 10
is "half of it" "$("$ELRUN" ckpt ls "$T/plain" --json | grep -o '"step": *9,' | tr -d ' ')" '"step":9,'
plain 20
is "the other half begins behind it" "$(ls "$T"/step.0.* | wc -l)" 10
is "the same result, bit for bit" "$(result_of)" "$want"

# --- two nodes, one leaves
job 1:2 --boundary-wait=100 --nproc-per-node=1 --ckpt-mem=64M
elastic() { # NAME HOST
    name=$1 host=$2
    OUT=$T/$name.out ERR=$T/$name.err PREFIX="nsenter -t $(pid_of "$host") -n -m -u --wdns=/"
    ENV="PYTHON_EXEC=$PY MARK=$T STEPS=100000 PAUSE=0.05 GLOO_SOCKET_IFNAME=eth0"
    start $JOB "$EX/elastic.py"
    ENV= PREFIX=
    eval "agent_$name=$elrun_pid"
}
made_by() { [ "$(grep -c " $1\$" "$T/steps")" -ge "$2" ]; } # WORLD COUNT
elastic a 1; elastic b 2
ok "two nodes train" wait_for made_by 2 5
like "each accumulates half" "$(cat "$T"/[ab].out)" '2 ranks, 3 micro batches each'
kill -TERM "$(pid b)"
status_of b
is "the node that leaves: exit status" "$status" 143
ok "the other one trains on" wait_for made_by 1 5
like "from its memory, and with the global batch" "$(cat "$T/a.out")" '1 ranks, 6 micro batches each, from step [1-9]'
is "every step was made once" "$(awk 'NR > 1 && $1 != last + 1 { print last " then " $1 } { last = $1 }' "$T/steps")" ""
unlike "no restart is charged" "$(err a)" 'one restart'
kill -TERM "$(pid a)"
status_of a
wait_for no_leftovers
is "no process is left" "$(leftovers)" ""
finished
