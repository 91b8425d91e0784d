"""Command lines read twice: by torchrun's own parser (of the torch at hand), up to the launch, and by elrun.

The launch itself is replaced by a function that keeps what it was given.  A case is a command line, and variables in
front as NAME=value; where elrun differs on purpose, the case names the fields and says why.
"""
import io
import contextlib
import os
import shlex
import subprocess
import sys

import torch.distributed.run as torchrun

DUMP = sys.argv[1]
PORT = "--master-port=29510 "  # else one node is standalone, and the run id random

SAME = [
    "train.py",
    "train.py --lr 1 -- -m --nnodes=3",
    # Where argparse takes a "--" for its own, and where it is the script's.
    "train.py -- --lr 1", "-- train.py --lr 1", "-- train.py -- --lr 1", "train.py --", "train.py -- --", "train.py a -- b",
    "train.py a -- -- b", "train.py -- a -- b", "train.py --lr -- 1", "-- train.py --lr -- -- 1", "--role=x train.py -- --lr 1",
    "--role=x -- train.py -- --lr 1", "-m package.module -- --lr 1", "--no-python ./program -- --flag", "--nnodes=1 -- train.py",
    "--nproc-per-node=2 --max-restarts=3 train.py",
    "--nproc_per_node 2 --max_restarts 3 train.py a b",
    "-m package.module x",
    "--no-python ./program --flag",
    "--standalone --rdzv-id=mine train.py",
    PORT + "train.py",
    PORT + "--master_addr=10.1.2.3 train.py",
    PORT + "--rdzv-id=job7 train.py",
    "--nnodes=2 --node-rank=1 --master-addr=10.1.2.3 --master-port=1234 train.py",
    "--nnodes=2 train.py",
    "--nnodes=1:4 --rdzv-backend=c10d --rdzv-endpoint=host:29400 --rdzv-id=j train.py",
    "--rdzv_backend=c10d --rdzv_endpoint=host train.py",
    "--rdzv-backend=c10d --rdzv-endpoint=[::1]:29400 train.py",
    "--rdzv-endpoint=host:7 train.py",
    "-r3 -t 0:1,1:3 train.py",
    "-r 1 -t=2 train.py",
    "--redirects=0:3 --tee 3 train.py",
    "--local-ranks-filter=0,2 train.py",
    "--role trainer --log-dir=/dev/null train.py",
    "--role= train.py",
    "--shutdown-timeout=7 train.py",
    "--signals-to-handle=SIGTERM,SIGUSR1 train.py",
    "--virtual-local-rank train.py",
    "--local-addr=10.9.8.7 train.py",
    "--duplicate-stdout-filters=apple,pear --duplicate-stderr-filters=x train.py",
    "--ro r --stan --nn 1 train.py",
    "--monitor-interval=5 --start-method=fork --event-log-handler=null train.py",
    "--rdzv-conf=join_timeout=5,is_host=1 " + PORT + "train.py",
    "--nnodes 1 --nnodes 2 train.py",
    "PET_NPROC_PER_NODE=4 PET_MAX_RESTARTS=2 PET_ROLE=r train.py",
    "PET_NPROC_PER_NODE=4 --nproc-per-node=2 train.py",
    "PET_STANDALONE=1 PET_MODULE=0 train.py",
    "PET_MODULE=1 PET_REDIRECTS=3 PET_TEE=1 PET_LOCAL_RANKS_FILTER=1 train",
    "PET_NNODES=1:2 PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=h:1 PET_RDZV_ID=i train.py",
    "PET_MASTER_ADDR=1.2.3.4 PET_MASTER_PORT=5 PET_NODE_RANK=0 PET_LOCAL_ADDR=me train.py",
    "PET_SHUTDOWN_TIMEOUT=9 PET_SIGNALS_TO_HANDLE=SIGINT PET_VIRTUAL_LOCAL_RANK=1 train.py",
    "PET_NO_PYTHON=1 PET_LOG_DIR=/dev/null PET_RUN_PATH=0 program",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=11 train.py",
    # Refused by both.
    "", "--nnodes", "--nnodes=0 train.py", "--nnodes=2:1 train.py", "--nnodes=1:2:3 train.py", "--nnodes=x train.py",
    "--max-restarts=-1 train.py", "--max-restarts=x train.py",
    "--start-method=thread train.py", "-r 4 train.py", "-r 0:3,x train.py", "--tee= train.py",
    "--local-ranks-filter=x train.py", "-m --no-python train", "--no-such-option train.py", "--standalone=1 train.py",
    "--r 3 train.py", "--no train.py", "--master-port=x train.py", "--node-rank=x train.py", "--numa-binding=x train.py",
    "--rdzv-conf=x train.py", "--logs-specs=mine train.py", "--shutdown-timeout=-1 train.py",
    "PET_STANDALONE=yes train.py", "PET_MAX_RESTARTS=x train.py", "PET_NNODES=abc train.py", "PET_NNODES= train.py",
]
# (command line, fields that differ, why)
DIFFERENT = [
    ("--role a train.py --r=16", "refused", "parsing stops at the script"),
    ("--nproc 2 train.py", "refused", "argparse finds both spellings of one option ambiguous"),
    ("-r 12:3 train.py", "refused", "local ranks of several digits"),
    ("--rdzv-id=job7 train.py", "run_id", "a run id that somebody chose is kept"),
    ("--shutdown-timeout=0.5 train.py", "refused", "fractions of a second"),
    ("--rdzv-conf=join_timout=5 " + PORT + "train.py", "refused", "an unknown key is an error"),
    ("--rdzv-backend=etcd-v2 --rdzv-endpoint=h:1 train.py", "refused", "no etcd"),
    ("--nproc-per-node=0 train.py", "refused", "torchrun finds it later"),
    ("--max-r 2 --sh 3 train.py", "refused", "the same"),
    ("--monitor-interval=0 train.py", "refused", "torchrun finds it later"),
    ("--role=x --run-path /a.py", "entry", "torchrun runs it by runpy"),
]


