/* Stories of the coordinator core: emergency checkpoint of live workers, and what the end of a round waits for. */
#include "sim/words.h"

static void begin_with(unsigned nodes, unsigned min, unsigned emergency_ms, enum ckpt_commit_store store)
{
    story_init(&s, min, nodes);
    s.conf.set.emergency_ms = emergency_ms;
    s.conf.set.ckpt_store = store;
    s.quiet = true;
    story_begin(&s);
    for (unsigned i = 0; i < nodes; i++)
        story_join(&s, i, (char)('a' + i));
    story_says(&s, 3500, 'a', MSG_STORE_READY);
    for (unsigned i = 0; i < nodes; i++)
        story_says(&s, 3600, (char)('a' + i), MSG_STARTED);
    s.quiet = false;
}

static void begin(unsigned nodes, unsigned min)
{
    begin_with(nodes, min, 20000, CKPT_COMMIT_OFF);
}

static struct msg stand_of(char node, uint64_t serial, const char *steps, int64_t limit)
{
    struct msg m = {.type = MSG_EMERGENCY_STATE};
    m.u.emergency_state = (struct msg_emergency_state){.number = s.node[node - 'a'].number,
                                                       .coord = s.node[node - 'a'].coord,
                                                       .serial = serial,
                                                       .steps = steps,
                                                       .limit = limit,
                                                       .step = -1,
                                                       .text = "it has ended"};
    return m;
}

static void stands(unsigned ms, char node, uint64_t serial, const char *steps, int64_t limit)
{
    story_until(&s, ms);
    struct msg m = stand_of(node, serial, steps, limit);
    story_tell(&s, node, &m);
}

static void copied(unsigned ms, char node, uint64_t serial, const char *steps, int64_t step)
{
    story_until(&s, ms);
    struct msg m = stand_of(node, serial, steps, step);
    m.u.emergency_state.step = step;
    m.u.emergency_state.copied = true;
    m.u.emergency_state.copies = 1;
    story_tell(&s, node, &m);
}

static void passes(unsigned ms, char node, uint64_t serial, const char *steps)
{
    story_until(&s, ms);
    struct msg m = stand_of(node, serial, steps, -1);
    m.u.emergency_state.ends = true;
    story_tell(&s, node, &m);
}

static void test_one_begins(void)
{
    begin(2, 2);
    stands(5000, 'a', 1, "7:c 4:h", 7);
    stands(5001, 'b', 1, "7:c 4:h", 7);
    FAIL(5002, 'a', 1);
    copied(5010, 'a', 2, "7:h 4:h", 7);
    copied(5020, 'b', 2, "7:h 4:h", 7);
    story_is("5.000 a EMERGENCY_STATE -> a: world 1, 0 of 2; b: world 1, 1 of 2; b: hold back, up to 7\n"
             "5.001 b EMERGENCY_STATE -> a: world 1, 0 of 2; a: copy 7, keep 4; b: world 1, 1 of 2; b: copy 7, keep 4\n"
             "5.002 a WORKER_FAILED -> a: stop 1; a: copy 7, keep 4; b: stop 1; b: copy 7, keep 4\n"
             "5.020 b EMERGENCY_STATE -> a: stop 1; a: let go 1; b: stop 1; b: let go 1\n",
             "the first one that holds its workers back begins it, before its failure is told");
}

static void test_later_step(void)
{
    begin(2, 2);
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    stands(5002, 'b', 1, "6:c 4:h", 6);
    stands(5003, 'b', 2, "7:m 6:c 4:h", 7);
    stands(5100, 'b', 3, "7:c 4:h", 7);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 a EMERGENCY_STATE -> a: stop 1; b: stop 1; b: hold back, up to 7\n"
             "5.002 b EMERGENCY_STATE -> b: stop 1; b: hold back, up to 7\n"
             "5.100 b EMERGENCY_STATE -> a: stop 1; a: copy 7, keep 4; b: stop 1; b: copy 7, keep 4\n",
             "whose workers are behind may begin the step that others are in, and that is waited for");
}

static void test_fails(void)
{
    begin(2, 2);
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    stands(5002, 'b', 1, "7:c 4:h", 7);
    copied(5010, 'a', 2, "7:h 4:h", 7);
    copied(5020, 'b', 2, "7:n 4:h", 7);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 a EMERGENCY_STATE -> a: stop 1; b: stop 1; b: hold back, up to 7\n"
             "5.002 b EMERGENCY_STATE -> a: stop 1; a: copy 7, keep 4; b: stop 1; b: copy 7, keep 4\n"
             "5.020 b EMERGENCY_STATE -> a: stop 1; a: let go 1; b: stop 1; b: let go 1\n",
             "it cannot be copied: what all hold counts");
}

