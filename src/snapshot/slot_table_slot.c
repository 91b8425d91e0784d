/* One slot: given out when it is large enough, written, summed, committed; or copied into for an emergency checkpoint.
 */
#include "snapshot/slot_table_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"

static bool is_newer(const struct slot_table_slot *a, const struct slot_table_slot *b)
{
    return a->vain == b->vain ? a->gen > b->gen : b->vain;
}

/* The slot whose snapshot was committed last: it is not given away until another one is whole. */
const struct slot_table_slot *slot_table_newest_slot(const struct slot_table_worker *w)
{
    const struct slot_table_slot *best = NULL;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (w->slot[i].state == SLOT_TABLE_COMMITTED && (!best || is_newer(&w->slot[i], best)))
            best = &w->slot[i];
    return best;
}

static bool is_in_use(const struct slot_table_slot *s)
{
    return s->readers || s->state == SLOT_TABLE_GROWING || s->state == SLOT_TABLE_WRITING ||
           s->state == SLOT_TABLE_SUMMING || s->state == SLOT_TABLE_LOADING || s->state == SLOT_TABLE_CAPTURING;
}

/* What all have is kept; of what is left the last that was committed goes only where something else is common. */
struct slot_table_slot *slot_table_slot_to_load(const struct slot_table *k, struct slot_table_worker *w)
{
    const struct slot_table_slot *newest = slot_table_newest_slot(w);
    struct slot_table_slot *last = NULL;
    bool holds_common = false;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        struct slot_table_slot *s = &w->slot[i];
        holds_common |= slot_table_is_common(k, w, s);
        if (is_in_use(s) || s->shrinking || slot_table_is_common(k, w, s))
            continue;
        if (s != newest)
            return s;
        last = s;
    }
    return holds_common ? last : NULL;
}

void slot_table_empty_slot(struct slot_table *k, struct slot_table_slot *s)
{
    s->state = SLOT_TABLE_FREE;
    s->step = SLOT_TABLE_NO_STEP;
    s->gen = ++k->gen;
    s->persist = s->captured = s->vain = s->digested = false;
    s->consumed_samples = s->loaded = s->lineage = s->trained = s->take = s->bytes = 0;
    s->era = -1;
}

void slot_table_drop_writing(struct slot_table *k, struct slot_table_worker *w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        if (w->slot[i].state == SLOT_TABLE_WRITING || w->slot[i].state == SLOT_TABLE_GROWING)
            slot_table_empty_slot(k, &w->slot[i]);
}

void slot_table_hold_images(struct slot_table_slot *s, const struct declaration *d, const uint64_t *header_bytes,
                            const uint64_t *bytes)
{
    memcpy(s->part_bytes, bytes, d->parts * sizeof *bytes);
    memcpy(s->part_header_bytes, header_bytes, d->parts * sizeof *header_bytes);
    s->bytes = image_sizes_bytes(bytes, d->parts);
}

struct sizes {
    uint64_t header_bytes[WORKER_MSG_PARTS_MAX], bytes[WORKER_MSG_PARTS_MAX];
};

/* NULL, or what is wrong with that list. */
static const char *read_sizes(const struct declaration *d, const char *images, struct sizes *to)
{
    const char *why = image_sizes_get(images, d->parts, to->header_bytes, to->bytes);
    return why ? why : slot_table_images_wrong(d, to->header_bytes, to->bytes);
}

/* --- room --- */

static void slot_table_slot_grow(struct slot_table *k, struct slot_table_worker *w, struct slot_table_slot *s,
                                 uint64_t bytes, uint64_t gen)
{
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_GROW, w);
    a->slot = (unsigned)(s - w->slot);
    a->bytes = bytes;
    a->gen = gen;
    s->growths++;
}

/* The size of its snapshots is known: both slots have one of this round, and neither is about to change.  Else 0. */
static uint64_t slot_table_slot_size_of(const struct slot_table *k, const struct slot_table_worker *w)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        const struct slot_table_slot *s = &w->slot[i];
        bool lasts =
            s->state == SLOT_TABLE_COMMITTED || s->state == SLOT_TABLE_WRITING || s->state == SLOT_TABLE_SUMMING;
        if (!w->granted || !lasts || s->gen <= k->round_gen || s->growths || s->shrinking)
            return 0;
        most = s->bytes > most ? s->bytes : most;
    }
    return most;
}

