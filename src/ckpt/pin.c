#include "ckpt/pin.h"

static bool same(struct pin_step a, struct pin_step b)
{
    return a.step == b.step && a.lineage == b.lineage;
}

/* How often its workers had gone back when they trained this; -1: none of them has. */
static int64_t era(const struct pin *p, uint64_t lineage)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct pin_worker *w = &p->w[i];
        if (w->lineage == lineage)
            return w->backs;
        for (unsigned k = 0; k < PIN_PAST && lineage; k++)
            if (w->past[k] == lineage)
                return (int64_t)w->backs - 1 - k;
    }
    return -1;
}

enum has { HAS_IT, MAY_HAVE_IT, NEVER };

static enum has has(const struct pin *p, const struct pin_worker *w, struct pin_step of)
{
    bool works = false;
    for (unsigned s = 0; s < PIN_SLOTS; s++) {
        const struct pin_slot *x = &w->slot[s];
        if (x->at == PIN_HELD && same(x->of, of))
            return HAS_IT;
        works |= x->at == PIN_WORK && same(x->of, of);
    }
    bool comes = w->comes && (w->lineage == of.lineage ? of.step > w->passed : era(p, of.lineage) > w->backs);
    return works || comes ? MAY_HAVE_IT : NEVER;
}

/* The best of those that have declared the same. */
static enum has like_has(const struct pin *p, unsigned worker, struct pin_step of)
{
    enum has best = NEVER;
    for (unsigned i = 0; i < p->n && best != HAS_IT; i++)
        if (p->w[i].like == p->w[worker].like) {
            enum has one = has(p, &p->w[i], of);
            best = one < best ? one : best;
        }
    return best;
}

enum pin_state pin_state(const struct pin *p, struct pin_step of)
{
    enum has worst = HAS_IT;
    for (unsigned i = 0; i < p->n; i++)
        if (p->w[i].like == i) {
            enum has one = like_has(p, i, of);
            worst = one > worst ? one : worst;
        }
    return worst == HAS_IT ? PIN_WHOLE : worst == MAY_HAVE_IT ? PIN_COMING : PIN_HOPELESS;
}

/* --- which was trained later --- */

static bool is_later(const struct pin *p, struct pin_step a, struct pin_step b)
{
    if (b.step == PIN_NO_STEP || a.step == PIN_NO_STEP)
        return a.step != PIN_NO_STEP;
    int64_t of_a = a.lineage == b.lineage ? 0 : era(p, a.lineage),
            of_b = a.lineage == b.lineage ? 0 : era(p, b.lineage);
    return of_a != of_b ? of_a > of_b : a.step > b.step;
}

struct pin_step pin_common(const struct pin *p)
{
    struct pin_step best = {PIN_NO_STEP, 0};
    if (p->several)
        return p->common;
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned s = 0; s < PIN_SLOTS; s++) {
            const struct pin_slot *x = &p->w[i].slot[s];
            if (x->at == PIN_HELD && is_later(p, x->of, best) && pin_state(p, x->of) == PIN_WHOLE)
                best = x->of;
        }
    return best;
}

/* --- slots --- */

/* A step that is taken twice lies there twice: the later one counts. */
static bool is_twice(const struct pin_worker *w, unsigned slot)
{
    for (unsigned s = 0; s < PIN_SLOTS; s++)
        if (w->slot[s].at == PIN_HELD && same(w->slot[s].of, w->slot[slot].of) && w->slot[s].gen > w->slot[slot].gen)
            return true;
    return false;
}

static bool is_kept(const struct pin *p, const struct pin_worker *w, unsigned slot, struct pin_step common)
{
    const struct pin_slot *x = &w->slot[slot];
    if (x->at != PIN_HELD || is_twice(w, slot))
        return false;
    if (same(x->of, common))
        return true;
    if (!is_later(p, x->of, common))
        return false;
    enum pin_state state = pin_state(p, x->of);
    return state == PIN_COMING || (state == PIN_WHOLE && p->several);
}

