# Every optimizer, scheduler and scaler trains with snapshots as without, to the bit, before and after two restarts; declare(),
# snapshot() and a restore() of nothing make no step, call no hook, draw no number and touch no gradient.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/state.sh"

cases optimizers state_optims.py
finished
