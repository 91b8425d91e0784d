/* The store of the round where this node has it, and who may use it. */
#include <string.h>

#include "member/membership_private.h"

#define WAIT_REPORT EL_SEC(30) /* as NODE_WAIT_REPORT */

bool membership_knocks(void *ctx, const struct msg_lease_request *k)
{
    struct membership *m = ctx;
    struct member_round round = member_store_round(&m->core);
    return m->store && k->number == round.number && k->coord == round.coord && k->token == m->core.token &&
           strcmp(k->run_id, m->core.conf.run_id) == 0;
}

void membership_tenant_heard(void *ctx, const struct msg *msg)
{
    membership_feed(ctx, &(struct member_event){.type = MEMBER_EV_TENANT, .msg = msg});
}

void membership_tenant_reply(void *ctx, const struct msg_heartbeat *beat, struct msg *out)
{
    struct membership *m = ctx;
    membership_look(m); /* what is said of the coordinator must be of this moment */
    member_lease_reply(&m->core, beat, loop_clock(), out);
}

void membership_knock(void *ctx, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    struct membership *m = ctx;
    lease_server_accept(m->tenants, fd, peer, bytes, n);
}

bool membership_admits(void *ctx, const struct el_addr *peer)
{
    struct membership *m = ctx;
    const struct run_conf *run = m->conf.run;
    if (run->store_allow == CONF_ALLOW_ANY || el_addr_is_loopback(peer->ip))
        return true;
    if (run->store_allow == CONF_ALLOW_NET)
        return el_cidr_has(&run->store_net, peer->ip);
    return lease_server_has(m->tenants, peer);
}

static int open_own_store(struct membership *m, int port, struct el_err *e)
{
    struct store_server_conf conf = {
        .bind = "::",
        .port = port,
        .wait_report = WAIT_REPORT,
        .name = "worker store",
        .control = membership_knock,
        .admits = membership_admits,
        .own_user = m->conf.run->store_allow != CONF_ALLOW_ANY,
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

void membership_open_store(struct membership *m)
{
    int port, want = m->conf.run->master_port > 0 ? m->conf.run->master_port : 0;
    struct store_server *shared = coordinator_host_port(m->hosting);
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
    membership_feed(m, &(struct member_event){.type = MEMBER_EV_STORE,
                                              .ok = port > 0,
                                              .addr = announced(m, m->store_addr),
                                              .port = port > 0 ? (unsigned)port : 0,
                                              .text = e->text});
}

void membership_close_store(struct membership *m)
{
    struct el_err e = {0};
    lease_server_close(m->tenants);
    if (m->store && m->store == coordinator_host_port(m->hosting))
        store_server_c10d(m->store, MEMBERSHIP_NO_ROUND, &e);
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
