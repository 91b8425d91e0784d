#include "ckpt/keeper_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"

struct keeper *keeper_new(const struct keeper_conf *conf, struct el_mem *mem)
{
    assert(conf->workers > 0 && conf->workers <= KEEPER_WORKERS_MAX);
    struct keeper *k = el_alloc(mem, sizeof *k);
    if (!k)
        return NULL;
    k->conf = *conf;
    k->mem = mem;
    k->chosen = k->reached = k->went = KEEPER_NO_STEP;
    k->out.room = 2 * conf->workers + 4;
    k->w = el_alloc(mem, conf->workers * sizeof *k->w);
    k->reply = el_alloc(mem, k->out.room * sizeof *k->reply);
    k->out.v = el_alloc(mem, k->out.room * sizeof *k->out.v);
    if (!k->w || !k->reply || !k->out.v) {
        keeper_free(k);
        return NULL;
    }
    return k;
}

void keeper_forget_slots(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        el_free(k->mem, w->slot[i].part_bytes);
        w->slot[i] = (struct keeper_slot){.step = KEEPER_NO_STEP, .gen = ++k->gen};
    }
    el_free(k->mem, w->kept);
    w->kept = NULL;
    w->has_slots = w->granted = w->allocating = false;
}

void keeper_free(struct keeper *k)
{
    for (unsigned i = 0; k->w && i < k->conf.workers; i++) {
        keeper_forget_slots(k, &k->w[i]);
        el_free(k->mem, k->w[i].named);
    }
    el_free(k->mem, k->w);
    el_free(k->mem, k->reply);
    el_free(k->mem, k->out.v);
    el_free(k->mem, k);
}

/* --- out --- */

struct keeper_action *keeper_act(struct keeper *k, enum keeper_action_type type, const struct worker *w)
{
    assert(k->out.n < k->out.room);
    struct keeper_action *a = &k->out.v[k->out.n++];
    *a = (struct keeper_action){.type = type, .worker = (unsigned)(w - k->w)};
    return a;
}

struct wmsg *keeper_answer(struct keeper *k, struct worker *w, enum wmsg_type type, uint32_t seq)
{
    struct keeper_action *a = keeper_act(k, KEEPER_DO_SEND, w);
    a->reply = k->replies++;
    struct wmsg *m = &k->reply[a->reply];
    memset(m, 0, sizeof *m);
    m->type = type;
    m->seq = seq;
    return m;
}

void keeper_refuse(struct keeper *k, struct worker *w, uint32_t seq, const char *code, const char *text)
{
    struct wmsg *m = keeper_answer(k, w, WMSG_REFUSED, seq);
    m->u.refused = (struct wmsg_refused){.code = code, .text = text};
}

const struct wmsg *keeper_reply(const struct keeper *k, unsigned reply)
{
    assert(reply < k->replies);
    return &k->reply[reply];
}

/* --- snapshots --- */

static bool is_newer(const struct keeper_slot *a, const struct keeper_slot *b)
{
    return a->vain == b->vain ? a->gen > b->gen : b->vain;
}

/* The slot whose snapshot was committed last: it is not given away until another one is whole. */
static const struct keeper_slot *newest(const struct worker *w)
{
    const struct keeper_slot *best = NULL;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_COMMITTED && (!best || is_newer(&w->slot[i], best)))
            best = &w->slot[i];
    return best;
}

struct keeper_slot *keeper_free_slot(struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        struct keeper_slot *s = &w->slot[i];
        if (s->readers == 0 && s->state != KEEPER_SUMMING && s->state != KEEPER_WRITING && s->state != KEEPER_LOADING &&
            s->state != KEEPER_CAPTURING && s != newest(w))
            return s;
    }
    return NULL;
}

void keeper_empty_slot(struct keeper *k, struct keeper_slot *s)
{
    s->state = KEEPER_FREE;
    s->step = KEEPER_NO_STEP;
    s->gen = ++k->gen;
    s->persist = s->captured = s->vain = false;
    s->consumed_samples = s->loaded = s->lineage = 0;
}

static void drop_writing(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_WRITING)
            keeper_empty_slot(k, &w->slot[i]);
}

