# The figures in README.md are those of test/bench/RESULTS.md, word by word; every file that it links to is there.
cd "$(dirname "$0")/../.." || exit 1
n=0
check() { n=$((n + 1)); if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /'; fi; }

figures=$(sed -n '/^<!-- figures:/,/^<!-- end of figures/p' README.md | grep '^|' | grep -v '^| ---')
check "README has its place for figures" "$(grep -q '^<!-- figures:' README.md && grep -q '^<!-- end of figures' README.md || echo missing)"
check "figures in README are rows of RESULTS.md" "$(printf '%s\n' "$figures" | while IFS= read -r row; do
    [ -z "$row" ] || grep -qxF -e "$row" test/bench/RESULTS.md || printf 'not in RESULTS.md: %s\n' "$row"
done)"
check "README shows every restart that RESULTS.md has, the slow ones, too" "$(
    grep "^| worker's death.* to all [0-9]* running again" test/bench/RESULTS.md | awk -F' [|] ' '!seen[$1]++' | while IFS= read -r row; do
        printf '%s\n' "$figures" | grep -qxF -e "$row" || printf 'not in README: %s\n' "$row"
    done)"
check "README has figures" "$([ -n "$figures" ] || echo 'README shows none of RESULTS.md')"
for page in README.md CONTRIBUTING.md examples/README.md; do
    check "links of $page lead somewhere" "$(grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | while read -r to; do
        case $to in http*) ;; *) [ -e "$(dirname "$page")/$to" ] || echo "$to" ;; esac
    done)"
done
check "README fits two screens" "$([ "$(wc -l < README.md)" -le 100 ] || echo "$(wc -l < README.md) lines")"
echo "1..$n"
