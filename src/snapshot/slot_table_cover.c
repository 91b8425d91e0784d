/* What of a step the slots of a node hold, and from which slot each piece of it is taken. */
#include "snapshot/slot_table_private.h"

#include <string.h>

#include "ckpt/layout.h"

int slot_table_slot_with(const struct slot_table_worker *w, int64_t step, uint64_t lineage)
{
    for (unsigned s = 0; w->has_slots && s < SLOT_TABLE_SLOTS; s++)
        if (w->slot[s].state == SLOT_TABLE_COMMITTED && w->slot[s].step == step && w->slot[s].lineage == lineage)
            return (int)s;
    return -1;
}

bool slot_table_is_current(const struct slot_table *k, const struct slot_table_worker *w,
                           const struct slot_table_slot *x)
{
    return x->state == SLOT_TABLE_COMMITTED &&
           (x->trained == w->lineage || (x->step == k->went && x->lineage == k->went_lineage));
}

static bool same_shard(const struct slot_table_part *a, const struct slot_table_part *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->shard_id, b->shard_id) == 0;
}

const struct slot_table_part *slot_table_part_like(const struct slot_table_worker *w, const struct slot_table_part *p,
                                                   unsigned *part)
{
    for (*part = 0; w->kept && *part < w->kept->parts; ++*part)
        if (same_shard(&w->kept->part[*part], p))
            return &w->kept->part[*part];
    return NULL;
}

bool slot_table_has_piece(const struct slot_table_worker *w, const struct slot_table_slot *x, unsigned part)
{
    return !w->kept->part[part].own || x->part_bytes[part];
}

/* The first worker that holds this piece at step; waits says whether one may yet come to hold it. */
static bool slot_table_cover_find_piece(const struct slot_table *k, const struct slot_table_part *p, int64_t step,
                                        uint64_t lineage, struct slot_table_source *to, bool *waits)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned part;
        if (!slot_table_part_like(&k->w[i], p, &part))
            continue;
        int slot = slot_table_slot_with(&k->w[i], step, lineage);
        if (slot >= 0 && slot_table_has_piece(&k->w[i], &k->w[i].slot[slot], part)) {
            *to = (struct slot_table_source){i, (unsigned)slot, part};
            return true;
        }
        *waits = *waits || slot_table_may_come(k, &k->w[i], step, lineage);
    }
    return false;
}

/* In the order in which a node says what it holds: the highest step, and of that the last that was begun. */
static bool slot_table_cover_comes_before(const struct slot_table_slot *a, const struct slot_table_slot *b)
{
    return a->step != b->step ? a->step > b->step : a->gen > b->gen;
}

enum slot_table_cover slot_table_cover(const struct slot_table *k, int64_t step, uint64_t lineage)
{
    enum slot_table_cover found = SLOT_TABLE_COVERED;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct slot_table_worker *w = &k->w[i];
        if (!w->has_slots) { /* what it will declare is not known yet */
            found = SLOT_TABLE_INCOMPLETE;
            continue;
        }
        if (slot_table_slot_with(w, step, lineage) >= 0)
            continue;
        for (unsigned p = 0; p < w->kept->parts; p++) {
            struct slot_table_source from;
            bool waits = false;
            if (slot_table_cover_find_piece(k, &w->kept->part[p], step, lineage, &from, &waits) ||
                (w->kept->part[p].own && !waits))
                continue; /* a rank's own pieces are waited for, and done without */
            if (!waits)
                return SLOT_TABLE_HOPELESS;
            found = SLOT_TABLE_INCOMPLETE;
        }
    }
    return found;
}

const struct slot_table_slot *slot_table_next_held(const struct slot_table *k, const struct slot_table_slot *last)
{
    const struct slot_table_slot *best = NULL;
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = &k->w[i].slot[s];
            if (x->state == SLOT_TABLE_COMMITTED && (!last || slot_table_cover_comes_before(last, x)) &&
                (!best || slot_table_cover_comes_before(x, best)))
                best = x;
        }
    return best;
}

/* Of several the last one of which all is held, or may yet be: a step that its script takes once more, after it went
 * back to it, has two until all ranks have. */
uint64_t slot_table_lineage(const struct slot_table *k, int64_t step)
{
    const struct slot_table_slot before = {.step = step, .gen = UINT64_MAX}, *last = slot_table_next_held(k, &before),
                                 *x;
    if (!last || last->step != step)
        return 0;
    bool several = false;
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            x = &k->w[i].slot[s];
            several |= x->state == SLOT_TABLE_COMMITTED && x->step == step && x->lineage != last->lineage;
        }
    for (x = last; several && x && x->step == step; x = slot_table_next_held(k, x))
        if (slot_table_cover(k, step, x->lineage) != SLOT_TABLE_HOPELESS)
            return x->lineage;
    return last->lineage;
}

