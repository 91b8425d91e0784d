# The twins of twin.sh on two nodes: two agents agree on the step that both go back to, also when the coordinator dies meanwhile.
# Two ranks on each with $LONG, so that all workers of one node can be killed.
# Seen to fail: a build in which each node goes back to the newest step of its own.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/twins.sh"
ranks=1; [ -z "${LONG:-}" ] || ranks=2
twins 2 2 $ranks none
finished
