# The JSON of a probe against its manual: every member is described, and nothing that is not there.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
page=$(dirname "$0")/../../man/elrun-verdict.7
n=0
ok() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi; }
# Names of metrics and facts are lists of their own.
"$BUILD/test/unit/test_member_msg" --json >"$tmp/json"; ok $? 'a report as JSON'
grep -oE '"[a-z_0-9]+":' "$tmp/json" | tr -d '":' | grep -vxE 'lat_us|bw64m|bw1g|kernel' | sort -u >"$tmp/members"
sed -n '/^\.Sh JSON/,/^\.Sh SEE/p' "$page" | sed -nE 's/^\.(It )?(Pq )?Ic ([a-z_]+).*/\3/p' | sort -u >"$tmp/manual"
[ "$(wc -l <"$tmp/members")" -gt 30 ]; ok $? 'with its members'
comm -23 "$tmp/members" "$tmp/manual" | sed 's/^/# not described: /' >"$tmp/missing"
! [ -s "$tmp/missing" ]; ok $? 'every member is described'; cat "$tmp/missing"
comm -13 "$tmp/members" "$tmp/manual" | sed 's/^/# described, but not there: /' >"$tmp/more"
! [ -s "$tmp/more" ]; ok $? 'and no other'; cat "$tmp/more"
echo "1..$n"