/* What other workers have reserved and do not need.  False: there is nothing. */
static bool slot_table_slot_take_back(struct slot_table *k, const struct slot_table_worker *from)
{
    bool comes = false;
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        uint64_t bytes = w != from ? slot_table_slot_size_of(k, w) : 0;
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++) {
            struct slot_table_slot *s = &w->slot[n];
            if (bytes && s->capacity > bytes) {
                struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_SHRINK, w);
                a->slot = n;
                a->bytes = bytes;
                a->gen = s->shrinking = ++k->gen;
            }
            comes |= s->shrinking != 0;
        }
    }
    return comes;
}

void slot_table_on_shrunk(struct slot_table_slot *s, const struct slot_table_event *ev)
{
    if (s->shrinking != ev->gen)
        return;
    s->shrinking = 0;
    s->capacity = ev->ok ? ev->capacity : s->capacity;
}

void slot_table_note_growth(struct slot_table_slot *s, const struct slot_table_event *ev)
{
    s->capacity = ev->capacity > s->capacity ? ev->capacity : s->capacity;
    s->file_bytes = ev->file_bytes > s->file_bytes ? ev->file_bytes : s->file_bytes;
}

void slot_table_on_reserve(struct slot_table *k, struct slot_table_worker *w, uint64_t bytes)
{
    for (unsigned i = 0; w->granted && i < SLOT_TABLE_SLOTS; i++)
        if (w->slot[i].capacity < bytes && !w->slot[i].shrinking)
            slot_table_slot_grow(k, w, &w->slot[i], bytes, 0);
}

/* --- a snapshot --- */

static void give_out(struct slot_table *k, struct slot_table_worker *w, struct slot_table_slot *s)
{
    s->state = SLOT_TABLE_WRITING;
    slot_table_answer(k, w, WORKER_MSG_SNAP_SLOT, s->seq)->u.snap_slot =
        (struct wmsg_snap_slot){.slot = (uint64_t)(s - w->slot), .slot_bytes = s->file_bytes};
}

static bool has_slot_in_use(const struct slot_table_worker *w)
{
    bool in_use = false;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++)
        in_use |= is_in_use(&w->slot[i]);
    return in_use;
}

static void unmet(struct slot_table *k, struct slot_table_worker *w, const char *why)
{
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_UNMET, w);
    a->step = w->begun;
    a->lineage = slot_table_begun_lineage(w);
    a->text = why;
}

/* Who waits asks again, unless it has for too long, or nobody is there who could say that others have what it holds;
 * else the step is left out. */
static void answer_busy(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev,
                        bool waits)
{
    bool at_work = slot_table_is_at_work(k, w), late = ev->now - w->asked >= SLOT_TABLE_WAIT_MAX;
    const char *why = w->captures       ? "an emergency checkpoint is being captured"
                      : at_work         ? "the last snapshot is still being summed or written"
                      : ev->away        ? "the coordinator is away, so it is not known which snapshot all ranks have"
                      : k->conf.several ? "not every rank of the job has the last snapshot yet"
                                        : "not every rank of this node has the last snapshot yet";
    slot_table_is_stuck(k, w, at_work, ev->now);
    w->waits = waits && !ev->away && !late;
    w->refused = !w->waits;
    slot_table_answer(k, w, WORKER_MSG_SNAP_SLOT, ev->msg->seq)->u.snap_slot = (struct wmsg_snap_slot){
        .busy = true, .give_up = !w->waits, .retry_ms = SLOT_TABLE_RETRY / EL_MS(1), .text = why};
    if (ev->msg->u.snap_begin.persist && !w->waits)
        unmet(k, w, why);
}

/* NULL: it may be taken. */
static const char *begin_wrong(struct slot_table *k, const struct slot_table_worker *w, const struct wmsg_snap_begin *b)
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
static void ask_again(struct slot_table *k, struct slot_table_worker *w, uint32_t seq, bool waits)
{
    w->waits = waits;
    w->refused = !waits;
    slot_table_answer(k, w, WORKER_MSG_SNAP_SLOT, seq)->u.snap_slot =
        (struct wmsg_snap_slot){.busy = true,
                                .give_up = !waits,
                                .retry_ms = SLOT_TABLE_RETRY / EL_MS(1),
                                .text = "memory that another rank has reserved is being given back"};
}

