# Comments and documents name only what is in the tree: in a scratch tree a file, an included name and a section that are not
# there are found, and those that are there are not.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
mkdir -p "$tmp/src/a" "$tmp/doc"
printf '# The house\n\n## Fence\n' >"$tmp/doc/house.md"
cat >"$tmp/src/a/a.c" <<'C'
/* As a/a.c and src/a/*.c say (doc/house.md, "Fence"). */
/* As a/b.h and src/a/c.h say (doc/house.md, "Gate", "Fence"; doc/yard.md, "Wall"). */
C
python3 test/lib/references.py "$tmp" >"$tmp/../said.$$"
ok $(($? != 1)) "what is not there ends the check with 1"
mv "$tmp/../said.$$" "$tmp/said"
for want in 'src/a/a.c:2: src/a/b.h is not there' 'src/a/a.c:2: src/a/c.h is not there' 'src/a/a.c:2: doc/yard.md is not there' \
    'src/a/a.c: doc/house.md has no section "Gate"'; do
    grep -qxF "$want" "$tmp/said"
    ok $? "found: $want"
done
! grep -v 'b\.h\|c\.h\|Gate\|yard' "$tmp/said" | grep -q .
ok $? "and nothing else: $(tr '\n' ' ' <"$tmp/said")"
python3 test/lib/references.py >"$tmp/said"
ok $? "this tree names only what is in it: $(head -n 3 "$tmp/said" | tr '\n' ' ')"
echo "1..$n"
