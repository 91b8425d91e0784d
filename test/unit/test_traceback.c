/* What the finder makes of texts that are cut, mixed, prefixed or hostile.  Real texts: test_failure.c. */
#include "util/text.h"
#include "failure/traceback.h"
#include "failure/traceback_line.h"
#include "lib/tap.h"

static struct traceback find(const char *text)
{
    struct traceback t;
    traceback_find(&t, text, strlen(text));
    return t;
}

/* "type: message @file:line function +flags", or "- message" if nothing was found. */
static const char *say(const char *text)
{
    static char out[2048];
    struct traceback t = find(text);
    if (t.kind == TRACEBACK_NONE) {
        snprintf(out, sizeof out, "- %s", t.message);
        return out;
    }
    int n = snprintf(out, sizeof out, "%s: %s", t.type, t.message);
    if (t.file[0])
        n += snprintf(out + n, sizeof out - (size_t)n, " @%s:%u %s", t.file, t.line, t.function);
    snprintf(out + n, sizeof out - (size_t)n, "%s%s%s%s", t.headless ? " +headless" : "", t.chained ? " +chained" : "",
             t.nested ? " +nested" : "", t.in_thread ? " +thread" : "");
    return out;
}

#define TB   "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n    f(x)\n    ^^^^\n"
#define SITE "  File \"/v/lib/python3.11/site-packages/torch/nn/m.py\", line 9, in forward\n    return g()\n"
#define OURS "  File \"/tmp/elrun-X5o8A0/py/elrun/snapshots.py\", line 138, in restore\n    raise Error\n"

static void test_plain(void)
{
    is_str(say(""), "- ", "nothing at all");
    is_str(say("\n\n  \n"), "- ", "blank lines");
    is_str(say("one\ntwo\n"), "- two", "no traceback: the last line");
    is_str(say("no end"), "- no end", "no newline at the end");
    is_str(say(TB "ValueError: bad\n"), "ValueError: bad @t.py:3 main", "plain");
    is_str(say(TB "ValueError: bad"), "ValueError: bad @t.py:3 main", "the last newline is missing");
    is_str(say(TB "ValueError\n"), "ValueError:  @t.py:3 main", "no message");
    is_str(say(TB SITE "RuntimeError: x\n"), "RuntimeError: x @t.py:3 main", "the user's frame, not the library's");
    is_str(say(TB OURS "elrun.Error: x\n"), "elrun.Error: x @t.py:3 main", "nor that of our own package");
    is_str(say("Traceback (most recent call last):\n" SITE "pkg.E: x\n"),
           "pkg.E: x @/v/lib/python3.11/site-packages/torch/nn/m.py:9 forward", "only library frames: the innermost");
    is_str(say(TB "__main__.f.<locals>.Odd: x\n"), "__main__.f.<locals>.Odd: x @t.py:3 main", "a local class");
    is_str(say(TB "socket.timeout: timed out\n"), "socket.timeout: timed out @t.py:3 main", "a class in lower case");
    is_str(say(TB "RuntimeError: \n\n  first of many\nsecond\n"), "RuntimeError:   first of many @t.py:3 main",
           "an empty first line of the message: the next one that is not");
    is_str(say(TB "ValueError: one\n" TB "TypeError: two\n"), "TypeError: two @t.py:3 main", "the last of two");
    is_str(say("noise\n" TB "ValueError: bad\nlater log line\n[W1121 10:00:00 x.cpp:1] Warning: leak\n"),
           "ValueError: bad @t.py:3 main", "lines behind it");
    is_str(say("Error in sys.excepthook:\n" TB "KeyError: 1\n\nOriginal exception was:\n" TB "ValueError: bad\n"),
           "ValueError: bad @t.py:3 main", "a broken excepthook: the original");
    struct traceback t = find("a\n" TB "ValueError: bad\nnote\n[W1121 10:00:00 x] leak\n");
    const char *text = "a\n" TB "ValueError: bad\nnote\n[W1121 10:00:00 x] leak\n";
    ok(t.start == 2 && strncmp(text + t.end, "[W1121", 6) == 0, "the span: header to the message's last line");
}

