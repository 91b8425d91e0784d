/* What the nodes of a round have declared and what they hold of it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"
#include "coord/ckpt_commit_private.h"
#include "util/scan.h"

enum { LINEAGES_MAX = 4 }; /* of one step that are looked at */

static void forget_steps(struct ckpt_commit *s, struct ckpt_commit_node *n)
{
    for (unsigned i = 0; i < n->steps; i++)
        el_free(&s->mem, n->step[i].has);
    n->steps = 0;
}

static void know(struct ckpt_commit *s, struct ckpt_commit_node *n, bool known)
{
    n->known = known;
    s->declared += known && !s->seat_known[n->seat];
    s->declared -= !known && s->seat_known[n->seat];
    s->seat_known[n->seat] = known;
}

static void forget_list(struct ckpt_commit *s, struct ckpt_commit_node *n)
{
    forget_steps(s, n);
    ckpt_commit_forget_live(s, n);
    el_free(&s->mem, n->cls);
    n->cls = NULL;
    n->parts = n->heard = n->room = 0;
    n->known = false;
}

void ckpt_commit_forget_node(struct ckpt_commit *s, struct ckpt_commit_node *n)
{
    forget_list(s, n);
    n->list = 0;
    n->files = n->left = 0;
}

void ckpt_commit_forget_held(struct ckpt_commit *s)
{
    for (unsigned i = 0; i < s->used; i++) {
        struct ckpt_commit_node *n = &s->node[i];
        forget_list(s, n);
        n->here = n->quiet = false;
        n->list = n->ask = 0;
        n->ask_at = CKPT_COMMIT_ASK_NONE;
        n->least = n->failed = CKPT_COMMIT_NO_STEP;
    }
    ckpt_commit_forget_wishes(s);
    memset(s->seat_known, 0, s->conf.room);
    for (uint32_t i = 0; i < s->classes; i++) {
        el_free(&s->mem, s->class[i].part);
        el_free(&s->mem, s->class[i].shard);
    }
    s->classes = 0;
    s->declared = 0;
    s->full = false;
    for (unsigned i = 0; i < CKPT_COMMIT_BUCKETS; i++)
        s->bucket[i] = CKPT_COMMIT_NONE;
}

/* --- lists --- */

static uint32_t hash(const char *part, const char *shard)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *part; part++)
        h = (h ^ (unsigned char)*part) * 0x100000001b3u;
    h = (h ^ 0xff) * 0x100000001b3u;
    for (; *shard; shard++)
        h = (h ^ (unsigned char)*shard) * 0x100000001b3u;
    return (uint32_t)(h >> 32) % CKPT_COMMIT_BUCKETS;
}

static uint32_t ckpt_commit_inventory_class_of(struct ckpt_commit *s, const struct msg_ckpt_part *p)
{
    uint32_t *bucket = &s->bucket[hash(p->part, p->shard)];
    for (uint32_t i = *bucket; i != CKPT_COMMIT_NONE; i = s->class[i].next)
        if (strcmp(s->class[i].part, p->part) == 0 && strcmp(s->class[i].shard, p->shard) == 0) {
            s->class[i].own = s->class[i].own && p->own;
            return i;
        }
    if (s->classes == CKPT_COMMIT_FILES_MAX)
        return CKPT_COMMIT_NONE;
    if (s->classes == s->classes_room) {
        uint32_t room = s->classes_room ? 2 * s->classes_room : 64;
        struct ckpt_commit_class *more = el_realloc(&s->mem, s->class, room * sizeof *more);
        if (!more)
            return CKPT_COMMIT_NONE;
        s->class = more;
        s->classes_room = room;
    }
    struct ckpt_commit_class *c = &s->class[s->classes];
    *c = (struct ckpt_commit_class){.part = el_strndup(&s->mem, p->part, strlen(p->part)),
                                    .shard = el_strndup(&s->mem, p->shard, strlen(p->shard)),
                                    .own = p->own,
                                    .next = *bucket};
    if (!c->part || !c->shard) {
        el_free(&s->mem, c->part);
        el_free(&s->mem, c->shard);
        return CKPT_COMMIT_NONE;
    }
    return *bucket = s->classes++;
}

