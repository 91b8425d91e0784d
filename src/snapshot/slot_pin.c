#include "snapshot/slot_pin.h"

#include <string.h>

static bool slot_pin_same(struct slot_pin_step a, struct slot_pin_step b)
{
    return a.step == b.step && a.lineage == b.lineage && a.take == b.take;
}

static bool slot_pin_is_later(struct slot_pin_step a, struct slot_pin_step b)
{
    if (b.step == SLOT_PIN_NO_STEP || a.step == SLOT_PIN_NO_STEP)
        return a.step != SLOT_PIN_NO_STEP;
    if (a.era != b.era)
        return a.era > b.era;
    return a.step != b.step ? a.step > b.step : a.take > b.take;
}

/* --- what is held of a step --- */

enum has { HAS_IT, IS_AT_IT, MAY_COME_TO_IT, NEVER };

static enum has slot_pin_has(const struct slot_pin_worker *w, struct slot_pin_step of)
{
    enum has best = NEVER;
    for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++) {
        const struct slot_pin_slot *x = &w->slot[s];
        if (x->at == SLOT_PIN_HELD && slot_pin_same(x->of, of))
            return HAS_IT;
        best = x->at == SLOT_PIN_WORK && slot_pin_same(x->of, of) ? IS_AT_IT : best;
    }
    bool now = w->passed.era == of.era && w->passed.lineage == of.lineage && slot_pin_is_later(of, w->passed);
    return best < NEVER ? best : w->comes && (now || w->passed.era < of.era) ? MAY_COME_TO_IT : NEVER;
}

/* The best of those that have declared the same. */
static enum has like_has(const struct slot_pin *p, unsigned first, struct slot_pin_step of)
{
    enum has best = NEVER;
    for (unsigned i = first; i < p->n && best != HAS_IT; i = p->w[i].next) {
        enum has one = slot_pin_has(&p->w[i], of);
        best = one < best ? one : best;
    }
    return best;
}

static enum slot_pin_state slot_pin_look(const struct slot_pin *p, struct slot_pin_step of)
{
    enum has worst = HAS_IT;
    for (unsigned i = 0; i < p->n && worst != NEVER; i++)
        if (p->w[i].like == i) {
            enum has one = like_has(p, i, of);
            worst = one > worst ? one : worst;
        }
    return worst == HAS_IT ? SLOT_PIN_WHOLE : worst == NEVER ? SLOT_PIN_HOPELESS : SLOT_PIN_COMING;
}

enum slot_pin_state slot_pin_state(struct slot_pin *p, struct slot_pin_step of)
{
    for (unsigned i = 0; i < p->known && i < SLOT_PIN_KNOWN; i++)
        if (slot_pin_same(p->memo[i].of, of) && p->memo[i].of.era == of.era)
            return p->memo[i].state;
    enum slot_pin_state state = slot_pin_look(p, of);
    p->memo[p->known % SLOT_PIN_KNOWN].of = of;
    p->memo[p->known++ % SLOT_PIN_KNOWN].state = state;
    return state;
}

/* Of several nodes, before anything was told: the newest that this one has from before. */
struct slot_pin_step slot_pin_common(struct slot_pin *p)
{
    struct slot_pin_step best = {SLOT_PIN_NO_STEP, -1, 0, 0};
    if (p->several && p->common.step != SLOT_PIN_NO_STEP)
        return p->common;
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++) {
            const struct slot_pin_slot *x = &p->w[i].slot[s];
            bool counts = x->at == SLOT_PIN_HELD && (!p->several || x->of.era < 0);
            if (counts && slot_pin_is_later(x->of, best) && slot_pin_state(p, x->of) == SLOT_PIN_WHOLE)
                best = x->of;
        }
    return best;
}

/* --- slots --- */

/* Of one that lies there twice the later one counts. */
static bool is_twice(const struct slot_pin_worker *w, unsigned slot)
{
    for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++)
        if (w->slot[s].at == SLOT_PIN_HELD && slot_pin_same(w->slot[s].of, w->slot[slot].of) &&
            w->slot[s].gen > w->slot[slot].gen)
            return true;
    return false;
}

static bool is_kept(struct slot_pin *p, const struct slot_pin_worker *w, unsigned slot, struct slot_pin_step common)
{
    const struct slot_pin_slot *x = &w->slot[slot];
    if (x->at != SLOT_PIN_HELD || is_twice(w, slot))
        return false;
    if (slot_pin_same(x->of, common))
        return true;
    if (!slot_pin_is_later(x->of, common))
        return false;
    enum slot_pin_state state = slot_pin_state(p, x->of);
    return state == SLOT_PIN_COMING || (state == SLOT_PIN_WHOLE && p->several && x->of.era >= 0);
}

/* What is of no use comes before what is held, and that in the order in which it was begun. */
static bool goes_first(const struct slot_pin_slot *a, const struct slot_pin_slot *b)
{
    bool held_a = a->at == SLOT_PIN_HELD, held_b = b->at == SLOT_PIN_HELD;
    return held_a != held_b ? held_b : held_a && a->gen < b->gen;
}

