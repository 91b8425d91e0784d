/* The rank that did not come: whom a failure's words name; or who said nothing while the others waited in vain. */
#ifndef FAILURE_ABSENT_H
#define FAILURE_ABSENT_H
#include "failure/failure.h"

/* Judged, f a follower: "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms" names rank 3, and a wait in
 * vain for what each rank puts into the store as it comes to init_process_group() names that rank.  Words about the
 * ranks of a group whose numbers are others name nobody. */
bool absent_names(const struct failure *f, unsigned rank);
/* ... or anybody. */
bool absent_is_told(const struct failure *f);

/* Absent: "did not come to a barrier". */
const char *absent_text(const struct failure *f);

/* Judged.  waited is the first cause of its node, and only says that the time of a collective, or
 * of the rendezvous, ran out: f, which elrun
 * stopped, said neither that nor anything of its own before.  (No connection of waited's own, and nobody had left with
 * 0: these explain it better.)  NULL: it is on another node, and known to be such a one. */
bool absent_is_silent(const struct failure *f, const struct failure *waited);

/* Judged, stopped by elrun, and one of both: it is the better cause, if nobody failed by itself. */
void absent_mark(struct failure *f, const struct failure *accuser);

/* Absent, by one on another node: that is the first of all whose time ran out, if there is one. */
void absent_explain(struct failure *f, const struct failure *const *all, unsigned n);

#endif
