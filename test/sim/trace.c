#include "sim/trace.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void trace_take(struct trace_step *to, struct agent *a, const struct agent_event *ev, el_usec now)
{
    *to = (struct trace_step){.now = now, .event = *ev};
    agent_step(a, ev, now, &to->actions);
    agent_check(a);
    to->state = a->state;
    to->cause = a->cause;
    to->cause_slot = a->cause_slot;
    to->leave_signal = a->leave_signal;
}

const char *trace_signal(int signal)
{
    static const char *const names[] = {[0] = "count",      [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT",
                                        [SIGABRT] = "ABRT", [SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV",
                                        [SIGUSR2] = "USR2", [SIGTERM] = "TERM", [SIGTSTP] = "TSTP"};
    size_t n = sizeof names / sizeof names[0];
    return signal >= 0 && (size_t)signal < n && names[signal] ? names[signal] : "another signal";
}

struct line {
    char *at, *end;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *l, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(l->at, (size_t)(l->end - l->at), format, ap);
    va_end(ap);
    if (n > 0)
        l->at += n < l->end - l->at ? n : l->end - l->at - 1;
}

static void put_event(struct line *l, const struct agent_event *e)
{
    switch (e->type) {
    case AGENT_EV_START: put(l, "start"); break;
    case AGENT_EV_ATTEMPT: put(l, "attempt"); break;
    case AGENT_EV_HALT: put(l, "halt %s", e->grace ? trace_signal(e->signal) : "at once"); break;
    case AGENT_EV_FINISH: put(l, "finish"); break;
    case AGENT_EV_PREPARED: put(l, e->ok ? "prepared" : "cannot prepare"); break;
    case AGENT_EV_SPAWNED: put(l, "spawned %u", e->slot); break;
    case AGENT_EV_SPAWN_FAILED: put(l, "%s %u failed", e->forked ? "exec" : "fork", e->slot); break;
    case AGENT_EV_EXITED:
        if (e->signal > 0)
            put(l, "exited %u by %s", e->slot, trace_signal(e->signal));
        else if (e->code < 0)
            put(l, "exited %u unknown", e->slot);
        else
            put(l, "exited %u code %d", e->slot, e->code);
        break;
    case AGENT_EV_PARTED: put(l, "parted %u", e->slot); break;
    case AGENT_EV_SWEPT: put(l, "left %u", e->left); break;
    case AGENT_EV_ORPHAN: put(l, "orphan"); break;
    case AGENT_EV_LOOKED:
        put(l, "looked %u: %s", e->slot, e->follows ? "follows" : e->waits ? "waits" : "its own");
        break;
    case AGENT_EV_NONE_ENDS: put(l, "none ends"); break;
    case AGENT_EV_HUNG: put(l, "hung %u", e->slot); break;
    case AGENT_EV_FAILING: put(l, "failing %u", e->slot); break;
    case AGENT_EV_CAPTURED: put(l, "captured"); break;
    case AGENT_EV_COLLECTED: put(l, "collected"); break;
    case AGENT_EV_SIGNAL: put(l, "signal %s", trace_signal(e->signal)); break;
    case AGENT_EV_TIMEOUT: put(l, "time"); break;
    }
}

static void put_group(struct line *l, const struct worker_group_action *p)
{
    switch (p->type) {
    case WORKER_GROUP_SPAWN: put(l, "spawn %u", p->slot); break;
    case WORKER_GROUP_SIGNAL_ALL: put(l, "all %s", trace_signal(p->signal)); break;
    case WORKER_GROUP_SWEEP_SLOT: put(l, "sweep %u %s", p->slot, trace_signal(p->signal)); break;
    case WORKER_GROUP_SWEEP_ALL: put(l, "sweep %s", trace_signal(p->signal)); break;
    }
}

static void put_end(struct line *l, const char *what, const struct trace_step *s)
{
    put(l, "%s: ", what);
    switch (s->cause) {
    case AGENT_NO_CAUSE: put(l, "no cause"); break;
    case AGENT_SUCCESS: put(l, "success"); break;
    case AGENT_WORKER_FAILED: put(l, "worker %u failed", s->cause_slot); break;
    case AGENT_SPAWN_FAILED: put(l, "cannot start %u", s->cause_slot); break;
    case AGENT_PREPARE_FAILED: put(l, "cannot prepare"); break;
    case AGENT_LEAVING: put(l, "left by %s", trace_signal(s->leave_signal)); break;
    case AGENT_HALTED: put(l, "halted"); break;
    case AGENT_STUCK: put(l, "stuck"); break;
    }
}

static void put_action(struct line *l, const struct trace_step *s, const struct agent_action *x)
{
    switch (x->type) {
    case AGENT_DO_PREPARE: put(l, "prepare"); break;
    case AGENT_DO_GROUP: put_group(l, &x->group); break;
    case AGENT_DO_NOTE: put(l, "note %u", x->slot); break;
    case AGENT_DO_LOOK: put(l, "look %u", x->slot); break;
    case AGENT_DO_CAPTURE: put(l, "capture"); break;
    case AGENT_DO_COLLECT: put(l, "collect"); break;
    case AGENT_DO_WAIT: put(l, "wait"); break;
    case AGENT_DO_FORWARD: put(l, "forward %s", trace_signal(x->signal)); break;
    case AGENT_DO_SUSPEND: put(l, "suspend"); break;
    case AGENT_DO_UP: put(l, "up"); break;
    case AGENT_DO_RESULT: put_end(l, "result", s); break;
    case AGENT_DO_END: put_end(l, "end", s); break;
    }
}

char *trace_line(const struct trace_step *s, char out[TRACE_LINE_MAX])
{
    struct line l = {out, out + TRACE_LINE_MAX};
    put(&l, "%u.%03u ", (unsigned)(s->now / EL_SEC(1)), (unsigned)(s->now % EL_SEC(1) / EL_MS(1)));
    put_event(&l, &s->event);
    for (unsigned i = 0; i < s->actions.n; i++) {
        put(&l, i ? ", " : " -> ");
        put_action(&l, s, &s->actions.v[i]);
    }
    put(&l, " | %s", agent_state_name(s->state));
    return out;
}
