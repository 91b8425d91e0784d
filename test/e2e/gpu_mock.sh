# The GPU helper against libraries that stand in for NVIDIA's (test/mock/mock.h): what it loads, what it measures, what it
# says about each error, and that no library can keep it beyond its deadlines.
. "$(dirname "$0")/../lib/e2e.sh"
GPU=$BUILD/elrun-gpu
MOCK=$BUILD/test/mock
SITE=$MOCK/site
NVML=$MOCK/libnvidia-ml.so.1

# gpu ENVIRONMENT... -- WORDS...: runs the helper; what it said is in $T/lines, its words for a person in $T/words
gpu() {
    gpu_env=; while [ "$1" != -- ]; do gpu_env="$gpu_env$1
"; shift; done; shift
    gpu_ifs=$IFS; IFS='
'
    env E2E_MARK="$T" $gpu_env "$GPU" "$@" 3>"$T/lines" >"$T/words" 2>&1 </dev/null
    status=$?
    IFS=$gpu_ifs
}
# value OF KEY FILE: of the last line that has the text OF
value() { grep -- "$1" "${3:-$T/lines}" | tail -1 | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
class() { value '"t":"err"' class "$@"; }
check() { value "\"name\":\"$1\"" value; }
all_json() { "$PY" -c 'import json,sys
for line in open(sys.argv[1]): json.loads(line)' "$1"; }

# --- what is loaded -----------------------------------------------------------------------------------------------
gpu -- burn purelib="$SITE" quick=1
is "a node that is well: status" $status 0
is "CUDA is found beside the job's Python" "$(value hello cudart)" "$SITE/nvidia/cuda_runtime/lib/libcudart.so.12"
ok "every line is JSON" all_json "$T/lines"
is "the last line is the end" "$(tail -1 "$T/lines")" '{"t":"end","ok":true}'

two=$T/two/nvidia
mkdir -p "$two/nccl/lib" "$two/cuda_runtime/lib" "$two/cu13/lib" "$T/two/torch/lib"
cp "$SITE/nvidia/nccl/lib/libnccl.so.2" "$T/two/torch/lib/"
cp "$SITE/nvidia/cuda_runtime/lib/libcudart.so.12" "$two/cuda_runtime/lib/"
for d in cuda_runtime cu13; do cp "$SITE/nvidia/cuda_runtime/lib/libcudart.so.12" "$two/$d/lib/libcudart.so.13"; done
gpu MOCK_GPUS=2 -- nicloop purelib="$T/two" quick=1
is "NCCL of torch/lib" "$(value hello nccl)" "$T/two/torch/lib/libnccl.so.2"
is "the CUDA that NCCL was built for goes before a newer one" "$(value hello cudart)" "$two/cuda_runtime/lib/libcudart.so.12"
cp "$SITE/nvidia/nccl/lib/libnccl.so.2" "$two/nccl/lib/"
gpu MOCK_GPUS=2 -- nicloop purelib="$T/two" quick=1
is "nvidia/nccl/lib goes before torch/lib" "$(value hello nccl)" "$two/nccl/lib/libnccl.so.2"
gpu MOCK_GPUS=2 -- nicloop purelib="$T/two" nccl="$SITE/nvidia/nccl/lib/libnccl.so.2" cuda="$two/cu13/lib/libcudart.so.13" quick=1
is "an option goes before all" "$(value hello nccl) $(value hello cudart)" "$SITE/nvidia/nccl/lib/libnccl.so.2 $two/cu13/lib/libcudart.so.13"
gpu -- burn purelib="$T/two" quick=1
is "so it does where NCCL is not opened" "$(value hello cudart)" "$two/cuda_runtime/lib/libcudart.so.12"
rm "$two/cuda_runtime/lib/libcudart.so.12"
gpu -- burn purelib="$T/two" quick=1
is "but any CUDA is better than none" "$(value hello cudart)" "$two/cuda_runtime/lib/libcudart.so.13"
gpu MOCK_GPUS=2 LD_LIBRARY_PATH="$SITE/nvidia/nccl/lib:$SITE/nvidia/cuda_runtime/lib" -- nicloop quick=1
is "the loader's path comes last" "$(value hello nccl)" "$SITE/nvidia/nccl/lib/libnccl.so.2"

gpu MOCK_GPUS=2 LD_LIBRARY_PATH="$SITE/nvidia/nccl/lib:$two/cuda_runtime/lib:$SITE/nvidia/cuda_runtime/lib" -- burn quick=1
is "also where NCCL is not opened" "$(value hello cudart)" "$SITE/nvidia/cuda_runtime/lib/libcudart.so.12"

mkdir "$T/empty"
gpu -- pair purelib="$T/empty"
is "no NCCL" "$status $(class)" "1 missing"
like "says where it looked" "$(cat "$T/lines")" "no NCCL, neither beside $T/empty"
gpu -- burn purelib="$T/empty" cuda="$T/nothing.so"
is "an option that names no file" "$status $(class) $(value err text)" "1 missing no file $T/nothing.so"
head -c 4096 "$NVML" >"$two/nccl/lib/libnccl.so.2"
printf '\267' | dd of="$two/nccl/lib/libnccl.so.2" bs=1 seek=18 conv=notrunc 2>/dev/null # e_machine: aarch64
gpu -- pair purelib="$T/two"
is "NCCL of another processor is not passed over" "$status $(class)" "1 config"
like "and is named" "$(value err text)" "$two/nccl/lib/libnccl.so.2.*processor"
gpu -- pair purelib="$SITE" nccl="$NVML"
is "a library that is none" "$status $(class)" "1 config"
like "says what it lacks" "$(value err text)" "ncclGetVersion"

# --- a GPU by NVML ------------------------------------------------------------------------------------------------
gpu MOCK_GPUS=8 -- nvml nvml="$NVML" expect=8
is "eight healthy GPUs" "$status $(check gpu_count) $(value gpu_count limit)" "0 8 8"
is "each is looked at" "$(grep -c gpu_remap "$T/lines")" 8
is "their driver" "$(value gpu_driver value)" "580.65.06"
nvml() { gpu MOCK_GPUS=2 "MOCK_NVML=$1" -- nvml nvml="$NVML"; }
while read -r rule name want text; do
    nvml "$rule#1"
    is "$rule: $name" "$(grep "\"$name\",\"gpu\":1" "$T/lines" | sed 's/.*"value":\([0-9]*\).*/\1/')" "$want"
    like "$rule: in words" "$(grep "\"$name\",\"gpu\":1" "$T/lines")" "$text"
