/* Whom a failure's words name as the rank that did not come. */
#ifndef INCIDENT_ABSENT_H
#define INCIDENT_ABSENT_H
#include "incident/failure.h"

/* Judged, f a follower: "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms" names rank 3.  Words about
 * the ranks of a group whose numbers are others name nobody. */
bool absent_names(const struct failure *f, unsigned rank);

/* Judged, stopped by elrun, and named by those words: it is the better cause, if nobody failed by itself. */
void absent_mark(struct failure *f, const struct failure *accuser);

#endif
