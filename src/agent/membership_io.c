#include "agent/membership.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/hosting.h"
#include "agent/tenants.h"
#include "rdzv/link.h"
#include "rdzv/stranger.h"
#include "store/server.h"
#include "util/log.h"

#define MEMBERSHIP_QUEUE_MAX   16
#define MEMBERSHIP_WAIT_REPORT EL_SEC(30) /* as NODE_WAIT_REPORT */
#define MEMBERSHIP_STAY_SAID   EL_SEC(1)  /* at a job's ordinary end the others follow sooner */
#define TROUBLE_AFTER          EL_SEC(1)
#define NO_ROUND               "no round has its store here"

struct membership {
    struct membership_conf conf;
    struct membership_ops ops;
    void *ctx;
    struct loop *loop;
    struct pool *pool;
    struct member core;
    struct member_event queue[MEMBERSHIP_QUEUE_MAX]; /* answers that came while a step was being carried out */
    unsigned queued;
    bool stepping;
    struct loop_timer *deadline, *staying;

    struct link *link, *lease;
    bool lease_held; /* KNOCK_OK has come */
    struct tenants *tenants;
    struct store_server *store; /* of the round; may be `port` */
    struct hosting *hosting;
    char store_addr[EL_ADDR_TEXT_MAX]; /* what an answer that waits in the queue points to */
    struct el_err store_error;
    bool exiting;              /* the coordinator is what we stay for */
    el_usec say_at;            /* that it stays; 0: has been said */
    bool answered;             /* a coordinator, if only to refuse */
    struct stranger *stranger; /* being asked what it is */
    bool is_store;             /* its answer */
    el_usec began;
    char trouble[256]; /* said last; see say_trouble() */
    el_usec fence;     /* told last */
};

/* --- the core --- */

static void perform(struct membership *m, const struct member_action *a);

static void feed(struct membership *m, const struct member_event *ev)
{
    if (m->stepping) {
        assert(m->queued < MEMBERSHIP_QUEUE_MAX && !ev->msg && !ev->incident);
        m->queue[m->queued++] = *ev;
        return;
    }
    m->stepping = true;
    struct member_actions out = {0};
    member_step(&m->core, ev, loop_clock(), &out);
    member_check(&m->core);
    for (;;) {
        for (unsigned i = 0; i < out.n; i++)
            perform(m, &out.v[i]);
        if (!m->queued)
            break;
        struct member_event next = m->queue[0];
        memmove(m->queue, m->queue + 1, --m->queued * sizeof m->queue[0]);
        out.n = 0;
        member_step(&m->core, &next, loop_clock(), &out);
        member_check(&m->core);
    }
    m->stepping = false;
    loop_timer_at(m->deadline, member_deadline(&m->core));
    el_usec fence = member_fence_at(&m->core);
    if (fence != m->fence)
        m->ops.fence(m->ctx, m->fence = fence);
}

static void on_deadline(void *ctx)
{
    feed(ctx, &(struct member_event){.type = MEMBER_EV_TIMEOUT});
}

/* --- the link to the coordinator --- */

static void link_connected(void *ctx)
{
    feed(ctx, &(struct member_event){.type = MEMBER_EV_CONNECTED});
}

/* Nobody has answered yet, for longer than hosts of one job take to start: say why, once for each reason. */
static void say_trouble(struct membership *m, const char *text)
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
    say_trouble(ctx, text);
    feed(ctx, &(struct member_event){.type = MEMBER_EV_CONNECT_FAILED, .refused = refused, .text = text});
}

static void link_message(void *ctx, const struct msg *msg)
{
    struct membership *m = ctx;
    m->answered = true;
    if (msg->type == MSG_LOGS || msg->type == MSG_LOGS_NEXT) {
        m->ops.logs(m->ctx, msg); /* nothing that the core decides */
        return;
    }
    if (msg->type == MSG_REPORT || msg->type == MSG_REPORT_ROW) {
        m->ops.report(m->ctx, msg);
        return;
    }
    feed(ctx, &(struct member_event){.type = MEMBER_EV_MSG, .msg = msg});
}

