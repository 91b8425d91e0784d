/* A health check of several nodes where one line decides: who is asked with what, and which of two reasons is told.
 * Each was found as a wrong version that no other test saw. */
#include "unit/probing_stage.h"

static void has_gpus(unsigned node, unsigned gpus, enum health_check_outcome outcome, const char *why)
{
    struct msg_probe_result m = result(node, outcome);
    m.gpus = gpus;
    m.text = why;
    say(node, &m);
}

static void begin_auto(unsigned nodes)
{
    begin(nodes);
    p->conf.backend = HEALTH_AUTO;
}

static void test_gpus(void)
{
    begin_auto(3);
    has_gpus(0, 8, HEALTH_CHECK_OK, "");
    health_check_left(p, 0, false, now);
    has_gpus(1, 0, HEALTH_CHECK_OK, "");
    has_gpus(2, 0, HEALTH_CHECK_OK, "");
    ok(!health_check_is_nccl(p), "who had GPUs has gone: the others, without any, meet over TCP");
    finish(3);
    is_str(verdict(1), "good", "... and are good");
    begin_auto(3);
    has_gpus(0, 8, HEALTH_CHECK_OK, "");
    has_gpus(1, 8, HEALTH_CHECK_OK, "");
    has_gpus(2, 0, HEALTH_CHECK_FAILED, "its disk is full");
    ok(health_check_is_nccl(p), "two with GPUs");
    finish(3);
    is_str(verdict(2), "bad: its disk is full", "a node that is bad keeps its own reason");
    begin_auto(3);
    has_gpus(0, 8, HEALTH_CHECK_OK, "");
    health_check_left(p, 1, true, now);
    has_gpus(2, 8, HEALTH_CHECK_OK, "");
    finish(3);
    is_str(verdict(1), "absent: it went before it was judged", "who has gone is not asked for GPUs");
}

static void test_parted(void)
{
    begin(2);
    all("ab", HEALTH_CHECK_OK);
    is_num(answer(0, HEALTH_CHECK_BROKEN), HEALTH_CHECK_ORDER, "one end was stopped: there is news for the other");
    is_num(health_check_told(p), 1, "... for that one");
    ok(order_of(1).parted, "... that nobody is there to meet");
}

/* e fails with everybody.  In the last look one of those who have accused it turns out to be bad, and so, which is no
 * news, does g: e has to meet another one. */
static void test_witness_after(void)
{
    struct node_verdict v;
    begin(7);
    all("abcdef", HEALTH_CHECK_OK);
    answer(6, HEALTH_CHECK_FAILED);
    for (unsigned round = 0; order_of(6).kind != HEALTH_CHECK_AFTER && round < 50; round++)
        for (unsigned i = 0; i < 6; i++)
            if (order_of(i).kind == HEALTH_CHECK_PAIR)
                answer(i, i == 4 || order_of(i).peer[0] == 'e' ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
    verdict_node(p->plan, 4, &v);
    is_num(v.state, NODE_BAD, "failed with three that are good");
    is_num(v.witnesses, 3, "... who are its witnesses");
    for (unsigned i = 0; i < 7; i++)
        answer(i, i == v.witness[0] || i == 6 ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
    ok(!health_check_is_over(p) && order_of(4).kind == HEALTH_CHECK_PAIR,
       "one of them is bad by its counters: one more is asked");
}

int main(void)
{
    test_gpus();
    test_parted();
    test_witness_after();
    health_check_free(p);
    return done();
}
