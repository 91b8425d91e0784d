/* What nodes say of a stage: pages of lines (probe/wire.h), taken apart as they come. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/clocks.h"
#include "coord/health_check_private.h"
#include "util/sort.h"

struct pair_result *health_check_said(struct health_check *p, unsigned node)
{
    const struct health_check_node *n = &p->node[node];
    assert(p->kind == HEALTH_CHECK_PAIR && n->pair != HEALTH_CHECK_NONE);
    return &p->said[2 * n->pair + n->guest];
}

static bool is_pair(const struct health_check *p, const struct health_check_node *n)
{
    return p->kind == HEALTH_CHECK_PAIR && n->pair != HEALTH_CHECK_NONE;
}

/* Nothing of this stage has been said by the node, or all of it comes once more. */
static void health_check_report_forget(struct health_check *p, unsigned node)
{
    struct health_check_node *n = &p->node[node];
    n->pages = 0;
    n->warned = n->warned_before;
    if (n->kept.len > n->kept_before)
        n->kept.len = n->kept_before;
    if (is_pair(p, n))
        pair_result_init(health_check_said(p, node));
}

void health_check_take_stage(struct health_check *p)
{
    for (unsigned i = 0; i < p->conf.nodes; i++) {
        struct health_check_node *n = &p->node[i];
        n->done = n->strayed = false;
        n->parted = 0;
        n->kept_before = n->kept.len;
        n->warned_before = n->warned;
        n->ids_had = 0;
        el_buf_free(&n->ids);
        n->ids = EL_BUF_INIT(p->mem, MSG_IDS_MAX);
        health_check_report_forget(p, i);
    }
}

/* --- lines --- */

static uint32_t spread_of(const struct wire_m *m)
{
    if (isnan(m->p95) || isnan(m->median))
        return 0;
    return metric_milli(m->p95 > m->median ? m->p95 - m->median : m->median - m->p95);
}

static void health_check_report_take_metric(struct health_check *p, unsigned node, int64_t rail, const struct wire_m *m)
{
    enum metric metric = metric_find(m->name, strlen(m->name));
    if (metric == METRIC_COUNT || isnan(m->median))
        return; /* a newer version's */
    if (metric < METRIC_PAIR_COUNT) {
        if (!is_pair(p, &p->node[node]) || rail < 0 || rail >= PLAN_RAILS_MAX)
            return;
        struct rail_result *r = &health_check_said(p, node)->rail[rail];
        r->value[metric] = metric_milli(m->median);
        r->spread[metric] = spread_of(m);
        return;
    }
    struct health_check_measured x = {node, m->rail > 0 ? (unsigned)m->rail : 0, metric, metric_milli(m->median)};
    if (p->kind == HEALTH_CHECK_LOCAL && x.rail < PLAN_RAILS_MAX &&
        p->node[node].measured < HEALTH_CHECK_MEASURED_MAX && el_buf_put(&p->measured, &x, sizeof x) == 0)
        p->node[node].measured++;
}

static bool is_worth_keeping(const struct health_check *p, struct health_check_node *n, const struct probe_wire *w)
{
    if (w->type == WIRE_FACT || w->type == WIRE_M || w->type == WIRE_HELLO)
        return true;
    if (w->type != WIRE_CHECK)
        return false;
    n->warned |= strcmp(w->u.check.state, "warn") == 0;
    return p->conf.all || (strcmp(w->u.check.state, "ok") != 0 && strcmp(w->u.check.state, "unchecked") != 0);
}

