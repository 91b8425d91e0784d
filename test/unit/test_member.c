/* Stories of the node's side of the rendezvous: events on the left, actions on the right, virtual time. */
#include "unit/member_stage.h"

static void test_first_round(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, park("1 of 2"));
    order(100, world(1, 1, 2));
    LEASE_GRANTED(101);
    STARTED(120);
    CLOSED(2000, SUCCESS);
    order(2100, end(0));
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 WAIT -> say \"1 of 2\" | parked\n"
             "0.100 WORLD -> knock | starting\n"
             "0.101 knock ok -> start | starting\n"
             "0.120 started -> STARTED | running\n"
             "2.000 attempt closed -> unknock, SUCCEEDED | finishing\n"
             "2.100 END -> END_ACK, exit 0 | ended\n",
             "parked, then a round, success, END");
}

static void test_rank_0(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, open_store(1));
    STORE(21);
    order(30, world(1, 0, 2));
    STARTED(40);
    order(1000, stop(1));
    CLOSED(1010, STOPPED);
    order(1020, open_store(2));
    STORE(1021);
    order(1030, world(2, 0, 2));
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 OPEN_STORE -> open store | starting\n"
             "0.021 store -> STORE_READY | starting\n"
             "0.030 WORLD -> start | starting\n"
             "0.040 started -> STARTED | running\n"
             "1.000 STOP -> tenants ROUND_OVER, say \"stopping: \", stop 15 in 30 s | stopping\n"
             "1.010 attempt closed -> STOPPED | joining\n"
             "1.020 OPEN_STORE -> close store, open store | starting\n"
             "1.021 store -> STORE_READY | starting\n"
             "1.030 WORLD -> start | starting\n",
             "rank 0 opens the store of each round");
}

static void test_never(void)
{
    begin(0);
    START;
    REFUSED(1);
    len = 0;
    for (unsigned t = 600; m.place != MEMBER_ENDED; t += 600)
        if (m.link == MEMBER_LINK_TRYING)
            REFUSED(t);
        else
            until(t);
    len = keep_last();
    story_is("30.000 time -> exit 69 | ended\n", "no coordinator until the join time-out: 69");
}

static void test_lost_for_good(void)
{
    running(1, 2);
    LOST(1000);
    away(1010, 62000);
    CLOSED(62100, STOPPED);
    len = keep_last();
    story_is("61.000 time -> stop 15 in 30 s | stopping\n"
             "62.100 attempt closed -> unknock, exit 75 | ended\n",
             "the coordinator does not come back: workers run on, 75 only when it is lost for good");
}

static void test_failed_while_away(void)
{
    running(1, 2);
    LOST(1000);
    REFUSED(1010);
    FAILED(1015, 3);
    CLOSED(1018, FAILED);
    away(1100, 62000);
    len = keep_last();
    story_is("61.000 time -> exit 3 | ended\n",
             "a worker that fails while the coordinator is away: its own status in the end");
}

static void test_failed_then_back(void)
{
    running(1, 2);
    LOST(1000);
    FAILED(1005, 3);
    CLOSED(1008, FAILED);
    CONNECTED(1020);
    order(1030, stop(1));
    story_is("1.008 attempt closed -> unknock | connecting\n"
             "1.009 time -> connect | connecting\n"
             "1.020 connected -> HELLO, WORKER_FAILED, STOPPED | joining\n"
             "1.030 STOP -> STOPPED | joining\n",
             "or it is told as soon as a coordinator is there");
}

static void test_success_and_away(void)
{
    running(1, 2);
    CLOSED(900, SUCCESS);
    LOST(1000);
    away(1100, 62000);
    len = keep_last();
    story_is("0.900 attempt closed -> unknock, SUCCEEDED | finishing\n"
             "61.000 time -> exit 75 | ended\n",
             "succeeded, but the others' state cannot be learned: 75, never begun again");
}

