#include "snapshot/worker_sock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/unix_listener.h"
#include "util/log.h"

#define TURNED_MAX     8
#define PACKETS_A_TURN 64    /* of one worker, before others have their turn */
#define LAST_PACKETS   65536 /* of one that has ended: more than a socket's buffer holds */

struct worker_sock_peer {
    struct worker_sock *sock;
    unsigned worker;
    int fd; /* -1: no connection */
    struct loop_fd *watch;
};

struct worker_sock {
    struct loop *loop;
    struct worker_sock_ops ops;
    void *ctx;
    struct unix_listener *gate;
    struct el_buf out;
    char *in; /* WORKER_MSG_PACKET_MAX + 1: one byte more than may come */
    unsigned workers;
    struct worker_sock_peer *peer;
    int turned[TURNED_MAX]; /* connections that were not taken, until others come: a close at once could overtake the
                               word */
    unsigned turned_next;
};

bool worker_sock_is_open(const struct worker_sock *s, unsigned worker)
{
    return s->peer[worker].fd >= 0;
}

void worker_sock_close(struct worker_sock *s, unsigned worker)
{
    struct worker_sock_peer *p = &s->peer[worker];
    if (p->fd < 0)
        return;
    loop_fd_free(p->watch);
    close(p->fd);
    p->fd = -1;
    p->watch = NULL;
}

static void worker_sock_lose(struct worker_sock_peer *p)
{
    worker_sock_close(p->sock, p->worker);
    p->sock->ops.gone(p->sock->ctx, p->worker);
}

/* --- in --- */

/* One packet: 1 it was told, 0 nothing is there, -1 the connection is over. */
static int take_packet(struct worker_sock_peer *p)
{
    struct worker_sock *s = p->sock;
    ssize_t n = recv(p->fd, s->in, WORKER_MSG_PACKET_MAX + 1, MSG_DONTWAIT | MSG_TRUNC);
    /* Who ended without reading an answer is told as a reset, once, in front of what it had sent before. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(p->fd, s->in, WORKER_MSG_PACKET_MAX + 1, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    struct worker_msg m;
    struct el_err e = {0};
    if (worker_msg_decode(s->in, (size_t)n, &m, &e) < 0) {
        el_log(EL_WARN, "local rank %u: its connection for snapshots is closed: %s", p->worker, e.text);
        return -1;
    }
    s->ops.message(s->ctx, p->worker, &m);
    worker_msg_release(&m);
    return 1;
}

static void on_packet(void *ctx, unsigned events)
{
    struct worker_sock_peer *p = ctx;
    (void)events;
    for (unsigned i = 0; i < PACKETS_A_TURN && p->fd >= 0; i++) {
        int got = take_packet(p);
        if (got < 0 && p->fd >= 0)
            worker_sock_lose(p);
        if (got <= 0)
            return;
    }
}

void worker_sock_finish(struct worker_sock *s, unsigned worker)
{
    struct worker_sock_peer *p = &s->peer[worker];
    /* Another process may hold the same connection, and go on sending: it is not waited for. */
    for (unsigned i = 0; i < LAST_PACKETS && p->fd >= 0 && take_packet(p) > 0; i++)
        ;
    if (p->fd >= 0)
        worker_sock_lose(p);
}

/* --- out --- */

