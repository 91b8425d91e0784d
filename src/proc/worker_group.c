#include "proc/worker_group.h"

#include <assert.h>
#include <stddef.h>

enum { SIG_KILL = 9, SIG_TERM = 15 }; /* the kernel's numbers: <signal.h> is for the shell */

static void worker_group_act(struct worker_group_actions *out, enum worker_group_action_type type, unsigned slot,
                             int signal)
{
    assert(out->n < WORKER_GROUP_ACTIONS_MAX);
    out->v[out->n++] = (struct worker_group_action){.type = type, .slot = slot, .signal = signal};
}

int worker_group_init(struct worker_group *p, unsigned slots, struct el_mem *mem)
{
    assert(slots > 0);
    *p = (struct worker_group){.slots = slots, .kill_at = EL_NEVER, .stuck_at = EL_NEVER, .sweep_at = EL_NEVER};
    p->slot = el_alloc(mem, slots * sizeof *p->slot);
    return p->slot ? 0 : -1;
}

void worker_group_free(struct worker_group *p, struct el_mem *mem)
{
    el_free(mem, p->slot);
    p->slot = NULL;
}

void worker_group_start(struct worker_group *p, struct worker_group_actions *out)
{
    assert(p->phase == WORKER_GROUP_IDLE || p->phase == WORKER_GROUP_CLOSED);
    for (unsigned i = 0; i < p->slots; i++)
        p->slot[i] = (struct worker_group_slot){.linger_until = EL_NEVER};
    p->phase = WORKER_GROUP_UP;
    p->started = p->up = p->lingering = p->failed = p->left = 0;
    p->kill_at = p->stuck_at = p->sweep_at = EL_NEVER;
    p->sweep_hard = p->stuck = false;
    p->held_signal = 0;
    p->spawning = true;
    worker_group_act(out, WORKER_GROUP_SPAWN, 0, 0);
}

/* A child whose fork is under way would miss the signal and live until SIGKILL: the signal waits for the answer, which
 * comes in the same turn of the loop, and everybody gets it exactly once. */
static void worker_group_signal_all(struct worker_group *p, int signal, struct worker_group_actions *out)
{
    p->held_signal = p->spawning ? signal : 0;
    if (p->spawning)
        return;
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == WORKER_GROUP_SLOT_UP)
            p->slot[i].signalled = true;
    if (p->up)
        worker_group_act(out, WORKER_GROUP_SIGNAL_ALL, 0, signal);
}

static void spawn_answered(struct worker_group *p, struct worker_group_actions *out)
{
    assert(p->spawning);
    p->spawning = false;
    if (p->held_signal)
        worker_group_signal_all(p, p->held_signal, out);
}

void worker_group_spawned(struct worker_group *p, unsigned slot, struct worker_group_actions *out)
{
    assert(slot == p->started && slot < p->slots);
    p->slot[slot].state = WORKER_GROUP_SLOT_UP;
    p->started++;
    p->up++;
    spawn_answered(p, out);
    if (p->phase == WORKER_GROUP_UP && p->started < p->slots) {
        p->spawning = true;
        worker_group_act(out, WORKER_GROUP_SPAWN, p->started, 0);
    }
}

bool worker_group_slot_bad(const struct worker_group_slot *s)
{
    return s->unknown || s->code != 0;
}

/* The last leader is gone: what remains are leftovers, of which some may have left every session. */
static void sweep_if_empty(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    bool complete = p->phase != WORKER_GROUP_UP || p->started == p->slots;
    if (p->up || p->spawning || !complete || p->phase >= WORKER_GROUP_SWEEPING)
        return;
    bool hard = p->phase == WORKER_GROUP_KILLING;
    p->phase = WORKER_GROUP_SWEEPING;
    p->sweep_hard = hard;
    p->sweep_at = now + (hard ? WORKER_GROUP_RESWEEP : WORKER_GROUP_LINGER);
    p->kill_at = EL_NEVER;
    p->stuck_at = now + (hard ? 0 : WORKER_GROUP_LINGER) + WORKER_GROUP_STUCK;
    worker_group_act(out, WORKER_GROUP_SWEEP_ALL, 0, hard ? SIG_KILL : SIG_TERM);
}

void worker_group_spawn_failed(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    spawn_answered(p, out);
    sweep_if_empty(p, now, out);
}

void worker_group_exited(struct worker_group *p, unsigned slot, int code, int signal, el_usec now,
                         struct worker_group_actions *out)
{
    assert(slot < p->slots && p->slot[slot].state == WORKER_GROUP_SLOT_UP && p->up > 0);
    struct worker_group_slot *s = &p->slot[slot];
    s->code = code;
    s->signal = signal;
    s->unknown = code < 0 && signal < 0;
    /* Once the leaders are being killed, or the attempt was given up, their leftovers get no time of their own. */
    bool hard = p->phase >= WORKER_GROUP_KILLING;
    s->state = hard ? WORKER_GROUP_SLOT_GONE : WORKER_GROUP_SLOT_LINGERS;
    s->linger_until = now + WORKER_GROUP_LINGER;
    p->up--;
    p->lingering += !hard;
    if (worker_group_slot_bad(s) && !s->signalled)
        p->failed++;
    worker_group_act(out, WORKER_GROUP_SWEEP_SLOT, slot, hard ? SIG_KILL : SIG_TERM);
    sweep_if_empty(p, now, out);
}