static void test_cut_off(void)
{
    running(1, 2);
    answered(1000, 3000, false);
    answered(3000, 3000, true);
    until(8500);
    CLOSED(8501, STOPPED);
    story_is("8.000 time -> stop 9 in 0 s, fenced, disconnect, unknock | stopping\n"
             "8.007 time -> knock | stopping\n"
             "8.009 time -> connect | stopping\n"
             "8.501 attempt closed -> unknock | connecting\n",
             "coordinator and lease are silent: the workers are killed at the limit");
}

/* The coordinator's host has got all that was said until then, each second, up to and with ms. */
static void delivered(unsigned from, unsigned ms)
{
    for (unsigned t = from; t <= ms; t += 1000)
        AT(t, "delivered", .type = MEMBER_EV_DELIVERED, .at = EL_MS(t - 1000));
}

static void test_ride_through(void)
{
    running(1, 2);
    answered(1000, 2000, false);
    for (unsigned t = 3000; t <= 20000; t += 1000) {
        lease_says(t, t < 5000 ? MSG_VIEW_HEARD : MSG_VIEW_STILL);
        delivered(t, t);
    }
    story_is(
        "", "the coordinator stands still, as another node says too, but its host has what we say: the workers run on");
    for (unsigned t = 21000; t <= 24000; t += 1000)
        lease_says(t, MSG_VIEW_STILL);
    story_is("24.000 time -> stop 9 in 0 s, fenced, disconnect | stopping\n",
             "until that host is silent, too, whatever the lease says: its next coordinator may give our ranks away");
    char why[MSG_TEXT_MAX + 1];
    is_str(member_fence_text(&m, why),
           "the coordinator's host has been silent for 5 s: this node may be cut off, so its workers of round 1 are "
           "killed before others get their ranks; it joins again when it can",
           "and it is said why");
}

static void test_stands_still_for_good(void)
{
    running(1, 2);
    answered(1000, 2000, false);
    for (unsigned t = 3000; m.place != MEMBER_STOPPING && t < 100000; t += 1000) {
        lease_says(t, MSG_VIEW_STILL);
        delivered(t, t);
    }
    CLOSED(70000, STOPPED);
    story_is("67.000 time -> stop 15 in 30 s | stopping\n"
             "70.000 attempt closed -> unknock, STOPPED, exit 75 | ended\n",
             "but not for longer than the coordinator may be away");
    ok(strstr(m.text, "does not answer: perhaps it stands still"), "and it is said why");
}

