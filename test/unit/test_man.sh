# The manual, --help and the completions name the same options, commands, exit statuses, signals and variables: those of
# the binary, and no other.
set -u
: "${ELRUN:?}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
page=man/elrun.1
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
# same A B WHAT: two files with one name a line, in any order.
same() {
    sort -u "$tmp/$1" >"$tmp/a"; sort -u "$tmp/$2" >"$tmp/b"
    said=$(diff "$tmp/a" "$tmp/b") && [ -s "$tmp/a" ]; ok $? "$3"
    [ -z "$said" ] || echo "$said" | sed -n 's/^[<>]/# &/p'
}
options() { sed -nE 's/^  (-.,|   ) --([a-z-]+).*/\2/p'; }
section() { sed -n "/^\.Sh $1\$/,/^\.Sh /p" $page; }

commands=$("$ELRUN" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
: >"$tmp/binary"
: >"$tmp/store"
: >"$tmp/status"
: >"$tmp/report"
: >"$tmp/probe"
: >"$tmp/ckpt"
for c in $commands; do
    "$ELRUN" "$c" --help >"$tmp/help"; ok $? "elrun $c --help"
    "$ELRUN" help "$c" | cmp -s - "$tmp/help"; ok $? "elrun help $c says the same"
    case $c in store) to=store ;; status | logs | scale | drain | restart | stop) to=status ;; report | probe | ckpt) to=$c ;; *) to=binary ;; esac
    options <"$tmp/help" >>"$tmp/$to"
    awk 'length > 100 { exit 1 }' "$tmp/help"; ok $? "in 100 columns"
done
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' $page >"$tmp/manual"
same binary manual 'the manual has every option and no other'
cat "$tmp/store" "$tmp/status" "$tmp/report" "$tmp/probe" "$tmp/ckpt" "$tmp/binary" >"$tmp/all"
"$ELRUN" store get --help | options >>"$tmp/store"
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' man/elrun-store.1 >"$tmp/manual"; echo help >>"$tmp/manual"
same store manual 'elrun-store.1 has every option of the store and its verbs, and no other'
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' man/elrun-status.1 >"$tmp/manual"
same status manual 'elrun-status.1 has every option of its six commands, and no other'
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' man/elrun-report.1 >"$tmp/manual"
same report manual 'elrun-report.1 has every option, and no other'
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' man/elrun-probe.1 >"$tmp/manual"; echo help >>"$tmp/manual"
same probe manual 'elrun-probe.1 has every option, and no other'
sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' man/elrun-ckpt.1 >"$tmp/manual"
same ckpt manual 'elrun-ckpt.1 has every option, and no other'
section OPTIONS | sed -nE 's/^\.It Fl (. , Fl )?-([a-z-]+).*/\2/p' >"$tmp/manual"
"$ELRUN" run --help | options >"$tmp/run"
same run manual 'and those of run in their section'
section OPTIONS | sed -nE 's/^\.It Fl (.) , Fl -([a-z-]+).*/\1 \2/p' >"$tmp/manual"
"$ELRUN" run --help | sed -nE 's/^  -(.), --([a-z-]+).*/\1 \2/p' >"$tmp/letters"
same letters manual 'short forms'
printf '%s\n' $commands >"$tmp/names"
section COMMANDS | sed -nE 's/^\.It Ic ([a-z-]+).*/\1/p' >"$tmp/manual"
same names manual 'commands'

"$ELRUN" help exit-status | sed -nE 's/^ +([0-9]+)  .*/\1/p' >"$tmp/numbers"
section 'EXIT STATUS' | sed -nE 's/^\.It ([0-9]+)$/\1/p' >"$tmp/manual"
same numbers manual 'exit statuses'
sed -nE 's/^ +X\([A-Z]+, ([0-9]+),.*/\1/p' src/util/exit.h >"$tmp/manual"
same numbers manual 'exit statuses are those of util/exit.h'
"$ELRUN" help signals | grep -oE '^  SIG[A-Z0-9]+(, SIG[A-Z0-9]+)*' | grep -oE 'SIG[A-Z0-9]+' >"$tmp/signals"
section SIGNALS | grep '^\.It Dv' | grep -oE 'SIG[A-Z0-9]+' >"$tmp/manual"
same signals manual 'signals'
"$ELRUN" help environment | sed -nE 's/^  ([A-Z_]+) .*/\1/p' >"$tmp/environment"
sed -n '/BEGIN worker environment/,/END worker environment/s/^\.It Ev \([A-Z_]*\)$/\1/p' $page >"$tmp/manual"
same environment manual 'environment of a worker'

"$ELRUN" help checks | sed -nE 's/^  ([a-z_]+) +(info|warn|bad) +(.{22}).*/\1 \2 \3/p' | sed 's/ *$//' >"$tmp/checks"
sed -nE 's/^\.It Ic ([a-z_]+) Pq (.*)/\1 \2/p' man/elrun-checks.7 >"$tmp/manual"
same checks manual 'checks, with limit and severity'

for shell in bash zsh fish; do
    "$ELRUN" completion $shell >"$tmp/$shell"; ok $? "completion $shell"
    "$ELRUN" run --print-completion=$shell | cmp -s - "$tmp/$shell"; ok $? "--print-completion=$shell is the same"
done
sed -n "/^_elrun_[a-z]*()/,/^}/s/^ *options='\(.*\)'/\1/p" "$tmp/bash" | tr ' ' '\n' | sed -n 's/^--//p' >"$tmp/completed"
same all completed 'bash: every option and no other'
sed -nE "s/^ {8}('\([^)]*\)'\{-.\+?,)?--([a-z-]+).*/\2/p" "$tmp/zsh" >"$tmp/completed"
same all completed 'zsh: every option and no other'
sed -nE "s/^complete .* -l ([a-z-]+) .*/\1/p" "$tmp/fish" >"$tmp/completed"
same all completed 'fish: every option and no other'
! mandoc -Tlint $page man/elrun-store.1 man/elrun-status.1 man/elrun-report.1 man/elrun-probe.1 man/elrun-ckpt.1 man/elrun-checks.7 man/elrun-events.5 man/elrun-worker.7 2>/dev/null | grep -v 'referenced manual not found'; ok $? 'mandoc -Tlint has nothing to say'
echo "1..$n"
