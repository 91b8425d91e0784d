/* What live workers and slots hold together of a step: could all go back to it, and who must be copied for that? */
#include "snapshot/keeper_private.h"

static bool is_like(const struct worker *a, const struct worker *b)
{
    return a == b || keeper_declared_same(a->kept, b->kept);
}

/* In a slot of the history that is trained now: what it holds of another one does not go with what is live. */
static bool holds(const struct keeper *k, const struct worker *w, int64_t step)
{
    for (unsigned s = 0; w->has_slots && s < KEEPER_SLOTS; s++)
        if (w->slot[s].step == step && keeper_is_current(k, w, &w->slot[s]))
            return true;
    return false;
}

/* A slot that this worker could read, held already. */
static bool is_held(const struct keeper *k, const struct worker *like, int64_t step)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (is_like(&k->w[i], like) && holds(k, &k->w[i], step))
            return true;
    return false;
}

/* Who stands in for this worker: the first that has declared the same and is there, or may yet be; workers: nobody. */
static unsigned stands_in(const struct keeper *k, const struct worker *like, const enum keeper_live *live,
                          enum keeper_live want)
{
    unsigned i = 0;
    while (i < k->conf.workers && (live[i] != want || !is_like(&k->w[i], like)))
        i++;
    return i;
}

/* A piece is on disk as soon as anybody's slot with it is written there. */
static enum keeper_cover piece_cover(const struct keeper *k, const struct keeper_part *p, int64_t step,
                                     const enum keeper_live *live)
{
    enum keeper_cover found = KEEPER_HOPELESS;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned part;
        if (!keeper_part_like(&k->w[i], p, &part))
            continue;
        if (live[i] == KEEPER_LIVE_IS || holds(k, &k->w[i], step))
            return KEEPER_COVERED;
        if (live[i] == KEEPER_LIVE_MAY)
            found = KEEPER_INCOMPLETE;
    }
    return found;
}

static enum keeper_cover pieces_cover(const struct keeper *k, const struct worker *w, int64_t step,
                                      const enum keeper_live *live)
{
    enum keeper_cover found = KEEPER_COVERED;
    for (unsigned p = 0; p < w->kept->parts; p++) {
        if (w->kept->part[p].own)
            continue;
        enum keeper_cover one = piece_cover(k, &w->kept->part[p], step, live);
        found = one > found ? one : found;
    }
    return found;
}

enum keeper_cover keeper_live_cover(const struct keeper *k, int64_t step, const enum keeper_live *live, bool disk,
                                    bool *copies, unsigned *lacks)
{
    enum keeper_cover found = KEEPER_COVERED;
    for (unsigned i = 0; i < k->conf.workers; i++)
        copies[i] = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct worker *w = &k->w[i];
        enum keeper_cover one = KEEPER_COVERED;
        if (is_held(k, w, step))
            continue;
        unsigned holder = stands_in(k, w, live, KEEPER_LIVE_IS);
        if (holder < k->conf.workers)
            copies[holder] = true;
        else if (stands_in(k, w, live, KEEPER_LIVE_MAY) < k->conf.workers)
            one = KEEPER_INCOMPLETE;
        else
            one = disk ? pieces_cover(k, w, step, live) : KEEPER_HOPELESS;
        if (one == KEEPER_HOPELESS && found != KEEPER_HOPELESS)
            *lacks = i;
        found = one > found ? one : found;
    }
    for (unsigned i = 0; i < k->conf.workers; i++)
        copies[i] |= live[i] == KEEPER_LIVE_IS && keeper_lacks_own(k, i, step);
    return found;
}

bool keeper_lacks_own(const struct keeper *k, unsigned worker, int64_t step)
{
    const struct worker *w = &k->w[worker];
    return w->kept && w->kept->has_own && !holds(k, w, step);
}

enum keeper_live keeper_live_piece(const struct keeper *k, const struct keeper_source *piece,
                                   const enum keeper_live *live)
{
    enum keeper_live best = KEEPER_LIVE_NOT;
    unsigned part;
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (live[i] > best && keeper_part_like(&k->w[i], keeper_part(k, piece->worker, piece->part), &part))
            best = live[i];
    return best;
}
