#!/bin/sh
# mutants.sh [N [M [P]]]: do the simulators bite?  Each patch under test/sim/mutants changes one line of the node core, each
# under test/sim/mutants/cluster one of the coordinator or of the node's side of the rendezvous, each under
# test/sim/mutants/probe one of the plan of a probe.  It is applied to a scratch copy, the simulator is built from that,
# and must find the bug within N seeds (default 20000), the cluster's within M (default 12000), the probe's within P
# (default 3000).
# Prints a table: mutant, the seed that found it, what it said.  Fails if one lives, or does not apply or build.
set -u
nodes=${1:-20000}
clusters=${2:-12000}
probes=${3:-3000}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cc=${CC:-cc}
core=${BUILD:-$root/build}/core.a # make check-mutants has built it
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
flags="-O1 -D_GNU_SOURCE -I$root/src -I$root/test"
# hunt SIMULATOR SEEDS FOLDER LIBS SOURCE...: the simulator's own sources, and those that a mutant changes, are compiled
# here, once and for each mutant; all else comes from the archive of the core.  Fails if one lives.  In a shell of its own,
# for hunts run side by side.
hunt() (
    sim=$1 seeds=$2 folder=$3 libs="$core $4" scratch=$scratch/$1
    shift 4
    # shellcheck disable=SC2046
    set -- "$@" $(sed -n 's,^+++ b/,,p' "$folder"/*.patch | sort -u)
    mkdir "$scratch"
    objects=
    for c; do
        o=$scratch/$sim-$(echo "${c%.c}" | tr / -).o
        $cc $flags -c -o "$o" "$root/$c" || exit 1
        objects="$objects $o"
    done
    $cc -o "$scratch/clean" $objects $libs || exit 1
    if ! "$scratch/clean" --seeds "$seeds" >"$scratch/said" 2>&1; then
        cat "$scratch/said"
        echo "mutants: $sim fails without any mutant"
        exit 1
    fi
    alive=0 total=0
    for patch in "$folder"/*.patch; do
        name=$(basename "$patch" .patch)
        file=$(sed -n 's,^+++ b/,,p' "$patch")
        total=$((total + 1))
        cp "$root/$file" "$scratch/mutant.c"
        if ! patch -s "$scratch/mutant.c" "$patch" >"$scratch/said" 2>&1; then
            printf '%-28s DOES NOT APPLY to %s\n' "$name" "$file"
            alive=$((alive + 1))
            continue
        fi
        others=$(printf '%s\n' $objects | grep -v "/$sim-$(echo "${file%.c}" | tr / -).o\$")
        if ! $cc $flags -w -o "$scratch/mutant" "$scratch/mutant.c" $others $libs >"$scratch/said" 2>&1; then
            printf '%-28s DOES NOT BUILD\n' "$name"
            alive=$((alive + 1))
            continue
        fi
        if timeout 600 "$scratch/mutant" --seeds "$seeds" >"$scratch/said" 2>"$scratch/err"; then
            printf '%-28s LIVES after %s seeds\n' "$name" "$seeds"
            alive=$((alive + 1))
        else
            found=$(sed -n "s/^$sim: seed \([0-9]*\), step [0-9]*, \([0-9.]*\) s: \(.*\)/seed \1, \2 s: \3/p" "$scratch/said" | head -1)
            printf '%-28s %s\n' "$name" "${found:-no word}${found:+$(sed -n 's/.*Assertion/ (Assertion/;s/ failed\.$/)/p' "$scratch/err" | grep '(Assertion' | head -1)}"
            [ -n "$found" ] || alive=$((alive + 1))
        fi
    done
    echo "mutants: $((total - alive)) of $total caught by $sim within $seeds seeds"
    [ "$alive" -eq 0 ]
)

hunt sim_node "$nodes" "$here/mutants" "" \
    test/sim/trace.c test/sim/world.c test/sim/judge.c test/sim/sim_node.c >"$scratch/nodes" &
nodes_hunt=$!
hunt sim_probe "$probes" "$here/mutants/probe" "" test/sim/sim_probe.c
probes_caught=$?
hunt sim_cluster "$clusters" "$here/mutants/cluster" "-ljansson -lm" \
    $(grep -l '"sim/cluster.h"' test/sim/*.c)
clusters_caught=$?
wait "$nodes_hunt"
nodes_caught=$?
cat "$scratch/nodes"
[ "$clusters_caught" -eq 0 ] && [ "$nodes_caught" -eq 0 ] && [ "$probes_caught" -eq 0 ]
