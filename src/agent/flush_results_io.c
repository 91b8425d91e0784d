#include <stdio.h>

#include "conf/conf.h"
#include "agent/flush_results.h"
#include "ckpt/layout.h"
#include "snapshot/worker_sock.h"

static void send_event(struct worker_sock *sock, unsigned worker, const struct wmsg_event *ev)
{
    const struct worker_msg m = {.type = WORKER_MSG_EVENT, .u.event = *ev};
    if (worker_sock_is_open(sock, worker))
        worker_sock_send(sock, worker, &m, NULL, 0);
}

static void tell_before(struct worker_sock *sock, unsigned worker, const struct fate *x)
{
    send_event(sock, worker, &(struct wmsg_event){.kind = x->kind, .step = x->step, .why = x->why, .before = true});
}

void flush_results_event(struct flush_results *f, struct worker_sock *sock, unsigned workers,
                         const struct wmsg_event *ev)
{
    flush_results_add(f, ev->kind, ev->step, ev->why);
    for (unsigned i = 0; i < workers; i++)
        send_event(sock, i, ev);
}

void flush_results_welcome(const struct flush_results *f, struct worker_sock *sock, unsigned worker)
{
    for (unsigned i = 0; i < f->n; i++)
        tell_before(sock, worker, &f->v[i]);
}

void flush_results_found(struct flush_results *f, struct worker_sock *sock, unsigned workers,
                         const struct run_conf *run, int64_t step)
{
    char where[FLUSH_RESULTS_TEXT], name[CKPT_PATH_MAX];
    ckpt_step_name((enum ckpt_layout)run->ckpt_layout, step, name);
    snprintf(where, sizeof where, "%.400s/%.100s", run->ckpt_dir, name);
    flush_results_add(f, "committed", step, where);
    for (unsigned i = 0; i < workers; i++)
        tell_before(sock, i, &f->v[f->n - 1]);
}
