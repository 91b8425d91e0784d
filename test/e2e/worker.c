/* A worker for end-to-end tests: does what its arguments say, one verb after the other, and ends with status 0.
 *
 *   worker [@RANK] [+ATTEMPT] VERB [ARGUMENT...] ...
 *
 * @RANK and +ATTEMPT hold for the verb that follows: it is skipped unless RANK or TORCHELASTIC_RESTART_COUNT is that
 * number.  Files are named after what the tests assert on: what workers recorded, not what elrun printed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int rank, attempt;

static void die(const char *what)
{
    fprintf(stderr, "worker: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static int number_of(const char *s)
{
    char *end;
    long v = strtol(s, &end, 10);
    if (*s == 0 || *end != 0) {
        fprintf(stderr, "worker: not a number: %s\n", s);
        _exit(99);
    }
    return (int)v;
}

static int env_number(const char *name)
{
    const char *s = getenv(name);
    return s ? number_of(s) : -1;
}

static int signal_of(const char *s)
{
    static const struct {
        const char *name;
        int number;
    } list[] = {
        {"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},   {"QUIT", SIGQUIT},
        {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"KILL", SIGKILL}, {"SEGV", SIGSEGV},
        {"ABRT", SIGABRT}, {"TSTP", SIGTSTP}, {"CONT", SIGCONT}, {"PIPE", SIGPIPE},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(s, list[i].name) == 0)
            return list[i].number;
    return number_of(s);
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR) {
    }
}

/* Files appear whole: written under another name, then renamed. */
static FILE *record_open(char *path, size_t size, const char *prefix)
{
    snprintf(path, size, "%s.%d.%d", prefix, attempt, rank);
    char beside[4096];
    snprintf(beside, sizeof beside, "%s~", path);
    FILE *f = fopen(beside, "we");
    if (!f)
        die(beside);
    return f;
}

static void record_close(FILE *f, const char *path)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s~", path);
    if (fclose(f) != 0 || rename(beside, path) != 0)
        die(path);
}

static void record_descriptors(FILE *f)
{
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        int fd = atoi(e->d_name);
        char link[64], to[4096];
        if (e->d_name[0] == '.' || fd == dirfd(d) || fd == fileno(f))
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, to, sizeof to - 1);
        fprintf(f, "fd %d %.*s\n", fd, (int)(n < 0 ? 0 : n), to);
    }
    closedir(d);
}

static void record_lines_of(FILE *f, const char *path, const char *want, const char *as)
{
    char line[512];
    FILE *in = fopen(path, "re");
    if (!in)
        return;
    while (fgets(line, sizeof line, in))
        if (strncmp(line, want, strlen(want)) == 0)
            fprintf(f, "%s%s", as, line);
    fclose(in);
}

/* record PREFIX: pid, groups, signals, descriptors and environment to PREFIX.ATTEMPT.RANK */
static void do_record(char **a)
{
    char path[4000];
    FILE *f = record_open(path, sizeof path, a[0]);
    fprintf(f, "pid %d\nppid %d\npgid %d\nsid %d\n", getpid(), getppid(), getpgrp(), getsid(0));
    record_descriptors(f);
    record_lines_of(f, "/proc/self/status", "Sig", "status ");
    record_lines_of(f, "/proc/self/oom_score_adj", "", "oom ");
    for (char **e = environ; *e; e++)
        fprintf(f, "env %s\n", *e);
    record_close(f, path);
}

static void do_exit(char **a)
{
    fflush(NULL);
    _exit(number_of(a[0]));
}

static void do_raise(char **a)
{
    signal(signal_of(a[0]), SIG_DFL);
    raise(signal_of(a[0]));
}

static void do_ignore(char **a)
{
    signal(signal_of(a[0]), SIG_IGN);
}

/* What a signal does: a line in a file, the end with a status, both. */
static struct reaction {
    const char *file;
    int status;
} reactions[65];

static void on_signal(int sig)
{
    const struct reaction *r = &reactions[sig];
    int saved = errno, fd = r->file ? open(r->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        char line[64];
        int n = snprintf(line, sizeof line, "%d %d\n", sig, rank);
        if (write(fd, line, (size_t)n) != n)
            _exit(98);
        close(fd);
    }
    if (r->status > 0)
        _exit(r->status - 1);
    errno = saved;
}

static struct reaction *react_to(const char *name)
{
    int sig = signal_of(name);
    struct sigaction sa = {.sa_handler = on_signal};
    if (sig < 1 || sig > 64 || sigaction(sig, &sa, NULL) != 0)
        die("signal");
    return &reactions[sig];
}

/* catch SIGNAL FILE: from now on the signal appends "NUMBER RANK" to FILE, and the worker goes on */
static void do_catch(char **a)
{
    react_to(a[0])->file = a[1];
}

/* on SIGNAL STATUS: from now on the signal ends the worker with that status, after the line of catch */
static void do_on(char **a)
{
    react_to(a[0])->status = number_of(a[1]) + 1;
}

static void do_sleep(char **a)
{
    sleep_ms(number_of(a[0]));
}

static void do_forever(char **a)
{
    (void)a;
    for (;;)
        pause();
}

