/* One of several nodes: between the node core of this process and its membership in the job. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf/conf_rdzv.h"
#include "agent/node.h"
#include "agent/say_once.h"
#include "sys/signame.h"
#include "util/sockaddr.h"

/* --- orders --- */

/* "; its log is HOST:PATH", where rank 0 is here and has one. */
static void name_log(const struct node *n, char *to, size_t size)
{
    char path[PATH_MAX] = "";
    size_t len;
    for (int which = 1; !*path && which <= 2; which++)
        output_kept(n->output, 0, which, path, sizeof path, NULL, &len);
    *to = 0;
    if (*path)
        snprintf(to, size, "; its log is %s:%s", n->host, path);
}

static void say_round(struct node *n, const struct msg_world *w)
{
    unsigned last = (unsigned)w->rank_base + n->nproc - 1;
    char log[PATH_MAX + 512] = "", why[MSG_TEXT_MAX + 1];
    snprintf(why, sizeof why, "%s", w->why ? w->why : "");
    bool left = !incident_printed_before(n) || incident_cut(n, why);
    if (left)
        left = say_once_cut(why, n->stop_said ? n->stop_why : NULL, false);
    if (!left && w->why && *w->why)
        snprintf(why, sizeof why, "restart %llu", (unsigned long long)w->restarts);
    n->stop_due = n->stop_said = false;
    n->stop_why[0] = 0;
    if (!w->rank_base)
        name_log(n, log, sizeof log);
    el_log(EL_INFO, "round %llu: node %llu of %llu, ranks %llu-%u of %llu; rank 0 is on %s%s%s%s",
           (unsigned long long)w->number, (unsigned long long)w->group_rank, (unsigned long long)w->group_size,
           (unsigned long long)w->rank_base, last, (unsigned long long)w->world_size, w->rank0_host, log,
           why[0] ? "; " : "", why);
}

void managed_prepared(struct node *n)
{
    say_round(n, membership_world(n->membership));
    logs_attempt(n);
}

static void on_start(void *ctx)
{
    struct node *n = ctx;
    unsigned restarts = (unsigned)membership_world(n->membership)->restarts;
    goodput_waited(&n->account, EL_MS(membership_world(n->membership)->waited_ms), loop_clock());
    n->fence_fell = false;
    node_feed(n, &(struct agent_event){.type = AGENT_EV_ATTEMPT, .restarts = restarts});
}

static void managed_on_stop(void *ctx, int signal, el_usec grace)
{
    worker_store_note_missing(ctx); /* the first failure is perhaps on another node, the round's store is here */
    int ending = signal == SIGTERM ? consequence_halting(ctx) : -1;
    node_feed(ctx, &(struct agent_event){.type = AGENT_EV_HALT,
                                         .signal = signal,
                                         .grace = grace,
                                         .waits = ending >= 0,
                                         .slot = ending >= 0 ? (unsigned)ending : 0});
}

/* On the node of rank 0, and on the coordinator's, the report tells more, and is near. */
static void on_say(void *ctx, const char *line)
{
    struct node *n = ctx;
    const char *why = say_once_stop(line);
    if (why)
        snprintf(n->stop_why, sizeof n->stop_why, "%s", why);
    n->stop_due = why && (!membership_world(n->membership)->rank_base || membership_hosts(n->membership));
    n->stop_said = why && !n->stop_due;
    if (n->stop_due)
        loop_timer_at(n->note_timer, loop_clock() + NODE_NOTE_TIME);
    else
        el_log(EL_INFO, "%s", line);
}

static void on_fence(void *ctx, el_usec at)
{
    struct node *n = ctx;
    n->fence_fell |= loop_clock() >= n->fence_at;
    n->fence_at = at > loop_clock() ? at : EL_NEVER; /* as the guard has it */
    if (n->guard)
        guard_fence(n->guard, at);
}

