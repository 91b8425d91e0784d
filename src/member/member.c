#include "member/member.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "member/member_private.h"
#include "sys/signame.h"

enum { SIG_KILL = 9, SIG_TERM = 15 }; /* the kernel's numbers: <signal.h> is for the shell */

#define BIT(place) (1u << MEMBER_##place)

/* Each place with its allowed successors.  The place follows from the flags (place_of); the table says which ways there
 * are between places. */
static const struct {
    const char *name;
    unsigned next;
} places[] = {
    [MEMBER_CONNECTING] = {"connecting", BIT(JOINING) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_JOINING] = {"joining",
                        BIT(CONNECTING) | BIT(PARKED) | BIT(PROBING) | BIT(STARTING) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_PARKED] = {"parked",
                       BIT(CONNECTING) | BIT(JOINING) | BIT(PROBING) | BIT(STARTING) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_PROBING] = {"probing",
                        BIT(CONNECTING) | BIT(JOINING) | BIT(PARKED) | BIT(STARTING) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_STARTING] = {"starting", BIT(RUNNING) | BIT(STOPPING) | BIT(FINISHING) | BIT(CONNECTING) | BIT(JOINING) |
                                         BIT(PROBING) | BIT(PARKED) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_RUNNING] = {"running",
                        BIT(STOPPING) | BIT(FINISHING) | BIT(CONNECTING) | BIT(JOINING) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_STOPPING] = {"stopping",
                         BIT(FINISHING) | BIT(CONNECTING) | BIT(JOINING) | BIT(PARKED) | BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_FINISHING] = {"finishing", BIT(CONNECTING) | BIT(JOINING) | BIT(PARKED) | BIT(PROBING) | BIT(STARTING) |
                                           BIT(LEAVING) | BIT(ENDED)},
    [MEMBER_LEAVING] = {"leaving", BIT(ENDED)},
    [MEMBER_ENDED] = {"ended", 0},
};

const char *member_place_name(enum member_place p)
{
    return places[p].name;
}

static enum member_place member_place_of(const struct member *m)
{
    if (m->leaving)
        return MEMBER_LEAVING;
    if (m->attempt)
        return m->stopping ? MEMBER_STOPPING : m->up ? MEMBER_RUNNING : MEMBER_STARTING;
    if (m->entering || m->opening || m->store_ready)
        return MEMBER_STARTING;
    if (m->succeeded)
        return MEMBER_FINISHING;
    if (m->link < MEMBER_LINK_HELLO)
        return MEMBER_CONNECTING;
    if (m->probing && m->link == MEMBER_LINK_UP)
        return MEMBER_PROBING;
    return m->link == MEMBER_LINK_UP && m->parked ? MEMBER_PARKED : MEMBER_JOINING;
}

struct member_action *member_act(struct member_actions *out, enum member_action_type type)
{
    assert(out->n < MEMBER_ACTIONS_MAX);
    struct member_action *x = &out->v[out->n++];
    *x = (struct member_action){.type = type};
    return x;
}

/* What is not sent now is said by the next HELLO. */
void member_send(struct member *m, struct member_actions *out, enum msg_type what)
{
    if (m->link >= MEMBER_LINK_HELLO)
        member_act(out, MEMBER_DO_SEND)->what = what;
}

/* Nothing more is waited for: exits with this once the workers are gone.  The first reason stays. */
void member_quit(struct member *m, unsigned status, const char *format, ...)
{
    if (m->ended)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(m->text, sizeof m->text, format, ap);
    va_end(ap);
    m->ended = true;
    m->status = status;
}

void member_stop_attempt(struct member *m, int signal, el_usec grace, struct member_actions *out)
{
    assert(m->attempt);
    m->stopping = true;
    struct member_action *x = member_act(out, MEMBER_DO_STOP);
    x->signal = signal;
    x->grace = grace;
}

static el_usec own_grace(const struct member *m)
{
    return EL_MS(m->conf.set.grace_ms);
}

static bool is_round(const struct member_round *r, uint64_t number, uint64_t coord)
{
    return r->number == number && r->coord == coord && number;
}

static void member_saw(struct member *m, uint64_t number)
{
    m->seen = number > m->seen ? number : m->seen;
}

