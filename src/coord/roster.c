/* The members of a job: found by instance and by node rank, kept in order of arrival, and in order of their last sign
 * of life (the quietest first), so that neither a join nor a heartbeat costs more with many members. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <string.h>

/* A list through the link at `offset` of each member. */
static struct rdzv_link *link_of(struct rdzv *r, size_t offset, uint32_t i)
{
    return (struct rdzv_link *)(void *)((char *)&r->member[i] + offset);
}

static void list_append(struct rdzv *r, struct rdzv_list *l, size_t offset, uint32_t i)
{
    *link_of(r, offset, i) = (struct rdzv_link){l->last, RDZV_NONE};
    if (l->last == RDZV_NONE)
        l->first = i;
    else
        link_of(r, offset, l->last)->next = i;
    l->last = i;
}

static void list_remove(struct rdzv *r, struct rdzv_list *l, size_t offset, uint32_t i)
{
    struct rdzv_link *at = link_of(r, offset, i);
    *(at->prev == RDZV_NONE ? &l->first : &link_of(r, offset, at->prev)->next) = at->next;
    *(at->next == RDZV_NONE ? &l->last : &link_of(r, offset, at->next)->prev) = at->prev;
}

#define QUIET   offsetof(struct rdzv_member, quiet)
#define ARRIVAL offsetof(struct rdzv_member, arrival)

int rdzv_roster_init(struct rdzv *r)
{
    unsigned room = r->conf.room;
    r->member = el_alloc(r->mem, room * sizeof *r->member);
    r->seat = el_alloc(r->mem, room * sizeof *r->seat);
    r->scratch = el_alloc(r->mem, room * sizeof *r->scratch);
    r->scratch2 = el_alloc(r->mem, room * sizeof *r->scratch2);
    r->arrival = r->quiet = r->gone = (struct rdzv_list){RDZV_NONE, RDZV_NONE};
    r->free_head = RDZV_NONE;
    int bad = id_table_init(&r->by_instance, room, r->mem) | id_table_init(&r->by_node_rank, room, r->mem);
    return !bad && r->member && r->seat && r->scratch && r->scratch2 ? 0 : -1;
}

void rdzv_roster_free(struct rdzv *r)
{
    id_table_free(&r->by_instance, r->mem);
    id_table_free(&r->by_node_rank, r->mem);
    el_free(r->mem, r->member);
    el_free(r->mem, r->seat);
    el_free(r->mem, r->scratch);
    el_free(r->mem, r->scratch2);
}

el_usec rdzv_silence_limit(const struct rdzv *r)
{
    return EL_MS(r->conf.set.keep_alive_ms) * r->conf.set.keep_alive_attempts;
}

void rdzv_tally(struct rdzv *r, const struct rdzv_member *m, int sign)
{
    unsigned one = (unsigned)sign;
    r->members += one;
    if (rdzv_may_be_chosen(m)) {
        *(rdzv_is_last_resort(m) ? &r->resort : &r->good) += one;
        if (m->seat != RDZV_NONE)
            r->survivors += one;
    }
    if (m->phase == RDZV_STRAY)
        r->strays += one;
    if (m->phase == RDZV_BUSY && m->aware)
        r->aware += one;
    if (m->phase == RDZV_BUSY && m->aware && m->lives)
        r->lives += one;
    if (m->phase == RDZV_BUSY && m->aware && m->at_boundary)
        r->at_boundary += one;
    if (!m->acked)
        r->unacked += one;
}

unsigned rdzv_roster_add(struct rdzv *r, uint64_t instance, int node_rank, el_usec now)
{
    unsigned i = r->free_head;
    if (i != RDZV_NONE)
        r->free_head = r->member[i].arrival.next;
    else if (r->room_used < r->conf.room)
        i = r->room_used++;
    else
        return RDZV_NONE;
    struct rdzv_member *m = &r->member[i];
    *m = (struct rdzv_member){.phase = RDZV_READY,
                              .instance = instance,
                              .node_rank = node_rank,
                              .seat = RDZV_NONE,
                              .prober = RDZV_NONE,
                              .judged = RDZV_NONE,
                              .gone_until = now};
    list_append(r, &r->gone, QUIET, i); /* until it is connected, in the same step */
    list_append(r, &r->arrival, ARRIVAL, i);
    id_table_put(&r->by_instance, instance, i);
    if (node_rank >= 0)
        id_table_put(&r->by_node_rank, (uint64_t)node_rank, i);
    rdzv_tally(r, m, 1);
    r->changes++;
    return i;
}

