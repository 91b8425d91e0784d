/* What live workers and slots hold together of a step: could all go back to it, and who must be copied for that? */
#include "snapshot/slot_table_private.h"

static bool is_like(const struct slot_table_worker *a, const struct slot_table_worker *b)
{
    return a == b || slot_table_declared_same(a->kept, b->kept);
}

/* In a slot of the history that is trained now: what it holds of another one does not go with what is live. */
static bool slot_table_emergency_holds(const struct slot_table *k, const struct slot_table_worker *w, int64_t step)
{
    for (unsigned s = 0; w->has_slots && s < SLOT_TABLE_SLOTS; s++)
        if (w->slot[s].step == step && slot_table_is_current(k, w, &w->slot[s]))
            return true;
    return false;
}

/* A slot that this worker could read, held already. */
static bool slot_table_emergency_is_held(const struct slot_table *k, const struct slot_table_worker *like, int64_t step)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (is_like(&k->w[i], like) && slot_table_emergency_holds(k, &k->w[i], step))
            return true;
    return false;
}

/* Who stands in for this worker: the first that has declared the same and is there, or may yet be; workers: nobody. */
static unsigned slot_table_emergency_stands_in(const struct slot_table *k, const struct slot_table_worker *like,
                                               const enum slot_table_live *live, enum slot_table_live want)
{
    unsigned i = 0;
    while (i < k->conf.workers && (live[i] != want || !is_like(&k->w[i], like)))
        i++;
    return i;
}

/* A piece is on disk as soon as anybody's slot with it is written there. */
static enum slot_table_cover piece_cover(const struct slot_table *k, const struct slot_table_part *p, int64_t step,
                                         const enum slot_table_live *live)
{
    enum slot_table_cover found = SLOT_TABLE_HOPELESS;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned part;
        if (!slot_table_part_like(&k->w[i], p, &part))
            continue;
        if (live[i] == SLOT_TABLE_LIVE_IS || slot_table_emergency_holds(k, &k->w[i], step))
            return SLOT_TABLE_COVERED;
        if (live[i] == SLOT_TABLE_LIVE_MAY)
            found = SLOT_TABLE_INCOMPLETE;
    }
    return found;
}

static enum slot_table_cover pieces_cover(const struct slot_table *k, const struct slot_table_worker *w, int64_t step,
                                          const enum slot_table_live *live)
{
    enum slot_table_cover found = SLOT_TABLE_COVERED;
    for (unsigned p = 0; p < w->kept->parts; p++) {
        if (w->kept->part[p].own)
            continue;
        enum slot_table_cover one = piece_cover(k, &w->kept->part[p], step, live);
        found = one > found ? one : found;
    }
    return found;
}

enum slot_table_cover slot_table_live_cover(const struct slot_table *k, int64_t step, const enum slot_table_live *live,
                                            bool disk, bool *copies, unsigned *lacks)
{
    enum slot_table_cover found = SLOT_TABLE_COVERED;
    for (unsigned i = 0; i < k->conf.workers; i++)
        copies[i] = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct slot_table_worker *w = &k->w[i];
        enum slot_table_cover one = SLOT_TABLE_COVERED;
        if (slot_table_emergency_is_held(k, w, step))
            continue;
        unsigned holder = slot_table_emergency_stands_in(k, w, live, SLOT_TABLE_LIVE_IS);
        if (holder < k->conf.workers)
            copies[holder] = true;
        else if (slot_table_emergency_stands_in(k, w, live, SLOT_TABLE_LIVE_MAY) < k->conf.workers)
            one = SLOT_TABLE_INCOMPLETE;
        else
            one = disk ? pieces_cover(k, w, step, live) : SLOT_TABLE_HOPELESS;
        if (one == SLOT_TABLE_HOPELESS && found != SLOT_TABLE_HOPELESS)
            *lacks = i;
        found = one > found ? one : found;
    }
    for (unsigned i = 0; i < k->conf.workers; i++)
        copies[i] |= live[i] == SLOT_TABLE_LIVE_IS && slot_table_lacks_own(k, i, step);
    return found;
}

bool slot_table_lacks_own(const struct slot_table *k, unsigned worker, int64_t step)
{
    const struct slot_table_worker *w = &k->w[worker];
    return w->kept && w->kept->has_own && !slot_table_emergency_holds(k, w, step);
}

enum slot_table_live slot_table_live_piece(const struct slot_table *k, const struct slot_table_source *piece,
                                           const enum slot_table_live *live)
{
    enum slot_table_live best = SLOT_TABLE_LIVE_NOT;
    unsigned part;
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (live[i] > best && slot_table_part_like(&k->w[i], slot_table_part(k, piece->worker, piece->part), &part))
            best = live[i];
    return best;
}
