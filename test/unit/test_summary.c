/* The report as text, compared with the files of test/data/summary.  SUMMARY_WRITE=1 writes them anew: read the
 * difference.
 */
#include "failure/summary.h"
#include "util/text.h"
#include "util/utf8.h"
#include "util/wrap.h"
#include "lib/tap.h"

#include <jansson.h>

static struct failure all[100];
static const struct failure *refs[100];
static struct el_mem mem = EL_MEM_INIT(0);

static struct failure *add(struct failure_report *r, enum failure_end end, int code)
{
    struct failure *f = &all[r->failures_count];
    failure_init(f);
    f->rank = f->local_rank = r->failures_count;
    f->pid = 1000 + (int)f->rank;
    f->role = "default";
    f->host = "node-1";
    f->end = end;
    f->code = code;
    f->at = f->elapsed = EL_SEC(100 + f->rank);
    f->wall_usec = INT64_C(1700000000000000) + f->rank * 1000;
    snprintf(f->time_text, sizeof f->time_text, "2023-11-14_22:13:20");
    refs[r->failures_count++] = f;
    return f;
}

static struct failure_report start(void)
{
    return (struct failure_report){.script = "train.py", .failures = refs};
}

static void finish(struct failure_report *r)
{
    for (unsigned i = 0; i < r->failures_count; i++)
        failure_free(&all[i], &mem);
}

static void stderr_of(struct failure *f, const char *text)
{
    failure_add_stderr(f, text, strlen(text), &mem);
}

static void judge_stopped(unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++)
        failure_judge(&all[i], true, false);
}

static void golden_at(const struct failure_report *r, const char *name, const struct summary_style *style,
                      unsigned columns)
{
    char path[200], want[20000];
    struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
    ok(summary_write(r, &out, style, columns) == 0, name);
    snprintf(path, sizeof path, "test/data/summary/%s.txt", name);
    if (getenv("SUMMARY_WRITE")) {
        FILE *w = fopen(path, "wb");
        fwrite(out.v, 1, out.len, w);
        fclose(w);
    }
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(want, 1, sizeof want - 1, f) : 0;
    want[n] = 0;
    if (f)
        fclose(f);
    is_str(el_buf_cstr(&out), want, path);
    struct el_buf json = EL_BUF_INIT(&mem, 1 << 20);
    ok(summary_json(r, &json) == 0, "as JSON");
    json_t *v = json_loadb(json.v, json.len, JSON_REJECT_DUPLICATES, NULL);
    ok(v && !memchr(json.v, '\n', json.len), "one object on one line");
    ok(!json_is_null(json_object_get(v, "no_restart")), "why there is no restart, or nothing of it");
    json_decref(v);
    el_buf_free(&json);
    el_buf_free(&out);
}

static void golden(const struct failure_report *r, const char *name, const struct summary_style *style)
{
    golden_at(r, name, style, 0);
}

static const char trace[] =
    "step 1\nTraceback (most recent call last):\n  File \"/home/user/train.py\", line 12, in main\n"
    "    step(x)\nValueError: bad shape (3, 4)\n";

static void test_exception(void)
{
    struct failure_report r = start();
    r.restarts = r.restarts_max = 3;
    r.log_dir = "/tmp/elrun_a/none_b";
    add(&r, FAILURE_SIGNAL, 15);
    struct failure *f = add(&r, FAILURE_EXIT, 1);
    failure_set_line(f, &f->error_file, "/tmp/elrun_a/none_b/attempt_3/1/error.json", &mem);
    failure_set_line(f, &f->log_file, "/tmp/elrun_a/none_b/attempt_3/1/stderr.log", &mem);
    for (int i = 2; i < 8; i++)
        add(&r, FAILURE_SIGNAL, 15);
    judge_stopped(0, 7);
    stderr_of(f, trace);
    failure_judge(f, false, false);
    golden(&r, "exception", &summary_plain);
    golden(&r, "exception_colour", &summary_colour);
    finish(&r);
}

/* What elrun did to a worker that hung says nothing of the program. */
static void test_hung(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_SIGNAL, 6);
    struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
    f->hung = true;
    f->watch = FAILURE_WATCH_TERMINAL;
    failure_judge(f, true, false);
    f->by = FAILURE_BY_ELRUN;
    summary_write(&r, &out, &summary_plain, 0);
    ok(strstr(el_buf_cstr(&out), "failed: it hung: ") && !strstr(el_buf_cstr(&out), "SIGABRT"),
       "a signal by elrun is not put down to the program");
    el_buf_free(&out);
    finish(&r);
}

