/* Stories of the coordinator core, planned changes, commands, refusals, and a coordinator that is restarted: expected
 * traces with virtual times. */
#include "sim/words.h"

static void test_scale_up(void)
{
    many(&s);
    J(5000, 'b');
    J(5500, 'c');
    J(6000, 'd');
    U(7100);
    SAY(7110, 'a', STOPPED);
    SAY(7111, 'a', STORE_READY);
    story_is("5.000 b joins -> b: park\n"
             "5.500 c joins -> c: park\n"
             "6.000 d joins -> d: park\n"
             "7.000 time -> a: stop 1\n"
             "7.110 a STOPPED -> a: open 2\n"
             "7.111 a STORE_READY -> a: world 2, 0 of 4; b: world 2, 1 of 4; c: world 2, 2 of 4; d: world 2, 3 of 4\n",
             "a storm of newcomers costs one restart, a second after the last");
}

static void test_stable_window(void)
{
    many(&s);
    s.r->conf.set.stable_window_ms = 20000;
    J(5000, 'b');
    U(30000);
    story_is("5.000 b joins -> b: park\n"
             "23.500 time -> a: stop 1\n",
             "--stable-window: a new round lives so long before it grows");
}

static void test_rank_taken(void)
{
    story_init(&s, 1, 2);
    s.node[0].node_rank = s.node[1].node_rank = 1;
    story_begin(&s);
    J(0, 'a');
    J(10, 'b');
    story_closed(&s, 20, 'a');
    J(500, 'b');
    story_is("0.000 a joins -> a: park\n"
             "0.010 b joins -> refused: b was started with --node-rank=1, which a (node rank 1) has, and that one "
             "is alive: give each node a rank of its own\n"
             "0.500 b joins -> b: park\n",
             "another instance with the same node rank is refused while the older is alive");
}

static void test_replaced_connection(void)
{
    pair(&s, 2, 2);
    R(5000, 'b', RUNNING);
    s.node[1].connection -= 2;
    R(5001, 'b', RUNNING);
    story_is("5.000 b returns -> close; b: world 1, 1 of 2\n"
             "5.001 b returns -> refused: b: connection 1 is older than 2\n",
             "same instance, higher connection counter: the new connection replaces the old at once");
}

static void test_waits(void)
{
    story_init(&s, 1, 3);
    s.journal_late = true;
    story_begin(&s);
    J(0, 'a');
    J(100, 'b');
    WAIT;
    U(3200);
    WAIT;
    U(8200);
    WAIT;
    SAY(8300, 'b', STORE_READY);
    WAIT;
    JOURNALED(8400, true);
    J(9000, 'c');
    WAIT;
    U(10100);
    WAIT;
    U(70100);
    WAIT;
    story_is("0.000 a joins -> a: park\n"
             "0.100 b joins -> b: park\n"
             "  # 2 of 3 nodes are here: starts with 2 in 3.0 s unless more come\n"
             "3.100 time -> a: open 1\n"
             "  # a opens the store of round 1\n"
             "8.100 time -> a: park; b: open 2\n"
             "  # b opens the store of round 2\n"
             "  # the journal records round 2\n"
             "8.400 journal written -> b: world 2, 0 of 1\n"
             "9.000 c joins -> c: park\n"
             "  # round 2 runs on 1 node\n"
             "10.000 time -> b: stop 2\n"
             "  # round 2 stops, 1 of 1 nodes still do: more nodes are here\n"
             "70.000 time -> close b; c: open 3\n"
             "  # c opens the store of round 3\n",
             "each wait has a deadline of its own, and says what it waits for");
}

static void test_below_min(void)
{
    trio(&s);
    s.r->min = 3;
    story_closed(&s, 5000, 'c');
    ALL(5200, "ab", STOPPED);
    WAIT;
    J(8000, 'c');
    story_is("5.100 time -> a: stop 1; b: stop 1\n"
             "5.200 b STOPPED -> a: park; b: park\n"
             "  # 2 of 4 nodes are here: at least 3 are needed\n"
             "8.000 c joins -> c: park; a: open 2\n",
             "below the minimum everybody stops and waits, with a reason");
}

