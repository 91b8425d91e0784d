/* Last words of workers that live (ckpt/capture.h): a second socket, at which a thread of each worker listens while its
 * script may stand in a collective; and what is done between a failure and the signal that stops the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node.h"
#include "ckpt/capture.h"
#include "ckpt/page.h"
#include "ckpt/wsock.h"
#include "util/log.h"

#define CORE_LIMIT ((size_t)1 << 20)

struct words {
    struct node *node;
    struct el_mem mem;
    struct wsock *sock;
    struct capture *core;
    struct capture_stand *stand;
    bool *failing; /* of each worker: it has said so */
    struct loop_timer *timer;
    bool running; /* since DO_CAPTURE */
    unsigned attempt;
    el_usec began;
};

static void pump(struct words *w);

/* Alone this node knows all ranks; among others they would have to agree on the step first. */
bool words_wanted(const struct node *n)
{
    bool keeps = n->conf->ckpt_mem_bytes || n->conf->ckpt_mem_percent;
    return keeps && n->place.kind == ENDPOINT_ALONE && n->conf->lastwords_timeout;
}

/* Whoever waits to end badly need not wait any more. */
static void release(struct words *w)
{
    const struct wmsg done = {.type = WMSG_DONE, .u.done = {.text = ""}};
    for (unsigned i = 0; i < w->node->nproc; i++)
        if (wsock_is_open(w->sock, i))
            wsock_send(w->sock, i, &done, NULL, 0);
}

static void say(const struct words *w)
{
    struct capture_end end = capture_end(w->core);
    double took = (double)(loop_clock() - w->began) / EL_SEC(1);
    char instead[64] = "no snapshot is there";
    if (end.instead != KEEPER_NO_STEP)
        snprintf(instead, sizeof instead, "the snapshot of step %lld counts", (long long)end.instead);
    if (end.step != KEEPER_NO_STEP && end.copies)
        el_log(EL_INFO, "last words: step %lld is captured from %u live worker%s: %.1f MiB in %.3f s",
               (long long)end.step, end.copies, end.copies == 1 ? "" : "s", (double)end.bytes / (1 << 20), took);
    else if (end.step == KEEPER_NO_STEP && *end.why)
        el_log(EL_INFO, "last words: nothing newer is captured, %s: %s", instead, end.why);
}

static void finish(struct words *w)
{
    struct node *n = w->node;
    w->running = false;
    loop_timer_at(w->timer, EL_NEVER);
    say(w);
    stops_thaw(snapshots_stops(n->snapshots)); /* who is signalled may want to end its step, and say so */
    release(w);
    node_feed(n, &(struct agent_event){.type = AGENT_EV_CAPTURED, .attempt = w->attempt});
}

static void look(struct words *w)
{
    for (unsigned i = 0; i < w->node->nproc; i++) {
        w->stand[i].answers = wsock_is_open(w->sock, i);
        w->stand[i].ends = w->failing[i];
        stops_stand(snapshots_stops(w->node->snapshots), i, &w->stand[i].page);
    }
}

static void pump(struct words *w)
{
    const struct capture_order *order;
    if (!w->running)
        return;
    look(w);
    unsigned n = capture_step(w->core, w->stand, loop_clock(), &order);
    capture_check(w->core);
    for (unsigned i = 0; i < n; i++) {
        const struct wmsg m = {.type = WMSG_LASTWORDS, .u.lastwords = {.slot = order[i].slot, .step = order[i].step}};
        wsock_send(w->sock, order[i].worker, &m, NULL, 0);
    }
    if (!capture_is_busy(w->core))
        finish(w);
    else
        loop_timer_at(w->timer, loop_clock() + CAPTURE_LOOK);
}

static void on_look(void *ctx)
{
    pump(ctx);
}

void words_begin(struct node *n)
{
    struct words *w = n->words;
    w->running = true;
    w->attempt = n->core.attempts;
    w->began = loop_clock();
    if (stops_freeze(snapshots_stops(n->snapshots)))
        capture_begin(w->core, w->began, w->began + n->conf->lastwords_timeout);
    else
        capture_rest(w->core);
    pump(w);
}

/* --- who speaks --- */

static int whose(void *ctx, pid_t pid)
{
    const struct words *w = ctx;
    return snapshots_whose(w->node->snapshots, pid);
}

static void on_captured(struct words *w, unsigned worker, const struct wmsg_captured *c)
{
    if (!c->ok)
        el_log(EL_DEBUG, "local rank %u: step %lld is not captured: %s", worker, (long long)c->step, c->why);
    capture_said(w->core, worker, c->ok, c->why);
    snapshots_captured(w->node->snapshots, worker, (unsigned)c->slot, c->ok, c->consumed_samples);
    pump(w);
}

static void on_failing(struct words *w, unsigned worker)
{
    el_log(EL_DEBUG, "local rank %u: its script has failed, and waits for last words", worker);
    w->failing[worker] = true;
    node_feed(w->node, &(struct agent_event){.type = AGENT_EV_FAILING, .slot = worker});
    if (!w->running)
        release(w);
}

static void on_message(void *ctx, unsigned worker, const struct wmsg *m)
{
    struct words *w = ctx;
    if (m->type == WMSG_CAPTURED)
        on_captured(w, worker, &m->u.captured);
    else if (m->type == WMSG_FAILING)
        on_failing(w, worker);
    else
        wsock_close(w->sock, worker);
}

static void on_gone(void *ctx, unsigned worker)
{
    (void)worker;
    pump(ctx);
}

void words_ended(struct node *n, unsigned slot)
{
    if (n->words)
        wsock_finish(n->words->sock, slot);
}

void words_round(struct node *n)
{
    struct words *w = n->words;
    if (!w)
        return;
    w->running = false;
    loop_timer_at(w->timer, EL_NEVER);
    for (unsigned i = 0; i < n->nproc; i++) {
        wsock_close(w->sock, i);
        w->failing[i] = false;
    }
}

/* --- life --- */

int words_init(struct node *n, struct el_err *e)
{
    static const struct wsock_ops ops = {whose, on_message, on_gone};
    char path[108];
    if (!words_wanted(n))
        return 0;
    struct words *w = n->words = calloc(1, sizeof *w);
    if (!w)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    w->node = n;
    w->mem = EL_MEM_INIT(CORE_LIMIT);
    w->core = capture_new(snapshots_keeper(n->snapshots), n->conf->ckpt_dir != NULL, &w->mem);
    w->stand = calloc(n->nproc, sizeof *w->stand);
    w->failing = calloc(n->nproc, sizeof *w->failing);
    w->timer = loop_timer_new(n->loop, on_look, w);
    if (!w->core || !w->stand || !w->failing || !w->timer)
        return el_fail(e, EL_EXIT_OSERR, "out of memory for last words of %u workers", n->nproc);
    snprintf(path, sizeof path, "%.100s.live", snapshots_socket(n->snapshots));
    w->sock = wsock_new(n->loop, path, n->nproc, &ops, w, e);
    return w->sock ? 0 : -1;
}

void words_free(struct node *n)
{
    struct words *w = n->words;
    if (!w)
        return;
    if (w->sock)
        wsock_free(w->sock);
    capture_free(w->core);
    loop_timer_free(w->timer);
    free(w->stand);
    free(w->failing);
    free(w);
    n->words = NULL;
}