/* The same job as torchrun saw it in test/data/failures/nested_record: its fields, in its order. */
static void test_record(void)
{
    struct failure_report r = start();
    add(&r, FAILURE_SIGNAL, 15);
    failure_judge(&all[0], true, false);
    struct failure *f = add(&r, FAILURE_EXIT, 1);
    static struct errfile e;
    static const char json[] =
        "{\"message\": {\"message\": \"ValueError: bad\\nsecond\", \"extraInfo\": {\"py_callstack\": "
        "\"Traceback (most recent call last):\\n  File \\\"/home/user/train.py\\\", line 5, in "
        "main\\n    raise\\nValueError: bad\\nsecond\\n\", \"timestamp\": \"1699999999\"}}}";
    errfile_init(&e);
    errfile_feed(&e, json, sizeof json - 1);
    errfile_end(&e);
    failure_set_line(f, &f->error_file, "/tmp/e/attempt_0/1/error.json", &mem);
    stderr_of(f, "other words\nTraceback (most recent call last):\n  File \"x.py\", line 1, in x\nKeyError: 1\n");
    failure_add_file(f, &e, &mem);
    failure_judge(f, false, false);
    golden(&r, "record", &summary_plain);
    finish(&r);
}

static void test_no_traceback(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_EXIT, 3);
    failure_judge(f, false, false);
    golden(&r, "not_looked", &summary_plain);
    f->watch = FAILURE_WATCH_TERMINAL;
    failure_judge(f, false, false);
    golden(&r, "terminal", &summary_plain);
    f->watch = FAILURE_WATCH_YES;
    golden(&r, "silent", &summary_plain);
    stderr_of(f, "loading\n\033[31mno data\033[0m in /data\n");
    failure_set_line(f, &f->error_file, "/tmp/e/error.json", &mem);
    f->file_state = ERRFILE_BROKEN;
    golden(&r, "last_lines", &summary_plain);
    finish(&r);
}

static void test_signals(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_SIGNAL, 9);
    f->at += EL_SEC(9);
    failure_judge(f, false, false);
    failure_judge(add(&r, FAILURE_SIGNAL, 9), false, true);
    f = add(&r, FAILURE_SIGNAL, 11);
    f->core_dumped = true;
    failure_judge(f, false, false);
    failure_judge(add(&r, FAILURE_UNKNOWN, 0), false, false);
    golden(&r, "signals", &summary_plain);
    finish(&r);
    r = start();
    f = add(&r, FAILURE_NOT_STARTED, 66);
    f->message = el_strndup(&mem, "train.sh: Permission denied", 27);
    failure_judge(f, false, false);
    golden(&r, "not_started", &summary_plain);
    finish(&r);
    r = start();
    add(&r, FAILURE_SIGNAL, 15);
    add(&r, FAILURE_SIGNAL, 15);
    judge_stopped(0, 1);
    golden(&r, "no_cause", &summary_plain);
    finish(&r);
}

static void test_storm(void)
{
    struct failure_report r = start();
    for (int i = 0; i < 100; i++)
        failure_judge(add(&r, FAILURE_EXIT, 7), i == 40 || i == 41, false);
    golden(&r, "storm", &summary_plain);
    finish(&r);
}

/* Eight ranks whose peer went away: the same words but for the port. */
static void test_followers(void)
{
    struct failure_report r = start();
    struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
    char text[400];
    failure_judge(add(&r, FAILURE_SIGNAL, 9), false, false);
    for (int i = 1; i < 8; i++) {
        struct failure *f = add(&r, FAILURE_EXIT, 1);
        snprintf(text, sizeof text, "%s", trace);
        snprintf(strstr(text, "ValueError"), 200,
                 "RuntimeError: [../gloo/transport/tcp/pair.cc:537] Read error [10.0.0.1]:%d: Connection reset by "
                 "peer. This is typically caused by a bug\n",
                 30000 + i);
        stderr_of(f, text);
        failure_judge(f, false, false);
    }
    ok(summary_write(&r, &out, &summary_plain, 0) == 0, "a report");
    ok(strstr(el_buf_cstr(&out),
              "\n  7 others ended because of it: ranks 1-7 (RuntimeError: Read error: Connection reset by peer)\n"),
       "followers are one line, whatever port they name");
    ok(!strstr(el_buf_cstr(&out), "failed too"), "and no more");
    el_buf_free(&out);
    finish(&r);
}