static void test_join_timeout(void)
{
    story_init(&s, 2, 2);
    s.conf.set.join_timeout_ms = 20000;
    story_begin(&s);
    J(0, 'a');
    U(20100);
    SAY(20101, 'a', END_ACK);
    story_is("0.000 a joins -> a: park\n"
             "20.000 time -> a: end 69\n"
             "20.101 a END_ACK -> over\n",
             "below the minimum until the join time-out: status 69");
}

static void test_fruitless(void)
{
    pair(&s, 1, 2);
    s.r->budget.max_fruitless = 1;
    story_closed(&s, 5000, 'b');
    SAY(5200, 'a', STOPPED);
    SAY(5201, 'a', STORE_READY);
    SAY(6000, 'a', LEASE_FAILED);
    SAY(6001, 'a', STOPPED);
    story_is("5.100 time -> a: stop 1\n"
             "5.200 a STOPPED -> a: open 2\n"
             "5.201 a STORE_READY -> a: world 2, 0 of 1\n"
             "6.000 a LEASE_FAILED -> a: stop 2\n"
             "6.001 a STOPPED -> a: end 75\n",
             "rounds that bring nothing are bounded, even when they cost nothing");
}

static void test_scale_max(void)
{
    trio(&s);
    SCALE(5000, 1, 2);
    ALL(5001, "abc", STOPPED);
    SAY(5002, 'a', STORE_READY);
    SCALE(9000, 0, 3);
    U(9100);
    story_is("5.000 SCALE -> done: nodes 1:2; a: stop 1; b: stop 1; c: stop 1\n"
             "5.001 c STOPPED -> a: open 2\n"
             "5.002 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2; c: park\n"
             "9.000 SCALE -> done: nodes 1:3; a: stop 2; b: stop 2\n",
             "the maximum can change at run time, both ways");
}

static void test_drain(void)
{
    trio(&s);
    DRAIN(5000, "b");
    ALL(5001, "abc", STOPPED);
    SAY(5002, 'a', STORE_READY);
    DRAIN(6000, "x");
    SAY(6001, 'b', END_ACK);
    story_closed(&s, 6002, 'b');
    story_is("5.000 DRAIN -> done: b is drained; a: stop 1; b: stop 1; c: stop 1\n"
             "5.001 c STOPPED -> a: open 2\n"
             "5.002 a STORE_READY -> a: world 2, 0 of 2; b: end 75; c: world 2, 1 of 2\n"
             "6.000 DRAIN -> no: no node x in job job\n",
             "a drained node ends alone with 75, the others go on");
}

static void test_stop_job(void)
{
    pair(&s, 2, 2);
    VERB(5000, STOP_JOB);
    ALL(5001, "ab", STOPPED);
    VERB(5002, RESTART);
    story_is("5.000 STOP_JOB -> done: the job is stopped; a: stop 1; b: stop 1\n"
             "5.001 b STOPPED -> a: end 143; b: end 143\n"
             "5.002 RESTART -> no: the job has ended: stopped by command\n",
             "`elrun stop` ends the job once every worker has stopped");
}

static void test_restart_verb(void)
{
    pair(&s, 2, 2);
    VERB(5000, RESTART);
    ALL(5001, "ab", STOPPED);
    SAY(5002, 'a', STORE_READY);
    story_is("5.000 RESTART -> done: round 1 is restarted; a: stop 1; b: stop 1\n"
             "5.001 b STOPPED -> a: open 2\n"
             "5.002 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2\n",
             "`elrun restart` costs nothing");
}

static void test_mismatch(void)
{
    pair(&s, 2, 2);
    s.conf.set.min = 1;
    J(5000, 'c');
    story_is(
        "5.000 c joins -> refused: c was started with --nnodes=1:2, job job with --nnodes=2: give all its nodes the "
        "same\n",
        "another minimum is refused, with both values");
}

static const char *parked(char node)
{
    static char text[MSG_TEXT_MAX + 1];
    struct msg order;
    rdzv_order(s.r, s.node[node - 'a'].member, s.now, &order);
    snprintf(text, sizeof text, "%s", order.type == MSG_WAIT ? order.u.wait.text : "not parked");
    return text;
}

