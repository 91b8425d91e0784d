/* The worker of the launch benchmarks: writes when it did what, on CLOCK_MONOTONIC, to the file $BENCH_STAMPS.
 *
 *   stamp once   stamp "start", end
 *   stamp idle   stamp "start", wait for SIGTERM, stamp "term", end
 *   stamp die    attempt 0: stamp "start"; rank 0 waits for the file $BENCH_STAMPS.go, stamps "die" and ends with
 *                status 1, the others are as idle.  Later attempts are as once.
 *   stamp shot   the same, but rank 0 ends by SIGKILL
 *   stamp told   the same, but rank 0 ends by SIGTERM
 *   stamp pour RATE LINES   stamp "start", write so many lines of 80 bytes to stderr, at most RATE a second, end
 *
 * One line is one write to a file opened for appending: "EVENT RANK ATTEMPT NANOSECONDS". */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int out = -1, rank, attempt;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void stamp(const char *event, long long at)
{
    char line[96];
    int n = snprintf(line, sizeof line, "%s %d %d %lld\n", event, rank, attempt, at);
    if (write(out, line, (size_t)n) != n)
        _exit(98);
}

static void on_term(int sig)
{
    (void)sig;
    stamp("term", now_ns());
    _exit(0);
}

static int number(const char *name)
{
    const char *s = getenv(name);
    return s ? atoi(s) : 0;
}

static void await(const char *file, int step_ns)
{
    while (access(file, F_OK) != 0)
        nanosleep(&(struct timespec){0, step_ns}, NULL);
}

/* Lines of 80 bytes to stderr, 50 a write, at most this many a second: the n-th write is not before its time. */
static void pour(long lines_per_second, long lines)
{
    static char block[4000];
    memset(block, '.', sizeof block);
    for (size_t i = 79; i < sizeof block; i += 80)
        block[i] = '\n';
    long long from = now_ns();
    for (long n = 0; n < lines; n += 50) {
        for (size_t done = 0; done < sizeof block;) {
            ssize_t put = write(STDERR_FILENO, block + done, sizeof block - done);
            if (put <= 0)
                _exit(97);
            done += (size_t)put;
        }
        long long due = from + n * 1000000000LL / lines_per_second, early = due - now_ns();
        if (early > 200000) /* a sleep costs about 60 us more than was asked for */
            nanosleep(&(struct timespec){0, (long)(early < 900000000 ? early : 900000000)}, NULL);
    }
}

int main(int argc, char **argv)
{
    long long started = now_ns(); /* the first instruction that is ours */
    const char *path = getenv("BENCH_STAMPS"), *mode = argc > 1 ? argv[1] : "once";
    if (!path || (out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) < 0)
        return 98;
    rank = number("RANK");
    attempt = number("TORCHELASTIC_RESTART_COUNT");
    alarm(150); /* a launcher that leaves its workers behind must not leave them for ever */
    signal(SIGTERM, on_term);
    char go[4096];
    snprintf(go, sizeof go, "%s.go", path);
    bool told = access(go, F_OK) == 0;
    stamp("start", started);
    int shot = strcmp(mode, "shot") == 0, told_off = strcmp(mode, "told") == 0;
    int dies = shot || told_off || strcmp(mode, "die") == 0;
    if (strcmp(mode, "pour") == 0 && argc == 4)
        pour(atol(argv[2]), atol(argv[3]));
    if (strcmp(mode, "once") == 0 || strcmp(mode, "pour") == 0 || (dies && attempt > 0))
        return 0;
    if (dies && rank == 0) {
        await(go, 200000);
        stamp("die", now_ns());
        if (shot)
            raise(SIGKILL);
        if (told_off && signal(SIGTERM, SIG_DFL) != SIG_ERR)
            raise(SIGTERM);
        _exit(1);
    }
    if (strcmp(mode, "peer") == 0 && !told) {
        await(go, 1000000);
        _exit(1);
    }
    for (;;)
        pause();
}
