#include "snapshot/slot_table_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"

struct slot_table *slot_table_new(const struct slot_table_conf *conf, struct el_mem *mem)
{
    assert(conf->workers > 0 && conf->workers <= SLOT_TABLE_WORKERS_MAX);
    struct slot_table *k = el_alloc(mem, sizeof *k);
    if (!k)
        return NULL;
    k->conf = *conf;
    k->mem = mem;
    k->chosen = k->reached = k->went = SLOT_TABLE_NO_STEP;
    k->common = (struct slot_pin_step){SLOT_TABLE_NO_STEP, -1, 0, 0};
    k->out.room = 2 * conf->workers + 5;
    k->w = el_alloc(mem, conf->workers * sizeof *k->w);
    k->pinned = el_alloc(mem, conf->workers * sizeof *k->pinned);
    k->reply = el_alloc(mem, k->out.room * sizeof *k->reply);
    k->out.v = el_alloc(mem, k->out.room * sizeof *k->out.v);
    if (!k->w || !k->pinned || !k->reply || !k->out.v) {
        slot_table_free(k);
        return NULL;
    }
    for (unsigned i = 0; i < conf->workers; i++)
        slot_table_forget_slots(k, &k->w[i]);
    slot_table_begin_history(k, 0);
    return k;
}

void slot_table_forget_slots(struct slot_table *k, struct slot_table_worker *w)
{
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        el_free(k->mem, w->slot[i].part_bytes);
        w->slot[i] = (struct slot_table_slot){.step = SLOT_TABLE_NO_STEP, .era = -1, .gen = ++k->gen};
    }
    el_free(k->mem, w->images);
    el_free(k->mem, w->told);
    el_free(k->mem, w->kept);
    w->images = NULL;
    w->told = NULL;
    w->kept = NULL;
    w->has_slots = w->granted = w->opening = k->alike = false;
}

void slot_table_free(struct slot_table *k)
{
    for (unsigned i = 0; k->w && i < k->conf.workers; i++) {
        slot_table_forget_slots(k, &k->w[i]);
        el_free(k->mem, k->w[i].named);
    }
    el_free(k->mem, k->w);
    el_free(k->mem, k->pinned);
    el_free(k->mem, k->reply);
    el_free(k->mem, k->out.v);
    el_free(k->mem, k);
}

/* --- out --- */

struct slot_table_action *slot_table_act(struct slot_table *k, enum slot_table_action_type type,
                                         const struct slot_table_worker *w)
{
    assert(k->out.n < k->out.room);
    struct slot_table_action *a = &k->out.v[k->out.n++];
    *a = (struct slot_table_action){.type = type, .worker = (unsigned)(w - k->w)};
    return a;
}

struct worker_msg *slot_table_answer(struct slot_table *k, struct slot_table_worker *w, enum worker_msg_type type,
                                     uint32_t seq)
{
    struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_SEND, w);
    a->reply = k->replies++;
    struct worker_msg *m = &k->reply[a->reply];
    memset(m, 0, sizeof *m);
    m->type = type;
    m->seq = seq;
    return m;
}

void slot_table_refuse(struct slot_table *k, struct slot_table_worker *w, uint32_t seq, const char *code,
                       const char *text)
{
    struct worker_msg *m = slot_table_answer(k, w, WORKER_MSG_REFUSED, seq);
    m->u.refused = (struct wmsg_refused){.code = code, .text = text};
}

const struct worker_msg *slot_table_reply(const struct slot_table *k, unsigned reply)
{
    assert(reply < k->replies);
    return &k->reply[reply];
}

/* --- coming and going --- */

static void on_hello(struct slot_table *k, struct slot_table_worker *w, const struct worker_msg *m)
{
    const struct wmsg_hello *h = &m->u.hello;
    unsigned local_rank = (unsigned)(w - k->w), rank = k->rank_base + local_rank;
    if (h->proto != WORKER_MSG_PROTO || h->local_rank != local_rank || h->rank != rank || h->round != k->round) {
        snprintf(k->text, sizeof k->text,
                 "HELLO with protocol %llu, rank %llu, local rank %llu, round %llu; here it is %d, %u, %u, %llu",
                 (unsigned long long)h->proto, (unsigned long long)h->rank, (unsigned long long)h->local_rank,
                 (unsigned long long)h->round, WORKER_MSG_PROTO, rank, local_rank, (unsigned long long)k->round);
        slot_table_refuse(k, w, m->seq,
                          h->proto != WORKER_MSG_PROTO ? "PROTO"
                          : h->round != k->round       ? "ROUND"
                                                       : "RANK",
                          k->text);
        slot_table_act(k, SLOT_TABLE_DO_CLOSE, w);
        return;
    }
    w->here = true;
    w->rank = (unsigned)h->rank;
    slot_table_answer(k, w, WORKER_MSG_WELCOME, m->seq)->u.welcome =
        (struct wmsg_welcome){.proto = WORKER_MSG_PROTO,
                              .snapshots = k->conf.budget_bytes > 0,
                              .files = k->conf.files,
                              .waits = k->conf.waits,
                              .live = k->conf.live,
                              .check = k->conf.check,
                              .disk = k->conf.disk};
}

