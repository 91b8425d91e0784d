/* Where this node's workers are, and where they are to stop: their status pages (snapshot/page.h), planned changes that
 * wait for a step boundary. */
#ifndef AGENT_STOPS_H
#define AGENT_STOPS_H
#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "util/err.h"
#include "util/time.h"

struct stops;

struct stops_ops {
    void (*aware)(void *ctx); /* the first worker of the round has come */
    /* Answer to stops_notice() without a boundary, and (past) news about one that was set.  deaf: nobody would stop. */
    void (*live)(void *ctx, int64_t step, bool deaf, bool past);
    void (*parted)(void *ctx, unsigned worker); /* it stands at the boundary and may end */
    void (*at_boundary)(void *ctx);             /* all that listen do */
};

struct stops_notice {
    unsigned why;     /* enum page_why */
    int64_t boundary; /* -1: not known yet */
    el_usec until;
};

struct stops *stops_new(struct loop *l, unsigned workers, const struct stops_ops *ops, void *ctx, struct el_err *e);
void stops_free(struct stops *s);

int stops_descriptor(const struct stops *s, unsigned worker); /* of its page */
void stops_round(struct stops *s, uint64_t number, uint64_t coord, unsigned rank_base);
void stops_came(struct stops *s, unsigned worker);
void stops_went(struct stops *s, unsigned worker);
void stops_stands(struct stops *s, unsigned worker, int64_t step); /* it says so */

/* A planned change, as the coordinator has it; NULL: there is none any more. */
void stops_notice(struct stops *s, const struct stops_notice *n);

/* Last words: no worker that is connected begins a step beyond the highest of them; until thawed, or the round is over.
 * False: none of them takes its steps in ck.update(), or a planned change has its own limit. */
struct page_stand;
bool stops_freeze(struct stops *s, int64_t *limit); /* limit: that highest one */
void stops_allow(struct stops *s, int64_t limit);   /* … a later one, which workers of other nodes are in */
void stops_thaw(struct stops *s);
void stops_stand(const struct stops *s, unsigned worker, struct page_stand *to);

/* What the worker of this round says of itself: is it connected; page_phase(), page_live(). */
bool stops_view(const struct stops *s, unsigned worker, const char **phase, int64_t *live_step);

#endif