static void on_begin(struct keeper *k, struct worker *w, const struct wmsg *m)
{
    if (!w->granted) {
        keeper_refuse(k, w, m->seq, "STATE", "a snapshot before anything was declared and granted");
        return;
    }
    if (m->u.snap_begin.step < 0 || m->u.snap_begin.step > CKPT_STEP_MAX) { /* it has no name on disk */
        snprintf(k->text, sizeof k->text, "a snapshot's step is a number from 0 to %lld, not %lld",
                 (long long)CKPT_STEP_MAX, (long long)m->u.snap_begin.step);
        keeper_refuse(k, w, m->seq, "STATE", k->text);
        return;
    }
    drop_writing(k, w); /* one that was begun and never committed */
    w->refuse[0] = 0;
    struct keeper_slot *s =
        w->captures ? NULL : keeper_free_slot(w); /* what others hold, too, may be in the other one */
    struct wmsg *reply = keeper_answer(k, w, WMSG_SNAP_SLOT, m->seq);
    if (!s) {
        reply->u.snap_slot =
            (struct wmsg_snap_slot){.busy = true,
                                    .retry_ms = KEEPER_RETRY / EL_MS(1),
                                    .text = w->captures ? "last words are being captured"
                                                        : "the last snapshot is still being summed or written"};
        return;
    }
    keeper_empty_slot(k, s);
    s->state = KEEPER_WRITING;
    s->step = m->u.snap_begin.step;
    s->lineage = k->lineage;
    for (unsigned i = 0; i < w->kept->parts; i++)
        s->part_bytes[i] = w->kept->part[i].bytes;
    reply->u.snap_slot.slot = (uint64_t)(s - w->slot);
}

static struct keeper_slot *writing(struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_WRITING)
            return &w->slot[i];
    return NULL;
}

static void on_snap_part(struct worker *w, const struct wmsg_snap_part *p)
{
    struct keeper_slot *s = writing(w);
    if (!s)
        return; /* told at SNAP_COMMIT */
    if (p->index >= w->kept->parts || p->bytes > w->kept->part[p->index].bytes ||
        (!w->kept->part[p->index].file[0] && p->bytes != w->kept->part[p->index].bytes)) {
        snprintf(w->refuse, sizeof w->refuse, "part %llu has %llu bytes, more than were granted",
                 (unsigned long long)p->index, (unsigned long long)p->bytes);
        return;
    }
    s->part_bytes[p->index] = p->bytes;
}

static void on_commit(struct keeper *k, struct worker *w, const struct wmsg *m)
{
    const struct wmsg_snap_commit *c = &m->u.snap_commit;
    struct keeper_slot *s = &w->slot[c->slot];
    if (w->refuse[0] || s->state != KEEPER_WRITING || s->step != c->step) {
        snprintf(k->text, sizeof k->text, "%s",
                 w->refuse[0] ? w->refuse : "SNAP_COMMIT of a slot that was not given out for that step");
        keeper_refuse(k, w, m->seq, "STATE", k->text);
        w->refuse[0] = 0;
        drop_writing(k, w);
        return;
    }
    s->state = KEEPER_SUMMING;
    s->persist = c->persist;
    s->consumed_samples = c->consumed_samples;
    s->seq = m->seq;
    struct keeper_action *a = keeper_act(k, KEEPER_DO_SUM, w);
    a->slot = (unsigned)c->slot;
    a->gen = s->gen;
}

/* --- last words --- */

static struct keeper_slot *slot_to_capture(struct worker *w, int64_t kept)
{
    struct keeper_slot *s = w->has_slots ? keeper_free_slot(w) : NULL;
    return s && s->state == KEEPER_COMMITTED && s->step == kept ? NULL : s;
}

int keeper_capture(struct keeper *k, unsigned worker, int64_t step, int64_t kept)
{
    struct worker *w = &k->w[worker];
    struct keeper_slot *s = slot_to_capture(w, kept);
    if (!s || step < 0 || step > CKPT_STEP_MAX)
        return -1;
    keeper_empty_slot(k, s);
    s->state = KEEPER_CAPTURING;
    s->captured = w->captures = true;
    s->step = step;
    s->lineage = k->lineage;
    for (unsigned i = 0; i < w->kept->parts; i++)
        s->part_bytes[i] = w->kept->part[i].bytes;
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
    return slot_to_capture(&k->w[worker], kept) != NULL;
}

static void on_captured(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    struct keeper_slot *s = &w->slot[ev->slot];
    if (s->state != KEEPER_CAPTURING)
        return;
    if (!ev->ok) {
        keeper_empty_slot(k, s);
        return;
    }
    s->state = KEEPER_SUMMING;
    s->consumed_samples = ev->number;
    struct keeper_action *a = keeper_act(k, KEEPER_DO_SUM, w);
    a->slot = ev->slot;
    a->gen = s->gen;
}

/* Whoever was to write there has ended with the round. */
static void drop_captures(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        if (w->slot[i].state == KEEPER_CAPTURING)
            keeper_empty_slot(k, &w->slot[i]);
    for (unsigned i = 0; i < KEEPER_SLOTS; i++)
        w->slot[i].vain = false;
    w->captures = false;
}

/* --- sums --- */

