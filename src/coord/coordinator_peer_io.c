/* Connections of the coordinator: limits before anything is trusted, frames in, messages out. */
#include <assert.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coord/coordinator_private.h"
#include "util/log.h"
#include "util/sip.h"

enum { SLOT_BITS = 20, SLOT_MASK = (1 << SLOT_BITS) - 1, SLOTS_FIRST = 64 };

#define CLOSING_LIMIT EL_SEC(1)

/* --- numbers ------------------------------------------------------------------------------------------------------ */

struct peer *peer_find(struct coordinator *c, uint64_t id)
{
    uint64_t slot = id & SLOT_MASK;
    struct peer *p = slot < c->slots ? c->slot[slot] : NULL;
    return p && p->id == id ? p : NULL;
}

static int more_slots(struct coordinator *c)
{
    unsigned n = c->slots ? 2 * c->slots : SLOTS_FIRST;
    if (n > SLOT_MASK + 1)
        return -1;
    struct peer **slot = el_realloc(&c->mem, c->slot, n * sizeof(struct peer *));
    if (!slot)
        return -1;
    c->slot = slot;
    uint32_t *free_slot = el_realloc(&c->mem, c->free_slot, n * sizeof *free_slot);
    if (!free_slot)
        return -1;
    c->free_slot = free_slot;
    for (unsigned i = n; i-- > c->slots;) {
        c->slot[i] = NULL;
        c->free_slot[c->free_slots++] = i;
    }
    c->slots = n;
    return 0;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void unlist(struct peer *p)
{
    struct peer_list *l = p->list;
    if (!l)
        return;
    *(p->prev ? &p->prev->next : &l->first) = p->next;
    *(p->next ? &p->next->prev : &l->last) = p->prev;
    l->n--;
    p->list = NULL;
    p->prev = p->next = NULL;
}

void peer_move(struct peer *p, enum peer_role role)
{
    struct coordinator *c = p->c;
    unlist(p);
    p->role = role;
    if (role == PEER_AGENT)
        return;
    struct peer_list *l = role == PEER_COMMAND ? &c->asking : role == PEER_NEW ? &c->fresh : &c->closing;
    p->list = l;
    p->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = p;
    l->last = p;
    l->n++;
    p->until = loop_now(c->loop) + (role == PEER_CLOSING ? CLOSING_LIMIT : COORDINATOR_HELLO_LIMIT);
}

void peer_free(struct peer *p)
{
    struct coordinator *c = p->c;
    uint32_t slot = (uint32_t)(p->id & SLOT_MASK);
    reader_forget(p);
    unlist(p);
    c->waiting -= p->waits;
    conn_close(&p->conn);
    el_buf_free(&p->in);
    job_memory_leave(p->purse);
    c->slot[slot] = NULL;
    c->free_slot[c->free_slots++] = slot;
    el_free(&c->mem, p);
}

const char *peer_name(const struct peer *p, char text[EL_ADDR_TEXT_MAX])
{
    return el_addr_text(&p->addr, text);
}

struct rdzv_peer peer_ends(const struct peer *p)
{
    return (struct rdzv_peer){.remote = p->remote, .local = p->local, .same_host = p->same_host};
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

void peer_send(struct peer *p, const struct msg *m)
{
    struct coordinator *c = p->c;
    c->out.len = 0;
    c->out.full = 0;
    if (!p->greeted)
        conn_send(&p->conn, MSG_PREAMBLE, MSG_PREAMBLE_SIZE);
    p->greeted = true;
    if (msg_encode(m, &c->out) == 0)
        conn_send(&p->conn, c->out.v, c->out.len);
    else
        coordinator_say(c, EL_ERROR, "a message of type %s cannot be sent: no memory", msg_name(m->type));
}

void peer_finish(struct peer *p)
{
    if (p->role == PEER_CLOSING)
        return;
    reader_forget(p);
    el_buf_free(&p->in);
    peer_move(p, PEER_CLOSING);
    if (!conn_unsent(&p->conn))
        shutdown(p->conn.fd, SHUT_WR);
    coordinator_rearm(p->c);
}

void peer_refuse(struct peer *p, unsigned status, const char *format, ...)
{
    char text[MSG_TEXT_MAX + 1], name[EL_ADDR_TEXT_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    struct msg m = {.type = MSG_REFUSED, .u.refused = {.status = status, .text = text}};
    peer_send(p, &m);
    coordinator_say(p->c, EL_WARN, "%s: refused: %s", peer_name(p, name), text);
    peer_finish(p);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

/* Does the connection go to somebody else, with all that came?  True: the peer is gone. */
static bool give_away(struct peer *p, const char *bytes, size_t n)
{
    struct coordinator *c = p->c;
    struct el_addr addr = p->addr;
    struct el_buf all = EL_BUF_INIT(NULL, 0);
    if (!c->conf.knock || conn_broken(&p->conn) || conn_unsent(&p->conn))
        return false;
    if (el_buf_put(&all, MSG_PREAMBLE, MSG_PREAMBLE_SIZE) || el_buf_put(&all, bytes, n)) {
        el_buf_free(&all);
        return false;
    }
    int fd = conn_detach(&p->conn);
    peer_free(p);
    c->conf.knock(c->conf.ctx, fd, &addr, all.v, all.len);
    el_buf_free(&all);
    return true;
}

static void coordinator_peer_take_first(struct peer *p, const struct msg *m, const char *frame, size_t n)
{
    struct coordinator *c = p->c;
    switch ((unsigned)m->type) {
    case MSG_HELLO: coordinator_hello(c, p, m); break;
    case MSG_STATUS:
    case MSG_SCALE:
    case MSG_DRAIN:
    case MSG_STOP_JOB:
    case MSG_RESTART:
    case MSG_LOGS: command_take(c, p, m); break;
    case MSG_LEASE_REQUEST:
        if (!give_away(p, frame, n))
            peer_refuse(p, EL_EXIT_PROTOCOL, "LEASE_REQUEST: a coordinator listens here, and no store of a round");
        break;
    default: peer_refuse(p, EL_EXIT_PROTOCOL, "%s: HELLO or a command comes first", msg_name(m->type)); break;
    }
}

/* frame: the message and what came behind it. */
static void coordinator_peer_take_message(struct peer *p, const struct msg *m, const char *frame, size_t n)
{
    struct coordinator *c = p->c;
    if (p->role == PEER_NEW) {
        coordinator_peer_take_first(p, m, frame, n);
        return;
    }
    if (p->role == PEER_COMMAND && m->type == MSG_LOGS_NEXT)
        reader_next(p, &m->u.logs_next);
    if (p->role != PEER_AGENT)
        return; /* a command that is being answered */
    struct job *job = coordinator_job_by_id(c, p->job);
    if (!job) {
        peer_finish(p); /* it was forgotten */
        return;
    }
    if (m->type == MSG_LOGS_TEXT) {
        reader_text(c, p, &m->u.logs_text);
        return;
    }
    if (m->type == MSG_HELLO) {
        uint64_t id = p->job, conn = p->id;
        unsigned member = p->member;
        peer_refuse(p, EL_EXIT_PROTOCOL, "HELLO: once on a connection");
        coordinator_closed(c, id, member, conn);
        return;
    }
    if (m->type == MSG_INCIDENT)
        coordinator_hurry(c, job);
    struct rdzv_event ev = {.type = RDZV_EV_MSG, .conn = p->id, .member = p->member, .msg = m, .peer = peer_ends(p)};
    coordinator_step(c, job, &ev);
}

/* What it has sent cannot be read on. */
static void coordinator_peer_give_up(struct peer *p, const struct el_err *e)
{
    struct coordinator *c = p->c;
    uint64_t job = p->job, conn = p->id;
    unsigned member = p->member;
    bool bound = p->role == PEER_AGENT;
    peer_refuse(p, (unsigned)e->status, "%s", e->text);
    if (bound)
        coordinator_closed(c, job, member, conn);
}

static void say_no_room(const struct peer *p)
{
    char name[EL_ADDR_TEXT_MAX];
    coordinator_say(
        p->c, EL_WARN,
        "%s: closed: no memory for messages that it has half sent, or does not read: %zu MiB for all of %s, "
        "%zu for all",
        peer_name(p, name), COORDINATOR_CONNS_ONE >> 20, p->remote, COORDINATOR_MEMORY_BYTES >> 20);
}

/* Cut without a word to it: an agent comes again.  The peer is gone. */
static void cut_off(struct peer *p)
{
    struct coordinator *c = p->c;
    uint64_t job = p->job, conn = p->id;
    unsigned member = p->member;
    bool bound = p->role == PEER_AGENT;
    say_no_room(p);
    peer_free(p);
    if (bound)
        coordinator_closed(c, job, member, conn);
}

/* Takes whole messages from the front.  How many bytes were used, or -1: the peer is gone, or of no use any more. */
static long take_frames(struct peer *p, const char *bytes, size_t n)
{
    struct coordinator *c = p->c;
    uint64_t id = p->id;
    size_t at = 0;
    for (;;) {
        struct msg m;
        struct el_err e = {0};
        long used = msg_consume(&p->decoder, bytes + at, n - at, &m, &e);
        if (used < 0) {
            coordinator_peer_give_up(p, &e);
            return -1;
        }
        if (used == 0)
            return (long)at;
        if (m.type != MSG_NONE)
            coordinator_peer_take_message(p, &m, bytes + at, n - at);
        msg_release(&m);
        at += (size_t)used;
        if (peer_find(c, id) != p || p->role == PEER_CLOSING)
            return -1;
    }
}

/* Everything that has come and was not used. */
static void coordinator_peer_take_bytes(struct peer *p, struct el_buf *begun, const char *bytes, size_t n)
{
    struct el_err e = {0};
    bool joined = begun->len > 0;
    if (joined && el_buf_put(begun, bytes, n)) {
        cut_off(p);
        return;
    }
    const char *all = joined ? begun->v : bytes;
    size_t all_n = joined ? begun->len : n;
    long used = take_frames(p, all, all_n);
    if (used < 0)
        return;
    size_t rest = all_n - (size_t)used;
    if (p->role == PEER_NEW && rest > COORDINATOR_HELLO_BYTES) {
        el_fail(&e, EL_EXIT_PROTOCOL, "a first message of more than %zu bytes", COORDINATOR_HELLO_BYTES);
    } else if (joined && !used) {
        p->in = *begun; /* a large message, piece by piece: it is not moved each time */
        *begun = EL_BUF_INIT(&p->purse->conns, 0);
    } else if (rest && el_buf_put(&p->in, all + used, rest)) {
        cut_off(p);
    }
    if (e.status)
        coordinator_peer_give_up(p, &e);
}

/* So many jobs have begun in this turn that others come first. */
static bool must_wait(const struct peer *p)
{
    struct coordinator *c = p->c;
    if (c->birth_turn != loop_now(c->loop))
        c->births = 0;
    c->birth_turn = loop_now(c->loop);
    return p->role == PEER_NEW && c->births >= COORDINATOR_BIRTHS;
}

/* What it has said is kept, and no more is read from it before that is heard. */
static void coordinator_peer_put_off(struct peer *p, const char *bytes, size_t n)
{
    struct coordinator *c = p->c;
    c->hearing = p;
    bool full = el_buf_put(&p->in, bytes, n);
    c->hearing = NULL;
    if (full) {
        cut_off(p);
    } else {
        p->waits = true;
        c->waiting++;
        conn_pause(&p->conn);
    }
    coordinator_rearm(c);
}

static struct el_buf *coordinator_peer_on_data(struct conn *conn, const char *bytes, size_t n)
{
    struct peer *p = (struct peer *)((char *)conn - offsetof(struct peer, conn));
    struct coordinator *c = p->c;
    struct purse *purse = p->purse;
    uint64_t id = p->id;
    struct el_buf begun = p->in; /* what a message does to the peer must not free the bytes under it */
    if (p->role == PEER_CLOSING)
        return NULL;
    if (must_wait(p)) {
        coordinator_peer_put_off(p, bytes, n);
        return NULL;
    }
    purse->users++; /* it pays for `begun`, whatever becomes of the peer */
    c->hearing = p;
    p->in = EL_BUF_INIT(&purse->conns, 0);
    coordinator_peer_take_bytes(p, &begun, bytes, n);
    c->hearing = NULL;
    el_buf_free(&begun);
    job_memory_leave(purse);
    if (peer_find(c, id) == p)
        conn_read_to(conn, c->piece, sizeof c->piece);
    coordinator_rearm(c);
    return NULL;
}

void peer_hear_waiting(struct coordinator *c)
{
    struct peer *p = c->fresh.first;
    while (c->waiting && p && !must_wait(p)) {
        if (!p->waits) {
            p = p->next;
            continue;
        }
        p->waits = false;
        c->waiting--;
        conn_resume(&p->conn);
        coordinator_peer_on_data(&p->conn, "", 0);
        p = c->fresh.first; /* others may have gone, too */
    }
}

static void coordinator_peer_on_closed(struct conn *conn, enum conn_why why, int sys)
{
    struct peer *p = (struct peer *)((char *)conn - offsetof(struct peer, conn));
    struct coordinator *c = p->c;
    char name[EL_ADDR_TEXT_MAX], text[128];
    uint64_t job = p->job, id = p->id;
    unsigned member = p->member;
    bool bound = p->role == PEER_AGENT;
    peer_name(p, name);
    switch (why) {
    case CONN_EOF: coordinator_say(c, EL_DEBUG, "%s: closed by the other side", name); break;
    case CONN_ERROR: coordinator_say(c, EL_DEBUG, "%s: %s", name, strerror_r(sys, text, sizeof text)); break;
    case CONN_OVERFLOW: coordinator_say(c, EL_WARN, "%s: closed: it does not read", name); break;
    case CONN_NO_MEMORY: say_no_room(p); break;
    }
    peer_free(p);
    if (bound)
        coordinator_closed(c, job, member, id);
    coordinator_rearm(c);
}

static const struct conn_ops peer_ops = {.data = coordinator_peer_on_data, .closed = coordinator_peer_on_closed};

/* --- coming in ---------------------------------------------------------------------------------------------------- */

/* The end of the connection on this side.  A v4 address may come in v6 clothes; el_addr has them the same. */
static void local_end(int fd, struct el_addr *out)
{
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof a;
    memset(out, 0, sizeof *out);
    if (getsockname(fd, &a.sa, &n))
        return;
    if (a.sa.sa_family == AF_INET) {
        memset(out->ip + 10, 0xff, 2);
        memcpy(out->ip + 12, &a.v4.sin_addr, 4);
    } else if (a.sa.sa_family == AF_INET6) {
        memcpy(out->ip, &a.v6.sin6_addr, sizeof out->ip);
    }
}

static void name_ends(struct peer *p)
{
    struct el_addr local, remote = p->addr;
    remote.port = 0;
    local_end(p->conn.fd, &local);
    el_addr_text(&remote, p->remote);
    el_addr_text(&local, p->local);
    p->same_host = el_addr_is_loopback(remote.ip) || memcmp(remote.ip, local.ip, sizeof local.ip) == 0;
}

/* The oldest of those that have said nothing, of the address that has most of them: a crowd makes room by itself. NULL:
 * all have spoken, and wait for their turn. */
static struct peer *most_crowded(const struct coordinator *c)
{
    static const uint64_t seed[2] = {0x63726f7764, 1};
    unsigned count[256] = {0};
    struct peer *most = NULL;
    unsigned best = 0;
    for (struct peer *p = c->fresh.first; p; p = p->next)
        if (!p->waits)
            count[el_sip(seed, p->addr.ip, sizeof p->addr.ip) % 256]++;
    for (struct peer *p = c->fresh.first; p; p = p->next) {
        unsigned n = p->waits ? 0 : count[el_sip(seed, p->addr.ip, sizeof p->addr.ip) % 256];
        most = n > best ? p : most;
        best = n > best ? n : best;
    }
    return most;
}

void coordinator_accept(struct coordinator *c, int fd, const struct el_addr *addr, const char *bytes, size_t n)
{
    char name[EL_ADDR_TEXT_MAX];
    if (c->fresh.n >= COORDINATOR_NEW_MAX) {
        struct peer *oldest = most_crowded(c);
        if (!oldest) {
            coordinator_say(c, EL_WARN, "%s: closed: %u others wait for their turn", el_addr_text(addr, name),
                            c->fresh.n);
            close(fd);
            return;
        }
        coordinator_say(c, EL_WARN, "%s: closed: it said nothing, and others need the place", peer_name(oldest, name));
        peer_free(oldest);
    }
    bool full = !c->free_slots && more_slots(c);
    struct purse *purse = full ? NULL : job_memory_of(c, addr);
    struct peer *p = purse ? el_alloc(&c->mem, sizeof *p) : NULL;
    if (!p || conn_open(&p->conn, c->loop, fd, &peer_ops, &purse->conns, COORDINATOR_UNSENT_BYTES)) {
        coordinator_say(c, EL_WARN, "%s: closed: no memory", el_addr_text(addr, name));
        if (!p)
            close(fd);
        el_free(&c->mem, p);
        job_memory_leave(purse);
        return;
    }
    uint32_t slot = c->free_slot[--c->free_slots];
    c->slot[slot] = p;
    p->id = ++c->conns << SLOT_BITS | slot;
    p->c = c;
    p->addr = *addr;
    p->purse = purse;
    p->in = EL_BUF_INIT(&purse->conns, 0);
    name_ends(p);
    peer_move(p, PEER_NEW);
    conn_read_to(&p->conn, c->piece, sizeof c->piece);
    if (n)
        coordinator_peer_on_data(&p->conn, bytes, n);
    else
        coordinator_rearm(c);
}
