/* Going back: every worker asks, all are told the same step, each reads it; if one cannot, all are told anew. */
#include "snapshot/slot_table_private.h"

#include <stdio.h>
#include <string.h>

#include "util/snip.h"

void slot_table_drop_offer(struct slot_table *k, struct slot_table_worker *w, bool intact)
{
    if (w->restoring != RESTORING_OFFERED || w->from_worker >= k->conf.workers)
        return;
    struct slot_table_slot *s = &k->w[w->from_worker].slot[w->from_slot];
    if (s->gen == w->from_gen) /* else its worker has come again with other parts: those slots are gone */
        slot_table_give_back(s, intact);
}

static bool all_are(const struct slot_table *k, enum restoring at)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (k->w[i].restoring != at)
            return false;
    return true;
}

static void slot_table_restore_settle(struct slot_table *k);

/* One that was offered a step and asks again was interrupted while it read: it is heard as one that could not, or all
 * who have read would wait for it. */
void slot_table_on_query(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    bool reads = w->restoring == RESTORING_OFFERED;
    if (!w->granted) {
        slot_table_refuse(k, w, m->seq, "STATE", "restore before anything was declared and granted");
        return;
    }
    slot_table_drop_offer(k, w, true);
    w->restoring = RESTORING_ASKED;
    w->elsewhere = m->u.restore_query.elsewhere;
    w->seq = m->seq;
    k->choose_due |= all_are(k, RESTORING_ASKED) && !k->choosing;
    if (reads)
        slot_table_restore_settle(k);
}

/* A snapshot of a worker that died right behind its commit is still being summed: it counts. */
void slot_table_choose_if_due(struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers && k->choose_due; i++)
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++)
            if (k->w[i].slot[n].state == SLOT_TABLE_SUMMING)
                return;
    if (!k->choose_due)
        return;
    k->choose_due = k->loading = false;
    k->choosing = true;
    slot_table_act(k, SLOT_TABLE_DO_CHOOSE, &k->w[0]);
}

/* A slot with this step that holds all that w declared: its own, else that of another rank with the same shards.  Of
 * two snapshots of one step the later one. */
static bool slot_table_restore_find_source(const struct slot_table *k, const struct slot_table_worker *w, int64_t step,
                                           uint64_t lineage, unsigned *worker, unsigned *slot)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        unsigned from = (unsigned)(w - k->w + i) % k->conf.workers;
        const struct slot_table_worker *o = &k->w[from];
        if (!o->has_slots || !slot_table_declared_same(o->kept, w->kept))
            continue;
        uint64_t gen = 0;
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++)
            if (o->slot[n].state == SLOT_TABLE_COMMITTED && o->slot[n].step == step && o->slot[n].lineage == lineage &&
                o->slot[n].gen > gen) {
                *worker = from;
                *slot = n;
                gen = o->slot[n].gen;
            }
        if (gen)
            return true;
    }
    return false;
}

bool slot_table_all_could_read(const struct slot_table *k, int64_t step, uint64_t lineage)
{
    unsigned worker, slot;
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (k->w[i].declared && !slot_table_restore_find_source(k, &k->w[i], step, lineage, &worker, &slot))
            return false;
    return true;
}

static bool is_said(const struct slot_table_slot *s, const int64_t *steps, const uint64_t *lineages, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (steps[i] == s->step && lineages[i] == s->lineage)
            return true;
    return false;
}

unsigned slot_table_readable(const struct slot_table *k, int64_t *steps, uint64_t *lineages, unsigned max)
{
    unsigned n = 0;
    const struct slot_table_slot *s, *tried = NULL;
    for (s = slot_table_next_held(k, NULL); s && n < max; s = slot_table_next_held(k, s)) {
        bool again = tried && tried->step == s->step && tried->lineage == s->lineage;
        tried = s;
        if (again || is_said(s, steps, lineages, n) || !slot_table_all_could_read(k, s->step, s->lineage))
            continue;
        lineages[n] = s->lineage;
        steps[n++] = s->step;
    }
    return n;
}

bool slot_table_takes_elsewhere(const struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (!k->w[i].elsewhere)
            return false;
    return true;
}

bool slot_table_had_whole(const struct slot_table *k)
{
    return k->had_whole;
}

uint64_t slot_table_since(const struct slot_table *k)
{
    return k->since;
}

