/* What a store does with the bytes of its clients: requests in, answers out, no client's at the expense of the others.
 */
#include <stdio.h>
#include <string.h>

#include "loop/peer_uid.h"
#include "store/server_private.h"
#include "util/likely.h"

static struct client *client_of(struct conn *conn)
{
    return (struct client *)((char *)conn - offsetof(struct client, conn));
}

static struct client *client_of_wait(struct kv_wait *w)
{
    return (struct client *)((char *)session_of(w) - offsetof(struct client, session));
}

/* One byte to each whose wait is over. */
static void server_serve_release(struct kv *kv)
{
    static const char stop_waiting = WIRE_STOP_WAITING;
    for (struct kv_wait *w; (w = kv_woken(kv));)
        conn_send(&client_of_wait(w)->conn, &stop_waiting, 1);
}

/* The session has taken the preamble, in one piece or in several: whoever gets the connection sees it whole. */
static void hand_over(struct client *c, const char *bytes, size_t n)
{
    struct store_server *s = c->server;
    struct el_addr peer = c->session.peer;
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    int bad = el_buf_put(&all, c->session.hello, c->session.hello_n) | el_buf_put(&all, bytes, n);
    int fd = bad ? -1 : conn_detach(&c->conn);
    if (bad)
        server_say_closed(c, EL_WARN, "no memory");
    server_client_free(c);
    if (fd >= 0)
        s->conf.control(s->conf.control_ctx, fd, &peer, all.v, all.len);
    el_buf_free(&all);
}

/* Not to be served: handed over, or closed with a line. */
static void server_serve_turn_away(struct client *c, const char *bytes, size_t n)
{
    const struct store_server_conf *conf = &c->server->conf;
    if (c->session.end == SESSION_END_CONTROL && conf->control && !conn_broken(&c->conn)) {
        hand_over(c, bytes, n);
        return;
    }
    bool refused = c->session.end == SESSION_END_REFUSED;
    const char *why = conf->c10d_refused ? conf->c10d_refused
                      : !conf->admits    ? "its process is another user's (--any-user)"
                                         : "its address is that of no member (--store-allow), or it is another user's";
    server_say_closed(c, EL_WARN, refused ? why : session_end_text(&c->session));
    server_client_free(c);
}

/* Asked when the first bytes come: the store of a round may have begun since the connection did. */
bool server_admits(const struct store_server *s, const struct client *c)
{
    if (!s->kv || (s->conf.own_user && peer_is_foreign(c->conn.fd)))
        return false;
    return !s->conf.admits || s->conf.admits(s->conf.control_ctx, &c->session.peer);
}

/* It has just shown that it is a client of c10d, or it waits, or the rest of a request has not come. */
static EL_COLD void server_serve_note(struct client *c)
{
    struct store_server *s = c->server;
    struct session *w = &c->session;
    if (c->in && c->in != &s->slow && session_greeted(w))
        server_silent_remove(c);
    size_t n = 0;
    char *to = c->conn.paused || !w->in.len ? NULL : session_room(w, &n);
    conn_read_to(&c->conn, to, n); /* what is paused may complete its request from c->rest: not to where that was */
    if (w->wait.state != KV_WAIT_PENDING)
        return;
    if (!w->wait.since)
        w->wait.since = loop_now(s->loop);
    if (s->report_at == EL_NEVER && s->conf.wait_report) {
        s->report_at = loop_now(s->loop) + s->conf.wait_report;
        server_set_timer(s);
    }
}

/* --- answers that are longer than what the socket takes ---------------------------------------------------------- */

/* Something waits for it to read: from now on it must. */
static void is_slow(struct client *c, bool slow)
{
    struct store_server *s = c->server;
    bool first = !s->slow.first;
    if (slow == (c->in == &s->slow))
        return;
    server_silent_remove(c);
    if (!slow)
        return;
    c->since = loop_now(s->loop);
    server_silent_add(&s->slow, c);
    if (first)
        server_set_timer(s);
}

