/* The status page: 4 KiB that a worker and its agent both map, so that the agent knows step and phase of a worker that
 * hangs, without asking it.  The worker writes what is marked W, the agent what is marked A; each takes what the other
 * wrote for no more than a claim.  src/client/elrun writes it by these offsets. */
#ifndef SNAPSHOT_WORKER_STATUS_H
#define SNAPSHOT_WORKER_STATUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/notice.h"

#define WORKER_STATUS_MAGIC   0x3130544154534c45u /* "ELSTAT01" */
#define WORKER_STATUS_VERSION 1u
#define WORKER_STATUS_BYTES   4096u
#define WORKER_STATUS_NO_STEP INT64_MAX

enum worker_status_phase {
    WORKER_STATUS_INIT,
    WORKER_STATUS_STABLE,
    WORKER_STATUS_UPDATING,
    WORKER_STATUS_SNAPSHOT,
    WORKER_STATUS_BLOCKED,
    WORKER_STATUS_EXITING
};

struct worker_status {
    uint64_t magic;             /* A */
    uint32_t version, rank;     /* A */
    uint64_t round, coord;      /* A */
    uint64_t counter;           /* A: of the last order */
    uint64_t seq;               /* W: odd while it writes */
    int64_t live_step;          /* W: last finished update, -1: none */
    uint32_t phase, spare;      /* W: enum worker_status_phase */
    int64_t limit_step;         /* A: no update beyond it is begun; WORKER_STATUS_NO_STEP: none */
    uint64_t heartbeat_ns;      /* W: on its monotonic clock */
    uint64_t update_started_ns; /* W */
    int64_t boundary_step;      /* A: a planned change comes behind this step; WORKER_STATUS_NO_STEP: none */
    int64_t notice_deadline_ns; /* A */
    uint32_t notice_why;        /* A: enum notice_why; */
    uint32_t spare2;
    int64_t begin_step; /* W: the step that it is in, or waits to begin; -1: none */
    int64_t at_step;    /* W: behind this step it stops, since a boundary lay there; -1: none */
};

_Static_assert(offsetof(struct worker_status, seq) == 40 && offsetof(struct worker_status, live_step) == 48 &&
                   offsetof(struct worker_status, phase) == 56 && offsetof(struct worker_status, limit_step) == 64 &&
                   offsetof(struct worker_status, update_started_ns) == 80 &&
                   offsetof(struct worker_status, boundary_step) == 88 &&
                   offsetof(struct worker_status, notice_why) == 104 &&
                   offsetof(struct worker_status, begin_step) == 112 &&
                   offsetof(struct worker_status, at_step) == 120 && sizeof(struct worker_status) == 128,
               "src/client/elrun has these offsets");

#define WORKER_STATUS_TRIES 8 /* a worker may begin a step while that is being forbidden; it waits from then on */

/* What the agent does with pages; what workers wrote is a claim. */
void worker_status_reset(struct worker_status *p, uint64_t round, uint64_t coord, uint32_t rank);

/* Its worker takes its steps in ck.update(): it can be asked to stop behind one of them. */
bool worker_status_listens(const struct worker_status *p);

/* The last step that was begun, -1: none. */
int64_t worker_status_begun(const struct worker_status *p);

/* Where it is while a limit holds that worker_status_freeze() has set: between two steps its state is that behind
 * `live`, and stays so.  begun: the last step that it has begun. */
struct worker_status_stand {
    bool listens, stable;
    int64_t live, begun; /* -1: none */
    uint64_t beat;       /* another one at each sign of life */
};
void worker_status_stand(const struct worker_status *p, struct worker_status_stand *to);

/* What it says it is doing, "stable"; and its last finished step, -1: none. */
const char *worker_status_phase(const struct worker_status *p);
int64_t worker_status_live(const struct worker_status *p);

/* From now on no step beyond it is begun; WORKER_STATUS_NO_STEP: run on. */
void worker_status_limit(struct worker_status *p, int64_t step);

/* The round's last step; WORKER_STATUS_NO_STEP: none. */
void worker_status_announce(struct worker_status *p, enum notice_why why, int64_t boundary, int64_t deadline_ns);

/* The boundary does not hold any more, the limit does. */
void worker_status_retract(struct worker_status *p);

/* It has done the boundary's step and does not stop there. */
bool worker_status_is_past(const struct worker_status *p, int64_t boundary);

/* No worker of these begins a step beyond the highest that one of them is in, which is returned (-1: none). */
int64_t worker_status_freeze(struct worker_status *const *page, unsigned n);

#endif
