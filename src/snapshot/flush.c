#include "snapshot/flush.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/sort.h"

#define LEFT_OUT "a rank has left it out, or has ended before it"

struct hold {
    int64_t step; /* SLOT_TABLE_NO_STEP: not held */
    uint64_t lineage, gen;
};

struct wish {
    int64_t step;
    uint64_t lineage;
    bool emergency;
    bool promised;   /* the script wants it, not an operator or an emergency checkpoint alone */
    bool ordered;    /* it is being written, or others are about to say that it is on disk */
    bool ended;      /* its workers have: no rank will commit it any more */
    const char *why; /* it is given up, which is not told yet; NULL: it is not */
};

struct flush {
    struct slot_table *keeper;
    struct el_mem *mem;
    unsigned workers;
    struct wish *wish; /* in ascending order of steps */
    unsigned wishes, wish_room;
    int64_t writing, on_disk, failed, unmet;
    uint64_t writing_lineage, unmet_lineage;
    bool deferred;
    bool stale;                        /* what is being written is of a history that was given up */
    bool emergency, promised;          /* of what is written */
    struct hold *hold;                 /* of the wishes: workers x SLOT_TABLE_SLOTS */
    struct slot_table_source *sources; /* of what is written */
    uint64_t *gens;
    unsigned n, room;
};

struct flush *flush_new(struct slot_table *k, unsigned workers, struct el_mem *mem)
{
    struct flush *p = el_alloc(mem, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct flush){.keeper = k,
                        .mem = mem,
                        .workers = workers,
                        .writing = SLOT_TABLE_NO_STEP,
                        .on_disk = SLOT_TABLE_NO_STEP,
                        .failed = SLOT_TABLE_NO_STEP,
                        .unmet = SLOT_TABLE_NO_STEP,
                        /* One for each slot, as many whose slots were lost since flush_next() was asked last, the
                         * newest step, one that is wished again and one that was left out. */
                        .wish_room = 2 * workers * SLOT_TABLE_SLOTS + 3};
    p->hold = el_alloc(mem, (size_t)workers * SLOT_TABLE_SLOTS * sizeof *p->hold);
    p->wish = el_alloc(mem, p->wish_room * sizeof *p->wish);
    if (!p->hold || !p->wish) {
        flush_free(p);
        return NULL;
    }
    for (unsigned i = 0; i < workers * SLOT_TABLE_SLOTS; i++)
        p->hold[i].step = SLOT_TABLE_NO_STEP;
    return p;
}

void flush_free(struct flush *p)
{
    if (!p)
        return;
    el_free(p->mem, p->hold);
    el_free(p->mem, p->wish);
    el_free(p->mem, p->sources);
    el_free(p->mem, p->gens);
    el_free(p->mem, p);
}

/* --- slots of wished steps --- */

static void flush_hold(struct flush *p, unsigned worker, unsigned slot)
{
    struct hold *h = &p->hold[worker * SLOT_TABLE_SLOTS + slot];
    const struct slot_table_slot *s = slot_table_slot(p->keeper, worker, slot);
    if ((h->step != SLOT_TABLE_NO_STEP && h->gen == s->gen) || !slot_table_take(p->keeper, worker, slot))
        return;
    *h = (struct hold){s->step, s->lineage, s->gen};
}

static void flush_release(struct flush *p, const struct wish *w)
{
    for (unsigned i = 0; i < p->workers * SLOT_TABLE_SLOTS; i++)
        if (p->hold[i].step == w->step && p->hold[i].lineage == w->lineage) {
            slot_table_give(p->keeper, i / SLOT_TABLE_SLOTS, i % SLOT_TABLE_SLOTS, p->hold[i].gen, true);
            p->hold[i].step = SLOT_TABLE_NO_STEP;
        }
}

static void hold_all(struct flush *p, int64_t step, uint64_t lineage)
{
    for (unsigned w = 0; w < p->workers; w++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = slot_table_slot(p->keeper, w, s);
            if (x->step == step && x->lineage == lineage)
                flush_hold(p, w, s);
        }
}

