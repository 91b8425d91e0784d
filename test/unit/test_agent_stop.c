/* Stories of the node core: signals, and what it takes until the last process is gone (sim/stage.h). */
#include "sim/stage.h"

static void test_term(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, SIGNAL(SIGTERM));
    at(s, 1100, EXITED(0, 0));
    at(s, 1200, EXITED(1, 0));
    at(s, 1200, LEFT(0));
    at(s, 1201, COLLECTED);
    at(s, 1300, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 signal TERM -> all TERM | stopping\n"
             "1.100 exited 0 code 0 -> sweep 0 TERM | stopping\n"
             "1.200 exited 1 code 0 -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.200 left 0 -> collect | finishing\n"
             "1.201 collected -> end: left by TERM | ended\n"
             "1.300 signal TERM | ended\n",
             "TERM while running: even workers that exit 0 make it no success");

    s = stage_new(1, 3);
    at(s, 0, SIGNAL(SIGTERM));
    at(s, 1, START);
    stage_is(s, "0.000 signal TERM -> end: left by TERM | ended\n0.001 start | ended\n", "TERM before the start");

    s = stage_new(1, 3);
    at(s, 0, START);
    at(s, 1, SIGNAL(SIGTERM));
    at(s, 5000, PREPARED);
    stage_is(s,
             "0.000 start -> prepare | starting\n"
             "0.001 signal TERM -> end: left by TERM | ended\n"
             "5.000 prepared | ended\n",
             "TERM while a slow disk prepares: nobody waits for it");
}

static void test_term_while_stopping(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, EXITED(0, 1));
    at(s, 1100, SIGNAL(SIGTERM));
    at(s, 1200, KILLED(1, SIGTERM));
    at(s, 1200, LEFT(0));
    at(s, 1201, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "1.100 signal TERM | stopping\n"
             "1.200 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.200 left 0 -> collect | finishing\n"
             "1.201 collected -> end: left by TERM | ended\n",
             "TERM while stopping for a restart: no restart");

    s = stage_up(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 1100, SIGNAL(SIGTERM));
    at(s, 1200, KILLED(1, SIGTERM));
    at(s, 1200, LEFT(0));
    at(s, 1201, SIGNAL(SIGTERM));
    at(s, 1202, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "1.100 signal TERM | stopping\n"
             "1.200 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.200 left 0 -> collect | finishing\n"
             "1.201 signal TERM | finishing\n"
             "1.202 collected -> end: worker 0 failed | ended\n",
             "TERM while stopping for good, and while finishing: the failure stays the cause");
}

static void test_term_at_the_end(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, EXITED(0, 0));
    at(s, 1000, EXITED(1, 0));
    at(s, 1000, LEFT(1));
    at(s, 1100, SIGNAL(SIGTERM));
    at(s, 1200, ORPHAN);
    at(s, 1200, LEFT(0));
    at(s, 1201, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 0 -> sweep 0 TERM | running\n"
             "1.000 exited 1 code 0 -> sweep 1 TERM, sweep TERM | running\n"
             "1.000 left 1 | running\n"
             "1.100 signal TERM | stopping\n"
             "1.200 orphan -> sweep count | stopping\n"
             "1.200 left 0 -> collect | finishing\n"
             "1.201 collected -> end: success | ended\n",
             "TERM when only leftovers remain: the work was done");

    s = stage_up(3);
    at(s, 1000, EXITED(0, 1));
    at(s, 1001, KILLED(1, SIGTERM));
    at(s, 1001, LEFT(0));
    at(s, 1002, COLLECTED);
    at(s, 1003, SIGNAL(SIGQUIT));
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "1.001 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.001 left 0 -> collect | finishing\n"
             "1.002 collected -> prepare | starting\n"
             "1.003 signal QUIT -> end: left by QUIT | ended\n",
             "QUIT between two attempts");
}

static void test_interrupts(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, SIGNAL(SIGINT));
    at(s, 1500, SIGNAL(SIGINT));
    at(s, 1500, KILLED(0, SIGKILL));
    at(s, 1500, KILLED(1, SIGKILL));
    at(s, 1500, LEFT(0));
    at(s, 1501, COLLECTED);
    stage_is(s,
             "1.000 signal INT -> all INT | stopping\n"
             "1.500 signal INT -> all KILL | stopping\n"
             "1.500 exited 0 by KILL -> sweep 0 KILL | stopping\n"
             "1.500 exited 1 by KILL -> sweep 1 KILL, sweep KILL | stopping\n"
             "1.500 left 0 -> collect | finishing\n"
             "1.501 collected -> end: left by INT | ended\n",
             "the second SIGINT kills at once");

    s = stage_up(3);
    at(s, 1000, SIGNAL(SIGINT));
    at(s, 1100, KILLED(0, SIGINT));
    at(s, 1100, KILLED(1, SIGINT));
    at(s, 1100, LEFT(2));
    at(s, 1200, SIGNAL(SIGINT));
    at(s, 1200, LEFT(0));
    at(s, 1201, COLLECTED);
    stage_is(s,
             "1.000 signal INT -> all INT | stopping\n"
             "1.100 exited 0 by INT -> sweep 0 TERM | stopping\n"
             "1.100 exited 1 by INT -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.100 left 2 | stopping\n"
             "1.200 signal INT -> sweep KILL | stopping\n"
             "1.200 left 0 -> collect | finishing\n"
             "1.201 collected -> end: left by INT | ended\n",
             "the second SIGINT ends the linger of leftovers");
}

