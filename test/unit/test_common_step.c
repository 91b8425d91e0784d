/* There is always a step that all nodes can go back to: nodes whose workers come to the steps of a script at their own
 * speed, tell the coordinator what they hold, and hear late; connections that are lost, coordinators that begin anew,
 * scripts that go back by themselves.  Whatever all have taken all hold, or what all have taken since. */
#include "coord/common_step.h"
#include "control/limits.h"

#include <stdio.h>
#include <string.h>

#include "lib/tap.h"
#include "util/rng.h"

#define NODES   3
#define WORKERS 2
#define PLACES  80
#define QUEUE   256

struct place {
    struct slot_pin_step of;
    unsigned taken; /* nodes that have held it whole, as bits */
};

struct up {
    unsigned at;
    struct common_step_taken t;
};

struct down {
    unsigned at;
    struct common_step_word w;
};

struct node {
    struct slot_pin p;
    struct slot_pin_worker w[WORKERS];
    unsigned at[WORKERS];
    bool refused[WORKERS];              /* the worker has left its last step out, or waits for it */
    bool vain[WORKERS][SLOT_PIN_SLOTS]; /* what is in work there was given up meanwhile */
    unsigned step_of[WORKERS], sum_of[WORKERS], next[WORKERS], made[WORKERS];
    uint64_t conn;
    struct slot_pin_told told; /* what was said last */
    unsigned ups, downs;
    struct up up[QUEUE];
    struct down down[QUEUE];
};

static struct {
    struct common_step c;
    struct node n[NODES];
    struct place place[PLACES];
    unsigned nodes, places, now, changed, delay;
    uint64_t gen, conn;
    bool waits, together, retries; /* retries: a script that asks for a step until it has taken it */
    struct el_rng rng;
    struct slot_pin_step common;
} s;

static unsigned below(unsigned n)
{
    return (unsigned)el_rng_below(&s.rng, n);
}

static struct slot_pin *table(struct node *n)
{
    n->p.w = n->w;
    n->p.known = 0;
    return &n->p;
}

static struct place *find(struct slot_pin_step of)
{
    for (unsigned i = 0; i < s.places; i++)
        if (s.place[i].of.step == of.step && s.place[i].of.lineage == of.lineage)
            return &s.place[i];
    return NULL;
}

static bool is_whole(struct node *n, struct slot_pin_step of)
{
    for (unsigned i = 0; i < n->p.n; i++) {
        bool held = false;
        for (unsigned k = 0; k < n->p.n * SLOT_PIN_SLOTS; k++) {
            const struct slot_pin_slot *x = &n->w[k / SLOT_PIN_SLOTS].slot[k % SLOT_PIN_SLOTS];
            bool like = n->w[k / SLOT_PIN_SLOTS].like == n->w[i].like;
            held |= like && (x->at == SLOT_PIN_HELD || x->at == SLOT_PIN_USELESS) && x->of.step == of.step &&
                    x->of.lineage == of.lineage;
        }
        if (!held)
            return false;
    }
    return true;
}

/* --- messages --- */

/* Whatever has changed is said. */
static void tell(struct node *n, bool anyway)
{
    struct slot_pin_told t;
    slot_pin_tell(table(n), &t);
    if (!n->conn || (!anyway && memcmp(&t, &n->told, sizeof t) == 0) || n->ups == QUEUE)
        return;
    n->told = t;
    unsigned at = s.now + 1 + below(s.delay);
    if (n->ups && n->up[n->ups - 1].at > at)
        at = n->up[n->ups - 1].at; /* in order */
    n->up[n->ups++] = (struct up){at, {.told = t}};
}

static void answer(struct node *n)
{
    struct common_step_word w;
    unsigned k = (unsigned)(n - s.n);
    if (!n->conn || n->downs == QUEUE || !common_step_word(&s.c, k, n->conn, &w))
        return;
    unsigned at = s.now + 1 + below(s.delay);
    if (n->downs && n->down[n->downs - 1].at > at)
        at = n->down[n->downs - 1].at;
    n->down[n->downs++] = (struct down){at, w};
}

