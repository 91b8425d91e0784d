/* Stories of the coordinator core: what follows from a health check, for who is slow, who was excluded, who comes while
 * it runs, and what a coordinator that stands still or is lost makes of it. */
#include "unit/probe_rounds_stage.h"

/* A node's own checks are well, and its processor did so much. */
static void speed(unsigned ms, char node, unsigned cpu)
{
    char lines[160];
    story_until(&s, ms);
    const struct msg_probe *o = &s.node[node - 'a'].last.u.probe;
    struct msg m = {.type = MSG_PROBE_RESULT};
    snprintf(lines, sizeof lines, "{\"t\":\"m\",\"name\":\"%s\",\"n\":1,\"median\":%u}\n",
             metric_info(METRIC_HOST_MEM)->name, cpu);
    m.u.probe_result = (struct msg_probe_result){.number = o->number,
                                                 .coord = o->coord,
                                                 .probe = o->probe,
                                                 .stage = o->stage,
                                                 .rail = -1,
                                                 .text = "",
                                                 .lines = lines};
    story_tell(&s, node, &m);
}

/* To the end of the check that runs, all being well. */
static void rest(unsigned ms)
{
    for (unsigned i = 0; s.r->state == RDZV_PROBING && i < 40; i++)
        for (char node = 'a'; node <= 'h' && s.r->state == RDZV_PROBING; node++)
            if (s.node[node - 'a'].conn && s.node[node - 'a'].last.type == MSG_PROBE &&
                s.node[node - 'a'].last.u.probe.kind != HEALTH_CHECK_REST)
                P(ms + i, node);
}

static void forget_text(void)
{
    s.len = 0;
    s.text[0] = 0;
}

/* Four nodes, d has a tenth of the others' processor: does it leave? */
static const char *slow_one(unsigned min, enum health_on_straggler what, bool probe_only)
{
    static char text[256];
    story_init(&s, min, 4);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.on_straggler = what;
    s.conf.set.probe_only = probe_only;
    s.conf.own_instance = 1;
    story_begin(&s);
    for (unsigned i = 0; i < 4; i++)
        J(i, (char)('a' + i));
    for (unsigned i = 0; i < 3; i++)
        speed(10, (char)('a' + i), 1000);
    speed(10, 'd', 100);
    rest(20);
    const char *last = strstr(s.text, "a is ");
    snprintf(text, sizeof text, "%.250s", last ? last : s.text);
    text[strcspn(text, "\n")] = 0;
    forget_text();
    story_end(&s);
    return text;
}

static void test_slow(void)
{
    is_str(slow_one(3, HEALTH_STRAGGLER_WARN, false),
           "a is good; a: open 1; b is good; b: park; c is good; c: park; d is slow; d: park; a: open 1",
           "a slow node is told, and stays");
    is_str(slow_one(3, HEALTH_STRAGGLER_EXCLUDE, false),
           "a is good; a: park; b is good; b: park; c is good; c: park; d is slow; d: end 72",
           "--exclude-straggler: it leaves");
    is_str(slow_one(4, HEALTH_STRAGGLER_EXCLUDE, false),
           "a is good; a: open 1; b is good; b: park; c is good; c: park; d is slow; d: park; a: open 1",
           "... unless too few would be left");
    is_str(slow_one(4, HEALTH_STRAGGLER_WARN, true),
           "a is good; a: end 0; b is good; b: end 0; c is good; c: end 0; d is slow; d: end 0",
           "elrun probe: slow is no failure");
    is_str(slow_one(4, HEALTH_STRAGGLER_EXCLUDE, true),
           "a is good; a: end 1; b is good; b: end 0; c is good; c: end 0; d is slow; d: end 1",
           "... unless it is to be");
}