void ckpt_commit_take_part(struct ckpt_commit *s, struct ckpt_commit_node *n, const struct msg_ckpt_part *p)
{
    if (p->list < n->list || (p->list == n->list && n->known))
        return;
    if (p->list > n->list) {
        if (n->known)
            know(s, n, false);
        forget_list(s, n);
        n->list = p->list;
    }
    if (p->index != n->heard) /* said again on a new connection; or one is missing, and all are said again */
        return;
    if (n->heard == n->room) {
        unsigned room = n->room ? 2 * n->room : 16;
        uint32_t *more = el_realloc(&s->mem, n->cls, room * sizeof *more);
        s->full |= !more;
        if (!more)
            return;
        n->cls = more;
        n->room = room;
    }
    uint32_t c = ckpt_commit_inventory_class_of(s, p);
    s->full |= c == CKPT_COMMIT_NONE;
    if (c != CKPT_COMMIT_NONE)
        n->cls[n->heard++] = c;
}

/* "12@9f3a:0-3,5 11@9f3a:0-7" */
static void take_step(struct ckpt_commit *s, struct ckpt_commit_node *n, const char **at)
{
    uint64_t step, from, to;
    struct ckpt_commit_step *st = &n->step[n->steps];
    st->lineage = 0;
    if (!scan_u64(at, &step) || step > MSG_STEP_MAX || (**at == '@' && (++*at, !scan_hex(at, &st->lineage))) ||
        **at != ':')
        return;
    st->step = (int64_t)step;
    st->has = el_alloc(&s->mem, (n->parts + 7) / 8 + 1);
    if (!st->has)
        return;
    n->steps++;
    do {
        ++*at;
        if (!scan_span(at, &from, &to))
            return;
        for (uint64_t i = from; i <= to && i < n->parts; i++)
            st->has[i / 8] |= (uint8_t)(1u << i % 8);
    } while (**at == ',');
}

void ckpt_commit_take_steps(struct ckpt_commit *s, struct ckpt_commit_node *n, const struct msg_ckpt_state *h)
{
    if (h->list < n->list)
        return;
    if (h->list > n->list && h->parts == 0) { /* it declares nothing that would be written */
        if (n->known)
            know(s, n, false);
        forget_list(s, n);
        n->list = h->list;
    }
    bool whole = h->parts >= 0 && h->list == n->list && (int64_t)n->heard == h->parts;
    if (whole && !n->known) {
        n->parts = n->heard;
        know(s, n, true);
    }
    forget_steps(s, n);
    snprintf(n->layout, sizeof n->layout, "%s", h->layout);
    const char *at = h->steps;
    for (scan_blanks(&at); n->known && *at && n->steps < CKPT_COMMIT_STEPS_MAX; scan_blanks(&at)) {
        unsigned before = n->steps;
        take_step(s, n, &at);
        if (n->steps == before)
            break;
    }
}

/* --- cover --- */

const struct ckpt_commit_step *ckpt_commit_find(const struct ckpt_commit_node *n, int64_t step)
{
    for (unsigned i = 0; i < n->steps; i++)
        if (n->step[i].step == step)
            return &n->step[i];
    return NULL;
}

bool ckpt_commit_holds(const struct ckpt_commit_node *n, const struct ckpt_commit_step *st, unsigned part)
{
    return st && part < n->parts && (st->has[part / 8] >> part % 8 & 1);
}

const struct ckpt_commit_step *ckpt_commit_find_of(const struct ckpt_commit_node *n, int64_t step, uint64_t lineage)
{
    const struct ckpt_commit_step *st = ckpt_commit_find(n, step);
    return st && st->lineage == lineage ? st : NULL;
}

/* Some worker of it has not come so far yet; or it has still to hear what the others have gone back to. */
static bool may_come(const struct ckpt_commit_node *n, int64_t step, uint64_t lineage)
{
    bool other = n->steps > 0;
    for (unsigned i = 0; i < n->steps && other; i++)
        other = n->step[i].lineage != lineage;
    return !n->quiet && (n->least < step || other);
}

/* With a directory of its own each node needs all that its workers have declared.  A rank's own pieces of what it
 * shares are waited for, and done without. */
static enum ckpt_commit_cover cover_of_node(const struct ckpt_commit *s, unsigned i, int64_t step, uint64_t lineage,
                                            char *text, size_t size)
{
    const struct ckpt_commit_node *n = &s->node[i];
    const struct ckpt_commit_step *st = ckpt_commit_find_of(n, step, lineage);
    bool may = may_come(n, step, lineage);
    for (unsigned p = 0; p < n->parts; p++) {
        if (ckpt_commit_holds(n, st, p) || (s->class[n->cls[p]].own && !may))
            continue;
        snprintf(text, size, "%.64s does not hold part \"%.60s\" of it (shard \"%.60s\")", ckpt_commit_name(s, i),
                 s->class[n->cls[p]].part, s->class[n->cls[p]].shard);
        return may ? CKPT_COMMIT_WAITS : CKPT_COMMIT_HOPELESS;
    }
    return CKPT_COMMIT_COVERED;
}

