/* Who may speak for which member, and what a member that comes (back) reports about rounds. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void rdzv_settings_take(const struct msg_hello *h, struct rdzv_settings *out)
{
#define F(T, kind, name, limit, must) out->name = h->name;
    MSG_SETTINGS(F, rdzv_settings)
#undef F
}

int rdzv_settings_check(const struct rdzv_settings *s, struct el_err *e)
{
    if (!s->min || s->min > s->max)
        return el_fail(e, EL_EXIT_CONFIG, "nodes %llu:%llu: the minimum must be from 1 to the maximum",
                       (unsigned long long)s->min, (unsigned long long)s->max);
    if (!s->unit || s->unit > s->max)
        return el_fail(e, EL_EXIT_CONFIG, "node unit %llu must be from 1 to the maximum, %llu",
                       (unsigned long long)s->unit, (unsigned long long)s->max);
    if ((s->min + s->unit - 1) / s->unit * s->unit > s->max)
        return el_fail(e, EL_EXIT_CONFIG, "no multiple of the node unit %llu lies from %llu to %llu",
                       (unsigned long long)s->unit, (unsigned long long)s->min, (unsigned long long)s->max);
    if (!s->keep_alive_ms || !s->keep_alive_attempts)
        return el_fail(e, EL_EXIT_CONFIG, "keep_alive_interval and keep_alive_max_attempt must be above 0");
    return 0;
}

unsigned rdzv_room(const struct rdzv_settings *s)
{
    uint64_t room = 2 * s->max + 64; /* as many spares as members, and some that come and go */
    return (unsigned)(room < MSG_NODES_MAX ? room : MSG_NODES_MAX);
}

/* "--nnodes=2:4", as it was said. */
static const char *nnodes(uint64_t min, uint64_t max, char to[64])
{
    if (min == max)
        snprintf(to, 64, "--nnodes=%llu", (unsigned long long)min);
    else
        snprintf(to, 64, "--nnodes=%llu:%llu", (unsigned long long)min, (unsigned long long)max);
    return to;
}

/* What was asked for at the start, or what `elrun scale` has made of it: both agree with the job. */
static bool agrees_in_nnodes(const struct rdzv *r, const struct msg_hello *h)
{
    const struct rdzv_settings *s = &r->conf.set;
    return (h->min == s->min || h->min == r->min) && (h->max == s->max || h->max == r->max);
}

bool rdzv_agrees(const struct rdzv *r, const struct msg_hello *h)
{
    const struct rdzv_settings *s = &r->conf.set;
    return agrees_in_nnodes(r, h) && h->unit == s->unit && h->max_restarts == s->max_restarts &&
           h->ckpt_store == s->ckpt_store;
}

static bool other_nnodes(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    const struct rdzv_settings *s = &r->conf.set;
    char theirs[64], ours[64], scaled[64], since[96] = "";
    if (agrees_in_nnodes(r, h))
        return false;
    if (r->min != s->min || r->max != s->max)
        snprintf(since, sizeof since, " (%s since elrun scale)", nnodes(r->min, r->max, scaled));
    rdzv_refuse(r, out, ev->conn, EL_EXIT_CONFIG, false,
                "%s was started with %s, job %.128s with %s%s: give all its nodes the same", h->host,
                nnodes(h->min, h->max, theirs), r->conf.run_id, nnodes(s->min, s->max, ours), since);
    return true;
}

static bool contradicts(struct rdzv *r, const struct rdzv_event *ev, const char *option, uint64_t theirs, uint64_t ours,
                        struct rdzv_actions *out)
{
    if (theirs == ours)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_CONFIG, false,
                "%s was started with %s=%llu, job %.128s with %s=%llu: give all its nodes the same",
                ev->msg->u.hello.host, option, (unsigned long long)theirs, r->conf.run_id, option,
                (unsigned long long)ours);
    return true;
}

/* Parts of the training would never get to disk. */
static bool other_store(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    static const char *const names[] = {"without --ckpt-dir", "with --ckpt-dir and --ckpt-store=shared",
                                        "with --ckpt-dir and --ckpt-store=local"};
    uint64_t theirs = ev->msg->u.hello.ckpt_store, ours = r->conf.set.ckpt_store;
    if (theirs == ours)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_CONFIG, false,
                "%s was started %s, job %.128s %s: give all its nodes the same", ev->msg->u.hello.host, names[theirs],
                r->conf.run_id, names[ours]);
    return true;
}

