#include "proc/policy.h"

#include <assert.h>
#include <stddef.h>

enum { SIG_KILL = 9, SIG_TERM = 15 }; /* the kernel's numbers: <signal.h> is for the shell */

static void act(struct policy_actions *out, enum policy_action_type type, unsigned slot, int signal)
{
    assert(out->n < POLICY_ACTIONS_MAX);
    out->v[out->n++] = (struct policy_action){.type = type, .slot = slot, .signal = signal};
}

int policy_init(struct policy *p, unsigned slots, struct el_mem *mem)
{
    assert(slots > 0);
    *p = (struct policy){.slots = slots, .kill_at = EL_NEVER, .stuck_at = EL_NEVER, .sweep_at = EL_NEVER};
    p->slot = el_alloc(mem, slots * sizeof *p->slot);
    return p->slot ? 0 : -1;
}

void policy_free(struct policy *p, struct el_mem *mem)
{
    el_free(mem, p->slot);
    p->slot = NULL;
}

void policy_start(struct policy *p, struct policy_actions *out)
{
    assert(p->phase == POLICY_IDLE || p->phase == POLICY_CLOSED);
    for (unsigned i = 0; i < p->slots; i++)
        p->slot[i] = (struct policy_slot){.linger_until = EL_NEVER};
    p->phase = POLICY_UP;
    p->started = p->up = p->lingering = p->failed = p->left = 0;
    p->kill_at = p->stuck_at = p->sweep_at = EL_NEVER;
    p->sweep_hard = p->stuck = false;
    p->held_signal = 0;
    p->spawning = true;
    act(out, POLICY_SPAWN, 0, 0);
}

/* A child whose fork is under way would miss the signal and live until SIGKILL: the signal waits for the answer, which
 * comes in the same turn of the loop, and everybody gets it exactly once. */
static void signal_all(struct policy *p, int signal, struct policy_actions *out)
{
    p->held_signal = p->spawning ? signal : 0;
    if (p->spawning)
        return;
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == POLICY_SLOT_UP)
            p->slot[i].signalled = true;
    if (p->up)
        act(out, POLICY_SIGNAL_ALL, 0, signal);
}

static void spawn_answered(struct policy *p, struct policy_actions *out)
{
    assert(p->spawning);
    p->spawning = false;
    if (p->held_signal)
        signal_all(p, p->held_signal, out);
}

void policy_spawned(struct policy *p, unsigned slot, struct policy_actions *out)
{
    assert(slot == p->started && slot < p->slots);
    p->slot[slot].state = POLICY_SLOT_UP;
    p->started++;
    p->up++;
    spawn_answered(p, out);
    if (p->phase == POLICY_UP && p->started < p->slots) {
        p->spawning = true;
        act(out, POLICY_SPAWN, p->started, 0);
    }
}

bool policy_slot_bad(const struct policy_slot *s)
{
    return s->unknown || s->code != 0;
}

/* The last leader is gone: what remains are leftovers, of which some may have left every session. */
static void sweep_if_empty(struct policy *p, el_usec now, struct policy_actions *out)
{
    bool complete = p->phase != POLICY_UP || p->started == p->slots;
    if (p->up || p->spawning || !complete || p->phase >= POLICY_SWEEPING)
        return;
    bool hard = p->phase == POLICY_KILLING;
    p->phase = POLICY_SWEEPING;
    p->sweep_hard = hard;
    p->sweep_at = now + (hard ? POLICY_RESWEEP : POLICY_LINGER);
    p->kill_at = EL_NEVER;
    p->stuck_at = now + (hard ? 0 : POLICY_LINGER) + POLICY_STUCK;
    act(out, POLICY_SWEEP_ALL, 0, hard ? SIG_KILL : SIG_TERM);
}

void policy_spawn_failed(struct policy *p, el_usec now, struct policy_actions *out)
{
    spawn_answered(p, out);
    sweep_if_empty(p, now, out);
}

void policy_exited(struct policy *p, unsigned slot, int code, int signal, el_usec now, struct policy_actions *out)
{
    assert(slot < p->slots && p->slot[slot].state == POLICY_SLOT_UP && p->up > 0);
    struct policy_slot *s = &p->slot[slot];
    s->code = code;
    s->signal = signal;
    s->unknown = code < 0 && signal < 0;
    /* Once the leaders are being killed, or the attempt was given up, their leftovers get no time of their own. */
    bool hard = p->phase >= POLICY_KILLING;
    s->state = hard ? POLICY_SLOT_GONE : POLICY_SLOT_LINGERS;
    s->linger_until = now + POLICY_LINGER;
    p->up--;
    p->lingering += !hard;
    if (policy_slot_bad(s) && !s->signalled)
        p->failed++;
    act(out, POLICY_SWEEP_SLOT, slot, hard ? SIG_KILL : SIG_TERM);
    sweep_if_empty(p, now, out);
}

static void kill_all(struct policy *p, el_usec now, struct policy_actions *out)
{
    p->phase = POLICY_KILLING;
    p->kill_at = EL_NEVER;
    p->stuck_at = now + POLICY_STUCK;
    signal_all(p, SIG_KILL, out);
}

