/* Who meets whom in the next round. */
#include <assert.h>
#include <string.h>

#include "probe/plan_private.h"

/* Rails of the pair that have their results from a try that was broken off on others. */
static uint32_t decided(const struct plan *p, unsigned a, unsigned b)
{
    uint32_t rails = 0;
    if (!p->node[a].broken || !p->node[b].broken)
        return 0;
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        if ((rec->a == a && rec->b == b) || (rec->a == b && rec->b == a))
            rails |= rec->ok | rec->failed;
    }
    return rails;
}

/* What the two would run: 0 if they cannot or need not meet. */
static uint32_t common(const struct plan *p, unsigned a, unsigned b)
{
    const struct plan_node *x = &p->node[a], *y = &p->node[b];
    if (a == b || x->busy || y->busy || !plan_present(x) || !plan_present(y) || plan_met(p, a, b))
        return 0;
    return x->rails & y->rails & ~(x->closed | y->closed) & ~decided(p, a, b);
}

static void plan_match_join(struct plan *p, unsigned a, unsigned b, uint32_t rails, enum plan_purpose purpose)
{
    assert(p->pairs < p->nodes / 2 && !p->node[a].busy && !p->node[b].busy);
    p->node[a].busy = p->node[b].busy = true;
    p->pair[p->pairs++] =
        (struct plan_pair){.a = a < b ? a : b, .b = a < b ? b : a, .rails = rails, .purpose = purpose};
}

/* Neighbours in order; who finds none sits out, for three in a group would be three suspects. */
static void match_first(struct plan *p)
{
    for (unsigned i = 0; i < p->nodes; i++)
        for (unsigned j = i + 1; j < p->nodes && !p->node[p->order[i].node].busy; j++) {
            uint32_t rails = common(p, p->order[i].node, p->order[j].node);
            if (rails)
                plan_match_join(p, p->order[i].node, p->order[j].node, rails, PLAN_FIRST);
            else if (!plan_present(&p->node[p->order[i].node]))
                break;
        }
}

/* A partner for one open node: good on all its open rails if there is one, else on some; its own domain comes first. */
static bool match_reference(struct plan *p, unsigned n)
{
    uint32_t open = plan_open(&p->node[n]);
    unsigned second = p->nodes, i = p->node[n].domain_at;
    for (unsigned k = 0; k < p->nodes; k++, i = i + 1 == p->nodes ? 0 : i + 1) {
        unsigned other = p->order[i].node;
        uint32_t useful = p->node[other].good & open;
        if (!useful || !(common(p, n, other) & useful))
            continue;
        if (useful == open && !plan_open(&p->node[other])) {
            plan_match_join(p, n, other, common(p, n, other), PLAN_CLEAR);
            return true;
        }
        second = second == p->nodes ? other : second;
    }
    if (second == p->nodes)
        return false;
    plan_match_join(p, n, second, common(p, n, second), PLAN_CLEAR);
    return true;
}

/* Those with most failures against good nodes first: they are nearest to a verdict. */
static void match_clear(struct plan *p)
{
    for (unsigned level = CONDEMN + 1; level-- > 0;)
        for (unsigned i = 0; i < p->nodes; i++) {
            const struct plan_node *x = &p->node[p->order[i].node];
            unsigned accused = x->accused < CONDEMN ? x->accused : CONDEMN;
            if (accused == level && plan_open(x) && !x->busy)
                match_reference(p, p->order[i].node);
        }
}

/* Until some pair passes: that one gives two references at once. */
static void match_among(struct plan *p)
{
    for (unsigned i = 0; i < p->nodes; i++) {
        unsigned a = p->order[i].node;
        uint32_t open = plan_open(&p->node[a]);
        for (unsigned j = i + 1; j < p->nodes && open && !p->node[a].busy; j++) {
            unsigned b = p->order[j].node;
            uint32_t rails = common(p, a, b);
            if (rails & open & plan_open(&p->node[b]))
                plan_match_join(p, a, b, rails, PLAN_AMONG);
        }
    }
}

/* A fast partner for one that may be slow; its own domain comes first, for the way between two domains may be what is
 * slow. */
static void match_fast(struct plan *p, unsigned n)
{
    unsigned i = p->node[n].domain_at;
    for (unsigned k = 0; k < p->nodes; k++, i = i + 1 == p->nodes ? 0 : i + 1) {
        unsigned other = p->order[i].node;
        uint32_t useful = plan_fast(&p->node[other]) & p->node[n].slow_open;
        if (!useful || !(common(p, n, other) & useful))
            continue;
        plan_match_join(p, n, other, common(p, n, other), PLAN_SLOW);
        return;
    }
}

static void match_slow(struct plan *p)
{
    for (unsigned i = 0; i < p->nodes; i++) {
        const struct plan_node *x = &p->node[p->order[i].node];
        if (x->slow_open && !x->busy && !plan_open(x))
            match_fast(p, p->order[i].node);
    }
}

/* Nobody has anything against them, but pairs that each contain one slow node look alike in the first round. */
static bool wants_second(const struct plan *p, unsigned n)
{
    const struct plan_node *x = &p->node[n];
    return plan_present(x) && !x->busy && x->good && !plan_open(x) && !x->bad && x->passes < 2;
}

/* Of three good nodes every pair is needed: the two of a slow node look alike, the third does not. */
static void match_second(struct plan *p)
{
    unsigned good = 0;
    for (unsigned n = 0; n < p->nodes; n++)
        good += plan_present(&p->node[n]) && p->node[n].good;
    for (unsigned i = 0; i < p->nodes; i++) {
        unsigned a = p->order[i].node;
        if (!wants_second(p, a))
            continue;
        for (unsigned k = 1; k < p->nodes && !p->node[a].busy; k++) {
            unsigned b = p->order[(i + k) % p->nodes].node;
            uint32_t rails = common(p, a, b) & p->node[a].good & p->node[b].good;
            if (rails && (good <= 3 || wants_second(p, b)))
                plan_match_join(p, a, b, rails, PLAN_SECOND);
        }
    }
}

void plan_match(struct plan *p)
{
    p->pairs = 0;
    for (unsigned n = 0; n < p->nodes; n++)
        p->node[n].busy = false;
    if (p->rounds == 0) {
        match_first(p);
        return;
    }
    match_clear(p);
    if (!p->pairs)
        match_among(p);
    match_slow(p);
    if (!p->conf.quick)
        match_second(p);
}
