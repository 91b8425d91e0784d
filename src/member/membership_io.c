#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "member/membership_private.h"
#include "util/log.h"

#define MEMBERSHIP_STAY_SAID EL_SEC(1) /* at a job's ordinary end the others follow sooner */
#define TROUBLE_AFTER        EL_SEC(1)

/* --- the core --- */

static void perform(struct membership *m, const struct member_action *a);

void membership_feed(struct membership *m, const struct member_event *ev)
{
    if (m->stepping) {
        assert(m->queued < MEMBERSHIP_QUEUE_MAX && !ev->msg && (!ev->incident || ev->incident == &m->failed));
        m->queue[m->queued++] = *ev;
        return;
    }
    m->stepping = true;
    struct member_actions out = {0};
    member_step(&m->core, ev, loop_clock(), &out);
    for (;;) {
        member_check(&m->core);
        for (unsigned i = 0; i < out.n; i++)
            perform(m, &out.v[i]);
        if (!m->queued)
            break;
        struct member_event next = m->queue[0];
        memmove(m->queue, m->queue + 1, --m->queued * sizeof m->queue[0]);
        out.n = 0;
        member_step(&m->core, &next, loop_clock(), &out);
    }
    m->stepping = false;
    loop_timer_at(m->deadline, member_deadline(&m->core));
    el_usec fence = member_fence_at(&m->core);
    if (fence != m->fence)
        m->ops.fence(m->ctx, m->fence = fence);
}

static void membership_on_deadline(void *ctx)
{
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_TIMEOUT});
}

/* --- the link to the coordinator --- */

static void link_connected(void *ctx)
{
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_CONNECTED});
}

/* Nobody has answered yet, for longer than hosts of one job take to start: say why, once for each reason. */
static void membership_say_trouble(struct membership *m, const char *text)
{
    el_usec now = loop_clock(), limit = EL_MS(m->conf.member.set.join_timeout_ms);
    if (m->core.ever || now - m->began < TROUBLE_AFTER || strncmp(m->trouble, text, sizeof m->trouble - 1) == 0)
        return;
    snprintf(m->trouble, sizeof m->trouble, "%s", text);
    el_log(EL_INFO, "no coordinator at %s port %d yet (%s); trying until %llu s after the start", m->conf.host,
           m->conf.port, text, (unsigned long long)(limit / EL_SEC(1)));
}

static void link_failed(void *ctx, bool refused, const char *text)
{
    membership_say_trouble(ctx, text);
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_CONNECT_FAILED, .refused = refused, .text = text});
}

static void link_message(void *ctx, const struct msg *msg)
{
    struct membership *m = ctx;
    m->answered = true;
    if (msg->type == MSG_LOGS || msg->type == MSG_LOGS_NEXT) {
        m->ops.logs(m->ctx, msg); /* nothing that the core decides */
        return;
    }
    if (msg->type == MSG_PROBE_VERDICT) {
        m->ops.verdict(m->ctx, &msg->u.probe_verdict);
        return;
    }
    m->probe = &msg->u.probe;
    m->order = msg;
    if (msg->type == MSG_REPORT || msg->type == MSG_REPORT_ROW || msg->type == MSG_PROBE_PAGE) {
        m->ops.report(m->ctx, msg);
        return;
    }
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_MSG, .msg = msg});
}

/* The next attempt will say so, or ask again. */
static void stranger_answered(void *ctx, bool is_store)
{
    struct membership *m = ctx;
    m->is_store = is_store;
    peer_ident_forget(m->stranger);
    m->stranger = NULL;
}

static void link_closed(void *ctx, const char *text)
{
    struct membership *m = ctx;
    char early[256];
    m->ops.logs(m->ctx, NULL);
    if (!m->core.ever && !m->answered && !link_spoke(m->link)) { /* as stores do with what they do not know */
        if (!m->stranger && !m->is_store)
            m->stranger = peer_ident_ask(m->pool, m->conf.host, m->conf.port, stranger_answered, m);
        snprintf(early, sizeof early, "%.100s without a word: " PEER_IDENT_MUTE, text);
        text = m->is_store ? PEER_IDENT_STORE : early;
    }
    membership_say_trouble(m, text);
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_LINK_CLOSED, .text = text});
}

