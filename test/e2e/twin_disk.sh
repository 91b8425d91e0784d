# The twins of twin.sh with checkpoints on disk: now the agent ends, too, with bits flipped in what it had written, or with a full
# disk, and is started again.  No start goes back further than what was still whole.
# Seen to fail: a build without an emergency checkpoint; one that does not compare what it reads from disk with its sums; one that leaves what
# is there already when a step is reached again (the last one).
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/twins.sh"
disks 1
twins 2 1 2 shared $DISKS
finished
