/* The workers of one node in one attempt, as a pure machine: who is up, how they are stopped, when all of it is gone.
 *
 *     idle -> up -> stopping -> killing -> sweeping -> closed -> idle …
 *
 * "Gone" has two halves.  A *leader* is the process that elrun forked (it leads its session and group); its exit is an
 * event.  *Leftovers* are what it leaves behind: they re-parent to elrun (child subreaper) and are swept: SIGTERM, a
 * short linger (a resource tracker must still unlink its shared memory), SIGKILL, until none is left. */
#ifndef PROC_POLICY_H
#define PROC_POLICY_H
#include <stdbool.h>

#include "util/mem.h"
#include "util/time.h"

#define POLICY_LINGER      EL_SEC(1)  /* leftovers: from SIGTERM to SIGKILL */
#define POLICY_RESWEEP     EL_MS(50)  /* between two looks at leftovers that were killed */
#define POLICY_STUCK       EL_SEC(10) /* unreaped for so long after SIGKILL: stuck (state D) */
#define POLICY_ACTIONS_MAX 4

enum policy_phase { POLICY_IDLE, POLICY_UP, POLICY_STOPPING, POLICY_KILLING, POLICY_SWEEPING, POLICY_CLOSED };

enum policy_slot_state {
    POLICY_SLOT_EMPTY,   /* not started in this attempt */
    POLICY_SLOT_UP,      /* forked, not reaped */
    POLICY_SLOT_LINGERS, /* leader reaped, its leftovers have until linger_until */
    POLICY_SLOT_GONE,
};

struct policy_slot {
    enum policy_slot_state state;
    bool signalled;   /* elrun has sent its group a signal that ends processes: what follows is no cause */
    int code, signal; /* of the leader once reaped: exit code, or the signal that ended it (then code is -1) */
    bool unknown;     /* the status could not be collected: neither success nor a code */
    el_usec linger_until;
};

enum policy_action_type {
    POLICY_SPAWN,      /* start slot */
    POLICY_SIGNAL_ALL, /* signal to the group of every slot that is up */
    POLICY_SWEEP_SLOT, /* signal to what is left of the session of slot's dead leader */
    POLICY_SWEEP_ALL,  /* signal to every adopted orphan; the answer is policy_swept(how many are left) */
};

struct policy_action {
    enum policy_action_type type;
    unsigned slot;
    int signal; /* 0 with SWEEP_ALL: only count */
};

struct policy_actions {
    unsigned n;
    struct policy_action v[POLICY_ACTIONS_MAX];
};

struct policy {
    enum policy_phase phase;
    unsigned slots, started, up, lingering;
    unsigned failed; /* leaders that ended badly without a signal of ours */
    struct policy_slot *slot;
    el_usec kill_at;  /* stopping: when SIGKILL follows */
    el_usec stuck_at; /* killing, sweeping: when to give up */
    el_usec sweep_at; /* sweeping: the next look */
    bool sweep_hard;  /* sweeping: linger is over */
    bool spawning;    /* SPAWN of slot `started` is not answered yet: nobody is signalled before the answer */
    int held_signal;  /* stop while spawning: the signal for all that follows the answer; 0: none */
    bool stuck;       /* closed with processes that even SIGKILL does not end */
    unsigned left;    /* orphans at the last look */
};

/* 0, or -1 when memory is refused. */
int policy_init(struct policy *p, unsigned slots, struct el_mem *mem);
void policy_free(struct policy *p, struct el_mem *mem);

/* idle or closed -> up: begins a new attempt with slot 0; each policy_spawned() asks for the next one.  Every SPAWN is
 * answered by one of the two; policy_spawn_failed(): there is no child (the caller stops the attempt). */
void policy_start(struct policy *p, struct policy_actions *out);
void policy_spawned(struct policy *p, unsigned slot, struct policy_actions *out);
void policy_spawn_failed(struct policy *p, el_usec now, struct policy_actions *out);

/* The leader of slot has ended and is still a zombie: the sweep of its group is the first action, before it is reaped.
 * code 0…255 or -1 with signal 1…64; both -1: the status could not be collected. */
void policy_exited(struct policy *p, unsigned slot, int code, int signal, el_usec now, struct policy_actions *out);

/* Stops the attempt: signal to all groups, SIGKILL grace later.  Also right while starting (nothing more is spawned).
 * A second call may only make it faster.  grace 0 = SIGKILL at once. */
void policy_stop(struct policy *p, int signal, el_usec grace, el_usec now, struct policy_actions *out);

/* The answer to SWEEP_ALL, and the news that an orphan was reaped. */
void policy_swept(struct policy *p, unsigned left, el_usec now, struct policy_actions *out);
void policy_orphan_reaped(struct policy *p, el_usec now, struct policy_actions *out);

/* Time passes; call at or after the deadline. */
void policy_timeout(struct policy *p, el_usec now, struct policy_actions *out);
el_usec policy_deadline(const struct policy *p);

/* The reaped leader of a slot did not succeed: another code than 0, a signal, or nobody knows. */
bool policy_slot_bad(const struct policy_slot *s);

/* All slots of the attempt have been started and none has ended badly. */
bool policy_succeeded(const struct policy *p);

/* Asserts the invariants; the simulator calls it after every step. */
void policy_check(const struct policy *p);

#endif
