/* Did the exception that a worker has printed end it?  Its source is read in the pool. */
#include <string.h>

#include "agent/node.h"

static void read_source(void *ctx)
{
    struct handled *s = ctx;
    s->handler = evidence_handler(&s->place);
}

static void handled_is_read(void *ctx)
{
    struct handled *s = ctx;
    s->reading = false;
    s->done(s->ctx);
}

void handled_ask(struct node *n, struct handled *s, const struct failure *f, void (*done)(void *ctx), void *ctx)
{
    const struct text stack = {f->stack, f->stack ? strlen(f->stack) : 0};
    struct el_err e = {0};
    if (!stack.n || f->stack_from != FAILURE_FROM_STDERR || f->found.kind != TRACEBACK_PYTHON || f->found.in_thread ||
        f->found.headless || !handler_place(stack, f->found.type, f->program, &s->place, &s->own))
        return;
    s->elsewhere = f->program ? HANDLER_ELSEWHERE : HANDLER_UNKNOWN;
    s->done = done;
    s->ctx = ctx;
    s->job = (struct pool_job){.work = read_source, .done = handled_is_read, .ctx = s};
    s->reading = pool_run(n->pool, &s->job, &e) == 0;
}

void handled_tell(const struct handled *s, struct failure *f)
{
    /* A program that it runs may share its stderr, and have ended of that. */
    bool elsewhere = s->handler != HANDLER_GOES_ON && s->place.module && !s->own;
    failure_add_handler(f, elsewhere ? s->elsewhere : s->handler, NULL);
}