static void slot_table_on_gone(struct slot_table *k, struct slot_table_worker *w)
{
    slot_table_drop_writing(k, w);
    slot_table_drop_offer(k, w, true);
    w->restoring = RESTORING_NOT;
    w->here = w->declared = w->granted = false;
    el_free(k->mem, w->named);
    w->named = NULL;
    w->refuse[0] = 0;
}

static void slot_table_on_message(struct slot_table *k, struct slot_table_worker *w, const struct slot_table_event *ev)
{
    const struct worker_msg *m = ev->msg;
    if (m->type == WORKER_MSG_HELLO) {
        if (!w->here) {
            on_hello(k, w, m);
            return;
        }
        slot_table_refuse(k, w, m->seq, "STATE", "HELLO was said already");
        return;
    }
    if (!w->here) {
        slot_table_refuse(k, w, m->seq, "STATE", "the first word is HELLO");
        slot_table_act(k, SLOT_TABLE_DO_CLOSE, w);
        return;
    }
    if (m->type == WORKER_MSG_PART)
        slot_table_on_part(k, w, m);
    else if (m->type == WORKER_MSG_DECLARE)
        slot_table_on_declare(k, w, m);
    else if (m->type == WORKER_MSG_SNAP_BEGIN)
        slot_table_on_begin(k, w, ev);
    else if (m->type == WORKER_MSG_RESERVE)
        slot_table_on_reserve(k, w, m->u.reserve.bytes);
    else if (m->type == WORKER_MSG_SNAP_COMMIT)
        slot_table_on_commit(k, w, m);
    else if (m->type == WORKER_MSG_SNAP_ABORT)
        slot_table_drop_writing(k, w);
    else if (m->type == WORKER_MSG_RESTORE_QUERY)
        slot_table_on_query(k, w, m);
    else if (m->type == WORKER_MSG_RESTORE_DONE)
        slot_table_on_restored(k, w, m);
    else if (m->type == WORKER_MSG_AT_BOUNDARY)
        slot_table_act(k, SLOT_TABLE_DO_BOUNDARY, w)->step = m->u.at_boundary.step;
    else if (m->type == WORKER_MSG_NOTE) {
        struct slot_table_action *a = slot_table_act(k, SLOT_TABLE_DO_NOTE, w);
        a->text = m->u.note.text;
        a->error = m->u.note.error;
    } else {
        slot_table_refuse(k, w, m->seq, "STATE", "that is an agent's word, not a worker's");
        slot_table_act(k, SLOT_TABLE_DO_CLOSE, w);
        slot_table_on_gone(k, w); /* it may come again */
    }
}