static void test_ignores_term(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, EXITED(0, 1));
    at(s, 31001, KILLED(1, SIGKILL));
    at(s, 31001, LEFT(0));
    at(s, 31002, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "2.000 time -> sweep 0 KILL | stopping\n"
             "31.000 time -> all KILL | stopping\n"
             "31.001 exited 1 by KILL -> sweep 1 KILL, sweep KILL | stopping\n"
             "31.001 left 0 -> collect | finishing\n"
             "31.002 collected -> end: worker 0 failed | ended\n",
             "a worker that ignores TERM is killed when grace is over");
}

static void test_stuck(void)
{
    struct stage *s = stage_up(3);
    at(s, 1000, EXITED(0, 1));
    until(s, 50000);
    at(s, 50000, LEFT(0));
    at(s, 50001, COLLECTED);
    at(s, 99000, KILLED(1, SIGKILL));
    stage_is(
        s,
        "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
        "2.000 time -> sweep 0 KILL | stopping\n"
        "31.000 time -> all KILL | stopping\n"
        "41.000 time -> sweep KILL, collect | finishing\n"
        "50.000 left 0 | finishing\n"
        "50.001 collected -> end: stuck | ended\n"
        "99.000 exited 1 by KILL -> sweep 1 KILL | ended\n",
        "state D: ten seconds after KILL the node is stuck, what else is there is killed, and there is no restart");
}

static void test_leftovers(void)
{
    struct stage *s = stage_up(1);
    at(s, 1000, EXITED(0, 1));
    at(s, 1010, KILLED(1, SIGTERM));
    at(s, 1010, LEFT(2));
    at(s, 1500, ORPHAN);
    at(s, 1500, LEFT(1));
    until(s, 2010);
    at(s, 2010, LEFT(1));
    at(s, 2020, ORPHAN);
    at(s, 2020, LEFT(0));
    at(s, 2021, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 1 -> sweep 0 TERM, all TERM, note 0 | stopping\n"
             "1.010 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.010 left 2 | stopping\n"
             "1.500 orphan -> sweep count | stopping\n"
             "1.500 left 1 | stopping\n"
             "2.010 time -> sweep KILL | stopping\n"
             "2.010 left 1 | stopping\n"
             "2.020 orphan -> sweep KILL | stopping\n"
             "2.020 left 0 -> collect | finishing\n"
             "2.021 collected -> prepare | starting\n",
             "leftovers have a second, then KILL; no restart before the last is gone");
}

static void test_escaped(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, EXITED(0, 0));
    at(s, 1000, EXITED(1, 0));
    at(s, 1000, LEFT(1));
    until(s, 2060);
    at(s, 2060, LEFT(1));
    at(s, 2061, ORPHAN); /* its own child, in a session of its own, is ours now */
    at(s, 2061, LEFT(1));
    at(s, 2062, ORPHAN);
    at(s, 2062, LEFT(0));
    at(s, 2063, COLLECTED);
    stage_is(s,
             "1.000 exited 0 code 0 -> sweep 0 TERM | running\n"
             "1.000 exited 1 code 0 -> sweep 1 TERM, sweep TERM | running\n"
             "1.000 left 1 | running\n"
             "2.000 time -> sweep KILL | running\n"
             "2.050 time -> sweep KILL | running\n"
             "2.060 left 1 | running\n"
             "2.061 orphan -> sweep KILL | running\n"
             "2.061 left 1 | running\n"
             "2.062 orphan -> sweep KILL | running\n"
             "2.062 left 0 -> collect | finishing\n"
             "2.063 collected -> end: success | ended\n",
             "orphans that escaped their session are found one after the other");
}

static void test_other_signals(void)
{
    struct stage *s = stage_up(0);
    at(s, 1000, SIGNAL(SIGHUP));
    at(s, 1001, SIGNAL(SIGUSR1));
    at(s, 1002, SIGNAL(SIGUSR2));
    at(s, 1003, SIGNAL(SIGTSTP));
    at(s, 1004, SIGNAL(65));
    at(s, 1004, SIGNAL(0));
    s->a.conf.handled[SIGHUP] = true;
    at(s, 1005, SIGNAL(SIGHUP));
    stage_is(s,
             "1.000 signal HUP | running\n"
             "1.001 signal USR1 -> forward USR1 | running\n"
             "1.002 signal USR2 -> forward USR2 | running\n"
             "1.003 signal TSTP -> suspend | running\n"
             "1.004 signal another signal | running\n"
             "1.004 signal count | running\n"
             "1.005 signal HUP -> all HUP | stopping\n",
             "HUP only if handled, USR1 and USR2 are forwarded, TSTP suspends");
}

int main(void)
{
    test_term();
    test_term_while_stopping();
    test_term_at_the_end();
    test_interrupts();
    test_ignores_term();
    test_stuck();
    test_leftovers();
    test_escaped();
    test_other_signals();
    return done();
}
