#include "agent/control_socket.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/conn.h"
#include "loop/unix_listener.h"
#include "util/log.h"

#define QUESTION_BYTES ((size_t)4 << 10)

struct asker {
    struct conn conn;
    struct control_socket *asks;
    bool used, asked, ended;
    struct msg_decoder decoder;
    struct el_buf in;
    el_usec until; /* EL_NEVER: its answer takes as long as it takes */
};

struct control_socket {
    struct loop *loop;
    struct control_socket_ops ops;
    void *ctx;
    struct unix_listener *gate;
    struct loop_timer *timer;
    struct el_mem mem;
    struct el_buf out;
    struct asker asker[CONTROL_SOCKET_MAX];
};

/* --- one of them -------------------------------------------------------------------------------------------------- */

static void control_socket_forget(struct asker *a)
{
    if (!a->used)
        return;
    conn_close(&a->conn);
    el_buf_free(&a->in);
    a->used = false;
}

static void control_socket_lose(struct asker *a)
{
    bool told = a->asked && !a->ended;
    control_socket_forget(a);
    if (told)
        a->asks->ops.gone(a->asks->ctx, a);
}

static void control_socket_rearm(struct control_socket *s)
{
    el_usec at = EL_NEVER;
    for (unsigned i = 0; i < CONTROL_SOCKET_MAX; i++)
        if (s->asker[i].used && s->asker[i].until < at)
            at = s->asker[i].until;
    loop_timer_at(s->timer, at);
}

static void control_socket_on_timer(void *ctx)
{
    struct control_socket *s = ctx;
    for (unsigned i = 0; i < CONTROL_SOCKET_MAX; i++)
        if (s->asker[i].used && s->asker[i].until <= loop_now(s->loop))
            control_socket_lose(&s->asker[i]);
    control_socket_rearm(s);
}

void asker_send(struct asker *a, const struct msg *m)
{
    struct control_socket *s = a->asks;
    s->out.len = 0;
    s->out.full = 0;
    if (msg_encode(m, &s->out) == 0)
        conn_send(&a->conn, s->out.v, s->out.len);
}

bool asker_is_behind(const struct asker *a)
{
    return conn_unsent(&a->conn);
}

void asker_end(struct asker *a)
{
    a->ended = true;
    a->until = loop_now(a->asks->loop) + CONTROL_SOCKET_FIRST_TIME;
    if (!conn_unsent(&a->conn))
        shutdown(a->conn.fd, SHUT_WR);
    control_socket_rearm(a->asks);
}

static void control_socket_refuse(struct asker *a, const struct el_err *e)
{
    struct msg m = {.type = MSG_REFUSED, .u.refused = {.status = (uint64_t)e->status, .text = e->text}};
    asker_send(a, &m);
    asker_end(a);
}

/* One thing from the front of what has come: how long it was, 0 if more is needed. */
static size_t take_one(struct asker *a)
{
    struct msg m;
    struct el_err e = {0};
    long n = msg_consume(&a->decoder, a->in.v, a->in.len, &m, &e);
    if (n < 0)
        control_socket_refuse(a, &e);
    if (n <= 0)
        return 0;
    if (m.type == MSG_NONE) {
        conn_send(&a->conn, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    } else if (m.type == MSG_CKPT_QUERY) {
        a->asked = true;
        a->until = EL_NEVER;
        control_socket_rearm(a->asks);
        a->asks->ops.ask(a->asks->ctx, a, &m);
    } else {
        el_fail(&e, EL_EXIT_PROTOCOL, "%s: an agent answers CKPT_QUERY here", msg_name(m.type));
        control_socket_refuse(a, &e);
    }
    msg_release(&m);
    return (size_t)n;
}

static struct el_buf *control_socket_on_data(struct conn *conn, const char *bytes, size_t n)
{
    struct asker *a = (struct asker *)((char *)conn - offsetof(struct asker, conn));
    struct el_err e = {0};
    if (a->asked || a->ended)
        return NULL; /* one question each */
    if (el_buf_put(&a->in, bytes, n)) {
        el_fail(&e, EL_EXIT_PROTOCOL, "a question of more than %zu bytes", QUESTION_BYTES);
        control_socket_refuse(a, &e);
        return NULL;
    }
    for (size_t used = 1; used && a->in.len && !a->asked && !a->ended;) {
        used = take_one(a);
        el_buf_drop(&a->in, used);
    }
    return NULL;
}

static void control_socket_on_closed(struct conn *conn, enum conn_why why, int sys)
{
    struct asker *a = (struct asker *)((char *)conn - offsetof(struct asker, conn));
    (void)why, (void)sys;
    control_socket_lose(a);
    control_socket_rearm(a->asks);
}

/* --- who comes ---------------------------------------------------------------------------------------------------- */

static const struct conn_ops asker_ops = {.data = control_socket_on_data, .closed = control_socket_on_closed};

static void control_socket_on_connection(void *ctx, int fd)
{
    struct control_socket *s = ctx;
    unsigned i = 0;
    while (i < CONTROL_SOCKET_MAX && s->asker[i].used)
        i++;
    if (i == CONTROL_SOCKET_MAX) {
        close(fd);
        return;
    }
    struct asker *a = &s->asker[i];
    *a = (struct asker){.asks = s, .used = true, .until = loop_now(s->loop) + CONTROL_SOCKET_FIRST_TIME};
    a->in = EL_BUF_INIT(&s->mem, QUESTION_BYTES);
    if (conn_open(&a->conn, s->loop, fd, &asker_ops, &s->mem, CONTROL_SOCKET_UNSENT) < 0)
        a->used = false;
    control_socket_rearm(s);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

struct control_socket *control_socket_new(struct loop *l, const char *path, const struct control_socket_ops *ops,
                                          void *ctx, struct el_err *e)
{
    struct control_socket *s = calloc(1, sizeof *s);
    if (s) {
        *s = (struct control_socket){
            .loop = l, .ops = *ops, .ctx = ctx, .mem = EL_MEM_INIT(2 * CONTROL_SOCKET_MAX * CONTROL_SOCKET_UNSENT)};
        s->out = EL_BUF_INIT(&s->mem, MSG_FRAME_MAX);
        s->timer = loop_timer_new(l, control_socket_on_timer, s);
    }
    if (!s || !s->timer) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        control_socket_free(s);
        return NULL;
    }
    s->gate = unix_listener_new(l, path, SOCK_STREAM, CONTROL_SOCKET_MAX, control_socket_on_connection, s, e);
    if (s->gate)
        return s;
    control_socket_free(s);
    return NULL;
}

void control_socket_free(struct control_socket *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < CONTROL_SOCKET_MAX; i++)
        control_socket_forget(&s->asker[i]);
    unix_listener_free(s->gate);
    loop_timer_free(s->timer);
    el_buf_free(&s->out);
    free(s);
}
