/* The workers of one node in one attempt, as a pure machine: who is up, how they are stopped, when all of it is gone.
 *
 *     idle -> up -> stopping -> killing -> sweeping -> closed -> idle …
 *
 * "Gone" has two halves.  A *leader* is the process that elrun forked (it leads its session and group); its exit is an
 * event.  *Leftovers* are what it leaves behind: they re-parent to elrun (child subreaper) and are swept: SIGTERM, a
 * short linger (a resource tracker must still unlink its shared memory), SIGKILL, until none is left. */
#ifndef PROC_WORKER_GROUP_H
#define PROC_WORKER_GROUP_H
#include <stdbool.h>

#include "util/mem.h"
#include "util/time.h"

#define WORKER_GROUP_LINGER      EL_SEC(1)  /* leftovers: from SIGTERM to SIGKILL */
#define WORKER_GROUP_RESWEEP     EL_MS(50)  /* between two looks at leftovers that were killed */
#define WORKER_GROUP_STUCK       EL_SEC(10) /* unreaped for so long after SIGKILL: stuck (state D) */
#define WORKER_GROUP_ACTIONS_MAX 4

enum worker_group_phase {
    WORKER_GROUP_IDLE,
    WORKER_GROUP_UP,
    WORKER_GROUP_STOPPING,
    WORKER_GROUP_KILLING,
    WORKER_GROUP_SWEEPING,
    WORKER_GROUP_CLOSED
};

enum worker_group_slot_state {
    WORKER_GROUP_SLOT_EMPTY,   /* not started in this attempt */
    WORKER_GROUP_SLOT_UP,      /* forked, not reaped */
    WORKER_GROUP_SLOT_LINGERS, /* leader reaped, its leftovers have until linger_until */
    WORKER_GROUP_SLOT_GONE,
};

struct worker_group_slot {
    enum worker_group_slot_state state;
    bool signalled;   /* elrun has sent its group a signal that ends processes: what follows is no cause */
    int code, signal; /* of the leader once reaped: exit code, or the signal that ended it (then code is -1) */
    bool unknown;     /* the status could not be collected: neither success nor a code */
    el_usec linger_until;
};

enum worker_group_action_type {
    WORKER_GROUP_SPAWN,      /* start slot */
    WORKER_GROUP_SIGNAL_ALL, /* signal to the group of every slot that is up */
    WORKER_GROUP_SWEEP_SLOT, /* signal to what is left of the session of slot's dead leader */
    WORKER_GROUP_SWEEP_ALL,  /* signal to every adopted orphan; the answer is worker_group_swept(how many are left) */
};

struct worker_group_action {
    enum worker_group_action_type type;
    unsigned slot;
    int signal; /* 0 with SWEEP_ALL: only count */
};

struct worker_group_actions {
    unsigned n;
    struct worker_group_action v[WORKER_GROUP_ACTIONS_MAX];
};

struct worker_group {
    enum worker_group_phase phase;
    unsigned slots, started, up, lingering;
    unsigned failed; /* leaders that ended badly without a signal of ours */
    struct worker_group_slot *slot;
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
int worker_group_init(struct worker_group *p, unsigned slots, struct el_mem *mem);
void worker_group_free(struct worker_group *p, struct el_mem *mem);

/* idle or closed -> up: begins a new attempt with slot 0; each worker_group_spawned() asks for the next one.  Every
 * SPAWN is answered by one of the two; worker_group_spawn_failed(): there is no child (the caller stops the attempt).
 */
void worker_group_start(struct worker_group *p, struct worker_group_actions *out);
void worker_group_spawned(struct worker_group *p, unsigned slot, struct worker_group_actions *out);
void worker_group_spawn_failed(struct worker_group *p, el_usec now, struct worker_group_actions *out);

/* The leader of slot has ended and is still a zombie: the sweep of its group is the first action, before it is reaped.
 * code 0…255 or -1 with signal 1…64; both -1: the status could not be collected. */
void worker_group_exited(struct worker_group *p, unsigned slot, int code, int signal, el_usec now,
                         struct worker_group_actions *out);

/* Stops the attempt: signal to all groups, SIGKILL grace later.  Also right while starting (nothing more is spawned).
 * A second call may only make it faster.  grace 0 = SIGKILL at once. */
void worker_group_stop(struct worker_group *p, int signal, el_usec grace, el_usec now,
                       struct worker_group_actions *out);

/* The answer to SWEEP_ALL, and the news that an orphan was reaped. */
void worker_group_swept(struct worker_group *p, unsigned left, el_usec now, struct worker_group_actions *out);
void worker_group_orphan_reaped(struct worker_group *p, el_usec now, struct worker_group_actions *out);

/* Time passes; call at or after the deadline. */
void worker_group_timeout(struct worker_group *p, el_usec now, struct worker_group_actions *out);
el_usec worker_group_deadline(const struct worker_group *p);

/* The reaped leader of a slot did not succeed: another code than 0, a signal, or nobody knows. */
bool worker_group_slot_bad(const struct worker_group_slot *s);

/* All slots of the attempt have been started and none has ended badly. */
bool worker_group_succeeded(const struct worker_group *p);

/* Asserts the invariants; the simulator calls it after every step. */
void worker_group_check(const struct worker_group *p);

#endif
