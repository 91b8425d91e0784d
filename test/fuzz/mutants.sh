#!/bin/sh
# mutants.sh [T]: do the fuzz targets bite?  Each patch test/fuzz/mutants/TARGET-NAME.patch changes one line of the core; fuzz_TARGET,
# linked with it, must fail within T seconds (default 60), and must not fail without one.  What it is run by, and what it is
# linked with, comes from make fuzz-mutants.  Prints a table; fails if one lives, or does not apply or build.
set -u
: "${BUILD:?}" "${FUZZING:?the compiler with its options}" "${LIBS=}"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
time=${1:-60} bad=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
# hunt TARGET: runs $scratch/fuzz; its words lie in $scratch/said
hunt() {
    mkdir -p "$scratch/new"
    "$scratch/fuzz" -seed=1 -max_total_time="$time" -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$scratch/" \
        "$scratch/new" "$here/corpus/fuzz_$1" >"$scratch/said" 2>&1
    hunted=$?
    rm -rf "$scratch/new"
    return $hunted
}
# What the archive holds of that file is not linked: the mutant's object comes first, and has all of its names.
link() { $FUZZING -w -I"$root/src" -I"$root/test" -fsanitize=fuzzer,address,undefined -pie -o "$scratch/fuzz" "$@" "$BUILD/fuzz.a" $LIBS; }
for patch in "$here"/mutants/*.patch; do
    name=$(basename "$patch" .patch)
    target=${name%%-*}
    file=$(sed -n 's,^+++ b/,,p' "$patch")
    cp "$root/$file" "$scratch/mutant.c"
    if ! patch -s "$scratch/mutant.c" "$patch" >"$scratch/said" 2>&1; then said="DOES NOT APPLY to $file" bad=1
    elif ! link "$here/fuzz_$target.c" "$scratch/mutant.c" >"$scratch/said" 2>&1; then said="DOES NOT BUILD" bad=1
    elif hunt "$target"; then said="LIVES after $time s" bad=1
    else
        said=$(sed -n 's/.*: Assertion/Assertion/p; s/.*ERROR: \(AddressSanitizer: [^ ]*\).*/\1/p; s/.*runtime error/runtime error/p' "$scratch/said" | head -1)
        said="${said:-an answer that must not be}"
    fi
    printf '%-40s %s\n' "$name" "$said"
done
for target in $(cd "$here/mutants" && ls | sed 's/-.*//' | sort -u); do
    link "$here/fuzz_$target.c" && hunt "$target" || { cat "$scratch/said"; echo "mutants: fuzz_$target fails without any mutant"; bad=1; }
done
exit $bad
