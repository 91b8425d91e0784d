/* Stories of the coordinator core, what ends a round and what it costs: failures, losses, departures: expected traces
 * with virtual times. */
#include "sim/words.h"

static void test_budget(void)
{
    pair(&s, 2, 2);
    FAIL(5000, 'a', 3);
    FAIL(5001, 'b', 1);
    ALL(5002, "ab", STOPPED);
    SAY(5003, 'a', STORE_READY);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b STOPPED -> a: open 2\n"
             "5.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n",
             "the restart count is global and charged when the round is closed");
}

static void test_budget_used_up(void)
{
    pair(&s, 2, 2);
    s.r->budget.used = 3;
    FAIL(5000, 'b', 7);
    FAIL(5001, 'a', 1);
    ALL(5002, "ab", STOPPED);
    CAUSE;
    ALL(5003, "ab", END_ACK);
    story_is(
        "5.000 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
        "5.002 b STOPPED -> a: end 7; b: end 7\n"
        "  # the restart budget is used up (3 of 3): rank 3 on b failed: exit code; rank 3 on b failed: exit code\n"
        "5.003 b END_ACK -> over\n",
        "no restart left, the root cause is the earliest failure");
}

/* The news of the first failure comes last. */
static void test_cause_by_time(void)
{
    pair(&s, 2, 2);
    s.r->budget.used = 3;
    FAIL(5000, 'a', 1);
    FAILED_AT(5010, 'b', 7, 4990);
    ALL(5020, "ab", STOPPED);
    CAUSE;
    story_is(
        "5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
        "5.020 b STOPPED -> a: end 7; b: end 7\n"
        "  # the restart budget is used up (3 of 3): rank 2 on b failed: exit code; rank 2 on b failed: exit code\n",
        "the cause is what failed first on the coordinator's clock, not what was heard first");
}

/* Who replaces a lost node neither begins at 0 nor gives the job new restarts. */
static void test_budget_of_replacement(void)
{
    pair(&s, 2, 2);
    s.r->budget.max = 1;
    FAIL(5000, 'b', 1);
    ALL(5001, "ab", STOPPED);
    SAY(5002, 'a', STORE_READY);
    story_closed(&s, 6000, 'b');
    SAY(6200, 'a', STOPPED);
    J(6300, 'c');
    SAY(6301, 'a', STORE_READY);
    FAIL(7000, 'c', 9);
    ALL(7001, "ac", STOPPED);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 b STOPPED -> a: open 2\n"
             "5.002 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n"
             "6.100 time -> a: stop 2\n"
             "6.200 a STOPPED -> a: park\n"
             "6.300 c joins -> c: park; a: open 3\n"
             "6.301 a STORE_READY -> a: world 3, 0 of 2, restart 1; c: world 3, 1 of 2, restart 1\n"
             "7.000 c WORKER_FAILED -> a: stop 3; c: stop 3\n"
             "7.001 c STOPPED -> a: end 9; c: end 9\n",
             "a replacement has the job's restart count, and its limit");
}

static void test_no_budget_0(void)
{
    zero(&s);
    story_closed(&s, 5000, 'a');
    FAIL(5020, 'b', 1);
    R(5040, 'a', RUNNING);
    SAY(5040, 'a', LEAVING);
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.020 b WORKER_FAILED -> b: stop 1\n"
             "5.040 a returns -> a: stop 1\n"
             "5.040 a LEAVING -> a: goodbye\n"
             "5.500 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order EOF, FAIL, LEAVE: the job goes on");
}

static void test_no_budget_1(void)
{
    zero(&s);
    FAIL(5000, 'b', 1);
    story_closed(&s, 5020, 'a');
    R(5040, 'a', RUNNING);
    SAY(5040, 'a', LEAVING);
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.040 a returns -> a: stop 1\n"
             "5.040 a LEAVING -> a: goodbye\n"
             "5.500 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order FAIL, EOF, LEAVE: the job goes on");
}

static void test_no_budget_2(void)
{
    zero(&s);
    FAIL(5000, 'b', 1);
    SAY(5020, 'a', LEAVING);
    story_closed(&s, 5040, 'a');
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.020 a LEAVING -> a: goodbye\n"
             "5.140 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order FAIL, LEAVE, EOF: the job goes on");
}

static void test_no_budget_3(void)
{
    zero(&s);
    SAY(5000, 'a', LEAVING);
    FAIL(5020, 'b', 1);
    story_closed(&s, 5040, 'a');
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.000 a LEAVING -> a: goodbye; a: stop 1; b: stop 1\n"
             "5.140 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order LEAVE, FAIL, EOF: the job goes on");
}

static void test_no_budget_4(void)
{
    zero(&s);
    SAY(5000, 'a', LEAVING);
    story_closed(&s, 5020, 'a');
    FAIL(5040, 'b', 1);
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.000 a LEAVING -> a: goodbye; a: stop 1; b: stop 1\n"
             "5.120 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order LEAVE, EOF, FAIL: the job goes on");
}

