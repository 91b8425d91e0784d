/* The report as one JSON object. */
#include <assert.h>
#include <string.h>

#include "util/text.h"
#include "probe/report_private.h"
#include "probe/versions.h"

static const char *const purposes[] = {[PLAN_FIRST] = "first",
                                       [PLAN_CLEAR] = "clear",
                                       [PLAN_AMONG] = "among",
                                       [PLAN_SLOW] = "slow",
                                       [PLAN_SECOND] = "second"};
static const char *const stops[] = {
    [PLAN_GOING] = "going",        [PLAN_STOP_KNOWN] = "known", [PLAN_STOP_PAIRS] = "pairs",
    [PLAN_STOP_ROUNDS] = "rounds", [PLAN_STOP_TIME] = "time",   [PLAN_STOP_MEMORY] = "memory"};
static const char *const wholes[] = {[VERDICT_ALL_GOOD] = "good",
                                     [VERDICT_SOME_SLOW] = "slow",
                                     [VERDICT_UNDECIDED] = "undecided",
                                     [VERDICT_SOME_BAD] = "bad"};

static void report_json_put_string(struct el_buf *out, const char *s)
{
    text_json(out, s, strlen(s));
}

/* Thousandths as a number. */
static void put_milli(struct el_buf *out, uint32_t milli)
{
    if (!milli)
        el_buf_puts(out, "null");
    else
        el_buf_printf(out, "%u.%03u", milli / 1000, milli % 1000);
}

static void put_real(struct el_buf *out, double v)
{
    el_buf_printf(out, "%.15g", v);
}

