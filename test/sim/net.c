/* Connections between agents and the coordinator, and between the nodes of a round (leases). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

static uint64_t conn_new(struct cluster *c, uint32_t agent, uint32_t host, bool lease)
{
    if (c->conns == c->conns_room) {
        c->conns_room = c->conns_room ? 2 * c->conns_room : 1024;
        c->conn = realloc(c->conn, c->conns_room * sizeof *c->conn);
        if (!c->conn)
            abort();
    }
    if (!c->conns)
        c->conns = 1; /* 0 is none */
    struct cluster_conn *k = &c->conn[c->conns];
    *k = (struct cluster_conn){.open = {true, true},
                               .lease = lease,
                               .agent = agent,
                               .host = host,
                               .member = RDZV_NONE,
                               .agent_life = c->agent[agent].life};
    k->host_life = host == CLUSTER_COORD ? c->coord_life : c->agent[host].life;
    return c->conns++;
}

/* Until when the way is cut: at the agent's network, or at that of the host of a lease. */
static el_usec cut_until(const struct cluster *c, const struct cluster_conn *k, bool from_agent)
{
    const struct cluster_agent *a = &c->agent[k->agent];
    el_usec at = a->cut[k->lease][from_agent ? 0 : 1];
    if (!k->lease && a->swallow > at)
        at = a->swallow;
    if (k->host != CLUSTER_COORD) {
        el_usec other = c->agent[k->host].cut[1][from_agent ? 1 : 0];
        at = other > at ? other : at;
    }
    return at;
}

void net_connect(struct cluster *c, uint32_t who, bool lease)
{
    struct cluster_agent *a = &c->agent[who];
    uint32_t host = CLUSTER_COORD;
    bool listens = c->coord_up;
    a->sent++; /* an attempt is traffic too */
    if (lease) {
        host = (uint32_t)a->m.world.master_port - 1;
        const struct member *h = &c->agent[host].m;
        listens = c->agent[host].up && h->store.number == a->m.round.number && h->store.coord == a->m.round.coord;
    }
    uint64_t id = conn_new(c, who, host, lease);
    *(lease ? &a->lease : &a->link) = id;
    if (!lease)
        a->acked = 0;
    if (a->rejects[lease] > c->now)
        listens = false;
    bool taken =
        a->rejects[lease] <= c->now && !lease && a->swallow > c->now; /* by the proxy, whoever listens behind it */
    bool silent = cut_until(c, &c->conn[id], true) > c->now || cut_until(c, &c->conn[id], false) > c->now;
    if (silent && !taken && a->rejects[lease] <= c->now)
        return; /* the core has a limit for that */
    struct cluster_item *it = cluster_push(c, c->now + 2 * cluster_delay(c), CLUSTER_CONNECTED, who);
    it->conn = id;
    it->ok = listens || taken;
    it->taken = taken;
    it->life = a->life;
}

void net_connected(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_conn *k = &c->conn[it->conn];
    bool current = a->up && a->life == it->life && (k->lease ? a->lease : a->link) == it->conn && k->open[0];
    if (!current)
        return;
    bool good = it->ok && (it->taken  ? true
                           : k->lease ? c->agent[k->host].life == k->host_life && c->agent[k->host].up
                                      : c->coord_up && c->coord_life == k->host_life);
    struct member_event ev = {.refused = !good, .text = good ? NULL : "refused"};
    if (k->lease)
        ev.type = good ? MEMBER_EV_LEASE_GRANTED : MEMBER_EV_LEASE_FAILED;
    else
        ev.type = good ? MEMBER_EV_CONNECTED : MEMBER_EV_CONNECT_FAILED;
    if (!good)
        k->open[0] = k->open[1] = false;
    cluster_feed(c, it->who, &ev);
}

