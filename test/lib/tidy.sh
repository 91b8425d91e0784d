# tidy.sh FILE...: clang-tidy with the checks of .clang-tidy, two files at a time.  Slow (minutes): make tidy, nightly.
[ $# -gt 0 ] || { echo "tidy.sh: no files"; exit 1; }
printf '%s\n' "$@" | xargs -P2 -n1 sh -c '
    clang-tidy --quiet "$0" -- -std=c11 -D_GNU_SOURCE -DELRUN_VERSION=\"0\" -DELRUN_COMMIT=\"0\" -Isrc -Icmd -Itest 2>/dev/null
' || { echo "tidy: see above"; exit 1; }
echo "tidy: $# files are clean"
