/* Stories of the coordinator core: after which failures a health check comes before the next round. */
#include "unit/probe_rounds_stage.h"

/* What node a says of its worker that failed in that round. */
static void incident(uint64_t round, const char *class, const char *text)
{
    struct msg m = {.type = MSG_INCIDENT};
    m.u.incident = (struct msg_incident){.number = round,
                                         .coord = s.conf.coord,
                                         .local_rank = 1,
                                         .code = 3,
                                         .signal = -1,
                                         .by = "itself",
                                         .class = class,
                                         .type = "",
                                         .text = text,
                                         .document = "",
                                         .ranks = ""};
    story_tell(&s, 'a', &m);
}

static void test_restart_trigger(void)
{
    begin(2, 2, 2, HEALTH_RESTART);
    s.quiet = true;
    EACH(10, "ab");
    EACH(20, "ab");
    EACH(30, "ab");
    SAY(31, 'a', STORE_READY);
    ALL(32, "ab", STARTED);
    s.quiet = false;
    FAIL(100000, 'a', 3);
    ALL(100010, "ab", STOPPED);
    SAY(100020, 'a', STORE_READY);
    FAIL(200000, 'a', 3);
    incident(2, "network", "NCCL");
    ALL(200010, "ab", STOPPED);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "100.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "100.010 b STOPPED -> a: open 2\n"
             "100.020 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n"
             "200.000 a WORKER_FAILED -> a: stop 2; b: stop 2\n"
             "200.010 b STOPPED -> a: checks; b: checks\n",
             "--health-check=restart: not after any failure, but after one of the network");
}

/* Is there a check before the round that follows one in which a worker failed so? */
static bool checks_after(enum health_when when, const char *class)
{
    begin(2, 2, 2, when);
    EACH(10, "ab");
    EACH(20, "ab");
    EACH(30, "ab");
    SAY(31, 'a', STORE_READY);
    ALL(32, "ab", STARTED);
    FAIL(100000, 'a', 3);
    incident(1, class, "x");
    ALL(100010, "ab", STOPPED);
    U(101000);
    const char *after = strstr(s.text, "100.010 ");
    bool checks = after && strstr(after, "a: checks; b: checks");
    ok(checks || (after && strstr(after, "a: open 2")), "the job goes on");
    s.len = 0;
    s.text[0] = 0;
    story_end(&s);
    return checks;
}

static void test_when(void)
{
    ok(!checks_after(HEALTH_START, "hardware suspect"), "--health-check=start: before the first round alone");
    ok(checks_after(HEALTH_RESTART, "hardware suspect"), "restart: after a failure of hardware");
    ok(checks_after(HEALTH_RESTART, "network"), "of the network");
    ok(!checks_after(HEALTH_RESTART, "code error"), "and of nothing else");
    ok(checks_after(HEALTH_ALWAYS, "code error"), "always: after any");
}

int main(void)
{
    test_restart_trigger();
    test_when();
    return done();
}