/* What is on its way must not point into a core: its strings are not looked at, but for the few that matter. */
static void strip(struct cluster_item *it)
{
    struct msg *m = &it->msg;
    char *steps = it->steps;
    switch ((unsigned)m->type) {
    case MSG_WAIT: m->u.wait.text = ""; break;
    case MSG_KEEP: m->u.keep.text = ""; break;
    case MSG_STOP: m->u.stop.text = ""; break;
    case MSG_NOTICE: m->u.notice.text = ""; break;
    case MSG_WORLD:
        m->u.world.master_addr = "10.0.0.1";
        m->u.world.rank0_host = m->u.world.why = m->u.world.successors = "";
        break;
    case MSG_END: m->u.end.text = m->u.end.cause = ""; break;
    case MSG_REFUSED: m->u.refused.text = ""; break;
    case MSG_LEAVE_ACK: m->u.leave_ack.text = ""; break;
    case MSG_HELLO: m->u.hello.master_addr = "10.0.0.1"; break;
    case MSG_STORE_READY: m->u.store_ready.addr = "10.0.0.1"; break;
    case MSG_WORKER_FAILED: m->u.worker_failed.text = ""; break;
    case MSG_STOPPED: m->u.stopped.ranks = m->u.stopped.missing = ""; break;
    case MSG_PROBE:
        m->u.probe.text = m->u.probe.local = "";
        m->u.probe.ids = m->u.probe.ids && *m->u.probe.ids ? "0=x" : "";
        m->u.probe.peer = probes_host(m->u.probe.peer ? m->u.probe.peer : "h0");
        break;
    case MSG_PROBE_VERDICT: m->u.probe_verdict.text = m->u.probe_verdict.job = m->u.probe_verdict.name = ""; break;
    case MSG_RESTORE: m->u.restore.text = ""; break;
    case MSG_CKPT_INVENTORY:
        m->u.ckpt_inventory.text = "";
        snprintf(steps, sizeof it->steps, "%s", m->u.ckpt_inventory.steps);
        m->u.ckpt_inventory.steps = "";
        break;
    case MSG_CKPT_PART:
    case MSG_CKPT_STATE:
    case MSG_CKPT_FILE:
    case MSG_CKPT_WRITE:
    case MSG_CKPT_PUBLISH:
    case MSG_CKPT_OVER:
    case MSG_CKPT_TAKEN:
    case MSG_CKPT_COMMON:
    case MSG_EMERGENCY_STATE: saves_pack(it); break;
    case MSG_NO_STORE: m->u.no_store.text = ""; break;
    case MSG_LEASE_FAILED: m->u.lease_failed.text = ""; break;
    case MSG_LEAVING: m->u.leaving.text = ""; break;
    default: break;
    }
}

static struct cluster_item *on_its_way(struct cluster *c, uint64_t conn, bool from_agent)
{
    struct cluster_conn *k = &c->conn[conn];
    el_usec at = c->now + cluster_delay(c);
    at = at < k->last[from_agent] ? k->last[from_agent] : at; /* in order */
    k->last[from_agent] = at;
    struct cluster_item *it = cluster_push(c, at, CLUSTER_ARRIVE, from_agent ? k->host : k->agent);
    it->conn = conn;
    it->to_coord = from_agent;
    it->serial = k->sent[from_agent]++;
    it->sent_at = c->now;
    return it;
}

void net_send(struct cluster *c, uint64_t conn, bool from_agent, const struct msg *m)
{
    if (!conn || !c->conn[conn].open[from_agent ? 0 : 1])
        return;
    struct cluster_item *it = on_its_way(c, conn, from_agent);
    it->msg = *m;
    strip(it);
    const struct cluster_conn *k = &c->conn[conn];
    if (!from_agent || k->lease || c->agent[k->agent].swallow <= c->now)
        return;
    struct cluster_item *ack = cluster_push(c, c->now + cluster_delay(c), CLUSTER_ACKED, k->agent);
    ack->conn = conn;
    ack->sent_at = c->now;
}

void net_close(struct cluster *c, uint64_t conn, bool by_agent, bool silently)
{
    if (!conn || !c->conn[conn].open[by_agent ? 0 : 1])
        return;
    c->conn[conn].open[by_agent ? 0 : 1] = false;
    if (!silently && c->conn[conn].open[by_agent ? 1 : 0])
        on_its_way(c, conn, by_agent)->fin = true;
}

void net_agent_died(struct cluster *c, uint32_t who, bool silently)
{
    for (uint64_t i = 1; i < c->conns; i++) {
        const struct cluster_conn *k = &c->conn[i];
        if (k->agent == who)
            net_close(c, i, true, silently);
        else if (k->host == who)
            net_close(c, i, false, silently);
    }
}

void net_tenants(struct cluster *c, uint32_t host, enum msg_type what)
{
    const struct member *h = &c->agent[host].m;
    struct msg m = {.type = what};
    m.u.round_over = (struct msg_round_over){h->round.number, h->round.coord};
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t k = c->agent[i].lease;
        if (!k || c->conn[k].host != host || !c->conn[k].open[1])
            continue;
        if (what == MSG_NONE)
            net_close(c, k, false, false);
        else
            net_send(c, k, false, &m);
    }
}

static void at_lease_host(struct cluster *c, const struct cluster_item *it, struct cluster_conn *k)
{
    struct cluster_agent *h = &c->agent[k->host];
    if (!h->up || h->life != k->host_life)
        return;
    if (it->fin) {
        k->open[1] = false;
        return;
    }
    if (it->msg.type == MSG_HEARTBEAT) { /* in the order of the shell */
        struct msg reply;
        net_look(c, k->host);
        member_lease_reply(&h->m, &it->msg.u.heartbeat, c->now, &reply);
        net_send(c, it->conn, false, &reply);
    }
    cluster_feed(c, k->host, &(struct member_event){.type = MEMBER_EV_TENANT, .msg = &it->msg});
}