static void health_check_report_take_line(struct health_check *p, unsigned node, int64_t rail, const char *line,
                                          size_t len)
{
    struct health_check_node *n = &p->node[node];
    struct probe_wire w;
    struct el_err e = {0};
    if (wire_decode(line, len, &w, &e) < 0)
        return; /* its outcome is what counts */
    if (w.type == WIRE_M)
        health_check_report_take_metric(p, node, rail, &w.u.m);
    if (clocks_take(&w, &n->wall_us) || baseline_take(&w, p->reference) || history_take(&w, n->note, sizeof n->note)) {
        wire_release(&w);
        return;
    }
    if (p->kind != HEALTH_CHECK_PAIR && is_worth_keeping(p, n, &w))
        (void)el_buf_put(&n->kept, line, len);
    wire_release(&w);
}

static void take_lines(struct health_check *p, unsigned node, int64_t rail, const char *lines)
{
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
        health_check_report_take_line(p, node, rail, lines, (size_t)(end - lines) + 1);
}

/* --- domains --- */

static int by_domain(const void *a, const void *b)
{
    const struct health_check_node *const *x = a, *const *y = b;
    return strcmp((*x)->domain, (*y)->domain);
}

/* Numbered in the order of their labels, for rack7 and rack8 are likely to be neighbours; the first is that of nodes
 * without one.  Where there is no memory for it they count as one. */
void health_check_number_domains(struct health_check *p)
{
    const unsigned n = p->conf.nodes;
    unsigned domain = 0;
    const struct health_check_node **all = el_alloc(p->mem, n * sizeof *all); /* NOLINT: pointers are meant */
    for (unsigned i = 0; all && i < n; i++)
        all[i] = &p->node[i];
    if (all)
        el_sort(all, n, sizeof *all, by_domain);
    for (unsigned i = 0; all && i < n && *all[n - 1]->domain; i++) {
        const unsigned node = (unsigned)(all[i] - p->node);
        domain += i && strcmp(all[i]->domain, all[i - 1]->domain) != 0;
        plan_domain(p->plan, node, domain);
        plan_domain_label(p->plan, node, *all[i]->domain ? all[i]->domain : "(none)");
    }
    el_free(p->mem, all);
}

/* --- clocks --- */

static void keep_clock(const struct health_check *p, struct health_check_node *n, int64_t usual_us)
{
    struct check_conf conf;
    struct probe_wire w;
    if (n->wall_us == CLOCKS_UNKNOWN)
        return;
    struct finding f = clocks_finding(n->wall_us, usual_us);
    check_conf_init(&conf);
    check_judge(&conf, &f);
    finding_to_wire(&f, &w);
    if (is_worth_keeping(p, n, &w))
        (void)wire_encode(&w, &n->kept);
}

void health_check_compare_clocks(struct health_check *p)
{
    int64_t *all = el_alloc(p->mem, p->conf.nodes * sizeof *all);
    for (unsigned i = 0; all && i < p->conf.nodes; i++)
        all[i] = p->node[i].wall_us;
    int64_t usual_us = all ? clocks_usual(all, p->conf.nodes) : CLOCKS_UNKNOWN;
    for (unsigned i = 0; i < p->conf.nodes && usual_us != CLOCKS_UNKNOWN; i++)
        keep_clock(p, &p->node[i], usual_us);
    el_free(p->mem, all);
}

/* --- pages --- */

static void take_outcome(struct health_check *p, unsigned node, const struct msg_probe_result *m)
{
    static const enum rail_outcome rails[] = {[HEALTH_CHECK_OK] = RAIL_OK,
                                              [HEALTH_CHECK_FAILED] = RAIL_FAILED,
                                              [HEALTH_CHECK_BROKEN] = RAIL_BROKEN,
                                              [HEALTH_CHECK_UNDECIDED] = RAIL_BROKEN};
    struct health_check_node *n = &p->node[node];
    enum health_check_outcome outcome = (enum health_check_outcome)m->outcome;
    if (!is_pair(p, n)) {
        *(p->kind == HEALTH_CHECK_AFTER ? &n->after : &n->local) = outcome;
        if (p->kind == HEALTH_CHECK_LOCAL)
            n->gpus = (unsigned)m->gpus;
        if (*m->text)
            snprintf(n->reason, sizeof n->reason, "%s", m->text);
        return;
    }
    if (m->rail < 0 || m->rail >= PLAN_RAILS_MAX)
        return;
    struct rail_result *r = &health_check_said(p, node)->rail[m->rail];
    r->outcome = rails[outcome];
    snprintf(r->reason, sizeof r->reason, "%s", r->outcome == RAIL_OK ? "" : m->text);
}

