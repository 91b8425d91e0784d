/* Snapshots as part of the job: which round their workers are in, and what they go back to.  Alone this node decides;
 * among others the coordinator does. */
#include <stdio.h>

#include "agent/node.h"
#include "util/log.h"

static void say_chosen(const struct node *n, int64_t step, const char *why)
{
    if (step >= 0)
        el_log(EL_INFO, "going back to step %lld, from memory", (long long)step);
    else if (n->core.attempts > 1)
        el_log(EL_WARN, "%s", why);
}

static void on_choose(void *ctx, const int64_t *steps, unsigned count, bool had)
{
    struct node *n = ctx;
    const char *why = count  ? ""
                      : !had ? "no snapshot was ever complete: beginning at the beginning"
                      : n->conf->allow_fresh
                          ? "no snapshot is left that every rank can have: beginning at the beginning (--allow-fresh)"
                          : "no snapshot is left that every rank can have; --allow-fresh would begin at the beginning";
    int64_t step = count ? steps[0] : -1;
    say_chosen(n, step, why);
    snapshots_chosen(n->snapshots, step, !had || n->conf->allow_fresh, why);
}

static void on_confirm(void *ctx, int64_t step)
{
    struct node *n = ctx;
    (void)step;
    snapshots_confirmed(n->snapshots);
}

int ckpt_init(struct node *n, struct el_err *e)
{
    static const struct snapshots_ops ops = {on_choose, on_confirm};
    if (!n->conf->ckpt_mem_bytes && !n->conf->ckpt_mem_percent)
        return 0;
    if (n->place.kind != ENDPOINT_ALONE)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--ckpt-mem keeps snapshots of one node only so far: leave it out, or use --standalone");
    struct snapshots_conf conf = {.run = n->conf, .workers = n->nproc, .env = n->env, .reap = n->reap};
    n->snapshots = snapshots_new(n->loop, n->pool, &conf, &ops, n, e);
    return n->snapshots ? 0 : -1;
}

void ckpt_round(struct node *n)
{
    const struct msg_world *w = n->membership ? membership_world(n->membership) : NULL;
    snapshots_round(n->snapshots, w ? w->number : n->core.attempts, w ? w->coord : n->coord, workers_rank(n, 0));
}
