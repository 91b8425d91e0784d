#include "event/hook.h"

#include <assert.h>
#include <string.h>

enum { SIG_KILL = 9, SIG_TERM = 15 };

static const char *const names[] = {
#define X(NAME, name) [HOOK_##NAME] = (name),
    HOOK_LIST(X)
#undef X
};

const char *hook_name(enum hook_kind kind)
{
    assert(kind < HOOK_KINDS);
    return names[kind];
}

enum hook_kind hook_kind_of(const char *name, unsigned n)
{
    unsigned k = 0;
    while (k < HOOK_KINDS && (strlen(names[k]) != n || memcmp(names[k], name, n) != 0))
        k++;
    return (enum hook_kind)k;
}

static struct hook_action *hook_act(struct hook_actions *out, enum hook_action_type type, enum hook_kind kind)
{
    assert(out->n < HOOK_ACTIONS_MAX);
    struct hook_action *a = &out->v[out->n++];
    *a = (struct hook_action){.type = type, .kind = kind};
    return a;
}

void hook_init(struct hook_core *h, const struct hook_command *commands, unsigned n, el_usec timeout)
{
    assert(n <= HOOK_COMMANDS_MAX && timeout);
    *h = (struct hook_core){.timeout = timeout, .finish_at = EL_NEVER};
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        h->lane[k].until = EL_NEVER;
    for (unsigned i = 0; i < n; i++) {
        struct hook_lane *l = &h->lane[commands[i].kind];
        l->command[l->commands++] = i;
    }
}

static bool others_idle(const struct hook_core *h, enum hook_kind but)
{
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        if (k != but && h->lane[k].events)
            return false;
    return true;
}

static bool may_begin(const struct hook_core *h, enum hook_kind kind)
{
    if (kind == HOOK_PRE_START)
        return !h->lane[HOOK_POST_STOP].events;
    return kind != HOOK_END || others_idle(h, HOOK_END);
}

static void hook_start(struct hook_core *h, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    struct hook_lane *l = &h->lane[kind];
    struct hook_action *a = hook_act(out, HOOK_DO_START, kind);
    a->command = l->command[l->at];
    a->payload = l->payload[0];
    l->state = HOOK_RUNNING;
    l->until = now + h->timeout;
    l->timed_out = false;
}

static void hook_done(struct hook_lane *l, enum hook_kind kind, struct hook_actions *out)
{
    struct hook_action *a = hook_act(out, HOOK_DO_DONE, kind);
    a->payload = l->payload[0];
    a->good = l->good && !l->given_up;
    l->events--;
    memmove(l->payload, l->payload + 1, l->events * sizeof l->payload[0]);
    l->at = 0;
    l->good = true;
    l->given_up = false;
}

/* One lane as far as it goes by itself. */
static bool hook_advance(struct hook_core *h, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    struct hook_lane *l = &h->lane[kind];
    if (!l->events || l->state != HOOK_IDLE)
        return false;
    bool begun = l->at > 0;
    if (!begun && !l->given_up && !may_begin(h, kind))
        return false;
    /* A start that cannot be is not begun half-way; what only tells of something goes to all who asked. */
    bool enough = l->given_up || l->at == l->commands || (kind == HOOK_PRE_START && !l->good);
    if (enough)
        hook_done(l, kind, out);
    else
        hook_start(h, kind, now, out);
    return enough;
}

static void advance_all(struct hook_core *h, el_usec now, struct hook_actions *out)
{
    for (bool again = true; again;) {
        again = false;
        for (unsigned k = 0; k < HOOK_KINDS; k++)
            again |= hook_advance(h, (enum hook_kind)k, now, out);
    }
    if (h->finish_at != EL_NEVER && others_idle(h, HOOK_END))
        h->finish_at = EL_NEVER;
}