void slot_table_on_begin(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    const struct worker_msg *m = ev->msg;
    struct sizes sizes;
    bool waits = k->conf.waits || m->u.snap_begin.persist;
    const char *state = begin_wrong(k, w, &m->u.snap_begin);
    const char *why = state ? state : read_sizes(w->kept, m->u.snap_begin.images, &sizes);
    if (why) {
        slot_table_refuse(k, w, m->seq, state ? "STATE" : "IMAGE", why);
        return;
    }
    slot_table_drop_writing(k, w); /* one that was begun and never committed */
    /* A script that asks once more for what was left out waits in its own way. */
    bool again = slot_table_comes_to(k, w, m->u.snap_begin.step, ev->now);
    /* While an emergency checkpoint is captured, what others hold, too, may be in the other slot. */
    struct slot_table_slot *s = w->captures ? NULL : slot_table_slot_to_write(k, w, waits || again);
    if (!s) {
        answer_busy(k, w, ev, waits);
        return;
    }
    w->stuck = 0;
    if (s->shrinking) {
        ask_again(k, w, m->seq, waits);
        return;
    }
    slot_table_empty_slot(k, s);
    slot_table_hold_images(s, w->kept, sizes.header_bytes, sizes.bytes);
    s->state = SLOT_TABLE_GROWING;
    slot_table_name_slot(w, s, m->u.snap_begin.step);
    s->persist = m->u.snap_begin.persist;
    s->seq = m->seq;
    if (s->bytes <= s->capacity)
        give_out(k, w, s);
    else
        slot_table_slot_grow(k, w, s, s->bytes, s->gen);
}

/* The other slot follows: the next snapshot, and emergency checkpoint, find it large enough. */
void slot_table_on_grown(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    struct slot_table_slot *s = &w->slot[ev->slot], *other = &w->slot[!ev->slot];
    if (!w->has_slots)
        return;
    s->growths -= s->growths > 0;
    if (ev->ok)
        slot_table_note_growth(s, ev);
    if (s->state != SLOT_TABLE_GROWING || s->gen != ev->gen)
        return;
    if (ev->ok && s->bytes <= s->capacity) {
        give_out(k, w, s);
        if (other->capacity < s->bytes && !other->shrinking)
            slot_table_slot_grow(k, w, other, s->bytes, 0);
        return;
    }
    if (ev->need_bytes && slot_table_slot_take_back(k, w)) {
        ask_again(k, w, s->seq, k->conf.waits || s->persist);
        slot_table_empty_slot(k, s);
        return;
    }
    snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "no memory for the slot");
    slot_table_refuse(k, w, s->seq, "NOMEM", k->text);
    k->reply[k->replies - 1].u.refused.need_bytes = ev->need_bytes;
    k->reply[k->replies - 1].u.refused.have_bytes = ev->have_bytes;
    if (s->persist)
        unmet(k, w,
              ev->need_bytes ? "a rank's snapshot of it has no room in --ckpt-mem"
                             : "there was no memory for a rank's snapshot of it");
    slot_table_empty_slot(k, s);
}

static void slot_table_slot_sum(struct slot_table *k, struct slot_table_worker *w, struct slot_table_slot *s)
{
    s->state = SLOT_TABLE_SUMMING;
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_SUM, w);
    a->slot = (unsigned)(s - w->slot);
    a->gen = s->gen;
    a->digests = slot_table_wants_digests(k, s);
}

void slot_table_on_commit(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    const struct wmsg_snap_commit *c = &m->u.snap_commit;
    struct slot_table_slot *s = &w->slot[c->slot];
    if (s->state != SLOT_TABLE_WRITING || s->step != c->step) {
        slot_table_refuse(k, w, m->seq, "STATE", "SNAP_COMMIT of a slot that was not given out for that step");
        slot_table_drop_writing(k, w);
        return;
    }
    s->persist = c->persist;
    s->consumed_samples = c->consumed_samples;
    s->seq = m->seq;
    slot_table_slot_sum(k, w, s);
}

/* --- emergency checkpoint --- */

/* What others could have from the disk is not given out either: a copy may yet fail. */
static struct slot_table_slot *slot_to_capture(const struct slot_table *k, struct slot_table_worker *w, int64_t kept)
{
    struct slot_table_slot *s = w->has_slots ? slot_table_slot_to_load(k, w) : NULL;
    bool newest = s && s == slot_table_newest_slot(w);
    bool covered = newest && slot_table_cover(k, s->step, s->lineage) == SLOT_TABLE_COVERED;
    return s && ((s->state == SLOT_TABLE_COMMITTED && s->step == kept) || covered) ? NULL : s;
}