/* Who is not in the round is told what would bring it in. */
static void test_spare_is_told(void)
{
    pair(&s, 2, 2);
    J(5000, 'c');
    is_str(parked('c'),
           "round 1 runs on 2 nodes; this node waits as a spare: it comes in when a node is lost or leaves, or when "
           "elrun scale allows more than 2",
           "a spare: the round is full");
    story_end(&s);
    pair(&s, 2, 4);
    s.conf.set.unit = s.r->conf.set.unit = 2;
    J(5000, 'c');
    is_str(parked('c'),
           "round 1 runs on 2 nodes; this node waits as a spare: 1 more must come (--node-unit=2), or a node be lost",
           "a spare: the unit is not full");
    story_end(&s);
    pair(&s, 2, 4);
    J(5000, 'c');
    is_str(parked('c'),
           "round 1 runs on 2 nodes; this node waits as a spare until the round is stopped for it, in 1.0 s",
           "a spare that will be taken in");
    U(6000);
    is_str(parked('c'), "round 1 stops, 2 of 2 nodes still do: more nodes are here; this node waits for the next round",
           "while the round stops");
    story_end(&s);
}

static void test_coordinator_restart(void)
{
    pair(&s, 2, 2);
    CRASH(5000, true);
    R(5500, 'b', RUNNING);
    U(6000);
    WAIT;
    R(6100, 'a', RUNNING);
    U(12000);
    FAIL(12001, 'b', 1);
    ALL(12002, "ab", STOPPED);
    SAY(12003, 'a', STORE_READY);
    story_is("5.500 b returns -> b: hold\n"
             "  # the coordinator was restarted: 1 of 2 nodes of round 1 are heard\n"
             "6.100 a returns -> a: world 1, 0 of 2\n"
             "12.001 b WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "12.002 b STOPPED -> a: open 2\n"
             "12.003 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n",
             "the coordinator is lost and comes back: workers do not notice");
}

static void test_coordinator_restart_lost(void)
{
    trio(&s);
    CRASH(5000, true);
    R(5500, 'b', RUNNING);
    R(5600, 'a', RUNNING);
    J(5700, 'd');
    U(10100);
    ALL(10200, "ab", STOPPED);
    story_is("5.500 b returns -> b: hold\n"
             "5.600 a returns -> a: hold\n"
             "5.700 d joins -> d: park\n"
             "6.500 time -> a: hold; b: hold\n"
             "10.000 time -> a: stop 1; b: stop 1\n"
             "10.200 b STOPPED -> a: open 2\n",
             "a node that is not heard after the restart is lost, not before the limit");
}

/* A round of a alone, one of b alone; and a coordinator that knows neither. */
static void one_after_the_other(void)
{
    story_init(&s, 1, 1);
    s.quiet = true;
    story_begin(&s);
    J(0, 'a');
    SAY(10, 'a', STORE_READY);
    J(20, 'b');
    story_closed(&s, 1000, 'a');
    U(1200);
    SAY(1300, 'b', STORE_READY);
    s.quiet = false;
    CRASH(5000, false);
}

/* Whole, but not the last: the node that has been in it alone is back before the one that runs. */
static void test_coordinator_restart_old_round(void)
{
    one_after_the_other();
    R(5100, 'a', IDLE);
    U(5900);
    WAIT;
    R(6000, 'b', RUNNING);
    U(20000);
    story_is("5.100 a returns -> a: hold\n"
             "  # the coordinator was restarted: 1 of 1 nodes of round 1 are heard\n"
             "6.000 b returns -> b: world 2, 0 of 1\n",
             "without a journal an old round that is heard whole is not taken for the last one");
}

/* The same, but the old round was finished, and another one formed before anybody heard of its end. */
static void test_coordinator_restart_old_success(void)
{
    one_after_the_other();
    R(5100, 'a', SUCCEEDED);
    U(5900);
    R(6000, 'b', RUNNING);
    U(20000);
    story_is("5.100 a returns -> a: hold\n"
             "6.000 b returns -> b: world 2, 0 of 1\n",
             "without a journal a round that has succeeded need not be the last one");
}

/* Nobody else comes: it was the last one. */
static void test_coordinator_restart_done(void)
{
    pair(&s, 2, 2);
    CRASH(5000, false);
    R(5100, 'a', SUCCEEDED);
    R(5200, 'b', SUCCEEDED);
    U(20000);
    story_is("5.100 a returns -> a: hold\n"
             "5.200 b returns -> b: hold\n"
             "6.100 time -> a: hold; b: hold\n"
             "10.000 time -> a: end 0; b: end 0\n"
             "15.000 time -> over\n",
             "without a journal a round that has succeeded ends the job when the time for others is over");
}