static void hear_up(struct node *n)
{
    while (n->ups && n->up[0].at <= s.now) {
        struct up u = n->up[0];
        memmove(n->up, n->up + 1, --n->ups * sizeof u);
        common_step_take(&s.c, (unsigned)(n - s.n), &u.t, 0);
        bool all = common_step_advance(&s.c, 0);
        common_step_check(&s.c);
        for (unsigned k = 0; k < s.nodes; k++)
            if (all || &s.n[k] == n)
                answer(&s.n[k]);
    }
}

static void hear_down(struct node *n)
{
    while (n->downs && n->down[0].at <= s.now) {
        struct common_step_word w = n->down[0].w;
        memmove(n->down, n->down + 1, --n->downs * sizeof n->down[0]);
        n->p.common = w.step;
        n->p.from = w.from;
        for (unsigned i = 0; i < n->p.n * SLOT_PIN_SLOTS; i++) {
            struct slot_pin_slot *x = &n->w[i / SLOT_PIN_SLOTS].slot[i % SLOT_PIN_SLOTS];
            for (unsigned u = 0; u < w.n; u++)
                if (x->of.step == w.useless[u].step && x->of.lineage == w.useless[u].lineage) {
                    n->vain[i / SLOT_PIN_SLOTS][i % SLOT_PIN_SLOTS] |= x->at == SLOT_PIN_WORK;
                    x->at = x->at == SLOT_PIN_HELD ? SLOT_PIN_USELESS : x->at;
                }
        }
    }
}

static void cut(struct node *n)
{
    n->ups = n->downs = 0;
    n->conn = 0;
}

/* --- workers, as the keeper does it --- */

static int in_work(const struct slot_pin_worker *w)
{
    int oldest = -1;
    for (int k = 0; k < SLOT_PIN_SLOTS; k++)
        if (w->slot[k].at == SLOT_PIN_WORK && (oldest < 0 || w->slot[k].gen < w->slot[oldest].gen))
            oldest = k;
    return oldest;
}

static bool begin(struct node *n, unsigned i)
{
    struct slot_pin_step of = s.place[n->at[i]].of;
    struct slot_pin_worker *w = &n->w[i];
    if (w->passed.lineage != of.lineage) {
        w->passed = of;
        n->p.from = 0;
    }
    w->passed.step = of.step - 1 > w->passed.step || w->passed.step >= of.step ? of.step - 1 : w->passed.step;
    bool again = s.retries && n->refused[i];
    int slot = s.waits || again || slot_pin_may_begin(table(n), i, of.step) ? slot_pin_slot(table(n), i) : -1;
    n->refused[i] = slot < 0;
    if (slot < 0 && s.waits)
        return false;
    n->at[i] += slot >= 0 || !s.retries;
    if (slot < 0) {
        w->passed = s.retries ? w->passed : of;
        return false;
    }
    w->slot[slot] = (struct slot_pin_slot){SLOT_PIN_WORK, false, of, ++s.gen};
    n->vain[i][slot] = false;
    return true;
}

/* A step that is not in a slot any more, useless or given away, has been passed. */
static void look_passed(struct node *n)
{
    for (unsigned i = 0; i < n->p.n; i++) {
        struct slot_pin_worker *w = &n->w[i];
        struct slot_pin_step last = n->at[i] ? s.place[n->at[i] - 1].of : (struct slot_pin_step){-1, 0, 1, 0};
        bool held = w->passed.lineage != last.lineage;
        for (unsigned k = 0; k < SLOT_PIN_SLOTS; k++)
            held |= (w->slot[k].at == SLOT_PIN_HELD || w->slot[k].at == SLOT_PIN_WORK) &&
                    w->slot[k].of.step == last.step && w->slot[k].of.lineage == last.lineage;
        if (!held && last.step > w->passed.step)
            w->passed.step = last.step;
    }
}

static void finish(struct node *n, unsigned i)
{
    struct slot_pin_slot *x = &n->w[i].slot[in_work(&n->w[i])];
    x->at = n->vain[i][x - n->w[i].slot] ? SLOT_PIN_USELESS : SLOT_PIN_HELD;
    if (is_whole(n, x->of))
        find(x->of)->taken |= 1u << (n - s.n);
}

