/* Stories of the node core as one of several nodes: started, stopped and told the count from above. */
#include "sim/stage.h"

#define ATTEMPT(r)      EV(.type = AGENT_EV_ATTEMPT, .restarts = (r))
#define HALT(sig, g)    EV(.type = AGENT_EV_HALT, .signal = (sig), .grace = (g))
#define HALT_ENDING(i)  EV(.type = AGENT_EV_HALT, .signal = SIGTERM, .grace = EL_SEC(6), .waits = true, .slot = (i))
#define FINISH          EV(.type = AGENT_EV_FINISH)
#define PREPARED_FOR(n) EV(.type = AGENT_EV_PREPARED, .ok = true, .attempt = (n))

static struct stage *managed(void)
{
    struct stage *s = stage_new(2, 0);
    s->a.conf.managed = true;
    return s;
}

static struct stage *managed_up(void)
{
    struct stage *s = managed();
    s->silent = true;
    at(s, 0, ATTEMPT(4));
    at(s, 1, PREPARED);
    at(s, 1, SPAWNED(0));
    at(s, 2, SPAWNED(1));
    s->silent = false;
    return s;
}

static void test_halt(void)
{
    struct stage *s = managed();
    at(s, 0, ATTEMPT(4));
    at(s, 1, PREPARED);
    at(s, 1, SPAWNED(0));
    at(s, 2, SPAWNED(1));
    is_num(s->a.restarts, 4, "the count of restarts is the job's");
    at(s, 10, HALT(SIGTERM, EL_SEC(5)));
    at(s, 11, EXITED(0, 1));
    at(s, 12, KILLED(1, SIGTERM));
    at(s, 12, LEFT(0));
    at(s, 13, COLLECTED);
    at(s, 20, ATTEMPT(4));
    stage_is(s,
             "0.000 attempt -> prepare | starting\n"
             "0.001 prepared -> spawn 0 | running\n"
             "0.001 spawned 0 -> spawn 1 | running\n"
             "0.002 spawned 1 -> up | running\n"
             "0.010 halt TERM -> all TERM | stopping\n"
             "0.011 exited 0 code 1 -> sweep 0 TERM | stopping\n"
             "0.012 exited 1 by TERM -> sweep 1 TERM, sweep TERM | stopping\n"
             "0.012 left 0 -> collect | finishing\n"
             "0.013 collected -> result: halted | idle\n"
             "0.020 attempt -> prepare | starting\n",
             "halted by the coordinator, then the next round");
}

static void test_failure_is_handed_up(void)
{
    struct stage *s = managed_up();
    at(s, 10, EXITED(1, 3));
    at(s, 11, HALT(SIGTERM, EL_SEC(30)));
    at(s, 12, KILLED(0, SIGTERM));
    at(s, 12, LEFT(0));
    at(s, 13, COLLECTED);
    at(s, 14, FINISH);
    stage_is(s,
             "0.010 exited 1 code 3 -> sweep 1 TERM, all TERM, note 1 | stopping\n"
             "0.011 halt TERM | stopping\n"
             "0.012 exited 0 by TERM -> sweep 0 TERM, sweep TERM | stopping\n"
             "0.012 left 0 -> collect | finishing\n"
             "0.013 collected -> result: worker 1 failed | idle\n"
             "0.014 finish -> end: worker 1 failed | ended\n",
             "a failure is never restarted here");
}

static void test_success_waits(void)
{
    struct stage *s = managed_up();
    at(s, 10, EXITED(0, 0));
    at(s, 11, EXITED(1, 0));
    at(s, 11, HALT(SIGTERM, EL_SEC(30)));
    at(s, 11, LEFT(0));
    at(s, 12, COLLECTED);
    at(s, 50, FINISH);
    stage_is(s,
             "0.010 exited 0 code 0 -> sweep 0 TERM | running\n"
             "0.011 exited 1 code 0 -> sweep 1 TERM, sweep TERM | running\n"
             "0.011 halt TERM | stopping\n"
             "0.011 left 0 -> collect | finishing\n"
             "0.012 collected -> result: success | idle\n"
             "0.050 finish -> end: success | ended\n",
             "halted when all had succeeded: it stays a success");
}

static void test_halt_while_preparing(void)
{
    struct stage *s = managed();
    at(s, 0, ATTEMPT(0));
    at(s, 5, HALT(SIGTERM, EL_SEC(30)));
    at(s, 6, ATTEMPT(1));
    at(s, 7, PREPARED_FOR(1));
    at(s, 8, PREPARED_FOR(2));
    stage_is(s,
             "0.000 attempt -> prepare | starting\n"
             "0.005 halt TERM -> result: halted | idle\n"
             "0.006 attempt -> prepare | starting\n"
             "0.007 prepared | starting\n"
             "0.008 prepared -> spawn 0 | running\n",
             "a halt before the logs are there; what was prepared for the old attempt starts nothing");
}

