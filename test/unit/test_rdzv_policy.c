/* Stories of the coordinator core: what follows from how the workers of a round ended, and nodes that are set aside. */
#include "sim/words.h"

static void says(unsigned ms, char node, struct msg_digest d)
{
    story_until(&s, ms);
    struct msg m = {.type = MSG_DIGEST, .u.digest = d};
    m.u.digest.number = s.node[node - 'a'].number;
    m.u.digest.coord = s.node[node - 'a'].coord;
    m.u.digest.what = d.what ? d.what : "";
    m.u.digest.place = d.place ? d.place : "";
    m.u.digest.evidence = d.evidence ? d.evidence : "";
    story_tell(&s, node, &m);
}

#define ECC "CUDA error: uncorrectable ECC error encountered"
#define SAYS(ms, node, ...)                                                                                            \
    says(ms, node, (struct msg_digest){.witnesses = 1, .elapsed_ms = 900, .place = "t.py:3", __VA_ARGS__})
#define IMPORT(ms, node) SAYS(ms, node, .kind = RESTART_TEXT, .what = "ImportError")
#define VALUE(ms, node)  SAYS(ms, node, .kind = RESTART_CODE, .what = "ValueError")
#define BROKEN(ms, node) SAYS(ms, node, .kind = RESTART_OTHER, .hardware = true, .evidence = ECC)

static void one_round(unsigned ms, char first);

static void aside_line(void)
{
    struct msg m;
    rdzv_status_job(s.r, s.now, &m);
    int n = snprintf(s.text + s.len, sizeof s.text - s.len, "  # %s\n",
                     *m.u.status_job.aside ? m.u.status_job.aside : "nobody");
    s.len += (size_t)n;
}
#define ASIDE aside_line()

static void test_at_once(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    IMPORT(5001, 'a');
    ALL(5002, "ab", STOPPED);
    CAUSE;
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: end 1; b: end 1\n"
             "  # no restart: ImportError at t.py:3 after 0.9 s: a fault of the program or its command line, which "
             "would come again (--restart-policy=always restarts all the same); rank 1 on a failed: exit code\n",
             "an import error burns no restart");
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    IMPORT(5001, 'a');
    SAYS(5001, 'b', .passed = true);
    ALL(5002, "ab", STOPPED);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n",
             "another node's workers had got further");
}

/* What passes by itself: the others are told how long the coordinator has waited on purpose. */
static void test_waits(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 1);
    SAYS(5001, 'a', .kind = RESTART_PASSING);
    ALL(5002, "ab", STOPPED);
    SAY(6100, 'a', STORE_READY);
    struct msg m;
    rdzv_slice(s.r, 0, &m);
    is_num(m.u.world.waited_ms, 1000, "a round waited for what passes by itself, and says so");
    one_round(8000, 'b');
    rdzv_slice(s.r, 0, &m);
    is_num(m.u.world.waited_ms, 0, "... the next one has not");
    story_end(&s);
}

static void one_round(unsigned ms, char first)
{
    FAIL(ms, first, 1);
    VALUE(ms + 1, first);
    ALL(ms + 2, "ab", STOPPED);
    SAY(ms + 3, 'a', STORE_READY);
}

static void test_two_rounds(void)
{
    pair(&s, 2, 2);
    one_round(5000, 'a');
    one_round(6000, 'b');
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n"
             "6.000 b WORKER_FAILED -> a: stop 2; b: stop 2\n"
             "6.002 b STOPPED -> a: end 1; b: end 1\n",
             "the same exception on one node, then on another");
    pair(&s, 2, 2);
    one_round(5000, 'a');
    one_round(6000, 'a');
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n"
             "6.000 a WORKER_FAILED -> a: stop 2; b: stop 2\n"
             "6.002 b STOPPED -> a: open 3\n"
             "6.003 a STORE_READY -> a: world 3, 0 of 2, restart 2; b: world 3, 1 of 2, restart 2\n",
             "twice on the same node: perhaps its data");
}