static void close_store(struct member *m, struct member_actions *out)
{
    if (!m->store.number)
        return;
    m->store = (struct member_round){0};
    m->opening = m->store_ready = false;
    member_act(out, MEMBER_DO_CLOSE_STORE);
}

/* --- the attempt --- */

void member_start(struct member *m, struct member_actions *out)
{
    assert(m->entering && !m->attempt);
    m->entering = m->late = false;
    m->enter_until = EL_NEVER;
    m->attempt = true;
    m->lease_heard = m->knocked_at;
    member_act(out, MEMBER_DO_START);
}

/* The coordinator has closed the last round: nothing more need be said of it. */
static void round_is_closed(struct member *m)
{
    m->incident_open = m->incidents = m->end_due = false;
}

void member_enter(struct member *m, el_usec now, struct member_actions *out)
{
    m->entering = true;
    m->up = m->stopping = m->aware = m->at_boundary = m->noticed = m->live.told = false;
    m->succeeded = m->failed = m->fenced = false;
    m->opening = m->store_ready = m->over_told = m->stand_lost = m->stand_over = false;
    m->failed_status = 0;
    round_is_closed(m);
    member_save_free(m);
    m->ranks = m->missing = NULL;
    member_restore_reset(m);
    member_fence_reset(m);
    if (!m->world.group_rank) { /* the store is here */
        member_start(m, out);
        return;
    }
    m->enter_until = now + MEMBER_LEASE_LIMIT;
    member_knock(m, now, out);
}

/* What is known of the failures of the last attempt, before STOPPED. */
void member_tell_end(struct member *m, struct member_actions *out)
{
    if (m->incidents)
        member_act(out, MEMBER_DO_INCIDENTS);
    if (restart_says(&m->digest))
        member_send(m, out, MSG_DIGEST);
}

static void say_stopped(struct member *m, struct member_round round, struct member_actions *out)
{
    m->stopped = round;
    member_send(m, out, MSG_STOPPED);
}

static void on_failed(struct member *m, const struct member_incident *x, struct member_actions *out)
{
    if (!m->attempt || m->fenced) /* that was the fence: this process, or the guard while this one stood still */
        return;
    m->failed = true;
    m->incident = *x;
    m->incident_open = true;
    m->failed_status = x->code > 0 ? (unsigned)x->code : x->signal > 0 ? EL_EXIT_SIGNAL((unsigned)x->signal) : 1;
    m->stopping = true; /* the node core stops the others by itself */
    member_send(m, out, MSG_WORKER_FAILED);
}

static void member_on_closed(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    if (!m->attempt)
        return;
    bool told = m->stopping;
    m->attempt = m->up = m->stopping = false;
    member_save_closed(m, now);
    m->stuck = ev->stuck;
    m->succeeded = ev->result == MEMBER_SUCCESS && !told && !m->leaving;
    if (ev->result == MEMBER_FAILED && !m->failed && !m->fenced)
        m->failed_status = ev->status;
    member_unknock(m, out);
    if (m->succeeded) {
        member_send(m, out, MSG_SUCCEEDED);
        return;
    }
    bool own = !m->fenced; /* else what ended them was the fence, and tells nothing */
    m->incidents = own && ev->incidents;
    m->ranks = ev->ranks;
    m->missing = ev->missing;
    m->digest = own && ev->digest ? *ev->digest : (struct restart_digest){.kind = RESTART_SILENT};
    m->end_due = m->failed || m->incidents || restart_says(&m->digest);
    if (m->link >= MEMBER_LINK_HELLO)
        member_tell_end(m, out);
    say_stopped(m, m->round, out);
    if (ev->result != MEMBER_UNABLE)
        return;
    member_send(m, out, MSG_LEAVING); /* a local error is nobody else's */
    member_quit(m, ev->status, "%s", ev->text ? ev->text : "workers cannot be started here");
}

/* --- orders --- */

/* No workers, no store: whatever comes next is another round. */
void member_rest(struct member *m, struct member_actions *out)
{
    if (m->entering)
        member_unknock(m, out);
    m->entering = m->succeeded = false;
    m->enter_until = EL_NEVER;
    round_is_closed(m);
    close_store(m, out);
    member_save_free(m);
}

