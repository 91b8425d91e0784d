/* What members say about a round, and what people want of a job. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

/* Does (number, coord) name the round that this member has a seat in? */
enum { SIG_INT = 2 };

static bool member_msg_is_present(const struct rdzv *r, const struct rdzv_member *m, uint64_t number, uint64_t coord)
{
    bool up = r->state == RDZV_RUNNING || r->state == RDZV_STOPPING;
    return up && m->phase == RDZV_BUSY && number == r->number && coord == r->coord;
}

static bool member_msg_is_host(const struct rdzv *r, unsigned i, uint64_t number, uint64_t coord)
{
    return r->state == RDZV_OPENING && r->seat[0].member == i && number == r->number && coord == r->coord;
}

static void member_msg_change(struct rdzv *r, unsigned i, bool *flag, bool to)
{
    rdzv_tally(r, &r->member[i], -1);
    *flag = to;
    rdzv_tally(r, &r->member[i], 1);
}

static bool on_one_host(const struct rdzv *r)
{
    for (unsigned k = 0; k < r->size; k++)
        if (!r->member[r->seat[k].member].same_host)
            return false;
    return true;
}

static void no_store(struct rdzv *r, unsigned i, el_usec now, struct rdzv_actions *out, const char *why)
{
    rdzv_say(r, out, NOTE_FINDING, i, "%s cannot host the store of round %llu: %.300s", r->member[i].host,
             (unsigned long long)r->number, why);
    snprintf(r->no_store, sizeof r->no_store, "%s", why);
    member_msg_change(r, i, &r->member[i].doubted, true);
    rdzv_abandon(r, now);
    rdzv_act(out, RDZV_DO_ORDER)->member = i;
}

static void on_store_ready(struct rdzv *r, unsigned i, const struct msg_store_ready *s, el_usec now,
                           struct rdzv_actions *out)
{
    if (!member_msg_is_host(r, i, s->number, s->coord))
        return;
    bool alone = on_one_host(r);
    const char *addr = *s->addr ? s->addr : alone ? "127.0.0.1" : r->self_addr;
    if (!*addr || (!alone && rdzv_addr_is_local(addr))) {
        no_store(r, i, now, out, "it has no address that other hosts can reach; give it --local-addr");
        return;
    }
    snprintf(r->master_addr, sizeof r->master_addr, "%s", addr);
    r->master_port = (unsigned)s->port;
    r->store_until = EL_NEVER;
    rdzv_move(r, RDZV_RECORDING, now);
    rdzv_journal(r, out);
    r->serial_waits = true;
}

static void on_worker_failed(struct rdzv *r, unsigned i, const struct msg_worker_failed *f, el_usec now,
                             struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    if (!member_msg_is_present(r, m, f->number, f->coord))
        return;
    unsigned rank = r->seat[m->seat].rank_base + (unsigned)f->local_rank;
    if (rdzv_worker_failed(r, m, f, now)) /* a node tells of it on each of its connections */
        rdzv_say(r, out, NOTE_FAILED, i, "rank %u on %s: %s", rank, m->host, f->text);
    if (r->state != RDZV_RUNNING)
        return;
    r->failed = true;
    r->late = f->late && !r->succeeded_seats;
    if (!m->started) { /* no worker of its own can have failed: that costs the others no restart, but it their trust */
        r->membership = r->unstarted = true;
        member_msg_change(r, i, &m->doubted, true);
    }
    rdzv_stop(r, now, out, "rank %u on %s failed: %s", rank, m->host, f->text);
}

static void member_msg_on_stopped(struct rdzv *r, unsigned i, const struct msg_stopped *s, el_usec now,
                                  struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    m->held = 0;
    if (s->stuck)
        member_msg_change(r, i, &m->stuck, true);
    if (m->phase == RDZV_STRAY) {
        rdzv_tally(r, m, -1);
        m->phase = RDZV_READY;
        m->number = 0;
        rdzv_tally(r, m, 1);
        if (r->state == RDZV_PROBING && m->prober != RDZV_NONE) /* its part in the check goes on */
            rdzv_act(out, RDZV_DO_ORDER)->member = i;
        return;
    }
    if (!member_msg_is_present(r, m, s->number, s->coord))
        return;
    if (r->state == RDZV_RUNNING && !rdzv_notice_stopped(r, m, s->fenced)) {
        r->membership = true;
        rdzv_stop(r, now, out, s->fenced ? "%s was cut off" : "%s has stopped by itself", m->host);
    }
    rdzv_stopped_ranks(r, m->seat, s);
    rdzv_seat_stopped(r, m->seat);
}