done <<'END'
remap_failed=1 gpu_remap 1 replaced
remap_pending=1 gpu_remap 1 reset
recovery=2 gpu_recovery 2 restart
ecc=3 gpu_ecc 3 value
links=16 gpu_nvlink 2 16.of.18
link_errors=7 gpu_nvlink_errors 7 value
link_fields=2 gpu_nvlink_errors 8589934594 value
fabric=2 gpu_fabric 0 in.progress
reasons=64 gpu_throttle 64 too.hot
width=8 gpu_pcie 8 .limit.:16
temperature=90 gpu_temperature 90 .limit.:87
processes=2 gpu_foreign 2 4242
used_mib=900 gpu_foreign 1 900.MiB
compute_mode=2 gpu_modes 0 forbids
mig=1 gpu_modes 0 slices
replay=9 gpu_pcie_replay 9 value
END
nvml "vbios=2#1"
is "different firmware in one node" "$(value gpu_vbios value)" mixed
gpu MOCK_GPUS=2 "MOCK=nvmlDeviceGetRemappedRows:fail=3" "MOCK_NVML=retired=12#0 retire_pending=1#1" -- nvml nvml="$NVML"
is "older GPUs: retired pages" "$(grep -c '"gpu_retired"' "$T/lines") $(grep 'gpu_retired","gpu":0' "$T/lines" | grep -c 12)" "2 1"
gpu MOCK_GPUS=2 "MOCK=nvmlDeviceGetUUID:fail=15#1" -- nvml nvml="$NVML"
is "a lost GPU" "$status $(check gpu_lost) $(value gpu_lost text)" "0 1 NVML_ERROR_GPU_IS_LOST"
is "the other is looked at all the same" "$(grep -c gpu_remap "$T/lines")" 1
gpu "MOCK=nvmlDeviceGetTemperature:fail=3" -- nvml nvml="$NVML"
is "what a GPU does not tell" "$(value gpu_temperature state)" unchecked
gpu MOCK_GPUS=2 "MOCK=nvmlDeviceGetRemappedRows:hang#1" -- nvml nvml="$NVML" step_ms=1500
is "a GPU that hangs is named" "$status $(class) $(value err stage)" "124 timeout GPU 1"
is "what the first one said is kept" "$(grep -c 'gpu_modes","gpu":0' "$T/lines")" 1
gpu -- nvml nvml="$T/none.so"
is "no library and none expected" "$status $(value gpu_nvml state)" "0 unchecked"
gpu -- nvml nvml="$T/none.so" expect=8
is "no library and GPUs expected" "$status $(class) $(check gpu_nvml)" "1 missing 0"

