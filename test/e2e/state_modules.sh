# Modules come back bit for bit, however their parameters and buffers were rebound, cast, masked, wrapped or averaged between
# declare() and the snapshot, and the optimizer beside them goes on with the parameters that they have.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

cases modules state_modules.py
finished
