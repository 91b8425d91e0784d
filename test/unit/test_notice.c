/* Planned changes at a step boundary: stories of the coordinator core and of a node's, and the status page. */
#include "sim/words.h"
#include "snapshot/worker_status.h"

static void tell(unsigned ms, char node, struct msg m)
{
    story_until(&s, ms);
    m.u.step_report.number = s.node[node - 'a'].number; /* the same two fields in front of each */
    m.u.step_report.coord = s.node[node - 'a'].coord;
    story_tell(&s, node, &m);
}

#define STEP_REPORT(ms, node, a, n)                                                                                    \
    tell(ms, node, (struct msg){.type = MSG_STEP_REPORT, .u.step_report = {.ask = (a), .step = (n)}})
#define PAST(ms, node, a)                                                                                              \
    tell(ms, node, (struct msg){.type = MSG_STEP_REPORT, .u.step_report = {.ask = (a), .past = true}})
#define DEAF(ms, node, a)                                                                                              \
    tell(ms, node, (struct msg){.type = MSG_STEP_REPORT, .u.step_report = {.ask = (a), .deaf = true}})
#define AT_BOUNDARY(ms, node, a) tell(ms, node, (struct msg){.type = MSG_AT_BOUNDARY, .u.at_boundary = {.ask = (a)}})

static void two(unsigned wait_ms)
{
    pair(&s, 1, 4);
    s.r->conf.set.boundary_wait_ms = wait_ms;
    SAY(4000, 'a', SUBSCRIBED);
    SAY(4000, 'b', SUBSCRIBED);
}

static void test_boundary(void)
{
    two(8000);
    J(5000, 'c');
    STEP_REPORT(6100, 'a', 1, 41);
    STEP_REPORT(6200, 'b', 1, 42);
    AT_BOUNDARY(6500, 'a', 1);
    AT_BOUNDARY(6900, 'b', 1);
    U(7100);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.200 b STEP_REPORT -> a: notice 1, step 43; b: notice 1, step 43\n"
             "6.900 time -> a: stop 1; b: stop 1\n",
             "all say where they are, the boundary is one step further, and the round stops when all stand there");
}

static void test_first_to_end(void)
{
    two(8000);
    J(5000, 'c');
    STEP_REPORT(6100, 'a', 1, 41);
    STEP_REPORT(6200, 'b', 1, 41);
    AT_BOUNDARY(6500, 'a', 1);
    SAY(6600, 'a', STOPPED);
    AT_BOUNDARY(6900, 'b', 1);
    SAY(7000, 'b', STOPPED);
    U(7100);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.200 b STEP_REPORT -> a: notice 1, step 42; b: notice 1, step 42\n"
             "6.900 time -> a: hold; b: stop 1\n"
             "7.000 b STOPPED -> a: open 2\n",
             "a node whose workers stood there and ended does not stop the others before they are there");
}

static void test_limit(void)
{
    two(3000);
    J(5000, 'c');
    STEP_REPORT(6100, 'a', 1, 41);
    U(9100);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "9.000 time -> a: stop 1; b: stop 1\n",
             "a node that does not answer is waited for as long as --boundary-wait says");
}

static void test_deaf(void)
{
    two(8000);
    J(5000, 'c');
    DEAF(6100, 'a', 1);
    STEP_REPORT(6200, 'b', 1, -1);
    AT_BOUNDARY(6300, 'b', 1);
    U(6400);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.200 b STEP_REPORT -> a: notice 1, step 0; b: notice 1, step 0\n"
             "6.300 time -> a: stop 1; b: stop 1\n",
             "a node where nobody listens is not waited for");
    two(8000);
    J(5000, 'c');
    DEAF(6100, 'a', 1);
    DEAF(6200, 'b', 1);
    U(6300);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.200 time -> a: stop 1; b: stop 1\n",
             "if nobody listens, nobody is waited for");
}

static void test_past(void)
{
    two(8000);
    J(5000, 'c');
    STEP_REPORT(6100, 'a', 1, 10);
    STEP_REPORT(6100, 'b', 1, 10);
    AT_BOUNDARY(6110, 'a', 1);
    PAST(6200, 'b', 1);
    AT_BOUNDARY(6210, 'a', 1); /* of the boundary before: it does not count */
    STEP_REPORT(6300, 'a', 2, 12);
    STEP_REPORT(6300, 'b', 2, 11);
    PAST(6400, 'b', 2);
    PAST(6401, 'a', 2);
    STEP_REPORT(6500, 'a', 3, 20);
    STEP_REPORT(6500, 'b', 3, 20);
    PAST(6600, 'b', 3);
    AT_BOUNDARY(6700, 'a', 3);
    U(14100);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.100 b STEP_REPORT -> a: notice 1, step 11; b: notice 1, step 11\n"
             "6.200 b STEP_REPORT -> a: notice 2; b: notice 2\n"
             "6.300 b STEP_REPORT -> a: notice 2, step 14; b: notice 2, step 14\n"
             "6.400 b STEP_REPORT -> a: notice 3; b: notice 3\n"
             "6.500 b STEP_REPORT -> a: notice 3, step 24; b: notice 3, step 24\n"
             "14.000 time -> a: stop 1; b: stop 1\n",
             "past the boundary: it is set anew, further on, three times; then the deadline decides");
}

