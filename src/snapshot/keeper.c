#include "snapshot/keeper_private.h"

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
    k->common = (struct pin_step){KEEPER_NO_STEP, -1, 0, 0};
    k->out.room = 2 * conf->workers + 5;
    k->w = el_alloc(mem, conf->workers * sizeof *k->w);
    k->pinned = el_alloc(mem, conf->workers * sizeof *k->pinned);
    k->reply = el_alloc(mem, k->out.room * sizeof *k->reply);
    k->out.v = el_alloc(mem, k->out.room * sizeof *k->out.v);
    if (!k->w || !k->pinned || !k->reply || !k->out.v) {
        keeper_free(k);
        return NULL;
    }
    for (unsigned i = 0; i < conf->workers; i++)
        keeper_forget_slots(k, &k->w[i]);
    keeper_begin_history(k, 0);
    return k;
}

void keeper_forget_slots(struct keeper *k, struct worker *w)
{
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        el_free(k->mem, w->slot[i].part_bytes);
        w->slot[i] = (struct keeper_slot){.step = KEEPER_NO_STEP, .era = -1, .gen = ++k->gen};
    }
    el_free(k->mem, w->images);
    el_free(k->mem, w->told);
    el_free(k->mem, w->kept);
    w->images = NULL;
    w->told = NULL;
    w->kept = NULL;
    w->has_slots = w->granted = w->opening = k->alike = false;
}

void keeper_free(struct keeper *k)
{
    for (unsigned i = 0; k->w && i < k->conf.workers; i++) {
        keeper_forget_slots(k, &k->w[i]);
        el_free(k->mem, k->w[i].named);
    }
    el_free(k->mem, k->w);
    el_free(k->mem, k->pinned);
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
    keeper_answer(k, w, WMSG_WELCOME, m->seq)->u.welcome = (struct wmsg_welcome){.proto = WMSG_PROTO,
                                                                                 .snapshots = k->conf.budget_bytes > 0,
                                                                                 .files = k->conf.files,
                                                                                 .waits = k->conf.waits,
                                                                                 .live = k->conf.live,
                                                                                 .check = k->conf.check,
                                                                                 .disk = k->conf.disk};
}

static void on_gone(struct keeper *k, struct worker *w)
{
    keeper_drop_writing(k, w);
    keeper_drop_offer(k, w, true);
    w->restoring = RESTORING_NOT;
    w->here = w->declared = w->granted = false;
    el_free(k->mem, w->named);
    w->named = NULL;
    w->refuse[0] = 0;
}

static void on_message(struct keeper *k, struct worker *w, const struct keeper_event *ev)
{
    const struct wmsg *m = ev->msg;
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
        keeper_on_begin(k, w, ev);
    else if (m->type == WMSG_RESERVE)
        keeper_on_reserve(k, w, m->u.reserve.bytes);
    else if (m->type == WMSG_SNAP_COMMIT)
        keeper_on_commit(k, w, m);
    else if (m->type == WMSG_SNAP_ABORT)
        keeper_drop_writing(k, w);
    else if (m->type == WMSG_RESTORE_QUERY)
        keeper_on_query(k, w, m);
    else if (m->type == WMSG_RESTORE_DONE)
        keeper_on_restored(k, w, m);
    else if (m->type == WMSG_AT_BOUNDARY)
        keeper_act(k, KEEPER_DO_BOUNDARY, w)->step = m->u.at_boundary.step;
    else if (m->type == WMSG_NOTE) {
        struct keeper_action *a = keeper_act(k, KEEPER_DO_NOTE, w);
        a->text = m->u.note.text;
        a->error = m->u.note.error;
    } else {
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
    case KEEPER_EV_MSG: on_message(k, w, ev); break;
    case KEEPER_EV_GONE: on_gone(k, w); break;
    case KEEPER_EV_ROUND:
        for (unsigned i = 0; i < k->conf.workers; i++) {
            on_gone(k, &k->w[i]);
            keeper_drop_captures(k, &k->w[i]);
            k->w[i].known = false;
        }
        k->round = ev->number;
        keeper_begin_history(k, ev->lineage);
        k->round_gen = k->gen;
        k->went = KEEPER_NO_STEP;
        k->choose_due = k->again = k->loading = false;
        k->rank_base = ev->rank_base;
        k->choosing = false;
        k->misfit[0] = 0;
        keeper_forget_differences(k);
        break;
    case KEEPER_EV_OPENED: keeper_on_opened(k, w, ev); break;
    case KEEPER_EV_GROWN: keeper_on_grown(k, w, ev); break;
    case KEEPER_EV_SHRUNK: keeper_on_shrunk(&w->slot[ev->slot], ev); break;
    case KEEPER_EV_SUMMED: keeper_on_summed(k, w, ev); break;
    case KEEPER_EV_COMPARED: keeper_on_compared(k, ev); break;
    case KEEPER_EV_CAPTURED: keeper_on_captured(k, w, ev); break;
    case KEEPER_EV_READ:
        if (w->slot[ev->slot].gen == ev->gen)
            keeper_give_back(&w->slot[ev->slot], ev->ok);
        break;
    case KEEPER_EV_CHOSEN: keeper_on_chosen(k, ev); break;
    case KEEPER_EV_LOADED: keeper_on_loaded(k, w, ev); break;
    case KEEPER_EV_COMMON: keeper_on_common(k, ev); break;
    case KEEPER_EV_USELESS: keeper_on_useless(k, ev); break;
    case KEEPER_EV_AGAIN: keeper_on_again(k); break;
    case KEEPER_EV_CONFIRMED: keeper_on_confirmed(k, ev); break;
    case KEEPER_EV_LATE: keeper_on_late(k, ev->text); break;
    }
    keeper_choose_if_due(k);
    keeper_look_passed(k);
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
    uint64_t most = 0;
    for (unsigned i = 0; i < KEEPER_SLOTS; i++) {
        uint64_t capacity = k->w[worker].slot[i].capacity;
        most = capacity > most ? capacity : most;
    }
    return most;
}

int keeper_newest(const struct keeper *k, unsigned worker)
{
    const struct keeper_slot *s = keeper_newest_slot(&k->w[worker]);
    return s ? (int)(s - k->w[worker].slot) : -1;
}

uint64_t keeper_used_bytes(const struct keeper *k)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < k->conf.workers; i++)
        sum += KEEPER_SLOTS * keeper_slot_bytes(k, i);
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
    case KEEPER_GROWING: return "growing";
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
    for (unsigned i = 0; i < k->conf.workers; i++) {
        const struct worker *w = &k->w[i];
        unsigned busy = 0;
        assert(!w->granted || (w->here && w->has_slots && w->kept));
        assert(!(w->has_slots && w->opening));
        for (unsigned n = 0; n < KEEPER_SLOTS; n++) {
            const struct keeper_slot *s = &w->slot[n];
            busy += s->state == KEEPER_WRITING || s->state == KEEPER_GROWING;
            assert(s->state == KEEPER_FREE || w->has_slots);
            assert(s->state == KEEPER_FREE || s->state == KEEPER_GROWING || s->state == KEEPER_LOADING ||
                   s->bytes <= s->capacity);
            assert(s->readers == 0 || s->state == KEEPER_COMMITTED || s->state == KEEPER_BROKEN);
        }
        assert(busy <= 1);
    }
}