static bool is_this_stage(const struct health_check *p, uint64_t number, uint64_t coord, uint64_t probe, uint64_t stage)
{
    return !p->over && number == p->conf.number && coord == p->conf.coord && probe == p->conf.probe &&
           stage == p->stage;
}

static uint32_t rails_not_well(struct health_check *p, unsigned node)
{
    uint32_t rails = p->pair[p->node[node].pair].rails;
    const struct pair_result *r = health_check_said(p, node);
    for (unsigned i = 0; i < PLAN_RAILS_MAX; i++)
        if (r->rail[i].outcome == RAIL_OK)
            rails &= ~(1u << i);
    return rails;
}

/* One end of a pair is over.  On rails where that was not well the other one may wait for it in vain: it is told to end
 * there, and not just forgotten, for it may have stood still, and then nobody is to blame.  The other rails it ends by
 * itself, however slow it is. */
static bool part(struct health_check *p, unsigned node)
{
    const struct plan_pair *pair = &p->pair[p->node[node].pair];
    unsigned other = p->node[node].guest ? pair->a : pair->b;
    uint32_t rails = rails_not_well(p, node);
    if (p->node[other].done || !rails)
        return false;
    p->node[other].parted = rails;
    p->told = other;
    return true;
}

/* Pages come in order on one connection; a node that comes back tells all of them again. */
enum health_check_news health_check_result(struct health_check *p, unsigned node, const struct msg_probe_result *m,
                                           el_usec now)
{
    struct health_check_node *n = &p->node[node];
    if (!is_this_stage(p, m->number, m->coord, m->probe, m->stage) || n->done || m->outcome >= HEALTH_CHECK_OUTCOMES)
        return HEALTH_CHECK_SAME;
    if (p->kind == HEALTH_CHECK_PAIR && n->pair == HEALTH_CHECK_NONE)
        return HEALTH_CHECK_SAME;
    if (!m->page)
        health_check_report_forget(p, node);
    else if (m->page != n->pages)
        return HEALTH_CHECK_SAME;
    n->pages++;
    take_lines(p, node, m->rail, m->lines);
    take_outcome(p, node, m);
    if (m->more)
        return HEALTH_CHECK_SAME;
    n->done = true;
    if (n->presence == HEALTH_CHECK_HERE)
        p->waiting--;
    bool parts = p->kind == HEALTH_CHECK_PAIR && part(p, node);
    enum health_check_news news = health_check_timeout(p, now);
    return news == HEALTH_CHECK_SAME && parts ? HEALTH_CHECK_ORDER : news;
}

enum health_check_news health_check_id(struct health_check *p, unsigned node, const struct msg_probe_id *m)
{
    struct health_check_node *n = &p->node[node];
    uint32_t bit = m->rail < PLAN_RAILS_MAX ? 1u << m->rail : 0;
    if (!is_this_stage(p, m->number, m->coord, m->probe, m->stage) || !is_pair(p, n) || n->guest || !bit ||
        n->ids_had & bit || !*m->id || strchr(m->id, ' '))
        return HEALTH_CHECK_SAME;
    if (el_buf_printf(&n->ids, "%s%llu=%s", n->ids.len ? " " : "", (unsigned long long)m->rail, m->id) < 0)
        return HEALTH_CHECK_SAME; /* its partner will wait in vain, and say so */
    n->ids_had |= bit;
    p->told = p->pair[n->pair].b;
    return HEALTH_CHECK_ORDER;
}
