/* There is always a step to go back to: workers with two slots each that come to the steps of a script at their own
 * speed, take them or leave them out, and go back; every order of events of two and three of them, and many orders of
 * more.  Whatever all have taken, they can go back to it, or to what all have taken since. */
#include "snapshot/slot_pin.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "util/rng.h"

#define WORKERS 4
#define PLACES  120 /* of a script: snapshots that it takes, one behind the other */

struct place {
    struct slot_pin_step of;
    unsigned taken; /* workers that have committed it, as bits */
};

struct stage {
    struct slot_pin p;
    struct slot_pin_worker w[WORKERS];
    unsigned at[WORKERS]; /* the next place of each */
    struct place place[PLACES];
    unsigned places;
    uint64_t gen;
    bool waits;
};

static void init(struct stage *s, unsigned workers, unsigned like)
{
    memset(s, 0, sizeof *s);
    s->p = (struct slot_pin){.n = workers};
    for (unsigned i = 0; i < workers; i++) {
        unsigned next = i + 1;
        while (next < workers && (like >> next & 1) != (i == 0 || (like >> i & 1)))
            next++;
        s->w[i] = (struct slot_pin_worker){
            .like = like >> i & 1 ? 0 : i, .next = i && !(like >> i & 1) ? workers : next, .comes = true};
        s->w[i].passed = (struct slot_pin_step){-1, 0, 1, 0};
    }
}

/* The script: back[i]: it goes back by so much before its i-th snapshot; by 1: it takes the same step once more. */
static void write_script(struct stage *s, unsigned places, const unsigned char *back)
{
    struct slot_pin_step of = {0, 0, 1, 0};
    for (unsigned i = 0; i < places; i++) {
        of.take = i && back && back[i] == 1 ? of.take + 1 : 0;
        of.step = back && of.step >= back[i] ? of.step + 1 - back[i] : of.step + 1;
        if (i && of.step < s->place[i - 1].of.step) {
            of.lineage = of.lineage * 31 + (uint64_t)of.step;
            of.era++;
        }
        s->place[i] = (struct place){of, 0};
    }
    s->places = places;
}

static struct slot_pin *table(struct stage *s)
{
    s->p.w = s->w;
    s->p.known = 0;
    return &s->p;
}

static bool is_behind(struct slot_pin_step a, struct slot_pin_step b)
{
    return a.step != b.step ? a.step < b.step : a.take < b.take;
}

/* The keeper's part: what a worker says when it comes to a snapshot. */
static void come_to(struct stage *s, unsigned i, struct slot_pin_step of)
{
    struct slot_pin_step *passed = &s->w[i].passed, before = {of.step - 1, of.era, of.lineage, UINT64_MAX};
    if (of.take)
        before = (struct slot_pin_step){of.step, of.era, of.lineage, of.take - 1};
    if (passed->lineage != of.lineage || is_behind(*passed, before))
        *passed = before;
}

static bool begin(struct stage *s, unsigned i)
{
    struct slot_pin_step of = s->place[s->at[i]].of;
    come_to(s, i, of);
    bool wants = s->waits || slot_pin_may_begin(table(s), i, of.step);
    int slot = wants ? slot_pin_slot(table(s), i) : -1;
    if (slot < 0 && s->waits)
        return false; /* it asks again */
    s->at[i]++;
    if (slot < 0)
        s->w[i].passed = of;
    else
        s->w[i].slot[slot] = (struct slot_pin_slot){SLOT_PIN_WORK, false, of, ++s->gen};
    return slot >= 0;
}

static int in_work(const struct stage *s, unsigned i)
{
    int oldest = -1;
    for (int k = 0; k < SLOT_PIN_SLOTS; k++)
        if (s->w[i].slot[k].at == SLOT_PIN_WORK && (oldest < 0 || s->w[i].slot[k].gen < s->w[i].slot[oldest].gen))
            oldest = k;
    return oldest;
}

