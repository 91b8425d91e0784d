/* Stories of the coordinator core, how rounds are formed: settle time, units, ranks, spares: expected traces with
 * virtual times. */
#include "sim/words.h"

static void test_first_round(void)
{
    story_init(&s, 2, 3);
    story_begin(&s);
    J(0, 'a');
    J(10, 'b');
    J(20, 'c');
    SAY(21, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.010 b joins -> b: park\n"
             "0.020 c joins -> c: park; a: open 1\n"
             "0.021 a STORE_READY -> a: world 1, 0 of 3; b: world 1, 1 of 3; c: world 1, 2 of 3\n",
             "at once when the maximum is there");
}

static void test_settle(void)
{
    story_init(&s, 1, 2);
    story_begin(&s);
    J(0, 'a');
    SAY(3001, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "3.000 time -> a: open 1\n"
             "3.001 a STORE_READY -> a: world 1, 0 of 1\n",
             "1:2 with one node starts after the settle time");
}

static void test_settle_again(void)
{
    story_init(&s, 1, 26);
    s.conf.set.last_call_ms = 5000;
    story_begin(&s);
    J(0, 'a');
    J(2000, 'b');
    J(4000, 'c');
    U(6000);
    story_is("0.000 a joins -> a: park\n"
             "2.000 b joins -> b: park\n"
             "4.000 c joins -> c: park\n"
             "5.000 time -> a: open 1\n",
             "each join starts the settle time again, the last call ends it");
}

static void test_surplus(void)
{
    story_init(&s, 2, 4);
    s.quiet = true;
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    J(2, 'c');
    J(3, 'd');
    SAY(4, 'a', STORE_READY);
    s.quiet = false;
    J(5, 'e');
    story_closed(&s, 1000, 'b');
    ALL(1200, "acd", STOPPED);
    SAY(1201, 'a', STORE_READY);
    ALL(9000, "acde", SUCCEEDED);
    story_is("0.005 e joins -> e: park\n"
             "1.100 time -> a: stop 1; c: stop 1; d: stop 1\n"
             "1.200 d STOPPED -> a: open 2\n"
             "1.201 a STORE_READY -> a: world 2, 0 of 4; c: world 2, 1 of 4; d: world 2, 2 of 4; e: world 2, 3 of 4\n"
             "9.000 e SUCCEEDED -> a: end 0; c: end 0; d: end 0; e: end 0\n",
             "five nodes, at most four: the surplus parks and ends with the job");
}

static void test_six_waiters(void)
{
    story_init(&s, 2, 4);
    story_begin(&s);
    for (char c = 'a'; c <= 'f'; c++)
        J(c - 'a', c);
    SAY(10, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> d: park; a: open 1\n"
             "0.004 e joins -> e: park\n"
             "0.005 f joins -> f: park\n"
             "0.010 a STORE_READY -> a: world 1, 0 of 4; b: world 1, 1 of 4; c: world 1, 2 of 4; d: world 1, 3 of 4\n",
             "min 2, max 4, six waiters: a world of 4, two spares");
}

static void test_unit_too_few(void)
{
    story_init(&s, 2, 8);
    s.conf.set.unit = 4;
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    J(2, 'c');
    U(20000);
    WAIT;
    J(20001, 'd');
    U(23100);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "  # 3 of 8 nodes are here: a multiple of 4 is needed, at least 2\n"
             "20.001 d joins -> d: park\n"
             "23.001 time -> a: open 1\n",
             "unit 4, three waiters, min 2: wait, and say why");
}

static void test_unit_five(void)
{
    story_init(&s, 2, 5);
    s.conf.set.unit = 2;
    story_begin(&s);
    for (char c = 'a'; c <= 'e'; c++)
        J(c - 'a', c);
    SAY(3500, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> d: park; a: open 1\n"
             "0.004 e joins -> e: park\n"
             "3.500 a STORE_READY -> a: world 1, 0 of 4; b: world 1, 1 of 4; c: world 1, 2 of 4; d: world 1, 3 of 4\n",
             "min 2, max 5, unit 2, five waiters: a world of 4, one spare");
}