int64_t slot_table_reached(const struct slot_table *k)
{
    return k->reached;
}

const char *slot_table_lost(const struct slot_table *k)
{
    return k->lost;
}

const char *slot_table_misfit(const struct slot_table *k)
{
    return k->misfit;
}

struct slot_table_reads slot_table_reads(const struct slot_table *k)
{
    struct slot_table_reads out = {0};
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct slot_table_worker *w = &k->w[i];
        if (w->restoring == RESTORING_NOT || w->from_worker >= k->conf.workers || w->offered == SLOT_TABLE_NO_STEP)
            continue;
        const struct slot_table_slot *s = &k->w[w->from_worker].slot[w->from_slot];
        bool disk = s->loaded == k->round && k->round;
        out.disk += disk;
        out.own += w->from_worker == i && !disk;
        out.others += w->from_worker != i && !disk;
        out.bytes += s->bytes;
    }
    return out;
}

static void offer(struct slot_table *k, struct slot_table_worker *w)
{
    unsigned from = k->conf.workers, slot = 0;
    int64_t step = k->chosen;
    bool found =
        step != SLOT_TABLE_NO_STEP && slot_table_restore_find_source(k, w, step, k->chosen_lineage, &from, &slot);
    w->restoring = RESTORING_OFFERED;
    w->from_worker = from;
    w->from_slot = slot;
    w->from_gen = found ? k->w[from].slot[slot].gen : 0;
    bool elsewhere = !found && w->elsewhere && step != SLOT_TABLE_NO_STEP;
    w->offered = found || elsewhere ? step : SLOT_TABLE_NO_STEP;
    struct worker_msg *m = slot_table_answer(k, w, WORKER_MSG_RESTORE_OFFER, w->seq);
    m->u.restore_offer = (struct wmsg_restore_offer){
        .step = w->offered, .fresh = k->fresh && !found, .elsewhere = elsewhere, .text = k->text};
    if (!found)
        return;
    struct slot_table_slot *s = &k->w[from].slot[slot];
    s->readers++;
    struct slot_table_action *a = &k->out.v[k->out.n - 1];
    a->source = from;
    a->slot = slot;
    m->u.restore_offer.from = s->loaded == k->round && k->round ? "disk"
                              : from == (unsigned)(w - k->w)    ? "own memory"
                                                                : "memory of another rank of this node";
    m->u.restore_offer.slot_bytes = s->bytes;
    image_sizes_put(s->part_header_bytes, s->part_bytes, w->kept->parts, w->images);
    m->u.restore_offer.images = w->images;
    m->u.restore_offer.consumed_samples = s->consumed_samples;
}

static void offer_all(struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (k->w[i].here && k->w[i].restoring == RESTORING_ASKED)
            offer(k, &k->w[i]);
}

static bool is_chosen(const struct slot_table *k, const struct slot_table_slot *s)
{
    return s->step == k->chosen && s->lineage == k->chosen_lineage;
}

/* The chosen step: one that was chosen before may still be on its way, and is of no use when it comes. */
static bool is_loading(const struct slot_table *k, const struct slot_table_worker *like)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++)
            if (k->w[i].slot[n].state == SLOT_TABLE_LOADING && is_chosen(k, &k->w[i].slot[n]) &&
                (!like || &k->w[i] == like ||
                 (!like->kept->has_own && slot_table_declared_same(k->w[i].kept, like->kept))))
                return true;
    return false;
}

/* Once for all ranks that hold the same; each its own where it has a piece of its own.  found: another one's slot would
 * do, or what this one holds as another rank: that is read over where the other slot has what all nodes hold, which is
 * to be gone back to if this cannot be read. */
static void slot_table_restore_load(struct slot_table *k, struct slot_table_worker *w, bool found)
{
    if (is_loading(k, w))
        return;
    struct slot_table_slot *s = slot_table_slot_to_load(k, w);
    if (!s && found)
        return;
    if (!s) {
        snprintf(k->lost, sizeof k->lost, "rank %u: both slots are being read, step %lld cannot be loaded", w->rank,
                 (long long)k->chosen);
        k->unloaded = true;
        return;
    }
    slot_table_empty_slot(k, s);
    s->state = SLOT_TABLE_LOADING;
    s->step = k->chosen;
    s->lineage = s->trained = k->chosen_lineage;
    s->rank = w->rank;
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_LOAD, w);
    a->slot = (unsigned)(s - w->slot);
    a->gen = s->gen;
    a->step = s->step;
}

