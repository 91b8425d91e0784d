# Devices and CPUs: a made-up pair of GPUs (the driver's entries and PCI devices of a private mount namespace) on this
# machine's real CPUs, and how many workers nproc's words start.  Assertions are on what the workers saw of themselves.
# Seen to fail against a build whose numa_apply() does nothing.
. "$(dirname "$0")/../lib/e2e.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, for mounts"
unshare -m true 2>/dev/null || skip_all "no mount namespaces here"

cat >"$T/two-gpus" <<'SCRIPT'
#!/bin/sh
mount -t tmpfs none /proc/driver && mount -t tmpfs none /sys/bus/pci/devices || exit 99
n=90
for pci in 0000:1a:00.0 0000:3b:00.0; do
    mkdir -p /proc/driver/nvidia/gpus/$pci /sys/bus/pci/devices/$pci
    printf 'Model: \t\t Test\nGPU UUID: \t GPU-%s\nDevice Minor: \t %s\n' $n $n >/proc/driver/nvidia/gpus/$pci/information
    echo -1 >/sys/bus/pci/devices/$pci/numa_node
    n=$((n + 1))
done
exec "$@"
SCRIPT
cat >"$T/worker" <<'SCRIPT'
#!/bin/sh
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status >"$1/cpus.$RANK"
echo "$CUDA_VISIBLE_DEVICES" >"$1/device.$RANK"
head -1 /proc/self/numa_maps 2>/dev/null | grep -o 'prefer[^ ]*' >"$1/memory.$RANK"
exit 0
SCRIPT
chmod +x "$T/two-gpus" "$T/worker"
mkdir "$T/a" "$T/b" "$T/c" "$T/d" "$T/e"

PREFIX="unshare -m $T/two-gpus"
run --nproc-per-node=gpu --no-python "$T/worker" "$T/a"
is "nproc gpu: status" "$status" 0
is "nproc gpu: two workers" "$(ls "$T/a" | grep -c cpus)" 2
run --nproc-per-node=auto --virtual-local-rank --no-python "$T/worker" "$T/b"
is "nproc auto counts GPUs; each worker sees its own" "$(cat "$T/b"/device.*)" "$(printf '0\n1')"
ENV="CUDA_VISIBLE_DEVICES=GPU-91"
run --nproc-per-node=gpu --no-python "$T/worker" "$T/c"
is "CUDA_VISIBLE_DEVICES by UUID leaves one" "$(ls "$T/c" | grep -c cpus)" 1
run --nproc-per-node=2 --numa-binding=node --no-python "$T/worker" "$T/c/none"
is "binding two workers to one GPU: refused" "$status" 78
like "and says why" "$(cat "$ERR")" '2 workers.*CUDA_VISIBLE_DEVICES=GPU-91 leaves 1 of the 2'
ENV=

run --nproc-per-node=2 --numa-binding=node --no-python "$T/worker" "$T/d"
is "numa-binding node: status" "$status" 0
is "numa-binding node: the CPUs of the GPU's node" "$(cat "$T/d/cpus.1")" "$(cat /sys/devices/system/node/node0/cpulist)"
if [ -e /proc/self/numa_maps ]; then
    like "numa-binding node: memory is preferred there" "$(cat "$T/d/memory.1")" '^prefer.*0$'
fi
if [ "$(sort -u /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | wc -l)" -ge 2 ]; then
    run --nproc-per-node=2 --numa-binding=exclusive --no-python "$T/worker" "$T/e"
    is "numa-binding exclusive: status" "$status" 0
    ok "numa-binding exclusive: both have CPUs" test -s "$T/e/cpus.0" -a -s "$T/e/cpus.1"
    unlike "numa-binding exclusive: not the same" "$(cat "$T/e/cpus.1")" "^$(cat "$T/e/cpus.0")\$"
fi
PREFIX="taskset -c 0 unshare -m $T/two-gpus"
run --nproc-per-node=2 --numa-binding=exclusive --no-python "$T/worker" "$T/e/none"
is "numa-binding exclusive with one CPU for two GPUs: refused" "$status" 78
like "and counts them" "$(cat "$ERR")" '2 GPUs but only 1 physical'

PREFIX="taskset -c 0"
mkdir "$T/f"
run --nproc-per-node=cpu --no-python "$T/worker" "$T/f"
is "nproc cpu counts the CPUs that may be used" "$(ls "$T/f" | grep -c cpus)" 1
PREFIX=
if [ ! -e /dev/nvidia0 ]; then
    run --nproc-per-node=1 --numa-binding=node --no-python "$T/worker" "$T/f/none"
    is "numa-binding without a GPU: refused before anything starts" "$status" 78
    like "and says why" "$(cat "$ERR")" 'no NVIDIA GPU'
fi
finished
