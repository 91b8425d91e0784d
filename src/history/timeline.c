#include "history/timeline.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

void timeline_init(struct timeline *t, struct el_mem *mem)
{
    *t = (struct timeline){.mem = mem};
}

void timeline_free(struct timeline *t)
{
    for (size_t i = 0; i < t->nodes; i++)
        el_free(t->mem, t->node[i].change);
    el_free(t->mem, t->node);
    el_free(t->mem, t->mark);
    timeline_init(t, t->mem);
}

/* Room for one more element of `size` bytes behind *v; false: no memory. */
static bool timeline_grow(struct timeline *t, void *v, size_t n, size_t *room, size_t size)
{
    void **at = v;
    if (n < *room)
        return true;
    size_t more = *room ? 2 * *room : 8;
    void *p = el_realloc(t->mem, *at, more * size);
    if (!p) {
        t->full = true;
        return false;
    }
    *at = p;
    *room = more;
    return true;
}

int timeline_node(struct timeline *t, const char *host, uint64_t key)
{
    char name[TIMELINE_HOST_MAX + 1];
    unsigned twin = 0;
    text_copy(name, sizeof name, host, strlen(host));
    for (size_t i = 0; i < t->nodes; i++) {
        if (strcmp(t->node[i].host, name) != 0)
            continue;
        if (t->node[i].key == key)
            return (int)i;
        twin++;
    }
    void *v = t->node;
    if (t->nodes == TIMELINE_NODES_MAX || !timeline_grow(t, &v, t->nodes, &t->nodes_room, sizeof *t->node)) {
        t->full = true;
        return -1;
    }
    t->node = v;
    struct timeline_node *n = &t->node[t->nodes];
    *n = (struct timeline_node){.key = key, .twin = twin};
    memcpy(n->host, name, sizeof name);
    return (int)t->nodes++;
}

void timeline_change(struct timeline *t, unsigned node, const struct timeline_change *c)
{
    assert(node < t->nodes && c->state < TIMELINE_STATES);
    struct timeline_node *n = &t->node[node];
    void *v = n->change;
    if (!timeline_grow(t, &v, n->n, &n->room, sizeof *n->change))
        return;
    n->change = v;
    size_t at = n->n++;
    for (; at > 0 && n->change[at - 1].at > c->at; at--) /* nearly always the last: files are in order */
        n->change[at] = n->change[at - 1];
    n->change[at] = *c;
}

void timeline_mark(struct timeline *t, const struct timeline_mark *m)
{
    assert(m->node < t->nodes);
    if (!t->mark && !(t->mark = el_alloc(t->mem, TIMELINE_MARKS_MAX * sizeof *t->mark))) {
        t->full = true;
        return;
    }
    if (t->marks == TIMELINE_MARKS_MAX) { /* how it began and how it ended matter most */
        memmove(&t->mark[TIMELINE_MARKS_MAX / 2], &t->mark[TIMELINE_MARKS_MAX / 2 + 1],
                (TIMELINE_MARKS_MAX - TIMELINE_MARKS_MAX / 2 - 1) * sizeof *t->mark);
        t->marks--;
        t->marks_left_out++;
    }
    t->mark[t->marks++] = *m;
}

/* --- clocks --- */

/* The next change from *k on by which the node begins a round; false: none. */
static bool next_round(const struct timeline_node *n, size_t *k)
{
    while (*k < n->n && (n->change[*k].state != TIMELINE_STARTING || !n->change[*k].round))
        (*k)++;
    return *k < n->n;
}

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* How far the clock of n is behind that of `to`: of all shared rounds that with the smallest difference, since a node
 * can be late for a round. */
static bool offset_of(const struct timeline_node *n, const struct timeline_node *to, int64_t *offset)
{
    bool found = false;
    for (size_t i = 0, j = 0; next_round(n, &i) && next_round(to, &j);) {
        const struct timeline_change *a = &n->change[i], *b = &to->change[j];
        if (a->round == b->round && (!found || magnitude(b->at - a->at) < magnitude(*offset))) {
            *offset = b->at - a->at;
            found = true;
        }
        i += a->round <= b->round;
        j += b->round <= a->round;
    }
    return found;
}

int64_t timeline_align(struct timeline *t)
{
    const struct timeline_node *first = NULL;
    int64_t farthest = 0;
    for (size_t i = 0; i < t->nodes && !first; i++) {
        size_t k = 0;
        first = next_round(&t->node[i], &k) ? &t->node[i] : NULL;
    }
    for (size_t i = 0; first && i < t->nodes; i++) {
        struct timeline_node *n = &t->node[i];
        if (n != first && offset_of(n, first, &n->offset) && magnitude(n->offset) > farthest)
            farthest = magnitude(n->offset);
    }
    return farthest;
}

