#include "snapshot/capture.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/snip.h"

#define HELD_SIZE (CAPTURE_WHY_SIZE - 60) /* of a reason, which is part of a sentence */

struct holder {
    bool out;     /* it was asked, and will not do it */
    bool ordered; /* … and its slot does not count yet */
    bool copied;  /* it is being summed: nothing that happens to the worker matters any more */
    unsigned slot;
    uint64_t gen, beat;
    el_usec heard;
    char why[HELD_SIZE];
};

struct capture {
    struct keeper *keeper;
    struct el_mem *mem;
    bool disk, busy, done;
    bool shared, copied; /* one of several nodes; it has what it could have of `step` */
    el_usec agree_until, until;
    int64_t step;    /* that is being copied; KEEPER_NO_STEP: not agreed on */
    int64_t instead; /* held when it began */
    int64_t kept;    /* held now: no copy is worth its loss */
    unsigned n, orders;
    struct holder *holder;
    struct capture_order *order;
    enum keeper_live *live;
    bool *copies;
    char why[CAPTURE_WHY_SIZE];
};

struct capture *capture_new(struct keeper *k, bool disk, struct el_mem *mem)
{
    struct capture *c = el_alloc(mem, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct capture){.keeper = k,
                          .mem = mem,
                          .disk = disk,
                          .n = keeper_workers(k),
                          .step = KEEPER_NO_STEP,
                          .instead = KEEPER_NO_STEP};
    c->holder = el_alloc(mem, c->n * sizeof *c->holder);
    c->order = el_alloc(mem, c->n * sizeof *c->order);
    c->live = el_alloc(mem, c->n * sizeof *c->live);
    c->copies = el_alloc(mem, c->n * sizeof *c->copies);
    if (c->holder && c->order && c->live && c->copies)
        return c;
    capture_free(c);
    return NULL;
}

void capture_free(struct capture *c)
{
    if (!c)
        return;
    el_free(c->mem, c->holder);
    el_free(c->mem, c->order);
    el_free(c->mem, c->live);
    el_free(c->mem, c->copies);
    el_free(c->mem, c);
}

/* A copy of a step that it did not come to is worth less than what is held. */
static void finish(struct capture *c, bool done)
{
    c->busy = false;
    c->done = done;
    c->orders = 0;
    keeper_captures_end(c->keeper, done ? c->step : KEEPER_NO_STEP);
}

/* --- which step --- */

static int64_t newest_held(struct capture *c, bool disk)
{
    unsigned lacks;
    memset(c->live, 0, c->n * sizeof *c->live);
    for (int64_t below = INT64_MAX;;) {
        int64_t best = KEEPER_NO_STEP;
        for (unsigned i = 0; i < c->n * KEEPER_SLOTS; i++) {
            const struct keeper_slot *s = keeper_slot(c->keeper, i / KEEPER_SLOTS, i % KEEPER_SLOTS);
            if (s->state == KEEPER_COMMITTED && s->step < below && s->step > best)
                best = s->step;
        }
        if (best == KEEPER_NO_STEP ||
            keeper_live_cover(c->keeper, best, c->live, disk, c->copies, &lacks) == KEEPER_COVERED)
            return best;
        below = best;
    }
}

/* The disk may yet fail: a step that needs none is not given away for one that does. */
static int64_t to_keep(struct capture *c)
{
    int64_t step = newest_held(c, false);
    return step == KEEPER_NO_STEP && c->disk ? newest_held(c, true) : step;
}

static enum keeper_live live_at(const struct capture *c, unsigned i, const struct capture_stand *s, int64_t step)
{
    const struct holder *h = &c->holder[i];
    if (h->copied)
        return KEEPER_LIVE_IS;
    if (h->out || !s->answers || !s->page.listens || s->page.begun > step)
        return KEEPER_LIVE_NOT;
    if (!s->page.stable || s->page.live != step)
        return s->ends ? KEEPER_LIVE_NOT : KEEPER_LIVE_MAY;
    if (h->ordered || keeper_has_free(c->keeper, i, c->kept))
        return KEEPER_LIVE_IS;
    return keeper_may_free(c->keeper, i) ? KEEPER_LIVE_MAY : KEEPER_LIVE_NOT; /* what is kept stays */
}