/* Acknowledged, but not answered, since 2.000; what another node says of the coordinator decides. */
static void test_half_open(void)
{
    static const struct {
        enum msg_view view;
        const char *what;
    } cases[] = {
        {MSG_VIEW_HEARD, "another node hears the coordinator: what is acknowledged to us nobody reads"},
        {MSG_VIEW_NONE, "the other node hears nothing at all: that proves nothing"},
        {MSG_VIEW_HERE, "the coordinator is in the other node, and that answers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        running(1, 2);
        answered(1000, 2000, false);
        for (unsigned t = 3000; t <= 7000; t += 1000) {
            lease_says(t, cases[i].view);
            delivered(t, t);
        }
        story_is("7.000 time -> stop 9 in 0 s, fenced, disconnect | stopping\n", cases[i].what);
    }
    running(0, 1);
    answered(1000, 2000, false);
    delivered(3000, 9000);
    story_is("", "a round of one node has nobody to ask");
}

/* It hosts the coordinator and the store, and stands still since 2.000. */
static void test_host_stands_still(void)
{
    running(1, 2);
    answered(1000, 2000, false);
    lease_says(2000, MSG_VIEW_HERE);
    for (unsigned t = 3000; t <= 12000; t += 1000) {
        delivered(t, t);
        AT(t, "lease delivered", .type = MEMBER_EV_LEASE_DELIVERED, .at = EL_MS(t - 1000));
    }
    story_is("", "the host of coordinator and store takes everything and answers nothing: the workers run on");
    delivered(13000, 16000);
    story_is("16.000 time -> stop 9 in 0 s, fenced, disconnect, unknock | stopping\n", "until its kernel is silent");
}

/* Host of the store: since 2.000 the coordinator does not answer; another node tells what it knows. */
static void tenant_says(unsigned ms, enum msg_view view)
{
    struct msg msg = {.type = MSG_HEARTBEAT, .u.heartbeat = {.time = 1, .own = EL_MS(ms) - 1, .view = view}};
    AT(ms, "tenant", .type = MEMBER_EV_TENANT, .msg = &msg);
}

static enum msg_view view_at(unsigned ms)
{
    struct msg reply;
    until(ms);
    member_lease_reply(&m, &(struct msg_heartbeat){.time = 1}, now, &reply);
    return reply.u.heartbeat.view;
}

/* The lease closes, or says this of its sender, while the coordinator's host refuses. */
static void refused_beside(enum msg_view view)
{
    running(1, 2);
    answered(1000, 2000, false);
    LOST(2100);
    for (unsigned t = 2500; t <= 9000; t += 500) {
        if (m.link == MEMBER_LINK_TRYING)
            REFUSED(t);
        lease_says(t, view);
    }
    len = drop_lines("time -> connect |");
}

static void test_refused_alone(void)
{
    char why[MSG_TEXT_MAX + 1];
    refused_beside(MSG_VIEW_REFUSED);
    story_is("", "the coordinator is dead, as another node says too: the workers run on");
    refused_beside(MSG_VIEW_HEARD);
    story_is("7.000 time -> stop 9 in 0 s, fenced | stopping\n", "another node hears it: a firewall refuses here");
    is_str(member_fence_text(&m, why),
           "connections to the coordinator have been refused for 5 s, here alone as it seems: this node may be cut "
           "off, so its workers of round 1 are killed before others get their ranks; it joins again when it can",
           "and it is said why");
    refused_beside(MSG_VIEW_NONE);
    story_is("7.000 time -> stop 9 in 0 s, fenced | stopping\n", "the other node hears nothing, but is not refused");
    refused_beside(MSG_VIEW_HERE);
    story_is("7.000 time -> stop 9 in 0 s, fenced | stopping\n", "the coordinator is in the other node");
}

static void test_view(void)
{
    running(0, 3);
    LOST(1000);
    until(1100);
    ok(view_at(1100) == MSG_VIEW_NONE, "the coordinator is gone: not known why");
    REFUSED(1100);
    ok(view_at(1200) == MSG_VIEW_REFUSED, "its host refuses");
    tenant_says(1300, MSG_VIEW_HEARD);
    ok(view_at(1300) == MSG_VIEW_HEARD, "us: another node hears it");
    running(0, 3);
    answered(1000, 2000, false);
    ok(view_at(2500) == MSG_VIEW_HEARD, "the coordinator answers");
    delivered(4000, 4000);
    ok(view_at(4500) == MSG_VIEW_NONE, "it took a heartbeat and is late: that may be chance");
    delivered(5000, 5000);
    ok(view_at(5000) == MSG_VIEW_STILL, "it stands still");
    ok(view_at(5300) == MSG_VIEW_NONE, "its host takes nothing any more: it may be we who are cut off");
    AT(5400, "delivered", .type = MEMBER_EV_DELIVERED, .at = EL_MS(5000));
    tenant_says(5500, MSG_VIEW_HEARD);
    ok(view_at(5500) == MSG_VIEW_HEARD, "that does; but another node hears the coordinator");
}

static void test_host_asks(void)
{
    running(0, 3);
    answered(1000, 2000, false);
    for (unsigned t = 4000; t <= 9000; t += 1000) {
        delivered(t, t);
        tenant_says(t, MSG_VIEW_STILL);
    }
    story_is("", "the store's host asks its tenants: it stands still");
    len = 0;
    for (unsigned t = 10000; t <= 13000; t += 1000) {
        delivered(t, t);
        tenant_says(t, MSG_VIEW_STILL);
        tenant_says(t, MSG_VIEW_HEARD);
    }
    until(13750);
    story_is("13.749 time -> stop 9 in 0 s, fenced, disconnect | stopping\n",
             "one that hears it is believed before one that does not");
}

static void test_guard_was_first(void)
{
    running(1, 2);
    answered(1000, 2000, false);
    answered(2000, 2000, true);
    now = EL_MS(20000); /* this process stood still; its guard has killed the workers at 7.000 */
    struct member_incident killed = {.code = -1, .signal = 9};
    step((struct member_event){.type = MEMBER_EV_WORKER_FAILED, .incident = &killed}, "worker failed");
    ok(!m.failed && m.fenced, "what the guard has killed while we stood still is no failure of a worker");
}

static void test_late_knock(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, world(1, 1, 2));
    now = EL_MS(6000);
    len = 0;
    step((struct member_event){.type = MEMBER_EV_LEASE_GRANTED}, "knock ok");
    story_is("6.000 knock ok -> disconnect | starting\n", "woken up with the answer to a knock: nothing is started");
}