static void on_summed(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    struct keeper_slot *s = &w->slot[ev->slot];
    if (s->state != KEEPER_SUMMING || s->gen != ev->gen)
        return;
    bool asks = w->here && !s->captured;
    if (!ev->ok) {
        snprintf(k->text, sizeof k->text, "%s", ev->text ? ev->text : "the image is not what was declared");
        if (asks)
            keeper_refuse(k, w, s->seq, "IMAGE", k->text);
        keeper_empty_slot(k, s);
        return;
    }
    s->state = KEEPER_COMMITTED;
    k->since = k->since ? k->since : k->round; /* of a script that has not asked before */
    k->reached = s->step > k->reached ? s->step : k->reached;
    k->had_whole = k->had_whole || keeper_all_could_read(k, s->step, s->lineage);
    if (asks)
        keeper_answer(k, w, WMSG_SNAP_ACK, s->seq)->u.snap_ack =
            (struct wmsg_snap_ack){.slot = ev->slot, .step = s->step};
    struct keeper_action *a = keeper_act(k, KEEPER_DO_COMMITTED, w);
    a->slot = ev->slot;
    a->step = s->step;
    a->gen = s->gen;
    a->persist = s->persist;
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

/* --- coming and going --- */

static void on_hello(struct keeper *k, struct worker *w, const struct wmsg *m)
{
    const struct wmsg_hello *h = &m->u.hello;
    unsigned local_rank = (unsigned)(w - k->w), rank = k->rank_base + local_rank;
    if (h->proto != WMSG_PROTO || h->local_rank != local_rank || h->rank != rank || h->round != k->round) {
        snprintf(k->text, sizeof k->text,
                 "HELLO with protocol %llu, rank %llu, local rank %llu, round %llu; here it is %d, %u, %u, %llu",
                 (unsigned long long)h->proto, (unsigned long long)h->rank, (unsigned long long)h->local_rank,
                 (unsigned long long)h->round, WMSG_PROTO, rank, local_rank, (unsigned long long)k->round);
        keeper_refuse(k, w, m->seq,
                      h->proto != WMSG_PROTO ? "PROTO"
                      : h->round != k->round ? "ROUND"
                                             : "RANK",
                      k->text);
        keeper_act(k, KEEPER_DO_CLOSE, w);
        return;
    }
    w->here = true;
    w->rank = (unsigned)h->rank;
    keeper_answer(k, w, WMSG_WELCOME, m->seq)->u.welcome =
        (struct wmsg_welcome){.proto = WMSG_PROTO,
                              .snapshots = k->conf.budget_bytes > 0,
                              .files = k->conf.files,
                              .waits = k->conf.waits,
                              .live = k->conf.live,
                              .kept_bytes = newest(w) ? w->kept->slot_bytes : 0};
}

static void on_gone(struct keeper *k, struct worker *w)
{
    drop_writing(k, w);
    keeper_drop_offer(k, w, true);
    w->restoring = RESTORING_NOT;
    w->here = w->declared = w->granted = false;
    el_free(k->mem, w->named);
    w->named = NULL;
    w->refuse[0] = 0;
}

static void on_message(struct keeper *k, struct worker *w, const struct wmsg *m)
{
    if (m->type == WMSG_HELLO) {
        if (!w->here) {
            on_hello(k, w, m);
            return;
        }
        keeper_refuse(k, w, m->seq, "STATE", "HELLO was said already");
        return;
    }
    if (!w->here) {
        keeper_refuse(k, w, m->seq, "STATE", "the first word is HELLO");
        keeper_act(k, KEEPER_DO_CLOSE, w);
        return;
    }
    if (m->type == WMSG_PART)
        keeper_on_part(k, w, m);
    else if (m->type == WMSG_DECLARE)
        keeper_on_declare(k, w, m);
    else if (m->type == WMSG_SNAP_BEGIN)
        on_begin(k, w, m);
    else if (m->type == WMSG_SNAP_PART)
        on_snap_part(w, &m->u.snap_part);
    else if (m->type == WMSG_SNAP_COMMIT)
        on_commit(k, w, m);
    else if (m->type == WMSG_SNAP_ABORT)
        drop_writing(k, w);
    else if (m->type == WMSG_RESTORE_QUERY)
        keeper_on_query(k, w, m);
    else if (m->type == WMSG_RESTORE_DONE)
        keeper_on_restored(k, w, m);
    else if (m->type == WMSG_AT_BOUNDARY)
        keeper_act(k, KEEPER_DO_BOUNDARY, w)->step = m->u.at_boundary.step;
    else {
        keeper_refuse(k, w, m->seq, "STATE", "that is an agent's word, not a worker's");
        keeper_act(k, KEEPER_DO_CLOSE, w);
        on_gone(k, w); /* it may come again */
    }
}

const struct keeper_actions *keeper_step(struct keeper *k, const struct keeper_event *ev)
{
    struct worker *w = &k->w[ev->worker];
    k->out.n = k->replies = 0;
    switch (ev->type) {
    case KEEPER_EV_MSG: on_message(k, w, ev->msg); break;
    case KEEPER_EV_GONE: on_gone(k, w); break;
    case KEEPER_EV_ROUND:
        for (unsigned i = 0; i < k->conf.workers; i++) {
            on_gone(k, &k->w[i]);
            drop_captures(k, &k->w[i]);
            k->w[i].known = false;
        }
        k->round = ev->number;
        k->lineage = ev->lineage;
        k->round_gen = k->gen;
        k->went = KEEPER_NO_STEP;
        k->choose_due = k->again = k->loading = false;
        k->rank_base = ev->rank_base;
        k->choosing = false;
        break;
    case KEEPER_EV_ALLOCATED: keeper_on_allocated(k, w, ev); break;
    case KEEPER_EV_SUMMED: on_summed(k, w, ev); break;
    case KEEPER_EV_CAPTURED: on_captured(k, w, ev); break;
    case KEEPER_EV_READ:
        if (w->slot[ev->slot].gen == ev->gen)
            keeper_give_back(&w->slot[ev->slot], ev->ok);
        break;
    case KEEPER_EV_CHOSEN: keeper_on_chosen(k, ev); break;
    case KEEPER_EV_LOADED: keeper_on_loaded(k, w, ev); break;
    case KEEPER_EV_AGAIN: keeper_on_again(k); break;
    case KEEPER_EV_CONFIRMED: keeper_on_confirmed(k, ev); break;
    case KEEPER_EV_LATE: keeper_on_late(k, ev->text); break;
    }
    keeper_choose_if_due(k);
    return &k->out;
}

/* --- what is held --- */

unsigned keeper_parts(const struct keeper *k, unsigned worker)
{
    return k->w[worker].kept ? k->w[worker].kept->parts : 0;
}

const struct keeper_part *keeper_part(const struct keeper *k, unsigned worker, unsigned part)
{
    assert(part < keeper_parts(k, worker));
    return &k->w[worker].kept->part[part];
}

const struct keeper_slot *keeper_slot(const struct keeper *k, unsigned worker, unsigned slot)
{
    return &k->w[worker].slot[slot];
}

unsigned keeper_workers(const struct keeper *k)
{
    return k->conf.workers;
}

unsigned keeper_rank(const struct keeper *k, unsigned worker)
{
    return k->w[worker].rank;
}

uint64_t keeper_slot_bytes(const struct keeper *k, unsigned worker)
{
    return k->w[worker].kept ? k->w[worker].kept->slot_bytes : 0;
}

int keeper_newest(const struct keeper *k, unsigned worker)
{
    const struct keeper_slot *s = newest(&k->w[worker]);
    return s ? (int)(s - k->w[worker].slot) : -1;
}

uint64_t keeper_used_bytes(const struct keeper *k)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < k->conf.workers; i++)
        if (k->w[i].has_slots || k->w[i].allocating)
            sum += KEEPER_SLOTS * k->w[i].kept->slot_bytes;
    return sum;
}