static enum keeper_cover cover(struct capture *c, const struct capture_stand *stand, int64_t step, unsigned *lacks)
{
    for (unsigned i = 0; i < c->n; i++)
        c->live[i] = live_at(c, i, &stand[i], step);
    return keeper_live_cover(c->keeper, step, c->live, c->disk, c->copies, lacks);
}

/* What a rank has of its own beside what it shares can be done without, but not before it has had its time. */
static enum keeper_cover cover_in_time(struct capture *c, const struct capture_stand *stand, int64_t step,
                                       unsigned *lacks, el_usec now)
{
    enum keeper_cover found = cover(c, stand, step, lacks);
    for (unsigned i = 0; i < c->n && now < c->agree_until; i++)
        if (found == KEEPER_COVERED && c->live[i] == KEEPER_LIVE_MAY && keeper_lacks_own(c->keeper, i, step))
            found = KEEPER_INCOMPLETE;
    return found;
}

static void say(struct capture *c, const struct capture_stand *stand, int64_t step, unsigned lacks)
{
    const struct holder *h = &c->holder[lacks];
    const struct page_stand *p = &stand[lacks].page;
    char at[HELD_SIZE];
    if (h->why[0])
        snprintf(at, sizeof at, "%s", h->why);
    else if (!stand[lacks].answers)
        snprintf(at, sizeof at, "it has ended, or cannot be asked");
    else if (p->begun == step && stand[lacks].ends)
        snprintf(at, sizeof at, "its script has failed within ck.update()");
    else if (p->live == step && p->begun > step)
        snprintf(at, sizeof at, "it was in step %lld", (long long)p->begun);
    else if (p->live == step)
        snprintf(at, sizeof at, "both its slots were in use");
    else
        snprintf(at, sizeof at, "it stands behind step %lld", (long long)p->live);
    snprintf(c->why, sizeof c->why, "step %lld of rank %u is held by nobody: %s", (long long)step,
             keeper_rank(c->keeper, lacks), at);
}

static unsigned first_late(const struct capture *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->live[i] == KEEPER_LIVE_MAY)
            return i;
    return 0;
}

/* The highest step that all could have; while a higher one may yet come it is waited for. */
static void agree(struct capture *c, const struct capture_stand *stand, el_usec now)
{
    for (int64_t below = INT64_MAX;;) {
        int64_t best = c->instead;
        unsigned lacks = 0;
        for (unsigned i = 0; i < c->n; i++) {
            int64_t at = stand[i].answers && stand[i].page.listens ? stand[i].page.begun : KEEPER_NO_STEP;
            best = at < below && at > best ? at : best;
        }
        if (best == c->instead) {
            finish(c, false); /* nothing is better than what is held */
            return;
        }
        enum keeper_cover found = cover_in_time(c, stand, best, &lacks, now);
        if (found == KEEPER_COVERED) {
            c->step = best;
            c->why[0] = 0;
            return;
        }
        if (!c->why[0] || below == INT64_MAX)
            say(c, stand, best, found == KEEPER_HOPELESS ? lacks : first_late(c));
        if (found == KEEPER_INCOMPLETE && now < c->agree_until)
            return;
        below = best;
    }
}

/* --- copies --- */

static void leave_out(struct capture *c, unsigned i, const char *why)
{
    struct holder *h = &c->holder[i];
    h->out = true;
    h->ordered = h->copied = false;
    el_snip(h->why, sizeof h->why, "%s", why);
}

void capture_said(struct capture *c, unsigned worker, bool ok, const char *why)
{
    if (c->busy && c->holder[worker].ordered && !ok)
        leave_out(c, worker, why && *why ? why : "it could not copy it");
}

