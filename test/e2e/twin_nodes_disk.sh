# The twins of twin_disk.sh on two nodes with one directory, and with $LONG also with a directory for each: agents and the
# coordinator end in any order, and what is on disk is what all go on from.
# Seen to fail: a build that does not compare what it reads from disk with its sums.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/twins.sh"
ranks=1; [ -z "${LONG:-}" ] || ranks=2
disks 1
twins 3 2 $ranks shared $DISKS
if [ -n "${LONG:-}" ]; then
    at_exit
    disks 2
    twins 3 2 2 local $DISKS
fi
finished
