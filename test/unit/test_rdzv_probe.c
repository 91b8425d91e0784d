/* Stories of the coordinator core: health checks between the members that are chosen and the round. */
#include "unit/probe_rounds_stage.h"

static void id(unsigned ms, char node, unsigned rail, const char *text)
{
    story_until(&s, ms);
    const struct msg_probe *o = &s.node[node - 'a'].last.u.probe;
    struct msg m = {.type = MSG_PROBE_ID};
    m.u.probe_id = (struct msg_probe_id){o->number, o->coord, o->probe, o->stage, rail, text};
    story_tell(&s, node, &m);
}

static void test_all_well(void)
{
    begin(2, 2, 2, HEALTH_START);
    P(10, 'a');
    P(20, 'b');
    id(30, 'a', 0, "10.0.0.1:7:x");
    id(31, 'a', 0, "again");
    P(40, 'b');
    P(50, 'a');
    P(60, 'a');
    P(70, 'b');
    SAY(71, 'a', STORE_READY);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.020 b PROBE_RESULT -> a: from b; b: to a\n"
             "0.030 a PROBE_ID -> b: to a, 0=10.0.0.1:7:x\n"
             "0.050 a PROBE_RESULT -> a: after; b: after\n"
             "0.070 b PROBE_RESULT -> a is good; a: open 1; b is good; b: park; a: open 1\n"
             "0.071 a STORE_READY -> a: world 1, 0 of 2; b: world 1, 1 of 2\n",
             "checks alone, a pair, counters once more, then the round");
}

/* A wait for somebody who does not come any more is nobody's good. */
static void test_parted(void)
{
    begin(2, 2, 2, HEALTH_START);
    EACH(10, "ab");
    PF(20, 'b');
    U(21);
    PF(30, 'a');
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "0.020 b PROBE_RESULT -> a: from b, parted\n"
             "0.030 a PROBE_RESULT -> a: after; b: after\n",
             "one end is over, and not well: the other is told");
}

/* b has accused a, and is found bad itself at the end: a meets e, whom it has not met. */
static void test_bad_witness(void)
{
    begin(2, 5, 5, HEALTH_START);
    EACH(10, "abcde");
    EACHF(20, "ab");
    EACH(20, "cd");
    EACHF(30, "a");
    EACH(30, "bcd");
    EACHF(40, "a");
    EACH(40, "bed");
    PF(50, 'b');
    EACH(50, "acde");
    EACHF(60, "ae");
    PF(70, 'b');
    EACH(70, "acde");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> d: park\n"
             "0.004 e joins -> a: checks; b: checks; c: checks; d: checks; e: checks\n"
             "0.010 e PROBE_RESULT -> a: from b; b: to a; c: from d; d: to c; e: rests\n"
             "0.020 a PROBE_RESULT -> b: to a, parted\n"
             "0.020 d PROBE_RESULT -> a: from c; b: from d; c: to a; d: to b; e: rests\n"
             "0.030 a PROBE_RESULT -> c: to a, parted\n"
             "0.030 d PROBE_RESULT -> a: from d; b: from e; c: rests; d: to a; e: to b\n"
             "0.040 a PROBE_RESULT -> d: to a, parted\n"
             "0.040 d PROBE_RESULT -> a: after; b: after; c: after; d: after; e: after\n"
             "0.050 e PROBE_RESULT -> a: from e; b: rests; c: rests; d: rests; e: to a\n"
             "0.060 a PROBE_RESULT -> e: to a, parted\n"
             "0.060 e PROBE_RESULT -> a: after; b: after; c: after; d: after; e: after\n"
             "0.070 e PROBE_RESULT -> a is bad; a: end 72; b is bad; b: end 72; c is good; c: park; d is good; d: "
             "park; e is good; e: park\n",
             "a witness that is bad itself at the end: whoever it has accused meets others");
}

