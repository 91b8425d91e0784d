/* Where this node's workers are, and where they are to stop: their status pages (snapshot/worker_status.h), planned
 * changes that wait for a step boundary. */
#ifndef AGENT_STEP_BOUNDARY_H
#define AGENT_STEP_BOUNDARY_H
#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "util/err.h"
#include "util/time.h"

struct step_boundary;

struct step_boundary_ops {
    void (*aware)(void *ctx); /* the first worker of the round has come */
    /* Answer to step_boundary_notice() without a boundary, and (past) news about one that was set.  deaf: nobody would
     * stop. */
    void (*live)(void *ctx, int64_t step, bool deaf, bool past);
    void (*parted)(void *ctx, unsigned worker); /* it stands at the boundary and may end */
    void (*at_boundary)(void *ctx);             /* all that listen do */
};

struct step_boundary_notice {
    unsigned why;     /* enum notice_why */
    int64_t boundary; /* -1: not known yet */
    el_usec until;
};

struct step_boundary *step_boundary_new(struct loop *l, unsigned workers, const struct step_boundary_ops *ops,
                                        void *ctx, struct el_err *e);
void step_boundary_free(struct step_boundary *s);

int step_boundary_descriptor(const struct step_boundary *s, unsigned worker); /* of its page */
void step_boundary_round(struct step_boundary *s, uint64_t number, uint64_t coord, unsigned rank_base);
void step_boundary_came(struct step_boundary *s, unsigned worker);
void step_boundary_went(struct step_boundary *s, unsigned worker);
void step_boundary_stands(struct step_boundary *s, unsigned worker, int64_t step); /* it says so */

/* A planned change, as the coordinator has it; NULL: there is none any more. */
void step_boundary_notice(struct step_boundary *s, const struct step_boundary_notice *n);

/* Emergency checkpoint: no worker that is connected begins a step beyond the highest of them; until thawed, or the
 * round is over. False: none of them takes its steps in ck.update(), or a planned change has its own limit. */
struct worker_status_stand;
bool step_boundary_freeze(struct step_boundary *s, int64_t *limit); /* limit: that highest one */
void step_boundary_allow(struct step_boundary *s,
                         int64_t limit); /* … a later one, which workers of other nodes are in */
void step_boundary_thaw(struct step_boundary *s);
void step_boundary_stand(const struct step_boundary *s, unsigned worker, struct worker_status_stand *to);

/* What the worker of this round says of itself: is it connected; worker_status_phase(), worker_status_live(). */
bool step_boundary_view(const struct step_boundary *s, unsigned worker, const char **phase, int64_t *live_step);

#endif
