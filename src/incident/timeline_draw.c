#include "incident/timeline.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "incident/text.h"
#include "util/auto.h"
#include "util/utf8.h"

enum {
    ROWS_DEFAULT = 16,
    GROUPS_MAX = 512, /* different rows that are looked at; what is beyond is counted */
    LABEL_MAX = 26,   /* columns of a node's name */
    LIST_MAX = 9,     /* marks that are numbered and told one by one */
    RANGES_MAX = 3,   /* of ranks, in a row of several nodes */
    TICK_LEAST = 11,  /* columns from tick to tick */
};

/* One column of a row. */
struct cell {
    uint8_t state;
    uint8_t odd;  /* the round's number is: neighbours differ in colour */
    uint8_t edge; /* a round begins within it */
    char mark;    /* '1' … '9', 'x', 0 */
};

struct row {
    size_t node, more; /* the first one, and how many look the same */
    bool marked;
    /* Its ranks in the round in which they were last told, end behind the last. */
    struct range {
        unsigned rank, end;
    } range[RANGES_MAX];
    unsigned ranges;
    bool ranges_full; /* there are more */
    struct cell *cell;
};

struct place {
    uint64_t key;
    size_t node;
};

struct picture {
    const struct timeline *t;
    const struct timeline_look *look;
    int64_t from, to;
    unsigned bar, label; /* columns */
    struct place *order; /* of all nodes */
    struct row *row;
    size_t rows, nodes_left_out;
    struct cell *cells; /* GROUPS_MAX + 1 rows of them: the last one is where a row is tried */
    struct el_buf *out;
    const char *sgr; /* what is switched on now */
};

/* --- colours and signs --- */

static void paint(struct picture *p, const char *sgr)
{
    if (!p->look->colour || strcmp(p->sgr, sgr) == 0)
        return;
    if (*p->sgr)
        el_buf_puts(p->out, "\033[0m");
    if (*sgr)
        el_buf_printf(p->out, "\033[%sm", sgr);
    p->sgr = sgr;
}

static void newline(struct picture *p)
{
    paint(p, "");
    el_buf_puts(p->out, "\n");
}

static const char *sign(const struct picture *p, const char *utf8, const char *ascii)
{
    return p->look->utf8 ? utf8 : ascii;
}

/* Columns of a text: characters of UTF-8, taken as one wide each. */
static size_t width_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* At most `columns` of it; "…" or "..." tells of a cut.  Without UTF-8 what is not ASCII becomes '?'.  Returns columns
 * used. */
static size_t put_clipped(struct picture *p, const char *s, size_t columns)
{
    size_t all = width_of(s), dots = p->look->utf8 ? 1 : 3, used = 0;
    size_t take = all <= columns ? all : columns > dots ? columns - dots : 0;
    for (const char *at = s; used < take; used++) {
        size_t len = el_utf8(at, strlen(at));
        if (len > 1 && !p->look->utf8)
            el_buf_puts(p->out, "?");
        else
            el_buf_put(p->out, at, len ? len : 1);
        at += len ? len : 1;
    }
    if (all > columns && columns > dots) {
        el_buf_puts(p->out, sign(p, "…", "..."));
        used += dots;
    }
    return used;
}

static void pad(struct picture *p, size_t from, size_t to)
{
    if (from < to)
        el_buf_printf(p->out, "%*s", (int)(to - from), "");
}

/* --- cells --- */

static unsigned column_of(const struct picture *p, int64_t at)
{
    double part = (double)(at - p->from) / (double)(p->to - p->from);
    unsigned c = part <= 0 ? 0 : (unsigned)(part * p->bar);
    return c < p->bar ? c : p->bar - 1;
}

/* The moment at which a column begins. */
static int64_t begin_of(const struct picture *p, unsigned column)
{
    return p->from + (int64_t)((double)(p->to - p->from) * column / p->bar);
}