static void test_bad_alone(void)
{
    begin(2, 3, 3, HEALTH_START);
    PF(10, 'a');
    EACH(10, "bc");
    EACH(20, "bc");
    EACH(30, "abc");
    U(5000);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: rests; b: from c; c: to b\n"
             "0.020 c PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.030 c PROBE_RESULT -> a is bad; a: end 72; b is good; b: park; c is good; c: park\n"
             "1.030 time -> a: end 72\n"
             "3.002 time -> b: open 1\n",
             "whose own checks fail leaves with 72, the others are enough");
}

static void test_too_few(void)
{
    begin(2, 2, 2, HEALTH_START);
    PF(10, 'a');
    P(10, 'b');
    EACH(20, "ab");
    WAIT;
    J(100, 'c');
    EACH(110, "bc");
    EACH(120, "bc");
    EACH(130, "bc");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: after; b: after\n"
             "0.020 b PROBE_RESULT -> a is bad; a: end 72; b is undecided; b: park\n"
             "  # 1 of 2 nodes are here: at least 2 are needed; the health check has excluded a: it is broken\n"
             "0.100 c joins -> a: end 72; b: checks; c: checks\n"
             "0.110 c PROBE_RESULT -> a: end 72; b: from c; c: to b\n"
             "0.120 c PROBE_RESULT -> a: end 72; b: after; c: after\n"
             "0.130 c PROBE_RESULT -> a: end 72; b is good; b: open 1; c is good; c: park; b: open 1\n",
             "too few are left: what is missing is said, and whoever comes is checked with the others");
}

static void test_told(void)
{
    story_init(&s, 4, 4);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_rounds = 8;
    story_begin(&s);
    for (unsigned i = 0; i < 4; i++)
        J(i, (char)('a' + i));
    WAIT;
    EACH(10, "abcd");
    WAIT;
    EACHF(20, "ab");
    EACH(20, "cd");
    P(30, 'a');
    WAIT;
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> a: checks; b: checks; c: checks; d: checks\n"
             "  # health check: each node by itself; 0 of 4 nodes have answered, at most 91 s more\n"
             "0.010 d PROBE_RESULT -> a: from b; b: to a; c: from d; d: to c\n"
             "  # health check: round 1: a with b, c with d; 0 of 4 nodes have answered, at most 56 s more, at most 8 "
             "rounds\n"
             "0.020 a PROBE_RESULT -> b: to a, parted\n"
             "0.020 d PROBE_RESULT -> a: from c; b: from d; c: to a; d: to b\n"
             "  # health check: round 2: a with c, b with d; 2 are good so far, 2 are suspect; 1 of 4 nodes have "
             "answered, at most 55 s more, at most 8 rounds\n",
             "what is waited for: which pairs run, what is known, how long still");
}

/* Every second node in the other rack: neighbours of the first round are those of one rack. */
static void test_domains(void)
{
    begin(4, 4, 0, HEALTH_START);
    for (unsigned i = 0; i < 4; i++) {
        s.node[i].domain = i % 2 ? "rack-b" : "rack-a";
        J(i, (char)('a' + i));
    }
    EACH(10, "abcd");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> c: park\n"
             "0.003 d joins -> a: checks; b: checks; c: checks; d: checks\n"
             "0.010 d PROBE_RESULT -> a: from c; b: from d; c: to a; d: to b\n",
             "nodes of one rack are paired first");
}

static void test_bad_in_pairs(void)
{
    begin(2, 4, 4, HEALTH_START);
    EACH(10, "abcd");
    EACHF(20, "ab"); /* a with b, c with d */
    EACH(20, "cd");
    EACHF(30, "ac"); /* a with c, b with d */
    EACH(30, "bd");
    EACHF(40, "ad");
    EACH(50, "abcd");
    story_is(
        "0.000 a joins -> a: park\n"
        "0.001 b joins -> b: park\n"
        "0.002 c joins -> c: park\n"
        "0.003 d joins -> a: checks; b: checks; c: checks; d: checks\n"
        "0.010 d PROBE_RESULT -> a: from b; b: to a; c: from d; d: to c\n"
        "0.020 a PROBE_RESULT -> b: to a, parted\n"
        "0.020 d PROBE_RESULT -> a: from c; b: from d; c: to a; d: to b\n"
        "0.030 a PROBE_RESULT -> c: to a, parted\n"
        "0.030 d PROBE_RESULT -> a: from d; b: rests; c: rests; d: to a\n"
        "0.040 a PROBE_RESULT -> d: to a, parted\n"
        "0.040 d PROBE_RESULT -> a: after; b: after; c: after; d: after\n"
        "0.050 d PROBE_RESULT -> a is bad; a: end 72; b is good; b: park; c is good; c: park; d is good; d: park\n",
        "a node that fails with three that pass elsewhere is bad, and its first partner is not");
}