static void test_broken(void)
{
    is_str(say(TB), "-     ^^^^", "no exception behind the frames: not complete");
    is_str(say(TB "ValueError: one\n" TB), "ValueError: one @t.py:3 main", "the last complete one");
    is_str(say("ain\n    f(x)\n" SITE "  File \"t.py\", line 7, in step\nOSError: disk\n"),
           "OSError: disk @t.py:7 step +headless", "the beginning is cut off");
    is_str(say("  File \"t.py\", line 7, in step\n    x\nException: disk\n"), "Exception: disk @t.py:7 step +headless",
           "cut off, and of the plainest class");
    is_str(say("Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n2026-01-01 INFO loss 3\n"
               "WARNING: slow\n    f(x)\nValueError: bad\n"),
           "ValueError: bad @t.py:3 main", "log lines of a thread in the middle");
    is_str(say("Traceback (most recent call last):\nan editor's text that is about tracebacks\nReally: so\n"),
           "Really: so", "a header without frames still needs something like an exception");
    is_str(say("Stack (most recent call last):\n  File \"t.py\", line 3, in main\n    f(x)\nINFO: next\n"),
           "- INFO: next", "a stack in a log is no exception");
    char *big = malloc(300000);
    size_t n = 0;
    for (int i = 0; i < 3000; i++)
        n += (size_t)sprintf(big + n, "Traceback (most recent call last):\n  File \"t.py\", line %d, in f\n", i);
    ok(find(big).kind == TRACEBACK_NONE, "thousands of headers, none complete");
    /* Each line starts a search to the end: without bounds this would take minutes. */
    static const char *const lines[] = {"  File \"t.py\", line 3, in f\n", "  Traceback (most recent call last):\n",
                                        "[r1]: Traceback (most recent call last):\n[r1]:   File \"t\", line 1, in f\n"};
    for (int k = 0; k < 3; k++) {
        for (n = 0; n < 190000;)
            n += (size_t)sprintf(big + n, "%s", lines[k]);
        ok(find(big).kind == TRACEBACK_NONE, "a text made to keep us busy");
    }
    sprintf(big + 90000, "\n" TB "ValueError: bad\n");
    is_str(say(big), "ValueError: bad @t.py:3 main", "something real behind it is still found");
    free(big);
}

static void test_prefix(void)
{
#define P "[rank1]: "
    is_str(say(P "Traceback (most recent call last):\nnoise\n" P "  File \"t.py\", line 3, in main\nother: x\n" P
                 "ValueError: bad\n" P "\n" P "more\nthe end: x\n"),
           "ValueError: bad @t.py:3 main +headless", "torch's own prefix, a foreign line directly behind the header");
    is_str(say(P "Traceback (most recent call last):\n" P "  File \"t.py\", line 3, in main\nother: x\n" P
                 "ValueError: bad\nthe end: x\n"),
           "ValueError: bad @t.py:3 main", "torch's own prefix, lines of others between");
    is_str(say("12:00:01 | Traceback (most recent call last):\n12:00:01 |   File \"t.py\", line 3, in main\n"
               "12:00:02 | ValueError: bad\n"),
           "ValueError: bad @t.py:3 main", "a time stamp that moves on");
    is_str(say("ERROR:root:Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nValueError: bad\n"),
           "ValueError: bad @t.py:3 main", "a prefix of the header only");
#undef P
}

