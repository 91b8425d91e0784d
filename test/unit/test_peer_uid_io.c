/* Whose process has the other end of a connection over loopback. */
#include "loop/peer_uid.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tap.h"

static struct sockaddr_in6 at;

static int listen_here(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
    socklen_t n = sizeof at;
    at = (struct sockaddr_in6){.sin6_family = AF_INET6};
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 5) || getsockname(fd, (struct sockaddr *)&at, &n))
        return -1;
    return fd;
}

static int dial_v4(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = at.sin6_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) ? -1 : fd;
}

static int dial_v6(void)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = at.sin6_port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) ? -1 : fd;
}

/* Connects as this user; 1: foreign, 0: not, -1: it could not connect. */
static int seen_from(int listener, uid_t uid, int (*dial)(void))
{
    int ready[2];
    if (pipe(ready))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ready[1]);
        if (setuid(uid) || dial() < 0)
            _exit(1);
        (void)!read(ready[0], &byte, 1);
        _exit(0);
    }
    close(ready[0]);
    int fd = accept(listener, NULL, NULL), foreign = fd < 0 ? -1 : peer_is_foreign(fd);
    close(fd);
    close(ready[1]);
    waitpid(child, NULL, 0);
    return foreign;
}

int main(void)
{
    int fd = listen_here(), pair[2];
    ok(fd >= 0, "a listener");
    is_num(seen_from(fd, geteuid(), dial_v4), 0, "we are no strangers");
    if (geteuid() == 0) {
        is_num(seen_from(fd, 65534, dial_v4), 1, "another user is one");
        is_num(seen_from(fd, 65534, dial_v6), 1, "also over IPv6");
    } else {
        skip("another user", "not root");
    }
    ok(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && !peer_is_foreign(pair[0]), "what is no TCP says nothing");
    return done();
}