static void test_latecomer(void)
{
    struct msg late_end = end(7);
    late_end.u.end.text = "the restart budget is used up (3 of 3)";
    late_end.u.end.cause = "rank 3 on b failed";
    begin(0);
    START;
    CONNECTED(10);
    order(20, late_end);
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 END -> END_ACK, exit 7 | ended\n",
             "who comes after the end gets its status");
    is_str(m.text,
           "job job had ended before this node came (the restart budget is used up (3 of 3)); another --rdzv-id is "
           "another job",
           "in words that say what happened, and what to do");
    begin(0);
    START;
    CONNECTED(10);
    order(15, park("1 of 2"));
    order(20, late_end);
    is_str(m.text, "the restart budget is used up (3 of 3): rank 3 on b failed",
           "who waited is told how it ended, and why");
}

static void test_host_is_told(void)
{
    running(0, 3);
    LOST(1000);
    tenant_over(1005);
    CLOSED(1006, STOPPED);
    story_is("1.005 tenant: ROUND_OVER -> tenants ROUND_OVER, stop 9 in 0 s, fenced | stopping\n",
             "the host of the store learns from another node that its round is over, and passes it on");
}

/* What the workers hold is copied until the shell says that it is over, but not beyond the limit of silence. */
static void test_emergency_first(void)
{
    struct msg over = {.type = MSG_CKPT_CAPTURE,
                       .u.ckpt_capture = {.number = 1, .coord = 9, .what = EMERGENCY_CKPT_OVER}};
    struct member_stand stand = {.number = 1, .coord = 9, .steps = "", .why = ""}, ends = stand;
    ends.ends = true;
    for (int how = 0; how < 3; how++) {
        running(0, 3);
        AT(1000, "stand", .type = MEMBER_EV_STAND, .stand = &stand);
        if (how == 2)
            order(1001, over);
        LOST(1002);
        tenant_over(1005);
        if (how == 0)
            AT(1800, "stand", .type = MEMBER_EV_STAND, .stand = &ends);
        until(6000);
        len = drop_lines("time -> disconnect |");
        len = drop_lines("time -> connect |");
        story_is(how == 0   ? "1.000 stand -> EMERGENCY_STATE | running\n"
                              "1.002 link closed -> words lost | running\n"
                              "1.005 tenant: ROUND_OVER -> tenants ROUND_OVER | running\n"
                              "1.800 stand -> stop 9 in 0 s, fenced | stopping\n"
                 : how == 1 ? "1.000 stand -> EMERGENCY_STATE | running\n"
                              "1.002 link closed -> words lost | running\n"
                              "1.005 tenant: ROUND_OVER -> tenants ROUND_OVER | running\n"
                              "5.010 time -> stop 9 in 0 s, fenced | stopping\n"
                            : "1.000 stand -> EMERGENCY_STATE | running\n"
                              "1.001 CKPT_CAPTURE -> words | running\n"
                              "1.005 tenant: ROUND_OVER -> tenants ROUND_OVER, stop 9 in 0 s, fenced | stopping\n",
                 how == 0   ? "a round that is over while an emergency checkpoint is copied: these first"
                 : how == 1 ? "an emergency checkpoint that never ends: until the others may have the ranks"
                            : "an emergency checkpoint that is over is not waited for");
    }
}