static bool is_refused(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    const struct rdzv_settings *s = &r->conf.set;
    if (strcmp(h->run_id, r->conf.run_id) != 0) {
        rdzv_refuse(r, out, ev->conn, EL_EXIT_CONFIG, false,
                    "%s runs job %.100s (%.100s), this coordinator serves %.100s", h->host, h->run_id, h->command,
                    r->conf.run_id);
        return true;
    }
    return other_nnodes(r, ev, out) || contradicts(r, ev, "--node-unit", h->unit, s->unit, out) ||
           contradicts(r, ev, "--max-restarts", h->max_restarts, s->max_restarts, out) || other_store(r, ev, out);
}

/* Where it comes from, by its connection: this host has more than one address. */
static const char *remote_of(const struct rdzv_event *ev, char to[RDZV_REMOTE_MAX])
{
    snprintf(to, RDZV_REMOTE_MAX, "%s", ev->peer.same_host ? "this host" : ev->peer.remote ? ev->peer.remote : "");
    return to;
}

/* The number that an agent has heard is taken over, and no lower one is given out any more: one that no job comes to
 * would use up all that there are. */
static bool is_far_off(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    uint64_t told = h->seen > h->number ? h->seen : h->number;
    if (told <= r->seen + RDZV_JUMP_MAX && told <= MSG_ROUND_MAX - RDZV_JUMP_MAX)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_PROTOCOL, false,
                "%s: says that round %llu has been, the last one known here is %llu: no job forms so many unnoticed",
                h->host, (unsigned long long)told, (unsigned long long)r->seen);
    return true;
}

static unsigned role_number(struct rdzv *r, const char *role)
{
    for (unsigned i = 0; i < r->roles; i++)
        if (strcmp(r->role[i], role) == 0)
            return i;
    if (r->roles == RDZV_ROLES_MAX)
        return RDZV_NONE;
    snprintf(r->role[r->roles], sizeof r->role[0], "%s", role);
    return r->roles++;
}

/* Another instance with the same node rank: it has to wait until the older one is gone. */
static bool rank_is_taken(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    uint32_t other = h->node_rank < 0 ? ID_TABLE_NONE : id_table_get(&r->by_node_rank, (uint64_t)h->node_rank);
    if (other == ID_TABLE_NONE || r->member[other].instance == h->instance)
        return false;
    struct rdzv_member asks = {.node_rank = -1, .pid = h->pid};
    char here[RDZV_LABEL_MAX], there[RDZV_LABEL_MAX];
    snprintf(asks.host, sizeof asks.host, "%s", h->host);
    rdzv_refuse(
        r, out, ev->conn, EL_EXIT_CONFIG, true,
        "%s was started with --node-rank=%lld, which %s has, and that one is %s: give each node a rank of its own",
        rdzv_label(&asks, here), (long long)h->node_rank, rdzv_label(&r->member[other], there),
        r->member[other].conn ? "alive" : "perhaps on its way back");
    return true;
}

/* An agent comes back as what it was: its place has so many ranks, and others have theirs beside them. */
static bool is_another(struct rdzv *r, const struct rdzv_member *m, const struct rdzv_event *ev,
                       struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    char label[RDZV_LABEL_MAX];
    if (h->slots == m->slots && h->node_rank == m->node_rank && strcmp(h->role, r->role[m->role]) == 0)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_PROTOCOL, false,
                "%s: says that it is %s, which has %u workers of role %s and node rank %d, but has %llu of role %s and "
                "node rank %lld: an agent keeps what it came with",
                h->host, rdzv_label(m, label), m->slots, r->role[m->role], m->node_rank, (unsigned long long)h->slots,
                h->role, (long long)h->node_rank);
    return true;
}

/* Its number alone is no proof: whoever has heard it could take its place. */
static bool is_elsewhere(struct rdzv *r, const struct rdzv_member *m, const struct rdzv_event *ev,
                         struct rdzv_actions *out)
{
    char label[RDZV_LABEL_MAX], remote[RDZV_REMOTE_MAX];
    if (strcmp(remote_of(ev, remote), m->remote) == 0)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_PROTOCOL, true,
                "%s: comes from %s as %s, which came from %s: its place is held", ev->msg->u.hello.host, remote,
                rdzv_label(m, label), m->remote);
    return true;
}

