/* Takes one sample of several agents of one job on this machine: starts them, makes them do what the mode says, prints
 * lines "METRIC VALUE" in ms.
 *
 *   nodes join|lose|lead|late|cut STAMPS AGENTS COMMAND...
 *
 *   join  joined: from before the fork of the first agent to the first instruction of the last worker
 *   lose  lost: from kill -9 of the last agent to the first instruction of the survivors' last new worker.  In the same
 *         moment the file STAMPS.go appears.  The first agent hosts the endpoint.
 *   lead  lost: as lose, but of the first agent
 *   late  alone: from before the fork of the first agent to its worker's first instruction
 *         joined: if AGENTS is 2, from before the fork of the second to the last worker's first instruction
 *   cut   lost: as lose, but the shell command $BENCH_CUT is run instead of a kill
 *
 * The command starts one agent with one worker of test/bench/stamp.c.  In its words @PORT@ stands for a free port and
 * @AGENT@ for the number of the agent.  Output goes to STAMPS.out.  Nothing that was started is left behind. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/proc.h"

#define WAIT_MAX_NS (60 * 1000000000LL)
#define POLL_NS     1000000

enum { AGENTS_MAX = 16, WORDS_MAX = 64, WORD_SIZE = 512 };

static const char *stamps;
static char **command;
static int agents, port;
static pid_t agent[AGENTS_MAX];

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

/* Agents first, then what they leave behind, which this process adopts: until there is nothing. */
static void kill_all(void)
{
    for (int i = 0; i < agents; i++)
        if (agent[i] > 0)
            kill(agent[i], SIGKILL);
    for (long long end = now_ns() + 10000000000LL; now_ns() < end; sleep_ns(POLL_NS)) {
        pid_t got;
        while ((got = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (got < 0)
            return;
        DIR *d = opendir("/proc");
        for (struct dirent *e; d && (e = readdir(d));) {
            pid_t pid = atoi(e->d_name);
            if (pid > 0 && proc_number(pid, "status", "PPid:") == getpid())
                kill(pid, SIGKILL);
        }
        if (d)
            closedir(d);
    }
}

static _Noreturn void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "nodes: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (output: %s.out)\n", stamps);
    va_end(ap);
    kill_all();
    exit(1);
}

/* Told to stop: nothing stays behind. */
static volatile sig_atomic_t told;
static void on_signal(int sig)
{
    told = sig;
}

static void sleep_a_bit(void)
{
    sleep_ns(POLL_NS);
    if (told)
        fail("signal %d", told);
}

/* --- agents --- */
static void replace(char *word, const char *name, int value)
{
    char rest[WORD_SIZE], *at = strstr(word, name);
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(name));
    snprintf(at, WORD_SIZE - (size_t)(at - word), "%d%s", value, rest);
}

static long long start(int i)
{
    static char word[WORDS_MAX][WORD_SIZE];
    char *argv[WORDS_MAX + 1] = {0}, path[WORD_SIZE];
    for (int k = 0; command[k]; k++) {
        if (k == WORDS_MAX || strlen(command[k]) > WORD_SIZE - 16)
            fail("the command is too long");
        argv[k] = strcpy(word[k], command[k]);
        replace(word[k], "@PORT@", port);
        replace(word[k], "@AGENT@", i);
    }
    snprintf(path, sizeof path, "%s.out", stamps);
    int out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666),
        null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || null < 0)
        fail("%s: %s", path, strerror(errno));
    long long before = now_ns();
    agent[i] = fork();
    if (agent[i] < 0)
        fail("fork: %s", strerror(errno));
    if (agent[i] == 0) {
        dup2(null, 0);
        dup2(out, 1);
        dup2(out, 2);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(out);
    close(null);
    return before;
}

static struct sockaddr_in loopback(int at)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((unsigned short)at), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int free_port(void)
{
    struct sockaddr_in a = loopback(0);
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) || getsockname(fd, (struct sockaddr *)&a, &size))
        fail("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(a.sin_port);
}

