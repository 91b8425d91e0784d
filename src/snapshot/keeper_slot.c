/* One slot: given out when it is large enough, written, summed, committed; or copied into for last words. */
#include "snapshot/keeper_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"

static bool is_newer(const struct keeper_slot *a, const struct keeper_slot *b)
{
    return a->vain == b->vain ? a->gen > b->gen : b->vain;
}

/* The slot whose snapshot was committed last: it is not given away until another one is whole. */
const struct keeper_slot *keeper_newest_slot(const struct worker *w)
{
    const struct keeper_slot *best = NULL;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_COMMITTED && (!best || is_newer(&w->slot[i], best)))
            best = &w->slot[i];
    return best;
}

static bool is_in_use(const struct keeper_slot *s)
{
    return s->readers || s->state == KEEPER_GROWING || s->state == KEEPER_WRITING || s->state == KEEPER_SUMMING ||
           s->state == KEEPER_LOADING || s->state == KEEPER_CAPTURING;
}

/* What all have is kept; of what is left the last that was committed goes only where something else is common. */
struct keeper_slot *keeper_slot_to_load(const struct keeper *k, struct worker *w)
{
    const struct keeper_slot *newest = keeper_newest_slot(w);
    struct keeper_slot *last = NULL;
    bool holds_common = false;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        struct keeper_slot *s = &w->slot[i];
        holds_common |= keeper_is_common(k, w, s);
        if (is_in_use(s) || s->shrinking || keeper_is_common(k, w, s))
            continue;
        if (s != newest)
            return s;
        last = s;
    }
    return holds_common ? last : NULL;
}

void keeper_empty_slot(struct keeper *k, struct keeper_slot *s)
{
    s->state = KEEPER_FREE;
    s->step = KEEPER_NO_STEP;
    s->gen = ++k->gen;
    s->persist = s->captured = s->vain = s->digested = false;
    s->consumed_samples = s->loaded = s->lineage = s->trained = s->take = s->bytes = 0;
    s->era = -1;
}

void keeper_drop_writing(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_WRITING || w->slot[i].state == KEEPER_GROWING)
            keeper_empty_slot(k, &w->slot[i]);
}

void keeper_hold_images(struct keeper_slot *s, const struct declaration *d, const uint64_t *header_bytes,
                        const uint64_t *bytes)
{
    memcpy(s->part_bytes, bytes, d->parts * sizeof *bytes);
    memcpy(s->part_header_bytes, header_bytes, d->parts * sizeof *header_bytes);
    s->bytes = images_bytes(bytes, d->parts);
}

struct sizes {
    uint64_t header_bytes[WMSG_PARTS_MAX], bytes[WMSG_PARTS_MAX];
};

/* NULL, or what is wrong with that list. */
static const char *read_sizes(const struct declaration *d, const char *images, struct sizes *to)
{
    const char *why = images_get(images, d->parts, to->header_bytes, to->bytes);
    return why ? why : keeper_images_wrong(d, to->header_bytes, to->bytes);
}

/* --- room --- */

static void grow(struct keeper *k, struct worker *w, struct keeper_slot *s, uint64_t bytes, uint64_t gen)
{
    struct keeper_action *a = keeper_act(k, KEEPER_DO_GROW, w);
    a->slot = (unsigned)(s - w->slot);
    a->bytes = bytes;
    a->gen = gen;
    s->growths++;
}

/* The size of its snapshots is known: both slots have one of this round, and neither is about to change.  Else 0. */
static uint64_t size_of(const struct keeper *k, const struct worker *w)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        const struct keeper_slot *s = &w->slot[i];
        bool lasts = s->state == KEEPER_COMMITTED || s->state == KEEPER_WRITING || s->state == KEEPER_SUMMING;
        if (!w->granted || !lasts || s->gen <= k->round_gen || s->growths || s->shrinking)
            return 0;
        most = s->bytes > most ? s->bytes : most;
    }
    return most;
}

/* What other workers have reserved and do not need.  False: there is nothing. */
static bool take_back(struct keeper *k, const struct worker *from)
{
    bool comes = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct worker *w = &k->w[i];
        uint64_t bytes = w != from ? size_of(k, w) : 0;
        for (unsigned n = 0; n < KEEPER_SLOTS; n++) {
            struct keeper_slot *s = &w->slot[n];
            if (bytes && s->capacity > bytes) {
                struct keeper_action *a = keeper_act(k, KEEPER_DO_SHRINK, w);
                a->slot = n;
                a->bytes = bytes;
                a->gen = s->shrinking = ++k->gen;
            }
            comes |= s->shrinking != 0;
        }
    }
    return comes;
}

