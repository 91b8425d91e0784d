/* The node core: what to start, stop and report, decided from events and the time alone (doc/design.md, "Agent").
 *
 *     idle -> preparing -> running -> stopping -> collecting -> (preparing | ended)
 *
 * The shell (agent_io.c) performs the actions and sends their results back as events; no action is assumed to succeed.
 * The worker group itself is src/proc/worker_group, whether a failure is tried again is src/failure/restart_policy;
 * restart budget and signals are decided here. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H
#include <stdbool.h>

#include "failure/restart_policy.h"
#include "proc/worker_group.h"
#include "coord/budget.h"
#include "util/mem.h"
#include "util/time.h"

#define AGENT_ACTIONS_MAX 8
#define AGENT_SIGNAL_MAX  64
/* Workers that stand at a step boundary end by themselves, and may close their files; then they are signalled. */
#define AGENT_PARTING EL_SEC(10)

/* A worker whose last output only says that a peer is gone waits so long for the one that made it so: that one may
 * still be tearing down, and would be stopped before it has said why. */
#define AGENT_CONSEQUENCE EL_SEC(5)
/* Hung workers get SIGABRT, so that their fault handler prints every stack, and so long for it. */
#define AGENT_ABORT_GRACE EL_SEC(5)

enum agent_state { AGENT_IDLE, AGENT_PREPARING, AGENT_RUNNING, AGENT_STOPPING, AGENT_COLLECTING, AGENT_ENDED };

/* Why the job ended, or why the present attempt is being stopped. */
enum agent_cause {
    AGENT_NO_CAUSE,
    AGENT_SUCCESS,        /* every worker exited 0 */
    AGENT_WORKER_FAILED,  /* slot: the first that ended badly by itself */
    AGENT_SPAWN_FAILED,   /* slot could not be started: the shell has the error */
    AGENT_PREPARE_FAILED, /* logs, port or store: the shell has the error */
    AGENT_LEAVING,        /* asked to leave by signal */
    AGENT_HALTED,         /* managed: stopped from above */
    AGENT_STUCK,          /* processes that survive SIGKILL */
};

struct agent_conf {
    unsigned slots;
    unsigned max_restarts;
    el_usec grace;       /* --shutdown-timeout */
    el_usec consequence; /* a failure that is another one's consequence waits so long for that one; 0: nobody looks */
    /* A job of this node alone; else the coordinator has them. */
    enum restart_policy restart_policy;
    unsigned max_fruitless;
    el_usec restart_window; /* 0: all restarts count */
    /* One of several nodes: attempts are started and stopped from above (member.h), restarts are counted elsewhere, and
     * each end is handed up. */
    bool managed;
    bool captures; /* before workers are signalled, what those that live hold may be captured (snapshot/emergency.h) */
    bool captures_stay;                 /* … and outlives the job, since it is written to disk */
    bool handled[AGENT_SIGNAL_MAX + 1]; /* signals that end this node's part, by number */
};

enum agent_event_type {
    AGENT_EV_START,
    AGENT_EV_ATTEMPT,      /* managed: start an attempt; restarts: how many there were in the job */
    AGENT_EV_HALT,         /* managed: stop it; signal, grace (0: SIGKILL at once); waits: slot is about to end of an
                              error that it had raised, and is worth a wait */
    AGENT_EV_FINISH,       /* managed: no attempt will follow */
    AGENT_EV_PREPARED,     /* ok: whether logs, port and streams are there; attempt: of which (0: of the present one) */
    AGENT_EV_SPAWNED,      /* slot */
    AGENT_EV_SPAWN_FAILED, /* slot: fork failed (instead of SPAWNED), or the child reported that exec did (after
                              SPAWNED) */
    AGENT_EV_EXITED,       /* slot, code, signal: leader is a zombie still */
    AGENT_EV_SWEPT,        /* left */
    AGENT_EV_ORPHAN,       /* an adopted orphan was reaped */
    AGENT_EV_PARTED,       /* slot: it stands behind the last step of its round and may end, with whatever status */
    AGENT_EV_FAILING,      /* slot: it will end badly, and waits until CAPTURED; managed: or one of another node does */
    AGENT_EV_LOOKED,       /* of DO_LOOK: slot; follows: its last output only says that a peer is gone; waits: it has no
                              error of its own, and a rank that had raised one before is about to end; attempt */
    AGENT_EV_NONE_ENDS,    /* no such rank is about to end any more: it goes on */
    AGENT_EV_CAPTURED,  /* of DO_CAPTURE: it is over, whatever came of it; attempt: of which (0: of the present one) */
    AGENT_EV_HUNG,      /* every worker stands still; slot: who keeps the others waiting, as far as it shows */
    AGENT_EV_COLLECTED, /* the evidence of the attempt is complete; digest: what it says */
    AGENT_EV_SIGNAL,    /* signal, to elrun */
    AGENT_EV_TIMEOUT,
};