/* The next attempt will say so, or ask again. */
static void stranger_answered(void *ctx, bool is_store)
{
    struct membership *m = ctx;
    m->is_store = is_store;
    stranger_forget(m->stranger);
    m->stranger = NULL;
}

static void link_closed(void *ctx, const char *text)
{
    struct membership *m = ctx;
    char early[256];
    m->ops.logs(m->ctx, NULL);
    if (!m->core.ever && !m->answered && !link_spoke(m->link)) { /* as stores do with what they do not know */
        if (!m->stranger && !m->is_store)
            m->stranger = stranger_ask(m->pool, m->conf.host, m->conf.port, stranger_answered, m);
        snprintf(early, sizeof early, "%.100s without a word: " STRANGER_MUTE, text);
        text = m->is_store ? STRANGER_STORE : early;
    }
    say_trouble(m, text);
    feed(m, &(struct member_event){.type = MEMBER_EV_LINK_CLOSED, .text = text});
}

/* A name that had no answer at the start may turn out to be this host's; and who had the port of this host may have
 * died since. */
static void link_resolved(void *ctx, const struct el_addr *found, size_t n)
{
    struct membership *m = ctx;
    if (m->core.leaving || m->core.ended || !m->ops.is_host(m->ctx, found, n))
        return;
    if (m->conf.is_static && m->conf.member.node_rank != 0)
        return; /* node 0's process has the port: its store will be there, too */
    m->core.conf.hosts_coordinator = hosting_take_over(m->hosting);
}

static const struct link_ops coordinator_link = {.resolved = link_resolved,
                                                 .connected = link_connected,
                                                 .failed = link_failed,
                                                 .message = link_message,
                                                 .closed = link_closed};

static void send(struct membership *m, struct link *to, enum msg_type what)
{
    struct msg msg = {0};
    member_message(&m->core, what, loop_clock(), &msg);
    link_send(to, &msg);
}

/* --- the lease at the store's host --- */

static void lease_connected(void *ctx)
{
    struct membership *m = ctx;
    send(m, m->lease, MSG_KNOCK);
}

static void lease_failed(void *ctx, bool refused, const char *text)
{
    feed(ctx, &(struct member_event){.type = MEMBER_EV_KNOCK_FAILED, .refused = refused, .text = text});
}

static void lease_message(void *ctx, const struct msg *msg)
{
    struct membership *m = ctx;
    if (msg->type == MSG_KNOCK_OK && !m->lease_held) {
        m->lease_held = true;
        feed(m, &(struct member_event){.type = MEMBER_EV_KNOCK_OK});
    } else if (m->lease_held) {
        feed(m, &(struct member_event){.type = MEMBER_EV_LEASE_MSG, .msg = msg});
    }
}

static void lease_closed(void *ctx, const char *text)
{
    struct membership *m = ctx;
    bool held = m->lease_held;
    m->lease_held = false;
    feed(m, &(struct member_event){.type = held ? MEMBER_EV_LEASE_CLOSED : MEMBER_EV_KNOCK_FAILED, .text = text});
}

static const struct link_ops lease_link = {
    .connected = lease_connected, .failed = lease_failed, .message = lease_message, .closed = lease_closed};

/* --- the store of the round, and who may use it --- */

static bool knocks(void *ctx, const struct msg_knock *k)
{
    struct membership *m = ctx;
    struct member_round round = member_store_round(&m->core);
    return m->store && k->number == round.number && k->coord == round.coord && k->token == m->core.token &&
           strcmp(k->run_id, m->core.conf.run_id) == 0;
}

static void tenant_heard(void *ctx, const struct msg *msg)
{
    feed(ctx, &(struct member_event){.type = MEMBER_EV_TENANT, .msg = msg});
}

