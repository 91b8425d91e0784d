/* The ceiling: an epoll server that answers without looking.
 *
 *   bare REQUEST_BYTES REPLY_BYTES    so many bytes back for each request of so many bytes
 *   bare release                      on the first bytes that begin with SET (01): one byte to everybody else, by a
 * loop of send()
 *
 * Hellos (10 bytes) are answered by their echo.  Prints its port. */
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
#include <unistd.h>

enum { FDS = 20100, EVENTS = 1024, BYTES = 128 << 10, HELLO = 10 };

static char in[BYTES], *out;
static unsigned char greeted[FDS];
static size_t part[FDS];
static int ep, everybody[FDS], place[FDS], everybody_n;

static void on_connect(int l)
{
    for (int fd; (fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
        greeted[fd] = 0;
        part[fd] = 0;
        place[fd] = everybody_n;
        everybody[everybody_n++] = fd;
    }
}

static void release_all(int but)
{
    char zero = 0;
    for (int i = 0; i < everybody_n; i++)
        if (everybody[i] != but)
            send(everybody[i], &zero, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_data(int fd, size_t request, size_t reply)
{
    ssize_t n = recv(fd, in, BYTES, MSG_DONTWAIT);
    if (n <= 0) {
        close(fd);
        everybody[place[fd]] = everybody[--everybody_n];
        place[everybody[place[fd]]] = place[fd];
        return;
    }
    char *at = in;
    if (!greeted[fd] && n >= HELLO) {
        greeted[fd] = 1;
        send(fd, in + HELLO - 4, 4, MSG_NOSIGNAL);
        at += HELLO;
        n -= HELLO;
    }
    if (!n)
        return;
    if (!request) {
        if (*at == 1)
            release_all(fd);
        return;
    }
    part[fd] += (size_t)n;
    size_t whole = part[fd] / request;
    part[fd] %= request;
    if (whole)
        send(fd, out, whole * reply, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    size_t request = argc == 3 ? (size_t)atoi(argv[1]) : 0, reply = argc == 3 ? (size_t)atoi(argv[2]) : 0;
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    int one = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    out = calloc(1, 1024 * (reply + 1));
    if (!out || bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 65535) ||
        getsockname(l, (struct sockaddr *)&a, &size))
        return perror("bare"), 1;
    ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = l}, ev[EVENTS];
    epoll_ctl(ep, EPOLL_CTL_ADD, l, &e);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(ep, ev, EVENTS, -1);
        for (int i = 0; i < n; i++)
            if (ev[i].data.fd == l)
                on_connect(l);
            else
                on_data(ev[i].data.fd, request, reply);
    }
}
