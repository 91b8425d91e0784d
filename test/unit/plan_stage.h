/* A world to probe, and a plan that is played in it: what test_plan*.c share. */
#ifndef TEST_UNIT_PLAN_STAGE_H
#define TEST_UNIT_PLAN_STAGE_H
#include <stdio.h>

#include "lib/tap.h"
#include "probe/verdict.h"

enum { NODES_MAX = 64 };

/* A world to probe: what is broken, and how fast each end is (percent of a fast one; 0: fast). */
struct world {
    unsigned nodes, rails;
    uint64_t bad;                 /* nodes whose every pair fails */
    unsigned bad_rail[NODES_MAX]; /* rails of a node that fail */
    unsigned percent[NODES_MAX];
    unsigned cut_a, cut_b; /* a link that fails, if they differ */
    bool leave_cut_slow;   /* it is slow instead */
};

static inline struct pair_result result_of(const struct world *w, const struct plan_pair *pair)
{
    struct pair_result r;
    bool cut = w->cut_a != w->cut_b && pair->a == w->cut_a && pair->b == w->cut_b;
    unsigned a = w->percent[pair->a] ? w->percent[pair->a] : 100, b = w->percent[pair->b] ? w->percent[pair->b] : 100;
    unsigned percent = a < b ? a : b;
    if (cut && w->leave_cut_slow)
        percent = percent / 2;
    pair_result_init(&r);
    for (unsigned k = 0; k < w->rails; k++) {
        bool fails = ((w->bad >> pair->a | w->bad >> pair->b) & 1) || (cut && !w->leave_cut_slow) ||
                     ((w->bad_rail[pair->a] | w->bad_rail[pair->b]) >> k & 1);
        r.rail[k].outcome = fails ? RAIL_FAILED : RAIL_OK;
        if (fails)
            snprintf(r.rail[k].reason, sizeof r.rail[k].reason, "nothing came back");
        else
            r.rail[k].value[METRIC_BW64M] = 400 * percent;
    }
    return r;
}

static inline struct plan *start(const struct world *w, struct plan_conf conf)
{
    conf.rails = w->rails;
    struct plan *p = plan_new(w->nodes, &conf, NULL);
    for (unsigned n = 0; n < w->nodes; n++)
        plan_local(p, n, true, NULL);
    return p;
}

static inline bool one_round(struct plan *p, const struct world *w)
{
    const struct plan_pair *pair;
    unsigned pairs = plan_round(p, &pair);
    for (unsigned i = 0; i < pairs; i++) {
        struct pair_result r = result_of(w, &pair[i]);
        plan_result(p, i, &r);
    }
    return pairs;
}

static inline struct plan *play(const struct world *w, struct plan_conf conf)
{
    struct plan *p = start(w, conf);
    while (one_round(p, w))
        ;
    return p;
}

/* "1 5", or "-" */
static inline const char *those(struct plan *p, enum node_state s, char to[256])
{
    size_t at = 0;
    snprintf(to, 256, "-");
    for (unsigned n = 0; n < plan_nodes(p); n++)
        if (verdict_state(p, n) == s)
            at += (size_t)snprintf(to + at, 256 - at, "%s%u", at ? " " : "", n);
    return to;
}

#endif