# --- burn and copies ----------------------------------------------------------------------------------------------
gpu -- burn purelib="$SITE" nvml="$NVML" quick=1
is "the burn's result is right" "$(check gpu_burn)" 1
is "metrics" "$(grep -c '"t":"m"' "$T/lines")" 5
is "clock under load" "$(value gpu_clock median)" 1980
gpu "MOCK=cuLaunchKernel:corrupt@3" -- burn purelib="$SITE" nvml="$NVML" quick=1
is "one wrong bit in one thread" "$status $(check gpu_burn) $(tail -1 "$T/lines")" '1 0 {"t":"end","ok":false}'
gpu "MOCK_NVML=reasons=8 generation=3 xid=79" -- burn purelib="$SITE" nvml="$NVML" quick=1
is "slowed down, PCIe and Xid under load" "$(check gpu_throttle) $(check gpu_pcie_generation) $(value gpu_xid text)" "8 3 Xid 79"
for lie in 0 -1 100000000; do
    gpu "MOCK=cudaEventElapsedTime:value=$lie" -- burn purelib="$SITE" quick=1
    is "event times that cannot be true ($lie us)" "$status $(class)" "1 driver"
done

# --- every error has a meaning ------------------------------------------------------------------------------------
while read -r code want; do
    gpu "MOCK=cudaGetDeviceCount:fail=$code" -- burn purelib="$SITE"
    is "CUDA $code means $want" "$status $(class)" "1 $want"
    [ "$code" = 35 ] && is "its name" "$(value err name)" cudaErrorInsufficientDriver
    unlike "CUDA $code has advice" "$(value err advice)" "^$"
done <<'END'
2 busy
34 config
35 mismatch
46 busy
100 missing
101 missing
214 hardware
304 system
802 fabric
803 mismatch
804 mismatch
999 driver
4711 internal
END
gpu MOCK_DRIVER=0 -- burn purelib="$SITE"
is "no driver at all" "$status $(class) $(value err text)" "1 missing there is no NVIDIA driver here"
gpu MOCK_GPUS=2 -- burn gpu=2 purelib="$SITE"
is "fewer GPUs than processes" "$status $(class) $(value err text)" "1 missing GPU 2 is wanted and only 2 are visible"
gpu "MOCK=cudaSetDevice:fail=46#1" MOCK_GPUS=2 -- burn gpu=1 purelib="$SITE"
is "exclusive mode, held by another" "$status $(class) $(value err name)" "1 busy cudaErrorDevicesUnavailable"
gpu MOCK_MEM=0 -- burn purelib="$SITE"
is "GPU memory that is taken" "$status $(class)" "1 busy"
while read -r code want; do
    gpu "MOCK=nvmlInit_v2:fail=$code" -- nvml nvml="$NVML"
    is "NVML $code means $want" "$status $(class)" "1 $want"
