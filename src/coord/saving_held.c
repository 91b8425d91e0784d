/* What the nodes of a round have declared and what they hold of it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"
#include "coord/saving_private.h"
#include "util/scan.h"

enum { LINEAGES_MAX = 4 }; /* of one step that are looked at */

static void forget_steps(struct saving *s, struct saving_node *n)
{
    for (unsigned i = 0; i < n->steps; i++)
        el_free(&s->mem, n->step[i].has);
    n->steps = 0;
}

static void know(struct saving *s, struct saving_node *n, bool known)
{
    n->known = known;
    s->declared += known && !s->seat_known[n->seat];
    s->declared -= !known && s->seat_known[n->seat];
    s->seat_known[n->seat] = known;
}

static void forget_list(struct saving *s, struct saving_node *n)
{
    forget_steps(s, n);
    saving_forget_live(s, n);
    el_free(&s->mem, n->cls);
    n->cls = NULL;
    n->parts = n->heard = n->room = 0;
    n->known = false;
}

void saving_forget_node(struct saving *s, struct saving_node *n)
{
    forget_list(s, n);
    n->list = 0;
    n->files = n->left = 0;
}

void saving_forget_held(struct saving *s)
{
    for (unsigned i = 0; i < s->used; i++) {
        struct saving_node *n = &s->node[i];
        forget_list(s, n);
        n->here = n->quiet = false;
        n->list = n->ask = 0;
        n->ask_at = SAVING_ASK_NONE;
        n->least = n->failed = SAVING_NO_STEP;
    }
    saving_forget_wishes(s);
    memset(s->seat_known, 0, s->conf.room);
    for (uint32_t i = 0; i < s->classes; i++) {
        el_free(&s->mem, s->class[i].part);
        el_free(&s->mem, s->class[i].shard);
    }
    s->classes = 0;
    s->declared = 0;
    s->full = false;
    for (unsigned i = 0; i < SAVING_BUCKETS; i++)
        s->bucket[i] = SAVING_NONE;
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
    return (uint32_t)(h >> 32) % SAVING_BUCKETS;
}

static uint32_t class_of(struct saving *s, const struct msg_ckpt_part *p)
{
    uint32_t *bucket = &s->bucket[hash(p->part, p->shard)];
    for (uint32_t i = *bucket; i != SAVING_NONE; i = s->class[i].next)
        if (strcmp(s->class[i].part, p->part) == 0 && strcmp(s->class[i].shard, p->shard) == 0) {
            s->class[i].own = s->class[i].own && p->own;
            return i;
        }
    if (s->classes == SAVING_FILES_MAX)
        return SAVING_NONE;
    if (s->classes == s->classes_room) {
        uint32_t room = s->classes_room ? 2 * s->classes_room : 64;
        struct saving_class *more = el_realloc(&s->mem, s->class, room * sizeof *more);
        if (!more)
            return SAVING_NONE;
        s->class = more;
        s->classes_room = room;
    }
    struct saving_class *c = &s->class[s->classes];
    *c = (struct saving_class){.part = el_strndup(&s->mem, p->part, strlen(p->part)),
                               .shard = el_strndup(&s->mem, p->shard, strlen(p->shard)),
                               .own = p->own,
                               .next = *bucket};
    if (!c->part || !c->shard) {
        el_free(&s->mem, c->part);
        el_free(&s->mem, c->shard);
        return SAVING_NONE;
    }
    return *bucket = s->classes++;
}

void saving_take_part(struct saving *s, struct saving_node *n, const struct msg_ckpt_part *p)
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
    uint32_t c = class_of(s, p);
    s->full |= c == SAVING_NONE;
    if (c != SAVING_NONE)
        n->cls[n->heard++] = c;
}

/* "12@9f3a:0-3,5 11@9f3a:0-7" */
static void take_step(struct saving *s, struct saving_node *n, const char **at)
{
    uint64_t step, from, to;
    struct saving_step *st = &n->step[n->steps];
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

void saving_take_steps(struct saving *s, struct saving_node *n, const struct msg_ckpt_held *h)
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
    for (scan_blanks(&at); n->known && *at && n->steps < SAVING_STEPS_MAX; scan_blanks(&at)) {
        unsigned before = n->steps;
        take_step(s, n, &at);
        if (n->steps == before)
            break;
    }
}

/* --- cover --- */

const struct saving_step *saving_find(const struct saving_node *n, int64_t step)
{
    for (unsigned i = 0; i < n->steps; i++)
        if (n->step[i].step == step)
            return &n->step[i];
    return NULL;
}

bool saving_holds(const struct saving_node *n, const struct saving_step *st, unsigned part)
{
    return st && part < n->parts && (st->has[part / 8] >> part % 8 & 1);
}

