/* Stories of the node's side of the rendezvous: a node that leaves, and changes that are planned for a boundary of
 * steps. */
#include "unit/member_stage.h"

#define STEP_REPORT(ms, n) AT(ms, "live", .type = MEMBER_EV_STEP_REPORT, .step = (n))
#define AT_BOUNDARY(ms)    AT(ms, "boundary", .type = MEMBER_EV_AT_BOUNDARY)

static void test_leave(void)
{
    running(1, 2);
    SIGNAL(1000, 15);
    until(2500);
    CLOSED(2600, STOPPED);
    story_is("1.000 signal -> LEAVING | leaving\n"
             "2.000 time -> stop 15 in 30 s | leaving\n"
             "2.600 attempt closed -> unknock, STOPPED, exit 143 | ended\n",
             "SIGTERM: LEAVING first, at most a second, then the workers: 143");
}

static void test_leave_answered(void)
{
    running(1, 2);
    SIGNAL(1000, 2);
    order(1001, (struct msg){.type = MSG_LEAVE_ACK, .u.leave_ack.text = ""});
    SIGNAL(1500, 2);
    CLOSED(1501, STOPPED);
    story_is("1.000 signal -> LEAVING | leaving\n"
             "1.001 LEAVE_ACK -> stop 2 in 30 s | leaving\n"
             "1.500 signal -> stop 9 in 0 s | leaving\n"
             "1.501 attempt closed -> unknock, STOPPED, exit 130 | ended\n",
             "answered, and again, faster: 130");
}

static struct msg notice(uint64_t ask, int64_t boundary)
{
    return (struct msg){.type = MSG_NOTICE,
                        .u.notice = {.number = 1,
                                     .coord = 9,
                                     .text = "more nodes are here",
                                     .wait_ms = 8000,
                                     .why = 1,
                                     .ask = ask,
                                     .boundary = boundary}};
}

static void test_notice(void)
{
    running(1, 2);
    AT(900, "aware", .type = MEMBER_EV_SUBSCRIBED);
    order(1000, notice(1, -1));
    STEP_REPORT(1001, 41);
    order(1002, notice(1, -1)); /* to all, again: the answer may have been lost */
    order(1100, notice(1, 42));
    is_num(m.notice.boundary == 42 && m.notice.until == EL_MS(9100) && m.notice.why == 1, true,
           "the boundary is known");
    order(1200, notice(2, -1));
    STEP_REPORT(1201, 43);
    order(1202, notice(2, 45));
    AT_BOUNDARY(1300);
    order(1400, notice(2, 45));
    order(1500, stop(1));
    CLOSED(1600, STOPPED);
    story_is("0.900 aware -> SUBSCRIBED | running\n"
             "1.000 NOTICE -> notice | running\n"
             "1.001 live -> STEP_REPORT | running\n"
             "1.002 NOTICE -> STEP_REPORT | running\n"
             "1.100 NOTICE -> notice | running\n"
             "1.200 NOTICE -> notice | running\n"
             "1.201 live -> STEP_REPORT | running\n"
             "1.202 NOTICE -> notice | running\n"
             "1.300 boundary -> AT_BOUNDARY | running\n"
             "1.400 NOTICE -> AT_BOUNDARY | running\n"
             "1.500 STOP -> lease ROUND_OVER, say \"stopping: \", stop 15 in 30 s | stopping\n"
             "1.600 attempt closed -> unknock, STOPPED | joining\n",
             "a planned change: asked, told, and said again where that may have been lost");
}

static void test_notice_withdrawn(void)
{
    running(1, 2);
    AT(900, "aware", .type = MEMBER_EV_SUBSCRIBED);
    order(1000, notice(1, -1));
    STEP_REPORT(1001, 41);
    order(1100, world(1, 1, 2));
    AT_BOUNDARY(1200);
    story_is("0.900 aware -> SUBSCRIBED | running\n"
             "1.000 NOTICE -> notice | running\n"
             "1.001 live -> STEP_REPORT | running\n"
             "1.100 WORLD -> SUBSCRIBED, run on | running\n",
             "a coordinator that was started again does not know of it: the workers run on");
}

static void test_leave_at_boundary(void)
{
    running(1, 2);
    SIGNAL(1000, 15);
    order(1001, (struct msg){.type = MSG_LEAVE_ACK, .u.leave_ack = {.text = "", .wait_ms = 400}});
    order(1002, notice(1, -1));
    STEP_REPORT(1003, 41);
    order(1100, stop(1));
    CLOSED(1200, STOPPED);
    story_is("1.000 signal -> LEAVING | leaving\n"
             "1.002 NOTICE -> notice | leaving\n"
             "1.003 live -> STEP_REPORT | leaving\n"
             "1.100 STOP -> lease ROUND_OVER, say \"stopping: \", stop 15 in 30 s | leaving\n"
             "1.200 attempt closed -> unknock, STOPPED, exit 143 | ended\n",
             "a node that leaves waits for the boundary");
    running(1, 2);
    SIGNAL(1000, 15);
    order(1001, (struct msg){.type = MSG_LEAVE_ACK, .u.leave_ack = {.text = "", .wait_ms = 400}});
    until(2500);
    CLOSED(2600, STOPPED);
    story_is("1.000 signal -> LEAVING | leaving\n"
             "2.401 time -> stop 15 in 30 s | leaving\n"
             "2.600 attempt closed -> unknock, STOPPED, exit 143 | ended\n",
             "but not for longer than it was told");
}

int main(void)
{
    test_leave();
    test_leave_answered();
    test_notice();
    test_notice_withdrawn();
    test_leave_at_boundary();
    return done();
}