/* What stands for several is true of each; and who only waited has not made the others end. */
static void test_alike(void)
{
    static const char *const ways[] = {"recv", "send", "recv"};
    struct failure_report r = start();
    struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
    char text[400];
    for (int i = 0; i < 3; i++) {
        struct failure *f = add(&r, FAILURE_EXIT, 1);
        snprintf(text, sizeof text, "%s", trace);
        snprintf(
            strstr(text, "ValueError"), 200,
            "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for %s operation\n",
            ways[i]);
        stderr_of(f, text);
        failure_judge(f, false, false);
    }
    failure_judge(add(&r, FAILURE_SIGNAL, 15), true, false);
    ok(summary_write(&r, &out, &summary_plain, 0) == 0, "a report");
    ok(strstr(el_buf_cstr(&out), "\n  1 other failed in the same way: rank 2\n"), "the same words");
    ok(strstr(el_buf_cstr(&out), "\n  2 others ended too: ranks 1 (RuntimeError: Timed out waiting 6000ms for send "
                                 "operation), 3 (stopped by elrun)\n"),
       "other ones apart, and no victims of one that only waited");
    el_buf_free(&out);
    finish(&r);
}

/* The evidence: what each line of it is of, and nothing that the first line says already. */
static void test_evidence(void)
{
    static const struct {
        const char *text, *says, *not, *about;
        enum failure_end end;
        int code;
    } rows[] = {
        {"[rank0]: | t.py:10 |\n[rank0]: ValueError: bad batch 17\n",
         "elrun: rank 0 failed: exit code 1; its last line: ValueError: bad batch 17\n  its stderr, before that line:\n"
         "    | t.py:10 |\n  pid",
         NULL, "the last line, in front of which stands the rank, is said once", FAILURE_EXIT, 1},
        {"Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
         "  File \"t.py\", line 4 in f\n\nExtension modules: torch._C, numpy.linalg (total: 2)\n",
         "(t.py:4)\n    Current thread 0x00007f (most recent call first):\n      File \"t.py\", line 4 in f\n  pid",
         "Extension", "which modules are loaded is no evidence", FAILURE_SIGNAL, 11},
        {"Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nIndexError: 50257\n\n"
         "During handling of the above exception, another exception occurred:\n\n"
         "Traceback (most recent call last):\n  File \"t.py\", line 2, in g\nRuntimeError: upload refused\n",
         "\n    first: IndexError: 50257\n", NULL, "what was being handled when it was raised", FAILURE_EXIT, 1},
        {"Process ForkProcess-1:\nTraceback (most recent call last):\n  File \"t.py\", line 1, in f\nIndexError: x\n",
         "failed: in a child process of it: IndexError: x (t.py:1)\n", NULL, "the exception is a child process's",
         FAILURE_EXIT, 1},
        {"Exception in thread Thread-1 (f):\nTraceback (most recent call last):\n  File \"t.py\", line 1, in f\n"
         "IndexError: x\n",
         "failed: exit code 3: in a thread of it: IndexError: x (t.py:1)\n", NULL, "or a thread's", FAILURE_EXIT, 3},
        {"Traceback (most recent call last):\n  File \"t.py\", line 4, in f\n    os.kill(os.getpid(), signal.SIGINT)\n"
         "KeyboardInterrupt\n",
         "advice: the program sent this signal to itself", "scheduler", "nobody else sent the signal", FAILURE_SIGNAL,
         2},
        {"  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 9, in main\n"
         "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
         "    | Traceback (most recent call last):\n    |   File \"t.py\", line 5, in f\n    | OSError: disk\n"
         "    +---------------- 2 ----------------\n"
         "    | Traceback (most recent call last):\n    |   File \"t.py\", line 6, in f\n    | OSError: net\n"
         "    +------------------------------------\n",
         "OSError: disk (t.py:5)\n", NULL, "of a group the place is the member's that is named", FAILURE_EXIT, 1},
        {"  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 9, in main\n"
         "  | ExceptionGroup: one (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
         "    | Traceback (most recent call last):\n    |   File \"t.py\", line 5, in f\n    | OSError: disk\n"
         "    +---------------- 2 ----------------\n    | OSError: net\n"
         "    +------------------------------------\n",
         "\n        | OSError: disk\n        +-", "\n      | ExceptionGroup", "the member's line stays with its frames",
         FAILURE_EXIT, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failure_report r = start();
        struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
        struct failure *f = add(&r, rows[i].end, rows[i].code);
        stderr_of(f, rows[i].text);
        failure_judge(f, false, false);
        ok(summary_write(&r, &out, &summary_plain, 0) == 0, "a report");
        const char *text = el_buf_cstr(&out);
        if (!strstr(text, rows[i].says) || (rows[i].not &&strstr(text, rows[i].not )))
            is_str(text, rows[i].says, rows[i].about);
        else
            ok(1, rows[i].about);
        el_buf_free(&out);
        finish(&r);
    }
}

/* What a terminal is given: nothing wider than it, but for words that are. */
static void test_widths(void)
{
    struct failure_report r = start();
    char name[40];
    static const unsigned widths[] = {40, 80, 120};
    r.restarts = 1;
    r.restarts_max = 3;
    r.no_restart = "no restart: ValueError (train.py:14) after 3.4 s: a fault of the program or its command line";
    struct failure *f = add(&r, FAILURE_EXIT, 1);
    stderr_of(
        f,
        "[rank0]: Traceback (most recent call last):\n"
        "[rank0]:   File \"/home/user/a/long/way/to/the/program/of/somebody/else/train.py\", line 14, in step\n"
        "[rank0]:     out = self.model(batch.to(device, non_blocking=True), mask=mask, cache=cache, heads=heads)\n"
        "[rank0]:           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "[rank0]: ValueError: shapes do not match: expected (32, 1024), got (32, 1025) in batch 17 of epoch 3\n");
    failure_judge(f, false, false);
    failure_set_line(f, &f->siblings, "ranks 1-2 running; rank 3 asleep in futex_do_wait", &mem);
    f = add(&r, FAILURE_EXIT, 1);
    stderr_of(f, "Traceback (most recent call last):\n  File \"b.py\", line 1, in b\nKeyError: 'lr'\n");
    failure_judge(f, false, false);
    f = add(&r, FAILURE_EXIT, 1);
    stderr_of(f, "Traceback (most recent call last):\n  File \"b.py\", line 1, in b\n"
                 "ConnectionResetError: [Errno 104] Connection reset by peer\n");
    failure_judge(f, false, false);
    add(&r, FAILURE_SIGNAL, 15);
    judge_stopped(3, 3);
    for (size_t i = 0; i < 3; i++) {
        struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
        snprintf(name, sizeof name, "columns_%u", widths[i]);
        golden_at(&r, name, &summary_plain, widths[i]);
        summary_write(&r, &out, &summary_plain, widths[i]);
        struct text rest = {out.v, out.len}, line;
        size_t widest = 0;
        while (text_line(&rest, &line))
            widest = el_columns(line.p, line.n) > widest ? el_columns(line.p, line.n) : widest;
        ok(widest <= widths[i], "nothing is wider");
        const char *text = el_buf_cstr(&out), *said = strstr(text, "ValueError");
        ok(said && said - text < 40, "the cause is in the first line");
        unsigned times = 0;
        for (const char *at = text; (at = strstr(at, "(32, 1024)")) != NULL; at++)
            times++;
        is_num(times, 1, "and is said once");
        el_buf_free(&out);
    }
    finish(&r);
}

/* Of one worker whose stderr stands above, only what it did not say. */
static void test_shown(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_EXIT, 1);
    r.stderr_shown = r.again = true;
    r.restarts_max = 3;
    stderr_of(f, trace);
    failure_judge(f, false, false);
    golden(&r, "shown", &summary_plain);
    finish(&r);
}

/* Several that failed by themselves at one time are all there. */
static void test_several(void)
{
    struct failure_report r = start();
    struct el_buf out = EL_BUF_INIT(&mem, 1 << 20);
    char text[300];
    for (int i = 0; i < 6; i++) {
        struct failure *f = add(&r, FAILURE_EXIT, 1);
        snprintf(text, sizeof text, "Traceback (most recent call last):\n  File \"b.py\", line 1, in b\nKeyError: %d\n",
                 i);
        stderr_of(f, text);
        failure_judge(f, false, false);
    }
    ok(summary_write(&r, &out, &summary_plain, 0) == 0, "a report");
    for (int i = 1; i < 6; i++) {
        snprintf(text, sizeof text, "  rank %d failed too: KeyError: %d (b.py:1), pid %d\n", i, i, 1000 + i);
        ok(strstr(el_buf_cstr(&out), text), text);
    }
    el_buf_free(&out);
    finish(&r);
}

/* A message of 64 KiB in one line and a deep stack: the report stays on a screen or two. */
static void test_long(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_EXIT, 1);
    struct el_buf b = EL_BUF_INIT(NULL, 0), out = EL_BUF_INIT(&mem, 1 << 20);
    el_buf_puts(&b, "Traceback (most recent call last):\n");
    for (int i = 0; i < 300; i++)
        el_buf_printf(&b, "  File \"t.py\", line %d, in f\n    f()\n", i);
    el_buf_puts(&b, "ValueError: ");
    for (int i = 0; i < 3000; i++)
        el_buf_puts(&b, "\xc3\xa9 long ");
    el_buf_puts(&b, "END\n");
    failure_add_stderr(f, b.v, b.len, &mem);
    failure_judge(f, false, false);
    ok(summary_write(&r, &out, &summary_plain, 0) == 0 && out.len < 12000, "a long report is cut");
    const char *text = el_buf_cstr(&out);
    ok(strstr(text, "frames …]") && strstr(text, "\u2026 [23495 bytes more]"), "it says where, and how much");
    const char *once = strstr(text, "ValueError: ");
    ok(once && !strstr(once + 1, "ValueError: "), "a message that is cut is said once");
    int good = 1;
    for (size_t i = 0, n; i < out.len && good; i += n)
        good = (n = el_utf8(text + i, out.len - i)) > 0;
    ok(good, "no character was cut");
    struct el_buf tiny = EL_BUF_INIT(&mem, 300);
    ok(summary_write(&r, &tiny, &summary_plain, 0) == -1 && tiny.full && tiny.len <= 300, "a full buffer is a result");
    el_buf_free(&tiny);
    struct el_buf middle = EL_BUF_INIT(&mem, 20000);
    ok(summary_json(&r, &middle) == 0, "in JSON that would not fit the long texts are cut");
    json_t *v = json_loadb(middle.v, middle.len, 0, NULL);
    ok(v && json_is_true(json_object_get(v, "texts_shortened")), "says so, and is whole");
    json_decref(v);
    el_buf_free(&middle);
    struct el_buf none = EL_BUF_INIT(&mem, 100);
    ok(summary_json(&r, &none) == -1 && none.len == 0, "or is not written at all");
    el_buf_free(&none);
    for (long n = 0; n < 20; n++) {
        struct el_mem poor = EL_MEM_INIT(0);
        poor.fail_after = n;
        struct el_buf p = EL_BUF_INIT(&poor, 1 << 20), q = EL_BUF_INIT(&poor, 1 << 20);
        (void)summary_write(&r, &p, &summary_plain, 0);
        (void)summary_json(&r, &q);
        el_buf_free(&p);
        el_buf_free(&q);
        if (poor.used_bytes)
            ok(0, "memory came back after the n-th allocation failed");
    }
    el_buf_free(&out);
    el_buf_free(&b);
    finish(&r);
}

