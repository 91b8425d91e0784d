# A training and its twin that is disturbed, from the agent's memory: workers killed, one or all, stopped, bits flipped in a snapshot.
# Seen to fail: without elrun.Rng() in what is declared; one that walks through lists when they are declared and misses what they grow by;
# a build that does not compare a slot with its sums before it offers it.
. "$(dirname "$0")/../lib/e2e.sh"
. "$(dirname "$0")/../lib/twins.sh"
twins 5 1 2 none
is_clean "twins"
finished
