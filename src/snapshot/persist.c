#include "snapshot/persist.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/sort.h"

#define LEFT_OUT "a rank has left it out, or has ended before it"

struct hold {
    int64_t step; /* KEEPER_NO_STEP: not held */
    uint64_t lineage, gen;
};

struct wish {
    int64_t step;
    uint64_t lineage;
    bool lastwords;
    bool promised;   /* the script wants it, not an operator or an emergency checkpoint alone */
    bool ordered;    /* it is being written, or others are about to say that it is on disk */
    bool ended;      /* its workers have: no rank will commit it any more */
    const char *why; /* it is given up, which is not told yet; NULL: it is not */
};

struct persist {
    struct keeper *keeper;
    struct el_mem *mem;
    unsigned workers;
    struct wish *wish; /* in ascending order of steps */
    unsigned wishes, wish_room;
    int64_t writing, on_disk, failed, unmet;
    uint64_t writing_lineage, unmet_lineage;
    bool deferred;
    bool stale;                    /* what is being written is of a history that was given up */
    bool lastwords, promised;      /* of what is written */
    struct hold *hold;             /* of the wishes: workers x KEEPER_SLOTS */
    struct keeper_source *sources; /* of what is written */
    uint64_t *gens;
    unsigned n, room;
};

struct persist *persist_new(struct keeper *k, unsigned workers, struct el_mem *mem)
{
    struct persist *p = el_alloc(mem, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct persist){.keeper = k,
                          .mem = mem,
                          .workers = workers,
                          .writing = KEEPER_NO_STEP,
                          .on_disk = KEEPER_NO_STEP,
                          .failed = KEEPER_NO_STEP,
                          .unmet = KEEPER_NO_STEP,
                          /* One for each slot, as many whose slots were lost since persist_next() was asked last, the
                           * newest step, one that is wished again and one that was left out. */
                          .wish_room = 2 * workers * KEEPER_SLOTS + 3};
    p->hold = el_alloc(mem, (size_t)workers * KEEPER_SLOTS * sizeof *p->hold);
    p->wish = el_alloc(mem, p->wish_room * sizeof *p->wish);
    if (!p->hold || !p->wish) {
        persist_free(p);
        return NULL;
    }
    for (unsigned i = 0; i < workers * KEEPER_SLOTS; i++)
        p->hold[i].step = KEEPER_NO_STEP;
    return p;
}

void persist_free(struct persist *p)
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

static void hold(struct persist *p, unsigned worker, unsigned slot)
{
    struct hold *h = &p->hold[worker * KEEPER_SLOTS + slot];
    const struct keeper_slot *s = keeper_slot(p->keeper, worker, slot);
    if ((h->step != KEEPER_NO_STEP && h->gen == s->gen) || !keeper_take(p->keeper, worker, slot))
        return;
    *h = (struct hold){s->step, s->lineage, s->gen};
}

static void release(struct persist *p, const struct wish *w)
{
    for (unsigned i = 0; i < p->workers * KEEPER_SLOTS; i++)
        if (p->hold[i].step == w->step && p->hold[i].lineage == w->lineage) {
            keeper_give(p->keeper, i / KEEPER_SLOTS, i % KEEPER_SLOTS, p->hold[i].gen, true);
            p->hold[i].step = KEEPER_NO_STEP;
        }
}

static void hold_all(struct persist *p, int64_t step, uint64_t lineage)
{
    for (unsigned w = 0; w < p->workers; w++)
        for (unsigned s = 0; s < KEEPER_SLOTS; s++) {
            const struct keeper_slot *x = keeper_slot(p->keeper, w, s);
            if (x->step == step && x->lineage == lineage)
                hold(p, w, s);
        }
}

/* --- wishes --- */

static struct wish *find(const struct persist *p, int64_t step, uint64_t lineage)
{
    for (unsigned i = 0; i < p->wishes; i++)
        if (p->wish[i].step == step && p->wish[i].lineage == lineage && !p->wish[i].why)
            return &p->wish[i];
    return NULL;
}

static int by_step(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->lineage > y->lineage) - (x->lineage < y->lineage);
}

static struct wish *add(struct persist *p, int64_t step, uint64_t lineage, bool promised)
{
    assert(p->wishes < p->wish_room);
    p->wish[p->wishes++] = (struct wish){.step = step, .lineage = lineage, .promised = promised};
    el_sort(p->wish, p->wishes, sizeof *p->wish, by_step);
    return find(p, step, lineage);
}

static void drop(struct persist *p, struct wish *w)
{
    release(p, w);
    memmove(w, w + 1, (size_t)(&p->wish[p->wishes] - (w + 1)) * sizeof *w);
    p->wishes--;
}

static void give_up(struct persist *p, struct wish *w, const char *why)
{
    release(p, w);
    w->why = why;
}

