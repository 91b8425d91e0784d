/* Stories of the node core: starting, failing, restarting, and who is to blame (sim/stage.h). */
#include "sim/stage.h"

static void test_success(void)
{
    struct stage *s = stage_new(2, 3);
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 3, SPAWNED(1));
    at(s, 1000, EXITED(1, 0));
    at(s, 1500, EXITED(0, 0));
    at(s, 1500, LEFT(0));
    at(s, 1501, COLLECTED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 spawned 0 -> spawn 1 | running\n"
             "0.003 spawned 1 | running\n"
             "1.000 exited 1 code 0 -> sweep 1 TERM | running\n"
             "1.500 exited 0 code 0 -> sweep 0 TERM, sweep TERM | running\n"
             "1.500 left 0 -> collect | finishing\n"
             "1.501 collected -> end: success | ended\n",
             "all succeed");
}

static void test_restart(void)
{
    struct stage *s = stage_up(1);
    at(s, 1000, EXITED(1, 3));
    at(s, 1010, KILLED(0, SIGTERM));
    at(s, 1010, LEFT(0));
    at(s, 1011, COLLECTED);
    at(s, 1012, PREPARED);
    at(s, 1013, SPAWNED(0));
    at(s, 1013, SPAWNED(1));
    at(s, 2000, KILLED(0, SIGSEGV));
    at(s, 2001, KILLED(1, SIGTERM));
    at(s, 2001, LEFT(0));
    at(s, 2002, COLLECTED);
    stage_is(s,
             "1.000 exited 1 code 3 -> sweep 1 TERM, all TERM, note 1 | stopping\n"
             "1.010 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "1.010 left 0 -> collect | finishing\n"
             "1.011 collected -> prepare | starting\n"
             "1.012 prepared -> spawn 0 | running\n"
             "1.013 spawned 0 -> spawn 1 | running\n"
             "1.013 spawned 1 | running\n"
             "2.000 exited 0 by SEGV -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "2.001 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "2.001 left 0 -> collect | finishing\n"
             "2.002 collected -> end: worker 0 failed | ended\n",
             "failure, restart, failure, budget used up");
}

static void test_success_then_failure(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, EXITED(0, 0));
    at(s, 1500, EXITED(1, 9));
    at(s, 1500, LEFT(0));
    at(s, 1501, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 0 -> sweep 0 TERM | running\n"
             "1.500 exited 1 code 9 -> sweep 1 TERM, sweep TERM, note 1 | stopping\n"
             "1.500 left 0 -> collect | finishing\n"
             "1.501 collected -> end: worker 1 failed | ended\n",
             "success of one does not save the other");
}

static void test_unknown(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, EXITED(0, 0));
    at(s, 2000, UNKNOWN(1));
    at(s, 2000, LEFT(0));
    at(s, 2001, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 0 -> sweep 0 TERM | running\n"
             "2.000 exited 1 unknown -> sweep 1 TERM, sweep TERM, note 1 | stopping\n"
             "2.000 left 0 -> collect | finishing\n"
             "2.001 collected -> end: worker 1 failed | ended\n",
             "a status that could not be collected is no success");
}

static void test_fork_fails(void)
{
    struct stage *s = stage_new(3, 3);
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 3, NO_FORK(1));
    at(s, 10, KILLED(0, SIGTERM));
    at(s, 10, LEFT(0));
    at(s, 11, COLLECTED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 spawned 0 -> spawn 1 | running\n"
             "0.003 fork 1 failed -> all TERM | stopping\n"
             "0.010 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "0.010 left 0 -> collect | finishing\n"
             "0.011 collected -> end: cannot start 1 | ended\n",
             "fork fails half-way: those that are up are stopped, no restart");

    s = stage_new(1, 3);
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, NO_FORK(0));
    at(s, 2, LEFT(0));
    at(s, 3, COLLECTED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 fork 0 failed -> sweep TERM | stopping\n"
             "0.002 left 0 -> collect | finishing\n"
             "0.003 collected -> end: cannot start 0 | ended\n",
             "the first fork fails");

    s = stage_new(1, 3);
    at(s, 0, START);
    at(s, 1, NOT_PREPARED);
    stage_is(s, "0.000 start -> prepare | starting\n0.001 cannot prepare -> end: cannot prepare | ended\n",
             "the attempt cannot be prepared");
}