/* One address takes at most half of the places of a job, so that others come in. */
static bool is_crowd(struct rdzv *r, const struct rdzv_event *ev, struct rdzv_actions *out)
{
    char remote[RDZV_REMOTE_MAX];
    unsigned n = 0;
    if (r->members < r->conf.room / 2)
        return false;
    remote_of(ev, remote);
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next)
        n += strcmp(r->member[i].remote, remote) == 0;
    if (n < r->conf.room / 2)
        return false;
    rdzv_refuse(r, out, ev->conn, EL_EXIT_UNAVAILABLE, true,
                "%s: %u nodes have come from %s already, half of the places", ev->msg->u.hello.host, n, remote);
    return true;
}

/* The member's number, or RDZV_NONE when it was refused. */
static unsigned identify(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    char label[RDZV_LABEL_MAX];
    uint32_t i = id_table_get(&r->by_instance, h->instance);
    if (i != ID_TABLE_NONE) {
        struct rdzv_member *m = &r->member[i];
        if (h->connection <= m->connection) {
            rdzv_refuse(r, out, ev->conn, EL_EXIT_PROTOCOL, true, "%s: connection %llu is older than %llu", h->host,
                        (unsigned long long)h->connection, (unsigned long long)m->connection);
            return RDZV_NONE;
        }
        if (is_another(r, m, ev, out) || is_elsewhere(r, m, ev, out))
            return RDZV_NONE;
        if (m->conn)
            rdzv_act(out, RDZV_DO_CLOSE)->conn = m->conn;
        rdzv_say(r, out, NOTE_RECONNECTED, i, "%s is connected again", rdzv_label(m, label));
        return i;
    }
    if (is_crowd(r, ev, out))
        return RDZV_NONE;
    unsigned role = role_number(r, h->role);
    if (role == RDZV_NONE) {
        rdzv_refuse(r, out, ev->conn, EL_EXIT_CONFIG, false, "%s: role %s is one more than %d roles", h->host, h->role,
                    RDZV_ROLES_MAX);
        return RDZV_NONE;
    }
    i = rdzv_roster_add(r, h->instance, (int)h->node_rank, now);
    if (i == RDZV_NONE) {
        rdzv_refuse(r, out, ev->conn, EL_EXIT_UNAVAILABLE, true, "%s: the job has %u nodes and spares, no more fit",
                    h->host, r->members);
        return RDZV_NONE;
    }
    struct rdzv_member *m = &r->member[i];
    snprintf(m->host, sizeof m->host, "%s", h->host);
    snprintf(m->domain, sizeof m->domain, "%s", h->domain);
    m->role = role;
    m->pid = h->pid;
    m->slots = (unsigned)h->slots;
    rdzv_tally(r, m, -1);
    m->aside = rdzv_is_aside(r, m->host);
    rdzv_tally(r, m, 1);
    r->last_join = now;
    char workers[32] = ""; /* a probe starts none */
    if (!r->conf.set.probe_only)
        snprintf(workers, sizeof workers, ", %u worker%s", m->slots, rdzv_plural(m->slots));
    rdzv_say(r, out, NOTE_JOINED, i, "%s has joined%s%s", rdzv_label(m, label), workers,
             m->aside ? "; its host is set aside" : "");
    return i;
}

static bool holds_workers(const struct msg_hello *h)
{
    return h->phase == MSG_PHASE_STARTING || h->phase == MSG_PHASE_RUNNING || h->phase == MSG_PHASE_STOPPING;
}

/* What stops has been started before. */
static bool has_started(const struct msg_hello *h)
{
    return h->phase == MSG_PHASE_RUNNING || h->phase == MSG_PHASE_STOPPING;
}

/* A seat of the round that is present, as the member itself describes it. */
static void join_take_report(struct rdzv *r, unsigned i, const struct msg_hello *h, el_usec now,
                             struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    unsigned k = m->seat;
    if (h->phase == MSG_PHASE_SUCCEEDED) {
        rdzv_seat_succeeded(r, k);
        return;
    }
    m->started |= has_started(h);
    if (h->phase != MSG_PHASE_STOPPING && h->phase != MSG_PHASE_IDLE)
        return;
    r->failed |= h->failed && r->state != RDZV_STOPPING;
    r->membership |= h->fenced || !h->failed;
    rdzv_stop(r, now, out, h->failed ? "a worker failed on %s" : "%s has stopped by itself", m->host);
    if (h->phase == MSG_PHASE_IDLE)
        rdzv_seat_stopped(r, k);
}

