/* Which pairs of nodes a probe runs next, and what is known after each round of pairs: spec of the probe, sections 6
 * and 7.  Pure: no clock, no messages; the caller runs the pairs and says what came of them.
 *
 *   plan_new → plan_local (each node) → { plan_round → plan_result (each pair) }… → plan_round is 0 → verdict.h
 *
 * What is judged is a *rail*: local rank i of one node with local rank i of another; a node with one dead NIC of eight
 * is bad by that rail alone.  Nodes are numbered 0 … nodes-1.  Memory grows by one round at a time; where there is none
 * left the plan ends with what it knows (PLAN_STOP_MEMORY). */
#ifndef PROBE_PLAN_H
#define PROBE_PLAN_H
#include <stdbool.h>
#include <stdint.h>

#include "probe/metric.h"
#include "util/mem.h"

#define PLAN_NODES_MAX  16384
#define PLAN_RAILS_MAX  16
#define PLAN_REASON_MAX 200 /* bytes of a reason that are kept */

struct plan_conf {
    unsigned rails;         /* most rails that a node has, 1 … PLAN_RAILS_MAX */
    unsigned rounds_max;    /* --probe-rounds; 0: as many as it takes */
    bool quick;             /* no second arrangement of the good nodes */
    unsigned straggler_k;   /* --straggler-k: so many times the MAD are usual */
    unsigned straggler_min; /* --straggler-min: so many percent are usual at least */
};
#define PLAN_CONF_INIT ((struct plan_conf){.rails = 1, .rounds_max = 8, .straggler_k = 3, .straggler_min = 10})

struct plan;

/* NULL: no memory. */
struct plan *plan_new(unsigned nodes, const struct plan_conf *conf, struct el_mem *mem);
void plan_free(struct plan *p);

/* --- before the first round --------------------------------------------------------------------------------------- */

/* What the node is called in reasons; "node 7" unless told. */
void plan_name(struct plan *p, unsigned node, const char *name);
/* The switch or rack that a node stands behind; all are in domain 0 unless told. */
void plan_domain(struct plan *p, unsigned node, unsigned domain);
/* What people call that; its number unless told. */
void plan_domain_label(struct plan *p, unsigned node, const char *label);
/* Which host it is on, as others see it: nodes of one host bear witness as one.  0, unless told: one of its own. */
void plan_host(struct plan *p, unsigned node, uint64_t host);
/* How many rails the node has (1 … conf.rails); all have conf.rails unless told. */
void plan_rails(struct plan *p, unsigned node, unsigned rails);
/* What its single-node checks said.  A node of which nothing is said takes no part in pairs and stays undecided; bad:
 * takes no part either, and the reason is why.  Bad may be told at any time, even after the end. */
void plan_local(struct plan *p, unsigned node, bool good, const char *reason);
/* What a node measured alone (a metric of METRIC_OF_NODE), on that GPU; 0 if it is about the host. */
void plan_metric(struct plan *p, unsigned node, unsigned rail, enum metric m, uint32_t milli);
/* What the same hardware did before (--baseline): being worse by more than --straggler-min counts, with any number of
 * nodes. */
void plan_reference(struct plan *p, enum metric m, uint32_t milli);

/* --- at any time -------------------------------------------------------------------------------------------------- */

/* Who goes takes no more part.  Who was proved to be bad by its pairs stays that, however it goes.
 *
 * Its process ended without a word: BAD_LOCAL, reason "left".  Results with it are held against nobody else. */
void plan_left(struct plan *p, unsigned node);
/* It said goodbye (Ctrl-C, drained): ABSENT, for nothing is wrong with it that anybody knows.  What its pairs have
 * brought before stays. */
void plan_absent(struct plan *p, unsigned node);
/* The node cannot be heard, and nobody knows whose fault that is: undecided with that reason.  Results with it are
 * held against nobody else. */
void plan_lost(struct plan *p, unsigned node, const char *reason);

/* --- rounds ------------------------------------------------------------------------------------------------------- */

enum plan_purpose {
    PLAN_FIRST,  /* neighbours, first round */
    PLAN_CLEAR,  /* a suspect or untested node with a good one */
    PLAN_AMONG,  /* two that are not known to be good */
    PLAN_SLOW,   /* a slow node with a fast one */
    PLAN_SECOND, /* good nodes in another order */
};

