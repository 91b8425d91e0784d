# Odd hosts: an empty root, name services that a static program cannot load, no /proc, no /dev, no home.
# Seen to fail: a build without __nss_configure_lookup (elrun.c).
. "$(dirname "$0")/../lib/e2e.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root, for chroot and mounts"

is "the binary is static: no interpreter, nothing needed" "$(readelf -lWd "$ELRUN" | grep -cE 'INTERP|NEEDED')" 0
like "the binary is position independent" "$(readelf -hW "$ELRUN")" 'Type: *DYN'
strip -o "$T/stripped" "$ELRUN"
ok "the stripped binary is smaller than 4 MB" test "$(stat -c %s "$T/stripped")" -lt 4000000

# An empty root: only the binary, which is also the program that it starts.
mkdir "$T/root"; cp "$ELRUN" "$T/root/elrun"
real=$ELRUN PREFIX="chroot $T/root" ELRUN=/elrun
for words in version help "help run" "completion bash" --help; do
    run $words
    is "empty root: elrun $words" "$status" 0
done
run doctor; ok "empty root: elrun doctor says something" test -s "$OUT"; ok "empty root: elrun doctor does not crash" sh -c "[ '$status' != hung ] && [ '$status' -lt 128 ]"
run --standalone --no-python /elrun version
is "empty root: the null device is missed: exit status" "$status" 71
like "empty root: the null device is missed: the message" "$(cat "$ERR")" '/dev/null'
mkdir "$T/root/dev" "$T/root/tmp"; mknod "$T/root/dev/null" c 1 3; ENV=TMPDIR=/tmp
run --standalone --no-python /elrun version
is "empty root: elrun runs a program" "$status" 0
like "empty root: the program's output" "$(cat "$OUT")" '^elrun [0-9]'
run --standalone --no-python /none
is "empty root: missing program" "$status" 66
ENV=
ELRUN=$real

# Name services: a static program that loads these modules of the host crashes.  Ours only tell that they were loaded.
mkdir "$T/lib"
for m in mymachines resolve myhostname systemd; do
    echo "#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { fclose(fopen(\"$T/loaded\", \"w\")); }" |
        cc -shared -fPIC -x c -o "$T/lib/libnss_$m.so.2" -
done
printf 'passwd: files systemd\ngroup: files systemd\nhosts: mymachines resolve [!UNAVAIL=return] files myhostname dns\n' >"$T/nss"
cat >"$T/with-nss" <<'SCRIPT'
#!/bin/sh
mount --bind "$1" /etc/nsswitch.conf || exit 99
shift; exec "$@"
SCRIPT
chmod +x "$T/with-nss"
if unshare -m true 2>/dev/null; then
    PREFIX="unshare -m $T/with-nss $T/nss" ENV=LD_LIBRARY_PATH=$T/lib
    # First that the trap works: a dynamic program that asks for a name walks into it.
    env $ENV $PREFIX getent hosts no-such-host.invalid
    ok "the modules are where a program looks for them" test -e "$T/loaded"
    rm -f "$T/loaded"
    run doctor
    ok "nsswitch names systemd, resolve, myhostname: doctor" sh -c "[ '$status' != hung ] && [ '$status' -lt 99 ]"
    run_workers 2 -- record "$T/nss1"
    is "nsswitch names systemd, resolve, myhostname: a run" "$status" 0
    run --nproc-per-node=2 --master-addr=localhost --no-python "$WORKER" record "$T/nss2"
    is "nsswitch names systemd, resolve, myhostname: a host name" "$status" 0
    run store ping --endpoint=no-such-host.invalid:29400
    is "nsswitch names systemd, resolve, myhostname: a name that nobody knows" "$status" 69
    ok "nsswitch names systemd, resolve, myhostname: no such module was loaded" test ! -e "$T/loaded"
    ENV=

    # No /proc: what is read there is done without; nothing of it may be needed to start, restart and stop workers.
    printf '#!/bin/sh\nmount -t tmpfs none /proc || exit 99\nexec "$@"\n' >"$T/no-proc"; chmod +x "$T/no-proc"
    PREFIX="unshare -m $T/no-proc"
    run_workers 2 --max-restarts=1 -- touch "$T/np" @1 +0 await "$T/np.0.0" @1 +0 exit 3 +0 forever
    is "no /proc: a restart, exit status" "$status" 0
    ok "no /proc: both workers ran again" files "$T/np.1.*" 2
    start_workers 2 -- orphans 2 catch TERM "$T/np.got" on TERM 0 touch "$T/npt" forever
    wait_for files "$T/npt.0.*" 2
    kill -TERM "$elrun_pid"; finish
    is "no /proc: SIGTERM, exit status" "$status" 143
    is "no /proc: SIGTERM, the workers got it" "$(sort "$T/np.got" | tr '\n' ';')" "15 0;15 1;"
    PREFIX=
    is_clean "no /proc"

else
    skip "nsswitch and /proc" "no right to make a mount namespace"
fi

# A folder that is gone, an environment that is empty.
mkdir "$T/gone"; cat >"$T/in-gone" <<'SCRIPT'
cd "$1" && rmdir "$1" && shift && exec "$@"
SCRIPT
PREFIX="sh $T/in-gone $T/gone"
run_workers 1 -- touch "$T/cwd"
is "the working folder is gone: exit status" "$status" 0
PREFIX=
env -i E2E_MARK="$T" "$ELRUN" --standalone --log-dir="$T/empty" --no-python "$WORKER" record "$T/env" >"$OUT" 2>"$ERR"
is "an empty environment: exit status" "$?" 0
is "an empty environment: RANK" "$(envof "$T/env.0.0" RANK)" 0
is_clean "at the end"
finished
