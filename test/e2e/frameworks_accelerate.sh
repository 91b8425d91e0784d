# A training with accelerate (examples/accelerate_snapshots.py): 10 steps an epoch.
. "$(dirname "$0")/../lib/frameworks.sh"
as_without accelerate 1 24 "5 14"
as_without accelerate 2 24 "7 10"
is_clean "accelerate"
finished
