/* --step-pattern: what is a step, in which pieces ever it comes; what is new and what is made again; the time of one.
 */
#include "output/steps.h"
#include "lib/tap.h"

static struct steps s;

static void begin(const char *pattern)
{
    struct steps_pattern p;
    struct el_err e = {0};
    if (steps_pattern_parse(&p, pattern, &e))
        printf("# %s\n", e.text);
    steps_init(&s, &p);
    steps_attempt(&s, 0);
}

static void feed(const char *text, el_usec now)
{
    steps_feed(&s, 1, text, strlen(text), now);
}

static const char *refused(const char *pattern)
{
    static struct el_err e;
    struct steps_pattern p;
    e = (struct el_err){0};
    return steps_pattern_parse(&p, pattern, &e) ? e.text : "taken";
}

static void test_pattern(void)
{
    is_str(refused("step %d"), "taken", "a word and the number");
    is_str(refused("100%% of epoch, iteration %d/"), "taken", "with a percent sign");
    is_str(refused("step"),
           "want text of a line with one %d where the number stands, as in \"step %d\" or \"iteration %d/\"",
           "no number");
    ok(strstr(refused("step %d of %d"), "want text of a line with one %d"), "two numbers");
    ok(strstr(refused("step %s"), "%% is a percent sign"), "another conversion");
    ok(strstr(refused("step %"), "%% is a percent sign"), "a lone percent sign");
    is_str(refused("  %d/100"), "want text in front of %d: a number alone may be anything", "nothing in front");
    ok(strstr(refused("v2%d"), "right in front"), "a digit in front");
    ok(strstr(refused("step %d0"), "right behind"), "a digit behind");
    ok(strstr(refused("a\nb %d"), "one line"), "two lines");
    char text[200];
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 3, "%d", 3);
    is_str(refused(text), "want at most 64 bytes before the number and behind it", "too long");
}

/* How often the pattern is found, and the last number. */
static void is_found(const char *pattern, const char *text, long long times, long long last, const char *what)
{
    begin(pattern);
    feed(text, EL_SEC(1));
    is_num((long long)s.sum.made, times, what);
    is_num(s.sum.any ? (long long)s.last : -1, last, "  the number");
}

static void test_search(void)
{
    is_found("step %d", "step 1\n", 1, 1, "a line");
    is_found("step %d", "step 1", 0, -1, "the number may go on");
    is_found("step %d", "step1 step\t 2\n", 2, 2, "blanks in front of the number are free");
    is_found("step %d", "stepstep 7\n", 1, 7, "a beginning within a beginning");
    is_found("step %d", "step x\nstep\n3\n", 0, -1, "no number, or in another line");
    is_found("| %d/", "  3%|#   | 7/240 [00:03<01:40]\r  4%|#   | 8/240 [", 2, 8, "a progress bar");
    is_found(" iteration  %d / ", " iteration        5/     100 |", 0, -1, "a blank that must be there is not");
    is_found(" iteration  %d/ 100", " iteration        5/     100 |", 1, 5, "one blank stands for several");
    is_found("step %d", "step 999999999999999999 step 1234567890123456789 ", 1, 999999999999999999,
             "18 digits at most");
}

/* In pieces of every size the same is found as at once. */
static void test_pieces(void)
{
    static const char text[] =
        "x step  1 of 9\r\nstep\tstep 2 of\nsstep 3 of\nste step      4 off step 5 of step 12 of ..";
    bool same = true;
    begin("step %d of");
    feed(text, 1);
    const struct steps_sum once = s.sum;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        begin("step %d of");
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t n = sizeof text - 1 - at < piece ? sizeof text - 1 - at : piece;
            steps_feed(&s, 1, text + at, n, 1);
        }
        same &= s.sum.made == once.made && s.last == 12 && s.sum.highest == once.highest;
    }
    ok(same && once.made == 12 && s.last == 12, "the same in pieces of 1 byte and more");
    begin("step %d");
    steps_feed(&s, 1, "st", 2, 1);
    steps_feed(&s, 2, "step 1\n", 7, 1);
    steps_feed(&s, 1, "ep 2\n", 5, 1);
    is_num((long long)s.last, 2, "stdout and stderr do not meet in one line");
    char blanks[600];
    memset(blanks, ' ', sizeof blanks);
    begin("step %d");
    feed("step", 1);
    steps_feed(&s, 1, blanks, sizeof blanks, 1);
    feed("5\nstep 6\n", 1);
    is_num((long long)s.sum.made, 1, "a match that goes on for ever is none, the next one is found");
}