static void test_leave(void)
{
    two(8000);
    SAY(5000, 'b', LEAVING);
    STEP_REPORT(5100, 'a', 1, 7);
    STEP_REPORT(5100, 'b', 1, 7);
    SAY(5200, 'b', LEAVING); /* on another connection */
    AT_BOUNDARY(5300, 'a', 1);
    AT_BOUNDARY(5300, 'b', 1);
    U(5400);
    story_is("5.000 b LEAVING -> b: goodbye in 8000 ms; a: notice 1; b: notice 1\n"
             "5.100 b STEP_REPORT -> a: notice 1, step 8; b: notice 1, step 8\n"
             "5.200 b LEAVING -> b: goodbye in 7800 ms\n"
             "5.300 time -> a: stop 1; b: stop 1\n",
             "a node that leaves goes at the boundary");
    two(8000);
    struct msg m = {.type = MSG_LEAVING, .u.leaving = {.signal = 2, .text = "SIGINT"}};
    U(5000);
    story_tell(&s, 'b', &m);
    story_is("5.000 b LEAVING -> b: goodbye; a: stop 1; b: stop 1\n", "who interrupts does not want to wait");
}

static void test_lost(void)
{
    two(8000);
    J(5000, 'c');
    STEP_REPORT(6100, 'a', 1, 7);
    story_closed(&s, 6200, 'b');
    U(6400);
    story_is("5.000 c joins -> c: park\n"
             "6.000 time -> a: notice 1; b: notice 1\n"
             "6.300 time -> a: stop 1\n",
             "a node that is lost meanwhile ends the round at once");
}

static void test_rebuilt(void)
{
    two(8000);
    CRASH(5000, true);
    s.r->conf.set.boundary_wait_ms = 8000;
    R(5100, 'a', RUNNING);
    R(5110, 'b', STARTING);
    SAY(5120, 'a', SUBSCRIBED);
    SAY(5121, 'b', STARTED);
    SAY(5122, 'b', SUBSCRIBED);
    SAY(6000, 'b', LEAVING);
    STEP_REPORT(6100, 'a', 1, 7);
    STEP_REPORT(6101, 'b', 1, 7);
    U(6200);
    story_is("5.100 a returns -> a: hold\n"
             "5.110 b returns -> a: world 1, 0 of 2; b: world 1, 1 of 2\n"
             "6.000 b LEAVING -> b: goodbye in 8000 ms; a: notice 1; b: notice 1\n"
             "6.101 b STEP_REPORT -> a: notice 1, step 8; b: notice 1, step 8\n",
             "a coordinator that was started again announces changes, too");
    two(8000);
    CRASH(5000, true);
    s.r->conf.set.boundary_wait_ms = 8000;
    R(5100, 'a', STARTING);
    SAY(5101, 'a', STARTED);
    R(5110, 'b', RUNNING);
    SAY(5120, 'b', SUBSCRIBED);
    SAY(6000, 'b', LEAVING);
    story_is("5.100 a returns -> a: hold\n"
             "5.110 b returns -> a: world 1, 0 of 2; b: world 1, 1 of 2\n"
             "6.000 b LEAVING -> b: goodbye in 8000 ms; a: notice 1; b: notice 1\n",
             "whoever's workers were started while it listened hears of it");
}

/* --- the page --- */

static void test_page(void)
{
    struct worker_status a, b, *both[] = {&a, &b};
    worker_status_reset(&a, 3, 9, 0);
    worker_status_reset(&b, 3, 9, 1);
    is_num(worker_status_freeze(both, 2), -1, "nobody listens: no step");
    a.phase = b.phase = WORKER_STATUS_STABLE;
    a.live_step = 6;
    b.live_step = 5;
    b.phase = WORKER_STATUS_UPDATING;
    b.begin_step = 7;
    is_num(worker_status_freeze(both, 2), 7, "a step that is being made counts");
    is_num(a.limit_step == 7 && b.limit_step == 7, true, "and no later one may be begun");
    b.phase = WORKER_STATUS_BLOCKED;
    is_num(worker_status_begun(&b), 5, "a step that waits to be begun does not count");
    worker_status_announce(&a, NOTICE_DRAIN, 8, 77);
    is_num(a.boundary_step == 8 && a.limit_step == 8 && a.notice_why == NOTICE_DRAIN && a.notice_deadline_ns == 77,
           true, "a boundary is the limit, too");
    a.live_step = 8;
    is_num(worker_status_is_past(&a, 8), true, "a worker that did not see it is past it");
    a.seq = 1;
    is_num(worker_status_is_past(&a, 8), false, "unless it is just about to say");
    a.seq = 2;
    a.at_step = 8;
    is_num(worker_status_is_past(&a, 8), false, "or has said that it stops");
    worker_status_retract(&a);
    is_num(a.boundary_step == WORKER_STATUS_NO_STEP && a.limit_step == 8, true, "taken back: the limit stays");
    a.live_step = -50;
    a.phase = WORKER_STATUS_STABLE;
    is_num(worker_status_begun(&a), -1, "no step is below none");
    is_num(worker_status_live(&a), -1, "nor is one finished");
    is_str(worker_status_phase(&a), "stable", "what it does");
    a.phase = 77;
    is_str(worker_status_phase(&a), "", "what nobody knows has no name");
}

int main(void)
{
    test_boundary();
    test_first_to_end();
    test_limit();
    test_deaf();
    test_past();
    test_leave();
    test_lost();
    test_rebuilt();
    test_page();
    return done();
}
