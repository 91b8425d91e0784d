#include "control/link.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/peer_uid.h"
#include "loop/conn.h"
#include "control/ack_tracker.h"
#include "util/log.h"
#include "util/sockaddr.h"

#define LINK_ADDRESSES_MAX 16
#define LINK_LOOKUP_MOMENT EL_MS(100)

/* A look-up may hang for long, and outlives a link that is gone: it belongs to the pool until it is done. */
struct lookup {
    struct pool_job job;
    struct link *link; /* NULL: it was asked for another name, or the link is gone */
    el_usec since;     /* when it was asked; once it is kept: answered */
    char host[LINK_HOST_MAX];
    int port;
    int result; /* of getaddrinfo */
    int sys;
    unsigned count;
    struct sockaddr_storage address[LINK_ADDRESSES_MAX];
    socklen_t size[LINK_ADDRESSES_MAX];
};

struct link {
    struct loop *loop;
    struct pool *pool;
    struct link_ops ops;
    void *ctx;

    struct lookup *asking; /* runs in the pool; one at a time for a name */
    bool waits;            /* for it */
    struct lookup *late;   /* its answer, which came when nobody waited any more */
    struct lookup *lookup; /* the addresses at hand */
    unsigned first, next;  /* address to begin with; how many have been tried */
    int fd;                /* while connecting */
    struct loop_fd *watch;
    struct loop_timer *soon; /* a failure is told in a later turn, never inside link_connect(); or a look-up is late */
    bool refused;
    char trouble[256];

    struct conn conn;
    bool up, spoke;
    struct msg_decoder decoder;
    struct el_buf in;
    struct el_addr local, peer;
    struct ack_tracker sent;
};

/* --- the connection --- */

static void link_drop(struct link *k)
{
    if (!k->up)
        return;
    k->up = false;
    conn_close(&k->conn);
    el_buf_free(&k->in);
}

static void link_broken(struct link *k, const char *text)
{
    link_drop(k);
    k->ops.closed(k->ctx, text);
}

static void link_on_closed(struct conn *c, enum conn_why why, int sys)
{
    struct link *k = (struct link *)((char *)c - offsetof(struct link, conn));
    char text[128];
    switch (why) {
    case CONN_EOF: snprintf(text, sizeof text, "closed by the other side"); break;
    case CONN_ERROR: snprintf(text, sizeof text, "%s", strerror(sys)); break;
    case CONN_OVERFLOW: snprintf(text, sizeof text, "the other side does not read"); break;
    case CONN_NO_MEMORY: snprintf(text, sizeof text, "out of memory"); break;
    }
    link_broken(k, text);
}

/* One message, or 0 if there is none yet, or -1: the link is gone. */
static int link_take_message(struct link *k)
{
    struct msg m;
    struct el_err e = {0};
    long used = msg_consume(&k->decoder, k->in.v, k->in.len, &m, &e);
    if (used < 0) {
        link_broken(k, e.text);
        return -1;
    }
    if (used == 0)
        return 0;
    el_buf_drop(&k->in, (size_t)used);
    if (m.type != MSG_NONE)
        k->ops.message(k->ctx, &m);
    msg_release(&m);
    return k->up ? 1 : -1;
}

static struct el_buf *link_on_data(struct conn *c, const char *bytes, size_t n)
{
    struct link *k = (struct link *)((char *)c - offsetof(struct link, conn));
    if (!k->spoke && peer_is_foreign(c->fd)) { /* before its first word nobody may have taken the connection */
        link_broken(k,
                    "a process of another user of this host has that port, and is not believed to be the coordinator");
        return NULL;
    }
    k->spoke = true;
    if (el_buf_put(&k->in, bytes, n) < 0) {
        link_broken(k, "out of memory, or a frame that never ends");
        return NULL;
    }
    while (link_take_message(k) > 0)
        ;
    return NULL;
}

static const struct conn_ops link_conn_ops = {.data = link_on_data, .closed = link_on_closed};

static void try_next(struct link *k);

/* The address that is being tried. */
static unsigned at_hand(const struct link *k)
{
    return (k->first + k->next - 1) % k->lookup->count;
}