void keeper_on_shrunk(struct keeper_slot *s, const struct keeper_event *ev)
{
    if (s->shrinking != ev->gen)
        return;
    s->shrinking = 0;
    s->capacity = ev->ok ? ev->capacity : s->capacity;
}

void keeper_note_growth(struct keeper_slot *s, const struct keeper_event *ev)
{
    s->capacity = ev->capacity > s->capacity ? ev->capacity : s->capacity;
    s->file_bytes = ev->file_bytes > s->file_bytes ? ev->file_bytes : s->file_bytes;
}

void keeper_on_reserve(struct keeper *k, struct worker *w, uint64_t bytes)
{
    for (unsigned i = 0; w->granted && i < KEEPER_SLOTS; i++)
        if (w->slot[i].capacity < bytes && !w->slot[i].shrinking)
            grow(k, w, &w->slot[i], bytes, 0);
}

/* --- a snapshot --- */

static void give_out(struct keeper *k, struct worker *w, struct keeper_slot *s)
{
    s->state = KEEPER_WRITING;
    keeper_answer(k, w, WMSG_SNAP_SLOT, s->seq)->u.snap_slot =
        (struct wmsg_snap_slot){.slot = (uint64_t)(s - w->slot), .slot_bytes = s->file_bytes};
}

static bool has_slot_in_use(const struct worker *w)
{
    bool in_use = false;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        in_use |= is_in_use(&w->slot[i]);
    return in_use;
}

static void unmet(struct keeper *k, struct worker *w, const char *why)
{
    struct keeper_action *a = keeper_act(k, KEEPER_DO_UNMET, w);
    a->step = w->begun;
    a->lineage = keeper_begun_lineage(w);
    a->text = why;
}

/* Who waits asks again, unless it has for too long, or nobody is there who could say that others have what it holds;
 * else the step is left out. */
static void answer_busy(struct keeper *k, struct worker *w, const struct keeper_event *ev, bool waits)
{
    bool at_work = keeper_is_at_work(k, w), late = ev->now - w->asked >= KEEPER_WAIT_MAX;
    const char *why = w->captures       ? "last words are being captured"
                      : at_work         ? "the last snapshot is still being summed or written"
                      : ev->away        ? "the coordinator is away, so it is not known which snapshot all ranks have"
                      : k->conf.several ? "not every rank of the job has the last snapshot yet"
                                        : "not every rank of this node has the last snapshot yet";
    keeper_is_stuck(k, w, at_work, ev->now);
    w->waits = waits && !ev->away && !late;
    w->refused = !w->waits;
    keeper_answer(k, w, WMSG_SNAP_SLOT, ev->msg->seq)->u.snap_slot =
        (struct wmsg_snap_slot){.busy = true, .give_up = !w->waits, .retry_ms = KEEPER_RETRY / EL_MS(1), .text = why};
    if (ev->msg->u.snap_begin.persist && !w->waits)
        unmet(k, w, why);
}

/* NULL: it may be taken. */
static const char *begin_wrong(struct keeper *k, const struct worker *w, const struct wmsg_snap_begin *b)
{
    if (!w->granted)
        return "a snapshot before anything was declared and granted";
    if (b->step >= 0 && b->step <= CKPT_STEP_MAX)
        return NULL;
    snprintf(k->text, sizeof k->text, "a snapshot's step is a number from 0 to %lld, not %lld",
             (long long)CKPT_STEP_MAX, (long long)b->step); /* it would have no name on disk */
    return k->text;
}

/* Memory is on its way from one worker to another. */
static void ask_again(struct keeper *k, struct worker *w, uint32_t seq, bool waits)
{
    w->waits = waits;
    w->refused = !waits;
    keeper_answer(k, w, WMSG_SNAP_SLOT, seq)->u.snap_slot =
        (struct wmsg_snap_slot){.busy = true,
                                .give_up = !waits,
                                .retry_ms = KEEPER_RETRY / EL_MS(1),
                                .text = "memory that another rank has reserved is being given back"};
}

