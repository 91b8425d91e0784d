/* The probe's plan and verdicts: rails, domains, nodes that leave.  Slow nodes are in test_plan_slow.c, DLRover's cases
 * in test_plan_dlrover.c, what holds for every set of faults in test_plan_proof.c. */
#include "unit/plan_stage.h"

/* --- few nodes ---------------------------------------------------------------------------------------------------- */

static void test_few(void)
{
    struct node_verdict v;
    char text[256];
    struct plan *p = play(&(struct world){.nodes = 3, .rails = 1, .bad = 1 << 2}, PLAN_CONF_INIT);
    verdict_node(p, 2, &v);
    is_num(v.state, NODE_BAD, "3 nodes, 2 is bad: it is named");
    ok(v.ambiguous, "3 nodes: two bad links would look the same");
    is_str(v.text, "failed with node 0 and node 1, both good: nothing came back; two bad links would look the same",
           "3 nodes: and the report says so");
    plan_free(p);

    p = play(&(struct world){.nodes = 2, .rails = 1, .bad = 1 << 1}, PLAN_CONF_INIT);
    is_str(those(p, NODE_UNDECIDED, text), "0 1", "2 nodes that fail: undecided");
    verdict_node(p, 0, &v);
    is_str(v.text,
           "failed, but with no node that is known to be good (no other node was left to ask): nothing came back",
           "2 nodes: and why");
    is_num(plan_stopped(p), PLAN_STOP_PAIRS, "2 nodes: no pair is left");
    is_num(verdict_whole(p), VERDICT_UNDECIDED, "2 nodes: the whole is undecided");
    plan_free(p);

    p = play(&(struct world){.nodes = 1, .rails = 1}, PLAN_CONF_INIT);
    is_num(plan_rounds(p), 0, "1 node: no round");
    is_num(verdict_whole(p), VERDICT_ALL_GOOD, "1 node: good by its own checks");
    plan_free(p);

    p = play(&(struct world){.nodes = 5, .rails = 1, .bad = 0x1e}, PLAN_CONF_INIT);
    is_str(those(p, NODE_UNDECIDED, text), "0 1 2 3 4", "one healthy node among bad ones: undecided");
    plan_free(p);
}

static void test_local(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct world w = {.nodes = 4, .rails = 1};
    struct plan *p = start(&w, conf);
    struct node_verdict v;
    const struct plan_pair *pair;
    plan_local(p, 1, false, "gpu_lost: GPU 3");
    is_num(plan_round(p, &pair), 1, "a node that failed alone takes no part: of three, two meet");
    ok(pair[0].a == 0 && pair[0].b == 2, "... those that are good");
    verdict_node(p, 1, &v);
    is_num(v.state, NODE_BAD_LOCAL, "... it is bad by itself");
    is_str(v.text, "gpu_lost: GPU 3", "... with its reason");
    plan_free(p);
    p = plan_new(4, &conf, NULL);
    plan_local(p, 0, true, NULL);
    while (one_round(p, &w))
        ;
    verdict_node(p, 2, &v);
    is_num(v.state, NODE_UNDECIDED, "a node of which nothing is known is undecided");
    is_str(v.text, "its own checks did not end", "... and why");
    verdict_node(p, 0, &v);
    is_str(v.text, "no pair with it came to an end (no other node was left to ask)",
           "... and so is who has no partner");
    plan_free(p);
}

/* --- rails -------------------------------------------------------------------------------------------------------- */

static void test_rails(void)
{
    struct world w = {.nodes = 8, .rails = 8};
    struct node_verdict v;
    char text[256];
    w.bad_rail[5] = 1 << 3;
    struct plan *p = play(&w, PLAN_CONF_INIT);
    verdict_node(p, 5, &v);
    is_str(those(p, NODE_BAD, text), "5", "one dead rail of eight: its node is named");
    is_num(v.rails, 1 << 3, "... by the rail");
    ok(!v.whole, "... and not as a whole");
    ok(strncmp(v.text, "rail 3: failed with ", 20) == 0, "... in words");
    plan_free(p);
    w.bad_rail[2] = 1 << 3; /* the same rail of another node: a partner must be good on that rail */
    w.bad_rail[4] = 1 << 6;
    p = play(&w, PLAN_CONF_INIT);
    is_str(those(p, NODE_BAD, text), "2 4 5", "three nodes with a dead rail each are named");
    is_str(those(p, NODE_GOOD, text), "0 1 3 6 7", "... and nobody who met them");
    verdict_node(p, 4, &v);
    is_num(v.rails, 1 << 6, "... each by its own");
    plan_free(p);
}