static_assert(RESTART_KINDS - 1 == 5 && MSG_CLAUSE_MAX == RESTART_WHAT_MAX && MSG_PLACE_MAX == RESTART_PLACE_MAX,
              "what DIGEST carries");

/* Each node is counted once, though it says it on each of its connections. */
static void take_digest(struct rdzv *r, const struct rdzv_member *m, const struct msg_digest *x)
{
    if (r->seat[m->seat].digested)
        return;
    r->seat[m->seat].digested = true;
    struct restart_digest d = {.kind = (enum restart_kind)x->kind,
                               .witnesses = (unsigned)x->witnesses,
                               .passed = x->passed,
                               .node = m->instance,
                               .elapsed = EL_MS(x->elapsed_ms),
                               .hardware = x->hardware,
                               .steps_known = x->steps_known,
                               .steps = x->steps};
    snprintf(d.what, sizeof d.what, "%s", x->what);
    snprintf(d.place, sizeof d.place, "%s", x->place);
    snprintf(d.evidence, sizeof d.evidence, "%s", x->evidence);
    restart_merge(&r->digest, &d);
    if (x->hardware)
        rdzv_suspect(r, m, x->evidence);
}

static void on_digest(struct rdzv *r, unsigned i, const struct msg_digest *x)
{
    const struct rdzv_member *m = &r->member[i];
    if (member_msg_is_present(r, m, x->number, x->coord) && !r->seat[m->seat].stopped)
        take_digest(r, m, x);
}

static void on_leaving(struct rdzv *r, unsigned i, const struct msg_leaving *l, el_usec now, struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    rdzv_act(out, RDZV_DO_GOODBYE)->member = i;
    if (m->leaving)
        return;
    member_msg_change(r, i, &m->leaving, true);
    r->tell = true;
    bool chosen = m->seat != RDZV_NONE && (r->state == RDZV_OPENING || r->state == RDZV_RECORDING);
    if (chosen)
        rdzv_abandon(r, now);
    rdzv_health_leaves(r, i, now, out);
    if (m->phase != RDZV_BUSY)
        return;
    bool done = r->seat[m->seat].succeeded && (m->seat != 0 || r->succeeded_seats == r->size);
    r->membership |= !done;
    if (done)
        return;
    char why[MSG_TEXT_MAX + 1];
    snprintf(why, sizeof why, "%s leaves%s%.300s", m->host, *l->text ? ": " : "", l->text);
    if (rdzv_is_listened(r) && l->signal != SIG_INT) /* who interrupts does not want to wait */
        rdzv_plan(r, NOTICE_EVICTION, now, out, why);
    else
        rdzv_stop(r, now, out, "%s", why);
}

static void on_no_knock(struct rdzv *r, unsigned i, const struct msg_lease_failed *k, el_usec now,
                        struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    if (!member_msg_is_present(r, m, k->number, k->coord) || m->no_knock)
        return;
    m->no_knock = true;
    r->no_knocks++;
    r->membership = true;
    rdzv_say(r, out, NOTE_FINDING, i, "%s cannot reach the store on %s: %.300s", m->host, r->master_addr, k->text);
    rdzv_stop(r, now, out, "%s cannot reach the store on %s", m->host, r->master_addr);
}

/* While a coordinator that was restarted still listens, news of a seat is kept in it. */
static void hear_more(struct rdzv *r, struct rdzv_member *m, const struct msg *msg, el_usec now)
{
    const struct msg_started *same = &msg->u.started; /* each of these begins with its round */
    if (m->seat == RDZV_NONE || same->number != r->number || same->coord != r->coord)
        return;
    struct rdzv_seat *s = &r->seat[m->seat];
    m->started |= msg->type == MSG_STARTED;
    s->succeeded |= msg->type == MSG_SUCCEEDED;
    s->stopped |= msg->type == MSG_STOPPED;
    s->succeeded &= !s->stopped;
    s->failed |= msg->type == MSG_WORKER_FAILED;
    s->stopping |= s->failed || msg->type == MSG_LEASE_FAILED; /* it does not begin: the others would wait for it */
    if (msg->type == MSG_WORKER_FAILED)
        rdzv_worker_failed(r, m, &msg->u.worker_failed, now);
    else if (msg->type == MSG_INCIDENT)
        rdzv_incident(r, m, &msg->u.incident, now);
    else if (msg->type == MSG_DIGEST)
        take_digest(r, m, &msg->u.digest);
}