static void test_exec_fails(void)
{
    struct stage *s = stage_up(3);
    at(s, 3, NO_EXEC(1));
    at(s, 4, EXITED(1, 127));
    at(s, 5, KILLED(0, SIGTERM));
    at(s, 5, LEFT(0));
    at(s, 6, COLLECTED);
    stage_is(s,
             "0.003 exec 1 failed -> all TERM | stopping\n"
             "0.004 exited 1 code 127 -> sweep 1 TERM | stopping\n"
             "0.005 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "0.005 left 0 -> collect | finishing\n"
             "0.006 collected -> end: cannot start 1 | ended\n",
             "exec fails: a worker that never was has not failed");

    s = stage_up(3);
    at(s, 3, EXITED(1, 127));
    at(s, 3, NO_EXEC(1));
    at(s, 5, KILLED(0, SIGTERM));
    at(s, 5, LEFT(0));
    at(s, 6, COLLECTED);
    stage_is(s,
             "0.003 exited 1 code 127 -> sweep 1 TERM, all TERM, note 1 | stopping\n"
             "0.003 exec 1 failed | stopping\n"
             "0.005 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "0.005 left 0 -> collect | finishing\n"
             "0.006 collected -> end: cannot start 1 | ended\n",
             "the exit comes before the report of exec: the same end");
}

static void test_stop_while_starting(void)
{
    struct stage *s = stage_new(3, 3);
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 3, SIGNAL(SIGTERM));
    at(s, 4, SPAWNED(1));
    at(s, 5, KILLED(0, SIGTERM));
    at(s, 5, KILLED(1, SIGTERM));
    at(s, 5, LEFT(0));
    at(s, 6, COLLECTED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 spawned 0 -> spawn 1 | running\n"
             "0.003 signal TERM | stopping\n"
             "0.004 spawned 1 -> all TERM | stopping\n"
             "0.005 exited 0 by TERM -> sweep 0 TERM | stopping\n"
             "0.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "0.005 left 0 -> collect | finishing\n"
             "0.006 collected -> end: left by TERM | ended\n",
             "TERM while a fork is under way: the new child is signalled with the others, the third never starts");

    s = stage_new(2, 3);
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SIGNAL(SIGINT));
    at(s, 2, SIGNAL(SIGINT));
    at(s, 3, NO_FORK(0));
    at(s, 3, LEFT(0));
    at(s, 4, COLLECTED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 signal INT | stopping\n"
             "0.002 signal INT | stopping\n"
             "0.003 fork 0 failed -> sweep KILL | stopping\n"
             "0.003 left 0 -> collect | finishing\n"
             "0.004 collected -> end: left by INT | ended\n",
             "INT twice while the first fork is under way, which then fails");
}

static void test_hindsight(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, KILLED(0, SIGTERM));
    at(s, 1005, KILLED(1, SIGTERM));
    at(s, 1005, LEFT(0));
    at(s, 1006, COLLECTED);
    at(s, 1015, SIGNAL(SIGTERM));
    stage_is(
        s,
        "1.000 exited 0 by TERM -> sweep 0 TERM, all TERM | stopping\n"
        "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
        "1.005 left 0 -> collect | finishing\n"
        "1.006 collected | finishing\n"
        "1.015 signal TERM -> end: left by TERM | ended\n",
        "a worker's TERM, then ours in the same instant: we were all told to leave, and nothing is said of a failure");

    s = stage_up(3);
    at(s, 1000, SIGNAL(SIGTERM));
    at(s, 1001, KILLED(0, SIGTERM));
    at(s, 1005, KILLED(1, SIGTERM));
    at(s, 1005, LEFT(0));
    at(s, 1006, COLLECTED);
    stage_is(s,
             "1.000 signal TERM -> all TERM | stopping\n"
             "1.001 exited 0 by TERM -> sweep 0 TERM | stopping\n"
             "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.005 left 0 -> collect | finishing\n"
             "1.006 collected -> end: left by TERM | ended\n",
             "our TERM first, then the workers': the same end");

    s = stage_up(1);
    at(s, 1000, KILLED(0, SIGTERM));
    at(s, 1005, KILLED(1, SIGTERM));
    at(s, 1005, LEFT(0));
    at(s, 1006, COLLECTED);
    until(s, 1020);
    at(s, 1021, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 exited 0 by TERM -> sweep 0 TERM, all TERM | stopping\n"
             "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.005 left 0 -> collect | finishing\n"
             "1.006 collected | finishing\n"
             "1.020 time -> note 0, prepare | starting\n"
             "1.021 signal TERM -> end: left by TERM | ended\n",
             "20 ms without a word: it was a failure, and is restarted");

    s = stage_up(0);
    at(s, 1000, KILLED(0, SIGTERM));
    at(s, 1150, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 exited 0 by TERM -> sweep 0 TERM, all TERM | stopping\n"
             "1.150 signal TERM | stopping\n",
             "without a restart nobody waits: it takes part of the farewell for 200 ms");
}