static void test_chain(void)
{
    const char *during = "\nDuring handling of the above exception, another exception occurred:\n\n";
    const char *cause = "\nThe above exception was the direct cause of the following exception:\n\n";
    char text[2000];
    snprintf(text, sizeof text, "x\n%s%s%s%s%s%s%s%s", TB, "KeyError: 1\n", during, TB, "TypeError: 2\n", cause, TB,
             "ValueError: 3\n");
    is_str(say(text), "ValueError: 3 @t.py:3 main +chained", "a chain of three is named after the last");
    is_num(find(text).start, 2, "and shown from the first");
    snprintf(text, sizeof text, "%s%s%sjust talk\n%s%s", TB, "KeyError: 1\n", during, TB, "TypeError: 2\n");
    is_str(say(text), "TypeError: 2 @t.py:3 main", "a marker that is followed by something else chains nothing");
}

static void test_others(void)
{
    is_str(say("Exception in thread Thread-1 (w):\n" TB "KeyError: 1\n"), "KeyError: 1 @t.py:3 main +thread",
           "a thread's");
    is_str(say(TB "ValueError: main\nException in thread Thread-1 (w):\n" TB "KeyError: 1\n"),
           "ValueError: main @t.py:3 main", "the main thread's counts more");
    is_str(say("Exception ignored in: <function A.__del__>\n" TB "KeyError: 1\nbye\n"), "- bye",
           "an ignored one is no cause");
    is_str(say("Process Process-1:\n" TB "KeyError: 1\n"), "KeyError: 1 @t.py:3 main +thread", "a child process");
    is_str(say("a: ignored\nmain.c:3: main: Assertion `x > 0' failed.\n"),
           "assertion: main.c:3: main: Assertion `x > 0' failed.", "assert()");
    is_str(
        say("double free or corruption (!prev)\nFatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
            "  File \"w.py\", line 1 in wait\n\nCurrent thread 0x2 (most recent call first):\n"
            "  File \"/u/lib/python3.11/ctypes/__init__.py\", line 2 in call\n  File \"t.py\", line 9 in step\n"
            "  File \"t.py\", line 12 in main\n\nExtension modules: a, b\nAborted (core dumped)\n"),
        "abort: double free or corruption (!prev) @t.py:9 step", "the C library's words with faulthandler's frames");
    is_str(say("terminate called after throwing an instance of 'A::B'\n  what():  gone\nabout\nits\nstack\n"
               "Fatal Python error: Aborted\n\nCurrent thread 0x2 (most recent call first):\n  File \"t.py\", line 9 "
               "in step\n"),
           "A::B: gone @t.py:9 step", "a C++ exception of many lines with faulthandler's frames");
#define CHECK                                                                                                          \
    "F1127 17:30:01.123456 71 op.cc:12] Check failed: a == b (3 vs. 4) shapes\n*** Check failure stack trace: ***\n  " \
    "  @     0x7f google::LogMessage::Fail()\n    @     0x7f main\n"
    is_str(say("step 3\n" CHECK), "abort: F1127 17:30:01.123456 71 op.cc:12] Check failed: a == b (3 vs. 4) shapes",
           "a check of glog");
    is_str(say("step 3\n" CHECK "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n"
               "  File \"t.py\", line 4 in f\n"),
           "abort: F1127 17:30:01.123456 71 op.cc:12] Check failed: a == b (3 vs. 4) shapes @t.py:4 f",
           "with faulthandler's stacks behind it");
    is_str(say("*** Check failure stack trace: ***\n    @ 0x7f main\n"), "-     @ 0x7f main", "its line is lost");
    is_str(say("terminate called without an active exception\n"),
           "std::terminate: terminate called without an active exception", "terminate without an exception");
    is_str(say("libc++abi: terminating due to uncaught exception of type c10::Error: oops\n"), "c10::Error: oops",
           "the other C++ library");
    is_str(say(TB "ValueError: bad\nterminate called without an active exception\nFatal Python error: Aborted\n\n"
                  "Current thread 0x2 (most recent call first):\n  <no Python frame>\n"),
           "ValueError: bad @t.py:3 main", "an exception, then the interpreter fell apart: the exception");
    is_str(say(TB "ValueError: handled\n1\n2\n3\n4\n5\n6\n7\n8\nterminate called after throwing an instance of 'A::B'\n"
                  "  what():  gone\nframe #0: f\n"),
           "A::B: gone", "an exception long ago, then a crash: the crash");
}