static void test_unequal_rails(void)
{
    struct world w = {.nodes = 4, .rails = 8};
    struct node_verdict v;
    const struct plan_pair *pair;
    struct plan_conf conf = PLAN_CONF_INIT;
    conf.rails = 8;
    struct plan *p = plan_new(4, &conf, NULL);
    for (unsigned n = 0; n < 4; n++) {
        plan_local(p, n, true, NULL);
        plan_rails(p, n, n == 3 ? 8 : 4);
    }
    plan_round(p, &pair);
    is_num(pair[1].rails, 0xf, "unequal numbers of GPUs: those that both have are run");
    struct pair_result r = result_of(&w, &pair[0]);
    plan_result(p, 0, &r);
    plan_result(p, 1, &r);
    while (one_round(p, &w))
        ;
    verdict_node(p, 3, &v);
    is_num(v.state, NODE_GOOD, "... the others are not held against their node");
    is_str(v.text, "rails 4-7 not tested: no other node has them", "... but told");
    plan_free(p);
}

/* --- links, domains, nodes that go -------------------------------------------------------------------------------- */

static void test_links(void)
{
    struct link_verdict l[4];
    struct plan *p = play(&(struct world){.nodes = 8, .rails = 1, .cut_a = 2, .cut_b = 3}, PLAN_CONF_INIT);
    is_num(verdict_whole(p), VERDICT_ALL_GOOD, "a bad link: all nodes are good");
    is_num(verdict_links(p, l, 4), 1, "... and one link is named");
    ok(l[0].a == 2 && l[0].b == 3 && !l[0].slow && !l[0].across, "... the bad one");
    is_str(l[0].reason, "nothing came back", "... with its reason");
    plan_free(p);
    p = play(&(struct world){.nodes = 8, .rails = 1, .cut_a = 2, .cut_b = 3, .leave_cut_slow = true}, PLAN_CONF_INIT);
    is_num(verdict_whole(p), VERDICT_ALL_GOOD, "a slow link: all nodes are good");
    is_num(verdict_links(p, l, 4), 1, "... and one link is named");
    ok(l[0].a == 2 && l[0].b == 3 && l[0].slow, "... the slow one");
    is_num(l[0].value, 20000, "... with its value");
    plan_free(p);
}

/* Two switches; what goes from one to the other fails. */
static void test_domains(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct world w = {.nodes = 10, .rails = 1};
    const struct plan_pair *pair;
    struct link_verdict l[16];
    struct plan *p = start(&w, conf);
    for (unsigned n = 0; n < 10; n++)
        plan_domain(p, n, n % 2); /* five each: one pair of the first round goes across */
    for (unsigned pairs; (pairs = plan_round(p, &pair));)
        for (unsigned i = 0; i < pairs; i++) {
            struct pair_result r = result_of(&w, &pair[i]);
            if (pair[i].a % 2 != pair[i].b % 2)
                r.rail[0].outcome = RAIL_FAILED;
            plan_result(p, i, &r);
        }
    is_num(verdict_whole(p), VERDICT_ALL_GOOD, "a dead way between two switches: all nodes are good");
    unsigned n = verdict_links(p, l, 16);
    ok(n > 0 && l[0].across, "... and a link across is named");
    plan_free(p);
}

static void test_leaving(void)
{
    struct world w = {.nodes = 6, .rails = 1};
    const struct plan_pair *pair;
    struct node_verdict v;
    char text[256];
    struct plan *p = start(&w, PLAN_CONF_INIT);
    unsigned pairs = plan_round(p, &pair);
    plan_left(p, 1);
    plan_lost(p, 3, "not heard of since the coordinator stood still");
    for (unsigned i = 0; i < pairs; i++) {
        struct pair_result r = result_of(&w, &pair[i]);
        if (i < 2)
            pair_result_init(&r); /* broken off */
        plan_result(p, i, &r);
    }
    while (one_round(p, &w))
        ;
    is_str(those(p, NODE_GOOD, text), "0 2 4 5", "two nodes go in the middle of their pairs: the others are good");
    verdict_node(p, 1, &v);
    is_num(v.state, NODE_BAD_LOCAL, "... who left is bad");
    is_str(v.text, "left", "... by that");
    verdict_node(p, 3, &v);
    is_num(v.state, NODE_UNDECIDED, "... who was lost is undecided");
    plan_free(p);

    /* A failure with somebody who leaves later counts for nobody. */
    p = start(&w, PLAN_CONF_INIT);
    w.bad = 1 << 1;
    one_round(p, &w);
    is_num(verdict_state(p, 0), NODE_SUSPECT, "a pair fails: both are suspect");
    plan_left(p, 1);
    is_num(verdict_state(p, 0), NODE_UNTESTED, "... until one of them leaves");
    plan_free(p);

    p = start(&w, PLAN_CONF_INIT);
    one_round(p, &w);
    plan_lost(p, 1, "silent");
    plan_absent(p, 1);
    is_num(verdict_state(p, 0), NODE_UNTESTED, "... or says goodbye");
    is_num(verdict_state(p, 1), NODE_ABSENT, "... which is no fault, though it was not heard before");
    plan_left(p, 1);
    is_num(verdict_state(p, 1), NODE_ABSENT, "... nor that its process ends then");
    plan_free(p);
}

