/* Workers' output with real processes, pipes and files.  Each case runs in a process of its own, whose stdout and
 * stderr are what the case wants them to be; what it learns it writes to a report. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/console.h"
#include "lib/tap.h"
#include "loop/pool.h"
#include "output/output.h"

#define RANKS_MAX 8

struct test_case {
    unsigned nproc;
    unsigned tee, redirects; /* for all ranks */
    const char *script;      /* sh -c, with RANK set */
    const char *log_dir;     /* NULL: temporary */
    const char *prefix, *filter;
    const char *shown;     /* "0": only these ranks on the console */
    bool capture, stalled; /* stalled: nobody reads stdout; the workers are killed after a while */
    bool no_bytes;         /* no file may have any */
    unsigned rounds;       /* all with restart count 0 */
};

static char base[64]; /* of this test, removed at the end */
static struct loop *loop;
static struct pool *pool;
static struct console *console;
static struct output *output;
static const struct test_case *kase;
static struct output_options options;
static pid_t pid[RANKS_MAX];
static unsigned tails_due, round_now, turns;
static struct loop_timer *killer;
static FILE *report;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(report, fmt, ap);
    va_end(ap);
    fputc('\n', report);
}

static void on_console(void *ctx, size_t left)
{
    (void)ctx;
    say("left %s", left ? "some" : "none");
    loop_stop(loop);
}

static void on_finished(void *ctx, const char *kept)
{
    (void)ctx;
    say("kept %s", kept ? "yes" : "no");
    console_finish(console, loop_clock() + (kase->stalled ? EL_MS(20) : EL_SEC(15)), on_console, NULL);
}

static void begin(void);

static void say_tail(unsigned rank, const char *name, const struct output_tail *t)
{
    static const char *const from[] = {
#define X(n, text) #n,
        OUTPUT_TAIL_LIST(X)
#undef X
    };
    const char *end = t->len > 8 ? t->bytes + t->len - 8 : t->bytes;
    say("tail %u %s %s %zu %.*s", rank, name, from[t->from], t->len, t->len ? (int)(t->bytes + t->len - end) : 0,
        t->len ? end : "");
}

static void on_tails(void *ctx, unsigned rank, const struct output_tail *out, const struct output_tail *err)
{
    (void)ctx;
    say_tail(rank, "out", out);
    say_tail(rank, "err", err);
    if (--tails_due)
        return;
    if (++round_now < kase->rounds)
        begin();
    else
        output_finish(output, loop_clock() + (kase->stalled ? EL_MS(20) : EL_SEC(15)), on_finished, NULL);
}

static void on_drained(void *ctx)
{
    (void)ctx;
    say("drained");
    tails_due = kase->nproc;
    for (unsigned r = 0; r < kase->nproc; r++)
        output_tails_collect(output, r, loop_clock() + EL_SEC(10), on_tails, NULL);
}

static void start(unsigned r)
{
    int fd[3] = {-1, -1, -1};
    const char *error_file;
    struct el_err e = {0};
    if (output_child_fds(output, r, fd, &error_file, &e) < 0) {
        say("error %d %s", e.status, e.text);
        loop_stop(loop);
        return;
    }
    pid[r] = fork();
    if (pid[r] == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        char text[16];
        snprintf(text, sizeof text, "%u", r);
        setenv("RANK", text, 1);
        setenv("ERROR_FILE", error_file, 1);
        for (int k = 1; k <= 2; k++)
            if (fd[k] >= 0)
                dup2(fd[k], k);
        execl("/bin/sh", "sh", "-c", kase->script, (char *)NULL);
        _exit(127);
    }
    output_child_started(output, r);
}

static void on_ready(void *ctx, const struct el_err *e)
{
    (void)ctx;
    if (e) {
        say("error %d", e->status);
        loop_stop(loop);
        return;
    }
    for (unsigned r = 0; r < kase->nproc; r++)
        start(r);
}

static void begin(void)
{
    output_attempt_begin(output, 0, round_now + 1, 0, on_ready, NULL);
}

static void on_child(void *ctx, const struct signalfd_siginfo *si)
{
    (void)ctx, (void)si;
    pid_t p;
    while ((p = waitpid(-1, NULL, WNOHANG)) > 0)
        for (unsigned r = 0; r < kase->nproc; r++)
            if (pid[r] == p)
                output_child_exited(output, r);
}

