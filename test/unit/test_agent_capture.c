/* Stories of the node core: what live workers hold is captured before they are signalled (sim/stage.h). */
#include "sim/stage.h"

static struct stage *up(unsigned max_restarts)
{
    struct stage *s = stage_up(max_restarts);
    s->a.conf.captures = s->a.conf.captures_stay = true;
    return s;
}

static void test_failure(void)
{
    struct stage *s = up(3);
    at(s, 1000, EXITED(0, 1));
    at(s, 1500, CAPTURED);
    at(s, 1600, KILLED(1, SIGTERM));
    at(s, 1600, LEFT(0));
    at(s, 1601, COLLECTED);
    at(s, 1602, CAPTURED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, capture, note 0 | stopping\n"
             "1.500 captured -> all TERM | stopping\n"
             "1.600 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.600 left 0 -> collect | finishing\n"
             "1.601 collected -> prepare | starting\n"
             "1.602 captured | starting\n",
             "the others are told when it is over");

    s = up(0);
    at(s, 1000, KILLED(0, SIGKILL));
    at(s, 1001, KILLED(1, SIGKILL));
    at(s, 1001, LEFT(0));
    at(s, 1002, CAPTURED);
    at(s, 1003, COLLECTED);
    stage_is(s,
             "1.000 exited 0 by KILL -> sweep 0 TERM, capture, note 0 | stopping\n"
             "1.001 exited 1 by KILL -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.001 left 0 -> collect | finishing\n"
             "1.002 captured | finishing\n"
             "1.003 collected -> end: worker 0 failed | ended\n",
             "all are dead: nothing is held up");
}

static void test_signals(void)
{
    struct stage *s = up(3);
    at(s, 1000, SIGNAL(SIGTERM));
    at(s, 1500, SIGNAL(SIGTERM));
    at(s, 1600, CAPTURED);
    stage_is(s,
             "1.000 signal TERM -> capture | stopping\n"
             "1.500 signal TERM -> all TERM | stopping\n"
             "1.600 captured | stopping\n",
             "a second signal is not waited with");

    s = up(3);
    at(s, 1000, EXITED(0, 1));
    at(s, 1500, SIGNAL(SIGTERM));
    at(s, 1600, CAPTURED);
    until(s, 31600);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, capture, note 0 | stopping\n"
             "1.500 signal TERM | stopping\n"
             "1.600 captured -> all TERM | stopping\n"
             "2.000 time -> sweep 0 KILL | stopping\n"
             "31.600 time -> all KILL | stopping\n",
             "the first one is, and the grace begins behind it");

    s = up(3);
    at(s, 1000, SIGNAL(SIGINT));
    at(s, 1100, SIGNAL(SIGINT));
    stage_is(s,
             "1.000 signal INT -> capture | stopping\n"
             "1.100 signal INT -> all KILL | stopping\n",
             "INT twice: at once");
}

static void test_hung(void)
{
    struct stage *s = up(3);
    at(s, 1000, HUNG(1));
    at(s, 1001, EXITED(0, 1));
    at(s, 1100, CAPTURED);
    stage_is(s,
             "1.000 hung 1 -> capture, note 1 | stopping\n"
             "1.001 exited 0 code 1 -> sweep 0 TERM | stopping\n"
             "1.100 captured -> all ABRT | stopping\n",
             "hung workers, of which one ends meanwhile: their stacks are asked for all the same");
}

static void test_failing(void)
{
    struct stage *s = up(3);
    at(s, 1000, FAILING(0));
    at(s, 1001, FAILING(1));
    at(s, 1100, CAPTURED);
    at(s, 1101, EXITED(0, 1));
    stage_is(s,
             "1.000 failing 0 -> capture | running\n"
             "1.001 failing 1 | running\n"
             "1.100 captured | running\n"
             "1.101 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n",
             "a script that fails is captured before it ends, and nothing twice");

    s = up(3);
    at(s, 1000, FAILING(0));
    at(s, 1001, EXITED(1, 1));
    at(s, 1100, CAPTURED);
    stage_is(s,
             "1.000 failing 0 -> capture | running\n"
             "1.001 exited 1 code 1 -> sweep 1 TERM, note 1 | stopping\n"
             "1.100 captured -> all TERM | stopping\n",
             "another one ends meanwhile");
}

static void test_no_capture(void)
{
    struct stage *s = stage_new(2, 3);
    s->a.conf.captures = true;
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 3, EXITED(0, 1));
    at(s, 4, SPAWNED(1));
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.002 spawned 0 -> spawn 1 | running\n"
             "0.003 exited 0 code 1 -> sweep 0 TERM, note 0 | stopping\n"
             "0.004 spawned 1 -> all TERM | stopping\n",
             "before all are started there is nothing to capture");

    s = up(1);
    s->a.conf.captures_stay = false;
    at(s, 1000, SIGNAL(SIGTERM));
    stage_is(s, "1.000 signal TERM -> all TERM | stopping\n", "nor for a job that ends with all that is in memory");

    s = up(1);
    s->a.conf.captures_stay = false;
    at(s, 1000, EXITED(0, 1));
    at(s, 1001, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, capture, note 0 | stopping\n"
             "1.001 signal TERM -> all TERM | stopping\n",
             "nor on for one that would have gone on");

    s = up(0);
    s->a.conf.captures_stay = false;
    at(s, 1000, EXITED(0, 1));
    stage_is(s, "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n", "nor without a restart");

    s = up(3);
    s->a.conf.grace = 0;
    at(s, 1000, EXITED(0, 1));
    stage_is(s, "1.000 exited 0 code 1 -> sweep 0 TERM, all KILL, note 0 | stopping\n", "nor is there without a grace");
}

int main(void)
{
    test_failure();
    test_signals();
    test_hung();
    test_failing();
    test_no_capture();
    return done();
}