static void established(struct link *k)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    int one = 1, fd = k->fd;
    loop_fd_free(k->watch);
    k->watch = NULL;
    k->fd = -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (getsockname(fd, (struct sockaddr *)&a, &size) == 0)
        el_addr_from_sockaddr((struct sockaddr *)&a, &k->local);
    el_addr_from_sockaddr((struct sockaddr *)&k->lookup->address[at_hand(k)], &k->peer);
    k->first = at_hand(k);
    free(k->lookup);
    k->lookup = NULL;
    k->decoder = (struct msg_decoder){0};
    k->in = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    if (conn_open(&k->conn, k->loop, fd, &link_conn_ops, NULL, LINK_UNSENT_MAX_BYTES) < 0) {
        k->ops.failed(k->ctx, false, "out of memory");
        return;
    }
    k->up = true;
    k->spoke = false;
    k->sent = (struct ack_tracker){0};
    conn_send(&k->conn, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    ack_tracker_add(&k->sent, MSG_PREAMBLE_SIZE, EL_NEVER);
    k->ops.connected(k->ctx);
}

static void link_note_trouble(struct link *k, int sys)
{
    char text[EL_ADDR_TEXT_MAX];
    struct el_addr a;
    el_addr_from_sockaddr((struct sockaddr *)&k->lookup->address[at_hand(k)], &a);
    k->refused = k->refused || sys == ECONNREFUSED;
    snprintf(k->trouble, sizeof k->trouble, "%s: %s", el_addr_text(&a, text), strerror(sys));
}

static void on_writable(void *ctx, unsigned events)
{
    struct link *k = ctx;
    int sys = 0;
    socklen_t size = sizeof sys;
    (void)events;
    if (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &sys, &size) < 0)
        sys = errno;
    if (!sys) {
        established(k);
        return;
    }
    link_note_trouble(k, sys);
    loop_fd_free(k->watch);
    k->watch = NULL;
    close(k->fd);
    k->fd = -1;
    try_next(k);
}

/* True if this address is under way. */
static bool try_address(struct link *k, const struct sockaddr_storage *a, socklen_t size)
{
    k->fd = socket(a->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (k->fd >= 0 && (connect(k->fd, (const struct sockaddr *)a, size) == 0 || errno == EINPROGRESS)) {
        k->watch = loop_fd_new(k->loop, k->fd, LOOP_WRITE, on_writable, k);
        if (k->watch)
            return true;
        errno = ENOMEM;
    }
    link_note_trouble(k, errno);
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
    return false;
}

static void try_next(struct link *k)
{
    struct lookup *r = k->lookup;
    while (k->next < r->count) {
        k->next++;
        unsigned i = at_hand(k);
        if (try_address(k, &r->address[i], r->size[i]))
            return;
    }
    free(r);
    k->lookup = NULL;
    k->ops.failed(k->ctx, k->refused, k->trouble);
}

/* --- the name --- */

static void link_look_up(void *ctx)
{
    struct lookup *r = ctx;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV},
                    *all = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", r->port);
    r->result = getaddrinfo(r->host, port, &hints, &all);
    r->sys = errno;
    for (struct addrinfo *a = all; a && r->count < LINK_ADDRESSES_MAX; a = a->ai_next) {
        memcpy(&r->address[r->count], a->ai_addr, a->ai_addrlen);
        r->size[r->count++] = a->ai_addrlen;
    }
    if (all)
        freeaddrinfo(all);
}

static void tell_resolved(struct link *k)
{
    struct el_addr found[LINK_ADDRESSES_MAX];
    for (unsigned i = 0; i < k->lookup->count; i++)
        el_addr_from_sockaddr((struct sockaddr *)&k->lookup->address[i], &found[i]);
    if (k->ops.resolved)
        k->ops.resolved(k->ctx, found, k->lookup->count);
}

static void looked_up(void *ctx)
{
    struct lookup *r = ctx;
    struct link *k = r->link;
    if (k)
        k->asking = NULL;
    if (!k || (!k->waits && !r->count)) {
        free(r);
        return;
    }
    if (!k->waits) { /* an attempt shorter than the name server takes would never see an answer */
        free(k->late);
        k->late = r;
        r->since = loop_clock();
        return;
    }
    k->waits = false;
    loop_timer_at(k->soon, EL_NEVER);
    if (r->count) {
        k->lookup = r;
        tell_resolved(k);
        try_next(k);
        return;
    }
    char text[384];
    snprintf(text, sizeof text, "%.200s: %s", r->host,
             r->result == EAI_SYSTEM ? strerror(r->sys) : gai_strerror(r->result));
    free(r);
    k->ops.failed(k->ctx, false, text);
}

/* The answer that came too late for the attempt before, if it is one to this question and not old. */
static bool has_late(struct link *k, const char *host, int port, el_usec now)
{
    struct lookup *r = k->late;
    if (r && r->port == port && strcmp(r->host, host) == 0 && now - r->since < LINK_LOOKUP_LIMIT)
        return true;
    free(r);
    k->late = NULL;
    return false;
}