/* Others of one host are one witness, whatever they call themselves. */
static void test_one_accuser(void)
{
    story_one_host = 1;
    begin(2, 4, 4, HEALTH_START);
    EACH(10, "abcd");
    EACHF(20, "ab");
    EACH(20, "cd");
    EACHF(30, "ac");
    EACH(30, "bd");
    EACHF(40, "ad");
    EACH(50, "abcd");
    ok(!strstr(s.text, "a is bad"), "three agents of one host do not condemn a node");
    story_end(&s);
    story_one_host = 99;
}

static void test_left(void)
{
    begin(2, 3, 3, HEALTH_START);
    EACH(10, "abc");
    story_closed(&s, 20, 'b');
    PF(30, 'a');
    U(1000);
    EACH(1010, "ac");
    EACH(1020, "ac");
    U(5000);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: from b; b: to a; c: rests\n"
             "0.120 time -> a: from c; c: to a\n"
             "1.010 c PROBE_RESULT -> a: after; c: after\n"
             "1.020 c PROBE_RESULT -> a is good; a: park; c is good; c: park\n"
             "3.002 time -> a: open 1\n",
             "a node that goes in the middle of a pair: what its partner says of that is held against nobody");
}

/* A line that breaks for longer than the grace is what sick hardware does, too. */
static void test_back_unlooked(void)
{
    begin(2, 3, 3, HEALTH_START);
    EACH(10, "abc");
    story_closed(&s, 20, 'b');
    U(300);
    R(400, 'b', IDLE);
    PF(500, 'a');
    U(1000);
    EACH(1010, "ac");
    EACH(1020, "ac");
    EACH(1030, "abc");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: from b; b: to a; c: rests\n"
             "0.120 time -> a: from c; c: to a\n"
             "0.400 b returns -> b: rests\n"
             "0.500 a PROBE_RESULT -> c: to a, parted\n"
             "1.010 c PROBE_RESULT -> a: after; b: after; c: after\n"
             "1.020 c PROBE_RESULT -> a is undecided; a: checks; b: checks; c is undecided; c: checks\n"
             "1.030 c PROBE_RESULT -> a: from c; b: rests; c: to a\n",
             "a node that was lost in a check and is back is in the next one, not in the round");
}

static void test_silent_agent(void)
{
    begin(2, 2, 2, HEALTH_START);
    P(10, 'a');
    P(10, 'b');
    s.beats = false;
    U(11);
    s.beats = true;
    uint64_t conn = s.node[1].conn;
    s.node[1].conn = 0; /* it stands still: not a word */
    P(2000, 'a');
    U(12000);
    s.node[1].conn = conn;
    R(12001, 'b', IDLE);
    P(12010, 'b');
    EACH(12020, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "5.010 time -> close\n"
             "12.001 b returns -> b: to a\n"
             "12.010 b PROBE_RESULT -> a: after; b: after\n"
             "12.020 b PROBE_RESULT -> a is good; a: open 1; b is good; b: park; a: open 1\n",
             "an agent that stands still for 12 s: its pair waits for it, and what it has measured counts");
}

