#include "store/server_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/peer_uid.h"
#include "store/listen.h"
#include "util/auto.h"
#include "util/likely.h"
#include "util/log.h"
#include "util/sockaddr.h"

enum {
    ACCEPTS_PER_TURN = 1024, /* so that those who are connected are served meanwhile */
    QUIET_MORE = 256,        /* that stay silent, beside as many as the others are */
    SPARE_DESCRIPTORS = 32   /* left to the rest of the process when clients_max is the default */
};

#define ACCEPT_PAUSE EL_MS(500) /* when descriptors have run out and nobody leaves */
#define SILENT_MIN   EL_SEC(1)  /* then those go who have been silent for longer */

/* --- lists of clients --------------------------------------------------------------------------------------------- */

void server_set_timer(struct store_server *s)
{
    el_usec at = s->fresh.first ? s->fresh.first->since + STORE_HELLO_MAX : EL_NEVER;
    if (s->resume_at < at)
        at = s->resume_at;
    if (s->report_at < at)
        at = s->report_at;
    el_usec dropped_at = server_dropped_at(s);
    loop_timer_at(s->timer, dropped_at < at ? dropped_at : at);
}

static void silent_add(struct silent *in, struct client *c)
{
    c->in = in;
    c->silent_prev = in->last;
    c->silent_next = NULL;
    if (in->last)
        in->last->silent_next = c;
    else
        in->first = c;
    in->last = c;
    in->n++;
}

static void silent_remove(struct client *c)
{
    struct silent *in = c->in;
    if (!in)
        return;
    c->in = NULL;
    in->n--;
    if (c->silent_prev)
        c->silent_prev->silent_next = c->silent_next;
    else
        in->first = c->silent_next;
    if (c->silent_next)
        c->silent_next->silent_prev = c->silent_prev;
    else
        in->last = c->silent_prev;
}

static void fresh_add(struct client *c)
{
    struct store_server *s = c->server;
    c->since = loop_now(s->loop);
    silent_add(&s->fresh, c);
}

static void accept_resume(struct store_server *s)
{
    if (s->resume_at == EL_NEVER)
        return;
    s->resume_at = EL_NEVER;
    for (unsigned i = 0; i < s->listeners_n; i++)
        loop_fd_set(s->listeners[i].watch, LOOP_READ);
}

/* The only way for a client to go. */
static void client_free(struct client *c)
{
    struct store_server *s = c->server;
    session_close(&c->session);
    conn_close(&c->conn);
    silent_remove(c);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->clients = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->clients_n--;
    el_free(&s->mem, c);
    accept_resume(s);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static struct client *client_of(struct conn *conn)
{
    return (struct client *)((char *)conn - offsetof(struct client, conn));
}

static struct client *client_of_wait(struct kv_wait *w)
{
    return (struct client *)((char *)session_of(w) - offsetof(struct client, session));
}

/* One byte to each whose wait is over. */
static void release(struct kv *kv)
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
    client_free(c);
    if (fd >= 0)
        s->conf.control(s->conf.control_ctx, fd, &peer, all.v, all.len);
    el_buf_free(&all);
}

/* Not to be served: handed over, or closed with a line. */
static void turn_away(struct client *c, const char *bytes, size_t n)
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
    client_free(c);
}

/* Asked when the first bytes come: the store of a round may have begun since the connection did. */
static bool admitted(const struct store_server *s, const struct client *c)
{
    if (!s->kv || (s->conf.own_user && peer_is_foreign(c->conn.fd)))
        return false;
    return !s->conf.admits || s->conf.admits(s->conf.control_ctx, &c->session.peer);
}

/* It has just shown that it is a client of c10d, or it waits, or the rest of a request has not come. */
static EL_COLD void note(struct client *c)
{
    struct store_server *s = c->server;
    struct session *w = &c->session;
    if (c->in && session_greeted(w))
        silent_remove(c);
    if (w->in.len) {
        size_t n = 0;
        char *to = session_room(w, &n);
        conn_read_to(&c->conn, to, n);
    }
    if (w->wait.state != KV_WAIT_PENDING)
        return;
    if (!w->wait.since)
        w->wait.since = loop_now(s->loop);
    if (s->report_at == EL_NEVER && s->conf.wait_report) {
        s->report_at = loop_now(s->loop) + s->conf.wait_report;
        server_set_timer(s);
    }
}