static void link_on_soon(void *ctx)
{
    struct link *k = ctx;
    if (k->late) {
        k->lookup = k->late;
        k->late = NULL;
        tell_resolved(k);
        try_next(k);
        return;
    }
    if (k->waits) {
        k->waits = false;
        snprintf(k->trouble, sizeof k->trouble, "%.150s: no name server has answered the look-up of this name yet",
                 k->asking->host);
    }
    k->ops.failed(k->ctx, false, k->trouble);
}

/* What runs for this name already is waited for: a name server that is silent must not take one thread after another.
 */
static void link_ask(struct link *k, const char *host, int port, struct el_err *e)
{
    struct lookup *r = k->asking;
    k->waits = true;
    if (r && r->port == port && strcmp(r->host, host) == 0)
        return;
    if (r)
        r->link = NULL;
    k->asking = r = calloc(1, sizeof *r);
    if (!r) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return;
    }
    r->link = k;
    r->port = port;
    r->since = loop_clock();
    snprintf(r->host, sizeof r->host, "%s", host);
    r->job = (struct pool_job){.work = link_look_up, .done = looked_up, .ctx = r};
    if (pool_run(k->pool, &r->job, e) == 0)
        return;
    k->asking = NULL;
    free(r);
}

void link_connect(struct link *k, const char *host, int port)
{
    struct el_err e = {0};
    link_disconnect(k);
    k->next = 0;
    k->refused = false;
    k->trouble[0] = 0;
    /* localhost is loopback whatever a hosts file or a name server says. */
    host = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    el_usec now = loop_clock();
    if (has_late(k, host, port, now)) {
        loop_timer_at(k->soon, now);
        return;
    }
    link_ask(k, host, port, &e);
    if (k->asking) { /* one that is late already fails in a moment: its answer may be on its way */
        el_usec due = k->asking->since + LINK_LOOKUP_LIMIT;
        loop_timer_at(k->soon, due > now + LINK_LOOKUP_MOMENT ? due : now + LINK_LOOKUP_MOMENT);
        return;
    }
    k->waits = false;
    snprintf(k->trouble, sizeof k->trouble, "%.200s", e.text);
    loop_timer_at(k->soon, now);
}

/* --- the rest --- */

struct link *link_new(struct loop *l, struct pool *p, const struct link_ops *ops, void *ctx, struct el_err *e)
{
    struct link *k = calloc(1, sizeof *k);
    if (k)
        k->soon = loop_timer_new(l, link_on_soon, k);
    if (!k || !k->soon) {
        free(k);
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    k->loop = l;
    k->pool = p;
    k->ops = *ops;
    k->ctx = ctx;
    k->fd = -1;
    return k;
}

void link_disconnect(struct link *k)
{
    loop_timer_at(k->soon, EL_NEVER);
    loop_fd_free(k->watch);
    k->watch = NULL;
    k->waits = false;
    free(k->lookup);
    k->lookup = NULL;
    if (k->fd >= 0) {
        close(k->fd);
        k->first += k->next; /* it was silent: the next attempt begins with the one behind it */
    }
    k->fd = -1;
    link_drop(k);
}

void link_free(struct link *k)
{
    if (!k)
        return;
    link_disconnect(k);
    if (k->asking)
        k->asking->link = NULL;
    free(k->late);
    loop_timer_free(k->soon);
    free(k);
}

bool link_spoke(const struct link *k)
{
    return k->spoke;
}

void link_send(struct link *k, const struct msg *m)
{
    if (!k->up)
        return;
    struct el_buf out = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    if (msg_encode(m, &out) == 0) {
        conn_send(&k->conn, out.v, out.len);
        ack_tracker_add(&k->sent, out.len, loop_clock());
    } else
        el_log(EL_WARN, "a message of type %s could not be sent: out of memory", msg_name(m->type));
    el_buf_free(&out);
}

el_usec link_delivered(struct link *k)
{
    int unacknowledged = 0;
    if (!k->up)
        return 0;
    if (conn_unsent(&k->conn) || ioctl(k->conn.fd, SIOCOUTQ, &unacknowledged) < 0)
        return k->sent.acked_at; /* as it was seen last */
    return ack_tracker_acked(&k->sent, (uint64_t)unacknowledged);
}

bool link_addresses(const struct link *k, struct el_addr *local, struct el_addr *peer)
{
    if (local)
        *local = k->local;
    if (peer)
        *peer = k->peer;
    return k->up;
}

bool link_is_local(const struct link *k)
{
    return el_addr_is_loopback(k->peer.ip) || memcmp(k->local.ip, k->peer.ip, sizeof k->local.ip) == 0;
}
