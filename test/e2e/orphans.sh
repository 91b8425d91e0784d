# Nothing survives elrun: not wrappers' children, not double forks, not at kill -9 of elrun or of its guard.
# Seen to fail: builds whose guard is told no group, without parent-death signal (spawn_io.c), without subreaper (reap_io.c).
. "$(dirname "$0")/../lib/e2e.sh"
# Nobody is left who could remove its temporary folder.
kill_elrun() { kill -KILL "$elrun_pid"; wait "$elrun_pid" 2>/dev/null; rm -rf "$T/tmp/"*; }

# The guard: a child of elrun that runs elrun's own program.
guard() { for p in $(cat /proc/$elrun_pid/task/*/children); do [ ! /proc/$p/exe -ef "$ELRUN" ] || echo "$p"; done; }
has_other_guard() { [ -n "$(guard)" ] && [ "$(guard)" != "$1" ]; }

ends() { # NAME WITH: both lines of defence are tried, process groups alone and a cgroup
    # Whoever a worker leaves behind is ended with it.
    run_workers 2 -- child "$T/$1c" daemon "$T/$1d" exit 0
    is "$2, workers leave a child and a daemon: exit status" "$status" 0
    ok "$2: the children had started" files "$T/$1c.0.*" 2
    ok "$2: the daemons had started" files "$T/$1d.0.*" 2
    is_clean "$2, workers leave a child and a daemon"
    start --standalone --nproc-per-node=2 --no-python bash -c "\"$WORKER\" touch $T/$1w forever; :"
    wait_for files "$T/$1w.0.*" 2
    kill -TERM "$elrun_pid"; finish
    is "$2, SIGTERM, workers behind bash -c: exit status" "$status" 143
    is_clean "$2, SIGTERM, workers behind bash -c"

    # kill -9 of elrun: the wrapper dies by its parent-death signal, its child only by the guard.
    start --standalone --nproc-per-node=2 --no-python bash -c "\"$WORKER\" ignore TERM child $T/$1k touch $T/$1kw forever; :"
    wait_for files "$T/$1kw.0.*" 2
    kill_elrun
    is_clean "$2, kill -9 of elrun, workers behind bash -c"

    start --standalone --nproc-per-node=2 --no-python bash -c "\"$WORKER\" ignore TERM child $T/$1g touch $T/$1gw forever; :"
    wait_for files "$T/$1gw.0.*" 2
    old=$(guard)
    like "$2: there is one guard" "$old" '^[0-9]+$'
    kill -KILL $old
    ok "$2: a guard that was killed is replaced" wait_for has_other_guard "$old"
    ok "$2: the workers did not notice" kill -0 "$(field "$T/$1g.0.0" pid)"
    kill_elrun
    is_clean "$2, kill -9 of the first guard, then of elrun"
}
ends a "as the host is"
# Where no cgroup can be made, the groups that the guard knows are all there is.
cat >"$T/no-cgroup" <<'SCRIPT'
#!/bin/sh
for m in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts); do mount -t tmpfs none "$m" || exit 99; done
exec "$@"
SCRIPT
chmod +x "$T/no-cgroup"
if unshare -m true 2>/dev/null; then
    PREFIX="unshare -m $T/no-cgroup"
    ends b "without a cgroup"
    PREFIX=
else
    skip "without a cgroup" "no right to make a mount namespace"
fi

# Who has left group and session is in reach only where elrun could make a cgroup.  Either way no cgroup is left.
cgroups() { find $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts) -type d -name "elrun-$1" 2>/dev/null; }
no_cgroup() { [ -z "$(cgroups "$1")" ]; }
start_workers 2 -- daemon "$T/cg" record "$T/cgr" forever
wait_for files "$T/cgr.0.*" 2
if [ -n "$(cgroups "$elrun_pid")" ]; then
    kill_elrun
    is_clean "kill -9 of elrun, daemons in a cgroup"
    ok "kill -9 of elrun: no cgroup is left" wait_for no_cgroup "$elrun_pid"
    start_workers 1 -- touch "$T/cg1" await "$T/cg1.go"
    wait_for files "$T/cg1.0.*" 1
    like "a job has its cgroup" "$(cgroups "$elrun_pid")" "elrun-$elrun_pid\$"
    : >"$T/cg1.go"; finish
    is "at the end of a job no cgroup is left" "$(cgroups "$elrun_pid")" ""
else
    kill -TERM "$elrun_pid"; finish
    skip "kill -9 of elrun, daemons in a cgroup" "no cgroup of version 2 can be made"
fi

# Without the guard, direct children still die by their parent-death signal.
start_workers 2 -- record "$T/both" forever
wait_for files "$T/both.0.*" 2
held=$(guard)
kill -STOP "$held"; kill_elrun
for r in 0 1; do ok "kill -9 of elrun while the guard stands still: worker $r is gone" wait_for ended "$(field "$T/both.0.$r" pid)"; done
kill -CONT "$held"
is_clean "kill -9 of elrun while the guard stands still"

# 200 workers, two orphans each: adopted, reaped, no zombie; elrun goes on.
start_workers 200 -- orphans 2 touch "$T/many" await "$T/many.go"
wait_for files "$T/many.0.*" 200
no_zombies() { [ "$(zombies_of "$elrun_pid")" = 0 ]; }
ok "200 workers with 2 orphans each: no zombie is left" wait_for no_zombies
: >"$T/many.go"; finish
is "200 workers with 2 orphans each: exit status" "$status" 0
is_clean "200 workers with 2 orphans each"

# 200 workers that end at once, of which one fails: every status is collected.
run_workers 200 -- @137 exit 41
is "one of 200 fails: exit status" "$status" 41
is_clean "one of 200 fails"

# A restart leaves nothing of the attempt before.
run_workers 2 --max-restarts=1 -- +0 child "$T/rc" +0 daemon "$T/rd" touch "$T/r" @1 +0 await "$T/r.0.0" @1 +0 exit 1 +0 forever \
    sleep 50
for f in rc rd; do for r in 0 1; do
    ok "after a restart: $f of rank $r is gone" sh -c "! kill -0 $(field "$T/$f.0.$r" pid)"
done; done
is "after a restart: exit status" "$status" 0
is_clean "at the end"
finished