done <<'END'
4 config
9 driver
12 missing
15 hardware
17 system
18 mismatch
999 driver
END
gpu NCCL_SOCKET_IFNAME=nosuch0 -- pair purelib="$SITE"
is "an interface that is not there" "$status $(class) $(value err name)" "1 config ncclInvalidUsage"
like "NCCL's warning reaches a person" "$(cat "$T/words")" "NCCL WARN Bootstrap : no socket interface found"
for rule in 1:driver 2:system 3:internal 5:config 6:network; do
    gpu "MOCK=ncclGetUniqueId:fail=${rule%:*}" -- pair purelib="$SITE"
    is "NCCL ${rule%:*} means ${rule#*:}" "$status $(class)" "1 ${rule#*:}"
done
gpu -- pair purelib="$SITE" gpu=x
is "words that are none" $status 2
gpu -- pair purelib="$SITE" id=
is "an empty id makes no host end" $status 2
gpu -- pair purelib="$SITE" id=12
is "an id that is none" "$status $(class)" "1 internal"

# --- deadlines ----------------------------------------------------------------------------------------------------
gpu "MOCK=cudaFree:hang" -- burn purelib="$SITE" init_ms=1000
is "a context that is never made" "$status $(class) $(value err stage)" "124 timeout context"
gpu "MOCK=cudaStreamQuery:fail=600@3" -- burn purelib="$SITE" step_ms=1000 burn_ms=200
like "a kernel that never ends, or gets no processor" "$status $(class) $(value err stage)" "^124 (timeout|stalled) burn"
gpu "MOCK=cudaFree:spin" -- burn purelib="$SITE" init_ms=1000
like "a driver that spins" "$status $(class) $(value err stage)" "^124 (timeout|stalled) context"
# A process that would run, on a processor that others have, says so instead.
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
hogs=
for i in 1 2 3; do env E2E_MARK="$T" taskset -c "$cpu" sh -c 'while :; do :; done' & hogs="$hogs $!"; done
env E2E_MARK="$T" MOCK=cudaFree:spin nice -n 19 taskset -c "$cpu" "$GPU" burn purelib="$SITE" init_ms=1000 3>"$T/lines" >"$T/words" 2>&1 </dev/null
status=$?
kill $hogs; wait $hogs 2>/dev/null
is "a process that gets no processor" "$status $(class) $(value err stage)" "124 stalled context"
gpu -- pair purelib="$SITE" init_ms=1000
is "nobody comes" "$status $(class) $(value err stage)" "124 timeout init"
gpu "MOCK=ncclCommAbort:hang" -- pair purelib="$SITE" init_ms=1000 grace_ms=200
is "nor does the abort end" "$status $(class) $(value err stage)" "124 timeout init"
gpu MOCK_GPUS=2 "MOCK=ncclCommInitAll:hang" -- nicloop purelib="$SITE" init_ms=1000
is "a loop that hangs names its GPUs" "$status $(class) $(value err stage)" "124 timeout init GPU 0 with 1"
gpu MOCK_GPUS=2 "MOCK=ncclAllGather:crash@3" -- nicloop purelib="$SITE"
is "a library that crashes" "$status $(grep -c end "$T/lines")" "139 0"
gpu MOCK_GPUS=3 -- nicloop purelib="$SITE" quick=1
is "an odd GPU loops with the first" "$status $(grep -c nic_loop "$T/lines")" "0 2"
gpu MOCK_GPUS=8 -- nicloop purelib="$SITE" quick=1
is "eight GPUs, whose loops give their memory back" "$status $(grep -c nic_loop "$T/lines")" "0 4"
gpu -- nicloop purelib="$SITE"
is "one GPU alone: nothing to do" "$status $(grep -c '"t":"m"' "$T/lines")" "0 0"

is_clean "in the end"
finished
