/* What is said of a failure whose exception only tells of a process behind it, or names its cause twice. */
#include "failure/summary.h"
#include "lib/tap.h"

#define AT "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in main\n    g()\n"

static const char *told(const char *text)
{
    static char out[4096];
    struct el_buf page = EL_BUF_INIT(NULL, 0);
    struct failure f;
    const struct failure *all[] = {&f};
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    failure_add_stderr(&f, text, strlen(text), NULL);
    failure_judge(&f, false, false);
    struct failure_report r = {.script = "t.py", .failures = all, .failures_count = 1};
    summary_write(&r, &page, &summary_plain, 0);
    snprintf(out, sizeof out, "%s", el_buf_cstr(&page));
    el_buf_free(&page);
    failure_free(&f, NULL);
    return out;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Its error file is that of an elrun inside, whose words have the exception in them. */
static void test_nested(void)
{
    static const char json[] =
        "{\"message\": {\"message\": \"exit code 1: ValueError: no x (t.py:3)\", \"extraInfo\": {\"py_callstack\": "
        "\"Traceback (most recent call last):\\n  File \\\"/w/t.py\\\", line 3, in f\\n    g()\\nValueError: no "
        "x\\n\", "
        "\"timestamp\": \"1700000000\"}}}";
    struct el_buf page = EL_BUF_INIT(NULL, 0);
    struct errfile e;
    struct failure f;
    const struct failure *all[] = {&f};
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    errfile_init(&e);
    errfile_feed(&e, json, sizeof json - 1);
    errfile_end(&e);
    failure_add_file(&f, &e, NULL);
    failure_judge(&f, false, false);
    struct failure_report r = {.script = "t.py", .failures = all, .failures_count = 1};
    summary_write(&r, &page, &summary_plain, 0);
    is_num(count(el_buf_cstr(&page), "ValueError: no x"), 1, "the exception of an elrun inside is told once");
    ok(strstr(el_buf_cstr(&page), "line 3, in f"), "... with its frames");
    el_buf_free(&page);
    failure_free(&f, NULL);
}

int main(void)
{
    test_nested();
    const char *pool = AT "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated "
                          "abruptly while the future was running or pending.\n";
    char crashed[2048];
    ok(strstr(told(pool), "  advice: a worker process of the pool died"),
       "a pool whose worker is gone: of what is open");
    snprintf(crashed, sizeof crashed,
             "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007fb295becb80 (most recent call first):\n"
             "  File \"/w/t.py\", line 77 in g\n\n%s",
             pool);
    ok(strstr(told(crashed), "  because: Fatal Python error: Segmentation fault (t.py:77)"),
       "it had crashed, and said so");
    ok(!strstr(told(crashed), "  advice: "), "... nothing is said of memory");
    ok(!strstr(told(AT "    raise ValueError(\"bad: 'NVRM: Xid (PCI:0000:3b:00): 79, x'\")\n"
                       "ValueError: bad: 'NVRM: Xid (PCI:0000:3b:00): 79, x'\n"),
               "because: "),
       "what a line of a frame says already is not told as a reason");
    ok(!strstr(told("CUDA error: uncorrectable ECC error encountered\n"), "because: "), "nor what the last line says");
    ok(strstr(told("NCCL WARN Call to ibv_reg_mr failed\n" AT "RuntimeError: NCCL error: unhandled system error\n"),
              "  because: NCCL WARN Call to ibv_reg_mr failed"),
       "what stands in no line that is shown is");
    const char *loader =
        AT "  File \"/usr/lib/python3.11/multiprocessing/resource_sharer.py\", line 86, in get_connection\n"
           "    c = Client(address)\nConnectionResetError: [Errno 104] Connection reset by peer\n";
    ok(strstr(told(loader), "failed: a data loader's worker process died while it handed over a batch: "
                            "ConnectionResetError: [Errno 104] Connection reset by peer"),
       "a connection to a data loader's worker: that one's death is named");
    const char *group = told("  + Exception Group Traceback (most recent call last):\n"
                             "  |   File \"/w/t.py\", line 3, in main\n"
                             "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
                             "  +-+---------------- 1 ----------------\n"
                             "    | Traceback (most recent call last):\n"
                             "    |   File \"/w/t.py\", line 2, in a\n"
                             "    | ValueError: stream 7 has no header\n"
                             "    +------------------------------------\n");
    is_num(count(group, "stream 7 has no header"), 1, "the exception of a group is told once");
    is_num(count(group, "unhandled errors in a TaskGroup"), 1, "... as the group's own");
    return done();
}
