# Bad input: one clear line that says what was wrong, the right status, no traceback, nobody started, nothing left.
# Seen to fail: with torchrun 2.13 in elrun's place (more than half), without the bounds of whole numbers in opt.c.
. "$(dirname "$0")/../lib/e2e.sh"
: >"$T/train.py"
# bad NAME STATUS REGEX OPTIONS...: elrun says one line of its own that matches, and ends with that status
bad() {
    bad_name=$1 bad_status=$2 bad_text=$3; shift 3
    run "$@"
    is "$bad_name: exit status" "$status" "$bad_status"
    like "$bad_name: says so" "$(cat "$ERR")" "$bad_text"
    unlike "$bad_name: no traceback" "$(cat "$ERR")" 'Traceback|assert|Assertion'
    [ "$bad_status" != 2 ] || is "$bad_name: nothing on stdout" "$(cat "$OUT")" ""
}
usage() { # NAME REGEX OPTIONS...: in front of a worker that must not run
    usage_name=$1 usage_text=$2; shift 2
    bad "$usage_name" 2 "$usage_text" "$@" --no-python "$WORKER" touch "$T/ran"
}

# What to run.
export PYTHON_EXEC="${PY:-python3}"
bad "missing script" 66 "none\.py" --standalone "$T/none.py"
printf '#!/bin/sh\r\ntouch "%s"\r\n' "$T/ran" >"$T/crlf.sh"
printf '#!/opt/none/bin/python3\n' >"$T/gone.sh"
chmod +x "$T/crlf.sh" "$T/gone.sh"
bad "a #! line with a carriage return" 66 'crlf\.sh": its #! line ends with a carriage return.*"/bin/sh\\r"' --standalone --no-python "$T/crlf.sh"
bad "a #! line without its interpreter" 66 'the interpreter of its #! line, "/opt/none/bin/python3": No such file' --standalone --no-python "$T/gone.sh"
bad "script is a folder without __main__" 66 "$T/tmp" --standalone "$T/tmp"
# Root may read everything: these are somebody else's runs, from copies that everybody may execute.
nobody=
[ "$(id -u)" != 0 ] || nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
cp "$ELRUN" "$T/elrun"; cp "$WORKER" "$T/worker"; chmod 755 "$T/elrun" "$T/worker"; chmod 777 "$T/tmp"
as_nobody() { PREFIX=$nobody as_real=$ELRUN ELRUN=$T/elrun; "$@"; PREFIX= ELRUN=$as_real; }
: >"$T/secret.py"; chmod 000 "$T/secret.py"
as_nobody bad "script not readable" 66 "secret\.py.*[Pp]ermission" --standalone "$T/secret.py"
bad "unknown module" 1 "No module named .?no_such_module" --standalone -m no_such_module
bad "missing program" 66 "no-such-program" --standalone --no-python no-such-program
bad "missing program with a path" 66 "$T/none" --standalone --no-python "$T/none"
: >"$T/plain"; chmod 644 "$T/plain"
bad "program not executable" 66 "plain.*[Pp]ermission" --standalone --no-python "$T/plain"
bad "program is a folder" 66 "$T/tmp.*directory" --standalone --no-python "$T/tmp"
escape=$(printf 'a\nb\033[31mc')
bad "a name that would write on the screen" 66 'a\\x0ab\\x1b\[31mc' --standalone "$escape.py"
bad "a program's name that would write on the screen" 66 'a\\x0ab\\x1b\[31mc' --standalone --no-python "$escape"
printf 'no magic number\n' >"$T/text"; chmod 755 "$T/text"
bad "program of no known format" 66 "text" --standalone --no-python "$T/text"
printf '#!/no/such/interpreter\n' >"$T/interp"; chmod 755 "$T/interp"
bad "script whose interpreter is missing" 66 "interp" --standalone --no-python "$T/interp"
PYTHON_EXEC=$T/no-python bad "PYTHON_EXEC leads nowhere" 66 "no-python" --standalone "$T/train.py"
usage "-m with --no-python" "module.*no-python|no-python.*module" -m
bad "no script" 2 "[Ss]cript|SCRIPT" --standalone

# How many.
for n in 0 -1 99999 abc 1.5 "" 4294967297 99999999999999999999; do
    usage "--nproc-per-node='$n'" "nproc.per.node" --standalone "--nproc-per-node=$n"
done
if [ ! -e /dev/nvidiactl ]; then
    run --standalone --nproc-per-node=gpu --no-python "$WORKER" touch "$T/ran"
    like "--nproc-per-node=gpu without a GPU: exit status" "$status" '^(2|78)$'
    like "--nproc-per-node=gpu without a GPU: says so" "$(cat "$ERR")" "GPU|gpu|CUDA"
else
    skip "--nproc-per-node=gpu without a GPU" "this host has a GPU"
fi
for n in -1 x 1.5 99999999999; do usage "--max-restarts=$n" "max.restarts" --standalone "--max-restarts=$n"; done
for n in 0 abc 2:1 1:2:3 0:1 1: :1; do usage "--nnodes=$n" "nnodes" "--nnodes=$n"; done
ENV=PET_NNODES=abc
usage "PET_NNODES=abc" "PET_NNODES" --standalone
ENV=PET_STANDALONE=yes
usage "PET_STANDALONE=yes" "PET_STANDALONE"
ENV=

