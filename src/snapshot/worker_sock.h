/* The socket at which a node's workers reach their agent: packets of worker_msg.h come and go, with descriptors beside
 * them. At most one connection a worker; who is at the other end is what the kernel says (SO_PEERCRED), never what is
 * said.
 */
#ifndef SNAPSHOT_WORKER_SOCK_H
#define SNAPSHOT_WORKER_SOCK_H
#include <stdbool.h>
#include <sys/types.h>

#include "snapshot/worker_msg.h"
#include "loop/loop.h"

#define WORKER_SOCK_FDS_MAX 2 /* beside one packet */

struct worker_sock;

struct worker_sock_ops {
    /* The worker that this process is or descends from, -1: none of ours. */
    int (*whose)(void *ctx, pid_t pid);
    void (*message)(void *ctx, unsigned worker, const struct worker_msg *m); /* worker_sock_close() in it is allowed */
    void (*gone)(void *ctx, unsigned worker); /* its end is closed, or it broke the protocol; all it said came before */
};

/* Listens at path (a UNIX socket's: below 108 bytes) in a folder that only this user may enter; removed by
 * worker_sock_free().  NULL and *e. */
struct worker_sock *worker_sock_new(struct loop *l, const char *path, unsigned workers,
                                    const struct worker_sock_ops *ops, void *ctx, struct el_err *e);
void worker_sock_free(struct worker_sock *s);

/* Sends a packet with n descriptors, which stay the caller's.  A worker that does not read what it is sent has its
 * connection closed (gone() follows); nothing happens if there is none. */
void worker_sock_send(struct worker_sock *s, unsigned worker, const struct worker_msg *m, const int *fds, unsigned n);

/* Everything that worker has sent and that was not read yet is told now, and then its end: it has died. */
void worker_sock_finish(struct worker_sock *s, unsigned worker);

/* Closes without gone(). */
void worker_sock_close(struct worker_sock *s, unsigned worker);
bool worker_sock_is_open(const struct worker_sock *s, unsigned worker);

#endif