struct agent_event {
    enum agent_event_type type;
    unsigned slot, left;
    unsigned attempt, restarts;
    el_usec grace;
    int code, signal;
    const struct restart_digest *digest; /* read in this step only; NULL: nothing is known */
    bool ok;
    bool follows, waits;
    bool typed;  /* EXITED: Ctrl-C had reached the worker, which has the terminal, a short while before */
    bool forked; /* SPAWN_FAILED: there is a child, whose exit follows, or came just before */
};

enum agent_action_type {
    AGENT_DO_PREPARE, /* attempt: make log folders, store, streams; answer PREPARED */
    AGENT_DO_GROUP,   /* group: one action of the worker group */
    AGENT_DO_NOTE,    /* slot has failed by itself: say so now (hindsight is over) */
    AGENT_DO_LOOK,    /* slot has failed: what does its last output say?  Answer LOOKED in bounded time */
    AGENT_DO_CAPTURE, /* what workers hold, if anything can be had; answer CAPTURED in bounded time, at once if not */
    AGENT_DO_COLLECT, /* the attempt is closed: gather evidence and close its streams; answer COLLECTED in bounded time
                       */
    AGENT_DO_WAIT,    /* another attempt follows at again_at: what made this one fail has to pass */
    AGENT_DO_FORWARD, /* signal to each leader that catches it */
    AGENT_DO_SUSPEND, /* stop all groups, then elrun itself; continue them when it goes on */
    AGENT_DO_UP,      /* managed: every worker of the attempt has been forked */
    AGENT_DO_RESULT,  /* managed: the attempt is over and its evidence is there; see cause, cause_slot, group.stuck */
    AGENT_DO_END,     /* see agent->cause */
};

struct agent_action {
    enum agent_action_type type;
    struct worker_group_action group;
    unsigned slot;
    int signal;
};

struct agent_actions {
    unsigned n;
    struct agent_action v[AGENT_ACTIONS_MAX];
};

struct agent {
    struct agent_conf conf;
    enum agent_state state;
    struct worker_group group;
    struct budget budget; /* not if managed */
    struct restart_history history;
    struct restart_digest digest;   /* of the present attempt, once collected */
    struct restart_verdict verdict; /* why says why the last failure ended the job; "": the budget did, or none has */
    el_usec began;                  /* the present attempt */
    el_usec stopped;                /* when it was; 0: it ended by itself, or not at all */
    unsigned restarts;              /* used; TORCHELASTIC_RESTART_COUNT */
    unsigned attempts;              /* begun */
    enum agent_cause cause;         /* of the present stop; at the end: of the job */
    unsigned cause_slot;
    int leave_signal;        /* AGENT_LEAVING: which */
    unsigned interrupts;     /* SIGINT so far */
    el_usec hindsight_until; /* no word, no restart and no verdict before (agent/signal_settle.h) */
    el_usec sure_at;         /* … and, when what the others hold is captured, before this */
    bool note_due;           /* cause_slot's failure has not been told yet */
    el_usec judge_until; /* cause_slot may not be the cause: known when another one fails by itself, or then; EL_NEVER:
                            it is judged */
    unsigned looks;      /* asked for and not answered */
    bool follows; /* cause_slot's last output only says that a peer is gone, and nobody else has failed by itself */
    bool waits;   /* … or has no error of its own, and one that had raised an error before is about to end */
    bool collected;
    el_usec again_at;      /* another attempt is decided, and waits until then; EL_NEVER: none does */
    el_usec parting_until; /* HALT waits for workers that stand at the boundary; EL_NEVER: none does */
    el_usec parting_grace;
    int parting_signal;
    int ending;  /* HALT waits for this slot, in the same way; -1: for none */
    bool parted; /* a worker of the present attempt has: the attempt neither succeeds nor fails by that */
    enum agent_capture { AGENT_CAPTURE_NOT, AGENT_CAPTURE_ASKED, AGENT_CAPTURE_OVER } capture; /* of the attempt */
    bool held; /* the workers are signalled when that is over: with this */
    int held_signal;
    el_usec held_grace;
    bool hung; /* the present attempt is stopped because it stood still */
};

/* 0, or -1 when memory is refused. */
int agent_init(struct agent *a, const struct agent_conf *conf, struct el_mem *mem);
void agent_free(struct agent *a, struct el_mem *mem);

void agent_step(struct agent *a, const struct agent_event *ev, el_usec now, struct agent_actions *out);

/* When to send AGENT_EV_TIMEOUT; EL_NEVER if not needed. */
el_usec agent_deadline(const struct agent *a);

void agent_check(const struct agent *a);

/* The workers are being stopped and were not told yet, since what they hold is being captured. */
bool agent_is_held(const struct agent *a);

const char *agent_state_name(enum agent_state state);

#endif
