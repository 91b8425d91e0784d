# figures.sh: brings the rows of README.md that come from test/bench/RESULTS.md up to date.  Which rows README shows is decided
# there: by the first word of each, its name.  Called at the end of make bench; test/unit/test_readme.sh checks.
cd "$(dirname "$0")/../.." || exit 1
awk -v results=test/bench/RESULTS.md '
    BEGIN { while ((getline line < results) > 0) if (line ~ /^\|/) { split(line, cell, " *\\| *"); if (!(cell[2] in row)) row[cell[2]] = line } }
    /^<!-- figures:/ { inside = 1 }
    /^<!-- end of figures/ { inside = 0 }
    inside && /^\|/ && !/^\| ---/ {
        split($0, cell, " *\\| *")
        if (!(cell[2] in row)) { print "figures.sh: RESULTS.md has no row \"" cell[2] "\"" > "/dev/stderr"; bad = 1 } else $0 = row[cell[2]]
    }
    { print }
    END { exit bad }' README.md >README.md.new && mv README.md.new README.md || { rm -f README.md.new; exit 1; }