/* await FILE: until it is there */
static void do_await(char **a)
{
    while (access(a[0], F_OK) != 0)
        sleep_ms(5);
}

/* outlive FILE: until the process has ended that recorded its pid there (verb record) */
static void do_outlive(char **a)
{
    char path[64], line[256];
    int pid = 0;
    do_await(a);
    FILE *f = fopen(a[0], "re");
    if (!f || fscanf(f, "pid %d", &pid) != 1)
        die(a[0]);
    fclose(f);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    for (int alive = 1; alive; sleep_ms(1)) {
        alive = 0;
        if (!(f = fopen(path, "re")))
            return;
        while (fgets(line, sizeof line, f))
            alive |= strncmp(line, "State:", 6) == 0 && !strchr(line, 'Z') && !strchr(line, 'X');
        fclose(f);
    }
}

static void do_touch(char **a)
{
    char path[4000];
    record_close(record_open(path, sizeof path, a[0]), path);
}

static void do_out(char **a)
{
    printf("%s", a[0]);
    fflush(stdout);
}

static void do_err(char **a)
{
    fprintf(stderr, "%s", a[0]);
}

/* flood LINES LENGTH: numbered lines to stdout, LENGTH bytes each with the newline */
static void do_flood(char **a)
{
    int lines = number_of(a[0]), length = number_of(a[1]);
    static char line[1 << 20];
    if (length < 12 || length > (int)sizeof line)
        die("flood: length out of range");
    memset(line, '.', sizeof line);
    for (int i = 0; i < lines; i++) {
        char head[16];
        int n = snprintf(head, sizeof head, "%d ", i);
        memcpy(line, head, (size_t)n);
        line[length - 1] = '\n';
        if (fwrite(line, 1, (size_t)length, stdout) != (size_t)length)
            die("stdout");
        line[length - 1] = '.';
    }
    if (fflush(stdout) != 0)
        die("stdout");
}

/* child: a child in the same group that lives for ever and ignores TERM; its pid goes to FILE.ATTEMPT.RANK */
static pid_t live_on(const char *file, int levels, int new_session)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0) {
        if (levels > 1)
            waitpid(pid, NULL, 0);
        return pid;
    }
    if (new_session)
        setsid();
    if (levels > 1) {
        live_on(file, levels - 1, 0);
        _exit(0);
    }
    signal(SIGTERM, SIG_IGN);
    char path[4000];
    FILE *f = record_open(path, sizeof path, file);
    fprintf(f, "pid %d\n", getpid());
    record_close(f, path);
    for (;;)
        pause();
}

static void wait_until_there(const char *file)
{
    char path[4000];
    snprintf(path, sizeof path, "%s.%d.%d", file, attempt, rank);
    while (access(path, F_OK) != 0)
        sleep_ms(1);
}

static void do_child(char **a)
{
    live_on(a[0], 1, 0);
    wait_until_there(a[0]);
}

/* daemon FILE: a double fork into a session of its own, as daemons do */
static void do_daemon(char **a)
{
    live_on(a[0], 2, 1);
    wait_until_there(a[0]);
}

/* held: waits for ever in state D, as beside a dead file server: for a child of vfork() that does not end */
static void do_held(char **a)
{
    (void)a;
    if (syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL) == 0)
        for (;;)
            syscall(SYS_pause);
}

/* spin: uses a processor for ever, and ignores TERM */
static void do_spin(char **a)
{
    (void)a;
    signal(SIGTERM, SIG_IGN);
    for (volatile unsigned i = 0;; i++)
        ;
}

/* orphans N: N double-forked grandchildren that end after a moment, as somebody's adopted children */
static void do_orphans(char **a)
{
    for (int i = number_of(a[0]); i > 0; i--) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0) {
            if (fork() == 0)
                sleep_ms(20);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

/* error TEXT SECONDS: the error file that torch's @record writes */
static void do_error(char **a)
{
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    FILE *f = path && *path ? fopen(path, "we") : NULL;
    if (!f)
        die("TORCHELASTIC_ERROR_FILE");
    fprintf(f,
            "{\"message\": {\"message\": \"%s\", \"extraInfo\": {\"py_callstack\": \"Traceback: of the test\", "
            "\"timestamp\": \"%s\"}}}",
            a[0], a[1]);
    fclose(f);
}

/* stdin FILE: what stdin holds goes to FILE.ATTEMPT.RANK */
static void do_stdin(char **a)
{
    char path[4000], buf[4096];
    FILE *f = record_open(path, sizeof path, a[0]);
    for (ssize_t n; (n = read(0, buf, sizeof buf)) > 0;)
        fwrite(buf, 1, (size_t)n, f);
    record_close(f, path);
}

/* eat MIB: memory, touched */
static void do_eat(char **a)
{
    size_t size = (size_t)number_of(a[0]) << 20;
    char *p = malloc(size);
    if (!p)
        die("malloc");
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)p)[i] = 1;
    free(p);
}

/* --- several nodes --- */

static long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static const char *env_text(const char *name)
{
    const char *s = getenv(name);
    return s && *s ? s : "-";
}