/* The loop lives while stdout stands still: it counts, then it kills the workers. */
static void on_turn(void *ctx)
{
    (void)ctx;
    loop_timer_at(killer, loop_clock() + EL_MS(5));
    if (++turns == 40) {
        say("alive, queued %s", sink_queued_bytes(console_sink(console, 1)) < 8u << 20 ? "bounded" : "too much");
        for (unsigned r = 0; r < kase->nproc; r++)
            kill(pid[r], SIGKILL);
    }
}

static void configure(void)
{
    options.log_dir = kase->log_dir;
    options.tee.all = options.redirects.all = true;
    options.tee.value[0] = (uint8_t)kase->tee;
    options.redirects.value[0] = (uint8_t)kase->redirects;
    options.prefix_template = kase->prefix ? kase->prefix : "";
    options.filter_stdout = kase->filter ? kase->filter : "";
    options.filter_stderr = "";
    options.capture_stderr = kase->capture;
    options.ranks_filtered = kase->shown != NULL;
    for (const char *s = kase->shown; s && *s; s++)
        options.rank_shown[*s - '0'] = 1;
}

static int run_here(void)
{
    struct el_err e = {0};
    loop = loop_new(&e);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE);
    loop_signals(loop, &set, on_child, NULL, &e);
    pool = pool_new(loop, 2, &e);
    console = console_new(loop, &(struct console_conf){0}, &e);
    configure();
    struct output_conf conf = {.options = &options,
                               .role = "default",
                               .nproc = kase->nproc,
                               .out = console_sink(console, 1),
                               .err = console_sink(console, 2),
                               .hostname = "here",
                               .run_id = "job",
                               .tmpdir = base,
                               .seed = (uint64_t)getpid(),
                               .stall_max = kase->stalled ? EL_MS(300) : 0,
                               .drained = on_drained};
    output = output_new(loop, pool, &conf, &e);
    if (!output) {
        say("error %d %s", e.status, e.text);
        return 1;
    }
    killer = loop_timer_new(loop, on_turn, NULL);
    if (kase->stalled)
        loop_timer_at(killer, loop_clock());
    begin();
    loop_run(loop);
    loop_timer_free(killer);
    output_free(output);
    bool ended = pool_free(pool) && console_free(console);
    if (ended)
        loop_free(loop);
    fclose(report);
    /* A writer that stands in its write is no leak of ours. */
    if (!ended)
        _exit(0);
    return 0;
}

static char *slurp(const char *path, size_t *len)
{
    static char text[8][1 << 20];
    static int turn;
    char *t = text[turn++ % 8];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    for (ssize_t r; fd >= 0 && n < sizeof text[0] - 1 && (r = read(fd, t + n, sizeof text[0] - 1 - n)) > 0;)
        n += (size_t)r;
    if (fd >= 0)
        close(fd);
    t[n] = 0;
    if (len)
        *len = n;
    return fd < 0 ? NULL : t;
}

static char *in_base(const char *name)
{
    static char path[4][200];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", base, name);
    return p;
}

/* Runs the case with these descriptors as its stdout and stderr (-1: files "out" and "err"); returns its report. */
static const char *go(const struct test_case *k, int out, int err)
{
    fflush(stdout);
    pid_t p = fork();
    if (p == 0) {
        kase = k;
        alarm(60); /* a case that hangs is a failure, not a hang of the test */
        report = fopen(in_base("report"), "we");
        int o = out >= 0 ? out : open(in_base("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int e = err >= 0 ? err : open(in_base("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(o, 1);
        dup2(e, 2);
        for (int fd = 3; fd < 20; fd++) /* only what a program has that was just started */
            if (fd != fileno(report))
                close(fd);
        if (k->no_bytes)
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, RLIM_INFINITY}), signal(SIGXFSZ, SIG_IGN);
        _exit(run_here());
    }
    int status;
    waitpid(p, &status, 0);
    if (status)
        printf("# case ended with %x\n", (unsigned)status);
    const char *text = slurp(in_base("report"), NULL);
    return status || !text ? "" : text;
}

/* The content of <log dir>/job_*<rest> below base. */
static const char *log_file(const char *log_dir, const char *rest, size_t *len)
{
    char path[300] = "";
    DIR *d = opendir(log_dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, "job_", 4) == 0)
            snprintf(path, sizeof path, "%s/%s/%s", log_dir, e->d_name, rest);
    if (d)
        closedir(d);
    return slurp(path, len);
}