void timeline_sort(struct timeline *t)
{
    for (size_t i = 1; i < t->marks; i++) {
        struct timeline_mark m = t->mark[i];
        int64_t at = m.at + t->node[m.node].offset;
        size_t k = i;
        for (; k > 0 && t->mark[k - 1].at + t->node[t->mark[k - 1].node].offset > at; k--)
            t->mark[k] = t->mark[k - 1];
        t->mark[k] = m;
    }
}

bool timeline_span(const struct timeline *t, int64_t *from, int64_t *to)
{
    bool any = false;
    for (size_t i = 0; i < t->nodes; i++) {
        const struct timeline_node *n = &t->node[i];
        if (!n->n)
            continue;
        int64_t a = n->change[0].at + n->offset, b = n->change[n->n - 1].at + n->offset;
        *from = !any || a < *from ? a : *from;
        *to = !any || b > *to ? b : *to;
        any = true;
    }
    for (size_t i = 0; any && i < t->marks; i++) {
        int64_t at = t->mark[i].at + t->node[t->mark[i].node].offset;
        *from = at < *from ? at : *from;
        *to = at > *to ? at : *to;
    }
    return any;
}

void timeline_spent(const struct timeline *t, uint64_t spent[TIMELINE_STATES])
{
    int64_t from, to;
    memset(spent, 0, TIMELINE_STATES * sizeof spent[0]);
    if (!timeline_span(t, &from, &to))
        return;
    for (size_t i = 0; i < t->nodes; i++) {
        const struct timeline_node *n = &t->node[i];
        for (size_t k = 0; k < n->n; k++) {
            int64_t next = k + 1 < n->n ? n->change[k + 1].at + n->offset : to;
            spent[n->change[k].state] += (uint64_t)(next - (n->change[k].at + n->offset));
        }
    }
}

/* --- words --- */

const char *timeline_state_word(enum timeline_state s)
{
    static const char *const words[] = {
#define X(name, word, busy) word,
        TIMELINE_STATE_LIST(X)
#undef X
    };
    assert(s < TIMELINE_STATES);
    return words[s];
}

/* Month and day of days since 1970; years begin in March, so that the odd day comes last. */
static void timeline_date_of(int64_t days, unsigned *month, unsigned *day)
{
    uint64_t n = (uint64_t)(days + 719468), of_era = n % 146097;
    uint64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * years + years / 4 - years / 100), m = (5 * of_year + 2) / 153;
    *day = (unsigned)(of_year - (153 * m + 2) / 5 + 1);
    *month = (unsigned)(m < 10 ? m + 3 : m - 9);
}

const char *timeline_clock(int64_t wall_usec, int64_t zone_sec, bool date, char to[24])
{
    int64_t s = wall_usec / 1000000 + zone_sec;
    s = s < 0 ? 0 : s;
    unsigned day_sec = (unsigned)(s % 86400), month, day;
    timeline_date_of(s / 86400, &month, &day);
    int n = date ? snprintf(to, 24, "%02u-%02u ", month % 13, day % 32) : 0;
    snprintf(to + n, 24 - (size_t)n, "%02u:%02u:%02u", day_sec / 3600, day_sec / 60 % 60, day_sec % 60);
    return to;
}

/* --- for programs --- */

static void put_change(const struct timeline_node *n, const struct timeline_change *c, struct el_buf *out)
{
    el_buf_printf(out, "{\"wall_usec\":%lld,\"state\":\"%s\"", (long long)(c->at + n->offset),
                  timeline_state_word(c->state));
    if (c->round)
        el_buf_printf(out, ",\"round\":%llu", (unsigned long long)c->round);
    if (c->workers)
        el_buf_printf(out, ",\"first_rank\":%u,\"workers\":%u", c->rank, c->workers);
    el_buf_puts(out, "}");
}

void timeline_json(const struct timeline *t, struct el_buf *out)
{
    el_buf_puts(out, "\"nodes\":[");
    for (size_t i = 0; i < t->nodes; i++) {
        const struct timeline_node *n = &t->node[i];
        el_buf_puts(out, i ? ",{\"host\":" : "{\"host\":");
        text_json(out, n->host, strlen(n->host));
        el_buf_printf(out, ",\"clock_offset_usec\":%lld,\"states\":[", (long long)n->offset);
        for (size_t k = 0; k < n->n; k++) {
            el_buf_puts(out, k ? "," : "");
            put_change(n, &n->change[k], out);
        }
        el_buf_puts(out, "]}");
    }
    el_buf_puts(out, "],\"marks\":[");
    for (size_t i = 0; i < t->marks; i++) {
        const struct timeline_mark *m = &t->mark[i];
        el_buf_printf(out, "%s{\"wall_usec\":%lld,\"node\":%u,\"kind\":\"%s\",\"round\":%llu,\"text\":", i ? "," : "",
                      (long long)(m->at + t->node[m->node].offset), m->node,
                      m->kind == TIMELINE_LOST ? "node lost" : "failure", (unsigned long long)m->round);
        text_json(out, m->text, strlen(m->text));
        el_buf_puts(out, "}");
    }
    el_buf_printf(out, "],\"marks_left_out\":%zu", t->marks_left_out);
}