static void test_broken(void)
{
    struct world w = {.nodes = 2, .rails = 1};
    const struct plan_pair *pair;
    struct pair_result broken;
    char text[256];
    unsigned rounds = 0;
    struct plan *p = start(&w, PLAN_CONF_INIT);
    pair_result_init(&broken);
    plan_round(p, &pair);
    plan_result(p, 0, &broken);
    while (one_round(p, &w))
        ;
    is_str(those(p, NODE_GOOD, text), "0 1", "a pair that was broken off comes again");
    plan_free(p);
    p = start(&w, (struct plan_conf){.rails = 1, .straggler_k = 3, .straggler_min = 10});
    while (plan_round(p, &pair))
        rounds++; /* no result at all */
    ok(rounds > 1 && rounds < 10, "... but not for ever");
    is_str(those(p, NODE_UNDECIDED, text), "0 1", "... and nobody is to blame");
    plan_free(p);

    /* Everybody breaks off with one node: its NCCL is another one. */
    struct node_verdict v;
    w.nodes = 5;
    p = start(&w, PLAN_CONF_INIT);
    for (unsigned pairs; (pairs = plan_round(p, &pair));)
        for (unsigned i = 0; i < pairs; i++) {
            struct pair_result r = result_of(&w, &pair[i]);
            if (pair[i].a == 2 || pair[i].b == 2) {
                pair_result_init(&r);
                snprintf(r.rail[0].reason, sizeof r.rail[0].reason, "NCCL 2.27.5 here, 2.28.9 there");
            }
            plan_result(p, i, &r);
        }
    is_str(those(p, NODE_GOOD, text), "0 1 3 4", "a node with another NCCL: the others are good");
    verdict_node(p, 2, &v);
    is_num(v.state, NODE_UNDECIDED, "... it is not bad");
    ok(strstr(v.text, ": NCCL 2.27.5 here, 2.28.9 there"), "... and why is told");
    plan_free(p);
}

static void test_caps(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct world w = {.nodes = 6, .rails = 1, .bad = 1 << 5};
    struct node_verdict v;
    conf.rounds_max = 2;
    struct plan *p = play(&w, conf);
    is_num(plan_rounds(p), 2, "no more rounds than allowed");
    is_num(plan_stopped(p), PLAN_STOP_ROUNDS, "... and that is why it stopped");
    verdict_node(p, 5, &v);
    is_num(v.state, NODE_UNDECIDED, "... what is not sure by then is undecided");
    is_str(v.text, "failed with 2 good nodes, which is too few to be sure (stopped after 2 rounds): nothing came back",
           "... and says so");
    plan_free(p);
    p = start(&w, PLAN_CONF_INIT);
    one_round(p, &w);
    plan_end(p);
    ok(!one_round(p, &w), "no round after the end of time");
    is_num(plan_stopped(p), PLAN_STOP_TIME, "... and that is why");
    is_num(verdict_state(p, 5), NODE_UNDECIDED, "... suspects are undecided then");
    plan_free(p);
}