/* Of several the one that was begun first. */
static int slot_beside(const struct pin *p, const struct pin_worker *w, struct pin_step common)
{
    int best = -1;
    for (unsigned s = 0; s < PIN_SLOTS; s++) {
        const struct pin_slot *x = &w->slot[s];
        if (x->read || x->at == PIN_WORK || is_kept(p, w, s, common))
            continue;
        if (best < 0 || (x->at != PIN_HELD) > (w->slot[best].at != PIN_HELD) ||
            ((x->at != PIN_HELD) == (w->slot[best].at != PIN_HELD) && x->gen < w->slot[best].gen))
            best = (int)s;
    }
    return best;
}

int pin_slot(const struct pin *p, unsigned worker)
{
    return slot_beside(p, &p->w[worker], pin_common(p));
}

/* One of those that have declared the same has it, is at it, or could take it now. */
static bool could_take(const struct pin *p, unsigned worker, struct pin_step of, struct pin_step common)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct pin_worker *w = &p->w[i];
        if (w->like != p->w[worker].like)
            continue;
        enum has one = has(p, w, of);
        for (unsigned s = 0; s < PIN_SLOTS && one != HAS_IT; s++)
            one = w->slot[s].at == PIN_WORK && same(w->slot[s].of, of) ? HAS_IT : one;
        if (one == HAS_IT || (one == MAY_HAVE_IT && slot_beside(p, w, common) >= 0))
            return true;
    }
    return false;
}

bool pin_may_begin(const struct pin *p, unsigned worker, int64_t step)
{
    const struct pin_step of = {step, p->w[worker].lineage}, common = pin_common(p);
    if (p->several && step < p->from)
        return false;
    for (unsigned i = 0; i < p->n; i++)
        if (p->w[i].like == i && i != p->w[worker].like && !could_take(p, i, of, common))
            return false;
    return true;
}

/* --- for the coordinator --- */

static void add(const struct pin *p, struct pin_step of, struct pin_step *to, unsigned *n)
{
    unsigned at = 0;
    while (at < *n && is_later(p, to[at], of))
        at++;
    if ((at < *n && same(to[at], of)) || at == PIN_TOLD)
        return;
    *n += *n < PIN_TOLD;
    for (unsigned i = *n - 1; i > at; i--)
        to[i] = to[i - 1];
    to[at] = of;
}

/* Who has declared the same passes a step together: the one that is behind may have it for all. */
static int64_t passed(const struct pin *p, unsigned like)
{
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < p->n; i++)
        if (p->w[i].like == like && p->w[i].comes && p->w[i].passed < least)
            least = p->w[i].passed;
    return least;
}

static bool is_ready(const struct pin_worker *w, struct pin_step common)
{
    for (unsigned s = 0; s < PIN_SLOTS; s++)
        if (w->slot[s].at == PIN_WORK)
            return false;
    for (unsigned s = 0; s < PIN_SLOTS; s++) {
        bool is_common = w->slot[s].at == PIN_HELD && same(w->slot[s].of, common);
        if (!w->slot[s].read && !is_common)
            return true;
    }
    return false;
}

void pin_tell(const struct pin *p, struct pin_told *to)
{
    struct pin_step common = pin_common(p);
    *to = (struct pin_told){.ready = true, .passed = PIN_NO_STEP, .lineage = p->w[0].lineage};
    for (unsigned i = 0; i < p->n; i++) {
        const struct pin_worker *w = &p->w[i];
        int64_t gone = w->like == i ? passed(p, i) : PIN_NO_STEP;
        to->passed = gone > to->passed ? gone : to->passed;
        to->lineage = w->lineage == to->lineage ? to->lineage : 0;
        to->ready = to->ready && (!w->comes || is_ready(w, common));
        for (unsigned s = 0; s < PIN_SLOTS; s++) {
            const struct pin_slot *x = &w->slot[s];
            bool counts = x->at == PIN_HELD || x->at == PIN_WORK;
            if (!counts || is_later(p, common, x->of))
                continue;
            enum pin_state state = pin_state(p, x->of);
            if (state == PIN_WHOLE)
                add(p, x->of, to->is_whole, &to->whole);
            else if (state == PIN_COMING)
                add(p, x->of, to->is_coming, &to->coming);
        }
    }
}
