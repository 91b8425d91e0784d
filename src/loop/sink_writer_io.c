/* The writer: one thread per sink, the only place that writes to its descriptors. */
#include "loop/sink_private.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SINK_IOV_MAX 64
#define SINK_POLL_MS 500 /* how often a writer that waits for room looks whether it shall end */

static const char wipe[] = "\r\033[K";

void sink_post(struct sink *s)
{
    if (s->posted || s->closed)
        return;
    s->posted = true;
    loop_post(s->loop, &s->post);
}

static struct bad_fd *find_bad(const struct sink *s, int fd)
{
    struct bad_fd *b = s->bad;
    while (b && b->fd != fd)
        b = b->next;
    return b;
}

static void forget_bad(struct sink *s, int fd)
{
    for (struct bad_fd **at = &s->bad, *b; (b = *at); at = &b->next)
        if (b->fd == fd) {
            *at = b->next;
            free(b);
            return;
        }
}

/* Without memory for the note the error is reported again with the next write: better than never. */
static void refused(struct sink *s, int fd, int sys)
{
    struct bad_fd *b = find_bad(s, fd);
    if (b && b->sys == sys)
        return;
    if (!b && (b = calloc(1, sizeof *b))) {
        b->next = s->bad;
        s->bad = b;
    }
    if (b) {
        b->fd = fd;
        b->sys = sys;
        b->dead = sys == EPIPE || sys == EBADF;
    }
    struct sink_report *r = calloc(1, sizeof *r);
    if (!r)
        return;
    *r = (struct sink_report){.fd = fd, .sys = sys};
    pthread_mutex_lock(&s->lock);
    r->next = s->reports;
    s->reports = r;
    sink_post(s);
    pthread_mutex_unlock(&s->lock);
}

static bool shall_end(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    bool closed = s->closed;
    pthread_mutex_unlock(&s->lock);
    return closed;
}

/* n bytes of this have been written. */
static void moved(struct sink *s, const struct iovec *iov, size_t n)
{
    el_usec now = loop_clock();
    uint64_t lines = 0;
    for (; s->keep_lines && n; iov++) {
        const char *at = iov->iov_base;
        size_t len = n < iov->iov_len ? n : iov->iov_len;
        for (size_t i = 0; i < len; i++)
            lines += at[i] == '\n';
        s->torn = len ? at[len - 1] != '\n' : s->torn;
        n -= len;
    }
    pthread_mutex_lock(&s->lock);
    s->moved_at = now;
    s->lines += lines;
    pthread_mutex_unlock(&s->lock);
}

/* Writes all of it, or says why the rest is lost.  The descriptor may be non-blocking: it is inherited, and its mode is
 * not ours to change. */
static void sink_writer_write_all(struct sink *s, int fd, struct iovec *iov, int count)
{
    const struct bad_fd *b = s->bad ? find_bad(s, fd) : NULL;
    if (b && b->dead)
        return;
    bool mend = s->torn; /* what comes now is not the rest of that line */
    struct iovec end = {.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1};
    while (count > 0) {
        ssize_t n = mend ? writev(fd, &end, 1) : writev(fd, iov, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (poll(&p, 1, SINK_POLL_MS) <= 0 && shall_end(s))
                return;
            continue;
        }
        if (n < 0) {
            refused(s, fd, errno);
            return;
        }
        if (mend) {
            s->torn = mend = false;
            continue;
        }
        moved(s, iov, (size_t)n);
        size_t got = (size_t)n;
        for (; count > 0 && got >= iov->iov_len; iov++, count--)
            got -= iov->iov_len;
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + got;
            iov->iov_len -= got;
        }
    }
}

static void sink_writer_write_text(struct sink *s, int fd, const char *text, size_t n)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = n};
    sink_writer_write_all(s, fd, &iov, 1);
}

static void wipe_footer(struct sink *s)
{
    if (s->drawn_fd < 0)
        return;
    sink_writer_write_text(s, s->drawn_fd, wipe, sizeof wipe - 1);
    s->drawn_fd = -1;
}

/* Writes the blocks up to the first with another descriptor; returns that one. */
static struct block *write_run(struct sink *s, struct block *list)
{
    struct iovec iov[SINK_IOV_MAX];
    int count = 0, fd = list->fd;
    char last = '\n';
    bool ends = false;
    for (; list && list->fd == fd && count < SINK_IOV_MAX && !ends; list = list->next) {
        if (list->len) {
            iov[count++] = (struct iovec){.iov_base = list->bytes, .iov_len = list->len};
            last = list->bytes[list->len - 1];
        }
        ends = list->close;
    }
    if (count) {
        wipe_footer(s);
        sink_writer_write_all(s, fd, iov, count);
        s->midline = last != '\n';
    }
    if (ends) {
        forget_bad(s, fd);
        close(fd);
    }
    return list;
}

static void account(struct sink *s, struct block *from, const struct block *to)
{
    size_t cost = 0, bytes = 0, closing = 0;
    while (from != to) {
        struct block *next = from->next;
        cost += sizeof *from + from->cap;
        bytes += from->len;
        closing += from->close;
        free(from);
        from = next;
    }
    pthread_mutex_lock(&s->lock);
    assert(s->cost >= cost && s->bytes >= bytes && s->closing >= closing);
    s->cost -= cost;
    s->bytes -= bytes;
    s->closing -= closing;
    if (s->full && s->cost < s->limit / 2) {
        s->full = false;
        s->room = true;
        sink_post(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Locked on entry and on return. */
static void draw_footer(struct sink *s)
{
    char text[SINK_FOOTER_BYTES];
    int fd = s->footer_fd;
    memcpy(text, s->footer, sizeof text);
    s->footer_new = false;
    pthread_mutex_unlock(&s->lock);
    if (!s->midline) {
        wipe_footer(s);
        if (text[0]) {
            sink_writer_write_text(s, fd, text, strlen(text));
            s->drawn_fd = fd;
        }
    }
    pthread_mutex_lock(&s->lock);
}

static void write_queue(struct sink *s)
{
    struct block *list = s->head;
    s->head = s->last = NULL;
    s->tail = &s->head;
    pthread_mutex_unlock(&s->lock);
    bool given_up = false;
    while (list) {
        struct block *next;
        if (!given_up) {
            next = write_run(s, list);
        } else {
            next = list->next;
            if (list->close)
                close(list->fd);
        }
        account(s, list, next);
        list = next;
        given_up = given_up || shall_end(s);
    }
    pthread_mutex_lock(&s->lock);
}

void sink_destroy(struct sink *s)
{
    for (struct block *b = s->head, *next; b; b = next) {
        next = b->next;
        if (b->close)
            close(b->fd);
        free(b);
    }
    for (struct bad_fd *b = s->bad, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (struct sink_report *r = s->reports, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->gone);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void *sink_write_all(void *ctx)
{
    struct sink *s = ctx;
    pthread_mutex_lock(&s->lock);
    while (!s->closed) {
        if (s->head)
            write_queue(s);
        else if (s->footer_new || (s->footer[0] && s->drawn_fd < 0 && !s->midline))
            draw_footer(s);
        else {
            if (s->want_flushed && !s->bytes && !s->closing)
                sink_post(s);
            pthread_cond_wait(&s->work, &s->lock);
        }
    }
    s->live = false;
    bool mine = s->abandoned;
    pthread_cond_signal(&s->gone);
    pthread_mutex_unlock(&s->lock);
    if (mine)
        sink_destroy(s);
    return NULL;
}
