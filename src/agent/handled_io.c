/* Did the exception that a worker has printed end it?  Its source is read in a pool of its own: where a file system
 * does not respond, the error files and logs of the others must not wait for the sources that lie there. */
#include <string.h>
#include <unistd.h>

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

static bool handled_place(struct node *n, struct handled *s, const struct failure *f)
{
    const struct text stack = {f->stack, f->stack ? strlen(f->stack) : 0};
    char folder[PATH_MAX];
    const struct handler_program program = {.name = f->program,
                                            .module = n->conf->entry == CONF_MODULE,
                                            .folder = getcwd(folder, sizeof folder) ? folder : ""};
    return stack.n && f->stack_from == FAILURE_FROM_STDERR && f->found.kind == TRACEBACK_PYTHON &&
           !f->found.in_thread && !f->found.headless &&
           handler_place(stack, f->found.type, &program, &s->place, &s->own);
}

void handled_ask(struct node *n, struct handled *s, struct failure *f, void (*done)(void *ctx), void *ctx)
{
    struct el_err e = {0};
    if (!handled_place(n, s, f))
        return;
    s->elsewhere = f->program ? HANDLER_ELSEWHERE : HANDLER_UNKNOWN;
    s->done = done;
    s->ctx = ctx;
    s->job = (struct pool_job){.work = read_source, .done = handled_is_read, .ctx = s};
    s->reading = s->place.words[0] && s->place.path[0] != '<' && pool_run(n->sources, &s->job, &e) == 0;
    if (!s->reading)
        handled_tell(s, f);
}

void handled_tell(const struct handled *s, struct failure *f)
{
    /* A program that it runs may share its stderr, and have ended of that. */
    const bool others = s->place.module && s->own == HANDLER_OTHERS;
    const bool perhaps = s->handler == HANDLER_NONE && s->own != HANDLER_OWN;
    failure_add_handler(f,
                        s->handler != HANDLER_GOES_ON && others ? s->elsewhere
                        : perhaps                               ? HANDLER_UNKNOWN
                                                                : s->handler,
                        NULL);
}
