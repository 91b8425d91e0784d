/* Kinds of files, by name: what an earlier checkpoint of a run has and a later one lacks. */
#ifndef CKPT_KINDS_H
#define CKPT_KINDS_H
#include "ckpt/scan.h"

/* Whether it has the random numbers of ranks that are called so, or those of one rank instead, or of several. */
bool kinds_random(const struct scan_entry *of, const char *name);

/* A file of x of which y has nothing that is called so but for numbers, or fewer; NULL: none.  Names that each
 * checkpoint has anew, as one with a hash in it, do not count: two newer ones of its run have one like it. */
const char *kinds_lacks(const struct scan *s, const struct scan_entry *x, const struct scan_entry *y);

#endif
