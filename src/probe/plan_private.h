/* What plan.c, plan_match.c, verdict.c and plan_slow.c share.  Nobody else includes this. */
#ifndef PROBE_PLAN_PRIVATE_H
#define PROBE_PLAN_PRIVATE_H
#include "probe/plan.h"
#include "probe/slow.h"
#include "probe/verdict.h"

#define PLAN_BROKEN_MAX 3  /* so many broken-off pairs of a node come again */
#define CONDEMN         3  /* good nodes that a rail must have failed with */
#define FAST_PARTNERS   2  /* that a slow rail must have met */
#define FEW_NODES       16 /* below, who is behind the best meets others although the median does not accuse him */

enum plan_local { LOCAL_NEW, LOCAL_GOOD, LOCAL_BAD };

struct plan_node {
    uint32_t rails;             /* those that it has */
    unsigned domain, domain_at; /* where its domain begins in plan.order */
    enum plan_local local;
    bool left, lost, absent;
    uint64_t host; /* 0: one of its own */
    char *name;    /* NULL: none */
    char *label;   /* of its domain; NULL: none */
    char *reason;  /* of local, left, lost or absent; NULL: none */
    unsigned broken;

    /* What judge() makes of the results. */
    uint32_t good, bad, suspect, untested; /* rails; those that cannot be tested are in none */
    /* Rails with a value that looks slow; with one that is not clearly fast; with one beyond the limit of its metric;
     * those of a straggler; those that may yet turn out to be; those where too few fast partners were left to tell. */
    uint32_t doubtful, no_witness, beyond, slow, slow_open, slow_unsure;
    uint32_t closed;  /* of the bad ones, those by three witnesses: no more run */
    unsigned accused; /* failures with good nodes, on the worst rail that is open */
    unsigned passes;  /* pairs that passed on some rail */
    bool busy;        /* in the round that is being formed */
};

/* Who failed with a rail of a node and is good itself. */
struct plan_charge {
    unsigned n, near;     /* near: of its own domain */
    unsigned by[CONDEMN]; /* some of them, of different hosts, near ones first */
};

/* How many fast partners a rail of a node has passed with. */
struct plan_met_fast {
    unsigned n;
    unsigned by[FAST_PARTNERS]; /* some of them, of different hosts */
    bool near;
};

struct plan_place {
    unsigned domain, node;
};

struct plan_record {
    unsigned a, b, round;
    uint32_t rails, ok, failed;
    enum plan_purpose purpose;
    bool told;
    char *reason; /* of the first failure, else of what was broken off; NULL: none */
};

struct plan {
    struct plan_conf conf;
    struct el_mem *mem;
    unsigned nodes, rounds;
    enum plan_stop stop;
    bool stale;      /* results came since judge() */
    uint32_t shared; /* rails that at least two nodes have */
    struct plan_node *node;
    struct plan_place *order; /* nodes by (domain, number) */
    uint64_t *met;            /* nodes x words bits */
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

    /* Of judge(). */
    uint32_t *best;             /* nodes x conf.rails x METRIC_PAIR_COUNT: over all pairs */
    struct plan_met_fast *fast; /* nodes x conf.rails */
    uint32_t *scratch;          /* as many values as there are nodes or records */
    unsigned scratch_room;
    struct slow_group *group;      /* METRIC_COUNT x conf.rails: values of nodes */
    struct slow_group *pair_group; /* METRIC_PAIR_COUNT x conf.rails: values of pairs */
};

static inline bool plan_present(const struct plan_node *x)
{
    return x->local == LOCAL_GOOD && !x->left && !x->lost && !x->absent;
}
/* Its results count for others: so do those of who has said goodbye, since nothing of it had been stopped before. */
static inline bool plan_heard(const struct plan_node *x)
{
    return x->local == LOCAL_GOOD && !x->left && !x->lost;
}
static inline uint32_t plan_open(const struct plan_node *x)
{
    return plan_present(x) ? x->suspect | x->untested : 0;
}
/* Do both nodes bear witness as one? */
static inline bool plan_one_host(const struct plan *p, unsigned a, unsigned b)
{
    return a == b || (p->node[a].host && p->node[a].host == p->node[b].host);
}

/* Rails on which the node can bear witness about speed. */
static inline uint32_t plan_fast(const struct plan_node *x)
{
    return plan_present(x) ? x->good & ~(x->doubtful | x->no_witness) : 0;
}
static inline size_t plan_cell(const struct plan *p, unsigned node, unsigned rail)
{
    return (size_t)node * p->conf.rails + rail;
}
static inline struct slow_group *plan_group(const struct plan *p, enum metric m, unsigned rail)
{
    return &p->group[m * p->conf.rails + rail];
}
static inline struct slow_group *plan_pair_group(const struct plan *p, enum metric m, unsigned rail)
{
    return &p->pair_group[m * p->conf.rails + rail];
}
static inline uint32_t plan_value(const struct plan *p, unsigned record, unsigned rail, enum metric m)
{
    return p->value[(2 * (size_t)record * p->conf.rails + rail) * METRIC_PAIR_COUNT + m];
}
static inline uint32_t plan_spread(const struct plan *p, unsigned record, unsigned rail, enum metric m)
{
    return p->value[((2 * (size_t)record + 1) * p->conf.rails + rail) * METRIC_PAIR_COUNT + m];
}
/* The best of a node over its pairs, or what it measured alone; 0: nothing. */
static inline uint32_t plan_best(const struct plan *p, unsigned node, unsigned rail, enum metric m)
{
    size_t cell = plan_cell(p, node, rail);
    return m < METRIC_PAIR_COUNT ? p->best[cell * METRIC_PAIR_COUNT + m]
                                 : p->local_value[cell * (METRIC_COUNT - METRIC_PAIR_COUNT) + m - METRIC_PAIR_COUNT];
}
static inline bool plan_met(const struct plan *p, unsigned a, unsigned b)
{
    return p->met[a * p->words + b / 64] >> (b % 64) & 1;
}

/* Brings states up to date with the results; does nothing if none came. */
void plan_judge(struct plan *p);

/* The part about speed (plan_slow.c); the states of the rails are known. */
void plan_judge_slow(struct plan *p);
/* The value on these rails that is furthest beyond its limit; METRIC_COUNT: none is. */
enum metric plan_slowest(const struct plan *p, unsigned n, uint32_t rails, unsigned *rail);

/* Form the pairs of a round (plan_match.c), in p->pair and p->pairs.  Nodes of it become busy. */
void plan_match(struct plan *p);

#endif
