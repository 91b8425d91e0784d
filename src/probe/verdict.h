/* What the results of a plan say about nodes, links and switches.  Evaluated on all results so far; before the plan has
 * ended the states are those of now, afterwards nobody is left SUSPECT or UNTESTED. */
#ifndef PROBE_VERDICT_H
#define PROBE_VERDICT_H
#include "probe/plan.h"
#include "util/buf.h"

/* Enumerator, name in results and for a person. */
#define NODE_STATE_LIST(X)                                                                                             \
    X(NODE_NEW, "new")             /* its single-node checks are not done */                                           \
    X(NODE_BAD_LOCAL, "bad local") /* they failed, or its process ended without a word */                              \
    X(NODE_UNTESTED, "untested")   /* no pair of it has ended yet */                                                   \
    X(NODE_SUSPECT, "suspect")     /* no pair of it has passed yet */                                                  \
    X(NODE_GOOD, "good")                                                                                               \
    X(NODE_SLOW, "slow") /* good, but a straggler */                                                                   \
    X(NODE_BAD, "bad")   /* failed with good ones only */                                                              \
    X(NODE_UNDECIDED, "undecided")                                                                                     \
    X(NODE_ABSENT, "absent") /* said goodbye, and nothing was proved against it before */

enum node_state {
#define NODE_STATE_ENUM(id, name) id,
    NODE_STATE_LIST(NODE_STATE_ENUM)
#undef NODE_STATE_ENUM
        NODE_STATE_COUNT
};

const char *node_state_name(enum node_state s);

#define VERDICT_WITNESSES_MAX 3
#define VERDICT_TEXT_MAX      400

struct node_verdict {
    enum node_state state;
    uint32_t rails;     /* which rails are why; 0: it is about the node itself */
    bool whole;         /* every rail of the node is of that state: the node's fault rather than a GPU's or NIC's */
    unsigned witnesses; /* BAD: good nodes that it failed with, as many as were needed */
    unsigned witness[VERDICT_WITNESSES_MAX];
    bool ambiguous;     /* BAD by two witnesses: two bad links would look the same */
    bool uplink;        /* BAD, and a witness stands in another domain: its uplink could look the same */
    enum metric metric; /* SLOW, or UNDECIDED for that: the metric that is furthest off; else METRIC_COUNT.  So for
                           the three next */
    unsigned metric_rail;
    uint32_t value, limit;
    char text[VERDICT_TEXT_MAX]; /* why, for a person, without the name of the node; "" if there is nothing to say */
};

void verdict_node(struct plan *p, unsigned node, struct node_verdict *out);
/* The state alone. */
enum node_state verdict_state(struct plan *p, unsigned node);
/* How many nodes are in each state now. */
void verdict_count(struct plan *p, unsigned count[NODE_STATE_COUNT]);

/* Two nodes that are good elsewhere, and a pair of theirs failed or was slow: the link between them, or a switch. */
struct link_verdict {
    unsigned a, b;
    uint32_t rails;     /* which rails of the pair */
    bool slow;          /* passed, but slow by the metric; else it failed */
    bool across;        /* the two stand in different domains */
    enum metric metric; /* slow only */
    uint32_t value, limit;
    const char *reason; /* of the first failed rail; valid as long as the plan */
};

/* Fills at most max and returns how many there are. */
unsigned verdict_links(struct plan *p, struct link_verdict *out, unsigned max);

/* Metrics in which more than a third of the nodes are behind the best: no straggler is named by them. */
struct split_verdict {
    enum metric metric;
    unsigned rail;
    unsigned behind, measured; /* nodes */
    uint32_t best, border;     /* behind the border: the slow group */
};
unsigned verdict_splits(struct plan *p, struct split_verdict *out, unsigned max);

/* The best value of a node over its pairs, or its own measurement; 0: none. */
uint32_t verdict_value(struct plan *p, unsigned node, unsigned rail, enum metric m);

/* What is usual for it among the nodes: the median (0: too few values), and the limit beyond which it is slow. */
void verdict_usual(struct plan *p, unsigned rail, enum metric m, uint32_t *median, uint32_t *limit);

/* The whole, for an exit status. */
enum verdict_whole {
    VERDICT_ALL_GOOD,
    VERDICT_SOME_SLOW, /* but nobody is bad or undecided */
    VERDICT_UNDECIDED,
    VERDICT_SOME_BAD,
};
enum verdict_whole verdict_whole(struct plan *p);

/* "rail 3", "rails 0-2,7" */
void verdict_rails_text(uint32_t rails, struct el_buf *out);

/* --- what was run, for reports ------------------------------------------------------------------------------------ */

struct pair_record {
    unsigned a, b, round;       /* rounds count from 1 */
    uint32_t rails, ok, failed; /* broken off: the others of rails */
    enum plan_purpose purpose;
    const char *reason; /* of the first rail that failed, else of one that was broken off; NULL: none */
};

/* How many pairs have been formed in all; the i-th of them. */
unsigned verdict_pairs(const struct plan *p);
void verdict_pair(const struct plan *p, unsigned i, struct pair_record *out);
/* A measured value of the i-th pair on one rail; 0: none. */
uint32_t verdict_pair_value(const struct plan *p, unsigned i, unsigned rail, enum metric m);

#endif
