#!/bin/sh
# mutants.sh [N [M [P]]]: do the simulators bite?  Each patch under test/sim/mutants changes one line of the node core, each
# under test/sim/mutants/cluster one of the coordinator or of the node's side of the rendezvous, each under
# test/sim/mutants/probe one of the plan of a probe.  The file that it changes is compiled from a scratch copy and linked with
# all else that make has built for the simulator; that must find the bug within N seeds (default 20000), the cluster's within
# M (default 12000), the probe's within P (default 3000), and must find nothing in them without a mutant.
# A patch of the cluster that many seeds do not see may begin with "Seeds from F": these are tried first, then those before F.
# JOBS (default: one for each processor) are hunted side by side.
# Prints a table: mutant, the seed that found it, what it said.  Fails if one lives, or does not apply or build.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-$root/build} # make check-mutants has built the simulators

# --- one of them, in a process of its own: mutants.sh --hunt SCRATCH NUMBER SIMULATOR SEEDS [PATCH] -------------------------
# What is said lies in SCRATCH/NUMBER.said; SCRATCH/NUMBER.caught is there if the mutant was.  Without a patch: none must be.
line() { sed -n "s/^$sim: seed \([0-9]*\), step [0-9]*, \([0-9.]*\) s: \(.*\)/seed \1, \2 s: \3/p" "$1" | head -1; }
# lives SEEDS-OPTIONS...: runs the mutant; its words lie in $mine.out and $mine.err
lives() { timeout 600 "$mine" "$@" >"$mine.out" 2>"$mine.err"; }
caught() { # PATCH
    name=$(basename "$1" .patch)
    file=$(sed -n 's,^+++ b/,,p' "$1")
    from=$(sed -n '1s/^Seeds from //p' "$1")
    cp "$root/$file" "$mine.c"
    if ! patch -s "$mine.c" "$1" >"$mine.out" 2>&1; then
        printf '%-28s DOES NOT APPLY to %s\n' "$name" "$file"
        return 1
    fi
    # What the archives hold of that file is not linked: the mutant's object comes first, and has all of its names.
    if ! { ${CC:-cc} -O1 -w -fPIE -D_GNU_SOURCE -I"$root/src" -I"$root/test" -c -o "$mine.o" "$mine.c" &&
        ${CC:-cc} -pie -o "$mine" "$mine.o" "$build/test/sim/$sim.o" "$build/test.a" "$build/core.a" -ljansson -lm; } \
        >"$mine.out" 2>&1; then
        printf '%-28s DOES NOT BUILD\n' "$name"
        return 1
    fi
    if [ -n "$from" ] && ! lives --seed "$from" --seeds $((seeds - from + 1)); then :
    elif lives --seeds "$seeds"; then
        printf '%-28s LIVES after %s seeds\n' "$name" "$seeds"
        return 1
    fi
    found=$(line "$mine.out")
    assertion=$(sed -n 's/.*Assertion/ (Assertion/;s/ failed\.$/)/p' "$mine.err" | grep '(Assertion' | head -1)
    printf '%-28s %s\n' "$name" "${found:-no word}${found:+$assertion}"
    [ -n "$found" ]
}
if [ "${1:-}" = --hunt ]; then
    mine=$2/$3 sim=$4 seeds=$5
    if [ $# -gt 5 ]; then caught "$here/$6"
    elif timeout 600 "$build/test/sim/$sim" --seeds "$seeds" >"$mine.out" 2>&1; then :
    else cat "$mine.out"; echo "mutants: $sim fails without any mutant"; false; fi >"$mine.said" && : >"$mine.caught"
    rm -f "$mine" "$mine".c "$mine".o "$mine".out "$mine".err
    exit 0
fi

# --- all of them ----------------------------------------------------------------------------------------------------
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
sims="sim_cluster sim_probe sim_node"
seeds_of() { case $1 in sim_cluster) echo "$clusters" ;; sim_probe) echo "$probes" ;; *) echo "$nodes" ;; esac; }
folder_of() { case $1 in sim_node) echo mutants ;; *) echo "mutants/${1#sim_}" ;; esac; }
nodes=${1:-20000} clusters=${2:-12000} probes=${3:-3000}
for sim in $sims; do
    echo "$sim.0 $sim $(seeds_of $sim)" # first: the cluster's takes longest of all
done >"$scratch/list"
for sim in $sims; do
    n=0
    for patch in $(cd "$here" && ls "$(folder_of $sim)"/*.patch); do
        n=$((n + 1))
        echo "$sim.$(printf %03d $n) $sim $(seeds_of $sim) $patch"
    done
done >>"$scratch/list"
xargs -P"${JOBS:-$(nproc)}" -L1 sh "$here/mutants.sh" --hunt "$scratch" <"$scratch/list"

bad=0
for sim in $sims; do
    cat "$scratch/$sim".*.said
    total=$(grep -c "^$sim\.[0-9]* $sim [0-9]* ." "$scratch/list")
    hunted=$(ls "$scratch/$sim".[0-9]*.caught 2>/dev/null | grep -vc '\.0\.caught$')
    echo "mutants: $hunted of $total caught by $sim within $(seeds_of $sim) seeds"
    [ "$hunted" = "$total" ] && [ "$total" -gt 0 ] && [ -e "$scratch/$sim.0.caught" ] || bad=1
done
exit $bad
