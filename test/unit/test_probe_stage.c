/* Children of a probe: deadlines, what is said of each end, time that was slept, children that cannot be killed. */
#include "probe/stage.h"

#include "lib/tap.h"
#include "util/rng.h"

static struct stage s;
static struct stage_actions out;

/* What the actions say, in short: "kill 0", "0 done". */
static const char *said(void)
{
    static char text[1024];
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < out.n; i++) {
        const struct stage_action *a = &out.v[i];
        n += (size_t)snprintf(text + n, sizeof text - n, a->type == STAGE_DO_KILL ? "%skill %u" : "%s%u ",
                              i ? ", " : "", a->child);
        if (a->type == STAGE_DO_TELL)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", stage_outcome_word(a->outcome));
    }
    out.n = 0;
    stage_check(&s);
    return text;
}

/* The loop comes by as often as it has to, up to `now`. */
static const char *run_to(el_usec now)
{
    for (el_usec next; (next = stage_deadline(&s)) <= now && !out.n;) {
        stage_woke(&s, next);
        stage_timeout(&s, next, &out);
    }
    stage_woke(&s, now);
    return said();
}

static void start(void)
{
    stage_init(&s, EL_SEC(100));
    out.n = 0;
}

static void test_ends(void)
{
    start();
    ok(stage_deadline(&s) == EL_NEVER, "nobody runs: nothing to wait for");
    for (int i = 0; i < 5; i++)
        stage_add(&s, EL_SEC(10), EL_SEC(100));
    stage_heard_end(&s, 0, true, EL_SEC(101));
    stage_heard_end(&s, 1, false, EL_SEC(101));
    stage_exited(&s, 0, 0, &out);
    stage_exited(&s, 1, 0, &out);
    stage_exited(&s, 2, 0, &out);
    stage_exited(&s, 3, 1, &out);
    stage_exited(&s, 4, -1, &out);
    is_str(said(), "0 done, 1 failed, 2 silent, 3 failed, 4 crashed", "what became of each");
    ok(stage_deadline(&s) == EL_NEVER, "all are gone");
}

static void test_deadline(void)
{
    start();
    stage_add(&s, EL_SEC(10), EL_SEC(100));
    is_str(run_to(EL_SEC(110) - 1), "", "until its deadline it may run");
    is_str(run_to(EL_SEC(110)), "kill 0", "then it is killed");
    stage_exited(&s, 0, -1, &out);
    is_str(said(), "0 time out", "and that is what is said");
    stage_add(&s, EL_SEC(10), EL_SEC(110));
    run_to(EL_SEC(120));
    is_str(run_to(EL_SEC(130) - 1), "", "a killed child has ten seconds");
    is_str(run_to(EL_SEC(130)), "0 stuck", "then it is stuck, and nobody waits any more");
}

static void test_end_said(void)
{
    start();
    stage_add(&s, EL_SEC(60), EL_SEC(100));
    stage_heard_end(&s, 0, true, EL_SEC(101));
    is_str(run_to(EL_SEC(106)), "kill 0", "who has said all must go");
    stage_exited(&s, 0, -1, &out);
    is_str(said(), "0 done", "what it has said counts");
    stage_add(&s, EL_SEC(1), EL_SEC(110));
    is_str(run_to(EL_SEC(111)), "kill 0", "one more");
    stage_heard_end(&s, 0, true, EL_SEC(111));
    stage_exited(&s, 0, -1, &out);
    is_str(said(), "0 done", "lines that were read after the kill count too");
    stage_add(&s, EL_SEC(1), EL_SEC(111));
    stage_heard_end(&s, 0, true, EL_SEC(111));
    run_to(EL_SEC(112));
    is_str(run_to(EL_SEC(122)), "0 stuck", "but not that of a child that cannot be killed");
}

static void test_slept(void)
{
    start();
    stage_add(&s, EL_SEC(10), EL_SEC(100));
    run_to(EL_SEC(104));
    stage_woke(&s, EL_SEC(124)); /* SIGSTOP for 20 s */
    stage_timeout(&s, EL_SEC(124), &out);
    is_str(said(), "", "twenty seconds that we slept are not the child's");
    is_str(run_to(EL_SEC(129)), "", "it has what was left");
    is_str(run_to(EL_SEC(130)), "kill 0", "and no more");
    stage_woke(&s, EL_SEC(160));
    stage_timeout(&s, EL_SEC(160), &out);
    is_str(said(), "", "nor is it stuck because we slept");
    stage_exited(&s, 0, -1, &out);
    said();
    stage_woke(&s, EL_SEC(500));
    stage_add(&s, EL_SEC(10), EL_SEC(500));
    is_str(run_to(EL_SEC(510)), "kill 0", "time in which nobody ran is no gap");
}

static void test_stop(void)
{
    start();
    for (int i = 0; i < 3; i++)
        stage_add(&s, EL_SEC(10), EL_SEC(100));
    stage_stop(&s, 1, EL_SEC(100), &out);
    is_str(said(), "kill 1", "one is not wanted any more");
    stage_stop(&s, -1, EL_SEC(100), &out);
    is_str(said(), "kill 0, kill 2", "then none of them; no one is killed twice");
    stage_exited(&s, 1, -1, &out);
    is_str(said(), "1 stopped", "nobody is to blame");
    is_str(run_to(EL_SEC(110)), "0 stuck, 2 stuck", "unless it stays");
    for (int i = 0; i < STAGE_CHILDREN_MAX; i++)
        stage_add(&s, EL_SEC(10), EL_SEC(110));
    is_num(stage_add(&s, EL_SEC(10), EL_SEC(110)), -1, "there is an end to the number of children");
}

/* In any order of events: invariants hold, each child is told once, and the stage comes to its end. */
static void test_random(void)
{
    struct el_rng rng = {.state = 6};
    unsigned good = 0;
    for (int seed = 0; seed < 300; seed++) {
        el_usec now = EL_SEC(100);
        unsigned added = 0, told = 0;
        start();
        for (int step = 0; step < 400; step++) {
            unsigned c = (unsigned)el_rng_below(&rng, STAGE_CHILDREN_MAX);
            bool runs = s.child[c].state != STAGE_FREE;
            now += el_rng_below(&rng, EL_SEC(3));
            stage_woke(&s, now);
            switch (el_rng_below(&rng, 6)) {
            case 0: added += step < 300 && stage_add(&s, el_rng_below(&rng, EL_SEC(20)), now) >= 0; break;
            case 1:
                if (runs)
                    stage_heard_end(&s, c, el_rng_below(&rng, 2), now);
                break;
            case 2:
                if (runs)
                    stage_exited(&s, c, (int)el_rng_below(&rng, 3) - 1, &out);
                break;
            case 3: stage_stop(&s, (int)c, now, &out); break;
            default: stage_timeout(&s, now, &out); break;
            }
            for (unsigned i = 0; i < out.n; i++)
                told += out.v[i].type == STAGE_DO_TELL;
            said();
        }
        while (s.running) {
            now = stage_deadline(&s);
            stage_woke(&s, now);
            stage_timeout(&s, now, &out);
            for (unsigned i = 0; i < out.n; i++)
                told += out.v[i].type == STAGE_DO_TELL;
            said();
        }
        good += added == told && added > 10;
    }
    is_num(good, 300, "300 random stories end, and each child is told once");
}

int main(void)
{
    test_ends();
    test_deadline();
    test_end_said();
    test_slept();
    test_stop();
    test_random();
    return done();
}
