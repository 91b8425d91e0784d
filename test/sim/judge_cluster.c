/* What must hold in the simulated cluster: after every step, a while after the last fault, and at the end. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

struct cluster_round *judge_round(struct cluster *c, uint64_t number, uint64_t coord)
{
    for (unsigned i = c->rounds; i-- > 0;)
        if (c->round[i].number == number && c->round[i].coord == coord)
            return &c->round[i];
    return NULL;
}

static struct cluster_round *round_new(struct cluster *c, const struct msg_world *w)
{
    const struct cluster_round *last = c->rounds ? &c->round[c->rounds - 1] : NULL;
    /* Without a journal what no node knows any more is forgotten. */
    bool known = last && (!c->unkept || last->coord == w->coord);
    if (known && w->number <= last->number)
        cluster_fail(c, "round %llu after round %llu", (unsigned long long)w->number, (unsigned long long)last->number);
    if (known && w->restarts < last->restarts)
        cluster_fail(c, "%llu restarts after %u", (unsigned long long)w->restarts, last->restarts);
    if (c->rounds == c->rounds_room) {
        c->rounds_room = c->rounds_room ? 2 * c->rounds_room : 64;
        c->round = realloc(c->round, c->rounds_room * sizeof *c->round);
        if (!c->round)
            abort();
    }
    struct cluster_round *r = &c->round[c->rounds++];
    *r = (struct cluster_round){.number = w->number,
                                .coord = w->coord,
                                .size = (unsigned)w->group_size,
                                .world = (unsigned)w->world_size,
                                .port = (unsigned)w->master_port,
                                .restarts = (unsigned)w->restarts,
                                .token = w->token};
    r->holder = malloc(r->size * sizeof *r->holder);
    r->done = calloc(r->size, 1);
    r->read = calloc(r->size, sizeof *r->read);
    if (!r->holder || !r->done || !r->read)
        abort();
    memset(r->holder, 0xff, r->size * sizeof *r->holder);
    return r;
}

static void check_size(struct cluster *c, const struct msg_world *w)
{
    const struct rdzv_settings *s = &c->conf.set;
    if (w->group_size < s->min || w->group_size > s->max || w->group_size % s->unit)
        cluster_fail(c, "a world of %llu nodes, %llu to %llu in units of %llu", (unsigned long long)w->group_size,
                     (unsigned long long)s->min, (unsigned long long)s->max, (unsigned long long)s->unit);
    if (w->restarts > s->max_restarts)
        cluster_fail(c, "restart %llu of %llu", (unsigned long long)w->restarts, (unsigned long long)s->max_restarts);
    if (w->restarts && s->restart_policy == RESTART_NEVER)
        cluster_fail(c, "restart %llu, and --restart-policy=never", (unsigned long long)w->restarts);
    /* What the journal does not have, a coordinator that is restarted would give out again. */
    if (!c->unkept && (!c->has_journal || c->journal.number < w->number))
        cluster_fail(c, "WORLD %llu leaves before the journal has it", (unsigned long long)w->number);
}

/* A WORLD leaves for an agent. */
void judge_world(struct cluster *c, uint32_t who, const struct msg_world *w)
{
    if (c->ended_well)
        cluster_fail(c, "WORLD after the training was finished");
    check_size(c, w);
    struct cluster_round *r = judge_round(c, w->number, w->coord);
    if (!r)
        r = round_new(c, w);
    bool same = r->size == w->group_size && r->world == w->world_size && r->port == w->master_port &&
                r->restarts == w->restarts && r->token == w->token;
    if (!same)
        cluster_fail(c, "two different WORLDs of round %llu", (unsigned long long)w->number);
    if (w->group_rank >= r->size || w->rank_base >= r->world) {
        cluster_fail(c, "group rank %llu of %u, rank %llu of %u", (unsigned long long)w->group_rank, r->size,
                     (unsigned long long)w->rank_base, r->world);
        return;
    }
    uint32_t *holder = &r->holder[w->group_rank];
    if (*holder != CLUSTER_COORD && *holder != who)
        cluster_fail(c, "group rank %llu of round %llu for agent %u and agent %u", (unsigned long long)w->group_rank,
                     (unsigned long long)w->number, *holder, who);
    *holder = who;
}

