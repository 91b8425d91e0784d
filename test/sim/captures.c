/* Emergency checkpoint of live workers in the simulated cluster: nodes that hold a step only now and then, and train in
 * step with each other; what each says and copies when the round ends, copies that come to nothing, and what must hold:
 * nobody is held back for longer than is allowed, and what all hold is not given out for a copy. */
#include "sim/cluster.h"

#include "coord/rdzv_private.h"

#include <stdio.h>
#include <string.h>

#define STEP_TIME   EL_MS(150) /* of an update, within a step */
#define OWN_LIMIT   EL_SEC(12) /* of a node, far beyond the coordinator's: what it says is seen to be enough */
#define UNDISTURBED EL_SEC(10)

static uint64_t below(struct cluster *c, uint64_t n)
{
    return el_rng_below(&c->lives, n);
}

static bool faulty(struct cluster *c, uint64_t n)
{
    return c->now < c->faults_until && below(c, n) == 0;
}

static void push(struct cluster *c, uint32_t who, el_usec after, enum captures_what what)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_LOCAL, who);
    it->life = a->life;
    it->attempt = a->attempt;
    it->event = MEMBER_EV_STAND;
    it->serial = (uint64_t)what;
}

static bool holds(const struct cluster_agent *a, int64_t step)
{
    for (unsigned i = 0; i < a->restore.n; i++)
        if (a->restore.held[i] == step && a->restore.origin[i] == a->number)
            return true;
    return false;
}

static enum emergency_ckpt_level level(const struct cluster_agent *a, int64_t step)
{
    const struct cluster_capture *x = &a->capture;
    int64_t begun = x->inside > x->live ? x->inside : x->live;
    if (holds(a, step))
        return EMERGENCY_CKPT_HAS;
    if (!x->running || x->out || !a->alive || begun > step || x->live < 0)
        return EMERGENCY_CKPT_NO;
    return x->live == step ? EMERGENCY_CKPT_CAN : x->limit >= step ? EMERGENCY_CKPT_MAY : EMERGENCY_CKPT_NO;
}

static void start_copy(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    if (level(a, x->step) != EMERGENCY_CKPT_CAN) {
        push(c, who, 0, CAPTURES_TELL);
        return;
    }
    x->copying = true;
    push(c, who, EL_MS(1) + below(c, EL_MS(400)), faulty(c, 6) ? CAPTURES_CANNOT : CAPTURES_COPIED);
}

/* --- training --- */

/* All others that live have come as far. */
static bool may_begin(const struct cluster *c, const struct cluster_agent *a, int64_t step)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *o = &c->agent[i];
        if (o->up && o->alive && o->number == a->number && o->coord == a->coord && o->capture.live < step - 1)
            return false;
    }
    return true;
}

/* A step is trained: is it to be committed? */
bool captures_trained(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    int64_t step = (int64_t)it->serial;
    bool inside = a->capture.inside == step;
    if (!inside && (!may_begin(c, a, step) || (a->capture.running && step > a->capture.limit))) {
        cluster_again_at(c, it, c->now + EL_MS(50));
        return false;
    }
    if (!inside) {
        a->capture.inside = step;
        cluster_again_at(c, it, c->now + STEP_TIME);
        return false;
    }
    a->capture.live = step;
    a->capture.inside = -1;
    if (a->capture.running && step == a->capture.step)
        start_copy(c, it->who);
    else if (a->capture.running)
        push(c, it->who, 1, CAPTURES_TELL);
    if (step % 3 == 0 && !a->capture.running)
        return true;
    struct cluster_item *next = cluster_push(c, c->now + EL_MS(200) + below(c, EL_MS(900)), CLUSTER_COMMIT, it->who);
    next->life = a->life;
    next->attempt = a->attempt;
    next->serial = (uint64_t)step + 1;
    return false;
}

void captures_went(struct cluster *c, uint32_t who, int64_t step)
{
    struct cluster_capture *x = &c->agent[who].capture;
    x->live = step;
    x->inside = -1;
}

void captures_round(struct cluster *c, uint32_t who)
{
    c->agent[who].capture = (struct cluster_capture){.live = -2, .inside = -1, .step = -1, .limit = -1, .kept = -1};
}

/* --- what a node says --- */

