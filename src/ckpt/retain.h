/* Which checkpoints gc may delete. */
#ifndef CKPT_RETAIN_H
#define CKPT_RETAIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct retain_item {
    int64_t step;
    size_t run;  /* the same number: the same run.  Steps of different runs are never compared */
    bool valid;  /* manifest and sizes */
    bool ours;   /* of the run that is tidied up, or all are */
    bool behind; /* a lower step of its run was written later: it is newer than none */
    bool pinned, leased;
    const char *why; /* out: why it stays; NULL: it goes */
};

struct retain_rule {
    unsigned keep_last;  /* at least 1: the newest valid one of a run stays whatever anybody says */
    uint64_t keep_every; /* steps that are a multiple of it stay; 0: none for that */
};

/* Fills in why of all n items, in any order, and returns how many go.  Steps count as numbers.  What goes has keep_last
 * newer valid ones in its run. */
size_t retain_choose(struct retain_item *items, size_t n, const struct retain_rule *rule);

#endif
