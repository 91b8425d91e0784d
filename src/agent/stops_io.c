#include "agent/stops.h"

#include <stdlib.h>

#include "snapshot/mem.h"
#include "snapshot/page.h"
#include "util/log.h"

#define LOOK_EVERY EL_MS(20) /* while a boundary is ahead: has somebody run past it? */

struct stops_worker {
    struct ckpt_mem mem;
    bool here;   /* connected */
    bool stands; /* at the boundary */
};

struct stops {
    struct stops_ops ops;
    void *ctx;
    struct loop_timer *timer;
    unsigned workers;
    struct stops_worker *worker;
    struct page **page, **present; /* of all; of those that are connected */
    bool aware, noticed, told, past;
    struct stops_notice notice;
};

static void forget_notice(struct stops *s)
{
    loop_timer_at(s->timer, EL_NEVER);
    s->noticed = s->told = s->past = false;
    for (unsigned i = 0; i < s->workers; i++)
        s->worker[i].stands = false;
}

static void thaw(struct stops *s)
{
    for (unsigned i = 0; i < s->workers; i++)
        page_announce(s->page[i], PAGE_NOTHING, PAGE_NO_STEP, 0);
}

void stops_round(struct stops *s, uint64_t number, uint64_t coord, unsigned rank_base)
{
    forget_notice(s);
    s->aware = false;
    for (unsigned i = 0; i < s->workers; i++) {
        s->worker[i].here = false;
        page_reset(s->page[i], number, coord, rank_base + i);
    }
}

static bool is_deaf(const struct stops *s)
{
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here && page_listens(s->page[i]))
            return false;
    return true;
}

/* Those that listen stand, or have ended since. */
static void count(struct stops *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->workers; i++) {
        const struct stops_worker *w = &s->worker[i];
        if (w->here && page_listens(s->page[i]) && !w->stands)
            return;
        any |= w->stands;
    }
    if (!s->noticed || s->notice.boundary < 0 || s->told || !any)
        return;
    s->told = true;
    s->ops.at_boundary(s->ctx);
}

static void on_look(void *ctx)
{
    struct stops *s = ctx;
    if (!s->noticed || s->notice.boundary < 0)
        return;
    for (unsigned i = 0; i < s->workers && !s->past; i++)
        if (s->worker[i].here && !s->worker[i].stands && page_is_past(s->page[i], s->notice.boundary)) {
            s->past = true;
            el_log(EL_DEBUG, "local rank %u has run past step %lld: the boundary must be set anew", i,
                   (long long)s->notice.boundary);
            s->ops.live(s->ctx, page_begun(s->page[i]), false, true);
        }
    if (!s->past)
        loop_timer_at(s->timer, loop_clock() + LOOK_EVERY);
}

void stops_notice(struct stops *s, const struct stops_notice *n)
{
    if (!n) {
        forget_notice(s);
        thaw(s);
        return;
    }
    forget_notice(s);
    s->noticed = true;
    s->notice = *n;
    if (n->boundary < 0) {
        for (unsigned i = 0; i < s->workers; i++)
            page_retract(s->page[i]); /* of an earlier try */
        int64_t step = page_freeze(s->page, s->workers);
        bool deaf = is_deaf(s);
        if (deaf)
            thaw(s);
        s->ops.live(s->ctx, step, deaf, false);
        return;
    }
    for (unsigned i = 0; i < s->workers; i++)
        page_announce(s->page[i], n->why, n->boundary, (int64_t)(n->until * 1000));
    on_look(s);
}

void stops_came(struct stops *s, unsigned worker)
{
    s->worker[worker].here = true;
    if (s->aware)
        return;
    s->aware = true;
    s->ops.aware(s->ctx);
}

void stops_went(struct stops *s, unsigned worker)
{
    s->worker[worker].here = false;
    count(s);
}

void stops_stands(struct stops *s, unsigned worker, int64_t step)
{
    if (!s->noticed || s->notice.boundary < 0 || s->worker[worker].stands)
        return;
    el_log(EL_DEBUG, "local rank %u stands behind step %lld", worker, (long long)step);
    s->worker[worker].stands = true;
    s->ops.parted(s->ctx, worker);
    count(s);
}

bool stops_freeze(struct stops *s, int64_t *limit)
{
    unsigned n = 0;
    if (s->noticed || is_deaf(s))
        return false;
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here)
            s->present[n++] = s->page[i];
    *limit = page_freeze(s->present, n);
    return true;
}

void stops_allow(struct stops *s, int64_t limit)
{
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here && !s->noticed)
            page_limit(s->page[i], limit);
}

void stops_thaw(struct stops *s)
{
    if (!s->noticed)
        thaw(s);
}

void stops_stand(const struct stops *s, unsigned worker, struct page_stand *to)
{
    page_stand(s->page[worker], to);
}

bool stops_view(const struct stops *s, unsigned worker, const char **phase, int64_t *live_step)
{
    *phase = page_phase(s->page[worker]);
    *live_step = page_live(s->page[worker]);
    return s->worker[worker].here;
}

int stops_descriptor(const struct stops *s, unsigned worker)
{
    return s->worker[worker].mem.fd;
}

struct stops *stops_new(struct loop *l, unsigned workers, const struct stops_ops *ops, void *ctx, struct el_err *e)
{
    struct stops *s = calloc(1, sizeof *s);
    if (s) {
        *s = (struct stops){.ops = *ops, .ctx = ctx, .workers = workers, .timer = loop_timer_new(l, on_look, s)};
        s->worker = calloc(workers, sizeof *s->worker);
        s->page = calloc(workers, sizeof *s->page);
        s->present = calloc(workers, sizeof *s->present);
    }
    if (!s || !s->timer || !s->worker || !s->page || !s->present) {
        el_fail(e, EL_EXIT_OSERR, "out of memory for status pages of %u workers", workers);
        stops_free(s);
        return NULL;
    }
    for (unsigned i = 0; i < workers; i++) {
        if (ckpt_mem_new(&s->worker[i].mem, "elrun-status", PAGE_BYTES, e) < 0) {
            stops_free(s);
            return NULL;
        }
        s->page[i] = s->worker[i].mem.at;
        page_reset(s->page[i], 0, 0, i);
    }
    return s;
}

void stops_free(struct stops *s)
{
    if (!s)
        return;
    for (unsigned i = 0; s->worker && i < s->workers; i++)
        ckpt_mem_free(&s->worker[i].mem);
    loop_timer_free(s->timer);
    free(s->worker);
    free(s->page);
    free(s->present);
    free(s);
}
