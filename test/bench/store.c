/* Load for a c10d store, the same for every server.  Prints "metric value" lines.
 *
 *   store load OP CONNECTIONS INFLIGHT SECONDS VALUE_BYTES PORT [PID]   OP: get, set (with an echo behind it), add
 *   store storm CONNECTIONS PORT                                       connect, hello, echo
 *   store release CONNECTIONS PORT                                     all wait for one key, one set
 *   store idle CONNECTIONS PORT PID                                    memory of each, processor time of doing nothing
 *
 * load: requests_per_s, and with PID user_ns (of the server, per request).  One thread, epoll. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "store/wire.h"

enum { CONNS_MAX = 20000, EVENTS = 1024, RECV_BYTES = 1 << 20 };

static int fds[CONNS_MAX];
static size_t got[CONNS_MAX];  /* bytes of an answer that is not whole yet */
static size_t owed[CONNS_MAX]; /* bytes of requests that the socket did not take */
static char *scratch;
static int ep;

static void die(const char *what)
{
    fprintf(stderr, "bench/store: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct cpu_s {
    double user, system;
};

/* Processor time of a process so far. */
static struct cpu_s cpu_s(int pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    const double hz = (double)sysconf(_SC_CLK_TCK);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        die(path);
    fclose(f);
    return (struct cpu_s){(double)user / hz, (double)system / hz};
}

static double resident_bytes(int pid)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%*u %lu", &pages) != 1)
        die(path);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void send_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0)
            die("send");
        bytes += sent;
        n -= (size_t)sent;
    }
}

static void recv_all(int fd, char *to, size_t n)
{
    while (n) {
        ssize_t r = recv(fd, to, n, 0);
        if (r <= 0)
            die("recv");
        n -= (size_t)r;
    }
}

static int dial(int port, int flags)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) && errno != EINPROGRESS)
        die("connect");
    return fd;
}

static void hello(struct el_buf *b)
{
    b->len = 0;
    wire_put_op(b, WIRE_MODERN, WIRE_VALIDATE);
    wire_put_u32(b, WIRE_MAGIC);
    wire_put_op(b, WIRE_MODERN, WIRE_PING);
    wire_put_u32(b, 7);
}

static void watch(int i, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = (uint32_t)i};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e) && errno != EEXIST)
        die("epoll_ctl");
    if (errno == EEXIST)
        epoll_ctl(ep, EPOLL_CTL_MOD, fds[i], &e);
}

/* All connected and greeted. */
static void open_all(int n, int port)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    char echo[4];
    hello(&b);
    for (int i = 0; i < n; i++) {
        fds[i] = dial(port, 0);
        send_all(fds[i], b.v, b.len);
    }
    for (int i = 0; i < n; i++)
        recv_all(fds[i], echo, sizeof echo);
    el_buf_free(&b);
}

/* --- load --------------------------------------------------------------------------------------------------------- */

static size_t build(struct el_buf *b, const char *op, size_t value_n)
{
    static const char key[] = "/default_pg/0//cpu//0/1";
    struct kv_bytes k = {key, sizeof key - 1};
    char *value = calloc(1, value_n + 1);
    size_t reply = 8;
    if (strcmp(op, "add") == 0) {
        wire_put_op(b, WIRE_MODERN, WIRE_ADD);
        wire_put_bytes(b, (struct kv_bytes){"/counter", 8});
        wire_put_u64(b, 1);
    } else if (strcmp(op, "get") == 0) {
        wire_put_op(b, WIRE_MODERN, WIRE_GET);
        wire_put_bytes(b, k);
        reply = 8 + value_n;
    } else {
        wire_put_op(b, WIRE_MODERN, WIRE_SET);
        wire_put_bytes(b, k);
        wire_put_bytes(b, (struct kv_bytes){value, value_n});
        wire_put_op(b, WIRE_MODERN, WIRE_PING);
        wire_put_u32(b, 7);
        reply = 4;
    }
    free(value);
    return reply;
}

