# What a worker finds when it starts: environment, arguments, group and session, signals, descriptors.
# Seen to fail: a build that keeps the signal mask, leaves SIGPIPE ignored, does not close descriptors, or makes no session (spawn_io.c).
. "$(dirname "$0")/../lib/e2e.sh"

run_workers 2 --max-restarts=3 --role=trainer -- record "$T/w"
is "two workers: exit status" "$status" 0
for r in 0 1; do
    w=$T/w.0.$r
    for row in RANK=$r LOCAL_RANK=$r GROUP_RANK=0 GROUP_WORLD_SIZE=1 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 ROLE_NAME=trainer \
        ROLE_RANK=$r ROLE_WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=3 OMP_NUM_THREADS=1 \
        TORCH_NCCL_ASYNC_ERROR_HANDLING=1 PYTHONFAULTHANDLER=1 TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT \
        ELRUN_WORLD_SIZE_FIRST=2 ELRUN_WORLD_SIZE_PREVIOUS=2; do
        is "worker $r: ${row%%=*}" "$(envof "$w" "${row%%=*}")" "${row#*=}"
    done
    like "worker $r: MASTER_ADDR" "$(envof "$w" MASTER_ADDR)" '^[0-9A-Za-z.:-]+$'
    like "worker $r: MASTER_PORT" "$(envof "$w" MASTER_PORT)" '^[1-9][0-9]*$'
    like "worker $r: TORCHELASTIC_RUN_ID" "$(envof "$w" TORCHELASTIC_RUN_ID)" '^[0-9a-f-]{36}$'
    like "worker $r: TORCHELASTIC_USE_AGENT_STORE in Python's spelling" "$(envof "$w" TORCHELASTIC_USE_AGENT_STORE)" '^(True|False)$'
    like "worker $r: TORCHELASTIC_ERROR_FILE" "$(envof "$w" TORCHELASTIC_ERROR_FILE)" "/attempt_0/$r/error.json\$"
    like "worker $r: ELRUN_ROUND" "$(envof "$w" ELRUN_ROUND)" '^[0-9]+\.[0-9a-f]{16}$'
    is "worker $r leads its group" "$(field "$w" pgid)" "$(field "$w" pid)"
    is "worker $r leads its session" "$(field "$w" sid)" "$(field "$w" pid)"
    is "worker $r is a child of elrun" "$(field "$w" ppid)" "$elrun_pid"
    is "worker $r: no signal is blocked" "$(sed -n 's/^status SigBlk:[^0-9a-f]*//p' "$w")" 0000000000000000
    # Signals 32 and up are the C library's: env cannot set them right.
    is "worker $r: no signal is ignored" "$((0x$(sed -n 's/^status SigIgn:[^0-9a-f]*//p' "$w") & 0x7fffffff))" 0
    is "worker $r has the standard streams and nothing else" "$(sed -n 's/^fd \([0-9]*\) .*/\1/p' "$w" | sort -n | tr '\n' ' ')" "0 1 2 "
    is "worker $r: oom_score_adj is as it was" "$(field "$w" oom)" "$(cat /proc/self/oom_score_adj)"
done
is "both workers meet at one port" "$(envof "$T/w.0.0" MASTER_PORT)" "$(envof "$T/w.0.1" MASTER_PORT)"
is_clean "two workers"

# What the user has set wins where torchrun lets it win.
ENV="OMP_NUM_THREADS=5 TORCH_NCCL_ASYNC_ERROR_HANDLING=3 PYTHONFAULTHANDLER=0 RANK=77 MASTER_PORT=1 KEPT=as-it-was"
run_workers 2 -- record "$T/set"
is "set by the user: OMP_NUM_THREADS stays" "$(envof "$T/set.0.1" OMP_NUM_THREADS)" 5
is "set by the user: TORCH_NCCL_ASYNC_ERROR_HANDLING stays" "$(envof "$T/set.0.1" TORCH_NCCL_ASYNC_ERROR_HANDLING)" 3
is "set by the user: PYTHONFAULTHANDLER stays" "$(envof "$T/set.0.1" PYTHONFAULTHANDLER)" 0
is "set by the user: RANK is replaced" "$(envof "$T/set.0.1" RANK)" 1
is "inherited: a variable of the user's" "$(envof "$T/set.0.1" KEPT)" as-it-was
is "no variable twice" "$(sed -n 's/^env \([^=]*\)=.*/\1/p' "$T/set.0.1" | sort | uniq -d)" ""
ENV=
run_workers 1 -- record "$T/one"
is "one worker: OMP_NUM_THREADS is left alone" "$(envof "$T/one.0.0" OMP_NUM_THREADS)" "${OMP_NUM_THREADS:-(unset)}"

