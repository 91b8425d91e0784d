#include "store/server_private.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/peer_uid.h"
#include "store/listen.h"
#include "util/array.h"
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
    if (s->slow.first && s->slow.first->since + s->conf.read_max < at)
        at = s->slow.first->since + s->conf.read_max;
    if (s->resume_at < at)
        at = s->resume_at;
    if (s->report_at < at)
        at = s->report_at;
    el_usec dropped_at = server_dropped_at(s);
    loop_timer_at(s->timer, dropped_at < at ? dropped_at : at);
}

void server_silent_add(struct silent *in, struct client *c)
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

void server_silent_remove(struct client *c)
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
    server_silent_add(&s->fresh, c);
}

static void accept_resume(struct store_server *s)
{
    if (s->resume_at == EL_NEVER)
        return;
    s->resume_at = EL_NEVER;
    for (unsigned i = 0; i < s->listeners_n; i++)
        loop_fd_set(s->listeners[i].watch, LOOP_READ);
}

void server_client_free(struct client *c)
{
    struct store_server *s = c->server;
    session_close(&c->session);
    conn_close(&c->conn);
    el_buf_free(&c->rest);
    server_silent_remove(c);
    server_turn_leave(c);
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

/* --- memory ------------------------------------------------------------------------------------------------------- */

static size_t server_held(const struct client *c)
{
    return conn_held(&c->conn) + session_costs(&c->session) + c->rest.cap;
}

static bool shed(struct client *c)
{
    if (c->feeding || session_busy(&c->session) || !conn_shed(&c->conn))
        return false;
    el_buf_free(&c->rest);
    c->rest_at = 0;
    return session_shed(&c->session);
}

/* Memory is short.  Whoever asks for it pays, unless answers that nobody fetches and requests that do not go on take
 * more than half of all there is: then it is the client that holds most of those.  It is only broken off here; the loop
 * closes it later. */
static bool server_reclaim(struct el_mem *mem)
{
    struct store_server *s = (struct store_server *)((char *)mem - offsetof(struct store_server, mem));
    struct client *most = NULL;
    size_t sum = 0;
    if (s->no_hoards_at == loop_now(s->loop))
        return false; /* looked through in this turn: a large answer asks often */
    size_t mosts = 0;
    for (struct client *c = s->clients; c; c = c->next) {
        size_t n = server_held(c);
        sum += n;
        if (n > mosts) {
            most = c;
            mosts = n;
        }
    }
    if (mosts && sum > mem->limit_bytes / 2 && shed(most))
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

static bool server_permitted(const struct store_server *s, int fd, const struct el_addr *peer)
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
    server_client_free(oldest);
    return true;
}

static void client_new(struct store_server *s, int fd, const struct el_addr *peer)
{
    char address[EL_ADDR_TEXT_MAX];
    if (!server_permitted(s, fd, peer)) {
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
    if (!c || conn_open(&c->conn, s->loop, fd, &server_client_ops, &s->mem, SERVER_UNSENT_MAX)) {
        server_say(s, EL_WARN, "%s: refused: no memory", el_addr_text(peer, address));
        if (!c)
            close(fd);
        el_free(&s->mem, c);
        return;
    }
    c->rest = EL_BUF_INIT(&s->mem, 0);
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

/* The kernel has taken all that it was given, so it has read some: that we stood still for so long is not its fault. */
static bool has_read(const struct client *c)
{
    struct pollfd p = {.fd = c->conn.fd, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

/* PyTorch before 2.1 opens a second connection and says nothing on it: its client spins if it is closed.  So may one of
 * whom nothing was heard stay, if c10d is for it, while such are few beside the others. */
static bool may_be_quiet(const struct store_server *s, const struct client *c)
{
    return !c->session.hello_n && s->quiet.n < s->clients_n / 2 + QUIET_MORE && server_admits(s, c);
}

static void drop_slow(struct store_server *s)
{
    while (s->slow.first && s->slow.first->since + s->conf.read_max <= loop_now(s->loop)) {
        struct client *c = s->slow.first;
        char text[128];
        if (has_read(c)) {
            server_silent_remove(c);
            c->since = loop_now(s->loop);
            server_silent_add(&s->slow, c);
            continue;
        }
        snprintf(text, sizeof text, "it has not read for %lld s what it asked for",
                 (long long)(s->conf.read_max / EL_SEC(1)));
        server_say_closed(c, EL_WARN, text);
        server_client_free(c);
    }
}

static void server_on_timer(void *ctx)
{
    struct store_server *s = ctx;
    el_usec now = loop_now(s->loop);
    while (s->fresh.first && s->fresh.first->since + STORE_HELLO_MAX <= now) {
        struct client *c = s->fresh.first;
        server_silent_remove(c);
        if (has_spoken(c)) {
            fresh_add(c);
            continue;
        }
        if (may_be_quiet(s, c)) {
            server_silent_add(&s->quiet, c);
            continue;
        }
        server_say_closed(c, EL_DEBUG, "it did not say that it is a c10d client");
        server_client_free(c);
    }
    drop_slow(s);
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
    s->mem.reclaim = server_reclaim;
    size_t leaves = s->mem.limit_bytes / 8 < STORE_LEAVES_BYTES ? s->mem.limit_bytes / 8 : STORE_LEAVES_BYTES;
    s->kv_mem = (struct el_mem){.fail_after = -1, .parent = &s->mem, .leaves_bytes = leaves};
    s->reply = EL_BUF_INIT(&s->mem, 0);
    s->resume_at = s->report_at = EL_NEVER;
    if (!s->conf.read_max)
        s->conf.read_max = STORE_READ_MAX;
    if (!s->conf.clients_max)
        s->conf.clients_max = clients_possible();
    snprintf(s->name, sizeof s->name, "%s", conf->name ? conf->name : "store");
    s->conf.bind = s->conf.name = NULL; /* the caller's */
    s->allow = el_alloc(NULL, conf->allow_n * sizeof *s->allow);
    s->worker_pid = el_alloc(NULL, conf->world_size * sizeof *s->worker_pid);
    s->workers_n = conf->world_size;
    s->kv = conf->c10d_refused ? NULL : kv_new(&s->kv_mem, seed);
    s->timer = loop_timer_new(l, server_on_timer, s);
    s->chore = loop_chore_new(l, server_turn, s);
    if (!s->allow || !s->worker_pid || (!s->kv && !conf->c10d_refused) || !s->timer || !s->chore)
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
        server_client_free(s->clients);
    kv_free(s->kv);
    el_buf_free(&s->reply);
    assert(s->mem.used_bytes == 0);
    loop_timer_free(s->timer);
    loop_chore_free(s->chore);
    el_free(NULL, s->worker_pid);
    el_free(NULL, s->allow);
    el_free(NULL, s);
}

int store_server_c10d(struct store_server *s, const char *why, struct el_err *e)
{
    uint8_t seed[16];
    struct kv *fresh = NULL;
    if (!why && (getrandom(seed, sizeof seed, 0) != sizeof seed || !(fresh = kv_new(&s->kv_mem, seed))))
        return el_fail(e, EL_EXIT_OSERR, "%s: no memory", s->name);
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->session.state != SESSION_NEW)
            server_client_free(c);
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
