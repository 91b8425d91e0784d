/* The node's side of failures: what is told of them and when, also after the link was lost; and its idea of the
 * coordinator's clock. */
#include "unit/member_stage.h"

static void closed_with_incidents(unsigned ms)
{
    AT(ms, "attempt closed", .type = MEMBER_EV_CLOSED, .result = MEMBER_FAILED, .incidents = true, .ranks = "0,2",
       .missing = "rank 3");
}

static void test_incidents(void)
{
    struct msg msg;
    running(1, 2);
    FAILED(1000, 3);
    closed_with_incidents(1008);
    story_is("1.000 worker failed -> WORKER_FAILED | stopping\n"
             "1.008 attempt closed -> unknock, incidents, STOPPED | joining\n",
             "what is known of failures goes before STOPPED");
    member_message(&m, MSG_STOPPED, now, &msg);
    ok(msg.u.stopped.ranks && !strcmp(msg.u.stopped.ranks, "0,2") && !strcmp(msg.u.stopped.missing, "rank 3"),
       "which says whom elrun stopped, and who had not come");
    order(1020, stop(7));
    member_message(&m, MSG_STOPPED, now, &msg);
    ok(msg.u.stopped.number == 7 && !msg.u.stopped.ranks, "but not of another round");
}

/* Whom elrun stops for one elsewhere, whose time in a collective ran out, is looked at more closely. */
static void test_late(void)
{
    struct msg msg = stop(1);
    running(0, 2);
    ok(!m.late, "nothing is known");
    msg.u.stop.late = true;
    order(1000, msg);
    ok(m.late && m.stopping, "why it is stopped is kept for the shell");
    AT(1010, "attempt closed", .type = MEMBER_EV_CLOSED, .result = MEMBER_STOPPED);
    running(0, 2);
    ok(!m.late, "the next attempt knows nothing of it");
    FAILED(1000, 3);
    m.incident.late = true;
    member_message(&m, MSG_WORKER_FAILED, now, &msg);
    ok(msg.u.worker_failed.late, "one's own is told");
}

/* Without a link they are kept: HELLO says that this node is not done, so that its round is not closed before. */
static void test_emergency_captured(void)
{
    struct msg msg;
    running(1, 2);
    LOST(1000);
    FAILED(1005, 3);
    closed_with_incidents(1008);
    CONNECTED(1020);
    member_message(&m, MSG_HELLO, now, &msg);
    is_num(msg.u.hello.phase, MSG_PHASE_STOPPING, "HELLO: it is still stopping");
    LOST(1021);
    CONNECTED(1060);
    len = drop_lines("time -> connect |");
    story_is("1.008 attempt closed -> unknock | connecting\n"
             "1.020 connected -> HELLO, WORKER_FAILED, incidents, STOPPED | joining\n"
             "1.060 connected -> HELLO, WORKER_FAILED, incidents, STOPPED | joining\n",
             "failures are told as soon as there is a link, and again on the next");
}

/* A coordinator that has heard of a failure may die before the round is closed: the next one must hear of it too. */
static void test_told_anew(void)
{
    struct msg msg;
    running(1, 2);
    FAILED(1000, 3);
    LOST(1004);
    CONNECTED(1040);
    closed_with_incidents(1044);
    order(1050, (struct msg){.type = MSG_KEEP, .u.keep = {.text = ""}});
    LOST(1060);
    CONNECTED(1100);
    member_message(&m, MSG_HELLO, now, &msg);
    is_num(msg.u.hello.phase, MSG_PHASE_STOPPING, "HELLO: its STOPPED follows");
    order(1110, park("1 of 2"));
    member_message(&m, MSG_HELLO, now, &msg);
    is_num(msg.u.hello.phase, MSG_PHASE_IDLE, "parked: the round is closed");
    LOST(1120);
    CONNECTED(1160);
    len = drop_lines("time -> connect |");
    story_is("1.000 worker failed -> WORKER_FAILED | stopping\n"
             "1.040 connected -> HELLO, WORKER_FAILED | stopping\n"
             "1.044 attempt closed -> unknock, incidents, STOPPED | joining\n"
             "1.100 connected -> HELLO, WORKER_FAILED, incidents, STOPPED | joining\n"
             "1.110 WAIT -> say \"1 of 2\" | parked\n"
             "1.160 connected -> HELLO | joining\n",
             "failures are told on each connection until their round is closed");
}

