/* The link to the coordinator, and the lease at the host of the round's store. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "member/member_private.h"

el_usec member_silence_limit(const struct member *m)
{
    return EL_MS(m->conf.set.keep_alive_ms) * m->conf.set.keep_alive_attempts;
}

/* Doubles, and half of it is chance: thousands of agents must not come back in step.  With workers no longer than from
 * one heartbeat to the next: a coordinator that was restarted waits for the limit of silence, and gives our place away.
 */
static el_usec next_try(struct member *m, el_usec *backoff, el_usec now)
{
    *backoff = *backoff ? 2 * *backoff : MEMBER_BACKOFF_MIN;
    el_usec max = m->attempt && member_interval(m) < MEMBER_BACKOFF_MAX ? member_interval(m) : MEMBER_BACKOFF_MAX;
    *backoff = *backoff < max ? *backoff : max;
    return now + *backoff / 2 + el_rng_below(&m->rng, *backoff / 2 + 1);
}

/* --- link --- */

void member_link_lost(struct member *m, const char *why, bool refused, el_usec now)
{
    if (refused) /* a dead coordinator, not a cut cable: if it is its host that says so */
        member_heard(&m->refused, m->tried_at);
    if (why)
        snprintf(m->trouble, sizeof m->trouble, "%s", why);
    if (m->away_since == EL_NEVER)
        m->away_since = now;
    m->link = MEMBER_LINK_DOWN;
    member_fence_unlinked(m);
    m->refused_status = 0;
    m->parked = false;
    m->try_until = m->hello_until = m->beat_at = EL_NEVER;
    m->connect_at = next_try(m, &m->backoff, now);
    if (m->leaving)
        m->leave_told = true;
}

void member_link_drop(struct member *m, const char *why, el_usec now, struct member_actions *out)
{
    m->latest = false;
    member_act(out, MEMBER_DO_DISCONNECT);
    member_link_lost(m, why, false, now);
}

static void connect_now(struct member *m, el_usec now, struct member_actions *out)
{
    m->link = MEMBER_LINK_TRYING;
    m->connect_at = EL_NEVER;
    m->tried_at = now;
    /* With workers, a coordinator that was restarted must hear of us soon: no long wait for one lost SYN. */
    m->try_until =
        now + (m->attempt && member_interval(m) < MEMBER_CONNECT_LIMIT ? member_interval(m) : MEMBER_CONNECT_LIMIT);
    member_act(out, MEMBER_DO_CONNECT);
}

static void on_connected(struct member *m, el_usec now, struct member_actions *out)
{
    if (m->link != MEMBER_LINK_TRYING)
        return;
    m->link = MEMBER_LINK_HELLO;
    m->try_until = EL_NEVER;
    m->tried_at = now;
    m->hello_until = now + MEMBER_HELLO_LIMIT;
    m->beat_at = now + member_interval(m);
    m->connection++;
    member_send(m, out, MSG_HELLO);
    if (m->incident_open)
        member_send(m, out, MSG_WORKER_FAILED);
    if (m->end_due) {
        m->stopped = m->round;
        member_tell_end(m, out);
        member_send(m, out, MSG_STOPPED);
    }
    if (m->leaving || m->ended)
        member_send(m, out, MSG_LEAVING);
    member_restore_tell(m, out);
    member_save_tell(m, out);
    member_words_tell(m, out);
    member_common_tell(m, out);
}

/* Who is heard, and ends a round or forms another one, tells this node on the same connection. */
static bool is_latest(const struct member *m, el_usec now)
{
    return m->link == MEMBER_LINK_UP && now - m->coord_heard < member_silence_limit(m) && !m->fenced && !m->succeeded &&
           !m->parked && !m->probing && !m->leaving && m->seen == m->round.number;
}

void member_link_event(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    if (ev->type == MEMBER_EV_CONNECTED)
        on_connected(m, now, out);
    else if (m->link != MEMBER_LINK_DOWN) {
        if (m->link >= MEMBER_LINK_HELLO) /* else nobody was there */
            m->latest = is_latest(m, now);
        member_link_lost(m, ev->text, ev->refused, now);
    }
}

/* An order came: the other side is a coordinator, and it knows us. */
void member_link_answered(struct member *m, el_usec now)
{
    if (m->link != MEMBER_LINK_HELLO)
        return;
    m->link = MEMBER_LINK_UP;
    m->burst = MEMBER_BURST; /* not all of a large job at once */
    m->beat_at = now + m->conf.instance % (member_interval(m) / 16 + 1);
    m->ever = true;
    m->backoff = 0;
    m->away_since = EL_NEVER;
    m->hello_until = EL_NEVER;
    member_heard(&m->coord_heard, m->tried_at);
}