const struct saving_step *saving_find_of(const struct saving_node *n, int64_t step, uint64_t lineage)
{
    const struct saving_step *st = saving_find(n, step);
    return st && st->lineage == lineage ? st : NULL;
}

/* Some worker of it has not come so far yet; or it has still to hear what the others have gone back to. */
static bool may_come(const struct saving_node *n, int64_t step, uint64_t lineage)
{
    bool other = n->steps > 0;
    for (unsigned i = 0; i < n->steps && other; i++)
        other = n->step[i].lineage != lineage;
    return !n->quiet && (n->least < step || other);
}

/* With a directory of its own each node needs all that its workers have declared.  A rank's own pieces of what it
 * shares are waited for, and done without. */
static enum saving_cover cover_of_node(const struct saving *s, unsigned i, int64_t step, uint64_t lineage, char *text,
                                       size_t size)
{
    const struct saving_node *n = &s->node[i];
    const struct saving_step *st = saving_find_of(n, step, lineage);
    bool may = may_come(n, step, lineage);
    for (unsigned p = 0; p < n->parts; p++) {
        if (saving_holds(n, st, p) || (s->class[n->cls[p]].own && !may))
            continue;
        snprintf(text, size, "%.64s does not hold part \"%.60s\" of it (shard \"%.60s\")", saving_name(s, i),
                 s->class[n->cls[p]].part, s->class[n->cls[p]].shard);
        return may ? SAVING_WAITS : SAVING_HOPELESS;
    }
    return SAVING_COVERED;
}

static enum saving_cover cover_local(const struct saving *s, int64_t step, uint64_t lineage, char *text, size_t size)
{
    enum saving_cover found = SAVING_COVERED;
    unsigned there = 0;
    for (unsigned i = 0; i < s->used; i++) {
        const struct saving_node *n = &s->node[i];
        if (!n->here || !n->known)
            continue;
        there++;
        enum saving_cover one = n->failed == step ? SAVING_HOPELESS : cover_of_node(s, i, step, lineage, text, size);
        if (n->failed == step && !*s->why) /* else that says why */
            snprintf(text, size, "%.64s could not write it", saving_name(s, i));
        if (one == SAVING_HOPELESS)
            return one;
        found = one == SAVING_WAITS ? one : found;
    }
    if (there == s->size)
        return found;
    snprintf(text, size, "%u of %u nodes are gone, and with --ckpt-store=local each has to write its own",
             s->size - there, s->size);
    return SAVING_HOPELESS;
}

/* Marks what is held, and what may yet come to be. */
static void mark_held(struct saving *s, int64_t step, uint64_t lineage)
{
    s->mark++;
    for (unsigned i = 0; i < s->used; i++) {
        struct saving_node *n = &s->node[i];
        if (!n->here || !n->known || n->failed == step)
            continue;
        const struct saving_step *st = saving_find_of(n, step, lineage);
        bool may = may_come(n, step, lineage);
        for (unsigned p = 0; p < n->parts; p++) {
            struct saving_class *c = &s->class[n->cls[p]];
            bool holds = saving_holds(n, st, p);
            if (!holds && !may)
                continue;
            c->held = holds || (c->mark == s->mark && c->held);
            c->may = may ? i : c->may;
            c->mark = s->mark;
        }
    }
}

/* Who is lost will not say it any more, and whose workers have ended neither. */
static enum saving_cover undeclared(const struct saving *s, unsigned live, char *text, size_t size)
{
    unsigned known = 0, never = 0, missing = s->size - s->declared;
    for (unsigned i = 0; i < s->used; i++) {
        known += s->node[i].here && s->node[i].known;
        never += s->node[i].here && !s->node[i].known && s->node[i].quiet;
    }
    unsigned to_come = live > known ? live - known : 0;
    snprintf(text, size, "of %u of %u nodes it is not known what their workers hold", missing, s->size);
    return never || missing > to_come ? SAVING_HOPELESS : SAVING_WAITS;
}

static bool is_all(const struct saving_node *n)
{
    return !*n->layout || strcmp(n->layout, CKPT_LAYOUT_ALL) == 0;
}

const char *saving_layout(const struct saving *s)
{
    const char *layout = "";
    for (unsigned i = 0; i < s->used; i++) {
        const struct saving_node *n = &s->node[i];
        if (n->here && (!*layout || (strcmp(layout, CKPT_LAYOUT_ALL) == 0 && !is_all(n))))
            layout = n->layout;
    }
    return layout;
}