static struct el_buf *on_data(struct conn *conn, const char *bytes, size_t n)
{
    struct client *c = client_of(conn);
    struct store_server *s = c->server;
    struct session *w = &c->session;
    if (EL_UNLIKELY(w->state == SESSION_NEW))
        w->kv = admitted(s, c) ? s->kv : NULL;
    for (;;) {
        size_t used = 0;
        enum session_step step = session_feed(w, bytes, n, &used, &s->reply);
        if (w->kv)
            release(w->kv);
        if (EL_LIKELY(step == SESSION_MORE))
            break;
        conn_send(conn, s->reply.v, s->reply.len);
        s->reply.len = 0;
        bytes += used;
        n -= used;
        if (step == SESSION_END) {
            el_buf_free(&s->reply); /* what was refused for want of memory must not keep it */
            turn_away(c, bytes, n);
            return NULL;
        }
        if (conn_broken(conn))
            break;
    }
    if (EL_UNLIKELY(c->in || w->in.len || w->wait.state == KV_WAIT_PENDING))
        note(c);
    return &s->reply;
}

static void on_closed(struct conn *conn, enum conn_why why, int sys)
{
    struct client *c = client_of(conn);
    char text[128];
    switch (why) {
    case CONN_EOF: server_say_closed(c, EL_DEBUG, "by the client"); break;
    case CONN_ERROR: server_say_closed(c, EL_DEBUG, strerror_r(sys, text, sizeof text)); break;
    case CONN_OVERFLOW:
        snprintf(text, sizeof text, "it does not read: %u MiB are unsent", STORE_UNSENT_MAX_BYTES >> 20);
        server_say_closed(c, EL_WARN, text);
        break;
    case CONN_NO_MEMORY:
        server_say_closed(
            c, EL_WARN,
            "it does not read, or not finish what it sends, and the store's memory limit is reached (--max-memory)");
        break;
    }
    client_free(c);
}

static const struct conn_ops client_ops = {.data = on_data, .closed = on_closed};

/* --- memory ------------------------------------------------------------------------------------------------------- */

static size_t held(const struct client *c)
{
    return conn_held(&c->conn) + c->session.in.cap;
}

/* Memory is short.  Whoever asks for it pays, unless answers that nobody fetches and requests that do not go on take
 * more than half of all there is: then it is the client that holds most of those.  It is only broken off here; the loop
 * closes it later. */
static bool reclaim(struct el_mem *mem)
{
    struct store_server *s = (struct store_server *)((char *)mem - offsetof(struct store_server, mem));
    struct client *most = s->clients;
    size_t sum = 0;
    if (s->no_hoards_at == loop_now(s->loop))
        return false; /* looked through in this turn: a large answer asks often */
    for (struct client *c = most; c; c = c->next) {
        sum += held(c);
        most = held(c) > held(most) ? c : most;
    }
    if (sum > mem->limit_bytes / 2 && !most->session.busy && conn_shed(&most->conn) && session_shed(&most->session))
        return true;
    s->no_hoards_at = loop_now(s->loop);
    return false;
}

/* --- coming in ---------------------------------------------------------------------------------------------------- */

/* Who comes from this host is at the same address at both ends. */
static bool is_own_host(int fd, const struct el_addr *peer)
{
    struct sockaddr_storage sa;
    struct el_addr own;
    socklen_t n = sizeof sa;
    return el_addr_is_loopback(peer->ip) ||
           (getsockname(fd, (struct sockaddr *)&sa, &n) == 0 && el_addr_from_sockaddr((struct sockaddr *)&sa, &own) &&
            memcmp(own.ip, peer->ip, sizeof own.ip) == 0);
}

static bool permitted(const struct store_server *s, int fd, const struct el_addr *peer)
{
    bool yes = !s->conf.allow_n || is_own_host(fd, peer);
    for (size_t i = 0; i < s->conf.allow_n && !yes; i++)
        yes = el_cidr_has(&s->allow[i], peer->ip);
    return yes;
}

/* Makes room by the one that has been silent for longest.  False: everybody has greeted. */
static bool drop_oldest_silent(struct store_server *s, const char *why)
{
    struct client *oldest = s->quiet.first ? s->quiet.first : s->fresh.first;
    if (!oldest)
        return false;
    server_say_closed(oldest, EL_WARN, why);
    client_free(oldest);
    return true;
}

