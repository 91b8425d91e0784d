/* A health check of many nodes: what they tell of themselves, page by page, and how much of it is kept. */
#include "unit/probing_stage.h"

static unsigned kept(unsigned node, const char *what)
{
    unsigned n = 0;
    for (const char *s = health_check_kept(p, node); (s = strstr(s, what)); s++)
        n++;
    return n;
}

static void test_pages(void)
{
    begin(2);
    struct msg_probe_result m = result(0, HEALTH_CHECK_FAILED);
    m.more = true;
    m.lines = WARNS;
    is_num(say(0, &m), HEALTH_CHECK_SAME, "more pages follow");
    m.page = 2;
    m.lines = ANOTHER;
    say(0, &m);
    is_num(kept(0, "nofile"), 0, "a page that does not follow is no page");
    m.page = 0; /* another connection: all of it again */
    m.lines = WARNS;
    say(0, &m);
    m.page = 1;
    m.lines = ANOTHER;
    m.more = false;
    m.outcome = HEALTH_CHECK_OK;
    say(0, &m);
    is_num(kept(0, "shm_size"), 1, "what was told twice is kept once");
    is_num(kept(0, "nofile"), 1, "and what followed, too");
    ok(health_check_warned(p, 0), "it was warned of");
    m.outcome = HEALTH_CHECK_FAILED;
    say(0, &m);
    is_num(kept(0, "nofile"), 1, "who is done says nothing more");
    answer(1, HEALTH_CHECK_OK);
    all("ab", HEALTH_CHECK_OK);
    m = result(0, HEALTH_CHECK_OK);
    m.lines = WARNS;
    m.more = true;
    say(0, &m);
    m.lines = "";
    m.more = false;
    say(0, &m); /* from the beginning */
    is_num(kept(0, "shm_size"), 1, "what an earlier stage told stays, what this one takes back goes");
    answer(1, HEALTH_CHECK_OK);
    ok(health_check_warned(p, 0), "a warning of the first look is not forgotten by the last");
    ok(!health_check_warned(p, 1), "nobody else was warned");
    is_str(verdict(0), "good", "what was said before the first page came again does not count");
}

static void test_warning_taken_back(void)
{
    begin(2);
    struct msg_probe_result m = result(0, HEALTH_CHECK_OK);
    m.lines = WARNS;
    m.more = true;
    say(0, &m);
    m.lines = "";
    m.more = false;
    say(0, &m);
    ok(!health_check_warned(p, 0), "told from the beginning, without the warning: there is none");
    begin(2);
    m = result(0, (enum health_check_outcome)HEALTH_CHECK_OUTCOMES);
    is_num(say(0, &m), HEALTH_CHECK_SAME, "an outcome that is none");
    m = result(0, HEALTH_CHECK_OK);
    m.number++;
    m.outcome = HEALTH_CHECK_FAILED;
    say(0, &m);
    all("ab", HEALTH_CHECK_OK);
    is_str(kinds(2), "pp", "an answer about another round says nothing");
}

static void test_ids(void)
{
    struct msg_probe_id m;
    begin(2);
    struct msg_probe o = order_of(0);
    m = (struct msg_probe_id){o.number, o.coord, o.probe, o.stage, 0, "early"};
    is_num(health_check_id(p, 0, &m), HEALTH_CHECK_SAME, "an id where there is no pair");
    all("ab", HEALTH_CHECK_OK);
    m.stage = order_of(0).stage;
    m.id = "two words";
    is_num(health_check_id(p, 0, &m), HEALTH_CHECK_SAME, "an id that is none");
    m.id = "x";
    is_num(health_check_id(p, 1, &m), HEALTH_CHECK_SAME, "an id of the end that comes");
    m.rail = PLAN_RAILS_MAX;
    is_num(health_check_id(p, 0, &m), HEALTH_CHECK_SAME, "of a rail that cannot be");
    m.rail = 0;
    is_num(health_check_id(p, 0, &m), HEALTH_CHECK_ORDER, "the host end's");
    is_str(order_of(1).ids, "0=x", "goes to the guest");
    is_str(order_of(0).ids, "", "and to nobody else");
}

static void test_metrics(void)
{
    begin(3);
    struct msg_probe_result m = result(0, HEALTH_CHECK_OK);
    m.lines =
        "{\"t\":\"m\",\"name\":\"host_mem\",\"rail\":0,\"n\":1,\"min\":7,\"median\":7,\"p95\":7,\"unit\":\"GB/s\"}\n";
    say(0, &m);
    all("bc", HEALTH_CHECK_OK);
    while (order_of(0).kind != HEALTH_CHECK_AFTER)
        for (unsigned i = 0; i < 3; i++)
            if (order_of(i).kind == HEALTH_CHECK_PAIR) {
                m = result(i, HEALTH_CHECK_OK);
                m.gpus = 3;
                say(i, &m);
            }
    ok(!health_check_is_nccl(p), "how many GPUs there are is what the first look said");
    is_num(verdict_value(health_check_plan(p), 0, 0, METRIC_HOST_MEM), 7000,
           "what a node measures alone is kept for it");
}

/* A node that never comes to an end must not eat the coordinator's memory, which other jobs need too. */
static void test_endless_pages(void)
{
    char lines[MSG_LINES_MAX] = "";
    size_t n = 0;
    while (n + 64 < sizeof lines)
        n += (size_t)snprintf(lines + n, sizeof lines - n, "{\"t\":\"m\",\"name\":\"cpu\",\"median\":1}\n");
    begin(2);
    struct msg_probe_result m = result(0, HEALTH_CHECK_OK);
    m.lines = lines;
    m.more = true;
    size_t before = mem.used_bytes;
    for (m.page = 0; m.page < 500; m.page++)
        say(0, &m);
    ok(mem.used_bytes - before < 64u << 10, "what a node tells of itself without an end is not kept without one");
    m.more = false;
    say(0, &m);
    finish(2);
    is_str(verdict(0), "good", "and it is judged like others");
}

int main(void)
{
    test_endless_pages();
    test_pages();
    test_warning_taken_back();
    test_ids();
    test_metrics();
    return done();
}
