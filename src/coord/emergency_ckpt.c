#include "coord/emergency_ckpt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "control/limits.h"
#include "util/scan.h"
#include "util/snip.h"

struct emergency_ckpt_seat {
    bool gone, lost; /* none of its workers is left; nor is the node */
    bool spoken, ends, busy, elsewhere, copied;
    uint64_t serial, bytes;
    int64_t limit, step;
    unsigned copies, n;
    struct emergency_ckpt_step at[EMERGENCY_CKPT_STEPS_MAX];
};

int emergency_ckpt_init(struct emergency_ckpt *w, const struct emergency_ckpt_conf *conf, struct el_mem *mem)
{
    *w = (struct emergency_ckpt){.conf = *conf};
    w->seat = el_alloc(mem, conf->room * sizeof *w->seat);
    emergency_ckpt_round(w, 0);
    return w->seat ? 0 : -1;
}

void emergency_ckpt_free(struct emergency_ckpt *w, struct el_mem *mem)
{
    el_free(mem, w->seat);
    w->seat = NULL;
}

void emergency_ckpt_round(struct emergency_ckpt *w, unsigned seats)
{
    assert(seats <= w->conf.room);
    w->state = EMERGENCY_CKPT_RESTING;
    w->seats = seats;
    if (seats)
        memset(w->seat, 0, seats * sizeof *w->seat);
    w->limit = w->step = w->instead = w->kept = w->why_step = EMERGENCY_CKPT_NO_STEP;
    w->below = INT64_MAX;
    w->agree_until = w->until = w->look_at = EL_NEVER;
    w->began = w->ended = 0;
    w->told = true;
    w->news = false;
    w->why[0] = 0;
}

/* --- what is held, or could be --- */

static enum emergency_ckpt_level level_at(const struct emergency_ckpt_seat *s, int64_t step)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->at[i].step == step)
            return (s->ends || s->gone) && s->at[i].level < EMERGENCY_CKPT_HAS ? EMERGENCY_CKPT_NO : s->at[i].level;
    return EMERGENCY_CKPT_NO;
}

/* The nodes that are there go back to it from their own slots; whose script shares it needs none, if anybody has it.
 * One that was lost may come back with an older step, which the others would have given away by then: that matters
 * where somebody needs a step of his own. */
static enum emergency_ckpt_level in_memory(const struct emergency_ckpt *w, int64_t step)
{
    enum emergency_ckpt_level least = EMERGENCY_CKPT_HAS, best = EMERGENCY_CKPT_NO;
    bool any = false, lost = false;
    for (unsigned k = 0; k < w->seats; k++) {
        const struct emergency_ckpt_seat *s = &w->seat[k];
        lost |= s->lost;
        if (s->lost || (w->conf.leaves && w->conf.leaves(w->conf.ctx, k)))
            continue;
        enum emergency_ckpt_level one = level_at(s, step);
        best = one > best ? one : best;
        if (s->spoken && s->elsewhere)
            continue;
        any = true;
        least = one < least ? one : least;
    }
    least = any ? least : best;
    return any && lost && least < EMERGENCY_CKPT_HAS ? EMERGENCY_CKPT_NO : least;
}

static enum emergency_ckpt_level level(const struct emergency_ckpt *w, int64_t step)
{
    enum emergency_ckpt_level memory = in_memory(w, step);
    enum emergency_ckpt_level disk = w->conf.disk ? w->conf.disk(w->conf.ctx, step) : EMERGENCY_CKPT_NO;
    return memory > disk ? memory : disk;
}

static int64_t next_below(const struct emergency_ckpt *w, int64_t below)
{
    int64_t best = EMERGENCY_CKPT_NO_STEP;
    for (unsigned k = 0; k < w->seats; k++)
        for (unsigned i = 0; i < w->seat[k].n; i++)
            if (w->seat[k].at[i].step < below && w->seat[k].at[i].step > best)
                best = w->seat[k].at[i].step;
    return best;
}