void server_turn_leave(struct client *c)
{
    struct turns *q = &c->server->turns;
    if (!c->queued)
        return;
    c->queued = false;
    *(c->turn_prev ? &c->turn_prev->turn_next : &q->first) = c->turn_next;
    *(c->turn_next ? &c->turn_next->turn_prev : &q->last) = c->turn_prev;
}

static void await_turn(struct client *c)
{
    struct turns *q = &c->server->turns;
    if (c->queued)
        return;
    c->queued = true;
    c->turn_prev = q->last;
    c->turn_next = NULL;
    *(q->last ? &q->last->turn_next : &q->first) = c;
    q->last = c;
    loop_chore_set(c->server->chore, true);
}

/* While it has not been sent what it asked for, no more is read from it.  It waits for room in its socket or, if there
 * is some, for its turn. */
static void server_serve_settle(struct client *c, bool room)
{
    struct conn *conn = &c->conn;
    bool owed = c->session.answer || c->rest.len, reads = !owed && !conn_unsent(conn);
    if (conn_broken(conn))
        return;
    if (reads == conn->paused)
        (reads ? conn_resume : conn_pause)(conn);
    server_serve_note(c);
    conn_await_room(conn, owed && !room);
    if (owed && room)
        await_turn(c);
    is_slow(c, !reads);
}

static enum session_step server_serve_feed(struct client *c, const char *bytes, size_t n, size_t *used)
{
    struct session *w = &c->session;
    enum session_step step = session_feed(w, bytes, n, used, &c->server->reply);
    if (w->kv)
        server_serve_release(w->kv);
    return step;
}

/* The next piece.  *n: how much of it went out; *room: the socket took all of it. */
static enum session_step server_serve_send_piece(struct client *c, size_t *n, bool *room)
{
    struct el_buf *out = &c->server->reply;
    struct kv_bytes piece;
    enum session_step step = session_piece(&c->session, out, &piece);
    size_t sent = 0, most = piece.n < STORE_PIECE_BYTES ? piece.n : STORE_PIECE_BYTES;
    *n = out->len;
    conn_send(&c->conn, out->v, out->len);
    out->len = 0;
    if (step == SESSION_HELD) {
        sent = conn_send_some(&c->conn, piece.v, most);
        session_took(&c->session, sent);
        *room = sent == most;
    }
    *n += sent;
    return step;
}

enum { TOIL_COSTS = STORE_TURN_BYTES / SESSION_TOIL_SOFT }; /* as much time as so many bytes */

/* The requests behind the one that has been answered.  *n: how many bytes they and their answers are. */
static enum session_step feed_rest(struct client *c, size_t *n)
{
    struct el_buf *out = &c->server->reply;
    size_t used = 0;
    c->feeding = true;
    enum session_step step = server_serve_feed(c, c->rest.v + c->rest_at, c->rest.len - c->rest_at, &used);
    c->feeding = false;
    *n = out->len + used + c->session.toil * TOIL_COSTS;
    conn_send(&c->conn, out->v, out->len);
    out->len = 0;
    c->rest_at += used;
    if (c->rest_at == c->rest.len) {
        el_buf_free(&c->rest);
        c->rest_at = 0;
    }
    return step;
}

/* One piece for the client whose turn it is: how many bytes that was.  It may be gone then. */
static size_t server_serve_serve(struct client *c)
{
    enum session_step step = SESSION_MORE;
    size_t n = 0;
    bool room = true;
    server_turn_leave(c);
    if (conn_broken(&c->conn))
        return 0;
    if (c->in == &c->server->slow)
        server_silent_remove(c); /* it was not the client that took its time */
    if (c->session.answer)
        step = server_serve_send_piece(c, &n, &room);
    else if (c->rest.len)
        step = feed_rest(c, &n);
    if (step == SESSION_END) {
        el_buf_free(&c->server->reply); /* what was refused for want of memory must not keep it */
        server_serve_turn_away(c, NULL, 0);
    } else {
        server_serve_settle(c, room && !conn_unsent(&c->conn));
    }
    return n;
}

