# Input: pure.allow ("symbol [source file ...]", a trailing * matches a prefix), then the output of nm -A.
# Prints one line for each symbol that a core object wants, does not define itself, and is not allowed to have.
NR == FNR { sub(/#.*/, ""); if (NF) { allow[$1] = " "; for (i = 2; i <= NF; i++) allow[$1] = allow[$1] $i " " } next }
{ file = $0; sub(/:.*/, "", file); sub(/^.*\/src\//, "src/", file); sub(/\.o$/, ".c", file) }
$(NF-1) ~ /^[A-TV-Z]$/ { own[$NF] = 1 }
$(NF-1) ~ /^[Uvw]$/    { want[$NF] = want[$NF] file " " }
function permitted(sym, file,   a) {
    for (a in allow)
        if (a == sym || (a ~ /\*$/ && index(sym, substr(a, 1, length(a) - 1)) == 1))
            if (allow[a] == " " || index(allow[a], " " file " ")) return 1
    return 0
}
END {
    for (s in want) {
        if (s in own) continue
        base = s; sub(/^__isoc(99|23)_/, "", base); if (base ~ /^__.*_chk$/) { sub(/^__/, "", base); sub(/_chk$/, "", base) }
        n = split(want[s], files, " ")
        for (i = 1; i <= n; i++) if (files[i] != "" && !permitted(base, files[i])) { print files[i] ": " s " is not for the core"; bad++ }
    }
    exit bad > 0
}
