/* Which steps the nodes want on disk, and what became of those that were to be written. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coord/ckpt_commit_private.h"
#include "util/scan.h"
#include "util/sort.h"

/* --- results --- */

uint64_t ckpt_commit_results(const struct ckpt_commit *s)
{
    return s->results;
}

const struct ckpt_commit_result *ckpt_commit_result(const struct ckpt_commit *s, uint64_t serial)
{
    bool kept = serial && serial <= s->results && s->results - serial < CKPT_COMMIT_RESULTS_MAX;
    return kept ? &s->result[serial % CKPT_COMMIT_RESULTS_MAX] : NULL;
}

/* The newest first. */
static struct ckpt_commit_result *result_before(const struct ckpt_commit *s, const struct ckpt_commit_result *x)
{
    uint64_t serial = x ? x->serial - 1 : s->results;
    return ckpt_commit_result(s, serial) ? &s->result[serial % CKPT_COMMIT_RESULTS_MAX] : NULL;
}

const struct ckpt_commit_result *ckpt_commit_result_of(const struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    const struct ckpt_commit_result *x = result_before(s, NULL);
    while (x && (x->step != step || (lineage && x->lineage != lineage)))
        x = result_before(s, x);
    return x;
}

/* It is known what became of it, and that is how it stays. */
static bool is_settled(const struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    const struct ckpt_commit_result *x = ckpt_commit_result_of(s, step, lineage);
    return x && !x->given_up && !x->forgiven;
}

const struct ckpt_commit_result *ckpt_commit_result_of_order(const struct ckpt_commit *s, uint64_t order)
{
    const struct ckpt_commit_result *x = result_before(s, NULL);
    while (x && x->order != order)
        x = result_before(s, x);
    return x;
}

bool ckpt_commit_has_failed(const struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    const struct ckpt_commit_result *x = ckpt_commit_result_of(s, step, lineage);
    return x && !x->good && is_settled(s, step, lineage);
}

void ckpt_commit_forgive(struct ckpt_commit *s)
{
    for (struct ckpt_commit_result *x = result_before(s, NULL); x; x = result_before(s, x))
        x->forgiven |= !x->good;
}

/* targets: there is none. */
static unsigned find_target(const struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    unsigned i = 0;
    while (i < s->targets && (s->target[i].step != step || s->target[i].lineage != lineage))
        i++;
    return i;
}

struct ckpt_commit_result *ckpt_commit_over(struct ckpt_commit *s, int64_t step, uint64_t lineage, bool good,
                                            el_usec now)
{
    unsigned at = find_target(s, step, lineage);
    struct ckpt_commit_result *x = &s->result[++s->results % CKPT_COMMIT_RESULTS_MAX];
    *x = (struct ckpt_commit_result){.serial = s->results, .step = step, .lineage = lineage, .good = good, .at = now};
    if (at < s->targets)
        memmove(&s->target[at], &s->target[at + 1], (--s->targets - at) * sizeof s->target[0]);
    s->done = good && step > s->done ? step : s->done;
    s->tell = true;
    ckpt_commit_ask_over(s, step, good);
    return x;
}

static void __attribute__((format(printf, 4, 5)))
deny(struct ckpt_commit *s, struct ckpt_commit_target t, el_usec now, const char *format, ...)
{
    struct ckpt_commit_result *x = ckpt_commit_over(s, t.step, t.lineage, false, now);
    va_list ap;
    va_start(ap, format);
    vsnprintf(x->text, sizeof x->text, format, ap);
    va_end(ap);
}

/* --- wishes --- */

static bool is_under_way(const struct ckpt_commit *s, int64_t step, uint64_t lineage)
{
    return step == s->step && lineage == s->lineage && (s->phase != CKPT_COMMIT_RESTING || s->again == step);
}

static int ckpt_commit_promise_by_step(const void *a, const void *b)
{
    const struct ckpt_commit_target *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->lineage > y->lineage) - (x->lineage < y->lineage);
}

/* False: there is no room for it, and it waits. */
static bool aim(struct ckpt_commit *s, int64_t step, uint64_t lineage, el_usec now)
{
    bool aimed = find_target(s, step, lineage) < s->targets;
    if (aimed || is_under_way(s, step, lineage) || is_settled(s, step, lineage))
        return true;
    if (s->targets == CKPT_COMMIT_TARGETS_MAX)
        return false;
    s->target[s->targets++] =
        (struct ckpt_commit_target){step, lineage, now + CKPT_COMMIT_WORD, now + CKPT_COMMIT_STALL};
    el_sort(s->target, s->targets, sizeof s->target[0], ckpt_commit_promise_by_step);
    s->tell = true;
    return true;
}

