#include "snapshot/emergency.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/snip.h"

#define HELD_SIZE (EMERGENCY_WHY_SIZE - 60) /* of a reason, which is part of a sentence */

struct holder {
    bool out;     /* it was asked, and will not do it */
    bool ordered; /* … and its slot does not count yet */
    bool copied;  /* it is being summed: nothing that happens to the worker matters any more */
    unsigned slot;
    uint64_t gen, beat;
    el_usec heard;
    char why[HELD_SIZE];
};

struct emergency {
    struct slot_table *keeper;
    struct el_mem *mem;
    bool disk, busy, done;
    bool shared, copied; /* one of several nodes; it has what it could have of `step` */
    el_usec agree_until, until;
    int64_t step;    /* that is being copied; SLOT_TABLE_NO_STEP: not agreed on */
    int64_t instead; /* held when it began */
    int64_t kept;    /* held now: no copy is worth its loss */
    unsigned n, orders;
    struct holder *holder;
    struct emergency_order *order;
    enum slot_table_live *live;
    bool *copies;
    char why[EMERGENCY_WHY_SIZE];
};

struct emergency *emergency_new(struct slot_table *k, bool disk, struct el_mem *mem)
{
    struct emergency *c = el_alloc(mem, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct emergency){.keeper = k,
                            .mem = mem,
                            .disk = disk,
                            .n = slot_table_workers(k),
                            .step = SLOT_TABLE_NO_STEP,
                            .instead = SLOT_TABLE_NO_STEP};
    c->holder = el_alloc(mem, c->n * sizeof *c->holder);
    c->order = el_alloc(mem, c->n * sizeof *c->order);
    c->live = el_alloc(mem, c->n * sizeof *c->live);
    c->copies = el_alloc(mem, c->n * sizeof *c->copies);
    if (c->holder && c->order && c->live && c->copies)
        return c;
    emergency_free(c);
    return NULL;
}

void emergency_free(struct emergency *c)
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
static void emergency_close(struct emergency *c, bool done)
{
    c->busy = false;
    c->done = done;
    c->orders = 0;
    slot_table_captures_end(c->keeper, done ? c->step : SLOT_TABLE_NO_STEP);
}

/* --- which step --- */

static int64_t emergency_newest_held(struct emergency *c, bool disk)
{
    unsigned lacks;
    memset(c->live, 0, c->n * sizeof *c->live);
    for (int64_t below = INT64_MAX;;) {
        int64_t best = SLOT_TABLE_NO_STEP;
        for (unsigned i = 0; i < c->n * SLOT_TABLE_SLOTS; i++) {
            const struct slot_table_slot *s = slot_table_slot(c->keeper, i / SLOT_TABLE_SLOTS, i % SLOT_TABLE_SLOTS);
            if (s->state == SLOT_TABLE_COMMITTED && s->step < below && s->step > best)
                best = s->step;
        }
        if (best == SLOT_TABLE_NO_STEP ||
            slot_table_live_cover(c->keeper, best, c->live, disk, c->copies, &lacks) == SLOT_TABLE_COVERED)
            return best;
        below = best;
    }
}

/* The disk may yet fail: a step that needs none is not given away for one that does. */
static int64_t to_keep(struct emergency *c)
{
    int64_t step = emergency_newest_held(c, false);
    return step == SLOT_TABLE_NO_STEP && c->disk ? emergency_newest_held(c, true) : step;
}

static enum slot_table_live live_at(const struct emergency *c, unsigned i, const struct emergency_stand *s,
                                    int64_t step)
{
    const struct holder *h = &c->holder[i];
    if (h->copied)
        return SLOT_TABLE_LIVE_IS;
    if (h->out || !s->answers || !s->page.listens || s->page.begun > step)
        return SLOT_TABLE_LIVE_NOT;
    if (!s->page.stable || s->page.live != step)
        return s->ends ? SLOT_TABLE_LIVE_NOT : SLOT_TABLE_LIVE_MAY;
    if (h->ordered || slot_table_has_free(c->keeper, i, c->kept))
        return SLOT_TABLE_LIVE_IS;
    return slot_table_may_free(c->keeper, i) ? SLOT_TABLE_LIVE_MAY : SLOT_TABLE_LIVE_NOT; /* what is kept stays */
}