static void on_park(struct member *m, const struct msg_wait *p, struct member_actions *out)
{
    member_saw(m, p->number);
    bool news = !m->parked || strcmp(m->text, p->text) != 0;
    m->parked = true;
    if (m->attempt && !m->stopping)
        member_stop_attempt(m, SIG_TERM, own_grace(m), out);
    member_rest(m, out);
    if (!news || m->ended)
        return;
    snprintf(m->text, sizeof m->text, "%s", p->text);
    member_act(out, MEMBER_DO_SAY);
}

static void on_open_store(struct member *m, const struct msg_open_store *o, struct member_actions *out)
{
    member_saw(m, o->number);
    m->parked = false;
    bool same = is_round(&m->store, o->number, o->coord);
    if (same && m->store_ready)
        member_send(m, out, MSG_STORE_READY);
    if (same && (m->store_ready || m->opening))
        return;
    round_is_closed(m);
    close_store(m, out);
    m->store = (struct member_round){o->number, o->coord};
    m->token = o->token;
    m->opening = true;
    m->succeeded = false;
    member_act(out, MEMBER_DO_OPEN_STORE);
}

static void on_store(struct member *m, const struct member_event *ev, struct member_actions *out)
{
    if (!m->opening)
        return;
    m->opening = false;
    m->store_ready = ev->ok;
    snprintf(m->store_addr, sizeof m->store_addr, "%s", ev->ok && ev->addr ? ev->addr : "");
    m->store_port = ev->port;
    if (!ev->ok)
        snprintf(m->trouble, sizeof m->trouble, "%s", ev->text ? ev->text : "no store");
    member_send(m, out, ev->ok ? MSG_STORE_READY : MSG_NO_STORE);
}

/* A copy whose strings are our own. */
static void keep_world(struct member *m, const struct msg_world *w)
{
    m->world = *w;
    snprintf(m->master_addr, sizeof m->master_addr, "%s", w->master_addr);
    snprintf(m->rank0_host, sizeof m->rank0_host, "%s", w->rank0_host);
    snprintf(m->why, sizeof m->why, "%s", w->why);
    snprintf(m->successors, sizeof m->successors, "%s", w->successors);
    m->world.master_addr = m->master_addr;
    m->world.rank0_host = m->rank0_host;
    m->world.why = m->why;
    m->world.successors = m->successors;
    snprintf(m->coordinator_process, sizeof m->coordinator_process, "%s", w->coordinator_process);
    m->world.coordinator_process = m->coordinator_process;
}

static void on_world(struct member *m, const struct msg_world *w, el_usec now, struct member_actions *out)
{
    member_saw(m, w->number);
    m->parked = false;
    member_unnotice(m, w, out);
    if (is_round(&m->round, w->number, w->coord) || w->number <= m->round.number)
        return;       /* it runs, or ran, already; never back to a lower one */
    if (m->attempt) { /* our HELLO says what is true, and the right order comes back */
        member_link_drop(m, "an order for another round", now, out);
        return;
    }
    if (w->rank_base + m->conf.slots > w->world_size) { /* the ranks of this node's workers are not there */
        char why[160];
        snprintf(why, sizeof why, "an order for ranks %llu to %llu of %llu: this node has %u workers",
                 (unsigned long long)w->rank_base, (unsigned long long)w->rank_base + m->conf.slots - 1,
                 (unsigned long long)w->world_size, m->conf.slots);
        member_link_drop(m, why, now, out);
        return;
    }
    if (m->entering)
        member_unknock(m, out);
    if (!is_round(&m->store, w->number, w->coord))
        close_store(m, out);
    m->round = (struct member_round){w->number, w->coord};
    m->latest = false;
    keep_world(m, w);
    member_enter(m, now, out);
}

static void member_on_stop(struct member *m, const struct msg_stop *s, struct member_actions *out)
{
    member_saw(m, s->number);
    if (!is_round(&m->round, s->number, s->coord)) { /* WORLD never came here, or was another's */
        say_stopped(m, (struct member_round){s->number, s->coord}, out);
        return;
    }
    member_round_over(m, out);
    if (m->attempt) {
        if (m->stopping)
            return;
        snprintf(m->text, sizeof m->text, "stopping: %.460s", s->text);
        m->late = s->late;
        member_act(out, MEMBER_DO_SAY);
        member_stop_attempt(m, SIG_TERM, EL_MS(s->grace_ms), out);
        return;
    }
    if (m->entering)
        member_unknock(m, out);
    m->entering = m->succeeded = false;
    m->enter_until = EL_NEVER;
    say_stopped(m, m->round, out);
}

