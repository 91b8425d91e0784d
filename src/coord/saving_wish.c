/* Which steps the nodes want on disk, and what became of those that were to be written. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coord/saving_private.h"
#include "util/scan.h"
#include "util/sort.h"

/* --- results --- */

uint64_t saving_results(const struct saving *s)
{
    return s->results;
}

const struct saving_result *saving_result(const struct saving *s, uint64_t serial)
{
    bool kept = serial && serial <= s->results && s->results - serial < SAVING_RESULTS_MAX;
    return kept ? &s->result[serial % SAVING_RESULTS_MAX] : NULL;
}

/* The newest first. */
static struct saving_result *result_before(const struct saving *s, const struct saving_result *x)
{
    uint64_t serial = x ? x->serial - 1 : s->results;
    return saving_result(s, serial) ? &s->result[serial % SAVING_RESULTS_MAX] : NULL;
}

const struct saving_result *saving_result_of(const struct saving *s, int64_t step, uint64_t lineage)
{
    const struct saving_result *x = result_before(s, NULL);
    while (x && (x->step != step || (lineage && x->lineage != lineage)))
        x = result_before(s, x);
    return x;
}

/* It is known what became of it, and that is how it stays. */
static bool is_settled(const struct saving *s, int64_t step, uint64_t lineage)
{
    const struct saving_result *x = saving_result_of(s, step, lineage);
    return x && !x->given_up && !x->forgiven;
}

const struct saving_result *saving_result_of_order(const struct saving *s, uint64_t order)
{
    const struct saving_result *x = result_before(s, NULL);
    while (x && x->order != order)
        x = result_before(s, x);
    return x;
}

bool saving_has_failed(const struct saving *s, int64_t step, uint64_t lineage)
{
    const struct saving_result *x = saving_result_of(s, step, lineage);
    return x && !x->good && is_settled(s, step, lineage);
}

void saving_forgive(struct saving *s)
{
    for (struct saving_result *x = result_before(s, NULL); x; x = result_before(s, x))
        x->forgiven |= !x->good;
}

/* targets: there is none. */
static unsigned find_target(const struct saving *s, int64_t step, uint64_t lineage)
{
    unsigned i = 0;
    while (i < s->targets && (s->target[i].step != step || s->target[i].lineage != lineage))
        i++;
    return i;
}

struct saving_result *saving_over(struct saving *s, int64_t step, uint64_t lineage, bool good, el_usec now)
{
    unsigned at = find_target(s, step, lineage);
    struct saving_result *x = &s->result[++s->results % SAVING_RESULTS_MAX];
    *x = (struct saving_result){.serial = s->results, .step = step, .lineage = lineage, .good = good, .at = now};
    if (at < s->targets)
        memmove(&s->target[at], &s->target[at + 1], (--s->targets - at) * sizeof s->target[0]);
    s->done = good && step > s->done ? step : s->done;
    s->tell = true;
    saving_ask_over(s, step, good);
    return x;
}

static void __attribute__((format(printf, 4, 5)))
deny(struct saving *s, struct saving_target t, el_usec now, const char *format, ...)
{
    struct saving_result *x = saving_over(s, t.step, t.lineage, false, now);
    va_list ap;
    va_start(ap, format);
    vsnprintf(x->text, sizeof x->text, format, ap);
    va_end(ap);
}

/* --- wishes --- */

static bool is_under_way(const struct saving *s, int64_t step, uint64_t lineage)
{
    return step == s->step && lineage == s->lineage && (s->phase != SAVING_RESTING || s->again == step);
}

static int by_step(const void *a, const void *b)
{
    const struct saving_target *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->lineage > y->lineage) - (x->lineage < y->lineage);
}

/* False: there is no room for it, and it waits. */
static bool aim(struct saving *s, int64_t step, uint64_t lineage, el_usec now)
{
    bool aimed = find_target(s, step, lineage) < s->targets;
    if (aimed || is_under_way(s, step, lineage) || is_settled(s, step, lineage))
        return true;
    if (s->targets == SAVING_TARGETS_MAX)
        return false;
    s->target[s->targets++] = (struct saving_target){step, lineage, now + SAVING_WORD, now + SAVING_STALL};
    el_sort(s->target, s->targets, sizeof s->target[0], by_step);
    s->tell = true;
    return true;
}