static void make(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    int64_t at[4] = {x->limit, x->inside > x->live ? x->inside : x->live, -1, -1}, last = INT64_MAX;
    size_t n = 0;
    for (unsigned i = 0; i < a->restore.n; i++)
        at[2 + i] = a->restore.held[i];
    x->text[0] = 0;
    for (;;) {
        int64_t best = -1;
        for (unsigned i = 0; i < 4; i++)
            best = at[i] < last && at[i] > best ? at[i] : best;
        if (best < 0)
            break;
        char l = emergency_ckpt_letter(level(a, best));
        bool broken = saves_is_broken(c, who, best) && l == 'h';
        n += (size_t)snprintf(x->text + n, sizeof x->text - n, "%s%lld:%c,%c0,%c1", n ? " " : "", (long long)best, l,
                              broken ? 'n' : l, l);
        last = best;
    }
    bool copied = x->step >= 0 && !x->copying && level(a, x->step) != EMERGENCY_CKPT_CAN &&
                  level(a, x->step) != EMERGENCY_CKPT_MAY;
    x->said = (struct member_stand){.number = a->number,
                                    .coord = a->coord,
                                    .serial = ++x->serial,
                                    .list = a->save.held.parts == 2 ? a->save.list : 0,
                                    .steps = x->text,
                                    .why = "",
                                    .limit = x->limit,
                                    .step = x->step,
                                    .copied = copied,
                                    .ends = !x->running,
                                    .copies = x->step >= 0 && holds(a, x->step)};
}

/* --- holding back --- */

static void finish(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    if (!x->running)
        return;
    cluster_note(c, who, "its workers are not held back any more, step %lld", (long long)x->step);
    x->running = x->copying = false;
    x->over = true;
    push(c, who, 0, CAPTURES_TELL);
    if (x->fails && !x->dies) {
        struct cluster_item *it = cluster_push(c, c->now + 1, CLUSTER_LOCAL, who);
        it->life = a->life;
        it->attempt = a->attempt;
        it->event = MEMBER_EV_WORKER_FAILED;
        x->fails = false;
    } else if (x->dies) {
        cluster_die_after(c, who, x->dies_after, x->dies_as);
        x->dies = false;
    }
}

static bool begin(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    if (!c->captures || !a->alive || a->stuck || x->over || x->live < 0 || !a->m.up)
        return false;
    if (x->running)
        return true;
    x->running = true;
    x->limit = x->inside > x->live ? x->inside : x->live;
    x->since = c->now;
    cluster_note(c, who, "its workers are held back: behind step %lld, limit %lld", (long long)x->live,
                 (long long)x->limit);
    push(c, who, 0, CAPTURES_TELL);
    push(c, who, OWN_LIMIT, CAPTURES_LATE);
    return true;
}

/* Its workers are to end, after that long: true if they are held back before. */
bool captures_hold(struct cluster *c, uint32_t who, el_usec after, enum member_result as)
{
    struct cluster_capture *x = &c->agent[who].capture;
    if (!c->captures || !begin(c, who)) {
        if (c->captures && c->agent[who].alive)
            push(c, who, 0, CAPTURES_TELL);
        return false;
    }
    cluster_note(c, who, "its workers end when that is over");
    x->dies = true;
    x->dies_after = after;
    x->dies_as = as;
    return true;
}

/* A worker fails: all of the node at once, or its script waits before it ends; else the others are held back then. */
bool captures_fails(struct cluster *c, uint32_t who)
{
    struct cluster_capture *x = &c->agent[who].capture;
    if (!c->captures || x->over || x->running)
        return false;
    if (below(c, 3) == 0) {
        x->over = true;
        return false;
    }
    if (below(c, 2) || !begin(c, who))
        return false;
    x->fails = true;
    return true;
}

bool captures_holds(const struct cluster *c, uint32_t who)
{
    return c->captures && c->agent[who].capture.running;
}

/* --- orders --- */

void captures_order(struct cluster *c, uint32_t who, const struct msg_ckpt_capture *o)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    if (!x->running && (o->what != EMERGENCY_CKPT_FREEZE || a->told || !begin(c, who))) {
        if (o->what != EMERGENCY_CKPT_OVER)
            push(c, who, 0, CAPTURES_TELL);
        return;
    }
    if (o->limit > x->limit) {
        x->limit = o->limit;
        push(c, who, 0, CAPTURES_TELL);
    }
    if (o->what == EMERGENCY_CKPT_OVER) {
        finish(c, who);
    } else if (o->what == EMERGENCY_CKPT_COPY && o->heard == x->serial && o->step != x->step && !x->copying) {
        x->step = o->step;
        x->kept = o->kept;
        start_copy(c, who);
    }
}

