#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "probe/pair_tcp.h"
#include "probe/role.h"
#include "util/sockaddr.h"

enum { STRANGERS_MAX = 16 };
#define HELLO_LIMIT EL_SEC(5)

struct pair_tcp_end {
    const struct wire_pair_order *order;
    struct pair_clock clock;
    el_usec deadline; /* of all of it, by that clock */
    struct pair_id id;
    int fd;
    char local[EL_ADDR_TEXT_MAX], remote[EL_ADDR_TEXT_MAX], interface[64];
    bool bound;      /* the interface was named */
    bool small_went; /* the latency was measured: small messages go both ways */
    uint8_t out[PAIR_BLOCK_BYTES], want[PAIR_BLOCK_BYTES], in[PAIR_BLOCK_BYTES];
};

/* --- words --- */

static const char *peer_of(const struct pair_tcp_end *x)
{
    return x->order->peer[0] ? x->order->peer : "the other node";
}

/* "10.0.0.5:4711 (node-2), from 10.0.0.4 on eth0" */
static const char *way_of(const struct pair_tcp_end *x, char *to, size_t room_bytes)
{
    snprintf(to, room_bytes, "%s (%s), %s %s%s%s", x->remote, peer_of(x), x->order->guest ? "from" : "to", x->local,
             x->interface[0] ? " on " : "", x->interface);
    return to;
}

/* Says what went wrong: -1. */
static int pair_tcp_fail(const struct pair_tcp_end *x, const char *stage, const char *class, int sys, const char *fmt,
                         ...) __attribute__((format(printf, 5, 6)));
static int pair_tcp_fail(const struct pair_tcp_end *x, const char *stage, const char *class, int sys, const char *fmt,
                         ...)
{
    char text[700], slept[64] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (x->clock.slept)
        snprintf(slept, sizeof slept, " (this end stood still for %.1f s)", (double)x->clock.slept / 1e6);
    role_tell_error(stage, x->clock.slept ? "stalled" : class, sys ? sys : -1, "%s%s%s%s", text, sys ? ": " : "",
                    sys ? strerror(sys) : "", slept);
    return -1;
}

/* --- waiting --- */

static el_usec now(struct pair_tcp_end *x)
{
    return pair_clock_at(&x->clock, loop_clock());
}

static el_usec pair_tcp_until(struct pair_tcp_end *x, uint64_t ms)
{
    el_usec at = now(x) + EL_MS(ms);
    return at < x->deadline ? at : x->deadline;
}

/* Until one of them is ready, 1; 0: it is `at`. */
static int await(struct pair_tcp_end *x, struct pollfd *p, nfds_t n, el_usec at)
{
    for (;;) {
        el_usec t = now(x), left = at > t ? at - t : 0;
        int ms = (int)((left < PAIR_LOOK ? left : PAIR_LOOK) + 999) / 1000;
        int ready = poll(p, n, ms);
        if (ready > 0)
            return 1;
        if (!left && ready == 0)
            return 0;
    }
}

static int fail_silent(struct pair_tcp_end *x, const char *stage, el_usec after)
{
    char way[256];
    bool all = now(x) >= x->deadline;
    const char *hint = strcmp(stage, "bandwidth") == 0 && x->small_went
                           ? "; small messages went both ways: do packets of full size pass (MTU)?"
                           : "";
    return pair_tcp_fail(x, stage, "timeout", 0, "nothing came back from %s for %.3g s%s%s", way_of(x, way, sizeof way),
                         (double)after / 1e6, all ? ", and the time for the pair is over" : "", hint);
}

static int fail_lost(struct pair_tcp_end *x, const char *stage, int sys)
{
    char way[256];
    if (!sys)
        return pair_tcp_fail(x, stage, "network", 0, "the connection was closed by %s", way_of(x, way, sizeof way));
    return pair_tcp_fail(x, stage, "network", sys, "connection with %s", way_of(x, way, sizeof way));
}

