#include "history/timeline_private.h"

#include <stdio.h>
#include <string.h>

#include "util/array.h"

/* A round from its first worker on any node to its last. */
struct timeline_scale_span {
    uint64_t round;
    int64_t from, to;
};

static void put_span(struct picture *p, unsigned a, unsigned b, uint64_t round)
{
    char text[48];
    unsigned len = b - a; /* columns, at least 1 */
    picture_paint(p, round & 1 ? "32" : "36");
    if (len == 1) {
        el_buf_puts(p->out, picture_sign(p, "│", "|"));
        return;
    }
    snprintf(text, sizeof text, " round %llu ", (unsigned long long)round);
    if (strlen(text) + 3 > len)
        snprintf(text, sizeof text, "%llu", (unsigned long long)round);
    if (strlen(text) + 2 > len)
        text[0] = 0;
    unsigned used = 1 + (unsigned)strlen(text);
    el_buf_puts(p->out, picture_sign(p, "╭", "|"));
    if (used + 2 <= len && text[0] == ' ') {
        el_buf_puts(p->out, picture_sign(p, "─", "-"));
        used++;
    }
    el_buf_puts(p->out, text);
    for (; used + 1 < len; used++)
        el_buf_puts(p->out, picture_sign(p, "─", "-"));
    el_buf_puts(p->out, picture_sign(p, "╮", "|"));
}

static bool busy(enum timeline_state s)
{
    static const bool is[] = {
#define X(name, word, busy) busy,
        TIMELINE_STATE_LIST(X)
#undef X
    };
    return is[s];
}

/* The first round that begins behind `after`, over all nodes. */
static bool next_span(const struct picture *p, uint64_t after, struct timeline_scale_span *s)
{
    bool any = false;
    for (size_t i = 0; i < p->t->nodes; i++) {
        const struct timeline_node *n = &p->t->node[i];
        for (size_t k = 0; k < n->n; k++)
            if (busy(n->change[k].state) && n->change[k].round > after && (!any || n->change[k].round < s->round)) {
                s->round = n->change[k].round;
                any = true;
            }
    }
    s->from = p->to;
    s->to = p->from;
    for (size_t i = 0; any && i < p->t->nodes; i++) {
        const struct timeline_node *n = &p->t->node[i];
        for (size_t k = 0; k < n->n; k++) {
            if (!busy(n->change[k].state) || n->change[k].round != s->round)
                continue;
            int64_t a = n->change[k].at + n->offset, b = k + 1 < n->n ? n->change[k + 1].at + n->offset : p->to;
            s->from = a < s->from ? a : s->from;
            s->to = b > s->to ? b : s->to;
        }
    }
    return any;
}

/* More rounds than columns are not to be looked for one by one. */
void picture_rounds(struct picture *p)
{
    struct timeline_scale_span s = {0};
    unsigned at = 0;
    picture_pad(p, 0, p->label + 1);
    while (at < p->bar && next_span(p, s.round, &s)) {
        unsigned a = picture_column(p, s.from), b = picture_column(p, s.to) + (s.to >= p->to);
        a = a < at ? at : a;
        b = b <= a ? a + 1 : b;
        if (a >= p->bar)
            break;
        picture_paint(p, "");
        picture_pad(p, at, a);
        put_span(p, a, b < p->bar ? b : p->bar, s.round);
        at = b;
    }
    picture_newline(p);
}

/* --- the scale --- */

static int64_t tick_of(int64_t span, unsigned bar)
{
    static const int64_t ticks[] = {1000,        2000,        5000,        10000,        20000,        50000,
                                    100000,      200000,      500000,      1000000,      2000000,      5000000,
                                    10000000,    15000000,    30000000,    60000000,     120000000,    300000000,
                                    600000000,   900000000,   1800000000,  3600000000,   7200000000,   10800000000,
                                    21600000000, 43200000000, 86400000000, 172800000000, 604800000000, 2419200000000};
    for (size_t i = 0; i < COUNT_OF(ticks); i++)
        if ((double)ticks[i] / (double)span * bar >= TICK_LEAST)
            return ticks[i];
    return ticks[COUNT_OF(ticks) - 1];
}

