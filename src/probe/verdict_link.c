/* What is wrong between nodes that are good themselves, metrics by which nobody can be judged, and what was run. */
#include <assert.h>

#include "probe/plan_private.h"

/* Rails of a pair that failed although both ends are good elsewhere. */
static uint32_t failed_rails(const struct plan *p, const struct plan_record *rec)
{
    return rec->failed & p->node[rec->a].good & p->node[rec->b].good;
}

/* Rails on which both ends are fast elsewhere and this pair was slow; the worst value of them. */
static uint32_t slow_rails(const struct plan *p, unsigned record, struct link_verdict *out)
{
    const struct plan_record *rec = &p->record[record];
    uint32_t rails = 0, both = rec->ok & plan_fast(&p->node[rec->a]) & plan_fast(&p->node[rec->b]);
    for (unsigned r = 0; both >> r; r++)
        for (unsigned m = 0; both >> r & 1 && m < METRIC_PAIR_COUNT; m++) {
            uint32_t v = plan_value(p, record, r, (enum metric)m), limit = plan_pair_group(p, (enum metric)m, r)->limit;
            if (!v || !metric_worse((enum metric)m, v, limit))
                continue;
            if (!rails || (out->metric == (enum metric)m && metric_worse((enum metric)m, v, out->value))) {
                out->metric = (enum metric)m;
                out->value = v;
                out->limit = limit;
            }
            rails |= 1u << r;
        }
    return rails;
}

unsigned verdict_links(struct plan *p, struct link_verdict *out, unsigned max)
{
    unsigned n = 0;
    plan_judge(p);
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        struct link_verdict l = {.a = rec->a, .b = rec->b, .metric = METRIC_COUNT, .reason = ""};
        const struct plan_node *a = &p->node[rec->a], *b = &p->node[rec->b];
        if (!plan_heard(a) || !plan_heard(b))
            continue;
        l.across = a->domain != b->domain;
        l.rails = failed_rails(p, rec);
        if (l.rails) {
            l.reason = rec->reason ? rec->reason : "";
        } else {
            l.rails = slow_rails(p, i, &l);
            l.slow = true;
        }
        if (!l.rails)
            continue;
        if (n < max)
            out[n] = l;
        n++;
    }
    return n;
}

unsigned verdict_splits(struct plan *p, struct split_verdict *out, unsigned max)
{
    unsigned n = 0;
    plan_judge(p);
    for (unsigned m = 0; m < METRIC_COUNT; m++)
        for (unsigned r = 0; r < p->conf.rails; r++) {
            const struct slow_group *g = plan_group(p, (enum metric)m, r);
            if (!g->split)
                continue;
            if (n < max)
                out[n] = (struct split_verdict){.metric = (enum metric)m,
                                                .rail = r,
                                                .behind = g->behind,
                                                .measured = g->n,
                                                .best = g->best,
                                                .border = g->border};
            n++;
        }
    return n;
}

uint32_t verdict_value(struct plan *p, unsigned node, unsigned rail, enum metric m)
{
    assert(node < p->nodes && rail < p->conf.rails && (unsigned)m < METRIC_COUNT);
    plan_judge(p);
    return plan_best(p, node, rail, m);
}

void verdict_usual(struct plan *p, unsigned rail, enum metric m, uint32_t *median, uint32_t *limit)
{
    assert(rail < p->conf.rails && (unsigned)m < METRIC_COUNT);
    plan_judge(p);
    *median = plan_group(p, m, rail)->median;
    *limit = plan_group(p, m, rail)->limit;
}

/* --- what was run ------------------------------------------------------------------------------------------------- */

unsigned verdict_pairs(const struct plan *p)
{
    return p->records;
}

void verdict_pair(const struct plan *p, unsigned i, struct pair_record *out)
{
    assert(i < p->records);
    const struct plan_record *rec = &p->record[i];
    *out = (struct pair_record){.a = rec->a,
                                .b = rec->b,
                                .round = rec->round,
                                .rails = rec->rails,
                                .ok = rec->ok,
                                .failed = rec->failed,
                                .purpose = rec->purpose,
                                .reason = rec->reason};
}

uint32_t verdict_pair_value(const struct plan *p, unsigned i, unsigned rail, enum metric m)
{
    assert(i < p->records && rail < p->conf.rails && m < METRIC_PAIR_COUNT);
    return plan_value(p, i, rail, m);
}