/* Of nodes that have parts of their own. */
static bool layouts_differ(const struct saving *s, char *text, size_t size)
{
    unsigned first = SAVING_NONE;
    for (unsigned i = 0; i < s->used; i++) {
        const struct saving_node *n = &s->node[i];
        if (!n->here || !n->known || is_all(n))
            continue;
        first = first == SAVING_NONE ? i : first;
        if (strcmp(n->layout, s->node[first].layout) == 0)
            continue;
        snprintf(text, size, "%.64s has declared layout %.60s, %.64s layout %.60s", saving_name(s, first),
                 s->node[first].layout, saving_name(s, i), n->layout);
        return true;
    }
    return false;
}

static enum saving_cover cover_shared(struct saving *s, int64_t step, uint64_t lineage, char *text, size_t size)
{
    enum saving_cover found = SAVING_COVERED;
    mark_held(s, step, lineage);
    for (uint32_t i = 0; i < s->classes; i++) {
        const struct saving_class *c = &s->class[i];
        if (c->mark == s->mark ? c->held : c->own)
            continue;
        if (c->mark != s->mark) {
            snprintf(text, size, "no node that is left holds part \"%.60s\" of it (shard \"%.60s\")", c->part,
                     c->shard);
            return SAVING_HOPELESS;
        }
        if (found == SAVING_COVERED) /* the first one is named */
            snprintf(text, size, "no node holds part \"%.60s\" of it yet (shard \"%.60s\", of %.64s)", c->part,
                     c->shard, saving_name(s, c->may));
        found = SAVING_WAITS;
    }
    return found;
}

static enum saving_cover cover_of(struct saving *s, int64_t step, uint64_t lineage, char *text, size_t size)
{
    return s->conf.store == SAVING_LOCAL ? cover_local(s, step, lineage, text, size)
                                         : cover_shared(s, step, lineage, text, size);
}

/* Whether it can be said at all; SAVING_COVERED: it can. */
static enum saving_cover known(const struct saving *s, unsigned live, char *text, size_t size)
{
    *text = 0;
    if (s->full) {
        snprintf(text, size, "there is no memory for what the nodes declare");
        return SAVING_HOPELESS;
    }
    if (layouts_differ(s, text, size))
        return SAVING_HOPELESS;
    return !s->size || s->declared < s->size ? undeclared(s, live, text, size) : SAVING_COVERED;
}

enum saving_cover saving_cover_of(struct saving *s, int64_t step, uint64_t lineage, unsigned live, char *text,
                                  size_t size)
{
    enum saving_cover can = known(s, live, text, size);
    s->covered = lineage;
    return can == SAVING_COVERED ? cover_of(s, step, lineage, text, size) : can;
}

/* Of each history of which somebody holds the step: while nodes go back one after the other there are two. */
enum saving_cover saving_cover(struct saving *s, int64_t step, unsigned live, char *text, size_t size)
{
    enum saving_cover best = SAVING_HOPELESS, can = known(s, live, text, size);
    uint64_t tried[LINEAGES_MAX];
    unsigned n = 0;
    if (can != SAVING_COVERED)
        return can;
    for (unsigned i = 0; i < s->used && n < LINEAGES_MAX && best != SAVING_COVERED; i++) {
        const struct saving_step *st = s->node[i].here && s->node[i].known ? saving_find(&s->node[i], step) : NULL;
        bool again = !st;
        for (unsigned k = 0; k < n && !again; k++)
            again = tried[k] == st->lineage;
        if (again)
            continue;
        s->covered = tried[n++] = st->lineage;
        enum saving_cover one = cover_of(s, step, st->lineage, text, size);
        best = one < best ? one : best;
    }
    return n ? best : cover_of(s, step, 0, text, size);
}

int64_t saving_held_beyond(const struct saving *s, int64_t beyond)
{
    int64_t best = SAVING_NO_STEP;
    for (unsigned i = 0; i < s->used; i++)
        for (unsigned k = 0; s->node[i].here && k < s->node[i].steps; k++)
            best = s->node[i].step[k].step > best ? s->node[i].step[k].step : best;
    return best > beyond ? best : SAVING_NO_STEP;
}

int64_t saving_newest(struct saving *s, int64_t beyond, unsigned live)
{
    char text[MSG_TEXT_MAX + 1];
    for (int64_t below = INT64_MAX;;) {
        int64_t best = SAVING_NO_STEP;
        for (unsigned i = 0; i < s->used; i++)
            for (unsigned k = 0; s->node[i].here && k < s->node[i].steps; k++) {
                int64_t step = s->node[i].step[k].step;
                best = step < below && step > best ? step : best;
            }
        if (best <= beyond)
            return SAVING_NO_STEP;
        if (saving_cover(s, best, live, text, sizeof text) == SAVING_COVERED)
            return best;
        below = best;
    }
}