static void test_free_rounds(void)
{
    pair(&s, 1, 2);
    FAIL(5000, 'a', 1);
    IMPORT(5001, 'a');
    SAY(5002, 'a', STOPPED);
    SAY(5003, 'b', LEAVING);
    SAY(5004, 'b', STOPPED);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.003 b LEAVING -> b: goodbye\n"
             "5.004 b STOPPED -> a: open 2\n",
             "a round that a leaving node ended costs nothing, whatever its workers say");
}

static void test_policies(void)
{
    pair(&s, 2, 2);
    s.r->conf.set.restart_policy = RESTART_NEVER;
    FAIL(5000, 'a', 9);
    ALL(5002, "ab", STOPPED);
    CAUSE;
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: end 9; b: end 9\n"
             "  # no restart: --restart-policy=never; rank 1 on a failed: exit code\n",
             "never");
    pair(&s, 2, 2);
    s.r->conf.set.restart_policy = RESTART_ALWAYS;
    s.r->budget.max_fruitless = 0;
    FAIL(5000, 'a', 1);
    IMPORT(5001, 'a');
    BROKEN(5001, 'b');
    ALL(5002, "ab", STOPPED);
    ASIDE;
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n"
             "  # nobody\n",
             "always: within the budget, fruitless or not, and nobody is set aside");
}

static void test_steps(void)
{
    pair(&s, 2, 2);
    s.r->budget.max_fruitless = 0;
    FAIL(5000, 'a', 1);
    SAYS(5001, 'b', .steps_known = true, .steps = 1);
    ALL(5002, "ab", STOPPED);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n",
             "one new step is not fruitless");
}

static void test_aside(void)
{
    trio(&s); /* 1 to 4 nodes, three are here */
    FAIL(5000, 'b', 1);
    BROKEN(5001, 'b');
    ALL(5002, "abc", STOPPED);
    SAY(5003, 'a', STORE_READY);
    ASIDE;
    J(6000, 'd');
    U(7100);
    ALL(7110, "ac", STOPPED);
    SAY(7120, 'a', STORE_READY);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.002 c STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: park; c: world 2, 1 of 2, restart 1\n"
             "  # b until the job ends (" ECC ")\n"
             "6.000 d joins -> d: park\n"
             "7.000 time -> a: stop 2; c: stop 2\n"
             "7.110 c STOPPED -> a: open 3\n"
             "7.120 a STORE_READY -> a: world 3, 0 of 3, restart 1; c: world 3, 1 of 3, restart 1; d: world 3, 2 of 3, "
             "restart 1\n",
             "a hardware suspect is left out, also when the world grows");
}

static void test_below_min(void)
{
    quiet_begin(&s, 2, 3, 3);
    FAIL(5000, 'c', 1);
    BROKEN(5001, 'c');
    ALL(5002, "abc", STOPPED);
    SAY(5003, 'a', STORE_READY);
    ASIDE;
    story_closed(&s, 6000, 'b');
    U(6200);
    SAY(6210, 'a', STOPPED);
    SAY(6220, 'a', STORE_READY);
    story_is("5.000 c WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.002 c STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1; c: park\n"
             "  # c until the job ends (" ECC ")\n"
             "6.100 time -> a: stop 2\n"
             "6.210 a STOPPED -> a: open 3\n"
             "6.220 a STORE_READY -> a: world 3, 0 of 2, restart 1; c: world 3, 1 of 2, restart 1\n",
             "set aside, and taken all the same when there would be too few");
    quiet_begin(&s, 3, 3, 3);
    FAIL(5000, 'c', 1);
    BROKEN(5001, 'c');
    BROKEN(5001, 'a');
    ALL(5002, "abc", STOPPED);
    SAY(5003, 'a', STORE_READY);
    ASIDE;
    story_is("5.000 c WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.002 c STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 3, restart 1; b: world 2, 1 of 3, restart 1; c: world 2, 2 of 3, "
             "restart 1\n"
             "  # nobody\n",
             "where all are needed, suspects stay, and keep their ranks");
}

