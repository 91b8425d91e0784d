/* Who of the workers that hung kept the others waiting (failure/hang_report.h), and what the report says of it. */
#include "failure/hang_report.h"

#include <stdio.h>
#include <string.h>

#include "failure/summary.h"
#include "lib/tap.h"

static struct failure f[8];
static const struct failure *all[8];

static void node_of(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        failure_init(&f[i]);
        f[i].rank = f[i].local_rank = i;
        f[i].host = "node-1";
        f[i].role = "default";
        f[i].pid = 100 + (int)i;
        f[i].end = FAILURE_SIGNAL;
        f[i].code = 6;
        f[i].at = 1000 - i; /* the last rank died first */
        f[i].hung = true;
        all[i] = &f[i];
    }
}

static void stands(unsigned i, const char *function, unsigned line)
{
    static char stack[8][256];
    snprintf(stack[i], sizeof stack[i],
             "Fatal Python error: Aborted\n\nCurrent thread 0x00007f0000000%03x (most recent call first):\n"
             "  File \"/home/me/train.py\", line %u in %s\n  File \"/home/me/train.py\", line 99 in <module>\n",
             i, line, function);
    f[i].stack = stack[i];
    snprintf(f[i].found.file, sizeof f[i].found.file, "/home/me/train.py");
    snprintf(f[i].found.function, sizeof f[i].found.function, "%s", function);
    f[i].found.line = line;
    f[i].found.user_frame = true;
}

static void text_is(unsigned n, const char *want, const char *what)
{
    struct el_buf out = EL_BUF_INIT(NULL, 4096);
    hang_report_text(&out, all, n);
    is_str(el_buf_cstr(&out), want, what);
    el_buf_free(&out);
}

/* As a coordinator has them whose agents die while they tell: in any order, and a rank twice. */
static void test_told_twice(void)
{
    node_of(4);
    for (unsigned i = 0; i < 4; i++)
        stands(i, "all_reduce", 28);
    stands(2, "load", 7);
    f[0].rank = 3, f[1].rank = 2, f[1].stack = NULL, f[3].rank = 1;
    text_is(4, "2 in load (train.py:7); 1,3 in all_reduce (train.py:28)", "the one that tells more counts");
    f[2].rank = 3;
    text_is(4, "2: no stack; 1,3 in all_reduce (train.py:28)", "of two that tell as much the first counts");
    is_num(hang_report_odd(all, 4, NULL), 1, "and ranks are counted once");
}

static void test_places(void)
{
    node_of(4);
    is_num(hang_report_odd(all, 4, NULL), -1, "no stack is known: nobody is odd");
    for (unsigned i = 0; i < 4; i++)
        stands(i, "all_reduce", 28);
    is_num(hang_report_odd(all, 4, NULL), -1, "all in one place: nobody is odd");
    stands(2, "load", 7);
    is_num(hang_report_odd(all, 4, NULL), 2, "one elsewhere");
    text_is(4, "2 in load (train.py:7); 0-1,3 in all_reduce (train.py:28)", "who stood where");
    stands(3, "load", 7);
    is_num(hang_report_odd(all, 4, NULL), -1, "two and two: who waits for whom cannot be told");
    f[1].odd = true;
    is_num(hang_report_odd(all, 4, NULL), 1, "who is known to be odd stays so");
    f[1].odd = false;
    stands(3, "all_reduce", 28);
    stands(2, "all_reduce", 28);
    f[0].stack = NULL;
    is_num(hang_report_odd(all, 4, NULL), 0, "one that could not even print its stack");
    f[0].hung = f[1].hung = f[2].hung = f[3].hung = false;
    is_num(hang_report_odd(all, 4, NULL), -1, "nobody hung");
    text_is(4, "", "and nothing is said");
}

static void test_cause(void)
{
    node_of(3);
    f[1].odd = true;
    for (unsigned i = 0; i < 3; i++)
        failure_judge(&f[i], true, false);
    is_num(failure_cause(all, 3), 1, "the odd one is the cause, whoever died first of the signal");
    is_num(f[0].class, FAILURE_CLASS_HANG, "the class");
    f[1].odd = false;
    is_num(failure_cause(all, 3), 0, "none is odd: the lowest rank stands for all");
    f[2].hung = false;
    failure_judge(&f[2], false, false);
    is_num(failure_cause(all, 3), 2, "a crash of its own explains why the others stood");
    node_of(2);
    f[0].hung = f[1].hung = false;
    failure_judge(&f[0], true, false);
    failure_judge(&f[1], true, false);
    is_num(failure_cause(all, 2), -1, "stopped by elrun and not hung: no cause");
}

static void test_report(void)
{
    node_of(4);
    for (unsigned i = 0; i < 4; i++) {
        stands(i, i == 1 ? "load" : "all_reduce", i == 1 ? 7 : 28);
        failure_judge(&f[i], true, false);
    }
    f[1].odd = true;
    struct failure_report r = {.script = "train.py", .failures = all, .failures_count = 4};
    struct el_buf out = EL_BUF_INIT(NULL, 1 << 16);
    ok(summary_verdict(&r, &out) == 0 &&
           strcmp(el_buf_cstr(&out),
                  "rank 1 (local rank 1) failed: it hung: no output, no processor time; ended by elrun; it "
                  "stood in load (train.py:7)") == 0,
       "the verdict");
    out.len = 0;
    ok(summary_write(&r, &out, &summary_plain, 0) == 0, "the report");
    ok(strstr(el_buf_cstr(&out), "hung too: 0,2-3\n") && !strstr(el_buf_cstr(&out), "stopped by elrun: "),
       "the others hung too, and are in one line");
    ok(strstr(el_buf_cstr(&out), "their stacks: rank 1 in load (train.py:7); 0,2-3 in all_reduce (train.py:28)\n") !=
           NULL,
       "and where they stood");
    el_buf_free(&out);
}

int main(void)
{
    test_told_twice();
    test_places();
    test_cause();
    test_report();
    return done();
}
