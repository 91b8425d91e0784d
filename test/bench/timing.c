/* Takes one sample of a launcher: starts it, makes it do what the mode says, prints lines "METRIC VALUE".
 *
 *   timing whole|first|lines|term|death|idle STAMPS WORKERS COMMAND...
 *
 *   whole  whole: from before the fork of the launcher to its exit, ms
 *   first  first, last: from before the fork to the first instruction of the first, the last worker, ms
 *   lines  whole as above; lines: from the first worker's stamp to the launcher's exit, ms; rate: $BENCH_LINES by that;
 *          busy: processor time of launcher and worker, ms
 *   term   gone: from SIGTERM to the launcher's exit, ms (WORKERS obedient ones)
 *   death  term, restart: from a worker's last instruction to the last sibling's SIGTERM handler, and to the first
 *          instruction of the last worker of the next attempt, ms
 *   idle   seven windows of two seconds: rss and rss_all in KiB (launcher; launcher with its helper processes),
 *          cpu in ms of processor time per second
 * The command runs workers of test/bench/stamp.c, which write to STAMPS.  Output of the command goes to STAMPS.out. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/proc.h"

#define WAIT_MAX_NS  (120 * 1000000000LL)
#define IDLE_WINDOWS 7

static const char *stamps;
static int workers;
static pid_t launcher = -1;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ns(long long ns)
{
    struct timespec t = {ns / 1000000000LL, ns % 1000000000LL};
    while (nanosleep(&t, &t) < 0 && errno == EINTR) {
    }
}

static _Noreturn void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "timing: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (output: %s.out)\n", stamps);
    va_end(ap);
    if (launcher > 0)
        kill(launcher, SIGKILL);
    exit(1);
}

static long long launch(char **command)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.out", stamps);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
        null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || null < 0)
        fail("%s: %s", path, strerror(errno));
    long long before = now_ns();
    launcher = fork();
    if (launcher < 0)
        fail("fork: %s", strerror(errno));
    if (launcher == 0) {
        dup2(null, 0);
        dup2(out, 1);
        dup2(out, 2);
        execvp(command[0], command);
        _exit(127);
    }
    return before;
}

/* Waits for the launcher, at most WAIT_MAX_NS: the alarm of main() bounds it.  Returns when; the status must be fit. */
static long long gone(int want_success)
{
    int status;
    if (waitpid(launcher, &status, 0) < 0)
        fail("the launcher did not end in time");
    long long at = now_ns();
    launcher = -1;
    if (want_success && status != 0)
        fail("the launcher ended with wait status %d", status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fail("the launcher could not be started");
    return at;
}

/* Of all lines with this event and attempt: how many, the earliest and the latest. */
struct seen {
    int count;
    long long first, last;
};

static struct seen look(const char *event, int attempt)
{
    struct seen s = {0, LLONG_MAX, 0};
    char word[16];
    int of, rank;
    long long at;
    FILE *f = fopen(stamps, "re");
    while (f && fscanf(f, "%15s %d %d %lld", word, &rank, &of, &at) == 4) {
        if (strcmp(word, event) != 0 || of != attempt)
            continue;
        s.count++;
        if (at < s.first)
            s.first = at;
        if (at > s.last)
            s.last = at;
    }
    if (f)
        fclose(f);
    return s;
}

static void all_started(void)
{
    for (long long end = now_ns() + WAIT_MAX_NS; look("start", 0).count < workers; sleep_ns(1000000)) {
        int status;
        if (waitpid(launcher, &status, WNOHANG) == launcher) {
            launcher = -1;
            fail("the launcher ended early, wait status %d", status);
        }
        if (now_ns() > end)
            fail("only %d of %d workers started", look("start", 0).count, workers);
    }
}

/* Until the launcher has settled in its watching loop; with odd parts, so that a poller is met at any of its phases. */
static void settle(void)
{
    sleep_ns(400000000 + now_ns() % 100 * 1000000);
}

static void ms(const char *metric, long long ns)
{
    printf("%s %.3f\n", metric, (double)ns / 1e6);
}

static void do_whole(char **command)
{
    long long before = launch(command);
    ms("whole", gone(1) - before);
}

static void do_first(char **command)
{
    long long before = launch(command);
    gone(1);
    struct seen s = look("start", 0);
    if (s.count != workers)
        fail("%d of %d workers started", s.count, workers);
    ms("first", s.first - before);
    ms("last", s.last - before);
}

static void do_lines(char **command)
{
    const char *count = getenv("BENCH_LINES");
    long long before = launch(command), end = gone(1);
    struct seen s = look("start", 0);
    if (s.count != 1 || !count)
        fail("one worker must stamp its start, and BENCH_LINES be set");
    ms("whole", end - before);
    ms("lines", end - s.first);
    printf("rate %.0f\n", atof(count) * 1e9 / (double)(end - s.first));
    struct rusage u;
    if (getrusage(RUSAGE_CHILDREN, &u) == 0)
        ms("busy",
           (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL);
}

static void do_term(char **command)
{
    launch(command);
    all_started();
    settle();
    long long before = now_ns();
    kill(launcher, SIGTERM);
    ms("gone", gone(0) - before);
    if (look("term", 0).count != workers)
        fail("not every worker got SIGTERM");
}

static void do_death(char **command)
{
    char go[PATH_MAX];
    snprintf(go, sizeof go, "%s.go", stamps);
    unlink(go);
    launch(command);
    all_started();
    settle();
    int fd = open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        fail("%s: %s", go, strerror(errno));
    close(fd);
    gone(1);
    unlink(go);
    struct seen die = look("die", 0), term = look("term", 0), again = look("start", 1);
    if (die.count != 1 || term.count != workers - 1 || again.count != workers)
        fail("%d died, %d signalled, %d started again", die.count, term.count, again.count);
    ms("term", term.last - die.first);
    ms("restart", again.last - die.first);
}

/* --- what an idle launcher costs -------------------------------------------------------------------------------- */
static int is_worker(pid_t pid)
{
    char path[64], exe[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n < 0)
        return 1;
    exe[n] = 0;
    const char *base = strrchr(exe, '/');
    return base && strcmp(base, "/stamp") == 0;
}

/* The launcher and its children that are not workers. */
static int helpers(pid_t *list, int most)
{
    int n = 0;
    list[n++] = launcher;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d)) && n < most;) {
        pid_t pid = atoi(e->d_name);
        if (pid > 0 && proc_number(pid, "status", "PPid:") == launcher && !is_worker(pid))
            list[n++] = pid;
    }
    if (d)
        closedir(d);
    return n;
}