bool hook_event(struct hook_core *h, enum hook_kind kind, void *payload, el_usec now, struct hook_actions *out)
{
    struct hook_lane *l = &h->lane[kind];
    if (l->events == HOOK_WAITING_MAX + 1) {
        l->missed++;
        return false;
    }
    if (!l->events)
        l->good = true;
    l->payload[l->events++] = payload;
    advance_all(h, now, out);
    return true;
}

static void ended(struct hook_lane *l, bool good)
{
    assert(l->events && l->state != HOOK_IDLE);
    l->good = l->good && good;
    l->state = HOOK_IDLE;
    l->until = EL_NEVER;
    l->at++;
}

void hook_ended(struct hook_core *h, enum hook_kind kind, bool good, el_usec now, struct hook_actions *out)
{
    ended(&h->lane[kind], good);
    advance_all(h, now, out);
}

static void tell_to_end(struct hook_lane *l, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    if (l->state != HOOK_RUNNING)
        return;
    l->state = HOOK_TERMED;
    l->until = now + HOOK_KILL_AFTER;
    hook_act(out, HOOK_DO_SIGNAL, kind)->signal = SIG_TERM;
}

static void hook_give_up(struct hook_core *h, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    struct hook_lane *l = &h->lane[kind];
    unsigned running = l->state != HOOK_IDLE;
    if (running) {
        l->given_up = true;
        tell_to_end(l, kind, now, out);
    }
    for (unsigned i = running; i < l->events; i++)
        hook_act(out, HOOK_DO_DONE, kind)->payload = l->payload[i];
    l->events = running;
    if (!running)
        l->at = 0;
}

void hook_cancel(struct hook_core *h, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    hook_give_up(h, kind, now, out);
    advance_all(h, now, out);
}

void hook_finish(struct hook_core *h, el_usec now)
{
    if (!others_idle(h, HOOK_END))
        h->finish_at = now + h->timeout;
}

static void lane_timeout(struct hook_lane *l, enum hook_kind kind, el_usec now, struct hook_actions *out)
{
    switch (l->state) {
    case HOOK_RUNNING:
        l->timed_out = true;
        tell_to_end(l, kind, now, out);
        break;
    case HOOK_TERMED:
        l->state = HOOK_KILLED;
        l->until = now + HOOK_KILL_AFTER;
        hook_act(out, HOOK_DO_SIGNAL, kind)->signal = SIG_KILL;
        break;
    case HOOK_KILLED:
        hook_act(out, HOOK_DO_FORGET, kind);
        ended(l, false);
        break;
    case HOOK_IDLE: break;
    }
}

void hook_timeout(struct hook_core *h, el_usec now, struct hook_actions *out)
{
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        if (h->lane[k].until <= now)
            lane_timeout(&h->lane[k], (enum hook_kind)k, now, out);
    if (h->finish_at <= now) {
        h->finish_at = EL_NEVER;
        for (unsigned k = 0; k < HOOK_KINDS; k++)
            if (k != HOOK_END)
                hook_give_up(h, (enum hook_kind)k, now, out);
    }
    advance_all(h, now, out);
}

el_usec hook_deadline(const struct hook_core *h)
{
    el_usec first = h->finish_at;
    for (unsigned k = 0; k < HOOK_KINDS; k++)
        first = h->lane[k].until < first ? h->lane[k].until : first;
    return first;
}

bool hook_idle(const struct hook_core *h)
{
    return others_idle(h, HOOK_KINDS);
}

void hook_check(const struct hook_core *h)
{
    for (unsigned k = 0; k < HOOK_KINDS; k++) {
        const struct hook_lane *l = &h->lane[k];
        bool runs = l->state != HOOK_IDLE;
        assert(l->events <= HOOK_WAITING_MAX + 1 && l->commands <= HOOK_COMMANDS_MAX);
        assert(!runs || (l->events && l->at < l->commands));
        assert((l->until != EL_NEVER) == runs);
        assert(runs || !l->events || !may_begin(h, (enum hook_kind)k));
        assert(runs || !l->at);
    }
}
