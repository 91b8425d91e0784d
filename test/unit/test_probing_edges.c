/* A health check of several nodes where one line decides: who is asked with what, and which of two reasons is told.
 * Each was found as a wrong version that no other test saw. */
#include "unit/probing_stage.h"

static void has_gpus(unsigned node, unsigned gpus, enum probing_outcome outcome, const char *why)
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
    has_gpus(0, 8, PROBING_OK, "");
    probing_left(p, 0, false, now);
    has_gpus(1, 0, PROBING_OK, "");
    has_gpus(2, 0, PROBING_OK, "");
    ok(!probing_is_nccl(p), "who had GPUs has gone: the others, without any, meet over TCP");
    finish(3);
    is_str(verdict(1), "good", "... and are good");
    begin_auto(3);
    has_gpus(0, 8, PROBING_OK, "");
    has_gpus(1, 8, PROBING_OK, "");
    has_gpus(2, 0, PROBING_FAILED, "its disk is full");
    ok(probing_is_nccl(p), "two with GPUs");
    finish(3);
    is_str(verdict(2), "bad: its disk is full", "a node that is bad keeps its own reason");
    begin_auto(3);
    has_gpus(0, 8, PROBING_OK, "");
    probing_left(p, 1, true, now);
    has_gpus(2, 8, PROBING_OK, "");
    finish(3);
    is_str(verdict(1), "absent: it went before it was judged", "who has gone is not asked for GPUs");
}

static void test_parted(void)
{
    begin(2);
    all("ab", PROBING_OK);
    is_num(answer(0, PROBING_BROKEN), PROBING_ORDER, "one end was stopped: there is news for the other");
    is_num(probing_told(p), 1, "... for that one");
    ok(order_of(1).parted, "... that nobody is there to meet");
}

/* e fails with everybody.  In the last look one of those who have accused it turns out to be bad, and so, which is no
 * news, does g: e has to meet another one. */
static void test_witness_after(void)
{
    struct node_verdict v;
    begin(7);
    all("abcdef", PROBING_OK);
    answer(6, PROBING_FAILED);
    for (unsigned round = 0; order_of(6).kind != PROBING_AFTER && round < 50; round++)
        for (unsigned i = 0; i < 6; i++)
            if (order_of(i).kind == PROBING_PAIR)
                answer(i, i == 4 || order_of(i).peer[0] == 'e' ? PROBING_FAILED : PROBING_OK);
    verdict_node(p->plan, 4, &v);
    is_num(v.state, NODE_BAD, "failed with three that are good");
    is_num(v.witnesses, 3, "... who are its witnesses");
    for (unsigned i = 0; i < 7; i++)
        answer(i, i == v.witness[0] || i == 6 ? PROBING_FAILED : PROBING_OK);
    ok(!probing_is_over(p) && order_of(4).kind == PROBING_PAIR,
       "one of them is bad by its counters: one more is asked");
}

int main(void)
{
    test_gpus();
    test_parted();
    test_witness_after();
    probing_free(p);
    return done();
}