static unsigned about(unsigned time)
{
    return 1 + time / 2 + below(time);
}

static bool may_go_on(unsigned place)
{
    for (unsigned k = 0; k < s.nodes && s.together; k++)
        for (unsigned i = 0; i < s.n[k].p.n; i++)
            if (s.n[k].at[i] < place)
                return false;
    return place < s.places;
}

static void turn_worker(struct node *n, unsigned i)
{
    if (in_work(&n->w[i]) >= 0 && n->made[i] <= s.now) {
        finish(n, i);
        n->made[i] = s.now + about(n->sum_of[i]);
    }
    if (n->next[i] > s.now || !may_go_on(n->at[i]))
        return;
    unsigned was = n->at[i];
    bool idle = in_work(&n->w[i]) < 0;
    if (begin(n, i) && idle)
        n->made[i] = s.now + about(n->sum_of[i]);
    if (n->at[i] != was)
        n->next[i] = s.now + about(n->step_of[i]);
}

/* --- what must hold --- */

static bool all_hold(struct slot_pin_step of)
{
    for (unsigned k = 0; k < s.nodes; k++)
        if (!is_whole(&s.n[k], of))
            return false;
    return true;
}

static bool holds(void)
{
    unsigned newest = 0;
    for (unsigned i = 0; i < s.places; i++)
        newest = s.place[i].taken == (1u << s.nodes) - 1 ? i + 1 : newest;
    for (unsigned i = newest ? newest - 1 : 0; newest && i < s.places; i++)
        if (all_hold(s.place[i].of)) {
            if (s.common.step != s.place[i].of.step || s.common.lineage != s.place[i].of.lineage)
                s.changed = s.now;
            s.common = s.place[i].of;
            return true;
        }
    if (!newest)
        return true;
    printf("# %u: all have taken step %lld@%llx\n", s.now, (long long)s.place[newest - 1].of.step,
           (unsigned long long)s.place[newest - 1].of.lineage);
    return false;
}

static void print(void)
{
    char text[200], useless[200];
    for (unsigned k = 0; k < s.nodes; k++) {
        struct slot_pin_told t;
        slot_pin_tell(table(&s.n[k]), &t);
        common_step_list_put(t.is_whole, t.whole, text, sizeof text);
        common_step_list_put(t.is_coming, t.coming, useless, sizeof useless);
        printf("# node %u, next %u: common %lld, whole %s, coming %s, passed %lld of %lld, %sready\n", k, s.n[k].at[0],
               (long long)s.n[k].p.common.step, text, useless, (long long)t.passed, (long long)t.era,
               t.ready ? "" : "not ");
        for (unsigned i = 0; i < s.n[k].p.n; i++)
            printf("#   %d %lld, %d %lld\n", (int)s.n[k].w[i].slot[0].at, (long long)s.n[k].w[i].slot[0].of.step,
                   (int)s.n[k].w[i].slot[1].at, (long long)s.n[k].w[i].slot[1].of.step);
    }
}

/* --- many orders --- */