static void test_fence(void)
{
    struct stage *s = managed_up();
    at(s, 10, HALT(SIGTERM, EL_SEC(30)));
    at(s, 20, HALT(SIGKILL, 0));
    stage_is(s,
             "0.010 halt TERM -> all TERM | stopping\n"
             "0.020 halt at once -> all KILL | stopping\n",
             "cut off while stopping: killed at once");
}

static void test_cannot_prepare(void)
{
    struct stage *s = managed();
    at(s, 0, ATTEMPT(0));
    at(s, 1, NOT_PREPARED);
    stage_is(s,
             "0.000 attempt -> prepare | starting\n"
             "0.001 cannot prepare -> result: cannot prepare | idle\n",
             "a node that cannot make its logs says so and stays");
}

static void test_from_outside(void)
{
    struct stage *s = managed_up();
    at(s, 1000, KILLED(1, SIGKILL));
    stage_is(s, "1.000 exited 1 by KILL -> sweep 1 TERM, all TERM, note 1 | stopping\n",
             "SIGKILL asks nobody to leave: the coordinator is told at once");

    s = managed_up();
    at(s, 1000, KILLED(1, SIGTERM));
    until(s, 1100);
    stage_is(s,
             "1.000 exited 1 by TERM -> sweep 1 TERM, all TERM | stopping\n"
             "1.020 time -> note 1 | stopping\n",
             "SIGTERM: after an instant, for whoever signals all of them");

    s = managed_up();
    s->a.conf.captures = true;
    at(s, 1000, KILLED(1, SIGKILL));
    at(s, 1050, CAPTURED);
    stage_is(s,
             "1.000 exited 1 by KILL -> sweep 1 TERM, capture | stopping\n"
             "1.050 captured -> all TERM, note 1 | stopping\n",
             "it is told when what the others hold is captured");

    s = managed_up();
    s->a.conf.captures = true;
    at(s, 1000, KILLED(1, SIGKILL));
    until(s, 1300);
    stage_is(s,
             "1.000 exited 1 by KILL -> sweep 1 TERM, capture | stopping\n"
             "1.200 time -> note 1 | stopping\n",
             "... or when that takes long");
}

/* A worker elsewhere has failed, and one here had raised before, and clears up. */
static void test_halt_waits_for_an_end(void)
{
    struct stage *s = managed_up();
    s->a.conf.consequence = EL_SEC(5);
    at(s, 10, HALT_ENDING(1));
    at(s, 500, EXITED(0, 1)); /* a victim */
    at(s, 900, EXITED(1, 1));
    at(s, 901, LEFT(0));
    at(s, 902, COLLECTED);
    stage_is(s,
             "0.010 halt TERM | running\n"
             "0.500 exited 0 code 1 -> sweep 0 TERM | running\n"
             "0.900 exited 1 code 1 -> sweep 1 TERM, sweep TERM | stopping\n"
             "0.901 left 0 -> collect | finishing\n"
             "0.902 collected -> result: halted | idle\n",
             "it ends by itself, which proves it");
    s = managed_up();
    s->a.conf.consequence = EL_SEC(5);
    at(s, 10, HALT_ENDING(1));
    at(s, 500, NONE_ENDS);
    is_num(s->a.state, AGENT_STOPPING, "it goes on: then it is stopped");
    stage_free(s);
    s = managed_up();
    s->a.conf.consequence = EL_SEC(5);
    at(s, 10, HALT_ENDING(1));
    at(s, 900, EXITED(1, 1));
    is_num(s->a.state, AGENT_STOPPING, "the others wait no longer than for that one");
    stage_free(s);
    s = managed_up();
    s->a.conf.consequence = EL_SEC(5);
    at(s, 10, HALT_ENDING(1));
    until(s, 3100);
    is_num(s->a.state, AGENT_STOPPING, "half of the grace is the wait");
    stage_free(s);
    s = managed_up();
    s->a.conf.consequence = EL_SEC(5);
    at(s, 10, HALT_ENDING(1));
    at(s, 20, HALT(SIGKILL, 0));
    is_num(s->a.state, AGENT_STOPPING, "another order is obeyed at once");
    stage_free(s);
}

int main(void)
{
    test_halt_waits_for_an_end();
    test_halt();
    test_failure_is_handed_up();
    test_success_waits();
    test_halt_while_preparing();
    test_fence();
    test_cannot_prepare();
    test_from_outside();
    return done();
}