/* All n bytes, in or out. */
static int pair_tcp_move(struct pair_tcp_end *x, const char *stage, bool send_it, void *bytes, size_t n)
{
    el_usec began = now(x), at = pair_tcp_until(x, x->order->quiet_ms);
    for (size_t done = 0; done < n;) {
        char *p = (char *)bytes + done;
        ssize_t k = send_it ? send(x->fd, p, n - done, MSG_NOSIGNAL) : recv(x->fd, p, n - done, 0);
        if (k > 0) {
            done += (size_t)k;
            continue;
        }
        if (k == 0 || (errno != EAGAIN && errno != EINTR))
            return fail_lost(x, stage, k == 0 ? 0 : errno);
        struct pollfd poll_it = {.fd = x->fd, .events = send_it ? POLLOUT : POLLIN};
        if (!await(x, &poll_it, 1, at))
            return fail_silent(x, stage, now(x) - began);
    }
    return 0;
}

static int put_header(struct pair_tcp_end *x, const char *stage, enum pair_kind kind, uint32_t count, uint64_t bytes)
{
    struct pair_header h = {kind, count, bytes};
    uint8_t raw[PAIR_HEADER_BYTES];
    pair_header_put(&h, raw);
    return pair_tcp_move(x, stage, true, raw, sizeof raw);
}

/* --- meeting --- */

static void learn_names(struct pair_tcp_end *x)
{
    struct sockaddr_storage sa;
    struct el_addr a;
    socklen_t n = sizeof sa;
    if (getsockname(x->fd, (struct sockaddr *)&sa, &n) == 0 && el_addr_from_sockaddr((struct sockaddr *)&sa, &a)) {
        el_addr_interface(a.ip, x->interface, sizeof x->interface);
        a.port = 0;
        el_addr_text(&a, x->local);
    }
    n = sizeof sa;
    if (getpeername(x->fd, (struct sockaddr *)&sa, &n) == 0 && el_addr_from_sockaddr((struct sockaddr *)&sa, &a))
        el_addr_text(&a, x->remote);
}

static int open_socket(struct pair_tcp_end *x, const char *stage, const struct el_addr *own, bool bind_it)
{
    struct sockaddr_storage sa;
    char text[EL_ADDR_TEXT_MAX];
    socklen_t n = el_addr_to_sockaddr(own, &sa);
    x->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (x->fd < 0)
        return pair_tcp_fail(x, stage, "system", errno, "socket");
    /* By an interface that is named, whatever the routes say; who may not is left to them. */
    if (x->bound)
        (void)setsockopt(x->fd, SOL_SOCKET, SO_BINDTODEVICE, x->interface, (socklen_t)strlen(x->interface));
    if (bind_it && bind(x->fd, (struct sockaddr *)&sa, n) < 0)
        return pair_tcp_fail(x, stage, "config", errno, "cannot use the address %s", el_addr_text(own, text));
    return 0;
}

/* like: of whose family it must be; NULL: any. */
static int own_address(struct pair_tcp_end *x, const char *stage, const uint8_t *like, struct el_addr *out)
{
    *out = (struct el_addr){.port = 0};
    x->bound = !el_addr_parse(x->order->local, out->ip);
    if (x->bound && !el_addr_of_interface(x->order->local, like, out->ip))
        return pair_tcp_fail(x, stage, "network", 0, "this node has no interface %s with an address", x->order->local);
    if (x->bound)
        snprintf(x->interface, sizeof x->interface, "%s", x->order->local);
    else
        el_addr_interface(out->ip, x->interface, sizeof x->interface);
    el_addr_text(out, x->local);
    return 0;
}

/* A connection that has not shown the token yet. */
struct caller {
    int fd;
    size_t have;
    el_usec until;
    uint8_t said[PAIR_HELLO_BYTES];
};