/* A name that had no answer at the start may turn out to be this host's; and who had the port of this host may have
 * died since.  A probe that had begun with that one cannot go on without it: nobody would come back in its place. */
static void link_resolved(void *ctx, const struct el_addr *found, size_t n)
{
    struct membership *m = ctx;
    if (m->core.leaving || m->core.ended || !m->ops.is_host(m->ctx, found, n))
        return;
    if (m->conf.run->probe_only && m->core.ever)
        return;
    if (m->conf.is_static && m->conf.member.node_rank != 0)
        return; /* node 0's process has the port: its store will be there, too */
    m->core.conf.hosts_coordinator = coordinator_host_take_over(m->hosting, member_world(&m->core));
}

static const struct link_ops coordinator_link = {.resolved = link_resolved,
                                                 .connected = link_connected,
                                                 .failed = link_failed,
                                                 .message = link_message,
                                                 .closed = link_closed};

static void membership_send(struct membership *m, struct link *to, enum msg_type what)
{
    struct msg msg = {0};
    member_message(&m->core, what, loop_clock(), &msg);
    link_send(to, &msg);
}

/* --- the lease at the store's host --- */

static void lease_connected(void *ctx)
{
    struct membership *m = ctx;
    membership_send(m, m->lease, MSG_LEASE_REQUEST);
}

static void lease_failed(void *ctx, bool refused, const char *text)
{
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_LEASE_FAILED, .refused = refused, .text = text});
}

static void lease_message(void *ctx, const struct msg *msg)
{
    struct membership *m = ctx;
    if (msg->type == MSG_LEASE_GRANTED && !m->lease_held) {
        m->lease_held = true;
        membership_feed(m, &(struct member_event){.type = MEMBER_EV_LEASE_GRANTED});
    } else if (m->lease_held) {
        membership_feed(m, &(struct member_event){.type = MEMBER_EV_LEASE_MSG, .msg = msg});
    }
}

static void lease_closed(void *ctx, const char *text)
{
    struct membership *m = ctx;
    bool held = m->lease_held;
    m->lease_held = false;
    membership_feed(
        m, &(struct member_event){.type = held ? MEMBER_EV_LEASE_CLOSED : MEMBER_EV_LEASE_FAILED, .text = text});
}

static const struct link_ops lease_link = {
    .connected = lease_connected, .failed = lease_failed, .message = lease_message, .closed = lease_closed};

/* --- actions --- */

static void membership_leave(struct membership *m)
{
    coordinator_host_end(m->hosting);
    m->ops.exit(m->ctx, m->core.status, m->core.text);
}

static bool membership_is_needed(const struct membership *m)
{
    const struct coordinator *c = coordinator_host_coordinator(m->hosting);
    return c && coordinator_busy(c);
}

static void on_job_ended(void *ctx, const char *run_id, unsigned status)
{
    struct membership *m = ctx;
    (void)run_id, (void)status;
    if (m->exiting && !membership_is_needed(m))
        membership_leave(m);
}

/* A job whose last node has left, or could not start its workers, would only wait for its join time-out. */
static void on_staying(void *ctx)
{
    struct membership *m = ctx;
    if (!membership_is_needed(m))
        return;
    unsigned nodes = coordinator_members(coordinator_host_coordinator(m->hosting));
    if (!nodes || m->asked > 1)
        membership_leave(m);
    else if (loop_clock() < m->say_at)
        loop_timer_at(m->staying, m->say_at);
    else if (m->say_at)
        el_log(EL_INFO,
               "this node is done, but hosts the coordinator: it stays for %u other node%s, until the job has ended%s",
               nodes, nodes == 1 ? "" : "s", m->asked ? " or one more signal comes" : "");
    m->say_at = loop_clock() < m->say_at ? m->say_at : 0;
}

static void membership_on_report(void *ctx, const char *run_id, const struct msg *msg)
{
    struct membership *m = ctx;
    (void)run_id;
    m->ops.report(m->ctx, msg);
}