static void take_seat(struct rdzv *r, unsigned i, const struct msg_hello *h)
{
    const struct rdzv_member *m = &r->member[i];
    struct rdzv_seat *s = &r->seat[m->seat];
    *s = (struct rdzv_seat){.member = i,
                            .instance = h->instance,
                            .node_rank = m->node_rank,
                            .slots = m->slots,
                            .role = m->role,
                            .reported_base = (unsigned)h->rank_base,
                            .digested = s->digested};
    memcpy(s->remote, m->remote, sizeof s->remote);
}

/* The round was rebuilt without this one, and is stopping: its ranks were not known. */
static void take_late(struct rdzv *r, unsigned i, const struct msg_hello *h)
{
    unsigned k = r->member[i].seat;
    take_seat(r, i, h);
    rdzv_count_world(r);
    r->world_last = r->world;
    if (r->saving)
        ckpt_commit_world(r->saving, r->world);
    rdzv_incidents_insert(r, r->seat[k].rank_base);
}

/* The seat that this report speaks of, if it is one of the round that is present and nobody else holds it. */
static bool regains_seat(struct rdzv *r, unsigned i, const struct msg_hello *h)
{
    bool present = h->number == r->number && h->coord == r->coord && h->number &&
                   (r->state == RDZV_STOPPING || r->state == RDZV_RUNNING || r->state == RDZV_REBUILDING);
    if (!present || h->group_rank < 0 || (uint64_t)h->group_rank >= r->size)
        return false;
    unsigned k = (unsigned)h->group_rank;
    struct rdzv_seat *s = &r->seat[k];
    bool same = s->instance == h->instance && strcmp(s->remote, r->member[i].remote) == 0;
    bool unknown = !s->instance, own = r->state == RDZV_REBUILDING || unknown || same;
    if (s->member != RDZV_NONE || !own)
        return false;
    struct rdzv_member *m = &r->member[i];
    rdzv_tally(r, m, -1);
    m->seat = k;
    m->phase = r->state == RDZV_REBUILDING ? RDZV_READY : RDZV_BUSY;
    rdzv_tally(r, m, 1);
    if (r->state != RDZV_REBUILDING) {
        if (unknown)
            take_late(r, i, h);
        s->member = i;
        r->lost_seats--;
        r->open_seats += !s->stopped;
        return true;
    }
    take_seat(r, i, h);
    s->succeeded = h->phase == MSG_PHASE_SUCCEEDED;
    s->stopped = h->phase == MSG_PHASE_IDLE;
    s->failed = h->failed;
    s->stopping = h->phase == MSG_PHASE_STOPPING || h->fenced;
    s->latest = h->latest;
    r->unheard--;
    return true;
}

