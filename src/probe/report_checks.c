/* Single-node checks: all of the only node, or those of many that are not in order. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "probe/report_private.h"
#include "util/ranges.h"

/* What one check said of one node, over all parts of it. */
struct report_checks_row {
    unsigned n;                  /* findings */
    const struct finding *worst; /* the first of the worst */
};

static struct report_checks_row report_checks_collect(const struct findings *f, enum check c)
{
    struct report_checks_row row = {0};
    for (unsigned i = 0; f && i < f->n; i++) {
        if (f->v[i].check != c)
            continue;
        row.n++;
        if (!row.worst || f->v[i].state > row.worst->state)
            row.worst = &f->v[i];
    }
    return row;
}

static enum el_tone report_checks_tone_of(enum finding_state s)
{
    switch (s) {
    case FINDING_OK: return TONE_GOOD;
    case FINDING_BAD: return TONE_BAD;
    case FINDING_WARN:
    case FINDING_UNDECIDED: return TONE_WAIT;
    case FINDING_INFO: return TONE_PLAIN;
    case FINDING_UNCHECKED:
    case FINDING_STATES: break;
    }
    return TONE_FAINT;
}

static void put_advice(const struct probe_report *r, enum check c, struct el_buf *out)
{
    el_buf_puts(out, "             ");
    el_paint(out, r->colour, TONE_FAINT, 0, "-> ");
    el_buf_printf(out, "%s\n", check_rows[c].advice);
}

static void report_checks_put_titles(const struct probe_report *r, struct el_buf *out)
{
    char line[128];
    snprintf(line, sizeof line, "  %-9s  %-20s  %-14s  %-18s  %s", "VERDICT", "CHECK", "MEASURED", "EXPECTED", "OF");
    el_paint(out, r->colour, TONE_FAINT, 0, line);
    el_buf_puts(out, "\n");
}

/* What does not fit its column keeps a gap. */
static void report_checks_put_cell(const struct probe_report *r, int width, const char *text, struct el_buf *out)
{
    el_paint(out, r->colour, TONE_PLAIN, width, text);
    if (strlen(text) >= (size_t)width)
        el_buf_puts(out, "  ");
}

static void report_checks_put_finding(const struct probe_report *r, const struct finding *f, unsigned others,
                                      struct el_buf *out)
{
    const struct check_row *row = &check_rows[f->check];
    bool judged = f->has_value && f->state != FINDING_UNCHECKED && f->state != FINDING_UNDECIDED;
    char value[CHECK_VALUE_MAX], limit[CHECK_LIMIT_MAX];
    el_buf_puts(out, "  ");
    el_paint(out, r->colour, report_checks_tone_of(f->state), 11, finding_state_name(f->state));
    el_paint(out, r->colour, TONE_PLAIN, 22, row->name);
    report_checks_put_cell(r, 16, judged ? check_value_text(row->unit, f->value, value) : "-", out);
    report_checks_put_cell(r, 20, judged ? check_limit_text(f->check, f->limit, limit) : "-", out);
    el_buf_printf(out, "%s", f->on[0] ? f->on : "this node");
    if (others)
        el_buf_printf(out, " and %u more", others);
    el_buf_printf(out, "%s%s\n", f->text[0] ? ": " : "", f->text);
    if (f->state == FINDING_WARN || f->state == FINDING_BAD)
        put_advice(r, f->check, out);
}

static void put_check(const struct probe_report *r, const struct findings *f, enum check c, struct el_buf *out)
{
    struct report_checks_row row = report_checks_collect(f, c);
    if (!row.n)
        return;
    if (r->all) {
        for (unsigned i = 0; i < f->n; i++)
            if (f->v[i].check == c)
                report_checks_put_finding(r, &f->v[i], 0, out);
    } else {
        unsigned alike = 0;
        for (unsigned i = 0; i < f->n; i++)
            alike += f->v[i].check == c && f->v[i].state == row.worst->state;
        report_checks_put_finding(r, row.worst, alike - 1, out);
    }
}

static void put_measured(const struct probe_report *r, const struct found *f, struct el_buf *out)
{
    for (unsigned m = METRIC_PAIR_COUNT; m < METRIC_COUNT; m++) {
        unsigned n = 0;
        char text[METRIC_TEXT_MAX];
        for (unsigned i = 0; i < f->metrics; i++) {
            if (f->metric[i].metric != (enum metric)m)
                continue;
            if (!n++) {
                el_buf_puts(out, "  ");
                el_paint(out, r->colour, TONE_PLAIN, 11, "-");
                el_paint(out, r->colour, TONE_PLAIN, 22, metric_info((enum metric)m)->name);
            }
            el_buf_printf(out, "%s%s", n > 1 ? ", " : "", metric_text((enum metric)m, f->metric[i].milli, text));
        }
        if (n)
            el_buf_puts(out, "\n");
    }
}