static void await_endpoint(void)
{
    struct sockaddr_in a = loopback(port);
    for (long long end = now_ns() + WAIT_MAX_NS; now_ns() < end; sleep_a_bit()) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            there = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
        close(fd);
        if (there)
            return;
    }
    fail("nobody listens at port %d", port);
}

/* --- workers --- */

/* When the last of the ranks 0 to n-1 was first started after a time; 0: one is missing. */
static long long started(int n, long long after)
{
    long long first[AGENTS_MAX] = {0}, at, last = 0;
    char event[16];
    int rank, attempt, found = 0;
    FILE *f = fopen(stamps, "re");
    while (f && fscanf(f, "%15s %d %d %lld", event, &rank, &attempt, &at) == 4) {
        if (strcmp(event, "start") != 0 || at < after || rank < 0 || rank >= n || first[rank])
            continue;
        first[rank] = at;
        last = at > last ? at : last;
        found++;
    }
    if (f)
        fclose(f);
    return found == n ? last : 0;
}

static long long await_workers(int n, long long after)
{
    for (long long at, end = now_ns() + WAIT_MAX_NS; now_ns() < end; sleep_a_bit()) {
        if ((at = started(n, after)))
            return at;
        for (int i = 0; i < agents; i++) {
            int status;
            if (agent[i] <= 0 || waitpid(agent[i], &status, WNOHANG) != agent[i])
                continue;
            agent[i] = 0;
            fail("agent %d ended early, wait status %d", i, status);
        }
    }
    fail("not all of %d workers were started", n);
}

/* With odd parts, so that a poller is met at any of its phases. */
static void settle(void)
{
    sleep_ns(400000000 + now_ns() % 100 * 10000000);
}

static void tell(const char *metric, long long ns)
{
    printf("%s %.3f\n", metric, (double)ns / 1e6);
}

/* --- modes --- */
static void do_join(void)
{
    long long before = start(0);
    for (int i = 1; i < agents; i++)
        start(i);
    tell("joined", await_workers(agents, before) - before);
}

static void start_all(int local)
{
    long long before = start(0);
    if (local)
        await_endpoint();
    for (int i = 1; i < agents; i++)
        start(i);
    await_workers(agents, before);
    settle();
}

static void lose(int i)
{
    char go[WORD_SIZE];
    snprintf(go, sizeof go, "%s.go", stamps);
    start_all(1);
    long long at = now_ns();
    kill(agent[i], SIGKILL);
    int fd = open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        fail("%s: %s", go, strerror(errno));
    close(fd);
    waitpid(agent[i], NULL, 0);
    agent[i] = 0;
    tell("lost", await_workers(agents - 1, at) - at);
}

static void do_lose(void)
{
    lose(agents - 1);
}

static void do_lead(void)
{
    lose(0);
}

static void do_late(void)
{
    long long before = start(0);
    long long first = await_workers(1, before);
    tell("alone", first - before);
    if (agents == 1)
        return;
    settle();
    long long second = start(1);
    tell("joined", await_workers(2, second) - second);
}

static void do_cut(void)
{
    const char *cut = getenv("BENCH_CUT");
    start_all(0);
    long long at = now_ns();
    if (!cut || system(cut) != 0)
        fail("BENCH_CUT has failed");
    tell("lost", await_workers(agents - 1, at) - at);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"join", do_join}, {"lose", do_lose}, {"lead", do_lead}, {"late", do_late}, {"cut", do_cut}};
    char path[WORD_SIZE];
    if (argc < 5)
        return fprintf(stderr, "usage: nodes MODE STAMPS AGENTS COMMAND...\n"), 2;
    stamps = argv[2];
    agents = atoi(argv[3]);
    command = argv + 4;
    if (agents < 1 || agents > AGENTS_MAX || strlen(stamps) > WORD_SIZE - 16)
        return 2;
    setenv("BENCH_STAMPS", stamps, 1);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", stamps, (const char *[]){"", ".go", ".out"}[i]);
        unlink(path);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    port = free_port();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        modes[i].run();
        fflush(stdout);
        kill_all();
        return 0;
    }
    return fprintf(stderr, "nodes: no such mode: %s\n", argv[1]), 2;
}
