/* Whether ranks of this node that share a part hold the same in it: which snapshots have digests, and which two of them
 * are compared because theirs differ. */
#include "snapshot/slot_table_private.h"

#include <stdio.h>
#include <string.h>

/* The same steps everywhere, whatever the distance between two snapshots of a script is: of steps at any fixed distance
 * one in SLOT_TABLE_DIGEST_EVERY, which "divisible by 64" would not be. */
static bool slot_table_replicas_is_drawn(int64_t step)
{
    uint64_t x = (uint64_t)step * UINT64_C(0x9e3779b97f4a7c15);
    return (x ^ x >> 32) % SLOT_TABLE_DIGEST_EVERY == 0;
}

/* Known before the step is: all workers of the node get the same answer.  The first steps of a round are those of this
 * node: where others had to skip one, what is drawn is compared.  A copy for an emergency checkpoint has no time for
 * it. */
bool slot_table_wants_digests(struct slot_table *k, const struct slot_table_slot *s)
{
    if (!k->conf.compares || s->captured)
        return false;
    for (unsigned i = 0; i < k->digest_firsts; i++)
        if (k->digest_first[i] == s->step)
            return true;
    if (k->digest_firsts == SLOT_TABLE_DIGESTS_FIRST)
        return slot_table_replicas_is_drawn(s->step);
    k->digest_first[k->digest_firsts++] = s->step;
    return true;
}

void slot_table_hold_digests(struct slot_table_slot *s, const struct declaration *d, const uint64_t *digest)
{
    s->digested = digest != NULL;
    if (digest)
        memcpy(s->part_digest, digest, d->parts * sizeof *digest);
}

/* Mostly it has the same number. */
static bool find_like(const struct slot_table_worker *w, const struct slot_table_part *p, unsigned like, unsigned *part)
{
    *part = like;
    if (w->kept && like < w->kept->parts && strcmp(w->kept->part[like].name, p->name) == 0 &&
        strcmp(w->kept->part[like].shard_id, p->shard_id) == 0)
        return true;
    return slot_table_part_like(w, p, part);
}

static bool was_told(const struct slot_table *k, const struct slot_table_part *p, unsigned like)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned part;
        if (find_like(&k->w[i], p, like, &part) && k->w[i].told[part])
            return true;
    }
    return false;
}

/* The first worker that holds the same piece of the same step, with a digest. */
static bool find_other(const struct slot_table *k, const struct slot_table_worker *w, const struct slot_table_slot *s,
                       unsigned part, struct slot_table_source *to)
{
    for (unsigned i = 0; i < k->conf.workers && &k->w[i] != w; i++) {
        int slot = slot_table_slot_with(&k->w[i], s->step, s->lineage);
        if (slot >= 0 && k->w[i].slot[slot].digested && find_like(&k->w[i], &w->kept->part[part], part, &to->part)) {
            to->worker = i;
            to->slot = (unsigned)slot;
            return true;
        }
    }
    return false;
}

static void slot_table_replicas_compare(struct slot_table *k, const struct slot_table_source *a,
                                        const struct slot_table_source *b)
{
    const struct slot_table_source *const of[] = {a, b};
    const struct slot_table_part *p = &k->w[a->worker].kept->part[a->part];
    struct slot_table_pair *x = &k->compared;
    *x = (struct slot_table_pair){.step = k->w[a->worker].slot[a->slot].step};
    snprintf(x->part, sizeof x->part, "%s", p->name);
    snprintf(x->shard_id, sizeof x->shard_id, "%s", p->shard_id);
    for (unsigned i = 0; i < 2; i++) {
        struct slot_table_worker *w = &k->w[of[i]->worker];
        x->of[i].worker = of[i]->worker;
        x->of[i].rank = w->rank;
        x->of[i].slot = of[i]->slot;
        x->of[i].part = of[i]->part;
        x->of[i].gen = w->slot[of[i]->slot].gen;
        w->slot[of[i]->slot].readers++;
        w->told[of[i]->part] = true;
    }
    k->comparing = true;
    slot_table_act(k, SLOT_TABLE_DO_COMPARE, &k->w[a->worker]);
}

static bool compare_worker(struct slot_table *k, unsigned worker)
{
    const struct slot_table_worker *w = &k->w[worker];
    for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++) {
        const struct slot_table_slot *s = &w->slot[x];
        for (unsigned p = 0; s->state == SLOT_TABLE_COMMITTED && s->digested && p < w->kept->parts; p++) {
            struct slot_table_source other, mine = {worker, x, p};
            if (!s->part_digest[p] || !find_other(k, w, s, p, &other))
                continue;
            uint64_t theirs = k->w[other.worker].slot[other.slot].part_digest[other.part];
            if (!theirs || theirs == s->part_digest[p] || was_told(k, &w->kept->part[p], p))
                continue;
            slot_table_replicas_compare(k, &other, &mine);
            return true;
        }
    }
    return false;
}

/* One pair at a time. */
void slot_table_compare_next(struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers && !k->comparing && k->conf.compares; i++)
        compare_worker(k, i);
}

void slot_table_on_compared(struct slot_table *k, const struct slot_table_event *ev)
{
    if (!k->comparing)
        return;
    k->comparing = false;
    for (unsigned i = 0; i < 2; i++)
        slot_table_give(k, k->compared.of[i].worker, k->compared.of[i].slot, k->compared.of[i].gen, true);
    k->differs = k->compared;
    snprintf(k->differs.names, sizeof k->differs.names, "%s", ev->text ? ev->text : "");
    k->differs.tensors = ev->number;
    /* None: one of them was written to after its commit, which is seen when it is used. */
    if (!ev->ok || ev->number)
        slot_table_act(k, SLOT_TABLE_DO_DIFFER, &k->w[k->differs.of[0].worker]);
    slot_table_compare_next(k);
}

const struct slot_table_pair *slot_table_compared(const struct slot_table *k)
{
    return &k->compared;
}

const struct slot_table_pair *slot_table_differs(const struct slot_table *k)
{
    return &k->differs;
}

void slot_table_forget_differences(struct slot_table *k)
{
    k->digest_firsts = 0;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        for (unsigned p = 0; w->kept && p < w->kept->parts; p++)
            w->told[p] = false;
        for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++)
            w->slot[x].digested = false;
    }
}
