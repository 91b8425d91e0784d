/* Failures in the simulated cluster: what agents tell of them, storms in which all fail at once, and what must hold: no
 * storm delays the order to stop, memory stays bounded, and who is called the first was the first. */
#include <string.h>

#include "sim/cluster.h"

enum { WORKERS_MAX = 4 };

/* MEMBER_DO_INCIDENTS.  The document is any text: the coordinator does not read it. */
void storm_tell(struct cluster *c, uint32_t who)
{
    static char text[MSG_DOCUMENT_MAX + 1];
    struct cluster_agent *a = &c->agent[who];
    const struct member *m = &a->m;
    unsigned slots = m->conf.slots;
    if (!text[0])
        memset(text, 'x', sizeof text - 1);
    for (unsigned i = 0; i < slots; i++) {
        unsigned local = (m->incident.local_rank + i) % slots;
        struct msg msg = {.type = MSG_INCIDENT};
        msg.u.incident = (struct msg_incident){
            .number = m->round.number,
            .coord = m->round.coord,
            .local_rank = local,
            .code = 3,
            .signal = -1,
            .by = "itself",
            .class = who & 1 ? "code error" : "network",
            .type = "ValueError",
            .text = "exit code 3",
            .document = text + sizeof text - 1 - cluster_below(c, cluster_below(c, 8) ? 1000 : MSG_DOCUMENT_MAX),
            .ranks = ""};
        member_on_clock(m, m->incident.time + i, c->now, &msg.u.incident.time_us, &msg.u.incident.error_us);
        net_send(c, a->link, true, &msg);
        if (i + 1 < slots && cluster_below(c, 2)) { /* the others are only counted */
            msg.u.incident.ranks = slots == 4 ? "0-3" : slots == 3 ? "0-2" : "0-1";
            net_send(c, a->link, true, &msg);
            break;
        }
    }
}

/* Every agent's worker fails within a few milliseconds. */
void storm_begin(struct cluster *c)
{
    el_usec within = cluster_below(c, 2) ? EL_MS(1) : EL_MS(30); /* less and more than the clocks can tell */
    cluster_note(c, CLUSTER_COORD, "FAULT: all workers fail");
    for (uint32_t i = 0; i < c->n; i++) {
        struct cluster_agent *a = &c->agent[i];
        if (!a->up || !a->alive)
            continue;
        struct cluster_item *it = cluster_push(c, c->now + cluster_below(c, within), CLUSTER_LOCAL, i);
        it->life = a->life;
        it->attempt = a->attempt;
        it->event = MEMBER_EV_WORKER_FAILED;
    }
}

/* A worker of this agent has just failed by itself. */
void storm_failed(struct cluster *c, uint32_t who)
{
    const struct cluster_agent *a = &c->agent[who];
    struct cluster_round *round = judge_round(c, a->number, a->coord);
    if (!round)
        return;
    if (!round->failed) {
        round->first = a->rank;
        round->first_who = who;
        round->first_life = a->life;
    }
    round->failed = true;
}

/* Whatever became of coordinators meanwhile: a node tells each of them, until its round is closed. */
static void judge_first(struct cluster *c, const struct msg_report *head, const struct msg_report_row *row)
{
    const struct cluster_round *round = judge_round(c, head->number, head->coord);
    if (!round || !round->failed || round->reported)
        return;
    const struct cluster_agent *first = &c->agent[round->first_who];
    bool heard = first->up && first->life == round->first_life && first->fault_at + EL_SEC(15) < c->now &&
                 first->m.incident_open; /* nobody has told it that the round is closed */
    if (heard && row->group_rank != round->first)
        cluster_fail(c, "group rank %llu is called the first to fail in round %llu, it was %u",
                     (unsigned long long)row->group_rank, (unsigned long long)head->number, round->first);
}

/* RDZV_DO_REPORT */
void storm_report(struct cluster *c)
{
    struct msg m;
    rdzv_report(c->r, 0, &m);
    const struct msg_report head = m.u.report;
    unsigned rows = 0;
    size_t documents = 0;
    bool more = head.more;
    for (; rdzv_report(c->r, rows + 1, &m); rows++) {
        const struct msg_report_row *row = &m.u.report_row;
        documents += strlen(row->document);
        if (!more)
            cluster_fail(c, "a row of the report behind its last");
        more = row->more;
        if (!rows && head.among == 1)
            judge_first(c, &head, row);
    }
    struct cluster_round *round = judge_round(c, head.number, head.coord);
    if (round)
        round->reported = true;
    if (more || !rows)
        cluster_fail(c, "the report of round %llu has %u rows and says that there are more",
                     (unsigned long long)head.number, rows);
    if (rows > RDZV_INCIDENTS_MAX || documents > RDZV_DOCUMENTS_MAX || head.failed < rows ||
        head.failed > (uint64_t)WORKERS_MAX * c->n)
        cluster_fail(c, "the report of round %llu: %u rows, %zu bytes, %llu failed", (unsigned long long)head.number,
                     rows, documents, (unsigned long long)head.failed);
    storm_memory(c);
}

void storm_memory(struct cluster *c)
{
    size_t most = c->mem_base + (size_t)2 * WORKERS_MAX * c->n + 6 * MSG_RANKS_MAX;
    most += RDZV_DOCUMENTS_MAX + ((size_t)8 << 10) * c->n; /* records of failures; what nodes declare, hold and want */
    if (c->conf.set.health_check) /* the last check is kept, with what was said of each node, and its report */
        most += ((size_t)3 << 10) * c->n + ((size_t)32 << 10);
    if (c->mem.used_bytes > most)
        cluster_fail(c, "the coordinator has %zu bytes, %zu at its start", c->mem.used_bytes, c->mem_base);
}

/* A round is being stopped: everybody who is there has heard of it as soon as the walk can be over. */
void storm_stopping(struct cluster *c)
{
    struct cluster_item *it =
        cluster_push(c, c->now + 50 * (rdzv_room_used(c->r) / 256 + 1) + 1, CLUSTER_STOPS, CLUSTER_COORD);
    it->life = c->coord_life;
    it->serial = c->now;
}

void storm_stops(struct cluster *c, const struct cluster_item *it)
{
    if (!c->coord_up || c->coord_life != it->life)
        return;
    for (unsigned i = 0; i < rdzv_room_used(c->r); i++) {
        uint64_t conn = rdzv_conn(c->r, i);
        if (conn && c->conn[conn].ordered < it->serial)
            cluster_fail(c, "member %u has not been told to stop", i);
    }
}