void rdzv_roster_remove(struct rdzv *r, unsigned i)
{
    struct rdzv_member *m = &r->member[i];
    assert(m->phase != RDZV_FREE);
    rdzv_tally(r, m, -1);
    list_remove(r, m->conn ? &r->quiet : &r->gone, QUIET, i);
    list_remove(r, &r->arrival, ARRIVAL, i);
    id_table_drop(&r->by_instance, m->instance);
    if (m->node_rank >= 0 && id_table_get(&r->by_node_rank, (uint64_t)m->node_rank) == i)
        id_table_drop(&r->by_node_rank, (uint64_t)m->node_rank);
    *m = (struct rdzv_member){.phase = RDZV_FREE, .arrival.next = r->free_head};
    r->free_head = i;
    r->changes++;
}

void rdzv_roster_heard(struct rdzv *r, unsigned i, el_usec now)
{
    struct rdzv_member *m = &r->member[i];
    assert(m->conn && now >= m->heard);
    m->heard = now;
    if (r->quiet.last == i)
        return;
    list_remove(r, &r->quiet, QUIET, i);
    list_append(r, &r->quiet, QUIET, i);
}

void rdzv_roster_connect(struct rdzv *r, unsigned i, uint64_t conn, el_usec now)
{
    struct rdzv_member *m = &r->member[i];
    rdzv_tally(r, m, -1);
    list_remove(r, m->conn ? &r->quiet : &r->gone, QUIET, i);
    list_append(r, &r->quiet, QUIET, i);
    m->conn = conn;
    m->heard = now;
    rdzv_tally(r, m, 1);
}

void rdzv_roster_gone(struct rdzv *r, unsigned i, el_usec until)
{
    struct rdzv_member *m = &r->member[i];
    assert(m->conn);
    rdzv_tally(r, m, -1);
    list_remove(r, &r->quiet, QUIET, i);
    list_append(r, &r->gone, QUIET, i);
    m->conn = 0;
    m->gone_until = until;
    rdzv_tally(r, m, 1);
}

static void check_list(const struct rdzv *r, const struct rdzv_list *l, bool connected, unsigned *n)
{
    el_usec last = 0;
    uint32_t before = RDZV_NONE;
    for (uint32_t i = l->first; i != RDZV_NONE; i = r->member[i].quiet.next) {
        const struct rdzv_member *m = &r->member[i];
        el_usec at = connected ? m->heard : m->gone_until;
        assert(m->phase != RDZV_FREE && !!m->conn == connected && m->quiet.prev == before && at >= last);
        before = i;
        last = at;
        ++*n;
        assert(*n <= r->conf.room);
    }
    assert(l->last == before);
}

/* Everything that is kept twice says the same. */
void rdzv_roster_check(const struct rdzv *r)
{
    struct rdzv again; /* its tallies alone: to clear all of it after each step took most of a simulated job's time */
    again.members = again.good = again.resort = again.strays = again.survivors = 0;
    again.aware = again.lives = again.at_boundary = again.unacked = 0;
    unsigned listed = 0, ranked = 0;
    for (unsigned i = 0; i < r->room_used; i++) {
        const struct rdzv_member *m = &r->member[i];
        if (m->phase == RDZV_FREE)
            continue;
        rdzv_tally(&again, m, 1);
        assert(id_table_get(&r->by_instance, m->instance) == i);
        assert(m->node_rank < 0 || id_table_get(&r->by_node_rank, (uint64_t)m->node_rank) == i);
        assert(m->seat == RDZV_NONE || (m->seat < r->size && r->seat[m->seat].member == i));
        ranked += m->node_rank >= 0;
    }
    check_list(r, &r->quiet, true, &listed);
    check_list(r, &r->gone, false, &listed);
    assert(listed == r->members && r->by_instance.used == r->members && r->by_node_rank.used == ranked);
    assert(again.members == r->members && again.good == r->good && again.resort == r->resort);
    assert(again.strays == r->strays && again.survivors == r->survivors && again.unacked == r->unacked);
    assert(again.aware == r->aware && again.lives == r->lives && again.at_boundary == r->at_boundary);
}
