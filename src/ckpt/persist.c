#include "ckpt/persist.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct hold {
    int64_t step; /* KEEPER_NO_STEP: not held */
    uint64_t gen;
};

struct persist {
    struct keeper *keeper;
    struct el_mem *mem;
    unsigned workers;
    int64_t wanted, writing, on_disk, failed;
    bool deferred;
    bool stale;                       /* what is being written is of a history that was given up */
    bool wanted_lastwords, lastwords; /* of what is wanted; of what is written */
    int64_t dropped;                  /* a wish that was replaced or given up, and not told yet */
    char text[128];
    struct hold *hold;             /* of the wanted step: workers x KEEPER_SLOTS */
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
                          .wanted = KEEPER_NO_STEP,
                          .writing = KEEPER_NO_STEP,
                          .on_disk = KEEPER_NO_STEP,
                          .failed = KEEPER_NO_STEP,
                          .dropped = KEEPER_NO_STEP};
    p->hold = el_alloc(mem, (size_t)workers * KEEPER_SLOTS * sizeof *p->hold);
    if (!p->hold) {
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
    el_free(p->mem, p->sources);
    el_free(p->mem, p->gens);
    el_free(p->mem, p);
}

static void hold(struct persist *p, unsigned worker, unsigned slot)
{
    struct hold *h = &p->hold[worker * KEEPER_SLOTS + slot];
    uint64_t gen = keeper_slot(p->keeper, worker, slot)->gen;
    if ((h->step != KEEPER_NO_STEP && h->gen == gen) || !keeper_take(p->keeper, worker, slot))
        return;
    *h = (struct hold){p->wanted, gen};
}

static void release(struct persist *p)
{
    for (unsigned i = 0; i < p->workers * KEEPER_SLOTS; i++)
        if (p->hold[i].step != KEEPER_NO_STEP) {
            keeper_give(p->keeper, i / KEEPER_SLOTS, i % KEEPER_SLOTS, p->hold[i].gen, true);
            p->hold[i].step = KEEPER_NO_STEP;
        }
}

static void hold_all(struct persist *p)
{
    for (unsigned w = 0; w < p->workers; w++)
        for (unsigned s = 0; s < KEEPER_SLOTS; s++)
            if (keeper_slot(p->keeper, w, s)->step == p->wanted)
                hold(p, w, s);
}

static void drop(struct persist *p, const char *why)
{
    release(p);
    p->dropped = p->wanted;
    p->wanted = KEEPER_NO_STEP;
    snprintf(p->text, sizeof p->text, "%s", why);
}

static void want(struct persist *p, int64_t step, bool lastwords)
{
    if (p->wanted != KEEPER_NO_STEP && p->wanted != step) {
        char why[96];
        snprintf(why, sizeof why, "step %lld came while an older one was still being written", (long long)step);
        drop(p, why);
    }
    p->wanted_lastwords = lastwords;
    p->wanted = step;
}

void persist_committed(struct persist *p, unsigned worker, unsigned slot)
{
    const struct keeper_slot *s = keeper_slot(p->keeper, worker, slot);
    if (s->persist && s->step != p->wanted && s->step != p->writing && s->step > p->wanted)
        want(p, s->step, false);
    if (s->step == p->wanted)
        hold(p, worker, slot);
}

bool persist_want_newest(struct persist *p, bool lastwords)
{
    int64_t step = keeper_covered(p->keeper);
    if (step == KEEPER_NO_STEP || step <= p->on_disk || step == p->failed || step == p->writing || step <= p->wanted)
        return false;
    want(p, step, lastwords);
    hold_all(p);
    return true;
}

void persist_forgive(struct persist *p)
{
    p->failed = KEEPER_NO_STEP;
}

void persist_done(struct persist *p, bool good, int broken)
{
    assert(p->writing != KEEPER_NO_STEP);
    for (unsigned i = 0; i < p->n; i++)
        keeper_give(p->keeper, p->sources[i].worker, p->sources[i].slot, p->gens[i], (int)i != broken);
    if (good && !p->stale)
        p->on_disk = p->writing;
    else if (!good)
        p->failed = p->writing;
    p->writing = KEEPER_NO_STEP;
    p->stale = false;
    p->n = 0;
}

