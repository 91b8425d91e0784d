/* Stories of a node's part in health checks: orders, results, connections that are lost between them. */
#include "unit/member_stage.h"

static struct msg stage(unsigned probe, unsigned number, const char *why)
{
    struct msg o = {.type = MSG_PROBE};
    o.u.probe = (struct msg_probe){
        .number = 1, .coord = 9, .probe = probe, .stage = number, .text = why, .peer = "", .local = "", .ids = ""};
    return o;
}

#define PROBED(ms) AT(ms, "probed", .type = MEMBER_EV_PROBED)
#define ID(ms)     AT(ms, "id", .type = MEMBER_EV_PROBE_ID)

static void checked(void)
{
    begin(0);
    START;
    CONNECTED(10);
    len = 0;
}

static void test_stages(void)
{
    checked();
    order(20, stage(1, 0, "look"));
    PROBED(30);
    order(40, stage(1, 1, "pair"));
    ID(50);
    order(55, stage(1, 1, "pair"));
    PROBED(60);
    order(70, stage(1, 2, "again"));
    order(80, park("over"));
    PROBED(90);
    story_is("0.020 PROBE -> probe, say \"look\" | probing\n"
             "0.030 probed -> probe tell PROBE_RESULT | probing\n"
             "0.040 PROBE -> probe stop, probe, say \"pair\" | probing\n"
             "0.050 id -> probe tell PROBE_ID | probing\n"
             "0.055 PROBE -> probe, probe tell PROBE_ID | probing\n"
             "0.060 probed -> probe tell PROBE_ID, probe tell PROBE_RESULT | probing\n"
             "0.070 PROBE -> probe stop, probe, say \"again\" | probing\n"
             "0.080 WAIT -> probe stop, say \"over\" | parked\n",
             "each stage ends what is left of the one before, and what comes of none says nothing");
}

/* What was on its way when the connection was lost may not have come: all of it is told once more, once. */
static void test_lost(void)
{
    checked();
    order(20, stage(1, 1, "pair"));
    ID(30);
    PROBED(40);
    order(45, stage(1, 1, "pair"));
    LOST(50);
    CONNECTED(300);
    order(310, stage(1, 1, "pair"));
    order(320, stage(1, 1, "pair"));
    len = drop_lines("connect");
    story_is("0.020 PROBE -> probe, say \"pair\" | probing\n"
             "0.030 id -> probe tell PROBE_ID | probing\n"
             "0.040 probed -> probe tell PROBE_ID, probe tell PROBE_RESULT | probing\n"
             "0.045 PROBE -> probe | probing\n"
             "0.310 PROBE -> probe, probe tell PROBE_ID, probe tell PROBE_RESULT | probing\n"
             "0.320 PROBE -> probe | probing\n",
             "results that may have been lost with the connection are told once more");
}

/* An id or a result that comes while nobody listens. */
static void test_away(void)
{
    checked();
    order(20, stage(1, 1, "pair"));
    LOST(30);
    ID(40);
    PROBED(50);
    CONNECTED(300);
    order(310, stage(1, 1, "pair"));
    len = drop_lines("connect");
    story_is("0.020 PROBE -> probe, say \"pair\" | probing\n"
             "0.310 PROBE -> probe, probe tell PROBE_ID, probe tell PROBE_RESULT | probing\n",
             "what comes while nobody listens is told to who asks again");
}

static void test_beside_workers(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, world(1, 1, 2));
    LEASE_GRANTED(30);
    STARTED(40);
    len = 0;
    order(50, stage(1, 0, "look"));
    story_is("0.050 PROBE -> disconnect | running\n", "no check beside workers: such a coordinator is not obeyed");
}

static void test_not_asked(void)
{
    checked();
    PROBED(20);
    ID(25);
    order(30, stage(1, 0, "look"));
    story_is("0.030 PROBE -> probe, say \"look\" | probing\n",
             "what nobody has asked for is no result of the first stage");
}

/* Stages are numbered in each check: the same number of another one is another stage. */
static void test_next_check(void)
{
    checked();
    order(15, stage(1, 0, "look"));
    PROBED(20);
    order(30, stage(2, 0, "look"));
    story_is("0.015 PROBE -> probe, say \"look\" | probing\n"
             "0.020 probed -> probe tell PROBE_RESULT | probing\n"
             "0.030 PROBE -> probe stop, probe | probing\n",
             "a stage of the next check is a new one");
}

int main(void)
{
    test_stages();
    test_lost();
    test_away();
    test_beside_workers();
    test_not_asked();
    test_next_check();
    return done();
}
