#include "coord/lastwords.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "control/limits.h"
#include "util/scan.h"
#include "util/snip.h"

struct lastwords_seat {
    bool gone, lost; /* none of its workers is left; nor is the node */
    bool spoken, ends, busy, elsewhere, copied;
    uint64_t serial, bytes;
    int64_t limit, step;
    unsigned copies, n;
    struct lastwords_step at[LASTWORDS_STEPS_MAX];
};

int lastwords_init(struct lastwords *w, const struct lastwords_conf *conf, struct el_mem *mem)
{
    *w = (struct lastwords){.conf = *conf};
    w->seat = el_alloc(mem, conf->room * sizeof *w->seat);
    lastwords_round(w, 0);
    return w->seat ? 0 : -1;
}

void lastwords_free(struct lastwords *w, struct el_mem *mem)
{
    el_free(mem, w->seat);
    w->seat = NULL;
}

void lastwords_round(struct lastwords *w, unsigned seats)
{
    assert(seats <= w->conf.room);
    w->state = LASTWORDS_RESTING;
    w->seats = seats;
    if (seats)
        memset(w->seat, 0, seats * sizeof *w->seat);
    w->limit = w->step = w->instead = w->kept = w->why_step = LASTWORDS_NO_STEP;
    w->below = INT64_MAX;
    w->agree_until = w->until = w->look_at = EL_NEVER;
    w->began = w->ended = 0;
    w->told = true;
    w->news = false;
    w->why[0] = 0;
}

/* --- what is held, or could be --- */

static enum lastwords_level level_at(const struct lastwords_seat *s, int64_t step)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->at[i].step == step)
            return (s->ends || s->gone) && s->at[i].level < LASTWORDS_HAS ? LASTWORDS_NO : s->at[i].level;
    return LASTWORDS_NO;
}

/* The nodes that are there go back to it from their own slots; whose script shares it needs none, if anybody has it.
 * One that was lost may come back with an older step, which the others would have given away by then: that matters
 * where somebody needs a step of his own. */
static enum lastwords_level in_memory(const struct lastwords *w, int64_t step)
{
    enum lastwords_level least = LASTWORDS_HAS, best = LASTWORDS_NO;
    bool any = false, lost = false;
    for (unsigned k = 0; k < w->seats; k++) {
        const struct lastwords_seat *s = &w->seat[k];
        lost |= s->lost;
        if (s->lost || (w->conf.leaves && w->conf.leaves(w->conf.ctx, k)))
            continue;
        enum lastwords_level one = level_at(s, step);
        best = one > best ? one : best;
        if (s->spoken && s->elsewhere)
            continue;
        any = true;
        least = one < least ? one : least;
    }
    least = any ? least : best;
    return any && lost && least < LASTWORDS_HAS ? LASTWORDS_NO : least;
}

static enum lastwords_level level(const struct lastwords *w, int64_t step)
{
    enum lastwords_level memory = in_memory(w, step);
    enum lastwords_level disk = w->conf.disk ? w->conf.disk(w->conf.ctx, step) : LASTWORDS_NO;
    return memory > disk ? memory : disk;
}

static int64_t next_below(const struct lastwords *w, int64_t below)
{
    int64_t best = LASTWORDS_NO_STEP;
    for (unsigned k = 0; k < w->seats; k++)
        for (unsigned i = 0; i < w->seat[k].n; i++)
            if (w->seat[k].at[i].step < below && w->seat[k].at[i].step > best)
                best = w->seat[k].at[i].step;
    return best;
}

static int64_t newest_held(const struct lastwords *w, enum lastwords_level (*of)(const struct lastwords *, int64_t))
{
    int64_t step = next_below(w, INT64_MAX);
    while (step != LASTWORDS_NO_STEP && of(w, step) != LASTWORDS_HAS)
        step = next_below(w, step);
    return step;
}

/* The disk may yet fail: a step that needs none is not given away for one that does. */
static void look_held(struct lastwords *w)
{
    w->instead = newest_held(w, level);
    w->kept = newest_held(w, in_memory);
    w->kept = w->kept == LASTWORDS_NO_STEP ? w->instead : w->kept;
}

/* --- what is heard --- */

static const char *name_of(const struct lastwords *w, unsigned k)
{
    return w->conf.name ? w->conf.name(w->conf.ctx, k) : "a node";
}

static void begin(struct lastwords *w, el_usec now)
{
    el_usec agree = w->conf.limit < LASTWORDS_AGREE ? w->conf.limit : LASTWORDS_AGREE;
    w->state = LASTWORDS_AGREEING;
    w->began = now;
    w->agree_until = now + agree;
    w->until = now + w->conf.limit;
    w->look_at = now;
    w->told = false;
}

