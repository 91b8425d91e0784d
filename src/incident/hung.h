/* Workers of one node that hung together: who stood where, and who kept the others waiting.
 * They stand in the same place if the innermost frame of the user's own code is the same: below it, in the waiting
 * itself, equal stacks differ by chance. */
#ifndef INCIDENT_HUNG_H
#define INCIDENT_HUNG_H
#include "incident/failure.h"
#include "util/buf.h"

#define HUNG_PLACES_MAX 8 /* told one by one; the rest is counted */

/* Who keeps the others waiting, after the evidence: who is marked as odd already; else, if some stand elsewhere than
 * most, the first of the smallest place.  -1: no place is larger than the others, or none is known. */
int hung_odd(const struct failure *const *all, unsigned n);

/* Appends "ranks 0,2-7 stood in all_reduce (train.py:28); rank 1 in <module> (train.py:33)", the largest place first;
 * nothing if nobody hung or no place is known. */
int hung_text(struct el_buf *out, const struct failure *const *all, unsigned n);

#endif