static bool is_written(const struct persist *p, int64_t step, uint64_t lineage)
{
    return step == p->writing && lineage == p->writing_lineage;
}

void persist_committed(struct persist *p, unsigned worker, unsigned slot)
{
    const struct keeper_slot *s = keeper_slot(p->keeper, worker, slot);
    bool said = !p->deferred && s->step == p->unmet && s->lineage == p->unmet_lineage &&
                keeper_cover(p->keeper, s->step, s->lineage) == KEEPER_HOPELESS;
    struct wish *w = find(p, s->step, s->lineage);
    if (s->persist && !said && !is_written(p, s->step, s->lineage) && !w)
        w = add(p, s->step, s->lineage, true);
    if (s->persist && w)
        w->promised = true;
    if (s->persist && is_written(p, s->step, s->lineage))
        p->promised = true;
    if (w)
        hold(p, worker, slot);
}

/* Each worker that leaves it out says so: it is heard once. */
void persist_unmet(struct persist *p, int64_t step, uint64_t lineage, const char *why)
{
    struct wish *w = find(p, step, lineage);
    if (w && (w->ordered || p->deferred || keeper_cover(p->keeper, step, lineage) != KEEPER_HOPELESS))
        return; /* who holds some of it hears of it when that is hopeless */
    if (!w && step == p->unmet && lineage == p->unmet_lineage)
        return;
    p->unmet = step;
    p->unmet_lineage = lineage;
    w = w ? w : add(p, step, lineage, true);
    w->promised = true;
    give_up(p, w, why);
}

bool persist_want_newest(struct persist *p, bool lastwords)
{
    int64_t step = keeper_covered(p->keeper);
    uint64_t lineage = keeper_lineage(p->keeper, step);
    if (step == KEEPER_NO_STEP || step <= p->on_disk || step == p->failed || step == p->writing ||
        find(p, step, lineage))
        return false;
    add(p, step, lineage, false)->lastwords = lastwords;
    hold_all(p, step, lineage);
    return true;
}

void persist_forgive(struct persist *p)
{
    p->failed = KEEPER_NO_STEP;
}

void persist_done(struct persist *p, bool good, int broken)
{
    assert(p->writing != KEEPER_NO_STEP);
    struct wish *w = p->deferred ? NULL : find(p, p->writing, p->writing_lineage);
    for (unsigned i = 0; i < p->n; i++)
        keeper_give(p->keeper, p->sources[i].worker, p->sources[i].slot, p->gens[i], (int)i != broken);
    if (w)
        drop(p, w);
    if (good && !p->stale)
        p->on_disk = p->writing > p->on_disk ? p->writing : p->on_disk;
    else if (!good)
        p->failed = p->writing;
    p->writing = KEEPER_NO_STEP;
    p->stale = false;
    p->n = 0;
}

void persist_went_back(struct persist *p, int64_t step, uint64_t lineage)
{
    p->on_disk = p->on_disk > step ? KEEPER_NO_STEP : p->on_disk; /* whether this one is there is not known */
    p->failed = p->failed > step ? KEEPER_NO_STEP : p->failed;
    p->unmet = KEEPER_NO_STEP;
    p->stale = p->stale || (p->writing > step && (!lineage || p->writing_lineage != lineage));
    for (unsigned i = 0; i < p->wishes; i++) {
        struct wish *w = &p->wish[i];
        if (w->step > step && (!lineage || w->lineage != lineage) && !w->ordered && !w->why)
            give_up(p, w, "the job has gone back behind it");
    }
}

void persist_round(struct persist *p)
{
    for (unsigned i = 0; i < p->wishes; i++)
        p->wish[i].ended = true;
}

/* --- writing --- */

static bool make_room(struct persist *p, unsigned most)
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
static void take_sources(struct persist *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct keeper_source *s = &p->sources[i];
        bool there = keeper_take(p->keeper, s->worker, s->slot);
        assert(there);
        (void)there;
        p->gens[i] = keeper_slot(p->keeper, s->worker, s->slot)->gen;
    }
}

static bool take(struct persist *p, const struct wish *w)
{
    unsigned most = 0;
    for (unsigned i = 0; i < p->workers; i++)
        most += keeper_parts(p->keeper, i);
    p->n = make_room(p, most) ? keeper_sources(p->keeper, w->step, w->lineage, p->sources, p->room) : 0;
    take_sources(p);
    return p->n > 0;
}

void persist_defer(struct persist *p)
{
    p->deferred = true;
}

bool persist_order(struct persist *p, int64_t step, uint64_t lineage, bool lastwords, const struct keeper_source *v,
                   unsigned n)
{
    if (p->writing != KEEPER_NO_STEP || !n || !make_room(p, n))
        return false;
    memcpy(p->sources, v, n * sizeof *v);
    p->n = n;
    take_sources(p);
    p->writing = step;
    p->writing_lineage = lineage;
    p->lastwords = lastwords;
    p->promised = false; /* who says when knows it */
    struct wish *w = find(p, step, lineage);
    if (w)
        w->ordered = true;
    return true;
}