static void client_new(struct store_server *s, int fd, const struct el_addr *peer)
{
    char address[EL_ADDR_TEXT_MAX];
    if (!permitted(s, fd, peer)) {
        server_say(s, EL_WARN, "%s: refused: not in the list of --allow or --control-allow",
                   el_addr_text(peer, address));
        close(fd);
        return;
    }
    if (s->clients_n >= s->conf.clients_max && !drop_oldest_silent(s, "said nothing, and others need the place")) {
        server_say(s, EL_WARN, "%s: refused: %u clients are connected (--max-clients)", el_addr_text(peer, address),
                   s->conf.clients_max);
        close(fd);
        return;
    }
    struct client *c = el_alloc(&s->mem, sizeof *c);
    if (!c || conn_open(&c->conn, s->loop, fd, &client_ops, &s->mem, STORE_UNSENT_MAX_BYTES)) {
        server_say(s, EL_WARN, "%s: refused: no memory", el_addr_text(peer, address));
        if (!c)
            close(fd);
        el_free(&s->mem, c);
        return;
    }
    session_init(&c->session, NULL, &s->mem);
    c->session.peer = *peer;
    c->server = s;
    c->next = s->clients;
    if (s->clients)
        s->clients->prev = c;
    s->clients = c;
    s->clients_n++;
    fresh_add(c);
}

/* Descriptors (or the kernel's memory) have run out: no more until somebody leaves or some time has passed. */
static void accept_pause(struct store_server *s, int sys)
{
    char text[128];
    if (!s->full)
        server_say(s, EL_WARN, "not accepting for a moment, %zu clients are connected: %s", s->clients_n,
                   strerror_r(sys, text, sizeof text));
    s->full = true;
    s->resume_at = loop_now(s->loop) + ACCEPT_PAUSE;
    for (unsigned i = 0; i < s->listeners_n; i++)
        loop_fd_set(s->listeners[i].watch, 0);
}

/* The kernel says EMFILE even if nobody stands in the queue: who came a moment ago must not pay for that. */
static bool drop_silent(struct store_server *s)
{
    if (!s->quiet.first && (!s->fresh.first || loop_now(s->loop) - s->fresh.first->since < SILENT_MIN))
        return false;
    return drop_oldest_silent(s, "said nothing, and descriptors have run out");
}

static void on_connect(void *ctx, unsigned events)
{
    struct listener *l = ctx;
    struct store_server *s = l->server;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct el_addr peer;
        int fd = listen_accept(l->fd, &peer);
        if (fd >= 0) {
            s->full = false;
            client_new(s, fd, &peer);
            continue;
        }
        if (errno == EAGAIN)
            break;
        int sys = errno;
        if (el_sys_scarce(sys) && !drop_silent(s)) {
            accept_pause(s, sys);
            break;
        }
        /* Else it was the trouble of the one who came (ECONNABORTED and the like). */
    }
    server_set_timer(s);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/* Something of it waits to be read: that we stood still for so long is not its fault. */
