# figures.sh: brings the rows of README.md that come from test/bench/RESULTS.md up to date, each by the first word of it, its name.
# Which rows README shows is decided there; but no restart is hidden behind a quicker one, so each that RESULTS.md has is
# shown.  Called at the end of make bench; test/unit/test_readme.sh checks.
cd "$(dirname "$0")/../.." || exit 1
awk -v results=test/bench/RESULTS.md '
    function restart(name) { return name ~ /^worker.s death.* to all [0-9]+ running again/ }
    BEGIN {
        while ((getline line < results) > 0)
            if (line ~ /^\|/) {
                split(line, cell, " *\\| *")
                if (cell[2] in row) continue
                row[cell[2]] = line
                if (restart(cell[2])) must[++musts] = cell[2]
            }
    }
    /^<!-- figures:/ { inside = 1 }
    /^<!-- end of figures/ {
        inside = 0
        for (i = 1; i <= musts; i++) if (!(must[i] in shown)) print row[must[i]]
    }
    inside && /^\|/ && !/^\| ---/ {
        split($0, cell, " *\\| *")
        if (!(cell[2] in row)) { print "figures.sh: RESULTS.md has no row \"" cell[2] "\"" > "/dev/stderr"; bad = 1 } else $0 = row[cell[2]]
        shown[cell[2]]
    }
    { print }
    END { exit bad }' README.md >README.md.new && mv README.md.new README.md || { rm -f README.md.new; exit 1; }