/* What fills most of [a, b), from change *k on. */
static struct cell cell_between(const struct timeline_node *n, size_t *k, int64_t a, int64_t b)
{
    int64_t time[TIMELINE_STATES] = {0};
    struct cell c = {.state = TIMELINE_AWAY};
    uint64_t round = *k ? n->change[*k - 1].round : 0;
    size_t i = *k;
    for (int64_t at = a; at < b;) {
        enum timeline_state s = i ? n->change[i - 1].state : TIMELINE_AWAY;
        int64_t next = i < n->n ? n->change[i].at + n->offset : b;
        int64_t until = next < b ? next : b;
        time[s] += until > at ? until - at : 0;
        at = until > at ? until : at;
        if (i >= n->n || next >= b)
            break;
        c.edge |= i > 0 && n->change[i].round && round && n->change[i].round != round;
        round = n->change[i].round ? n->change[i].round : round;
        i++;
    }
    for (int s = 1; s < TIMELINE_STATES; s++)
        if (time[s] > time[c.state])
            c.state = (uint8_t)s;
    c.odd = round & 1;
    *k = i;
    return c;
}

static void fill_cells(const struct picture *p, const struct timeline_node *n, struct cell *cell)
{
    size_t k = 0;
    memset(cell, 0, p->bar * sizeof *cell);
    for (unsigned c = 0; c < p->bar; c++)
        cell[c] = cell_between(n, &k, begin_of(p, c), c + 1 == p->bar ? p->to : begin_of(p, c + 1));
}

static char mark_sign(size_t i)
{
    return i < LIST_MAX ? (char)('1' + i) : 'x';
}

/* --- rows --- */

/* The ranks that the node was told last; 0: none. */
static struct range ranks_of(const struct timeline_node *n)
{
    for (size_t i = n->n; i > 0; i--) {
        const struct timeline_change *c = &n->change[i - 1];
        if (c->workers)
            return (struct range){c->rank, c->rank + c->workers};
    }
    return (struct range){0, 0};
}

static void add_range(struct row *r, struct range x)
{
    struct range *last = r->ranges ? &r->range[r->ranges - 1] : NULL;
    if (x.rank == x.end)
        return;
    if (last && last->end == x.rank)
        last->end = x.end;
    else if (r->ranges < RANGES_MAX)
        r->range[r->ranges++] = x;
    else
        r->ranges_full = true;
}

/* " 0-7,16-23,32 ", "" if there are none. */
static void name_ranks(const struct row *r, char to[64])
{
    size_t n = 0;
    to[0] = 0;
    for (unsigned i = 0; i < r->ranges; i++) {
        unsigned a = r->range[i].rank, b = r->range[i].end - 1;
        n += (size_t)snprintf(to + n, 64 - n, b > a ? "%s%u-%u" : "%s%u", i ? "," : " ", a, b);
    }
    if (n)
        snprintf(to + n, 64 - n, r->ranges_full ? ",+ " : " ");
}

static bool same_cells(const struct picture *p, const struct cell *a, const struct cell *b)
{
    return memcmp(a, b, p->bar * sizeof *a) == 0;
}

static void add_row(struct picture *p, size_t node, bool marked)
{
    const struct timeline_node *n = &p->t->node[node];
    struct cell *tried = p->cells + p->rows * p->bar;
    fill_cells(p, n, tried);
    for (size_t i = 0; !marked && i < p->rows; i++) {
        struct row *r = &p->row[i];
        if (r->marked || !same_cells(p, r->cell, tried))
            continue;
        r->more++;
        add_range(r, ranks_of(n));
        return;
    }
    if (p->rows == GROUPS_MAX) {
        p->nodes_left_out++;
        return;
    }
    p->row[p->rows] = (struct row){.node = node, .marked = marked, .cell = tried};
    add_range(&p->row[p->rows++], ranks_of(n));
}

/* Rows with marks stay; of the others the last ones go until all fit. */
static void fit_rows(struct picture *p)
{
    size_t most = p->look->rows ? p->look->rows : ROWS_DEFAULT;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = p->rows; p->rows > most && i > 0; i--) {
            if (pass == 0 && p->row[i - 1].marked)
                continue;
            p->nodes_left_out += 1 + p->row[i - 1].more;
            memmove(&p->row[i - 1], &p->row[i], (p->rows - i) * sizeof *p->row);
            p->rows--;
        }
}

