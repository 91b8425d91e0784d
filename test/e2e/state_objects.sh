# What a snapshot holds of containers, values, arrays, tensors and generators is what the script had, to the last bit,
# and comes back in the script's own variables; what could not come back is refused by declare().
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

cases objects state_objects.py
cases refused state_objects.py refused
finished
