/* The shell of the simulated coordinator: carries out its actions, keeps its journal, starts and kills it. */
#include "sim/cluster.h"

#include <stdlib.h>

static void order(struct cluster *c, unsigned member)
{
    uint64_t conn = rdzv_conn(c->r, member);
    if (!conn)
        return;
    struct msg m;
    uint32_t who = c->conn[conn].agent;
    if (rdzv_probe_verdict(c->r, member, &m)) {
        probes_verdict(c, who, c->conn[conn].agent_life, &m.u.probe_verdict);
        net_send(c, conn, false, &m);
    }
    for (unsigned i = 0; rdzv_saving_word(c->r, member, i, &m); i++)
        net_send(c, conn, false, &m);
    rdzv_order(c->r, member, c->now, &m);
    c->conn[conn].ordered = c->now;
    if (m.type == MSG_PROBE)
        probes_ordered(c, who, &m.u.probe);
    if (m.type == MSG_WORLD) {
        judge_world(c, who, &m.u.world);
        probes_world(c, who, &m.u.world);
    }
    if (m.type == MSG_END && !m.u.end.alone)
        judge_end(c, (unsigned)m.u.end.status);
    net_send(c, conn, false, &m);
    if (rdzv_emergency_word(c->r, member, &m))
        net_send(c, conn, false, &m);
    if (rdzv_restore_word(c->r, member, &m))
        net_send(c, conn, false, &m);
    if (rdzv_common_word(c->r, member, &m))
        net_send(c, conn, false, &m);
}

void cluster_walk(struct cluster *c)
{
    unsigned n = 0;
    for (; c->walk < rdzv_room_used(c->r) && n < 256 && !c->failed; c->walk++, n++)
        order(c, c->walk);
    c->walking = c->walk < rdzv_room_used(c->r);
    if (c->walking)
        cluster_push(c, c->now + 50, CLUSTER_WALK, CLUSTER_COORD)->life = c->coord_life;
}

static void keep_journal(struct cluster *c, uint64_t serial)
{
    if (c->unkept) { /* as the shell does without a journal: answered at the end of the step */
        c->journaled = serial;
        return;
    }
    unsigned k = c->kept_next++ % 16;
    rdzv_record(c->r, &c->kept[k]);
    bool slow = !c->quiet && c->now < c->faults_until && cluster_one_in(c, 30);
    el_usec at = c->now + (slow ? EL_SEC(1) : 100);
    at = at < c->journal_last ? c->journal_last : at; /* it is appended to */
    c->journal_last = at;
    struct cluster_item *it = cluster_push(c, at, CLUSTER_JOURNAL, CLUSTER_COORD);
    it->life = c->coord_life;
    it->serial = serial;
    it->kept = k;
    it->ok = c->quiet || c->now > c->faults_until || !cluster_one_in(c, 60);
}

static void act_coord(struct cluster *c, const struct rdzv_event *ev, const struct rdzv_action *x)
{
    struct msg m;
    switch (x->type) {
    case RDZV_DO_BIND: c->conn[x->conn].member = x->member; break;
    case RDZV_DO_CLOSE: net_close(c, x->conn, false, false); break;
    case RDZV_DO_REFUSE:
        net_send(c, x->conn, false, rdzv_answer(c->r));
        net_close(c, x->conn, false, false);
        break;
    case RDZV_DO_REPLY: break;
    case RDZV_DO_BEAT:
        m = (struct msg){.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = ev->msg->u.heartbeat.time, .own = c->now}};
        net_send(c, ev->conn, false, &m);
        break;
    case RDZV_DO_GOODBYE:
        rdzv_goodbye(c->r, x->member, c->now, &m);
        net_send(c, ev->conn, false, &m);
        break;
    case RDZV_DO_ORDER: order(c, x->member); break;
    case RDZV_DO_ORDER_EACH:
        c->walk = 0;
        if (!c->walking)
            cluster_walk(c);
        break;
    case RDZV_DO_JOURNAL: keep_journal(c, x->serial); break;
    case RDZV_DO_NOTE: {
        const struct rdzv_note *note = rdzv_note(c->r, x->note);
        if (!c->quiet)
            cluster_note(c, CLUSTER_COORD, "%s: %.150s", rdzv_note_name(note->type), note->text);
        if (note->type == NOTE_STOPPING)
            storm_stopping(c);
        c->checks += note->type == NOTE_PROBING;
        if (note->type == NOTE_LOST)
            judge_lost(c, note->text);
        if (note->type == NOTE_FAILED)
            judge_failed(c);
        break;
    }
    case RDZV_DO_REPORT:
    case RDZV_DO_REPORT_TO: storm_report(c); break;
    case RDZV_DO_PROBE_REPORT: probes_over(c); break;
    case RDZV_DO_OVER: c->over = true; break;
    }
}