static void beat(unsigned ms, unsigned sent_ms, uint64_t own)
{
    struct msg msg = {.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = EL_MS(sent_ms), .own = own}};
    until(ms);
    step((struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, "reply");
}

static void clock_is(uint64_t at, uint64_t time, uint64_t error, const char *what)
{
    uint64_t t, e;
    member_on_clock(&m, at, now, &t, &e);
    ok(t == time && e == error, what);
    if (t != time || e != error)
        printf("# got: %llu, %llu\n", (unsigned long long)t, (unsigned long long)e);
}

/* The coordinator's clock is an hour ahead. */
static void test_clock(void)
{
    const uint64_t hour = EL_SEC(3600);
    running(1, 2);
    uint64_t t, e;
    member_on_clock(&m, now, now, &t, &e);
    ok(e >= MSG_CLOCK_UNKNOWN, "no answer yet: nothing is known");
    beat(110, 100, hour + EL_MS(105));
    clock_is(EL_MS(108), hour + EL_MS(108), 5001, "half the way there and back");
    beat(204, 200, hour + EL_MS(203));
    clock_is(EL_MS(200), hour + EL_MS(201), 2001, "a quicker answer is better");
    beat(310, 300, hour + EL_MS(305));
    clock_is(EL_MS(200), hour + EL_MS(201), 2001 + 10, "a slower one changes nothing; clocks drift apart");
    now = EL_SEC(100);
    clock_is(EL_MS(200), hour + EL_MS(201), 2001 + 9979, "by so much in a hundred seconds");
    struct msg msg = {.type = MSG_HEARTBEAT_ACK,
                      .u.heartbeat = {.time = now - EL_MS(10), .own = hour + now - EL_MS(5)}};
    step((struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, "reply");
    clock_is(EL_MS(200), hour + EL_MS(200), 5001, "until a slow answer is the better one");
    msg.u.heartbeat.own = 7;
    msg.u.heartbeat.time = now - EL_MS(50);
    step((struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, "reply");
    clock_is(now, EL_MS(25) + 7, 25001, "another host's coordinator: its clock, at once");
    m.conf.hosts_coordinator = true;
    clock_is(now, now, 0, "the coordinator in this process: the same clock");
}

/* Soon after it is connected the clocks are compared a few times; then at the usual pace. */
static void test_burst(void)
{
    unsigned beats = 0, later = 0;
    running(1, 2);
    for (unsigned ms = 20; ms < 5000; ms++) {
        struct member_actions out;
        now = EL_MS(ms);
        if (ms % 1000 == 0) {
            struct msg msg = {.type = MSG_HEARTBEAT_ACK, .u.heartbeat = {.time = now, .own = now}};
            member_step(&m, &(struct member_event){.type = MEMBER_EV_MSG, .msg = &msg}, now, &out);
        }
        if (member_deadline(&m) > now)
            continue;
        member_step(&m, &(struct member_event){.type = MEMBER_EV_TIMEOUT}, now, &out);
        for (unsigned i = 0; i < out.n; i++)
            if (out.v[i].type == MEMBER_DO_SEND && out.v[i].what == MSG_HEARTBEAT)
                (*(ms < 300 ? &beats : &later))++;
    }
    is_num(beats, MEMBER_BURST, "a burst");
    is_num(later, 4, "and one a second");
}

int main(void)
{
    test_incidents();
    test_late();
    test_emergency_captured();
    test_told_anew();
    test_clock();
    test_burst();
    return done();
}
