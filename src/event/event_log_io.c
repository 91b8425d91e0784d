#include "event/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/sink.h"
#include "util/log.h"
#include "util/parse.h"

#define EVENT_LOG_LIMIT_BYTES (1u << 20) /* four times as much are held for a disk that stands still */
#define EVENT_LOG_FD_MAX      1048576

struct event_log {
    char name[EL_PATH_MAX]; /* for people */
    int fd;                 /* -1: could not be opened */
    int sys;                /* what went wrong first */
    uint64_t events;        /* so far */
    struct sink *sink;
    struct sink_watch watch;
    void (*finished)(void *ctx);
    void *ctx;
};

static void on_error(void *ctx, int fd, int sys)
{
    struct event_log *t = ctx;
    char text[64];
    (void)fd;
    if (t->sys)
        return;
    t->sys = sys;
    el_log(EL_INFO, "events: %s: %s; the job goes on without them", t->name, strerror_r(sys, text, sizeof text));
}

/* A reason that has nothing to do with how it was spelled. */
static bool may_pass(int sys)
{
    return sys == ENOSPC || sys == EDQUOT || sys == EIO || sys == ENXIO || sys == EAGAIN || sys == EINTR ||
           sys == ENFILE || sys == EMFILE;
}

static int event_log_open_file(struct event_log *t, const char *path, struct el_err *e)
{
    /* Never waits for a FIFO's reader; a file system that stands still at the very start holds elrun as it would hold a
     * shell's redirection. */
    t->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (t->fd < 0)
        t->sys = errno;
    if (t->fd < 0 && !may_pass(t->sys))
        return el_fail_sys(e, EL_EXIT_CANTCREAT, t->sys, "--events=%s", t->name);
    return 0;
}

static int take_fd(struct event_log *t, uint64_t number)
{
    t->fd = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
    if (t->fd < 0)
        t->sys = errno;
    else if ((fcntl(t->fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        t->sys = EBADF; /* every write will say so */
    return 0;
}

struct event_log *event_log_open(const char *to, struct el_err *e)
{
    struct event_log *t = calloc(1, sizeof *t);
    uint64_t number;
    if (!t) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    t->fd = -1;
    el_show_path(to, t->name, sizeof t->name);
    bool by_number = strncmp(to, "fd:", 3) == 0;
    int bad;
    if (!by_number)
        bad = event_log_open_file(t, to, e);
    else if (el_parse_u64(to + 3, &number) || number > EVENT_LOG_FD_MAX)
        bad = el_fail(e, EL_EXIT_USAGE, "--events=%s: want fd: and the number of an open descriptor", t->name);
    else
        bad = take_fd(t, number);
    if (!bad)
        return t;
    free(t);
    return NULL;
}

int event_log_start(struct event_log *t, struct loop *l, struct el_err *e)
{
    if (!t || t->fd < 0)
        return 0;
    t->sink = sink_new(l, EVENT_LOG_LIMIT_BYTES, e);
    if (!t->sink)
        return -1;
    sink_keep_lines(t->sink);
    t->watch = (struct sink_watch){.error = on_error, .ctx = t};
    sink_watch(t->sink, &t->watch);
    return 0;
}

struct event_log *event_log_adopt(int fd, const char *name, struct loop *l, struct el_err *e)
{
    struct event_log *t = calloc(1, sizeof *t);
    if (!t) {
        close(fd);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    t->fd = fd;
    el_show_path(name, t->name, sizeof t->name);
    if (event_log_start(t, l, e) == 0)
        return t;
    event_log_free(t);
    return NULL;
}

void event_log_put(struct event_log *t, const struct event *ev)
{
    if (!t)
        return;
    struct el_buf line = EL_BUF_INIT(NULL, 0);
    t->events++;
    if (t->sink && event_encode(ev, &line) == 0)
        sink_put(t->sink, t->fd, line.v, line.len); /* what is not taken is missing in sink_lines() */
    el_buf_free(&line);
}

static void event_log_on_flushed(void *ctx, size_t left_bytes)
{
    struct event_log *t = ctx;
    char text[64];
    uint64_t written = t->sink ? sink_lines(t->sink) : 0;
    (void)left_bytes;
    if (written < t->events)
        el_log(EL_WARN, "events: %llu of %llu events were not written to %s: %s",
               (unsigned long long)(t->events - written), (unsigned long long)t->events, t->name,
               t->sys ? strerror_r(t->sys, text, sizeof text) : "it did not take them in time");
    t->finished(t->ctx);
}

void event_log_finish(struct event_log *t, el_usec deadline, void (*fn)(void *ctx), void *ctx)
{
    if (!t) {
        fn(ctx);
        return;
    }
    t->finished = fn;
    t->ctx = ctx;
    if (t->sink)
        sink_flush(t->sink, deadline, event_log_on_flushed, t);
    else
        event_log_on_flushed(t, 0);
}

bool event_log_free(struct event_log *t)
{
    if (!t)
        return true;
    bool ended = true;
    if (t->sink) {
        sink_unwatch(t->sink, &t->watch);
        ended = sink_free(t->sink);
    }
    if (ended && t->fd >= 0)
        close(t->fd);
    free(t);
    return ended;
}