static unsigned set_up(uint64_t start)
{
    unsigned most = 0;
    s.rng = (struct el_rng){start};
    s.nodes = 2 + below(NODES - 1);
    s.places = PLACES;
    s.now = s.changed = 0;
    s.gen = s.conn = 0;
    s.together = start & 1;
    s.waits = start & 2;
    s.retries = !s.waits && start & 16;
    s.delay = 1 + below(start & 8 ? 40 : 3);
    s.common = (struct slot_pin_step){SLOT_PIN_NO_STEP, -1, 0, 0};
    struct slot_pin_step of = {0, 0, 1, 0};
    for (unsigned i = 0; i < PLACES; i++) {
        int64_t back = start & 4 && i > 5 && below(15) == 0 ? 2 + below(4) : 0;
        of.step = of.step > back ? of.step + 1 - back : of.step + 1;
        if (i && of.step < s.place[i - 1].of.step)
            of = (struct slot_pin_step){of.step, of.era + 1, of.lineage * 31 + (uint64_t)of.step, 0};
        s.place[i] = (struct place){of, 0};
    }
    common_step_round(&s.c, s.nodes);
    for (unsigned k = 0; k < s.nodes; k++) {
        struct node *n = &s.n[k];
        memset(n, 0, sizeof *n);
        n->p = (struct slot_pin){.n = 1 + below(WORKERS), .several = true, .common = {SLOT_PIN_NO_STEP, -1, 0}};
        n->conn = ++s.conn;
        for (unsigned i = 0; i < n->p.n; i++) {
            n->w[i] = (struct slot_pin_worker){.like = i, .next = n->p.n, .comes = true, .passed = {-1, 0, 1}};
            n->step_of[i] = 1 + below(20);
            n->sum_of[i] = 1 + below(40);
            most = n->step_of[i] + n->sum_of[i] > most ? n->step_of[i] + n->sum_of[i] : most;
        }
        tell(n, true);
    }
    return (start & 4 ? 40 : 8) * (most + 4 * s.delay) + 20;
}

static void disturb(void)
{
    struct node *n = &s.n[below(s.nodes)];
    switch (below(200)) {
    case 0: cut(n); break;
    case 1:
    case 2:
        if (!n->conn) {
            n->conn = ++s.conn;
            tell(n, true);
        }
        break;
    case 3:
        if (below(4))
            break;
        common_step_round(&s.c, s.nodes); /* another coordinator */
        for (unsigned k = 0; k < s.nodes; k++)
            cut(&s.n[k]);
        break;
    case 4: {
        struct slot_pin_slot *x = &n->w[below(n->p.n)].slot[below(SLOT_PIN_SLOTS)];
        x->read = x->at == SLOT_PIN_HELD && !x->read;
        break;
    }
    default: break;
    }
}

static bool storm(uint64_t start, bool disturbed)
{
    unsigned limit = set_up(start), ahead = 0;
    while (ahead < PLACES && s.now < 20000) {
        s.now++;
        for (unsigned k = 0; k < s.nodes; k++) {
            hear_up(&s.n[k]);
            hear_down(&s.n[k]);
            look_passed(&s.n[k]);
            for (unsigned i = 0; i < s.n[k].p.n; i++) {
                turn_worker(&s.n[k], i);
                ahead = s.n[k].at[i] > ahead ? s.n[k].at[i] : ahead;
            }
            look_passed(&s.n[k]);
            tell(&s.n[k], false);
        }
        if (disturbed)
            disturb();
        if (!holds()) {
            print();
            return false;
        }
        if (!disturbed && s.together && s.now - s.changed > limit) {
            printf("# since %u, now %u: nothing newer is common\n", s.changed, s.now);
            print();
            return false;
        }
    }
    return disturbed || ahead == PLACES;
}

static void test_many_orders(void)
{
    unsigned bad = 0;
    for (uint64_t start = 0; start < 300 && !bad; start++)
        for (unsigned disturbed = 0; disturbed < 2; disturbed++)
            if (!storm(start, disturbed)) {
                printf("# start value %llu%s\n", (unsigned long long)start, disturbed ? ", disturbed" : "");
                bad++;
            }
    is_num(bad, 0, "many orders: whatever all nodes have taken all hold, or what they have taken since");
}

/* --- one by one --- */

static void has_word(const char *what, const char *text, const char *about)
{
    if (strstr(text, what))
        ok(true, about);
    else
        is_str(text, what, about);
}

static el_usec clock_at;

/* "13:0 12:0", of lineage 1. */
static void says(unsigned seat, const char *whole, const char *coming, int64_t passed, bool ready, bool stuck)
{
    struct common_step_taken t = {.told = {.passed = passed, .begun = passed + 1, .ready = ready, .stuck = stuck}};
    t.told.whole = common_step_list_get(whole, t.told.is_whole, SLOT_PIN_TOLD);
    t.told.coming = common_step_list_get(coming, t.told.is_coming, SLOT_PIN_TOLD);
    common_step_take(&s.c, seat, &t, clock_at);
    common_step_advance(&s.c, clock_at);
    common_step_check(&s.c);
}