static bool has_spoken(const struct client *c)
{
    char byte;
    return recv(c->conn.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* PyTorch before 2.1 opens a second connection and says nothing on it: its client spins if it is closed.  So may one of
 * whom nothing was heard stay, if c10d is for it, while such are few beside the others. */
static bool may_be_quiet(const struct store_server *s, const struct client *c)
{
    return !c->session.hello_n && s->quiet.n < s->clients_n / 2 + QUIET_MORE && admitted(s, c);
}

static void on_timer(void *ctx)
{
    struct store_server *s = ctx;
    el_usec now = loop_now(s->loop);
    while (s->fresh.first && s->fresh.first->since + STORE_HELLO_MAX <= now) {
        struct client *c = s->fresh.first;
        silent_remove(c);
        if (has_spoken(c)) {
            fresh_add(c);
            continue;
        }
        if (may_be_quiet(s, c)) {
            silent_add(&s->quiet, c);
            continue;
        }
        server_say_closed(c, EL_DEBUG, "it did not say that it is a c10d client");
        client_free(c);
    }
    if (s->resume_at <= now)
        accept_resume(s);
    if (s->report_at <= now)
        server_report(s);
    server_say_dropped(s);
    server_set_timer(s);
}

/* --- the server --------------------------------------------------------------------------------------------------- */

static unsigned clients_possible(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur == RLIM_INFINITY || r.rlim_cur > 1u << 30)
        return 1u << 30;
    return r.rlim_cur > 2 * SPARE_DESCRIPTORS ? (unsigned)r.rlim_cur - SPARE_DESCRIPTORS : SPARE_DESCRIPTORS;
}

static int open_listeners(struct store_server *s, const char *bind, struct el_err *e)
{
    int fds[LISTEN_MAX];
    int n = listen_open(bind, s->conf.port, fds, &s->port, e);
    for (int i = 0; i < n; i++) {
        struct listener *l = &s->listeners[s->listeners_n++];
        *l = (struct listener){.server = s, .fd = fds[i]};
        l->watch = loop_fd_new(s->loop, fds[i], LOOP_READ, on_connect, l);
        if (!l->watch)
            n = el_fail(e, EL_EXIT_OSERR, "no memory");
    }
    return n < 0 ? -1 : 0;
}

struct store_server *store_server_new(struct loop *l, const struct store_server_conf *conf, struct el_err *e)
{
    struct store_server *s = el_alloc(NULL, sizeof *s);
    uint8_t seed[16];
    if (!s || getrandom(seed, sizeof seed, 0) != sizeof seed) {
        el_free(NULL, s);
        el_fail(e, EL_EXIT_OSERR, "store: no memory");
        return NULL;
    }
    s->loop = l;
    s->conf = *conf;
    s->mem = EL_MEM_INIT(conf->memory_max_bytes ? conf->memory_max_bytes : STORE_MEMORY_MAX_DEFAULT);
    s->mem.reclaim = reclaim;
    s->reply = EL_BUF_INIT(&s->mem, 0);
    s->resume_at = s->report_at = EL_NEVER;
    if (!s->conf.clients_max)
        s->conf.clients_max = clients_possible();
    snprintf(s->name, sizeof s->name, "%s", conf->name ? conf->name : "store");
    s->conf.bind = s->conf.name = NULL; /* the caller's */
    s->allow = el_alloc(NULL, conf->allow_n * sizeof *s->allow);
    s->worker_pid = el_alloc(NULL, conf->world_size * sizeof *s->worker_pid);
    s->workers_n = conf->world_size;
    s->kv = conf->c10d_refused ? NULL : kv_new(&s->mem, seed);
    s->timer = loop_timer_new(l, on_timer, s);
    if (!s->allow || !s->worker_pid || (!s->kv && !conf->c10d_refused) || !s->timer)
        el_fail(e, EL_EXIT_OSERR, "store: no memory");
    else if (open_listeners(s, conf->bind, e) == 0) {
        if (conf->allow_n)
            memcpy(s->allow, conf->allow, conf->allow_n * sizeof *s->allow);
        s->conf.allow = s->allow;
        return s;
    }
    el_prefix(e, "%s", s->name);
    store_server_free(s);
    return NULL;
}

void store_server_free(struct store_server *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->listeners_n; i++) {
        loop_fd_free(s->listeners[i].watch);
        close(s->listeners[i].fd);
    }
    s->listeners_n = 0;
    s->resume_at = EL_NEVER;
    while (s->clients)
        client_free(s->clients);
    kv_free(s->kv);
    el_buf_free(&s->reply);
    assert(s->mem.used_bytes == 0);
    loop_timer_free(s->timer);
    el_free(NULL, s->worker_pid);
    el_free(NULL, s->allow);
    el_free(NULL, s);
}

int store_server_c10d(struct store_server *s, const char *why, struct el_err *e)
{
    uint8_t seed[16];
    struct kv *fresh = NULL;
    if (!why && (getrandom(seed, sizeof seed, 0) != sizeof seed || !(fresh = kv_new(&s->mem, seed))))
        return el_fail(e, EL_EXIT_OSERR, "%s: no memory", s->name);
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->session.state != SESSION_NEW)
            client_free(c);
        else
            c->session.kv = NULL; /* its next bytes may still say that it is no client of c10d */
    }
    kv_free(s->kv);
    s->kv = fresh;
    s->conf.c10d_refused = why;
    s->report_at = EL_NEVER;
    server_set_timer(s);
    return 0;
}

int store_server_port(const struct store_server *s)
{
    return s->port;
}

size_t store_server_clients(const struct store_server *s)
{
    return s->clients_n;
}