/* 1: it is the guest; -1: a stranger; 0: wait. */
static int pair_tcp_hear(struct pair_tcp_end *x, struct caller *c)
{
    uint8_t want[PAIR_HELLO_BYTES];
    ssize_t n = recv(c->fd, c->said + c->have, sizeof c->said - c->have, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return -1;
    c->have += n > 0 ? (size_t)n : 0;
    pair_hello(x->id.token, false, want);
    if (memcmp(c->said, want, c->have) != 0)
        return -1;
    return c->have == sizeof c->said ? 1 : now(x) >= c->until ? -1 : 0;
}

/* A new connection takes the place of the oldest where there is none left. */
static void let_in(struct pair_tcp_end *x, int listener, struct caller *callers)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct caller *at = &callers[0];
    for (int i = 1; i < STRANGERS_MAX && at->fd >= 0; i++)
        if (callers[i].fd < 0 || callers[i].until < at->until)
            at = &callers[i];
    if (fd < 0)
        return;
    if (at->fd >= 0)
        close(at->fd);
    *at = (struct caller){.fd = fd, .until = now(x) + HELLO_LIMIT};
}

/* Waits for the guest among all who connect. */
static int accept_guest(struct pair_tcp_end *x, int listener, el_usec at)
{
    struct caller callers[STRANGERS_MAX];
    struct pollfd p[STRANGERS_MAX + 1];
    for (int i = 0; i < STRANGERS_MAX; i++)
        callers[i].fd = -1;
    x->fd = -1;
    while (x->fd < 0) {
        p[STRANGERS_MAX] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < STRANGERS_MAX; i++)
            p[i] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
        if (!await(x, p, STRANGERS_MAX + 1, at))
            break;
        for (int i = 0; i < STRANGERS_MAX; i++) {
            int who = callers[i].fd >= 0 ? pair_tcp_hear(x, &callers[i]) : 0;
            if (who > 0 && x->fd < 0)
                x->fd = callers[i].fd;
            else if (who)
                close(callers[i].fd);
            if (who)
                callers[i].fd = -1;
        }
        if (p[STRANGERS_MAX].revents)
            let_in(x, listener, callers);
    }
    for (int i = 0; i < STRANGERS_MAX; i++)
        if (callers[i].fd >= 0)
            close(callers[i].fd);
    return x->fd < 0 ? -1 : 0;
}

static int meet_as_host(struct pair_tcp_end *x)
{
    struct el_addr own;
    struct sockaddr_storage sa;
    socklen_t n = sizeof sa;
    char text[WIRE_ID_MAX];
    uint8_t hello[PAIR_HELLO_BYTES];
    struct probe_wire w;
    if (own_address(x, "listen", NULL, &own) < 0 || open_socket(x, "listen", &own, true) < 0)
        return -1;
    int listener = x->fd;
    if (listen(listener, STRANGERS_MAX) < 0 || getsockname(listener, (struct sockaddr *)&sa, &n) < 0 ||
        getrandom(x->id.token, sizeof x->id.token, 0) != (ssize_t)sizeof x->id.token)
        return pair_tcp_fail(x, "listen", "system", errno, "cannot listen on %s", x->local);
    el_addr_from_sockaddr((struct sockaddr *)&sa, &x->id.addr);
    pair_id_text(&x->id, text, sizeof text);
    wire_init(&w, WIRE_ID);
    w.u.id.id = text;
    role_tell(&w);
    el_addr_text(&x->id.addr, text);
    int met = accept_guest(x, listener, pair_tcp_until(x, x->order->meet_ms));
    close(listener);
    if (met < 0)
        return pair_tcp_fail(x, "connect", "timeout", 0, "%s did not connect to %s%s%s within %.3g s", peer_of(x), text,
                             x->interface[0] ? " on " : "", x->interface, (double)x->order->meet_ms / 1e3);
    learn_names(x);
    pair_hello(x->id.token, true, hello);
    return pair_tcp_move(x, "connect", true, hello, sizeof hello);
}

