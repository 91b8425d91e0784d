/* What can be said of the node core between two events: when it wants the time, and what must hold. */
#include <assert.h>

#include "agent/agent.h"

el_usec agent_deadline(const struct agent *a)
{
    bool up = a->state == AGENT_RUNNING || a->state == AGENT_STOPPING;
    bool waits = a->judge_until == EL_NEVER && a->again_at == EL_NEVER &&
                 (a->note_due || (a->state == AGENT_COLLECTING && a->collected));
    el_usec group = up ? worker_group_deadline(&a->group) : EL_NEVER;
    if (up && a->parting_until < group)
        group = a->parting_until;
    if (a->judge_until < group)
        group = a->judge_until;
    if (a->again_at < group)
        group = a->again_at;
    return waits && a->hindsight_until < group ? a->hindsight_until : group;
}

void agent_check(const struct agent *a)
{
    worker_group_check(&a->group);
    assert(a->conf.managed || a->restarts == a->budget.used);
    assert(a->conf.managed || a->conf.restart_window || a->restarts <= a->conf.max_restarts);
    assert(a->conf.restart_policy != RESTART_NEVER || a->conf.managed || !a->restarts);
    assert(a->conf.managed || a->attempts <= a->restarts + 1);
    assert(a->state != AGENT_ENDED || a->cause != AGENT_NO_CAUSE);
    assert(a->state != AGENT_ENDED || a->group.stuck || !a->group.up);
    assert((a->state == AGENT_COLLECTING) <= (a->group.phase == WORKER_GROUP_CLOSED));
    assert(!a->held || (a->state == AGENT_STOPPING && a->capture == AGENT_CAPTURE_ASKED));
    assert(!a->note_due || a->cause == AGENT_WORKER_FAILED);
    assert(a->judge_until == EL_NEVER || a->cause == AGENT_WORKER_FAILED);
    assert(a->again_at == EL_NEVER || (a->state == AGENT_COLLECTING && a->cause == AGENT_WORKER_FAILED));
}

bool agent_is_held(const struct agent *a)
{
    return a->held;
}