static void test_paused_coordinator(void)
{
    begin(2, 2, 2, HEALTH_START);
    EACH(10, "ab");
    P(20, 'a');
    PAUSE(21000);
    R(21200, 'a', IDLE);
    R(21200, 'b', IDLE);
    P(21300, 'a');
    P(21300, 'b');
    EACH(21400, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "21.200 a returns -> close; a: from b\n"
             "21.200 b returns -> close; b: to a\n"
             "21.300 b PROBE_RESULT -> a: after; b: after\n"
             "21.400 b PROBE_RESULT -> a is good; a: open 1; b is good; b: park; a: open 1\n",
             "a coordinator that stands still for 21 s condemns nobody");
}

static void test_stop_on_bad(void)
{
    story_init(&s, 1, 2);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.on_bad = HEALTH_BAD_STOP;
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    PF(10, 'a');
    P(10, 'b');
    EACH(20, "ab");
    CAUSE;
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: after; b: after\n"
             "0.020 b PROBE_RESULT -> a is bad; a: end 72; b is undecided; b: end 72\n"
             "  # --on-bad=stop: a: it is broken; \n",
             "--on-bad=stop ends the job");
}

static void test_probe_only(void)
{
    story_init(&s, 3, 3);
    s.conf.set.health_check = HEALTH_ALWAYS;
    s.conf.set.probe_only = s.conf.set.probe_quick = 1;
    s.conf.own_instance = 2;
    story_begin(&s);
    for (unsigned i = 0; i < 3; i++)
        J(i, (char)('a' + i));
    P(10, 'a');
    P(10, 'b');
    PF(10, 'c');
    EACH(20, "ab");
    EACH(30, "abc");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: from b; b: to a; c: rests\n"
             "0.020 b PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.030 c PROBE_RESULT -> a is good; a: end 0; b is good; b: end 1; c is bad; c: end 1\n",
             "elrun probe: each node ends with its own verdict, the one that prints all with that of all");
}

/* c comes later; b is found bad, and its connection is lost before it has acknowledged the end. */
static void test_probe_only_late(void)
{
    story_init(&s, 2, 2);
    s.conf.set.health_check = HEALTH_ALWAYS;
    s.conf.set.probe_only = s.conf.set.probe_quick = 1;
    s.conf.own_instance = 1;
    story_begin(&s);
    J(0, 'a');
    J(1, 'b');
    P(10, 'a');
    J(11, 'c');
    PF(12, 'b');
    EACH(30, "ab");
    rdzv_order(s.r, s.node[2].member, s.now, &s.node[2].last);
    is_str(s.node[2].last.u.end.text,
           "this node came when the probe had begun, and is not judged; the others: 1 bad, 1 undecided of 2 nodes",
           "a latecomer is told that it is not judged");
    story_closed(&s, 31, 'b');
    R(40, 'b', IDLE);
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.011 c joins -> c: park\n"
             "0.012 b PROBE_RESULT -> a: after; b: after\n"
             "0.030 b PROBE_RESULT -> a is undecided; a: end 1; b is bad; b: end 1; c: end 3\n"
             "0.040 b returns -> b is bad; b: end 1\n",
             "elrun probe: who came later is not healthy, and who comes back keeps its verdict");
}

/* A node is well, in the stage that it was asked for last. */
static struct msg answer_of(char node)
{
    const struct msg_probe *o = &s.node[node - 'a'].last.u.probe;
    return (struct msg){.type = MSG_PROBE_RESULT,
                        .u.probe_result = {.number = o->number,
                                           .coord = o->coord,
                                           .probe = o->probe,
                                           .stage = o->stage,
                                           .rail = -1,
                                           .outcome = HEALTH_CHECK_OK,
                                           .text = "",
                                           .lines = ""}};
}

/* What a node with so many GPUs says of itself. */
static void looked(unsigned ms, char node, unsigned gpus)
{
    story_until(&s, ms);
    struct msg m = answer_of(node);
    m.u.probe_result.gpus = gpus;
    story_tell(&s, node, &m);
}

static void test_no_gpus_on_one(enum health_backend backend)
{
    story_init(&s, 3, 3);
    s.conf.set.health_check = HEALTH_START;
    s.conf.set.probe_backend = backend;
    s.conf.set.on_bad = HEALTH_BAD_STOP;
    story_begin(&s);
    for (unsigned i = 0; i < 3; i++)
        J(i, (char)('a' + i));
    looked(10, 'a', 1);
    looked(10, 'b', 1);
    looked(10, 'c', 0);
}