static bool member_msg_is_news(const struct msg *msg)
{
    return msg->type == MSG_STARTED || msg->type == MSG_SUCCEEDED || msg->type == MSG_STOPPED ||
           msg->type == MSG_WORKER_FAILED || msg->type == MSG_INCIDENT || msg->type == MSG_DIGEST ||
           msg->type == MSG_LEASE_FAILED;
}

void rdzv_message(struct rdzv *r, unsigned i, const struct msg *msg, el_usec now, struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    if (r->state == RDZV_REBUILDING && m->phase != RDZV_STRAY && member_msg_is_news(msg)) {
        hear_more(r, m, msg, now);
        return;
    }
    switch ((unsigned)msg->type) {
    case MSG_STORE_READY: on_store_ready(r, i, &msg->u.store_ready, now, out); break;
    case MSG_NO_STORE:
        if (member_msg_is_host(r, i, msg->u.no_store.number, msg->u.no_store.coord))
            no_store(r, i, now, out, msg->u.no_store.text);
        break;
    case MSG_LEASE_FAILED: on_no_knock(r, i, &msg->u.lease_failed, now, out); break;
    case MSG_STARTED:
        if (member_msg_is_present(r, m, msg->u.started.number, msg->u.started.coord))
            r->ran = m->started = true;
        break;
    case MSG_SUBSCRIBED:
    case MSG_STEP_REPORT:
    case MSG_AT_BOUNDARY: /* the same two fields in front */
        if (member_msg_is_present(r, m, msg->u.subscribed.number, msg->u.subscribed.coord))
            rdzv_notice_message(r, m, msg, out);
        break;
    case MSG_WORKER_FAILED: on_worker_failed(r, i, &msg->u.worker_failed, now, out); break;
    case MSG_DIGEST: on_digest(r, i, &msg->u.digest); break;
    case MSG_INCIDENT:
        if (member_msg_is_present(r, m, msg->u.incident.number, msg->u.incident.coord))
            rdzv_incident(r, m, &msg->u.incident, now);
        break;
    case MSG_STOPPED: member_msg_on_stopped(r, i, &msg->u.stopped, now, out); break;
    case MSG_SUCCEEDED:
        if (member_msg_is_present(r, m, msg->u.succeeded.number, msg->u.succeeded.coord))
            rdzv_seat_succeeded(r, m->seat);
        break;
    case MSG_CKPT_INVENTORY: rdzv_restore_stock(r, i, &msg->u.ckpt_inventory, now, out); break;
    case MSG_CKPT_PART:
    case MSG_CKPT_STATE:
    case MSG_CKPT_FILE: rdzv_saving_message(r, i, msg, now, out); break;
    case MSG_CKPT_TAKEN: rdzv_common_taken(r, i, &msg->u.ckpt_taken, now, out); break;
    case MSG_CKPT_DIGESTS:
    case MSG_CKPT_TENSORS: rdzv_comparing_message(r, i, msg); break;
    case MSG_EMERGENCY_STATE: rdzv_emergency_stand(r, i, &msg->u.emergency_state, now, out); break;
    case MSG_PROBE_ID:
    case MSG_PROBE_RESULT: rdzv_health_message(r, i, msg, now, out); break;
    case MSG_LEAVING: on_leaving(r, i, &msg->u.leaving, now, out); break;
    case MSG_END_ACK:
        if (r->state >= RDZV_ENDING || m->drained)
            member_msg_change(r, i, &m->acked, true);
        break;
    default: rdzv_act(out, RDZV_DO_CLOSE)->conn = m->conn; break; /* not for a coordinator to hear */
    }
}

/* --- commands --- */

static void __attribute__((format(printf, 5, 6)))
reply(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out, unsigned status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(r->answer_text, sizeof r->answer_text, format, ap);
    va_end(ap);
    r->answer = (struct msg){.type = MSG_DONE, .u.done = {.status = status, .text = r->answer_text}};
    rdzv_act(out, RDZV_DO_REPLY)->conn = ev->conn;
    if (!status)
        rdzv_say(r, out, NOTE_COMMAND, RDZV_NONE, "%.300s, asked for from %s", r->answer_text,
                 ev->peer.remote ? ev->peer.remote : "this host");
}