static enum ckpt_commit_cover cover_local(const struct ckpt_commit *s, int64_t step, uint64_t lineage, char *text,
                                          size_t size)
{
    enum ckpt_commit_cover found = CKPT_COMMIT_COVERED;
    unsigned there = 0;
    for (unsigned i = 0; i < s->used; i++) {
        const struct ckpt_commit_node *n = &s->node[i];
        if (!n->here || !n->known)
            continue;
        there++;
        enum ckpt_commit_cover one =
            n->failed == step ? CKPT_COMMIT_HOPELESS : cover_of_node(s, i, step, lineage, text, size);
        if (n->failed == step && !*s->why) /* else that says why */
            snprintf(text, size, "%.64s could not write it", ckpt_commit_name(s, i));
        if (one == CKPT_COMMIT_HOPELESS)
            return one;
        found = one == CKPT_COMMIT_WAITS ? one : found;
    }
    if (there == s->size)
        return found;
    snprintf(text, size, "%u of %u nodes are gone, and with --ckpt-store=local each has to write its own",
             s->size - there, s->size);
    return CKPT_COMMIT_HOPELESS;
}

/* Marks what is held, and what may yet come to be. */
static void mark_held(struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    s->mark++;
    for (unsigned i = 0; i < s->used; i++) {
        struct ckpt_commit_node *n = &s->node[i];
        if (!n->here || !n->known || n->failed == step)
            continue;
        const struct ckpt_commit_step *st = ckpt_commit_find_of(n, step, lineage);
        bool may = may_come(n, step, lineage);
        for (unsigned p = 0; p < n->parts; p++) {
            struct ckpt_commit_class *c = &s->class[n->cls[p]];
            bool holds = ckpt_commit_holds(n, st, p);
            if (!holds && !may)
                continue;
            c->held = holds || (c->mark == s->mark && c->held);
            c->may = may ? i : c->may;
            c->mark = s->mark;
        }
    }
}

/* Who is lost will not say it any more, and whose workers have ended neither. */
static enum ckpt_commit_cover undeclared(const struct ckpt_commit *s, unsigned live, char *text, size_t size)
{
    unsigned known = 0, never = 0, missing = s->size - s->declared;
    for (unsigned i = 0; i < s->used; i++) {
        known += s->node[i].here && s->node[i].known;
        never += s->node[i].here && !s->node[i].known && s->node[i].quiet;
    }
    unsigned to_come = live > known ? live - known : 0;
    snprintf(text, size, "of %u of %u nodes it is not known what their workers hold", missing, s->size);
    return never || missing > to_come ? CKPT_COMMIT_HOPELESS : CKPT_COMMIT_WAITS;
}

static bool is_all(const struct ckpt_commit_node *n)
{
    return !*n->layout || strcmp(n->layout, CKPT_LAYOUT_ALL) == 0;
}

const char *ckpt_commit_layout(const struct ckpt_commit *s)
{
    const char *layout = "";
    for (unsigned i = 0; i < s->used; i++) {
        const struct ckpt_commit_node *n = &s->node[i];
        if (n->here && (!*layout || (strcmp(layout, CKPT_LAYOUT_ALL) == 0 && !is_all(n))))
            layout = n->layout;
    }
    return layout;
}

/* Of nodes that have parts of their own. */
static bool layouts_differ(const struct ckpt_commit *s, char *text, size_t size)
{
    unsigned first = CKPT_COMMIT_NONE;
    for (unsigned i = 0; i < s->used; i++) {
        const struct ckpt_commit_node *n = &s->node[i];
        if (!n->here || !n->known || is_all(n))
            continue;
        first = first == CKPT_COMMIT_NONE ? i : first;
        if (strcmp(n->layout, s->node[first].layout) == 0)
            continue;
        snprintf(text, size, "%.64s has declared layout %.60s, %.64s layout %.60s", ckpt_commit_name(s, first),
                 s->node[first].layout, ckpt_commit_name(s, i), n->layout);
        return true;
    }
    return false;
}