static enum slot_table_cover cover(struct emergency *c, const struct emergency_stand *stand, int64_t step,
                                   unsigned *lacks)
{
    for (unsigned i = 0; i < c->n; i++)
        c->live[i] = live_at(c, i, &stand[i], step);
    return slot_table_live_cover(c->keeper, step, c->live, c->disk, c->copies, lacks);
}

/* What a rank has of its own beside what it shares can be done without, but not before it has had its time. */
static enum slot_table_cover cover_in_time(struct emergency *c, const struct emergency_stand *stand, int64_t step,
                                           unsigned *lacks, el_usec now)
{
    enum slot_table_cover found = cover(c, stand, step, lacks);
    for (unsigned i = 0; i < c->n && now < c->agree_until; i++)
        if (found == SLOT_TABLE_COVERED && c->live[i] == SLOT_TABLE_LIVE_MAY &&
            slot_table_lacks_own(c->keeper, i, step))
            found = SLOT_TABLE_INCOMPLETE;
    return found;
}

static void emergency_say_step(struct emergency *c, const struct emergency_stand *stand, int64_t step, unsigned lacks)
{
    const struct holder *h = &c->holder[lacks];
    const struct worker_status_stand *p = &stand[lacks].page;
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
             slot_table_rank(c->keeper, lacks), at);
}

static unsigned first_late(const struct emergency *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->live[i] == SLOT_TABLE_LIVE_MAY)
            return i;
    return 0;
}

/* The highest step that all could have; while a higher one may yet come it is waited for. */
static void emergency_agree(struct emergency *c, const struct emergency_stand *stand, el_usec now)
{
    for (int64_t below = INT64_MAX;;) {
        int64_t best = c->instead;
        unsigned lacks = 0;
        for (unsigned i = 0; i < c->n; i++) {
            int64_t at = stand[i].answers && stand[i].page.listens ? stand[i].page.begun : SLOT_TABLE_NO_STEP;
            best = at < below && at > best ? at : best;
        }
        if (best == c->instead) {
            emergency_close(c, false); /* nothing is better than what is held */
            return;
        }
        enum slot_table_cover found = cover_in_time(c, stand, best, &lacks, now);
        if (found == SLOT_TABLE_COVERED) {
            c->step = best;
            c->why[0] = 0;
            return;
        }
        if (!c->why[0] || below == INT64_MAX)
            emergency_say_step(c, stand, best, found == SLOT_TABLE_HOPELESS ? lacks : first_late(c));
        if (found == SLOT_TABLE_INCOMPLETE && now < c->agree_until)
            return;
        below = best;
    }
}

/* --- copies --- */

static void leave_out(struct emergency *c, unsigned i, const char *why)
{
    struct holder *h = &c->holder[i];
    h->out = true;
    h->ordered = h->copied = false;
    el_snip(h->why, sizeof h->why, "%s", why);
}

void emergency_said(struct emergency *c, unsigned worker, bool ok, const char *why)
{
    if (c->busy && c->holder[worker].ordered && !ok)
        leave_out(c, worker, why && *why ? why : "it could not copy it");
}

static void emergency_look_at(struct emergency *c, unsigned i, const struct emergency_stand *s, el_usec now)
{
    struct holder *h = &c->holder[i];
    const struct slot_table_slot *slot = slot_table_slot(c->keeper, i, h->slot);
    bool same = slot->gen == h->gen;
    if (s->page.beat != h->beat)
        h->heard = now;
    h->beat = s->page.beat;
    if (same && slot->state == SLOT_TABLE_COMMITTED)
        h->ordered = h->copied = false;
    else if (same && slot->state == SLOT_TABLE_SUMMING)
        h->copied = true;
    else if (!same || slot->state != SLOT_TABLE_CAPTURING)
        leave_out(c, i, "its copy is not what it had declared");
    else if (!s->answers)
        leave_out(c, i, "it ended while it copied");
    else if (now - h->heard >= EMERGENCY_SILENT)
        leave_out(c, i, "it does not answer");
}

