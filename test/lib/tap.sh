# tap.sh FOLDER [prove options] TEST...: runs the tests with prove; the raw TAP is kept under FOLDER, where skips.sh counts it.
# Tests that failed, six at most, are run again on their own, twice at most: many processes on few processors can make a good test
# late.  The failure stays on the screen, and the last lines of make check name each test that only passed alone.
folder=$1; shift
last=; for last; do :; done
case $last in -*|''|sh) echo "tap.sh: no tests for $folder"; exit 0 ;; esac
rm -rf "$folder" "$folder.state" "$folder.alone"; mkdir -p "$folder"
unset MAKEFLAGS MAKELEVEL MFLAGS
export PERL_TEST_HARNESS_DUMP_TAP=$folder

prove --state=save --statefile="$folder.state" --merge --failures --comments --timer "$@" && exit 0
again=$(prove --dry --state=failed --statefile="$folder.state") || exit 1
[ "$(printf '%s\n' "$again" | wc -l)" -le 6 ] || exit 1
how=; while [ $# -gt 0 ]; do # what stood before the tests, without what is for many
    case $1 in -j*|--rules=*) ;; -e) how="$how -e '$2'"; shift ;; -*) how="$how $1" ;; *) break ;; esac; shift
done
for test in $again; do
    for try in first second none; do
        [ $try != none ] || { echo "tap.sh: $test failed alone, too"; exit 1; }
        echo "tap.sh: once more, alone, $try time: $test"
        eval "prove $how --merge --failures --comments --timer $test" && break
    done
    printf 'passed only on its own (%s time): %s\n' $try "$test" >> "$folder.alone"
done