static int has(const char *text, const char *part)
{
    int found = text && strstr(text, part);
    if (!found)
        printf("# no \"%s\" in: %.300s\n", part, text ? text : "(null)");
    return found;
}

static void test_tee(void)
{
    const char *logs = in_base("tee");
    struct test_case k = {.nproc = 2,
                          .tee = 1,
                          .log_dir = logs,
                          .filter = "more,,x",
                          .script = "printf one; sleep 0.05; echo ' more'; printf 'more,x\\0\\377\\nlast'"};
    const char *r = go(&k, -1, -1), *out = slurp(in_base("out"), NULL);
    /* with NUL bytes in it */
    size_t n, total;
    out = slurp(in_base("out"), &total);
    ok(has(r, "drained\n") && has(r, "kept no") && has(r, "left none"), "tee: runs to its end");
    ok(memmem(out, total, "[default0]:one more\n", 20) && memmem(out, total, "[default1]:one more\n", 20),
       "lines are whole");
    const char *zero = memmem(out, total, "[default1]:more,x\0\377\n", 20);
    ok(zero != NULL, "NUL and invalid UTF-8 pass");
    const char *file = log_file(logs, "attempt_0/1/stdout.log", &n);
    ok(file && n == 22 && memcmp(file, "one more\nmore,x\0\377\nlast", 22) == 0, "the file has the bytes as they were");
    is_num(total, 2 * (22 + 1 + 3 * 11), "the console has them with prefixes and a last newline");
    file = log_file(logs, "attempt_0/filtered_stdout.log", &n);
    is_num(n, 2 * 20, "the filter took the lines with a comma");
    ok(has(r, "tail 0 out READ 22") && has(r, "tail 0 err READ 0"), "tails were kept");
}

static void test_redirect(void)
{
    const char *logs = in_base("redirect");
    struct test_case k = {.nproc = 1,
                          .redirects = 3,
                          .log_dir = logs,
                          .rounds = 2,
                          .script = "echo out; seq 1 30000 >&2; echo $ERROR_FILE > $ERROR_FILE"};
    const char *r = go(&k, -1, -1);
    ok(has(r, "tail 0 out FILE 4 out") && has(r, "tail 0 err FILE 65536"), "redirect: tails come from the files");
    ok(has(log_file(logs, "attempt_0/0/stdout.log", NULL), "out\n"), "first round");
    ok(has(log_file(logs, "attempt_0.round_2/0/stdout.log", NULL), "out\n"),
       "second round with the same count is kept apart");
    ok(has(log_file(logs, "latest/0/error.json", NULL), "attempt_0.round_2/0/error.json"),
       "latest leads to the newest");
    size_t n;
    slurp(in_base("out"), &n);
    is_num(n, 0, "nothing on the console");
}

static void test_raw(void)
{
    struct test_case k = {.nproc = 1, .script = "printf 'a\\rb' >&2; echo out; exit 1"};
    const char *r = go(&k, -1, -1);
    is_str(slurp(in_base("err"), NULL), "a\rb", "inherited stderr: unchanged, no newline added");
    ok(has(r, "tail 0 err READ 3") && has(r, "tail 0 out INHERITED"), "and its tail is known");
    ok(has(r, "kept no"), "an empty temporary directory is removed");
    k.script = "echo x > $ERROR_FILE";
    ok(has(go(&k, -1, -1), "kept yes"), "one with an error file is kept");
    k.log_dir = "/dev/null";
    k.tee = 3;
    k.script = "echo \"[$ERROR_FILE]\"";
    r = go(&k, -1, -1);
    ok(has(slurp(in_base("out"), NULL), "[default0]:[]\n"), "null device: no error file, tee still shows");
    k.tee = 0;
    k.redirects = 1;
    r = go(&k, -1, -1);
    ok(has(r, "tail 0 out NULL_DEVICE"), "null device: redirected output goes there");
}

static void test_long_line(void)
{
    struct test_case k = {
        .nproc = 2,
        .tee = 1,
        .log_dir = in_base("long"),
        .script = "if [ $RANK = 0 ]; then head -c 300000 /dev/zero | tr '\\0' x; echo; else seq 1 2000; fi"};
    go(&k, -1, -1);
    size_t n;
    const char *out = slurp(in_base("out"), &n);
    const char *x = out ? strstr(out, "[default0]:") : NULL;
    ok(x && strspn(x + 11, "x") == 300000 && x[300011] == '\n', "a line longer than the buffer stays one line");
    ok(x && !strstr(x + 1, "[default0]:"), "with its prefix once");
    int lines = 0;
    for (const char *at = out; (at = strstr(at, "[default1]:")); at++)
        lines += at == out || at[-1] == '\n';
    is_num(lines, 2000, "and nothing is glued to it");
}