static void test_join(void)
{
    struct pair_result a, b, to;
    pair_result_init(&a);
    pair_result_init(&b);
    a.rail[0].outcome = b.rail[0].outcome = RAIL_OK;
    a.rail[0].value[METRIC_BW64M] = 40000;
    b.rail[0].value[METRIC_BW64M] = 39000;
    a.rail[0].value[METRIC_LAT] = 10000;
    b.rail[0].value[METRIC_LAT] = 12000;
    a.rail[1].outcome = RAIL_OK;
    b.rail[1].outcome = RAIL_FAILED;
    snprintf(b.rail[1].reason, sizeof b.rail[1].reason, "wrong bytes");
    a.rail[2].outcome = RAIL_FAILED; /* b broke off: a only saw that */
    a.rail[3].outcome = RAIL_FAILED;
    snprintf(a.rail[3].reason, sizeof a.rail[3].reason, "nothing came back");
    b.rail[3].outcome = RAIL_NO_REPORT;
    pair_result_join(&to, &a, &b);
    is_num(to.rail[0].outcome, RAIL_OK, "both ends say ok");
    is_num(to.rail[0].value[METRIC_BW64M], 39000, "... the smaller bandwidth counts");
    is_num(to.rail[0].value[METRIC_LAT], 12000, "... and the greater latency");
    is_num(to.rail[1].outcome, RAIL_FAILED, "one end says failed");
    is_str(to.rail[1].reason, "wrong bytes", "... with its reason");
    is_num(to.rail[2].outcome, RAIL_BROKEN, "one end broke off: nobody is to blame");
    is_num(to.rail[3].outcome, RAIL_FAILED, "one end failed, the other is silent: failed");
    is_str(to.rail[3].reason, "nothing came back", "... as the one says that spoke");
    b.rail[0].value[METRIC_LAT] = 0;
    a.rail[0].spread[METRIC_BW64M] = 9000;
    b.rail[0].spread[METRIC_BW64M] = 100;
    pair_result_join(&to, &a, &b);
    is_num(to.rail[0].value[METRIC_LAT], 10000, "what one end alone has measured counts");
    is_num(to.rail[0].spread[METRIC_BW64M], 100, "a value's noise is that of the end whose value it is");
    is_num(rail_outcome_find("no report"), RAIL_NO_REPORT, "outcomes have names");
    is_num(rail_outcome_find("?"), RAIL_OUTCOME_COUNT, "... others are none");
}

/* What was found first is the better reason; what was said first is the result. */
static void test_first_word(void)
{
    struct world w = {.nodes = 4, .rails = 2};
    const struct plan_pair *pair;
    struct node_verdict v;
    struct plan *p = start(&w, PLAN_CONF_INIT);
    plan_local(p, 0, false, "disk_writable");
    plan_left(p, 0);
    plan_lost(p, 0, "not heard of");
    verdict_node(p, 0, &v);
    is_str(v.text, "disk_writable", "a bad node that leaves is bad by what it had");
    plan_left(p, 1);
    plan_lost(p, 1, "not heard of");
    verdict_node(p, 1, &v);
    is_str(v.text, "left", "who has left is not lost");
    is_num(plan_round(p, &pair), 1, "the others meet");
    struct pair_result good = result_of(&w, &pair[0]), bad = good;
    bad.rail[0].outcome = bad.rail[1].outcome = RAIL_FAILED;
    snprintf(bad.rail[0].reason, sizeof bad.rail[0].reason, "the first");
    snprintf(bad.rail[1].reason, sizeof bad.rail[1].reason, "the second");
    plan_result(p, 0, &good);
    plan_result(p, 0, &bad);
    is_num(verdict_state(p, 2), NODE_GOOD, "a pair has one result");
    plan_free(p);
    w.nodes = 2;
    p = start(&w, PLAN_CONF_INIT);
    plan_round(p, &pair);
    plan_result(p, 0, &bad);
    plan_result(p, 0, &good);
    is_num(verdict_state(p, 0), NODE_SUSPECT, "... whichever it is");
    struct pair_record rec;
    verdict_pair(p, 0, &rec);
    is_str(rec.reason, "the first", "... and of several rails the first reason");
    plan_free(p);
}

/* Pairs without a result come again as often as is written, also if only one of their rails had none. */
static void test_tries(void)
{
    struct plan_conf conf = PLAN_CONF_INIT;
    struct world w = {.nodes = 2, .rails = 2};
    const struct plan_pair *pair;
    unsigned rounds = 0;
    conf.rounds_max = 0;
    struct plan *p = start(&w, conf);
    while (plan_round(p, &pair)) {
        struct pair_result r = result_of(&w, &pair[0]);
        r.rail[1].outcome = RAIL_BROKEN;
        is_num(pair[0].rails, rounds ? 2 : 3, rounds ? "the rail that is missing comes again" : "both rails");
        plan_result(p, 0, &r);
        rounds++;
    }
    is_num(rounds, 4, "three times more, and no more");
    is_num(plan_stopped(p), PLAN_STOP_PAIRS, "then nobody is left to ask");
    plan_free(p);

    /* Node 2 breaks off with whoever meets it: that is no reason to give up on the others. */
    w = (struct world){.nodes = 5, .rails = 1};
    p = start(&w, conf);
    unsigned met[5] = {0};
    for (unsigned pairs; (pairs = plan_round(p, &pair));)
        for (unsigned i = 0; i < pairs; i++) {
            struct pair_result r = result_of(&w, &pair[i]);
            if (pair[i].a == 2 || pair[i].b == 2) {
                pair_result_init(&r);
                met[pair[i].a == 2 ? pair[i].b : pair[i].a]++;
            }
            plan_result(p, i, &r);
        }
    is_num(met[0] + met[1] + met[3] + met[4], 7,
           "a node that always breaks off is tried three times, and once by each");
    plan_free(p);
}

