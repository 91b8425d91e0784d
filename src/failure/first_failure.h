/* Which of many failures, on nodes whose clocks differ, was the first?  Pure: the times are on one clock already, each
 * with the error that this may have. */
#ifndef FAILURE_FIRST_FAILURE_H
#define FAILURE_FIRST_FAILURE_H
#include <stdbool.h>

#include "util/time.h"

/* Two ends on one node are told apart by their order in time if there is so much between them: less is the order in
 * which a loop looks at its children. */
#define FIRST_FAILURE_ONE_NODE EL_MS(1)

struct first_failure_entry {
    el_usec time, error; /* it failed within [time - error, time + error] */
    unsigned node, rank; /* entries of one node share its clock, and that clock's error */
    bool elrun;          /* stopped by elrun: never a cause */
    bool follower;       /* says only that a peer went away: a cause only if nobody else is there */
    bool private_link;   /* a follower whose connection may be its own, or that knows who had left: before the others */
    bool late;           /* a follower whose time ran out: before one whose connection was closed, perhaps by its end */
};

/* Is a rather the cause than b?  A total order: elrun's own last, followers before them, of those the private ones
 * first, then the late ones, then by time and rank. */
bool first_failure_sooner(const struct first_failure_entry *a, const struct first_failure_entry *b);

struct first_failure_cause {
    int root;       /* index; -1: there is none */
    unsigned among; /* so many of its kind may have been the first, itself included; 1: it was */
};

struct first_failure_cause first_failure_cause(const struct first_failure_entry *all, unsigned n);

#endif