static void add_marks(struct picture *p)
{
    for (size_t i = p->t->marks; i > 0; i--) { /* the first of a column is seen */
        const struct timeline_mark *m = &p->t->mark[i - 1];
        for (size_t k = 0; k < p->rows; k++)
            if (p->row[k].node == m->node)
                p->row[k].cell[column_of(p, m->at + p->t->node[m->node].offset)].mark = mark_sign(i - 1);
    }
}

static bool has_mark(const struct timeline *t, size_t node)
{
    for (size_t i = 0; i < t->marks; i++)
        if (t->mark[i].node == node)
            return true;
    return false;
}

static void name_row(const struct picture *p, const struct row *r, char to[LABEL_MAX + 1])
{
    const struct timeline_node *n = &p->t->node[r->node];
    char behind[24] = "", host[TIMELINE_HOST_MAX + 1];
    if (r->more)
        snprintf(behind, sizeof behind, " +%zu", r->more);
    else if (n->twin)
        snprintf(behind, sizeof behind, " #%u", n->twin + 1);
    size_t room = LABEL_MAX - strlen(behind);
    text_copy(host, room + 1, n->host, strlen(n->host));
    snprintf(to, LABEL_MAX + 1, "%.*s%s", (int)room, host, behind);
}

/* --- what is drawn --- */

static const char *running_colour(bool odd)
{
    return odd ? "32" : "36";
}

static void put_cell(struct picture *p, const struct cell *c, bool last_odd)
{
    if (c->mark) {
        char text[2] = {c->mark, 0};
        paint(p, "1;97;41");
        el_buf_puts(p->out, text);
        return;
    }
    switch ((enum timeline_state)c->state) {
    case TIMELINE_AWAY:
        paint(p, "");
        el_buf_puts(p->out, " ");
        return;
    case TIMELINE_WAITING:
        paint(p, "2");
        el_buf_puts(p->out, sign(p, "·", "."));
        return;
    case TIMELINE_STARTING:
    case TIMELINE_STOPPING:
        paint(p, "33");
        el_buf_puts(p->out, sign(p, "▒", "-"));
        return;
    case TIMELINE_RUNNING: break;
    case TIMELINE_STATES: assert(0);
    }
    if (c->edge && p->look->utf8 && c->odd != last_odd)
        paint(p, c->odd ? "36;42" : "32;46");
    else
        paint(p, running_colour(c->odd));
    el_buf_puts(p->out, c->edge ? sign(p, "▌", "|") : sign(p, "█", c->odd ? "#" : "="));
}

/* How many plain running cells of one block begin at c. */
static unsigned block_len(const struct picture *p, const struct cell *cell, unsigned c)
{
    unsigned n = 0;
    while (c + n < p->bar && cell[c + n].state == TIMELINE_RUNNING && !cell[c + n].mark && !cell[c + n].edge &&
           cell[c + n].odd == cell[c].odd)
        n++;
    return n;
}

static void put_row(struct picture *p, const struct row *r)
{
    char name[LABEL_MAX + 1], ranks[64];
    name_row(p, r, name);
    name_ranks(r, ranks);
    bool odd = false, told = !ranks[0];
    paint(p, r->marked ? "1" : "");
    pad(p, put_clipped(p, name, p->label), p->label);
    paint(p, "");
    el_buf_puts(p->out, " ");
    for (unsigned c = 0; c < p->bar; c++) {
        const struct cell *cell = &r->cell[c];
        size_t room = told ? 0 : block_len(p, r->cell, c);
        put_cell(p, cell, odd);
        odd = cell->odd;
        /* The last block that is long enough would do too, but the eye begins at the left. */
        if (room >= strlen(ranks) + 2) {
            paint(p, odd ? "30;42" : "30;46");
            el_buf_puts(p->out, ranks);
            c += (unsigned)strlen(ranks);
            told = true;
        }
    }
    newline(p);
}

/* A round from its first worker on any node to its last. */
struct span {
    uint64_t round;
    int64_t from, to;
};