/* What it is told: "12, 13 useless, from 14"; "" nothing. */
static const char *told(unsigned seat)
{
    static char text[400];
    struct common_step_word w;
    size_t n = 0;
    text[0] = 0;
    if (!common_step_word(&s.c, seat, 1, &w))
        return text;
    n += (size_t)snprintf(text, sizeof text, "%lld", (long long)w.step.step);
    for (unsigned i = 0; i < w.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ", %lld useless", (long long)w.useless[i].step);
    snprintf(text + n, sizeof text - n, ", from %lld", (long long)w.from);
    return text;
}

static void test_words(void)
{
    common_step_round(&s.c, 2);
    says(0, "12@1:0", "", 11, true, false);
    is_str(told(0), "-1, from 0", "of the other node nothing is known");
    is_str(told(0), "", "which is said once");
    says(1, "", "12@1:0", 11, false, false);
    is_str(told(0), "", "it may yet have the step");
    says(1, "12@1:0", "", 11, true, false);
    is_str(told(0), "12, from 13", "it has it");
    is_str(told(1), "12, from 13", "both hear that");
    ok(common_step_has_word(&s.c, 0, 2), "and once more on another connection");
    says(0, "13@1:0 12@1:0", "", 12, true, false);
    says(1, "12@1:0", "", 13, false, false);
    is_str(told(0), "", "a step that one has left out is kept while that one could take none");
    says(1, "12@1:0", "", 13, true, false);
    is_str(told(0), "12, 13 useless, from 16", "else it is useless, and both take the same one next");
    is_str(told(1), "12, from 16", "as the other one hears, too");
    says(0, "15@1:0 12@1:0", "14@1:0", 14, true, false);
    says(1, "12@1:0", "15@1:0", 14, true, false);
    is_str(told(0), "12, 14 useless, from 16", "while one may yet be had the other is useless at once");
    common_step_restart(&s.c);
    says(0, "3@2:0", "", 2, true, false);
    says(1, "3@2:0", "", 2, true, false);
    is_str(told(0), "3, from 4", "all have gone back: a lower step is the newest");
}

static void test_patience(void)
{
    common_step_round(&s.c, 2);
    clock_at = EL_SEC(1);
    says(0, "12@1:0", "", 11, true, false);
    says(1, "", "", 11, true, false);
    ok(common_step_deadline(&s.c) == EL_NEVER, "nobody waits for a slot");
    clock_at += EL_SEC(1);
    says(0, "12@1:0", "13@1:0", 11, true, true);
    ok(common_step_deadline(&s.c) == clock_at + COMMON_STEP_PATIENCE, "somebody does");
    told(0);
    clock_at += COMMON_STEP_PATIENCE;
    ok(common_step_advance(&s.c, clock_at), "for too long");
    has_word("12 useless", told(0), "who does not come is not waited for");
    ok(common_step_deadline(&s.c) == EL_NEVER, "nor again");
    says(1, "13@1:0", "", 12, true, false);
    says(0, "13@1:0", "", 12, true, false);
    has_word("13,", told(1), "until it comes: then it counts");
}

/* A node that was not heard meanwhile, or all before a coordinator that has just begun, tells of a common step and a
 * later one at once.  The steps beyond that are looked at then, too: what the nodes hold stays as it is, so they would
 * never say anything again, and who waits for a slot would wait for ever. */
static void test_heard_late(void)
{
    common_step_round(&s.c, 2);
    clock_at = EL_SEC(1);
    says(0, "13@1:0 12@1:0", "", 14, true, true);
    says(1, "14@1:0 12@1:0", "", 14, true, true);
    is_str(told(0), "12, 13 useless, from 17",
           "what is useless beside a step that has just become common is said with it");
    is_str(told(1), "12, 14 useless, from 17", "to both");
    common_step_round(&s.c, 2);
    says(0, "12@1:0", "13@1:0", 12, false, true);
    says(1, "12@1:0", "", 12, true, false);
    ok(common_step_deadline(&s.c) == clock_at + COMMON_STEP_PATIENCE, "and who waits there has the other's time begin");
}