static int64_t emergency_ckpt_newest_held(const struct emergency_ckpt *w,
                                          enum emergency_ckpt_level (*of)(const struct emergency_ckpt *, int64_t))
{
    int64_t step = next_below(w, INT64_MAX);
    while (step != EMERGENCY_CKPT_NO_STEP && of(w, step) != EMERGENCY_CKPT_HAS)
        step = next_below(w, step);
    return step;
}

/* The disk may yet fail: a step that needs none is not given away for one that does. */
static void look_held(struct emergency_ckpt *w)
{
    w->instead = emergency_ckpt_newest_held(w, level);
    w->kept = emergency_ckpt_newest_held(w, in_memory);
    w->kept = w->kept == EMERGENCY_CKPT_NO_STEP ? w->instead : w->kept;
}

/* --- what is heard --- */

static const char *emergency_ckpt_name_of(const struct emergency_ckpt *w, unsigned k)
{
    return w->conf.name ? w->conf.name(w->conf.ctx, k) : "a node";
}

static void emergency_ckpt_begin(struct emergency_ckpt *w, el_usec now)
{
    el_usec agree = w->conf.limit < EMERGENCY_CKPT_AGREE ? w->conf.limit : EMERGENCY_CKPT_AGREE;
    w->state = EMERGENCY_CKPT_AGREEING;
    w->began = now;
    w->agree_until = now + agree;
    w->until = now + w->conf.limit;
    w->look_at = now;
    w->told = false;
}

static void emergency_ckpt_finish(struct emergency_ckpt *w, el_usec now)
{
    w->state = EMERGENCY_CKPT_IS_OVER;
    w->agree_until = w->until = w->look_at = EL_NEVER;
    w->ended = now;
    w->told = false;
}

void emergency_ckpt_gone(struct emergency_ckpt *w, unsigned seat, bool lost)
{
    if (seat >= w->seats)
        return;
    w->seat[seat].gone = true;
    w->seat[seat].lost |= lost;
    w->news = true;
}

void emergency_ckpt_take(struct emergency_ckpt *w, unsigned k, const struct emergency_ckpt_stand *s, el_usec now)
{
    assert(s->n <= EMERGENCY_CKPT_STEPS_MAX);
    if (k >= w->seats || w->seat[k].lost || s->serial < w->seat[k].serial)
        return;
    struct emergency_ckpt_seat *to = &w->seat[k];
    *to = (struct emergency_ckpt_seat){.gone = to->gone,
                                       .spoken = true,
                                       .ends = s->ends,
                                       .busy = s->busy && !s->ends,
                                       .elsewhere = s->elsewhere,
                                       .copied = s->copied,
                                       .serial = s->serial,
                                       .bytes = s->bytes,
                                       .limit = s->limit,
                                       .step = s->step,
                                       .copies = s->copies,
                                       .n = s->n};
    memcpy(to->at, s->at, s->n * sizeof s->at[0]);
    w->news = true;
    if (s->n && *s->why && s->at[0].step >= w->why_step) {
        w->why_step = s->at[0].step;
        el_snip(w->why, sizeof w->why, "%.64s: %s", emergency_ckpt_name_of(w, k), s->why);
    }
    if (w->state == EMERGENCY_CKPT_RESTING && !s->ends && !to->gone)
        emergency_ckpt_begin(w, now);
    if (w->state == EMERGENCY_CKPT_AGREEING && !s->ends && s->limit > w->limit) {
        w->limit = s->limit;
        w->told = false;
    }
}

/* --- which step --- */

/* Somebody has not spoken, or is about to hold another step, or may yet follow those that were in a later one. */
static bool is_waited_for(const struct emergency_ckpt_seat *s, int64_t limit)
{
    return !s->gone && (!s->spoken || s->busy || (!s->ends && s->limit < limit));
}

static bool waits(const struct emergency_ckpt *w, el_usec now)
{
    for (unsigned k = 0; k < w->seats && now < w->agree_until; k++)
        if (is_waited_for(&w->seat[k], w->limit))
            return true;
    return false;
}

