/* Of which class an end is where several things were said, or something else than what ended it. */
#include "failure/restart_policy.h"
#include "failure/failure.h"
#include "failure/usage_error.h"
#include "lib/tap.h"
#include "util/array.h"

#include <signal.h>
#include <string.h>

/* code < 0: a signal. */
static struct failure ends(int code, const char *words)
{
    struct failure f;
    failure_init(&f);
    f.end = code < 0 ? FAILURE_SIGNAL : FAILURE_EXIT;
    f.code = code < 0 ? -code : code;
    failure_add_stderr(&f, words, strlen(words), NULL);
    failure_judge(&f, false, false);
    return f;
}

#define GROUP                                                                                                          \
    "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/t.py\", line 8, in <module>\n"            \
    "  |     raise ExceptionGroup(\"many\", es)\n  | ExceptionGroup: many (2 sub-exceptions)\n"
#define MEMBER(number, words)                                                                                          \
    "  +-+---------------- " number " ----------------\n    | Traceback (most recent call last):\n"                    \
    "    |   File \"/w/t.py\", line 5, in f\n    |     g()\n    | " words "\n"

static void test_group(void)
{
    static const struct {
        const char *words, *class;
        bool follower;
        const char *about;
    } groups[] = {
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "ValueError: x"), "code error", false,
         "a lost connection is the first of two"},
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "RuntimeError: x"), "unknown", false,
         "the other says nothing of its class"},
        {GROUP MEMBER("1", "ValueError: x") MEMBER("2", "ConnectionResetError: peer gone"), "code error", false,
         "it is the last"},
        {GROUP MEMBER("1", "ConnectionResetError: peer gone") MEMBER("2", "BrokenPipeError: [Errno 32] Broken pipe"),
         "network", true, "nothing but lost connections"},
    };
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        struct failure f = ends(1, groups[i].words);
        is_str(failure_class_text(f.class), groups[i].class, groups[i].about);
        is_num(f.follower, groups[i].follower, groups[i].about);
        failure_free(&f, NULL);
    }
}

