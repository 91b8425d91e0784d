/* The socket at which a node's workers reach their agent: packets of wmsg.h come and go, with descriptors beside them.
 * At most one connection a worker; who is at the other end is what the kernel says (SO_PEERCRED), never what is said.
 */
#ifndef SNAPSHOT_WSOCK_H
#define SNAPSHOT_WSOCK_H
#include <stdbool.h>
#include <sys/types.h>

#include "snapshot/wmsg.h"
#include "loop/loop.h"

#define WSOCK_FDS_MAX 2 /* beside one packet */

struct wsock;

struct wsock_ops {
    /* The worker that this process is or descends from, -1: none of ours. */
    int (*whose)(void *ctx, pid_t pid);
    void (*message)(void *ctx, unsigned worker, const struct wmsg *m); /* wsock_close() in it is allowed */
    void (*gone)(void *ctx, unsigned worker); /* its end is closed, or it broke the protocol; all it said came before */
};

/* Listens at path (a UNIX socket's: below 108 bytes) in a folder that only this user may enter; removed by
 * wsock_free().  NULL and *e. */
struct wsock *wsock_new(struct loop *l, const char *path, unsigned workers, const struct wsock_ops *ops, void *ctx,
                        struct el_err *e);
void wsock_free(struct wsock *s);

/* Sends a packet with n descriptors, which stay the caller's.  A worker that does not read what it is sent has its
 * connection closed (gone() follows); nothing happens if there is none. */
void wsock_send(struct wsock *s, unsigned worker, const struct wmsg *m, const int *fds, unsigned n);

/* Everything that worker has sent and that was not read yet is told now, and then its end: it has died. */
void wsock_finish(struct wsock *s, unsigned worker);

/* Closes without gone(). */
void wsock_close(struct wsock *s, unsigned worker);
bool wsock_is_open(const struct wsock *s, unsigned worker);

#endif