static bool was_taken(const struct saving_wish *wish, unsigned n, const struct saving_wish *w)
{
    for (unsigned i = 0; i < n; i++)
        if (wish[i].step == w->step && wish[i].lineage == w->lineage)
            return wish[i].taken;
    return false;
}

void saving_take_wishes(struct saving *s, struct saving_node *n, const char *wishes, el_usec now)
{
    struct saving_wish before[SAVING_WISHES_MAX];
    unsigned had = n->wishes;
    uint64_t step;
    memcpy(before, n->wish, sizeof before);
    n->wishes = 0;
    for (scan_blanks(&wishes); n->wishes < SAVING_WISHES_MAX && scan_u64(&wishes, &step) && step <= MSG_STEP_MAX;
         scan_blanks(&wishes)) {
        struct saving_wish *w = &n->wish[n->wishes];
        *w = (struct saving_wish){.step = (int64_t)step};
        if (*wishes == '@' && (wishes++, !scan_hex(&wishes, &w->lineage)))
            return;
        n->wishes++;
        w->taken = was_taken(before, had, w) || aim(s, w->step, w->lineage, now);
    }
}

void saving_forget_wishes(struct saving *s)
{
    for (unsigned i = 0; i < s->used; i++)
        s->node[i].wishes = 0;
    s->targets = 0;
}

/* One is over, so there is room for one that found none. */
static void aim_again(struct saving *s, el_usec now)
{
    for (unsigned i = 0; i < s->used; i++)
        for (unsigned k = 0; s->node[i].here && k < s->node[i].wishes; k++) {
            struct saving_wish *w = &s->node[i].wish[k];
            w->taken = w->taken || aim(s, w->step, w->lineage, now);
        }
}

const struct saving_late *saving_late(const struct saving *s)
{
    return &s->late;
}

/* It is said of the lowest that is due; most often all wait for the same rank. */
static void say_late(struct saving *s, struct saving_target *t, const char *text, el_usec now)
{
    s->late.serial++;
    s->late.step = t->step;
    snprintf(s->late.text, sizeof s->late.text, "%.300s", text);
    for (unsigned i = 0; i < s->targets; i++)
        s->target[i].word = s->target[i].word <= now ? EL_NEVER : s->target[i].word;
}

int64_t saving_covered_target(struct saving *s, bool all_quiet, el_usec now)
{
    char text[MSG_TEXT_MAX + 1];
    bool full = s->targets == SAVING_TARGETS_MAX;
    for (unsigned i = 0; i < s->targets;) {
        struct saving_target t = s->target[i];
        enum saving_cover cover = saving_cover_of(s, t.step, t.lineage, s->live, text, sizeof text);
        if (cover == SAVING_COVERED)
            return t.step;
        if (cover == SAVING_HOPELESS || (s->settling && all_quiet))
            deny(s, t, now, "%.470s", text);
        else if (t.until <= now)
            deny(s, t, now, "not every rank has committed it within %u s: %.300s", (unsigned)(SAVING_STALL / EL_SEC(1)),
                 text);
        else {
            if (t.word <= now)
                say_late(s, &s->target[i], text, now);
            i++;
        }
    }
    if (full)
        aim_again(s, now);
    return SAVING_NO_STEP;
}

void saving_deny_targets(struct saving *s, int64_t beyond, uint64_t lineage, const char *why, el_usec now)
{
    for (unsigned i = s->targets; i-- > 0;)
        if (s->target[i].step > beyond && (!lineage || s->target[i].lineage != lineage))
            deny(s, s->target[i], now, "%s", why);
}

const struct saving_wish *saving_wish_over(const struct saving *s, const struct saving_node *n)
{
    for (unsigned i = 0; n->here && i < n->wishes; i++) {
        const struct saving_wish *w = &n->wish[i];
        bool aimed = is_under_way(s, w->step, w->lineage) || find_target(s, w->step, w->lineage) < s->targets;
        if (w->taken && !aimed)
            return w;
    }
    return NULL;
}
