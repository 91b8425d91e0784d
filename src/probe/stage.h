/* The children of a probe on one node: who runs until when, whose time is over, what became of each.  Pure; stage_io.c
 * starts, reads and kills.  A process that stood still (SIGSTOP, a paused container) gives its children the time back
 * that it slept: nobody is judged by a clock that ran while nobody looked. */
#ifndef PROBE_STAGE_H
#define PROBE_STAGE_H
#include <stdbool.h>

#include "probe/wire.h"
#include "util/time.h"

#define STAGE_CHILDREN_MAX 64
#define STAGE_LOOK         EL_MS(500) /* so often the clock is looked at while somebody runs */
#define STAGE_GAP          EL_SEC(1)  /* more than that later: we were not running */
#define STAGE_LEAVE        EL_SEC(5)  /* a child that has said `end` may take so long to go */
#define STAGE_REAP         EL_SEC(10) /* and after SIGKILL so long, else it is stuck */

/* X(NAME, word): what became of a child. */
#define STAGE_OUTCOME_LIST(X)                                                                                          \
    X(DONE, "done")        /* it said `end`, and that all went well */                                                 \
    X(FAILED, "failed")    /* it said why it could not, or ended with a status */                                      \
    X(CRASHED, "crashed")  /* a signal that was not ours */                                                            \
    X(SILENT, "silent")    /* status 0 without a word of its end */                                                    \
    X(TIMEOUT, "time out") /* killed at its deadline */                                                                \
    X(STUCK, "stuck")      /* not even SIGKILL ends it: the node must be drained */                                    \
    X(STOPPED, "stopped")  /* nobody wanted it any more */

enum stage_outcome {
#define X(NAME, word) STAGE_##NAME,
    STAGE_OUTCOME_LIST(X)
#undef X
};
const char *stage_outcome_word(enum stage_outcome o);

enum stage_state { STAGE_FREE, STAGE_RUNNING, STAGE_KILLED };

struct stage_slot {
    enum stage_state state;
    el_usec deadline;
    bool ended, good;        /* it has said `end`; and that all is well */
    bool timed_out, stopped; /* why it was killed */
};

struct stage {
    struct stage_slot child[STAGE_CHILDREN_MAX];
    unsigned running;
    el_usec seen;  /* when the clock was looked at last */
    el_usec slept; /* in all, while somebody ran */
};

struct stage_action {
    enum { STAGE_DO_KILL, STAGE_DO_TELL } type;
    unsigned child;
    enum stage_outcome outcome; /* STAGE_DO_TELL: the child's place is free now */
};
struct stage_actions {
    unsigned n;
    struct stage_action v[2 * STAGE_CHILDREN_MAX]; /* each child is killed at most once and told once */
};

void stage_init(struct stage *s, el_usec now);

/* A child that has been started: its number, which is its own until its outcome is told; -1: there are too many. */
int stage_add(struct stage *s, el_usec limit, el_usec now);

/* It could not be started: as if it had never been. */
void stage_forget(struct stage *s, unsigned child);

/* It has said its last line. */
void stage_heard_end(struct stage *s, unsigned child, bool good, el_usec now);

/* It was reaped, and everything that it had written was read.  code -1: ended by a signal. */
void stage_exited(struct stage *s, unsigned child, int code, struct stage_actions *out);

/* First thing when the loop comes back: gives back the time that was slept. */
void stage_woke(struct stage *s, el_usec now);

/* At stage_deadline(), behind stage_woke() and when what is in the pipes has been read and the dead have been reaped:
 * whoever is still there is late. */
void stage_timeout(struct stage *s, el_usec now, struct stage_actions *out);

/* Nobody wants this child (or, -1, any of them) any more. */
void stage_stop(struct stage *s, int child, el_usec now, struct stage_actions *out);

el_usec stage_deadline(const struct stage *s);
void stage_check(const struct stage *s);

#endif