static int connect_to(struct pair_tcp_end *x)
{
    struct sockaddr_storage sa;
    socklen_t n = el_addr_to_sockaddr(&x->id.addr, &sa), size = sizeof(int);
    struct pollfd p = {.fd = x->fd, .events = POLLOUT};
    char way[256];
    int sys = 0;
    el_addr_text(&x->id.addr, x->remote);
    if (connect(x->fd, (struct sockaddr *)&sa, n) < 0 && errno != EINPROGRESS)
        sys = errno;
    learn_names(x); /* the address that the kernel has chosen, where none was named */
    el_addr_text(&x->id.addr, x->remote);
    if (!sys && !await(x, &p, 1, pair_tcp_until(x, x->order->meet_ms)))
        return pair_tcp_fail(
            x, "connect", "timeout", 0,
            "nothing came back from %s for %.3g s: does a firewall drop connections, or is there no way?",
            way_of(x, way, sizeof way), (double)x->order->meet_ms / 1e3);
    if (!sys && getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &sys, &size) < 0)
        sys = errno;
    return sys ? pair_tcp_fail(x, "connect", "network", sys, "cannot connect to %s", way_of(x, way, sizeof way)) : 0;
}

static int meet_as_guest(struct pair_tcp_end *x)
{
    struct el_addr own = {.port = 0};
    uint8_t hello[PAIR_HELLO_BYTES], want[PAIR_HELLO_BYTES];
    char way[256];
    if (!pair_id_parse(x->order->id, &x->id))
        return pair_tcp_fail(x, "connect", "internal", 0, "\"%s\" does not say where the other end is", x->order->id);
    if (x->order->local[0] && own_address(x, "connect", x->id.addr.ip, &own) < 0)
        return -1;
    /* Without an address of its own the socket is of the other end's family. */
    if (open_socket(x, "connect", x->order->local[0] ? &own : &x->id.addr, x->order->local[0] != 0) < 0 ||
        connect_to(x) < 0)
        return -1;
    pair_hello(x->id.token, false, hello);
    if (pair_tcp_move(x, "connect", true, hello, sizeof hello) < 0 ||
        pair_tcp_move(x, "connect", false, hello, sizeof hello) < 0)
        return -1;
    pair_hello(x->id.token, true, want);
    if (memcmp(hello, want, sizeof want) != 0)
        return pair_tcp_fail(x, "connect", "network", 0, "somebody else answers at %s", way_of(x, way, sizeof way));
    return 0;
}

/* --- measuring --- */

static void tell_times(const struct pair_tcp_end *x, const char *name, const char *unit, struct pair_times *t)
{
    struct pair_summary s = pair_times_of(t);
    struct probe_wire w;
    if (!s.n)
        return;
    wire_init(&w, WIRE_M);
    w.u.m = (struct wire_m){.name = name,
                            .rail = (int64_t)x->order->rail,
                            .n = s.n,
                            .min = s.min,
                            .median = s.median,
                            .p95 = s.p95,
                            .unit = unit};
    role_tell(&w);
}

/* As many as are wanted, or as there is time for: on a way that loses much each takes long. */
static int ping(struct pair_tcp_end *x)
{
    static uint8_t message[PAIR_LATENCY_BYTES];
    struct pair_times times = {.n = 0};
    uint32_t count = (uint32_t)x->order->latency_count;
    uint32_t left = PAIR_WARM_UP + (count < PAIR_COUNT_MAX ? count : PAIR_COUNT_MAX);
    el_usec enough = now(x) + EL_MS(x->order->spend_ms);
    bool warm = false;
    while (left && !(times.n && now(x) >= enough)) {
        uint32_t n = !warm ? PAIR_WARM_UP : left < PAIR_PINGS ? left : PAIR_PINGS;
        if (put_header(x, "latency", PAIR_LATENCY, n, 0) < 0)
            return -1;
        for (uint32_t i = 0; i < n; i++) {
            el_usec began = loop_clock();
            if (pair_tcp_move(x, "latency", true, message, sizeof message) < 0 ||
                pair_tcp_move(x, "latency", false, message, sizeof message) < 0)
                return -1;
            if (warm)
                pair_times_add(&times, (double)(loop_clock() - began) / 2);
        }
        left -= n;
        warm = true;
    }
    x->small_went = true;
    tell_times(x, "tcp_lat_us", "us", &times);
    return 0;
}