static void at_coordinator(struct cluster *c, const struct cluster_item *it, struct cluster_conn *k)
{
    if (!c->coord_up || k->host_life != c->coord_life)
        return;
    char remote[32]; /* each agent is on a host of its own */
    snprintf(remote, sizeof remote, "10.0.1.%u", (unsigned)k->agent);
    struct rdzv_event ev = {
        .conn = it->conn, .member = k->member, .msg = &it->msg, .peer = {remote, "10.0.0.1", false}};
    if (it->fin)
        ev.type = RDZV_EV_CLOSED;
    else
        ev.type = it->msg.type == MSG_HELLO ? RDZV_EV_HELLO : RDZV_EV_MSG;
    if (it->fin)
        k->open[1] = false;
    if (ev.type != RDZV_EV_HELLO && k->member == RDZV_NONE)
        return; /* nobody that was greeted */
    cluster_feed_coord(c, &ev);
}

static void at_agent(struct cluster *c, const struct cluster_item *it, struct cluster_conn *k)
{
    struct cluster_agent *a = &c->agent[k->agent];
    bool current = a->up && a->life == k->agent_life && (k->lease ? a->lease : a->link) == it->conn;
    if (!current)
        return;
    struct member_event ev = {.msg = &it->msg};
    if (!it->fin && it->msg.type == MSG_PROBE_VERDICT)
        return; /* for the user, not for the core */
    if (it->fin)
        ev.type = k->lease ? MEMBER_EV_LEASE_CLOSED : MEMBER_EV_LINK_CLOSED;
    else
        ev.type = k->lease ? MEMBER_EV_LEASE_MSG : MEMBER_EV_MSG;
    if (it->fin)
        k->open[0] = k->open[1] = false;
    cluster_feed(c, k->agent, &ev);
}

/* Through the real codec, in two pieces. */
static void through_codec(struct cluster *c, struct cluster_item *it)
{
    struct el_buf bytes = EL_BUF_INIT(NULL, 0);
    struct msg_decoder d = {.greeted = true};
    struct el_err e = {0};
    struct msg got;
    msg_encode(&it->msg, &bytes);
    if (msg_consume(&d, bytes.v, cluster_below(c, bytes.len), &got, &e) != 0 ||
        msg_consume(&d, bytes.v, bytes.len, &got, &e) != (long)bytes.len)
        cluster_fail(c, "the codec refuses %s: %s", msg_name(it->msg.type), e.text);
    else
        it->msg = got;
    el_buf_free(&bytes);
}

/* It is there, in its order, whether anybody reads it now or not: the kernel says so, if the way back is open. */
static void keep(struct cluster *c, const struct cluster_item *it, struct cluster_conn *k)
{
    if (it->serial != k->kept)
        return;
    k->kept++;
    el_usec back = cut_until(c, k, false), at = c->now + cluster_delay(c);
    struct cluster_item *ack = cluster_push(c, at < back ? back : at, CLUSTER_ACKED, k->agent);
    ack->conn = it->conn;
    ack->sent_at = it->sent_at;
}

void net_acked(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    const struct cluster_conn *k = &c->conn[it->conn];
    if (a->up && a->link == it->conn && a->life == k->agent_life && k->open[0] && it->sent_at > a->acked)
        a->acked = it->sent_at;
}

void net_look(struct cluster *c, uint32_t who)
{
    const struct cluster_agent *a = &c->agent[who];
    if (a->link && a->acked)
        cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_DELIVERED, .at = a->acked});
}

void net_arrive(struct cluster *c, struct cluster_item *it)
{
    struct cluster_conn *k = &c->conn[it->conn];
    if (!k->open[it->to_coord ? 1 : 0])
        return;
    el_usec cut = cut_until(c, k, it->to_coord);
    el_usec paused = !it->to_coord ? c->agent[k->agent].paused_until
                     : k->lease    ? c->agent[k->host].paused_until
                                   : c->coord_paused_until;
    if (it->to_coord && !k->lease && !it->fin && cut <= c->now)
        keep(c, it, k);
    el_usec later = cut > paused ? cut : paused;
    if (later <= c->now && k->got[it->to_coord] != it->serial)
        later = c->now + 10; /* what went before it was held back for longer */
    if (later > c->now) {    /* TCP says it again when the way is open; whoever stands still reads it later */
        struct cluster_item *again = cluster_push(c, later, CLUSTER_ARRIVE, it->who);
        *again = *it;
        return;
    }
    k->got[it->to_coord]++;
    if (!it->fin && it->msg.type == MSG_CKPT_INVENTORY)
        it->msg.u.ckpt_inventory.steps = it->steps;
    if (!it->fin)
        saves_unpack(it);
    bool bytes = c->codec && !it->fin && it->msg.type != MSG_NONE;
    if (bytes)
        through_codec(c, it);
    k = &c->conn[it->conn];
    if (!it->to_coord)
        at_agent(c, it, k);
    else if (k->lease)
        at_lease_host(c, it, k);
    else
        at_coordinator(c, it, k);
    if (bytes)
        msg_release(&it->msg);
}
