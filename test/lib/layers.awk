# awk -f test/lib/layers.awk test/lib/layers.txt src/*/*.[ch] …: prints each #include "folder/…" that leads to a folder
# further down in the list, and each folder that is not in it.  A file in a folder of a folder (src/probe/child) belongs to
# the outer one.
FNR == NR { if ($0 !~ /^#/ && NF) rank[$1] = NR; next }
FNR == 1 {
    split(substr(FILENAME, index(FILENAME, "src/") + 4), part, "/")
    here = part[1]
    if (!(here in rank) && !(here in missed)) { missed[here]; print "src/" here ": not in test/lib/layers.txt" }
}
/^ *# *include "/ {
    split($0, quoted, "\"")
    if (split(quoted[2], part, "/") < 2 || part[1] == "..") next
    if (!(part[1] in rank)) { print FILENAME ":" FNR ": " quoted[2] ": not in test/lib/layers.txt"; next }
    if (rank[part[1]] > rank[here]) print FILENAME ":" FNR ": " here " is below " part[1] ", and may not include " quoted[2]
}