/* Who has nothing of the newest step, unless a node has said so itself. */
static void emergency_ckpt_explain(struct emergency_ckpt *w, int64_t step)
{
    unsigned k = 0;
    if (*w->why && w->why_step >= step)
        return;
    while (k < w->seats && !w->seat[k].lost && level_at(&w->seat[k], step) >= EMERGENCY_CKPT_CAN)
        k++;
    if (k == w->seats)
        return;
    const struct emergency_ckpt_seat *s = &w->seat[k];
    w->why_step = step;
    snprintf(w->why, sizeof w->why, "step %lld cannot be had by all: %.64s %s", (long long)step,
             emergency_ckpt_name_of(w, k),
             s->lost                  ? "was lost"
             : !s->spoken && !s->gone ? "did not answer"
             : s->ends || s->gone     ? "has no live worker that could be asked"
                                      : "stands elsewhere");
}

static bool emergency_ckpt_agree(struct emergency_ckpt *w, el_usec now)
{
    if (waits(w, now))
        return false;
    look_held(w);
    for (int64_t step = next_below(w, w->below); step > w->instead; step = next_below(w, step)) {
        enum emergency_ckpt_level found = level(w, step);
        if (found >= EMERGENCY_CKPT_CAN) {
            w->step = step;
            w->state = EMERGENCY_CKPT_COPYING;
            w->told = false;
            return true;
        }
        if (found == EMERGENCY_CKPT_MAY && now < w->agree_until)
            return false;
        emergency_ckpt_explain(w, step);
    }
    emergency_ckpt_finish(w, now); /* nothing is better than what is held */
    return true;
}

/* All have done what they could. */
static bool emergency_ckpt_is_done(const struct emergency_ckpt *w)
{
    for (unsigned k = 0; k < w->seats; k++) {
        const struct emergency_ckpt_seat *s = &w->seat[k];
        if (!s->gone && s->spoken && !s->ends && (s->step != w->step || !s->copied))
            return false;
    }
    return true;
}

static bool emergency_ckpt_copy(struct emergency_ckpt *w, el_usec now)
{
    enum emergency_ckpt_level found = level(w, w->step);
    bool done = emergency_ckpt_is_done(w);
    if (found == EMERGENCY_CKPT_HAS && done) {
        w->why[0] = 0;
        emergency_ckpt_finish(w, now);
        return true;
    }
    if (found != EMERGENCY_CKPT_NO && !done)
        return false;
    w->below = w->step; /* an older one, perhaps */
    w->step = EMERGENCY_CKPT_NO_STEP;
    w->state = EMERGENCY_CKPT_AGREEING;
    return true;
}

void emergency_ckpt_give_up(struct emergency_ckpt *w, const char *why, el_usec now)
{
    if (w->state != EMERGENCY_CKPT_AGREEING && w->state != EMERGENCY_CKPT_COPYING)
        return;
    w->step = EMERGENCY_CKPT_NO_STEP;
    look_held(w);
    snprintf(w->why, sizeof w->why, "%s", why);
    emergency_ckpt_finish(w, now);
}

/* What all nodes have is looked at for every node's word only while they are few. */
static bool emergency_ckpt_is_due(struct emergency_ckpt *w, el_usec now)
{
    bool under_way = w->state == EMERGENCY_CKPT_AGREEING || w->state == EMERGENCY_CKPT_COPYING;
    bool late = w->state == EMERGENCY_CKPT_AGREEING && w->agree_until <= now;
    if (!under_way || (!late && (!w->news || now < w->look_at)))
        return false;
    w->news = false;
    w->look_at = now + EMERGENCY_CKPT_LOOK * (w->seats / 64);
    return true;
}

bool emergency_ckpt_advance(struct emergency_ckpt *w, el_usec now)
{
    for (bool more = emergency_ckpt_is_due(w, now); more;)
        more = w->state == EMERGENCY_CKPT_AGREEING  ? emergency_ckpt_agree(w, now)
               : w->state == EMERGENCY_CKPT_COPYING ? emergency_ckpt_copy(w, now)
                                                    : false;
    if (w->until <= now) {
        char why[EMERGENCY_CKPT_TEXT_MAX];
        memcpy(why, w->why, sizeof why);
        if (w->step != EMERGENCY_CKPT_NO_STEP)
            snprintf(why, sizeof why, "step %lld was not copied in time (--emergency-timeout)", (long long)w->step);
        emergency_ckpt_give_up(w, why, now);
    }
    bool news = !w->told;
    w->told = true;
    return news;
}