/* Where the end of text is the beginning of cause: it need not be said twice. */
static size_t member_before(const char *text, const char *cause)
{
    size_t i = 0;
    while (text[i] && strncmp(text + i, cause, strlen(text + i)) != 0)
        i++;
    return i;
}

static void on_end(struct member *m, const struct msg_end *e, struct member_actions *out)
{
    if (m->attempt && !m->stopping)
        member_stop_attempt(m, SIG_TERM, own_grace(m), out);
    m->entering = false;
    m->enter_until = EL_NEVER;
    m->end_told = true;
    bool latecomer =
        !m->round.number && !m->store.number && !m->parked && !m->probe.number; /* this is the first that we hear */
    if (latecomer)
        member_quit(m, (unsigned)e->status,
                    "job %s had ended before this node came (%.200s); another --rdzv-id is another job", m->conf.run_id,
                    e->text);
    else if (*e->cause && !e->text[member_before(e->text, e->cause)])
        member_quit(m, (unsigned)e->status, "%.230s: %.230s", e->text, e->cause);
    else if (*e->cause)
        member_quit(m, (unsigned)e->status, "%.*s%.300s", (int)member_before(e->text, e->cause), e->text, e->cause);
    else
        member_quit(m, (unsigned)e->status, "%s", e->text);
    member_send(m, out, MSG_END_ACK);
}

static void on_refused(struct member *m, const struct msg_refused *r, el_usec now, struct member_actions *out)
{
    if (r->retry) {
        bool news = strcmp(m->trouble, r->text) != 0;
        member_link_drop(m, r->text, now, out);
        m->refused_status = (unsigned)r->status;
        el_usec until = member_give_up_at(m), left = until == EL_NEVER || until < now ? 0 : until - now;
        snprintf(m->text, sizeof m->text, "%.400s; tries again for %llu s", r->text,
                 (unsigned long long)((left + EL_SEC(1) - 1) / EL_SEC(1)));
        if (news && !m->ended)
            member_act(out, MEMBER_DO_SAY);
        return;
    }
    member_link_drop(m, r->text, now, out);
    member_quit(m, (unsigned)r->status, "%s", r->text);
}

static void member_on_msg(struct member *m, const struct msg *msg, el_usec now, struct member_actions *out)
{
    if (m->link < MEMBER_LINK_HELLO)
        return;
    if (msg->type == MSG_HEARTBEAT_ACK) {
        member_beat_reply(m, &msg->u.heartbeat, now);
        return;
    }
    if (msg->type != MSG_REFUSED)
        member_link_answered(m, now);
    bool beginning = msg->type == MSG_OPEN_STORE || msg->type == MSG_WORLD;
    if (beginning && (m->ended || m->leaving))
        return;                                                         /* it learns of that in a moment */
    if (beginning && m->coord_heard + member_silence_limit(m) <= now) { /* it may have been given to another since */
        member_link_drop(m, "an order that was long on its way", now, out);
        return;
    }
    bool saving = msg->type >= MSG_CKPT_PART && msg->type <= MSG_CKPT_COMMON;
    if (msg->type != MSG_PROBE && msg->type != MSG_KEEP && msg->type != MSG_LEAVE_ACK && !saving)
        member_probe_stop(m, out);
    switch ((unsigned)msg->type) {
    case MSG_PROBE: member_probe_order(m, &msg->u.probe, now, out); break;
    case MSG_WAIT: on_park(m, &msg->u.wait, out); break;
    case MSG_OPEN_STORE: on_open_store(m, &msg->u.open_store, out); break;
    case MSG_WORLD: on_world(m, &msg->u.world, now, out); break;
    case MSG_STOP: member_on_stop(m, &msg->u.stop, out); break;
    case MSG_NOTICE: member_on_notice(m, &msg->u.notice, now, out); break;
    case MSG_RESTORE: member_restore_order(m, &msg->u.restore, out); break;
    case MSG_CKPT_WRITE:
    case MSG_CKPT_FILE:
    case MSG_CKPT_PUBLISH:
    case MSG_CKPT_OVER: member_save_order(m, msg, out); break;
    case MSG_CKPT_COMMON:
    case MSG_CKPT_DIFFER: member_common_order(m, msg, out); break;
    case MSG_CKPT_CAPTURE: member_words_order(m, &msg->u.ckpt_capture, out); break;
    case MSG_KEEP: break;
    case MSG_END: on_end(m, &msg->u.end, out); break;
    case MSG_REFUSED: on_refused(m, &msg->u.refused, now, out); break;
    case MSG_LEAVE_ACK: member_on_goodbye(m, &msg->u.leave_ack, now); break;
    default: member_link_drop(m, "a message that is not for an agent", now, out); break;
    }
}