/* Four nodes: the last ones of them have a tenth of the others' processor. */
static void fast_and_slow(unsigned slow, bool probe_only, bool strict)
{
    story_init(&s, 4, 4);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.probe_only = probe_only;
    s.conf.set.probe_strict = strict;
    s.conf.set.on_undecided = HEALTH_UNDECIDED_STOP;
    s.conf.own_instance = 1;
    story_begin(&s);
    for (unsigned i = 0; i < 4; i++)
        J(i, (char)('a' + i));
    for (unsigned i = 0; i < 4; i++)
        speed(10, (char)('a' + i), i < 4 - slow ? 1000 : 100);
    rest(20);
    forget_text();
    rdzv_order(s.r, s.node[0].member, s.now, &s.node[0].last);
}

static void test_two_kinds(void)
{
    fast_and_slow(2, true, false);
    is_num(s.node[0].last.u.end.status, 3, "two kinds of nodes: nobody is called slow, and the whole is undecided");
    ok(strstr(s.node[0].last.u.end.text, "; two kinds of nodes by their speed"), "... and says so");
    story_end(&s);
    fast_and_slow(2, false, false);
    is_num(s.node[0].last.u.end.status, 75, "... which --on-undecided=stop is for");
    story_end(&s);
    fast_and_slow(1, true, false);
    is_num(s.node[0].last.u.end.status, 0, "one that is slow is a warning");
    story_end(&s);
    fast_and_slow(1, true, true);
    is_num(s.node[0].last.u.end.status, 3, "... which is 3 with --strict");
    story_end(&s);
}

/* Whenever a check is over somebody has come who was not in it. */
static void test_tries(void)
{
    begin(2, 8, 2, HEALTH_START);
    U(3500);
    for (unsigned i = 0; i < 6 && s.r->state == RDZV_PROBING; i++) {
        J(4000 + 4000 * i, (char)('c' + i));
        rest(4100 + 4000 * i);
        U(4000 + 4000 * i + 3900);
    }
    is_num(s.r->health.probe, 3, "three checks at most keep a round from starting");
    is_num(s.r->state, RDZV_OPENING, "then it does");
    forget_text();
    story_end(&s);
}

static void run_round(unsigned ms)
{
    SAY(ms, 'a', STORE_READY);
    ALL(ms + 1, "ab", STARTED);
}

/* The first round was the one of an earlier coordinator. */
static void test_start_is_once(void)
{
    begin(2, 2, 2, HEALTH_START);
    s.quiet = true;
    rest(10);
    run_round(100);
    CRASH(20000, true);
    R(20100, 'a', RUNNING);
    R(20110, 'b', RUNNING);
    s.quiet = false;
    FAIL(100000, 'a', 3);
    ALL(100010, "ab", STOPPED);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "100.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "100.010 b STOPPED -> a: open 2\n",
             "--health-check=start: a coordinator that has taken over does not begin anew");
}

/* What is excluded leaves its host behind: a new agent there is not wanted while others are enough. */
static void test_host_aside(void)
{
    begin(2, 3, 3, HEALTH_START);
    s.quiet = true;
    PF(10, 'a');
    EACH(10, "bc");
    rest(20);
    s.quiet = false;
    J(1000, 'a');
    U(4100);
    rest(4200);
    U(8000);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "1.000 a joins -> a: park\n"
             "4.000 time -> a: checks; b: checks; c: checks\n"
             "4.200 c PROBE_RESULT -> a: rests; b: from c; c: to b\n"
             "4.201 c PROBE_RESULT -> a: to b; b: from a; c: rests\n"
             "4.202 b PROBE_RESULT -> a: after; b: after; c: after\n"
             "4.203 b PROBE_RESULT -> a is good; a: park; b is good; b: open 1; c is good; c: park; b: open 1\n"
             "6.000 time -> close\n",
             "a new agent on a host that was found bad waits while others are enough");
}