static void on_notice(void *ctx, const struct member_notice *notice, const char *text)
{
    struct node *n = ctx;
    if (notice && notice->boundary >= 0)
        el_log(EL_INFO, "stopping behind step %lld: %s", (long long)notice->boundary, text);
    ckpt_notice(n, notice);
}

static void managed_finish(struct node *n)
{
    node_feed(n, &(struct agent_event){.type = AGENT_EV_FINISH});
}

static void on_exit_order(void *ctx, unsigned status, const char *text)
{
    struct node *n = ctx;
    n->status = (int)status;
    snprintf(n->farewell, sizeof n->farewell, "%s", text);
    logs_leave(n, managed_finish);
}

static void on_probe(void *ctx, const struct msg_probe *order)
{
    struct node *n = ctx;
    health_order(n->health, order);
}

static void on_probe_stop(void *ctx)
{
    struct node *n = ctx;
    health_stop(n->health);
}

static void on_probe_tell(void *ctx, bool ids)
{
    struct node *n = ctx;
    health_tell(n->health, ids);
}

static void on_restore(void *ctx, const struct restore_stock *decided, const char *text)
{
    struct node *n = ctx;
    n->gone_back = decided->told;
    n->gone_fresh = decided->fresh;
    n->gone_attempt = decided->attempt;
    ckpt_decided(n, decided, text);
}

static void on_common(void *ctx, const struct msg_ckpt_common *c)
{
    ckpt_common(ctx, c);
}

static void managed_on_differ(void *ctx, const struct msg_ckpt_differ *ask)
{
    struct node *n = ctx;
    if (n->snapshots)
        replica_tables_asked(n, ask);
}

static void on_go(void *ctx)
{
    struct node *n = ctx;
    uint64_t lineage = snapshot_service_confirmed(n->snapshots, n->gone_attempt);
    flush_io_went_back(n, n->gone_back, lineage, false);
}

static void on_restock(void *ctx)
{
    struct node *n = ctx;
    snapshot_service_again(n->snapshots);
}

static void on_saving_tell(void *ctx, bool files)
{
    ckpt_writer_tell(ctx, files);
}

static void on_saving_order(void *ctx, const struct msg *msg)
{
    ckpt_writer_order(ctx, msg);
}

static void on_unsave(void *ctx)
{
    ckpt_writer_forget(ctx);
}

static void managed_on_saved(void *ctx, const struct member_save *save)
{
    ckpt_writer_over(ctx, save);
}

static void on_words(void *ctx, const struct msg_ckpt_capture *order)
{
    emergency_io_order(ctx, order);
}

static void on_verdict(void *ctx, const struct msg_probe_verdict *v)
{
    struct node *n = ctx;
    health_verdict(n->health, v);
}

static void managed_on_report(void *ctx, const struct msg *msg)
{
    struct node *n = ctx;
    if (msg->type == MSG_PROBE_PAGE)
        health_page(n->health, &msg->u.probe_page);
    else
        incident_report(n, msg);
}

static void on_logs(void *ctx, const struct msg *msg)
{
    logs_message(ctx, msg);
}

/* --- news --- */

void managed_note(struct node *n, unsigned slot)
{
    const struct failure *f = &n->worker[slot].failure;
    struct member_incident incident = {.time = f->at, .local_rank = slot, .code = -1, .signal = -1};
    char name[SIGNAME_MAX], took[32];
    if (n->core.hung) {
        incident.time = loop_clock();
        snprintf(incident.text, sizeof incident.text, "hung: no output and no processor time for %s",
                 goodput_duration(n->conf->hang_timeout, took, sizeof took));
    } else if (f->end == FAILURE_SIGNAL) {
        incident.signal = f->code;
        snprintf(incident.text, sizeof incident.text, "signal %d (%s)", f->code, signame(f->code, name));
    } else {
        incident.code = f->end == FAILURE_EXIT ? f->code : -1;
        snprintf(incident.text, sizeof incident.text, "exit code %d", f->code);
    }
    incident.late = consequence_is_late(n);
    membership_failed(n->membership, &incident);
}

