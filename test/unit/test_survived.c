/* Did the program go on after the exception that it printed? */
#include "failure/survived.h"

#include <stdio.h>
#include <string.h>

#include "failure/failure.h"
#include "failure/summary.h"
#include "lib/tap.h"
#include "util/array.h"

#define TB     "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n    f()\n"
#define LOGGED "2026-11-27 03:47:14,599 ERROR eval failed\n" TB
#define STEP   "2026-11-27 03:47:15,100 INFO step 1 loss 0.1\n"
#define STEPS4 STEP STEP STEP STEP
#define PLAIN4 "step 1 loss 0.1\nstep 2 loss 0.1\nstep 33 loss 0.12\nstep 4 loss 0.1\n"
#define CLOSE3 "2026-11-27 03:47:16 INFO closing dataset 1\nINFO Shutting down\nuploading logs\n"
#define CLOSED "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1\n"

static const struct {
    const char *why, *text, *message; /* message: of the failure; NULL: none */
    bool survived;
} rows[] = {
    {"an uncaught exception", TB "KeyError: 'a'\n", "KeyError: 'a'", false},
    {"logged as the program ends", LOGGED "KeyError: 'a'\n" STEP STEP "bye\n", "KeyError: 'a'", false},
    {"logged, then much output", LOGGED "KeyError: 'a'\n" STEPS4 STEPS4 STEPS4, NULL, true},
    {"... at whose end it says why it ends", LOGGED "KeyError: 'a'\n" STEPS4 STEPS4 STEPS4 "no data\n", NULL, true},
    {"logged, then a long tear-down, and an error that sums it up",
     LOGGED "KeyError: 'a'\n" CLOSE3 CLOSE3 CLOSE3 CLOSE3 CLOSE3 "2026-11-27 03:47:17 ERROR job failed\n",
     "KeyError: 'a'", false},
    {"not logged, and not that much: a thread goes on", TB "KeyError: 'a'\n" STEPS4 STEPS4, "KeyError: 'a'", false},
    {"not logged, then very much", TB "KeyError: 'a'\n" STEPS4 STEPS4 STEPS4 STEPS4 STEPS4, NULL, true},
    {"lines of no logger's", TB "KeyError: 'a'\n" PLAIN4 PLAIN4 PLAIN4 PLAIN4 PLAIN4, NULL, true},
    {"a message of many lines",
     TB "MyError: missing:\nalpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta\ntheta\niota\nkappa\nlambda\nmu\nnu\nxi\n"
        "omikron\npi\nrho\nsigma\ntau\nypsilon\nphi\nchi\npsi\nomega\n",
     "MyError: missing:", false},
    {"an error of its own later, behind other output", TB "KeyError: 'a'\nWARNING retrying\nFATAL: loss diverged\n",
     NULL, true},
    {"an error directly behind it is its last word", TB "KeyError: 'a'\nERROR: training failed\n", "KeyError: 'a'",
     false},
    {"who tells it again has not survived it",
     LOGGED "MyError: shard 17\n" STEPS4 STEPS4 STEPS4 "ERROR run failed: shard 17\n", "MyError: shard 17", false},
    {"who says that it goes on, does", "WARNING:root:no accelerator, falling back\n" TB "ImportError: x\n", NULL, true},
    {"... and who says that it does not, does not", "ERROR:root:failed, not retrying\n" TB "KeyError: 'a'\n",
     "KeyError: 'a'", false},
    {"no logger's line: such words are no proof", "will retry\n" TB "KeyError: 'a'\n", "KeyError: 'a'", false},
    {"what is printed at the end is no sign",
     TB "KeyError: 'a'\n[rank0]:[W1127 10:00:00.1 ProcessGroupNCCL.cpp:1] Warning: destroy\nwandb: a\nwandb: b\n"
        "host:1:2 [0] NCCL INFO comm 0x1 Destroy COMPLETE\nsys:1: ResourceWarning: unclosed\n"
        "Exception ignored in: <function f>\n" TB "ValueError: y\n",
     "KeyError: 'a'", false},
    {"a peer that is gone ends with many words", LOGGED CLOSED STEPS4 "ERROR giving up\n" STEPS4,
     "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1", false},
    {"survived, and then the one that ended it", LOGGED "KeyError: 'a'\n" STEPS4 STEPS4 STEPS4 TB "MyError: b\n",
     "MyError: b", false},
};

static void test_rows(void)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct el_mem mem = EL_MEM_INIT(0);
        struct failure f;
        failure_init(&f);
        f.end = FAILURE_EXIT;
        f.code = 1;
        failure_add_stderr(&f, rows[i].text, strlen(rows[i].text), &mem);
        failure_judge(&f, false, false);
        is_num(f.survived[0] != 0, rows[i].survived, rows[i].why);
        is_str(f.message ? f.message : "", rows[i].message ? rows[i].message : "", "... and what ended it");
        if (rows[i].survived)
            ok(f.class != FAILURE_CLASS_CODE && !f.stack, "... of which class the survived one says nothing");
        failure_free(&f, &mem);
        is_num(mem.used_bytes, 0, "memory came back");
    }
}

/* A helper's command line was refused, and the program ended of something else. */
static void test_usage(void)
{
    static const char text[] = "usage: report [-h]\nreport: error: unrecognized arguments: --gpu\n" STEPS4
                               "2026-11-27 03:47:17 ERROR license lost\n";
    struct failure f;
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 2;
    failure_add_stderr(&f, text, sizeof text - 1, NULL);
    failure_judge(&f, false, false);
    is_str(f.survived, "report: error: unrecognized arguments: --gpu",
           "refused arguments are told as an earlier error");
    is_str(failure_class_text(f.class), "unknown", "... that gives no class");
    is_str(failure_advice(&f), "", "... and no advice");
    summary_ending(&f, &out);
    is_str(el_buf_cstr(&out), "exit code 2; its last line: 2026-11-27 03:47:17 ERROR license lost",
           "... nor the cause");
    el_buf_free(&out);
    failure_free(&f, NULL);
}

static void test_what(void)
{
    static const char text[] = LOGGED "KeyError: 'a'\n" STEPS4 STEPS4 STEPS4 "no data in /data\n";
    struct failure f;
    failure_init(&f);
    failure_add_stderr(&f, text, sizeof text - 1, NULL);
    is_str(f.survived, "KeyError: 'a' (t.py:3)", "it is told with its place");
    is_str(f.found.message, "no data in /data", "... and the last line is that of the end");
    failure_free(&f, NULL);
}

/* Killed from outside a while after an exception: the one is not the other's reason. */
static void test_killed(void)
{
    static const struct {
        int signal;
        const char *text, *ending;
    } killed[] = {
        {9, LOGGED "KeyError: 'a'\n", "signal 9 (SIGKILL), from outside elrun; it had printed: KeyError: 'a' (t.py:3)"},
        {2, TB "KeyboardInterrupt\n", "signal 2 (SIGINT), from outside elrun: KeyboardInterrupt (t.py:3)"},
    };
    for (size_t i = 0; i < COUNT_OF(killed); i++) {
        struct failure f;
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        failure_init(&f);
        f.end = FAILURE_SIGNAL;
        f.code = killed[i].signal;
        failure_add_stderr(&f, killed[i].text, strlen(killed[i].text), NULL);
        failure_judge(&f, false, false);
        summary_ending(&f, &out);
        is_str(el_buf_cstr(&out), killed[i].ending, killed[i].ending);
        el_buf_free(&out);
        failure_free(&f, NULL);
    }
}

int main(void)
{
    test_killed();
    test_rows();
    test_what();
    test_usage();
    return done();
}