/* Everything is there, or never will be: then the agreement is made anew, without that step on disk. */
static void loaded_all(struct slot_table *k)
{
    if (!k->loading || is_loading(k, NULL))
        return;
    k->loading = false;
    if (k->unloaded)
        k->choose_due = true;
    else
        offer_all(k);
}

/* What lies in that slot is of the step, but another rank's where ranks have a piece of their own; the disk has this
 * one's.  Of its own slot it is the rank that the worker had before: what is on disk is better if it is there. */
static bool lacks_own(const struct slot_table_worker *w, unsigned worker, unsigned from, unsigned slot,
                      const struct slot_table_event *ev)
{
    bool on_disk = !(ev->on_disk[worker / 64] >> worker % 64 & 1);
    return w->kept->has_own && (from != worker || (w->slot[slot].rank != w->rank && on_disk));
}

void slot_table_on_chosen(struct slot_table *k, const struct slot_table_event *ev)
{
    k->choosing = false;
    k->chosen = ev->step;
    k->chosen_lineage = ev->lineage;
    k->fresh = ev->fresh;
    k->unloaded = false;
    k->loading = ev->on_disk && ev->step != SLOT_TABLE_NO_STEP;
    snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "");
    k->misfit[0] = 0; /* it is told now */
    for (unsigned i = 0; i < k->conf.workers && k->loading; i++) {
        struct slot_table_worker *w = &k->w[i];
        unsigned from = k->conf.workers, slot = 0;
        if (!w->here || w->restoring != RESTORING_ASKED)
            continue;
        bool found = slot_table_restore_find_source(k, w, ev->step, ev->lineage, &from, &slot);
        if (!found || lacks_own(w, i, from, slot, ev))
            slot_table_restore_load(k, w, found);
    }
    if (k->loading)
        loaded_all(k);
    else
        offer_all(k);
}

/* Another one's slot may do; else it is agreed once more without that step, or there is no more to be done: what does
 * not fit into --ckpt-mem now would not do so the next time, and nobody wants an older step for that. */
static void not_loaded(struct slot_table *k, const struct slot_table_worker *w, const struct slot_table_event *ev)
{
    unsigned worker, slot;
    const char *why = ev->text ? ev->text : "it could not be loaded";
    if (slot_table_restore_find_source(k, w, k->chosen, k->chosen_lineage, &worker, &slot))
        return;
    k->unloaded = true;
    if (ev->need_bytes)
        el_snip(k->misfit, sizeof k->misfit, "rank %u: step %lld on disk: %s", w->rank, (long long)k->chosen, why);
    else
        el_snip(k->lost, sizeof k->lost, "%s", why);
}

void slot_table_on_loaded(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    struct slot_table_slot *s = &w->slot[ev->slot];
    if (s->state != SLOT_TABLE_LOADING || s->gen != ev->gen)
        return;
    bool wanted = k->loading && is_chosen(k, s);
    if (ev->ok)
        slot_table_note_growth(s, ev);
    if (!ev->ok || !wanted) { /* of a round that is over: perhaps it is of no use any more */
        slot_table_empty_slot(k, s);
        if (wanted)
            not_loaded(k, w, ev);
    } else {
        s->state = SLOT_TABLE_COMMITTED;
        s->loaded = k->round;
        s->consumed_samples = ev->number;
        slot_table_hold_images(s, w->kept, ev->part_header_bytes, ev->part_bytes);
    }
    loaded_all(k);
}

/* Whoever reads is heard first; then all have read it, or the agreement is made anew, without the slot that was broken,
 * for everybody. */
static void slot_table_restore_settle(struct slot_table *k)
{
    bool again = k->again;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        if (k->w[i].restoring == RESTORING_OFFERED)
            return;
        if (k->w[i].restoring == RESTORING_NOT) {
            k->again = false; /* they have not asked yet, and are answered when they have */
            return;
        }
        again |= k->w[i].restoring == RESTORING_ASKED;
    }
    k->again = false;
    if (!again) {
        slot_table_act(k, SLOT_TABLE_DO_CONFIRM, &k->w[0])->step = k->chosen;
        return;
    }
    for (unsigned i = 0; i < k->conf.workers; i++)
        k->w[i].restoring = RESTORING_ASKED;
    k->loading = false; /* what is still on its way is of what nobody goes back to */
    k->choose_due = true;
}