static void tenant_reply(void *ctx, const struct msg_beat *beat, struct msg *out)
{
    (void)ctx;
    member_lease_reply(beat, loop_clock(), out);
}

static void knock(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    struct membership *m = ctx;
    tenants_accept(m->tenants, fd, peer, bytes, n);
}

static bool admits(void *ctx, const struct el_addr *peer)
{
    struct membership *m = ctx;
    const struct run_conf *run = m->conf.run;
    if (run->store_allow == CONF_ALLOW_ANY || el_addr_is_loopback(peer->ip))
        return true;
    if (run->store_allow == CONF_ALLOW_NET)
        return el_cidr_has(&run->store_net, peer->ip);
    return tenants_has(m->tenants, peer);
}

static int open_own_store(struct membership *m, int port, struct el_err *e)
{
    struct store_server_conf conf = {
        .bind = "::",
        .port = port,
        .wait_report = MEMBERSHIP_WAIT_REPORT,
        .name = "worker store",
        .control = knock,
        .admits = admits,
        .control_ctx = m,
    };
    m->store = store_server_new(m->loop, &conf, e);
    return m->store ? store_server_port(m->store) : -1;
}

/* The address under which the others reach this node.  "": our connection to the coordinator is local, so it says
 * nothing about that; the coordinator knows at which address it is reached. */
static const char *announced(const struct membership *m, char text[EL_ADDR_TEXT_MAX])
{
    struct el_addr local;
    if (m->conf.is_static) /* as torchrun: exactly what all nodes were given, which they have reached already */
        return m->conf.host;
    if (m->conf.run->local_addr)
        return m->conf.run->local_addr;
    if (m->conf.announce_hostname)
        return m->conf.hostname;
    if (!link_addresses(m->link, &local, NULL) || link_is_local(m->link))
        return "";
    local.port = 0;
    return el_addr_text(&local, text);
}

static void open_store(struct membership *m)
{
    int port, want = m->conf.run->master_port > 0 ? m->conf.run->master_port : 0;
    struct store_server *shared = hosting_port(m->hosting);
    struct el_err *e = &m->store_error;
    *e = (struct el_err){0};
    if (shared && m->conf.is_static)
        want = m->conf.port;
    if (shared && want == m->conf.port) { /* one port for coordinator and store: static mode, or the user's wish */
        port = store_server_c10d(shared, NULL, e) == 0 ? want : -1;
        m->store = port > 0 ? shared : NULL;
    } else {
        port = open_own_store(m, want, e);
    }
    feed(m, &(struct member_event){.type = MEMBER_EV_STORE,
                                   .ok = port > 0,
                                   .addr = announced(m, m->store_addr),
                                   .port = port > 0 ? (unsigned)port : 0,
                                   .text = e->text});
}

static void close_store(struct membership *m)
{
    struct el_err e = {0};
    tenants_close(m->tenants);
    if (m->store && m->store == hosting_port(m->hosting))
        store_server_c10d(m->store, NO_ROUND, &e);
    else
        store_server_free(m->store);
    m->store = NULL;
}

void membership_missing(struct membership *m, struct el_buf *out)
{
    if (m->store)
        store_server_missing(m->store, out);
}

void membership_worker(struct membership *m, int pid, unsigned rank)
{
    if (m->store)
        store_server_worker(m->store, (uint32_t)pid, rank);
}

/* --- actions --- */

static void leave(struct membership *m)
{
    hosting_end(m->hosting);
    m->ops.exit(m->ctx, m->core.status, m->core.text);
}

static bool is_needed(const struct membership *m)
{
    const struct coordinator *c = hosting_coordinator(m->hosting);
    return c && coordinator_busy(c);
}

static void on_job_ended(void *ctx, const char *run_id, unsigned status)
{
    struct membership *m = ctx;
    (void)run_id, (void)status;
    if (m->exiting && !is_needed(m))
        leave(m);
}

