/* The fence: what silence of the coordinator means, and when the workers here must be dead.
 *
 * The coordinator counts us as lost when it has heard nothing for the limit.  So our workers may live on for the limit
 * after the last thing it answered.  If it is dead, which its host tells us by refusing, the next one listens for the
 * limit first: a refusal counts like an answer then.  If it stands still, it reads what its host has got of us before
 * it judges: what that host acknowledged counts like an answer, too.  But a refusal may come from a firewall, and an
 * acknowledgement from a proxy that passes nothing on.  Only another node of the round can tell: it says that it is
 * refused as well (MSG_VIEW_REFUSED), or that the coordinator takes what it sends and does not answer it either
 * (MSG_VIEW_STILL), and ours count for so long.  Nodes that hear nothing at all prove nothing: the way may be cut, for
 * several together as for one.
 *
 * A node of the round may know that the coordinator has stopped it when we cannot be told: then nothing is worth the
 * wait, except for an emergency checkpoint that is being copied, which has until the limit. */
#include <assert.h>

#include "member/member_private.h"

enum { SIG_KILL = 9 };

el_usec member_interval(const struct member *m)
{
    return EL_MS(m->conf.set.keep_alive_ms);
}

static el_usec quarters(const struct member *m, unsigned n)
{
    return n * member_interval(m) / 4;
}

void member_heard(el_usec *at, el_usec when)
{
    *at = when > *at ? when : *at;
}

/* Nobody else has ranks to lose, or can be asked, without workers and in a round of one. */
static bool wants_proof(const struct member *m)
{
    return (m->attempt || m->entering) && m->world.group_size > 1;
}

static el_usec proved(const struct member *m, el_usec own, el_usec theirs)
{
    return wants_proof(m) && theirs < own ? theirs : own;
}

el_usec member_last_heard(const struct member *m)
{
    el_usec last = m->coord_heard;
    member_heard(&last, proved(m, m->delivered, m->still));
    member_heard(&last, proved(m, m->refused, m->refused_too));
    return last;
}

/* With the coordinator in it, the store's host stands still together with that. */
el_usec member_lease_last_heard(const struct member *m)
{
    return m->lease_here && m->lease_delivered > m->lease_heard ? m->lease_delivered : m->lease_heard;
}

void member_fence_reset(struct member *m)
{
    m->still = m->refused_too = m->others_hear = m->lease_delivered = m->lease_echo = 0;
    m->lease_here = false;
}

/* --- our own link --- */

void member_fence_asked(struct member *m, el_usec now)
{
    m->asked = m->asked < now ? m->asked : now;
    m->asked_last = now;
}

void member_fence_answered(struct member *m, el_usec asked)
{
    if (asked < m->asked)
        return; /* an older one */
    m->asked = asked < m->asked_last ? m->asked_last : EL_NEVER;
    m->taken_since = EL_NEVER;
}

void member_fence_unlinked(struct member *m)
{
    m->asked = m->taken_since = EL_NEVER;
}

static void on_delivered(struct member *m, el_usec at, el_usec now)
{
    if (m->link != MEMBER_LINK_UP || at > now)
        return;                                             /* before it has answered nobody may ever read it */
    bool gap = m->delivered + 2 * member_interval(m) < now; /* if it has answered meanwhile we could not know */
    member_heard(&m->delivered, at);
    if (at >= m->asked && (m->taken_since == EL_NEVER || gap))
        m->taken_since = now;
}

/* It has got a HEARTBEAT and did not answer it, for so long that it will hold its verdicts for the limit when it wakes
 * (half an interval, see note_gap() of rdzv.c); and its host was there a moment ago. */
static bool stands_still(const struct member *m, el_usec now)
{
    return m->link == MEMBER_LINK_UP && m->taken_since != EL_NEVER && m->taken_since + quarters(m, 3) <= now &&
           m->delivered + quarters(m, 5) > now;
}