static ssize_t send_packet(int fd, struct el_buf *packet, const int *fds, unsigned n)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(WORKER_SOCK_FDS_MAX * sizeof(int))];
    } beside;
    struct iovec part = {packet->v, packet->len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n) {
        memset(&beside, 0, sizeof beside);
        m.msg_control = beside.room;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void worker_sock_send(struct worker_sock *s, unsigned worker, const struct worker_msg *m, const int *fds, unsigned n)
{
    struct worker_sock_peer *p = &s->peer[worker];
    assert(n <= WORKER_SOCK_FDS_MAX);
    if (p->fd < 0)
        return;
    s->out.len = 0;
    if (worker_msg_encode(m, &s->out) == 0 && send_packet(p->fd, &s->out, fds, n) == (ssize_t)s->out.len)
        return;
    if (errno != EPIPE && errno != ECONNRESET) /* that it has gone is told by itself */
        el_log(EL_WARN, "local rank %u: its connection for snapshots is closed: %s cannot be sent: %s", worker,
               worker_msg_name(m->type), errno == EAGAIN ? "it does not read what it is sent" : strerror(errno));
    shutdown(p->fd, SHUT_RDWR); /* read as its end in the next turn: never a gone() inside of a send */
}

/* --- who comes --- */

/* Said to a connection that is not taken: it has no number here. */
static void worker_sock_turn_away(struct worker_sock *s, int fd, const char *text)
{
    struct worker_msg m = {.type = WORKER_MSG_REFUSED, .u.refused = {.code = "RANK", .text = text}};
    s->out.len = 0;
    if (worker_msg_encode(&m, &s->out) == 0)
        (void)!send_packet(fd, &s->out, NULL, 0);
    int *place = &s->turned[s->turned_next++ % TURNED_MAX];
    if (*place >= 0)
        close(*place);
    *place = fd;
}

/* Who closes its connection and makes another one may be seen in the other order. */
static bool has_ended(int fd)
{
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

static void worker_sock_on_connection(void *ctx, int fd)
{
    struct worker_sock *s = ctx;
    struct ucred who = {0};
    socklen_t size = sizeof who;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
    int worker = who.uid == geteuid() ? s->ops.whose(s->ctx, who.pid) : -1;
    if (worker < 0) {
        worker_sock_turn_away(s, fd, "this process is no worker of this elrun");
        return;
    }
    struct worker_sock_peer *p = &s->peer[worker];
    if (p->fd >= 0 && has_ended(p->fd))
        worker_sock_finish(s, (unsigned)worker);
    if (p->fd >= 0) {
        worker_sock_turn_away(
            s, fd, "this rank has connected already, in this process or in another one: call elrun.connect() once");
        return;
    }
    p->watch = loop_fd_new(s->loop, fd, LOOP_READ, on_packet, p);
    if (!p->watch) {
        worker_sock_turn_away(s, fd, "the agent is out of memory");
        return;
    }
    p->fd = fd;
}

/* --- life --- */

struct worker_sock *worker_sock_new(struct loop *l, const char *path, unsigned workers,
                                    const struct worker_sock_ops *ops, void *ctx, struct el_err *e)
{
    struct worker_sock *s = calloc(1, sizeof *s);
    if (s)
        *s = (struct worker_sock){.loop = l, .ops = *ops, .ctx = ctx, .workers = workers};
    for (unsigned i = 0; s && i < TURNED_MAX; i++)
        s->turned[i] = -1;
    if (!s || !(s->peer = calloc(workers, sizeof *s->peer)) || !(s->in = malloc(WORKER_MSG_PACKET_MAX + 1))) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        worker_sock_free(s);
        return NULL;
    }
    s->out = EL_BUF_INIT(NULL, WORKER_MSG_PACKET_MAX);
    for (unsigned i = 0; i < workers; i++)
        s->peer[i] = (struct worker_sock_peer){.sock = s, .worker = i, .fd = -1};
    s->gate = unix_listener_new(l, path, SOCK_SEQPACKET, (int)workers, worker_sock_on_connection, s, e);
    if (!s->gate) {
        worker_sock_free(s);
        return NULL;
    }
    return s;
}

void worker_sock_free(struct worker_sock *s)
{
    if (!s)
        return;
    for (unsigned i = 0; s->peer && i < s->workers; i++)
        worker_sock_close(s, i);
    for (unsigned i = 0; i < TURNED_MAX; i++)
        if (s->turned[i] >= 0)
            close(s->turned[i]);
    unix_listener_free(s->gate);
    el_buf_free(&s->out);
    free(s->in);
    free(s->peer);
    free(s);
}