/* A job whose last node has left would only wait for its join time-out. */
static void on_staying(void *ctx)
{
    struct membership *m = ctx;
    if (!is_needed(m))
        return;
    unsigned nodes = coordinator_members(hosting_coordinator(m->hosting));
    if (m->core.leaving && !nodes)
        leave(m);
    else if (loop_clock() < m->say_at)
        loop_timer_at(m->staying, m->say_at);
    else if (m->say_at)
        el_log(EL_INFO,
               "this node is done, but hosts the coordinator: it stays for %u other node%s, until the job has ended",
               nodes, nodes == 1 ? "" : "s");
    m->say_at = loop_clock() < m->say_at ? m->say_at : 0;
}

static void on_report(void *ctx, const char *run_id, const struct msg *msg)
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
    m->ops.began(m->ctx, run_id, set);
}

static void do_exit(struct membership *m)
{
    m->exiting = true;
    m->say_at = loop_clock() + MEMBERSHIP_STAY_SAID;
    loop_timer_at(m->staying, m->say_at);
    if (m->core.leaving)
        link_disconnect(m->link); /* the coordinator has answered; from here on it stays for the others only */
    if (!is_needed(m))
        leave(m);
}

static void do_send(struct membership *m, enum msg_type what)
{
    el_usec at = what == MSG_BEAT ? link_delivered(m->link) : 0;
    if (at)
        feed(m, &(struct member_event){.type = MEMBER_EV_DELIVERED, .at = at});
    send(m, m->link, what);
}

static void perform(struct membership *m, const struct member_action *a)
{
    switch (a->type) {
    case MEMBER_DO_CONNECT: link_connect(m->link, m->conf.host, m->conf.port); break;
    case MEMBER_DO_DISCONNECT:
        say_trouble(m, m->core.trouble);
        link_disconnect(m->link);
        m->ops.logs(m->ctx, NULL);
        break;
    case MEMBER_DO_SEND: do_send(m, a->what); break;
    case MEMBER_DO_INCIDENTS: m->ops.incidents(m->ctx); break;
    case MEMBER_DO_OPEN_STORE: open_store(m); break;
    case MEMBER_DO_CLOSE_STORE: close_store(m); break;
    case MEMBER_DO_KNOCK:
        m->lease_held = false;
        link_connect(m->lease, member_world(&m->core)->master_addr, (int)member_world(&m->core)->master_port);
        break;
    case MEMBER_DO_UNKNOCK:
        m->lease_held = false;
        link_disconnect(m->lease);
        break;
    case MEMBER_DO_LEASE_SEND: send(m, m->lease, a->what); break;
    case MEMBER_DO_TENANTS_SEND: {
        struct msg msg = {0};
        member_message(&m->core, a->what, loop_clock(), &msg);
        tenants_send(m->tenants, &msg);
        break;
    }
    case MEMBER_DO_START:
        if (m->store)
            store_server_world(m->store, (unsigned)member_world(&m->core)->world_size);
        m->ops.start(m->ctx);
        break;
    case MEMBER_DO_STOP: m->ops.stop(m->ctx, a->signal, a->grace); break;
    case MEMBER_DO_NOTICE: m->ops.notice(m->ctx, m->core.text); break;
    case MEMBER_DO_SAY: el_log(EL_INFO, "%s", m->core.text); break;
    case MEMBER_DO_SAY_FENCED: {
        char text[MSG_TEXT_MAX + 1];
        el_log(EL_WARN, "%s", member_fence_text(&m->core, text));
        break;
    }
    case MEMBER_DO_EXIT: do_exit(m); break;
    }
}

/* --- what happens on this node --- */

static void start(struct membership *m)
{
    m->began = loop_clock();
    feed(m, &(struct member_event){.type = MEMBER_EV_START});
}

/* Whether the coordinator is here has been seen. */
static void on_begun(void *ctx, bool taken, const struct el_err *e)
{
    struct membership *m = ctx;
    (void)taken; /* by another agent of this host, as a rule: the link finds out */
    m->core.conf.hosts_coordinator = hosting_coordinator(m->hosting) != NULL;
    if (m->core.place == MEMBER_ENDED)
        return; /* a signal was quicker */
    if (e->status)
        m->ops.exit(m->ctx, (unsigned)e->status, e->text);
    else
        start(m);
}

