/* The probe's plan and verdicts: slow nodes, by pairs, alone, in noise. */
#include "unit/plan_stage.h"

static void test_one_slow(void)
{
    static const unsigned sizes[] = {3, 4, 5, 6, 7, 8, 16, 33, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int quick = 0; quick < 2; quick++) {
            struct plan_conf conf = PLAN_CONF_INIT;
            unsigned n = sizes[i], wrong = 0;
            char name[64], text[256], want[16];
            conf.quick = quick;
            for (unsigned slow = 0; slow < n; slow++) {
                struct world w = {.nodes = n, .rails = 2};
                w.percent[slow] = 88; /* one dead NIC of eight: invisible to twice the median of a sum */
                struct plan *p = play(&w, conf);
                snprintf(want, sizeof want, "%u", slow);
                wrong += strcmp(those(p, NODE_SLOW, text), want) != 0;
                plan_free(p);
            }
            snprintf(name, sizeof name, "%u nodes%s: the one that is 12 %% slower is named", n, quick ? ", quick" : "");
            if (!quick || n != 3) /* the triangle is not closed then */
                is_num(wrong, 0, name);
        }
}

static void test_slow_words(void)
{
    struct world w = {.nodes = 4, .rails = 1};
    struct node_verdict v;
    char text[256];
    w.percent[3] = 40;
    struct plan *p = play(&w, PLAN_CONF_INIT);
    verdict_node(p, 3, &v);
    is_str(those(p, NODE_SLOW, text), "3", "4 nodes, a pair 2.5 times slower: the slow one of it is named");
    is_str(v.text, "bandwidth 16.0 GB/s, at least 36.0 GB/s expected", "... with value and limit");
    is_num(v.metric, METRIC_BW64M, "... and the metric");
    is_num(verdict_whole(p), VERDICT_SOME_SLOW, "... the whole has a straggler");
    is_num(verdict_links(p, NULL, 0), 0, "... its links are not named too");
    is_num(plan_rounds(p), 2, "... in two rounds: its first partner has turned out to be fast");
    plan_free(p);
    w.percent[1] = 40;
    p = play(&w, PLAN_CONF_INIT);
    struct split_verdict s[2];
    is_str(those(p, NODE_SLOW, text), "-", "4 nodes, two are slow: no straggler");
    is_num(verdict_splits(p, s, 2), 1, "... but two kinds");
    ok(s[0].metric == METRIC_BW64M && s[0].behind == 2 && s[0].measured == 4, "... of two each");
    is_num(verdict_whole(p), VERDICT_UNDECIDED, "... which is undecided");
    plan_free(p);
}

static void test_two(void)
{
    struct world w = {.nodes = 2, .rails = 1};
    char text[256];
    struct node_verdict v;
    w.percent[1] = 40;
    struct plan *p = play(&w, PLAN_CONF_INIT);
    is_num(verdict_whole(p), VERDICT_ALL_GOOD, "2 nodes: nothing is compared");
    plan_free(p);
    p = start(&w, PLAN_CONF_INIT);
    plan_reference(p, METRIC_BW64M, 40000);
    while (one_round(p, &w))
        ;
    is_str(those(p, NODE_UNDECIDED, text), "0 1", "2 nodes, slower than the same hardware was: one of them is");
    verdict_node(p, 0, &v);
    is_str(
        v.text,
        "bandwidth 16.0 GB/s, at least 36.0 GB/s expected, but it met fewer than 2 fast nodes (no other node was left "
        "to ask)",
        "... and says so");
    plan_free(p);
    p = start(&w, PLAN_CONF_INIT);
    plan_reference(p, METRIC_COPY_D2D, 2000000);
    plan_metric(p, 1, 0, METRIC_COPY_D2D, 1500000);
    plan_metric(p, 0, 0, METRIC_COPY_D2D, 1990000);
    while (one_round(p, &w))
        ;
    is_str(those(p, NODE_SLOW, text), "1", "2 nodes, one copies slower than the same hardware did: it is named");
    plan_free(p);
}

static void test_alone_slow(void)
{
    struct world w = {.nodes = 8, .rails = 8};
    struct node_verdict v;
    struct plan *p = start(&w, PLAN_CONF_INIT);
    for (unsigned n = 0; n < 8; n++)
        for (unsigned r = 0; r < 8; r++)
            plan_metric(p, n, r, METRIC_BURN, n == 6 && r == 2 ? 600000 : 700000 + 1000 * n);
    while (one_round(p, &w))
        ;
    verdict_node(p, 6, &v);
    is_num(v.state, NODE_SLOW, "a slow GPU is seen by what the node measured alone");
    is_str(v.text, "rail 2: GPU arithmetic 600.0 TFLOP/s, at least 632.2 TFLOP/s expected", "... and named");
    plan_free(p);
}

/* A measurement that itself goes up and down by a third is not good enough to call somebody a fifth slower. */
static void test_noise(void)
{
    for (int noisy = 0; noisy < 2; noisy++) {
        struct world w = {.nodes = 8, .rails = 1};
        const struct plan_pair *pair;
        w.percent[3] = 80;
        struct plan *p = start(&w, PLAN_CONF_INIT);
        for (unsigned pairs; (pairs = plan_round(p, &pair));)
            for (unsigned i = 0; i < pairs; i++) {
                struct pair_result r = result_of(&w, &pair[i]);
                r.rail[0].spread[METRIC_BW64M] = noisy ? 13000 : 100;
                plan_result(p, i, &r);
            }
        is_num(verdict_state(p, 3), noisy ? NODE_GOOD : NODE_SLOW,
               noisy ? "in noise nobody is 20 % slower" : "without noise the slow one is named");
        plan_free(p);
    }
}

/* Nodes 0-4 in one rack, 5-7 in another; the pair across, 4 with 5, is slow or dead.  Whom does 5 meet next? */
static void test_own_rack_first(void)
{
    for (int slow = 0; slow < 2; slow++) {
        struct world w = {.nodes = 8, .rails = 1, .cut_a = 4, .cut_b = 5, .leave_cut_slow = slow};
        const struct plan_pair *pair;
        char text[256];
        struct plan *p = start(&w, PLAN_CONF_INIT);
        for (unsigned n = 0; n < 8; n++)
            plan_domain(p, n, n >= 5);
        one_round(p, &w);
        unsigned pairs = plan_round(p, &pair), next = 0;
        for (unsigned i = 0; i < pairs; i++) {
            if (pair[i].a == 5 || pair[i].b == 5)
                next = pair[i].a == 5 ? pair[i].b : pair[i].a;
            struct pair_result r = result_of(&w, &pair[i]);
            plan_result(p, i, &r);
        }
        ok(next == 6 || next == 7, slow ? "slow across racks: then one of its own" : "dead across racks: likewise");
        while (one_round(p, &w))
            ;
        is_str(those(p, NODE_GOOD, text), "0 1 2 3 4 5 6 7", "... and no node is to blame");
        plan_free(p);
    }
}

int main(void)
{
    test_one_slow();
    test_slow_words();
    test_two();
    test_alone_slow();
    test_noise();
    test_own_rack_first();
    return done();
}