static void look_at(struct capture *c, unsigned i, const struct capture_stand *s, el_usec now)
{
    struct holder *h = &c->holder[i];
    const struct keeper_slot *slot = keeper_slot(c->keeper, i, h->slot);
    bool same = slot->gen == h->gen;
    if (s->page.beat != h->beat)
        h->heard = now;
    h->beat = s->page.beat;
    if (same && slot->state == KEEPER_COMMITTED)
        h->ordered = h->copied = false;
    else if (same && slot->state == KEEPER_SUMMING)
        h->copied = true;
    else if (!same || slot->state != KEEPER_CAPTURING)
        leave_out(c, i, "its copy is not what it had declared");
    else if (!s->answers)
        leave_out(c, i, "it ended while it copied");
    else if (now - h->heard >= CAPTURE_SILENT)
        leave_out(c, i, "it does not answer");
}

static void order(struct capture *c, unsigned i, const struct capture_stand *s, el_usec now)
{
    int slot = keeper_capture(c->keeper, i, c->step, c->kept);
    struct holder *h = &c->holder[i];
    if (slot < 0) { /* it has gone meanwhile, or others have agreed on what is no step here */
        leave_out(c, i, "it has no slot for a copy");
        return;
    }
    h->ordered = true;
    h->slot = (unsigned)slot;
    h->gen = keeper_slot(c->keeper, i, h->slot)->gen;
    h->beat = s->page.beat;
    h->heard = now;
    c->order[c->orders++] = (struct capture_order){i, h->slot, c->step};
}

static bool is_copying(const struct capture *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            return true;
    return false;
}

static void copy(struct capture *c, const struct capture_stand *stand, el_usec now)
{
    unsigned lacks = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            look_at(c, i, &stand[i], now);
    enum keeper_cover found = cover_in_time(c, stand, c->step, &lacks, now);
    if (found == KEEPER_COVERED) {
        for (unsigned i = 0; i < c->n; i++)
            if (c->copies[i] && !c->holder[i].ordered)
                order(c, i, &stand[i], now);
        if (!is_copying(c))
            finish(c, true);
    } else if (found == KEEPER_HOPELESS || now >= c->agree_until) {
        say(c, stand, c->step, found == KEEPER_HOPELESS ? lacks : first_late(c));
        c->step = KEEPER_NO_STEP; /* an older one, perhaps: somebody is left out */
    }
}

/* What others hold may do where nobody here is left, so each copies what there is. */
static void copy_own(struct capture *c, const struct capture_stand *stand, el_usec now)
{
    unsigned lacks = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            look_at(c, i, &stand[i], now);
    enum keeper_cover found = cover_in_time(c, stand, c->step, &lacks, now);
    for (unsigned i = 0; i < c->n; i++)
        if (c->copies[i] && !c->holder[i].ordered)
            order(c, i, &stand[i], now);
    c->copied = !is_copying(c) && (found != KEEPER_INCOMPLETE || now >= c->agree_until);
    if (found == KEEPER_HOPELESS)
        say(c, stand, c->step, lacks);
}

/* --- among several nodes --- */

void capture_begin_shared(struct capture *c, el_usec now, el_usec until)
{
    capture_begin(c, now, until);
    c->shared = true;
    c->kept = c->instead;
}

void capture_told(struct capture *c, int64_t step, int64_t kept)
{
    if (!c->busy || !c->shared)
        return;
    c->step = step;
    c->kept = kept;
    c->copied = false;
}

void capture_over(struct capture *c, int64_t step)
{
    if (c->busy)
        finish(c, c->copied && c->step == step && step != KEEPER_NO_STEP && step > c->instead);
}

int64_t capture_told_step(const struct capture *c)
{
    return c->step;
}

bool capture_is_out(const struct capture *c, unsigned worker)
{
    return c->holder[worker].out;
}

bool capture_has_copied(const struct capture *c)
{
    return c->copied;
}

static int64_t later(int64_t step, int64_t below, int64_t best)
{
    return step < below && step > best ? step : best;
}