static void report_json_put_rails(struct el_buf *out, uint32_t rails)
{
    const char *comma = "";
    el_buf_puts(out, "[");
    for (unsigned r = 0; rails >> r; r++) {
        if (!(rails >> r & 1))
            continue;
        el_buf_printf(out, "%s%u", comma, r);
        comma = ",";
    }
    el_buf_puts(out, "]");
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* "bw64m":[47.2,null]: one value a rail. */
static void put_values(const struct probe_report *r, unsigned pair, struct el_buf *out)
{
    const char *comma = "";
    unsigned rails = plan_rail_count(r->plan);
    el_buf_puts(out, "{");
    for (unsigned m = 0; m < METRIC_PAIR_COUNT; m++) {
        bool any = false;
        for (unsigned k = 0; k < rails; k++)
            any |= verdict_pair_value(r->plan, pair, k, (enum metric)m) != 0;
        if (!any)
            continue;
        el_buf_printf(out, "%s\"%s\":[", comma, metric_info((enum metric)m)->name);
        for (unsigned k = 0; k < rails; k++) {
            el_buf_puts(out, k ? "," : "");
            put_milli(out, verdict_pair_value(r->plan, pair, k, (enum metric)m));
        }
        el_buf_puts(out, "]");
        comma = ",";
    }
    el_buf_puts(out, "}");
}

static void put_result(const struct probe_report *r, unsigned i, const struct pair_record *rec, struct el_buf *out)
{
    el_buf_puts(out, "{\"ok\":");
    report_json_put_rails(out, rec->ok);
    el_buf_puts(out, ",\"failed\":");
    report_json_put_rails(out, rec->failed);
    el_buf_puts(out, ",\"broken_off\":");
    report_json_put_rails(out, rec->rails & ~(rec->ok | rec->failed));
    el_buf_puts(out, ",\"reason\":");
    report_json_put_string(out, rec->reason ? rec->reason : "");
    el_buf_puts(out, ",\"metrics\":");
    put_values(r, i, out);
    el_buf_puts(out, "}");
}

static void put_rounds(const struct probe_report *r, struct el_buf *out)
{
    unsigned n = verdict_pairs(r->plan), from = 0;
    struct pair_record rec;
    el_buf_puts(out, "\"rounds\":[");
    while (from < n) {
        unsigned to = from;
        verdict_pair(r->plan, from, &rec);
        unsigned round = rec.round;
        el_buf_printf(out, "%s{\"round\":%u,\"pairs\":[", from ? "," : "", round);
        for (; to < n && (verdict_pair(r->plan, to, &rec), rec.round == round); to++) {
            el_buf_printf(out, "%s{\"a\":%u,\"b\":%u,\"for\":\"%s\",\"rails\":", to > from ? "," : "", rec.a, rec.b,
                          purposes[rec.purpose]);
            report_json_put_rails(out, rec.rails);
            el_buf_puts(out, "}");
        }
        el_buf_puts(out, "],\"results\":[");
        for (unsigned i = from; i < to; i++) {
            verdict_pair(r->plan, i, &rec);
            el_buf_puts(out, i > from ? "," : "");
            put_result(r, i, &rec, out);
        }
        el_buf_puts(out, "]}");
        from = to;
    }
    el_buf_puts(out, "]");
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void put_metrics(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    const char *comma = "";
    unsigned rails = plan_rail_count(r->plan);
    el_buf_puts(out, "\"metrics\":{");
    for (unsigned m = 0; m < METRIC_COUNT; m++) {
        unsigned last = 0;
        for (unsigned k = 0; k < rails; k++)
            last = verdict_value(r->plan, node, k, (enum metric)m) ? k + 1 : last;
        if (!last)
            continue;
        last = m < METRIC_PAIR_COUNT ? rails : last; /* a host has no rails */
        el_buf_printf(out, "%s\"%s\":[", comma, metric_info((enum metric)m)->name);
        for (unsigned k = 0; k < last; k++) {
            el_buf_puts(out, k ? "," : "");
            put_milli(out, verdict_value(r->plan, node, k, (enum metric)m));
        }
        el_buf_puts(out, "]");
        comma = ",";
    }
    el_buf_puts(out, "}");
}

static void put_partners(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    const char *comma = "";
    el_buf_puts(out, "\"partners\":[");
    for (unsigned i = 0; i < verdict_pairs(r->plan); i++) {
        struct pair_record rec;
        verdict_pair(r->plan, i, &rec);
        if (rec.a != node && rec.b != node)
            continue;
        el_buf_printf(out, "%s%u", comma, rec.a == node ? rec.b : rec.a);
        comma = ",";
    }
    el_buf_puts(out, "]");
}

static void report_json_put_finding(const struct finding *f, struct el_buf *out)
{
    const struct check_row *row = &check_rows[f->check];
    el_buf_printf(out, "{\"check\":\"%s\",\"state\":\"%s\",\"on\":", row->name, finding_state_name(f->state));
    report_json_put_string(out, f->on);
    el_buf_puts(out, ",\"value\":");
    if (f->has_value)
        put_real(out, f->value);
    else
        el_buf_puts(out, "null");
    el_buf_puts(out, ",\"limit\":");
    if (f->has_value)
        put_real(out, f->limit);
    else
        el_buf_puts(out, "null");
    el_buf_puts(out, ",\"unit\":");
    report_json_put_string(out, check_unit_name(row->unit));
    el_buf_puts(out, ",\"text\":");
    report_json_put_string(out, f->text);
    if (f->state == FINDING_BAD || f->state == FINDING_WARN) {
        el_buf_puts(out, ",\"advice\":");
        report_json_put_string(out, row->advice);
    }
    el_buf_puts(out, "}");
}

/* All of the only node; of many what is not in order. */
static void report_json_put_findings(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    const struct findings *f = report_findings(r, node);
    const char *comma = "";
    el_buf_puts(out, "\"findings\":[");
    for (unsigned i = 0; f && i < f->n; i++) {
        if (!r->all && plan_nodes(r->plan) > 1 && f->v[i].state < FINDING_UNDECIDED)
            continue;
        el_buf_puts(out, comma);
        report_json_put_finding(&f->v[i], out);
        comma = ",";
    }
    el_buf_puts(out, "]");
}

static void put_facts(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    const char *comma = "";
    el_buf_puts(out, "\"facts\":{");
    for (unsigned i = 0; r->found && r->found[node] && i < FACTS; i++) {
        if (!r->found[node]->facts.v[i][0])
            continue;
        el_buf_printf(out, "%s\"%s\":", comma, fact_rows[i].name);
        report_json_put_string(out, r->found[node]->facts.v[i]);
        comma = ",";
    }
    el_buf_puts(out, "}");
}

static void report_json_put_node(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    struct node_verdict v;
    char name[PLAN_NAME_MAX];
    verdict_node(r->plan, node, &v);
    el_buf_printf(out, "{\"node\":%u,\"name\":", node);
    report_json_put_string(out, plan_name_of(r->plan, node, name));
    if (plan_has_label(r->plan, node)) {
        el_buf_puts(out, ",\"domain\":");
        report_json_put_string(out, plan_domain_text(r->plan, node, name));
    }
    el_buf_printf(out, ",\"state\":\"%s\",\"rails\":", node_state_name(v.state));
    report_json_put_rails(out, v.rails);
    el_buf_puts(out, ",\"reasons\":[");
    if (*v.text)
        report_json_put_string(out, v.text);
    if (r->brief) {
        el_buf_puts(out, "]}");
        return;
    }
    if (r->note && r->note[node] && *r->note[node]) {
        el_buf_puts(out, *v.text ? "," : "");
        report_json_put_string(out, r->note[node]);
    }
    el_buf_printf(out, "],\"ambiguous\":%s,\"witnesses\":[", v.ambiguous ? "true" : "false");
    for (unsigned i = 0; i < v.witnesses; i++)
        el_buf_printf(out, "%s%u", i ? "," : "", v.witness[i]);
    el_buf_puts(out, "],");
    put_metrics(r, node, out);
    el_buf_puts(out, ",");
    put_partners(r, node, out);
    el_buf_puts(out, ",");
    report_json_put_findings(r, node, out);
    el_buf_puts(out, ",");
    put_facts(r, node, out);
    el_buf_puts(out, "}");
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

static void report_json_put_links(const struct probe_report *r, struct el_buf *out)
{
    unsigned n = verdict_links(r->plan, NULL, 0);
    struct link_verdict *l = el_alloc(out->mem, (n + 1) * sizeof *l);
    n = l ? verdict_links(r->plan, l, n) : 0;
    n = r->brief && n > REPORT_BRIEF_MAX ? REPORT_BRIEF_MAX : n;
    el_buf_puts(out, "\"links\":[");
    for (unsigned i = 0; i < n; i++) {
        el_buf_printf(out, "%s{\"a\":%u,\"b\":%u,\"rails\":", i ? "," : "", l[i].a, l[i].b);
        report_json_put_rails(out, l[i].rails);
        el_buf_printf(out, ",\"slow\":%s,\"across\":%s,\"reason\":", l[i].slow ? "true" : "false",
                      l[i].across ? "true" : "false");
        report_json_put_string(out, l[i].reason);
        if (l[i].slow) {
            el_buf_printf(out, ",\"metric\":\"%s\",\"value\":", metric_info(l[i].metric)->name);
            put_milli(out, l[i].value);
            el_buf_puts(out, ",\"limit\":");
            put_milli(out, l[i].limit);
        }
        el_buf_puts(out, "}");
    }
    el_buf_puts(out, "]");
    el_free(out->mem, l);
}

static void report_json_put_splits(const struct probe_report *r, struct el_buf *out)
{
    struct split_verdict s[METRIC_COUNT * PLAN_RAILS_MAX];
    unsigned n = verdict_splits(r->plan, s, METRIC_COUNT * PLAN_RAILS_MAX);
    el_buf_puts(out, "\"splits\":[");
    for (unsigned i = 0; i < n; i++) {
        el_buf_printf(out, "%s{\"metric\":\"%s\",\"rail\":%u,\"behind\":%u,\"measured\":%u,\"best\":", i ? "," : "",
                      metric_info(s[i].metric)->name, s[i].rail, s[i].behind, s[i].measured);
        put_milli(out, s[i].best);
        el_buf_puts(out, ",\"border\":");
        put_milli(out, s[i].border);
        el_buf_puts(out, "}");
    }
    el_buf_puts(out, "]");
}

/* "nccl":[{"value":"2.28.9","nodes":7},…]: facts in which the nodes differ; who has which stands with each node. */
static void report_json_put_versions(const struct probe_report *r, struct el_buf *out)
{
    const char *comma = "";
    unsigned nodes = plan_nodes(r->plan);
    const struct facts **facts = el_alloc(out->mem, nodes * sizeof *facts); /* NOLINT: pointers are meant */
    el_buf_puts(out, "\"versions\":{");
    for (unsigned n = 0; facts && r->found && n < nodes; n++)
        facts[n] = r->found[n] ? &r->found[n]->facts : NULL;
    for (unsigned i = 0; facts && i < FACTS; i++) {
        struct versions_difference d;
        if (!versions_differ(facts, nodes, (enum fact)i, &d))
            continue;
        el_buf_printf(out, "%s\"%s\":[", comma, fact_rows[i].name);
        for (unsigned k = 0; k < d.n; k++) {
            el_buf_puts(out, k ? ",{\"value\":" : "{\"value\":");
            report_json_put_string(out, d.v[k].value);
            el_buf_printf(out, ",\"nodes\":%u,\"first\":%u}", d.v[k].nodes, d.v[k].first);
        }
        el_buf_puts(out, "]");
        comma = ",";
    }
    el_buf_puts(out, "}");
    el_free(out->mem, facts);
}

/* All, or the first of those that are not good. */
static void report_json_put_nodes(const struct probe_report *r, struct el_buf *out)
{
    unsigned told = 0;
    el_buf_puts(out, "\"nodes\":[");
    for (unsigned n = 0; n < plan_nodes(r->plan); n++) {
        if (r->brief && (told == REPORT_BRIEF_MAX || verdict_state(r->plan, n) == NODE_GOOD))
            continue;
        el_buf_puts(out, told++ ? "," : "");
        report_json_put_node(r, n, out);
    }
    el_buf_puts(out, "]");
}

void report_json(const struct probe_report *r, struct el_buf *out)
{
    el_buf_printf(out, "{\"world_round\":{\"number\":%llu,\"coord\":\"%016llx\"},\"probe\":%llu,\"backend\":",
                  (unsigned long long)r->number, (unsigned long long)r->coord, (unsigned long long)r->probe);
    if (r->backend)
        report_json_put_string(out, r->backend);
    else
        el_buf_puts(out, "null");
    el_buf_printf(out, ",\"took_ms\":%llu,\"verdict\":\"%s\",\"stopped\":\"%s\",\"brief\":%s,",
                  (unsigned long long)r->took_ms, wholes[report_whole(r)], stops[plan_stopped(r->plan)],
                  r->brief ? "true" : "false");
    if (r->brief)
        el_buf_puts(out, "\"rounds\":[]");
    else
        put_rounds(r, out);
    el_buf_puts(out, ",");
    report_json_put_nodes(r, out);
    el_buf_puts(out, ",");
    report_json_put_links(r, out);
    el_buf_puts(out, ",");
    report_json_put_splits(r, out);
    el_buf_puts(out, ",");
    report_json_put_versions(r, out);
    el_buf_puts(out, "}\n");
}