/* From within the coordinator: what follows from it is looked at in a later turn. */
static void on_coordinator_note(void *ctx, const char *run_id, const struct rdzv_note *note, int status)
{
    struct membership *m = ctx;
    m->ops.note(m->ctx, run_id, note, status);
    if (m->exiting)
        loop_timer_at(m->staying, loop_clock());
}

static void on_coordinator_began(void *ctx, const char *run_id, const struct rdzv_settings *set)
{
    struct membership *m = ctx;
    if (set->max > 1 && !m->conf.here_only)
        el_log(EL_INFO, "the network of this job is trusted: who reaches port %d here%s may join it", m->conf.port,
               m->conf.run->control_allow_n ? " from a network of --control-allow" : " (see --control-allow)");
    m->ops.began(m->ctx, run_id, set);
}

static void do_exit(struct membership *m)
{
    m->exiting = true;
    m->say_at = loop_clock() + MEMBERSHIP_STAY_SAID;
    loop_timer_at(m->staying, m->say_at);
    if (!m->core.end_told)
        link_disconnect(m->link); /* from here on the coordinator stays for the others only */
    if (!membership_is_needed(m))
        membership_leave(m);
}

static void membership_io_look(struct membership *m, struct link *k, enum member_event_type type)
{
    el_usec at = link_delivered(k);
    if (at)
        membership_feed(m, &(struct member_event){.type = type, .at = at});
}

void membership_look(struct membership *m)
{
    membership_io_look(m, m->link, MEMBER_EV_DELIVERED);
}

/* What has been taken until now is looked at before more is on its way. */
static void do_send(struct membership *m, enum msg_type what)
{
    if (what == MSG_HEARTBEAT)
        membership_look(m);
    membership_send(m, m->link, what);
}

static void do_lease_send(struct membership *m, enum msg_type what)
{
    membership_look(m);
    membership_io_look(m, m->lease, MEMBER_EV_LEASE_DELIVERED);
    membership_send(m, m->lease, what);
}

static void perform(struct membership *m, const struct member_action *a)
{
    switch (a->type) {
    case MEMBER_DO_CONNECT: link_connect(m->link, m->conf.host, m->conf.port); break;
    case MEMBER_DO_DISCONNECT:
        membership_say_trouble(m, m->core.trouble);
        link_disconnect(m->link);
        m->ops.logs(m->ctx, NULL);
        break;
    case MEMBER_DO_SEND: do_send(m, a->what); break;
    case MEMBER_DO_INCIDENTS: m->ops.incidents(m->ctx); break;
    case MEMBER_DO_OPEN_STORE: membership_open_store(m); break;
    case MEMBER_DO_CLOSE_STORE: membership_close_store(m); break;
    case MEMBER_DO_LEASE_REQUEST:
        m->lease_held = false;
        link_connect(m->lease, member_world(&m->core)->master_addr, (int)member_world(&m->core)->master_port);
        break;
    case MEMBER_DO_LEASE_RELEASE:
        m->lease_held = false;
        link_disconnect(m->lease);
        break;
    case MEMBER_DO_LEASE_SEND: do_lease_send(m, a->what); break;
    case MEMBER_DO_TENANTS_SEND: {
        struct msg msg = {0};
        member_message(&m->core, a->what, loop_clock(), &msg);
        lease_server_send(m->tenants, &msg);
        break;
    }
    case MEMBER_DO_START:
        if (m->store)
            store_server_world(m->store, (unsigned)member_world(&m->core)->world_size);
        m->ops.start(m->ctx);
        break;
    case MEMBER_DO_PROBE: m->ops.probe(m->ctx, m->probe); break;
    case MEMBER_DO_PROBE_STOP: m->ops.probe_stop(m->ctx); break;
    case MEMBER_DO_PROBE_TELL: m->ops.probe_tell(m->ctx, a->what == MSG_PROBE_ID); break;
    case MEMBER_DO_RESTORE: {
        const struct member_restore *x = &m->core.restore;
        m->ops.restore(m->ctx, &x->stock, x->text);
        break;
    }
    case MEMBER_DO_PARTS: m->ops.saving_tell(m->ctx, false); break;
    case MEMBER_DO_FILES: m->ops.saving_tell(m->ctx, true); break;
    case MEMBER_DO_WRITE:
    case MEMBER_DO_FILE:
    case MEMBER_DO_PUBLISH: m->ops.saving_order(m->ctx, m->order); break;
    case MEMBER_DO_COMMON: m->ops.common(m->ctx, &m->order->u.ckpt_common); break;
    case MEMBER_DO_DIFFER: m->ops.differ(m->ctx, &m->order->u.ckpt_differ); break;
    case MEMBER_DO_WORDS: m->ops.words(m->ctx, &m->order->u.ckpt_capture); break;
    case MEMBER_DO_WORDS_LOST: m->ops.words(m->ctx, NULL); break;
    case MEMBER_DO_UNSAVE: m->ops.unsave(m->ctx); break;
    case MEMBER_DO_SAVED: m->ops.saved(m->ctx, &m->core.save); break;
    case MEMBER_DO_GO: m->ops.go(m->ctx); break;
    case MEMBER_DO_RESTOCK: m->ops.restock(m->ctx); break;
    case MEMBER_DO_STOP: m->ops.stop(m->ctx, a->signal, a->grace); break;
    case MEMBER_DO_NOTICE: m->ops.notice(m->ctx, &m->core.notice, m->core.text); break;
    case MEMBER_DO_UNNOTICE: m->ops.notice(m->ctx, NULL, ""); break;
    case MEMBER_DO_SAY: m->ops.say(m->ctx, m->core.text); break;
    case MEMBER_DO_SAY_FENCED: {
        char text[MSG_TEXT_MAX + 1];
        el_log(EL_WARN, "%s", member_fence_text(&m->core, text));
        break;
    }
    case MEMBER_DO_EXIT: do_exit(m); break;
    }
}

