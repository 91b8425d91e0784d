#include "probe/report.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "probe/report_private.h"
#include "probe/versions.h"
#include "util/parse.h"
#include "util/ranges.h"

enum { STATUS_GOOD, STATUS_BAD, STATUS_UNDECIDED = 3, ROUND_NAMED_MAX = 4, ROUND_PAIRS_MAX = 200 };

const char *report_name(const struct probe_report *r, unsigned node, char to[PLAN_NAME_MAX])
{
    char name[PLAN_NAME_MAX];
    el_show_path(plan_name_of(r->plan, node, name), to, PLAN_NAME_MAX);
    return to;
}

enum el_tone report_tone(enum node_state s)
{
    switch (s) {
    case NODE_GOOD: return TONE_GOOD;
    case NODE_BAD:
    case NODE_BAD_LOCAL: return TONE_BAD;
    case NODE_SLOW:
    case NODE_UNDECIDED:
    case NODE_ABSENT:
    case NODE_SUSPECT: return TONE_WAIT;
    case NODE_NEW:
    case NODE_UNTESTED:
    case NODE_STATE_COUNT: break;
    }
    return TONE_FAINT;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

static void put_count(struct el_buf *out, const char **gap, unsigned n, const char *what)
{
    if (n)
        el_buf_printf(out, "%s%u %s %s", *gap, n, n == 1 ? "is" : "are", what);
    if (n)
        *gap = ", ";
}

static void put_counts(const struct probe_report *r, struct el_buf *out)
{
    unsigned count[NODE_STATE_COUNT];
    const char *gap = "";
    verdict_count(r->plan, count);
    put_count(out, &gap, count[NODE_GOOD], "good");
    put_count(out, &gap, count[NODE_SLOW], "slow");
    put_count(out, &gap, count[NODE_BAD] + count[NODE_BAD_LOCAL], "bad");
    put_count(out, &gap, count[NODE_UNDECIDED], "undecided");
    put_count(out, &gap, count[NODE_ABSENT], "absent");
    put_count(out, &gap, count[NODE_NEW] + count[NODE_UNTESTED] + count[NODE_SUSPECT], "not judged yet");
}

struct round_line {
    unsigned named, more;
    size_t pairs_at; /* in out */
};

static void put_pair(const struct probe_report *r, const struct pair_record *rec, struct round_line *line,
                     struct el_buf *out)
{
    char a[PLAN_NAME_MAX], b[PLAN_NAME_MAX], text[2 * PLAN_NAME_MAX + 16];
    int n = snprintf(text, sizeof text, "%s%s with %s", line->named ? ", " : ": ", report_name(r, rec->a, a),
                     report_name(r, rec->b, b));
    if (line->named == ROUND_NAMED_MAX || out->len - line->pairs_at + (size_t)n > ROUND_PAIRS_MAX) {
        line->more++;
        return;
    }
    line->named++;
    el_buf_puts(out, text);
}

/* Those of which somebody may be guilty or slow are named first. */
void report_round(const struct probe_report *r, struct el_buf *out)
{
    unsigned round = plan_rounds(r->plan), all = verdict_pairs(r->plan), first = all;
    unsigned count[NODE_STATE_COUNT];
    const char *gap = "; ";
    struct pair_record rec;
    el_buf_printf(out, "round %u", round);
    struct round_line line = {.pairs_at = out->len};
    while (first && (verdict_pair(r->plan, first - 1, &rec), rec.round == round))
        first--;
    for (int usual = 0; usual < 2; usual++)
        for (unsigned i = first; i < all; i++) {
            verdict_pair(r->plan, i, &rec);
            if ((rec.purpose == PLAN_FIRST || rec.purpose == PLAN_SECOND) == usual)
                put_pair(r, &rec, &line, out);
        }
    if (line.more)
        el_buf_printf(out, "%s%u %spair%s", line.named ? "; " : ": ", line.more, line.named ? "more " : "",
                      line.more == 1 ? "" : "s");
    verdict_count(r->plan, count);
    put_count(out, &gap, count[NODE_GOOD] + count[NODE_SLOW], "good so far");
    put_count(out, &gap, count[NODE_SUSPECT], "suspect");
    put_count(out, &gap, count[NODE_BAD] + count[NODE_BAD_LOCAL], "bad");
}

static const char *report_word_of(enum node_state s)
{
    return s == NODE_BAD_LOCAL ? "bad" : node_state_name(s);
}

/* Of the only node: what could not be judged leaves it undecided. */
static const char *word_of_only(const struct probe_report *r)
{
    bool undecided = report_whole(r) == VERDICT_UNDECIDED;
    return undecided ? node_state_name(NODE_UNDECIDED) : report_word_of(verdict_state(r->plan, 0));
}

void report_summary(const struct probe_report *r, struct el_buf *out)
{
    unsigned nodes = plan_nodes(r->plan), rounds = plan_rounds(r->plan);
    char name[PLAN_NAME_MAX];
    if (nodes == 1) {
        el_buf_printf(out, "%s: %s", report_name(r, 0, name), word_of_only(r));
    } else {
        el_buf_printf(out, "%u nodes: ", nodes);
        put_counts(r, out);
    }
    if (rounds)
        el_buf_printf(out, "; %u round%s of pairs", rounds, rounds == 1 ? "" : "s");
    if (r->took_ms)
        el_buf_printf(out, "%s%llu.%llu s", rounds ? ", " : "; ", (unsigned long long)r->took_ms / 1000,
                      (unsigned long long)r->took_ms % 1000 / 100);
    if (verdict_splits(r->plan, NULL, 0))
        el_buf_puts(out, "; two kinds of nodes");
    el_buf_puts(out, "\n");
}

enum verdict_whole report_whole(const struct probe_report *r)
{
    enum verdict_whole w = verdict_whole(r->plan);
    return w < VERDICT_UNDECIDED && report_undecided(r) ? VERDICT_UNDECIDED : w;
}

int report_status(const struct probe_report *r, bool strict, bool exclude_stragglers)
{
    switch (report_whole(r)) {
    case VERDICT_SOME_BAD: return STATUS_BAD;
    case VERDICT_UNDECIDED: return STATUS_UNDECIDED;
    case VERDICT_SOME_SLOW:
        if (exclude_stragglers)
            return STATUS_BAD;
        if (strict)
            return STATUS_UNDECIDED;
        break;
    case VERDICT_ALL_GOOD: break;
    }
    return strict && (report_warns(r) || verdict_links(r->plan, NULL, 0)) ? STATUS_UNDECIDED : STATUS_GOOD;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* What to do about it, from the table of checks or by what failed. */
static const char *advice(const struct probe_report *r, unsigned node, const struct node_verdict *v)
{
    const struct findings *f = report_findings(r, node);
    if (v->state == NODE_BAD_LOCAL) {
        for (unsigned i = 0; f && i < f->n; i++)
            if (f->v[i].state == FINDING_BAD)
                return check_rows[f->v[i].check].advice;
        return NULL;
    }
    if (v->state == NODE_BAD)
        return v->whole ? "take it out of the job; look at its network (cable, switch port, firewall) and its driver"
                        : "take it out of the job; look at the GPU and the network card of that rail";
    if (v->state == NODE_SLOW)
        return metric_info(v->metric)->of == METRIC_OF_PAIR
                   ? "look at cable, lanes and rate of its network card, and at what else uses it"
                   : "look at clocks, temperature and power, and at what else runs there";
    if (v->state == NODE_UNDECIDED)
        return plan_stopped(r->plan) == PLAN_STOP_ROUNDS ? "probe again with a greater --probe-rounds"
               : plan_stopped(r->plan) == PLAN_STOP_TIME ? "probe again with a longer --probe-timeout"
                                                         : "probe again with more nodes that are known to be good";
    return NULL;
}

static void put_note(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    if (r->note && r->note[node] && *r->note[node])
        el_buf_printf(out, " (%s)", r->note[node]);
}

void report_node(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    struct node_verdict v;
    char name[PLAN_NAME_MAX];
    verdict_node(r->plan, node, &v);
    el_buf_printf(out, "%s is %s%s%s", report_name(r, node, name), report_word_of(v.state), *v.text ? ": " : "",
                  v.text);
    put_note(r, node, out);
    el_buf_puts(out, "\n");
}

static void report_put_titles(const struct probe_report *r, enum metric m, struct el_buf *out)
{
    char line[128];
    snprintf(line, sizeof line, "  %5s  %-20s  %-9s  %12s  %12s  %s", "NODE", "NAME", "VERDICT",
             m == METRIC_COUNT ? "" : "MEASURED", m == METRIC_COUNT ? "" : "LIMIT", "WHY");
    el_paint(out, r->colour, TONE_FAINT, 0, line);
    el_buf_puts(out, "\n");
}

static void report_put_node(const struct probe_report *r, unsigned node, enum metric m, struct el_buf *out)
{
    struct node_verdict v;
    char name[PLAN_NAME_MAX], number[16], value[METRIC_TEXT_MAX], limit[METRIC_TEXT_MAX];
    unsigned rail = 0;
    uint32_t measured = 0, median = 0, border = 0;
    verdict_node(r->plan, node, &v);
    if (v.metric != METRIC_COUNT) {
        m = v.metric;
        measured = v.value;
        border = v.limit;
    } else if (m != METRIC_COUNT) {
        measured = report_node_value(r, node, m, &rail);
        verdict_usual(r->plan, rail, m, &median, &border);
    }
    snprintf(number, sizeof number, "%u", node);
    report_name(r, node, name);
    if (strlen(name) > 20)
        memcpy(name + 17, "...", 4);
    el_buf_printf(out, "  %5s  %-20s  ", number, name);
    el_paint(out, r->colour, report_tone(v.state), 9, report_word_of(v.state));
    measured = v.state == NODE_BAD || v.state == NODE_BAD_LOCAL ? 0 : measured;
    bool no_limit = !border || border == UINT32_MAX;
    if (m == METRIC_COUNT)
        el_buf_printf(out, "  %12s  %12s", "", "");
    else
        el_buf_printf(out, "  %12s  %12s", metric_text(m, measured, value),
                      no_limit ? "-" : metric_text(m, border, limit));
    el_buf_printf(out, "%s%s", *v.text ? "  " : "", v.text);
    put_note(r, node, out);
    el_buf_puts(out, "\n");
    const char *what = advice(r, node, &v);
    if (what) {
        el_buf_printf(out, "         ");
        el_paint(out, r->colour, TONE_FAINT, 0, "-> ");
        el_buf_printf(out, "%s\n", what);
    }
}

/* "good: 0-4,6-63" */
static void put_good(const struct probe_report *r, struct el_buf *out)
{
    struct el_ranges runs = {0};
    unsigned good = 0;
    el_buf_puts(out, "  ");
    el_paint(out, r->colour, TONE_GOOD, 0, "good");
    el_buf_puts(out, ": ");
    for (unsigned n = 0; n < plan_nodes(r->plan); n++)
        if (verdict_state(r->plan, n) == NODE_GOOD) {
            el_ranges_add(&runs, out, n);
            good++;
        }
    el_ranges_end(&runs, out);
    el_buf_printf(out, "%s\n", good ? "" : "none");
}

static void report_put_nodes(const struct probe_report *r, struct el_buf *out)
{
    unsigned nodes = plan_nodes(r->plan), odd = 0;
    bool all = nodes <= REPORT_LISTED_MAX;
    enum metric m = report_metric(r);
    for (unsigned n = 0; n < nodes; n++)
        odd += verdict_state(r->plan, n) != NODE_GOOD;
    el_buf_puts(out, "\n");
    if (!all)
        put_good(r, out);
    if (!all && !odd)
        return;
    report_put_titles(r, m, out);
    unsigned shown = 0;
    for (unsigned n = 0; n < nodes && (all || shown < REPORT_ODD_MAX); n++)
        if (all || verdict_state(r->plan, n) != NODE_GOOD) {
            report_put_node(r, n, m, out);
            shown++;
        }
    if (!all && shown < odd)
        el_buf_printf(out, "  and %u more (--json lists all)\n", odd - shown);
}

/* What was measured goes up and down so much that only a quarter of the usual would be called slow: that nobody is slow
 * by it does not say that nobody is. */
static void put_noise(const struct probe_report *r, struct el_buf *out)
{
    const char *gap = "\n  ";
    bool any = false;
    for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
        bool vague = false;
        for (unsigned k = 0; k < plan_rail_count(r->plan); k++) {
            uint32_t median, limit;
            verdict_usual(r->plan, k, (enum metric)m, &median, &limit);
            vague |= metric_info((enum metric)m)->better == METRIC_HIGHER && limit && limit <= median / 4 + 1;
        }
        if (!vague)
            continue;
        el_buf_printf(out, "%s%s", gap, metric_info((enum metric)m)->words);
        gap = ", ";
        any = true;
    }
    if (any)
        el_buf_puts(out, ": went up and down so much that only a node with less than a quarter would be called slow\n");
}

/* --- what is wrong between nodes ---------------------------------------------------------------------------------- */

static void put_heading(const struct probe_report *r, const char *text, struct el_buf *out)
{
    el_buf_puts(out, "\n");
    el_paint(out, r->colour, TONE_STRONG, 0, text);
    el_buf_puts(out, "\n");
}

static void report_put_link(const struct probe_report *r, const struct link_verdict *l, struct el_buf *out)
{
    char a[PLAN_NAME_MAX], b[PLAN_NAME_MAX], value[METRIC_TEXT_MAX], limit[METRIC_TEXT_MAX];
    el_buf_printf(out, "  %s - %s", report_name(r, l->a, a), report_name(r, l->b, b));
    if (plan_rail_count(r->plan) > 1) {
        el_buf_puts(out, ", ");
        verdict_rails_text(l->rails, out);
    }
    if (l->slow)
        el_buf_printf(out, ": %s %s, %s usual", metric_info(l->metric)->words, metric_text(l->metric, l->value, value),
                      metric_text(l->metric, l->limit, limit));
    else
        el_buf_printf(out, ": failed%s%s", *l->reason ? ": " : "", l->reason);
    el_buf_puts(out, "\n");
}

static bool between(const struct probe_report *r, unsigned a, unsigned b, unsigned domain, unsigned other)
{
    unsigned x = plan_domain_of(r->plan, a), y = plan_domain_of(r->plan, b);
    return (x == domain && y == other) || (x == other && y == domain);
}

/* All links between the same two domains are one thing: the way between them. */
static void put_way(const struct probe_report *r, const struct link_verdict *l, unsigned at, unsigned n,
                    struct el_buf *out)
{
    unsigned x = plan_domain_of(r->plan, l[at].a), y = plan_domain_of(r->plan, l[at].b), odd = 0, all = 0;
    char one[PLAN_NAME_MAX], two[PLAN_NAME_MAX];
    for (unsigned i = 0; i < n; i++) {
        if (!between(r, l[i].a, l[i].b, x, y))
            continue;
        if (i < at)
            return; /* told already */
        odd++;
    }
    for (unsigned i = 0; i < verdict_pairs(r->plan); i++) {
        struct pair_record rec;
        verdict_pair(r->plan, i, &rec);
        all += between(r, rec.a, rec.b, x, y);
    }
    const char *first = plan_domain_text(r->plan, x < y ? l[at].a : l[at].b, one);
    const char *second = plan_domain_text(r->plan, x < y ? l[at].b : l[at].a, two);
    el_buf_printf(out,
                  "  domains %s and %s: %u of %u pair%s between them %s not as others: perhaps the switch; first:\n  ",
                  first, second, odd, all, all == 1 ? "" : "s", odd == 1 ? "is" : "are");
    report_put_link(r, &l[at], out);
}

static void report_put_links(const struct probe_report *r, struct el_buf *out)
{
    unsigned n = verdict_links(r->plan, NULL, 0), shown = 0, inside = 0;
    struct link_verdict *l = n ? el_alloc(out->mem, n * sizeof *l) : NULL;
    if (!l)
        return;
    verdict_links(r->plan, l, n);
    put_heading(r, "links between nodes that are good with others", out);
    for (unsigned i = 0; i < n; i++) {
        inside += !l[i].across;
        if (l[i].across) {
            put_way(r, l, i, n, out);
        } else if (shown < REPORT_LINES_MAX) {
            report_put_link(r, &l[i], out);
            shown++;
        }
    }
    if (shown < inside)
        el_buf_printf(out, "  and %u more (--json lists all)\n", inside - shown);
    el_free(out->mem, l);
}

static void report_put_splits(const struct probe_report *r, struct el_buf *out)
{
    struct split_verdict s[REPORT_LINES_MAX];
    unsigned n = verdict_splits(r->plan, s, REPORT_LINES_MAX);
    if (n)
        put_heading(r, "two kinds of nodes, so that nobody is called slow (two kinds of hardware, or two switches?)",
                    out);
    for (unsigned i = 0; i < n && i < REPORT_LINES_MAX; i++) {
        char best[METRIC_TEXT_MAX], border[METRIC_TEXT_MAX];
        struct el_ranges runs = {0};
        el_buf_printf(out, "  %s", metric_info(s[i].metric)->words);
        if (plan_rail_count(r->plan) > 1)
            el_buf_printf(out, ", rail %u", s[i].rail);
        el_buf_printf(out, ": the best have %s, %u of %u are beyond %s: nodes ",
                      metric_text(s[i].metric, s[i].best, best), s[i].behind, s[i].measured,
                      metric_text(s[i].metric, s[i].border, border));
        for (unsigned k = 0; k < plan_nodes(r->plan); k++) {
            uint32_t v = verdict_value(r->plan, k, s[i].rail, s[i].metric);
            if (v && metric_worse(s[i].metric, v, s[i].border))
                el_ranges_add(&runs, out, k);
        }
        el_ranges_end(&runs, out);
        el_buf_puts(out, "\n");
    }
}

static void report_put_versions(const struct probe_report *r, struct el_buf *out)
{
    unsigned nodes = plan_nodes(r->plan);
    struct el_mem *mem = out->mem;
    const struct facts **facts = el_alloc(mem, nodes * sizeof *facts); /* NOLINT: pointers are meant */
    const char **names = el_alloc(mem, nodes * sizeof *names);
    char(*name)[PLAN_NAME_MAX] = el_alloc(mem, nodes * sizeof *name);
    struct el_buf text = EL_BUF_INIT(mem, 0);
    if (facts && names && name && r->found) {
        for (unsigned n = 0; n < nodes; n++) {
            facts[n] = r->found[n] ? &r->found[n]->facts : NULL;
            names[n] = report_name(r, n, name[n]);
        }
        if (versions_report(facts, names, nodes, &text)) {
            put_heading(r, "not the same on all nodes", out);
            const char *line = el_buf_cstr(&text);
            while (*line) {
                const char *end = strchr(line, '\n');
                size_t n = end ? (size_t)(end - line) : strlen(line);
                el_buf_printf(out, "  %.*s\n", (int)n, line);
                line += n + (end != NULL);
            }
        }
    }
    el_buf_free(&text);
    el_free(mem, name);
    el_free(mem, names);
    el_free(mem, facts);
}

static const char *report_why_stopped(enum plan_stop s)
{
    switch (s) {
    case PLAN_STOP_ROUNDS: return "stopped because no more rounds are allowed (--probe-rounds)";
    case PLAN_STOP_TIME: return "stopped because the time is over (--probe-timeout)";
    case PLAN_STOP_PAIRS: return "stopped because no two nodes are left that have not met and could tell more";
    case PLAN_STOP_MEMORY: return "stopped because there is no memory for another round";
    case PLAN_GOING: return "not ended yet";
    case PLAN_STOP_KNOWN: break;
    }
    return NULL;
}

/* What the checks do not say themselves: slower than the baseline, what was before. */
static void put_alone(const struct probe_report *r, struct el_buf *out)
{
    struct node_verdict v;
    verdict_node(r->plan, 0, &v);
    if (v.state == NODE_SLOW)
        el_buf_printf(out, "  slow: %s\n", v.text);
    if (r->note && r->note[0] && *r->note[0])
        el_buf_printf(out, "  %s\n", r->note[0]);
}

static void put_above(const struct probe_report *r, struct el_buf *out)
{
    struct el_buf line = EL_BUF_INIT(out->mem, 0);
    report_summary(r, &line);
    el_paint(out, r->colour, TONE_STRONG, 0, "probe");
    el_buf_printf(out, "%s%s of %s", r->backend ? " by " : "", r->backend ? r->backend : "", el_buf_cstr(&line));
    el_buf_free(&line);
    const char *stopped = report_why_stopped(plan_stopped(r->plan));
    if (stopped && plan_nodes(r->plan) > 1)
        el_buf_printf(out, "  %s\n", stopped);
    if (plan_nodes(r->plan) == 1) {
        put_alone(r, out);
        report_checks(r, out);
    } else {
        report_put_nodes(r, out);
    }
}

static void put_below(const struct probe_report *r, struct el_buf *out)
{
    put_noise(r, out);
    report_put_links(r, out);
    report_put_splits(r, out);
    report_warnings(r, out);
    report_put_versions(r, out);
    if (r->all)
        report_checks_each(r, out);
}

/* In lines that are no wider than the terminal; without one, or on one that cannot be read anyway, as they are. */
static void report_put_wrapped(const struct probe_report *r,
                               void (*put)(const struct probe_report *r, struct el_buf *out), struct el_buf *out)
{
    struct el_buf text = EL_BUF_INIT(out->mem, out->max);
    if (r->columns < 40) {
        put(r, out);
        return;
    }
    put(r, &text);
    report_wrap(el_buf_cstr(&text), r->columns, out);
    out->full |= text.full;
    el_buf_free(&text);
}

void report_text(const struct probe_report *r, struct el_buf *out)
{
    report_put_wrapped(r, put_above, out);
    if (plan_nodes(r->plan) == 1)
        return;
    report_picture(r, out); /* it knows how wide it may be, and is worth nothing when broken */
    report_put_wrapped(r, put_below, out);
}