static void kill_all(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    p->phase = WORKER_GROUP_KILLING;
    p->kill_at = EL_NEVER;
    p->stuck_at = now + WORKER_GROUP_STUCK;
    worker_group_signal_all(p, SIG_KILL, out);
}

void worker_group_stop(struct worker_group *p, int signal, el_usec grace, el_usec now, struct worker_group_actions *out)
{
    if (p->phase == WORKER_GROUP_SWEEPING && !grace && !p->sweep_hard) {
        p->sweep_at = now;
        worker_group_timeout(p, now, out);
    }
    if (p->phase != WORKER_GROUP_UP && p->phase != WORKER_GROUP_STOPPING)
        return;
    if (!grace) {
        kill_all(p, now, out);
    } else if (p->phase == WORKER_GROUP_UP) {
        p->phase = WORKER_GROUP_STOPPING;
        p->kill_at = now + grace;
        worker_group_signal_all(p, signal, out);
    } else if (now + grace < p->kill_at) {
        p->kill_at = now + grace;
    }
    sweep_if_empty(p, now, out);
}

void worker_group_swept(struct worker_group *p, unsigned left, el_usec now, struct worker_group_actions *out)
{
    (void)now, (void)out;
    p->left = left;
    if (p->phase != WORKER_GROUP_SWEEPING || left)
        return;
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == WORKER_GROUP_SLOT_LINGERS)
            p->slot[i].state = WORKER_GROUP_SLOT_GONE;
    p->lingering = 0;
    p->phase = WORKER_GROUP_CLOSED;
    p->sweep_at = p->stuck_at = EL_NEVER;
}

void worker_group_orphan_reaped(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    (void)now;
    if (p->phase == WORKER_GROUP_SWEEPING || p->stuck) /* its children, if any, are ours now */
        worker_group_act(out, WORKER_GROUP_SWEEP_ALL, 0, p->sweep_hard || p->stuck ? SIG_KILL : 0);
}

/* One process that nothing ends must not save the others that only lived in its shadow. */
static void worker_group_give_up(struct worker_group *p, struct worker_group_actions *out)
{
    p->phase = WORKER_GROUP_CLOSED;
    p->stuck = true;
    p->kill_at = p->stuck_at = p->sweep_at = EL_NEVER;
    worker_group_act(out, WORKER_GROUP_SWEEP_ALL, 0, SIG_KILL);
}

/* Leaders that died while others run: their leftovers have had their linger.  One slot a call keeps the list short. */
static void kill_one_lingering(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == WORKER_GROUP_SLOT_LINGERS && p->slot[i].linger_until <= now) {
            p->slot[i].state = WORKER_GROUP_SLOT_GONE;
            p->lingering--;
            worker_group_act(out, WORKER_GROUP_SWEEP_SLOT, i, SIG_KILL);
            return;
        }
}

void worker_group_timeout(struct worker_group *p, el_usec now, struct worker_group_actions *out)
{
    if (p->phase == WORKER_GROUP_STOPPING && p->kill_at <= now)
        kill_all(p, now, out);
    if (p->stuck_at <= now) {
        worker_group_give_up(p, out);
        return;
    }
    if (p->phase == WORKER_GROUP_SWEEPING && p->sweep_at <= now) {
        p->sweep_hard = true;
        p->sweep_at = now + WORKER_GROUP_RESWEEP;
        worker_group_act(out, WORKER_GROUP_SWEEP_ALL, 0, SIG_KILL);
    }
    if (p->lingering && p->phase != WORKER_GROUP_SWEEPING)
        kill_one_lingering(p, now, out);
}

el_usec worker_group_deadline(const struct worker_group *p)
{
    el_usec first = p->kill_at;
    if (p->stuck_at < first)
        first = p->stuck_at;
    if (p->sweep_at < first)
        first = p->sweep_at;
    if (p->lingering && p->phase < WORKER_GROUP_SWEEPING)
        for (unsigned i = 0; i < p->slots; i++)
            if (p->slot[i].state == WORKER_GROUP_SLOT_LINGERS && p->slot[i].linger_until < first)
                first = p->slot[i].linger_until;
    return first;
}

bool worker_group_succeeded(const struct worker_group *p)
{
    if (p->started < p->slots || p->up || p->failed)
        return false;
    for (unsigned i = 0; i < p->slots; i++)
        if (worker_group_slot_bad(&p->slot[i]))
            return false;
    return true;
}

void worker_group_check(const struct worker_group *p)
{
    unsigned up = 0, lingering = 0, touched = 0;
    for (unsigned i = 0; i < p->slots; i++) {
        up += p->slot[i].state == WORKER_GROUP_SLOT_UP;
        lingering += p->slot[i].state == WORKER_GROUP_SLOT_LINGERS;
        touched += p->slot[i].state != WORKER_GROUP_SLOT_EMPTY;
    }
    assert(up == p->up && lingering == p->lingering && touched == p->started);
    assert(p->phase != WORKER_GROUP_IDLE || !p->started);
    assert(p->phase < WORKER_GROUP_SWEEPING || !p->up || p->stuck);
    assert(!p->spawning || (p->phase >= WORKER_GROUP_UP && p->phase <= WORKER_GROUP_KILLING && p->started < p->slots));
    assert(p->spawning || !p->held_signal);
    assert((p->phase == WORKER_GROUP_STOPPING) == (p->kill_at != EL_NEVER));
    assert(p->phase == WORKER_GROUP_KILLING || p->phase == WORKER_GROUP_SWEEPING ? p->stuck_at != EL_NEVER
                                                                                 : p->stuck_at == EL_NEVER);
}