static void put_span(struct picture *p, unsigned a, unsigned b, uint64_t round)
{
    char text[48];
    unsigned len = b - a; /* columns, at least 1 */
    paint(p, round & 1 ? "32" : "36");
    if (len == 1) {
        el_buf_puts(p->out, sign(p, "│", "|"));
        return;
    }
    snprintf(text, sizeof text, " round %llu ", (unsigned long long)round);
    if (strlen(text) + 3 > len)
        snprintf(text, sizeof text, "%llu", (unsigned long long)round);
    if (strlen(text) + 2 > len)
        text[0] = 0;
    unsigned used = 1 + (unsigned)strlen(text);
    el_buf_puts(p->out, sign(p, "╭", "|"));
    if (used + 2 <= len && text[0] == ' ') {
        el_buf_puts(p->out, sign(p, "─", "-"));
        used++;
    }
    el_buf_puts(p->out, text);
    for (; used + 1 < len; used++)
        el_buf_puts(p->out, sign(p, "─", "-"));
    el_buf_puts(p->out, sign(p, "╮", "|"));
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
static bool next_span(const struct picture *p, uint64_t after, struct span *s)
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
static void put_rounds(struct picture *p)
{
    struct span s = {0};
    unsigned at = 0;
    pad(p, 0, p->label + 1);
    while (at < p->bar && next_span(p, s.round, &s)) {
        unsigned a = column_of(p, s.from), b = column_of(p, s.to) + (s.to >= p->to);
        a = a < at ? at : a;
        b = b <= a ? a + 1 : b;
        if (a >= p->bar)
            break;
        paint(p, "");
        pad(p, at, a);
        put_span(p, a, b < p->bar ? b : p->bar, s.round);
        at = b;
    }
    newline(p);
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

static void put_scale(struct picture *p)
{
    char text[24];
    int64_t span = p->to - p->from, tick = tick_of(span, p->bar);
    unsigned at = 0;
    paint(p, "2");
    pad(p, 0, p->label + 1);
    for (int64_t when = 0; when <= span; when += tick) {
        unsigned c = column_of(p, p->from + when);
        if (when)
            tick_text(when, text);
        else
            timeline_clock(p->from, p->look->zone_sec, false, text);
        if (c < at + (at > 0) || c + 1 + strlen(text) > p->bar)
            continue;
        pad(p, at, c);
        el_buf_puts(p->out, sign(p, "╵", "|"));
        el_buf_puts(p->out, text);
        at = c + 1 + (unsigned)strlen(text);
    }
    newline(p);
}

/* --- below --- */

/* One entry of the legend, in the next line if it does not fit this one. */
static void put_share(struct picture *p, unsigned *column, const char *sgr, const char *what, const char *word,
                      uint64_t part, uint64_t all)
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
        newline(p);
        *column = 0;
    }
    pad(p, 0, *column ? 3 : begin);
    *column += (*column ? 3 : begin) + width;
    paint(p, sgr);
    el_buf_puts(p->out, what);
    paint(p, "");
    el_buf_puts(p->out, text);
}

static void put_legend(struct picture *p)
{
    uint64_t spent[TIMELINE_STATES], all = 0;
    unsigned column = 0;
    timeline_spent(p->t, spent);
    for (int s = TIMELINE_WAITING; s < TIMELINE_STATES; s++)
        all += spent[s];
    uint64_t change = spent[TIMELINE_STARTING] + spent[TIMELINE_STOPPING];
    put_share(p, &column, "32", sign(p, "█", "#"), "running", spent[TIMELINE_RUNNING], all);
    if (change)
        put_share(p, &column, "33", sign(p, "▒", "-"), "starting or stopping", change, all);
    if (spent[TIMELINE_WAITING])
        put_share(p, &column, "2", sign(p, "·", "."), "between rounds", spent[TIMELINE_WAITING], all);
    newline(p);
}

static void put_list(struct picture *p)
{
    const struct timeline *t = p->t;
    bool days = p->to - p->from >= 86400000000;
    unsigned columns = p->label + 1 + p->bar;
    for (size_t i = 0; i < t->marks && i < LIST_MAX; i++) {
        const struct timeline_mark *m = &t->mark[i];
        char clock[24], number[4] = {mark_sign(i), 0};
        paint(p, "1;97;41");
        el_buf_puts(p->out, number);
        paint(p, "2");
        size_t used = 1 + 2 + strlen(timeline_clock(m->at + t->node[m->node].offset, p->look->zone_sec, days, clock));
        el_buf_printf(p->out, " %s ", clock);
        paint(p, m->kind == TIMELINE_FAILURE ? "" : "33");
        put_clipped(p, m->text, columns > used ? columns - used : 0);
        newline(p);
    }
    size_t more = (t->marks > LIST_MAX ? t->marks - LIST_MAX : 0) + t->marks_left_out;
    if (more) {
        paint(p, "2");
        el_buf_printf(p->out, "  and %zu more, %s; --json tells all", more, more == 1 ? "marked x" : "all marked x");
        newline(p);
    }
}