/* --- leaving and the end --- */

static void member_on_signal(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    m->leaves++;
    if (m->leaves > 1 && m->attempt)
        member_stop_attempt(m, SIG_KILL, 0, out);
    if (m->leaving)
        return;
    member_probe_stop(m, out);
    m->leaving = true;
    m->leave_signal = ev->signal;
    m->leave_until = m->depart_at = now + MEMBER_LEAVE_LIMIT;
    m->leave_told = m->link != MEMBER_LINK_UP;
    m->entering = false;
    m->enter_until = EL_NEVER;
    member_send(m, out, MSG_LEAVING);
}

/* After each event: what follows from where we are. */
static void member_advance(struct member *m, el_usec now, struct member_actions *out)
{
    char name[SIGNAME_MAX];
    if (m->place == MEMBER_ENDED)
        return;
    member_fence(m, now, out);
    member_words_advance(m, out);
    if (m->leaving && (m->leave_told || m->leave_until <= now)) {
        m->leave_told = true;
        bool departs = m->depart_at <= now || m->link != MEMBER_LINK_UP;
        if (m->attempt && !m->stopping && departs)
            member_stop_attempt(m, m->leave_signal, own_grace(m), out);
        if (!m->attempt && !member_save_waits(m, now))
            member_quit(m, EL_EXIT_SIGNAL((unsigned)m->leave_signal), "this node has left on %s",
                        signame(m->leave_signal, name));
    }
    if (m->ended && m->attempt && !m->stopping)
        member_stop_attempt(m, SIG_TERM, own_grace(m), out);
    enum member_place to = m->ended && !m->attempt ? MEMBER_ENDED : member_place_of(m);
    if (to != m->place) {
        assert(places[m->place].next & 1u << to);
        m->place = to;
    }
    if (to == MEMBER_ENDED) {
        member_probe_stop(m, out);
        member_act(out, MEMBER_DO_EXIT);
    }
}

void member_init(struct member *m, const struct member_conf *conf, uint64_t rng_start)
{
    *m = (struct member){.conf = *conf, .rng.state = rng_start};
    m->connect_at = m->try_until = m->hello_until = m->beat_at = m->away_since = EL_NEVER;
    m->knock_at = m->knock_until = m->enter_until = m->lease_asked = m->join_until = m->leave_until = EL_NEVER;
    m->clock_at = m->asked = m->taken_since = EL_NEVER;
    m->save.done = MEMBER_NO_STEP;
}

static void on_local(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    switch ((unsigned)ev->type) {
    case MEMBER_EV_STORE: on_store(m, ev, out); break;
    case MEMBER_EV_STARTED:
        m->up = m->attempt;
        if (m->up)
            member_send(m, out, MSG_STARTED);
        break;
    case MEMBER_EV_SUBSCRIBED:
    case MEMBER_EV_STEP_REPORT:
    case MEMBER_EV_AT_BOUNDARY: member_notice_event(m, ev, out); break;
    case MEMBER_EV_STOCK:
    case MEMBER_EV_READ:
    case MEMBER_EV_READS: member_restore_event(m, ev, out); break;
    case MEMBER_EV_PROBE_ID:
    case MEMBER_EV_PROBED: member_probe_event(m, ev->type, out); break;
    case MEMBER_EV_WORKER_FAILED: on_failed(m, ev->incident, out); break;
    case MEMBER_EV_TAKEN:
    case MEMBER_EV_DIGESTS: member_common_event(m, ev, out); break;
    case MEMBER_EV_WENT_BACK: member_save_went_back(m, ev->step); break;
    case MEMBER_EV_STAND: member_words_event(m, ev, out); break;
    case MEMBER_EV_HELD:
    case MEMBER_EV_SAVED:
    case MEMBER_EV_MOVED: member_save_event(m, ev, out); break;
    case MEMBER_EV_CLOSED: member_on_closed(m, ev, now, out); break;
    case MEMBER_EV_SIGNAL: member_on_signal(m, ev, now, out); break;
    default: break;
    }
}