void keeper_on_begin(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    const struct wmsg *m = ev->msg;
    struct sizes sizes;
    bool waits = k->conf.waits || m->u.snap_begin.persist;
    const char *state = begin_wrong(k, w, &m->u.snap_begin);
    const char *why = state ? state : read_sizes(w->kept, m->u.snap_begin.images, &sizes);
    if (why) {
        keeper_refuse(k, w, m->seq, state ? "STATE" : "IMAGE", why);
        return;
    }
    keeper_drop_writing(k, w); /* one that was begun and never committed */
    /* A script that asks once more for what was left out waits in its own way. */
    bool again = keeper_comes_to(k, w, m->u.snap_begin.step, ev->now);
    /* While last words are captured, what others hold, too, may be in the other slot. */
    struct keeper_slot *s = w->captures ? NULL : keeper_slot_to_write(k, w, waits || again);
    if (!s) {
        answer_busy(k, w, ev, waits);
        return;
    }
    w->stuck = 0;
    if (s->shrinking) {
        ask_again(k, w, m->seq, waits);
        return;
    }
    keeper_empty_slot(k, s);
    keeper_hold_images(s, w->kept, sizes.header_bytes, sizes.bytes);
    s->state = KEEPER_GROWING;
    keeper_name_slot(w, s, m->u.snap_begin.step);
    s->persist = m->u.snap_begin.persist;
    s->seq = m->seq;
    if (s->bytes <= s->capacity)
        give_out(k, w, s);
    else
        grow(k, w, s, s->bytes, s->gen);
}

/* The other slot follows: the next snapshot, and last words, find it large enough. */
void keeper_on_grown(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    struct keeper_slot *s = &w->slot[ev->slot], *other = &w->slot[!ev->slot];
    if (!w->has_slots)
        return;
    s->growths -= s->growths > 0;
    if (ev->ok)
        keeper_note_growth(s, ev);
    if (s->state != KEEPER_GROWING || s->gen != ev->gen)
        return;
    if (ev->ok && s->bytes <= s->capacity) {
        give_out(k, w, s);
        if (other->capacity < s->bytes && !other->shrinking)
            grow(k, w, other, s->bytes, 0);
        return;
    }
    if (ev->need_bytes && take_back(k, w)) {
        ask_again(k, w, s->seq, k->conf.waits || s->persist);
        keeper_empty_slot(k, s);
        return;
    }
    snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "no memory for the slot");
    keeper_refuse(k, w, s->seq, "NOMEM", k->text);
    k->reply[k->replies - 1].u.refused.need_bytes = ev->need_bytes;
    k->reply[k->replies - 1].u.refused.have_bytes = ev->have_bytes;
    if (s->persist)
        unmet(k, w,
              ev->need_bytes ? "a rank's snapshot of it has no room in --ckpt-mem"
                             : "there was no memory for a rank's snapshot of it");
    keeper_empty_slot(k, s);
}

static void sum(struct keeper *k, struct worker *w, struct keeper_slot *s)
{
    s->state = KEEPER_SUMMING;
    struct keeper_action *a = keeper_act(k, KEEPER_DO_SUM, w);
    a->slot = (unsigned)(s - w->slot);
    a->gen = s->gen;
    a->digests = keeper_wants_digests(k, s);
}

void keeper_on_commit(struct keeper *k, struct worker *w, const struct wmsg *m)
{
    const struct wmsg_snap_commit *c = &m->u.snap_commit;
    struct keeper_slot *s = &w->slot[c->slot];
    if (s->state != KEEPER_WRITING || s->step != c->step) {
        keeper_refuse(k, w, m->seq, "STATE", "SNAP_COMMIT of a slot that was not given out for that step");
        keeper_drop_writing(k, w);
        return;
    }
    s->persist = c->persist;
    s->consumed_samples = c->consumed_samples;
    s->seq = m->seq;
    sum(k, w, s);
}

/* --- last words --- */

/* What others could have from the disk is not given out either: a copy may yet fail. */
static struct keeper_slot *slot_to_capture(const struct keeper *k, struct worker *w, int64_t kept)
{
    struct keeper_slot *s = w->has_slots ? keeper_slot_to_load(k, w) : NULL;
    bool newest = s && s == keeper_newest_slot(w);
    bool covered = newest && keeper_cover(k, s->step, s->lineage) == KEEPER_COVERED;
    return s && ((s->state == KEEPER_COMMITTED && s->step == kept) || covered) ? NULL : s;
}