static int pong(struct pair_tcp_end *x, uint32_t count)
{
    static uint8_t message[PAIR_LATENCY_BYTES];
    for (uint32_t i = 0; i < count; i++)
        if (pair_tcp_move(x, "latency", false, message, sizeof message) < 0 ||
            pair_tcp_move(x, "latency", true, message, sizeof message) < 0)
            return -1;
    x->small_went = true;
    return 0;
}

/* One direction of an exchange. */
struct pair_tcp_way {
    uint64_t done, bytes;
    uint32_t exchange;
};

static void stamp_at(const struct pair_tcp_way *w, uint8_t *block)
{
    if (w->done % PAIR_BLOCK_BYTES == 0)
        pair_stamp(block, w->exchange, w->done / PAIR_BLOCK_BYTES);
}

/* As much as goes now.  1: something went; 0: nothing; -1 failed and said so. */
static int pair_tcp_send_some(struct pair_tcp_end *x, struct pair_tcp_way *w)
{
    size_t at = w->done % PAIR_BLOCK_BYTES;
    stamp_at(w, x->out);
    ssize_t n = send(x->fd, x->out + at, PAIR_BLOCK_BYTES - at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return fail_lost(x, "bandwidth", errno);
    w->done += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static int pair_tcp_receive_some(struct pair_tcp_end *x, struct pair_tcp_way *w)
{
    size_t at = w->done % PAIR_BLOCK_BYTES;
    char way[256];
    stamp_at(w, x->want);
    ssize_t n = recv(x->fd, x->in + at, PAIR_BLOCK_BYTES - at, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return fail_lost(x, "bandwidth", n == 0 ? 0 : errno);
    if (n > 0 && memcmp(x->in + at, x->want + at, (size_t)n) != 0)
        return pair_tcp_fail(x, "content", "hardware", 0,
                             "what came from %s is not what was sent: within %zd bytes from byte %llu of exchange %u",
                             way_of(x, way, sizeof way), n, (unsigned long long)w->done, w->exchange);
    w->done += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Both ways at once.  The time it took. */
static int exchange(struct pair_tcp_end *x, uint64_t bytes, uint32_t number, el_usec *took)
{
    struct pair_tcp_way out = {.bytes = bytes, .exchange = number}, in = out;
    el_usec began = loop_clock(), moved = now(x);
    while (out.done < bytes || in.done < bytes) {
        int sent = out.done < bytes ? pair_tcp_send_some(x, &out) : 0;
        int got = sent >= 0 && in.done < bytes ? pair_tcp_receive_some(x, &in) : 0;
        if (sent < 0 || got < 0)
            return -1;
        if (sent || got) {
            moved = now(x);
            if (moved < x->deadline)
                continue;
            char way[256];
            return pair_tcp_fail(x, "bandwidth", "slow", 0,
                                 "the time for the pair is over, and data still comes from %s",
                                 way_of(x, way, sizeof way));
        }
        struct pollfd p = {.fd = x->fd,
                           .events = (short)((out.done < bytes ? POLLOUT : 0) | (in.done < bytes ? POLLIN : 0))};
        el_usec at = moved + EL_MS(x->order->quiet_ms);
        if (!await(x, &p, 1, at < x->deadline ? at : x->deadline))
            return fail_silent(x, "bandwidth", now(x) - moved);
    }
    *took = loop_clock() - began;
    return 0;
}

static void count_exchange(struct pair_times *t, uint64_t bytes, el_usec took)
{
    pair_times_add(t, (double)bytes / ((double)(took ? took : 1) * 1e3));
}

static void tell_one(const struct pair_tcp_end *x, const char *name, const char *unit, double value)
{
    struct pair_times one = {.n = 0};
    pair_times_add(&one, value);
    tell_times(x, name, unit, &one);
}

/* What the kernel has sent again; told of each direction by the end that sends. */
static void tell_losses(const struct pair_tcp_end *x)
{
    struct tcp_info info = {0}; /* an older kernel fills less of it */
    socklen_t n = sizeof info;
    if (getsockopt(x->fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0)
        return;
    tell_one(x, "tcp_retrans", "", info.tcpi_total_retrans);
    if (info.tcpi_data_segs_out)
        tell_one(x, "tcp_loss", "%",
                 pair_loss_percent(info.tcpi_data_segs_out, info.tcpi_total_retrans, info.tcpi_dsack_dups));
}

static int lead(struct pair_tcp_end *x)
{
    struct pair_times times = {.n = 0};
    struct pair_pace pace;
    uint8_t raw[PAIR_HEADER_BYTES];
    if (ping(x) < 0)
        return -1;
    pair_pace_init(&pace, x->order->bytes, (unsigned)x->order->count, EL_MS(x->order->spend_ms));
    for (uint64_t bytes; (bytes = pair_pace_next(&pace));) {
        el_usec took;
        if (put_header(x, "bandwidth", PAIR_EXCHANGE, pace.done, bytes) < 0 || exchange(x, bytes, pace.done, &took) < 0)
            return -1;
        if (pair_pace_counts(&pace))
            count_exchange(&times, bytes, took);
        pair_pace_took(&pace, took);
    }
    if (put_header(x, "end", PAIR_END, 0, 0) < 0 || pair_tcp_move(x, "end", false, raw, sizeof raw) < 0)
        return -1;
    tell_times(x, "tcp_bw64m", "GB/s", &times);
    return 0;
}

static int pair_tcp_follow(struct pair_tcp_end *x)
{
    struct pair_times times = {.n = 0};
    struct pair_header h;
    uint8_t raw[PAIR_HEADER_BYTES];
    char way[256];
    for (;;) {
        el_usec took;
        if (pair_tcp_move(x, "bandwidth", false, raw, sizeof raw) < 0)
            return -1;
        if (!pair_header_get(raw, &h))
            return pair_tcp_fail(x, "content", "network", 0, "%s does not speak as this version of elrun does",
                                 way_of(x, way, sizeof way));
        if (h.kind == PAIR_END)
            break;
        if (h.kind == PAIR_LATENCY ? pong(x, h.count) < 0 : exchange(x, h.bytes, h.count, &took) < 0)
            return -1;
        if (h.kind == PAIR_EXCHANGE && h.count >= PAIR_WARM_UP)
            count_exchange(&times, h.bytes, took);
    }
    if (put_header(x, "end", PAIR_END, 0, 0) < 0)
        return -1;
    tell_times(x, "tcp_bw64m", "GB/s", &times);
    return 0;
}

static void tell_met(const struct pair_tcp_end *x, el_usec took)
{
    struct probe_wire w;
    int mss = 0;
    socklen_t n = sizeof mss;
    (void)getsockopt(x->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &n);
    wire_init(&w, WIRE_INIT);
    w.u.init = (struct wire_init){.ms = (double)took / 1e3,
                                  .interface = x->interface,
                                  .local = x->local,
                                  .remote = x->remote,
                                  .mss = mss > 0 ? (uint64_t)mss : 0};
    role_tell(&w);
}

static int pair_tcp_run(struct pair_tcp_end *x)
{
    int one = 1;
    el_usec began = now(x);
    if ((x->order->guest ? meet_as_guest(x) : meet_as_host(x)) < 0)
        return -1;
    (void)setsockopt(x->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    tell_met(x, now(x) - began);
    pair_fill(x->id.token, !x->order->guest, x->out);
    pair_fill(x->id.token, x->order->guest, x->want);
    if ((x->order->guest ? pair_tcp_follow(x) : lead(x)) < 0)
        return -1;
    tell_losses(x);
    return 0;
}

int pair_tcp_role(const struct probe_wire *order)
{
    static struct pair_tcp_end x;
    struct probe_wire w;
    if (order->type != WIRE_PAIR_ORDER)
        return EL_EXIT_USAGE;
    x.order = &order->u.pair_order;
    x.fd = -1;
    pair_clock_init(&x.clock, loop_clock());
    x.deadline = x.clock.now + EL_MS(x.order->limit_ms);
    wire_init(&w, WIRE_END);
    w.u.end.ok = pair_tcp_run(&x) == 0;
    role_tell(&w);
    return 0;
}
