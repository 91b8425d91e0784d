/* What was found out about one node on its own: findings of checks, facts, measurements.  Collected on the node from
 * what its children say, sent as lines, put together again from them.  Pure. */
#ifndef PROBE_FOUND_H
#define PROBE_FOUND_H
#include "probe/check.h"
#include "probe/facts.h"
#include "probe/metric.h"
#include "probe/wire.h"

#define FOUND_METRICS_MAX 256

struct found_metric {
    enum metric metric; /* of METRIC_OF_NODE */
    unsigned rail;      /* or GPU; 0 if it is about the host */
    uint32_t milli;     /* the median */
};

/* 80 KiB: not for the stack. */
struct found {
    struct findings findings;
    struct facts facts;
    unsigned metrics;
    struct found_metric metric[FOUND_METRICS_MAX];
};

/* Keeps what a line says; what it says again replaces what it said before.  False: it says nothing of this. */
bool found_take(struct found *f, const struct probe_wire *w);

/* Everything, as lines; an object each, with a newline.  0, or -1 and out->full. */
int found_encode(const struct found *f, struct el_buf *out);

/* The findings say that the node should not be used; *why (may be NULL): in words. */
bool found_bad(const struct found *f, struct el_buf *why);
/* None does, but one could not be judged. */
bool found_undecided(const struct found *f, struct el_buf *why);

#endif