static void test_hindsight_over(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, KILLED(0, SIGTERM));
    until(s, 1250);
    at(s, 1300, SIGNAL(SIGTERM));
    at(s, 1400, KILLED(1, SIGTERM));
    at(s, 1400, LEFT(0));
    at(s, 1401, COLLECTED);
    stage_is(s,
             "1.000 exited 0 by TERM -> sweep 0 TERM, all TERM | stopping\n"
             "1.200 time -> note 0 | stopping\n"
             "1.300 signal TERM | stopping\n"
             "1.400 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.400 left 0 -> collect | finishing\n"
             "1.401 collected -> end: worker 0 failed | ended\n",
             "a farewell after the 200 ms does not explain the failure");

    s = stage_up(1);
    at(s, 1000, KILLED(0, SIGKILL));
    at(s, 1005, KILLED(1, SIGTERM));
    at(s, 1005, LEFT(0));
    at(s, 1006, COLLECTED);
    stage_is(s,
             "1.000 exited 0 by KILL -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.005 left 0 -> collect | finishing\n"
             "1.006 collected -> prepare | starting\n",
             "KILL asks nobody to leave: there is nothing to wait for");
}

static void test_memory(void)
{
    struct el_mem m = EL_MEM_INIT(0);
    m.fail_after = 0;
    struct agent a;
    struct agent_conf conf = {.slots = 4};
    is_num(agent_init(&a, &conf, &m), -1, "refused memory is a result");
    agent_free(&a, &m);
    is_num(m.used_bytes, 0, "and nothing is kept");
}

static void test_interrupt(void)
{
    struct stage *s = stage_new(1, 3);
    s->silent = true;
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    s->silent = false;
    at(s, 1000, KILLED(0, SIGINT));
    at(s, 1000, LEFT(0));
    at(s, 1001, COLLECTED);
    stage_is(s,
             "1.000 exited 0 by INT -> sweep 0 TERM, sweep TERM | stopping\n"
             "1.000 left 0 -> collect | finishing\n"
             "1.001 collected -> end: left by INT | ended\n",
             "Ctrl-C that the only worker got, which had the terminal, ends the job whatever --max-restarts is");
}

static void test_hung(void)
{
    struct stage *s = stage_up(1);
    at(s, 9000, HUNG(1));
    at(s, 9300, KILLED(0, SIGABRT));
    until(s, 14000); /* the other one stands in the kernel and prints nothing */
    at(s, 14001, KILLED(1, SIGKILL));
    at(s, 14001, LEFT(0));
    at(s, 14002, COLLECTED);
    stage_is(s,
             "9.000 hung 1 -> all ABRT, note 1 | stopping\n"
             "9.300 exited 0 by ABRT -> sweep 0 TERM | stopping\n"
             "10.300 time -> sweep 0 KILL | stopping\n"
             "14.000 time -> all KILL | stopping\n"
             "14.001 exited 1 by KILL -> sweep 1 KILL, sweep KILL | stopping\n"
             "14.001 left 0 -> collect | finishing\n"
             "14.002 collected -> prepare | starting\n",
             "all stand still: ABRT, 5 s, KILL, and another attempt");
    s = stage_up(1);
    at(s, 9000, EXITED(0, 3));
    at(s, 9001, HUNG(1));
    stage_is(s, "9.000 exited 0 code 3 -> sweep 0 TERM, all TERM, note 0 | stopping\n9.001 hung 1 | stopping\n",
             "a verdict that comes too late changes nothing");
}

/* Two workers, and a failure's words are looked at: who failed by itself may be slower than its victims. */
static struct stage *stage_judging(unsigned max_restarts)
{
    struct stage *s = stage_up(max_restarts);
    s->a.conf.consequence = EL_SEC(5);
    return s;
}

static void test_slow_cause(void)
{
    struct stage *s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, FOLLOWS(0));
    at(s, 3000, EXITED(1, 1));
    at(s, 3002, ITS_OWN(1));
    at(s, 3003, LEFT(0));
    at(s, 3004, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: follows | running\n"
             "2.000 time -> sweep 0 KILL | running\n"
             "3.000 exited 1 code 1 -> sweep 1 TERM, sweep TERM, look 1 | running\n"
             "3.002 looked 1: its own -> note 1 | stopping\n"
             "3.003 left 0 -> collect | finishing\n"
             "3.004 collected -> end: worker 1 failed | ended\n",
             "the one that tears down slowly is the cause");
}

