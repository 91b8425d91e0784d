/* What the results say about rails: spec of the probe, section 6.1.  Everything is worked out anew from all results, so
 * that a partner that is proved good later counts too. */
#include <string.h>

#include "probe/plan_private.h"

/* --- states of rails ---------------------------------------------------------------------------------------------- */

static struct plan_charge *charge_of(const struct plan *p, unsigned node, unsigned rail)
{
    return &p->charge[plan_cell(p, node, rail)];
}

/* A pass is a pass, whatever becomes of the two later. */
static void find_good(struct plan *p)
{
    memset(p->good_ever, 0, sizeof p->good_ever);
    for (unsigned n = 0; n < p->nodes; n++) {
        struct plan_node *x = &p->node[n];
        x->good = x->bad = x->closed = x->suspect = x->accused = x->passes = 0;
        x->untested = x->rails & p->shared ? x->rails & p->shared : x->rails;
    }
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        p->node[rec->a].good |= rec->ok;
        p->node[rec->b].good |= rec->ok;
        p->node[rec->a].passes += rec->ok != 0;
        p->node[rec->b].passes += rec->ok != 0;
    }
    for (unsigned n = 0; n < p->nodes; n++)
        for (unsigned r = 0; r < p->conf.rails; r++)
            p->good_ever[r] += p->node[n].good >> r & 1;
}

static void verdict_charge(struct plan *p, unsigned node, unsigned rail, unsigned by)
{
    struct plan_charge *c = charge_of(p, node, rail);
    bool near = p->node[node].domain == p->node[by].domain;
    unsigned at = near ? c->near : c->n;
    for (unsigned i = 0; i < c->n && i < CONDEMN; i++)
        if (plan_one_host(p, c->by[i], by))
            return;
    if (near && at < CONDEMN && c->n < CONDEMN)
        c->by[c->n] = c->by[at]; /* the far one that stands there makes room */
    if (at < CONDEMN)
        c->by[at] = by;
    c->n++;
    c->near += near;
}

/* Failures count against an end that is not known to be good, if the other is: also against one that has gone since,
 * whose verdict would be forgotten else.  The word of one that has gone counts as plan_heard() has it. */
static void charge_ends(struct plan *p, const struct plan_record *rec)
{
    struct plan_node *a = &p->node[rec->a], *b = &p->node[rec->b];
    for (unsigned r = 0; r < p->conf.rails; r++) {
        bool fa = a->good >> r & 1, fb = b->good >> r & 1;
        if (!(rec->failed >> r & 1) || fa == fb || !plan_heard(fa ? a : b))
            continue;
        verdict_charge(p, fa ? rec->b : rec->a, r, fa ? rec->a : rec->b);
        (fa ? b : a)->suspect |= 1u << r;
    }
}

static void find_charges(struct plan *p)
{
    memset(p->charge, 0, (size_t)p->nodes * p->conf.rails * sizeof *p->charge);
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        struct plan_node *a = &p->node[rec->a], *b = &p->node[rec->b];
        if (!rec->failed)
            continue;
        a->suspect |= plan_present(b) ? rec->failed : 0;
        b->suspect |= plan_present(a) ? rec->failed : 0;
        charge_ends(p, rec);
    }
}

/* Rails on which somebody of its own domain is good whom it has not met. */
static uint32_t near_unmet(const struct plan *p, unsigned n)
{
    uint32_t rails = 0;
    unsigned domain = p->node[n].domain;
    for (unsigned i = p->node[n].domain_at; i < p->nodes && p->node[p->order[i].node].domain == domain; i++)
        if (plan_present(&p->node[p->order[i].node]) && p->order[i].node != n && !plan_met(p, n, p->order[i].node))
            rails |= p->node[p->order[i].node].good;
    return rails;
}

/* Three witnesses condemn.  Before those of other domains count, everybody of its own must have been asked: the way
 * between two domains may be what is broken. */
static void verdict_condemn(struct plan *p, unsigned n)
{
    struct plan_node *x = &p->node[n];
    uint32_t near = 0;
    bool looked = false;
    for (unsigned r = 0; r < p->conf.rails; r++) {
        const struct plan_charge *c = charge_of(p, n, r);
        if (!c->n)
            continue;
        if (c->n >= CONDEMN && c->near < CONDEMN && !looked) {
            near = near_unmet(p, n);
            looked = true;
        }
        bool three = c->n >= CONDEMN && (c->near >= CONDEMN || !(near >> r & 1));
        bool both = c->n == 2 && p->good_ever[r] == 2;
        x->closed |= three ? 1u << r : 0;
        if (three || both)
            x->bad |= 1u << r;
        else if (c->n > x->accused)
            x->accused = c->n;
    }
}

void plan_judge(struct plan *p)
{
    if (!p->stale)
        return;
    p->stale = false;
    find_good(p);
    find_charges(p);
    for (unsigned n = 0; n < p->nodes; n++) {
        struct plan_node *x = &p->node[n];
        x->suspect &= ~x->good;
        if (x->suspect)
            verdict_condemn(p, n);
        x->suspect &= ~x->bad;
        x->untested &= ~(x->good | x->bad | x->suspect);
        if (p->nodes == 1)
            x->untested = 0; /* there are no pairs: what it found alone is the verdict */
    }
    plan_judge_slow(p);
}