/* --- what happens on this node --- */

static void membership_start(struct membership *m)
{
    m->began = loop_clock();
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_START});
}

/* Whether the coordinator is here has been seen. */
static void on_begun(void *ctx, bool taken, const struct el_err *e)
{
    struct membership *m = ctx;
    (void)taken; /* by another agent of this host, as a rule: the link finds out */
    m->core.conf.hosts_coordinator = coordinator_host_coordinator(m->hosting) != NULL;
    if (m->core.place == MEMBER_ENDED)
        return; /* a signal was quicker */
    if (e->status)
        m->ops.exit(m->ctx, (unsigned)e->status, e->text);
    else
        membership_start(m);
}

void membership_begin(struct membership *m)
{
    if (m->conf.hosts_coordinator)
        coordinator_host_begin(m->hosting);
    else
        membership_start(m);
}

void membership_started(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_STARTED});
}

void membership_aware(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_SUBSCRIBED});
}

void membership_live(struct membership *m, int64_t step, bool deaf, bool past)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_STEP_REPORT, .step = step, .deaf = deaf, .past = past});
}

void membership_at_boundary(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_AT_BOUNDARY});
}

void membership_probe_id(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_PROBE_ID});
}

void membership_probed(struct membership *m)
{
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_PROBED});
}

void membership_failed(struct membership *m, const struct member_incident *incident)
{
    m->failed = *incident;
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_WORKER_FAILED, .incident = &m->failed});
}

void membership_closed(struct membership *m, const struct member_event *closed)
{
    membership_feed(m, closed);
}

void membership_incident(struct membership *m, el_usec at, struct msg_incident *x)
{
    x->number = m->core.round.number;
    x->coord = m->core.round.coord;
    membership_on_clock(m, at, &x->time_us, &x->error_us);
    link_send(m->link, &(struct msg){.type = MSG_INCIDENT, .u.incident = *x});
}

void membership_on_clock(const struct membership *m, el_usec at, uint64_t *time_us, uint64_t *error_us)
{
    member_on_clock(&m->core, at, loop_clock(), time_us, error_us);
}

bool membership_is_late(const struct membership *m)
{
    return m->core.late;
}

bool membership_was_told(const struct membership *m)
{
    return m->core.end_told;
}