static struct place *find(struct stage *s, struct slot_pin_step of)
{
    for (unsigned i = s->places; i-- > 0;)
        if (s->place[i].of.step == of.step && s->place[i].of.lineage == of.lineage && s->place[i].of.take == of.take)
            return &s->place[i];
    return NULL;
}

static void finish(struct stage *s, unsigned i, bool good)
{
    struct slot_pin_slot *x = &s->w[i].slot[in_work(s, i)];
    x->at = good ? SLOT_PIN_HELD : SLOT_PIN_EMPTY;
    for (unsigned k = 0; good && k < s->p.n; k++) /* what one has is enough for all that have declared the same */
        if (s->w[k].like == s->w[i].like)
            find(s, x->of)->taken |= 1u << k;
    if (!good && x->of.lineage == s->w[i].passed.lineage && is_behind(s->w[i].passed, x->of))
        s->w[i].passed = x->of;
}

/* The newest that all have taken can still be had, or a newer one; and so say the slots, not the rule alone. */
static bool holds(struct stage *s)
{
    struct slot_pin_step common = slot_pin_common(table(s));
    unsigned newest = 0;
    for (unsigned i = 0; i < s->places; i++)
        if (s->place[i].taken == (1u << s->p.n) - 1)
            newest = i + 1;
    if (!newest)
        return common.step == SLOT_PIN_NO_STEP;
    const struct place *at = find(s, common);
    if (!at || at < &s->place[newest - 1])
        return false;
    for (unsigned i = 0; i < s->p.n; i++) {
        bool has = false;
        for (unsigned k = 0; k < s->p.n * SLOT_PIN_SLOTS; k++) {
            const struct slot_pin_slot *x = &s->w[k / SLOT_PIN_SLOTS].slot[k % SLOT_PIN_SLOTS];
            has |= s->w[k / SLOT_PIN_SLOTS].like == s->w[i].like && x->at == SLOT_PIN_HELD &&
                   x->of.step == common.step && x->of.lineage == common.lineage && x->of.take == common.take;
        }
        if (!has)
            return false;
    }
    return true;
}

static void print(const struct stage *s)
{
    for (unsigned i = 0; i < s->p.n; i++) {
        printf("# worker %u, next %u, passed %lld of %llx:", i, s->at[i], (long long)s->w[i].passed.step,
               (unsigned long long)s->w[i].passed.lineage);
        for (unsigned k = 0; k < SLOT_PIN_SLOTS; k++)
            printf(" %d %lld@%llx", (int)s->w[i].slot[k].at, (long long)s->w[i].slot[k].of.step,
                   (unsigned long long)s->w[i].slot[k].of.lineage);
        printf("\n");
    }
}

/* --- every order --- */

static unsigned long cases, wrong;

/* Each worker may come to its next snapshot, bring one to its end, or fail in that. */
static void walk(const struct stage *from, unsigned depth, bool fails)
{
    if (!depth || wrong)
        return;
    for (unsigned i = 0; i < from->p.n; i++)
        for (unsigned what = 0; what < (fails ? 3u : 2u); what++) {
            struct stage s = *from;
            if (what == 0 && s.at[i] < s.places)
                begin(&s, i);
            else if (what && in_work(&s, i) >= 0)
                finish(&s, i, what == 1);
            else
                continue;
            cases++;
            if (!holds(&s)) {
                wrong++;
                print(&s);
                return;
            }
            walk(&s, depth - 1, fails);
        }
}

static void test_every_order(void)
{
    static const unsigned char straight[12], back[12] = {0, 0, 0, 3, 0, 0, 0}, anew[12] = {0, 0, 2, 0, 2},
                                             twice[12] = {0, 0, 1, 0, 1, 1}, both[12] = {0, 1, 0, 2, 1};
    static const unsigned char *const script[] = {straight, back, anew, twice, both};
    struct stage s;
    for (unsigned k = 0; k < 5; k++)
        for (unsigned waits = 0; waits < 2; waits++)
            for (unsigned same = 0; same < 2; same++) {
                init(&s, 2, same ? 2 : 0);
                write_script(&s, 7, script[k]);
                s.waits = waits;
                walk(&s, 10, false);
                walk(&s, 7, true);
                init(&s, 3, same ? 4 : 0);
                write_script(&s, 5, script[k]);
                s.waits = waits;
                walk(&s, 7, false);
            }
    is_num((long)wrong, 0, "whatever all have taken, they can go back to it, or to what all have taken since");
    ok(cases > 1000000, "in every order of events");
    printf("# %lu\n", cases);
}