/* d fails with everybody, and says goodbye when that is known. */
static void condemn_and_go(bool probe_only)
{
    story_init(&s, 2, 4);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.probe_only = probe_only;
    s.conf.own_instance = 1;
    story_begin(&s);
    for (unsigned i = 0; i < 4; i++)
        J(i, (char)('a' + i));
    s.quiet = true;
    EACH(10, "abcd");
    for (unsigned i = 0; i < 40 && s.node[0].last.u.probe.kind != HEALTH_CHECK_AFTER; i++)
        for (char node = 'a'; node <= 'd'; node++) {
            const struct msg_probe *o = &s.node[node - 'a'].last.u.probe;
            if (o->kind == HEALTH_CHECK_PAIR)
                story_probed(&s, 20 + i, node,
                             node == 'd' || o->peer[0] == 'd' ? HEALTH_CHECK_FAILED : HEALTH_CHECK_OK);
        }
    s.quiet = false;
    SAY(100, 'd', LEAVING);
    EACH(110, "abc");
}

static void test_proved_and_gone(void)
{
    condemn_and_go(false);
    ok(rdzv_is_aside(s.r, "d"), "who is bad and says goodbye before it is sent away leaves its host behind");
    s.text[0] = 0;
    s.len = 0;
    story_end(&s);
    condemn_and_go(true);
    rdzv_order(s.r, s.node[0].member, s.now, &s.node[0].last);
    is_num(s.node[0].last.u.end.status, 1, "elrun probe: it is still bad when it has gone");
    s.text[0] = 0;
    s.len = 0;
    story_end(&s);
}

/* --on-bad=park: it stays, and is taken when another one is lost and too few would be left. */
static void test_park(void)
{
    story_init(&s, 2, 3);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.on_bad = HEALTH_BAD_PARK;
    story_begin(&s);
    for (unsigned i = 0; i < 3; i++)
        J(i, (char)('a' + i));
    PF(10, 'a');
    EACH(10, "bc");
    rest(20);
    U(3100);
    story_closed(&s, 3200, 'c');
    U(4000);
    story_is(
        "0.000 a joins -> a: park\n"
        "0.001 b joins -> b: park\n"
        "0.002 c joins -> a: checks; b: checks; c: checks\n"
        "0.010 c PROBE_RESULT -> a: rests; b: from c; c: to b\n"
        "0.020 c PROBE_RESULT -> a: after; b: after; c: after\n"
        "0.021 c PROBE_RESULT -> a is bad; a: park; b is good; b: park; c is good; c: park\n"
        "3.002 time -> b: open 1\n"
        "3.300 time -> b: open 2\n",
        "--on-bad=park: it is in no round while others are enough, and better than none when one of those is lost");
}

/* A quarantine is for those whose worker has failed: it does not make this one any better. */
static void test_park_quarantine(void)
{
    story_init(&s, 2, 3);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.on_bad = HEALTH_BAD_PARK;
    s.conf.set.quarantine_ms = 5000;
    story_begin(&s);
    for (unsigned i = 0; i < 3; i++)
        J(i, (char)('a' + i));
    PF(10, 'a');
    EACH(10, "bc");
    rest(20);
    U(3100);
    SAY(3200, 'b', STORE_READY);
    U(20000);
    ok(rdzv_is_aside(s.r, "a"), "--on-bad=park with --quarantine: set aside longer than that");
    CRASH(21000, true);
    ok(rdzv_is_aside(s.r, "a") && rdzv_aside_deadline(s.r) == EL_NEVER, "… also by a coordinator that starts again");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: rests; b: from c; c: to b\n"
             "0.020 c PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.021 c PROBE_RESULT -> a is bad; a: park; b is good; b: park; c is good; c: park\n"
             "3.002 time -> b: open 1\n"
             "3.200 b STORE_READY -> b: world 1, 0 of 2; c: world 1, 1 of 2\n",
             "no round is stopped to take it in");
}

/* … and leaves where no more hosts can be set aside. */
static void test_park_full(void)
{
    char host[16];
    story_init(&s, 2, 3);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_quick = 1;
    s.conf.set.on_bad = HEALTH_BAD_PARK;
    story_begin(&s);
    for (unsigned i = 0; i < RDZV_ASIDE_MAX; i++) {
        snprintf(host, sizeof host, "before%u", i);
        rdzv_keep_aside(s.r, host, "bad", EL_NEVER);
    }
    for (unsigned i = 0; i < 3; i++)
        J(i, (char)('a' + i));
    PF(10, 'a');
    EACH(10, "bc");
    rest(20);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: rests; b: from c; c: to b\n"
             "0.020 c PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.021 c PROBE_RESULT -> a is bad; a: end 72; b is good; b: park; c is good; c: park\n",
             "--on-bad=park: it leaves where as many hosts are set aside as can be");
}

