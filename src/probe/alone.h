/* The single-node checks of this machine, from the first child to the last, in a loop of their own: `elrun probe`
 * without other nodes. */
#ifndef PROBE_ALONE_H
#define PROBE_ALONE_H
#include "probe/node.h"

struct alone_conf {
    struct probe_node_conf node; /* but for loop, reap and callbacks */
    el_usec timeout;             /* for all of it; 0: none */
    bool progress;               /* a line at the bottom of the terminal at standard error */
};

struct alone_result {
    int signal;     /* SIGINT or SIGTERM ended it; 0: nobody did */
    bool timed_out; /* what was found is not all that was to be found */
    el_usec elapsed;
};

/* Fills *found (its findings are judged) and *r.  -1 and *e: it could not begin. */
int alone_run(const struct alone_conf *conf, struct found *found, struct alone_result *r, struct el_err *e);

#endif
