/* The pairing rule of the probe, proved for small numbers of nodes by trying everything: whatever set of nodes (or of
 * up to two links, or of single rails) is broken, nobody healthy is condemned and everybody broken is. */
#include <stdio.h>

#include "lib/tap.h"
#include "probe/verdict.h"
#include "util/rng.h"

enum { NODES_MAX = 9, MANY_MAX = 12, RAILS = 2, ROUNDS_MAX = 64 };

struct world {
    unsigned nodes, rails;
    bool quick;
    unsigned bad[RAILS];              /* bit n: that rail of node n is broken */
    unsigned cut[MANY_MAX][MANY_MAX]; /* rails of a link that are broken, [a][b] with a < b */
};

static bool works(const struct world *w, unsigned a, unsigned b, unsigned rail)
{
    return !((w->bad[rail] >> a | w->bad[rail] >> b) & 1) && !(w->cut[a][b] >> rail & 1);
}

/* Runs the plan to its end; the caller frees it. */
static struct plan *play(const struct world *w)
{
    static struct pair_result r;
    struct plan_conf conf = PLAN_CONF_INIT;
    const struct plan_pair *pair;
    conf.rails = w->rails;
    conf.rounds_max = 0;
    conf.quick = w->quick;
    struct plan *p = plan_new(w->nodes, &conf, NULL);
    for (unsigned n = 0; n < w->nodes; n++)
        plan_local(p, n, true, NULL);
    for (unsigned pairs; (pairs = plan_round(p, &pair)) && plan_rounds(p) < ROUNDS_MAX;)
        for (unsigned i = 0; i < pairs; i++) {
            pair_result_init(&r);
            for (unsigned k = 0; k < w->rails; k++)
                r.rail[k].outcome = works(w, pair[i].a, pair[i].b, k) ? RAIL_OK : RAIL_FAILED;
            plan_result(p, i, &r);
        }
    return p;
}

struct tally {
    unsigned long plays, wrong, undecided, rounds, condemned_gone;
    unsigned rounds_most;
};

/* Each node must be what it is. */
static void judge(struct tally *t, const struct world *w)
{
    struct plan *p = play(w);
    unsigned any_bad = w->bad[0] | (w->rails > 1 ? w->bad[1] : 0);
    t->plays++;
    t->rounds += plan_rounds(p);
    t->rounds_most = plan_rounds(p) > t->rounds_most ? plan_rounds(p) : t->rounds_most;
    for (unsigned n = 0; n < w->nodes; n++) {
        enum node_state s = verdict_state(p, n);
        if (s == NODE_UNDECIDED)
            t->undecided++;
        else if (s != (any_bad >> n & 1 ? NODE_BAD : NODE_GOOD))
            t->wrong++;
    }
    plan_free(p);
}

static void tell(const char *what, unsigned nodes, const struct tally *t)
{
    char line[200];
    snprintf(line, sizeof line, "%u nodes, %s: %lu cases, nobody is judged wrongly", nodes, what, t->plays);
    is_num(t->wrong, 0, line);
    snprintf(line, sizeof line, "%u nodes, %s: nobody stays undecided", nodes, what);
    is_num(t->undecided, 0, line);
    printf("# %u nodes, %s: %.1f rounds on average, %u at most\n", nodes, what, (double)t->rounds / (double)t->plays,
           t->rounds_most);
}

static unsigned bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* Every set of broken nodes that leaves two healthy ones. */
static void test_nodes(unsigned from, unsigned to, bool quick)
{
    for (unsigned n = from; n <= to; n++) {
        struct tally t = {0};
        for (unsigned set = 0; set < 1u << n; set++)
            if (bits(set) + 2 <= n)
                judge(&t, &(struct world){.nodes = n, .rails = 1, .quick = quick, .bad = {set, set}});
        tell(quick ? "every set of bad nodes, quick" : "every set of bad nodes", n, &t);
    }
}

static void cut(struct world *w, unsigned one, unsigned two)
{
    unsigned at = 0;
    for (unsigned a = 0; a < w->nodes; a++)
        for (unsigned b = a + 1; b < w->nodes; b++, at++)
            w->cut[a][b] = at == one || at == two;
}

/* Every set of at most two broken links. */
static void test_links(bool quick)
{
    for (unsigned n = 4; n <= NODES_MAX; n++) {
        struct tally t = {0};
        unsigned links = n * (n - 1) / 2;
        for (unsigned one = 0; one <= links; one++) /* the last is none */
            for (unsigned two = one; two <= links; two++) {
                struct world w = {.nodes = n, .rails = 1, .quick = quick};
                cut(&w, one, two);
                judge(&t, &w);
            }
        tell(quick ? "up to two bad links, every set, quick" : "up to two bad links, every set", n, &t);
    }
}

/* More than is promised: one bad node besides. */
static void test_node_and_links(void)
{
    for (unsigned n = 6; n <= NODES_MAX; n++) {
        struct tally t = {0};
        unsigned links = n * (n - 1) / 2;
        for (unsigned bad = 0; bad < n; bad++)
            for (unsigned one = 0; one <= links; one++)
                for (unsigned two = one; two <= links; two++) {
                    struct world w = {.nodes = n, .rails = 1, .bad = {1u << bad}};
                    cut(&w, one, two);
                    judge(&t, &w);
                }
        tell("one bad node and up to two bad links, every set", n, &t);
    }
}

