#include "log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "say.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

static struct {
    pthread_mutex_t lock;
    int fd; /* -1: NCCL writes to standard error itself */
    off_t at;
    bool all; /* the job asked for more than warnings */
    char line[1024];
    size_t len;
    char warnings[4096];
    char interface[32], network[32];
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static bool more_than_warnings(const char *level)
{
    return level && strcmp(level, "VERSION") != 0 && strcmp(level, "WARN") != 0 && *level;
}

void log_open(void)
{
    const char *level = getenv("NCCL_DEBUG");
    log_state.all = more_than_warnings(level);
    long fd = syscall(SYS_memfd_create, "nccl-log", MFD_NOEXEC_SEAL);
    if (fd < 0)
        fd = syscall(SYS_memfd_create, "nccl-log", 0); /* kernels before 6.3 do not know the flag */
    char path[40];
    text_put(path, sizeof path, "/proc/self/fd/%d", (int)fd);
    if (fd < 0 || access(path, W_OK) < 0) {
        setenv("NCCL_DEBUG_FILE", "/dev/stderr", 1);
        if (!log_state.all)
            setenv("NCCL_DEBUG", "WARN", 1);
        return;
    }
    log_state.fd = (int)fd;
    setenv("NCCL_DEBUG_FILE", path, 1);
    if (!log_state.all) { /* the chosen interface is told at INFO only */
        setenv("NCCL_DEBUG", "INFO", 1);
        setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,NET", 1);
    }
}

/* The word behind `phrase`, up to one of ":< ,"; ours if the line has it. */
static void log_take_word(char *out, size_t room, const char *line, const char *phrase)
{
    const char *at = strstr(line, phrase);
    if (!at)
        return;
    at += strlen(phrase);
    size_t n = strcspn(at, ":< ,");
    if (n > 0 && n < room) {
        memcpy(out, at, n);
        out[n] = 0;
    }
}

static void keep_warning(const char *line)
{
    size_t had = strlen(log_state.warnings), n = strlen(line) + 1, room = sizeof log_state.warnings - 1;
    if (had + n > room) { /* the last ones count */
        size_t drop = had + n - room;
        memmove(log_state.warnings, log_state.warnings + drop, had - drop + 1);
        had -= drop;
    }
    text_put(log_state.warnings + had, sizeof log_state.warnings - had, "%s\n", line);
}

static void log_take_line(const char *line)
{
    log_take_word(log_state.interface, sizeof log_state.interface, line, "Bootstrap : Using ");
    log_take_word(log_state.interface, sizeof log_state.interface, line, "Bootstrap: Using ");
    log_take_word(log_state.network, sizeof log_state.network, line, "Using network ");
    bool warning = strstr(line, " WARN ") != NULL;
    if (warning)
        keep_warning(line);
    if (warning || log_state.all)
        dprintf(STDERR_FILENO, "%s\n", line);
}

static void log_take_bytes(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (log_state.len + 1 < sizeof log_state.line)
                log_state.line[log_state.len++] = bytes[i];
            continue;
        }
        log_state.line[log_state.len] = 0;
        log_take_line(log_state.line);
        log_state.len = 0;
    }
}

void log_relay(void)
{
    pthread_mutex_lock(&log_state.lock);
    char bytes[4096];
    ssize_t n;
    while (log_state.fd >= 0 && (n = pread(log_state.fd, bytes, sizeof bytes, log_state.at)) > 0) {
        log_state.at += n;
        log_take_bytes(bytes, (size_t)n);
    }
    pthread_mutex_unlock(&log_state.lock);
}

const char *log_warnings(void)
{
    return log_state.warnings;
}

void log_interface(char *out, size_t room)
{
    log_relay();
    pthread_mutex_lock(&log_state.lock);
    text_put(out, room, "%s%s%s", log_state.interface, *log_state.interface && *log_state.network ? ", " : "",
             log_state.network);
    pthread_mutex_unlock(&log_state.lock);
}