struct plan_pair {
    unsigned a, b;  /* a < b: the end of node a waits, b's comes */
    uint32_t rails; /* bit i: rail i is to be run */
    enum plan_purpose purpose;
};

/* What came of one rail of one pair.  Enumerator, name in results. */
#define RAIL_OUTCOME_LIST(X)                                                                                           \
    X(RAIL_BROKEN, "broken off")   /* an end stalled, left, or was taken away: says nothing about anybody */           \
    X(RAIL_OK, "ok")               /* both ends say so */                                                              \
    X(RAIL_FAILED, "failed")       /* an end that ran all the time says so */                                          \
    X(RAIL_NO_REPORT, "no report") /* an end that is connected said nothing by the deadline; counts as failed */

enum rail_outcome {
#define RAIL_OUTCOME_ENUM(id, name) id,
    RAIL_OUTCOME_LIST(RAIL_OUTCOME_ENUM)
#undef RAIL_OUTCOME_ENUM
        RAIL_OUTCOME_COUNT
};

const char *rail_outcome_name(enum rail_outcome o);
/* The outcome of that name, RAIL_OUTCOME_COUNT if there is none. */
enum rail_outcome rail_outcome_find(const char *name);

struct rail_result {
    enum rail_outcome outcome;
    uint32_t value[METRIC_PAIR_COUNT];  /* medians, thousandths; 0: not measured */
    uint32_t spread[METRIC_PAIR_COUNT]; /* how far its own p95 lies from that median; 0: not known.  A link that is
                                           measured 30 % up and down is not called 10 % slow. */
    char reason[PLAN_REASON_MAX];       /* why it failed; "" if it did not */
};

struct pair_result {
    struct rail_result rail[PLAN_RAILS_MAX]; /* those of the mask count */
};

/* Nothing is known yet: every rail broken off. */
void pair_result_init(struct pair_result *r);
/* One result of what the two ends said.  Broken off at one end is broken off; failed at one end is failed; values are
 * the worse of the two.  to may be one of them. */
void pair_result_join(struct pair_result *to, const struct pair_result *a, const struct pair_result *b);
/* Connections over one way share it by chance: of what was measured on these rails each gets the mean. */
void pair_result_even(struct pair_result *r, uint32_t rails);

/* Forms the next round from all that is known, and says how many pairs it has; no node stands in two of them.  0: the
 * plan has ended, plan_stopped() says why.  Pairs of the last round without a result count as broken off; such a pair
 * comes again, but not for ever.  *pairs is valid until the next call. */
unsigned plan_round(struct plan *p, const struct plan_pair **pairs);
/* The next round as the caller wants it; pairs that have met are left out.  Returns how many are left. */
unsigned plan_given(struct plan *p, const struct plan_pair *pairs, unsigned n);
/* What came of pair number `pair` of the present round; only the first result counts. */
void plan_result(struct plan *p, unsigned pair, const struct pair_result *r);

enum plan_stop {
    PLAN_GOING,       /* no, it has not */
    PLAN_STOP_KNOWN,  /* every node is decided */
    PLAN_STOP_PAIRS,  /* no two nodes are left that could still tell something */
    PLAN_STOP_ROUNDS, /* rounds_max */
    PLAN_STOP_TIME,   /* plan_end() */
    PLAN_STOP_MEMORY,
};

/* The caller's time is over (or the probe was cancelled): plan_round() returns 0 from now on, and what is not decided
 * is undecided.  Results of the present round may still be told. */
void plan_end(struct plan *p);
/* A witness turned out to be bad after the plan had ended: with what is known now it may want further rounds, if it had
 * not ended for want of rounds, time or memory.  plan_round() tells. */
void plan_again(struct plan *p);
enum plan_stop plan_stopped(const struct plan *p);
/* Rounds formed so far. */
unsigned plan_rounds(const struct plan *p);
unsigned plan_nodes(const struct plan *p);
unsigned plan_rail_count(const struct plan *p);
unsigned plan_domain_of(const struct plan *p, unsigned node);
#define PLAN_NAME_MAX 64
const char *plan_domain_text(const struct plan *p, unsigned node, char to[PLAN_NAME_MAX]);
bool plan_has_label(const struct plan *p, unsigned node);
const char *plan_name_of(const struct plan *p, unsigned node, char to[PLAN_NAME_MAX]);

#endif