/* Whoever had to be taken all the same, and fails so again, is still suspect when others come. */
static void test_aside_stays(void)
{
    quiet_begin(&s, 2, 3, 3);
    FAIL(5000, 'c', 1);
    BROKEN(5001, 'c');
    ALL(5002, "abc", STOPPED);
    SAY(5003, 'a', STORE_READY);
    story_closed(&s, 6000, 'b');
    U(6200);
    SAY(6210, 'a', STOPPED);
    SAY(6220, 'a', STORE_READY);
    FAIL(7000, 'c', 1);
    BROKEN(7001, 'c');
    ALL(7002, "ac", STOPPED);
    SAY(7003, 'a', STORE_READY);
    s.text[s.len = 0] = 0;
    J(8000, 'd');
    U(9100);
    ALL(9110, "ac", STOPPED);
    SAY(9120, 'a', STORE_READY);
    ASIDE;
    story_is("8.000 d joins -> d: park\n"
             "9.000 time -> a: stop 4; c: stop 4\n"
             "9.110 c STOPPED -> a: open 5\n"
             "9.120 a STORE_READY -> a: world 5, 0 of 2, restart 2; c: park; d: world 5, 1 of 2, restart 2\n"
             "  # c until the job ends (" ECC ")\n",
             "set aside, taken for want of others, and failed again: left out as soon as others are enough");
}

static void test_quarantine(void)
{
    quiet_begin(&s, 1, 3, 2);
    s.r->conf.set.quarantine_ms = 10000;
    FAIL(5000, 'b', 1);
    BROKEN(5001, 'b');
    ALL(5002, "ab", STOPPED);
    SAY(5003, 'a', STORE_READY);
    story_closed(&s, 6000, 'b');
    U(6500);
    J(7000, 'b');
    U(9000);
    ASIDE;
    U(15002);
    ASIDE;
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 1, restart 1; b: park\n"
             "  # b for 7 s more (" ECC ")\n"
             "15.002 time -> a: stop 2\n"
             "  # nobody\n",
             "another agent on that host is left out too, until the quarantine is over");
}

static void test_journal(void)
{
    trio(&s);
    s.r->conf.set.quarantine_ms = s.conf.set.quarantine_ms = 10000;
    FAIL(5000, 'b', 1);
    BROKEN(5001, 'b');
    ALL(5002, "abc", STOPPED);
    SAY(5003, 'a', STORE_READY);
    CRASH(6000, true);
    ASIDE;
    R(6100, 'b', IDLE);
    R(6200, 'a', RUNNING);
    R(6300, 'c', RUNNING);
    U(9000);
    ASIDE;
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.002 c STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: park; c: world 2, 1 of 2, restart 1\n"
             "  # b for 10 s more (since before the coordinator was started again)\n"
             "6.200 a returns -> a: hold\n"
             "6.300 c returns -> c: world 2, 1 of 2\n"
             "  # b for 7 s more (since before the coordinator was started again)\n",
             "a coordinator that was started again knows it from its journal");
}

/* What a node has told a coordinator that is gone it tells the next one, while that listens; and once is enough. */
static void test_rebuilt(void)
{
    pair(&s, 2, 2);
    CRASH(5000, true);
    RF(5100, 'a', STOPPING);
    FAIL(5101, 'a', 1);
    IMPORT(5102, 'a');
    SAY(5103, 'a', STOPPED);
    RF(5104, 'a', STOPPING);
    IMPORT(5105, 'a');
    SAY(5106, 'a', STOPPED);
    is_num(s.r->digest.witnesses, 1, "the same node again is no other witness");
    R(5110, 'b', RUNNING);
    SAY(5120, 'b', STOPPED);
    CAUSE;
    story_is("5.100 a returns -> a: hold\n"
             "5.104 a returns -> close; a: hold\n"
             "5.110 b returns -> a: hold; b: stop 1\n"
             "5.120 b STOPPED -> a: end 1; b: end 1\n"
             "  # no restart: ImportError at t.py:3 after 0.9 s: a fault of the program or its command line, which "
             "would come again (--restart-policy=always restarts all the same); rank 1 on a failed: exit code\n",
             "a coordinator that is started again judges like the one before");
}

int main(void)
{
    test_at_once();
    test_rebuilt();
    test_waits();
    test_two_rounds();
    test_free_rounds();
    test_policies();
    test_steps();
    test_aside();
    test_below_min();
    test_aside_stays();
    test_quarantine();
    test_journal();
    return done();
}