static void test_own_words(void)
{
    struct stage *s = stage_judging(0);
    at(s, 1000, EXITED(1, 3));
    at(s, 1001, ITS_OWN(1));
    at(s, 1010, KILLED(0, SIGTERM));
    at(s, 1010, LEFT(0));
    at(s, 1011, COLLECTED);
    stage_is(s,
             "1.000 exited 1 code 3 -> sweep 1 TERM, look 1 | running\n"
             "1.001 looked 1: its own -> all TERM, note 1 | stopping\n"
             "1.010 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "1.010 left 0 -> collect | finishing\n"
             "1.011 collected -> end: worker 1 failed | ended\n",
             "whose words are its own waits for nobody");
}

static void test_nobody_else(void)
{
    struct stage *s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, FOLLOWS(0));
    until(s, 6500);
    at(s, 6510, KILLED(1, SIGTERM));
    at(s, 6511, LEFT(0));
    at(s, 6512, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: follows | running\n"
             "2.000 time -> sweep 0 KILL | running\n"
             "6.000 time -> all TERM, note 0 | stopping\n"
             "6.510 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "6.511 left 0 -> collect | finishing\n"
             "6.512 collected -> end: worker 0 failed | ended\n",
             "nobody else fails: the wait has an end");
}

static void test_waits_for_an_end(void)
{
    struct stage *s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, WAITS(0));
    at(s, 1800, EXITED(1, 1));
    at(s, 1802, ITS_OWN(1));
    at(s, 1803, LEFT(0));
    at(s, 1804, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: waits | running\n"
             "1.800 exited 1 code 1 -> sweep 1 TERM, sweep TERM, look 1 | running\n"
             "1.802 looked 1: its own -> note 1 | stopping\n"
             "1.803 left 0 -> collect | finishing\n"
             "1.804 collected -> end: worker 1 failed | ended\n",
             "a bare exit waits for one that had raised before");
    s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, WAITS(0));
    at(s, 1250, NONE_ENDS);
    at(s, 1260, KILLED(1, SIGTERM));
    at(s, 1261, LEFT(0));
    at(s, 1262, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: waits | running\n"
             "1.250 none ends -> all TERM, note 0 | stopping\n"
             "1.260 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.261 left 0 -> collect | finishing\n"
             "1.262 collected -> end: worker 0 failed | ended\n",
             "... not once that one goes on");
    s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, WAITS(0));
    until(s, 6500);
    at(s, 6510, KILLED(1, SIGTERM));
    at(s, 6511, LEFT(0));
    at(s, 6512, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: waits | running\n"
             "2.000 time -> sweep 0 KILL | running\n"
             "6.000 time -> all TERM, note 0 | stopping\n"
             "6.510 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "6.511 left 0 -> collect | finishing\n"
             "6.512 collected -> end: worker 0 failed | ended\n",
             "... nor for ever");
}

static void test_killed_meanwhile(void)
{
    struct stage *s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, FOLLOWS(0));
    at(s, 1500, KILLED(1, SIGSEGV));
    at(s, 1501, ITS_OWN(1));
    at(s, 1502, LEFT(0));
    at(s, 1503, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: follows | running\n"
             "1.500 exited 1 by SEGV -> sweep 1 TERM, sweep TERM, look 1 | running\n"
             "1.501 looked 1: its own -> note 1 | stopping\n"
             "1.502 left 0 -> collect | finishing\n"
             "1.503 collected -> end: worker 1 failed | ended\n",
             "a crash that comes later");
    s = stage_judging(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1002, FOLLOWS(0));
    at(s, 1500, KILLED(1, SIGKILL));
    at(s, 1502, LEFT(0));
    at(s, 1503, COLLECTED);
    until(s, 2000);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, look 0 | running\n"
             "1.002 looked 0: follows | running\n"
             "1.500 exited 1 by KILL -> sweep 1 TERM, sweep TERM, note 1 | stopping\n"
             "1.502 left 0 -> collect | finishing\n"
             "1.503 collected -> end: worker 1 failed | ended\n",
             "who is killed is nobody's consequence");
}

int main(void)
{
    test_success();
    test_restart();
    test_success_then_failure();
    test_hung();
    test_interrupt();
    test_unknown();
    test_slow_cause();
    test_own_words();
    test_nobody_else();
    test_waits_for_an_end();
    test_killed_meanwhile();
    test_fork_fails();
    test_exec_fails();
    test_stop_while_starting();
    test_hindsight();
    test_hindsight_over();
    test_memory();
    return done();
}
