# lint.sh BUILD: form and first suspicion, in a few seconds: clang-format, mandoc -Tlint, lengths, cppcheck.  The TAP
# lies under BUILD/tap/lint, where skips.sh counts it; what is wrong is printed too.
build=$1
mkdir -p "$build/tap/lint"
tap=$build/tap/lint/lint.tap
log=$build/tap/lint/log
: >"$tap"
n=0; bad=0

# check WHAT COMMAND...: passes if the command succeeds and is silent.
check() {
    what=$1; shift
    n=$((n + 1))
    if "$@" >"$log" 2>&1 && ! [ -s "$log" ]; then
        echo "ok $n - $what" >>"$tap"
        return
    fi
    bad=$((bad + 1))
    echo "not ok $n - $what" >>"$tap"
    sed 's/^/# /' "$log" >>"$tap"
    echo "lint: $what"; head -20 "$log"
}

# One process looks at a hundred files, and names those that it would change: these are asked for, or all if it could not.
deformed() { printf '%s\n' "$@" | xargs -P"$(nproc)" -n100 clang-format --dry-run 2>&1; }
formatted() {
    case $unformed in *"$1:"*) ;; *) return 0 ;; esac
    clang-format "$1" | diff -u --label "$1" "$1" --label "$1, as .clang-format wants it" -
}
# Which other manuals are installed is the host's business.
# A macro in the middle of a line is printed as it stands, and mandoc finds nothing wrong with that.
manual() {
    ! { mandoc -Tlint "$1" 2>/dev/null | grep -v 'referenced manual not found'; grep -nE '^[^.].* \.[A-Z][a-z]( |$)' "$1"; } | grep .
}
suspicious() {
    cppcheck -q --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j"$(nproc)" \
        -D_GNU_SOURCE -Isrc -Icmd src cmd
}

# What is longer is two things, or one that nobody has finished thinking about.
short_files() { wc -l src/*/*.[ch] src/probe/child/*.[ch] cmd/*.[ch] | awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines, 1000 are allowed" }'; }
short_functions() {
    ctags -x --c-kinds=f --_xformat='%F %N %n %{end}' src/*/*.c src/probe/child/*.c cmd/*.c test/*/*.c |
        awk '{ if ($4 - $3 >= 70) print $1 ": " $2 "() has " $4 - $3 + 1 " lines, 70 are allowed"; n++ } END { if (!n) print "ctags shows no function" }'
}

set -- src/*/*.[ch] src/probe/child/*.[ch] cmd/*.[ch] test/*/*.[ch]
unformed=$(deformed "$@") || unformed=$(printf '%s:' "$@")
for f; do check "clang-format $f" formatted "$f"; done
for f in man/*.[1-8]; do check "mandoc -Tlint $f" manual "$f"; done
check "files of at most 1,000 lines" short_files
check "functions of at most 70 lines" short_functions
check cppcheck suspicious

echo "1..$n" >>"$tap"
rm -f "$log"
echo "lint: $((n - bad)) of $n passed"
[ "$bad" = 0 ]