static void test_told_with_link(void)
{
    running(0, 3);
    tenant_over(1005);
    order(1010, stop(1));
    story_is("1.005 tenant: ROUND_OVER -> tenants ROUND_OVER | running\n"
             "1.010 STOP -> tenants ROUND_OVER, say \"stopping: \", stop 15 in 30 s | stopping\n",
             "with a link, STOP is waited for");
}

static void test_no_knock(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, world(1, 1, 2));
    AT(30, "knock failed", .type = MEMBER_EV_LEASE_FAILED, .refused = true, .text = "refused");
    answered(1000, 5000, false);
    until(5050);
    order(5100, stop(1));
    len = drop_lines("time -> knock |");
    len = drop_lines("time -> unknock |");
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 WORLD -> knock | starting\n"
             "5.020 time -> unknock, LEASE_FAILED | joining\n"
             "5.100 STOP -> STOPPED | joining\n",
             "the store cannot be reached: a finding before any worker runs");
}

static void test_stop_unknown(void)
{
    running(1, 2);
    order(1000, stop(4));
    story_is("1.000 STOP -> STOPPED | running\n", "STOP of a round that never came here is answered");
}

/* Ranks that there are not would end the workers' start, if not this process. */
static void test_other_ranks(void)
{
    struct msg w = world(1, 1, 2);
    begin(0);
    START;
    CONNECTED(10);
    w.u.world.world_size = w.u.world.role_world_size = 3;
    order(20, w);
    ok(strstr(text, "WORLD -> disconnect") != NULL, "an order for ranks that this node's workers do not fit in");
    is_str(m.trouble, "an order for ranks 2 to 3 of 3: this node has 2 workers", "is not obeyed, and why is said");
    is_num(m.round.number, 0, "that round never was");
}

static void test_lower_number(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, world(5, 0, 1));
    CLOSED(30, SUCCESS);
    order(40, world(4, 0, 1));
    order(50, world(5, 0, 1));
    order(60, world(6, 0, 1));
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 WORLD -> start | starting\n"
             "0.030 attempt closed -> SUCCEEDED | finishing\n"
             "0.060 WORLD -> start | starting\n",
             "never back to a lower number");
}

static void test_late_order(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, park(""));
    late(9000, world(1, 0, 1));
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 WAIT -> say \"\" | parked\n"
             "9.000 WORLD -> disconnect | connecting\n",
             "a WORLD that was on its way for longer than the limit may be somebody else's by now");
}

static void test_refused(void)
{
    begin(0);
    START;
    CONNECTED(10);
    order(20, refused(true));
    CONNECTED(40);
    order(50, refused(false));
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "0.020 REFUSED -> disconnect, say \"another minimum; tries again for 30 s\" | connecting\n"
             "0.029 time -> connect | connecting\n"
             "0.040 connected -> HELLO | joining\n"
             "0.050 REFUSED -> disconnect, exit 78 | ended\n",
             "refused for now: tries again; refused for good: its status");

    begin(0);
    START;
    for (unsigned t = 10; m.place != MEMBER_ENDED; t += 500) {
        len = 0;
        if (m.link == MEMBER_LINK_TRYING) {
            CONNECTED(t);
            order(t + 1, refused(true));
        } else {
            until(t);
        }
    }
    len = keep_last();
    story_is("30.000 time -> exit 78 | ended\n", "refused until the join time-out: the status of the refusal");
    is_str(m.text, "refused until the end of the time-out: another minimum", "and its reason");
}