static void tick_text(int64_t at, char to[24])
{
    unsigned long long ms = (unsigned long long)(at / 1000), s = ms / 1000;
    if (ms % 1000)
        snprintf(to, 24, s ? "+%llu.%llus" : "+%llums", s ? s : ms, ms % 1000 / 100);
    else if (s % 60)
        snprintf(to, 24, s > 60 ? "+%llum%02llus" : "+%llus", s > 60 ? s / 60 : s, s % 60);
    else if (s % 3600)
        snprintf(to, 24, s > 3600 ? "+%lluh%02llum" : "+%llum", s > 3600 ? s / 3600 : s / 60, s / 60 % 60);
    else if (s % 86400)
        snprintf(to, 24, s > 86400 ? "+%llud%02lluh" : "+%lluh", s > 86400 ? s / 86400 : s / 3600, s / 3600 % 24);
    else
        snprintf(to, 24, "+%llud", s / 86400);
}

void picture_scale(struct picture *p)
{
    char text[24];
    int64_t span = p->to - p->from, tick = tick_of(span, p->bar);
    unsigned at = 0;
    picture_paint(p, "2");
    picture_pad(p, 0, p->label + 1);
    for (int64_t when = 0; when <= span; when += tick) {
        unsigned c = picture_column(p, p->from + when);
        if (when)
            tick_text(when, text);
        else
            timeline_clock(p->from, p->look->zone_sec, false, text);
        if (c < at + (at > 0) || c + 1 + strlen(text) > p->bar)
            continue;
        picture_pad(p, at, c);
        el_buf_puts(p->out, picture_sign(p, "╵", "|"));
        el_buf_puts(p->out, text);
        at = c + 1 + (unsigned)strlen(text);
    }
    picture_newline(p);
}

/* --- below --- */

/* One entry of the legend, in the next line if it does not fit this one. */
static void timeline_scale_put_share(struct picture *p, unsigned *column, const char *sgr, const char *what,
                                     const char *word, uint64_t part, uint64_t all)
{
    char text[64], share[16];
    unsigned tenths = all ? (unsigned)(1000.0 * (double)part / (double)all) : 0;
    if (part && !tenths)
        snprintf(share, sizeof share, "<0.1%%");
    else
        snprintf(share, sizeof share, "%u.%u%%", tenths / 10, tenths % 10);
    snprintf(text, sizeof text, " %s %s", word, share);
    unsigned width = 1 + (unsigned)strlen(text), begin = p->label + 1;
    if (*column > begin && *column + 3 + width > begin + p->bar) {
        picture_newline(p);
        *column = 0;
    }
    picture_pad(p, 0, *column ? 3 : begin);
    *column += (*column ? 3 : begin) + width;
    picture_paint(p, sgr);
    el_buf_puts(p->out, what);
    picture_paint(p, "");
    el_buf_puts(p->out, text);
}

void picture_legend(struct picture *p)
{
    uint64_t spent[TIMELINE_STATES], all = 0;
    unsigned column = 0;
    timeline_spent(p->t, spent);
    for (int s = TIMELINE_WAITING; s < TIMELINE_STATES; s++)
        all += spent[s];
    uint64_t change = spent[TIMELINE_STARTING] + spent[TIMELINE_STOPPING];
    timeline_scale_put_share(p, &column, "32", picture_sign(p, "█", "#"), "running", spent[TIMELINE_RUNNING], all);
    if (change)
        timeline_scale_put_share(p, &column, "33", picture_sign(p, "▒", "-"), "starting or stopping", change, all);
    if (spent[TIMELINE_WAITING])
        timeline_scale_put_share(p, &column, "2", picture_sign(p, "·", "."), "between rounds", spent[TIMELINE_WAITING],
                                 all);
    picture_newline(p);
}

void picture_list(struct picture *p)
{
    const struct timeline *t = p->t;
    bool days = p->to - p->from >= 86400000000;
    unsigned columns = p->label + 1 + p->bar;
    for (size_t i = 0; i < t->marks && i < LIST_MAX; i++) {
        const struct timeline_mark *m = &t->mark[i];
        char clock[24], number[4] = {picture_mark(i), 0};
        picture_paint(p, "1;97;41");
        el_buf_puts(p->out, number);
        picture_paint(p, "2");
        size_t used = 1 + 2 + strlen(timeline_clock(m->at + t->node[m->node].offset, p->look->zone_sec, days, clock));
        el_buf_printf(p->out, " %s ", clock);
        picture_paint(p, m->kind == TIMELINE_FAILURE ? "" : "33");
        picture_clip(p, m->text, columns > used ? columns - used : 0);
        picture_newline(p);
    }
    size_t more = (t->marks > LIST_MAX ? t->marks - LIST_MAX : 0) + t->marks_left_out;
    if (more) {
        picture_paint(p, "2");
        el_buf_printf(p->out, "  and %zu more, %s; --json tells all", more, more == 1 ? "marked x" : "all marked x");
        picture_newline(p);
    }
}
