# What a user sees of the command line: one line on stderr, a pointer, and the right status; nothing on stdout.
set -u
: "${ELRUN:?}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
# wrong STATUS POINTER TEXT WORD...: what stderr begins with, after "elrun: ".
wrong() {
    status=$1 pointer=$2 text=$3; shift 3
    "$ELRUN" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; got=$?
    { printf 'elrun: %s\n' "$text"; [ -z "$pointer" ] || printf 'Try `elrun %s --help`.\n' "$pointer"; } >"$tmp/want"
    if [ $got = "$status" ] && cmp -s "$tmp/err" "$tmp/want" && ! [ -s "$tmp/out" ]; then ok 0 "elrun $*"; else
        ok 1 "elrun $*"; echo "# status $got"; sed 's/^/#  got: /' "$tmp/err"; sed 's/^/# want: /' "$tmp/want"
    fi
}

wrong 2 run 'unknown option --nprc-per-node=2; did you mean --nproc-per-node?' --nprc-per-node=2 train.py
wrong 2 run 'unknown option --worker; did you mean --worker-store?' --worker train.py
wrong 2 run 'unknown option -np; did you mean --nproc-per-node?' -np 2 train.py
wrong 2 run '--n is ambiguous: it could be --no-python, --nproc-per-node, --nnodes, --numa-binding, --node-rank' --n 2 x.py
wrong 2 run '--nproc-per-node=0: want a number of workers from 1 to 4096, or cpu, gpu, xpu or auto' --nproc-per-node=0 t.py
wrong 2 run 'no script: say what to start, as in `elrun --nproc-per-node=2 train.py`' run
wrong 2 run 'no script: say what to start, as in `elrun --nproc-per-node=2 train.py`' --nproc 2
wrong 2 run '--tee needs a value before --role: --tee=SPEC' --tee --role x t.py
wrong 2 run '--standalone takes no value, but was given "1"' --standalone=1 t.py
wrong 2 version 'unknown option --jsn; did you mean --json?' version --jsn
wrong 2 version 'version takes no operand' version now
wrong 2 help 'no help about "qqqqqq"; want a command, rendezvous, exit-status, signals, environment or checks' help qqqqqq
wrong 2 help 'no help about "sgnals"; did you mean signals?' help sgnals
wrong 2 completion 'completion: no such shell as "tcsh"; want bash, zsh or fish' completion tcsh
wrong 2 run 'completion: no such shell as "tcsh"; want bash, zsh or fish' --print-completion tcsh
wrong 2 run "--role needs a value: --role=NAME" --role
wrong 66 '' 'script "verison": No such file or directory; did you mean `elrun version`?' verison
wrong 66 '' 'script "verison.py": No such file or directory' verison.py
wrong 66 '' 'script "verison": No such file or directory' --role=x verison
wrong 1 '' 'script "no.py": No such file or directory' --exit-code=torchrun no.py
PET_NNODES=abc
export PET_NNODES
wrong 2 run 'PET_NNODES=abc: want a number of nodes, such as 2, or MIN:MAX, such as 1:4' t.py
"$ELRUN" --help >/dev/null 2>&1; ok $? '--help does not look at PET_NNODES'
"$ELRUN" run --help >/dev/null 2>&1; ok $? 'nor does run --help'
unset PET_NNODES

printf 'print("as a script")\n' >"$tmp/version"
ln -s "$ELRUN" "$tmp/torchrun"
"$ELRUN" run --help >"$tmp/run"
(cd "$tmp" && ./torchrun version 2>/dev/null | grep -q '^as a script$'); ok $? 'called as torchrun no word is a command'
printf 'import sys, os; print(*sys.argv[1:], os.environ["RANK"])\n' >"$tmp/words"
(cd "$tmp" && ./torchrun --standalone --nproc 1 words --version help 2>/dev/null | grep -qx -- '--version help 0')
ok $? 'nor is one behind options, and short forms work'
"$tmp/torchrun" --help | cmp -s - "$tmp/run"; ok $? 'torchrun --help is that of run'
"$tmp/torchrun" >"$tmp/out" 2>"$tmp/err"; ok "$(($? != 2))" 'torchrun alone is status 2, as torchrun'
grep -q '^elrun: no script' "$tmp/err"; ok $? 'and says what is missing'
"$tmp/torchrun" -h >/dev/null; ok $? 'torchrun -h'
ln -s "$ELRUN" "$tmp/torchrun2"
"$tmp/torchrun2" version | grep -q '^elrun '; ok $? 'any other name is elrun'
(cd "$tmp" && "$ELRUN" run version 2>/dev/null | grep -q '^as a script$'); ok $? 'elrun run NAME is a script'

"$ELRUN" >"$tmp/out" 2>"$tmp/err"; ok "$(($? != 2))" 'elrun alone is status 2'
! [ -s "$tmp/out" ] && grep -q '^Usage: elrun' "$tmp/err"; ok $? 'with the overview on stderr'
[ "$("$ELRUN" help | wc -l)" -le 36 ]; ok $? 'the overview fits one screen'
"$ELRUN" help | awk 'length > 80 { exit 1 }'; ok $? 'of 80 columns'
for topic in rendezvous signals; do
    [ "$("$ELRUN" help $topic | wc -l)" -le 36 ]; ok $? "help $topic fits it too"
    "$ELRUN" help $topic | awk 'length > 100 { exit 1 }'; ok $? 'in 100 columns'
done
"$ELRUN" help rendezvous | awk 'length > 80 { exit 1 }'; ok $? 'help rendezvous in 80'
"$ELRUN" --help | cmp -s - "$tmp/err"; ok $? 'which --help prints on stdout'
"$ELRUN" -h | cmp -s - "$tmp/err"; ok $? 'and -h'
"$ELRUN" --nnodes=1 --help | head -1 | grep -q '^Usage: elrun \[run\]'; ok $? '--help behind an option is that of run'
[ "$("$ELRUN" --version)" = "$("$ELRUN" version | head -1)" ]; ok $? '--version'
"$ELRUN" version --json | grep -q '"version": "'; ok $? 'version --json'
"$ELRUN" help >/dev/full 2>"$tmp/err"; ok "$(($? != 73))" 'a full disk below stdout is not success'
grep -q '^elrun: cannot write to standard output: No space left on device$' "$tmp/err"; ok $? 'and is said'
echo "1..$n"