static int64_t step_below(const struct capture *c, const struct capture_stand *stand, int64_t limit, int64_t below)
{
    int64_t best = KEEPER_NO_STEP;
    for (unsigned i = 0; i < c->n; i++) {
        bool asked = stand[i].answers && stand[i].page.listens;
        best = asked ? later(stand[i].page.begun, below, later(limit, below, best)) : best;
        for (unsigned s = 0; s < KEEPER_SLOTS; s++) {
            const struct keeper_slot *slot = keeper_slot(c->keeper, i, s);
            best = slot->state == KEEPER_COMMITTED ? later(slot->step, below, best) : best;
        }
    }
    return best;
}

unsigned capture_steps(struct capture *c, const struct capture_stand *stand, int64_t limit, int64_t *steps,
                       unsigned max)
{
    unsigned n = 0;
    int64_t step = step_below(c, stand, limit, INT64_MAX);
    c->why[0] = 0;
    for (; n < max && step != KEEPER_NO_STEP; step = step_below(c, stand, limit, step))
        steps[n++] = step;
    return n;
}

enum keeper_cover capture_level(struct capture *c, const struct capture_stand *stand, int64_t step, bool *copies,
                                const enum keeper_live **live)
{
    unsigned lacks = 0;
    enum keeper_cover found = cover(c, stand, step, &lacks);
    *copies = false;
    for (unsigned i = 0; i < c->n; i++)
        *copies |= c->copies[i];
    *live = c->live;
    if (found != KEEPER_COVERED && !c->why[0])
        say(c, stand, step, found == KEEPER_HOPELESS ? lacks : first_late(c));
    return found;
}

const char *capture_why(const struct capture *c)
{
    return c->why;
}

/* --- life --- */

void capture_rest(struct capture *c)
{
    c->busy = c->done = c->shared = c->copied = false;
    c->step = c->instead = KEEPER_NO_STEP;
    c->why[0] = 0;
    memset(c->holder, 0, c->n * sizeof *c->holder);
}

void capture_begin(struct capture *c, el_usec now, el_usec until)
{
    capture_rest(c);
    c->until = until;
    c->agree_until = now + CAPTURE_AGREE < until ? now + CAPTURE_AGREE : until;
    c->busy = keeper_all_known(c->keeper);
    if (c->busy)
        c->instead = newest_held(c, c->disk);
}

bool capture_is_busy(const struct capture *c)
{
    return c->busy;
}

unsigned capture_step(struct capture *c, const struct capture_stand *stand, el_usec now,
                      const struct capture_order **orders)
{
    c->orders = 0;
    *orders = c->order;
    if (!c->shared)
        c->kept = c->busy ? to_keep(c) : KEEPER_NO_STEP;
    if (c->busy && !c->shared && c->step == KEEPER_NO_STEP)
        agree(c, stand, now);
    if (c->busy && !c->shared && c->step != KEEPER_NO_STEP)
        copy(c, stand, now);
    if (c->busy && c->shared && c->step != KEEPER_NO_STEP)
        copy_own(c, stand, now);
    if (c->busy && now >= c->until) {
        if (c->step != KEEPER_NO_STEP)
            snprintf(c->why, sizeof c->why, "step %lld was not copied in time (--lastwords-timeout)",
                     (long long)c->step);
        finish(c, false);
    }
    return c->orders;
}

struct capture_end capture_end(const struct capture *c)
{
    struct capture_end end = {.step = c->done ? c->step : KEEPER_NO_STEP, .instead = c->instead, .why = c->why};
    for (unsigned i = 0; i < c->n && c->done; i++)
        for (unsigned s = 0; s < KEEPER_SLOTS; s++) {
            const struct keeper_slot *slot = keeper_slot(c->keeper, i, s);
            if (slot->state == KEEPER_COMMITTED && slot->step == c->step && slot->captured) {
                end.copies++;
                end.bytes += slot->bytes;
            }
        }
    return end;
}

void capture_check(const struct capture *c)
{
    assert(!c->busy || !c->done);
    assert(!c->done || c->step > c->instead);
    assert(c->orders <= c->n);
}
