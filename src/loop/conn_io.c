#include "loop/conn.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* One for all connections: there is one thread.  Its size bounds what one connection may keep the loop busy with. */
static char scratch[128 << 10];

static void want(struct conn *c)
{
    unsigned read = c->broken || !(c->eof || c->paused) ? LOOP_READ : 0;
    loop_fd_set(c->watch, read | (conn_unsent(c) ? LOOP_WRITE : 0));
}

/* The shutdown makes the socket readable, so closed() comes from the loop and not from inside a send. */
static void break_off(struct conn *c, enum conn_why why, int sys)
{
    c->broken = true;
    c->sys = sys;
    c->why = (uint8_t)why;
    el_buf_free(&c->out);
    c->out_at = 0;
    shutdown(c->fd, SHUT_RDWR);
    want(c);
}

/* Sends a part: how much.  0: the socket takes nothing now, or is broken. */
static size_t send_some(struct conn *c, const char *bytes, size_t n)
{
    ssize_t sent;
    do
        sent = send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
        break_off(c, CONN_ERROR, errno);
    return sent > 0 ? (size_t)sent : 0;
}

bool conn_unsent(const struct conn *c)
{
    return c->out.len > c->out_at;
}

bool conn_broken(const struct conn *c)
{
    return c->broken;
}

void conn_send(struct conn *c, const void *bytes, size_t n)
{
    if (c->broken)
        return;
    size_t sent = 0;
    bool queued = conn_unsent(c);
    if (!queued)
        sent = send_some(c, bytes, n);
    if (sent == n || c->broken)
        return;
    if (c->out.len - c->out_at > c->out_max_bytes) {
        break_off(c, CONN_OVERFLOW, 0);
        return;
    }
    if (c->out_at > c->out.len / 2) {
        el_buf_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
    if (el_buf_put(&c->out, (const char *)bytes + sent, n - sent))
        break_off(c, CONN_NO_MEMORY, 0);
    else if (!queued)
        want(c);
}

static void flush(struct conn *c)
{
    size_t sent = send_some(c, c->out.v + c->out_at, c->out.len - c->out_at);
    if (c->broken)
        return;
    c->out_at += sent;
    if (conn_unsent(c))
        return;
    el_buf_free(&c->out);
    c->out_at = 0;
    want(c);
}

static void on_readable(struct conn *c)
{
    size_t room = 0;
    char *to = c->ops->room && !c->broken ? c->ops->room(c, &room) : NULL;
    ssize_t n;
    if (!to) {
        to = scratch;
        room = sizeof scratch;
    }
    do
        n = recv(c->fd, to, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (c->broken) {
        c->ops->closed(c, c->why, c->sys);
    } else if (n > 0) {
        c->ops->data(c, to, (size_t)n);
    } else if (n < 0 && errno != EAGAIN) {
        c->ops->closed(c, CONN_ERROR, errno);
    } else if (n == 0 && conn_unsent(c)) {
        c->eof = true; /* a half-close: what is owed goes out first */
        want(c);
    } else if (n == 0) {
        c->ops->closed(c, CONN_EOF, 0);
    }
}

/* Nothing of *c is touched after a call of the owner: it may be gone. */
static void on_ready(void *ctx, unsigned events)
{
    struct conn *c = ctx;
    if (events & LOOP_WRITE && conn_unsent(c)) {
        flush(c);
        if (c->eof && !c->broken && !conn_unsent(c)) {
            c->ops->closed(c, CONN_EOF, 0);
            return;
        }
    }
    if (events & LOOP_READ || c->broken)
        on_readable(c);
}

int conn_open(struct conn *c, struct loop *l, int fd, const struct conn_ops *ops, struct el_mem *mem,
              size_t out_max_bytes)
{
    assert(fd >= 0 && ops->data && ops->closed && out_max_bytes > 0);
    *c = (struct conn){.ops = ops, .out = EL_BUF_INIT(mem, 0), .out_max_bytes = out_max_bytes, .fd = fd};
    c->watch = loop_fd_new(l, fd, LOOP_READ, on_ready, c);
    if (c->watch)
        return 0;
    close(fd);
    c->fd = -1;
    return -1;
}

void conn_pause(struct conn *c)
{
    c->paused = true;
    want(c);
}

void conn_resume(struct conn *c)
{
    c->paused = false;
    want(c);
}

void conn_close(struct conn *c)
{
    if (c->fd < 0)
        return;
    loop_fd_free(c->watch);
    close(c->fd);
    c->fd = -1;
    c->watch = NULL;
    el_buf_free(&c->out);
}

int conn_detach(struct conn *c)
{
    int fd = c->fd;
    assert(fd >= 0 && !c->broken && !conn_unsent(c));
    c->fd = -1; /* conn_close() leaves it alone */
    loop_fd_free(c->watch);
    c->watch = NULL;
    el_buf_free(&c->out);
    return fd;
}