def read_torchrun(words, variables):
    kept = {}

    def keep(config, entrypoint):
        kept.update(config=config, entrypoint=entrypoint)
        return lambda *args: kept.update(args=args)

    os.environ.update(variables)
    torchrun.elastic_launch = keep
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            torchrun.run(torchrun.parse_args(words))
            return torchrun_fields(kept["config"], kept["entrypoint"], list(kept["args"]))
    except (SystemExit, Exception) as e:  # noqa: BLE001: whatever it says, it refuses
        return {"refused": repr(e)}
    finally:
        for name in [*variables, "TORCHELASTIC_SIGNALS_TO_HANDLE"]:
            os.environ.pop(name, None)


def streams(value):
    if isinstance(value, dict):
        return "".join(f"{rank}:{int(std)}," for rank, std in sorted(value.items()) if int(std))
    return str(int(value))


def endpoint(config):
    host, _, port = config.rdzv_endpoint.rpartition(":")
    if not host and port:
        host, port = port, "-1"
    return f"{host.strip('[]')}:{port or '-1'}"


def torchrun_fields(c, entrypoint, args):
    logs = c.logs_specs
    fields = {"entry": "file"}
    if callable(entrypoint):
        fields["entry"] = "runpy"
    elif args[:1] == ["-u"]:
        args.pop(0)
        if args[0] == "-m":
            fields["entry"] = "module"
            args.pop(0)
    else:
        fields["entry"] = "program"
        args.insert(0, entrypoint)
    fields["script"] = args.pop(0)
    fields.update({f"arg{i}": a for i, a in enumerate(args)})
    random_id = len(c.run_id) == 36 and c.run_id.count("-") == 4
    given_dir = logs.root_log_dir if "torchelastic_" not in (logs.root_log_dir or "") else ""
    shutdown = c.shutdown_timeout if c.shutdown_timeout is not None else os.getenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")
    fields.update(
        min_nodes=str(c.min_nodes), max_nodes=str(c.max_nodes), nproc=str(c.nproc_per_node),
        max_restarts=str(c.max_restarts), role=c.role, backend=c.rdzv_backend,
        run_id="random" if random_id else c.run_id, endpoint=endpoint(c), local_addr=c.local_addr or "",
        log_dir=given_dir or "", redirects=streams(logs._redirects), tee=streams(logs._tee),
        filter="".join(f"{r}," for r in sorted(logs._local_ranks_filter or [])), signals=c.signals_to_handle,
        virtual=str(int(c.virtual_local_rank)), shutdown=f"{float(shutdown):.6f}",
        stdout=filters(c.duplicate_stdout_filters), stderr=filters(c.duplicate_stderr_filters))
    return fields


