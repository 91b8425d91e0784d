# elrun probe with --backend=nccl, or auto, over several hosts with made-up GPUs and a stand-in for NCCL that moves the bytes over the
# hosts' network (test/mock/mock.h): GPU i meets GPU i, and whoever is wrong is named: a node, one rail of it, or versions.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/net.sh"
net_up 3
MOCK_DIR=$BUILD/test/mock
printf '{"gpu_foreign": 10000}\n' >"$T/easy.json"

# gpus HOST N: from now on the host has N GPUs
gpus() {
    on "$1" umount /proc/driver 2>/dev/null
    on "$1" mount -t tmpfs none /proc/driver || exit 99
    for gpu in $(seq 0 $(($2 - 1))); do
        gpu_dir=/proc/driver/nvidia/gpus/0000:1$gpu:00.0
        on "$1" mkdir -p $gpu_dir
        printf 'Model: \t\t Mock\nGPU UUID: \t GPU-%s\nDevice Minor: \t %s\n' "$gpu" $((90 + gpu)) | on "$1" sh -c "cat >$gpu_dir/information"
    done
    eval "gpus_$1=$2"
}
# All hosts measure the same, whatever else this machine does: nobody is slow.
EQUAL="cudaEventElapsedTime:value=10"
rules() { eval "rules_$1=\$2"; }       # HOST MOCK-RULES: until the next probe has ended
version() { eval "version_$1=\$2"; }   # HOST NCCL-VERSION: likewise
probe_n=0 backend=nccl
# probe N OPTIONS...: of the hosts 1 to N; statuses in $statuses, the coordinator's object in $T/a1.out
probe() {
    probe_n=$((probe_n + 1))
    probe_hosts=$1; shift
    for i in $(seq "$probe_hosts"); do
        OUT=$T/a$i.out ERR=$T/a$i.err
        PREFIX="nsenter -t $(pid_of "$i") -n -m -u --wdns=/"
        export LD_LIBRARY_PATH="$MOCK_DIR"
        eval "export MOCK=\"\$EQUAL \$rules_$i\" MOCK_GPUS=\"\$gpus_$i\" MOCK_NCCL=\"\$version_$i\""
        start probe --nnodes="$probe_hosts" --rdzv-endpoint=node1 --rdzv-id=g$probe_n --backend=$backend --checks=gpu --quick --json \
            --limits="$T/easy.json" --nccl-lib="$MOCK_DIR/site/nvidia/nccl/lib/libnccl.so.2" \
            --cuda-lib="$MOCK_DIR/site/nvidia/cuda_runtime/lib/libcudart.so.12" "$@"
        PREFIX=
        unset LD_LIBRARY_PATH
        eval "agent_a$i=$elrun_pid"
    done
    statuses=
    for i in $(seq "$probe_hosts"); do status_of "a$i"; statuses="$statuses$i:$status "; rules "$i" ""; version "$i" ""; done
    statuses=${statuses% }
}
json() { "${PY:-python3}" -c 'import json,sys; d = json.load(open(sys.argv[1])); s = {n["name"]: n["state"] for n in d["nodes"]}; print('"$1"')' "$T/a1.out" 2>&1; }
states() { json '" ".join(f"{k}:{v}" for k, v in sorted(s.items()))'; }
told() { # NAME STATUSES STATES
    is "$1" "$statuses $(states)" "$2 $3" || for i in $(seq "$probe_hosts"); do note "--- $i"; note "$(tail -12 "$T/a$i.err")"; note "$(head -c 1500 "$T/a$i.out")"; done
}
for i in 1 2 3; do gpus $i 2; done

probe 3
told "three healthy hosts" "1:0 2:0 3:0" "node1:good node2:good node3:good"
is "each GPU has met another of its number" "$(json 'min(v for x in d["rounds"] for r in x["results"] for v in r["metrics"]["bw64m"]) > 0')" True
is "over two rails" "$(json '{len(r["metrics"]["bw64m"]) for x in d["rounds"] for r in x["results"]}')" "{2}"

rules 2 "ncclAllGather:corrupt@30#1"
probe 3
told "one GPU whose data arrives wrong" "1:1 2:1 3:0" "node1:good node2:bad node3:good"
like "its rail is named" "$(json '[n["rails"] for n in d["nodes"] if n["name"] == "node2"]')" "1"
like "and why" "$(cat "$T/a1.out")" "did not arrive as it was"

# On the other rail the other end compares what has come in for three seconds more, when this one is over.
rules 1 "cudaMemcpyAsync:sleep=1500@28#0"
rules 2 "ncclAllGather:corrupt@30#1"
probe 2 --checks=limits
is "the other rail is not stopped with the one that has failed, however slow it is" \
    "$(json '[(r["ok"], r["failed"]) for x in d["rounds"] for r in x["results"]]')" "[([0], [1])]"

rules 3 "ncclAllGather:crash@5#1"
probe 3
told "one GPU whose driver crashes" "1:1 2:0 3:1" "node1:good node2:good node3:bad"

rules 1 "ncclCommInitRankConfig:fork"
probe 2
told "two hosts alone, both well, though a library leaves processes behind" "1:0 2:0" "node1:good node2:good"
is "which are gone with the probe" "$(leftovers)" ""

version 2 22705
probe 2
told "different NCCL versions are nobody's fault" "1:3 2:3" "node1:undecided node2:undecided"
like "but named" "$(json 'd["versions"]')" "2.27.5.*2.28.9|2.28.9.*2.27.5"
like "by NCCL too" "$(cat "$T/a1.out")" "Mismatched NCCL version"

gpus 3 1
probe 3
is "unequal numbers of GPUs: the minority is told" \
    "$(json '[n["name"] for n in d["nodes"] if n["node"] == d["versions"]["gpu_count"][-1]["first"]]')" "['node3']"
unlike "and nobody is bad for it" "$(states)" "node[12]:bad"

gpus 3 0
probe 3
told "one host without GPUs among others" "1:1 2:0 3:1" "node1:good node2:good node3:bad local"

backend=auto
probe 3
told "auto: a host that has lost its GPUs does not hide it" "1:1 2:0 3:1" "node1:good node2:good node3:bad local"
is "auto: the others have met over NCCL" "$(json 'd["backend"], [len(r["metrics"]["bw64m"]) for x in d["rounds"] for r in x["results"]]')" "nccl [2]"
like "auto: it is told why" "$(cat "$T/a3.out")" '"state":"bad".*no GPU is here, but 2 other nodes have some'

is_clean "in the end"
finished
