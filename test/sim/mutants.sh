#!/bin/sh
# mutants.sh N: does the simulator bite?  Each patch under test/sim/mutants changes one line of the node core.  It is
# applied to a scratch copy, the simulator is built from that, and must find the bug within N seeds (default 20000).
# Prints a table: mutant, the seed that found it, what it said.  Fails if one lives, or does not apply or build.
set -u
seeds=${1:-20000}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cc=${CC:-cc}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP

# What does not change is compiled once: the mutant's file is the only one that is compiled for each.
flags="-O1 -D_GNU_SOURCE -I$root/src -I$root/test"
objects=
for c in src/util/mem.c test/sim/trace.c test/sim/world.c test/sim/judge.c test/sim/sim_node.c src/proc/policy.c src/agent/agent.c; do
    o=$scratch/$(basename "$c" .c).o
    $cc $flags -c -o "$o" "$root/$c" || exit 1
    objects="$objects $o"
done
$cc -o "$scratch/clean" $objects || exit 1
if ! "$scratch/clean" --seeds "$seeds" >"$scratch/said" 2>&1; then
    cat "$scratch/said"
    echo "mutants: the simulator fails without any mutant"
    exit 1
fi

alive=0 total=0
for patch in "$here"/mutants/*.patch; do
    name=$(basename "$patch" .patch)
    file=$(sed -n 's,^+++ b/,,p' "$patch")
    total=$((total + 1))
    cp "$root/$file" "$scratch/mutant.c"
    if ! patch -s "$scratch/mutant.c" "$patch" >"$scratch/said" 2>&1; then
        printf '%-28s DOES NOT APPLY to %s\n' "$name" "$file"
        alive=$((alive + 1))
        continue
    fi
    others=$(printf '%s\n' $objects | grep -v "/$(basename "$file" .c).o\$")
    if ! $cc $flags -w -o "$scratch/mutant" "$scratch/mutant.c" $others >"$scratch/said" 2>&1; then
        printf '%-28s DOES NOT BUILD\n' "$name"
        alive=$((alive + 1))
        continue
    fi
    if timeout 60 "$scratch/mutant" --seeds "$seeds" >"$scratch/said" 2>"$scratch/err"; then
        printf '%-28s LIVES after %s seeds\n' "$name" "$seeds"
        alive=$((alive + 1))
    else
        found=$(sed -n 's/^sim_node: seed \([0-9]*\), step [0-9]*, \([0-9.]*\) s: \(.*\)/seed \1, \2 s: \3/p' "$scratch/said" | head -1)
        printf '%-28s %s\n' "$name" "${found:-no word}${found:+$(sed -n 's/.*Assertion/ (Assertion/;s/ failed\.$/)/p' "$scratch/err" | grep '(Assertion' | head -1)}"
        [ -n "$found" ] || alive=$((alive + 1))
    fi
done
echo "mutants: $((total - alive)) of $total caught within $seeds seeds"
[ "$alive" -eq 0 ]