# stdin: local rank 0 has elrun's, the others the null device.
printf 'for rank 0\n' >"$T/in"; IN=$T/in
run_workers 2 -- stdin "$T/stdin"
IN=/dev/null
is "stdin of rank 0" "$(cat "$T/stdin.0.0")" "for rank 0"
is "stdin of rank 1" "$(cat "$T/stdin.0.1")" ""

# Arguments: torchrun's template; what follows the script is the script's, also what looks like an option.
run_workers 2 -- touch "$T/m\${local_rank}" touch "$T/d\$\${local_rank}" @0 touch "$T/\$other"
ok "\${local_rank} in an argument" test -e "$T/m0.0.0" -a -e "$T/m1.0.1"
ok "\$\$ is a dollar" test -e "$T/d\${local_rank}.0.0"
ok "another name stays as it is" test -e "$T/\$other.0.0"

cat >"$T/python" <<'PYTHON'
#!/bin/sh
for a; do printf '%s|' "$a"; done >"$SAID"
PYTHON
chmod +x "$T/python"
: >"$T/train.py"
ENV="PYTHON_EXEC=$T/python SAID=$T/said"
run --standalone "$T/train.py" --r=16 --nproc-per-node 9 -- -x
is "a script's own options reach the script" "$(cat "$T/said")" "-u|$T/train.py|--r=16|--nproc-per-node|9|--|-x|"
run --standalone -- "$T/train.py" --x
is "-- before the script is dropped" "$(cat "$T/said")" "-u|$T/train.py|--x|"
run --standalone -m pkg.mod --x=1
is "-m" "$(cat "$T/said")" "-u|-m|pkg.mod|--x=1|"
run --standalone --run-path "$T/train.py" a
is "--run-path" "$(cat "$T/said")" "-u|$T/train.py|a|"
mkdir "$T/venv" "$T/venv/bin" "$T/path"
sed 's/>"\$SAID"/>"$SAID.venv"/' "$T/python" >"$T/venv/bin/python3"
sed 's/>"\$SAID"/>"$SAID.path"/' "$T/python" >"$T/path/python3"
chmod +x "$T/venv/bin/python3" "$T/path/python3"; cp "$T/venv/bin/python3" "$T/venv/bin/python"

ENV= PREFIX="env -u PYTHON_EXEC SAID=$T/said VIRTUAL_ENV=$T/venv PATH=$T/path:$PATH"
run --standalone "$T/train.py"
ok "the active virtual environment's python is used" test -e "$T/said.venv"
PREFIX="env -u PYTHON_EXEC -u VIRTUAL_ENV SAID=$T/said PATH=$T/path:$PATH"
run --standalone "$T/train.py"
ok "else python3 on PATH" test -e "$T/said.path"
PREFIX=

# Defaults from the environment, short forms, underscores.
ENV="PET_NPROC_PER_NODE=3 PET_STANDALONE=1 PET_NO_PYTHON=1"
run "$WORKER" touch "$T/pet"
ok "PET_ variables" files "$T/pet.0.*" 3
run --nproc_per_node=1 "$WORKER" touch "$T/petcl"
is "the command line wins over PET_" "$(ls -d "$T"/petcl.* | wc -l)" 1
ENV=
run --standalone --nproc 2 --no_python "$WORKER" touch "$T/short"
ok "a short form of torchrun's" files "$T/short.0.*" 2
run run --standalone --nproc-per-node 2 --no-python "$WORKER" touch "$T/run"
ok "elrun run …" files "$T/run.0.*" 2
run_workers 2 --virtual-local-rank -- record "$T/virtual"
is "--virtual-local-rank: LOCAL_RANK is 0" "$(envof "$T/virtual.0.1" LOCAL_RANK)" 0
run --nproc-per-node=2 --rdzv-id=job7 --master-addr=127.0.0.2 --master-port=23456 --no-python "$WORKER" record "$T/static"
is "static: MASTER_ADDR" "$(envof "$T/static.0.1" MASTER_ADDR)" 127.0.0.2
is "static: MASTER_PORT" "$(envof "$T/static.0.1" MASTER_PORT)" 23456
is "static: TORCHELASTIC_RUN_ID" "$(envof "$T/static.0.1" TORCHELASTIC_RUN_ID)" job7
is_clean "at the end"
finished