static void on_scale(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    struct rdzv_settings s = r->conf.set;
    struct el_err e = {0};
    s.min = ev->msg->u.scale.min ? ev->msg->u.scale.min : r->min;
    s.max = ev->msg->u.scale.max ? ev->msg->u.scale.max : r->max;
    if (rdzv_settings_check(&s, &e) < 0) {
        reply(r, ev, out, 1, "%s", e.text);
        return;
    }
    if (s.max > r->conf.room) {
        reply(r, ev, out, 1, "this coordinator has room for %u nodes, not %llu", r->conf.room,
              (unsigned long long)s.max);
        return;
    }
    r->min = s.min;
    r->max = s.max;
    reply(r, ev, out, 0, "nodes %llu:%llu", (unsigned long long)r->min, (unsigned long long)r->max);
    if (!r->serial_waits)
        rdzv_journal(r, out);
}

static bool member_msg_is_named(const struct rdzv_member *m, const char *name)
{
    const char *end = name;
    uint64_t n;
    if (strcmp(m->host, name) == 0 || strcmp(m->addr, name) == 0)
        return true;
    if (scan_u64(&end, &n) && !*end)
        return m->node_rank >= 0 && (uint64_t)m->node_rank == n;
    end = name;
    return scan_hex(&end, &n) && !*end && rdzv_told_instance(m->instance) == n;
}

static void on_drain(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    uint32_t found = RDZV_NONE;
    const char *name = ev->msg->u.drain.node;
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next) {
        if (!member_msg_is_named(&r->member[i], name) || r->member[i].leaving)
            continue;
        if (found != RDZV_NONE) {
            reply(r, ev, out, 1, "%s names more than one node; give its instance", name);
            return;
        }
        found = i;
    }
    if (found == RDZV_NONE) {
        reply(r, ev, out, 1, "no node %s in job %.128s", name, r->conf.run_id);
        return;
    }
    struct rdzv_member *m = &r->member[found];
    bool busy = m->phase == RDZV_BUSY;
    unsigned others = r->good + r->resort + (busy ? r->size - r->lost_seats : 0) - 1;
    if (busy && others < r->min) {
        reply(r, ev, out, 1, "without %s there would be %u nodes, at least %llu are needed", m->host, others,
              (unsigned long long)r->min);
        return;
    }
    rdzv_tally(r, m, -1);
    m->leaving = m->drained = true;
    rdzv_tally(r, m, 1);
    reply(r, ev, out, 0, "%s is drained", m->host);
    if (!busy) {
        if (m->seat != RDZV_NONE && (r->state == RDZV_OPENING || r->state == RDZV_RECORDING))
            rdzv_abandon(r, now);
        rdzv_health_leaves(r, found, now, out);
        rdzv_act(out, RDZV_DO_ORDER)->member = found;
        return;
    }
    r->membership = true;
    rdzv_plan(r, NOTICE_DRAIN, now, out, "a node is drained");
}

static void on_stop_job(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    int64_t grace = ev->msg->u.stop_job.grace_ms;
    r->stop_job = true;
    r->stop_grace = grace > 0 ? EL_MS((uint64_t)grace) : EL_MS(r->conf.set.grace_ms);
    r->status = EL_EXIT_SIGNAL(15u);
    if (r->state == RDZV_OPENING || r->state == RDZV_RECORDING)
        rdzv_abandon(r, now);
    reply(r, ev, out, 0, "the job is stopped");
    if (r->state == RDZV_RUNNING)
        rdzv_stop(r, now, out, "stopped by command");
    else if (r->state < RDZV_RUNNING)
        rdzv_end(r, now, out, r->status, "stopped by command");
}

void rdzv_command(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    if (r->state >= RDZV_CLOSING) {
        reply(r, ev, out, 1, "the job has ended: %.300s", r->end_text);
        return;
    }
    switch ((unsigned)ev->msg->type) {
    case MSG_SCALE: on_scale(r, ev, out); break;
    case MSG_DRAIN: on_drain(r, ev, now, out); break;
    case MSG_STOP_JOB: on_stop_job(r, ev, now, out); break;
    case MSG_RESTART:
        if (r->state == RDZV_RUNNING && !r->noticed) {
            reply(r, ev, out, 0, "round %llu is restarted", (unsigned long long)r->number);
            rdzv_plan(r, NOTICE_OPERATOR, now, out, "a restart was asked for");
        } else {
            reply(r, ev, out, 1, "no round runs: %.300s", rdzv_wait_text(r, now));
        }
        break;
    default: rdzv_act(out, RDZV_DO_CLOSE)->conn = ev->conn; break;
    }
}
