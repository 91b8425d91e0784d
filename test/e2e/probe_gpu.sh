# elrun probe on a host with made-up GPUs (the driver's entries of a private mount namespace) and libraries that stand in for
# NVIDIA's (test/mock/mock.h): what it says of healthy, sick, busy and missing GPUs and libraries.
. "$(dirname "$0")/../lib/e2e.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, for mounts"
MOCK_DIR=$BUILD/test/mock
NCCL=$MOCK_DIR/site/nvidia/nccl/lib/libnccl.so.2
CUDA=$MOCK_DIR/site/nvidia/cuda_runtime/lib/libcudart.so.12
export LD_LIBRARY_PATH="$MOCK_DIR"

cat >"$T/gpus" <<'SCRIPT'
#!/bin/sh
# gpus N COMMAND...: as on a host with N GPUs
mount -t tmpfs none /proc/driver || exit 99
n=0
while [ $n -lt "$1" ]; do
    dir=/proc/driver/nvidia/gpus/0000:1$n:00.0
    mkdir -p $dir
    printf 'Model: \t\t Mock\nGPU UUID: \t GPU-%s\nDevice Minor: \t %s\n' $n $((90 + n)) >$dir/information
    n=$((n + 1))
done
shift
exec "$@"
SCRIPT
chmod +x "$T/gpus"
# begin N MOCK-RULES WORDS...: on a host with N GPUs, in the background; probe the same, to its end
begin() {
    probe_n=$1; export MOCK_GPUS=$1 MOCK="$2"; shift 2
    PREFIX="unshare -m $T/gpus $probe_n"
    start probe --checks=gpu --quick --json --nccl-lib="$NCCL" --cuda-lib="$CUDA" "$@"
}
probe() { begin "$@"; finish; }
json() { "${PY:-python3}" -c 'import json,sys; d = json.load(open(sys.argv[1])); n = d["nodes"][0]; print('"$1"')' "$T/out" 2>&1; }
finding() { json "[(f['state'], f['on'], f['text']) for f in n['findings'] if f['check'] == '$1' and f['state'] != 'ok']"; } # CHECK
numbers() { json "[len(n['metrics'].get(m, [])) for m in ('burn', 'copy_d2d', 'copy_h2d', 'copy_d2h', 'nic_loop')]"; }

# Two that take their time, until the others are done.
OUT=$T/out.still ERR=$T/err.still begin 2 "cuLaunchKernel:hang#1"; still=$elrun_pid
OUT=$T/out.hangs ERR=$T/err.hangs begin 2 "nvmlDeviceGetRemappedRows:hang#1"; hangs=$elrun_pid
OUT=$T/out ERR=$T/err

probe 2 ""
is "two healthy GPUs" "$status $(json "n['state']")" "0 good"
is "each is measured, and one loop joins both" "$(numbers)" "[2, 2, 2, 2, 1]"
is "versions are known" "$(json "n['facts']['nccl'] + ' ' + n['facts']['cuda'] + ' ' + n['facts']['gpu_driver']")" "2.28.9 12.9 580.65.06"
is "and where they lie" "$(json "n['facts']['nccl_path'] + ' ' + n['facts']['cuda_path']")" "$NCCL $CUDA"
export CUDA_VISIBLE_DEVICES=1 MOCK_GPUS=1
probe 2 ""
is "CUDA_VISIBLE_DEVICES leaves one, which has no loop" "$status $(numbers)" "0 [1, 1, 1, 1, 0]"
is "its NCCL is known all the same" "$(json "n['facts']['nccl']")" 2.28.9
unset CUDA_VISIBLE_DEVICES