/* --- many orders --- */

struct run {
    struct stage s;
    struct el_rng rng;
    unsigned step, sum; /* the longest time of a step, and of making a snapshot, of any worker */
    unsigned step_of[WORKERS], sum_of[WORKERS];
    unsigned next[WORKERS], made[WORKERS]; /* when it comes to its next snapshot; when the one in work is made */
    unsigned now, changed;                 /* changed: when the common step did */
    bool skips;    /* every third place is wanted on disk, and held for it; now and then a worker passes it by */
    bool together; /* no worker begins a step before all have done the one before */
    struct slot_pin_step common;
};

static unsigned about(struct run *r, unsigned time)
{
    return 1 + time / 2 + (unsigned)el_rng_below(&r->rng, time);
}

static bool may_go_on(const struct run *r, unsigned i)
{
    for (unsigned k = 0; k < r->s.p.n && r->together; k++)
        if (r->s.at[k] < r->s.at[i])
            return false;
    return r->s.at[i] < r->s.places;
}

static bool skips(struct run *r, unsigned i)
{
    struct stage *s = &r->s;
    if (!r->skips || s->at[i] % 3 != 2 || el_rng_below(&r->rng, 4))
        return false;
    come_to(s, i, s->place[s->at[i]].of);
    s->w[i].passed = s->place[s->at[i]++].of;
    return true;
}

/* As the disk holds slots: from the first commit until the step is whole, or is seen to be hopeless, and no longer. */
static void hold_for_disk(struct run *r)
{
    struct slot_pin *p = table(&r->s);
    for (unsigned i = 0; i < p->n * SLOT_PIN_SLOTS; i++) {
        struct slot_pin_slot *x = &r->s.w[i / SLOT_PIN_SLOTS].slot[i % SLOT_PIN_SLOTS];
        x->read = x->at == SLOT_PIN_HELD && x->of.step % 3 == 2 && slot_pin_state(p, x->of) == SLOT_PIN_COMING;
    }
}

static bool turn(struct run *r, bool disturbed)
{
    bool news = false;
    for (unsigned i = 0; i < r->s.p.n; i++) {
        struct stage *s = &r->s;
        if (in_work(s, i) >= 0 && r->made[i] <= r->now) {
            finish(s, i, !disturbed || el_rng_below(&r->rng, 8));
            r->made[i] = r->now + about(r, r->sum_of[i]);
            news = true;
        }
        if (r->next[i] <= r->now && may_go_on(r, i)) {
            unsigned was = s->at[i];
            bool idle = in_work(s, i) < 0;
            news = true;
            if (!skips(r, i) && begin(s, i) && idle)
                r->made[i] = r->now + about(r, r->sum_of[i]);
            if (s->at[i] != was)
                r->next[i] = r->now + about(r, r->step_of[i]);
        }
        if (disturbed && el_rng_below(&r->rng, 6) == 0) { /* a slot is read for a while: it goes to disk */
            struct slot_pin_slot *x = &s->w[i].slot[el_rng_below(&r->rng, SLOT_PIN_SLOTS)];
            x->read = x->at == SLOT_PIN_HELD && !x->read;
        }
    }
    if (news && !holds(&r->s)) {
        print(&r->s);
        return false;
    }
    if (r->skips)
        hold_for_disk(r);
    struct slot_pin_step common = slot_pin_common(table(&r->s));
    if (common.step != r->common.step || common.lineage != r->common.lineage)
        r->changed = r->now;
    r->common = common;
    return true;
}

