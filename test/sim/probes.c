/* Health checks in the simulated cluster: hosts and links that are bad, children that hang, nodes that vanish in the
 * middle; and what must hold: nobody is condemned whose hardware is well, and whoever is bad does not get past a check
 * that nothing has disturbed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/rdzv_private.h"
#include "sim/cluster.h"

enum { PAGES = 2 };

#define CHILD_LIMIT EL_SEC(15) /* a child's own, for whatever it waits for */

static bool roll(struct cluster *c, uint64_t n)
{
    return el_rng_below(&c->hardware, n) == 0;
}

void probes_set_up(struct cluster *c)
{
    bool wanted = !c->quiet && c->seed % 3 == 1;
    c->hardware.state = c->seed ^ 0x70726f6265;
    c->bad_link[0] = c->bad_link[1] = CLUSTER_COORD;
    c->checked_from = EL_NEVER;
    c->patience = 2;
    if (!wanted)
        return;
    struct rdzv_settings *s = &c->conf.set;
    s->health_check = 1 + el_rng_below(&c->hardware, 3);
    s->probe_rounds = el_rng_below(&c->hardware, 2) ? 0 : 8;
    s->probe_timeout_ms = roll(c, 8) ? 3000 : 300000;
    s->probe_quick = roll(c, 2);
    bool parks = c->seed % 4 == 0;
    s->on_bad = roll(c, 10) ? HEALTH_BAD_STOP : parks ? HEALTH_BAD_PARK : HEALTH_BAD_EXCLUDE;
    s->on_undecided = roll(c, 10);
    for (uint32_t i = 0; i < c->n; i++) {
        c->agent[i].bad = roll(c, 6);
        c->agent[i].bad_alone = c->agent[i].bad && roll(c, 3);
        c->agent[i].bad_late = c->agent[i].bad && !c->agent[i].bad_alone && roll(c, 5);
    }
    if (c->n > 1 && roll(c, 3)) {
        c->bad_link[0] = (uint32_t)el_rng_below(&c->hardware, c->n);
        c->bad_link[1] = (uint32_t)el_rng_below(&c->hardware, c->n);
    }
}

static uint32_t number_of(const char *host)
{
    return (uint32_t)strtoul(host + 1, NULL, 10);
}

/* For messages on their way: the strings of a check may be gone when they arrive. */
const char *probes_host(const char *host)
{
    static char names[64][8];
    uint32_t i = number_of(host) % 64;
    snprintf(names[i], sizeof names[i], "h%u", i);
    return names[i];
}

static struct cluster_item *later(struct cluster *c, uint32_t who, el_usec after, enum member_event_type type)
{
    struct cluster_item *it = cluster_push(c, c->now + after, CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->event = type;
    it->stage = c->agent[who].probe.serial;
    return it;
}

static el_usec some_time(struct cluster *c, bool may_hang)
{
    if (may_hang && c->now < c->faults_until && roll(c, 30)) {
        c->hung_at = c->now + CHILD_LIMIT;
        c->hangs++;
        return CHILD_LIMIT;
    }
    return EL_MS(20) + el_rng_below(&c->hardware, EL_MS(900));
}

/* What its partners in pairs see. */
static bool is_seen_in_pairs(const struct cluster_agent *a)
{
    return a->bad && !a->bad_alone && !a->bad_late;
}

static bool is_link_bad(const struct cluster *c, uint32_t a, uint32_t b)
{
    return (c->bad_link[0] == a && c->bad_link[1] == b) || (c->bad_link[0] == b && c->bad_link[1] == a);
}

/* MEMBER_DO_PROBE: a new stage, or the same once more with the ids that were missing. */
void probes_order(struct cluster *c, uint32_t who, const struct msg_probe *o)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_probe *p = &a->probe;
    if (!p->on) {
        *p = (struct cluster_probe){.on = true, .serial = ++c->probe_serial};
        p->order = *o;
        p->peer = o->kind == HEALTH_CHECK_PAIR ? number_of(o->peer) : CLUSTER_COORD;
        if (o->kind == HEALTH_CHECK_LOCAL || o->kind == HEALTH_CHECK_AFTER)
            later(c, who, some_time(c, true), MEMBER_EV_PROBED);
        else if (o->kind == HEALTH_CHECK_PAIR && !o->guest)
            later(c, who, some_time(c, true), MEMBER_EV_PROBE_ID);
        if (o->kind == HEALTH_CHECK_PAIR)
            later(c, who, CHILD_LIMIT, MEMBER_EV_PROBED)->late = true; /* the other end never came */
    }
    if (o->kind == HEALTH_CHECK_PAIR && o->parted && !p->done)
        later(c, who, EL_MS(1) + el_rng_below(&c->hardware, EL_MS(50)), MEMBER_EV_PROBED)->parted = true;
    if (o->kind != HEALTH_CHECK_PAIR || !o->guest || !*o->ids || p->met || o->parted)
        return;
    p->met = true;
    /* Both ends are there, or this one finds nobody. */
    struct cluster_agent *b = &c->agent[p->peer];
    const struct msg_probe *theirs = &b->probe.order;
    bool same =
        b->up && b->probe.on && theirs->probe == o->probe && theirs->coord == o->coord && theirs->stage == o->stage;
    el_usec after = some_time(c, true);
    struct cluster_item *it = later(c, who, after, MEMBER_EV_PROBED);
    it->met = same;
    it->peer_life = b->life;
    if (!same)
        return;
    b->probe.met = true;
    it = later(c, p->peer, after, MEMBER_EV_PROBED);
    it->met = true;
    it->peer_life = a->life;
}

