# Arrows between folders point down: includes planted in a scratch tree are refused, those that point down pass, and
# CONTRIBUTING.md shows the same folders in the same order as the list that is checked.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
mkdir -p "$tmp/src/low" "$tmp/src/high/child" "$tmp/src/lost"
printf '# a comment\nlow   below\nhigh  above\n' >"$tmp/list"

# layers FILE TEXT: what the check says of a file with that text.
layers() {
    printf '%s\n' "$2" >"$tmp/src/$1"
    awk -f test/lib/layers.awk "$tmp/list" "$tmp/src/$1"
}

layers high/a.c '#include "low/b.h"' | grep -q . && r=1 || r=0
ok $r "a file may include what is below it"
layers high/a.c '#include "high/b.h"' | grep -q . && r=1 || r=0
ok $r "a file may include what lies beside it"
layers high/child/a.c '#include "low/b.h"' | grep -q . && r=1 || r=0
ok $r "a folder in a folder belongs to the outer one"
layers low/a.c '#include <stdio.h>' | grep -q . && r=1 || r=0
ok $r "headers of the system are not looked at"
layers low/a.c '#include "high/b.h"' | grep -q '^.*/src/low/a\.c:1: low is below high, and may not include high/b\.h$'
ok $? "an include that points up is refused with file and line"
layers low/a.c '# include "high/b.h"' | grep -q 'may not include'
ok $? "so is one with a blank behind the #"
layers low/a.c '#include "nowhere/b.h"' | grep -q 'nowhere/b\.h: not in'
ok $? "an include from a folder that is not in the list is refused"
layers lost/a.c 'int a;' | grep -q '^src/lost: not in'
ok $? "a folder that is not in the list is named"

awk -f test/lib/layers.awk test/lib/layers.txt $(find src -name '*.[chS]') >"$tmp/said"
test ! -s "$tmp/said"
ok $? "no include of this tree points up: $(head -n 3 "$tmp/said" | tr '\n' ' ')"
for folder in $(ls src); do grep -q "^$folder " test/lib/layers.txt || echo "$folder"; done >"$tmp/said"
awk '!/^#/ && NF { print $1 }' test/lib/layers.txt | while read -r folder; do [ -d "src/$folder" ] || echo "$folder"; done >>"$tmp/said"
test ! -s "$tmp/said"
ok $? "the list names each folder of src, and no other: $(tr '\n' ' ' <"$tmp/said")"
grep -v '^#' test/lib/layers.txt | sed 's|^|src/|' >"$tmp/list"
sed -n 's|^src/|src/|p' CONTRIBUTING.md | diff "$tmp/list" - >"$tmp/said"
ok $? "CONTRIBUTING.md shows the list as it is: $(head -n 3 "$tmp/said" | tr '\n' ' ')"
echo "1..$n"