void policy_stop(struct policy *p, int signal, el_usec grace, el_usec now, struct policy_actions *out)
{
    if (p->phase == POLICY_SWEEPING && !grace && !p->sweep_hard) {
        p->sweep_at = now;
        policy_timeout(p, now, out);
    }
    if (p->phase != POLICY_UP && p->phase != POLICY_STOPPING)
        return;
    if (!grace) {
        kill_all(p, now, out);
    } else if (p->phase == POLICY_UP) {
        p->phase = POLICY_STOPPING;
        p->kill_at = now + grace;
        signal_all(p, signal, out);
    } else if (now + grace < p->kill_at) {
        p->kill_at = now + grace;
    }
    sweep_if_empty(p, now, out);
}

void policy_swept(struct policy *p, unsigned left, el_usec now, struct policy_actions *out)
{
    (void)now, (void)out;
    p->left = left;
    if (p->phase != POLICY_SWEEPING || left)
        return;
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == POLICY_SLOT_LINGERS)
            p->slot[i].state = POLICY_SLOT_GONE;
    p->lingering = 0;
    p->phase = POLICY_CLOSED;
    p->sweep_at = p->stuck_at = EL_NEVER;
}

void policy_orphan_reaped(struct policy *p, el_usec now, struct policy_actions *out)
{
    (void)now;
    if (p->phase == POLICY_SWEEPING || p->stuck) /* its children, if any, are ours now */
        act(out, POLICY_SWEEP_ALL, 0, p->sweep_hard || p->stuck ? SIG_KILL : 0);
}

/* One process that nothing ends must not save the others that only lived in its shadow. */
static void give_up(struct policy *p, struct policy_actions *out)
{
    p->phase = POLICY_CLOSED;
    p->stuck = true;
    p->kill_at = p->stuck_at = p->sweep_at = EL_NEVER;
    act(out, POLICY_SWEEP_ALL, 0, SIG_KILL);
}

/* Leaders that died while others run: their leftovers have had their linger.  One slot a call keeps the list short. */
static void kill_one_lingering(struct policy *p, el_usec now, struct policy_actions *out)
{
    for (unsigned i = 0; i < p->slots; i++)
        if (p->slot[i].state == POLICY_SLOT_LINGERS && p->slot[i].linger_until <= now) {
            p->slot[i].state = POLICY_SLOT_GONE;
            p->lingering--;
            act(out, POLICY_SWEEP_SLOT, i, SIG_KILL);
            return;
        }
}

void policy_timeout(struct policy *p, el_usec now, struct policy_actions *out)
{
    if (p->phase == POLICY_STOPPING && p->kill_at <= now)
        kill_all(p, now, out);
    if (p->stuck_at <= now) {
        give_up(p, out);
        return;
    }
    if (p->phase == POLICY_SWEEPING && p->sweep_at <= now) {
        p->sweep_hard = true;
        p->sweep_at = now + POLICY_RESWEEP;
        act(out, POLICY_SWEEP_ALL, 0, SIG_KILL);
    }
    if (p->lingering && p->phase != POLICY_SWEEPING)
        kill_one_lingering(p, now, out);
}

el_usec policy_deadline(const struct policy *p)
{
    el_usec first = p->kill_at;
    if (p->stuck_at < first)
        first = p->stuck_at;
    if (p->sweep_at < first)
        first = p->sweep_at;
    if (p->lingering && p->phase < POLICY_SWEEPING)
        for (unsigned i = 0; i < p->slots; i++)
            if (p->slot[i].state == POLICY_SLOT_LINGERS && p->slot[i].linger_until < first)
                first = p->slot[i].linger_until;
    return first;
}

bool policy_succeeded(const struct policy *p)
{
    if (p->started < p->slots || p->up || p->failed)
        return false;
    for (unsigned i = 0; i < p->slots; i++)
        if (policy_slot_bad(&p->slot[i]))
            return false;
    return true;
}

void policy_check(const struct policy *p)
{
    unsigned up = 0, lingering = 0, touched = 0;
    for (unsigned i = 0; i < p->slots; i++) {
        up += p->slot[i].state == POLICY_SLOT_UP;
        lingering += p->slot[i].state == POLICY_SLOT_LINGERS;
        touched += p->slot[i].state != POLICY_SLOT_EMPTY;
    }
    assert(up == p->up && lingering == p->lingering && touched == p->started);
    assert(p->phase != POLICY_IDLE || !p->started);
    assert(p->phase < POLICY_SWEEPING || !p->up || p->stuck);
    assert(!p->spawning || (p->phase >= POLICY_UP && p->phase <= POLICY_KILLING && p->started < p->slots));
    assert(p->spawning || !p->held_signal);
    assert((p->phase == POLICY_STOPPING) == (p->kill_at != EL_NEVER));
    assert(p->phase == POLICY_KILLING || p->phase == POLICY_SWEEPING ? p->stuck_at != EL_NEVER
                                                                     : p->stuck_at == EL_NEVER);
}