/* Nodes by their ranks, those that never had any behind; p->order. */
static void put_in_order(struct picture *p)
{
    const struct timeline *t = p->t;
    for (size_t i = 0; i < t->nodes; i++) {
        struct range x = ranks_of(&t->node[i]);
        uint64_t key = x.end ? x.rank : UINT64_MAX;
        size_t at = i;
        for (; at > 0 && p->order[at - 1].key > key; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = (struct place){key, i};
    }
}

static void make_rows(struct picture *p)
{
    p->rows = p->nodes_left_out = 0;
    for (size_t i = 0; i < p->t->nodes; i++) {
        size_t node = p->order[i].node;
        if (p->t->node[node].n)
            add_row(p, node, has_mark(p->t, node));
    }
    fit_rows(p);
}

static unsigned label_of(const struct timeline *t)
{
    size_t longest = 4;
    for (size_t i = 0; i < t->nodes; i++) {
        size_t n = width_of(t->node[i].host) + (t->nodes > 1 ? 4 : 0);
        longest = n > longest ? n : longest;
    }
    return (unsigned)(longest < LABEL_MAX ? longest : LABEL_MAX);
}

/* The names get what the longest of them needs, the bars the rest.  How many nodes share a row, and so how long a name
 * is, depends on the bars: laid out twice, that is settled well enough. */
static bool lay_out(struct picture *p, unsigned columns)
{
    const struct timeline *t = p->t;
    size_t most = t->nodes < GROUPS_MAX ? t->nodes : GROUPS_MAX;
    p->row = el_alloc(t->mem, (most + 1) * sizeof *p->row);
    p->cells = el_alloc(t->mem, (most + 1) * columns * sizeof *p->cells);
    p->order = el_alloc(t->mem, (t->nodes + 1) * sizeof *p->order);
    if (!p->row || !p->cells || !p->order)
        return false;
    put_in_order(p);
    p->label = label_of(t);
    for (int pass = 0; pass < 2; pass++) {
        size_t longest = 0;
        char name[LABEL_MAX + 1];
        p->label = p->label > columns / 3 ? columns / 3 : p->label;
        p->bar = columns - p->label - 1;
        make_rows(p);
        for (size_t i = 0; pass == 0 && i < p->rows; i++) {
            name_row(p, &p->row[i], name);
            longest = width_of(name) > longest ? width_of(name) : longest;
        }
        if (pass == 0)
            p->label = (unsigned)longest;
    }
    add_marks(p);
    return true;
}

void timeline_draw(const struct timeline *t, const struct timeline_look *look, struct el_buf *out)
{
    struct picture p = {.t = t, .look = look, .out = out, .sgr = ""};
    unsigned columns = look->columns < TIMELINE_COLUMNS_MIN   ? TIMELINE_COLUMNS_MIN
                       : look->columns > TIMELINE_COLUMNS_MAX ? TIMELINE_COLUMNS_MAX
                                                              : look->columns;
    if (!timeline_span(t, &p.from, &p.to))
        return;
    p.to = p.to > p.from ? p.to : p.from + 1;
    if (lay_out(&p, columns)) {
        put_rounds(&p);
        for (size_t i = 0; i < p.rows; i++)
            put_row(&p, &p.row[i]);
        if (p.nodes_left_out) {
            paint(&p, "2");
            el_buf_printf(out, "and %zu more node%s; --json tells all", p.nodes_left_out,
                          p.nodes_left_out == 1 ? "" : "s");
            newline(&p);
        }
        put_scale(&p);
        put_legend(&p);
        put_list(&p);
    }
    el_free(t->mem, p.order);
    el_free(t->mem, p.row);
    el_free(t->mem, p.cells);
}
