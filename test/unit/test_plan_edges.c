/* The probe's plan where one line decides: who counts among the usual, which reason and which metric is told, which
 * rail is shared.  Each was found as a wrong version that no other test saw. */
#include "unit/plan_stage.h"

/* All pairs are well; what differs is what the nodes measured alone. */
static struct plan *alone(unsigned nodes, unsigned bad_from, const uint32_t *cpu)
{
    struct world w = {.nodes = nodes, .rails = 1};
    struct plan *p = start(&w, (struct plan_conf)PLAN_CONF_INIT);
    for (unsigned n = 0; n < nodes; n++) {
        plan_metric(p, n, 0, METRIC_CPU, cpu[n]);
        if (n >= bad_from)
            plan_local(p, n, false, "its disk is full");
    }
    while (one_round(p, &w))
        ;
    return p;
}

static void test_usual(void)
{
    static const uint32_t two_kinds[] = {100, 100, 100, 100, 100, 50, 50, 50, 50};
    static const uint32_t bad_ones[] = {100, 100, 100, 100, 100, 100, 10, 10, 10, 10};
    char text[256];
    struct plan *p = alone(9, 9, two_kinds);
    is_str(those(p, NODE_SLOW, text), "-", "four of nine have half: two kinds of nodes, and nobody is slow");
    is_num(verdict_splits(p, NULL, 0), 1, "... which is told");
    plan_free(p);
    p = alone(10, 6, bad_ones);
    is_num(verdict_splits(p, NULL, 0), 0, "what bad nodes measure is not part of what is usual");
    is_str(those(p, NODE_BAD_LOCAL, text), "6 7 8 9", "... they are bad, and that is all");
    is_str(those(p, NODE_GOOD, text), "0 1 2 3 4 5", "... the others good");
    plan_free(p);
}

static void test_worst_metric(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct world w = {.nodes = 5, .rails = 1};
    struct node_verdict v;
    struct plan *p = start(&w, conf);
    for (unsigned n = 0; n < 5; n++) {
        plan_metric(p, n, 0, METRIC_HOST_MEM, n == 2 ? 20000 : 100000);
        plan_metric(p, n, 0, METRIC_CPU, n == 2 ? 80000 : 100000);
    }
    while (one_round(p, &w))
        ;
    verdict_node(p, 2, &v);
    is_num(v.state, NODE_SLOW, "slow by two metrics");
    is_num(v.metric, METRIC_HOST_MEM, "... the one that is furthest off is told");
    plan_free(p);
}

/* A quarter is slow, so in the first round half of all pairs are, and the usual value is that of a slow one. */
static void test_partners_of_slow(void)
{
    struct world w = {.nodes = 30, .rails = 1};
    struct plan_conf conf = PLAN_CONF_INIT;
    char text[256];
    conf.quick = true;
    for (unsigned n = 0; n < 30; n += 4)
        w.percent[n] = 50;
    struct plan *p = play(&w, conf);
    is_str(those(p, NODE_SLOW, text), "0 4 8 12 16 20 24 28",
           "a quarter is slow, without a second arrangement: they alone");
    plan_free(p);
}

static void test_shared_rails(void)
{
    struct world w = {.nodes = 4, .rails = 2};
    struct node_verdict v;
    char text[256];
    struct plan *p = start(&w, (struct plan_conf)PLAN_CONF_INIT);
    plan_rails(p, 2, 1);
    plan_rails(p, 3, 1);
    plan_local(p, 1, false, "its disk is full");
    while (one_round(p, &w))
        ;
    is_str(those(p, NODE_GOOD, text), "0 2 3", "a rail that only a bad node has, too, is held against nobody");
    verdict_node(p, 0, &v);
    is_str(v.text, "rail 1 not tested: no other node has it", "... but told");
    plan_free(p);
}

/* Rail 0 has four nodes, rail 1 three. */
static void test_weakest_witnesses(void)
{
    struct world w = {.nodes = 4, .rails = 2, .bad = 1};
    struct node_verdict v;
    struct plan *p = start(&w, (struct plan_conf)PLAN_CONF_INIT);
    plan_rails(p, 3, 1);
    while (one_round(p, &w))
        ;
    verdict_node(p, 0, &v);
    is_num(v.state, NODE_BAD, "bad on both rails");
    ok(v.ambiguous && v.witnesses == 2, "... of which the one with fewer witnesses is told");
    plan_free(p);
}

static void test_reason_of_either(void)
{
    struct pair_result a, b, both;
    pair_result_init(&a);
    pair_result_init(&b);
    a.rail[0].outcome = b.rail[0].outcome = RAIL_FAILED;
    snprintf(b.rail[0].reason, sizeof b.rail[0].reason, "nothing came back");
    pair_result_join(&both, &a, &b);
    is_str(both.rail[0].reason, "nothing came back", "both ends failed, and only the second knows why");
    pair_result_join(&both, &b, &a);
    is_str(both.rail[0].reason, "nothing came back", "... or the first");
}

/* Four connections over one network card, of which one has failed. */
static void test_even(void)
{
    static const uint32_t value[] = {1000, 3000, 7000, 5000};
    struct pair_result r;
    pair_result_init(&r);
    for (unsigned i = 0; i < 4; i++) {
        r.rail[i].outcome = i == 2 ? RAIL_FAILED : RAIL_OK;
        r.rail[i].value[METRIC_TCP_BW64M] = value[i];
        r.rail[i].spread[METRIC_TCP_BW64M] = value[i] / 10;
    }
    pair_result_even(&r, 3 | 4);
    is_num(r.rail[0].value[METRIC_TCP_BW64M], 2000, "connections share a network by chance: each gets the mean");
    is_num(r.rail[1].spread[METRIC_TCP_BW64M], 200, "... of the spread, too");
    is_num(r.rail[2].value[METRIC_TCP_BW64M], 7000, "... of those that came to an end");
    is_num(r.rail[3].value[METRIC_TCP_BW64M], 5000, "... and were asked for");
    is_num(r.rail[0].value[METRIC_TCP_LAT], 0, "... and what was not measured stays so");
}

int main(void)
{
    test_usual();
    test_worst_metric();
    test_partners_of_slow();
    test_shared_rails();
    test_weakest_witnesses();
    test_reason_of_either();
    test_even();
    return done();
}