/* Ranks without gap or double: the bases follow from the slots of those before. */
static void check_ranks(struct cluster *c, const struct cluster_agent *a, const struct cluster_round *r)
{
    const struct msg_world *w = &a->m.world;
    uint64_t base = 0;
    for (unsigned k = 0; k < w->group_rank && c->n <= 32; k++) {
        if (r->holder[k] == CLUSTER_COORD)
            return; /* its WORLD is not out yet */
        base += c->agent[r->holder[k]].m.conf.slots;
    }
    if (c->n <= 32 && base != w->rank_base)
        cluster_fail(c, "rank base %llu, the nodes before have %llu workers", (unsigned long long)w->rank_base,
                     (unsigned long long)base);
}

/* Nobody who could act still holds this rank: an older holder has a moment, but no more. */
static void check_holder(struct cluster *c, uint32_t who, unsigned rank)
{
    uint32_t old = c->rank_holder[rank];
    if (old == CLUSTER_COORD || old == who || !c->agent[old].alive || c->agent[old].rank != rank)
        return;
    struct cluster_item *it = cluster_push(c, c->now + 4 * (c->delay + c->jitter) + EL_MS(5), CLUSTER_OVERLAP, old);
    it->life = c->agent[old].life;
    it->attempt = c->agent[old].attempt;
}

void judge_overlap(struct cluster *c, const struct cluster_item *it)
{
    const struct cluster_agent *a = &c->agent[it->who];
    bool same = a->life == it->life && a->attempt == it->attempt && a->alive;
    if (same && !a->stuck)
        cluster_fail(c, "agent %u still holds group rank %u of round %llu, which another has", it->who, a->rank,
                     (unsigned long long)a->number);
}

void judge_start(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    const struct member_round *round = &a->m.round;
    const struct cluster_round *r = judge_round(c, round->number, round->coord);
    if (a->alive && !a->stuck)
        cluster_fail(c, "agent %u starts workers of round %llu beside those of round %llu", who,
                     (unsigned long long)round->number, (unsigned long long)a->number);
    if (c->ended_well)
        cluster_fail(c, "agent %u starts a training that is finished", who);
    if (a->top_coord == round->coord && round->number <= a->top)
        cluster_fail(c, "agent %u goes back to round %llu", who, (unsigned long long)round->number);
    a->top = round->number;
    a->top_coord = round->coord;
    if (!r || r->holder[a->m.world.group_rank] != who) {
        cluster_fail(c, "agent %u starts what nobody told it", who);
        return;
    }
    check_ranks(c, a, r);
    check_holder(c, who, (unsigned)a->m.world.group_rank);
}

void judge_gone(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_round *r = judge_round(c, a->number, a->coord);
    if (a->succeeded && r && a->rank < r->size)
        r->done[a->rank] = 1;
    if (a->rank < c->n && c->rank_holder[a->rank] == who)
        c->rank_holder[a->rank] = CLUSTER_COORD;
}

static unsigned failed_rounds(const struct cluster *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->rounds; i++)
        n += c->round[i].failed;
    return n;
}

/* It has told the coordinator of its round, or nothing but too little time has kept it from that. */
static bool could_tell(const struct cluster *c, const struct cluster_agent *a)
{
    el_usec limit = EL_MS(c->conf.set.keep_alive_ms) * c->conf.set.keep_alive_attempts;
    const struct cluster_conn *k = &c->conn[a->link];
    bool told = a->link && k->host_life == c->coord_life && k->member != RDZV_NONE;
    bool early = c->now < c->conf.listening_since + limit, well = a->fault_at + EL_SEC(12) < c->now;
    return a->up && (told || early || well);
}

/* Some node or the coordinator could still tell of this round.  Who is cut off for longer than the coordinator listens
 * cannot: what was trained there is training that others had finished. */
static bool is_known(const struct cluster *c, const struct cluster_round *r)
{
    struct msg job;
    rdzv_status_job(c->r, c->now, &job);
    const struct msg_status_job *j = &job.u.status_job;
    bool known = j->number == r->number && j->coord == r->coord;
    for (uint32_t i = 0; i < c->n && !known; i++) {
        const struct member *m = &c->agent[i].m;
        known = could_tell(c, &c->agent[i]) && m->round.number == r->number && m->round.coord == r->coord;
    }
    return known;
}

/* The newest round; without a journal what no node knows any more is forgotten. */
static const struct cluster_round *last_known(const struct cluster *c)
{
    unsigned i = c->rounds;
    while (i && c->unkept && !is_known(c, &c->round[i - 1]))
        i--;
    return i ? &c->round[i - 1] : NULL;
}

