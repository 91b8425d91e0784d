# transformers' Trainer (examples/transformers_snapshots.py): 12 steps an epoch, with evaluations and accumulated gradients.
. "$(dirname "$0")/../lib/frameworks.sh"
as_without transformers 1 20 "5 12 14"
as_without transformers 2 20 "5 6" # 6 steps an epoch
is_clean "transformers"
finished