static void test_excluded_returns(void)
{
    begin(2, 3, 3, HEALTH_START);
    s.quiet = true;
    PF(10, 'a');
    EACH(10, "bc");
    s.quiet = false;
    rest(20);
    story_closed(&s, 300, 'a');
    U(2000);
    R(2100, 'a', IDLE);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.020 c PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.021 c PROBE_RESULT -> a is bad; a: end 72; b is good; b: park; c is good; c: park\n"
             "2.100 a returns -> a: end 72\n",
             "who was excluded and has not heard of it is told when it is back");
}

static void test_join_timeout(void)
{
    begin(2, 2, 2, HEALTH_START);
    PF(10, 'a');
    P(50000, 'b');
    rest(50100);
    U(700000);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "50.000 b PROBE_RESULT -> a: after; b: after\n"
             "50.100 b PROBE_RESULT -> a is bad; a: end 72; b is undecided; b: park\n"
             "51.100 time -> a: end 72\n"
             "650.099 time -> a: end 69; b: end 69\n"
             "655.099 time -> over\n",
             "the time to wait for nodes goes on, but for what the check took");
}

/* Both connections are gone when the coordinator wakes: who knows whose patience was at its end? */
static void test_closed_meanwhile(void)
{
    begin(2, 2, 2, HEALTH_START);
    EACH(10, "ab");
    P(20, 'a');
    PAUSE(21000);
    story_closed(&s, 21150, 'b');
    R(28000, 'b', IDLE);
    P(28100, 'b');
    EACH(28200, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "28.000 b returns -> b: to a\n"
             "28.100 b PROBE_RESULT -> a: after; b: after\n"
             "28.200 b PROBE_RESULT -> a is good; a: open 1; b is good; b: park; a: open 1\n",
             "connections that are closed while the coordinator stands still: nobody has left");
}

static void test_pause_is_over(void)
{
    begin(2, 3, 2, HEALTH_START);
    U(3100);
    s.quiet = true;
    PAUSE(24000);
    R(24200, 'a', IDLE);
    R(24200, 'b', IDLE);
    J(24250, 'c');
    for (unsigned i = 0; i < 3; i++)
        EACH(24300 + i, "ab");
    s.quiet = false;
    U(24500);
    EACH(24600, "abc");
    story_closed(&s, 25000, 'b');
    U(30000);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "3.001 time -> a: checks; b: checks\n"
             "24.600 c PROBE_RESULT -> a: from b; b: to a; c: rests\n"
             "29.000 time -> a: from c; c: to a\n",
             "in the next check who closes has left");
}

static void test_gap(void)
{
    begin(2, 2, 2, HEALTH_START);
    P(10, 'a');
    PAUSE(150000);
    R(150110, 'a', IDLE);
    R(150120, 'b', IDLE);
    EACH(150200, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "150.110 a returns -> close; a: checks\n"
             "150.120 b returns -> close; b: checks\n"
             "150.200 b PROBE_RESULT -> a: from b; b: to a\n",
             "the time that the coordinator stood still is not the nodes'");
}

static void test_addresses(void)
{
    begin(2, 2, 2, HEALTH_START);
    is_str(s.node[0].last.u.probe.local, "10.0.0.1", "a node is told its address as the others know it");
    forget_text();
    story_end(&s);
}

int main(void)
{
    test_slow();
    test_two_kinds();
    test_tries();
    test_start_is_once();
    test_host_aside();
    test_proved_and_gone();
    test_park();
    test_park_quarantine();
    test_park_full();
    test_excluded_returns();
    test_join_timeout();
    test_closed_meanwhile();
    test_pause_is_over();
    test_gap();
    test_addresses();
    return done();
}