static void end(struct lastwords *w, el_usec now)
{
    w->state = LASTWORDS_IS_OVER;
    w->agree_until = w->until = w->look_at = EL_NEVER;
    w->ended = now;
    w->told = false;
}

void lastwords_gone(struct lastwords *w, unsigned seat, bool lost)
{
    if (seat >= w->seats)
        return;
    w->seat[seat].gone = true;
    w->seat[seat].lost |= lost;
    w->news = true;
}

void lastwords_take(struct lastwords *w, unsigned k, const struct lastwords_stand *s, el_usec now)
{
    assert(s->n <= LASTWORDS_STEPS_MAX);
    if (k >= w->seats || w->seat[k].lost || s->serial < w->seat[k].serial)
        return;
    struct lastwords_seat *to = &w->seat[k];
    *to = (struct lastwords_seat){.gone = to->gone,
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
        el_snip(w->why, sizeof w->why, "%.64s: %s", name_of(w, k), s->why);
    }
    if (w->state == LASTWORDS_RESTING && !s->ends && !to->gone)
        begin(w, now);
    if (w->state == LASTWORDS_AGREEING && !s->ends && s->limit > w->limit) {
        w->limit = s->limit;
        w->told = false;
    }
}

/* --- which step --- */

/* Somebody has not spoken, or is about to hold another step, or may yet follow those that were in a later one. */
static bool is_waited_for(const struct lastwords_seat *s, int64_t limit)
{
    return !s->gone && (!s->spoken || s->busy || (!s->ends && s->limit < limit));
}

static bool waits(const struct lastwords *w, el_usec now)
{
    for (unsigned k = 0; k < w->seats && now < w->agree_until; k++)
        if (is_waited_for(&w->seat[k], w->limit))
            return true;
    return false;
}

/* Who has nothing of the newest step, unless a node has said so itself. */
static void explain(struct lastwords *w, int64_t step)
{
    unsigned k = 0;
    if (*w->why && w->why_step >= step)
        return;
    while (k < w->seats && !w->seat[k].lost && level_at(&w->seat[k], step) >= LASTWORDS_CAN)
        k++;
    if (k == w->seats)
        return;
    const struct lastwords_seat *s = &w->seat[k];
    w->why_step = step;
    snprintf(w->why, sizeof w->why, "step %lld cannot be had by all: %.64s %s", (long long)step, name_of(w, k),
             s->lost                  ? "was lost"
             : !s->spoken && !s->gone ? "did not answer"
             : s->ends || s->gone     ? "has no live worker that could be asked"
                                      : "stands elsewhere");
}

static bool agree(struct lastwords *w, el_usec now)
{
    if (waits(w, now))
        return false;
    look_held(w);
    for (int64_t step = next_below(w, w->below); step > w->instead; step = next_below(w, step)) {
        enum lastwords_level found = level(w, step);
        if (found >= LASTWORDS_CAN) {
            w->step = step;
            w->state = LASTWORDS_COPYING;
            w->told = false;
            return true;
        }
        if (found == LASTWORDS_MAY && now < w->agree_until)
            return false;
        explain(w, step);
    }
    end(w, now); /* nothing is better than what is held */
    return true;
}

/* All have done what they could. */
static bool is_done(const struct lastwords *w)
{
    for (unsigned k = 0; k < w->seats; k++) {
        const struct lastwords_seat *s = &w->seat[k];
        if (!s->gone && s->spoken && !s->ends && (s->step != w->step || !s->copied))
            return false;
    }
    return true;
}

static bool copy(struct lastwords *w, el_usec now)
{
    enum lastwords_level found = level(w, w->step);
    bool done = is_done(w);
    if (found == LASTWORDS_HAS && done) {
        w->why[0] = 0;
        end(w, now);
        return true;
    }
    if (found != LASTWORDS_NO && !done)
        return false;
    w->below = w->step; /* an older one, perhaps */
    w->step = LASTWORDS_NO_STEP;
    w->state = LASTWORDS_AGREEING;
    return true;
}

void lastwords_give_up(struct lastwords *w, const char *why, el_usec now)
{
    if (w->state != LASTWORDS_AGREEING && w->state != LASTWORDS_COPYING)
        return;
    w->step = LASTWORDS_NO_STEP;
    look_held(w);
    snprintf(w->why, sizeof w->why, "%s", why);
    end(w, now);
}