static void order(struct emergency *c, unsigned i, const struct emergency_stand *s, el_usec now)
{
    int slot = slot_table_capture(c->keeper, i, c->step, c->kept);
    struct holder *h = &c->holder[i];
    if (slot < 0) { /* it has gone meanwhile, or others have agreed on what is no step here */
        leave_out(c, i, "it has no slot for a copy");
        return;
    }
    h->ordered = true;
    h->slot = (unsigned)slot;
    h->gen = slot_table_slot(c->keeper, i, h->slot)->gen;
    h->beat = s->page.beat;
    h->heard = now;
    c->order[c->orders++] = (struct emergency_order){i, h->slot, c->step};
}

static bool is_copying(const struct emergency *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            return true;
    return false;
}

static void emergency_copy(struct emergency *c, const struct emergency_stand *stand, el_usec now)
{
    unsigned lacks = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            emergency_look_at(c, i, &stand[i], now);
    enum slot_table_cover found = cover_in_time(c, stand, c->step, &lacks, now);
    if (found == SLOT_TABLE_COVERED) {
        for (unsigned i = 0; i < c->n; i++)
            if (c->copies[i] && !c->holder[i].ordered)
                order(c, i, &stand[i], now);
        if (!is_copying(c))
            emergency_close(c, true);
    } else if (found == SLOT_TABLE_HOPELESS || now >= c->agree_until) {
        emergency_say_step(c, stand, c->step, found == SLOT_TABLE_HOPELESS ? lacks : first_late(c));
        c->step = SLOT_TABLE_NO_STEP; /* an older one, perhaps: somebody is left out */
    }
}

/* What others hold may do where nobody here is left, so each copies what there is. */
static void copy_own(struct emergency *c, const struct emergency_stand *stand, el_usec now)
{
    unsigned lacks = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (c->holder[i].ordered)
            emergency_look_at(c, i, &stand[i], now);
    enum slot_table_cover found = cover_in_time(c, stand, c->step, &lacks, now);
    for (unsigned i = 0; i < c->n; i++)
        if (c->copies[i] && !c->holder[i].ordered)
            order(c, i, &stand[i], now);
    c->copied = !is_copying(c) && (found != SLOT_TABLE_INCOMPLETE || now >= c->agree_until);
    if (found == SLOT_TABLE_HOPELESS)
        emergency_say_step(c, stand, c->step, lacks);
}

/* --- among several nodes --- */

void emergency_begin_shared(struct emergency *c, el_usec now, el_usec until)
{
    emergency_begin(c, now, until);
    c->shared = true;
    c->kept = c->instead;
}

void emergency_told(struct emergency *c, int64_t step, int64_t kept)
{
    if (!c->busy || !c->shared)
        return;
    c->step = step;
    c->kept = kept;
    c->copied = false;
}

void emergency_over(struct emergency *c, int64_t step)
{
    if (c->busy)
        emergency_close(c, c->copied && c->step == step && step != SLOT_TABLE_NO_STEP && step > c->instead);
}

int64_t emergency_told_step(const struct emergency *c)
{
    return c->step;
}

bool emergency_is_out(const struct emergency *c, unsigned worker)
{
    return c->holder[worker].out;
}

bool emergency_has_copied(const struct emergency *c)
{
    return c->copied;
}

static int64_t later(int64_t step, int64_t below, int64_t best)
{
    return step < below && step > best ? step : best;
}