/* What the end of the attempt is to the job, and what elrun would exit with if nobody said more. */
void managed_result(struct node *n)
{
    struct member_event ev = {
        .type = MEMBER_EV_CLOSED, .result = MEMBER_STOPPED, .stuck = n->core.group.stuck, .text = ""};
    ev.digest = n->core.collected ? &n->digest : NULL;
    struct el_buf text = EL_BUF_INIT(NULL, MSG_TEXT_MAX + 1);
    logs_attempt_ended(n);
    switch (n->core.cause) {
    case AGENT_SUCCESS: ev.result = MEMBER_SUCCESS; break;
    case AGENT_WORKER_FAILED:
        report_verdict(n, &text);
        ev.result = MEMBER_FAILED;
        ev.status = (unsigned)report_failure_status(n);
        ev.text = el_buf_cstr(&text);
        break;
    case AGENT_SPAWN_FAILED:
    case AGENT_PREPARE_FAILED:
        el_log(EL_ERROR, "%s", n->error.text);
        ev.result = MEMBER_UNABLE;
        ev.digest = NULL;
        ev.status = (unsigned)n->error.status;
        ev.text = n->error.text;
        break;
    case AGENT_STUCK:
        ev.stuck = true;
        ev.digest = NULL;
        ev.status = EL_EXIT_OSERR;
        ev.text = "a worker survives SIGKILL";
        break;
    case AGENT_LEAVING:
    case AGENT_HALTED:
    case AGENT_NO_CAUSE: break;
    }
    incident_closed(n, &ev);
    flush_io_ended(n);
    membership_closed(n->membership, &ev);
    el_buf_free(&text);
}

/* --- beginning --- */

static void managed_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%.*s", (int)size - 1, from ? from : "");
}

static int fill_member(struct node *n, struct member_conf *m, struct el_err *e)
{
    const struct run_conf *run = n->conf;
    managed_copy(m->run_id, sizeof m->run_id, workers_run_id(n));
    managed_copy(m->host, sizeof m->host, n->host);
    managed_copy(m->role, sizeof m->role, run->role);
    managed_copy(m->domain, sizeof m->domain, run->probe_domain);
    managed_copy(m->addr, sizeof m->addr, run->local_addr);
    endpoint_command(run, m->command, sizeof m->command);
    m->uid = getuid();
    m->pid = (uint64_t)getpid();
    m->node_rank = n->place.node_rank;
    m->slots = n->nproc;
    m->coordinator_timeout = run->coordinator_timeout;
    m->instance = n->coord;
    return rdzv_settings_from_conf(run, &m->set, e);
}

/* --- where the others are --- */

#define ADDRESSES_MAX 256

struct addresses {
    uint8_t list[ADDRESSES_MAX][16];
    size_t n;
};

/* What getaddrinfo says. */
static int managed_look_up(struct addresses *to, const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    int why = getaddrinfo(host, NULL, &hints, &all);
    if (why)
        return why;
    for (struct addrinfo *a = all; a && to->n < ADDRESSES_MAX; a = a->ai_next) {
        struct el_addr addr;
        if (el_addr_from_sockaddr(a->ai_addr, &addr))
            memcpy(to->list[to->n++], addr.ip, sizeof addr.ip);
    }
    freeaddrinfo(all);
    return 0;
}

/* The others would only find out when they want to connect.  A name server that has no answer now may have one then. */
static int check_local_addr(const struct node *n, struct el_err *e)
{
    const char *addr = n->conf->local_addr;
    struct addresses found = {.n = 0};
    int why = addr && strcmp(addr, n->host) != 0 ? managed_look_up(&found, addr) : 0;
    if (why != EAI_NONAME && why != EAI_NODATA)
        return 0;
    return el_fail(e, EL_EXIT_CONFIG, "--local-addr=%.200s: there is no host of that name", addr);
}

