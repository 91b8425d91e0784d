#include "loop/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/loop.h"
#include "util/parse.h"

enum { HOST_MAX = 256 };

/* Milliseconds for poll() until then, rounded up; -1 for never, 0 when it has passed. */
static int dial_left_ms(el_usec until)
{
    if (until == EL_NEVER)
        return -1;
    el_usec now = loop_clock();
    el_usec left = until > now ? (until - now + 999) / 1000 : 0;
    return left > 86400000 ? 86400000 : (int)left;
}

int dial_await(int fd, short events, el_usec until)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int ms = dial_left_ms(until), n = poll(&p, 1, ms);
        if (n > 0)
            return 1;
        if (n == 0 && (ms == 0 || dial_left_ms(until) == 0))
            return 0;
    }
}

static int parse_endpoint(const char *s, char host[HOST_MAX], char port[8], struct el_err *e)
{
    uint64_t number = DIAL_PORT;
    const char *close_bracket = s[0] == '[' ? strchr(s, ']') : NULL;
    const char *first_colon = strchr(s, ':'), *last_colon = strrchr(s, ':');
    const char *host_end = close_bracket, *rest = close_bracket ? close_bracket + 1 : NULL;
    if (!close_bracket) {
        /* More than one colon without brackets is a v6 address alone. */
        host_end = first_colon && first_colon == last_colon ? first_colon : s + strlen(s);
        rest = host_end;
    }
    const char *start = s + (close_bracket != NULL);
    size_t n = (size_t)(host_end - start);
    int bad = !n || n >= HOST_MAX || (*rest && *rest != ':') || (s[0] == '[' && !close_bracket);
    if (bad || (*rest && (el_parse_u64(rest + 1, &number) || number < 1 || number > 65535)))
        return el_fail(e, EL_EXIT_USAGE, "not an endpoint: %.100s; right is HOST:PORT, port 1 to 65535", s);
    memcpy(host, start, n);
    host[n] = 0;
    snprintf(port, 8, "%u", (unsigned)number);
    return 0;
}

/* 0, or errno. */
static int connect_one(const struct addrinfo *a, el_usec until, int *fd)
{
    int one = 1, sys = 0;
    socklen_t size = sizeof sys;
    *fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return errno;
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(*fd, a->ai_addr, a->ai_addrlen) == 0)
        return 0;
    sys = errno;
    if (sys == EINPROGRESS) {
        sys = dial_await(*fd, POLLOUT, until) ? 0 : ETIMEDOUT;
        if (!sys && getsockopt(*fd, SOL_SOCKET, SO_ERROR, &sys, &size))
            sys = errno;
    }
    if (!sys)
        return 0;
    close(*fd);
    *fd = -1;
    return sys;
}

int dial(const char *endpoint, const char *who, el_usec limit, char where[DIAL_WHERE_MAX], struct el_err *e)
{
    char host[HOST_MAX], port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    if (parse_endpoint(endpoint, host, port, e))
        return -1;
    snprintf(where, DIAL_WHERE_MAX, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    int why = getaddrinfo(host, port, &hints, &list), sys = 0, fd = -1;
    if (why)
        return el_fail(e, EL_EXIT_UNAVAILABLE, "%s at %s: %s", who, where, gai_strerror(why));
    el_usec until = loop_clock() + limit;
    unsigned left = 0;
    for (struct addrinfo *a = list; a; a = a->ai_next)
        left++;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next, left--) {
        el_usec now = loop_clock(); /* one that is silent must not use up the time of the others */
        sys = connect_one(a, until > now ? now + (until - now) / left : now, &fd);
    }
    freeaddrinfo(list);
    return fd >= 0 ? fd : el_fail_sys(e, EL_EXIT_UNAVAILABLE, sys, "%s at %s", who, where);
}

int dial_path(const char *path, const char *who, struct el_err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = strlen(path) < sizeof at.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int sys = strlen(path) < sizeof at.sun_path ? errno : ENAMETOOLONG;
    if (fd >= 0)
        close(fd);
    return el_fail_sys(e, sys == EACCES || sys == EPERM ? EL_EXIT_NOPERM : EL_EXIT_UNAVAILABLE, sys, "%s at %s", who,
                       path);
}
