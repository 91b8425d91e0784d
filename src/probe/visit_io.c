#include "probe/visit.h"

#include <stdlib.h>

#include "loop/pool.h"

struct visit {
    struct pool_job job;
    struct loop *loop;
    void (*work)(void *ctx);
    void *ctx;
    bool ended;
};

static void visit_work(void *ctx)
{
    struct visit *v = ctx;
    v->work(v->ctx);
}

static void visit_on_done(void *ctx)
{
    struct visit *v = ctx;
    v->ended = true;
    loop_stop(v->loop);
}

static void on_limit(void *ctx)
{
    loop_stop(((struct visit *)ctx)->loop);
}

bool probe_visit(void (*fn)(void *ctx), void *ctx, el_usec limit)
{
    struct visit *v = calloc(1, sizeof *v);
    struct el_err e = {0};
    if (!v)
        return false;
    v->work = fn;
    v->ctx = ctx;
    v->loop = loop_new(&e);
    v->job = (struct pool_job){.work = visit_work, .done = visit_on_done, .ctx = v};
    struct pool *pool = v->loop ? pool_new(v->loop, 1, &e) : NULL;
    struct loop_timer *late = pool ? loop_timer_new(v->loop, on_limit, v) : NULL;
    if (late && pool_run(pool, &v->job, &e) == 0) {
        loop_timer_at(late, loop_clock() + limit);
        loop_run(v->loop);
    }
    bool ended = v->ended;
    loop_timer_free(late);
    if (pool && !pool_free(pool))
        return false; /* the thread still uses *v and the loop */
    if (v->loop)
        loop_free(v->loop);
    free(v);
    return ended;
}
