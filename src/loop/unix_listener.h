/* A UNIX socket that listens in the loop: who comes is given on as a descriptor.  While descriptors have run out,
 * nobody is asked in for a moment, again and again, since the kernel would say in every turn that somebody waits. */
#ifndef LOOP_UNIX_LISTENER_H
#define LOOP_UNIX_LISTENER_H
#include "loop/loop.h"

#define UNIX_LISTENER_PATH_MAX 108

struct unix_listener;

/* fd: non-blocking, close-on-exec, from now on the callee's. */
typedef void unix_listener_fn(void *ctx, int fd);

/* Listens at path with that type of socket, in a folder that only this user may enter; at most `backlog` wait.
 * NULL and *e. */
struct unix_listener *unix_listener_new(struct loop *l, const char *path, int type, int backlog, unix_listener_fn *come,
                                        void *ctx, struct el_err *e);
void unix_listener_free(struct unix_listener *g); /* the socket is removed; NULL is fine */

#endif
