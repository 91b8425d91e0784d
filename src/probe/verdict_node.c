/* The verdict on one node, in words. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "probe/plan_private.h"
#include "util/buf.h"
#include "util/ranges.h"

static const char *const state_names[] = {
#define STATE_NAME(id, name) [id] = name,
    NODE_STATE_LIST(STATE_NAME)
#undef STATE_NAME
};

const char *node_state_name(enum node_state s)
{
    assert((unsigned)s < NODE_STATE_COUNT);
    return state_names[s];
}

/* Rails that are slow, and by which it is not known whose fault that is. */
static uint32_t undecided_slow(const struct plan *p, const struct plan_node *x)
{
    return x->slow_unsure | (p->stop ? x->slow_open & x->beyond : 0);
}

static enum node_state verdict_node_state_of(const struct plan *p, const struct plan_node *x)
{
    if (x->local == LOCAL_BAD)
        return NODE_BAD_LOCAL;
    if (x->bad) /* what pairs have proved stays, whatever becomes of the node then */
        return NODE_BAD;
    if (x->left)
        return NODE_BAD_LOCAL;
    if (x->absent)
        return NODE_ABSENT;
    if (x->lost)
        return NODE_UNDECIDED;
    if (x->local == LOCAL_NEW)
        return p->stop ? NODE_UNDECIDED : NODE_NEW;
    if (plan_open(x))
        return p->stop ? NODE_UNDECIDED : x->suspect ? NODE_SUSPECT : NODE_UNTESTED;
    if (x->slow)
        return NODE_SLOW;
    return p->stop && undecided_slow(p, x) ? NODE_UNDECIDED : NODE_GOOD;
}

enum node_state verdict_state(struct plan *p, unsigned node)
{
    assert(node < p->nodes);
    plan_judge(p);
    return verdict_node_state_of(p, &p->node[node]);
}

void verdict_count(struct plan *p, unsigned count[NODE_STATE_COUNT])
{
    memset(count, 0, NODE_STATE_COUNT * sizeof *count);
    for (unsigned n = 0; n < p->nodes; n++)
        count[verdict_state(p, n)]++;
}

