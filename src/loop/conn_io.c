#include "loop/conn.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/likely.h"

enum { REPLY_KEPT_BYTES = 1 << 20 };

/* One for all connections: there is one thread.  Its size bounds what one connection may keep the loop busy with. */
static char scratch[128 << 10];

static void want(struct conn *c)
{
    unsigned read = c->broken || !(c->eof || c->paused) ? LOOP_READ : 0;
    loop_fd_set(c->watch, read | (conn_unsent(c) || c->awaits ? LOOP_WRITE : 0));
}

/* The shutdown makes the socket readable, so closed() comes from the loop and not from inside a send. */
static EL_COLD void conn_break_off(struct conn *c, enum conn_why why, int sys)
{
    c->broken = true;
    c->sys = sys;
    c->why = (uint8_t)why;
    el_buf_free(&c->out);
    c->out_at = 0;
    c->to = NULL;
    c->awaits = false;
    shutdown(c->fd, SHUT_RDWR);
    want(c);
}

/* recv() and send(), with -errno for an error.  Those of the library are points of cancellation, which in a program
 * with threads costs more than all that is done here, and nobody is cancelled in this one.  Where the kernel empties
 * the processor's stack of return addresses, each function that returns behind a system call does so slowly: so there
 * is none, where we know how. */
static inline ssize_t kernel(long number, int fd, const void *bytes, size_t n, long flags)
{
#ifdef __x86_64__
    register long r10 __asm__("r10") = flags, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"((long)fd), "S"(bytes), "d"(n), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
#else
    long r = syscall(number, fd, bytes, n, flags, NULL, 0);
    return r < 0 ? -errno : r;
#endif
}

static inline ssize_t conn_receive(const struct conn *c, void *to, size_t n)
{
    ssize_t got;
    do
        got = kernel(SYS_recvfrom, c->fd, to, n, MSG_DONTWAIT);
    while (got == -EINTR);
    return got;
}

/* Sends a part: how much.  0: the socket takes nothing now, or is broken. */
static inline size_t conn_io_send_some(struct conn *c, const char *bytes, size_t n)
{
    ssize_t sent;
    do
        sent = kernel(SYS_sendto, c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent == -EINTR);
    if (EL_LIKELY(sent > 0))
        return (size_t)sent;
    if (sent < 0 && sent != -EAGAIN && sent != -ENOBUFS && sent != -ENOMEM)
        conn_break_off(c, CONN_ERROR, (int)-sent);
    return 0;
}

bool conn_unsent(const struct conn *c)
{
    return c->out.len > c->out_at;
}

bool conn_broken(const struct conn *c)
{
    return c->broken;
}

/* What the socket did not take. */
static EL_COLD void enqueue(struct conn *c, const char *bytes, size_t n)
{
    bool first = !conn_unsent(c);
    if (c->out.len - c->out_at > c->out_max_bytes) {
        conn_break_off(c, CONN_OVERFLOW, 0);
        return;
    }
    if (c->out_at > c->out.len / 2) {
        el_buf_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
    c->growing = true;
    bool full = el_buf_put(&c->out, bytes, n);
    c->growing = false;
    if (full)
        conn_break_off(c, CONN_NO_MEMORY, 0);
    else if (first)
        want(c);
}

size_t conn_held(const struct conn *c)
{
    return c->out.cap;
}

bool conn_shed(struct conn *c)
{
    if (!c->broken && !c->growing)
        conn_break_off(c, CONN_NO_MEMORY, 0);
    return !c->growing;
}

static inline void transmit(struct conn *c, const char *bytes, size_t n)
{
    if (c->broken || !n)
        return;
    size_t sent = conn_unsent(c) ? 0 : conn_io_send_some(c, bytes, n);
    if (sent < n && !c->broken)
        enqueue(c, bytes + sent, n - sent);
}

void conn_send(struct conn *c, const void *bytes, size_t n)
{
    transmit(c, bytes, n);
}

size_t conn_send_some(struct conn *c, const void *bytes, size_t n)
{
    return c->broken || conn_unsent(c) || !n ? 0 : conn_io_send_some(c, bytes, n);
}

static inline void conn_answer(struct conn *c, struct el_buf *reply)
{
    transmit(c, reply->v, reply->len);
    reply->len = 0;
    if (reply->cap > REPLY_KEPT_BYTES)
        el_buf_free(reply);
}

static EL_COLD void conn_flush(struct conn *c)
{
    size_t sent = conn_io_send_some(c, c->out.v + c->out_at, c->out.len - c->out_at);
    if (c->broken)
        return;
    c->out_at += sent;
    if (conn_unsent(c))
        return;
    el_buf_free(&c->out);
    c->out_at = 0;
    want(c);
}

/* What is seldom: something is to be written, or the connection is broken.  True: it is to be read, too. */
static EL_COLD bool on_unusual(struct conn *c, unsigned events)
{
    if (events & LOOP_WRITE && conn_unsent(c)) {
        conn_flush(c);
        if (c->eof && !c->broken && !conn_unsent(c)) {
            c->ops->closed(c, CONN_EOF, 0);
            return false;
        }
    }
    if (!c->broken && events & LOOP_WRITE && c->ops->moved) {
        c->ops->moved(c); /* it may be gone; what is to be read is so in the next turn */
        return false;
    }
    if (!c->broken)
        return events & LOOP_READ;
    c->ops->closed(c, c->why, c->sys);
    return false;
}

static EL_COLD void on_no_data(struct conn *c, ssize_t n)
{
    if (n < 0 && n != -EAGAIN) {
        c->ops->closed(c, CONN_ERROR, (int)-n);
    } else if (n == 0 && conn_unsent(c)) {
        c->eof = true; /* a half-close: what is owed goes out first */
        want(c);
    } else if (n == 0) {
        c->ops->closed(c, CONN_EOF, 0);
    }
}

/* Nothing of *c is touched after a call of the owner, unless it returns an answer: it may be gone. */
static void on_ready(void *ctx, unsigned events)
{
    struct conn *c = ctx;
    if (EL_UNLIKELY(events != LOOP_READ || c->broken) && !on_unusual(c, events))
        return;
    char *to = c->to ? c->to : scratch;
    ssize_t n = conn_receive(c, to, c->to ? c->to_n : sizeof scratch);
    if (EL_UNLIKELY(n <= 0)) {
        on_no_data(c, n);
        return;
    }
    c->to = NULL;
    struct el_buf *reply = c->ops->data(c, to, (size_t)n);
    if (!reply)
        return;
    conn_answer(c, reply);
    if (EL_UNLIKELY(conn_unsent(c)) && c->ops->moved)
        c->ops->moved(c);
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

void conn_read_to(struct conn *c, char *to, size_t n)
{
    c->to = to;
    c->to_n = n;
}

void conn_await_room(struct conn *c, bool awaits)
{
    if (awaits == c->awaits || c->broken)
        return;
    c->awaits = awaits;
    want(c);
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