/* What all nodes have is looked at for every node's word only while they are few. */
static bool is_due(struct lastwords *w, el_usec now)
{
    bool under_way = w->state == LASTWORDS_AGREEING || w->state == LASTWORDS_COPYING;
    bool late = w->state == LASTWORDS_AGREEING && w->agree_until <= now;
    if (!under_way || (!late && (!w->news || now < w->look_at)))
        return false;
    w->news = false;
    w->look_at = now + LASTWORDS_LOOK * (w->seats / 64);
    return true;
}

bool lastwords_advance(struct lastwords *w, el_usec now)
{
    for (bool more = is_due(w, now); more;)
        more = w->state == LASTWORDS_AGREEING ? agree(w, now) : w->state == LASTWORDS_COPYING ? copy(w, now) : false;
    if (w->until <= now) {
        char why[LASTWORDS_TEXT_MAX];
        memcpy(why, w->why, sizeof why);
        if (w->step != LASTWORDS_NO_STEP)
            snprintf(why, sizeof why, "step %lld was not copied in time (--lastwords-timeout)", (long long)w->step);
        lastwords_give_up(w, why, now);
    }
    bool news = !w->told;
    w->told = true;
    return news;
}

el_usec lastwords_deadline(const struct lastwords *w)
{
    el_usec first = w->state == LASTWORDS_AGREEING && w->agree_until < w->until ? w->agree_until : w->until;
    return w->news && w->look_at < first ? w->look_at : first;
}

el_usec lastwords_until(const struct lastwords *w)
{
    return w->until;
}

bool lastwords_word(const struct lastwords *w, unsigned k, struct lastwords_word *out)
{
    if (k >= w->seats || w->state == LASTWORDS_RESTING || w->seat[k].gone)
        return false;
    const struct lastwords_seat *s = &w->seat[k];
    *out = (struct lastwords_word){
        .what = LASTWORDS_FREEZE, .heard = s->serial, .limit = w->limit, .step = w->step, .kept = w->kept};
    if (s->spoken && s->ends)
        return false;
    if (w->state == LASTWORDS_IS_OVER) {
        out->what = LASTWORDS_OVER;
        return s->spoken; /* else it does not hold back, and need not */
    }
    if (w->state == LASTWORDS_AGREEING)
        return !s->spoken || s->limit < w->limit;
    out->what = LASTWORDS_COPY;
    return !s->spoken || s->step != w->step;
}

struct lastwords_end lastwords_end(const struct lastwords *w)
{
    struct lastwords_end e = {.step = w->step, .instead = w->instead, .took = w->ended - w->began, .why = w->why};
    for (unsigned k = 0; k < w->seats && w->step != LASTWORDS_NO_STEP; k++) {
        const struct lastwords_seat *s = &w->seat[k];
        e.lost += s->lost;
        if (s->lost || !s->spoken || s->step != w->step)
            continue;
        e.copies += s->copies;
        e.bytes += s->bytes;
        e.nodes += s->copies != 0;
    }
    return e;
}

void lastwords_check(const struct lastwords *w)
{
    bool under_way = w->state == LASTWORDS_AGREEING || w->state == LASTWORDS_COPYING;
    assert(under_way == (w->until != EL_NEVER));
    assert(w->state != LASTWORDS_COPYING || (w->step > w->instead && w->step < w->below));
    assert(w->state != LASTWORDS_AGREEING || w->step == LASTWORDS_NO_STEP);
    assert(w->state != LASTWORDS_IS_OVER || w->step == LASTWORDS_NO_STEP || w->step > w->instead);
}

/* --- lists --- */

char lastwords_letter(enum lastwords_level of)
{
    return "nmch"[of];
}

enum lastwords_level lastwords_level_of(char letter)
{
    return letter == 'h' ? LASTWORDS_HAS : letter == 'c' ? LASTWORDS_CAN : letter == 'm' ? LASTWORDS_MAY : LASTWORDS_NO;
}

void lastwords_list_get(struct lastwords_stand *s, const char *list)
{
    uint64_t step;
    s->n = 0;
    for (scan_blanks(&list); s->n < LASTWORDS_STEPS_MAX && scan_u64(&list, &step) && *list == ':'; scan_blanks(&list)) {
        char letter = *++list;
        if (step <= MSG_STEP_MAX && (!s->n || (int64_t)step < s->at[s->n - 1].step))
            s->at[s->n++] = (struct lastwords_step){(int64_t)step, lastwords_level_of(letter)};
        while (*list && *list != ' ')
            list++;
    }
}
