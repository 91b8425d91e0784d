#include "member/lease_server.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "loop/conn.h"
#include "util/log.h"
#include "util/sip.h"
#include "util/sockaddr.h"

#define UNSENT_MAX_BYTES        (1u << 20)
#define OWN_MAX                 256
#define LEASE_SERVER_REST_BYTES 4096      /* of a message whose rest has not come: none of them is so long */
#define OWN_AGAIN               EL_SEC(1) /* interfaces are looked at again so late: each stranger asks */
#define LINES_PER_SECOND        8         /* that strangers can cause; then they are counted */

enum { BUCKETS = 4096 };

struct tenant {
    struct conn conn;
    struct lease_server *all;
    struct tenant *next, **at;
    struct tenant *same, **same_at; /* of one bucket, once it has knocked */
    struct tenant *older, *newer;   /* of those that have not knocked */
    struct loop_timer *hello;       /* NULL once it has knocked */
    struct msg_decoder decoder;
    struct el_buf in;
    struct el_addr peer;
};

struct lease_server {
    struct loop *loop;
    struct lease_server_ops ops;
    void *ctx;
    struct tenant *list;
    struct tenant *oldest, *newest; /* that have not knocked */
    unsigned count, knocked;
    struct el_buf out; /* one message at a time */
    el_usec said_since;
    unsigned said, unsaid;
    uint64_t seed[2];
    struct tenant *bucket[BUCKETS]; /* by address: each worker that comes is looked for */
    uint8_t own[OWN_MAX][16];       /* this host's addresses */
    size_t own_n;
    el_usec own_until; /* they are looked up again from here on */
};

static struct tenant *tenant_of(struct conn *c)
{
    return (struct tenant *)((char *)c - offsetof(struct tenant, conn));
}

static struct tenant **lease_server_bucket_of(struct lease_server *t, const uint8_t ip[16])
{
    return &t->bucket[el_sip(t->seed, ip, 16) % BUCKETS];
}

static void add_new(struct tenant *x)
{
    struct lease_server *t = x->all;
    x->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = x;
    t->newest = x;
}

/* It has knocked, or goes. */
static void remove_new(struct tenant *x)
{
    struct lease_server *t = x->all;
    *(x->older ? &x->older->newer : &t->oldest) = x->newer;
    *(x->newer ? &x->newer->older : &t->newest) = x->older;
    x->older = x->newer = NULL;
    loop_timer_free(x->hello);
    x->hello = NULL;
}

static void admit(struct tenant *x)
{
    struct lease_server *t = x->all;
    struct tenant **first = lease_server_bucket_of(t, x->peer.ip);
    remove_new(x);
    x->same = *first;
    x->same_at = first;
    if (*first)
        (*first)->same_at = &x->same;
    *first = x;
    t->knocked++;
}

static void unlink_tenant(struct tenant *x)
{
    if (x->same_at) {
        *x->same_at = x->same;
        if (x->same)
            x->same->same_at = x->same_at;
        x->all->knocked--;
    } else {
        remove_new(x);
    }
    *x->at = x->next;
    if (x->next)
        x->next->at = x->at;
    x->all->count--;
    el_buf_free(&x->in);
    free(x);
}

static void tenant_close(struct tenant *x)
{
    conn_close(&x->conn);
    unlink_tenant(x);
}

static void lease_server_refuse(struct tenant *x, const char *why)
{
    struct lease_server *t = x->all;
    char text[EL_ADDR_TEXT_MAX];
    el_usec now = loop_now(t->loop);
    if (now - t->said_since >= EL_SEC(1)) {
        if (t->unsaid)
            el_log(EL_WARN, "worker store: %u more lines like these were left out", t->unsaid);
        t->said_since = now;
        t->said = t->unsaid = 0;
    }
    if (t->said++ < LINES_PER_SECOND)
        el_log(EL_WARN, "worker store: %s: closed: %s", el_addr_text(&x->peer, text), why);
    else
        t->unsaid++;
    tenant_close(x);
}

static void on_hello_late(void *ctx)
{
    lease_server_refuse(ctx, "it did not knock in time");
}

static void lease_server_on_closed(struct conn *c, enum conn_why why, int sys)
{
    (void)why, (void)sys; /* its agent will come again, or the coordinator says that it is lost */
    tenant_close(tenant_of(c));
}

/* In t->out; false: no memory, and its agent takes the silence for what it is. */
static bool encode(struct lease_server *t, const struct msg *m)
{
    t->out.len = 0;
    t->out.full = 0;
    return msg_encode(m, &t->out) == 0;
}

static void lease_server_answer(struct tenant *x, const struct msg *m)
{
    if (encode(x->all, m))
        conn_send(&x->conn, x->all->out.v, x->all->out.len);
}

static void answer_beat(struct tenant *x, const struct msg_heartbeat *beat)
{
    struct msg reply;
    x->all->ops.reply(x->all->ctx, beat, &reply);
    lease_server_answer(x, &reply);
}

