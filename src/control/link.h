/* One outgoing connection of the control protocol: look-up of the name, connect, frames both ways.  The coordinator's
 * link of an agent and its lease at the store's host are two of these.  No policy: who retries, and when, is the
 * core's. */
#ifndef CONTROL_LINK_H
#define CONTROL_LINK_H
#include <stdbool.h>

#include "loop/loop.h"
#include "loop/pool.h"
#include "control/msg.h"
#include "util/addr.h"
#include "util/err.h"

#define LINK_UNSENT_MAX_BYTES (4u << 20)
#define LINK_HOST_MAX         256
#define LINK_LOOKUP_LIMIT     EL_SEC(3) /* the look-up of a name that takes longer is told as a failure; it goes on */

struct link;

/* Each may call link_connect() or link_disconnect(); only link_free() is not allowed inside. */
struct link_ops {
    /* The name has been looked up again, before its addresses are tried; may be NULL. */
    void (*resolved)(void *ctx, const struct el_addr *found, size_t n);
    void (*connected)(void *ctx);
    /* refused: the host answered that nobody listens there; text: one line. */
    void (*failed)(void *ctx, bool refused, const char *text);
    void (*message)(void *ctx, const struct msg *m); /* m belongs to the link */
    void (*closed)(void *ctx, const char *text);     /* the other side, or what it sent */
};

struct link *link_new(struct loop *l, struct pool *p, const struct link_ops *ops, void *ctx, struct el_err *e);
void link_free(struct link *k);

/* Looks the name up anew, in the pool, then tries its addresses in their order; if the last look-up of it has no answer
 * yet, waits for that one.  Exactly one of connected() and failed() follows, later, unless link_disconnect() comes
 * first.  What was connected before is closed without a word.
 */
void link_connect(struct link *k, const char *host, int port);

/* No callback follows. */
void link_disconnect(struct link *k);

/* Whether the other side of the present or last connection has said anything. */
bool link_spoke(const struct link *k);

/* Queues the message; if the link is down, or the other side does not read, nothing happens but a later closed(). */
void link_send(struct link *k, const struct msg *m);

/* When the last message was sent that the host at the other end has acknowledged, whether or not anybody there reads it
 * now; 0: none. */
el_usec link_delivered(struct link *k);

/* The addresses of the connection that is up. */
bool link_addresses(const struct link *k, struct el_addr *local, struct el_addr *peer);

/* True if the other side has an address of this host. */
bool link_is_local(const struct link *k);

#endif