/* A bit for each of its GPUs: an order that cannot be sent would end the coordinator. */
static void test_many_gpus(void)
{
    struct el_buf bytes = EL_BUF_INIT(NULL, 0);
    struct msg_decoder d = {.greeted = true};
    struct el_err e = {0};
    struct msg got;
    begin(2, 2, 2, HEALTH_START);
    looked(10, 'a', 64);
    looked(10, 'b', 8);
    struct msg m = s.node[0].last;
    is_num(m.u.probe.rails, 0xff, "eight GPUs on both nodes are eight rails");
    m.u.probe.rails = (1u << PLAN_RAILS_MAX) - 1;
    m.u.probe.text = m.u.probe.peer = m.u.probe.local = m.u.probe.ids = "";
    is_num(msg_encode(&m, &bytes), 0, "an order with as many rails as there can be goes out");
    is_num(msg_consume(&d, bytes.v, bytes.len, &got, &e), (long)bytes.len, "and is understood");
    is_num(got.u.probe.rails, m.u.probe.rails, "as it was meant");
    msg_release(&got);
    el_buf_free(&bytes);
    story_end(&s);
}

static void test_auto_with_gpus(void)
{
    test_no_gpus_on_one(HEALTH_AUTO);
    is_num(s.node[0].last.u.probe.backend, HEALTH_NCCL, "auto: the pairs of those with GPUs run over NCCL");
    EACH(20, "ab");
    EACH(30, "abc");
    CAUSE;
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: from b; b: to a; c: rests\n"
             "0.020 b PROBE_RESULT -> a: after; b: after; c: after\n"
             "0.030 c PROBE_RESULT -> a is good; a: end 72; b is good; b: end 72; c is bad; c: end 72\n"
             "  # --on-bad=stop: c: no GPU is here, but 2 other nodes have some; with the backend tcp GPUs are left "
             "aside; \n",
             "auto: a node without GPUs among others is bad");

    test_no_gpus_on_one(HEALTH_TCP);
    is_num(s.node[0].last.u.probe.backend, HEALTH_TCP, "tcp: GPUs are left aside");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> b: park\n"
             "0.002 c joins -> a: checks; b: checks; c: checks\n"
             "0.010 c PROBE_RESULT -> a: from b; b: to a; c: rests\n",
             "tcp: a node without GPUs is as good as others");
}

static void test_stop_on_undecided(void)
{
    begin(2, 2, 2, HEALTH_START);
    s.conf.set.on_undecided = s.r->conf.set.on_undecided = HEALTH_UNDECIDED_STOP;
    EACH(10, "ab");
    EACHF(20, "ab");
    EACH(30, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "0.020 a PROBE_RESULT -> b: to a, parted\n"
             "0.020 b PROBE_RESULT -> a: after; b: after\n"
             "0.030 b PROBE_RESULT -> a is undecided; a: end 75; b is undecided; b: end 75\n",
             "--on-undecided=stop ends the job with what another try may change");
}

static void warns(unsigned ms, char node)
{
    story_until(&s, ms);
    struct msg m = answer_of(node);
    m.u.probe_result.lines = "{\"t\":\"check\",\"name\":\"nofile\",\"state\":\"warn\"}\n";
    story_tell(&s, node, &m);
}