int64_t slot_table_covered(const struct slot_table *k)
{
    for (int64_t below = INT64_MAX;;) {
        int64_t best = SLOT_TABLE_NO_STEP;
        for (unsigned i = 0; i < k->conf.workers; i++)
            for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
                const struct slot_table_slot *x = &k->w[i].slot[s];
                if (x->state == SLOT_TABLE_COMMITTED && x->step < below && x->step > best)
                    best = x->step;
            }
        if (best == SLOT_TABLE_NO_STEP || slot_table_cover(k, best, slot_table_lineage(k, best)) == SLOT_TABLE_COVERED)
            return best;
        below = best;
    }
}

unsigned slot_table_sources(const struct slot_table *k, int64_t step, uint64_t lineage, struct slot_table_source *to,
                            unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned p = 0; p < slot_table_parts(k, i); p++) {
            const struct slot_table_part *part = slot_table_part(k, i, p);
            struct slot_table_source from;
            bool waits = false, twice = false;
            for (unsigned had = 0; had < n && !twice; had++)
                twice = same_shard(slot_table_part(k, to[had].worker, to[had].part), part);
            if (twice)
                continue;
            bool there = slot_table_cover_find_piece(k, part, step, lineage, &from, &waits);
            if (!there && part->own)
                continue;
            if (n == max || !there)
                return 0;
            to[n++] = from;
        }
    return n;
}

bool slot_table_all_known(const struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (!k->w[i].known || !k->w[i].has_slots)
            return false;
    return true;
}

unsigned slot_table_pieces(const struct slot_table *k, bool files, struct slot_table_source *to, unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned p = 0; p < slot_table_parts(k, i); p++) {
            const struct slot_table_part *part = slot_table_part(k, i, p);
            bool twice = files != (part->file[0] != 0);
            for (unsigned had = 0; had < n && !twice; had++)
                twice = same_shard(slot_table_part(k, to[had].worker, to[had].part), part);
            if (twice)
                continue;
            if (n < max)
                to[n] = (struct slot_table_source){i, 0, p};
            if (++n > max)
                return n;
        }
    return n;
}

bool slot_table_piece(const struct slot_table *k, const struct slot_table_source *piece, int64_t step, uint64_t lineage,
                      struct slot_table_source *from)
{
    if (piece->part >= slot_table_parts(k, piece->worker))
        return false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned part;
        if (!slot_table_part_like(&k->w[i], slot_table_part(k, piece->worker, piece->part), &part))
            continue;
        for (unsigned s = 0; k->w[i].has_slots && s < SLOT_TABLE_SLOTS; s++)
            if (slot_table_is_current(k, &k->w[i], &k->w[i].slot[s]) && k->w[i].slot[s].step == step &&
                k->w[i].slot[s].lineage == lineage && slot_table_has_piece(&k->w[i], &k->w[i].slot[s], part)) {
                *from = (struct slot_table_source){i, s, part};
                return true;
            }
    }
    return false;
}

int64_t slot_table_held_below(const struct slot_table *k, int64_t below)
{
    int64_t best = SLOT_TABLE_NO_STEP;
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = &k->w[i].slot[s];
            if (slot_table_is_current(k, &k->w[i], x) && x->step < below && x->step > best)
                best = x->step;
        }
    return best;
}

int64_t slot_table_least(const struct slot_table *k)
{
    int64_t least = INT64_MAX;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        int64_t newest = SLOT_TABLE_NO_STEP;
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++) {
            const struct slot_table_slot *x = &k->w[i].slot[s];
            if (slot_table_is_current(k, &k->w[i], x) && x->step > newest)
                newest = x->step;
        }
        newest = slot_table_passed(k, &k->w[i], newest);
        least = newest < least ? newest : least;
    }
    return least;
}

bool slot_table_is_summing(const struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned s = 0; s < SLOT_TABLE_SLOTS; s++)
            if (k->w[i].slot[s].state == SLOT_TABLE_SUMMING)
                return true;
    return false;
}

const char *slot_table_layout_id(const struct slot_table *k)
{
    const char *id = "";
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const char *one = k->w[i].kept ? k->w[i].kept->layout_id : "";
        if (*one && (!*id || strcmp(id, CKPT_LAYOUT_ALL) == 0))
            id = one;
    }
    return id;
}
