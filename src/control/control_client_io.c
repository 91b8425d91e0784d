#include "control/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/dial.h"
#include "loop/loop.h"
#include "control/peer_ident.h"
#include "util/parse.h"

enum { CHUNK_BYTES = 64 << 10 };

struct control_client {
    int fd;
    el_usec limit;
    struct msg_decoder decoder;
    struct el_buf out, in;
    const char *who;
    char where[DIAL_WHERE_MAX];
};

/* --- who is it then? ---------------------------------------------------------------------------------------------- */

static int not_a_coordinator(const struct control_client *c, struct el_err *e)
{
    char shown[EL_SHOW_MAX], first[17] = "";
    size_t n = c->in.len < sizeof first - 1 ? c->in.len : sizeof first - 1;
    const char *name = peer_ident_name(c->in.v, c->in.len);
    if (name)
        return el_fail(e, EL_EXIT_UNAVAILABLE, "%s is %s, not a coordinator of elrun", c->where, name);
    memcpy(first, c->in.v, n);
    return el_fail(e, EL_EXIT_UNAVAILABLE, "what answers at %s is not a coordinator of elrun: it begins with \"%s\"",
                   c->where, el_show(first, shown));
}

/* It has closed the connection; who has never shown the preamble is no coordinator. */
static int closed(const struct control_client *c, struct el_err *e)
{
    if (c->decoder.greeted)
        return el_fail(e, EL_EXIT_UNAVAILABLE, "%s at %s closes the connection", c->who, c->where);
    return el_fail(e, EL_EXIT_UNAVAILABLE, "what listens at %s closes the connection without a word: " PEER_IDENT_MUTE,
                   c->where);
}

/* The kernel takes connections also for a process that stands still. */
static int silent(const struct control_client *c, struct el_err *e)
{
    return el_fail(e, EL_EXIT_UNAVAILABLE, "%s at %s does not answer within %.3g s: it %s", c->who, c->where,
                   (double)c->limit / EL_SEC(1),
                   c->decoder.greeted ? "stands still" : "stands still, or something else listens there");
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static int control_client_flush(struct control_client *c, struct el_err *e)
{
    el_usec until = loop_clock() + c->limit;
    for (size_t at = 0; at < c->out.len;) {
        ssize_t n = send(c->fd, c->out.v + at, c->out.len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return el_fail_sys(e, EL_EXIT_UNAVAILABLE, errno, "%s at %s", c->who, c->where);
        else if (!dial_await(c->fd, POLLOUT, until))
            return el_fail(e, EL_EXIT_UNAVAILABLE, "%s at %s takes nothing", c->who, c->where);
    }
    c->out.len = 0;
    return 0;
}

static int control_client_receive_some(struct control_client *c, el_usec until, struct el_err *e)
{
    char *room = el_buf_reserve(&c->in, CHUNK_BYTES);
    if (!room)
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    for (;;) {
        ssize_t n = recv(c->fd, room, CHUNK_BYTES, 0);
        if (n > 0) {
            c->in.len += (size_t)n;
            return 0;
        }
        if (n == 0 || errno == ECONNRESET)
            return closed(c, e);
        if (errno != EAGAIN && errno != EINTR)
            return el_fail_sys(e, EL_EXIT_UNAVAILABLE, errno, "%s at %s", c->who, c->where);
        if (!dial_await(c->fd, POLLIN, until))
            return silent(c, e);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static struct control_client *new_client(const char *who, el_usec limit, struct el_err *e)
{
    struct control_client *c = el_alloc(NULL, sizeof *c);
    if (!c) {
        el_fail(e, EL_EXIT_OSERR, "out of memory");
        return NULL;
    }
    c->limit = limit;
    c->out = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    c->in = EL_BUF_INIT(NULL, 2 * MSG_FRAME_MAX);
    c->who = who;
    c->fd = -1;
    return c;
}

static struct control_client *control_client_greet(struct control_client *c)
{
    if (c->fd >= 0 && el_buf_puts(&c->out, MSG_PREAMBLE) == 0)
        return c;
    control_client_free(c);
    return NULL;
}

struct control_client *control_client_open(const char *endpoint, el_usec limit, struct el_err *e)
{
    struct control_client *c = new_client("coordinator", limit, e);
    if (!c)
        return NULL;
    c->fd = dial(endpoint, c->who, limit, c->where, e);
    return control_client_greet(c);
}

/* Anybody may listen at a path that looks like an agent's, and say of a step what is not true. */
static bool is_foreign(const struct control_client *c, struct el_err *e)
{
    struct ucred who;
    socklen_t n = sizeof who;
    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid())
        return false;
    el_fail(e, EL_EXIT_NOPERM, "%s at %s is not of this user, and not believed", c->who, c->where);
    return true;
}

struct control_client *control_client_open_agent(const char *path, el_usec limit, struct el_err *e)
{
    struct control_client *c = new_client("agent", limit, e);
    if (!c)
        return NULL;
    snprintf(c->where, sizeof c->where, "%s", path);
    c->fd = dial_path(path, c->who, e);
    if (c->fd >= 0 && is_foreign(c, e)) {
        control_client_free(c);
        return NULL;
    }
    return control_client_greet(c);
}

void control_client_free(struct control_client *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    el_buf_free(&c->out);
    el_buf_free(&c->in);
    el_free(NULL, c);
}

int control_client_send(struct control_client *c, const struct msg *m, struct el_err *e)
{
    if (msg_encode(m, &c->out))
        return el_fail(e, EL_EXIT_OSERR, "out of memory");
    return control_client_flush(c, e);
}

int control_client_receive(struct control_client *c, struct msg *out, struct el_err *e)
{
    el_usec until = loop_clock() + c->limit;
    for (;;) {
        struct el_err bad = {0};
        long n = c->in.len ? msg_consume(&c->decoder, c->in.v, c->in.len, out, &bad) : 0;
        if (n < 0 && !c->decoder.greeted)
            return not_a_coordinator(c, e);
        if (n < 0)
            return el_fail(e, EL_EXIT_PROTOCOL, "%s at %s: %.300s", c->who, c->where, bad.text);
        if (n == 0 && control_client_receive_some(c, until, e))
            return -1;
        el_buf_drop(&c->in, (size_t)n);
        if (n == 0 || out->type == MSG_NONE)
            continue;
        if (out->type != MSG_REFUSED)
            return 0;
        char shown[401];
        el_fail(e, EL_EXIT_PROTOCOL, "%s at %s refuses: %s", c->who, c->where,
                el_show_path(out->u.refused.text, shown, sizeof shown));
        msg_release(out);
        return -1;
    }
}

void control_client_limit(struct control_client *c, el_usec limit)
{
    c->limit = limit;
}

int control_client_ask(struct control_client *c, const struct msg *m, unsigned *status, char text[MSG_TEXT_MAX + 1],
                       struct el_err *e)
{
    struct msg answer;
    if (control_client_send(c, m, e) || control_client_receive(c, &answer, e))
        return -1;
    int bad = answer.type != MSG_DONE;
    if (bad)
        el_fail(e, EL_EXIT_PROTOCOL, "%s at %s answers with %s", c->who, c->where, msg_name(answer.type));
    else {
        *status = (unsigned)answer.u.done.status;
        snprintf(text, MSG_TEXT_MAX + 1, "%s", answer.u.done.text);
    }
    msg_release(&answer);
    return bad ? -1 : 0;
}