void cluster_feed_coord(struct cluster *c, const struct rdzv_event *ev)
{
    if (c->failed || !c->coord_up)
        return;
    struct rdzv_actions out;
    rdzv_step(c->r, ev, c->now, &out);
    c->steps++;
    if (c->n <= 32 || c->steps % 4096 == 0)
        rdzv_check(c->r);
    cluster_mix(c, c->now << 20 ^ (uint64_t)ev->type << 8 ^ out.n ^ (uint64_t)rdzv_state(c->r) << 56);
    for (unsigned i = 0; i < out.n && !c->failed; i++)
        act_coord(c, ev, &out.v[i]);
    captures_check(c);
    if (c->journaled) {
        struct rdzv_event journaled = {.type = RDZV_EV_JOURNALED, .serial = c->journaled, .ok = true};
        c->journaled = 0;
        cluster_feed_coord(c, &journaled);
    }
    cluster_set_timer(c, CLUSTER_COORD);
}

void cluster_boot_coord(struct cluster *c)
{
    if (c->coord_up)
        return;
    c->conf.coord = el_rng_next(&c->rng) | 1;
    c->conf.token_start = el_rng_next(&c->rng);
    c->conf.surely_new = !c->unkept || !c->coord_life;
    c->conf.listening_since = c->now;
    c->r = rdzv_new(&c->conf, c->has_journal ? &c->journal : NULL, c->now, &c->mem);
    if (!c->r)
        abort();
    c->mem_base = c->mem.used_bytes;
    c->coord_up = true;
    c->coord_fault_at = c->now > c->coord_fault_at ? c->now : c->coord_fault_at;
    c->coord_life++;
    c->coord_timer = EL_NEVER;
    c->walking = false;
    cluster_set_timer(c, CLUSTER_COORD);
}

void cluster_kill_coord(struct cluster *c)
{
    if (!c->coord_up)
        return;
    cluster_note(c, CLUSTER_COORD, "FAULT: killed in state %s", rdzv_state_name(rdzv_state(c->r)));
    c->coord_up = false;
    c->coord_fault_at = c->now > c->coord_fault_at ? c->now : c->coord_fault_at;
    for (uint64_t i = 1; i < c->conns; i++)
        if (c->conn[i].host == CLUSTER_COORD)
            net_close(c, i, false, false);
    rdzv_free(c->r);
    c->r = NULL;
    if (!c->unkept)
        return;
    /* Nobody but the nodes knows what was: those that do may be gone before the next one comes. */
    c->ended_well = false;
    c->journaled = 0;
}

void cluster_journaled(struct cluster *c, const struct cluster_item *it)
{
    if (!c->coord_up || it->life != c->coord_life)
        return;
    if (it->ok) {
        c->journal = c->kept[it->kept];
        c->has_journal = true;
    }
    if (c->coord_paused_until > c->now) {
        cluster_again_at(c, it, c->coord_paused_until);
        return;
    }
    cluster_feed_coord(c, &(struct rdzv_event){.type = RDZV_EV_JOURNALED, .serial = it->serial, .ok = it->ok});
}
