# What nothing uses is named: planted in a scratch tree, an exported function that only a test calls, a macro, an enumerator
# and a line of the allow list that is not needed are found, and what is used by pasting, in its own file, or allowed is not.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
mkdir -p "$tmp/src/a" "$tmp/cmd" "$tmp/test/lib"
cat >"$tmp/src/a/a.h" <<'C'
#define USED 1
#define UNUSED 2 /* UNUSED, says a comment */
#define ROW_one_FIELDS 3
#define FIELDS(name) ROW_##name##_FIELDS
enum { FIRST, SECOND };
int used(int of);
int unused(int of);
int allowed(void);
C
cat >"$tmp/src/a/a.c" <<'C'
#include "a/a.h"
static int inner(int of) { return of + FIRST; }
int used(int of) { return inner(of) + USED + FIELDS(one); }
int unused(int of) { return of; }
int allowed(void) { return 0; }
C
printf '#include "a/a.h"\nint main(void) { const char *said = "unused SECOND"; return used(said[0]); }\n' >"$tmp/cmd/main.c"
printf '# reasons\nallowed  a test looks at it\nused     not needed\n' >"$tmp/test/lib/dead.allow"
python3 test/lib/dead.py "$tmp" >"$tmp/said"
ok $(($? != 1)) "something dead ends the check with 1"
for name in 'function unused' 'macro UNUSED' 'enumerator SECOND'; do
    grep -q "$name has no use" "$tmp/said"
    ok $? "found: $name"
done
grep -q '^test/lib/dead.allow: used is used' "$tmp/said"
ok $? "a line of the allow list that is not needed is found"
[ "$(grep -c . "$tmp/said")" = 4 ]
ok $? "and nothing else: $(tr '\n' ' ' <"$tmp/said")"
printf 'allowed\nunused\nUNUSED\nSECOND\n' >"$tmp/test/lib/dead.allow"
python3 test/lib/dead.py "$tmp" >"$tmp/said"
ok $? "with all of it allowed the check is content: $(tr '\n' ' ' <"$tmp/said")"
echo "1..$n"
