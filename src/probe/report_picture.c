/* How fast pairs were, as a picture in which a slow row and column are seen at a glance. */
#include <stdio.h>
#include <string.h>

#include "probe/report_private.h"

enum { BLOCKS = 8, PER_LINE = 64, LINES_MAX = 8, CELL_MAX = 8 };

static const char *const blocks[BLOCKS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

enum metric report_metric(const struct probe_report *r)
{
    static const enum metric preferred[] = {METRIC_BW64M, METRIC_BW1G, METRIC_TCP_BW64M};
    for (size_t i = 0; i < sizeof preferred / sizeof preferred[0]; i++)
        for (unsigned n = 0; n < plan_nodes(r->plan); n++)
            for (unsigned k = 0; k < plan_rail_count(r->plan); k++)
                if (verdict_value(r->plan, n, k, preferred[i]))
                    return preferred[i];
    return METRIC_COUNT;
}

uint32_t report_node_value(const struct probe_report *r, unsigned node, enum metric m, unsigned *rail)
{
    uint32_t worst = 0;
    *rail = 0;
    for (unsigned k = 0; k < plan_rail_count(r->plan); k++) {
        uint32_t v = verdict_value(r->plan, node, k, m);
        if (v && (!worst || metric_worse(m, v, worst))) {
            worst = v;
            *rail = k;
        }
    }
    return worst;
}

uint32_t report_pair_value(const struct probe_report *r, unsigned pair, enum metric m)
{
    uint32_t worst = 0;
    for (unsigned k = 0; k < plan_rail_count(r->plan); k++) {
        uint32_t v = verdict_pair_value(r->plan, pair, k, m);
        worst = v && (!worst || metric_worse(m, v, worst)) ? v : worst;
    }
    return worst;
}

/* Bandwidth only: more is better. */
static enum el_tone report_picture_tone_of(uint32_t v, uint32_t best)
{
    return (uint64_t)v * 10 >= (uint64_t)best * 9 ? TONE_GOOD : (uint64_t)v * 2 >= best ? TONE_WAIT : TONE_BAD;
}

static unsigned report_picture_level_of(uint32_t v, uint32_t best, unsigned levels)
{
    uint64_t level = best ? ((uint64_t)v * levels + best - 1) / best : 0;
    return level == 0 ? 0 : level > levels ? levels - 1 : (unsigned)level - 1;
}

/* --- few nodes: a matrix ------------------------------------------------------------------------------------------ */

struct report_picture_cell {
    uint32_t value;
    bool met, failed;
};

struct matrix {
    unsigned n;
    uint32_t best;
    struct report_picture_cell cell[REPORT_LISTED_MAX][REPORT_LISTED_MAX];
};

static void report_picture_fill(const struct probe_report *r, enum metric m, struct matrix *x)
{
    memset(x, 0, sizeof *x);
    x->n = plan_nodes(r->plan);
    for (unsigned i = 0; i < verdict_pairs(r->plan); i++) {
        struct pair_record rec;
        verdict_pair(r->plan, i, &rec);
        struct report_picture_cell *c = &x->cell[rec.a][rec.b];
        uint32_t v = m == METRIC_COUNT ? 0 : report_pair_value(r, i, m);
        c->met |= rec.ok != 0;
        c->failed |= rec.failed != 0;
        c->value = v && (!c->value || v < c->value) ? v : c->value;
        x->best = v > x->best ? v : x->best;
        x->cell[rec.b][rec.a] = *c;
    }
}

/* Three digits. */
static void put_figure(char *to, size_t room, uint32_t milli)
{
    unsigned whole = milli / 1000;
    if (whole >= 100)
        snprintf(to, room, "%u", whole);
    else if (whole >= 10)
        snprintf(to, room, "%u.%u", whole, milli % 1000 / 100);
    else
        snprintf(to, room, "%u.%02u", whole, milli % 1000 / 10);
}

/* A figure; below it, where there is room, a block. */
static void report_picture_put_cell(const struct probe_report *r, const struct matrix *x,
                                    const struct report_picture_cell *c, int width, struct el_buf *out)
{
    char text[CELL_MAX + 8] = ".";
    enum el_tone tone = TONE_FAINT;
    if (c->failed) {
        snprintf(text, sizeof text, "%s", width > 3 ? "FAIL" : "X");
        tone = TONE_BAD;
    } else if (c->value) {
        tone = report_picture_tone_of(c->value, x->best);
        if (width <= 3)
            snprintf(text, sizeof text, "%s",
                     r->utf8 ? blocks[report_picture_level_of(c->value, x->best, BLOCKS)] : "");
        else
            put_figure(text, sizeof text, x->best < METRIC_SMALL ? c->value * 1000 : c->value);
        if (!*text)
            snprintf(text, sizeof text, "%u", report_picture_level_of(c->value, x->best, 10));
    } else if (c->met) {
        snprintf(text, sizeof text, "ok");
        tone = TONE_GOOD;
    }
    el_paint(out, r->colour, tone, -width, text);
}

static void put_matrix(const struct probe_report *r, enum metric m, struct el_buf *out)
{
    static struct matrix x;
    report_picture_fill(r, m, &x);
    unsigned columns = r->columns ? r->columns : 100;
    int width = 8 + 6 * x.n <= columns ? 6 : 3;
    el_buf_puts(out, "\n");
    if (m == METRIC_COUNT)
        el_buf_puts(out, "  pairs");
    else
        el_buf_printf(out, "  %s of each pair%s%s", metric_info(m)->words,
                      plan_rail_count(r->plan) > 1 ? ", its slowest rail" : "",
                      width <= 3              ? ""
                      : x.best < METRIC_SMALL ? ", MB/s"
                                              : ", GB/s");
    el_buf_puts(out, "\n  ");
    el_paint(out, r->colour, TONE_FAINT, 6, "");
    for (unsigned i = 0; i < x.n; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", i);
        el_paint(out, r->colour, TONE_FAINT, -width, number);
    }
    el_buf_puts(out, "\n");
    for (unsigned i = 0; i < x.n; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", i);
        el_buf_puts(out, "  ");
        el_paint(out, r->colour, TONE_FAINT, -6, number);
        for (unsigned k = 0; k < x.n; k++)
            if (i == k)
                el_paint(out, r->colour, TONE_FAINT, -width, r->utf8 ? "·" : "-");
            else
                report_picture_put_cell(r, &x, &x.cell[i][k], width, out);
        el_buf_puts(out, "\n");
    }
}

/* --- many: a row of blocks, or how they are spread ---------------------------------------------------------------- */

static uint32_t best_of_all(const struct probe_report *r, enum metric m)
{
    uint32_t best = 0;
    unsigned rail;
    for (unsigned n = 0; n < plan_nodes(r->plan); n++) {
        uint32_t v = report_node_value(r, n, m, &rail);
        best = v > best ? v : best;
    }
    return best;
}

static void put_block(const struct probe_report *r, unsigned n, enum metric m, uint32_t best, struct el_buf *out)
{
    unsigned rail;
    uint32_t v = report_node_value(r, n, m, &rail);
    char digit[2] = {0};
    enum node_state s = verdict_state(r->plan, n);
    if (s == NODE_BAD || s == NODE_BAD_LOCAL) {
        el_paint(out, r->colour, TONE_BAD, 0, "X");
    } else if (!v) {
        el_paint(out, r->colour, TONE_FAINT, 0, s == NODE_GOOD ? "." : "?");
    } else if (r->utf8) {
        el_paint(out, r->colour, report_picture_tone_of(v, best), 0, blocks[report_picture_level_of(v, best, BLOCKS)]);
    } else {
        digit[0] = (char)('0' + report_picture_level_of(v, best, 10));
        el_paint(out, r->colour, report_picture_tone_of(v, best), 0, digit);
    }
}

static void report_picture_put_row(const struct probe_report *r, enum metric m, struct el_buf *out)
{
    unsigned nodes = plan_nodes(r->plan);
    uint32_t best = best_of_all(r, m);
    char text[METRIC_TEXT_MAX];
    el_buf_printf(out, "\n  best %s of each node, %s%s%s\n", metric_info(m)->words,
                  r->utf8 ? "full: " : "9: ", metric_text(m, best, text), "; X: bad, ?: not known");
    for (unsigned from = 0; from < nodes; from += PER_LINE) {
        char number[16];
        snprintf(number, sizeof number, "%u", from);
        el_buf_puts(out, "  ");
        el_paint(out, r->colour, TONE_FAINT, -6, number);
        el_buf_puts(out, "  ");
        for (unsigned n = from; n < nodes && n < from + PER_LINE; n++)
            put_block(r, n, m, best, out);
        el_buf_puts(out, "\n");
    }
}

/* In tenths of the best. */
static void put_spread(const struct probe_report *r, enum metric m, struct el_buf *out)
{
    unsigned count[10] = {0}, most = 1, rail;
    uint32_t best = best_of_all(r, m);
    char text[METRIC_TEXT_MAX];
    for (unsigned n = 0; n < plan_nodes(r->plan); n++) {
        uint32_t v = report_node_value(r, n, m, &rail);
        if (v)
            count[report_picture_level_of(v, best, 10)]++;
    }
    for (unsigned i = 0; i < 10; i++)
        most = count[i] > most ? count[i] : most;
    el_buf_printf(out, "\n  best %s of each node, in parts of the best (%s)\n", metric_info(m)->words,
                  metric_text(m, best, text));
    for (unsigned i = 10; i-- > 0;) {
        if (!count[i])
            continue;
        el_buf_printf(out, "  %3u-%-3u %%  %6u  ", 10 * i, 10 * i + 10, count[i]);
        for (unsigned k = 0; k < 1 + 39 * count[i] / most; k++)
            el_buf_puts(out, r->utf8 ? "█" : "#");
        el_buf_puts(out, "\n");
    }
}

void report_picture(const struct probe_report *r, struct el_buf *out)
{
    enum metric m = report_metric(r);
    if (!verdict_pairs(r->plan))
        return;
    if (plan_nodes(r->plan) <= REPORT_LISTED_MAX)
        put_matrix(r, m, out);
    else if (m == METRIC_COUNT)
        return;
    else if (plan_nodes(r->plan) <= PER_LINE * LINES_MAX)
        report_picture_put_row(r, m, out);
    else
        put_spread(r, m, out);
}