void membership_signal(struct membership *m, int signal)
{
    if (m->exiting) { /* no worker is left to be stopped */
        m->asked++;
        m->say_at = loop_clock();
        loop_timer_at(m->staying, m->say_at);
        return;
    }
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_SIGNAL, .signal = signal});
}

bool membership_stays(const struct membership *m)
{
    return m->exiting;
}

const struct msg_world *membership_world(const struct membership *m)
{
    return member_world(&m->core);
}

bool membership_hosts(const struct membership *m)
{
    return m->hosting && coordinator_host_coordinator(m->hosting);
}

void membership_logs(struct membership *m, const struct msg *msg)
{
    link_send(m->link, msg);
}

unsigned membership_readers(const struct membership *m)
{
    const struct coordinator *c = coordinator_host_coordinator(m->hosting);
    return c ? coordinator_readers(c) : 0;
}

const char *membership_state(const struct membership *m)
{
    return member_place_name(m->core.place);
}

/* --- beginning and end --- */

static struct coordinator_host *new_hosting(struct membership *m, struct el_err *e)
{
    static const struct coordinator_host_ops ops = {.begun = on_begun,
                                                    .note = on_coordinator_note,
                                                    .report = membership_on_report,
                                                    .job_began = on_coordinator_began,
                                                    .ended = on_job_ended,
                                                    .knock = membership_knock,
                                                    .admits = membership_admits};
    const struct rdzv_settings *set = &m->conf.member.set;
    el_usec join = EL_MS(set->join_timeout_ms), away = m->conf.member.coordinator_timeout;
    struct coordinator_host_conf conf = {.port = m->conf.port,
                                         .here_only = m->conf.here_only,
                                         .own_user = m->conf.run->store_allow != CONF_ALLOW_ANY,
                                         .allow = m->conf.run->control_allow,
                                         .allow_n = m->conf.run->control_allow_n,
                                         .run_id = m->conf.member.run_id,
                                         .command = m->conf.member.command,
                                         .instance = m->conf.member.instance,
                                         .look = m->conf.run->probe_look,
                                         .silence = EL_MS(set->keep_alive_ms * set->keep_alive_attempts),
                                         .keep = away > join ? away : join,
                                         .c10d_refused = MEMBERSHIP_NO_ROUND};
    return coordinator_host_new(m->loop, m->pool, &conf, &ops, m, e);
}

struct membership *membership_new(struct loop *l, struct pool *p, const struct membership_conf *conf,
                                  const struct membership_ops *ops, void *ctx, struct el_err *e)
{
    static const struct lease_server_ops tenants = {
        .knocks = membership_knocks, .heard = membership_tenant_heard, .reply = membership_tenant_reply};
    struct membership *m = calloc(1, sizeof *m);
    uint64_t chance = loop_clock();
    if (!m) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    m->conf = *conf;
    m->ops = *ops;
    m->ctx = ctx;
    m->loop = l;
    m->pool = p;
    ssize_t got = getrandom(&chance, sizeof chance, 0);
    (void)got;
    m->deadline = loop_timer_new(l, membership_on_deadline, m);
    m->staying = loop_timer_new(l, on_staying, m);
    m->link = link_new(l, p, &coordinator_link, m, e);
    m->lease = link_new(l, p, &lease_link, m, e);
    m->tenants = lease_server_new(l, &tenants, m, e);
    m->hosting = new_hosting(m, e);
    if (!m->deadline || !m->staying || !m->link || !m->lease || !m->tenants || !m->hosting) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        membership_free(m);
        return NULL;
    }
    struct member_conf mc = conf->member;
    member_init(&m->core, &mc, chance);
    return m;
}

void membership_free(struct membership *m)
{
    if (!m)
        return;
    peer_ident_forget(m->stranger);
    link_free(m->link);
    link_free(m->lease);
    if (m->tenants && m->hosting)
        membership_close_store(m);
    lease_server_free(m->tenants);
    coordinator_host_free(m->hosting);
    loop_timer_free(m->deadline);
    loop_timer_free(m->staying);
    free(m);
}
