/* What goes wrong in the simulated cluster, drawn from the seed. */
#include "sim/cluster.h"

static void fault_cut(struct cluster *c, struct cluster_agent *a, uint32_t who)
{
    el_usec until = c->now + EL_MS(50) + el_rng_below(&c->faults, EL_SEC(12));
    unsigned which = 1 + (unsigned)el_rng_below(&c->faults, 16);
    unsigned kind = (unsigned)el_rng_below(&c->faults, c->seed % 4 == 1 ? 4 : 2);
    if (kind == 1)
        which = 15;
    else if (kind > 1)
        which = kind; /* one way between the agent and its coordinator, the leases are well */
    cluster_note(c, who, "FAULT: cut %x until %.3f", which, (double)until / 1e6);
    for (unsigned k = 0; k < 4; k++)
        if (which & 1u << k && a->cut[k / 2][k % 2] < until) /* never shorter: what waits stays in order */
            a->cut[k / 2][k % 2] = until;
    a->fault_at = until > a->fault_at ? until : a->fault_at;
}

/* It does not come back for a while, but other nodes of the round can tell it what is ordered there. */
static void fault_cut_off(struct cluster *c, struct cluster_agent *a)
{
    const struct member *m = &a->m;
    bool told = m->world.group_rank ? m->lease == MEMBER_LEASE_UP : m->world.group_size > 1;
    if (!m->attempt || !told || c->seed % 8 != 2)
        return;
    a->cut[0][0] = a->cut[0][1] = c->now + EL_SEC(8) > a->cut[0][0] ? c->now + EL_SEC(8) : a->cut[0][0];
    a->fault_at = a->cut[0][0];
}

/* A proxy before the coordinator goes on to take what this node says, and passes it on much later.  One at a time, and
 * not in a round of one node: who cannot ask another one that it does not speak for is not helped (elrun.1). */
static void fault_swallow(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    for (uint32_t i = 0; i < c->n; i++)
        if (c->agent[i].swallow > c->now)
            return;
    if (!a->m.attempt || a->m.world.group_size < 2)
        return;
    a->swallow = c->now + EL_SEC(1) + el_rng_below(&c->faults, EL_SEC(14));
    a->fault_at = a->swallow > a->fault_at ? a->swallow : a->fault_at;
    cluster_note(c, who, "FAULT: what it says is swallowed until %.3f", (double)a->swallow / 1e6);
}

/* A firewall closes this node's way to the coordinator, or to all others, by resets in their names; they hear nothing.
 * As above one at a time, and not in a round of one node. */
static void fault_reject(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    for (uint32_t i = 0; i < c->n; i++)
        if (c->agent[i].rejects[0] > c->now)
            return;
    if (!a->m.attempt || a->m.world.group_size < 2 || a->paused_until > c->now)
        return;
    bool all = el_rng_below(&c->faults, 2);
    a->rejects[0] = c->now + EL_SEC(1) + el_rng_below(&c->faults, EL_SEC(14));
    a->rejects[1] = all ? a->rejects[0] : a->rejects[1];
    a->fault_at = a->rejects[0] > a->fault_at ? a->rejects[0] : a->fault_at;
    cluster_note(c, who, "FAULT: %s reset until %.3f", all ? "all its lines are" : "its link is",
                 (double)a->rejects[0] / 1e6);
    net_close(c, a->link, true, true);
    cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_LINK_CLOSED, .text = "reset"});
    if (!all || !a->lease || !a->up)
        return;
    net_close(c, a->lease, true, true);
    cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_LEASE_CLOSED, .text = "reset"});
}

