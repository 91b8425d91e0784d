/* Stories of one node: what happens (left of the arrow) and what the core decides, with virtual times.  Time-outs are
 * sent by the stage exactly when the core asks for them. */
#include "agent/agent.h"

#include <signal.h>
#include <stdarg.h>

#include "lib/tap.h"
#include "sim/trace.h"

struct stage {
    struct agent a;
    char text[16384];
    size_t len;
    bool silent; /* set-up that other stories tell */
};

static void step(struct stage *s, struct agent_event ev, el_usec now)
{
    struct trace_step t;
    char line[TRACE_LINE_MAX];
    trace_take(&t, &s->a, &ev, now);
    if (s->silent)
        return;
    int n = snprintf(s->text + s->len, sizeof s->text - s->len, "%s\n", trace_line(&t, line));
    s->len += (size_t)n;
}

/* Time goes on to ms: time-outs that are due before are sent on the way. */
static void until(struct stage *s, unsigned ms)
{
    el_usec due, last = 0;
    for (unsigned guard = 0; (due = agent_deadline(&s->a)) <= EL_MS(ms) && guard < 1000; guard++) {
        last = due > last ? due : last;
        step(s, (struct agent_event){.type = AGENT_EV_TIMEOUT}, last);
    }
}

static void at(struct stage *s, unsigned ms, struct agent_event ev)
{
    if (ms)
        until(s, ms - 1);
    step(s, ev, EL_MS(ms));
}

#define EV(...)        ((struct agent_event){__VA_ARGS__})
#define START          EV(.type = AGENT_EV_START)
#define PREPARED       EV(.type = AGENT_EV_PREPARED, .ok = true)
#define NOT_PREPARED   EV(.type = AGENT_EV_PREPARED, .ok = false)
#define SPAWNED(i)     EV(.type = AGENT_EV_SPAWNED, .slot = (i))
#define NO_FORK(i)     EV(.type = AGENT_EV_SPAWN_FAILED, .slot = (i), .forked = false)
#define NO_EXEC(i)     EV(.type = AGENT_EV_SPAWN_FAILED, .slot = (i), .forked = true)
#define EXITED(i, c)   EV(.type = AGENT_EV_EXITED, .slot = (i), .code = (c), .signal = -1)
#define KILLED(i, sig) EV(.type = AGENT_EV_EXITED, .slot = (i), .code = -1, .signal = (sig))
#define UNKNOWN(i)     EV(.type = AGENT_EV_EXITED, .slot = (i), .code = -1, .signal = -1)
#define LEFT(n)        EV(.type = AGENT_EV_SWEPT, .left = (n))
#define ORPHAN         EV(.type = AGENT_EV_ORPHAN)
#define COLLECTED      EV(.type = AGENT_EV_COLLECTED)
#define SIGNAL(sig)    EV(.type = AGENT_EV_SIGNAL, .signal = (sig))

static struct stage *stage_new(unsigned slots, unsigned max_restarts)
{
    struct stage *s = calloc(1, sizeof *s);
    struct agent_conf conf = {.slots = slots, .max_restarts = max_restarts, .grace = EL_SEC(30)};
    conf.handled[SIGTERM] = conf.handled[SIGINT] = conf.handled[SIGQUIT] = true;
    if (!s || agent_init(&s->a, &conf, NULL) < 0)
        abort();
    return s;
}

/* Both workers of a node of two are up at 2 ms; not part of the story. */
static struct stage *stage_up(unsigned max_restarts)
{
    struct stage *s = stage_new(2, max_restarts);
    s->silent = true;
    at(s, 0, START);
    at(s, 1, PREPARED);
    at(s, 2, SPAWNED(0));
    at(s, 2, SPAWNED(1));
    s->silent = false;
    return s;
}

static void stage_is(struct stage *s, const char *want, const char *what)
{
    is_str(s->text, want, what);
    agent_free(&s->a, NULL);
    free(s);
}

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

    s = stage_up(3);
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
    stage_is(s,
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
    at(s, 1150, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 exited 0 by TERM -> sweep 0 TERM, all TERM | stopping\n"
             "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.005 left 0 -> collect | finishing\n"
             "1.006 collected | finishing\n"
             "1.150 signal TERM -> end: left by TERM | ended\n",
             "a worker's TERM, then ours within 200 ms: we were all told to leave, and nothing is said of a failure");

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
    at(s, 1000, KILLED(0, SIGKILL));
    at(s, 1005, KILLED(1, SIGTERM));
    at(s, 1005, LEFT(0));
    at(s, 1006, COLLECTED);
    until(s, 1200);
    at(s, 1201, SIGNAL(SIGTERM));
    stage_is(s,
             "1.000 exited 0 by KILL -> sweep 0 TERM, all TERM | stopping\n"
             "1.005 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.005 left 0 -> collect | finishing\n"
             "1.006 collected | finishing\n"
             "1.200 time -> note 0, prepare | starting\n"
             "1.201 signal TERM -> end: left by TERM | ended\n",
             "200 ms without a word: it was a failure, and is restarted");

    s = stage_up(0);
    at(s, 1000, KILLED(0, SIGKILL));
    until(s, 1250);
    at(s, 1300, SIGNAL(SIGTERM));
    at(s, 1400, KILLED(1, SIGTERM));
    at(s, 1400, LEFT(0));
    at(s, 1401, COLLECTED);
    stage_is(s,
             "1.000 exited 0 by KILL -> sweep 0 TERM, all TERM | stopping\n"
             "1.200 time -> note 0 | stopping\n"
             "1.300 signal TERM | stopping\n"
             "1.400 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "1.400 left 0 -> collect | finishing\n"
             "1.401 collected -> end: worker 0 failed | ended\n",
             "a farewell after the 200 ms does not explain the failure");
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

int main(void)
{
    test_success();
    test_restart();
    test_success_then_failure();
    test_unknown();
    test_term();
    test_term_at_the_end();
    test_interrupts();
    test_ignores_term();
    test_stuck();
    test_leftovers();
    test_escaped();
    test_fork_fails();
    test_exec_fails();
    test_stop_while_starting();
    test_hindsight();
    test_other_signals();
    test_memory();
    return done();
}