enum verdict_whole verdict_whole(struct plan *p)
{
    unsigned count[NODE_STATE_COUNT];
    verdict_count(p, count);
    if (count[NODE_BAD] || count[NODE_BAD_LOCAL])
        return VERDICT_SOME_BAD;
    if (count[NODE_GOOD] + count[NODE_SLOW] < p->nodes || verdict_splits(p, NULL, 0))
        return VERDICT_UNDECIDED;
    return count[NODE_SLOW] ? VERDICT_SOME_SLOW : VERDICT_ALL_GOOD;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

void verdict_rails_text(uint32_t rails, struct el_buf *out)
{
    struct el_ranges runs = {0};
    el_buf_puts(out, rails & (rails - 1) ? "rails " : "rail ");
    for (unsigned r = 0; rails >> r; r++)
        if (rails >> r & 1)
            el_ranges_add(&runs, out, r);
    el_ranges_end(&runs, out);
}

/* "c01, c02 and c03" */
static void verdict_node_put_names(const struct plan *p, const unsigned *node, unsigned n, struct el_buf *out)
{
    char name[PLAN_NAME_MAX];
    for (unsigned i = 0; i < n; i++)
        el_buf_printf(out, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", plan_name_of(p, node[i], name));
}

static void verdict_node_put_rails(const struct node_verdict *v, struct el_buf *out)
{
    if (v->whole || !v->rails)
        return;
    verdict_rails_text(v->rails, out);
    el_buf_puts(out, ": ");
}

/* What the first failure of one of these rails said; if none failed, why they were broken off. */
static const char *why_failed(const struct plan *p, unsigned n, uint32_t rails)
{
    const char *broken = "";
    for (unsigned i = 0; i < p->records; i++) {
        const struct plan_record *rec = &p->record[i];
        if ((rec->a != n && rec->b != n) || !rec->reason || !(rec->rails & ~rec->ok & rails))
            continue;
        if (rec->failed & rails)
            return rec->reason;
        if (!rec->failed)
            broken = rec->reason;
    }
    return broken;
}

static void verdict_node_put_reason(const struct plan *p, unsigned n, const struct node_verdict *v, struct el_buf *out)
{
    const char *why = why_failed(p, n, v->rails);
    el_buf_printf(out, "%s%s", *why ? ": " : "", why);
}

static void say_bad(const struct plan *p, unsigned n, struct node_verdict *v, struct el_buf *out)
{
    const struct plan_node *x = &p->node[n];
    const struct plan_charge *c = NULL;
    char domain[PLAN_NAME_MAX];
    v->rails = x->bad;
    for (unsigned r = 0; r < p->conf.rails; r++) {
        const struct plan_charge *k = &p->charge[plan_cell(p, n, r)];
        if (!(x->bad >> r & 1))
            continue;
        v->ambiguous |= k->n < CONDEMN;
        v->uplink |= k->near < (k->n < CONDEMN ? k->n : CONDEMN);
        c = !c || k->n < c->n ? k : c; /* the weakest evidence is told */
    }
    assert(c && c->n >= 2);
    v->witnesses = c->n < CONDEMN ? c->n : CONDEMN;
    memcpy(v->witness, c->by, sizeof c->by);
    verdict_node_put_rails(v, out);
    el_buf_puts(out, "failed with ");
    verdict_node_put_names(p, v->witness, v->witnesses, out);
    el_buf_puts(out, v->witnesses == 2 ? ", both good" : ", all good");
    verdict_node_put_reason(p, n, v, out);
    if (v->ambiguous)
        el_buf_puts(out, "; two bad links would look the same");
    if (v->uplink)
        el_buf_printf(out, "; not all of them are in its domain %s: a bad uplink of that could look the same",
                      plan_domain_text(p, n, domain));
    if (x->left || x->absent)
        el_buf_puts(out, "; it has gone since");
    else if (x->lost)
        el_buf_puts(out, "; it was not heard any more then");
}

static const char *verdict_node_why_stopped(const struct plan *p, char to[64])
{
    switch (p->stop) {
    case PLAN_STOP_ROUNDS: snprintf(to, 64, "stopped after %u round%s", p->rounds, p->rounds == 1 ? "" : "s"); break;
    case PLAN_STOP_TIME: snprintf(to, 64, "the time was over"); break;
    case PLAN_STOP_MEMORY: snprintf(to, 64, "no memory for another round"); break;
    case PLAN_GOING:
    case PLAN_STOP_KNOWN:
    case PLAN_STOP_PAIRS: snprintf(to, 64, "no other node was left to ask"); break;
    }
    return to;
}

/* The worst value on the rails that are why. */
static void say_value(const struct plan *p, unsigned n, struct node_verdict *v, struct el_buf *out)
{
    char value[METRIC_TEXT_MAX], limit[METRIC_TEXT_MAX];
    v->metric = plan_slowest(p, n, v->rails, &v->metric_rail);
    assert(v->metric != METRIC_COUNT);
    v->value = plan_best(p, n, v->metric_rail, v->metric);
    v->limit = plan_group(p, v->metric, v->metric_rail)->limit;
    const struct metric_info *m = metric_info(v->metric);
    el_buf_printf(out, "%s %s, %s %s expected", m->words, metric_text(v->metric, v->value, value),
                  m->better == METRIC_HIGHER ? "at least" : "at most", metric_text(v->metric, v->limit, limit));
}

static void say_undecided(const struct plan *p, unsigned n, struct node_verdict *v, struct el_buf *out)
{
    const struct plan_node *x = &p->node[n];
    char stopped[64], domain[PLAN_NAME_MAX];
    v->rails = plan_open(x);
    if (x->lost) {
        el_buf_puts(out, x->reason ? x->reason : "not heard of any more");
    } else if (x->local == LOCAL_NEW) {
        el_buf_puts(out, "its own checks did not end");
    } else if (x->suspect) {
        verdict_node_put_rails(v, out);
        if (x->accused >= CONDEMN)
            el_buf_printf(out, "failed with %u good nodes, but some of its own domain %s were still to be asked (%s)",
                          x->accused, plan_domain_text(p, n, domain), verdict_node_why_stopped(p, stopped));
        else if (x->accused)
            el_buf_printf(out, "failed with %u good node%s, which is too few to be sure (%s)", x->accused,
                          x->accused == 1 ? "" : "s", verdict_node_why_stopped(p, stopped));
        else
            el_buf_printf(out, "failed, but with no node that is known to be good (%s)",
                          verdict_node_why_stopped(p, stopped));
        verdict_node_put_reason(p, n, v, out);
    } else if (x->untested) {
        verdict_node_put_rails(v, out);
        el_buf_printf(out, "no pair with it came to an end (%s)", verdict_node_why_stopped(p, stopped));
        verdict_node_put_reason(p, n, v, out);
    } else {
        v->rails = undecided_slow(p, x);
        verdict_node_put_rails(v, out);
        say_value(p, n, v, out);
        el_buf_printf(out, ", but it met fewer than %d fast nodes (%s)", FAST_PARTNERS,
                      verdict_node_why_stopped(p, stopped));
    }
}

static void say_slow(const struct plan *p, unsigned n, struct node_verdict *v, struct el_buf *out)
{
    v->rails = p->node[n].slow;
    verdict_node_put_rails(v, out);
    say_value(p, n, v, out);
}

/* A rail that nobody else has is not held against the node, but nothing is known of it either. */
static void verdict_node_say_good(const struct plan *p, const struct plan_node *x, struct el_buf *out)
{
    uint32_t alone = p->shared && p->nodes > 1 ? x->rails & ~p->shared : 0;
    if (!alone)
        return;
    verdict_rails_text(alone, out);
    el_buf_printf(out, " not tested: no other node has %s", alone & (alone - 1) ? "them" : "it");
}

void verdict_node(struct plan *p, unsigned node, struct node_verdict *out)
{
    struct plan_node *x = &p->node[node];
    struct el_buf text = EL_BUF_INIT(p->mem, VERDICT_TEXT_MAX - 1);
    uint32_t all = p->shared & x->rails ? p->shared & x->rails : x->rails;
    *out = (struct node_verdict){.state = verdict_state(p, node), .metric = METRIC_COUNT};
    /* Whether it is the whole node must be known before the sentence is begun. */
    uint32_t open = plan_open(x) ? plan_open(x) : undecided_slow(p, x);
    uint32_t why = out->state == NODE_BAD ? x->bad : out->state == NODE_SLOW ? x->slow : open;
    out->whole = !why || why == all;
    switch (out->state) {
    case NODE_BAD_LOCAL: el_buf_puts(&text, x->reason ? x->reason : "its own checks failed"); break;
    case NODE_BAD: say_bad(p, node, out, &text); break;
    case NODE_UNDECIDED: say_undecided(p, node, out, &text); break;
    case NODE_SLOW: say_slow(p, node, out, &text); break;
    case NODE_GOOD: verdict_node_say_good(p, x, &text); break;
    case NODE_ABSENT: el_buf_puts(&text, x->reason ? x->reason : ""); break;
    case NODE_NEW:
    case NODE_UNTESTED:
    case NODE_SUSPECT:
    case NODE_STATE_COUNT: break;
    }
    snprintf(out->text, sizeof out->text, "%s", el_buf_cstr(&text));
    el_buf_free(&text);
}