static void do_idle(char **command)
{
    launch(command);
    all_started();
    sleep_ns(1000000000);
    pid_t list[16];
    int n = helpers(list, 16);
    for (int w = 0; w < IDLE_WINDOWS; w++) {
        long long cpu = 0, rss_all = 0, from = now_ns();
        for (int i = 0; i < n; i++)
            cpu -= proc_cpu_ns(list[i]);
        sleep_ns(2000000000);
        for (int i = 0; i < n; i++)
            cpu += proc_cpu_ns(list[i]);
        double seconds = (double)(now_ns() - from) / 1e9;
        for (int i = 0; i < n; i++)
            rss_all += proc_number(list[i], "status", "VmRSS:");
        printf("rss %lld\nrss_all %lld\ncpu %.4f\n", proc_number(launcher, "status", "VmRSS:"), rss_all,
               (double)cpu / 1e6 / seconds);
    }
    kill(launcher, SIGTERM);
    gone(0);
}

static void on_alarm(int sig)
{
    (void)sig;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(char **command);
    } modes[] = {{"whole", do_whole}, {"first", do_first}, {"lines", do_lines},
                 {"term", do_term},   {"death", do_death}, {"idle", do_idle}};
    if (argc < 5)
        return fprintf(stderr, "usage: timing MODE STAMPS WORKERS COMMAND...\n"), 2;
    stamps = argv[2];
    workers = atoi(argv[3]);
    setenv("BENCH_STAMPS", stamps, 1);
    unlink(stamps);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL); /* interrupts waitpid */
    alarm(WAIT_MAX_NS / 1000000000LL);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run(argv + 4), 0;
    return fprintf(stderr, "timing: no such mode: %s\n", argv[1]), 2;
}