uint64_t keeper_budget_bytes(const struct keeper *k)
{
    return k->conf.budget_bytes;
}

const char *keeper_state_name(enum keeper_slot_state state)
{
    switch (state) {
    case KEEPER_FREE: return "free";
    case KEEPER_WRITING: return "writing";
    case KEEPER_SUMMING: return "summing";
    case KEEPER_COMMITTED: return "committed";
    case KEEPER_BROKEN: return "broken";
    case KEEPER_LOADING: return "loading";
    case KEEPER_CAPTURING: return "capturing";
    }
    return "";
}

void keeper_check(const struct keeper *k)
{
    assert(k->conf.budget_bytes == 0 || keeper_used_bytes(k) <= k->conf.budget_bytes);
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct worker *w = &k->w[i];
        unsigned busy = 0;
        assert(!w->granted || (w->here && w->has_slots && w->kept));
        assert(!(w->has_slots && w->allocating));
        for (unsigned n = 0; n < KEEPER_SLOTS; n++) {
            const struct keeper_slot *s = &w->slot[n];
            busy += s->state == KEEPER_WRITING;
            assert(s->state == KEEPER_FREE || w->has_slots);
            assert(s->readers == 0 || s->state == KEEPER_COMMITTED || s->state == KEEPER_BROKEN);
        }
        assert(busy <= 1);
    }
}