static enum ckpt_commit_cover cover_shared(struct ckpt_commit *s, int64_t step, uint64_t lineage, char *text,
                                           size_t size)
{
    enum ckpt_commit_cover found = CKPT_COMMIT_COVERED;
    mark_held(s, step, lineage);
    for (uint32_t i = 0; i < s->classes; i++) {
        const struct ckpt_commit_class *c = &s->class[i];
        if (c->mark == s->mark ? c->held : c->own)
            continue;
        if (c->mark != s->mark) {
            snprintf(text, size, "no node that is left holds part \"%.60s\" of it (shard \"%.60s\")", c->part,
                     c->shard);
            return CKPT_COMMIT_HOPELESS;
        }
        if (found == CKPT_COMMIT_COVERED) /* the first one is named */
            snprintf(text, size, "no node holds part \"%.60s\" of it yet (shard \"%.60s\", of %.64s)", c->part,
                     c->shard, ckpt_commit_name(s, c->may));
        found = CKPT_COMMIT_WAITS;
    }
    return found;
}

static enum ckpt_commit_cover cover_of(struct ckpt_commit *s, int64_t step, uint64_t lineage, char *text, size_t size)
{
    return s->conf.store == CKPT_COMMIT_LOCAL ? cover_local(s, step, lineage, text, size)
                                              : cover_shared(s, step, lineage, text, size);
}

/* Whether it can be said at all; CKPT_COMMIT_COVERED: it can. */
static enum ckpt_commit_cover ckpt_commit_inventory_known(const struct ckpt_commit *s, unsigned live, char *text,
                                                          size_t size)
{
    *text = 0;
    if (s->full) {
        snprintf(text, size, "there is no memory for what the nodes declare");
        return CKPT_COMMIT_HOPELESS;
    }
    if (layouts_differ(s, text, size))
        return CKPT_COMMIT_HOPELESS;
    return !s->size || s->declared < s->size ? undeclared(s, live, text, size) : CKPT_COMMIT_COVERED;
}

enum ckpt_commit_cover ckpt_commit_cover_of(struct ckpt_commit *s, int64_t step, uint64_t lineage, unsigned live,
                                            char *text, size_t size)
{
    enum ckpt_commit_cover can = ckpt_commit_inventory_known(s, live, text, size);
    s->covered = lineage;
    return can == CKPT_COMMIT_COVERED ? cover_of(s, step, lineage, text, size) : can;
}

/* Of each history of which somebody holds the step: while nodes go back one after the other there are two. */
enum ckpt_commit_cover ckpt_commit_cover(struct ckpt_commit *s, int64_t step, unsigned live, char *text, size_t size)
{
    enum ckpt_commit_cover best = CKPT_COMMIT_HOPELESS, can = ckpt_commit_inventory_known(s, live, text, size);
    uint64_t tried[LINEAGES_MAX];
    unsigned n = 0;
    if (can != CKPT_COMMIT_COVERED)
        return can;
    for (unsigned i = 0; i < s->used && n < LINEAGES_MAX && best != CKPT_COMMIT_COVERED; i++) {
        const struct ckpt_commit_step *st =
            s->node[i].here && s->node[i].known ? ckpt_commit_find(&s->node[i], step) : NULL;
        bool again = !st;
        for (unsigned k = 0; k < n && !again; k++)
            again = tried[k] == st->lineage;
        if (again)
            continue;
        s->covered = tried[n++] = st->lineage;
        enum ckpt_commit_cover one = cover_of(s, step, st->lineage, text, size);
        best = one < best ? one : best;
    }
    return n ? best : cover_of(s, step, 0, text, size);
}

int64_t ckpt_commit_held_beyond(const struct ckpt_commit *s, int64_t beyond)
{
    int64_t best = CKPT_COMMIT_NO_STEP;
    for (unsigned i = 0; i < s->used; i++)
        for (unsigned k = 0; s->node[i].here && k < s->node[i].steps; k++)
            best = s->node[i].step[k].step > best ? s->node[i].step[k].step : best;
    return best > beyond ? best : CKPT_COMMIT_NO_STEP;
}

int64_t ckpt_commit_newest(struct ckpt_commit *s, int64_t beyond, unsigned live)
{
    char text[MSG_TEXT_MAX + 1];
    for (int64_t below = INT64_MAX;;) {
        int64_t best = CKPT_COMMIT_NO_STEP;
        for (unsigned i = 0; i < s->used; i++)
            for (unsigned k = 0; s->node[i].here && k < s->node[i].steps; k++) {
                int64_t step = s->node[i].step[k].step;
                best = step < below && step > best ? step : best;
            }
        if (best <= beyond)
            return CKPT_COMMIT_NO_STEP;
        if (ckpt_commit_cover(s, best, live, text, sizeof text) == CKPT_COMMIT_COVERED)
            return best;
        below = best;
    }
}
