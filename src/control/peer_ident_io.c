#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/pool.h"
#include "control/peer_ident.h"
#include "store/client.h"

#define ASK_LIMIT EL_SEC(1) /* to connect, and to answer */

/* It belongs to the pool until done() has run; whoever comes last, done() or peer_ident_forget(), frees it. */
struct peer_ident {
    struct pool_job job;
    void (*answered)(void *ctx, bool is_store);
    void *ctx;
    bool is_store, done, forgotten;
    char endpoint[300];
};

static void peer_ident_io_ask(void *ctx)
{
    struct peer_ident *s = ctx;
    struct el_err e = {0};
    el_usec took;
    struct store_client *c = store_client_open(s->endpoint, ASK_LIMIT, &e);
    s->is_store = c && store_client_ping(c, &took, &e) == STORE_YES;
    store_client_free(c);
}

static void asked(void *ctx)
{
    struct peer_ident *s = ctx;
    s->done = true;
    if (s->forgotten)
        free(s);
    else
        s->answered(s->ctx, s->is_store);
}

struct peer_ident *peer_ident_ask(struct pool *p, const char *host, int port,
                                  void (*answered)(void *ctx, bool is_store), void *ctx)
{
    struct el_err e = {0};
    struct peer_ident *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->answered = answered;
    s->ctx = ctx;
    snprintf(s->endpoint, sizeof s->endpoint, strchr(host, ':') ? "[%.256s]:%d" : "%.256s:%d", host, port);
    s->job = (struct pool_job){.work = peer_ident_io_ask, .done = asked, .ctx = s};
    if (pool_run(p, &s->job, &e) == 0)
        return s;
    free(s);
    return NULL;
}

void peer_ident_forget(struct peer_ident *s)
{
    if (!s)
        return;
    s->forgotten = true;
    if (s->done)
        free(s);
}
