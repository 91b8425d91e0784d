/* Which step does everybody go back to, and from where does each rank take it: the step agreement, a pure function of
 * what the nodes say they hold.
 *
 * A shard is one (part, shard id) of the layout, numbered by the caller; all holders of a shard hold the same bytes of
 * a step.  A step is covered when each shard has a usable copy of it.  The newest covered step wins, memory before disk
 * when both have it: never an older one, and never different steps for different ranks. */
#ifndef SNAPSHOT_AGREE_H
#define SNAPSHOT_AGREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGREE_NO_STEP INT64_MIN
#define AGREE_NOBODY  SIZE_MAX

/* In the order in which they are taken when several copies would do. */
enum agree_kind {
    AGREE_SLOT,    /* committed in the memory of its node's agent */
    AGREE_REPLICA, /* a copy that the agent of another node keeps */
    AGREE_LIVE,    /* still in the worker, between two updates: must be captured before it can be read */
};

struct agree_copy {
    int64_t step;
    uint32_t shard, node, rank; /* rank: whose snapshot it is */
    enum agree_kind kind;
    bool usable; /* its checksums hold, its node answers, it has not failed before */
};

/* What there is.  disk: steps with a valid manifest that holds every shard, in any order. */
struct agree_stock {
    const struct agree_copy *copies;
    size_t n_copies;
    const int64_t *disk;
    size_t n_disk;
    uint32_t shards; /* of the layout, at least 1 */
};

enum agree_place { AGREE_NOWHERE, AGREE_MEMORY, AGREE_DISK };

struct agree_choice {
    enum agree_place place;
    int64_t step;         /* AGREE_NO_STEP: nowhere */
    int64_t newest;       /* the highest step of which anything usable is in memory, or AGREE_NO_STEP … */
    uint32_t missing;     /* … how many shards of it no usable copy holds; 0: it is covered … */
    uint32_t missing_one; /* … and the first of them */
};

/* marks: stock->shards words, scratch.  below: only steps < below are considered, INT64_MAX for all (a step that could
 * not be read twice is never offered again). */
void agree_choose(const struct agree_stock *stock, int64_t below, uint32_t *marks, struct agree_choice *out);

/* The copy of shard at step from which the rank on node reads best: its own slot, another one of its node, then by
 * kind; of equal ones the node that has given out least so far (loads: one word per node, counted up here), then the
 * lowest rank.  Index into stock->copies, or AGREE_NOBODY. */
size_t agree_source(const struct agree_stock *stock, int64_t step, uint32_t shard, uint32_t node, uint32_t rank,
                    uint32_t *loads);

#endif
