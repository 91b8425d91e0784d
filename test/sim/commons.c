/* Steps that all nodes hold, in the simulated cluster: which of its two slots a node writes over, by the rule of
 * snapshot/slot_pin.h with what the coordinator says, and what must hold: whatever all nodes of a round have taken all
 * hold, or what they have taken since. */
#include <stdio.h>
#include <string.h>

#include "coord/common_step.h"
#include "sim/cluster.h"

static struct slot_pin *table(struct cluster *c, uint32_t who)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_common *x = &a->common;
    x->w = (struct slot_pin_worker){.next = 1, .comes = a->alive, .passed = x->passed};
    for (unsigned i = 0; i < a->restore.n; i++) {
        bool now = a->restore.line[i] == a->restore.trains;
        struct slot_pin_step of = {a->restore.held[i], now ? 0 : -1, a->restore.line[i], 0};
        bool useless = false;
        for (unsigned u = 0; u < x->useless_n; u++)
            useless |= x->useless[u].step == of.step && x->useless[u].lineage == of.lineage;
        x->w.slot[i] =
            (struct slot_pin_slot){useless ? SLOT_PIN_USELESS : SLOT_PIN_HELD, saves_wished(a, of.step), of, i + 1};
    }
    x->pin = (struct slot_pin){.n = 1, .w = &x->w, .several = true, .common = x->common, .from = x->from};
    return &x->pin;
}

static void tell(struct cluster *c, uint32_t who)
{
    struct cluster_item *it = cluster_push(c, c->now + 1 + el_rng_below(&c->stores, EL_MS(5)), CLUSTER_LOCAL, who);
    it->life = c->agent[who].life;
    it->event = MEMBER_EV_TAKEN;
}

/* All go on together, or a round begins. */
void commons_begin(struct cluster *c, uint32_t who, int64_t step, uint64_t line)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_common *x = &a->common;
    x->passed = (struct slot_pin_step){SLOT_PIN_NO_STEP, 0, a->restore.trains, 0};
    x->from = 0;
    x->taken_n = 0;
    if (step != RESTORE_NO_STEP)
        x->common = (struct slot_pin_step){step, -1, line, 0};
    x->common.era = -1;
    if (a->number)
        tell(c, who);
}

void commons_boot(struct cluster *c, uint32_t who)
{
    c->agent[who].common = (struct cluster_common){.common = {SLOT_PIN_NO_STEP, -1, 0, 0}};
}

/* Which slot the step is written into; 2: a free one, -1: none, so that the node waits or leaves it out. */
int commons_slot(struct cluster *c, uint32_t who, int64_t step)
{
    struct cluster_agent *a = &c->agent[who];
    bool waits = c->seed % 3 == 0 || step % 3 == 0; /* what is wanted on disk is waited for */
    a->common.passed.step = step - 1;
    int slot = waits || slot_pin_may_begin(table(c, who), 0, step) ? slot_pin_slot(table(c, who), 0) : -1;
    a->common.stuck = slot < 0;
    if (slot < 0 && !waits)
        a->common.passed.step = step;
    tell(c, who);
    return slot < 0 ? waits ? -2 : -1 : (unsigned)slot < a->restore.n ? slot : 2;
}

void commons_committed(struct cluster *c, uint32_t who, int64_t step, uint64_t line)
{
    struct cluster_common *x = &c->agent[who].common;
    if (x->taken_n == CLUSTER_TAKEN_MAX)
        memmove(x->taken, x->taken + 1, --x->taken_n * sizeof x->taken[0]);
    x->taken[x->taken_n++] = (struct slot_pin_step){step, 0, line, 0};
    tell(c, who);
}

static bool has_taken(const struct cluster_common *x, struct slot_pin_step of)
{
    for (unsigned i = 0; i < x->taken_n; i++)
        if (x->taken[i].step == of.step && x->taken[i].lineage == of.lineage)
            return true;
    return false;
}

static bool holds(const struct cluster_agent *a, struct slot_pin_step of)
{
    for (unsigned i = 0; i < a->restore.n; i++)
        if (a->restore.held[i] == of.step && a->restore.line[i] == of.lineage)
            return true;
    return false;
}

/* The nodes of a round that train in it; true: all that it has. */
static bool all_of(struct cluster *c, const struct cluster_agent *a,
                   bool (*has)(const struct cluster_agent *, struct slot_pin_step), struct slot_pin_step of)
{
    unsigned n = 0;
    const struct cluster_round *r = judge_round(c, a->number, a->coord);
    for (uint32_t i = 0; r && i < c->n; i++) {
        const struct cluster_agent *o = &c->agent[i];
        n += o->up && o->alive && !o->told && o->restore.gone && o->number == a->number && o->coord == a->coord &&
             has(o, of);
    }
    return r && n == r->size;
}

static bool taken_by(const struct cluster_agent *a, struct slot_pin_step of)
{
    return has_taken(&a->common, of);
}

void commons_check(struct cluster *c, uint32_t who)
{
    const struct cluster_agent *a = &c->agent[who];
    const struct cluster_common *x = &a->common;
    if (a->capture.running) /* what all hold stays then by other rules */
        return;
    for (unsigned i = x->taken_n; i-- > 0;) {
        if (all_of(c, a, holds, x->taken[i]))
            return;
        if (!all_of(c, a, taken_by, x->taken[i]))
            continue;
        cluster_fail(c, "all nodes have taken step %lld, and neither it nor a newer one is held by all",
                     (long long)x->taken[i].step);
        return;
    }
}

void commons_order(struct cluster *c, uint32_t who, const struct msg_ckpt_common *m)
{
    struct cluster_agent *a = &c->agent[who];
    struct cluster_common *x = &a->common;
    bool now = m->lineage == a->restore.trains;
    if (m->step != SLOT_PIN_NO_STEP)
        x->common = (struct slot_pin_step){m->step, now ? 0 : -1, m->lineage, 0};
    x->from = (int64_t)m->from;
    x->useless_n = common_step_list_get(m->useless, x->useless, sizeof x->useless / sizeof x->useless[0]);
    for (unsigned i = 0; i < x->useless_n; i++)
        if (x->useless[i].lineage == a->restore.trains && x->useless[i].step > x->passed.step &&
            holds(a, x->useless[i]))
            x->passed.step = x->useless[i].step;
    c->commons++;
    tell(c, who);
}

/* An event of this file's for the core; false: not for it. */
bool commons_local(struct cluster *c, const struct cluster_item *it, struct member_event *ev)
{
    struct cluster_agent *a = &c->agent[it->who];
    struct cluster_common *x = &a->common;
    struct slot_pin_told t;
    memset(&t, 0, sizeof t); /* it is compared as it lies there */
    if (it->event != MEMBER_EV_TAKEN)
        return true;
    if (!a->number)
        return false;
    slot_pin_tell(table(c, it->who), &t);
    t.stuck = x->stuck;
    if (memcmp(&t, &x->told, sizeof t) == 0 && x->said.number == a->number && x->said.coord == a->coord)
        return false;
    x->told = t;
    common_step_list_put(t.is_whole, t.whole, x->whole, sizeof x->whole);
    common_step_list_put(t.is_coming, t.coming, x->coming, sizeof x->coming);
    x->said = (struct member_taken){.number = a->number,
                                    .coord = a->coord,
                                    .whole = x->whole,
                                    .coming = x->coming,
                                    .era = t.era,
                                    .passed = t.passed,
                                    .begun = t.begun,
                                    .ready = t.ready,
                                    .stuck = t.stuck};
    ev->taken = &x->said;
    return true;
}
