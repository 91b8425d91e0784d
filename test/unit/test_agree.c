/* The step agreement against its definition, for every stock of up to four nodes and three steps; and what the choice
 * of sources promises. */
#include "snapshot/agree.h"

#include "lib/tap.h"

#define NODES 4u
#define STEPS 3

/* What a node holds of a step: nothing, a good copy, a broken one. */
enum { NONE, GOOD, BROKEN, STATES };

static const char *const layouts[] = {"a shard each", "one shard for all", "pairs share a shard"};
static uint32_t shard_of(unsigned layout, uint32_t node)
{
    return layout == 0 ? node : layout == 1 ? 0 : node / 2;
}

/* The definition, by its words: the newest step of which every shard is whole in memory; the newest on disk; the newer
 * of both, memory on a tie. */
static int64_t defined(unsigned layout, unsigned nodes, uint32_t shards, unsigned held[NODES][STEPS], unsigned disk,
                       enum agree_place *place)
{
    for (int64_t step = STEPS - 1; step >= 0; step--) {
        uint32_t whole = 0;
        for (uint32_t n = 0; n < nodes; n++)
            if (held[n][step] == GOOD)
                whole |= 1u << shard_of(layout, n);
        if (whole == (1u << shards) - 1) {
            *place = AGREE_MEMORY;
            return step;
        }
        if (disk & 1u << step) {
            *place = AGREE_DISK;
            return step;
        }
    }
    *place = AGREE_NOWHERE;
    return AGREE_NO_STEP;
}

static size_t list_copies(unsigned layout, unsigned nodes, unsigned held[NODES][STEPS], struct agree_copy *v)
{
    size_t n = 0;
    for (uint32_t node = 0; node < nodes; node++)
        for (int64_t step = 0; step < STEPS; step++)
            if (held[node][step] != NONE)
                v[n++] = (struct agree_copy){.step = step,
                                             .shard = shard_of(layout, node),
                                             .node = node,
                                             .rank = node,
                                             .kind = AGREE_SLOT,
                                             .usable = held[node][step] == GOOD};
    return n;
}

/* Every stock of this layout; returns how many were wrong. */
static unsigned long try_all(unsigned layout, unsigned nodes, unsigned long *cases)
{
    unsigned long wrong = 0, stocks = 1;
    uint32_t marks[NODES], shards = layout == 0 ? nodes : layout == 1 ? 1 : (nodes + 1) / 2;
    for (unsigned i = 0; i < nodes * STEPS; i++)
        stocks *= STATES;
    for (unsigned long code = 0; code < stocks; code++) {
        unsigned held[NODES][STEPS] = {0};
        unsigned long rest = code;
        for (unsigned i = 0; i < nodes * STEPS; i++, rest /= STATES)
            held[i / STEPS][i % STEPS] = (unsigned)(rest % STATES);
        struct agree_copy copies[NODES * STEPS];
        size_t n = list_copies(layout, nodes, held, copies);
        for (unsigned disk = 0; disk < 1u << STEPS; disk++, (*cases)++) {
            int64_t on_disk[STEPS];
            struct agree_stock stock = {.copies = copies, .n_copies = n, .disk = on_disk, .shards = shards};
            for (int64_t s = 0; s < STEPS; s++)
                if (disk & 1u << s)
                    on_disk[stock.n_disk++] = s;
            struct agree_choice got;
            enum agree_place place;
            agree_choose(&stock, INT64_MAX, marks, &got);
            wrong += defined(layout, nodes, shards, held, disk, &place) != got.step || place != got.place;
        }
    }
    return wrong;
}

static void test_every_stock(void)
{
    for (unsigned layout = 0; layout < 3; layout++) {
        unsigned long cases = 0, wrong = 0;
        for (unsigned nodes = 1; nodes <= NODES; nodes++)
            wrong += try_all(layout, nodes, &cases);
        char what[120];
        snprintf(what, sizeof what, "%s: the choice is what its definition says, in all %lu stocks", layouts[layout],
                 cases);
        is_num(wrong, 0, what);
    }
}

static void test_newest_is_told(void)
{
    const struct agree_copy v[] = {
        {.step = 7, .shard = 0, .usable = true}, {.step = 7, .shard = 2, .usable = true},
        {.step = 6, .shard = 0, .usable = true}, {.step = 6, .shard = 1, .usable = true, .node = 1},
        {.step = 6, .shard = 2, .usable = true}, {.step = 9, .shard = 1, .usable = false},
    };
    const int64_t disk[] = {3, 5};
    struct agree_stock stock = {.copies = v, .n_copies = 6, .disk = disk, .n_disk = 2, .shards = 3};
    uint32_t marks[3];
    struct agree_choice c;
    agree_choose(&stock, INT64_MAX, marks, &c);
    ok(c.place == AGREE_MEMORY && c.step == 6, "step 7 is not whole, 6 is");
    ok(c.newest == 7 && c.missing == 1 && c.missing_one == 1,
       "of step 7 shard 1 is missing; a broken copy of step 9 counts for nothing");
    agree_choose(&stock, 6, marks, &c);
    ok(c.place == AGREE_DISK && c.step == 5, "below step 6: the newest one on disk");
    agree_choose(&stock, 3, marks, &c);
    ok(c.place == AGREE_NOWHERE && c.step == AGREE_NO_STEP && c.newest == AGREE_NO_STEP,
       "below the oldest: nothing, and said so");
}

static void test_sources(void)
{
    const struct agree_copy v[] = {
        {.step = 4, .node = 0, .rank = 0, .kind = AGREE_SLOT, .usable = true},
        {.step = 4, .node = 0, .rank = 1, .kind = AGREE_SLOT, .usable = true},
        {.step = 4, .node = 1, .rank = 2, .kind = AGREE_SLOT, .usable = true},
        {.step = 4, .node = 2, .rank = 3, .kind = AGREE_LIVE, .usable = true},
        {.step = 4, .node = 3, .rank = 4, .kind = AGREE_SLOT, .usable = false},
    };
    struct agree_stock stock = {.copies = v, .n_copies = 5, .shards = 1};
    uint32_t loads[6] = {0};
    is_num(agree_source(&stock, 4, 0, 0, 1, loads), 1, "its own slot first");
    is_num(agree_source(&stock, 4, 0, 0, 9, loads), 0, "then another rank's on its node, the lowest");
    is_num(agree_source(&stock, 4, 0, 2, 8, loads), 3, "a live worker of its own node before another node");
    is_num(agree_source(&stock, 4, 0, 3, 4, loads), 2, "a broken slot is none: the node that has given out least");
    memset(loads, 0, sizeof loads);
    size_t first = agree_source(&stock, 4, 0, 5, 6, loads), second = agree_source(&stock, 4, 0, 5, 7, loads);
    ok(v[first].node != v[second].node, "two readers go to two nodes");
    ok(agree_source(&stock, 5, 0, 0, 0, loads) == AGREE_NOBODY, "nobody has step 5");
}

int main(void)
{
    test_every_stock();
    test_newest_is_told();
    test_sources();
    return done();
}