int keeper_capture(struct keeper *k, unsigned worker, int64_t step, int64_t kept)
{
    struct worker *w = &k->w[worker];
    struct keeper_slot *s = slot_to_capture(k, w, kept);
    if (!s || step < 0 || step > CKPT_STEP_MAX)
        return -1;
    keeper_empty_slot(k, s);
    s->state = KEEPER_CAPTURING;
    s->captured = w->captures = true;
    keeper_name_slot(w, s, step);
    return (int)(s - w->slot);
}

void keeper_captures_end(struct keeper *k, int64_t step)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct worker *w = &k->w[i];
        w->captures = false;
        for (unsigned x = 0; x < KEEPER_SLOTS; x++)
            w->slot[x].vain |= w->slot[x].captured && w->slot[x].gen > k->round_gen && w->slot[x].step != step;
    }
}

bool keeper_has_free(const struct keeper *k, unsigned worker, int64_t kept)
{
    return slot_to_capture(k, &k->w[worker], kept) != NULL;
}

bool keeper_may_free(const struct keeper *k, unsigned worker)
{
    return has_slot_in_use(&k->w[worker]);
}

void keeper_on_captured(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    struct keeper_slot *s = &w->slot[ev->slot];
    struct sizes sizes;
    if (s->state != KEEPER_CAPTURING)
        return;
    if (!ev->ok || read_sizes(w->kept, ev->images, &sizes) || images_bytes(sizes.bytes, w->kept->parts) > s->capacity) {
        keeper_empty_slot(k, s);
        return;
    }
    keeper_hold_images(s, w->kept, sizes.header_bytes, sizes.bytes);
    s->consumed_samples = ev->number;
    sum(k, w, s);
}

/* Whoever was to write there has ended with the round. */
void keeper_drop_captures(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        if (w->slot[i].state == KEEPER_CAPTURING)
            keeper_empty_slot(k, &w->slot[i]);
        w->slot[i].vain = false;
    }
    w->captures = false;
}

/* --- sums --- */

void keeper_on_summed(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    struct keeper_slot *s = &w->slot[ev->slot];
    if (s->state != KEEPER_SUMMING || s->gen != ev->gen)
        return;
    bool asks = w->here && !s->captured;
    if (!ev->ok) {
        snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "the image is not what was said");
        if (asks)
            keeper_refuse(k, w, s->seq, "IMAGE", k->text);
        keeper_empty_slot(k, s);
        return;
    }
    s->state = KEEPER_COMMITTED;
    keeper_hold_digests(s, w->kept, ev->part_digest);
    k->since = k->since ? k->since : k->round; /* of a script that has not asked before */
    k->reached = s->step > k->reached ? s->step : k->reached;
    k->had_whole = k->had_whole || keeper_all_could_read(k, s->step, s->lineage);
    if (asks)
        keeper_answer(k, w, WMSG_SNAP_ACK, s->seq)->u.snap_ack =
            (struct wmsg_snap_ack){.slot = ev->slot, .step = s->step};
    keeper_look_common(k);
    if (s->state != KEEPER_COMMITTED)
        return; /* all have gone back behind it */
    struct keeper_action *a = keeper_act(k, KEEPER_DO_COMMITTED, w);
    a->slot = ev->slot;
    a->step = s->step;
    a->gen = s->gen;
    a->persist = s->persist;
    keeper_compare_next(k);
}

/* --- readers --- */

bool keeper_take(struct keeper *k, unsigned worker, unsigned slot)
{
    struct keeper_slot *s = &k->w[worker].slot[slot];
    if (s->state != KEEPER_COMMITTED)
        return false;
    s->readers++;
    return true;
}

void keeper_give_back(struct keeper_slot *s, bool intact)
{
    assert(s->readers > 0);
    s->readers--;
    if (!intact)
        s->state = KEEPER_BROKEN;
}

void keeper_give(struct keeper *k, unsigned worker, unsigned slot, uint64_t gen, bool intact)
{
    struct keeper_slot *s = &k->w[worker].slot[slot];
    if (s->gen == gen)
        keeper_give_back(s, intact);
}