static void test_lingering(void)
{
    struct test_case k = {.nproc = 1, .tee = 1, .log_dir = in_base("linger"), .script = "echo x; sleep 300 & echo $!"};
    const char *r = go(&k, -1, -1), *pid_text = log_file(in_base("linger"), "attempt_0/0/stdout.log", NULL);
    ok(has(r, "drained"), "a descendant that holds the pipe does not hold up the end");
    ok(pid_text && kill(atoi(pid_text + 2), SIGKILL) == 0, "though it lives");
}

static void test_stalled(void)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return;
    struct test_case k = {.nproc = 2, .tee = 1, .log_dir = in_base("stalled"), .stalled = true, .script = "exec yes"};
    const char *r = go(&k, p[1], -1);
    ok(has(r, "alive, queued bounded"), "stdout stands still: the loop lives, memory is bounded");
    ok(has(r, "drained"), "the end of the workers is not held up");
    ok(has(r, "left some"), "nor is elrun's");
    close(p[0]);
    close(p[1]);
}

static void test_closed(void)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return;
    close(p[0]);
    struct test_case k = {.nproc = 1, .tee = 1, .log_dir = in_base("closed"), .script = "seq 1 50000"};
    go(&k, p[1], -1);
    close(p[1]);
    size_t n;
    log_file(in_base("closed"), "attempt_0/0/stdout.log", &n);
    is_num(n, 288894, "stdout is a closed pipe: the log file is whole");
    const char *err = slurp(in_base("err"), NULL);
    ok(has(err, "elrun: warning: standard output is closed") && strchr(err, '\n')[1] == 0, "with one warning");
}

static void test_hidden(void)
{
    struct test_case k = {.nproc = 2, .shown = "0", .script = "readlink /proc/self/fd/1; echo err$RANK >&2"};
    const char *r = go(&k, -1, -1), *err = slurp(in_base("err"), NULL);
    ok(has(err, "err0") && !strstr(err, "err1"), "a rank that is not shown is not seen");
    ok(has(r, "tail 1 out NULL_DEVICE") && has(r, "tail 1 err READ 5 err1"), "but its last output is known");
}

static void test_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    char name[64];
    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof name) != 0) {
        skip("terminal", "no pseudo-terminals here");
        return;
    }
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct test_case k = {.nproc = 1, .script = "test -t 2 && echo TTY >&2"};
    ok(has(go(&k, -1, slave), "tail 0 err TERMINAL"), "a terminal is left alone");
    k.capture = true;
    ok(has(go(&k, -1, slave), "tail 0 err READ 4 TTY"),
       "--capture-stderr: the worker sees a terminal, its words are kept");
    char got[300];
    ssize_t n = read(master, got, sizeof got - 1);
    got[n > 0 ? n : 0] = 0;
    ok(has(got, "TTY\r\nTTY\r\n"), "and reach the real one unchanged");
    close(slave);
    close(master);
}

static void test_errors(void)
{
    int fd = open(in_base("plain"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    struct test_case k = {.nproc = 1, .log_dir = in_base("plain"), .script = "true"};
    ok(has(go(&k, -1, -1), "error 73"), "log directory is a file");
    k.log_dir = in_base("plain/below");
    ok(has(go(&k, -1, -1), "error 73"), "log directory below a file");
    ok(mkdir(in_base("full"), 0700) == 0, "a directory");
    /* Its own report needs bytes too: only what it could still say counts. */
    k.log_dir = in_base("full");
    k.no_bytes = true;
    go(&k, -1, -1);
    size_t n = 0;
    DIR *d = opendir(in_base("full"));
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    is_num(n, 0, "a log directory that takes no bytes is found out and left as it was");
}

int main(void)
{
    snprintf(base, sizeof base, "/tmp/elrun-test-output-%d", (int)getpid());
    mkdir(base, 0700);
    test_tee();
    test_redirect();
    test_raw();
    test_long_line();
    test_lingering();
    test_stalled();
    test_closed();
    test_hidden();
    test_terminal();
    test_errors();
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", base);
    if (system(command) != 0)
        printf("# %s is left\n", base);
    return done();
}
