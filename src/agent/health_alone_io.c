/* The health check of a job of one node: it has no coordinator, and judges itself before an attempt. */
#include <stdio.h>
#include <string.h>

#include "agent/health_private.h"
#include "agent/node.h"
#include "util/text.h"

/* As coord/health.c has it for several. */
static bool health_alone_is_due(const struct node *n)
{
    bool suspicious = false;
    for (unsigned i = 0; i < n->nproc && n->core.attempts > 1; i++) {
        const struct failure *f = &n->worker[i].failure;
        suspicious |= n->worker[i].bad && (f->class == FAILURE_CLASS_HARDWARE || f->class == FAILURE_CLASS_NETWORK);
    }
    switch ((enum health_when)n->conf->health_check) {
    case HEALTH_OFF: return false;
    case HEALTH_START: return n->core.attempts == 1;
    case HEALTH_RESTART: return n->core.attempts == 1 || suspicious;
    case HEALTH_ALWAYS: break;
    }
    return true;
}

/* What there is against it, in words: NULL if it may run. */
static const char *alone_refused(struct health *h)
{
    const struct run_conf *c = h->n->conf;
    const struct found *found = h->look ? probe_node_found(h->look) : NULL;
    struct plan_conf pc = PLAN_CONF_INIT;
    pc.rails = PLAN_RAILS_MAX;
    if (h->outcome == HEALTH_CHECK_FAILED) {
        health_files_verdict(h->files, HEALTH_FILES_BAD, h->reason);
        return "bad";
    }
    if (h->outcome != HEALTH_CHECK_OK) {
        el_log(EL_WARN, "health check: not everything could be judged: %s", h->reason);
        return c->on_undecided == HEALTH_UNDECIDED_STOP ? "undecided" : NULL;
    }
    if (found && health_files_slow(h->files, found, &pc, h->reason, sizeof h->reason)) {
        bool out = c->on_straggler == HEALTH_STRAGGLER_EXCLUDE;
        el_log(EL_WARN, "health check: this node is slow: %s", h->reason);
        health_files_verdict(h->files, out ? HEALTH_FILES_BAD : HEALTH_FILES_UNDECIDED, h->reason);
        return out ? "slow" : NULL;
    }
    el_log(EL_INFO, "health check: this node is good");
    health_files_verdict(h->files, HEALTH_FILES_GOOD, "");
    return NULL;
}

static void alone_verdict(struct health *h)
{
    struct node *n = h->n;
    char why[sizeof h->reason + 64];
    const char *what = alone_refused(h);
    h->alone = false;
    if (!what) {
        emit_prepared(n);
        return;
    }
    snprintf(why, sizeof why, "health check: this node is %s: %s", what, h->reason);
    if (strcmp(what, "undecided") != 0)
        emit_unfit(n, h->reason);
    node_may_start(n, n->core.attempts, why);
}

void health_alone_looked(struct health *h)
{
    if (h->outcome != HEALTH_CHECK_FAILED && !h->last_alone) {
        h->last_alone = true;
        if (health_look(h, true))
            return;
    }
    alone_verdict(h);
}

bool health_alone(struct health *h)
{
    if (h->n->membership || !health_alone_is_due(h->n))
        return false;
    h->alone = true;
    h->last_alone = false;
    h->order = (struct msg_probe){.backend = (uint64_t)h->n->conf->probe_backend, .quick = h->n->conf->probe_quick};
    el_log(EL_INFO, "health check: this node looks at itself");
    if (!health_look(h, false))
        alone_verdict(h);
    return true;
}
