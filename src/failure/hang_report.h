/* Workers of one node that hung together: who stood where, and who kept the others waiting. */
#ifndef FAILURE_HANG_REPORT_H
#define FAILURE_HANG_REPORT_H
#include "failure/failure.h"
#include "util/buf.h"
#include "util/mem.h"

/* Who keeps the others waiting, after the evidence: who is marked as odd already; else, if one group of equal stacks
 * (failure/stacks.h) is smaller than the largest, the first of the smallest.  -1: nobody stands out, or nobody hung.
 */
int hang_report_odd(const struct failure *const *all, unsigned n, struct el_mem *mem);

/* Appends who stood where, as stacks_line(); nothing if nobody hung. */
int hang_report_text(struct el_buf *out, const struct failure *const *all, unsigned n);

#endif
