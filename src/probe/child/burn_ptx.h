/* The kernel of the burn.  Each thread runs eight chains x = x*x - 1.75, whose chaos makes every wrong bit grow, folds
 * them into a hash after 64 steps and seeds them from it again.  A thread's result depends on its number modulo 32
 * alone, and since fused multiply-add is exact to the last bit (IEEE 754), it is the same on every GPU that works. */
#ifndef CHILD_BURN_PTX_H
#define CHILD_BURN_PTX_H
#include <stdint.h>

#define BURN_NAME       "elrun_burn" /* (uint32_t *out, uint32_t rounds) */
#define BURN_LANES      32
#define BURN_ROUNDS     2000
#define BURN_OPERATIONS 1024 /* of one thread in one round: 64 steps of 8 chains, two each */

extern const char burn_ptx[];

/* What the threads 0 to 31 must write after BURN_ROUNDS. */
extern const uint32_t burn_result[BURN_LANES];

#endif