static void test_silent(void)
{
    begin(3, 3);
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    stands(5002, 'b', 1, "7:c 4:h", 7);
    U(14990);
    story_until(&s, 15100);
    U(59000);
    story_is(
        "5.000 a WORKER_FAILED -> a: stop 1; b: stop 1; c: stop 1\n"
        "5.001 a EMERGENCY_STATE -> a: stop 1; b: stop 1; b: hold back, up to 7; c: stop 1; c: hold back, up to 7\n"
        "15.001 time -> a: stop 1; a: let go 1; b: stop 1; b: let go 1; c: stop 1\n",
        "who does not speak within ten seconds has nothing; and nobody is held back, or lost, for longer");
}

static void test_out_of_time(void)
{
    begin(2, 2);
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    stands(5002, 'b', 1, "7:c 4:h", 7);
    U(26000);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 a EMERGENCY_STATE -> a: stop 1; b: stop 1; b: hold back, up to 7\n"
             "5.002 b EMERGENCY_STATE -> a: stop 1; a: copy 7, keep 4; b: stop 1; b: copy 7, keep 4\n"
             "25.001 time -> a: stop 1; a: let go 1; b: stop 1; b: let go 1\n",
             "copies end in time, or not at all");
}

/* … of the time until all is on disk they have half. */
static void test_disk_time(void)
{
    begin_with(2, 2, 12000, CKPT_COMMIT_LOCAL);
    s.r->budget.max = 0;
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    U(11000);
    is_num(s.r->emergency.state, EMERGENCY_CKPT_AGREEING, "with a disk half of the time is for live workers");
    U(11002);
    is_num(s.r->emergency.state, EMERGENCY_CKPT_IS_OVER, "and not more");
    ALL(11500, "ab", STOPPED);
    is_num(s.r->stop_until, EL_MS(11500) + EL_SEC(6) + EL_SEC(1), "what is left of it is for the disk");
    s.text[0] = 0;
    s.len = 0;
    story_end(&s);
}

static void test_nothing(void)
{
    begin(2, 2);
    passes(5000, 'a', 1, "4:h");
    FAIL(5001, 'a', 1);
    stands(5002, 'b', 1, "7:c 4:h", 7);
    story_is("5.001 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.002 b EMERGENCY_STATE -> a: stop 1; b: stop 1; b: let go 1\n",
             "all workers of a node are dead: nobody waits for anything");
}

static void test_lost(void)
{
    begin(2, 1);
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    story_closed(&s, 5002, 'b');
    U(5200);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 a EMERGENCY_STATE -> a: stop 1; b: stop 1; b: hold back, up to 7\n"
             "5.102 time -> a: stop 1; a: let go 1\n",
             "a node is lost, which may come back with an older step: that is not given away");
}

/* It comes back with workers of a round that is over. */
static void test_stray(void)
{
    begin(2, 1);
    story_closed(&s, 5000, 'b');
    SAY(5200, 'a', STOPPED);
    SAY(5201, 'a', STORE_READY);
    R(5300, 'b', RUNNING);
    stands(5301, 'b', 1, "7:c 4:h", 7);
    story_is("5.100 time -> a: stop 1\n"
             "5.200 a STOPPED -> a: open 2\n"
             "5.201 a STORE_READY -> a: world 2, 0 of 1\n"
             "5.300 b returns -> b: stop 1\n"
             "5.301 b EMERGENCY_STATE -> b: stop 1; b: let go 1\n",
             "a node that was lost does not wait for anybody");
}

static void test_restarted(void)
{
    begin(2, 2);
    CRASH(5000, true);
    R(5100, 'a', RUNNING);
    stands(5200, 'a', 1, "7:c 4:h", 7);
    R(5300, 'b', RUNNING);
    stands(5400, 'b', 1, "7:c 4:h", 7);
    story_is(
        "5.100 a returns -> a: hold\n"
        "5.300 b returns -> a: world 1, 0 of 2; b: world 1, 1 of 2; b: hold back, up to 7\n"
        "5.400 b EMERGENCY_STATE -> a: world 1, 0 of 2; a: copy 7, keep 4; b: world 1, 1 of 2; b: copy 7, keep 4\n",
        "a coordinator that was restarted hears of it, and goes on when it knows the round");
}

/* The job ends, and with it all that is in memory. */
static void test_no_use(void)
{
    begin(2, 2);
    s.r->budget.max = 0;
    FAIL(5000, 'a', 1);
    stands(5001, 'a', 1, "7:c 4:h", 7);
    story_is("5.000 a WORKER_FAILED -> a: stop 1; b: stop 1\n"
             "5.001 a EMERGENCY_STATE -> a: stop 1; a: let go 1; b: stop 1\n",
             "what nobody could go back to is not captured");
}

int main(void)
{
    test_one_begins();
    test_later_step();
    test_fails();
    test_silent();
    test_out_of_time();
    test_disk_time();
    test_nothing();
    test_lost();
    test_stray();
    test_restarted();
    test_no_use();
    return done();
}
