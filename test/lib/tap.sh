# tap.sh FOLDER [prove options] TEST...: runs the tests with prove; the raw TAP is kept under FOLDER, where skips.sh counts it.
folder=$1; shift
last=; for last; do :; done
case $last in -*|''|sh) echo "tap.sh: no tests for $folder"; exit 0 ;; esac
rm -rf "$folder"; mkdir -p "$folder"
unset MAKEFLAGS MAKELEVEL MFLAGS
PERL_TEST_HARNESS_DUMP_TAP=$folder exec prove --merge --failures --comments --timer "$@"
