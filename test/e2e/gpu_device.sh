# The GPU helper on a real GPU with the real NCCL: one device is enough, several helpers share it as if they were on
# different hosts (NCCL_HOSTID) and talk over sockets.  Run it where a GPU is:
#   make check-e2e E2E=test/e2e/gpu_device.sh
# GPU_SITE=DIR: the site-packages with nvidia/nccl, if they are not those of the tests' python.
. "$(dirname "$0")/../lib/e2e.sh"
GPU=$BUILD/elrun-gpu
SITE=${GPU_SITE:-$("$PY" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')}
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || skip_all "GPU: there is none"

# value OF KEY FILE: of the last line that has the text OF
value() { grep -- "$1" "$T/$3" 2>/dev/null | tail -1 | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
# gpu OUT WORDS...: the helper; status in $status
gpu() { gpu_out=$1; shift; env E2E_MARK="$T" $PREFIX "$GPU" "$@" purelib="$SITE" 3>"$T/$gpu_out" >"$T/$gpu_out.words" 2>&1 </dev/null; status=$?; }
between() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v + 0 >= a && v + 0 <= b) }'; }
plausible() { ok "$1: $2 $3 lies between $4 and $5" between "$2" "$4" "$5" || note "$(cat "$T/burn" "$T/burn.words")"; }

gpu nvml nvml
is "NVML" "$status $(value '"gpu_nvml"' value nvml)" "0 1"
note "$(value gpu_name value nvml), driver $(value gpu_driver value nvml)"

gpu burn burn
is "the burn computes what every GPU must" "$status $(value '"gpu_burn"' value burn)" "0 1"
plausible "burn" "$(value '"burn"' median burn)" TFLOP/s 1 500
plausible "copy inside the device" "$(value '"copy_d2d"' median burn)" GB/s 20 20000
plausible "copy to the device" "$(value '"copy_h2d"' median burn)" GB/s 1 1000
plausible "copy from the device" "$(value '"copy_d2h"' median burn)" GB/s 1 1000
if command -v compute-sanitizer >/dev/null; then
    for tool in ${SANITIZERS-memcheck racecheck initcheck}; do
        PREFIX="compute-sanitizer --tool $tool --error-exitcode 86 --log-file $T/san.$tool" gpu burn burn quick=1 step_ms=300000 burn_ms=10
        is "compute-sanitizer $tool" "$status" 0 || note "$(tail -20 "$T/san.$tool")"
    done
else
    skip "compute-sanitizer" "GPU: no compute-sanitizer here"
fi

# Ends of pairs on the first device.  begin NAME HOSTID WORDS...: in the background; pid in $begin_pid
begin() {
    begin_name=$1; begin_id=$2; shift 2
    : >"$T/$begin_name"
    env E2E_MARK="$T" NCCL_HOSTID="$begin_id" NCCL_IB_DISABLE=1 NCCL_MNNVL_ENABLE=0 NCCL_SOCKET_IFNAME=lo \
        "$GPU" pair gpu=0 purelib="$SITE" "$@" 3>"$T/$begin_name" >"$T/$begin_name.words" 2>&1 </dev/null &
    begin_pid=$!
}
has_id() { grep -q '"t":"id"' "$T/$1" || ended "$2"; }
# pair NAME WORDS...: both ends; pids in $host and $guest
pair() {
    pair_name=$1; shift
    begin "$pair_name.host" "$pair_name-a" "$@"; host=$begin_pid
    wait_for has_id "$pair_name.host" "$host"
    begin "$pair_name.guest" "$pair_name-b" id="$(value '"t":"id"' id "$pair_name.host")" "$@"; guest=$begin_pid
}
DEADLINE=300
gpu nccl pair init_ms=1
if grep -q '"class":"missing"' "$T/nccl"; then
    skip "pairs" "GPU: no NCCL in $SITE (GPU_SITE=DIR names it)"
    is_clean "in the end"
    finished
fi

used() { gpu used nvml; value '"gpu_foreign"' value used; }
before=$(used)
pair two quick=1; h=$host g=$guest
wait $h; hs=$?; wait $g; gs=$?
is "two helpers on one device" "$hs $gs" "0 0" || note "$(cat "$T/two.host" "$T/two.host.words" "$T/two.guest" "$T/two.guest.words")"
is "both have measured" "$(grep -c '"t":"m"' "$T/two.host") $(grep -c '"t":"m"' "$T/two.guest")" "2 2"
note "communicator ready after $(value '"init"' ms two.host) ms, $(value '"lat_us"' median two.host) us, $(value '"bw64m"' median two.host) GB/s"

pair one quick=1 step_ms=60000; a=$host b=$guest
pair other quick=1 step_ms=60000; c=$host d=$guest
all=; for p in $a $b $c $d; do wait "$p"; all="$all $?"; done
is "four helpers on one device, two pairs at once" "$all" " 0 0 0 0"

pair stopped step_ms=3000 init_ms=20000; h=$host g=$guest
wait_for grep -q '"t":"init"' "$T/stopped.guest"
kill -STOP "$g"
wait_for ended "$h"; wait "$h"; hs=$?
is "one is stopped: the other gives up at its deadline" "$hs $(value '"err"' class stopped.host)" "124 timeout"
kill -KILL "$g"; wait "$g"
same_memory() { [ "$(used)" = "$before" ]; }
ok "the device's memory is free afterwards" wait_for same_memory

is_clean "in the end"
finished