static void test_six_nodes(void)
{
    story_init(&s, 2, 6);
    s.conf.set.unit = 2;
    s.quiet = true;
    story_begin(&s);
    for (char c = 'a'; c <= 'f'; c++)
        J(c - 'a', c);
    SAY(10, 'a', STORE_READY);
    s.quiet = false;
    story_closed(&s, 60000, 'f');
    ALL(60200, "abcde", STOPPED);
    SAY(60201, 'a', STORE_READY);
    J(70000, 'g');
    ALL(71010, "abcd", STOPPED);
    SAY(71011, 'a', STORE_READY);
    story_is("60.100 time -> a: stop 1; b: stop 1; c: stop 1; d: stop 1; e: stop 1\n"
             "60.200 e STOPPED -> a: open 2\n"
             "60.201 a STORE_READY -> a: world 2, 0 of 4; b: world 2, 1 of 4; c: world 2, 2 of 4; d: world 2, 3 of 4; "
             "e: park\n"
             "70.000 g joins -> g: park\n"
             "71.000 time -> a: stop 2; b: stop 2; c: stop 2; d: stop 2\n"
             "71.010 d STOPPED -> a: open 3\n"
             "71.011 a STORE_READY -> a: world 3, 0 of 6; b: world 3, 1 of 6; c: world 3, 2 of 6; d: world 3, 3 of 6; "
             "e: world 3, 4 of 6; g: world 3, 5 of 6\n",
             "the published example: six nodes, unit 2, node 5 lost, node 4 waits, node 6 arrives");
}

static void test_node_ranks(void)
{
    story_init(&s, 4, 4);
    s.node[0].node_rank = 10;
    s.node[2].node_rank = 2;
    story_begin(&s);
    for (char c = 'a'; c <= 'd'; c++)
        J(c - 'a', c);
    SAY(10, 'c', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> d: park; c: open 1\n"
             "0.010 c STORE_READY -> a: world 1, 1 of 4; b: world 1, 2 of 4; c: world 1, 0 of 4; d: world 1, 3 of 4\n",
             "nodes with a node rank come first, by number; 10 after 2");
}

static void test_replacement(void)
{
    story_init(&s, 2, 2);
    s.node[0].node_rank = 0;
    s.node[1].node_rank = 1;
    s.node[2].node_rank = 7;
    s.quiet = true;
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    SAY(2, 'a', STORE_READY);
    J(10, 'c');
    s.quiet = false;
    story_closed(&s, 1000, 'b');
    J(1200, 'b');
    SAY(1300, 'a', STOPPED);
    SAY(1301, 'a', STORE_READY);
    story_is("1.100 time -> a: stop 1\n"
             "1.200 b joins -> b: park\n"
             "1.300 a STOPPED -> a: open 2\n"
             "1.301 a STORE_READY -> a: world 2, 0 of 2; b: world 2, 1 of 2\n",
             "a replacement with a lost node's rank counts as that survivor, an older spare does not push it out");
}

static void test_closed_then_back(void)
{
    pair(&s, 2, 2);
    story_closed(&s, 5000, 'b');
    R(5090, 'b', RUNNING);
    U(8000);
    story_is("5.090 b returns -> b: world 1, 1 of 2\n",
             "a closed connection that comes back within the grace disturbs nobody");
}

static void test_silence(void)
{
    pair(&s, 1, 2);
    s.node[1].member = RDZV_NONE /* cut: its heartbeats do not arrive */;
    U(10000);
    SAY(10001, 'a', STOPPED);
    story_is("8.600 time -> close b; a: stop 1\n"
             "10.001 a STOPPED -> a: open 2\n",
             "a silent node is lost after five intervals");
}