/* One write for a line: many workers share the file. */
static void append(const char *path, const char *line, int n)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        die(path);
    close(fd);
}

/* enter FILE: one line with what this worker was told */
static void do_enter(char **a)
{
    char host[256] = "", line[1024];
    gethostname(host, sizeof host - 1);
    int n = snprintf(line, sizeof line, "in %lld %d %s %d %d %s %s %s %s %s %s %s %s %s %s\n", now_us(), getpid(),
                     env_text("ELRUN_ROUND"), attempt, rank, env_text("WORLD_SIZE"), env_text("GROUP_RANK"),
                     env_text("GROUP_WORLD_SIZE"), env_text("LOCAL_RANK"), env_text("LOCAL_WORLD_SIZE"),
                     env_text("ROLE_NAME"), env_text("ROLE_RANK"), env_text("ROLE_WORLD_SIZE"), host,
                     env_text("MASTER_ADDR"));
    append(a[0], line, n);
}

/* pulse FILE: for ever, a line every few milliseconds: when a worker lived can be read there whatever ended it */
static void do_pulse(char **a)
{
    for (;; sleep_ms(5)) {
        char line[128];
        append(a[0], line, snprintf(line, sizeof line, "pulse %lld %d %d\n", now_us(), getpid(), rank));
    }
}

static int store_connect(void)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    const char *host = env_text("MASTER_ADDR"), *port = env_text("MASTER_PORT");
    int fd = -1, bad = getaddrinfo(host, port, &hints, &all);
    if (bad)
        fprintf(stderr, "worker: MASTER_ADDR=%s: %s\n", host, gai_strerror(bad));
    for (struct addrinfo *i = bad ? NULL : all; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, i->ai_addr, i->ai_addrlen) == 0)
            break;
        fprintf(stderr, "worker: %s port %s: %s\n", host, port, strerror(errno));
        close(fd);
        fd = -1;
    }
    if (!bad)
        freeaddrinfo(all);
    return fd;
}

/* c10d's ADD: opcode, length and bytes of the key, what to add; the answer is the sum */
static int64_t store_add(int fd, const char *key, int64_t delta)
{
    char request[64] = {4};
    uint64_t length = strlen(key);
    size_t n = 1;
    memcpy(request + n, &length, sizeof length), n += sizeof length;
    memcpy(request + n, key, length), n += length;
    memcpy(request + n, &delta, sizeof delta), n += sizeof delta;
    int64_t sum = 0;
    if (send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n || recv(fd, &sum, sizeof sum, MSG_WAITALL) != sizeof sum) {
        fprintf(stderr, "worker: the store hung up\n");
        _exit(97);
    }
    return sum;
}

/* meet: a barrier of all ranks at the store of MASTER_ADDR and MASTER_PORT, in c10d's protocol */
static void do_meet(char **a)
{
    static const char hello[] = {0, (char)0xce, (char)0xf7, (char)0x85, 0x3c};
    (void)a;
    int fd = store_connect(), world = env_number("WORLD_SIZE");
    if (fd < 0)
        _exit(97);
    if (send(fd, hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        die("the store");
    for (int64_t there = store_add(fd, "meet", 1); there < world; there = store_add(fd, "meet", 0))
        sleep_ms(5);
    close(fd);
}

static const struct verb {
    const char *name;
    int arguments;
    void (*run)(char **a);
} verbs[] = {
    {"record", 1, do_record},   {"exit", 1, do_exit},       {"raise", 1, do_raise}, {"ignore", 1, do_ignore},
    {"catch", 2, do_catch},     {"on", 2, do_on},           {"sleep", 1, do_sleep}, {"forever", 0, do_forever},
    {"await", 1, do_await},     {"outlive", 1, do_outlive}, {"touch", 1, do_touch}, {"out", 1, do_out},
    {"err", 1, do_err},         {"flood", 2, do_flood},     {"child", 1, do_child}, {"daemon", 1, do_daemon},
    {"orphans", 1, do_orphans}, {"error", 2, do_error},     {"stdin", 1, do_stdin}, {"eat", 1, do_eat},
    {"enter", 1, do_enter},     {"pulse", 1, do_pulse},     {"meet", 0, do_meet},   {"held", 0, do_held},
    {"spin", 0, do_spin},
};

static const struct verb *verb_of(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    fprintf(stderr, "worker: no such verb: %s\n", name);
    _exit(99);
}

int main(int argc, char **argv)
{
    rank = env_number("RANK");
    attempt = env_number("TORCHELASTIC_RESTART_COUNT");
    for (int i = 1; i < argc;) {
        int mine = 1;
        for (; i < argc && (argv[i][0] == '@' || argv[i][0] == '+'); i++)
            mine &= number_of(argv[i] + 1) == (argv[i][0] == '@' ? rank : attempt);
        if (i >= argc)
            break;
        const struct verb *v = verb_of(argv[i]);
        if (i + v->arguments >= argc) {
            fprintf(stderr, "worker: %s wants %d argument(s)\n", v->name, v->arguments);
            return 99;
        }
        if (mine)
            v->run(argv + i + 1);
        i += 1 + v->arguments;
    }
    return 0;
}