static void test_no_budget_5(void)
{
    zero(&s);
    story_closed(&s, 5000, 'a');
    R(5020, 'a', RUNNING);
    SAY(5020, 'a', LEAVING);
    FAIL(5040, 'b', 1);
    SAY(5100, 'b', STOPPED);
    U(5300);
    if (s.node[0].conn)
        story_closed(&s, 5400, 'a');
    J(7000, 'c');
    U(7100);
    SAY(7101, 'b', STORE_READY);
    story_is("5.020 a returns -> a: world 1, 0 of 2\n"
             "5.020 a LEAVING -> a: goodbye; a: stop 1; b: stop 1\n"
             "5.500 time -> b: open 2\n"
             "7.000 c joins -> c: park\n"
             "7.101 b STORE_READY -> b: world 2, 0 of 1\n",
             "--max-restarts=0, order EOF, LEAVE, FAIL: the job goes on");
}

static void test_leave(void)
{
    trio(&s);
    SAY(5000, 'b', LEAVING);
    ALL(5010, "ac", STOPPED);
    SAY(5020, 'b', STOPPED);
    SAY(5021, 'a', STORE_READY);
    story_closed(&s, 5030, 'b');
    U(9000);
    story_is("5.000 b LEAVING -> b: goodbye; a: stop 1; b: stop 1; c: stop 1\n"
             "5.020 b STOPPED -> a: open 2\n"
             "5.021 a STORE_READY -> a: world 2, 0 of 2; b: park; c: world 2, 1 of 2\n",
             "a node that leaves is answered at once, the others go on");
}

static void test_exit_barrier(void)
{
    trio(&s);
    ALL(5000, "ac", SUCCEEDED);
    story_closed(&s, 5010, 'b');
    U(5200);
    story_is("5.110 time -> a: stop 1; c: stop 1\n", "nobody waits for a node that is dead");
}

static void test_lost_after_success(void)
{
    trio(&s);
    ALL(5000, "bc", SUCCEEDED);
    story_closed(&s, 5010, 'b');
    U(6000);
    SAY(7000, 'a', SUCCEEDED);
    ALL(7001, "ac", END_ACK);
    story_is("7.000 a SUCCEEDED -> a: end 0; c: end 0\n"
             "7.001 c END_ACK -> over\n",
             "lost after it has reported success: that is success");
}

static void test_end_repeated(void)
{
    pair(&s, 2, 2);
    ALL(5000, "ab", SUCCEEDED);
    SAY(5001, 'a', END_ACK);
    story_closed(&s, 5002, 'b');
    R(5050, 'b', SUCCEEDED);
    U(11000);
    story_is("5.000 b SUCCEEDED -> a: end 0; b: end 0\n"
             "5.050 b returns -> b: end 0\n"
             "10.000 time -> over\n",
             "END is repeated to who comes back, for 5 s");
}

static void test_hole(void)
{
    story_init(&s, 2, 3);
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    J(2, 'c');
    story_closed(&s, 3, 'c');
    SAY(50, 'a', STORE_READY);
    U(300);
    ALL(301, "ab", STOPPED);
    SAY(302, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park; a: open 1\n"
             "0.050 a STORE_READY -> a: world 1, 0 of 3; b: world 1, 1 of 3\n"
             "0.103 time -> a: stop 1; b: stop 1\n"
             "0.301 b STOPPED -> a: open 2\n"
             "0.302 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2\n",
             "a joiner that dies between its seat and WORLD leaves no hole");
}

static void test_lost_while_opening(void)
{
    story_init(&s, 2, 3);
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    J(2, 'c');
    story_closed(&s, 3, 'c');
    U(200);
    SAY(201, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park; a: open 1\n"
             "0.103 time -> a: open 2\n"
             "0.201 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2\n",
             "a node lost while the store is opened: chosen again at once");
}

static void test_no_store(void)
{
    story_init(&s, 1, 2);
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    U(6000);
    SAY(6001, 'b', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park; a: open 1\n"
             "5.001 time -> a: park; b: open 2\n"
             "6.001 b STORE_READY -> b: world 2, 0 of 1\n",
             "a host whose store does not come within 5 s is taken last");
}

