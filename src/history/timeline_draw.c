#include "history/timeline_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/utf8.h"

/* --- colours and signs --- */

void picture_paint(struct picture *p, const char *sgr)
{
    if (!p->look->colour || strcmp(p->sgr, sgr) == 0)
        return;
    if (*p->sgr)
        el_buf_puts(p->out, "\033[0m");
    if (*sgr)
        el_buf_printf(p->out, "\033[%sm", sgr);
    p->sgr = sgr;
}

void picture_newline(struct picture *p)
{
    picture_paint(p, "");
    el_buf_puts(p->out, "\n");
}

const char *picture_sign(const struct picture *p, const char *utf8, const char *ascii)
{
    return p->look->utf8 ? utf8 : ascii;
}

/* Columns of a text: characters of UTF-8, taken as one wide each. */
size_t picture_width(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* At most `columns` of it; "…" or "..." tells of a cut.  Without UTF-8 what is not ASCII becomes '?'.  Returns columns
 * used. */
size_t picture_clip(struct picture *p, const char *s, size_t columns)
{
    size_t all = picture_width(s), dots = p->look->utf8 ? 1 : 3, used = 0;
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
        el_buf_puts(p->out, picture_sign(p, "…", "..."));
        used += dots;
    }
    return used;
}

void picture_pad(struct picture *p, size_t from, size_t to)
{
    if (from < to)
        el_buf_printf(p->out, "%*s", (int)(to - from), "");
}

/* --- cells --- */

unsigned picture_column(const struct picture *p, int64_t at)
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

char picture_mark(size_t i)
{
    return i < LIST_MAX ? (char)('1' + i) : 'x';
}

/* --- rows --- */

/* The ranks that the node was told last; 0: none. */
static struct range timeline_draw_ranks_of(const struct timeline_node *n)
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
        add_range(r, timeline_draw_ranks_of(n));
        return;
    }
    if (p->rows == GROUPS_MAX) {
        p->nodes_left_out++;
        return;
    }
    p->row[p->rows] = (struct row){.node = node, .marked = marked, .cell = tried};
    add_range(&p->row[p->rows++], timeline_draw_ranks_of(n));
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
                p->row[k].cell[picture_column(p, m->at + p->t->node[m->node].offset)].mark = picture_mark(i - 1);
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

static void timeline_draw_put_cell(struct picture *p, const struct cell *c, bool last_odd)
{
    if (c->mark) {
        char text[2] = {c->mark, 0};
        picture_paint(p, "1;97;41");
        el_buf_puts(p->out, text);
        return;
    }
    switch ((enum timeline_state)c->state) {
    case TIMELINE_AWAY:
        picture_paint(p, "");
        el_buf_puts(p->out, " ");
        return;
    case TIMELINE_WAITING:
        picture_paint(p, "2");
        el_buf_puts(p->out, picture_sign(p, "·", "."));
        return;
    case TIMELINE_STARTING:
    case TIMELINE_STOPPING:
        picture_paint(p, "33");
        el_buf_puts(p->out, picture_sign(p, "▒", "-"));
        return;
    case TIMELINE_RUNNING: break;
    case TIMELINE_STATES: assert(0);
    }
    if (c->edge && p->look->utf8 && c->odd != last_odd)
        picture_paint(p, c->odd ? "36;42" : "32;46");
    else
        picture_paint(p, running_colour(c->odd));
    el_buf_puts(p->out, c->edge ? picture_sign(p, "▌", "|") : picture_sign(p, "█", c->odd ? "#" : "="));
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

static void timeline_draw_put_row(struct picture *p, const struct row *r)
{
    char name[LABEL_MAX + 1], ranks[64];
    name_row(p, r, name);
    name_ranks(r, ranks);
    bool odd = false, told = !ranks[0];
    picture_paint(p, r->marked ? "1" : "");
    picture_pad(p, picture_clip(p, name, p->label), p->label);
    picture_paint(p, "");
    el_buf_puts(p->out, " ");
    for (unsigned c = 0; c < p->bar; c++) {
        const struct cell *cell = &r->cell[c];
        size_t room = told ? 0 : block_len(p, r->cell, c);
        timeline_draw_put_cell(p, cell, odd);
        odd = cell->odd;
        /* The last block that is long enough would do too, but the eye begins at the left. */
        if (room >= strlen(ranks) + 2) {
            picture_paint(p, odd ? "30;42" : "30;46");
            el_buf_puts(p->out, ranks);
            c += (unsigned)strlen(ranks);
            told = true;
        }
    }
    picture_newline(p);
}

/* Nodes by their ranks, those that never had any behind; p->order. */
static void timeline_draw_put_in_order(struct picture *p)
{
    const struct timeline *t = p->t;
    for (size_t i = 0; i < t->nodes; i++) {
        struct range x = timeline_draw_ranks_of(&t->node[i]);
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
        size_t n = picture_width(t->node[i].host) + (t->nodes > 1 ? 4 : 0);
        longest = n > longest ? n : longest;
    }
    return (unsigned)(longest < LABEL_MAX ? longest : LABEL_MAX);
}

/* The names get what the longest of them needs, the bars the rest.  How many nodes share a row, and so how long a name
 * is, depends on the bars: laid out twice, that is settled well enough. */
static bool timeline_draw_lay_out(struct picture *p, unsigned columns)
{
    const struct timeline *t = p->t;
    size_t most = t->nodes < GROUPS_MAX ? t->nodes : GROUPS_MAX;
    p->row = el_alloc(t->mem, (most + 1) * sizeof *p->row);
    p->cells = el_alloc(t->mem, (most + 1) * columns * sizeof *p->cells);
    p->order = el_alloc(t->mem, (t->nodes + 1) * sizeof *p->order);
    if (!p->row || !p->cells || !p->order)
        return false;
    timeline_draw_put_in_order(p);
    p->label = label_of(t);
    for (int pass = 0; pass < 2; pass++) {
        size_t longest = 0;
        char name[LABEL_MAX + 1];
        p->label = p->label > columns / 3 ? columns / 3 : p->label;
        p->bar = columns - p->label - 1;
        make_rows(p);
        for (size_t i = 0; pass == 0 && i < p->rows; i++) {
            name_row(p, &p->row[i], name);
            longest = picture_width(name) > longest ? picture_width(name) : longest;
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
    if (timeline_draw_lay_out(&p, columns)) {
        picture_rounds(&p);
        for (size_t i = 0; i < p.rows; i++)
            timeline_draw_put_row(&p, &p.row[i]);
        if (p.nodes_left_out) {
            picture_paint(&p, "2");
            el_buf_printf(out, "and %zu more node%s; --json tells all", p.nodes_left_out,
                          p.nodes_left_out == 1 ? "" : "s");
            picture_newline(&p);
        }
        picture_scale(&p);
        picture_legend(&p);
        picture_list(&p);
    }
    el_free(t->mem, p.order);
    el_free(t->mem, p.row);
    el_free(t->mem, p.cells);
}