/* d says goodbye in its pair, or its process ends without; b cannot judge everything; c only warns. */
static void test_statuses(bool strict, bool goodbye)
{
    story_init(&s, 4, 4);
    s.conf.set.health_check = HEALTH_ALWAYS;
    s.conf.set.probe_only = s.conf.set.probe_quick = 1;
    s.conf.set.probe_strict = strict;
    s.conf.own_instance = 1;
    story_begin(&s);
    for (unsigned i = 0; i < 4; i++)
        J(i, (char)('a' + i));
    P(10, 'a');
    story_probed(&s, 10, 'b', HEALTH_CHECK_UNDECIDED);
    warns(10, 'c');
    P(10, 'd');
    EACH(20, "abc");
    if (goodbye)
        SAY(21, 'd', LEAVING);
    else
        story_closed(&s, 21, 'd');
    story_until(&s, 2000);
    for (unsigned round = 0; s.r->state == RDZV_PROBING && round < 10; round++)
        for (char node = 'a'; node <= 'c' && s.r->state == RDZV_PROBING; node++)
            if (s.node[node - 'a'].last.u.probe.kind != HEALTH_CHECK_REST)
                P(2010 + 10 * round, node);
    for (char node = 'a'; node <= 'c'; node++)
        rdzv_order(s.r, s.node[node - 'a'].member, s.now, &s.node[node - 'a'].last);
    if (goodbye)
        is_num(s.node[0].last.u.end.status, 3, "a node has said goodbye: not all are known to be well");
    else
        is_num(s.node[0].last.u.end.status, 1, "a node has gone without a word: status 1 where all is printed");
    is_num(s.node[1].last.u.end.status, 3, "undecided: 3");
    is_num(s.node[2].last.u.end.status, strict ? 3 : 0, strict ? "--strict: a warning is 3" : "a warning is none");
    s.len = 0;
    s.text[0] = 0;
    story_end(&s);
}

static void test_crash(void)
{
    begin(2, 2, 2, HEALTH_START);
    EACH(10, "ab");
    CRASH(500, false);
    R(600, 'a', IDLE);
    R(610, 'b', IDLE);
    U(7000);
    EACH(7010, "ab");
    EACH(7020, "ab");
    EACH(7030, "ab");
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "0.600 a returns -> a: park\n"
             "0.610 b returns -> b: park\n"
             "5.500 time -> a: checks; b: checks\n"
             "7.010 b PROBE_RESULT -> a: from b; b: to a\n"
             "7.020 b PROBE_RESULT -> a: after; b: after\n"
             "7.030 b PROBE_RESULT -> a is good; a: open 1; b is good; b: park; a: open 1\n",
             "a coordinator that is lost in the middle: the next one begins anew");
}

static void test_stray_results(void)
{
    begin(2, 2, 2, HEALTH_START);
    P(10, 'a');
    struct msg m = {.type = MSG_PROBE_RESULT};
    const struct msg_probe *o = &s.node[1].last.u.probe;
    m.u.probe_result = (struct msg_probe_result){.number = o->number,
                                                 .coord = o->coord,
                                                 .probe = o->probe + 1,
                                                 .rail = -1,
                                                 .outcome = HEALTH_CHECK_FAILED,
                                                 .text = "",
                                                 .lines = ""};
    story_tell(&s, 'b', &m); /* of another check */
    m.u.probe_result.probe = o->probe;
    m.u.probe_result.coord++;
    story_tell(&s, 'b', &m); /* of another coordinator */
    m.u.probe_result.coord--;
    m.u.probe_result.stage = 1;
    story_tell(&s, 'b', &m); /* of another stage */
    m.u.probe_result.stage = 0;
    m.u.probe_result.page = 1;
    story_tell(&s, 'b', &m); /* a page whose first one has not come */
    P(20, 'b');
    story_is("0.000 a joins -> a: park\n"
             "0.001 b joins -> a: checks; b: checks\n"
             "0.020 b PROBE_RESULT -> a: from b; b: to a\n",
             "what is not of this check, stage and page says nothing");
}

int main(void)
{
    test_all_well();
    test_parted();
    test_bad_witness();
    test_bad_alone();
    test_too_few();
    test_bad_in_pairs();
    test_one_accuser();
    test_told();
    test_domains();
    test_left();
    test_back_unlooked();
    test_silent_agent();
    test_paused_coordinator();
    test_stop_on_bad();
    test_probe_only();
    test_probe_only_late();
    test_many_gpus();
    test_auto_with_gpus();
    test_stop_on_undecided();
    test_statuses(false, true);
    test_statuses(true, false);
    test_crash();
    test_stray_results();
    return done();
}