/* The only node cannot open a store: tried again at once, then after pauses that double, up to five seconds. */
static void test_back_off(void)
{
    story_init(&s, 1, 1);
    story_begin(&s);
    J(0, 'a');
    NO_STORE(10, 'a');
    NO_STORE(20, 'a');
    WAIT;
    NO_STORE(130, 'a');
    NO_STORE(340, 'a');
    NO_STORE(750, 'a');
    NO_STORE(1560, 'a');
    NO_STORE(3170, 'a');
    NO_STORE(6380, 'a');
    WAIT;
    NO_STORE(11390, 'a');
    SAY(16400, 'a', STORE_READY);
    story_is(
        "0.000 a joins -> a: open 1\n"
        "0.010 a NO_STORE -> a: open 2\n"
        "0.020 a NO_STORE -> a: park\n"
        "  # 1 of 1 nodes are here: no round could be opened (no port is free); again in 0.1 s; 1 are taken only if "
        "they must\n"
        "0.120 time -> a: open 3\n"
        "0.130 a NO_STORE -> a: park\n"
        "0.330 time -> a: open 4\n"
        "0.340 a NO_STORE -> a: park\n"
        "0.740 time -> a: open 5\n"
        "0.750 a NO_STORE -> a: park\n"
        "1.550 time -> a: open 6\n"
        "1.560 a NO_STORE -> a: park\n"
        "3.160 time -> a: open 7\n"
        "3.170 a NO_STORE -> a: park\n"
        "6.370 time -> a: open 8\n"
        "6.380 a NO_STORE -> a: park\n"
        "  # 1 of 1 nodes are here: no round could be opened (no port is free); again in 5.0 s; 1 are taken only if "
        "they must\n"
        "11.380 time -> a: open 9\n"
        "11.390 a NO_STORE -> a: park\n"
        "16.390 time -> a: open 10\n"
        "16.400 a STORE_READY -> a: world 10, 0 of 1\n",
        "rounds that cannot be opened are tried again after pauses that double, up to five seconds");
}

/* Once a round has run, the next one is tried at once again. */
static void test_back_off_anew(void)
{
    story_init(&s, 1, 1);
    s.quiet = true;
    story_begin(&s);
    J(0, 'a');
    NO_STORE(10, 'a');
    NO_STORE(20, 'a');
    NO_STORE(130, 'a');
    SAY(340, 'a', STORE_READY);
    s.quiet = false;
    FAIL(5000, 'a', 1);
    SAY(5001, 'a', STOPPED);
    NO_STORE(5010, 'a');
    SAY(5020, 'a', STORE_READY);
    story_is("5.000 a WORKER_FAILED -> a: stop 4\n"
             "5.001 a STOPPED -> a: open 5\n"
             "5.010 a NO_STORE -> a: open 6\n"
             "5.020 a STORE_READY -> a: world 6, 0 of 1, restart 1\n",
             "after a round that ran the pauses begin anew");
}

/* Another node can open it: it is asked at once, whoever could not is the last resort. */
static void test_back_off_other(void)
{
    story_init(&s, 1, 2);
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    NO_STORE(10, 'a');
    SAY(20, 'b', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park; a: open 1\n"
             "0.010 a NO_STORE -> a: park; b: open 2\n"
             "0.020 b STORE_READY -> b: world 2, 0 of 1\n",
             "another node is asked at once, who could not is the last resort");
}

static void test_no_knock(void)
{
    trio(&s);
    SAY(5000, 'c', LEASE_FAILED);
    ALL(5010, "abc", STOPPED);
    SAY(5020, 'a', STORE_READY);
    story_is("5.000 c LEASE_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.010 c STOPPED -> a: open 2\n"
             "5.020 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2; c: park\n",
             "a node that cannot reach the store is left out, if there are enough others");
    pair(&s, 2, 2);
    CRASH(5000, true);
    R(5100, 'b', STARTING);
    SAY(5200, 'b', LEASE_FAILED);
    R(5300, 'a', RUNNING);
    story_is("5.100 b returns -> b: hold\n"
             "5.300 a returns -> a: stop 1; b: stop 1\n",
             "nor do the others wait for one that says so while the coordinator is being started again");
}

static void test_stuck(void)
{
    trio(&s);
    FAIL(5000, 'b', 1);
    ALL(5001, "ac", STOPPED);
    STUCK(35000, 'b');
    SAY(35001, 'a', STORE_READY);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "35.000 b STOPPED -> a: open 2\n"
             "35.001 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: park; c: world 2, 1 of 2, restart 1\n",
             "a node with a worker that SIGKILL does not end is a spare of last resort");
}

static void test_replace_wait(void)
{
    trio(&s);
    s.r->conf.set.replace_wait_ms = 10000;
    story_closed(&s, 5000, 'c');
    ALL(5200, "ab", STOPPED);
    U(9000);
    WAIT;
    J(9500, 'd');
    story_is("5.100 time -> a: stop 1; b: stop 1\n"
             "5.200 b STOPPED -> a: park; b: park\n"
             "  # 2 of 4 nodes are here: a lost node may be replaced for 6.1 s more\n"
             "9.500 d joins -> d: park; a: open 2\n",
             "--replace-wait holds the round for a replacement");
}

int main(void)
{
    test_budget();
    test_budget_used_up();
    test_cause_by_time();
    test_budget_of_replacement();
    test_no_budget_0();
    test_no_budget_1();
    test_no_budget_2();
    test_no_budget_3();
    test_no_budget_4();
    test_no_budget_5();
    test_leave();
    test_exit_barrier();
    test_lost_after_success();
    test_end_repeated();
    test_hole();
    test_lost_while_opening();
    test_no_store();
    test_back_off();
    test_back_off_anew();
    test_back_off_other();
    test_no_knock();
    test_stuck();
    test_replace_wait();
    return done();
}