/* A member's exception stands with that member's frame; one of a lost connection gives way to another one. */
static void test_groups(void)
{
    is_str(
        say("  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 9, in main\n"
            "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
            "    | Traceback (most recent call last):\n    |   File \"t.py\", line 6, in f\n"
            "    | ConnectionResetError: [Errno 104] Connection reset by peer\n    +---------------- 2 "
            "----------------\n"
            "    | Traceback (most recent call last):\n    |   File \"t.py\", line 7, in f\n    | ValueError: empty\n"
            "    +------------------------------------\n"),
        "ExceptionGroup: two (2 sub-exceptions); ValueError: empty @t.py:7 f", "the member that is no lost connection");
    is_str(say("  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 9, in main\n"
               "  | ExceptionGroup: one (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
               "    | TypeError: no shape\n    +------------------------------------\n"),
           "ExceptionGroup: one (1 sub-exception); TypeError: no shape @t.py:9 main",
           "a member without frames: the group's");
}

/* Torch's handler raises wherever the program stands when a data loader's process dies. */
static void test_handler(void)
{
    is_str(say(TB "  File \"/v/site-packages/torch/utils/data/_utils/signal_handling.py\", line 73, in handler\n"
                  "    _error_if_any_worker_fails()\nRuntimeError: DataLoader worker (pid 3) is killed by signal: "
                  "Killed. \n"),
           "RuntimeError: DataLoader worker (pid 3) is killed by signal: Killed. "
           "@/v/site-packages/torch/utils/data/_utils/signal_handling.py:73 handler",
           "no place in the program");
}

static void test_panics(void)
{
#define STACK                                                                                                          \
    "\ngoroutine 1 [running]:\nmain.f(...)\n\t/usr/lib/go/src/runtime/panic.go:3\nmain.main()\n"                       \
    "\t/home/u/x/main.go:9 +0x1d\n"
    is_str(say("panic: runtime error: index out of range [5] with length 3\n" STACK "exit status 2\n"),
           "panic: runtime error: index out of range [5] with length 3 @/home/u/x/main.go:9 ", "a panic of Go");
    is_str(say("fatal error: all goroutines are asleep - deadlock!\n" STACK
               "\ngoroutine 7 [chan receive]:\nmain.g()\n\t/home/u/x/other.go:5 +0x1\n"),
           "panic: all goroutines are asleep - deadlock! @/home/u/x/main.go:9 ",
           "its deadlock, with another goroutine");
    is_str(say("panic: don't\nbye\n"), "- bye", "the word alone is nobody's");
    is_str(say("\nthread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3 but the index is 5\n"
               "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"),
           "panic: index out of bounds: the len is 3 but the index is 5 @src/main.rs:4 ", "a panic of Rust");
    is_str(say("thread 'main' (7123) panicked at src/main.rs:4:5:\nboom\n"), "panic: boom @src/main.rs:4 ",
           "with the thread's number");
    is_str(say("thread 'main' panicked at 'it's, ' gone', src/main.rs:41:5\n"), "panic: it's, ' gone @src/main.rs:41 ",
           "as it was before 1.73");
    is_str(say("thread 'tokio-1' panicked at a.rs:4:5:\nboom\n" TB "ValueError: bad\n"), "ValueError: bad @t.py:3 main",
           "one of a thread before the main thread's exception");
    is_str(say("thread '<unnamed>' panicked at src/lib.rs:4:5:\nboom\n" TB "pyo3_runtime.PanicException: boom\n"),
           "pyo3_runtime.PanicException: boom @t.py:3 main", "one that becomes an exception of Python");
    is_str(say("thread 'main' panicked at nowhere\n"), "- thread 'main' panicked at nowhere",
           "without a place it is a line");
}