/* False: the tenant is gone. */
static bool lease_server_on_message(struct tenant *x, const struct msg *m)
{
    struct lease_server *t = x->all;
    if (m->type == MSG_NONE)
        return true;
    if (x->hello) {
        if (m->type != MSG_LEASE_REQUEST || !t->ops.knocks(t->ctx, &m->u.lease_request)) {
            lease_server_refuse(x, m->type == MSG_LEASE_REQUEST ? "it knocks with the token of another round"
                                                                : "it does not knock first");
            return false;
        }
        admit(x);
        struct msg ok = {.type = MSG_LEASE_GRANTED};
        ok.u.lease_granted.number = m->u.lease_request.number;
        ok.u.lease_granted.coord = m->u.lease_request.coord;
        lease_server_answer(x, &ok);
        answer_beat(x,
                    &(struct msg_heartbeat){0}); /* what is known here of the coordinator, before anything can happen */
        return true;
    }
    if (m->type == MSG_HEARTBEAT)
        answer_beat(x, &m->u.heartbeat);
    if (m->type == MSG_HEARTBEAT || m->type == MSG_ROUND_OVER)
        t->ops.heard(t->ctx, m);
    return true;
}

static struct el_buf *lease_server_on_data(struct conn *c, const char *bytes, size_t n)
{
    struct tenant *x = tenant_of(c);
    if (el_buf_put(&x->in, bytes, n) < 0) {
        lease_server_refuse(x, "out of memory, or a frame that never ends");
        return NULL;
    }
    for (;;) {
        struct msg m;
        struct el_err e = {0};
        long used = msg_consume(&x->decoder, x->in.v, x->in.len, &m, &e);
        if (used < 0)
            lease_server_refuse(x, e.text);
        if (used == 0 && x->in.len > LEASE_SERVER_REST_BYTES)
            lease_server_refuse(x, "a message of more than 4096 bytes");
        else if (used == 0 && !x->in.len)
            el_buf_free(&x->in);
        if (used <= 0)
            return NULL;
        el_buf_drop(&x->in, (size_t)used);
        bool there = lease_server_on_message(x, &m);
        msg_release(&m);
        if (!there)
            return NULL;
    }
}

static const struct conn_ops tenant_ops = {.data = lease_server_on_data, .closed = lease_server_on_closed};

static void lease_server_make_room(struct lease_server *t)
{
    if (t->oldest && (t->count >= LEASE_SERVER_MAX || t->count - t->knocked >= LEASE_SERVER_NEW_MAX))
        lease_server_refuse(t->oldest, "it did not knock, and others need the place");
}

void lease_server_accept(struct lease_server *t, int fd, const struct el_addr *peer, const char *bytes, size_t n)
{
    lease_server_make_room(t);
    struct tenant *x = t->count < LEASE_SERVER_MAX ? calloc(1, sizeof *x) : NULL;
    if (!x || !(x->hello = loop_timer_new(t->loop, on_hello_late, x))) {
        free(x);
        close(fd);
        return;
    }
    x->all = t;
    x->peer = *peer;
    x->in = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    if (conn_open(&x->conn, t->loop, fd, &tenant_ops, NULL, UNSENT_MAX_BYTES) < 0) {
        loop_timer_free(x->hello);
        free(x);
        return;
    }
    conn_send(&x->conn, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    loop_timer_at(x->hello, loop_clock() + LEASE_SERVER_HELLO);
    x->next = t->list;
    x->at = &t->list;
    if (t->list)
        t->list->at = &x->next;
    t->list = x;
    t->count++;
    add_new(x);
    lease_server_on_data(&x->conn, bytes, n);
}

void lease_server_send(struct lease_server *t, const struct msg *m)
{
    if (!encode(t, m))
        return;
    for (struct tenant *x = t->list; x; x = x->next)
        if (!x->hello)
            conn_send(&x->conn, t->out.v, t->out.len);
}

void lease_server_close(struct lease_server *t)
{
    for (struct tenant *x = t->list, *next; x; x = next) {
        next = x->next;
        if (!x->hello)
            tenant_close(x);
    }
}

static bool lease_server_is_own(const struct lease_server *t, const uint8_t ip[16])
{
    for (size_t i = 0; i < t->own_n; i++)
        if (memcmp(t->own[i], ip, sizeof t->own[i]) == 0)
            return true;
    return false;
}

bool lease_server_has(struct lease_server *t, const struct el_addr *peer)
{
    for (const struct tenant *x = *lease_server_bucket_of(t, peer->ip); x; x = x->same)
        if (memcmp(x->peer.ip, peer->ip, sizeof peer->ip) == 0)
            return true;
    if (lease_server_is_own(t, peer->ip))
        return true;
    if (loop_now(t->loop) < t->own_until)
        return false;
    t->own_n = el_addr_own(t->own, OWN_MAX); /* an interface may have come up since */
    t->own_until = loop_now(t->loop) + OWN_AGAIN;
    return lease_server_is_own(t, peer->ip);
}

struct lease_server *lease_server_new(struct loop *l, const struct lease_server_ops *ops, void *ctx, struct el_err *e)
{
    struct lease_server *t = calloc(1, sizeof *t);
    if (!t) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    t->loop = l;
    t->ops = *ops;
    t->ctx = ctx;
    t->out = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    if (getrandom(t->seed, sizeof t->seed, 0) != sizeof t->seed) {
        el_fail(e, EL_EXIT_OSERR, "no random numbers");
        free(t);
        return NULL;
    }
    return t;
}

void lease_server_free(struct lease_server *t)
{
    if (!t)
        return;
    while (t->list)
        tenant_close(t->list);
    el_buf_free(&t->out);
    free(t);
}
