# A name stands for one thing: a static function and a struct that two files of a scratch tree both have are named; what one
# file has, and what a header declares for many, is not.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
mkdir -p "$tmp/src/a" "$tmp/cmd"
printf 'struct shared {\n    int of;\n};\nstatic inline int both(int of) { return of; }\n' >"$tmp/src/a/a.h"
cat >"$tmp/src/a/a.c" <<'C'
#include "a/a.h"
struct row {
    int of;
};
static int take(struct shared *s) { return s->of; }
static int a_look(void) { return 0; }
int a_run(struct shared *s) { return take(s) + a_look(); }
C
cp "$tmp/src/a/a.c" "$tmp/src/a/b.c"
sed -i 's/a_look/b_look/; s/a_run/b_run/' "$tmp/src/a/b.c"
(cd "$tmp" && python3 "$OLDPWD/test/lib/names.py" . >said)
ok $(($? != 1)) "names that stand in two files end the check with 1"
grep -q '^static function take stands in src/a/a.c, src/a/b.c$' "$tmp/said"
ok $? "a static function of two files is named, with both"
grep -q '^struct, union or enum row stands in src/a/a.c, src/a/b.c$' "$tmp/said"
ok $? "so is a struct"
[ "$(grep -c . "$tmp/said")" = 2 ]
ok $? "and nothing else: $(tr '\n' ' ' <"$tmp/said")"
rm "$tmp/src/a/b.c"
python3 test/lib/names.py "$tmp" >"$tmp/said"
ok $? "with one file of each the check is content: $(tr '\n' ' ' <"$tmp/said")"
echo "1..$n"
