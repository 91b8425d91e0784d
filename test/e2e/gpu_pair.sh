# Two GPU helpers as the two ends of a pair, with a stand-in for NCCL that moves the bytes over TCP (test/mock/nccl.c): what
# both report when all is well, and who says what when one end is wrong, slow, stopped or gone.
. "$(dirname "$0")/../lib/e2e.sh"
GPU=$BUILD/elrun-gpu
SITE=$BUILD/test/mock/site

# value OF KEY FILE: of the last line that has the text OF
value() { grep -- "$1" "$3" 2>/dev/null | tail -1 | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
class() { value '"t":"err"' class "$T/$1"; }
stage() { value '"t":"err"' stage "$T/$1"; }
# begin END ENVIRONMENT WORDS...: one end in the background; its pid in $begin_pid
begin() {
    begin_end=$1; begin_env=$2; shift 2
    : >"$T/$begin_end"
    env E2E_MARK="$T" $begin_env "$GPU" pair purelib="$SITE" quick=1 "$@" 3>"$T/$begin_end" >"$T/$begin_end.words" 2>&1 </dev/null &
    begin_pid=$!
}
# both HOST-ENVIRONMENT GUEST-ENVIRONMENT WORDS...: starts both ends; pids in $host and $guest
both() {
    both_guest=$2
    both_host=$1; shift 2
    begin host "$both_host" "$@"; host=$begin_pid
    wait_for grep -q '"t":"id"' "$T/host" || return 1
    begin guest "$both_guest" id="$(value '"t":"id"' id "$T/host")" "$@"; guest=$begin_pid
}
both_end() { # statuses of host and guest
    wait_for ended "$host"; wait_for ended "$guest"
    wait "$host"; host_status=$?
    wait "$guest"; guest_status=$?
}
metrics() { grep -o '"name":"[a-z0-9_]*","rail":[0-9]*' "$T/$1" | tr '\n' ' '; }

both "" "" rail=5
both_end
is "both ends are well" "$host_status $guest_status" "0 0"
is "metrics of the host end" "$(metrics host)" '"name":"lat_us","rail":5 "name":"bw64m","rail":5 '
is "metrics of the guest end" "$(metrics guest)" '"name":"lat_us","rail":5 "name":"bw64m","rail":5 '
like "the interface that NCCL took" "$(grep init "$T/host")" '"interface":"[a-z0-9.@-]+, Socket"'
is "the last line" "$(tail -1 "$T/host")$(tail -1 "$T/guest")" '{"t":"end","ok":true}{"t":"end","ok":true}'

both "NCCL_COMM_BLOCKING=1 NCCL_COMM_ID=127.0.0.1:1 NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$T/elsewhere" ""
both_end
is "variables that would disturb" "$host_status $guest_status" "0 0"
ok "and what the job wants logged is seen" grep -q "NCCL INFO Using network" "$T/host.words"
is "but not in its own file" "$(ls "$T/elsewhere" 2>/dev/null)" ""

both "MOCK_NCCL=21304" "MOCK_NCCL=21304"
both_end
is "NCCL before 2.14, which blocks" "$host_status $guest_status" "0 0"

both "MOCK_NCCL=22809" "MOCK_NCCL=22705"
both_end
is "different NCCL versions are a mismatch" "$host_status $guest_status $(class host) $(class guest)" "1 1 mismatch mismatch"
is "both versions are told" "$(value "nccl.,.value" value "$T/host") $(value "nccl.,.value" value "$T/guest")" "2.28.9 2.27.5"
like "NCCL's own words" "$(cat "$T/host")" "Mismatched NCCL version"

both "" "MOCK=ncclAllGather:corrupt@40"
both_end
is "one wrong bit is found where it arrives" "$guest_status $(class guest) $(stage guest)" "1 hardware content"

both "MOCK=ncclAllGather:fail=1@5" ""
both_end
is "an end that fails says so" "$host_status $(class host) $(stage host)" "1 driver warm-up"
is "its peer blames the network, not itself" "$guest_status $(class guest)" "1 network"

both "" "MOCK=ncclAllGather:crash@5"
both_end
is "an end that crashes" "$guest_status $(tail -1 "$T/guest" | grep -c end)" "139 0"
is "its peer says that it went away" "$host_status $(class host)" "1 network"

# One end is stopped in the middle: the other gives up at its deadline, in words.  That its abort makes NCCL's calls fail is
# no reason of its own.
both "" "MOCK=ncclAllGather:sleep=200" init_ms=3000 step_ms=1500 grace_ms=300
wait_for grep -q '"t":"init"' "$T/guest"
kill -STOP "$guest"
wait_for ended "$host"; wait "$host"; host_status=$?
is "a peer that was stopped" "$host_status $(class host) $(grep -c '"t":"err"' "$T/host")" "124 timeout 1"
kill -CONT "$guest"
wait_for ended "$guest"; wait "$guest"; guest_status=$?
is "it wakes, finds nobody, and does not call that its own time-out" "$guest_status $(class guest)" "1 network"

# A host end that slept (the whole machine was paused) does not count the time that it slept.
both "" "MOCK=ncclAllGather:sleep=20" step_ms=4000
wait_for grep -q '"t":"init"' "$T/host"
kill -STOP "$host" "$guest"
sleep 4.5
kill -CONT "$guest" "$host"
both_end
is "both ends were paused for longer than a step may take" "$host_status $guest_status" "0 0"

both "" ""
wait_for grep -q '"t":"init"' "$T/host"
kill -KILL "$guest"
both_end
is "a peer that was killed" "$host_status $(class host)" "1 network"

is_clean "in the end"
finished