# Other values.
for s in 4 x 0:1:2 0:9 a:1 -1 0:1,0 ""; do usage "--redirects='$s'" "redirects" --standalone "--redirects=$s"; done
usage "--tee=7" "tee" --standalone --tee=7
usage "--local-ranks-filter=x" "local.ranks.filter" --standalone --local-ranks-filter=x
usage "--shutdown-timeout=-1" "shutdown.timeout" --standalone --shutdown-timeout=-1
usage "--monitor-interval=0" "monitor.interval" --standalone --monitor-interval=0
usage "--start-method=x" "start.method" --standalone --start-method=x
usage "--numa-binding=x" "numa.binding" --standalone --numa-binding=x
usage "--master-port=99999" "master.port" --master-port=99999
usage "--rdzv-endpoint=host:x" "rdzv.endpoint" --rdzv-backend=c10d --rdzv-endpoint=host:x
usage "--rdzv-conf=x" "rdzv.conf" --standalone --rdzv-conf=x
usage "--logs-specs" "logs.specs" --standalone --logs-specs=x
usage "--rdzv-backend=etcd" "etcd" --rdzv-backend=etcd
usage "an option without its value" "nproc.per.node|integer|number" --standalone --nproc-per-node
usage "a flag with a value" "standalone" --standalone=x
usage "a misspelt option: what was meant" "max-restarts" --standalone --max-restrats=1
usage "an option of ours cut short" "capture-stderr|capture-std" --standalone --capture-std

# Log folders.
: >"$T/file"
bad "log folder is a file" 73 "$T/file" --standalone --log-dir="$T/file" --tee=3 --no-python "$WORKER" touch "$T/ran"
bad "log folder below a file" 73 "$T/file" --standalone --log-dir="$T/file/x" --tee=3 --no-python "$WORKER" touch "$T/ran"
mkdir "$T/ro"; chmod 555 "$T/ro"
as_nobody bad "log folder not writable" 73 "$T/ro.*[Pp]ermission" --standalone --log-dir="$T/ro/logs" --tee=3 --no-python "$T/worker" touch "$T/ran"
mkdir "$T/small"
if mount -t tmpfs -o size=64k,nr_inodes=6 none "$T/small" 2>/dev/null; then
    at_exit() { umount "$T/small" 2>/dev/null; }
    bad "log folder on a full disk" 73 "small.*No space" --standalone --nproc-per-node=8 --log-dir="$T/small/logs" --tee=3 --no-python "$WORKER" touch "$T/ran"
    umount "$T/small"
else
    skip "log folder on a full disk" "no right to mount"
fi
ENV=TMPDIR=$T/none
bad "TMPDIR leads nowhere" 73 "TMPDIR.*$T/none" --standalone --tee=3 --no-python "$WORKER" touch "$T/ran"
ENV=

ok "no worker was ever started" test ! -e "$T/ran.0.0"

# A port that is taken, by somebody who listens and by another job.
"${PY:-python3}" -c '
import socket, sys, time
s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen()
open(sys.argv[1] + "~", "w").write(str(s.getsockname()[1]))
import os; os.rename(sys.argv[1] + "~", sys.argv[1])
time.sleep(600)' "$T/port" & listener=$!
wait_for test -s "$T/port"
bad "port in use" 78 "$(cat "$T/port").*in use|in use.*$(cat "$T/port")" --master-port="$(cat "$T/port")" --no-python "$WORKER" touch "$T/ran"
kill "$listener"; wait "$listener" 2>/dev/null
ok "port in use: no worker was started" test ! -e "$T/ran.0.0"

# Standard streams that are closed: elrun and the worker have something in their places.
cat >"$T/close" <<'SCRIPT'
case $1 in 0) shift; exec "$@" <&- ;; 1) shift; exec "$@" >&- ;; 2) shift; exec "$@" 2>&- ;; esac
SCRIPT
for fd in 0 1 2; do
    PREFIX="sh $T/close $fd"
    run_workers 2 --tee=3 --log-dir="$T/close$fd" -- stdin "$T/stdin$fd" out "x" err "x"
    PREFIX=
    is "descriptor $fd is closed: exit status" "$status" 0
    ok "descriptor $fd is closed: both workers ran" files "$T/stdin$fd.0.*" 2
    is "descriptor $fd is closed: the logs are whole" "$(cat "$T/close$fd"/*_*/attempt_0/?/std*.log)" xxxx
done

# Torchrun only warns of a signal that it does not know, and so do we.
run_workers 1 --signals-to-handle=SIGFOO,SIGTERM -- touch "$T/sigfoo"
is "an unknown name in --signals-to-handle: exit status" "$status" 0
like "an unknown name in --signals-to-handle: a warning" "$(cat "$ERR")" 'SIGFOO'

run_workers 2 --local-ranks-filter=0,5 -- exit 0
is "a rank that is not there in --local-ranks-filter: exit status" "$status" 0
is "a rank that is not there in --local-ranks-filter: one warning" "$(grep -c 'warning: --local-ranks-filter.* 5 ' "$ERR")" 1
run_workers 2 --local-ranks-filter=0,1 -- exit 0
unlike "all ranks in --local-ranks-filter: no warning" "$(cat "$ERR")" 'local-ranks-filter'

# Bytes that are not UTF-8 are an argument as any other.
odd=$(printf 'odd\377\376')
run_workers 1 -- touch "$T/$odd"
is "invalid UTF-8 in an argument: exit status" "$status" 0
ok "invalid UTF-8 in an argument: reaches the worker" test -e "$T/$odd.0.0"
bad "invalid UTF-8 in an option" 2 "nproc.per.node" --standalone --nproc-per-node="$odd" x
bad "invalid UTF-8 in the script's name" 66 "odd" --standalone "$T/$odd.py"
is_clean "at the end"
finished