export MOCK_NVML="ecc=3#1"
probe 2 ""
is "a GPU with memory errors: status 1" "$status $(finding gpu_ecc)" "1 [('bad', 'GPU 1', '')]"
export MOCK_NVML="recovery=2"
probe 1 ""
is "a GPU that wants the host restarted" "$status $(finding gpu_recovery)" "1 [('bad', 'GPU 0', 'restart the host')]"
export MOCK_NVML="processes=1"
probe 1 ""
like "somebody else's program: a warning" "$status $(finding gpu_foreign)" "^0 .*'warn', 'GPU 0', 'pid 4242"
unset MOCK_NVML
probe 2 "" --gpus=3
is "fewer GPUs than there should be" "$status $(finding gpu_count | grep -c bad)" "1 1"
probe 2 "cuLaunchKernel:corrupt#1"
like "a GPU that computes wrongly, not its neighbour" "$status $(finding gpu_burn)" "^1 \\[\\('bad', 'GPU 1', '1 of [0-9]+ threads"
probe 2 "cudaSetDevice:fail=46#1"
like "a GPU that somebody holds in exclusive mode, and what to do" "$status $(finding gpu_usable)" "^1 .*'bad', 'GPU 1', .*end what holds the GPU"
probe 1 "cudaGetDeviceCount:fail=803"
like "libraries that do not fit the driver: nobody's hardware" "$status $(finding gpu_usable)" "^3 .*'undecided', 'GPU 0'"
probe 1 "nvmlInit_v2:fail=18"
is "nor does the management library: status" "$status" 1
probe 2 "ncclAllGather:corrupt@10"
like "a wrong byte in the loop" "$status $(finding gpu_nicloop)" "^1 .*did not arrive as it was"
probe 2 "cuLaunchKernel:crash#1"
like "a driver that crashes, and on which GPU" "$status $(finding crash)" "^3 \\[\\('undecided', 'GPU 1', 'the check was ended by signal 11"
probe 1 "cudaMemcpyAsync:corrupt"
like "a wrong result is one finding, not a crash, too" "$status $(finding gpu_burn) $(finding crash)" "^1 .*'bad', 'GPU 0', .* \\[\\]$"
probe 1 "cuLaunchKernel:fail=999"
like "an error without words has a name and a number" "$(finding gpu_usable)" "burn: cudaErrorUnknown \\(999\\); often a missing"
probe 2 "cuLaunchKernel:garbage"
is "a library that prints garbage to every descriptor" "$status $(numbers)" "0 [2, 2, 2, 2, 1]"
probe 2 "ncclCommInitAll:exit=0"
like "one that ends the program without a word: undecided, and what" "$status $(finding crash)" "^3 .*'the loop through the network cards: the check ended with status 0'"
elrun_pid=$still; finish
cp "$T/out.still" "$T/out"
like "a GPU that does not work is in no loop" "$status $(finding gpu_nicloop)" "^1 .*'unchecked', '', 'a GPU of this node does not work'"
elrun_pid=$hangs; finish
cp "$T/out.hangs" "$T/out"
like "a GPU that hangs the driver is named" "$status $(json "n['findings']")" "^1 .*GPU 1.*did not end"
probe 2 "cuInit:fork cuLaunchKernel:fork@3"
is "one that leaves processes behind" "$status" 0
is "they are gone with the probe" "$(leftovers)" ""
NCCL=$T/none.so
probe 2 ""
like "a library that is not there is named" "$(json "n['findings']")" "no file $T/none.so"
CUDA=$T/none.so
probe 1 ""
like "CUDA that is not there: no job can run here" "$status $(json "n['findings']")" "^1 .*no file $T/none.so"
CUDA=$MOCK_DIR/site/nvidia/cuda_runtime/lib/libcudart.so.12

mkdir "$T/folder"
probe 1 "" --helper-dir="$T/folder"
is "--helper-dir: a file in place of memory, gone afterwards" "$status $(ls -A "$T/folder")" "0 "
probe 1 "" --helper-dir="$T/nowhere"
like "a folder that is not there is named" "$(json "n['findings']")$(cat "$T/err")" "$T/nowhere"
LD_LIBRARY_PATH=$T probe 0 "" --backend=nccl
like "no GPU and no driver where GPUs are wanted" "$status $(finding gpu_nvml)" "^1 .*bad.*libnvidia-ml.so.1"

is_clean "in the end"
finished
