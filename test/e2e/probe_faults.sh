# elrun probe and hosts that are sick: a full disk, one that stands still, little shared memory, memory errors, ports that
# are down or flap while the probe looks, a quota of processor time.  Each host is this one in a mount namespace of its own.
. "$(dirname "$0")/../lib/e2e.sh"
frozen= mounted= quota=
at_exit() {
    [ -z "$frozen" ] || fsfreeze -u "$T/mnt"
    [ -z "$mounted" ] || umount "$T/mnt"
    [ -z "$quota" ] || rmdir "$quota"
}
# found CHECK: "STATE ON TEXT" of each finding of that check, one a line
found() {
    "${PY:-python3}" -c 'import json, sys
for f in json.load(open(sys.argv[1]))["nodes"][0]["findings"]:
    if f["check"] == sys.argv[2]: print(f["state"], f["on"], f["text"], f.get("value"))' "$OUT" "$1" 2>&1
}
# sick COMMANDS: the host of the next probes; SYS is a made-up /sys in it.
sick() { printf 'set -e\nSYS=%s\nput() { mkdir -p "${2%%/*}"; echo "$1" >"$2"; }\n%s\nexec "$@"\n' "$T/sys" "$1" >"$T/sick"; PREFIX="unshare -m sh $T/sick"; }
well() { PREFIX=; }

# --- a disk that stands still, while the others are looked at ---
if dd if=/dev/zero of="$T/img" bs=1M count=16 2>/dev/null && mkfs.ext4 -q "$T/img" 2>/dev/null && mkdir "$T/mnt" &&
    mount -o loop "$T/img" "$T/mnt" 2>/dev/null; then
    mounted=yes
    fsfreeze -f "$T/mnt" && frozen=yes
    OUT=$T/out.frozen ERR=$T/err.frozen start probe --json --checks=disk --checkpoint-dir="$T/mnt"
    frozen_pid=$elrun_pid
    OUT=$T/out.past ERR=$T/err.past start probe --checks=memory --state-dir="$T/mnt/past"
    past_pid=$elrun_pid
    OUT=$T/out.job ERR=$T/err.job start --standalone --health-check=start --probe-checks=memory --probe-state-dir="$T/mnt/job" \
        --no-python "$WORKER" touch "$T/ran"
    job_pid=$elrun_pid
fi

# --- disks and memory ---
mkdir "$T/full"
sick 'mount -t tmpfs -o size=64k none '"$T"'/full; dd if=/dev/zero of='"$T"'/full/x bs=4k count=100 2>/dev/null || :'
run probe --json --checks=disk --checkpoint-dir="$T/full"
is "a full disk: the node is bad" "$status" 1
like "and it is said which" "$(found disk_writable)" "^bad $T/full No space left on device"
like "with how full it is" "$(found disk_free)" "^warn $T/full"
like "the other one is well" "$(found disk_writable)" "^ok $T/tmp"
printf 'ulimit -f 40\nexec "$@"\n' >"$T/small"; PREFIX="sh $T/small"
run probe --json --checks=disk
is "files may not be as large as what a job writes: that is the finding, not a check that died" "$status $(found disk_writable)" "1 bad $T/tmp File too large 0"
sick 'mount -t tmpfs -o size=64m none /dev/shm'
run probe --json --checks=shm_size --strict
is "the shared memory of a container: a warning" "$status $(found shm_size)" "3 warn   67108864"

# --- memory errors, ports ---
sick '
put 0 $SYS/devices/system/edac/mc/mc0/ue_count; put 3 $SYS/devices/system/edac/mc/mc0/ce_count
put 1 $SYS/devices/system/edac/mc/mc1/ue_count
mount --bind $SYS /sys'
run probe --json --checks=edac_uncorrected
is "a memory error that was not corrected: the node is bad" "$status" 1
like "and which controller says so" "$(found edac_uncorrected)" '^bad mc1'
rm -rf "$T/sys/devices"
ports='
for p in mlx5_0 mlx5_1; do
    d=$SYS/class/infiniband/$p/ports/1
    put "4: ACTIVE" $d/state; put "5: LinkUp" $d/phys_state; put "400 Gb/sec (4X NDR)" $d/rate; put InfiniBand $d/link_layer
done'
sick "$ports"'
put "100 Gb/sec (1X NDR)" $SYS/class/infiniband/mlx5_1/ports/1/rate
mount --bind $SYS /sys'
printf '{"ib_ports": 2, "ib_rate": 400}' >"$T/limits.json"
run probe --json --checks=ib --limits="$T/limits.json"
is "a port that came up with one lane: the node is bad" "$status" 1
like "by its lanes" "$(found ib_lanes)" '^bad mlx5_1/1 100 Gb/sec \(1X NDR\)'
like "and by its rate" "$(found ib_rate)" '^bad mlx5_1/1'
like "the other one is well" "$(found ib_rate)" '^ok mlx5_0/1'

# The link of one port goes down and comes back all the time, and so it does between the first look and the last.
mkdir -p "$T/sys/class/infiniband/mlx5_0/ports/1/counters" "$T/sys/class/infiniband/mlx5_1/ports/1/counters"
echo 900 >"$T/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed"
flap() {
    i=0
    while [ -e "$T/flap" ]; do
        i=$((i + 1))
        echo $i >"$T/flapped" && mv "$T/flapped" "$T/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed"
    done
}
: >"$T/flap"
flap &
flap_pid=$!
sick "$ports"'
mount --bind $SYS /sys'
run probe --json --checks=ib,speed
rm "$T/flap"
wait $flap_pid
is "a link that flaps while the probe looks: the node is bad" "$status" 1
like "and which" "$(found ib_link_downed)" '^bad mlx5_1/1'
unlike "not the one that flapped in the past" "$(found ib_link_downed)" 'mlx5_0'

# --- a fiftieth of a processor ---
well
cpu=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/mounts)
if [ -n "$cpu" ] && mkdir "$cpu/e2e-probe.$$" 2>/dev/null; then
    quota=$cpu/e2e-probe.$$
    echo 2000 >"$quota/cpu.cfs_quota_us"
    printf 'echo $$ >%s/cgroup.procs || exit 99\nexec "$@"\n' "$quota" >"$T/in-quota"
    PREFIX="sh $T/in-quota" run probe --json --checks=speed
    like "a quota: nobody is guilty" "$status" '^[03]$'
    unlike "of anything" "$(cat "$T/out")" '"state":"(bad|warn)"'
    wait_for rmdir "$quota" && quota=
else
    skip "a quota" "no cgroup (version 1) for processors can be made"
fi

# --- the disk that stands still ---
if [ -n "$frozen" ]; then
    elrun_pid=$frozen_pid OUT=$T/out.frozen
    finish
    is "a disk that stands still: the probe ends, and the node is bad" "$status" 1
    like "because that check hung in the kernel" "$(found hang)" '^bad disk'
    ok "past verdicts that cannot be read keep no report back" wait_for grep -q memory_free "$T/out.past"
    like "and are told" "$(cat "$T/err.past")" "$T/mnt/past does not answer; verdicts are not remembered"
    ran() { ls "$T"/ran* >/dev/null 2>&1; }
    ok "nor a job" wait_for ran
    like "which tells, too" "$(cat "$T/err.job")" "$T/mnt/job does not answer: past verdicts are not known"
    fsfreeze -u "$T/mnt" && frozen= # a process whose thread waits there is not over before
    elrun_pid=$past_pid
    finish
    elrun_pid=$job_pid
    finish
    is "a job that ends while its folder hangs" "$status" 0
else
    skip "a disk that stands still" "no right to mount a file system"
fi
is_clean "all probes"
finished
