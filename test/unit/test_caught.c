/* An exception that was caught and printed is no reason of an end that came of something else. */
#include "failure/caught.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "failure/summary.h"
#include "lib/tap.h"
#include "util/array.h"

#define TB      "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    f()\n"
#define KEY     TB "KeyError: 'a'\n"
#define ECC     TB "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
#define BUSY    TB "OSError: 503 Server Error: Service Unavailable for url: http://w\n"
#define CLOSED  TB "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1\n"
#define FATAL   "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
#define IN_MAIN "  File \"t.py\", line 9 in <module>\n"
#define LIMIT   "Timeout (0:00:00.200000)!\nThread 0x1 (most recent call first):\n  File \"t.py\", line 5 in <module>\n"
#define LOG     "2026-11-27 03:47:14,599 ERROR failed\n"
#define STEP    "2026-11-27 03:47:15,100 INFO step 1 loss 0.1\n"

static const struct {
    const char *why, *text;
    enum failure_end end;
    int code;
    unsigned quiet_ms, elapsed_ms;
    enum failure_class class;
    const char *ending;
} rows[] = {
    {"an uncaught exception", KEY, FAILURE_EXIT, 1, 10, 0, FAILURE_CLASS_CODE, "exit code 1: KeyError: 'a' (t.py:3)"},
    {"... and a slow end", KEY, FAILURE_EXIT, 1, 5000, 0, FAILURE_CLASS_CODE, "exit code 1: KeyError: 'a' (t.py:3)"},
    {"... which says more", KEY STEP "bye\n", FAILURE_EXIT, 1, 500, 0, FAILURE_CLASS_CODE,
     "exit code 1: KeyError: 'a' (t.py:3)"},
    {"caught, and lines and time after it", ECC "retry ok\n", FAILURE_EXIT, 1, 1100, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 1; it had printed: RuntimeError: CUDA error: uncorrectable ECC error encountered (t.py:3)"},
    {"of long ago", KEY, FAILURE_EXIT, 1, 10001, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 1; it had printed: KeyError: 'a' (t.py:3)"},
    {"logged, and a status chosen for it", LOG KEY, FAILURE_EXIT, 3, 100, 0, FAILURE_CLASS_CODE,
     "exit code 3: KeyError: 'a' (t.py:3)"},
    {"... with a last word", KEY STEP "Training failed\n", FAILURE_EXIT, 3, 100, 0, FAILURE_CLASS_CODE,
     "exit code 3: KeyError: 'a' (t.py:3)"},
    {"logged as a warning", "WARNING:root:no apex\n" KEY, FAILURE_EXIT, 3, 100, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 3; it had printed: KeyError: 'a' (t.py:3)"},
    {"another status later", BUSY, FAILURE_EXIT, 3, 500, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 3; it had printed: OSError: 503 Server Error: Service Unavailable for url: http://w (t.py:3)"},
    {"another status, of a process that has loaded much", BUSY, FAILURE_EXIT, 3, 900, 4100, FAILURE_CLASS_NETWORK,
     "exit code 3: OSError: 503 Server Error: Service Unavailable for url: http://w (t.py:3)"},
    {"... and of one that ran for long", BUSY, FAILURE_EXIT, 3, 2100, 900000, FAILURE_CLASS_UNKNOWN,
     "exit code 3; it had printed: OSError: 503 Server Error: Service Unavailable for url: http://w (t.py:3)"},
    {"another status behind other output", KEY STEP, FAILURE_EXIT, 3, 10, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 3; it had printed: KeyError: 'a' (t.py:3)"},
    {"who has lost its peers leaves as it likes", CLOSED, FAILURE_EXIT, 3, 2000, 0, FAILURE_CLASS_NETWORK, NULL},
    {"... however long that takes", CLOSED, FAILURE_EXIT, 1, 30000, 0, FAILURE_CLASS_NETWORK, NULL},
    {"... but chose its status long after", CLOSED, FAILURE_EXIT, 3, 13000, 0, FAILURE_CLASS_UNKNOWN, NULL},
    {"a crash at work", KEY FATAL IN_MAIN, FAILURE_SIGNAL, SIGSEGV, 10, 0, FAILURE_CLASS_UNKNOWN,
     "signal 11 (SIGSEGV): Fatal Python error: Segmentation fault (t.py:9)"},
    {"a crash in the tear-down of an uncaught one", KEY FATAL "  <no Python frame>\n", FAILURE_SIGNAL, SIGSEGV, 10, 0,
     FAILURE_CLASS_UNKNOWN, "signal 11 (SIGSEGV): KeyError: 'a' (t.py:3)"},
    {"a crash later", KEY, FAILURE_SIGNAL, SIGSEGV, 1500, 0, FAILURE_CLASS_UNKNOWN,
     "signal 11 (SIGSEGV); it had printed: KeyError: 'a' (t.py:3)"},
    {"a fault that it had survived before", ECC "falling back to cpu\n" TB "ConnectionResetError: [Errno 104] reset\n",
     FAILURE_EXIT, 1, 10, 0, FAILURE_CLASS_NETWORK, "exit code 1: ConnectionResetError: [Errno 104] reset (t.py:3)"},
    {"a fault that is told before it", "NCCL WARN uncorrectable ECC error encountered\n" CLOSED, FAILURE_EXIT, 1, 10, 0,
     FAILURE_CLASS_HARDWARE, NULL},
    {"killed", TB "MemoryError: cache of 10 GiB\n", FAILURE_SIGNAL, SIGKILL, 500, 0, FAILURE_CLASS_OUTSIDE,
     "signal 9 (SIGKILL), from outside elrun; it had printed: MemoryError: cache of 10 GiB (t.py:3)"},
    {"faulthandler's limit ended it", LIMIT, FAILURE_EXIT, 1, 10, 0, FAILURE_CLASS_HANG,
     "exit code 1: Timeout: faulthandler's time limit ran out (t.py:5)"},
    {"... or only showed where it stood", LIMIT, FAILURE_EXIT, 5, 10, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 5; it had printed: Timeout: faulthandler's time limit ran out (t.py:5)"},
    {"... long ago", LIMIT, FAILURE_EXIT, 1, 1500, 0, FAILURE_CLASS_UNKNOWN,
     "exit code 1; it had printed: Timeout: faulthandler's time limit ran out (t.py:5)"},
};

/* Two ranks print the same, and one of them goes on: so did the other. */
static void test_both(void)
{
    static const struct {
        const char *text;
        int code;
        bool same;
        const char *why;
    } rows_both[] = {
        {KEY TB "ValueError: bad lr\n", 1, true, "it raised something else later"},
        {KEY, 3, true, "it chose its status a while later"},
        {KEY, 1, false, "it has failed of the same"},
        {TB "ValueError: bad lr\n", 1, false, "it printed something else"},
        {TB "KeyError: 'b'\n" TB "ValueError: bad lr\n", 1, false, "it survived something else"},
    };
    struct failure f;
    failure_init(&f);
    f.end = FAILURE_SIGNAL;
    f.code = SIGTERM;
    failure_add_stderr(&f, KEY, sizeof KEY - 1, NULL);
    failure_judge(&f, true, false);
    for (size_t i = 0; i < COUNT_OF(rows_both); i++) {
        struct failure other;
        failure_init(&other);
        other.end = FAILURE_EXIT;
        other.code = rows_both[i].code;
        other.at = EL_SEC(100);
        failure_add_stderr(&other, rows_both[i].text, strlen(rows_both[i].text), NULL);
        failure_add_times(&other, other.at - EL_MS(500), 0);
        failure_judge(&other, false, false);
        is_num(caught_by_other(&f, &other), rows_both[i].same, rows_both[i].why);
        failure_free(&other, NULL);
    }
    failure_free(&f, NULL);
}

/* By its source. */
static void test_handled(void)
{
    static const struct {
        const char *why, *text;
        bool stopped;
        enum handler handler;
        bool aside;
        enum failure_by by;
    } rows_handled[] = {
        {"it had caught that, and chose its status soon after", KEY, false, HANDLER_GOES_ON, true, FAILURE_BY_ITSELF},
        {"nobody had", KEY, false, HANDLER_NONE, false, FAILURE_BY_ITSELF},
        {"who has lost its peers leaves as it likes", CLOSED, false, HANDLER_GOES_ON, false, FAILURE_BY_ITSELF},
        {"stopped while it went on without a program that it ran", KEY, true, HANDLER_ELSEWHERE, false,
         FAILURE_BY_ELRUN},
        {"which ended it", KEY, false, HANDLER_ELSEWHERE, false, FAILURE_BY_ITSELF},
        {"stopped while it went on", KEY, true, HANDLER_GOES_ON, false, FAILURE_BY_ELRUN},
        {"stopped while it cleared up", KEY, true, HANDLER_UNKNOWN, false, FAILURE_BY_ITSELF},
        {"stopped long after it had failed", KEY, true, HANDLER_NONE, false, FAILURE_BY_ITSELF},
    };
    for (size_t i = 0; i < COUNT_OF(rows_handled); i++) {
        const bool none = rows_handled[i].handler == HANDLER_NONE;
        struct failure f;
        failure_init(&f);
        f.end = rows_handled[i].stopped ? FAILURE_SIGNAL : FAILURE_EXIT;
        f.code = rows_handled[i].stopped ? SIGTERM : 1;
        f.at = EL_SEC(100);
        f.first = rows_handled[i].stopped ? f.at - EL_MS(100) : 0;
        failure_add_stderr(&f, rows_handled[i].text, strlen(rows_handled[i].text), NULL);
        f.said_at = f.at - (none ? EL_SEC(9) : EL_MS(300));
        failure_add_times(&f, f.said_at, 0);
        failure_add_handler(&f, rows_handled[i].handler, NULL);
        failure_judge(&f, rows_handled[i].stopped, false);
        is_num(f.aside, rows_handled[i].aside, rows_handled[i].why);
        is_num(f.by, rows_handled[i].by, "... by whom");
        if (none)
            is_num(failure_at(&f), f.said_at, "... it failed when it said so");
        failure_free(&f, NULL);
    }
}

/* ... and what it said behind that. */
static void test_behind(void)
{
    static const struct {
        const char *why, *text;
        int code;
        enum failure_class class;
        const char *ending;
    } rows_behind[] = {
        {"its last word", KEY "no data is left\n", 1, FAILURE_CLASS_UNKNOWN,
         "exit code 1; its last line: no data is left"},
        {"it refused its arguments", KEY "usage: t.py [-h]\nt.py: error: unrecognized arguments: --bad\n", 2,
         FAILURE_CLASS_CODE, "exit code 2; its last line: t.py: error: unrecognized arguments: --bad"},
        {"only a warning", KEY "/w/t.py:9: UserWarning: there appear to be 6 leaked semaphores\n  warn()\n", 1,
         FAILURE_CLASS_UNKNOWN, "exit code 1"},
        {"nothing", KEY, 1, FAILURE_CLASS_UNKNOWN, "exit code 1; it had printed: KeyError: 'a' (t.py:3)"},
        {"the loss of a rank is a reason", CLOSED "giving up\n", 1, FAILURE_CLASS_NETWORK, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows_behind); i++) {
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        struct failure f;
        failure_init(&f);
        f.end = FAILURE_EXIT;
        f.code = rows_behind[i].code;
        f.at = EL_SEC(100);
        failure_add_stderr(&f, rows_behind[i].text, strlen(rows_behind[i].text), NULL);
        failure_add_times(&f, f.at - EL_MS(20), 0);
        failure_add_handler(&f, HANDLER_GOES_ON, NULL);
        failure_judge(&f, false, false);
        summary_ending(&f, &out);
        is_num(f.class, rows_behind[i].class, rows_behind[i].why);
        if (rows_behind[i].ending)
            is_str(el_buf_cstr(&out), rows_behind[i].ending, rows_behind[i].why);
        if (i < 3)
            is_str(f.survived, "KeyError: 'a' (t.py:3)", "... and what it survived");
        el_buf_free(&out);
        failure_free(&f, NULL);
    }
}

int main(void)
{
    test_both();
    test_behind();
    test_handled();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct el_buf out = EL_BUF_INIT(NULL, 0);
        struct failure f;
        failure_init(&f);
        f.end = rows[i].end;
        f.code = rows[i].code;
        f.at = EL_SEC(100);
        f.elapsed = EL_MS(rows[i].elapsed_ms);
        failure_add_stderr(&f, rows[i].text, strlen(rows[i].text), NULL);
        failure_add_times(&f, f.at - EL_MS(rows[i].quiet_ms), 0);
        failure_judge(&f, false, false);
        summary_ending(&f, &out);
        is_num(f.class, rows[i].class, rows[i].why);
        if (rows[i].ending)
            is_str(el_buf_cstr(&out), rows[i].ending, rows[i].why);
        el_buf_free(&out);
        failure_free(&f, NULL);
    }
    struct failure f; /* elrun stopped it: the class is that of no rank which only went on */
    failure_init(&f);
    f.end = FAILURE_SIGNAL;
    f.code = SIGTERM;
    failure_add_stderr(&f, ECC STEP STEP STEP STEP STEP, strlen(ECC STEP STEP STEP STEP STEP), NULL);
    failure_judge(&f, true, false);
    ok(f.by == FAILURE_BY_ELRUN && f.class == FAILURE_CLASS_UNKNOWN, "what a healthy rank had printed has no class");
    failure_free(&f, NULL);
    return done();
}