void slot_table_on_restored(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    if (w->restoring != RESTORING_OFFERED || m->u.restore_done.step != w->offered) {
        slot_table_refuse(k, w, m->seq, "STATE", "RESTORE_DONE without an offer of that step");
        return;
    }
    const struct wmsg_restore_done *d = &m->u.restore_done;
    bool misfit = d->misfit && !d->ok && w->offered != SLOT_TABLE_NO_STEP;
    w->seq = m->seq;
    if (misfit && !k->misfit[0])
        el_snip(k->misfit, sizeof k->misfit, "what was saved does not fit what rank %u declares (step %lld): %s",
                w->rank, (long long)w->offered, d->why);
    else if (!d->ok && w->offered != SLOT_TABLE_NO_STEP)
        el_snip(k->lost, sizeof k->lost, "rank %u could not read step %lld: %s", w->rank, (long long)w->offered,
                d->why);
    slot_table_drop_offer(k, w, d->ok || misfit);
    w->restoring = d->ok ? RESTORING_READ : RESTORING_ASKED;
    slot_table_restore_settle(k);
}

void slot_table_on_again(struct slot_table *k)
{
    k->again = true;
    slot_table_restore_settle(k);
}

/* Somebody was offered a snapshot and says nothing: the others are told that there is none, which ends them, and the
 * next round begins with what is held. */
void slot_table_on_late(struct slot_table *k, const char *text)
{
    snprintf(k->text, sizeof k->text, "%s", text ? text : "not every rank has read its snapshot in time");
    k->choosing = false;
    k->misfit[0] = 0;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        bool waits = w->restoring == RESTORING_ASKED || w->restoring == RESTORING_READ;
        slot_table_drop_offer(k, w, true);
        w->restoring = RESTORING_NOT;
        if (w->here && waits)
            slot_table_answer(k, w, WORKER_MSG_RESTORE_OFFER, w->seq)->u.restore_offer =
                (struct wmsg_restore_offer){.step = SLOT_TABLE_NO_STEP, .text = k->text};
    }
}

unsigned slot_table_reading(const struct slot_table *k, unsigned from)
{
    while (from < k->conf.workers && k->w[from].restoring != RESTORING_OFFERED)
        from++;
    return from;
}

unsigned slot_table_silent(const struct slot_table *k, unsigned from)
{
    while (from < k->conf.workers && k->w[from].restoring != RESTORING_NOT)
        from++;
    return from;
}

/* Of the chosen step: what the worker had as another rank, before its own was read from disk. */
static bool is_replaced(const struct slot_table *k, const struct slot_table_worker *w, const struct slot_table_slot *s)
{
    bool is = false;
    for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++)
        is |= w->slot[n].state == SLOT_TABLE_COMMITTED && is_chosen(k, &w->slot[n]) && w->slot[n].gen > s->gen;
    return is && is_chosen(k, s);
}

/* Two workers could otherwise hold the same step, one of what was given up, one of what was trained anew; nor is
 * another take of the chosen one of use to anybody. */
static void forget_later(struct slot_table *k, int64_t step)
{
    for (unsigned i = 0; i < k->conf.workers; i++)
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++) {
            struct slot_table_slot *s = &k->w[i].slot[n];
            bool other = s->step == k->chosen && (s->lineage != k->chosen_lineage || is_replaced(k, &k->w[i], s));
            if (s->state == SLOT_TABLE_COMMITTED && (s->step > step || other))
                slot_table_forget_slot(s);
        }
}

void slot_table_on_confirmed(struct slot_table *k, const struct slot_table_event *ev)
{
    forget_later(k, k->chosen);
    k->since = k->round;
    k->reached = k->went = k->chosen;
    k->went_lineage = k->chosen_lineage;
    slot_table_begin_history(k, ev->lineage);
    k->common = (struct slot_pin_step){k->chosen, -1, k->chosen_lineage, 0};
    k->had_whole = k->chosen != SLOT_TABLE_NO_STEP;
    k->lost[0] = 0;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        if (w->here && w->restoring == RESTORING_READ)
            slot_table_answer(k, w, WORKER_MSG_DONE, w->seq);
        if (w->restoring == RESTORING_READ)
            w->restoring = RESTORING_NOT;
    }
}