static void test_not_a_coordinator(void)
{
    begin(0);
    START;
    CONNECTED(10);
    until(5500);
    story_is("0.000 start -> connect | connecting\n"
             "0.010 connected -> HELLO | joining\n"
             "5.010 time -> disconnect | connecting\n"
             "5.019 time -> connect | connecting\n",
             "connected, but no answer");
}

static void test_unable(void)
{
    running(1, 2);
    AT(1000, "attempt closed", .type = MEMBER_EV_CLOSED, .result = MEMBER_UNABLE, .status = 66, .text = "no such file");
    story_is("1.000 attempt closed -> unknock, STOPPED, LEAVING, exit 66 | ended\n",
             "workers cannot be started here: this node leaves, with its own status");
}

static void test_hosting(void)
{
    begin(1);
    START;
    CONNECTED(10);
    order(20, world(1, 0, 2));
    STARTED(30);
    len = 0;
    len = 0;
    until(30000);
    len = drop_lines("connect");
    story_is("", "the node that hosts the coordinator is never cut off from it");
}

static void test_restart_unnoticed(void)
{
    running(1, 2);
    LOST(1000);
    CONNECTED(1200);
    order(1201, (struct msg){.type = MSG_KEEP, .u.keep.text = ""});
    story_is("1.009 time -> connect | running\n"
             "1.200 connected -> HELLO | running\n",
             "a coordinator that was restarted says KEEP: nothing happens");
}

static bool says_latest(void)
{
    struct msg hello;
    member_message(&m, MSG_HELLO, now, &hello);
    return hello.u.hello.latest;
}

/* The coordinator's end of the connection is closed before it has ordered anything behind this round.  Not so if it was
 * not heard for long, or if a coordinator that never answered closed it. */
static void test_latest(void)
{
    running(1, 2);
    answered(1000, 2000, false);
    LOST(2100);
    FAILED(2150, 1);
    CLOSED(2200, FAILED);
    ok(says_latest(), "its workers were there");
    until(2900);
    CONNECTED(3000);
    LOST(3100);
    ok(!says_latest(), "whoever closed this connection may have heard it, and formed a round");

    running(1, 2);
    answered(1000, 2000, false);
    FAILED(2050, 1);
    CLOSED(2060, FAILED);
    order(2070, stop(1));
    LOST(2100);
    ok(says_latest(), "they had ended, and nobody had said what comes then");

    running(1, 2);
    answered(1000, 2000, false);
    FAILED(2050, 1);
    CLOSED(2060, FAILED);
    order(2070, park("1 of 2"));
    LOST(2100);
    ok(!says_latest(), "another round is to come");

    running(1, 2);
    answered(1000, 2000, false);
    CLOSED(2050, STOPPED);
    order(2070, open_store(2));
    LOST(2100);
    ok(!says_latest(), "the store of another one is opened");

    running(1, 2);
    answered(1000, 2000, false);
    now = EL_MS(30000);
    step((struct member_event){.type = MEMBER_EV_LINK_CLOSED, .text = "closed"}, "link closed");
    ok(!says_latest(), "it stood still, and may have been given up before");
}

int main(void)
{
    test_latest();
    test_first_round();
    test_rank_0();
    test_never();
    test_lost_for_good();
    test_failed_while_away();
    test_failed_then_back();
    test_success_and_away();
    test_cut_off();
    test_ride_through();
    test_half_open();
    test_host_stands_still();
    test_refused_alone();
    test_view();
    test_host_asks();
    test_stands_still_for_good();
    test_guard_was_first();
    test_late_knock();
    test_latecomer();
    test_host_is_told();
    test_emergency_first();
    test_told_with_link();
    test_no_knock();
    test_stop_unknown();
    test_other_ranks();
    test_lower_number();
    test_late_order();
    test_refused();
    test_not_a_coordinator();
    test_unable();
    test_hosting();
    test_restart_unnoticed();
    return done();
}