el_usec emergency_ckpt_deadline(const struct emergency_ckpt *w)
{
    el_usec first = w->state == EMERGENCY_CKPT_AGREEING && w->agree_until < w->until ? w->agree_until : w->until;
    return w->news && w->look_at < first ? w->look_at : first;
}

el_usec emergency_ckpt_until(const struct emergency_ckpt *w)
{
    return w->until;
}

bool emergency_ckpt_word(const struct emergency_ckpt *w, unsigned k, struct emergency_ckpt_word *out)
{
    if (k >= w->seats || w->state == EMERGENCY_CKPT_RESTING || w->seat[k].gone)
        return false;
    const struct emergency_ckpt_seat *s = &w->seat[k];
    *out = (struct emergency_ckpt_word){
        .what = EMERGENCY_CKPT_FREEZE, .heard = s->serial, .limit = w->limit, .step = w->step, .kept = w->kept};
    if (s->spoken && s->ends)
        return false;
    if (w->state == EMERGENCY_CKPT_IS_OVER) {
        out->what = EMERGENCY_CKPT_OVER;
        return s->spoken; /* else it does not hold back, and need not */
    }
    if (w->state == EMERGENCY_CKPT_AGREEING)
        return !s->spoken || s->limit < w->limit;
    out->what = EMERGENCY_CKPT_COPY;
    return !s->spoken || s->step != w->step;
}

struct emergency_ckpt_end emergency_ckpt_end(const struct emergency_ckpt *w)
{
    struct emergency_ckpt_end e = {.step = w->step, .instead = w->instead, .took = w->ended - w->began, .why = w->why};
    for (unsigned k = 0; k < w->seats && w->step != EMERGENCY_CKPT_NO_STEP; k++) {
        const struct emergency_ckpt_seat *s = &w->seat[k];
        e.lost += s->lost;
        if (s->lost || !s->spoken || s->step != w->step)
            continue;
        e.copies += s->copies;
        e.bytes += s->bytes;
        e.nodes += s->copies != 0;
    }
    return e;
}

void emergency_ckpt_check(const struct emergency_ckpt *w)
{
    bool under_way = w->state == EMERGENCY_CKPT_AGREEING || w->state == EMERGENCY_CKPT_COPYING;
    assert(under_way == (w->until != EL_NEVER));
    assert(w->state != EMERGENCY_CKPT_COPYING || (w->step > w->instead && w->step < w->below));
    assert(w->state != EMERGENCY_CKPT_AGREEING || w->step == EMERGENCY_CKPT_NO_STEP);
    assert(w->state != EMERGENCY_CKPT_IS_OVER || w->step == EMERGENCY_CKPT_NO_STEP || w->step > w->instead);
}

/* --- lists --- */

char emergency_ckpt_letter(enum emergency_ckpt_level of)
{
    return "nmch"[of];
}

enum emergency_ckpt_level emergency_ckpt_level_of(char letter)
{
    return letter == 'h'   ? EMERGENCY_CKPT_HAS
           : letter == 'c' ? EMERGENCY_CKPT_CAN
           : letter == 'm' ? EMERGENCY_CKPT_MAY
                           : EMERGENCY_CKPT_NO;
}

void emergency_ckpt_list_get(struct emergency_ckpt_stand *s, const char *list)
{
    uint64_t step;
    s->n = 0;
    for (scan_blanks(&list); s->n < EMERGENCY_CKPT_STEPS_MAX && scan_u64(&list, &step) && *list == ':';
         scan_blanks(&list)) {
        char letter = *++list;
        if (step <= MSG_STEP_MAX && (!s->n || (int64_t)step < s->at[s->n - 1].step))
            s->at[s->n++] = (struct emergency_ckpt_step){(int64_t)step, emergency_ckpt_level_of(letter)};
        while (*list && *list != ' ')
            list++;
    }
}
