#include "agent/step_boundary.h"

#include <stdlib.h>

#include "snapshot/shm.h"
#include "snapshot/worker_status.h"
#include "util/log.h"

#define LOOK_EVERY EL_MS(20) /* while a boundary is ahead: has somebody run past it? */

struct step_boundary_worker {
    struct shm mem;
    bool here;   /* connected */
    bool stands; /* at the boundary */
};

struct step_boundary {
    struct step_boundary_ops ops;
    void *ctx;
    struct loop_timer *timer;
    unsigned workers;
    struct step_boundary_worker *worker;
    struct worker_status **page, **present; /* of all; of those that are connected */
    bool aware, noticed, told, past;
    struct step_boundary_notice notice;
};

static void forget_notice(struct step_boundary *s)
{
    loop_timer_at(s->timer, EL_NEVER);
    s->noticed = s->told = s->past = false;
    for (unsigned i = 0; i < s->workers; i++)
        s->worker[i].stands = false;
}

static void thaw(struct step_boundary *s)
{
    for (unsigned i = 0; i < s->workers; i++)
        worker_status_announce(s->page[i], NOTICE_NOTHING, WORKER_STATUS_NO_STEP, 0);
}

void step_boundary_round(struct step_boundary *s, uint64_t number, uint64_t coord, unsigned rank_base)
{
    forget_notice(s);
    s->aware = false;
    for (unsigned i = 0; i < s->workers; i++) {
        s->worker[i].here = false;
        worker_status_reset(s->page[i], number, coord, rank_base + i);
    }
}

static bool is_deaf(const struct step_boundary *s)
{
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here && worker_status_listens(s->page[i]))
            return false;
    return true;
}

/* Those that listen stand, or have ended since. */
static void step_boundary_count(struct step_boundary *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->workers; i++) {
        const struct step_boundary_worker *w = &s->worker[i];
        if (w->here && worker_status_listens(s->page[i]) && !w->stands)
            return;
        any |= w->stands;
    }
    if (!s->noticed || s->notice.boundary < 0 || s->told || !any)
        return;
    s->told = true;
    s->ops.at_boundary(s->ctx);
}

static void step_boundary_on_look(void *ctx)
{
    struct step_boundary *s = ctx;
    if (!s->noticed || s->notice.boundary < 0)
        return;
    for (unsigned i = 0; i < s->workers && !s->past; i++)
        if (s->worker[i].here && !s->worker[i].stands && worker_status_is_past(s->page[i], s->notice.boundary)) {
            s->past = true;
            el_log(EL_DEBUG, "local rank %u has run past step %lld: the boundary must be set anew", i,
                   (long long)s->notice.boundary);
            s->ops.live(s->ctx, worker_status_begun(s->page[i]), false, true);
        }
    if (!s->past)
        loop_timer_at(s->timer, loop_clock() + LOOK_EVERY);
}

void step_boundary_notice(struct step_boundary *s, const struct step_boundary_notice *n)
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
            worker_status_retract(s->page[i]); /* of an earlier try */
        int64_t step = worker_status_freeze(s->page, s->workers);
        bool deaf = is_deaf(s);
        if (deaf)
            thaw(s);
        s->ops.live(s->ctx, step, deaf, false);
        return;
    }
    for (unsigned i = 0; i < s->workers; i++)
        worker_status_announce(s->page[i], n->why, n->boundary, (int64_t)(n->until * 1000));
    step_boundary_on_look(s);
}

void step_boundary_came(struct step_boundary *s, unsigned worker)
{
    s->worker[worker].here = true;
    if (s->aware)
        return;
    s->aware = true;
    s->ops.aware(s->ctx);
}

void step_boundary_went(struct step_boundary *s, unsigned worker)
{
    s->worker[worker].here = false;
    step_boundary_count(s);
}

void step_boundary_stands(struct step_boundary *s, unsigned worker, int64_t step)
{
    if (!s->noticed || s->notice.boundary < 0 || s->worker[worker].stands)
        return;
    el_log(EL_DEBUG, "local rank %u stands behind step %lld", worker, (long long)step);
    s->worker[worker].stands = true;
    s->ops.parted(s->ctx, worker);
    step_boundary_count(s);
}

bool step_boundary_freeze(struct step_boundary *s, int64_t *limit)
{
    unsigned n = 0;
    if (s->noticed || is_deaf(s))
        return false;
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here)
            s->present[n++] = s->page[i];
    *limit = worker_status_freeze(s->present, n);
    return true;
}

void step_boundary_allow(struct step_boundary *s, int64_t limit)
{
    for (unsigned i = 0; i < s->workers; i++)
        if (s->worker[i].here && !s->noticed)
            worker_status_limit(s->page[i], limit);
}

void step_boundary_thaw(struct step_boundary *s)
{
    if (!s->noticed)
        thaw(s);
}

void step_boundary_stand(const struct step_boundary *s, unsigned worker, struct worker_status_stand *to)
{
    worker_status_stand(s->page[worker], to);
}

bool step_boundary_view(const struct step_boundary *s, unsigned worker, const char **phase, int64_t *live_step)
{
    *phase = worker_status_phase(s->page[worker]);
    *live_step = worker_status_live(s->page[worker]);
    return s->worker[worker].here;
}

int step_boundary_descriptor(const struct step_boundary *s, unsigned worker)
{
    return s->worker[worker].mem.fd;
}

struct step_boundary *step_boundary_new(struct loop *l, unsigned workers, const struct step_boundary_ops *ops,
                                        void *ctx, struct el_err *e)
{
    struct step_boundary *s = calloc(1, sizeof *s);
    if (s) {
        *s = (struct step_boundary){
            .ops = *ops, .ctx = ctx, .workers = workers, .timer = loop_timer_new(l, step_boundary_on_look, s)};
        s->worker = calloc(workers, sizeof *s->worker);
        s->page = calloc(workers, sizeof *s->page);
        s->present = calloc(workers, sizeof *s->present);
    }
    if (!s || !s->timer || !s->worker || !s->page || !s->present) {
        el_fail(e, EL_EXIT_OSERR, "out of memory for status pages of %u workers", workers);
        step_boundary_free(s);
        return NULL;
    }
    for (unsigned i = 0; i < workers; i++) {
        if (shm_new(&s->worker[i].mem, "elrun-status", WORKER_STATUS_BYTES, e) < 0) {
            step_boundary_free(s);
            return NULL;
        }
        s->page[i] = s->worker[i].mem.at;
        worker_status_reset(s->page[i], 0, 0, i);
    }
    return s;
}

void step_boundary_free(struct step_boundary *s)
{
    if (!s)
        return;
    for (unsigned i = 0; s->worker && i < s->workers; i++)
        shm_free(&s->worker[i].mem);
    loop_timer_free(s->timer);
    free(s->worker);
    free(s->page);
    free(s->present);
    free(s);
}