static el_usec clock_error(const struct member *m, el_usec now)
{
    if (m->clock_at == EL_NEVER)
        return MSG_CLOCK_UNKNOWN;
    return m->clock_error + (now - m->clock_at) / (1000000 / MEMBER_DRIFT_PPM);
}

void member_beat_reply(struct member *m, const struct msg_heartbeat *beat, el_usec now)
{
    if (beat->time > now)
        return; /* not ours */
    member_heard(&m->coord_heard, beat->time);
    member_fence_answered(m, beat->time);
    el_usec rtt = now - beat->time, error = rtt / 2 + 1, was = clock_error(m, now);
    int64_t offset = (int64_t)(beat->own - (beat->time + rtt / 2)), apart = offset - m->clock_offset;
    /* The better one stays, and what was measured long ago becomes worse; an answer that cannot be true beside it comes
     * from a coordinator on another host. */
    bool contradicts = (el_usec)(apart < 0 ? -apart : apart) > was + error;
    if (error > was && !contradicts)
        return;
    m->clock_offset = offset;
    m->clock_error = error;
    m->clock_at = now;
}

void member_on_clock(const struct member *m, el_usec at, el_usec now, uint64_t *time_us, uint64_t *error_us)
{
    bool own = m->conf.hosts_coordinator;
    int64_t time = (int64_t)at + (own ? 0 : m->clock_offset);
    *time_us = time > 0 ? (uint64_t)time : 0;
    *error_us = own ? 0 : clock_error(m, now);
}

/* --- lease --- */

void member_knock(struct member *m, el_usec now, struct member_actions *out)
{
    m->lease = MEMBER_LEASE_TRYING;
    m->knocked_at = now;
    m->knock_until = now + MEMBER_LEASE_LIMIT;
    m->knock_at = m->lease_asked = EL_NEVER;
    member_act(out, MEMBER_DO_LEASE_REQUEST);
}

void member_unknock(struct member *m, struct member_actions *out)
{
    if (m->lease == MEMBER_LEASE_TRYING || m->lease == MEMBER_LEASE_UP)
        member_act(out, MEMBER_DO_LEASE_RELEASE);
    m->lease = MEMBER_LEASE_NONE;
    m->knock_at = m->knock_until = m->lease_asked = EL_NEVER;
    m->lease_backoff = 0;
}

/* Refused or silent, it is the same: only a store's host that lives can pass on what the coordinator has ordered. */
static void lease_lost(struct member *m, el_usec now)
{
    m->lease = MEMBER_LEASE_DOWN;
    m->knock_until = m->lease_asked = EL_NEVER;
    m->knock_at = next_try(m, &m->lease_backoff, now);
}

/* Tells the round's other nodes, in case the coordinator cannot. */
void member_round_over(struct member *m, struct member_actions *out)
{
    if (!m->world.group_rank)
        member_act(out, MEMBER_DO_TENANTS_SEND)->what = MSG_ROUND_OVER;
    else if (m->lease == MEMBER_LEASE_UP)
        member_act(out, MEMBER_DO_LEASE_SEND)->what = MSG_ROUND_OVER;
}

/* With a link STOP comes by itself; if the link is lost before it does, member_fence() acts.  The host of the store
 * tells the other nodes: perhaps none of them hears the coordinator either. */
static void on_lease_msg(struct member *m, const struct msg *msg, struct member_actions *out)
{
    if (msg->type != MSG_ROUND_OVER || m->over_told)
        return;
    const struct msg_round_over *o = &msg->u.round_over;
    m->over_told = o->number == m->round.number && o->coord == m->round.coord;
    if (m->over_told && !m->world.group_rank)
        member_round_over(m, out);
}

void member_lease_event(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    switch ((unsigned)ev->type) {
    case MEMBER_EV_LEASE_GRANTED:
        if (m->lease != MEMBER_LEASE_TRYING)
            break;
        m->lease = MEMBER_LEASE_UP;
        m->lease_backoff = 0;
        m->knock_until = EL_NEVER;
        m->lease_asked = now;
        member_heard(&m->lease_heard, m->knocked_at);
        if (m->entering && member_last_heard(m) + member_silence_limit(m) <= now) /* its place may be another's since */
            member_link_drop(m, "the answer to a knock that was long on its way", now, out);
        else if (m->entering)
            member_start(m, out);
        break;
    case MEMBER_EV_LEASE_FAILED:
        if (m->lease != MEMBER_LEASE_TRYING)
            break;
        if (ev->text)
            snprintf(m->trouble, sizeof m->trouble, "%s", ev->text);
        lease_lost(m, now);
        break;
    case MEMBER_EV_LEASE_CLOSED:
        if (m->lease == MEMBER_LEASE_UP)
            lease_lost(m, now);
        break;
    case MEMBER_EV_LEASE_MSG:
    case MEMBER_EV_TENANT:
        member_fence_event(m, ev, now);
        on_lease_msg(m, ev->msg, out);
        break;
    default: break;
    }
}

