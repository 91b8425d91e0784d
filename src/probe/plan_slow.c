/* Who is slow: spec of the probe, section 7.  A node's value is its best over all its pairs, so that a slow partner
 * does not count against it; it is a straggler only if that is still beyond the limit after two fast partners. */
#include <assert.h>
#include <string.h>

#include "probe/plan_private.h"

/* --- values ------------------------------------------------------------------------------------------------------- */

static void find_best(struct plan *p)
{
    memset(p->best, 0, (size_t)p->nodes * p->conf.rails * METRIC_PAIR_COUNT * sizeof *p->best);
    for (unsigned i = 0; i < p->records; i++)
        for (unsigned r = 0; r < p->conf.rails; r++) {
            if (!(p->record[i].ok >> r & 1))
                continue;
            uint32_t *a = p->best + plan_cell(p, p->record[i].a, r) * METRIC_PAIR_COUNT;
            uint32_t *b = p->best + plan_cell(p, p->record[i].b, r) * METRIC_PAIR_COUNT;
            for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
                uint32_t v = plan_value(p, i, r, (enum metric)m);
                a[m] = v && (!a[m] || metric_worse((enum metric)m, a[m], v)) ? v : a[m];
                b[m] = v && (!b[m] || metric_worse((enum metric)m, b[m], v)) ? v : b[m];
            }
        }
}

/* How far a measurement of this metric usually lies from its own median. */
static uint32_t usual_spread(struct plan *p, enum metric m, unsigned rail)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->records; i++)
        if (p->record[i].ok >> rail & 1 && plan_value(p, i, rail, m))
            p->scratch[n++] = plan_spread(p, i, rail, m);
    return slow_median(p->scratch, n);
}

/* Of pairs there is no reference: a link that is not like the others is told as such. */
static void judge_pairs(struct plan *p, enum metric m, unsigned rail, uint32_t spread)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->records; i++)
        if (p->record[i].ok >> rail & 1 && plan_value(p, i, rail, m))
            p->scratch[n++] = plan_value(p, i, rail, m);
    slow_judge(m, p->scratch, n, spread,
               &(struct slow_conf){.k = p->conf.straggler_k, .min_percent = p->conf.straggler_min},
               plan_pair_group(p, m, rail));
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static bool plan_slow_is_beyond(const struct plan *p, unsigned n, enum metric m, unsigned rail)
{
    const struct slow_group *g = plan_group(p, m, rail);
    uint32_t v = plan_best(p, n, rail, m);
    return v && metric_worse(m, v, g->limit) && !g->split;
}

/* How far beyond its limit, in thousandths of that. */
static uint64_t excess(uint32_t value, uint32_t limit)
{
    uint64_t distance = value > limit ? value - limit : limit - value;
    return limit ? distance * 1000 / limit : 0;
}

enum metric plan_slowest(const struct plan *p, unsigned n, uint32_t rails, unsigned *rail)
{
    enum metric worst = METRIC_COUNT;
    uint64_t most = 0;
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        for (unsigned r = 0; rails >> r; r++) {
            if (!(rails >> r & 1) || !plan_slow_is_beyond(p, n, (enum metric)m, r))
                continue;
            uint64_t e = excess(plan_best(p, n, r, (enum metric)m), plan_group(p, (enum metric)m, r)->limit);
            if (worst != METRIC_COUNT && e <= most)
                continue;
            worst = (enum metric)m;
            most = e;
            *rail = r;
        }
    return worst;
}

static void plan_slow_look(struct plan *p, unsigned n, enum metric m, unsigned rail)
{
    struct plan_node *x = &p->node[n];
    const struct slow_group *g = plan_group(p, m, rail);
    uint32_t v = plan_best(p, n, rail, m), bit = 1u << rail;
    bool of_pair = m < METRIC_PAIR_COUNT;
    if (!v || !plan_present(x))
        return;
    /* In a split nobody is named, but before the second partner a few slow nodes and their partners look like one. */
    bool behind = (g->n < FEW_NODES || g->split) && metric_worse(m, v, g->border);
    if (of_pair && (metric_worse(m, v, g->limit) || behind))
        x->doubtful |= bit;
    /* Who bears witness must be well within the limit, not just by luck. */
    if (of_pair && g->median && metric_worse(m, v, (uint32_t)(((uint64_t)g->median + g->limit) / 2)))
        x->no_witness |= bit;
    if (!plan_slow_is_beyond(p, n, m, rail))
        return;
    if (of_pair)
        x->beyond |= bit;
    else
        x->slow |= bit;
}