/* --- wishes --- */

static struct wish *flush_find(const struct flush *p, int64_t step, uint64_t lineage)
{
    for (unsigned i = 0; i < p->wishes; i++)
        if (p->wish[i].step == step && p->wish[i].lineage == lineage && !p->wish[i].why)
            return &p->wish[i];
    return NULL;
}

static int flush_by_step(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->lineage > y->lineage) - (x->lineage < y->lineage);
}

static struct wish *flush_add(struct flush *p, int64_t step, uint64_t lineage, bool promised)
{
    assert(p->wishes < p->wish_room);
    p->wish[p->wishes++] = (struct wish){.step = step, .lineage = lineage, .promised = promised};
    el_sort(p->wish, p->wishes, sizeof *p->wish, flush_by_step);
    return flush_find(p, step, lineage);
}

static void flush_drop(struct flush *p, struct wish *w)
{
    flush_release(p, w);
    memmove(w, w + 1, (size_t)(&p->wish[p->wishes] - (w + 1)) * sizeof *w);
    p->wishes--;
}

static void flush_abandon(struct flush *p, struct wish *w, const char *why)
{
    flush_release(p, w);
    w->why = why;
}

static bool flush_is_written(const struct flush *p, int64_t step, uint64_t lineage)
{
    return step == p->writing && lineage == p->writing_lineage;
}

void flush_committed(struct flush *p, unsigned worker, unsigned slot)
{
    const struct slot_table_slot *s = slot_table_slot(p->keeper, worker, slot);
    bool said = !p->deferred && s->step == p->unmet && s->lineage == p->unmet_lineage &&
                slot_table_cover(p->keeper, s->step, s->lineage) == SLOT_TABLE_HOPELESS;
    struct wish *w = flush_find(p, s->step, s->lineage);
    if (s->persist && !said && !flush_is_written(p, s->step, s->lineage) && !w)
        w = flush_add(p, s->step, s->lineage, true);
    if (s->persist && w)
        w->promised = true;
    if (s->persist && flush_is_written(p, s->step, s->lineage))
        p->promised = true;
    if (w)
        flush_hold(p, worker, slot);
}

/* Each worker that leaves it out says so: it is heard once. */
void flush_unmet(struct flush *p, int64_t step, uint64_t lineage, const char *why)
{
    struct wish *w = flush_find(p, step, lineage);
    if (w && (w->ordered || p->deferred || slot_table_cover(p->keeper, step, lineage) != SLOT_TABLE_HOPELESS))
        return; /* who holds some of it hears of it when that is hopeless */
    if (!w && step == p->unmet && lineage == p->unmet_lineage)
        return;
    p->unmet = step;
    p->unmet_lineage = lineage;
    w = w ? w : flush_add(p, step, lineage, true);
    w->promised = true;
    flush_abandon(p, w, why);
}

bool flush_want_newest(struct flush *p, bool emergency)
{
    int64_t step = slot_table_covered(p->keeper);
    uint64_t lineage = slot_table_lineage(p->keeper, step);
    if (step == SLOT_TABLE_NO_STEP || step <= p->on_disk || step == p->failed || step == p->writing ||
        flush_find(p, step, lineage))
        return false;
    flush_add(p, step, lineage, false)->emergency = emergency;
    hold_all(p, step, lineage);
    return true;
}

void flush_forgive(struct flush *p)
{
    p->failed = SLOT_TABLE_NO_STEP;
}

void flush_done(struct flush *p, bool good, int broken)
{
    assert(p->writing != SLOT_TABLE_NO_STEP);
    struct wish *w = p->deferred ? NULL : flush_find(p, p->writing, p->writing_lineage);
    for (unsigned i = 0; i < p->n; i++)
        slot_table_give(p->keeper, p->sources[i].worker, p->sources[i].slot, p->gens[i], (int)i != broken);
    if (w)
        flush_drop(p, w);
    if (good && !p->stale)
        p->on_disk = p->writing > p->on_disk ? p->writing : p->on_disk;
    else if (!good)
        p->failed = p->writing;
    p->writing = SLOT_TABLE_NO_STEP;
    p->stale = false;
    p->n = 0;
}