/* Where nobody fails, and workers train in step, a newer step becomes common within the time that a few snapshots take;
 * else it takes as long as the slowest needs to come to where the fastest was. */
static bool storm(uint64_t start, bool disturbed)
{
    static struct run r;
    unsigned char back[PLACES] = {0};
    r = (struct run){.rng = {start}, .together = start & 1, .skips = start & 16};
    unsigned n = 2 + (unsigned)el_rng_below(&r.rng, WORKERS - 1);
    for (unsigned i = 0; i < PLACES && start & 4; i++)
        back[i] = i > 5 && el_rng_below(&r.rng, 20) == 0 ? (unsigned char)(1 + el_rng_below(&r.rng, 5)) : 0;
    init(&r.s, n, start & 8 ? (unsigned)el_rng_below(&r.rng, 16) : 0);
    write_script(&r.s, PLACES, back);
    r.s.waits = start & 2;
    for (unsigned i = 0; i < n; i++) {
        r.step_of[i] = 1 + (unsigned)el_rng_below(&r.rng, 20);
        r.sum_of[i] = 1 + (unsigned)el_rng_below(&r.rng, 60);
        r.step = r.step_of[i] > r.step ? r.step_of[i] : r.step;
        r.sum = r.sum_of[i] > r.sum ? r.sum_of[i] : r.sum;
    }
    unsigned ahead = 0;
    while (ahead < PLACES && r.now < 100000) {
        r.now++;
        if (!turn(&r, disturbed))
            return false;
        for (unsigned i = 0; i < n; i++)
            ahead = r.s.at[i] > ahead ? r.s.at[i] : ahead;
        if (!disturbed && r.together && r.now - r.changed > 4 * (r.step + r.sum) + 20) {
            printf("# since %u, now %u, steps of %u, snapshots of %u: nothing newer is common\n", r.changed, r.now,
                   r.step, r.sum);
            print(&r.s);
            return false;
        }
    }
    return disturbed || ahead == PLACES;
}

static void test_many_orders(void)
{
    unsigned bad = 0;
    for (uint64_t start = 0; start < 800 && !bad; start++)
        for (unsigned disturbed = 0; disturbed < 2; disturbed++)
            if (!storm(start, disturbed)) {
                printf("# start value %llu%s\n", (unsigned long long)start, disturbed ? ", disturbed" : "");
                bad++;
            }
    is_num(bad, 0, "many orders: the same, and where nobody fails the common step is always a new one");
}

/* Of several nodes: the step from which on all take one lies behind what the first of two that have declared the same
 * has taken already; the other one may still come to that. */
static void test_twin_behind(void)
{
    static const struct {
        enum slot_pin_at at;
        bool alike, may;
        const char *what;
    } twins[] = {{SLOT_PIN_HELD, true, true, "its twin has the step: so may it"},
                 {SLOT_PIN_WORK, true, true, "its twin is at the step: so may it be"},
                 {SLOT_PIN_EMPTY, true, false, "nobody here has it: no step below is begun"},
                 {SLOT_PIN_HELD, false, false, "who has it has declared something else"}};
    for (unsigned i = 0; i < sizeof twins / sizeof twins[0]; i++) {
        struct stage s;
        init(&s, 2, twins[i].alike ? 3 : 1);
        s.p.w = s.w;
        s.p.several = true;
        s.p.common = (struct slot_pin_step){SLOT_PIN_NO_STEP, -1, 0, 0};
        s.p.from = 6;
        s.w[0].slot[0] = (struct slot_pin_slot){twins[i].at, false, {5, 0, 1, 0}, 1};
        s.w[0].passed.step = 5;
        s.w[1].passed.step = 4;
        ok(slot_pin_may_begin(&s.p, 1, 5) == twins[i].may, twins[i].what);
        s.p.known = 0;
        ok(slot_pin_may_begin(&s.p, 1, 6), "and the step itself is taken by all");
    }
}

int main(void)
{
    test_every_order();
    test_many_orders();
    test_twin_behind();
    return done();
}