static void test_new_and_again(void)
{
    begin("step %d");
    for (unsigned i = 1; i <= 20; i++) {
        char line[32];
        snprintf(line, sizeof line, "step %u\n", i);
        feed(line, EL_SEC(10) + i * EL_MS(100));
    }
    is_num((long long)s.sum.made, 20, "twenty steps");
    ok(s.sum.step >= 97000 && s.sum.step <= 103000, "of a tenth of a second");
    steps_attempt(&s, 0);
    for (unsigned i = 16; i <= 30; i++) {
        char line[32];
        snprintf(line, sizeof line, "step %u\n", i);
        feed(line, EL_SEC(1000) + i * EL_MS(100));
    }
    is_num((long long)s.sum.again, 5, "from the checkpoint of step 15: 16 to 20 are made again");
    is_num((long long)s.sum.made, 30, "21 to 30 are new");
    ok(s.sum.step >= 97000 && s.sum.step <= 103000, "the time between the attempts is nobody's step");
    steps_attempt(&s, 0);
    feed("step 25\nstep 35\n", EL_SEC(2000));
    is_num((long long)s.sum.again, 5 + 6, "a jump over the highest is partly old: 25 and 26 to 30");
    is_num((long long)s.sum.made, 35, "and partly new");
    steps_attempt(&s, 0);
    feed("step 45\n", EL_SEC(3000));
    is_num((long long)s.sum.made, 45, "each tenth step is printed: it goes on at 35");
    el_usec good, twice;
    steps_times(&(struct steps_sum){.made = 30, .again = 10, .step = EL_SEC(1)}, EL_SEC(100), &good, &twice);
    ok(good == EL_SEC(30) && twice == EL_SEC(10), "their times");
    steps_times(&(struct steps_sum){.made = 30, .again = 10, .step = EL_SEC(1)}, EL_SEC(20), &good, &twice);
    ok(good == EL_SEC(15) && twice == EL_SEC(5), "never more than there was");
}

static void test_odd(void)
{
    begin("step %d");
    feed("step 5\nstep 5\nstep 5\n", 1);
    is_num((long long)s.sum.made, 1, "several lines of one step");
    feed("step 6\nstep 1\nstep 2\n", 2);
    ok(s.sum.wraps && s.sum.made == 4, "numbers that begin again with each epoch are counted, and told");
    steps_attempt(&s, 0);
    feed("step 1\n", 3);
    ok(s.sum.again == 0 && s.sum.made == 5, "then nothing is called repeated");
    begin("step %d");
    steps_attempt(&s, 100); /* another node had rank 0 before */
    feed("step 91\nstep 101\n", EL_SEC(1));
    ok(s.sum.again == 10 && s.sum.made == 1, "what others know of earlier rounds counts");
    begin("step %d");
    feed("step 10\n", EL_SEC(1));
    feed("step 20\nstep 30\n", EL_SEC(3));
    ok(s.sum.step > 95000 && s.sum.step < 105000, "two lines of ten steps each in one read of 2 s");
    for (int i = 0; i < 3; i++)
        feed("step 31\n", EL_SEC(4)); /* at most one advances */
    feed("step 32\n", EL_SEC(400000000));
    ok(s.sum.made == 1 + 22, "a pause of years between two steps");
}

int main(void)
{
    test_pattern();
    test_search();
    test_pieces();
    test_new_and_again();
    test_odd();
    return done();
}