static void test_errfile(void)
{
    struct failure_report r = start();
    struct failure *f = add(&r, FAILURE_SIGNAL, 11);
    failure_judge(f, false, false);
    struct el_buf out = EL_BUF_INIT(&mem, 0);
    ok(summary_errfile(f, &out) == 0, "an error file for a worker that wrote none");
    is_str(el_buf_cstr(&out),
           "{\"message\": {\"message\": \"signal 11 (SIGSEGV)\", \"extraInfo\": {\"py_callstack\": \"signal 11 "
           "(SIGSEGV)\", "
           "\"timestamp\": \"1700000000\"}, \"errorCode\": -11}}",
           "in torch's form");
    static struct errfile e;
    errfile_init(&e);
    errfile_feed(&e, out.v, out.len);
    errfile_end(&e);
    is_num(e.state, ERRFILE_WHOLE, "which our own reader accepts");
    el_buf_free(&out);
    finish(&r);
}

int main(void)
{
    test_hung();
    test_exception();
    test_record();
    test_no_traceback();
    test_signals();
    test_storm();
    test_followers();
    test_alike();
    test_evidence();
    test_widths();
    test_shown();
    test_several();
    test_long();
    test_errfile();
    is_num(mem.used_bytes, 0, "all memory came back");
    return done();
}