void probes_stop(struct cluster *c, uint32_t who)
{
    c->agent[who].probe.on = false;
}

/* The child of a stage has ended, or has an id. False: nobody waits for that any more. */
bool probes_local(struct cluster *c, const struct cluster_item *it)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_probe *p = &a->probe;
    if (!p->on || p->serial != it->stage || p->done)
        return false;
    if (it->event == MEMBER_EV_PROBE_ID) {
        p->has_id = true;
        return true;
    }
    if (it->late && p->met && !it->parted)
        return false; /* they have met: the other result comes */
    p->done = true;
    p->outcome = HEALTH_CHECK_OK;
    if (p->order.kind == HEALTH_CHECK_LOCAL && a->bad_alone)
        p->outcome = HEALTH_CHECK_FAILED;
    if (p->order.kind == HEALTH_CHECK_AFTER && a->bad_late)
        p->outcome = HEALTH_CHECK_FAILED;
    if (p->order.kind != HEALTH_CHECK_PAIR)
        return true;
    const struct cluster_agent *b = &c->agent[p->peer];
    bool there = it->met && b->up && b->life == it->peer_life;
    bool well = !is_seen_in_pairs(a) && !is_seen_in_pairs(b) && !is_link_bad(c, it->who, p->peer);
    if (!there || !well)
        p->outcome = HEALTH_CHECK_FAILED;
    return true;
}

/* MEMBER_DO_PROBE_TELL */
void probes_tell(struct cluster *c, uint32_t who, enum msg_type what)
{
    struct cluster_agent *a = &c->agent[who];
    const struct cluster_probe *p = &a->probe;
    const struct msg_probe *o = &p->order;
    struct msg m = {.type = what};
    if (what == MSG_PROBE_ID) {
        m.u.probe_id = (struct msg_probe_id){o->number, o->coord, o->probe, o->stage, 0, "x"};
        net_send(c, a->link, true, &m);
        return;
    }
    for (unsigned page = 0; page < PAGES; page++) {
        bool last = page + 1 == PAGES;
        m.u.probe_result =
            (struct msg_probe_result){.number = o->number,
                                      .coord = o->coord,
                                      .probe = o->probe,
                                      .stage = o->stage,
                                      .page = page,
                                      .rail = o->kind == HEALTH_CHECK_PAIR ? 0 : -1,
                                      .outcome = last ? p->outcome : HEALTH_CHECK_OK,
                                      .text = last && p->outcome == HEALTH_CHECK_FAILED ? "it failed" : "",
                                      .lines = "{\"t\":\"check\",\"name\":\"shm\",\"state\":\"warn\"}\n",
                                      .more = !last};
        net_send(c, a->link, true, &m);
    }
}

/* --- what must hold --- */