/* --- nodes that say goodbye --------------------------------------------------------------------------------------- */

struct leaving {
    unsigned round[MANY_MAX]; /* in which it goes, with its pair broken off; 0: it stays */
    unsigned gone, proved;    /* those who have gone; those that three have condemned */
};

static struct plan *begin(const struct world *w)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    conf.rounds_max = 0;
    conf.quick = w->quick;
    struct plan *p = plan_new(w->nodes, &conf, NULL);
    for (unsigned n = 0; n < w->nodes; n++)
        plan_local(p, n, true, NULL);
    return p;
}

static void leave(struct plan *p, const struct world *w, struct leaving *l)
{
    struct node_verdict v;
    for (unsigned n = 0; n < w->nodes; n++) {
        verdict_node(p, n, &v);
        l->proved |= v.state == NODE_BAD && v.witnesses == 3 ? 1u << n : 0;
        if (l->round[n] == plan_rounds(p)) {
            l->gone |= 1u << n;
            plan_absent(p, n);
        }
    }
}

static struct plan *play_leaving(const struct world *w, struct leaving *l)
{
    static struct pair_result r;
    const struct plan_pair *pair;
    struct plan *p = begin(w);
    for (unsigned pairs; (pairs = plan_round(p, &pair)) && plan_rounds(p) < ROUNDS_MAX;) {
        leave(p, w, l);
        for (unsigned i = 0; i < pairs; i++) {
            pair_result_init(&r);
            if (!((l->gone >> pair[i].a | l->gone >> pair[i].b) & 1))
                r.rail[0].outcome = works(w, pair[i].a, pair[i].b, 0) ? RAIL_OK : RAIL_FAILED;
            plan_result(p, i, &r);
        }
    }
    return p;
}

/* What is known of a node when all that are left can tell. */
static bool is_right(enum node_state s, bool bad, bool gone, bool proved, unsigned healthy)
{
    if (!bad)
        return s == (gone ? NODE_ABSENT : NODE_GOOD) || (!gone && healthy < 2 && s == NODE_UNDECIDED);
    if (proved)
        return s == NODE_BAD;
    if (gone)
        return s == NODE_BAD || s == NODE_ABSENT;
    return s == NODE_BAD || (s == NODE_UNDECIDED && healthy < 3);
}

static void judge_leaving(struct tally *t, const struct world *w, struct leaving *l)
{
    struct plan *p = play_leaving(w, l);
    unsigned healthy = 0, rounds = plan_rounds(p);
    for (unsigned n = 0; n < w->nodes; n++)
        healthy += !((w->bad[0] | l->gone) >> n & 1);
    t->plays++;
    t->rounds += rounds;
    t->rounds_most = rounds > t->rounds_most ? rounds : t->rounds_most;
    for (unsigned n = 0; n < w->nodes; n++) {
        enum node_state s = verdict_state(p, n);
        t->undecided += s == NODE_UNDECIDED;
        t->condemned_gone += s == NODE_BAD && l->gone >> n & 1;
        t->wrong += !is_right(s, w->bad[0] >> n & 1, l->gone >> n & 1, l->proved >> n & 1, healthy);
    }
    plan_free(p);
}

/* Every set of bad nodes, and with each of them some that go in some round, drawn anew. */
static void test_goodbyes(void)
{
    struct el_rng rng = {.state = 6};
    for (unsigned n = 3; n <= NODES_MAX; n++) {
        char line[160];
        struct tally t = {0};
        for (unsigned set = 0; set < 1u << n; set++)
            for (unsigned try = 0; bits(set) + 2 <= n && try < 20; try++) {
                struct leaving l = {0};
                unsigned share = 1 + (unsigned)el_rng_below(&rng, 5);
                for (unsigned i = 0; i < n; i++)
                    l.round[i] = el_rng_below(&rng, 10) < share ? 1 + (unsigned)el_rng_below(&rng, 6) : 0;
                judge_leaving(&t, &(struct world){.nodes = n, .rails = 1, .quick = try & 1, .bad = {set}}, &l);
            }
        snprintf(line, sizeof line,
                 "%u nodes, every set of bad ones and random goodbyes: %lu cases, nobody is judged wrongly", n,
                 t.plays);
        is_num(t.wrong, 0, line);
        snprintf(line, sizeof line, "%u nodes: of those who have gone some were condemned before", n);
        ok(n < 4 || t.condemned_gone > 0, line);
    }
}

/* Two rails: every set of broken ones that leaves each rail two healthy nodes. */
static void test_rails(void)
{
    for (unsigned n = 3; n <= 6; n++) {
        struct tally t = {0};
        for (unsigned set = 0; set < 1u << (2 * n); set++) {
            struct world w = {.nodes = n, .rails = 2, .bad = {set & ((1u << n) - 1), set >> n}};
            if (bits(w.bad[0]) + 2 <= n && bits(w.bad[1]) + 2 <= n)
                judge(&t, &w);
        }
        tell("every set of bad rails of two", n, &t);
    }
}

int main(void)
{
    test_nodes(2, MANY_MAX, false);
    test_nodes(2, NODES_MAX, true);
    test_links(false);
    test_links(true);
    test_node_and_links();
    test_rails();
    test_goodbyes();
    return done();
}