/* At the end of each turn of the loop, when all have been heard: so many bytes of long answers, a piece to one after
 * the other.  However many ask for them, those who ask for little are heard again soon. */
void server_turn(void *ctx)
{
    enum { CALL_COSTS = 4 << 10 }; /* as much time as so many bytes: a piece may be short */
    struct store_server *s = ctx;
    size_t spent = 0;
    while (s->turns.first && spent < STORE_TURN_BYTES)
        spent += server_serve_serve(s->turns.first) + CALL_COSTS;
    loop_chore_set(s->chore, s->turns.first);
}

/* What follows must wait until there is room for its answers. */
static EL_COLD void server_serve_put_off(struct client *c, const char *bytes, size_t n)
{
    c->feeding = true; /* these bytes may lie in what it would give up, and grow what it holds */
    bool full = n && el_buf_put(&c->rest, bytes, n);
    c->feeding = false;
    if (full) {
        server_say_closed(c, EL_WARN, "the store's memory limit is reached (--max-memory)");
        server_client_free(c);
        return;
    }
    server_serve_settle(c, !conn_unsent(&c->conn));
}

static void on_moved(struct conn *conn)
{
    struct client *c = client_of(conn);
    if (c->in == &c->server->slow)
        server_silent_remove(c); /* it reads: its time begins anew */
    server_serve_settle(c, !conn_unsent(conn));
}

/* Not all is answered, or none of it is to be. */
static EL_COLD void on_step(struct client *c, enum session_step step, const char *bytes, size_t n)
{
    struct el_buf *reply = &c->server->reply;
    conn_send(&c->conn, reply->v, reply->len);
    reply->len = 0;
    if (step == SESSION_END) {
        el_buf_free(reply); /* as above */
        server_serve_turn_away(c, bytes, n);
    } else {
        server_serve_put_off(c, bytes, n);
    }
}

static struct el_buf *server_serve_on_data(struct conn *conn, const char *bytes, size_t n)
{
    struct client *c = client_of(conn);
    struct store_server *s = c->server;
    struct session *w = &c->session;
    size_t used = 0;
    if (EL_UNLIKELY(w->state == SESSION_NEW))
        w->kv = server_admits(s, c) ? s->kv : NULL;
    if (EL_UNLIKELY(conn_unsent(conn) || conn->paused)) {
        server_serve_put_off(c, bytes, n);
        return NULL;
    }
    enum session_step step = session_feed(w, bytes, n, &used, &s->reply);
    if (w->kv)
        server_serve_release(w->kv);
    if (EL_UNLIKELY(step != SESSION_MORE)) {
        on_step(c, step, bytes + used, n - used);
        return NULL;
    }
    if (EL_UNLIKELY(c->in || w->in.len || w->wait.state == KV_WAIT_PENDING))
        server_serve_note(c);
    return &s->reply;
}

static void server_serve_on_closed(struct conn *conn, enum conn_why why, int sys)
{
    struct client *c = client_of(conn);
    char text[128];
    switch (why) {
    case CONN_EOF: server_say_closed(c, EL_DEBUG, "by the client"); break;
    case CONN_ERROR: server_say_closed(c, EL_DEBUG, strerror_r(sys, text, sizeof text)); break;
    case CONN_OVERFLOW:
        snprintf(text, sizeof text, "it does not read: %d MiB are unsent", SERVER_UNSENT_MAX >> 20);
        server_say_closed(c, EL_WARN, text);
        break;
    case CONN_NO_MEMORY:
        server_say_closed(
            c, EL_WARN,
            "it does not read, or not finish what it sends, and the store's memory limit is reached (--max-memory)");
        break;
    }
    server_client_free(c);
}

const struct conn_ops server_client_ops = {
    .data = server_serve_on_data, .closed = server_serve_on_closed, .moved = on_moved};