/* --- time --- */

el_usec member_give_up_at(const struct member *m)
{
    if (m->ended)
        return EL_NEVER;
    if (!m->ever)
        return m->join_until;
    el_usec limit = m->conf.coordinator_timeout ? m->conf.coordinator_timeout : EL_MS(m->conf.set.join_timeout_ms);
    /* With a link: it may stand still.  It has answered since the link is up, and no HELLO is without a HEARTBEAT. */
    el_usec since = m->away_since != EL_NEVER ? m->away_since : m->coord_heard + member_silence_limit(m);
    return m->conf.hosts_coordinator && m->away_since == EL_NEVER ? EL_NEVER : since + limit;
}

static void member_link_give_up(struct member *m)
{
    if (m->link == MEMBER_LINK_UP)
        snprintf(m->trouble, sizeof m->trouble, "it is there, but does not answer: perhaps it stands still");
    if (!*m->trouble)
        snprintf(m->trouble, sizeof m->trouble, "%s",
                 m->link == MEMBER_LINK_HELLO ? "connected, but no answer to HELLO: not a coordinator of elrun?"
                                              : "no answer to the attempt to connect");
    if (m->refused_status)
        member_quit(m, m->refused_status, "refused until the end of the time-out: %.400s", m->trouble);
    else if (!m->ever)
        member_quit(m, EL_EXIT_UNAVAILABLE, "no coordinator within the join time-out: %.400s", m->trouble);
    else if (m->failed_status)
        member_quit(m, m->failed_status, "a worker failed here, and the coordinator was lost: %.380s", m->trouble);
    else if (m->succeeded)
        member_quit(m, EL_EXIT_TEMPFAIL, "all workers here have succeeded, but the coordinator was lost: %.380s",
                    m->trouble);
    else
        member_quit(m, EL_EXIT_TEMPFAIL, "the coordinator was lost: %.400s", m->trouble);
}

static el_usec link_silent_at(const struct member *m)
{
    return m->link == MEMBER_LINK_UP ? member_last_heard(m) + member_silence_limit(m) : EL_NEVER;
}

static el_usec lease_silent_at(const struct member *m)
{
    return m->lease == MEMBER_LEASE_UP ? member_lease_last_heard(m) + member_silence_limit(m) : EL_NEVER;
}

static void lease_timeout(struct member *m, el_usec now, struct member_actions *out)
{
    if (m->enter_until <= now) {
        m->entering = false;
        m->enter_until = EL_NEVER;
        member_unknock(m, out);
        member_send(m, out, MSG_LEASE_FAILED);
    }
    if (m->knock_until <= now || lease_silent_at(m) <= now) {
        member_act(out, MEMBER_DO_LEASE_RELEASE);
        snprintf(m->trouble, sizeof m->trouble, "the store of round %llu does not answer",
                 (unsigned long long)m->round.number);
        lease_lost(m, now);
    }
    if (m->knock_at <= now)
        member_knock(m, now, out);
    if (member_lease_beat_at(m) <= now) {
        m->lease_asked = now;
        member_act(out, MEMBER_DO_LEASE_SEND)->what = MSG_HEARTBEAT;
    }
}

void member_link_timeout(struct member *m, el_usec now, struct member_actions *out)
{
    if (m->try_until <= now)
        member_link_drop(m, "no answer to the attempt to connect", now, out);
    if (m->hello_until <= now)
        member_link_drop(m, "connected, but no answer to HELLO within 5 s: not a coordinator of elrun?", now, out);
    if (link_silent_at(m) <= now)
        member_link_drop(m, "the coordinator is silent", now, out);
    if (member_give_up_at(m) <= now)
        member_link_give_up(m);
    lease_timeout(m, now, out);
    if (m->connect_at <= now && !m->ended)
        connect_now(m, now, out);
    if (m->beat_at <= now) {
        m->beat_at = now + (m->burst ? member_interval(m) / 16 : member_interval(m));
        m->burst -= m->burst > 0;
        member_fence_asked(m, now);
        member_send(m, out, MSG_HEARTBEAT);
    }
}

el_usec member_link_deadline(const struct member *m)
{
    el_usec all[] = {m->try_until,
                     m->hello_until,
                     m->beat_at,
                     m->knock_at,
                     m->knock_until,
                     m->enter_until,
                     member_lease_beat_at(m),
                     member_fence_at(m),
                     member_give_up_at(m),
                     link_silent_at(m),
                     lease_silent_at(m),
                     m->ended ? EL_NEVER : m->connect_at};
    el_usec first = EL_NEVER;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        first = all[i] < first ? all[i] : first;
    return first;
}