/* Whose command line was refused? */
static void test_helper(void)
{
#define REFUSED(name) "usage: " name " [-h] [--lr LR]\n" name ": error: argument --lr: invalid float value: 'x'\n"
    static const struct {
        const char *program, *words;
        bool own;
        const char *about;
    } lines[] = {
        {"train.py", REFUSED("train.py"), true, "its own"},
        {"/w/train.py", REFUSED("train.py"), true, "by a path"},
        {"pkg.train", REFUSED("train.py"), true, "its module"},
        {"pkg", REFUSED("__main__.py"), true, "its package"},
        {"train.py", REFUSED("a-name-of-its-own"), true, "a name that is no script's"},
        {NULL, REFUSED("load.py"), true, "a program that is not known"},
        {"train.py", REFUSED("load.py"), false, "a helper's"},
        {"retrain.py", REFUSED("train.py"), false, "its name ends alike"},
        {"train.py", "Usage: load.py [OPTIONS]\nTry 'load.py --help' for help.\n\nError: No such option: --zz\n", false,
         "a helper's, by click"},
        {"train.py", "load.py: error: the parameter x is wrong\n", false, "in its last line"},
        {"train.py", REFUSED("train.py") "using defaults\n", false, "it went on"},
        {"train.py", REFUSED("train.py") "cannot go on with defaults\n", true, "it could not"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct restart_digest d = {.kind = RESTART_SILENT};
        struct failure f;
        failure_init(&f);
        f.end = FAILURE_EXIT;
        f.code = 2;
        f.program = lines[i].program;
        failure_add_stderr(&f, lines[i].words, strlen(lines[i].words), NULL);
        failure_judge(&f, false, false);
        restart_add(&d, &f, 1);
        ok((strcmp(d.what, "the script refused its arguments") == 0) == lines[i].own, lines[i].about);
        ok((f.class == FAILURE_CLASS_CODE) == lines[i].own, "and its class");
        failure_free(&f, NULL);
    }
}

/* Somebody killed it: what it had printed of the network, and gone on after, is not the reason. */
static void test_killed(void)
{
#define WARN "NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with error 12\n"
    static const struct {
        int code;
        const char *words, *class;
        bool follower;
        const char *about;
    } lines[] = {
        {-SIGKILL, WARN, "killed from outside", false, "a warning of NCCL, and SIGKILL"},
        {-SIGTERM, WARN "step 3\n", "killed from outside", false, "and SIGTERM"},
        {-SIGKILL, "E: Connection reset by remote peer\n", "killed from outside", false, "of UCX"},
        {-SIGKILL, "NCCL WARN Cuda failure 'out of memory'\n", "killed from outside", false, "of a GPU's memory"},
        {-SIGKILL, "NCCL WARN Duplicate GPU detected : rank 0 and rank 1\n", "killed from outside", false,
         "of the program"},
        {-SIGABRT, WARN, "network", true, "it ended by itself"},
        {1, WARN, "network", true, "with a status"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct failure f = ends(lines[i].code, lines[i].words);
        is_str(failure_class_text(f.class), lines[i].class, lines[i].about);
        ok(f.follower == lines[i].follower && !f.sign[0] == !lines[i].follower, lines[i].about);
        failure_free(&f, NULL);
    }
}

/* A connection that was lost in the last line, and is there again. */
static void test_over(void)
{
    static const struct {
        const char *words;
        bool follower;
        const char *about;
    } lines[] = {
        {"db: Connection closed by peer; reconnected\n", false, "connected again"},
        {"redis: Connection reset by peer, retrying in 1 s\n", true, "perhaps in vain"},
        {"hub: HTTP Error 503: Service Unavailable, using the cached copy\n", false, "done without"},
        {"db: Connection closed by peer\n", true, "nothing more"},
        {"db: Connection reset by peer, could not be resumed: retry failed\n", true, "in vain"},
        {"db: Connection reset by peer, giving up, not recovered\n", true, "given up"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct failure f = ends(3, lines[i].words);
        is_num(f.follower, lines[i].follower, lines[i].about);
        is_str(failure_class_text(f.class), lines[i].follower ? "network" : "unknown", "its class");
        failure_free(&f, NULL);
    }
}

/* What it said behind an exception that it has survived: the rest of that one's message is none of it. */
static void test_survived_message(void)
{
    static const char said[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 8, in <module>\n    f()\n"
                               "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for a: [2]\n"
                               "\n    and for b: [3]\n";
    static const char *const behind[] = {"", "no data is left\n"};
    for (size_t i = 0; i < COUNT_OF(behind); i++) {
        char all[512];
        struct failure f;
        failure_init(&f);
        f.end = FAILURE_EXIT;
        f.code = 1;
        int n = snprintf(all, sizeof all, "%s%s", said, behind[i]);
        failure_add_stderr(&f, all, (size_t)n, NULL);
        failure_add_handler(&f, HANDLER_GOES_ON, NULL);
        is_str(f.found.message, i ? "no data is left" : "", i ? "its own last line" : "the rest of a message is none");
        ok(text_find((struct text){f.survived, strlen(f.survived)}, "state_dict"), "... that is told beside it");
        failure_free(&f, NULL);
    }
}

/* The source was read, and meanwhile the error file has come, which tells of what ended it. */
static void test_file_before_source(void)
{
    static const char said[] = "Traceback (most recent call last):\n  File \"/w/t.py\", line 8, in <module>\n    f()\n"
                               "KeyError: 'caught'\n",
                      file[] =
                          "{\"message\": {\"message\": \"ValueError: x\", \"extraInfo\": {\"py_callstack\": "
                          "\"Traceback (most recent call last):\\n  File \\\"/w/t.py\\\", line 9, in f\\n    x()\\n"
                          "ValueError: x\\n\", \"timestamp\": \"17\"}}}";
    static struct errfile e;
    struct failure f;
    failure_init(&f);
    failure_add_stderr(&f, said, sizeof said - 1, NULL);
    errfile_init(&e);
    errfile_feed(&e, file, sizeof file - 1);
    errfile_end(&e);
    failure_add_file(&f, &e, NULL);
    failure_add_handler(&f, HANDLER_GOES_ON, NULL);
    is_str(f.message, "ValueError: x", "what the error file says stays");
    is_str(f.found.type, "ValueError", "... and its traceback");
    is_num(f.handler, HANDLER_UNKNOWN, "... which was not looked at");
    failure_free(&f, NULL);
}

static void test_program(void)
{
    char run[] = "run", script[] = "train.py", lr[] = "--lr";
    char *other[] = {run, script, lr}, *own[] = {lr};
    is_str(usage_error_program("coverage", other, 3), NULL, "a module that runs a script");
    is_str(usage_error_program("train.py", own, 1), "train.py", "a script");
    is_str(usage_error_program("train.py", NULL, 0), "train.py", "... without words");
}

/* A data loader's process that ended by itself was not killed. */
static void test_loader(void)
{
#define AT   "Traceback (most recent call last):\n  File \"/w/t.py\", line 14, in <module>\n    f()\n"
#define GONE "RuntimeError: DataLoader worker (pid(s) 18350) exited unexpectedly\n"
#define CODE                                                                                                           \
    "RuntimeError: DataLoader worker (pid 18350) exited unexpectedly with exit code 3. Details are lost due to "       \
    "multiprocessing. Rerunning with num_workers=0 may give better error trace.\n"
#define CAUSE "\nThe above exception was the direct cause of the following exception:\n\n"
    static const struct {
        const char *words, *advice, *about;
    } lines[] = {
        {AT CODE, "ended by itself", "an exit code"},
        {AT CODE CAUSE AT GONE, "ended by itself", "an exit code, and the queue"},
        {AT "_queue.Empty\n" CAUSE AT GONE, "was killed", "the queue alone"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct failure f = ends(1, lines[i].words);
        ok(strstr(failure_advice(&f), lines[i].advice), lines[i].about);
        is_str(failure_class_text(f.class), "unknown", "of no class");
        failure_free(&f, NULL);
    }
    struct failure f = {0};
    failure_init(&f);
    f.end = FAILURE_EXIT;
    f.code = 1;
    failure_add_stderr(&f, AT CODE, strlen(AT CODE), NULL);
    failure_judge(&f, false, true);
    is_str(failure_class_text(f.class), "unknown", "nor by the out-of-memory killer, whoever that has killed");
    failure_free(&f, NULL);
}

/* Memory that was refused: too much for the job, or for any host. */
static void test_memory(void)
{
#define NUMPY(size)                                                                                                    \
    AT "numpy._core._exceptions._ArrayMemoryError: Unable to allocate " size " for an array with shape (9,)\n"
#define TORCH(size)                                                                                                    \
    AT "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you "  \
       "tried to allocate " size " bytes. Error code 12 (Cannot allocate memory)\n"
    static const struct {
        const char *words, *class, *advice;
    } lines[] = {
        {AT "MemoryError\n", "out of memory", "ulimit -v"},     {NUMPY("72.8 TiB"), "code error", "a shape"},
        {NUMPY("7.28 TiB"), "out of memory", "ulimit -v"},      {NUMPY("999. GiB"), "out of memory", "ulimit -v"},
        {NUMPY("1.39 EiB"), "code error", "a shape"},           {TORCH("80000000000000"), "code error", "a shape"},
        {TORCH("8000000000000"), "out of memory", "ulimit -v"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct failure f = ends(1, lines[i].words);
        is_str(failure_class_text(f.class), lines[i].class, "of which class a refused request is");
        ok(strstr(failure_advice(&f), lines[i].advice), lines[i].advice);
        failure_free(&f, NULL);
    }
}

/* Who pressed Ctrl-C? */
static void test_interrupt(void)
{
#define IN(function, source)                                                                                           \
    AT "  File \"/w/t.py\", line 2, in " function "\n    " source "\n    ^^^^^^\nKeyboardInterrupt\n"
    static const struct {
        const char *words;
        bool itself;
        const char *about;
    } lines[] = {
        {IN("train", "if n > 3: raise KeyboardInterrupt(\"enough\")"), true, "the program itself"},
        {IN("train", "time.sleep(20)"), false, "somebody, while it slept"},
        {IN("on_signal", "raise KeyboardInterrupt"), false, "somebody, and a handler raised it"},
        {AT "KeyboardInterrupt\n\nDuring handling of the above exception, another exception occurred:\n\n" IN(
             "train", "raise KeyboardInterrupt"),
         false, "somebody, and it was raised again"},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct failure f = ends(-SIGINT, lines[i].words);
        is_num(f.by, lines[i].itself ? FAILURE_BY_ITSELF : FAILURE_BY_OUTSIDE, lines[i].about);
        is_str(failure_class_text(f.class), lines[i].itself ? "unknown" : "killed from outside", "its class");
        failure_free(&f, NULL);
    }
}

/* A limit of processes, which is no file that another one holds. */
static void test_processes(void)
{
    static const char *const words[] = {
        AT "    os.fork()\nBlockingIOError: [Errno 11] Resource temporarily unavailable\n",
        AT "    self.pid = _fork_exec(\nBlockingIOError: [Errno 11] Resource temporarily unavailable\n",
        AT "RuntimeError: can't start new thread\n",
        AT "BlockingIOError: [Errno 11] Resource temporarily unavailable\n"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct failure f = ends(1, words[i]);
        ok(strstr(failure_advice(&f), i < 3 ? "ulimit -u" : "held this file"), "a fork, a thread, a file");
        failure_free(&f, NULL);
    }
}

int main(void)
{
    test_processes();
    test_interrupt();
    test_memory();
    test_loader();
    test_over();
    test_file_before_source();
    test_survived_message();
    test_killed();
    test_helper();
    test_program();
    test_group();
    return done();
}