static bool managed_is_host(void *ctx, const struct el_addr *at, size_t n)
{
    struct node *node = ctx;
    struct addresses own, found = {.n = 0};
    struct endpoint place = node->place;
    struct el_err e = {0};
    for (size_t i = 0; i < n && found.n < ADDRESSES_MAX; i++)
        memcpy(found.list[found.n++], at[i].ip, sizeof at[i].ip);
    own.n = el_addr_own(own.list, ADDRESSES_MAX);
    struct endpoint_facts facts = {.hostname = node->host,
                                   .own = (const uint8_t(*)[16])own.list,
                                   .own_n = own.n,
                                   .found = (const uint8_t(*)[16])found.list,
                                   .found_n = found.n};
    return endpoint_place(node->conf, &facts, &place, &e) == 0 && place.kind == ENDPOINT_HOST;
}

/* Before the loop and with signals as they were: a name server that is slow here can be interrupted. */
int managed_find(struct node *n, struct el_err *e)
{
    struct addresses own = {.n = 0}, found = {.n = 0};
    if (endpoint_choose(n->conf, n->env, getuid(), &n->place, e) < 0)
        return -1;
    if (n->place.kind == ENDPOINT_ALONE)
        return 0;
    own.n = el_addr_own(own.list, ADDRESSES_MAX);
    struct endpoint_facts facts = {.hostname = n->host, .own = (const uint8_t(*)[16])own.list, .own_n = own.n};
    if (check_local_addr(n, e) < 0)
        return -1;
    if (endpoint_wants_lookup(&n->place, &facts) || endpoint_wants_proof(&n->place, &facts))
        (void)managed_look_up(&found, n->place.host); /* if not yet: the link asks again each time */
    facts.found = (const uint8_t(*)[16])found.list;
    facts.found_n = found.n;
    return endpoint_place(n->conf, &facts, &n->place, e);
}

int managed_init(struct node *n, struct el_err *e)
{
    static const struct membership_ops ops = {.start = on_start,
                                              .stop = managed_on_stop,
                                              .is_host = managed_is_host,
                                              .notice = on_notice,
                                              .fence = on_fence,
                                              .exit = on_exit_order,
                                              .say = on_say,
                                              .incidents = incident_tell,
                                              .report = managed_on_report,
                                              .probe = on_probe,
                                              .probe_stop = on_probe_stop,
                                              .probe_tell = on_probe_tell,
                                              .restore = on_restore,
                                              .go = on_go,
                                              .restock = on_restock,
                                              .saving_tell = on_saving_tell,
                                              .saving_order = on_saving_order,
                                              .unsave = on_unsave,
                                              .saved = managed_on_saved,
                                              .common = on_common,
                                              .differ = managed_on_differ,
                                              .words = on_words,
                                              .verdict = on_verdict,
                                              .logs = on_logs,
                                              .note = emit_job_note,
                                              .began = emit_job_began};
    struct membership_conf *conf = logs_init(n, e) == 0 && incident_init(n, e) == 0 ? calloc(1, sizeof *conf) : NULL;
    if (!conf)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    conf->run = n->conf;
    conf->host = n->place.host;
    conf->port = (int)n->place.port;
    conf->is_static = n->place.is_static;
    /* Static: node 0's process has the port, for the store that it will host; not another agent on the same host. */
    conf->hosts_coordinator = n->place.kind == ENDPOINT_HOST && (!n->place.is_static || n->place.node_rank == 0);
    conf->here_only = n->place.here_only;
    conf->announce_hostname = n->conf->use_hostname;
    conf->hostname = n->host;
    conf_say_idle_keys(n->conf);
    if (n->place.note[0])
        el_log(EL_INFO, "%s", n->place.note);
    int bad = fill_member(n, &conf->member, e);
    if (!bad)
        n->membership = membership_new(n->loop, n->pool, conf, &ops, n, e);
    free(conf);
    return n->membership ? 0 : -1;
}
