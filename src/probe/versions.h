/* Which nodes have something else than most: the minority is named. */
#ifndef PROBE_VERSIONS_H
#define PROBE_VERSIONS_H
#include "probe/facts.h"
#include "util/buf.h"

#define VERSIONS_VALUES_MAX 16 /* different values of one fact that are told apart */
#define VERSIONS_NAMES_MAX  8  /* nodes that are named for one value; of more the number is said */

struct versions_value {
    const char *value; /* in the facts of the first node that has it */
    unsigned nodes;    /* how many have it */
    unsigned first;    /* the lowest of them */
};

struct versions_difference {
    enum fact fact;
    unsigned n, left_out;                         /* left_out: nodes with values beyond the limit */
    struct versions_value v[VERSIONS_VALUES_MAX]; /* most nodes first; of equals that of the lowest node */
};

/* Do the nodes differ in this fact?  nodes[i] may be NULL, and a fact may be unknown: such a node is left out. */
bool versions_differ(const struct facts *const *nodes, unsigned n, enum fact fact, struct versions_difference *out);

/* "NCCL: 2.28.9 on 7 nodes, but 2.27.5 on c03"; where no value has more nodes than another: "NCCL: 2.27.5 on a, b;
 * 2.28.9 on c, d". */
void versions_text(const struct versions_difference *d, const struct facts *const *nodes, const char *const *names,
                   unsigned n, struct el_buf *out);

/* One such line for each fact in which they differ; how many. */
unsigned versions_report(const struct facts *const *nodes, const char *const *names, unsigned n, struct el_buf *out);

#endif
