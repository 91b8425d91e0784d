/* Listening sockets of a store. */
#ifndef STORE_LISTEN_H
#define STORE_LISTEN_H
#include "util/addr.h"
#include "util/err.h"

#define LISTEN_MAX 2

/* bind: a numeric address; NULL: 127.0.0.1 and, where there is one, ::1, both with the same port.  port 0: a free one.
 * Fills fds (non-blocking, close-on-exec; accepted sockets inherit TCP_NODELAY and keep-alive) and *bound_port and
 * returns how many, or -1 and *e. */
int listen_open(const char *bind, int port, int fds[LISTEN_MAX], int *bound_port, struct el_err *e);

/* Accepts one connection.  The descriptor, or -1 and errno. */
int listen_accept(int fd, struct el_addr *peer);

/* True if the peer of this connection has the address of our side: it runs on this host. */
bool listen_is_local(int fd, const struct el_addr *peer);

#endif
