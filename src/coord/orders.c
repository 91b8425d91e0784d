/* What members, people and the journal are told.  Nothing here changes a round. */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/sip.h"

enum { HERE_NAMED_MAX = 4, RANKS_NAMED_MAX = 4, RANKS_SOUGHT_MAX = 1024 };

bool rdzv_addr_is_local(const char *addr)
{
    static const char *const local[] = {"127.", "169.254.", "fe80:", "FE80:", "::ffff:127."};
    static const char *const whole[] = {"::1", "::", "0.0.0.0", "localhost", ""};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (strncmp(addr, local[i], strlen(local[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(addr, whole[i]) == 0)
            return true;
    return false;
}

const char *rdzv_label(const struct rdzv_member *m, char to[RDZV_LABEL_MAX])
{
    char rank[32] = "", pid[32] = "";
    if (m->node_rank >= 0)
        snprintf(rank, sizeof rank, "node rank %d", m->node_rank);
    if (m->pid)
        snprintf(pid, sizeof pid, "pid %llu", (unsigned long long)m->pid);
    if (*rank || *pid)
        snprintf(to, RDZV_LABEL_MAX, "%s (%.24s%s%.28s)", m->host, rank, *rank && *pid ? ", " : "", pid);
    else
        snprintf(to, RDZV_LABEL_MAX, "%s", m->host);
    return to;
}

static const char *wait_clause(const struct rdzv *r, const struct rdzv_verdict *v, el_usec now, char *to, size_t room)
{
    double left = v->until == EL_NEVER || v->until < now ? 0 : (double)(v->until - now) / 1e6;
    unsigned long long unit = (unsigned long long)r->conf.set.unit;
    switch (v->wait) {
    case RDZV_GO: snprintf(to, room, "a round of %u starts", v->target); break;
    case RDZV_WAIT_MIN: snprintf(to, room, "at least %llu are needed", (unsigned long long)r->min); break;
    case RDZV_WAIT_UNIT:
        snprintf(to, room, "a multiple of %llu is needed, at least %llu", unit, (unsigned long long)r->min);
        break;
    case RDZV_WAIT_STRAYS: snprintf(to, room, "%u still stop workers of an older round", r->strays); break;
    case RDZV_WAIT_SETTLE: snprintf(to, room, "starts with %u in %.1f s unless more come", v->target, left); break;
    case RDZV_WAIT_REPLACE: snprintf(to, room, "a lost node may be replaced for %.1f s more", left); break;
    case RDZV_WAIT_RETRY:
        snprintf(to, room, "no round could be opened (%.60s); again in %.1f s", r->no_store, left);
        break;
    }
    return to;
}

const char *rdzv_wait_text(struct rdzv *r, el_usec now)
{
    char clause[128];
    size_t n = 0;
    switch (r->state) {
    case RDZV_WAITING: {
        struct rdzv_verdict v = rdzv_verdict(r, now);
        n = (size_t)snprintf(r->text, sizeof r->text, "%u of %llu nodes are here: %s", r->good + r->resort,
                             (unsigned long long)r->max, wait_clause(r, &v, now, clause, sizeof clause));
        if (r->health.excluded && n < sizeof r->text)
            n += (size_t)snprintf(r->text + n, sizeof r->text - n, "; the health check has excluded %.200s",
                                  r->health.first_bad);
        if (r->resort && n < sizeof r->text)
            snprintf(r->text + n, sizeof r->text - n, "; %u are taken only if they must", r->resort);
        break;
    }
    case RDZV_REBUILDING:
        if (r->size)
            snprintf(r->text, sizeof r->text, "the coordinator was restarted: %u of %u nodes of round %llu are heard",
                     r->size - r->unheard, r->size, (unsigned long long)r->number);
        else
            snprintf(r->text, sizeof r->text,
                     "the coordinator has just started: nodes of an earlier round may come back, for %.1f s more",
                     r->rebuild_until > now ? (double)(r->rebuild_until - now) / (double)EL_SEC(1) : 0.0);
        break;
    case RDZV_PROBING: health_check_text(r->health.probing, now, r->text, sizeof r->text); break;
    case RDZV_OPENING:
        snprintf(r->text, sizeof r->text, "%s opens the store of round %llu", r->member[r->seat[0].member].host,
                 (unsigned long long)r->number);
        break;
    case RDZV_RECORDING:
        snprintf(r->text, sizeof r->text, "the journal records round %llu", (unsigned long long)r->number);
        break;
    case RDZV_RUNNING:
        snprintf(r->text, sizeof r->text, "round %llu runs on %u node%s%s%.300s", (unsigned long long)r->number,
                 r->size, rdzv_plural(r->size), r->noticed ? ", will stop: " : "", r->noticed ? r->stop_text : "");
        break;
    case RDZV_STOPPING:
        snprintf(r->text, sizeof r->text, "round %llu stops, %u of %u nodes still do: %.200s",
                 (unsigned long long)r->number, r->open_seats, r->size, r->stop_text);
        break;
    case RDZV_CLOSING:
    case RDZV_ENDING:
    case RDZV_OVER:
    case RDZV_STATES: snprintf(r->text, sizeof r->text, "%s", r->end_text); break;
    }
    return r->text;
}

static void successors(const struct rdzv *r, char *to, size_t room)
{
    size_t n = 0;
    *to = 0;
    for (unsigned k = 0; k < r->size && k < 3; k++) {
        uint32_t i = r->seat[k].member;
        if (i != RDZV_NONE && n < room)
            n += (size_t)snprintf(to + n, room - n, "%s%s", n ? "," : "", r->member[i].addr);
    }
}

void rdzv_slice(const struct rdzv *r, unsigned i, struct msg *out)
{
    assert(i < r->size);
    const struct rdzv_seat *s = &r->seat[i];
    *out = (struct msg){.type = MSG_WORLD};
    struct msg_world *w = &out->u.world;
    w->number = r->number;
    w->coord = r->coord;
    w->token = r->token;
    w->group_rank = i;
    w->group_size = r->size;
    w->rank_base = s->rank_base;
    w->world_size = r->world;
    w->role_rank_base = s->role_base;
    w->role_world_size = r->role_world[s->role];
    w->world_size_first = r->world_first;
    w->world_size_previous = r->world_previous;
    w->master_addr = r->master_addr;
    w->master_port = r->master_port;
    w->restarts = r->restarts_told;
    w->max_restarts = r->conf.set.max_restarts;
    w->waited_ms = r->waited / EL_MS(1);
    w->rank0_host = r->seat[0].member == RDZV_NONE ? "" : r->member[r->seat[0].member].host;
    w->why = r->why;
    w->successors = r->successors;
    for (unsigned k = 0; k < r->size && r->conf.own_instance; k++)
        if (r->seat[k].member != RDZV_NONE && r->member[r->seat[k].member].instance == r->conf.own_instance) {
            w->coordinator_rank = k + 1;
            w->coordinator_process = r->conf.own_process;
        }
    w->coordinator_process = w->coordinator_process ? w->coordinator_process : "";
}

unsigned rdzv_rank_member(struct rdzv *r, uint64_t rank, const char **why)
{
    unsigned low = 0, high = r->size;
    *why = r->text;
    if (!r->size) {
        snprintf(r->text, sizeof r->text, "no round has been formed yet");
        return RDZV_NONE;
    }
    if (r->state == RDZV_REBUILDING) {
        snprintf(r->text, sizeof r->text,
                 "the coordinator was started anew and does not know all nodes yet; ask again");
        return RDZV_NONE;
    }
    if (rank >= r->world) {
        snprintf(r->text, sizeof r->text, "there is no rank %llu: round %llu has ranks 0 to %u",
                 (unsigned long long)rank, (unsigned long long)r->number, r->world - 1);
        return RDZV_NONE;
    }
    while (high - low > 1) { /* the last seat whose base is not above it */
        unsigned middle = low + (high - low) / 2;
        *(r->seat[middle].rank_base <= rank ? &low : &high) = middle;
    }
    if (r->seat[low].member == RDZV_NONE)
        snprintf(r->text, sizeof r->text, "rank %llu was on a node that is gone: node %u of round %llu",
                 (unsigned long long)rank, low, (unsigned long long)r->number);
    return r->seat[low].member;
}

void rdzv_name_successors(struct rdzv *r)
{
    successors(r, r->successors, sizeof r->successors);
}

static void order_end(struct rdzv *r, unsigned member, struct msg *out)
{
    *out = (struct msg){.type = MSG_END};
    out->u.end = (struct msg_end){.status = rdzv_health_status(r, member), .text = r->end_text, .cause = r->end_cause};
    if (!rdzv_health_missed(r, member))
        return;
    snprintf(r->text, sizeof r->text, "this node came when the probe had begun, and is not judged; the others: %.300s",
             r->end_text);
    out->u.end.text = r->text;
}

static void order_stop(const struct rdzv *r, uint64_t number, uint64_t coord, const char *why, struct msg *out)
{
    *out = (struct msg){.type = MSG_STOP};
    el_usec grace = r->state == RDZV_STOPPING ? r->stop_grace : EL_MS(r->conf.set.grace_ms);
    out->u.stop =
        (struct msg_stop){.number = number, .coord = coord, .text = why, .grace_ms = grace / EL_MS(1), .late = r->late};
}

/* Behind the first n bytes of the text; how many there are now. */
static size_t __attribute__((format(printf, 3, 4))) orders_put(struct rdzv *r, size_t n, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    n += (size_t)vsnprintf(r->text + n, sizeof r->text - n, format, ap);
    va_end(ap);
    return n < sizeof r->text ? n : sizeof r->text - 1;
}

/* "; no node rank 1, 5": where all have one, and there are not too many to look for in each order. */
static size_t append_missing(struct rdzv *r, size_t n)
{
    unsigned named = 0;
    if (r->by_node_rank.used != r->members || r->members >= r->max || r->max > RANKS_SOUGHT_MAX)
        return n;
    for (uint64_t rank = 0; rank < r->max && named <= RANKS_NAMED_MAX; rank++) {
        if (id_table_get(&r->by_node_rank, rank) != ID_TABLE_NONE)
            continue;
        if (named == RANKS_NAMED_MAX)
            n = orders_put(r, n, ", ...");
        else
            n = orders_put(r, n, "%s%llu", named ? ", " : "; no node rank ", (unsigned long long)rank);
        named++;
    }
    return n;
}

/* For the user of a node that waits: who is here, who is not, and how long it may go on. */
static void append_here(struct rdzv *r, el_usec now)
{
    size_t n = strlen(r->text);
    unsigned named = 0, all = r->good + r->resort;
    el_usec limit = r->waiting_since + EL_MS(r->conf.set.join_timeout_ms);
    for (uint32_t i = r->arrival.first; i != RDZV_NONE && named < HERE_NAMED_MAX; i = r->member[i].arrival.next)
        if (rdzv_may_be_chosen(&r->member[i]))
            n = orders_put(r, n, "%s%.48s", named++ ? ", " : " (here: ", r->member[i].host);
    if (!named)
        return;
    n = orders_put(r, n, "%s", all > named ? ", ..." : "");
    n = append_missing(r, n);
    orders_put(r, n, "; gives up in %llu s)",
               (unsigned long long)(limit > now ? (limit - now + EL_SEC(1) - 1) / EL_SEC(1) : 0));
}

/* For the user of a node that is not in the round: what would bring it in. */
static void append_spare(struct rdzv *r, el_usec now)
{
    size_t n = strlen(r->text);
    char *to = r->text + n;
    size_t room = sizeof r->text - n;
    uint64_t unit = r->conf.set.unit, spares = r->good + r->resort;
    if (r->state != RDZV_RUNNING)
        snprintf(to, room, "; this node waits for the next round");
    else if (r->size + unit > r->max)
        snprintf(to, room,
                 "; this node waits as a spare: it comes in when a node is lost or leaves, or when elrun scale allows "
                 "more than %llu",
                 (unsigned long long)r->max);
    else if (spares < unit)
        snprintf(to, room, "; this node waits as a spare: %llu more must come (--node-unit=%llu), or a node be lost",
                 (unsigned long long)(unit - spares), (unsigned long long)unit);
    else
        snprintf(to, room, "; this node waits as a spare until the round is stopped for it, in %.1f s",
                 r->wake != EL_NEVER && r->wake > now ? (double)(r->wake - now) / (double)EL_SEC(1)
                                                      : (double)r->conf.set.scale_up_delay_ms / 1e3);
}

static void append_aside(struct rdzv *r, const struct rdzv_member *m)
{
    size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n,
             "; this node is set aside, and comes in only if too few others are there: %s", rdzv_aside_why(r, m->host));
}

/* For the user of a node that came later. */
static void append_probing(struct rdzv *r)
{
    size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n, "; this node has come later and waits");
}

static void order_park(struct rdzv *r, const struct rdzv_member *m, el_usec now, struct msg *out)
{
    rdzv_wait_text(r, now);
    if (r->state == RDZV_PROBING)
        append_probing(r);
    else if (r->state == RDZV_WAITING)
        append_here(r, now);
    else if (m->aside)
        append_aside(r, m);
    else if (r->state >= RDZV_OPENING && r->state <= RDZV_STOPPING)
        append_spare(r, now);
    *out = (struct msg){.type = MSG_WAIT};
    out->u.wait = (struct msg_wait){.number = r->seen, .coord = r->coord, .text = r->text};
}

static void order_busy(struct rdzv *r, const struct rdzv_member *m, el_usec now, struct msg *out)
{
    /* Others still need its store; or the end is not durable yet, of a round that is known in parts only, perhaps. */
    if (r->state == RDZV_CLOSING || (r->state == RDZV_STOPPING && r->seat[m->seat].stopped)) {
        *out = (struct msg){.type = MSG_KEEP, .u.keep = {.text = rdzv_wait_text(r, now)}};
    } else if (r->state == RDZV_STOPPING) {
        order_stop(r, r->number, r->coord, r->stop_text, out);
    } else if (r->noticed && m->started) {
        rdzv_notice_order(r, now, out);
    } else {
        rdzv_slice(r, m->seat, out);
    }
}

void rdzv_order(struct rdzv *r, unsigned member, el_usec now, struct msg *out)
{
    assert(member < r->room_used && r->member[member].phase != RDZV_FREE);
    const struct rdzv_member *m = &r->member[member];
    if (r->state >= RDZV_ENDING) {
        order_end(r, member, out);
    } else if (m->excluded && m->phase == RDZV_READY) {
        *out = (struct msg){.type = MSG_END};
        snprintf(r->text, sizeof r->text, "the health check has found this node unfit: %.300s",
                 rdzv_aside_why(r, m->host));
        out->u.end = (struct msg_end){.status = EL_EXIT_UNHEALTHY, .alone = true, .text = r->text};
    } else if (m->drained && m->phase == RDZV_READY) {
        *out = (struct msg){.type = MSG_END};
        out->u.end = (struct msg_end){.status = EL_EXIT_TEMPFAIL, .alone = true, .text = "this node was drained"};
    } else if (m->phase == RDZV_STRAY) {
        order_stop(r, m->number, m->coord, "this round is over", out);
    } else if (r->state == RDZV_REBUILDING && m->seat != RDZV_NONE) {
        *out = (struct msg){.type = MSG_KEEP, .u.keep = {.text = rdzv_wait_text(r, now)}};
    } else if (m->phase == RDZV_BUSY) {
        order_busy(r, m, now, out);
    } else if (r->state == RDZV_OPENING && m->seat == 0) {
        *out = (struct msg){.type = MSG_OPEN_STORE};
        out->u.open_store = (struct msg_open_store){.number = r->number, .coord = r->coord, .token = r->token};
    } else if (!rdzv_health_order(r, m, now, out)) {
        order_park(r, m, now, out);
    }
}

void rdzv_record(const struct rdzv *r, struct rdzv_record *out)
{
    *out = (struct rdzv_record){.number = r->seen,
                                .coord = r->coord,
                                .restarts = r->budget.used,
                                .fruitless = r->budget.fruitless,
                                .charged = r->charged,
                                .world_first = r->world_first,
                                .world_last = r->world_last,
                                .ended = r->state >= RDZV_CLOSING && !r->deserted,
                                .status = r->status};
    out->min = r->min == r->conf.set.min ? 0 : r->min;
    out->max = r->max == r->conf.set.max ? 0 : r->max;
    snprintf(out->run_id, sizeof out->run_id, "%s", r->conf.run_id);
    snprintf(out->text, sizeof out->text, "%s", r->end_text);
    rdzv_aside_list(r, out->aside, sizeof out->aside);
}

/* --- status --- */

static uint64_t spent_ms(const struct rdzv *r, el_usec now, enum rdzv_state s)
{
    return (r->spent[s] + (r->state == s ? now - r->state_since : 0)) / EL_MS(1);
}

void rdzv_status_job(struct rdzv *r, el_usec now, struct msg *out)
{
    *out = (struct msg){.type = MSG_STATUS_JOB};
    struct msg_status_job *j = &out->u.status_job;
    bool round = r->state >= RDZV_OPENING && r->state <= RDZV_STOPPING;
    j->run_id = r->conf.run_id;
    j->number = r->number;
    j->coord = r->coord;
    j->state = rdzv_state_name(r->state);
    j->text = rdzv_wait_text(r, now);
    j->min = r->min;
    j->max = r->max;
    j->unit = r->conf.set.unit;
    j->group_size = round ? r->size : 0;
    j->world_size = round ? r->world : 0;
    j->members = r->members;
    j->spares = r->state == RDZV_RUNNING ? r->good + r->resort : 0;
    j->restarts = r->budget.used;
    j->max_restarts = r->budget.max;
    j->fruitless = r->budget.fruitless;
    j->incidents = r->incidents;
    j->productive_ms = spent_ms(r, now, RDZV_RUNNING);
    j->forming_ms = spent_ms(r, now, RDZV_REBUILDING) + spent_ms(r, now, RDZV_WAITING) +
                    spent_ms(r, now, RDZV_PROBING) + spent_ms(r, now, RDZV_OPENING) + spent_ms(r, now, RDZV_RECORDING);
    j->restarting_ms = spent_ms(r, now, RDZV_STOPPING);
    j->master_addr = round ? r->master_addr : "";
    j->master_port = round ? r->master_port : 0;
    j->cause = r->end_cause;
    j->aside = rdzv_aside_text(r, now);
    j->held_step = r->held.step;
    j->held_age_ms = r->held.step < 0 ? -1 : (int64_t)((now - r->held.since) / EL_MS(1));
    j->disk_step = r->on_disk.step;
    j->disk_age_ms = r->on_disk.step < 0 ? -1 : (int64_t)((now - r->on_disk.since) / EL_MS(1));
    j->status = r->status;
}

static const char *member_state(const struct rdzv *r, const struct rdzv_member *m)
{
    if (!m->conn)
        return "reconnecting";
    if (m->leaving)
        return m->excluded ? "excluded" : m->drained ? "drained" : "leaving";
    if (m->phase == RDZV_STRAY)
        return "stopping an older round";
    if (m->phase == RDZV_BUSY && r->seat[m->seat].succeeded)
        return "succeeded";
    if (m->phase == RDZV_BUSY && r->state == RDZV_STOPPING)
        return r->seat[m->seat].stopped ? "stopped" : "stopping";
    if (m->phase == RDZV_BUSY)
        return m->started ? "running" : "starting";
    return m->stuck                   ? "stuck"
           : m->aside                 ? "set aside"
           : m->doubted               ? "doubted"
           : r->state == RDZV_RUNNING ? "spare"
                                      : "waiting";
}

uint64_t rdzv_told_instance(uint64_t instance)
{
    static const uint64_t seed[2] = {0x696e7374616e6365, 0x746f6c64};
    return el_sip(seed, &instance, sizeof instance);
}

bool rdzv_status_member(struct rdzv *r, unsigned member, el_usec now, struct msg *out)
{
    const struct rdzv_member *m = &r->member[member];
    if (member >= r->room_used || m->phase == RDZV_FREE)
        return false;
    *out = (struct msg){.type = MSG_STATUS_MEMBER};
    struct msg_status_member *s = &out->u.status_member;
    s->host = m->host;
    s->addr = m->addr;
    s->instance = rdzv_told_instance(m->instance);
    s->state = member_state(r, m);
    s->node_rank = m->node_rank;
    s->group_rank = m->phase == RDZV_BUSY ? (int64_t)m->seat : -1;
    s->rank_base = m->phase == RDZV_BUSY ? r->seat[m->seat].rank_base : 0;
    s->slots = m->slots;
    s->heard_ms = (now - m->heard) / EL_MS(1);
    return true;
}

/* --- small things --- */

unsigned rdzv_room_used(const struct rdzv *r)
{
    return r->room_used;
}
uint64_t rdzv_conn(const struct rdzv *r, unsigned member)
{
    return r->member[member].conn;
}
bool rdzv_is_deserted(const struct rdzv *r)
{
    return !r->members && (r->state == RDZV_WAITING || r->deserted);
}
bool rdzv_has_formed(const struct rdzv *r)
{
    return r->ran || r->recorded;
}
enum rdzv_state rdzv_state(const struct rdzv *r)
{
    return r->state;
}
const struct rdzv_note *rdzv_note(const struct rdzv *r, unsigned note)
{
    return &r->note[note];
}
const struct msg *rdzv_answer(const struct rdzv *r)
{
    return &r->answer;
}
const char *rdzv_run_id(const struct rdzv *r)
{
    return r->conf.run_id;
}
unsigned rdzv_members(const struct rdzv *r)
{
    return r->members;
}
unsigned rdzv_size(const struct rdzv *r)
{
    return r->size;
}
unsigned rdzv_exit_status(const struct rdzv *r)
{
    return r->status;
}

bool rdzv_is_member_addr(const struct rdzv *r, const char *remote)
{
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next)
        if (r->member[i].seat != RDZV_NONE && strcmp(r->member[i].remote, remote) == 0)
            return true;
    return false;
}