/* An order to check itself: a check begins, or a node comes back to it. */
void probes_ordered(struct cluster *c, uint32_t who, const struct msg_probe *o)
{
    struct cluster_agent *a = &c->agent[who];
    if (c->check_coord != o->coord || c->check_number != o->probe) {
        c->check_coord = o->coord;
        c->check_number = o->probe;
        c->checked_from = c->now;
        c->checked = 0;
        for (uint32_t i = 0; i < c->n; i++)
            c->agent[i].checked = false;
    }
    if (o->kind == HEALTH_CHECK_LOCAL && !a->checked) {
        a->checked = true;
        a->checked_life = a->life;
        c->checked++;
    }
    if (a->alive && !a->stuck)
        cluster_fail(c, "agent %u is to check itself beside its workers", who);
}

/* Nothing was done to anybody who takes part, or to the coordinator, since shortly before the check. */
static bool is_undisturbed(const struct cluster *c)
{
    el_usec since = c->checked_from > EL_SEC(12) ? c->checked_from - EL_SEC(12) : 0;
    if (c->coord_fault_at > since || c->hung_at > since || c->conf.set.probe_timeout_ms < 10000)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct cluster_agent *a = &c->agent[i];
        if (a->checked && (a->fault_at > since || a->checked_life != a->life))
            return false;
    }
    return true;
}

static unsigned count_well(const struct cluster *c)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += c->agent[i].checked && !c->agent[i].bad;
    return n;
}

/* RDZV_DO_PROBE_REPORT: the verdicts follow, and perhaps the next check with them. */
void probes_over(struct cluster *c)
{
    c->fair = c->conf.set.probe_rounds == 0 && count_well(c) >= 3 && is_undisturbed(c);
    c->fair_checks += c->fair;
}

void probes_verdict(struct cluster *c, uint32_t who, uint64_t life, const struct msg_probe_verdict *v)
{
    struct cluster_agent *a = &c->agent[who];
    bool bad = v->verdict == HEALTH_BAD;
    c->verdicts++;
    bool link = c->bad_link[0] == who || c->bad_link[1] == who;
    bool ambiguous = c->hangs + link > 1 || (strstr(v->text, "two bad links") && c->hangs + link);
    if (bad && !a->bad && !ambiguous)
        cluster_fail(c, "agent %u is condemned, and its hardware is well", who);
    if (v->excluded && !bad && v->verdict != HEALTH_SLOW)
        cluster_fail(c, "agent %u is excluded as %s", who, health_verdict_name((enum health_verdict)v->verdict));
    if (v->excluded && bad && c->conf.set.on_bad == HEALTH_BAD_PARK)
        cluster_fail(c, "agent %u is excluded, and was to wait", who);
    if (a->bad && !bad && c->fair)
        cluster_fail(c, "agent %u is bad, and a check that nothing disturbed calls it %s: %s", who,
                     health_verdict_name((enum health_verdict)v->verdict), v->text);
    if (!a->bad && v->verdict != HEALTH_GOOD && c->fair)
        cluster_fail(c, "agent %u is well, and a check that nothing disturbed calls it %s: %s", who,
                     health_verdict_name((enum health_verdict)v->verdict), v->text);
    a->condemned = bad;
    a->condemned_life = life;          /* who is started there later is taken, too, if too few others are there */
    a->condemned_term = c->coord_life; /* … and the next coordinator may have to take this one */
}

/* Who waits as a last resort is taken for a round of the least size only. */
static bool may_be_taken(const struct cluster *c, const struct msg_world *w)
{
    uint64_t unit = c->conf.set.unit, least = (c->r->min + unit - 1) / unit * unit;
    return c->conf.set.on_bad == HEALTH_BAD_PARK && w->group_size <= least;
}

/* A WORLD leaves: whoever was condemned has no part in it, nobody is still being looked at, and a round that wants a
 * check has had one, or three that nodes which came and went have spoiled. */
void probes_world(struct cluster *c, uint32_t who, const struct msg_world *w)
{
    struct cluster_agent *a = &c->agent[who];
    if (a->condemned && a->condemned_life == a->life && a->condemned_term == c->coord_life && !may_be_taken(c, w))
        cluster_fail(c, "agent %u was found bad, and gets round %llu", who, (unsigned long long)w->number);
    if (c->conf.set.health_check && !c->verdicts && c->checks < 3 && w->number == 1 && !c->unkept &&
        w->coord == c->conf.coord && c->coord_life == 1)
        cluster_fail(c, "round 1 starts without a health check");
}