int slot_table_capture(struct slot_table *k, unsigned worker, int64_t step, int64_t kept)
{
    struct slot_table_worker *w = &k->w[worker];
    struct slot_table_slot *s = slot_to_capture(k, w, kept);
    if (!s || step < 0 || step > CKPT_STEP_MAX)
        return -1;
    slot_table_empty_slot(k, s);
    s->state = SLOT_TABLE_CAPTURING;
    s->captured = w->captures = true;
    slot_table_name_slot(w, s, step);
    return (int)(s - w->slot);
}

void slot_table_captures_end(struct slot_table *k, int64_t step)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        struct slot_table_worker *w = &k->w[i];
        w->captures = false;
        for (unsigned x = 0; x < SLOT_TABLE_SLOTS; x++)
            w->slot[x].vain |= w->slot[x].captured && w->slot[x].gen > k->round_gen && w->slot[x].step != step;
    }
}

bool slot_table_has_free(const struct slot_table *k, unsigned worker, int64_t kept)
{
    return slot_to_capture(k, &k->w[worker], kept) != NULL;
}

bool slot_table_may_free(const struct slot_table *k, unsigned worker)
{
    return has_slot_in_use(&k->w[worker]);
}

void slot_table_on_captured(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    struct slot_table_slot *s = &w->slot[ev->slot];
    struct sizes sizes;
    if (s->state != SLOT_TABLE_CAPTURING)
        return;
    if (!ev->ok || read_sizes(w->kept, ev->images, &sizes) ||
        image_sizes_bytes(sizes.bytes, w->kept->parts) > s->capacity) {
        slot_table_empty_slot(k, s);
        return;
    }
    slot_table_hold_images(s, w->kept, sizes.header_bytes, sizes.bytes);
    s->consumed_samples = ev->number;
    slot_table_slot_sum(k, w, s);
}

/* Whoever was to write there has ended with the round. */
void slot_table_drop_captures(struct slot_table *k, struct slot_table_worker *w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        if (w->slot[i].state == SLOT_TABLE_CAPTURING)
            slot_table_empty_slot(k, &w->slot[i]);
        w->slot[i].vain = false;
    }
    w->captures = false;
}

/* --- sums --- */

void slot_table_on_summed(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    struct slot_table_slot *s = &w->slot[ev->slot];
    if (s->state != SLOT_TABLE_SUMMING || s->gen != ev->gen)
        return;
    bool asks = w->here && !s->captured;
    if (!ev->ok) {
        snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "the image is not what was said");
        if (asks)
            slot_table_refuse(k, w, s->seq, "IMAGE", k->text);
        slot_table_empty_slot(k, s);
        return;
    }
    s->state = SLOT_TABLE_COMMITTED;
    slot_table_hold_digests(s, w->kept, ev->part_digest);
    k->since = k->since ? k->since : k->round; /* of a script that has not asked before */
    k->reached = s->step > k->reached ? s->step : k->reached;
    k->had_whole = k->had_whole || slot_table_all_could_read(k, s->step, s->lineage);
    if (asks)
        slot_table_answer(k, w, WORKER_MSG_SNAP_ACK, s->seq)->u.snap_ack =
            (struct wmsg_snap_ack){.slot = ev->slot, .step = s->step};
    slot_table_look_common(k);
    if (s->state != SLOT_TABLE_COMMITTED)
        return; /* all have gone back behind it */
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_COMMITTED, w);
    a->slot = ev->slot;
    a->step = s->step;
    a->gen = s->gen;
    a->persist = s->persist;
    slot_table_compare_next(k);
}

/* --- readers --- */

bool slot_table_take(struct slot_table *k, unsigned worker, unsigned slot)
{
    struct slot_table_slot *s = &k->w[worker].slot[slot];
    if (s->state != SLOT_TABLE_COMMITTED)
        return false;
    s->readers++;
    return true;
}

void slot_table_give_back(struct slot_table_slot *s, bool intact)
{
    assert(s->readers > 0);
    s->readers--;
    if (!intact)
        s->state = SLOT_TABLE_BROKEN;
}

void slot_table_give(struct slot_table *k, unsigned worker, unsigned slot, uint64_t gen, bool intact)
{
    struct slot_table_slot *s = &k->w[worker].slot[slot];
    if (s->gen == gen)
        slot_table_give_back(s, intact);
}