/* Sends what connection i still owes: `owed` bytes at the end of the prepared requests. */
static void push(int i, const struct el_buf *all)
{
    while (owed[i]) {
        ssize_t n = send(fds[i], all->v + all->len - owed[i], owed[i], MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            watch(i, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n < 0)
            die("send");
        owed[i] -= (size_t)n;
    }
}

static uint64_t turn(int i, uint32_t events, size_t request, size_t reply, const struct el_buf *all)
{
    uint64_t whole = 0;
    if (events & EPOLLOUT) {
        push(i, all);
        if (!owed[i])
            watch(i, EPOLLIN);
    }
    if (events & EPOLLIN) {
        ssize_t n = recv(fds[i], scratch, RECV_BYTES, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            die("the server closed");
        got[i] += n > 0 ? (size_t)n : 0;
        whole = got[i] / reply;
        got[i] %= reply;
        owed[i] += (size_t)whole * request;
        push(i, all);
    }
    return whole;
}

static int load(char **a, int n_args)
{
    const char *op = a[0];
    int conns = atoi(a[1]), inflight = atoi(a[2]), port = atoi(a[5]), pid = n_args > 6 ? atoi(a[6]) : 0;
    double seconds = atof(a[3]);
    size_t value_n = (size_t)atoll(a[4]);
    struct el_buf one = EL_BUF_INIT(NULL, 0), all = EL_BUF_INIT(NULL, 0);
    struct epoll_event ev[EVENTS];
    open_all(conns, port);
    build(&one, "set", value_n); /* so that there is something to get */
    send_all(fds[0], one.v, one.len);
    recv_all(fds[0], scratch, 4);
    one.len = 0;
    size_t reply = build(&one, op, value_n), request = one.len;
    for (int i = 0; i < inflight; i++)
        el_buf_put(&all, one.v, one.len);
    for (int i = 0; i < conns; i++) {
        watch(i, EPOLLIN);
        owed[i] = all.len;
        push(i, &all);
    }
    uint64_t count = 0, counted = 0;
    double start = now_s(), begin = 0, t = start;
    struct cpu_s before = {0};
    for (int measuring = 0;;) {
        int n = epoll_wait(ep, ev, EVENTS, 1000);
        for (int i = 0; i < n; i++)
            count += turn((int)ev[i].data.u32, ev[i].events, request, reply, &all);
        t = now_s();
        if (!measuring && t - start > seconds / 4) { /* a quarter to warm up */
            measuring = 1;
            counted = count;
            begin = t;
            if (pid)
                before = cpu_s(pid);
        } else if (measuring && t - begin > seconds) {
            break;
        }
    }
    printf("requests_per_s %.0f\n", (double)(count - counted) / (t - begin));
    printf("requests %llu\n", (unsigned long long)count);
    if (pid) {
        struct cpu_s now = cpu_s(pid);
        printf("user_ns %.0f\n", (now.user - before.user) * 1e9 / (double)(count - counted));
        printf("system_ns %.0f\n", (now.system - before.system) * 1e9 / (double)(count - counted));
    }
    return 0;
}

/* --- the others --------------------------------------------------------------------------------------------------- */

static int storm(int conns, int port)
{
    struct el_buf b = EL_BUF_INIT(NULL, 0);
    struct epoll_event ev[EVENTS];
    int left = conns;
    hello(&b);
    double start = now_s();
    for (int i = 0; i < conns; i++) {
        fds[i] = dial(port, SOCK_NONBLOCK);
        watch(i, EPOLLOUT);
    }
    while (left) {
        int n = epoll_wait(ep, ev, EVENTS, 10000);
        if (n <= 0)
            die("nobody answers");
        for (int k = 0; k < n; k++) {
            int i = (int)ev[k].data.u32;
            if (ev[k].events & EPOLLOUT) {
                send_all(fds[i], b.v, b.len);
                watch(i, EPOLLIN);
            } else {
                ssize_t r = recv(fds[i], scratch, 4, 0);
                if (r <= 0)
                    die("recv");
                got[i] += (size_t)r;
                if (got[i] == 4)
                    left--;
            }
        }
    }
    printf("ms %.3f\n", (now_s() - start) * 1e3);
    el_buf_free(&b);
    return 0;
}

static int release(int conns, int port)
{
    struct el_buf wait = EL_BUF_INIT(NULL, 0), set = EL_BUF_INIT(NULL, 0);
    struct epoll_event ev[EVENTS];
    struct kv_bytes key = {"/go", 3};
    open_all(conns + 1, port);
    wire_put_op(&wait, WIRE_MODERN, WIRE_WAIT);
    wire_put_u64(&wait, 1);
    wire_put_bytes(&wait, key);
    for (int i = 0; i < conns; i++) {
        send_all(fds[i], wait.v, wait.len);
        watch(i, EPOLLIN);
    }
    usleep(300000); /* they are all registered by then */
    wire_put_op(&set, WIRE_MODERN, WIRE_SET);
    wire_put_bytes(&set, key);
    wire_put_bytes(&set, (struct kv_bytes){"", 0});
    double start = now_s();
    send_all(fds[conns], set.v, set.len);
    for (int left = conns; left;) {
        int n = epoll_wait(ep, ev, EVENTS, 10000);
        if (n <= 0)
            die("not released");
        for (int k = 0; k < n; k++) {
            if (recv(fds[ev[k].data.u32], scratch, 1, 0) != 1)
                die("recv");
            left--;
        }
    }
    printf("ms %.3f\n", (now_s() - start) * 1e3);
    el_buf_free(&wait);
    el_buf_free(&set);
    return 0;
}

static int idle(int conns, int port, int pid)
{
    double before = resident_bytes(pid);
    open_all(conns, port);
    usleep(200000);
    printf("bytes %.0f\n", (resident_bytes(pid) - before) / conns);
    double user = cpu_s(pid).user;
    sleep(1);
    printf("user_ms_per_s %.0f\n", (cpu_s(pid).user - user) * 1e3);
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    scratch = malloc(RECV_BYTES);
    ep = epoll_create1(EPOLL_CLOEXEC);
    if (!scratch || ep < 0)
        die("start");
    if (argc >= 8 && strcmp(argv[1], "load") == 0)
        return load(argv + 2, argc - 2);
    if (argc == 4 && strcmp(argv[1], "storm") == 0)
        return storm(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "release") == 0)
        return release(atoi(argv[2]), atoi(argv[3]));
    if (argc == 5 && strcmp(argv[1], "idle") == 0)
        return idle(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    fprintf(stderr, "usage: see the head of store.c\n");
    return 2;
}