void flush_went_back(struct flush *p, int64_t step, uint64_t lineage)
{
    p->on_disk = p->on_disk > step ? SLOT_TABLE_NO_STEP : p->on_disk; /* whether this one is there is not known */
    p->failed = p->failed > step ? SLOT_TABLE_NO_STEP : p->failed;
    p->unmet = SLOT_TABLE_NO_STEP;
    p->stale = p->stale || (p->writing > step && (!lineage || p->writing_lineage != lineage));
    for (unsigned i = 0; i < p->wishes; i++) {
        struct wish *w = &p->wish[i];
        if (w->step > step && (!lineage || w->lineage != lineage) && !w->ordered && !w->why)
            flush_abandon(p, w, "the job has gone back behind it");
    }
}

void flush_round(struct flush *p)
{
    for (unsigned i = 0; i < p->wishes; i++)
        p->wish[i].ended = true;
}

/* --- writing --- */

static bool flush_make_room(struct flush *p, unsigned most)
{
    if (most > p->room) {
        el_free(p->mem, p->sources);
        el_free(p->mem, p->gens);
        p->sources = el_alloc(p->mem, most * sizeof *p->sources);
        p->gens = el_alloc(p->mem, most * sizeof *p->gens);
        p->room = p->sources && p->gens ? most : 0;
    }
    return p->room >= most;
}

/* Each piece has a reader of its own: one of two pieces in a slot may be found broken. */
static void take_sources(struct flush *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct slot_table_source *s = &p->sources[i];
        bool there = slot_table_take(p->keeper, s->worker, s->slot);
        assert(there);
        (void)there;
        p->gens[i] = slot_table_slot(p->keeper, s->worker, s->slot)->gen;
    }
}

static bool flush_take(struct flush *p, const struct wish *w)
{
    unsigned most = 0;
    for (unsigned i = 0; i < p->workers; i++)
        most += slot_table_parts(p->keeper, i);
    p->n = flush_make_room(p, most) ? slot_table_sources(p->keeper, w->step, w->lineage, p->sources, p->room) : 0;
    take_sources(p);
    return p->n > 0;
}

void flush_defer(struct flush *p)
{
    p->deferred = true;
}

bool flush_order(struct flush *p, int64_t step, uint64_t lineage, bool emergency, const struct slot_table_source *v,
                 unsigned n)
{
    if (p->writing != SLOT_TABLE_NO_STEP || !n || !flush_make_room(p, n))
        return false;
    memcpy(p->sources, v, n * sizeof *v);
    p->n = n;
    take_sources(p);
    p->writing = step;
    p->writing_lineage = lineage;
    p->emergency = emergency;
    p->promised = false; /* who says when knows it */
    struct wish *w = flush_find(p, step, lineage);
    if (w)
        w->ordered = true;
    return true;
}

bool flush_over(struct flush *p, int64_t step, uint64_t lineage, bool good)
{
    struct wish *w = flush_find(p, step, lineage);
    p->on_disk = good && step > p->on_disk ? step : p->on_disk;
    if (w)
        flush_drop(p, w);
    return w;
}

bool flush_again(struct flush *p, int64_t step, uint64_t lineage)
{
    struct wish *w = flush_find(p, step, lineage);
    if (flush_is_written(p, step, lineage) || slot_table_cover(p->keeper, step, lineage) != SLOT_TABLE_COVERED)
        return false;
    if (!w)
        w = flush_add(p, step, lineage, true);
    w->ordered = false;
    hold_all(p, step, lineage);
    return true;
}

bool flush_drop_wish(struct flush *p, int64_t *step, bool *promised)
{
    for (unsigned i = 0; i < p->wishes; i++)
        if (!p->wish[i].why) {
            *step = p->wish[i].step;
            *promised = p->wish[i].promised;
            flush_drop(p, &p->wish[i]);
            return true;
        }
    return false;
}