/* The agent that hosted the coordinator was killed, which another one on its host knows, and the workers of the others
 * have failed of it before these have told it.  c had been told more before that coordinator went: not known to be
 * the last. */
static void test_coordinator_host_killed(void)
{
    for (int how = 0; how < 2; how++) {
        trio(&s);
        s.conf.dead_number = 1;
        s.node[1].latest = true;
        s.node[2].latest = how == 0;
        CRASH(5000, false);
        RF(5010, 'b', STOPPING);
        RF(5020, 'c', IDLE);
        SAY(5030, 'b', STOPPED);
        SAY(5040, 'b', STORE_READY);
        U(6000);
        story_is(how == 0 ? "5.010 b returns -> b: hold\n"
                            "5.020 c returns -> b: stop 1; c: hold\n"
                            "5.030 b STOPPED -> b: open 2\n"
                            "5.040 b STORE_READY -> b: world 2, 0 of 2; c: world 2, 1 of 2\n"
                          : "5.010 b returns -> b: hold\n"
                            "5.020 c returns -> c: hold\n",
                 how == 0 ? "no later round can have been formed: nobody waits" : "another round may run");
    }
}

static void test_coordinator_restart_blind(void)
{
    pair(&s, 2, 2);
    CRASH(5000, false);
    J(5100, 'c');
    J(5200, 'd');
    WAIT;
    R(5300, 'a', RUNNING);
    R(5400, 'b', RUNNING);
    U(6000);
    story_is("5.100 c joins -> c: park\n"
             "5.200 d joins -> d: park\n"
             "  # the coordinator has just started: nodes of an earlier round may come back, for 4.8 s more\n"
             "5.300 a returns -> a: hold\n"
             "5.400 b returns -> b: world 1, 1 of 2\n",
             "without a journal nothing is formed before the limit, if there could be a round");
}

static void test_coordinator_restart_failed(void)
{
    pair(&s, 2, 2);
    CRASH(5000, true);
    RF(5500, 'b', STOPPING);
    R(5600, 'a', RUNNING);
    ALL(5700, "ab", STOPPED);
    SAY(5701, 'a', STORE_READY);
    story_is("5.500 b returns -> b: hold\n"
             "5.600 a returns -> a: stop 1; b: stop 1\n"
             "5.700 b STOPPED -> a: open 2\n"
             "5.701 a STORE_READY -> a: world 2, 0 of 2, restart 1; b: world 2, 1 of 2, restart 1\n",
             "a failure while the coordinator was away is charged once");
}

static void test_coordinator_restart_success(void)
{
    trio(&s);
    ALL(4000, "ab", SUCCEEDED);
    CRASH(5000, true);
    R(5500, 'a', SUCCEEDED);
    R(5600, 'b', SUCCEEDED);
    U(11000);
    story_is("5.500 a returns -> a: hold\n"
             "5.600 b returns -> b: hold\n"
             "6.500 time -> a: hold; b: hold\n"
             "10.000 time -> a: end 75; b: end 75\n",
             "heard nodes have succeeded, one cannot be heard: never begin again");
}

/* A WORLD would say that it has fewer ranks than it had. */
static void test_coordinator_restart_end_late(void)
{
    trio(&s);
    ALL(4000, "ab", SUCCEEDED);
    CRASH(5000, true);
    R(5500, 'a', SUCCEEDED);
    R(5600, 'b', SUCCEEDED);
    s.journal_late = true;
    U(10100);
    story_closed(&s, 10200, 'a');
    R(10250, 'a', SUCCEEDED);
    JOURNALED(10400, true);
    story_is("5.500 a returns -> a: hold\n"
             "5.600 b returns -> b: hold\n"
             "6.500 time -> a: hold; b: hold\n"
             "10.250 a returns -> a: hold\n"
             "10.400 journal written -> a: end 75; b: end 75\n",
             "until the end is durable nobody is told of a round that is known in parts only");
}

static void test_coordinator_restart_end(void)
{
    pair(&s, 2, 2);
    ALL(4000, "ab", SUCCEEDED);
    CRASH(5000, true);
    R(5500, 'a', SUCCEEDED);
    story_is("4.000 b SUCCEEDED -> a: end 0; b: end 0\n"
             "5.500 a returns -> a: end 0\n",
             "END is in the journal: who comes back gets it again");
}

