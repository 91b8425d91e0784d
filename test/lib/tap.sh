# tap.sh FOLDER [prove options] TEST...: runs the tests with prove; the raw TAP is kept under FOLDER, where skips.sh counts it.
# Tests that ran beside others (-j) and failed, three at most, are run once more on their own: many processes on few processors can
# make a good test late.  The failure stays on the screen, and the last lines of make check name each test that only passed alone.
folder=$1; shift
last=; for last; do :; done
case $last in -*|''|sh) echo "tap.sh: no tests for $folder"; exit 0 ;; esac
rm -rf "$folder" "$folder.state" "$folder.alone"; mkdir -p "$folder"
unset MAKEFLAGS MAKELEVEL MFLAGS
export PERL_TEST_HARNESS_DUMP_TAP=$folder
case " $* " in *" -j"*) ;; *) exec prove --merge --failures --comments --timer "$@" ;; esac

prove --state=save --statefile="$folder.state" --merge --failures --comments --timer "$@" && exit 0
again=$(prove --dry --state=failed --statefile="$folder.state") || exit 1
[ "$(printf '%s\n' "$again" | wc -l)" -le 3 ] || exit 1
echo "tap.sh: failed beside others, once more alone:" $again
how=; while [ $# -gt 0 ]; do # what stood before the tests, without -j
    case $1 in -j*) ;; -e) how="$how -e $2"; shift ;; -*) how="$how $1" ;; *) break ;; esac; shift
done
prove $how --merge --failures --comments --timer $again || exit 1
printf 'passed only on its own: %s\n' $again > "$folder.alone"