static bool was_taken(const struct ckpt_commit_wish *wish, unsigned n, const struct ckpt_commit_wish *w)
{
    for (unsigned i = 0; i < n; i++)
        if (wish[i].step == w->step && wish[i].lineage == w->lineage)
            return wish[i].taken;
    return false;
}

void ckpt_commit_take_wishes(struct ckpt_commit *s, struct ckpt_commit_node *n, const char *wishes, el_usec now)
{
    struct ckpt_commit_wish before[CKPT_COMMIT_WISHES_MAX];
    unsigned had = n->wishes;
    uint64_t step;
    memcpy(before, n->wish, sizeof before);
    n->wishes = 0;
    for (scan_blanks(&wishes); n->wishes < CKPT_COMMIT_WISHES_MAX && scan_u64(&wishes, &step) && step <= MSG_STEP_MAX;
         scan_blanks(&wishes)) {
        struct ckpt_commit_wish *w = &n->wish[n->wishes];
        *w = (struct ckpt_commit_wish){.step = (int64_t)step};
        if (*wishes == '@' && (wishes++, !scan_hex(&wishes, &w->lineage)))
            return;
        n->wishes++;
        w->taken = was_taken(before, had, w) || aim(s, w->step, w->lineage, now);
    }
}

void ckpt_commit_forget_wishes(struct ckpt_commit *s)
{
    for (unsigned i = 0; i < s->used; i++)
        s->node[i].wishes = 0;
    s->targets = 0;
}

/* One is over, so there is room for one that found none. */
static void aim_again(struct ckpt_commit *s, el_usec now)
{
    for (unsigned i = 0; i < s->used; i++)
        for (unsigned k = 0; s->node[i].here && k < s->node[i].wishes; k++) {
            struct ckpt_commit_wish *w = &s->node[i].wish[k];
            w->taken = w->taken || aim(s, w->step, w->lineage, now);
        }
}

const struct ckpt_commit_late *ckpt_commit_late(const struct ckpt_commit *s)
{
    return &s->late;
}

/* It is said of the lowest that is due; most often all wait for the same rank. */
static void ckpt_commit_promise_say_late(struct ckpt_commit *s, struct ckpt_commit_target *t, const char *text,
                                         el_usec now)
{
    s->late.serial++;
    s->late.step = t->step;
    snprintf(s->late.text, sizeof s->late.text, "%.300s", text);
    for (unsigned i = 0; i < s->targets; i++)
        s->target[i].word = s->target[i].word <= now ? EL_NEVER : s->target[i].word;
}

int64_t ckpt_commit_covered_target(struct ckpt_commit *s, bool all_quiet, el_usec now)
{
    char text[MSG_TEXT_MAX + 1];
    bool full = s->targets == CKPT_COMMIT_TARGETS_MAX;
    for (unsigned i = 0; i < s->targets;) {
        struct ckpt_commit_target t = s->target[i];
        enum ckpt_commit_cover cover = ckpt_commit_cover_of(s, t.step, t.lineage, s->live, text, sizeof text);
        if (cover == CKPT_COMMIT_COVERED)
            return t.step;
        if (cover == CKPT_COMMIT_HOPELESS || (s->settling && all_quiet))
            deny(s, t, now, "%.470s", text);
        else if (t.until <= now)
            deny(s, t, now, "not every rank has committed it within %u s: %.300s",
                 (unsigned)(CKPT_COMMIT_STALL / EL_SEC(1)), text);
        else {
            if (t.word <= now)
                ckpt_commit_promise_say_late(s, &s->target[i], text, now);
            i++;
        }
    }
    if (full)
        aim_again(s, now);
    return CKPT_COMMIT_NO_STEP;
}

void ckpt_commit_deny_targets(struct ckpt_commit *s, int64_t beyond, uint64_t lineage, const char *why, el_usec now)
{
    for (unsigned i = s->targets; i-- > 0;)
        if (s->target[i].step > beyond && (!lineage || s->target[i].lineage != lineage))
            deny(s, s->target[i], now, "%s", why);
}

const struct ckpt_commit_wish *ckpt_commit_wish_over(const struct ckpt_commit *s, const struct ckpt_commit_node *n)
{
    for (unsigned i = 0; n->here && i < n->wishes; i++) {
        const struct ckpt_commit_wish *w = &n->wish[i];
        bool aimed = is_under_way(s, w->step, w->lineage) || find_target(s, w->step, w->lineage) < s->targets;
        if (w->taken && !aimed)
            return w;
    }
    return NULL;
}
