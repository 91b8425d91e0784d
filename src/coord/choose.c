/* Whether a round can be completed, and by whom in which order (doc/design.md, "Completing a round"). */
#include "coord/rdzv_private.h"

#include <assert.h>
#include <string.h>

static uint64_t down_to_unit(const struct rdzv *r, uint64_t n)
{
    return n - n % r->conf.set.unit;
}

static uint64_t choose_least(const struct rdzv *r)
{
    return down_to_unit(r, r->min + r->conf.set.unit - 1);
}

/* How many nodes the round would have now: the good ones, and those of the last resort only up to the minimum. */
static unsigned target_of(const struct rdzv *r)
{
    uint64_t good = down_to_unit(r, r->good < r->max ? r->good : r->max);
    if (good >= choose_least(r))
        return (unsigned)good;
    return r->good + r->resort >= choose_least(r) ? (unsigned)choose_least(r) : 0;
}

bool rdzv_is_enough(const struct rdzv *r)
{
    return down_to_unit(r, r->good < r->max ? r->good : r->max) >= choose_least(r);
}

static el_usec choose_sooner(el_usec a, el_usec b)
{
    return a < b ? a : b;
}

/* One pure function of members, configuration and time.  The tallies are the members, counted as they change. */
struct rdzv_verdict rdzv_verdict(const struct rdzv *r, el_usec now)
{
    const struct rdzv_settings *s = &r->conf.set;
    struct rdzv_verdict v = {.until = EL_NEVER, .target = target_of(r)};
    el_usec strays_until = r->waiting_since + EL_MS(s->grace_ms) + RDZV_STOP_MARGIN;
    if (r->strays && now < strays_until) {
        v.wait = RDZV_WAIT_STRAYS;
        v.until = strays_until;
        return v;
    }
    if (!v.target) {
        v.wait = r->good + r->resort >= r->min ? RDZV_WAIT_UNIT : RDZV_WAIT_MIN;
        return v;
    }
    if (now < r->open_at) {
        v.wait = RDZV_WAIT_RETRY;
        v.until = r->open_at;
        return v;
    }
    if (v.target == down_to_unit(r, r->max))
        return v;
    if (r->survivors) { /* the expected set is known, and all of it is here: nobody else of it is connected */
        el_usec until = r->lost_at + EL_MS(s->replace_wait_ms);
        if (r->lost_at != EL_NEVER && v.target < r->size && now < until) {
            v.wait = RDZV_WAIT_REPLACE;
            v.until = until;
        }
        return v;
    }
    if (s->expected && r->good >= s->expected)
        return v;
    el_usec settled = choose_sooner(r->last_join + EL_MS(s->settle_ms), r->min_since + EL_MS(s->last_call_ms));
    if (now < settled) {
        v.wait = RDZV_WAIT_SETTLE;
        v.until = settled;
    }
    return v;
}

static void pick(struct rdzv *r, uint32_t i, uint64_t stamp, unsigned *n)
{
    assert(*n < r->conf.room && r->member[i].picked != stamp);
    r->member[i].picked = stamp;
    r->scratch[(*n)++] = i;
}

static bool choose_takes_part(const struct rdzv_member *m, bool last_resort)
{
    return m->phase == RDZV_READY && m->conn && !m->leaving && rdzv_is_last_resort(m) == last_resort;
}

/* Survivors in their order.  Who comes with the node rank of one that was lost counts as that survivor. */
static void pick_survivors(struct rdzv *r, uint64_t stamp, unsigned target, unsigned *n)
{
    for (unsigned k = 0; k < r->size && *n < target; k++) {
        const struct rdzv_seat *s = &r->seat[k];
        uint32_t i = s->member;
        if (i == RDZV_NONE && s->node_rank >= 0)
            i = id_table_get(&r->by_node_rank, (uint64_t)s->node_rank);
        if (i != RDZV_NONE && choose_takes_part(&r->member[i], false) && r->member[i].picked != stamp)
            pick(r, i, stamp, n);
    }
}