static void test_goes_back(void)
{
    int64_t step;
    common_step_round(&s.c, 1);
    says(0, "12@1:0", "", 11, true, false);
    struct slot_pin_step was = s.c.step;
    struct common_step_taken t = {.told = {.era = 1, .passed = 5, .begun = 6, .whole = 1, .is_whole = {{6, 1, 2}}}};
    common_step_take(&s.c, 0, &t, clock_at);
    common_step_advance(&s.c, clock_at);
    ok(s.c.step.step == 6 && common_step_went_back(&s.c, was, &step) && step == 5, "a script goes back by itself");
    was = s.c.step;
    t.told.is_whole[0].step = 7;
    common_step_take(&s.c, 0, &t, clock_at);
    common_step_advance(&s.c, clock_at);
    ok(s.c.step.step == 7 && !common_step_went_back(&s.c, was, &step), "once");
}

/* A step that was taken twice: numbers do not say which take is the later one, the order in which they are told does.
 */
static void test_takes_twice(void)
{
    common_step_round(&s.c, 2);
    says(0, "12@1:0", "", 11, true, false);
    says(1, "12@1:0", "", 11, true, false);
    says(0, "12@2:0 12@1:0", "", 12, true, false);
    common_step_advance(&s.c, clock_at);
    is_num((long)s.c.step.lineage, 1, "one node has the later take of a step");
    says(1, "12@2:0 12@1:0", "", 12, true, false);
    common_step_advance(&s.c, clock_at);
    is_num((long)s.c.step.lineage, 2, "all have");
    ok(!common_step_advance(&s.c, clock_at) && s.c.step.lineage == 2,
       "which the earlier one, that they hold still, does not undo");
    says(0, "13@1:0 12@2:0", "", 13, true, false);
    says(1, "13@1:0 12@2:0", "", 13, true, false);
    common_step_advance(&s.c, clock_at);
    is_num((long)s.c.step.step, 13, "the next number is newer");
}

static void test_elsewhere(void)
{
    common_step_round(&s.c, 2);
    struct common_step_taken t = {.elsewhere = true, .told = {.passed = -1, .begun = -1, .ready = true}};
    common_step_take(&s.c, 1, &t, clock_at);
    says(0, "12@1:0", "", 11, true, false);
    has_word("12,", told(0), "a node that needs no step of its own");
}

static void test_lists(void)
{
    static const char *const wrong[] = {"", "x", "12@", "12@1:x", "12@1: 13", "99999999999999999999@1", "12@1:0,13@1"};
    struct slot_pin_step v[SLOT_PIN_TOLD + 1];
    char text[COMMON_STEP_STEPS_TEXT];
    unsigned n = common_step_list_get("13@9f3a:2 12@77 11@1:0 10@1:0 9@1:0", v, SLOT_PIN_TOLD);
    common_step_list_put(v, n, text, sizeof text);
    is_str(text, "13@9f3a:2 12@77 11@1:0 10@1:0", "a list, as long as there is room");
    for (unsigned i = 0; i < SLOT_PIN_TOLD; i++)
        v[i] = (struct slot_pin_step){MSG_STEP_MAX, INT64_MAX, UINT64_MAX, 0};
    common_step_list_put(v, SLOT_PIN_TOLD, text, sizeof text);
    ok(common_step_list_get(text, v, SLOT_PIN_TOLD + 1) == SLOT_PIN_TOLD && v[SLOT_PIN_TOLD - 1].era == INT64_MAX,
       "the longest one");
    unsigned bad = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        bad += common_step_list_get(wrong[i], v, SLOT_PIN_TOLD) > 1;
    is_num(bad, 0, "what is no step ends it");
}

int main(void)
{
    if (common_step_init(&s.c, NODES, NULL) < 0)
        return 1;
    test_words();
    test_patience();
    test_heard_late();
    test_goes_back();
    test_takes_twice();
    test_elsewhere();
    test_lists();
    test_many_orders();
    common_step_free(&s.c, NULL);
    return done();
}