static void test_two_lost(void)
{
    four(&s);
    story_closed(&s, 5000, 'b');
    story_closed(&s, 5001, 'c');
    ALL(5200, "ad", STOPPED);
    SAY(5201, 'a', STORE_READY);
    story_is("5.100 time -> a: stop 1; d: stop 1\n"
             "5.200 d STOPPED -> a: open 2\n"
             "5.201 a STORE_READY -> a: world 2, 0 of 2; d: world 2, 1 of 2\n",
             "two nodes at once: one new round");
}

static void test_rank0_lost(void)
{
    trio(&s);
    story_closed(&s, 5000, 'a');
    ALL(5200, "bc", STOPPED);
    SAY(5201, 'b', STORE_READY);
    story_is("5.100 time -> b: stop 1; c: stop 1\n"
             "5.200 c STOPPED -> b: open 2\n"
             "5.201 b STORE_READY -> b: world 2, 0 of 2; c: world 2, 1 of 2\n",
             "the node of rank 0 is lost: a new store on another host");
}

static void test_lost_in_stop(void)
{
    trio(&s);
    s.r->budget.max = 0;
    FAIL(5000, 'b', 1);
    SAY(5001, 'a', STOPPED);
    story_closed(&s, 5002, 'c');
    SAY(5003, 'b', STOPPED);
    U(5200);
    SAY(5201, 'a', STORE_READY);
    story_is("5.000 b WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
             "5.102 time -> a: open 2\n"
             "5.201 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2\n",
             "lost while stopping: it is membership, nothing is charged");
}

static void test_back_while_stopping(void)
{
    trio(&s);
    story_closed(&s, 5000, 'b');
    U(5150);
    R(5200, 'b', RUNNING);
    ALL(5300, "ac", STOPPED);
    SAY(5900, 'b', STOPPED);
    story_is("5.100 time -> a: stop 1; c: stop 1\n"
             "5.200 b returns -> b: stop 1\n"
             "5.900 b STOPPED -> a: open 2\n",
             "lost, and back while the others stop: it keeps its place and is waited for");
}

static void test_stray(void)
{
    trio(&s);
    s.node[1].member = RDZV_NONE;
    U(10000);
    ALL(10001, "ac", STOPPED);
    SAY(10002, 'a', STORE_READY);
    R(10500, 'b', RUNNING);
    STRAY(10600, 'b');
    U(11700);
    story_is("8.600 time -> close b; a: stop 1; c: stop 1\n"
             "10.001 c STOPPED -> a: open 2\n"
             "10.002 a STORE_READY -> a: world 2, 0 of 2; c: world 2, 1 of 2\n"
             "10.500 b returns -> b: stop 1\n"
             "11.500 time -> a: stop 2; b: park; c: stop 2\n",
             "back after the new round began: it stops its old workers and grows in");
}

static void test_journal_late(void)
{
    story_init(&s, 1, 1);
    s.journal_late = true;
    story_begin(&s);
    J(0, 'a');
    SAY(1, 'a', STORE_READY);
    JOURNALED(700, false);
    JOURNALED(2000, true);
    story_is("0.000 a joins -> a: open 1\n"
             "2.000 journal written -> a: world 1, 0 of 1\n",
             "WORLD leaves only when the journal has it");
}

int main(void)
{
    test_scale_up();
    test_stable_window();
    test_rank_taken();
    test_replaced_connection();
    test_waits();
    test_below_min();
    test_join_timeout();
    test_fruitless();
    test_scale_max();
    test_drain();
    test_stop_job();
    test_restart_verb();
    test_mismatch();
    test_spare_is_told();
    test_coordinator_restart();
    test_coordinator_restart_lost();
    test_coordinator_restart_old_round();
    test_coordinator_restart_old_success();
    test_coordinator_restart_done();
    test_coordinator_host_killed();
    test_coordinator_restart_blind();
    test_coordinator_restart_failed();
    test_coordinator_restart_success();
    test_coordinator_restart_end_late();
    test_coordinator_restart_end();
    test_two_lost();
    test_rank0_lost();
    test_lost_in_stop();
    test_back_while_stopping();
    test_stray();
    test_journal_late();
    return done();
}