/* END leaves, for the first time or once more. */
void judge_end(struct cluster *c, unsigned status)
{
    /* The same exception in two rounds may end the job before its budget does. */
    enum restart_policy policy = (enum restart_policy)c->conf.set.restart_policy;
    bool decided = policy == RESTART_NEVER || (policy == RESTART_SMART && c->same > 1);
    if (status == 3 && !decided && failed_rounds(c) <= c->conf.set.max_restarts &&
        c->rounds <= c->conf.set.max_fruitless)
        cluster_fail(c, "the job ends, but only %u rounds had a failure, %llu restarts were allowed", failed_rounds(c),
                     (unsigned long long)c->conf.set.max_restarts);
    if (status || c->ended_well)
        return;
    c->ended_well = true;
    const struct cluster_round *r = last_known(c);
    for (unsigned k = 0; r && k < r->size; k++)
        if (!r->done[k])
            cluster_fail(c, "END 0, but group rank %u of round %llu has not succeeded", k,
                         (unsigned long long)r->number);
    if (!r)
        cluster_fail(c, "END 0 without a round");
}

/* Nobody is lost who has a good connection and no trouble. */
void judge_lost(struct cluster *c, const char *text)
{
    unsigned who = (unsigned)strtoul(text + 1, NULL, 10);
    if (who >= c->n)
        return;
    const struct cluster_agent *a = &c->agent[who];
    bool coord_well = c->coord_fault_at + EL_SEC(7) < c->now;
    if (a->up && a->fault_at + EL_SEC(12) < c->now && coord_well && a->m.place != MEMBER_LEAVING)
        cluster_fail(c, "agent %u is well, but was declared lost: %s", who, text);
}

/* A worker's failure is told: one has failed, and was not killed by the guard. */
void judge_failed(struct cluster *c)
{
    struct msg job;
    rdzv_status_job(c->r, c->now, &job);
    const struct cluster_round *r = judge_round(c, job.u.status_job.number, job.u.status_job.coord);
    if (r && !r->failed)
        cluster_fail(c, "a failure of round %llu, where no worker has failed",
                     (unsigned long long)job.u.status_job.number);
}

/* Everything is healed: whoever is up runs the same round, or there is a named reason not to. */
void judge_all_is_well(struct cluster *c)
{
    if (!c->coord_up || rdzv_state(c->r) >= RDZV_CLOSING)
        return;
    if (rdzv_state(c->r) == RDZV_PROBING && c->patience) { /* a child hangs, or a node that stood still is awaited */
        c->patience--;
        cluster_push(c, c->now + EL_SEC(60), CLUSTER_JUDGE, CLUSTER_COORD);
        return;
    }
    restores_all_is_well(c);
    saves_all_is_well(c);
    struct msg job;
    unsigned usable = 0, running = 0;
    rdzv_status_job(c->r, c->now, &job);
    const struct msg_status_job *j = &job.u.status_job;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct member *m = &c->agent[i].m;
        if (!c->agent[i].up || m->ended || m->leaving)
            continue;
        usable++;
        bool runs = m->round.number == j->number && m->round.coord == j->coord &&
                    (m->place == MEMBER_RUNNING || m->place == MEMBER_FINISHING);
        running += runs;
        if (m->place == MEMBER_RUNNING && !runs)
            cluster_fail(c, "agent %u runs round %llu, the job is at %llu", i, (unsigned long long)m->round.number,
                         (unsigned long long)j->number);
        if (m->link != MEMBER_LINK_UP)
            cluster_fail(c, "agent %u has no connection long after the last fault: %s", i, m->trouble);
    }
    uint64_t least = (j->min + j->unit - 1) / j->unit * j->unit;
    if (rdzv_state(c->r) == RDZV_RUNNING && running < j->group_size)
        cluster_fail(c, "%u of %llu nodes run round %llu long after the last fault", running,
                     (unsigned long long)j->group_size, (unsigned long long)j->number);
    if (rdzv_state(c->r) != RDZV_RUNNING && usable >= least)
        cluster_fail(c, "%u nodes are here, %llu are enough, but: %s (%s)", usable, (unsigned long long)least, j->text,
                     j->state);
}

/* The job has an end, everybody knows it, and nothing of it is left; nobody was noisy. */
void judge_last(struct cluster *c)
{
    double minutes = (double)c->now / 60e6;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *a = &c->agent[i];
        if (a->up)
            cluster_fail(c, "agent %u is still %s at the end: %s", i, member_place_name(a->m.place), a->m.text);
        if (a->alive && !a->stuck)
            cluster_fail(c, "workers of agent %u are left", i);
        unsigned most = c->restores ? 600 : 400; /* a minute: it tells of each step, too */
        if ((double)a->sent > most * minutes + 400)
            cluster_fail(c, "agent %u has sent %llu messages in %.1f minutes", i, (unsigned long long)a->sent, minutes);
    }
}