bool persist_over(struct persist *p, int64_t step, uint64_t lineage, bool good)
{
    struct wish *w = find(p, step, lineage);
    p->on_disk = good && step > p->on_disk ? step : p->on_disk;
    if (w)
        drop(p, w);
    return w;
}

bool persist_again(struct persist *p, int64_t step, uint64_t lineage)
{
    struct wish *w = find(p, step, lineage);
    if (is_written(p, step, lineage) || keeper_cover(p->keeper, step, lineage) != KEEPER_COVERED)
        return false;
    if (!w)
        w = add(p, step, lineage, true);
    w->ordered = false;
    hold_all(p, step, lineage);
    return true;
}

bool persist_drop_wish(struct persist *p, int64_t *step, bool *promised)
{
    for (unsigned i = 0; i < p->wishes; i++)
        if (!p->wish[i].why) {
            *step = p->wish[i].step;
            *promised = p->wish[i].promised;
            drop(p, &p->wish[i]);
            return true;
        }
    return false;
}

const char *persist_wishes_text(const struct persist *p, unsigned max, char *to, size_t size)
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
static const char *hopeless(const struct persist *p, const struct wish *w)
{
    if (w->ordered)
        return NULL;
    enum keeper_cover cover = keeper_cover(p->keeper, w->step, w->lineage);
    if (w->ended && cover != KEEPER_COVERED && !keeper_is_summing(p->keeper))
        return p->deferred ? "as far as this node knows: not every rank of it had committed it when its workers ended"
                           : "not every rank had committed it when the workers ended";
    return !p->deferred && cover == KEEPER_HOPELESS ? LEFT_OUT : NULL;
}

static struct persist_news tell(struct persist *p, unsigned i)
{
    struct persist_news news = {PERSIST_GIVEN_UP, p->wish[i].step, p->wish[i].promised, p->wish[i].why};
    memmove(&p->wish[i], &p->wish[i + 1], (p->wishes - i - 1) * sizeof *p->wish);
    p->wishes--;
    return news;
}

struct persist_news persist_next(struct persist *p)
{
    for (unsigned i = 0; i < p->wishes; i++) {
        struct wish *w = &p->wish[i];
        const char *why = w->why ? NULL : hopeless(p, w);
        if (why)
            give_up(p, w, why);
        if (w->why)
            return tell(p, i);
    }
    for (unsigned i = 0; i < p->wishes && !p->deferred && p->writing == KEEPER_NO_STEP; i++) {
        struct wish *w = &p->wish[i];
        if (keeper_cover(p->keeper, w->step, w->lineage) != KEEPER_COVERED)
            continue;
        if (!take(p, w)) {
            give_up(p, w, "there is no memory for the list of its parts");
            return tell(p, i);
        }
        w->ordered = true;
        p->writing = w->step;
        p->writing_lineage = w->lineage;
        p->lastwords = w->lastwords;
        p->promised = w->promised;
        return (struct persist_news){PERSIST_WRITE, w->step, w->promised, ""};
    }
    return (struct persist_news){PERSIST_NOTHING, KEEPER_NO_STEP, false, ""};
}

/* --- for those who look --- */

const struct keeper_source *persist_sources(const struct persist *p, unsigned *n)
{
    *n = p->n;
    return p->sources;
}

int64_t persist_writing(const struct persist *p)
{
    return p->writing;
}

int64_t persist_on_disk(const struct persist *p)
{
    return p->on_disk;
}

bool persist_is_lastwords(const struct persist *p)
{
    return p->lastwords;
}

bool persist_is_promised(const struct persist *p)
{
    return p->promised;
}

bool persist_is_idle(const struct persist *p)
{
    return p->wishes == 0 && p->writing == KEEPER_NO_STEP;
}

void persist_check(const struct persist *p)
{
    assert((p->writing == KEEPER_NO_STEP) == (p->n == 0));
    for (unsigned i = 0; i + 1 < p->wishes; i++)
        assert(by_step(&p->wish[i], &p->wish[i + 1]) < 0 || p->wish[i].why || p->wish[i + 1].why);
    for (unsigned i = 0; i < p->workers * KEEPER_SLOTS; i++) {
        const struct keeper_slot *s = keeper_slot(p->keeper, i / KEEPER_SLOTS, i % KEEPER_SLOTS);
        if (p->hold[i].step == KEEPER_NO_STEP)
            continue;
        assert(find(p, p->hold[i].step, p->hold[i].lineage));
        assert(s->gen != p->hold[i].gen || s->readers > 0);
    }
}
