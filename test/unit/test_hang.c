/* When a node's work counts as hung (agent/hang.h). */
#include "agent/hang.h"

#include "lib/tap.h"

static struct hang h;
static el_usec now;
static uint64_t bytes[2], cpu[2];

static void begin(void)
{
    hang_free(&h, NULL);
    hang_init(&h, 2, EL_SEC(160), NULL); /* looks every 10 s */
    now = EL_SEC(1000);
    bytes[0] = bytes[1] = cpu[0] = cpu[1] = 0;
    hang_begin(&h, now);
}

static bool look(unsigned seconds)
{
    now += EL_SEC(seconds);
    for (unsigned i = 0; i < 2; i++)
        if (h.worker[i].up)
            hang_saw(&h, i, bytes[i], cpu[i], now);
    return hang_judge(&h, now);
}

/* Looks every 11 s until the verdict, at most so often; the number of looks, 0 if there was none. */
static unsigned looks_until_hung(unsigned most, uint64_t cpu_each)
{
    for (unsigned k = 1; k <= most; k++) {
        cpu[0] += cpu_each;
        if (look(11))
            return k;
    }
    return 0;
}

static void test_silence(void)
{
    begin();
    is_num(hang_sample_due(&h) / EL_SEC(1), 1010, "the first look after a sixteenth of the time-out");
    unsigned k = looks_until_hung(40, 0);
    is_num(k, 16, "silent from the first look on: hung when the time-out is over, not before");
    begin();
    for (unsigned i = 0; i < 30; i++) {
        bytes[1]++;
        if (look(11))
            break;
    }
    ok(!hang_judge(&h, now), "one worker that prints keeps all of them alive");
    is_num(looks_until_hung(40, 0), 15, "it falls silent: the time counts from its last line");
}

static void test_processor_time(void)
{
    begin();
    is_num(looks_until_hung(40, 100000), 16, "a watchdog thread that wakes up now and then is nothing: under 1 %");
    begin();
    is_num(looks_until_hung(40, 120000), 0, "more than 1 % is work");
    begin();
    cpu[0] = 5000000;
    look(11);
    cpu[0] = 1000000;
    look(11);
    is_num(looks_until_hung(40, 0), 15, "a child that has ended takes its time with it: that is life");
}

static void test_ends(void)
{
    begin();
    hang_gone(&h, 0, now);
    is_num(looks_until_hung(40, 0), 16, "a worker that is done does not keep the others from being found");
    begin();
    hang_gone(&h, 0, now);
    hang_gone(&h, 1, now);
    is_num(looks_until_hung(40, 0), 0, "nobody is up: nobody hangs");
    begin();
    looks_until_hung(10, 0);
    hang_gone(&h, 0, now);
    is_num(looks_until_hung(40, 0), 15, "when one has ended the others have the whole time-out again");
    begin();
    look(11);
    hang_end(&h);
    ok(!hang_judge(&h, now + EL_SEC(1000)) && hang_sample_due(&h) == EL_NEVER,
       "the attempt is over: nothing is watched");
}

static void test_gap(void)
{
    begin();
    look(11);
    ok(!look(100000), "nobody looked for a day: the host slept, or elrun was stopped");
    is_num(looks_until_hung(40, 0), 15, "and the time counts anew");
    begin();
    looks_until_hung(10, 0);
    hang_begin(&h, now);
    is_num(looks_until_hung(40, 0), 16, "a new attempt begins with nothing on its record");
}

static void test_off(void)
{
    struct hang off;
    ok(hang_init(&off, 2, 0, NULL) == 0 && !off.worker, "no time-out: nothing is kept");
    hang_begin(&off, 1);
    ok(hang_sample_due(&off) == EL_NEVER, "and nobody looks");
    hang_gone(&off, 1, 2);
    hang_free(&off, NULL);
}

int main(void)
{
    test_silence();
    test_processor_time();
    test_ends();
    test_gap();
    test_off();
    hang_free(&h, NULL);
    return done();
}