/* A witness that falls opens again what was known, not what was out of time. */
static void test_again(void)
{
    struct world w = {.nodes = 6, .rails = 1, .bad = 1 << 5};
    const struct plan_pair *pair;
    struct plan *p = play(&w, PLAN_CONF_INIT);
    is_num(plan_stopped(p), PLAN_STOP_KNOWN, "all is known");
    plan_end(p);
    is_num(plan_stopped(p), PLAN_STOP_KNOWN, "the end of time changes nothing then");
    plan_again(p);
    is_num(plan_stopped(p), PLAN_GOING, "it may go on");
    plan_free(p);
    p = start(&w, PLAN_CONF_INIT);
    one_round(p, &w);
    plan_end(p);
    plan_again(p);
    is_num(plan_stopped(p), PLAN_STOP_TIME, "out of time it may not");
    is_num(plan_round(p, &pair), 0, "... and does not");
    plan_free(p);
    w = (struct world){.nodes = 2, .rails = 1, .bad = 3};
    p = play(&w, PLAN_CONF_INIT);
    is_num(plan_stopped(p), PLAN_STOP_PAIRS, "two that fail have nobody else");
    plan_again(p);
    is_num(plan_stopped(p), PLAN_GOING, "... until somebody may be wanted again");
    plan_free(p);
    struct plan_conf conf = PLAN_CONF_INIT;
    conf.rounds_max = 1;
    w = (struct world){.nodes = 4, .rails = 1};
    p = play(&w, conf);
    is_num(plan_stopped(p), PLAN_STOP_KNOWN, "all are good after the rounds that are allowed: nothing was cut short");
    plan_free(p);
}

static void test_memory(void)
{
    unsigned ended = 0;
    for (long fail = 0; fail < 40; fail++) {
        struct el_mem mem = EL_MEM_INIT(0);
        struct world w = {.nodes = 6, .rails = 1, .bad = 1 << 5};
        struct plan_conf conf = PLAN_CONF_INIT;
        mem.fail_after = fail;
        struct plan *p = plan_new(6, &conf, &mem);
        if (p) {
            for (unsigned n = 0; n < 6; n++)
                plan_local(p, n, true, NULL);
            while (one_round(p, &w))
                ;
            ended += plan_stopped(p) == PLAN_STOP_MEMORY;
            plan_free(p);
        }
        if (mem.used_bytes)
            ok(0, "memory is given back");
    }
    ok(ended > 0, "without memory the plan ends with what it knows");
}

/* Nodes 0, 1 and 2 lie: whoever else is paired with them fails.  They are of one host, or of three. */
static enum node_state victim_of(bool one_host)
{
    const struct plan_pair *pair;
    struct world w = {.nodes = 4, .rails = 1};
    struct plan *p = start(&w, PLAN_CONF_INIT);
    for (unsigned n = 0; n < w.nodes; n++)
        plan_host(p, n, n < 3 && one_host ? 7 : n + 1);
    for (unsigned pairs; (pairs = plan_round(p, &pair));)
        for (unsigned i = 0; i < pairs; i++) {
            bool lie = (pair[i].a < 3) != (pair[i].b < 3);
            w.bad = lie ? UINT64_C(1) << pair[i].a : 0;
            struct pair_result r = result_of(&w, &pair[i]);
            plan_result(p, i, &r);
        }
    enum node_state v = verdict_state(p, 3);
    plan_free(p);
    return v;
}

static void test_one_host(void)
{
    is_num(victim_of(false), NODE_BAD, "three hosts that accuse a node condemn it");
    ok(victim_of(true) != NODE_BAD, "three nodes of one host do not");
}

int main(void)
{
    test_few();
    test_local();
    test_rails();
    test_unequal_rails();
    test_links();
    test_domains();
    test_leaving();
    test_broken();
    test_caps();
    test_join();
    test_first_word();
    test_tries();
    test_again();
    test_memory();
    test_one_host();
    return done();
}