static void test_nested(void)
{
#define LAUNCHER                                                                                                       \
    TB "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"                                         \
       "=====\nx.py FAILED\n-----\nFailures:\n  <NO_OTHER_FAILURES>\n-----\nRoot Cause (first observed "               \
       "failure):\n[0]:\n"                                                                                             \
       "  exitcode  : 3 (pid: 7)\n"
    is_str(say(LAUNCHER "  traceback : Signal 9\n=====\n"),
           "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: exitcode  : 3 (pid: 7) @t.py:3 main "
           "+nested",
           "a launcher inside: what its table says");
    is_str(say("Traceback (most recent call last):\n  File \"in.py\", line 5, in go\nKeyError: 2\n" LAUNCHER),
           "KeyError: 2 @in.py:5 go +nested", "a launcher inside: its worker's own traceback");
    is_str(say(LAUNCHER
               "  traceback : Traceback (most recent call last):\n    File \"in.py\", line 5, in go\n      f()\n"
               "  KeyError: 2\n  \n====\n"),
           "KeyError: 2 @in.py:5 go +nested", "a launcher inside: the traceback in its table");
}

static void test_clean(void)
{
    static const struct {
        const char *in, *out, *why;
    } rows[] = {
        {"\033[1;31mred\033[0m\n", "red\n", "colours"},
        {"a\r\nb\r\n", "a\nb\n", "terminal line ends"},
        {"10%\r20%\rdone\n", "done\n", "a progress bar leaves its last state"},
        {"50%\r", "50%", "a progress bar that was cut off"},
        {"\033]0;title\ax\033]8;;u\033\\y\n", "xy\n", "titles and links"},
        {"\033[31", "", "a sequence that is cut off"},
        {"caf\xe9 \xff\xc3\xa9\n", "caf\xef\xbf\xbd \xef\xbf\xbd\xc3\xa9\n", "bytes that are no UTF-8"},
        {"\xed\xa0\x80\xc0\x80\xf5\x80",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
         "surrogates, over-long forms, beyond the last"},
        {"a\x01\x07\x7f\tb\n", "a\tb\n", "control characters"},
        {"a\xc2\x9b;\xc2\x80\xc2\x9f\xc2\xa0z", "a;\xc2\xa0z", "C1 controls: U+009B begins a sequence, as ESC [ does"},
        {"\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
         "\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", "characters that turn the direction of text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct el_buf b = EL_BUF_INIT(NULL, 0);
        text_clean(&b, rows[i].in, strlen(rows[i].in));
        is_str(el_buf_cstr(&b), rows[i].out, rows[i].why);
        el_buf_free(&b);
    }
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    text_clean(&b, "a\0b", 3);
    is_str(el_buf_cstr(&b), "ab", "NUL");
    b.len = 0;
    text_json(&b, "q\"\\\n\t\x01\xff", 7);
    is_str(el_buf_cstr(&b), "\"q\\\"\\\\\\n\\t\\u0001\xef\xbf\xbd\"", "as JSON");
    el_buf_free(&b);
    char out[8];
    text_copy(out, sizeof out, "123456789", 9);
    is_str(out, "1234\xe2\x80\xa6", "a copy that is cut says so");
    text_copy(out, sizeof out, "123\xc3\xa9\xc3\xa9\xc3\xa9", 9);
    is_str(out, "123\xe2\x80\xa6", "and never in the middle of a character");
    text_copy(out, sizeof out, "1234567", 7);
    is_str(out, "1234567", "what fits is whole");
}

int main(void)
{
    test_plain();
    test_broken();
    test_prefix();
    test_chain();
    test_others();
    test_groups();
    test_handler();
    test_panics();
    test_nested();
    test_clean();
    return done();
}
