/* Libraries that stand in for NVIDIA's where there is no GPU, built as shared objects with the real names under
 * $(BUILD)/test/mock: site/ is laid out as site-packages (site/nvidia/nccl/lib/libnccl.so.2,
 * site/nvidia/cuda_runtime/lib/libcudart.so.12); libnvidia-ml.so.1 lies beside it.
 *
 * MOCK="RULE RULE …" makes them fail.  RULE: CALL:ACTION[=N][@FROM][#GPU]; from the FROM-th call on (1), on that GPU.
 *   fail=N     the call returns N at once              sleep=N   after N milliseconds it does its work
 *   hang       it never returns                        crash     SIGSEGV
 *   spin       nor does this, with a busy processor
 *   exit=N     the process ends with that status       fork      leaves a process in a session of its own behind
 *   garbage    a MiB of it on every descriptor of the helper, in lines that are none of its own
 *   corrupt    one wrong byte or bit in what it makes  value=N   the microseconds that it measures
 * MOCK_GPUS=N (1) · MOCK_MEM=MiB free on each (256) · MOCK_DRIVER=13000, 0: no driver · MOCK_RUNTIME=12090
 * MOCK_NCCL=22809 · MOCK_NVML="KEY=N[#GPU] …": what NVML says; keys stand in nvml.c */
#ifndef TEST_MOCK_H
#define TEST_MOCK_H
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline long mock_number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* The number behind the first "KEY=" of a list of words whose #GPU fits; otherwise if there is none. */
static inline long mock_word(const char *list, const char *key, int gpu, long otherwise)
{
    size_t n = strlen(key);
    for (const char *at = list; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, key, n) != 0 || at[n] != '=')
            continue;
        char *end;
        long value = strtol(at + n + 1, &end, 10);
        if (*end != '#' || strtol(end + 1, NULL, 10) == gpu)
            return value;
    }
    return otherwise;
}

struct mock_act {
    int fail; /* 0: none */
    bool corrupt, has_value;
    long value;
};

#define MOCK_CALLS_MAX 64

/* How often the call of this name was made, this time included. */
static inline long mock_count(const char *call)
{
    static struct {
        const char *call;
        long n;
    } seen[MOCK_CALLS_MAX];
    for (int i = 0; i < MOCK_CALLS_MAX; i++) {
        if (!seen[i].call)
            seen[i].call = call;
        if (strcmp(seen[i].call, call) == 0)
            return ++seen[i].n;
    }
    return 1;
}

static inline void mock_garbage(void)
{
    static const char *const lines[] = {"\033[2J{\"t\":\"end\",\"ok\":\n", "{\"t\":\"m\",\"name\":7}\n", "\xff\xfe\n",
                                        "%s%n\n"};
    for (int fd = 1; fd <= 3; fd++)
        for (int i = 0; i < 1 << 16; i++) {
            const char *line = lines[i % 4];
            if (write(fd, line, strlen(line)) < 0)
                break;
        }
    static char endless[1 << 16];
    memset(endless, 'x', sizeof endless);
    for (int fd = 1; fd <= 3; fd++)
        if (write(fd, endless, sizeof endless) != sizeof endless || write(fd, "\n", 1) != 1)
            break;
}

static inline void mock_fork(void)
{
    if (fork() != 0)
        return;
    setsid();
    if (fork() != 0)
        _exit(0);
    for (;;)
        pause();
}

static inline void mock_do(const char *action, long n, struct mock_act *act)
{
    size_t len = strcspn(action, "=@# ");
    if (strncmp(action, "hang", len) == 0)
        for (;;)
            pause();
    if (strncmp(action, "spin", len) == 0)
        for (volatile unsigned busy = 0;; busy++)
            ;
    if (strncmp(action, "crash", len) == 0)
        raise(SIGSEGV);
    if (strncmp(action, "sleep", len) == 0)
        nanosleep(&(struct timespec){.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000}, NULL);
    if (strncmp(action, "exit", len) == 0)
        _exit((int)n);
    if (strncmp(action, "fork", len) == 0)
        mock_fork();
    if (strncmp(action, "garbage", len) == 0)
        mock_garbage();
    if (strncmp(action, "fail", len) == 0)
        act->fail = (int)n;
    if (strncmp(action, "corrupt", len) == 0)
        act->corrupt = true;
    if (strncmp(action, "value", len) == 0) {
        act->has_value = true;
        act->value = n;
    }
}

/* What the rules say about this call; sleeps, hangs and crashes by itself. */
static inline struct mock_act mock_call(const char *call, int gpu)
{
    struct mock_act act = {0};
    size_t n = strlen(call);
    long count = mock_count(call);
    for (const char *at = getenv("MOCK"); at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, call, n) != 0 || at[n] != ':')
            continue;
        const char *action = at + n + 1, *end = action + strcspn(action, " ");
        const char *equals = memchr(action, '=', (size_t)(end - action));
        const char *from = memchr(action, '@', (size_t)(end - action));
        const char *only = memchr(action, '#', (size_t)(end - action));
        if ((from && count < strtol(from + 1, NULL, 10)) || (only && gpu != strtol(only + 1, NULL, 10)))
            continue;
        mock_do(action, equals ? strtol(equals + 1, NULL, 10) : 0, &act);
    }
    return act;
}

#define EXPORT __attribute__((visibility("default")))

#endif