void persist_went_back(struct persist *p, int64_t step)
{
    p->on_disk = p->on_disk > step ? KEEPER_NO_STEP : p->on_disk; /* whether this one is there is not known */
    p->failed = p->failed > step ? KEEPER_NO_STEP : p->failed;
    p->stale = p->stale || p->writing > step;
    if (p->wanted <= step)
        return;
    release(p);
    p->wanted = KEEPER_NO_STEP;
}

void persist_round(struct persist *p)
{
    if (p->wanted != KEEPER_NO_STEP && keeper_cover(p->keeper, p->wanted) != KEEPER_COVERED)
        drop(p, "not every rank had committed it when the workers ended");
}

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

static bool take(struct persist *p)
{
    unsigned most = 0;
    for (unsigned w = 0; w < p->workers; w++)
        most += keeper_parts(p->keeper, w);
    p->n = make_room(p, most) ? keeper_sources(p->keeper, p->wanted, p->sources, p->room) : 0;
    take_sources(p);
    return p->n > 0;
}

void persist_defer(struct persist *p)
{
    p->deferred = true;
}

bool persist_order(struct persist *p, int64_t step, bool lastwords, const struct keeper_source *v, unsigned n)
{
    if (p->writing != KEEPER_NO_STEP || !n || !make_room(p, n))
        return false;
    memcpy(p->sources, v, n * sizeof *v);
    p->n = n;
    take_sources(p);
    p->writing = step;
    p->lastwords = lastwords;
    if (p->wanted == step) {
        p->wanted = KEEPER_NO_STEP;
        release(p);
    }
    return true;
}

void persist_over(struct persist *p, int64_t step, bool good)
{
    p->on_disk = good && step > p->on_disk ? step : p->on_disk;
    if (p->wanted == KEEPER_NO_STEP || p->wanted > step)
        return;
    release(p);
    p->wanted = KEEPER_NO_STEP;
}

bool persist_again(struct persist *p, int64_t step)
{
    if (p->writing != KEEPER_NO_STEP || step <= p->wanted || keeper_cover(p->keeper, step) != KEEPER_COVERED)
        return false;
    want(p, step, false);
    hold_all(p);
    return true;
}

int64_t persist_wanted(const struct persist *p)
{
    return p->wanted;
}

struct persist_news persist_next(struct persist *p)
{
    if (p->wanted != KEEPER_NO_STEP && keeper_cover(p->keeper, p->wanted) == KEEPER_HOPELESS)
        drop(p, "a rank has left it out (--ckpt-busy=wait would have it wait)");
    if (p->dropped != KEEPER_NO_STEP) {
        struct persist_news news = {PERSIST_GIVEN_UP, p->dropped, p->text};
        p->dropped = KEEPER_NO_STEP;
        return news;
    }
    if (p->deferred || p->wanted == KEEPER_NO_STEP || p->writing != KEEPER_NO_STEP ||
        keeper_cover(p->keeper, p->wanted) != KEEPER_COVERED)
        return (struct persist_news){PERSIST_NOTHING, KEEPER_NO_STEP, ""};
    if (!take(p)) {
        drop(p, "there is no memory for the list of its parts");
        return persist_next(p);
    }
    p->writing = p->wanted;
    p->lastwords = p->wanted_lastwords;
    p->wanted = KEEPER_NO_STEP;
    release(p);
    return (struct persist_news){PERSIST_WRITE, p->writing, ""};
}

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

bool persist_is_idle(const struct persist *p)
{
    return p->wanted == KEEPER_NO_STEP && p->writing == KEEPER_NO_STEP && p->dropped == KEEPER_NO_STEP;
}

void persist_check(const struct persist *p)
{
    assert((p->writing == KEEPER_NO_STEP) == (p->n == 0));
    assert(p->writing == KEEPER_NO_STEP || p->writing != p->wanted);
    for (unsigned i = 0; i < p->workers * KEEPER_SLOTS; i++) {
        const struct keeper_slot *s = keeper_slot(p->keeper, i / KEEPER_SLOTS, i % KEEPER_SLOTS);
        if (p->hold[i].step == KEEPER_NO_STEP)
            continue;
        assert(p->hold[i].step == p->wanted);
        assert(s->gen != p->hold[i].gen || s->readers > 0);
    }
}