const struct slot_table_actions *slot_table_step(struct slot_table *k, const struct slot_table_event *ev)
{
    struct slot_table_worker *w = &k->w[ev->worker];
    k->out.n = k->replies = 0;
    switch (ev->type) {
    case SLOT_TABLE_EV_MSG: slot_table_on_message(k, w, ev); break;
    case SLOT_TABLE_EV_GONE: slot_table_on_gone(k, w); break;
    case SLOT_TABLE_EV_ROUND:
        for (unsigned i = 0; i < k->conf.workers; i++) {
            slot_table_on_gone(k, &k->w[i]);
            slot_table_drop_captures(k, &k->w[i]);
            k->w[i].known = false;
        }
        k->round = ev->number;
        slot_table_begin_history(k, ev->lineage);
        k->round_gen = k->gen;
        k->went = SLOT_TABLE_NO_STEP;
        k->choose_due = k->again = k->loading = false;
        k->rank_base = ev->rank_base;
        k->choosing = false;
        k->misfit[0] = 0;
        slot_table_forget_differences(k);
        break;
    case SLOT_TABLE_EV_OPENED: slot_table_on_opened(k, w, ev); break;
    case SLOT_TABLE_EV_GROWN: slot_table_on_grown(k, w, ev); break;
    case SLOT_TABLE_EV_SHRUNK: slot_table_on_shrunk(&w->slot[ev->slot], ev); break;
    case SLOT_TABLE_EV_SUMMED: slot_table_on_summed(k, w, ev); break;
    case SLOT_TABLE_EV_COMPARED: slot_table_on_compared(k, ev); break;
    case SLOT_TABLE_EV_CAPTURED: slot_table_on_captured(k, w, ev); break;
    case SLOT_TABLE_EV_READ:
        if (w->slot[ev->slot].gen == ev->gen)
            slot_table_give_back(&w->slot[ev->slot], ev->ok);
        break;
    case SLOT_TABLE_EV_CHOSEN: slot_table_on_chosen(k, ev); break;
    case SLOT_TABLE_EV_LOADED: slot_table_on_loaded(k, w, ev); break;
    case SLOT_TABLE_EV_COMMON: slot_table_on_common(k, ev); break;
    case SLOT_TABLE_EV_USELESS: slot_table_on_useless(k, ev); break;
    case SLOT_TABLE_EV_AGAIN: slot_table_on_again(k); break;
    case SLOT_TABLE_EV_CONFIRMED: slot_table_on_confirmed(k, ev); break;
    case SLOT_TABLE_EV_LATE: slot_table_on_late(k, ev->text); break;
    }
    slot_table_choose_if_due(k);
    slot_table_look_passed(k);
    return &k->out;
}

/* --- what is held --- */

unsigned slot_table_parts(const struct slot_table *k, unsigned worker)
{
    return k->w[worker].kept ? k->w[worker].kept->parts : 0;
}

const struct slot_table_part *slot_table_part(const struct slot_table *k, unsigned worker, unsigned part)
{
    assert(part < slot_table_parts(k, worker));
    return &k->w[worker].kept->part[part];
}

const struct slot_table_slot *slot_table_slot(const struct slot_table *k, unsigned worker, unsigned slot)
{
    return &k->w[worker].slot[slot];
}

unsigned slot_table_workers(const struct slot_table *k)
{
    return k->conf.workers;
}

unsigned slot_table_rank(const struct slot_table *k, unsigned worker)
{
    return k->w[worker].rank;
}

uint64_t slot_table_slot_bytes(const struct slot_table *k, unsigned worker)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < SLOT_TABLE_SLOTS; i++) {
        uint64_t capacity = k->w[worker].slot[i].capacity;
        most = capacity > most ? capacity : most;
    }
    return most;
}

int slot_table_newest(const struct slot_table *k, unsigned worker)
{
    const struct slot_table_slot *s = slot_table_newest_slot(&k->w[worker]);
    return s ? (int)(s - k->w[worker].slot) : -1;
}

uint64_t slot_table_used_bytes(const struct slot_table *k)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < k->conf.workers; i++)
        sum += SLOT_TABLE_SLOTS * slot_table_slot_bytes(k, i);
    return sum;
}

uint64_t slot_table_budget_bytes(const struct slot_table *k)
{
    return k->conf.budget_bytes;
}

const char *slot_table_state_name(enum slot_table_slot_state state)
{
    switch (state) {
    case SLOT_TABLE_FREE: return "free";
    case SLOT_TABLE_GROWING: return "growing";
    case SLOT_TABLE_WRITING: return "writing";
    case SLOT_TABLE_SUMMING: return "summing";
    case SLOT_TABLE_COMMITTED: return "committed";
    case SLOT_TABLE_BROKEN: return "broken";
    case SLOT_TABLE_LOADING: return "loading";
    case SLOT_TABLE_CAPTURING: return "capturing";
    }
    return "";
}

void slot_table_check(const struct slot_table *k)
{
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct slot_table_worker *w = &k->w[i];
        unsigned busy = 0;
        assert(!w->granted || (w->here && w->has_slots && w->kept));
        assert(!(w->has_slots && w->opening));
        for (unsigned n = 0; n < SLOT_TABLE_SLOTS; n++) {
            const struct slot_table_slot *s = &w->slot[n];
            busy += s->state == SLOT_TABLE_WRITING || s->state == SLOT_TABLE_GROWING;
            assert(s->state == SLOT_TABLE_FREE || w->has_slots);
            assert(s->state == SLOT_TABLE_FREE || s->state == SLOT_TABLE_GROWING || s->state == SLOT_TABLE_LOADING ||
                   s->bytes <= s->capacity);
            assert(s->readers == 0 || s->state == SLOT_TABLE_COMMITTED || s->state == SLOT_TABLE_BROKEN);
        }
        assert(busy <= 1);
    }
}
