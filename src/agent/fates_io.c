#include <stdio.h>

#include "conf/conf.h"
#include "agent/fates.h"
#include "ckpt/layout.h"
#include "snapshot/wsock.h"

static void send_event(struct wsock *sock, unsigned worker, const struct wmsg_event *ev)
{
    const struct wmsg m = {.type = WMSG_EVENT, .u.event = *ev};
    if (wsock_is_open(sock, worker))
        wsock_send(sock, worker, &m, NULL, 0);
}

static void tell_before(struct wsock *sock, unsigned worker, const struct fate *x)
{
    send_event(sock, worker, &(struct wmsg_event){.kind = x->kind, .step = x->step, .why = x->why, .before = true});
}

void fates_event(struct fates *f, struct wsock *sock, unsigned workers, const struct wmsg_event *ev)
{
    fates_add(f, ev->kind, ev->step, ev->why);
    for (unsigned i = 0; i < workers; i++)
        send_event(sock, i, ev);
}

void fates_welcome(const struct fates *f, struct wsock *sock, unsigned worker)
{
    for (unsigned i = 0; i < f->n; i++)
        tell_before(sock, worker, &f->v[i]);
}

void fates_found(struct fates *f, struct wsock *sock, unsigned workers, const struct run_conf *run, int64_t step)
{
    char where[FATES_TEXT], name[CKPT_PATH_MAX];
    ckpt_step_name((enum ckpt_layout)run->ckpt_layout, step, name);
    snprintf(where, sizeof where, "%.400s/%.100s", run->ckpt_dir, name);
    fates_add(f, "committed", step, where);
    for (unsigned i = 0; i < workers; i++)
        tell_before(sock, i, &f->v[f->n - 1]);
}
