/* What plan.c, plan_match.c, verdict.c and plan_slow.c share.  Nobody else includes this. */
#ifndef PROBE_PLAN_PRIVATE_H
#define PROBE_PLAN_PRIVATE_H
#include "probe/plan.h"
#include "probe/verdict.h"

#define PLAN_BROKEN_MAX 3 /* so many broken-off pairs of a node come again */
#define CONDEMN         3 /* good nodes that a rail must have failed with */

enum plan_local { LOCAL_NEW, LOCAL_GOOD, LOCAL_BAD };

struct plan_node {
    uint32_t rails;             /* those that it has */
    unsigned domain, domain_at; /* where its domain begins in plan.order */
    enum plan_local local;
    bool left, lost;
    char *reason; /* of local, left or lost; NULL: none */
    unsigned broken;

    /* What judge() makes of the results. */
    uint32_t good, bad, suspect, untested; /* rails; those that cannot be tested are in none */
    uint32_t slow, slow_open;              /* rails by which it is a straggler, or may yet turn out to be one */
    uint32_t closed;                       /* of the bad ones, those by three witnesses: no more run */
    unsigned accused;                      /* failures with good nodes, on the worst rail that is open */
    unsigned passes;                       /* pairs that passed on some rail */
    bool busy;                             /* in the round that is being formed */
};

/* Who failed with a rail of a node and is good itself. */
struct plan_charge {
    unsigned n;
    unsigned by[CONDEMN];
    bool near; /* one of them stands in the same domain */
};

struct plan_record {
    unsigned a, b, round;
    uint32_t rails, ok, failed;
    enum plan_purpose purpose;
    bool told;
    char *reason;
};

struct plan {
    struct plan_conf conf;
    struct el_mem *mem;
    unsigned nodes, rounds;
    enum plan_stop stop;
    bool stale;      /* results came since judge() */
    uint32_t shared; /* rails that at least two nodes have */
    struct plan_node *node;
    unsigned *order; /* nodes by (domain, number) */
    uint64_t *met;   /* nodes x words bits */
    size_t words;
    struct plan_charge *charge;         /* nodes x conf.rails */
    unsigned good_ever[PLAN_RAILS_MAX]; /* nodes that have ever been good on that rail */

    struct plan_pair *pair; /* of the present round */
    unsigned pairs;
    struct plan_record *record; /* of all rounds; those of the present one stand last */
    unsigned records, records_room;
    uint32_t *value;       /* records x conf.rails x METRIC_PAIR_COUNT, twice: values, then spreads */
    uint32_t *local_value; /* nodes x conf.rails x (METRIC_COUNT - METRIC_PAIR_COUNT) */
    uint32_t reference[METRIC_COUNT];
};

static inline bool plan_present(const struct plan_node *x)
{
    return x->local == LOCAL_GOOD && !x->left && !x->lost;
}
static inline uint32_t plan_open(const struct plan_node *x)
{
    return plan_present(x) ? x->suspect | x->untested : 0;
}
static inline bool plan_met(const struct plan *p, unsigned a, unsigned b)
{
    return p->met[a * p->words + b / 64] >> (b % 64) & 1;
}

/* Brings states up to date with the results; does nothing if none came. */
void plan_judge(struct plan *p);

/* Form the pairs of a round (plan_match.c), in p->pair and p->pairs.  Nodes of it become busy. */
void plan_match(struct plan *p);

#endif
