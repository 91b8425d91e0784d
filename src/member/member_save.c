/* Saving a step (coord/ckpt_commit.h) as this node takes part in it: what it holds and how far it is with an order is
 * state, and said again on each connection. */
#include <stdio.h>
#include <string.h>

#include "member/member_private.h"

static void member_save_report(struct member *m, struct member_actions *out)
{
    if (m->save.held)
        member_send(m, out, MSG_CKPT_STATE);
}

/* A new connection: the other side may know nothing. */
void member_save_tell(struct member *m, struct member_actions *out)
{
    if (!m->save.held)
        return;
    member_act(out, MEMBER_DO_PARTS);
    if (m->save.at == CKPT_COMMIT_AT_WRITTEN)
        member_act(out, MEMBER_DO_FILES);
    member_save_report(m, out);
}

/* Its workers are gone: it may have to stay until what they left is on disk. */
void member_save_closed(struct member *m, el_usec now)
{
    if (m->save.held)
        m->save.free_at = now + EL_MS(m->conf.set.emergency_ms) + MEMBER_SAVE_MARGIN;
}

void member_save_free(struct member *m)
{
    m->save.free_at = 0;
}

bool member_save_waits(const struct member *m, el_usec now)
{
    return m->save.free_at > now && m->link == MEMBER_LINK_UP && m->leaves < 2;
}

static void member_save_rest(struct member *m, struct member_actions *out)
{
    struct member_save *x = &m->save;
    x->at = CKPT_COMMIT_AT_REST;
    x->giver = x->order = x->got = x->moved = 0;
    x->over = false;
    member_act(out, MEMBER_DO_UNSAVE);
    member_save_report(m, out);
}

static void member_save_on_saved(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    struct member_save *x = &m->save;
    bool wrote = x->at == CKPT_COMMIT_AT_WRITING;
    if (!wrote && x->at != CKPT_COMMIT_AT_PUBLISHING)
        return;
    x->at = !ev->ok ? CKPT_COMMIT_AT_FAILED : wrote ? CKPT_COMMIT_AT_WRITTEN : CKPT_COMMIT_AT_PUBLISHED;
    x->existed = ev->existed;
    snprintf(x->text, sizeof x->text, "%s", ev->text ? ev->text : "");
    if (x->over) {
        member_save_rest(m, out);
        return;
    }
    if (x->at == CKPT_COMMIT_AT_WRITTEN && m->link >= MEMBER_LINK_HELLO)
        member_act(out, MEMBER_DO_FILES);
    member_save_report(m, out);
}

void member_save_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    struct member_save *x = &m->save;
    if (ev->type == MEMBER_EV_HELD) {
        bool other = !x->held || x->list != ev->held->list;
        x->held = ev->held;
        x->list = ev->held->list;
        if (other && m->link >= MEMBER_LINK_HELLO)
            member_act(out, MEMBER_DO_PARTS);
        member_save_report(m, out);
    } else if (ev->type == MEMBER_EV_MOVED) {
        x->moved = ev->at;
        if (x->at == CKPT_COMMIT_AT_WRITING)
            member_save_report(m, out);
    } else {
        member_save_on_saved(m, ev, out);
    }
}

static void member_save_on_write(struct member *m, const struct msg_ckpt_write *w, struct member_actions *out)
{
    struct member_save *x = &m->save;
    if (x->order || !x->held)
        return; /* it hears what we are at */
    x->giver = w->giver;
    x->order = w->order;
    x->at = CKPT_COMMIT_AT_WRITING;
    x->step = w->step;
    x->got = x->moved = 0;
    x->existed = x->over = false;
    x->text[0] = 0;
    member_act(out, MEMBER_DO_WRITE);
    member_save_report(m, out);
}

static bool is_ours(const struct member_save *x, uint64_t giver, uint64_t order)
{
    return order && x->giver == giver && x->order == order;
}

static void member_save_on_file(struct member *m, const struct msg_ckpt_file *f, struct member_actions *out)
{
    struct member_save *x = &m->save;
    if (!is_ours(x, f->giver, f->order) || x->at != CKPT_COMMIT_AT_WRITTEN || f->index != x->got)
        return;
    x->got++;
    member_act(out, MEMBER_DO_FILE);
    if (!f->more)
        member_save_report(m, out);
}

static void member_save_on_publish(struct member *m, const struct msg_ckpt_publish *p, struct member_actions *out)
{
    struct member_save *x = &m->save;
    if (!is_ours(x, p->giver, p->order) || x->at != CKPT_COMMIT_AT_WRITTEN || p->files != x->got)
        return;
    x->at = CKPT_COMMIT_AT_PUBLISHING;
    member_act(out, MEMBER_DO_PUBLISH);
    member_save_report(m, out);
}

static void on_over(struct member *m, const struct msg_ckpt_over *o, struct member_actions *out)
{
    struct member_save *x = &m->save;
    if (o->order && (!is_ours(x, o->giver, o->order) || x->over))
        return;
    x->over_step = o->step;
    x->over_lineage = o->lineage;
    x->over_good = o->good;
    x->over_ask = o->ask;
    x->over_bytes = o->bytes;
    x->over_ms = o->took_ms;
    x->over_existed = o->existed;
    x->over_emergency = o->emergency;
    x->over_ours = o->order != 0;
    x->over_unknown = o->order && o->step == MEMBER_NO_STEP;
    snprintf(x->over_text, sizeof x->over_text, "%s", o->text);
    if (o->order)
        x->over_step = o->step == MEMBER_NO_STEP ? x->step : o->step;
    x->done = o->good && x->over_step > x->done ? x->over_step : x->done;
    member_act(out, MEMBER_DO_SAVED);
    if (!o->order)
        return;
    x->over = x->at == CKPT_COMMIT_AT_WRITING || x->at == CKPT_COMMIT_AT_PUBLISHING;
    if (x->at == CKPT_COMMIT_AT_WRITING)
        member_act(out, MEMBER_DO_UNSAVE);
    if (!x->over)
        member_save_rest(m, out);
}

void member_save_order(struct member *m, const struct msg *msg, struct member_actions *out)
{
    switch ((unsigned)msg->type) {
    case MSG_CKPT_WRITE: member_save_on_write(m, &msg->u.ckpt_write, out); break;
    case MSG_CKPT_FILE: member_save_on_file(m, &msg->u.ckpt_file, out); break;
    case MSG_CKPT_PUBLISH: member_save_on_publish(m, &msg->u.ckpt_publish, out); break;
    case MSG_CKPT_OVER: on_over(m, &msg->u.ckpt_over, out); break;
    default: break;
    }
}

/* All ranks go back to this step: what is beyond it is of a history that was given up. */
void member_save_went_back(struct member *m, int64_t step)
{
    m->save.done = m->save.done > step ? MEMBER_NO_STEP : m->save.done;
}

void member_save_message(const struct member *m, struct msg_ckpt_state *out)
{
    const struct member_save *x = &m->save;
    const struct member_held *h = x->held;
    *out = (struct msg_ckpt_state){.number = h->number,
                                   .coord = h->coord,
                                   .list = h->list,
                                   .parts = h->parts,
                                   .layout = h->layout,
                                   .steps = h->steps,
                                   .least = h->least,
                                   .wishes = h->wishes,
                                   .ask = h->ask,
                                   .done = x->done,
                                   .quiet = h->quiet,
                                   .giver = x->giver,
                                   .order = x->order,
                                   .at = x->at,
                                   .moved = x->moved,
                                   .got = x->got,
                                   .existed = x->existed,
                                   .text = x->text};
}