static void fault_agent(struct cluster *c, uint32_t who, unsigned what)
{
    struct cluster_agent *a = &c->agent[who];
    a->fault_at = a->fault_at > c->now ? a->fault_at : c->now;
    if (what < 3) {
        cluster_kill_agent(c, who, what == 2);
        cluster_push(c, c->now + EL_MS(20) + el_rng_below(&c->faults, EL_SEC(10)), CLUSTER_BOOT, who);
    } else if (what < 6) {
        fault_cut(c, a, who);
    } else if (what == 6 && a->paused_until <= c->now) {
        cluster_note(c, who, "FAULT: SIGTERM");
        cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_SIGNAL, .signal = 15});
    } else if (what == 7 && a->paused_until <= c->now) {
        cluster_note(c, who, "FAULT: reset");
        net_close(c, a->link, false, false);
        net_close(c, a->link, true, false);
        cluster_feed(c, who, &(struct member_event){.type = MEMBER_EV_LINK_CLOSED, .text = "reset"});
        fault_cut_off(c, a);
    } else if (what == 8 && a->paused_until <= c->now) {
        a->paused_until = c->now + EL_MS(500) + el_rng_below(&c->faults, EL_SEC(10));
        a->fault_at = a->paused_until > a->fault_at ? a->paused_until : a->fault_at;
        cluster_note(c, who, "FAULT: stands still until %.3f", (double)a->paused_until / 1e6);
    }
}

static void fault_coord(struct cluster *c, unsigned what)
{
    if (what < 2) {
        cluster_kill_coord(c);
        cluster_push(c, c->now + EL_MS(10) + el_rng_below(&c->faults, EL_SEC(8)), CLUSTER_BOOT, CLUSTER_COORD);
    } else if (what == 2) {
        el_usec until = c->now + EL_MS(600) + el_rng_below(&c->faults, EL_SEC(9));
        c->coord_paused_until = until > c->coord_paused_until ? until : c->coord_paused_until; /* never shorter */
        c->coord_fault_at = c->coord_paused_until;
        cluster_note(c, CLUSTER_COORD, "FAULT: stands still until %.3f", (double)c->coord_paused_until / 1e6);
    } else if (c->coord_up && c->coord_paused_until <= c->now) {
        struct msg m = {.type = what == 3 ? MSG_RESTART : MSG_SCALE};
        if (what == 4)
            m.u.scale.max = c->conf.set.min + el_rng_below(&c->faults, c->conf.set.max - c->conf.set.min + 1);
        cluster_note(c, CLUSTER_COORD, "FAULT: %s %llu", msg_name(m.type), (unsigned long long)m.u.scale.max);
        cluster_feed_coord(c,
                           &(struct rdzv_event){.type = RDZV_EV_COMMAND, .msg = &m, .peer = {.remote = "127.0.0.1"}});
    }
}

void cluster_fault(struct cluster *c)
{
    if (c->now >= c->faults_until)
        return;
    unsigned what = (unsigned)el_rng_below(&c->faults, 16);
    if (c->seed % 4 == 1 && el_rng_below(&c->faults, 2))
        what = 3; /* every fourth run is one of bad networks */
    if (c->seed % 4 == 3 && el_rng_below(&c->faults, 3))
        what = el_rng_below(&c->faults, 3) ? 8 : 11; /* another one of processes that stand still */
    if (c->seed % 8 == 2 && el_rng_below(&c->faults, 2))
        what = 7; /* every eighth one of connections that are reset */
    if (c->seed % 8 >= 6 && el_rng_below(&c->faults, 4) == 0)
        fault_swallow(c, (uint32_t)el_rng_below(&c->faults, c->n)); /* two in eight of proxies */
    else if (c->seed % 8 == 4 && el_rng_below(&c->faults, 4) == 0)
        fault_reject(c, (uint32_t)el_rng_below(&c->faults, c->n)); /* one of firewalls */
    else if (what >= 14)
        storm_begin(c);
    else if (what < 9)
        fault_agent(c, (uint32_t)el_rng_below(&c->faults, c->n), what);
    else
        fault_coord(c, what - 9);
    cluster_push(c, c->now + el_rng_below(&c->faults, EL_SEC(4)), CLUSTER_FAULT, CLUSTER_COORD);
}