enum msg_view member_view(const struct member *m, el_usec now)
{
    if (m->conf.hosts_coordinator)
        return MSG_VIEW_HERE;
    if (m->others_hear > now)
        return MSG_VIEW_HEARD;
    if (stands_still(m, now))
        return MSG_VIEW_STILL;
    if (m->link < MEMBER_LINK_HELLO && m->refused && m->refused + quarters(m, 5) > now)
        return MSG_VIEW_REFUSED;
    return m->link == MEMBER_LINK_UP && m->coord_heard + quarters(m, 6) > now ? MSG_VIEW_HEARD : MSG_VIEW_NONE;
}

/* --- what other nodes say --- */

/* The sender's view is of a moment after `when`, what it rests on is so much older at most. */
static void member_fence_saw(struct member *m, enum msg_view view, el_usec when)
{
    if (when <= quarters(m, 5))
        return;
    if (view == MSG_VIEW_STILL)
        member_heard(&m->still, when - quarters(m, 5));
    if (view == MSG_VIEW_REFUSED)
        member_heard(&m->refused_too, when - quarters(m, 5));
}

static void on_lease_reply(struct member *m, const struct msg_heartbeat *beat)
{
    member_heard(&m->lease_heard, beat->time);
    member_heard(&m->lease_echo, beat->own);
    m->lease_here = beat->view == MSG_VIEW_HERE;
    member_fence_saw(m, beat->view, beat->time);
}

/* Host of the store: each of the others is heard; if one hears the coordinator, it is alive. */
static void on_tenant(struct member *m, const struct msg_heartbeat *beat, el_usec now)
{
    if (beat->view == MSG_VIEW_HEARD || beat->view == MSG_VIEW_HERE)
        m->others_hear = now + quarters(m, 6);
    if (m->others_hear <= now && beat->own <= now)
        member_fence_saw(m, beat->view, beat->own);
}

/* The process of the store's host took several heartbeats and answered none: what is in it stands still, the
 * coordinator too. */
static void on_lease_delivered(struct member *m, el_usec at, el_usec now)
{
    if (m->lease != MEMBER_LEASE_UP || at > now)
        return;
    member_heard(&m->lease_delivered, at);
    if (m->lease_here && m->lease_delivered >= m->lease_heard + quarters(m, 3))
        member_heard(&m->still, m->lease_delivered);
}

void member_fence_event(struct member *m, const struct member_event *ev, el_usec now)
{
    if (ev->type == MEMBER_EV_DELIVERED)
        on_delivered(m, ev->at, now);
    else if (ev->type == MEMBER_EV_LEASE_DELIVERED)
        on_lease_delivered(m, ev->at, now);
    else if (ev->type == MEMBER_EV_LEASE_MSG && ev->msg->type == MSG_HEARTBEAT_ACK)
        on_lease_reply(m, &ev->msg->u.heartbeat);
    else if (ev->type == MEMBER_EV_TENANT && ev->msg->type == MSG_HEARTBEAT)
        on_tenant(m, &ev->msg->u.heartbeat, now);
}

/* More often as soon as the coordinator is late: the others' word must be here before the limit. */
el_usec member_lease_beat_at(const struct member *m)
{
    if (m->lease_asked == EL_NEVER)
        return EL_NEVER;
    el_usec next = m->lease_asked + member_interval(m);
    if (m->link != MEMBER_LINK_UP)
        return m->lease_asked + quarters(m, 1);
    if (m->asked == EL_NEVER)
        return next;
    el_usec late = m->asked > m->lease_asked ? m->asked : m->lease_asked;
    return late + quarters(m, 1) < next ? late + quarters(m, 1) : next;
}

/* --- the fence --- */

el_usec member_fence_at(const struct member *m)
{
    if (!m->attempt || m->fenced || m->conf.hosts_coordinator)
        return EL_NEVER;
    if (m->over_told && m->link != MEMBER_LINK_UP && !member_words_last(m))
        return 0;
    return member_last_heard(m) + member_silence_limit(m);
}

/* This node is cut off, or was replaced: no rank may have two live holders, so its workers die at once. */
void member_fence(struct member *m, el_usec now, struct member_actions *out)
{
    if (member_fence_at(m) > now)
        return;
    m->fenced = true;
    member_stop_attempt(m, SIG_KILL, 0, out);
    member_act(out, MEMBER_DO_SAY_FENCED);
}
