/* A machine that does not exist: virtual time, processes that misbehave and a shell that performs the node core's
 * actions on them.  One run is the life of one job, drawn from one seed; the same seed gives the same run on every
 * compiler.
 *
 * Two halves: world.c lets things happen, judge.c knows what must hold and never looks into the core for it, except for
 * the state that a step led to. */
#ifndef TEST_SIM_WORLD_H
#define TEST_SIM_WORLD_H
#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "sim/trace.h"
#include "util/rng.h"

#define WORLD_SLOTS_MAX 64
#define WORLD_PROCS_MAX 1024
#define WORLD_ITEMS_MAX 8192
#define WORLD_TRACE_MAX 40          /* steps that a failure shows */
#define WORLD_LATE_MAX  EL_MS(2)    /* a timer of a real loop comes so much too late */
#define WORLD_HORIZON   EL_SEC(100) /* then somebody sends SIGTERM: no job runs for ever */

/* How likely is what; in 1000. */
struct world_faults {
    unsigned bad_exit, killed, unknown, ignores_term, state_d, kids, escapes;
    unsigned fork_fails, exec_fails, prepare_fails, slow, signals, farewell, hangs, failing, follows;
};

struct world_proc {
    uint32_t id;      /* never used twice in a run; 0: the entry is free */
    int slot;         /* leader: its slot; else -1 */
    int parent;       /* index, or -1: elrun's own child, by fork or by adoption */
    uint32_t session; /* id of the process that made it */
    bool alive;
    bool ignores_term, fails_exec;
    unsigned told, told_kill; /* signals that end processes, sent by elrun */
    unsigned depth, kids;
    int code, signal; /* once dead */
    bool unknown;
    el_usec d_until;    /* state D until then: nothing ends it; EL_NEVER: for ever; 0: not in state D */
    el_usec spawned_at; /* leader: when the answer to its fork reaches the core */
    el_usec adopted_at; /* orphan: since when elrun is its parent */
};

enum world_kind { WORLD_EVENT, WORLD_DIE, WORLD_FORK, WORLD_FAREWELL };

struct world_item {
    el_usec at;
    uint64_t seq; /* order among those of the same time */
    enum world_kind kind;
    int proc;
    uint32_t id; /* of the process that was meant */
    int code, signal;
    struct agent_event event;
};

/* What the judge remembers. */
struct world_judge {
    bool stop_due;   /* there was a reason to stop this attempt */
    el_usec kill_by; /* then the grace is over */
    int stop_signal;
    el_usec grace;           /* of that stop */
    bool captures, captured; /* what the workers hold is being captured; it was */
    bool at_once;            /* this stop has no grace */
    bool kill_due;           /* and one not to wait for the grace */
    bool all_gone;           /* the last leader of this attempt was reaped, at: */
    el_usec all_gone_at;
    el_usec empty_since;              /* no process at all lives, and the attempt is open still; EL_NEVER: not so */
    unsigned failed;                  /* leaders that ended badly and untold, in this attempt */
    bool was_told[WORLD_SLOTS_MAX];   /* the leader that was reaped last */
    el_usec gone_at[WORLD_SLOTS_MAX]; /* leader reaped */
    bool collecting, collected;
    bool hopeless; /* the evidence says that a restart cannot help */
    el_usec closed_at;
    bool asked_to_leave; /* by a handled signal, at any time */
    unsigned interrupts, attempts, ends, notes, exited_ok, exited;
    enum agent_cause verdict; /* what the end must say if it comes now */
    unsigned verdict_slot;
    el_usec hindsight;
    bool open; /* verdict_slot's failure may be another one's consequence: that is waited for, until */
    el_usec open_until;
    bool waits;     /* ... verdict_slot's: on a rank that is about to end */
    unsigned looks; /* asked for in this attempt, not answered */
    el_usec burst_at, second;
    unsigned burst, in_second;
    bool saw_d; /* a process in state D was signalled in vain */
};

struct world {
    struct el_rng rng;
    uint64_t seed, seq, hash, steps;
    el_usec now;
    struct world_faults faults;
    struct agent_conf conf;
    struct agent agent;
    struct world_judge judge;

    struct world_item *item; /* heap by (at, seq) */
    unsigned items;
    struct world_proc proc[WORLD_PROCS_MAX];
    int procs; /* entries ever used in this run */
    uint32_t ids;
    int leader[WORLD_SLOTS_MAX];       /* index of the unreaped leader, -1: none */
    uint32_t session[WORLD_SLOTS_MAX]; /* of the latest leader */
    bool spawn_open;                   /* a fork is not answered yet */

    struct trace_step trace[WORLD_TRACE_MAX];
    uint64_t traced;
    bool print; /* each step as it happens */
    bool failed;
    char why[200];
};

/* Memory that outlives the runs. */
void world_init(struct world *w);
void world_free(struct world *w);

/* One job from START to after END; false and w->why if something did not hold. */
bool world_run(struct world *w, uint64_t seed);

/* Leaders that are not reaped. */
unsigned world_leaders(const struct world *w);

/* The last steps, to stdout. */
void world_print_trace(const struct world *w);

/* Judge: what is known before a step, what each action may do, what must hold after it. */
void judge_event(struct world *w, const struct agent_event *ev, const struct world_proc *ended);
void judge_action(struct world *w, const struct agent_action *x, const struct agent_event *ev);
void judge_step(struct world *w, const struct agent_event *ev);
void judge_end_of_run(struct world *w);

/* The first failure of a run is kept. */
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Living processes, all or only elrun's own children that are no leaders. */
unsigned world_living(const struct world *w);
unsigned world_orphans(const struct world *w);

#endif
