#include "probe/found.h"

#include <math.h>
#include <string.h>

static void found_take_metric(struct found *f, const struct wire_m *m)
{
    enum metric metric = metric_find(m->name, strlen(m->name));
    if (metric == METRIC_COUNT || metric_info(metric)->of != METRIC_OF_NODE || isnan(m->median))
        return;
    unsigned rail = m->rail < 0 ? 0 : (unsigned)m->rail, i = 0;
    while (i < f->metrics && (f->metric[i].metric != metric || f->metric[i].rail != rail))
        i++;
    if (i == FOUND_METRICS_MAX)
        return;
    f->metrics += i == f->metrics;
    f->metric[i] = (struct found_metric){metric, rail, metric_milli(m->median)};
}

bool found_take(struct found *f, const struct probe_wire *w)
{
    struct finding finding;
    if (w->type == WIRE_M)
        found_take_metric(f, &w->u.m);
    else if (w->type == WIRE_FACT)
        return facts_set(&f->facts, w->u.fact.name, w->u.fact.value);
    else if (w->type == WIRE_CHECK && finding_from_wire(&w->u.check, &finding) == 0)
        findings_put(&f->findings, &finding);
    else
        return false;
    return true;
}

int found_encode(const struct found *f, struct el_buf *out)
{
    struct probe_wire w;
    int bad = 0;
    for (unsigned i = 0; i < f->findings.n; i++) {
        finding_to_wire(&f->findings.v[i], &w);
        bad |= wire_encode(&w, out);
    }
    for (unsigned i = 0; i < FACTS; i++) {
        wire_init(&w, WIRE_FACT);
        w.u.fact = (struct wire_fact){fact_rows[i].name, f->facts.v[i]};
        bad |= f->facts.v[i][0] ? wire_encode(&w, out) : 0;
    }
    for (unsigned i = 0; i < f->metrics; i++) {
        const struct found_metric *m = &f->metric[i];
        const struct metric_info *info = metric_info(m->metric);
        wire_init(&w, WIRE_M);
        w.u.m.name = info->name;
        w.u.m.unit = info->unit;
        w.u.m.rail = m->rail;
        w.u.m.n = 1;
        w.u.m.median = m->milli / 1000.0;
        bad |= wire_encode(&w, out);
    }
    return bad ? -1 : 0;
}

static const struct finding *found_first_of(const struct found *f, unsigned check, enum finding_state state)
{
    for (unsigned i = 0; i < f->findings.n; i++)
        if (f->findings.v[i].check == check && f->findings.v[i].state == state)
            return &f->findings.v[i];
    return NULL;
}

/* The first one in words, then the names of other checks: who cures the first need not start anew to hear of those.  In
 * the order of the table, not in the one in which checks have ended. */
static bool put_all_of(const struct found *f, enum finding_state state, struct el_buf *out)
{
    unsigned n = 0;
    for (unsigned c = 0; c < CHECKS; c++) {
        const struct finding *x = found_first_of(f, c, state);
        if (x && out && !n)
            finding_text(x, out);
        else if (x && out)
            el_buf_printf(out, "%s%s", n == 1 ? "; also " : ", ", check_rows[c].name);
        n += x != NULL;
    }
    return n > 0;
}

bool found_bad(const struct found *f, struct el_buf *why)
{
    return put_all_of(f, FINDING_BAD, why);
}

bool found_undecided(const struct found *f, struct el_buf *why)
{
    return !found_bad(f, NULL) && put_all_of(f, FINDING_UNDECIDED, why);
}
