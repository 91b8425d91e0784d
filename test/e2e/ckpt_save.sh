# elrun ckpt status and elrun ckpt save: what people see of a running job's snapshots, and that they can have the newest on
# disk when they want it.
# Seen to fail: a build whose save answers before the step is a checkpoint ("it is valid by then"); one that takes a step
# which one rank has not committed ("of two ranks one"); an elrun status that asks no agents ("of one node"), or all of them ("need not
# say again"); an agent that looks at its own memory alone ("all of it lies").
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
PY=${PY:-python3}

begin() { # NAME ELRUN-OPTIONS...: two workers, each at a step when FOLDER/go.STEP.RANK is there
    D=$T/$1; mkdir -p "$D"; R=$D/ckpt; ID=save-$$-$1; shift
    ENV="PYTHON_EXEC=$PY" start --rdzv-id="$ID" --nproc-per-node=2 --ckpt-mem=64M "$@" "$HERE/ckpt_save_worker.py" "$D"
}
step() { touch "$D/go.$1.0" "$D/go.$1.1"; wait_for files "$D/held.$1.*" 2; }
over() { touch "$D/end"; finish; }
ON=
ckpt() { verb=$1; shift; $ON "$ELRUN" ckpt "$verb" --run-id="$ID" "$@" >"$T/said" 2>"$T/why"; rc=$?; }
seen() { ckpt status; holds "$T/said" "$1"; }
row() { ckpt status --json; "$PY" -c '
import json, sys
job, = json.load(open(sys.argv[1]))["jobs"]
print(*(job[k] for k in sys.argv[2].split()), *(tuple(r[k] for k in sys.argv[3].split()) for r in job["ranks"]))' "$T/said" "$1" "$2"; }

begin one --ckpt-dir="$T/one/ckpt"
wait_for seen '^ +1 +- '
is "nothing is held: none in memory, none on disk" "$(row "step age_ms disk_step writing failed" "rank step")" "-1 -1 -1 -1 -1 (0, -1) (1, -1)"
ckpt save
is "nothing to save: exit status" "$rc" 3
like "nothing to save: one line" "$(cat "$T/why")" '^elrun: (error: )?nothing is in memory yet'

step 1
is "a step is held by all" "$(row "step disk_step workers" "rank step here live_step")" "1 -1 2 (0, 1, True, 1) (1, 1, True, 1)"
ckpt save
is "save: exit status" "$rc" 0
is "it is valid by then" "$("$ELRUN" ckpt verify --deep "$R/step-000000001" >/dev/null 2>&1; echo $?)" 0
like "it says step, bytes, seconds and place" "$(cat "$T/said")" "^step 1 is on disk: 2\.[0-9]* MB in [0-9.]* s, $R/step-000000001\$"
is "no more than that" "$(cat "$T/why" | wc -c)" 0
ckpt save
is "again: it is there" "$rc $(cat "$T/said" | cut -c1-17)" "0 step 1 is on disk"
is "status has it" "$(row "step disk_step writing failed" rank)" "1 1 -1 -1 (0,) (1,)"
like "for people, with its age" "$(ckpt status; cat "$T/said")" '^  disk +step 1, [0-9.a-z ]+ old$'
like "and each rank" "$(cat "$T/said")" '^ +1 +1 +[0-9.]+ m?s  .*committed 1.* stable, after step 1$'

touch "$D/go.2.0"; wait_for files "$D/held.2.0" 1
is "of two ranks one has the next step: the last whole one counts" "$(row step "rank step")" "1 (0, 2) (1, 1)"
ckpt save
is "and a save of it has nothing to do" "$rc $(ls -d "$R"/step-* | wc -l)" "0 1"
step 2; ckpt save --json
is "save --json" "$rc $("$PY" -c 'import json, sys; x = json.load(sys.stdin); print(x["status"], x["disk_step"])' <"$T/said")" "0 0 2"
over
is "the job is none the worse for it" "$status" 0
is_clean one
ckpt status
is "it has ended: exit status" "$rc" 69
like "it has ended: one line" "$(cat "$T/why")" "^elrun: (error: )?no job $ID of this user with snapshots \(--ckpt-mem, --ckpt-dir\) runs here\$"

begin fails --ckpt-dir="$T/fails/ckpt"
step 1
rm -rf "$R"; touch "$R"
ckpt save
is "no directory any more: exit status" "$rc" 73
like "no directory any more: why" "$(cat "$T/why")" '^elrun: (error: )?step 1 is not on disk: '
like "status has it, too" "$(ckpt status; cat "$T/said")" '^  failed +step 1: '
over
is "the job goes on all the same" "$status" 0

begin memory
step 1
ckpt save
is "without --ckpt-dir: exit status" "$rc" 4
like "without --ckpt-dir: why" "$(cat "$T/why")" '^elrun: (error: )?snapshots of this job stay in memory: it was started without --ckpt-dir$'
like "status says so" "$(ckpt status; cat "$T/said")" '^  disk +not written: no --ckpt-dir was given$'
over

net_up 2
D=$T/off ID=off-$$; mkdir "$D"
PREFIX="nsenter -t $(pid_of 1) -n -m -u --wdns=/" ENV="PYTHON_EXEC=$PY" start --rdzv-id="$ID" --nnodes=1:2 --rdzv-endpoint=node1 --settle=0.3 --boundary-wait=5 \
    --nproc-per-node=1 "$HERE/ckpt_save_worker.py" "$D"
ON="on 1"
wait_for seen 'snapshots'
like "only boundaries: snapshots are off, plainly" "$(ckpt status; cat "$T/said")" '^  snapshots +off: neither --ckpt-mem nor --ckpt-dir was given$'
ckpt save
is "only boundaries: save" "$rc $(cut -c1-80 "$T/why")" "4 elrun: snapshots are off: this job was started without --ckpt-mem and --ckpt-dir"
over

# --- elrun status: what a coordinator does not know, the agents of the host do
begin_in() { # NAME ELRUN-OPTIONS...: on the first host
    PREFIX="nsenter -t $(pid_of 1) -n -m -u --wdns=/"; begin "$@"; PREFIX=
}
overview() { $ON "$ELRUN" status $AT >"$T/overview" 2>"$T/why"; rc=$?; holds "$T/overview" "$1"; }
AT=
overview job
is "no job: nobody is there" "$rc $(cut -c1-58 "$T/why")" "69 elrun: coordinator at 127.0.0.1:29400: Connection refused"
begin_in alone
step 1
ok "a job of one node: its agent says how old the newest step is" overview '^  memory +step 1, [0-9.a-z ]+ old$'
like "and whose it is" "$(cat "$T/overview")" "^job $ID, node 0: "
AT=--rdzv-id=other
overview job
is "another job's is not shown" "$rc $(wc -c <"$T/overview")" "69 0"
over
AT=--endpoint=node1
begin_in memory_led --nnodes=1:2 --rdzv-endpoint=node1 --settle=0.3
step 1
ok "led, with --ckpt-mem alone: below what the coordinator says" overview '^  memory +step 1, [0-9.a-z ]+ old$'
like "which comes first" "$(head -1 "$T/overview")" "^job $ID: running"
over

# --- two nodes: one of them is asked, all of it is saved
D=$T/two R=$T/two/ckpt MODE=; mkdir "$D"
job 2 --nproc-per-node=1 --ckpt-mem=64M --ckpt-dir="$R"
ID=job$job_n
two() { OUT=$T/$1.out ERR=$T/$1.err PREFIX="nsenter -t $(pid_of "$2") -n -m -u --wdns=/" ENV="PYTHON_EXEC=$PY" start $JOB "$HERE/ckpt_save_worker.py" "$D" $MODE; eval "agent_$1=$elrun_pid"; }
two a 1; two b 2
step 1
touch "$D/go.2.0"; wait_for files "$D/held.2.0" 1 # which one of the nodes has not reached
ckpt save
is "two nodes: exit status" "$rc" 0
like "two nodes: it is what all of them have: bytes, seconds, where" "$(cat "$T/said")" "^step 1 is on disk: 2\.[0-9]* MB in [0-9.]* s, $R/step-000000001\$"
ckpt save
is "two nodes: again: it is there" "$rc $(cut -c1-17 "$T/said") $(ls -d "$R"/step-* | wc -l)" "0 step 1 is on disk 1"
is "two nodes: both ranks are in it" "$("$ELRUN" ckpt ls "$R/step-000000001" --json | "$PY" -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][0]["world"])')" 2
ok "elrun status has both, with their ages" wait_for overview '^  snapshots +step 1 in memory, [0-9.a-z ]+ old; step 1 on disk, [0-9.a-z ]+ old$'
unlike "which its agent need not say again" "$(cat "$T/overview")" '^  memory '
touch "$D/end"
status_of a; is "two nodes: the job is none the worse for it" "$status" 0
status_of b

# A directory for each node; one of them cannot be written to at first.
D=$T/each R=$T/each/ckpt; mkdir "$D"
job 2 --nproc-per-node=1 --ckpt-mem=64M --ckpt-store=local
ID=job$job_n base=$JOB
JOB="$base --ckpt-dir=$R.1"; two c 1
JOB="$base --ckpt-dir=$R.2"; two d 2
step 1
mv "$R.2" "$R.gone"; : >"$R.2"
ckpt save
is "each its own: of one it is not on disk: exit status" "$rc" 73
like "each its own: of one it is not on disk: why" "$(cat "$T/why")" '^elrun: (error: )?step 1 is not on disk: node2: '
rm "$R.2"; mv "$R.gone" "$R.2"
ckpt save --json
is "each its own: the same step once more, when it can be" "$rc $("$PY" -c 'import json, sys; x = json.load(sys.stdin); print(x["status"], x["disk_step"])' <"$T/said")" "0 0 1"
valid() { for i in 1 2; do "$ELRUN" ckpt verify --deep "$R.$i" >"$T/verify" 2>&1; echo $?; done | tr '\n' ' '; }
is "each its own: both are whole" "$(valid)" "0 0 "
touch "$D/end"
status_of c; is "each its own: the job is none the worse for it" "$status" 0
status_of d

# What the script has shared with a rank lies in no slot of its node: the agent that is asked has nothing, and the job has.
D=$T/lies R=$T/lies/ckpt MODE=share; mkdir "$D"
job 2 --nproc-per-node=1 --ckpt-mem=64M --ckpt-dir="$R" --emergency-timeout=0 --max-restarts=3
ID=job$job_n
two e 1; two f 2
ON="on 2"
wait_for files "$D/back.0.*" 2
ckpt save
is "nothing to save on any node" "$rc $(cat "$T/why")" "3 elrun: no step is in memory that all nodes together hold"
step 1
kill -KILL "$agent_f"; status_of f
two f 2
wait_for files "$D/back.1.*" 2
is "all of it lies on another node: this one has nothing" "$(row "step" "rank step")" "-1 (1, -1)"
ckpt save
is "all of it lies on another node: it is saved" "$rc $(cut -c1-17 "$T/said") $(cat "$T/why")" "0 step 1 is on disk "
touch "$D/end"
status_of e; is "all of it lies on another node: the job is none the worse for it" "$status" 0
status_of f
ON= MODE=

"$ELRUN" ckpt save extra >"$T/said" 2>"$T/why"; is "an operand: exit status" $? 2
"$ELRUN" ckpt status --deep >"$T/said" 2>"$T/why"; is "another verb's option: exit status" $? 2
finished
