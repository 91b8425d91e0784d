/* The step agreement: scans, no sorting.  Few different steps are in memory at a time (two slots a worker), so a pass
 * over all copies for each of them is cheaper than an index. */
#include "snapshot/agree.h"

#include <assert.h>
#include <string.h>

static int64_t newest_copy_below(const struct agree_stock *s, int64_t below)
{
    int64_t best = AGREE_NO_STEP;
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct agree_copy *c = &s->copies[i];
        if (c->usable && c->step < below && c->step > best)
            best = c->step;
    }
    return best;
}

static int64_t newest_disk_below(const struct agree_stock *s, int64_t below)
{
    int64_t best = AGREE_NO_STEP;
    for (size_t i = 0; i < s->n_disk; i++)
        if (s->disk[i] < below && s->disk[i] > best)
            best = s->disk[i];
    return best;
}

/* How many shards have no usable copy of this step; the first of them in *one. */
static uint32_t count_missing(const struct agree_stock *s, int64_t step, uint32_t *marks, uint32_t *one)
{
    uint32_t missing = s->shards;
    memset(marks, 0, s->shards * sizeof *marks);
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct agree_copy *c = &s->copies[i];
        if (!c->usable || c->step != step || marks[c->shard])
            continue;
        marks[c->shard] = 1;
        missing--;
    }
    for (*one = 0; *one < s->shards && marks[*one]; (*one)++)
        ;
    return missing;
}

void agree_choose(const struct agree_stock *s, int64_t below, uint32_t *marks, struct agree_choice *out)
{
    assert(s->shards > 0);
    int64_t disk = newest_disk_below(s, below);
    *out = (struct agree_choice){.step = AGREE_NO_STEP, .newest = newest_copy_below(s, below)};

    for (int64_t step = out->newest; step != AGREE_NO_STEP && step >= disk; step = newest_copy_below(s, step)) {
        uint32_t one, missing = count_missing(s, step, marks, &one);
        if (step == out->newest) {
            out->missing = missing;
            out->missing_one = one;
        }
        if (missing == 0) {
            out->place = AGREE_MEMORY;
            out->step = step;
            return;
        }
    }
    if (disk != AGREE_NO_STEP) {
        out->place = AGREE_DISK;
        out->step = disk;
    }
}

/* Smaller is better; ties are for the caller. */
static unsigned distance(const struct agree_copy *c, uint32_t node, uint32_t rank)
{
    if (c->node == node)
        return c->rank == rank && c->kind == AGREE_SLOT ? 0 : 1 + (unsigned)c->kind;
    return 10 + (unsigned)c->kind;
}

size_t agree_source(const struct agree_stock *s, int64_t step, uint32_t shard, uint32_t node, uint32_t rank,
                    uint32_t *loads)
{
    size_t best = AGREE_NOBODY;
    for (size_t i = 0; i < s->n_copies; i++) {
        const struct agree_copy *c = &s->copies[i], *b = &s->copies[best == AGREE_NOBODY ? i : best];
        if (!c->usable || c->step != step || c->shard != shard)
            continue;
        unsigned dc = distance(c, node, rank), db = distance(b, node, rank);
        bool better = dc != db                           ? dc < db
                      : loads[c->node] != loads[b->node] ? loads[c->node] < loads[b->node]
                                                         : c->rank < b->rank;
        if (best == AGREE_NOBODY || better)
            best = i;
    }
    if (best != AGREE_NOBODY)
        loads[s->copies[best].node]++;
    return best;
}
