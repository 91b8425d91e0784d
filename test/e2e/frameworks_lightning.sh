# Lightning's Trainer (examples/lightning_snapshots.py): 8 steps an epoch, each with a validation behind it.
. "$(dirname "$0")/../lib/frameworks.sh"
as_without lightning 1 24 "5 8 14"
as_without lightning 2 24 "3 8" # 4 steps an epoch
is_clean "lightning"
finished