static void put_checks(const struct probe_report *r, unsigned node, struct el_buf *out)
{
    const struct findings *f = report_findings(r, node);
    unsigned skipped = 0;
    report_checks_put_titles(r, out);
    /* What wants attention stands last, where the eye is. */
    for (int s = FINDING_OK; s < FINDING_STATES; s++)
        for (unsigned c = 0; c < CHECKS; c++) {
            struct report_checks_row row = report_checks_collect(f, (enum check)c);
            if (!row.n || (int)row.worst->state != s)
                continue;
            if (s == FINDING_UNCHECKED && !r->all)
                skipped++;
            else
                put_check(r, f, (enum check)c, out);
        }
    put_measured(r, r->found[node], out);
    if (skipped)
        el_buf_printf(out, "  %u check%s not made: %s not apply here, or cannot be read (--all says why)\n", skipped,
                      skipped == 1 ? " was" : "s were", skipped == 1 ? "it does" : "they do");
}

void report_checks(const struct probe_report *r, struct el_buf *out)
{
    el_buf_puts(out, "\n");
    if (report_findings(r, 0))
        put_checks(r, 0, out);
}

void report_checks_each(const struct probe_report *r, struct el_buf *out)
{
    char name[PLAN_NAME_MAX];
    for (unsigned n = 0; n < plan_nodes(r->plan); n++) {
        if (!report_findings(r, n))
            continue;
        el_buf_printf(out, "\nall checks of ");
        el_paint(out, r->colour, TONE_STRONG, 0, report_name(r, n, name));
        el_buf_puts(out, "\n");
        put_checks(r, n, out);
    }
}

/* --- many nodes --------------------------------------------------------------------------------------------------- */

/* Of nodes that are not bad by their own checks: why those are bad has been said. */
static bool speaks(const struct probe_report *r, unsigned node, enum check c, const struct finding **f)
{
    struct report_checks_row row = report_checks_collect(report_findings(r, node), c);
    *f = row.worst;
    return row.worst && (row.worst->state == FINDING_WARN || row.worst->state == FINDING_UNDECIDED);
}

bool report_warns(const struct probe_report *r)
{
    const struct finding *f;
    for (unsigned c = 0; c < CHECKS; c++)
        for (unsigned n = 0; n < plan_nodes(r->plan); n++)
            if (speaks(r, n, (enum check)c, &f))
                return true;
    return false;
}

bool report_undecided(const struct probe_report *r)
{
    for (unsigned n = 0; n < plan_nodes(r->plan); n++) {
        const struct findings *f = report_findings(r, n);
        for (unsigned i = 0; f && i < f->n; i++)
            if (f->v[i].state == FINDING_UNDECIDED)
                return true;
    }
    return false;
}

static void put_warning(const struct probe_report *r, enum check c, struct el_buf *out)
{
    const struct finding *f, *first = NULL;
    struct el_ranges runs = {0};
    struct el_buf nodes = EL_BUF_INIT(out->mem, 0), text = EL_BUF_INIT(out->mem, 0);
    unsigned n = 0, only = 0;
    char name[PLAN_NAME_MAX];
    for (unsigned i = 0; i < plan_nodes(r->plan); i++) {
        if (!speaks(r, i, c, &f))
            continue;
        el_ranges_add(&runs, &nodes, i);
        first = first ? first : f;
        only = i;
        n++;
    }
    el_ranges_end(&runs, &nodes);
    if (n) {
        finding_text(first, &text);
        el_buf_puts(out, "  ");
        el_paint(out, r->colour, report_checks_tone_of(first->state), 11, finding_state_name(first->state));
        if (n == 1)
            el_buf_printf(out, "%s: %s\n", report_name(r, only, name), el_buf_cstr(&text));
        else
            el_buf_printf(out, "%u nodes (%s): %s\n", n, el_buf_cstr(&nodes), el_buf_cstr(&text));
        if (first->state == FINDING_WARN)
            put_advice(r, c, out);
    }
    el_buf_free(&nodes);
    el_buf_free(&text);
}

void report_warnings(const struct probe_report *r, struct el_buf *out)
{
    if (!report_warns(r))
        return;
    el_buf_puts(out, "\n");
    el_paint(out, r->colour, TONE_STRONG, 0, "not in order, but no reason to leave a node out");
    el_buf_puts(out, "\n");
    for (unsigned c = 0; c < CHECKS; c++)
        put_warning(r, (enum check)c, out);
}