static void test_own_pause(void)
{
    pair(&s, 2, 2);
    PAUSE(30000);
    U(40000);
    story_is("", "a coordinator that was away itself declares nobody lost");
}

/* What the person at a node reads. */
static const char *line_of(char node)
{
    static char text[512];
    struct msg m;
    rdzv_order(s.r, s.node[node - 'a'].member, s.now, &m);
    snprintf(text, sizeof text, "%s", m.type == MSG_WAIT ? m.u.wait.text : "no WAIT");
    return text;
}

static void test_who_is_missing(void)
{
    story_init(&s, 4, 4);
    s.node[0].node_rank = 3;
    s.node[1].node_rank = 1;
    story_begin(&s);
    J(0, 'a');
    J(10, 'b');
    is_str(line_of('a'),
           "2 of 4 nodes are here: at least 4 are needed (here: a, b; no node rank 0, 2; gives up in 600 s)",
           "who waits is told who is here, and which node ranks are missing");
    J(20, 'c');
    is_str(line_of('a'), "3 of 4 nodes are here: at least 4 are needed (here: a, b, c; gives up in 600 s)",
           "but not when somebody has none");
    SAY(30, 'b', LEAVING);
    is_str(line_of('a'), "2 of 4 nodes are here: at least 4 are needed (here: a, c; gives up in 600 s)",
           "who is about to leave is not here any more");
    story_end(&s);
    story_init(&s, 300, 300);
    for (unsigned i = 0; i < STORY_NODES; i++)
        s.node[i].node_rank = (int)i;
    story_begin(&s);
    for (unsigned i = 0; i < STORY_NODES; i++)
        J(i, 'a' + i);
    is_str(line_of('a'),
           "26 of 300 nodes are here: at least 300 are needed (here: a, b, c, d, ...; no node rank 26, 27, 28, 29, "
           "...; gives up in 600 s)",
           "of many only the first");
    story_end(&s);
}

/* As many as before, but others. */
static void test_told_of_changes(void)
{
    story_init(&s, 3, 3);
    story_begin(&s);
    J(0, 'a');
    J(10, 'b');
    U(3000);
    unsigned parks = s.node[0].parks;
    story_closed(&s, 3000, 'b');
    J(3150, 'c');
    U(6000);
    ok(s.node[0].parks > parks, "who waits is told when another one comes for one that was lost");
    is_num(s.node[0].parks, parks + 1, "once");
    story_end(&s);
}

static void test_deserted(void)
{
    story_init(&s, 2, 2);
    s.conf.set.join_timeout_ms = 5000;
    story_begin(&s);
    J(0, 'a');
    ok(!rdzv_is_deserted(s.r), "a job with a node");
    story_closed(&s, 100, 'a');
    U(1000);
    ok(rdzv_is_deserted(s.r), "when all its nodes have gone it is deserted");
    U(6000);
    ok(rdzv_state(s.r) == RDZV_OVER && rdzv_is_deserted(s.r), "after the join time-out it is over, and still so");
    ok(!s.journal.ended, "nobody was told of an end, and the journal has none");
    story_end(&s);
    story_init(&s, 2, 2);
    s.conf.set.join_timeout_ms = 5000;
    story_begin(&s);
    J(0, 'a');
    U(6000);
    SAY(6001, 'a', END_ACK);
    ok(rdzv_state(s.r) == RDZV_OVER && !rdzv_is_deserted(s.r) && s.journal.ended,
       "with a node that was told it is an end");
    story_end(&s);
}

int main(void)
{
    test_who_is_missing();
    test_told_of_changes();
    test_deserted();
    test_first_round();
    test_settle();
    test_settle_again();
    test_surplus();
    test_six_waiters();
    test_unit_too_few();
    test_unit_five();
    test_six_nodes();
    test_node_ranks();
    test_replacement();
    test_closed_then_back();
    test_silence();
    test_own_pause();
    return done();
}
