/* A planned change, as it reaches a node (src/coord/notice.c): which step the workers are in is asked and answered, the
 * last step of the round comes back, and once they stand behind it that is said. */
#include <stdio.h>

#include "member/member_private.h"

#define GOODBYE_MARGIN EL_SEC(1) /* for the order to stop to come */

static bool member_notice_is_present(const struct member *m, uint64_t number, uint64_t coord)
{
    return m->up && m->round.number == number && m->round.coord == coord;
}

static void member_notice_answer(struct member *m, struct member_actions *out)
{
    if (m->live.told && m->notice.boundary == MEMBER_NO_STEP)
        member_send(m, out, MSG_STEP_REPORT);
    if (m->at_boundary)
        member_send(m, out, MSG_AT_BOUNDARY);
}

void member_on_notice(struct member *m, const struct msg_notice *n, el_usec now, struct member_actions *out)
{
    if (!member_notice_is_present(m, n->number, n->coord))
        return;
    bool asked = !m->noticed || m->notice.ask != n->ask;
    if (!asked && m->notice.boundary == n->boundary) {
        member_notice_answer(m, out); /* on the last connection it may have been lost */
        return;
    }
    if (asked)
        m->live.told = m->at_boundary = false;
    m->noticed = true;
    m->notice = (struct member_notice){
        .why = (unsigned)n->why, .ask = n->ask, .boundary = n->boundary, .until = now + EL_MS(n->wait_ms)};
    snprintf(m->text, sizeof m->text, "%s", n->text);
    member_act(out, MEMBER_DO_NOTICE);
}

/* The order is to run, and not to stop anywhere: a coordinator that was started again knows nothing of the change. */
void member_unnotice(struct member *m, const struct msg_world *w, struct member_actions *out)
{
    if (!member_notice_is_present(m, w->number, w->coord))
        return;
    if (m->aware)
        member_send(m, out, MSG_SUBSCRIBED);
    if (!m->noticed)
        return;
    m->noticed = m->at_boundary = m->live.told = false;
    member_act(out, MEMBER_DO_UNNOTICE);
}

void member_notice_event(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    if (!m->attempt)
        return;
    if (ev->type == MEMBER_EV_SUBSCRIBED) {
        m->aware = true;
        member_send(m, out, MSG_SUBSCRIBED);
        return;
    }
    if (!m->noticed)
        return;
    if (ev->type == MEMBER_EV_AT_BOUNDARY) {
        m->at_boundary = true;
        member_send(m, out, MSG_AT_BOUNDARY);
        return;
    }
    m->live = (struct member_live){.told = true, .deaf = ev->deaf, .past = ev->past, .step = ev->step};
    member_send(m, out, MSG_STEP_REPORT);
}

void member_on_goodbye(struct member *m, const struct msg_leave_ack *g, el_usec now)
{
    m->leave_told = m->leaving;
    m->depart_at = g->wait_ms && m->attempt && !m->stopping ? now + EL_MS(g->wait_ms) + GOODBYE_MARGIN : now;
}
