#include "control/msg_check.h"

typedef unsigned long long ull;

/* --- what is about one round --- */

/* Of those that speak of a round at all; their first field is its number. */
static uint64_t round_of(const struct msg *m, bool *speaks)
{
    *speaks = true;
    switch ((unsigned)m->type) {
    case MSG_STORE_READY: return m->u.store_ready.number;
    case MSG_NO_STORE: return m->u.no_store.number;
    case MSG_LEASE_FAILED: return m->u.lease_failed.number;
    case MSG_STARTED: return m->u.started.number;
    case MSG_SUBSCRIBED: return m->u.subscribed.number;
    case MSG_AT_BOUNDARY: return m->u.at_boundary.number;
    case MSG_STEP_REPORT: return m->u.step_report.number;
    case MSG_WORKER_FAILED: return m->u.worker_failed.number;
    case MSG_INCIDENT: return m->u.incident.number;
    case MSG_DIGEST: return m->u.digest.number;
    case MSG_STOPPED: return m->u.stopped.number;
    case MSG_SUCCEEDED: return m->u.succeeded.number;
    case MSG_PROBE_ID: return m->u.probe_id.number;
    case MSG_PROBE_RESULT: return m->u.probe_result.number;
    case MSG_OPEN_STORE: return m->u.open_store.number;
    case MSG_WORLD: return m->u.world.number;
    case MSG_STOP: return m->u.stop.number;
    case MSG_NOTICE: return m->u.notice.number;
    case MSG_CKPT_DIGESTS: return m->u.ckpt_digests.number;
    case MSG_CKPT_TENSORS: return m->u.ckpt_tensors.number;
    case MSG_CKPT_DIFFER: return m->u.ckpt_differ.number;
    case MSG_PROBE: return m->u.probe.number;
    case MSG_RESTORE: return m->u.restore.number;
    case MSG_LEASE_REQUEST: return m->u.lease_request.number;
    case MSG_LEASE_GRANTED: return m->u.lease_granted.number;
    case MSG_ROUND_OVER: return m->u.round_over.number;
    default: *speaks = false; return 0;
    }
}

static int check_port(const char *name, const char *field, uint64_t port, struct el_err *e)
{
    return port ? 0 : el_fail(e, EL_EXIT_PROTOCOL, "%s: \"%s\" is 0, the store of a round has a port", name, field);
}

/* --- HELLO --- */

static int check_last_round(const struct msg_hello *h, struct el_err *e)
{
    if (h->group_rank < 0 || (uint64_t)h->group_rank >= h->group_size)
        return el_fail(e, EL_EXIT_PROTOCOL,
                       "HELLO: \"group_rank\" %lld of round %llu, it must be below \"group_size\" %llu",
                       (long long)h->group_rank, (ull)h->number, (ull)h->group_size);
    return check_port("HELLO", "master_port", h->master_port, e);
}

static int check_hello(const struct msg_hello *h, struct el_err *e)
{
    if (!h->connection)
        return el_fail(e, EL_EXIT_PROTOCOL, "HELLO: \"connection\" is 0, the first one is 1");
    if (!h->slots && !h->probe_only)
        return el_fail(e, EL_EXIT_PROTOCOL, "HELLO: \"slots\" is 0, a node has at least 1 worker");
    if (!h->number && h->phase != MSG_PHASE_IDLE)
        return el_fail(e, EL_EXIT_PROTOCOL, "HELLO: \"phase\" %llu of no round: workers are of a round", (ull)h->phase);
    return h->number ? check_last_round(h, e) : 0;
}

/* --- orders --- */

static int check_slice(const char *what, uint64_t base, uint64_t size, struct el_err *e)
{
    return base < size ? 0
                       : el_fail(e, EL_EXIT_PROTOCOL, "WORLD: \"%s_base\" %llu, it must be below the size %llu", what,
                                 (ull)base, (ull)size);
}

static int check_world(const struct msg_world *w, struct el_err *e)
{
    if (w->group_rank >= w->group_size)
        return el_fail(e, EL_EXIT_PROTOCOL, "WORLD: \"group_rank\" %llu, it must be below \"group_size\" %llu",
                       (ull)w->group_rank, (ull)w->group_size);
    if (w->world_size < w->group_size || w->role_world_size > w->world_size)
        return el_fail(e, EL_EXIT_PROTOCOL, "WORLD: %llu workers, %llu of one role, on %llu nodes: that cannot be",
                       (ull)w->world_size, (ull)w->role_world_size, (ull)w->group_size);
    if (check_slice("rank", w->rank_base, w->world_size, e) ||
        check_slice("role_rank", w->role_rank_base, w->role_world_size, e))
        return -1;
    return check_port("WORLD", "master_port", w->master_port, e);
}

static int check_attempt(const char *name, uint64_t attempt, uint64_t most, struct el_err *e)
{
    return attempt && attempt <= most ? 0
                                      : el_fail(e, EL_EXIT_PROTOCOL, "%s: \"attempt\" %llu, it must be from 1 to %llu",
                                                name, (ull)attempt, (ull)most);
}

static int check_step(const char *name, int64_t step, struct el_err *e)
{
    return step >= 0 ? 0 : el_fail(e, EL_EXIT_PROTOCOL, "%s: \"step\" is below 0", name);
}

static int check_file(const struct msg_ckpt_publish *p, struct el_err *e)
{
    return p->step >= 0 && p->world
               ? 0
               : el_fail(e, EL_EXIT_PROTOCOL, "CKPT_PUBLISH: step %lld of %llu workers: there is none",
                         (long long)p->step, (ull)p->world);
}

/* --- commands --- */

static int check_scale(const struct msg_scale *s, struct el_err *e)
{
    return !s->min || !s->max || s->min <= s->max
               ? 0
               : el_fail(e, EL_EXIT_PROTOCOL, "SCALE: \"min\" %llu, it must not be above \"max\" %llu", (ull)s->min,
                         (ull)s->max);
}

int msg_check(const struct msg *m, struct el_err *e)
{
    bool speaks;
    uint64_t number = round_of(m, &speaks);
    if (speaks && !number)
        return el_fail(e, EL_EXIT_PROTOCOL, "%s: \"number\" is 0, the first round is 1", msg_name(m->type));
    switch ((unsigned)m->type) {
    case MSG_HELLO: return check_hello(&m->u.hello, e);
    case MSG_STORE_READY: return check_port("STORE_READY", "port", m->u.store_ready.port, e);
    case MSG_WORLD: return check_world(&m->u.world, e);
    case MSG_CKPT_INVENTORY: return check_attempt("CKPT_INVENTORY", m->u.ckpt_inventory.attempt, MSG_ATTEMPTS_MAX, e);
    case MSG_RESTORE: return check_attempt("RESTORE", m->u.restore.attempt, 2 * MSG_ATTEMPTS_MAX, e);
    case MSG_CKPT_WRITE: return check_step("CKPT_WRITE", m->u.ckpt_write.step, e);
    case MSG_CKPT_DIGESTS: return check_step("CKPT_DIGESTS", m->u.ckpt_digests.step, e);
    case MSG_CKPT_TENSORS: return check_step("CKPT_TENSORS", m->u.ckpt_tensors.step, e);
    case MSG_CKPT_DIFFER: return check_step("CKPT_DIFFER", m->u.ckpt_differ.step, e);
    case MSG_CKPT_PUBLISH: return check_file(&m->u.ckpt_publish, e);
    case MSG_SCALE: return check_scale(&m->u.scale, e);
    default: return 0;
    }
}