static int64_t step_below(const struct emergency *c, const struct emergency_stand *stand, int64_t limit, int64_t below)
{
    int64_t best = SLOT_TABLE_NO_STEP;
    for (unsigned i = 0; i < c->n; i++) {
        bool asked = stand[i].answers && stand[i].page.listens;
        best = asked ? later(stand[i].page.begun, below, later(limit, below, best)) : best;
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *slot = slot_table_slot(c->keeper, i, s);
            best = slot->state == SLOT_TABLE_COMMITTED ? later(slot->step, below, best) : best;
        }
    }
    return best;
}

unsigned emergency_steps(struct emergency *c, const struct emergency_stand *stand, int64_t limit, int64_t *steps,
                         unsigned max)
{
    unsigned n = 0;
    int64_t step = step_below(c, stand, limit, INT64_MAX);
    c->why[0] = 0;
    for (; n < max && step != SLOT_TABLE_NO_STEP; step = step_below(c, stand, limit, step))
        steps[n++] = step;
    return n;
}

enum slot_table_cover emergency_level(struct emergency *c, const struct emergency_stand *stand, int64_t step,
                                      bool *copies, const enum slot_table_live **live)
{
    unsigned lacks = 0;
    enum slot_table_cover found = cover(c, stand, step, &lacks);
    *copies = false;
    for (unsigned i = 0; i < c->n; i++)
        *copies |= c->copies[i];
    *live = c->live;
    if (found != SLOT_TABLE_COVERED && !c->why[0])
        emergency_say_step(c, stand, step, found == SLOT_TABLE_HOPELESS ? lacks : first_late(c));
    return found;
}

const char *emergency_why(const struct emergency *c)
{
    return c->why;
}

/* --- life --- */

void emergency_rest(struct emergency *c)
{
    c->busy = c->done = c->shared = c->copied = false;
    c->step = c->instead = SLOT_TABLE_NO_STEP;
    c->why[0] = 0;
    memset(c->holder, 0, c->n * sizeof *c->holder);
}

void emergency_begin(struct emergency *c, el_usec now, el_usec until)
{
    emergency_rest(c);
    c->until = until;
    c->agree_until = now + EMERGENCY_AGREE < until ? now + EMERGENCY_AGREE : until;
    c->busy = slot_table_all_known(c->keeper);
    if (c->busy)
        c->instead = emergency_newest_held(c, c->disk);
}

bool emergency_is_busy(const struct emergency *c)
{
    return c->busy;
}

unsigned emergency_step(struct emergency *c, const struct emergency_stand *stand, el_usec now,
                        const struct emergency_order **orders)
{
    c->orders = 0;
    *orders = c->order;
    if (!c->shared)
        c->kept = c->busy ? to_keep(c) : SLOT_TABLE_NO_STEP;
    if (c->busy && !c->shared && c->step == SLOT_TABLE_NO_STEP)
        emergency_agree(c, stand, now);
    if (c->busy && !c->shared && c->step != SLOT_TABLE_NO_STEP)
        emergency_copy(c, stand, now);
    if (c->busy && c->shared && c->step != SLOT_TABLE_NO_STEP)
        copy_own(c, stand, now);
    if (c->busy && now >= c->until) {
        if (c->step != SLOT_TABLE_NO_STEP)
            snprintf(c->why, sizeof c->why, "step %lld was not copied in time (--emergency-timeout)",
                     (long long)c->step);
        emergency_close(c, false);
    }
    return c->orders;
}

struct emergency_end emergency_end(const struct emergency *c)
{
    struct emergency_end end = {.step = c->done ? c->step : SLOT_TABLE_NO_STEP, .instead = c->instead, .why = c->why};
    for (unsigned i = 0; i < c->n && c->done; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *slot = slot_table_slot(c->keeper, i, s);
            if (slot->state == SLOT_TABLE_COMMITTED && slot->step == c->step && slot->captured) {
                end.copies++;
                end.bytes += slot->bytes;
            }
        }
    return end;
}

void emergency_check(const struct emergency *c)
{
    assert(!c->busy || !c->done);
    assert(!c->done || c->step > c->instead);
    assert(c->orders <= c->n);
}