/* A report of a higher round than any so far: the seats are its seats, and nobody else of it has been heard. */
static void rebuild_from(struct rdzv *r, const struct msg_hello *h)
{
    for (unsigned k = 0; k < r->size; k++) {
        if (r->seat[k].member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[r->seat[k].member];
        rdzv_tally(r, m, -1);
        m->seat = RDZV_NONE;
        m->phase = m->number ? RDZV_STRAY : RDZV_READY;
        rdzv_tally(r, m, 1);
    }
    rdzv_incidents_forget(r);
    r->digest = (struct restart_digest){.kind = RESTART_SILENT};
    r->suspects = 0;
    r->number = h->number;
    r->seen = r->seen < r->number ? r->number : r->seen;
    r->coord = h->coord;
    r->size = r->unheard = (unsigned)h->group_size;
    r->token = h->token;
    r->world_first = (unsigned)h->world_size_first;
    r->world_previous = (unsigned)h->world_size_previous;
    r->master_port = (unsigned)h->master_port;
    snprintf(r->master_addr, sizeof r->master_addr, "%s", h->master_addr);
    r->restarts_told = h->restarts;
    if (r->budget.used < h->restarts)
        r->budget.used = h->restarts < r->budget.max ? h->restarts : r->budget.max;
    for (unsigned k = 0; k < r->size; k++)
        r->seat[k] = (struct rdzv_seat){.member = RDZV_NONE, .node_rank = -1};
    restore_begin(&r->restore, r->size);
    rdzv_saving_round(r);
    rdzv_emergency_round(r);
    common_step_round(&r->common, r->size);
    replica_check_round(r->comparing, r->number, r->coord, r->size);
}

static void rebuild_hear(struct rdzv *r, unsigned i, const struct msg_hello *h)
{
    bool higher = h->number > r->number || (h->number == r->number && !r->size);
    bool sane = h->number && h->group_size && h->group_size <= r->conf.room && h->group_rank >= 0 &&
                (uint64_t)h->group_rank < h->group_size;
    if (sane && higher)
        rebuild_from(r, h);
    struct rdzv_member *m = &r->member[i];
    if (sane && regains_seat(r, i, h)) {
        m->started = has_started(h);
        return;
    }
    rdzv_tally(r, m, -1);
    m->phase = holds_workers(h) ? RDZV_STRAY : RDZV_READY;
    rdzv_tally(r, m, 1);
}

static void reconcile(struct rdzv *r, unsigned i, const struct msg_hello *h, el_usec now, struct rdzv_actions *out)
{
    struct rdzv_member *m = &r->member[i];
    if (r->state == RDZV_REBUILDING && m->seat != RDZV_NONE) { /* it comes once more: as it is now */
        rdzv_unhear(r, m->seat);
        rdzv_tally(r, m, -1);
        m->seat = RDZV_NONE;
        rdzv_tally(r, m, 1);
    }
    m->number = holds_workers(h) ? h->number : 0;
    m->coord = h->coord;
    if (r->state == RDZV_REBUILDING) {
        rebuild_hear(r, i, h);
        return;
    }
    if (r->state >= RDZV_CLOSING)
        return;
    bool same = h->number == r->number && h->coord == r->coord;
    if (m->phase == RDZV_BUSY || regains_seat(r, i, h)) {
        if (same)
            join_take_report(r, i, h, now, out);
        return;
    }
    rdzv_tally(r, m, -1);
    m->phase = holds_workers(h) ? RDZV_STRAY : RDZV_READY;
    m->stuck |= h->stuck;
    rdzv_tally(r, m, 1);
}

/* Every seat of the highest round that was reported is heard.  Is that the last one?  What the journal does not have
 * has never left.  Without one others may run a round that was formed when these had stopped or succeeded or were cut
 * off, and be on their way; but not if these run.  Nor if nothing was ordered behind this round when the connection to
 * a coordinator was closed whose process is known to be dead: it tells the nodes of a round first when it forms
 * another. */
static bool join_is_whole(const struct rdzv *r)
{
    /* The agent that hosted the coordinator before: its process is known to be dead, and is not waited for. */
    bool dead = r->conf.dead_number == r->number && r->conf.dead_rank < r->size &&
                r->seat[r->conf.dead_rank].member == RDZV_NONE;
    if (!r->size || r->unheard > (dead ? 1u : 0u))
        return false;
    bool runs = false, stops = r->number < r->seen;
    for (unsigned k = 0; k < r->size; k++) {
        runs |= !r->seat[k].succeeded;
        stops |= (r->seat[k].stopped || r->seat[k].stopping) && !(dead && r->seat[k].latest);
    }
    return r->recorded || (runs && !stops);
}

void rdzv_hello(struct rdzv *r, const struct rdzv_event *ev, el_usec now, struct rdzv_actions *out)
{
    const struct msg_hello *h = &ev->msg->u.hello;
    assert(ev->msg->type == MSG_HELLO && ev->conn);
    if (is_refused(r, ev, out) || is_far_off(r, ev, out) || rank_is_taken(r, ev, out))
        return;
    unsigned i = identify(r, ev, now, out);
    if (i == RDZV_NONE)
        return;
    struct rdzv_member *m = &r->member[i];
    m->connection = h->connection;
    m->same_host = ev->peer.same_host;
    remote_of(ev, m->remote);
    snprintf(m->addr, sizeof m->addr, "%s", *h->addr ? h->addr : ev->peer.remote ? ev->peer.remote : "");
    if (!ev->peer.same_host && ev->peer.local)
        snprintf(r->self_addr, sizeof r->self_addr, "%s", ev->peer.local);
    rdzv_roster_connect(r, i, ev->conn, now);
    r->seen = h->seen > r->seen ? h->seen : r->seen;
    r->seen = h->number > r->seen ? h->number : r->seen;
    /* Somebody holds workers of a round that this coordinator should have known of, or was in one: listen before
     * anything is formed. */
    bool holds = holds_workers(h) || h->phase == MSG_PHASE_SUCCEEDED;
    bool gathers = r->state == RDZV_WAITING || r->state == RDZV_PROBING;
    if (gathers && !r->formed && (holds || (h->number && !r->recorded))) {
        if (r->state == RDZV_PROBING)
            rdzv_health_abandon(r, now);
        rdzv_move(r, RDZV_REBUILDING, now);
        r->rebuild_until = now + rdzv_silence_limit(r);
    }
    rdzv_act(out, RDZV_DO_BIND)->conn = ev->conn;
    out->v[out->n - 1].member = i;
    reconcile(r, i, h, now, out);
    if (m->prober == RDZV_NONE)
        rdzv_health_joined(r, i);
    m->verdict_untold |= m->judged != RDZV_NONE && (m->excluded || r->state >= RDZV_ENDING);
    if (r->findings.rank0 == m->instance && rdzv_root(r))
        rdzv_act(out, RDZV_DO_REPORT_TO)->member = i;
    rdzv_act(out, RDZV_DO_ORDER)->member = i;
    r->tell = true;
    if (r->state == RDZV_REBUILDING && join_is_whole(r))
        rdzv_rebuilt(r, now, out);
}

void rdzv_unhear(struct rdzv *r, unsigned k)
{
    assert(r->state == RDZV_REBUILDING && k < r->size);
    r->seat[k] = (struct rdzv_seat){.member = RDZV_NONE, .node_rank = -1, .digested = r->seat[k].digested};
    restore_forget(&r->restore, k);
    r->unheard++;
}

/* Every group rank of the highest round has been heard, or the time for that is over: who was not heard is lost. */
void rdzv_rebuilt(struct rdzv *r, el_usec now, struct rdzv_actions *out)
{
    assert(r->state == RDZV_REBUILDING);
    r->rebuild_until = EL_NEVER;
    unsigned heard = r->size - r->unheard;
    bool broken = r->unheard > 0, failed = false;
    r->open_seats = r->succeeded_seats = 0;
    r->lost_seats = r->unheard;
    if (!heard) {
        r->size = r->open_seats = r->lost_seats = r->unheard = 0;
        rdzv_wait_again(r, now);
        return;
    }
    for (unsigned k = 0; k < r->size; k++) {
        struct rdzv_seat *s = &r->seat[k];
        if (s->member == RDZV_NONE || s->stopped || s->succeeded)
            rdzv_emergency_gone(r, k, s->member == RDZV_NONE);
        if (s->member == RDZV_NONE)
            continue;
        struct rdzv_member *m = &r->member[s->member];
        rdzv_tally(r, m, -1);
        m->phase = RDZV_BUSY;
        rdzv_tally(r, m, 1);
        r->open_seats += !s->stopped;
        r->succeeded_seats += s->succeeded;
        broken |= s->stopped || s->stopping;
        failed |= s->failed;
    }
    r->formed = true;
    r->started_at = now;
    r->membership = r->unheard || !failed;
    r->failed = failed;
    rdzv_count_world(r);
    if (r->saving)
        ckpt_commit_world(r->saving, r->world);
    rdzv_incidents_adopt(r);
    r->world_last = r->world;
    r->world_first = r->world_first ? r->world_first : r->world;
    rdzv_say(r, out, NOTE_REBUILT, RDZV_NONE, "round %llu is rebuilt from the reports of %u of %u nodes",
             (unsigned long long)r->number, heard, r->size);
    if (r->unheard && r->succeeded_seats == heard) { /* perhaps the others had too: never begin again */
        rdzv_end(r, now, out, EL_EXIT_TEMPFAIL, "%u nodes have succeeded, %u cannot be heard any more", heard,
                 r->unheard);
        return;
    }
    rdzv_move(r, RDZV_RUNNING, now);
    r->emergency_due = true;
    if (!broken) {
        r->membership = false;
        rdzv_saving_advance(r, now, out);
        /* What they said meanwhile has its answer now; and they say anew whether their workers listen. */
        if (r->restore.state != RESTORE_IDLE || r->saving || r->conf.set.boundary_wait_ms)
            rdzv_act(out, RDZV_DO_ORDER_EACH);
        return;
    }
    if (r->unheard)
        rdzv_stop(r, now, out, "%u of %u nodes of round %llu are not heard any more", r->unheard, r->size,
                  (unsigned long long)r->number);
    else
        rdzv_stop(r, now, out, "workers of round %llu have ended, or were stopped, while no coordinator was there",
                  (unsigned long long)r->number);
}
