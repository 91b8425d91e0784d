#include "store/listen.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/sockaddr.h"

enum { BACKLOG = 65535, PORT_TRIES = 32 }; /* the kernel cuts the backlog to somaxconn */

/* A dead peer is found out after 60 + 6 x 10 s. */
enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 10, KEEPALIVE_COUNT = 6 };

static void option(int fd, int level, int name, int value)
{
    /* None of them is worth failing for. */
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

/* The descriptor, or -1 and errno. */
static int open_one(const struct el_addr *a)
{
    struct sockaddr_storage sa;
    socklen_t n = el_addr_to_sockaddr(a, &sa);
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
    option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (sa.ss_family == AF_INET6)
        option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !el_addr_is_any(a->ip));
    if (bind(fd, (struct sockaddr *)&sa, n) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int sys = errno;
    close(fd);
    errno = sys;
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_storage sa;
    struct el_addr a;
    socklen_t n = sizeof sa;
    if (getsockname(fd, (struct sockaddr *)&sa, &n))
        return -1;
    (void)el_addr_from_sockaddr((struct sockaddr *)&sa, &a);
    return a.port;
}

static int listen_fail(const struct el_addr *a, int sys, struct el_err *e)
{
    char text[EL_ADDR_TEXT_MAX];
    el_fail_sys(e, el_sys_scarce(sys) ? EL_EXIT_OSERR : EL_EXIT_CONFIG, sys, "cannot listen on %s",
                el_addr_text(a, text));
    return -1;
}

/* 127.0.0.1 and ::1 with one port; a host without IPv6 has the first only. */
static int open_loopback(int port, int fds[LISTEN_MAX], int *bound_port, struct el_err *e)
{
    struct el_addr v4, v6;
    el_addr_parse("127.0.0.1", v4.ip);
    el_addr_parse("::1", v6.ip);
    for (int tries = 0;; tries++) {
        v4.port = (uint16_t)port;
        fds[0] = open_one(&v4);
        if (fds[0] < 0)
            return listen_fail(&v4, errno, e);
        *bound_port = port_of(fds[0]);
        v6.port = (uint16_t)*bound_port;
        fds[1] = open_one(&v6);
        if (fds[1] >= 0)
            return 2;
        if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)
            return 1;
        int sys = errno;
        close(fds[0]);
        /* The free port was free in one family only: another one. */
        if (port || sys != EADDRINUSE || tries >= PORT_TRIES)
            return listen_fail(&v6, sys, e);
    }
}

int listen_open(const char *bind, int port, int fds[LISTEN_MAX], int *bound_port, struct el_err *e)
{
    struct el_addr a = {.port = (uint16_t)port};
    assert(port >= 0 && port <= 65535);
    if (!bind)
        return open_loopback(port, fds, bound_port, e);
    if (!el_addr_parse(bind, a.ip))
        return el_fail(e, EL_EXIT_USAGE, "cannot listen on %.100s: not a numeric address", bind);
    fds[0] = open_one(&a);
    if (fds[0] < 0)
        return listen_fail(&a, errno, e);
    *bound_port = port_of(fds[0]);
    return 1;
}

int listen_accept(int fd, struct el_addr *peer)
{
    struct sockaddr_storage sa;
    socklen_t n = sizeof sa;
    int got = accept4(fd, (struct sockaddr *)&sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (got >= 0)
        (void)el_addr_from_sockaddr((struct sockaddr *)&sa, peer);
    return got;
}

bool listen_is_local(int fd, const struct el_addr *peer)
{
    struct sockaddr_storage sa;
    struct el_addr own;
    socklen_t n = sizeof sa;
    if (el_addr_is_loopback(peer->ip))
        return true;
    if (getsockname(fd, (struct sockaddr *)&sa, &n))
        return false;
    (void)el_addr_from_sockaddr((struct sockaddr *)&sa, &own);
    return !memcmp(own.ip, peer->ip, sizeof own.ip);
}