void membership_begin(struct membership *m)
{
    if (m->conf.hosts_coordinator)
        hosting_begin(m->hosting);
    else
        start(m);
}

void membership_started(struct membership *m)
{
    feed(m, &(struct member_event){.type = MEMBER_EV_STARTED});
}

void membership_failed(struct membership *m, const struct member_incident *incident)
{
    feed(m, &(struct member_event){.type = MEMBER_EV_WORKER_FAILED, .incident = incident});
}

void membership_closed(struct membership *m, const struct member_event *closed)
{
    feed(m, closed);
}

void membership_incident(struct membership *m, el_usec at, struct msg_incident *x)
{
    x->number = m->core.round.number;
    x->coord = m->core.round.coord;
    member_on_clock(&m->core, at, loop_clock(), &x->time_us, &x->error_us);
    link_send(m->link, &(struct msg){.type = MSG_INCIDENT, .u.incident = *x});
}

bool membership_was_told(const struct membership *m)
{
    return m->core.end_told;
}

void membership_signal(struct membership *m, int signal)
{
    feed(m, &(struct member_event){.type = MEMBER_EV_SIGNAL, .signal = signal});
}

const struct msg_world *membership_world(const struct membership *m)
{
    return member_world(&m->core);
}

uint64_t membership_coord(const struct membership *m)
{
    return m->core.round.coord;
}

void membership_logs(struct membership *m, const struct msg *msg)
{
    link_send(m->link, msg);
}

unsigned membership_readers(const struct membership *m)
{
    const struct coordinator *c = hosting_coordinator(m->hosting);
    return c ? coordinator_readers(c) : 0;
}

const char *membership_state(const struct membership *m)
{
    return member_place_name(m->core.place);
}

/* --- beginning and end --- */

static struct hosting *new_hosting(struct membership *m, struct el_err *e)
{
    static const struct hosting_ops ops = {.begun = on_begun,
                                           .note = on_coordinator_note,
                                           .report = on_report,
                                           .job_began = on_coordinator_began,
                                           .ended = on_job_ended,
                                           .knock = knock,
                                           .admits = admits};
    const struct rdzv_settings *set = &m->conf.member.set;
    el_usec join = EL_MS(set->join_timeout_ms), away = m->conf.member.coordinator_timeout;
    struct hosting_conf conf = {.port = m->conf.port,
                                .here_only = m->conf.here_only,
                                .run_id = m->conf.member.run_id,
                                .command = m->conf.member.command,
                                .instance = m->conf.member.instance,
                                .silence = EL_MS(set->keep_alive_ms * set->keep_alive_attempts),
                                .keep = away > join ? away : join,
                                .c10d_refused = NO_ROUND};
    return hosting_new(m->loop, m->pool, &conf, &ops, m, e);
}

struct membership *membership_new(struct loop *l, struct pool *p, const struct membership_conf *conf,
                                  const struct membership_ops *ops, void *ctx, struct el_err *e)
{
    static const struct tenants_ops tenants = {.knocks = knocks, .heard = tenant_heard, .reply = tenant_reply};
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
    m->deadline = loop_timer_new(l, on_deadline, m);
    m->staying = loop_timer_new(l, on_staying, m);
    m->link = link_new(l, p, &coordinator_link, m, e);
    m->lease = link_new(l, p, &lease_link, m, e);
    m->tenants = tenants_new(l, &tenants, m, e);
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
    stranger_forget(m->stranger);
    link_free(m->link);
    link_free(m->lease);
    if (m->tenants && m->hosting)
        close_store(m);
    tenants_free(m->tenants);
    hosting_free(m->hosting);
    loop_timer_free(m->deadline);
    loop_timer_free(m->staying);
    free(m);
}
