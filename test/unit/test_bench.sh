# The report of the benchmarks judges each budget by the medians of the run, and nothing that was not measured.
cd "$(dirname "$0")/../.." || exit 1
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
n=0
# row WHAT BUDGET SAMPLES-OF-ELRUN SAMPLES-OF-PEER WANT: what the last cell of the table says
row() {
    n=$((n + 1))
    printf '{"bench":"b","metric":"m","unit":"ms","who":"elrun","from":"a","to":"z","budget":"%s","samples":[%s]}\n' "$2" "$3" >"$T/rows"
    printf '{"bench":"b","metric":"m","unit":"ms","who":"the peer","from":"a","to":"z","samples":[%s]}\n' "$4" >>"$T/rows"
    got=$(python3 test/lib/bench_report.py /dev/null "$T/rows" 2>&1 | sed -n 's/^| m .*| \(.*\) |$/\1/p' | head -1)
    if [ "$got" = "$5" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "# got: $got"; echo "# want: $5"; fi
}
row "a limit"                        "<= 5 ms"             "9,5,1"  ""      "<= 5 ms: met"
row "a limit that is passed"         "<= 5 ms"             "9,6,1"  ""      "<= 5 ms: **not met**"
row "a limit that must not be met"   "< 4096"              "4096"   ""      "< 4096: **not met**"
row "a part of the peer's"           "<= 1/3 x the peer"   "1"      "3,3,9" "<= 1/3 x the peer: met"
row "more than a part of the peer's" "<= 1/3 x the peer"   "1.1"    "3"     "<= 1/3 x the peer: **not met**"
row "a multiple of the peer's"       ">= 0.9 x the peer"   "90"     "100"   ">= 0.9 x the peer: met"
row "too little of the peer's"       ">= 0.9 x the peer"   "89"     "100"   ">= 0.9 x the peer: **not met**"
row "a peer that could not run"      ">= 0.9 x the peer"   "89"     ""      ">= 0.9 x the peer"
row "nothing was measured"           "<= 5 ms"             ""       "1"     "<= 5 ms"
# line WHAT UNIT TAIL SAMPLES WANT: the cell of elrun, and the last one
line() {
    n=$((n + 1))
    printf '{"bench":"b","metric":"m","unit":"%s","who":"elrun","from":"a","to":"z",%s"samples":[%s]}\n' "$2" "$3" "$4" >"$T/rows"
    got=$(python3 test/lib/bench_report.py /dev/null "$T/rows" 2>&1 | sed -n 's/^| m | \([0-9].*\) |$/\1/p' | head -1)
    if [ "$got" = "$5" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "# got: $got"; echo "# want: $5"; fi
}
twenty=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,2.5
line "the worst of all is shown"               ms      ""                     "$twenty,3"    "1 ms (p90 2, max 3) |  | "
line "one far off without a reason"            ms      ""                     "$twenty,3.1"  "1 ms (p90 2, max 3.1) |  |  | **not known**"
line "one far off and its reason"              ms      '"tail":"a lease",'    "$twenty,5000" "1 ms (p90 2, max 5,000) |  |  | a lease"
line "a reason of what did not happen"         ms      '"tail":"a lease",'    "$twenty,3"    "1 ms (p90 2, max 3) |  | "
line "few runs are said"                       ms      ""                     "1,2,3"        "2 ms (p90 3, max 3; only 3) |  | "
line "the worst of a rate is the lowest"       GB/s    '"tail":"a lease",'    "$twenty,0.1"  "1 GB/s (p90 1, min 0.1) |  | "
n=$((n + 1))
printf '{"bench":"b","metric":"m","unit":"ms","who":"elrun","from":"a","to":"z","budget":"fast","samples":[1]}\n' >"$T/rows"
if python3 test/lib/bench_report.py /dev/null "$T/rows" 2>&1 | grep -q "cannot judge the budget 'fast'"; then
    echo "ok $n - a budget that says nothing is refused"; else echo "not ok $n - a budget that says nothing is refused"; fi
echo "1..$n"