static int slot_pin_slot_of(struct slot_pin *p, const struct slot_pin_worker *w, struct slot_pin_step common)
{
    int best = -1;
    for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++)
        if (!w->slot[s].read && w->slot[s].at != SLOT_PIN_WORK && !is_kept(p, w, s, common) &&
            (best < 0 || goes_first(&w->slot[s], &w->slot[best])))
            best = (int)s;
    return best;
}

int slot_pin_slot(struct slot_pin *p, unsigned worker)
{
    return slot_pin_slot_of(p, &p->w[worker], slot_pin_common(p));
}

/* One of those that have declared the same has it, is at it, or could take it now. */
static bool could_take(struct slot_pin *p, unsigned first, struct slot_pin_step of, struct slot_pin_step common)
{
    for (unsigned i = first; i < p->n; i = p->w[i].next) {
        enum has one = slot_pin_has(&p->w[i], of);
        if (one <= IS_AT_IT || (one == MAY_COME_TO_IT && slot_pin_slot_of(p, &p->w[i], common) >= 0))
            return true;
    }
    return false;
}

bool slot_pin_may_begin(struct slot_pin *p, unsigned worker, int64_t step)
{
    const struct slot_pin_step now = p->w[worker].passed, common = slot_pin_common(p);
    const struct slot_pin_step of = {step, now.era, now.lineage, now.step == step ? now.take : 0};
    /* What one that has declared the same has, or is at, is no other step for this node. */
    if (p->several && step < p->from && like_has(p, p->w[worker].like, of) > IS_AT_IT)
        return false;
    for (unsigned i = 0; i < p->n; i++)
        if (p->w[i].like == i && i != p->w[worker].like && !could_take(p, i, of, common))
            return false;
    return true;
}

/* --- for the coordinator --- */

/* The last trained first. */
static void slot_pin_add(struct slot_pin_step of, struct slot_pin_step *to, unsigned *n)
{
    unsigned at = 0;
    while (at < *n && slot_pin_is_later(to[at], of))
        at++;
    if ((at < *n && slot_pin_same(to[at], of)) || at == SLOT_PIN_TOLD)
        return;
    *n += *n < SLOT_PIN_TOLD;
    for (unsigned i = *n - 1; i > at; i--)
        to[i] = to[i - 1];
    to[at] = of;
}

/* Of those that have declared the same the one that is behind may have a step for all. */
static struct slot_pin_step slot_pin_passed_by(const struct slot_pin *p, unsigned first)
{
    struct slot_pin_step least = {INT64_MAX, INT64_MAX, 0, 0};
    for (unsigned i = first; i < p->n; i = p->w[i].next)
        if (p->w[i].comes && slot_pin_is_later(least, p->w[i].passed))
            least = p->w[i].passed;
    return least;
}

static bool is_ready(const struct slot_pin_worker *w, struct slot_pin_step common)
{
    bool ready = false;
    for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++) {
        if (w->slot[s].at == SLOT_PIN_WORK)
            return false;
        ready |= !w->slot[s].read && !(w->slot[s].at == SLOT_PIN_HELD && slot_pin_same(w->slot[s].of, common));
    }
    return ready;
}

void slot_pin_tell(struct slot_pin *p, struct slot_pin_told *to)
{
    struct slot_pin_step common = slot_pin_common(p), passed = {SLOT_PIN_NO_STEP, -1, 0, 0};
    memset(to, 0, sizeof *to); /* it may be compared as it lies there */
    to->ready = true;
    to->begun = SLOT_PIN_NO_STEP;
    for (unsigned i = 0; i < p->n; i++) {
        const struct slot_pin_worker *w = &p->w[i];
        struct slot_pin_step gone = w->like == i ? slot_pin_passed_by(p, i) : passed;
        passed = gone.era > passed.era || (gone.era == passed.era && gone.step > passed.step) ? gone : passed;
        to->begun = w->passed.step > to->begun ? w->passed.step : to->begun;
        to->ready = to->ready && (!w->comes || is_ready(w, common));
        for (unsigned s = 0; s < SLOT_PIN_SLOTS; s++) {
            const struct slot_pin_slot *x = &w->slot[s];
            bool counts = (x->at == SLOT_PIN_HELD || x->at == SLOT_PIN_WORK) && x->of.era >= 0 &&
                          !slot_pin_is_later(common, x->of);
            enum slot_pin_state state = counts ? slot_pin_state(p, x->of) : SLOT_PIN_HOPELESS;
            if (state == SLOT_PIN_WHOLE)
                slot_pin_add(x->of, to->is_whole, &to->whole);
            else if (state == SLOT_PIN_COMING)
                slot_pin_add(x->of, to->is_coming, &to->coming);
            bool now = x->at != SLOT_PIN_EMPTY && x->of.era >= 0;
            to->begun = now && x->of.step > to->begun ? x->of.step : to->begun;
        }
    }
    to->era = passed.era;
    to->passed = passed.step;
}