def filters(value):
    return value if isinstance(value, str) else ",".join(value or [])


def read_elrun(words, variables):
    env = {**os.environ, **variables}
    out = subprocess.run([DUMP, *words], env=env, capture_output=True, text=True, timeout=30, check=True).stdout
    return {name: value for name, _, value in (line.partition(" ") for line in out.splitlines())}


def differences(case):
    words = shlex.split(case)
    variables = {}
    while words and "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    theirs, ours = read_torchrun(words, variables), read_elrun(words, variables)
    if "refused" in theirs or "refused" in ours:
        return {"refused"} if ("refused" in theirs) != ("refused" in ours) else set(), theirs, ours
    return {k for k in theirs.keys() | ours.keys() if theirs.get(k) != ours.get(k)}, theirs, ours


def known_options():
    """(what is wrong or None, option) for each option of torchrun's parser: letter, value, choices, PET_ variable."""
    values = ["7", "c10d", "h:1", "h", "SIGINT", "0:1", "timeout=3", "null", "fork"]
    for action in torchrun.get_args_parser()._actions:
        if not action.option_strings or action.dest == "help":
            continue
        for spelling in action.option_strings:
            if action.nargs == 0:
                good = "refused" not in read_elrun([spelling, "train.py"], {})
            else:
                said = read_elrun([spelling], {}).get("refused", "")
                good = "needs a value" in said
            for choice in action.choices or []:
                good = good and "refused" not in read_elrun([spelling, choice, "train.py"], {})
            yield good, f"{spelling} is known"
        variable = "PET_" + action.dest.upper()
        has_variable = type(action).__name__ in ("env", "check_env")
        if action.dest in ("logs_specs", "start_method", "monitor_interval", "event_log_handler", "rdzv_conf"):
            continue  # nothing of them can be seen
        plain, name, wrong = read_elrun(["train.py"], {}), action.option_strings[-1], 0
        for value in ["1"] if action.nargs == 0 else values:
            typed = read_elrun([name if action.nargs == 0 else f"{name}={value}", "train.py"], {})
            if "refused" in typed:
                continue
            wrong += read_elrun(["train.py"], {variable: value}) != (typed if has_variable else plain)
        yield not wrong, f"{variable} is {'' if has_variable else 'not '}{name}"


def main():
    cases = [(c, "", "") for c in SAME] + DIFFERENT
    bad = 0
    for n, (case, want, why) in enumerate(cases, 1):
        got, theirs, ours = differences(case)
        good = got == set(want.split())
        bad += not good
        print(f"{'' if good else 'not '}ok {n} - {case or 'nothing'}{': ' + why if why else ''}")
        if not good:
            for k in sorted(got | set(want.split())):
                print(f"#  {k}: torchrun {theirs.get(k)!r}, elrun {ours.get(k)!r}")
    for good, what in known_options():
        n += 1
        bad += not good
        print(f"{'' if good else 'not '}ok {n} - {what}")
    print(f"1..{n}")
    return bad != 0


for name in [k for k in os.environ if k.startswith("PET_")]:
    del os.environ[name]
sys.exit(main())