const char *flush_wishes_text(const struct flush *p, unsigned max, char *to, size_t size)
{
    size_t n = 0;
    *to = 0;
    for (unsigned i = 0; i < p->wishes && max && n < size; i++)
        if (!p->wish[i].why) {
            n += (size_t)snprintf(to + n, size - n, "%s%lld@%llx", n ? " " : "", (long long)p->wish[i].step,
                                  (unsigned long long)p->wish[i].lineage);
            max--;
        }
    return to;
}

/* Among several nodes others may hold what is missing here: only they know that a step is hopeless. */
static const char *hopeless(const struct flush *p, const struct wish *w)
{
    if (w->ordered)
        return NULL;
    enum slot_table_cover cover = slot_table_cover(p->keeper, w->step, w->lineage);
    if (w->ended && cover != SLOT_TABLE_COVERED && !slot_table_is_summing(p->keeper))
        return p->deferred ? "as far as this node knows: not every rank of it had committed it when its workers ended"
                           : "not every rank had committed it when the workers ended";
    return !p->deferred && cover == SLOT_TABLE_HOPELESS ? LEFT_OUT : NULL;
}

static struct flush_news flush_tell(struct flush *p, unsigned i)
{
    struct flush_news news = {FLUSH_GIVEN_UP, p->wish[i].step, p->wish[i].promised, p->wish[i].why};
    memmove(&p->wish[i], &p->wish[i + 1], (p->wishes - i - 1) * sizeof *p->wish);
    p->wishes--;
    return news;
}

struct flush_news flush_next(struct flush *p)
{
    for (unsigned i = 0; i < p->wishes; i++) {
        struct wish *w = &p->wish[i];
        const char *why = w->why ? NULL : hopeless(p, w);
        if (why)
            flush_abandon(p, w, why);
        if (w->why)
            return flush_tell(p, i);
    }
    for (unsigned i = 0; i < p->wishes && !p->deferred && p->writing == SLOT_TABLE_NO_STEP; i++) {
        struct wish *w = &p->wish[i];
        if (slot_table_cover(p->keeper, w->step, w->lineage) != SLOT_TABLE_COVERED)
            continue;
        if (!flush_take(p, w)) {
            flush_abandon(p, w, "there is no memory for the list of its parts");
            return flush_tell(p, i);
        }
        w->ordered = true;
        p->writing = w->step;
        p->writing_lineage = w->lineage;
        p->emergency = w->emergency;
        p->promised = w->promised;
        return (struct flush_news){FLUSH_WRITE, w->step, w->promised, ""};
    }
    return (struct flush_news){FLUSH_NOTHING, SLOT_TABLE_NO_STEP, false, ""};
}

/* --- for those who look --- */

const struct slot_table_source *flush_sources(const struct flush *p, unsigned *n)
{
    *n = p->n;
    return p->sources;
}

int64_t flush_writing(const struct flush *p)
{
    return p->writing;
}

int64_t flush_on_disk(const struct flush *p)
{
    return p->on_disk;
}

bool flush_is_emergency(const struct flush *p)
{
    return p->emergency;
}

bool flush_is_promised(const struct flush *p)
{
    return p->promised;
}

bool flush_is_idle(const struct flush *p)
{
    return p->wishes == 0 && p->writing == SLOT_TABLE_NO_STEP;
}

void flush_check(const struct flush *p)
{
    assert((p->writing == SLOT_TABLE_NO_STEP) == (p->n == 0));
    for (unsigned i = 0; i + 1 < p->wishes; i++)
        assert(flush_by_step(&p->wish[i], &p->wish[i + 1]) < 0 || p->wish[i].why || p->wish[i + 1].why);
    for (unsigned i = 0; i < p->workers * SLOT_TABLE_SLOTS; i++) {
        const struct slot_table_slot *s = slot_table_slot(p->keeper, i / SLOT_TABLE_SLOTS, i % SLOT_TABLE_SLOTS);
        if (p->hold[i].step == SLOT_TABLE_NO_STEP)
            continue;
        assert(flush_find(p, p->hold[i].step, p->hold[i].lineage));
        assert(s->gen != p->hold[i].gen || s->readers > 0);
    }
}
