/* Which history a step is of.  When a job goes back to step 5 and trains on, its next step 6 has the number of one that
 * it has given up, and is another one; a node that was away, or a directory of its own, may still hold the old one.  So
 * a step is known by its number and its lineage: 64 bits that say from which agreement on its ranks trained.  All nodes
 * compute the same; what is restored keeps the lineage that it was written with.  0: not known. */
#ifndef CKPT_LINEAGE_H
#define CKPT_LINEAGE_H
#include <stdint.h>

/* Of what is trained in this round (its number, and the 64 random bits of the coordinator that formed it) since all
 * went on in the agreement's attempt; attempt 0: since the round began, without one.  Never 0. */
uint64_t lineage_begin(uint64_t number, uint64_t coord, uint64_t attempt);

/* Of what a rank trains on in such a history after its script has gone back by itself, and comes to this step now.  All
 * ranks do the same. */
uint64_t lineage_back(uint64_t lineage, int64_t step);

/* What stands in for it in a manifest that was written before there were any: of its epoch,
 * "<number>.<coord>.<counter>", all but the counter of the order, for one history may have several.  0 of "". */
/* Of a step of that lineage that was taken so often before: of this take alone, what follows is of the lineage still.
 */
uint64_t lineage_again(uint64_t lineage, int64_t step, uint64_t take);
uint64_t lineage_of_epoch(const char *epoch);

#endif