/* The newest step that all nodes of the round hold, if all of them are there, and stay: what is in the memory of one
 * that leaves goes with it; else -1. */
static int64_t newest_of_all(const struct cluster *c, const struct cluster_agent *a)
{
    unsigned there = 0;
    for (uint32_t i = 0; i < c->n; i++)
        there += c->agent[i].up && !c->agent[i].m.leaving && c->agent[i].number == a->number &&
                 c->agent[i].coord == a->coord;
    for (unsigned i = a->restore.n; i-- > 0;) {
        unsigned all = 0;
        for (uint32_t k = 0; k < c->n; k++) {
            const struct cluster_agent *o = &c->agent[k];
            all += o->up && o->number == a->number && o->coord == a->coord && holds(o, a->restore.held[i]);
        }
        if (all == there && there == a->m.world.group_size)
            return a->restore.held[i];
    }
    return -1;
}

static void copied(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_capture *x = &a->capture;
    struct cluster_restore *r = &a->restore;
    bool useful = x->copying && a->alive && !holds(a, x->step);
    x->copying = false; /* nobody is left who copies, if the guard has killed the workers meanwhile */
    if (!useful)
        return;
    if (r->n == 2) {
        unsigned gone = r->held[0] == x->kept;
        if (r->held[gone] == newest_of_all(c, a))
            cluster_fail(c, "agent %u gives step %lld, which all hold, for a copy of step %lld", who,
                         (long long)r->held[gone], (long long)x->step);
        if (saves_wished(a, r->held[gone])) /* that one is held: there is no slot */
            x->out = true;
        else if (!gone)
            r->held[0] = r->held[1], r->origin[0] = r->origin[1], r->made[0] = r->made[1], r->line[0] = r->line[1];
        if (!x->out)
            r->n = 1;
    }
    if (!x->out) {
        restores_hold(r, x->step, a->number, restores_makes(c, who), r->trains);
        r->newest = x->step > r->newest ? x->step : r->newest;
        saves_committed(c, who, -1);
    }
}

static void late(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    el_usec since = a->capture.since;
    if (!a->capture.running)
        return;
    if (!a->alive) { /* the guard has killed the workers: nobody is held, and who comes back has no words to be told */
        finish(c, who);
        return;
    }
    bool quiet = a->fault_at < since && c->coord_fault_at < since && a->swallow < since && a->cut[0][0] < since &&
                 a->cut[0][1] < since;
    if (a->m.link != MEMBER_LINK_UP)
        cluster_fail(c, "agent %u is held back since %.3f s, and has no coordinator", who,
                     (double)a->capture.since / 1e6);
    if (quiet && c->coord_up)
        cluster_fail(c, "agent %u is held back since %.3f s and nobody tells it that it is over", who,
                     (double)a->capture.since / 1e6);
    finish(c, who);
}

/* Nobody is there with whom to agree. */
void captures_lost(struct cluster *c, uint32_t who)
{
    if (c->agent[who].capture.copying)
        c->agent[who].capture.lost = true;
    else
        finish(c, who);
}

/* An event of this file's for the core; false: not for it. */
bool captures_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_capture *x = &a->capture;
    enum captures_what what = (enum captures_what)it->serial;
    if (it->event != MEMBER_EV_STAND)
        return true;
    if (what == CAPTURES_LATE)
        late(c, it->who);
    else if (what == CAPTURES_COPIED)
        copied(c, it->who);
    x->out |= what == CAPTURES_CANNOT;
    if (what == CAPTURES_CANNOT)
        x->copying = false;
    if (x->lost && !x->copying)
        finish(c, it->who);
    make(c, it->who);
    ev->stand = &x->said;
    return true;
}

/* The coordinator thinks that a step is held: whoever was there all the time holds it. */
void captures_check(struct cluster *c)
{
    const struct emergency_ckpt *w = &c->r->emergency;
    if (w->state != EMERGENCY_CKPT_IS_OVER || w->step == EMERGENCY_CKPT_NO_STEP || c->captured_round == c->r->number)
        return;
    c->captured_round = c->r->number;
    c->captures_done++;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *a = &c->agent[i];
        bool there = a->up && a->m.link == MEMBER_LINK_UP && a->number == c->r->number && a->coord == c->r->coord;
        if (there && a->fault_at + UNDISTURBED < c->now && !a->m.leaving && !holds(a, w->step))
            cluster_fail(c, "step %lld is said to be captured, agent %u does not hold it", (long long)w->step, i);
    }
}