void member_step(struct member *m, const struct member_event *ev, el_usec now, struct member_actions *out)
{
    out->n = 0;
    if (m->place == MEMBER_ENDED)
        return;
    member_fence(m, now, out); /* whatever comes now comes too late: the guard has acted */
    switch (ev->type) {
    case MEMBER_EV_START:
        m->connect_at = m->away_since = now;
        m->coord_heard = m->delivered = m->lease_heard = now;
        m->join_until = now + EL_MS(m->conf.set.join_timeout_ms);
        member_link_timeout(m, now, out);
        break;
    case MEMBER_EV_CONNECTED:
    case MEMBER_EV_CONNECT_FAILED:
    case MEMBER_EV_LINK_CLOSED: member_link_event(m, ev, now, out); break;
    case MEMBER_EV_DELIVERED:
    case MEMBER_EV_LEASE_DELIVERED: member_fence_event(m, ev, now); break;
    case MEMBER_EV_MSG: member_on_msg(m, ev->msg, now, out); break;
    case MEMBER_EV_LEASE_GRANTED:
    case MEMBER_EV_LEASE_FAILED:
    case MEMBER_EV_LEASE_CLOSED:
    case MEMBER_EV_LEASE_MSG:
    case MEMBER_EV_TENANT: member_lease_event(m, ev, now, out); break;
    case MEMBER_EV_TIMEOUT: member_link_timeout(m, now, out); break;
    case MEMBER_EV_STORE:
    case MEMBER_EV_STARTED:
    case MEMBER_EV_SUBSCRIBED:
    case MEMBER_EV_STEP_REPORT:
    case MEMBER_EV_AT_BOUNDARY:
    case MEMBER_EV_STOCK:
    case MEMBER_EV_READ:
    case MEMBER_EV_READS:
    case MEMBER_EV_TAKEN:
    case MEMBER_EV_DIGESTS:
    case MEMBER_EV_WENT_BACK:
    case MEMBER_EV_STAND:
    case MEMBER_EV_HELD:
    case MEMBER_EV_SAVED:
    case MEMBER_EV_MOVED:
    case MEMBER_EV_PROBE_ID:
    case MEMBER_EV_PROBED:
    case MEMBER_EV_WORKER_FAILED:
    case MEMBER_EV_CLOSED:
    case MEMBER_EV_SIGNAL: on_local(m, ev, now, out); break;
    }
    member_advance(m, now, out);
}

el_usec member_deadline(const struct member *m)
{
    if (m->place == MEMBER_ENDED)
        return EL_NEVER;
    el_usec first = member_link_deadline(m);
    el_usec leave = !m->leaving                  ? EL_NEVER
                    : !m->leave_told             ? m->leave_until
                    : m->attempt && !m->stopping ? m->depart_at
                    : !m->attempt                ? m->save.free_at
                                                 : EL_NEVER;
    return leave < first ? leave : first;
}

void member_check(const struct member *m)
{
    assert(m->place == MEMBER_ENDED || m->place == member_place_of(m));
    assert(m->attempt || !(m->up || m->stopping));
    assert(!(m->entering && m->attempt) && !(m->succeeded && m->attempt));
    assert(!m->probing || !(m->attempt || m->entering || m->opening));
    assert(!m->attempt || m->round.number);
    assert(m->seen >= m->round.number);
    assert(m->entering == (m->enter_until != EL_NEVER));
    assert(m->place != MEMBER_ENDED || !m->attempt);
    assert((m->link == MEMBER_LINK_UP) <= (m->away_since == EL_NEVER));
}