static void pick_newcomers(struct rdzv *r, uint64_t stamp, unsigned target, bool last_resort, unsigned *n)
{
    for (uint32_t i = r->arrival.first; i != RDZV_NONE && *n < target; i = r->member[i].arrival.next)
        if (choose_takes_part(&r->member[i], last_resort) && r->member[i].picked != stamp)
            pick(r, i, stamp, n);
}

static int64_t order_key(const struct rdzv *r, uint32_t i)
{
    int rank = r->member[i].node_rank;
    return rank < 0 ? INT64_MAX : rank;
}

/* Those with a node rank by it, first; the others keep their order: a merge sort is stable. */
void rdzv_order_members(struct rdzv *r, unsigned n)
{
    uint32_t *from = r->scratch, *to = r->scratch2;
    for (unsigned width = 1; width < n; width *= 2) {
        for (unsigned lo = 0; lo < n; lo += 2 * width) {
            unsigned mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
            unsigned a = lo, b = mid;
            for (unsigned k = lo; k < hi; k++) {
                bool left = a < mid && (b >= hi || order_key(r, from[a]) <= order_key(r, from[b]));
                to[k] = from[left ? a++ : b++];
            }
        }
        uint32_t *t = from;
        from = to;
        to = t;
    }
    r->scratch = from;
    r->scratch2 = to;
}

void rdzv_count_world(struct rdzv *r)
{
    memset(r->role_world, 0, sizeof r->role_world);
    r->world = 0;
    unsigned room = 0; /* for ranks of nodes that were not heard, as those behind them report */
    for (unsigned k = 0; k < r->size; k++) {
        struct rdzv_seat *s = &r->seat[k];
        room += s->slots ? 0 : EL_SLOTS_MAX;
        if (s->reported_base > r->world && s->reported_base - r->world <= room) {
            room -= s->reported_base - r->world;
            r->world = s->reported_base;
        }
        s->rank_base = r->world;
        s->role_base = r->role_world[s->role];
        r->world += s->slots;
        r->role_world[s->role] += s->slots;
    }
}

void rdzv_choose(struct rdzv *r, unsigned target)
{
    unsigned n = 0;
    uint64_t stamp = r->number + 1;
    pick_survivors(r, stamp, target, &n);
    pick_newcomers(r, stamp, target, false, &n);
    bool resort = n < target;
    pick_newcomers(r, stamp, target, true, &n);
    assert(n == target && (!resort || target == choose_least(r)));
    rdzv_order_members(r, n);
    for (uint32_t i = r->arrival.first; i != RDZV_NONE; i = r->member[i].arrival.next) {
        rdzv_tally(r, &r->member[i], -1);
        r->member[i].seat = RDZV_NONE;
        rdzv_tally(r, &r->member[i], 1);
    }
    for (unsigned k = 0; k < n; k++) {
        struct rdzv_member *m = &r->member[r->scratch[k]];
        r->seat[k] = (struct rdzv_seat){.member = r->scratch[k],
                                        .instance = m->instance,
                                        .node_rank = m->node_rank,
                                        .slots = m->slots,
                                        .role = m->role};
        memcpy(r->seat[k].remote, m->remote, sizeof m->remote);
        rdzv_tally(r, m, -1);
        m->seat = k;
        m->started = m->aware = m->lives = m->at_boundary = m->no_knock = false;
        rdzv_tally(r, m, 1);
    }
    r->size = n;
    r->open_seats = n;
    r->lost_seats = r->succeeded_seats = r->no_knocks = 0;
    rdzv_count_world(r);
}

/* Would the round that runs have another size if it were formed again now? */
bool rdzv_would_change(const struct rdzv *r, const char **why)
{
    if (r->size > r->max) {
        *why = "fewer nodes are wanted";
        return true;
    }
    uint64_t all = r->size + r->good;
    *why = "more nodes are here";
    return down_to_unit(r, all < r->max ? all : r->max) > r->size;
}
