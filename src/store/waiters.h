/* Who is missing: lines about keys that are waited for too long.  Pure. */
#ifndef STORE_WAITERS_H
#define STORE_WAITERS_H
#include <stdbool.h>

#include "store/kv.h"
#include "util/buf.h"

struct waiters_world {
    unsigned size;    /* ranks that are expected; 0 = not known */
    const bool *come; /* by rank: it has a connection; NULL = nothing is known of anybody's rank */
};

#define WAITERS_LINES_MAX 8            /* keys of one report; the rest is counted */
#define WAITERS_NAMED_MAX 8            /* waiters of one line; the rest is counted */
#define WAITERS_AGAIN_MAX EL_SEC(3600) /* the interval grows until here */

/* Appends a line for each key that is due: its oldest wait is older than `after`; again when that has doubled, and so
 * on.  Returns when it wants to be called next, EL_NEVER if nobody waits. */
el_usec waiters_report(struct kv *kv, const struct waiters_world *world, el_usec now, el_usec after,
                       struct el_buf *out);

/* Appends a line for each key that is waited for, due or not. */
void waiters_list(const struct kv *kv, const struct waiters_world *world, el_usec now, struct el_buf *out);

#endif
