/* A planned change at a step boundary: it is announced, every node that listens says which
 * step its workers are in and lets none of them begin another one, the last step of the round is one more than the
 * highest of these, and the round stops when all stand behind it, or when the time for that is over. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdio.h>

/* How far beyond the highest step the boundary lies, by how often it was set.  A worker that is beyond a boundary has
 * not waited for it; then there is more room, and in the end the deadline decides. */
static const int64_t ahead[] = {1, 2, 4};

/* Everybody is asked anew. */
static void notice_ask(struct rdzv *r, struct rdzv_actions *out)
{
    for (unsigned k = 0; k < r->size; k++) {
        if (r->seat[k].member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[r->seat[k].member];
        rdzv_tally(r, m, -1);
        m->lives = m->at_boundary = false;
        rdzv_tally(r, m, 1);
    }
    r->notice_ask++;
    r->boundary = RDZV_NO_STEP;
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}

bool rdzv_is_listened(const struct rdzv *r)
{
    return r->state == RDZV_RUNNING && r->aware && r->conf.set.boundary_wait_ms;
}

void rdzv_plan(struct rdzv *r, enum notice_why change, el_usec now, struct rdzv_actions *out, const char *why)
{
    if (r->state != RDZV_RUNNING || r->noticed)
        return;
    r->planned = true;
    if (!rdzv_is_listened(r)) {
        rdzv_stop(r, now, out, "%s", why);
        return;
    }
    r->noticed = true;
    r->notice_change = change;
    r->notice_ask = 0;
    r->notice_until = now + EL_MS(r->conf.set.boundary_wait_ms);
    snprintf(r->stop_text, sizeof r->stop_text, "%s", why);
    rdzv_say(r, out, NOTE_PLANNED, RDZV_NONE, "round %llu will stop at a step boundary: %s",
             (unsigned long long)r->number, why);
    notice_ask(r, out);
}

static uint64_t notice_left_ms(const struct rdzv *r, el_usec now)
{
    bool waits = r->state == RDZV_RUNNING && r->noticed && r->notice_until > now;
    return waits ? (r->notice_until - now) / EL_MS(1) : 0;
}

void rdzv_goodbye(const struct rdzv *r, unsigned member, el_usec now, struct msg *out)
{
    bool waits = r->member[member].phase == RDZV_BUSY;
    *out =
        (struct msg){.type = MSG_LEAVE_ACK, .u.leave_ack = {.text = "", .wait_ms = waits ? notice_left_ms(r, now) : 0}};
}

void rdzv_notice_order(const struct rdzv *r, el_usec now, struct msg *out)
{
    *out = (struct msg){.type = MSG_NOTICE};
    out->u.notice = (struct msg_notice){.number = r->number,
                                        .coord = r->coord,
                                        .text = r->stop_text,
                                        .wait_ms = notice_left_ms(r, now),
                                        .why = r->notice_change,
                                        .ask = r->notice_ask,
                                        .boundary = r->boundary};
}

static void notice_change(struct rdzv *r, struct rdzv_member *m, bool *flag, bool to)
{
    rdzv_tally(r, m, -1);
    *flag = to;
    rdzv_tally(r, m, 1);
}

/* m is in the present round, and said so. */
void rdzv_notice_message(struct rdzv *r, struct rdzv_member *m, const struct msg *msg, struct rdzv_actions *out)
{
    if (msg->type == MSG_SUBSCRIBED) {
        notice_change(r, m, &m->aware, true);
        return;
    }
    if (!r->noticed)
        return;
    if (msg->type == MSG_AT_BOUNDARY) {
        if (msg->u.at_boundary.ask == r->notice_ask)
            notice_change(r, m, &m->at_boundary, true);
        return;
    }
    const struct msg_step_report *l = &msg->u.step_report;
    if (l->ask != r->notice_ask)
        return;
    if (l->past) {
        if (r->boundary != RDZV_NO_STEP && r->notice_ask < sizeof ahead / sizeof ahead[0])
            notice_ask(r, out);
        return;
    }
    if (l->deaf) {
        notice_change(r, m, &m->aware, false);
        return;
    }
    m->live_step = l->step;
    notice_change(r, m, &m->lives, true);
}

/* Its workers were the first to stand at the boundary, and ended: the others are waited for. */
bool rdzv_notice_stopped(const struct rdzv *r, const struct rdzv_member *m, bool fenced)
{
    return r->noticed && m->at_boundary && !fenced;
}

/* After each step of a round that runs. */
void rdzv_notice_advance(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    if (!r->noticed)
        return;
    if (r->at_boundary == r->aware) {
        r->notice_until = now; /* nobody is waited for */
        return;
    }
    if (r->boundary != RDZV_NO_STEP || r->lives < r->aware)
        return;
    int64_t last = RDZV_NO_STEP;
    for (unsigned k = 0; k < r->size; k++) {
        const struct rdzv_member *m = r->seat[k].member == RDZV_NONE ? NULL : &r->member[r->seat[k].member];
        if (m && m->lives && m->live_step > last)
            last = m->live_step;
    }
    assert(r->notice_ask >= 1 && r->notice_ask <= sizeof ahead / sizeof ahead[0]);
    int64_t more = ahead[r->notice_ask - 1];
    r->boundary = last > MSG_STEP_MAX - more ? MSG_STEP_MAX : last + more;
    rdzv_act(out, RDZV_DO_ORDER_EACH);
}