static void judge_metric(struct plan *p, enum metric m, unsigned rail)
{
    unsigned n = 0;
    struct slow_conf conf = {
        .k = p->conf.straggler_k, .min_percent = p->conf.straggler_min, .reference = p->reference[m]};
    uint32_t spread = m < METRIC_PAIR_COUNT ? usual_spread(p, m, rail) : 0;
    if (m < METRIC_PAIR_COUNT)
        judge_pairs(p, m, rail, spread);
    for (unsigned i = 0; i < p->nodes; i++)
        if (plan_present(&p->node[i]) && plan_best(p, i, rail, m))
            p->scratch[n++] = plan_best(p, i, rail, m);
    slow_judge(m, p->scratch, n, spread, &conf, plan_group(p, m, rail));
    for (unsigned i = 0; n && i < p->nodes; i++)
        plan_slow_look(p, i, m, rail);
}

/* --- who has met fast ones ---------------------------------------------------------------------------------------- */

static void count_partner(const struct plan *p, struct plan_met_fast *f, unsigned by)
{
    for (unsigned i = 0; i < f->n && i < FAST_PARTNERS; i++)
        if (plan_one_host(p, f->by[i], by))
            return;
    if (f->n < FAST_PARTNERS)
        f->by[f->n] = by;
    f->n++;
}

static void count_fast(struct plan *p, unsigned n, unsigned by, uint32_t ok)
{
    uint32_t rails = ok & p->node[n].doubtful & plan_fast(&p->node[by]);
    for (unsigned r = 0; rails >> r; r++)
        if (rails >> r & 1) {
            struct plan_met_fast *f = &p->fast[plan_cell(p, n, r)];
            count_partner(p, f, by);
            f->near |= p->node[n].domain == p->node[by].domain;
        }
}

/* Rails on which somebody fast is left whom it has not met; near: in its own domain. */
static uint32_t fast_unmet(const struct plan *p, unsigned n, uint32_t rails, bool near)
{
    uint32_t found = 0;
    unsigned i = p->node[n].domain_at;
    for (unsigned k = 0; k < p->nodes && (rails & ~found); k++, i = i + 1 == p->nodes ? 0 : i + 1) {
        unsigned other = p->order[i].node;
        if (near && p->node[other].domain != p->node[n].domain)
            break; /* a domain stands together */
        if (other != n && !plan_met(p, n, other))
            found |= plan_fast(&p->node[other]);
    }
    return found & rails;
}

static void plan_slow_decide(struct plan *p, unsigned n, uint32_t fast_anywhere)
{
    struct plan_node *x = &p->node[n];
    uint32_t rails = x->doubtful & x->good, enough = 0, near = 0;
    for (unsigned r = 0; rails >> r; r++) {
        const struct plan_met_fast *f = &p->fast[plan_cell(p, n, r)];
        enough |= f->n >= FAST_PARTNERS ? 1u << r : 0;
        near |= f->near ? 1u << r : 0;
    }
    uint32_t wanting = rails & ~enough & fast_anywhere, far = rails & enough & ~near & fast_anywhere;
    x->slow_open = wanting ? fast_unmet(p, n, wanting, false) : 0;
    if (far)
        x->slow_open |= fast_unmet(p, n, far, true);
    x->slow |= rails & enough & x->beyond & ~x->slow_open;
    x->slow_unsure = rails & ~enough & x->beyond & ~x->slow_open;
}

void plan_judge_slow(struct plan *p)
{
    uint32_t fast_anywhere = 0;
    find_best(p);
    for (unsigned n = 0; n < p->nodes; n++) {
        struct plan_node *x = &p->node[n];
        x->doubtful = x->no_witness = x->beyond = x->slow = x->slow_open = x->slow_unsure = 0;
    }
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        for (unsigned r = 0; r < p->conf.rails; r++)
            judge_metric(p, (enum metric)m, r);
    memset(p->fast, 0, (size_t)p->nodes * p->conf.rails * sizeof *p->fast);
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        if (!rec->ok)
            continue;
        count_fast(p, rec->a, rec->b, rec->ok);
        count_fast(p, rec->b, rec->a, rec->ok);
    }
    for (unsigned n = 0; n < p->nodes; n++)
        fast_anywhere |= plan_fast(&p->node[n]);
    for (unsigned n = 0; n < p->nodes; n++)
        if (p->node[n].doubtful)
            plan_slow_decide(p, n, fast_anywhere);
}
