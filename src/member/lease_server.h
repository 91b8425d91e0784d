/* Who has knocked at the store of a round that is hosted here: one connection of each member, kept for the round as its
 * lease (doc/design.md, "Worker store", "Fence"). */
#ifndef MEMBER_LEASE_SERVER_H
#define MEMBER_LEASE_SERVER_H
#include <stdbool.h>

#include "loop/loop.h"
#include "control/msg.h"
#include "util/addr.h"
#include "util/err.h"

#define LEASE_SERVER_HELLO EL_SEC(10) /* a connection that has not knocked by then is closed */
#define LEASE_SERVER_MAX   65536
#define LEASE_SERVER_NEW_MAX                                                                                           \
    1024 /* that have not knocked; when there are more, or no room, the oldest of them goes                            \
          */

struct lease_server;

struct lease_server_ops {
    bool (*knocks)(void *ctx, const struct msg_lease_request *k); /* is this the round and the token? */
    /* A lease said HEARTBEAT or ROUND_OVER. */
    void (*heard)(void *ctx, const struct msg *m);
    void (*reply)(void *ctx, const struct msg_heartbeat *beat, struct msg *out); /* the answer to a HEARTBEAT */
};

struct lease_server *lease_server_new(struct loop *l, const struct lease_server_ops *ops, void *ctx, struct el_err *e);
void lease_server_free(struct lease_server *t);

/* A connection whose first bytes are the preamble; the descriptor is ours from here on. */
void lease_server_accept(struct lease_server *t, int fd, const struct el_addr *peer, const char *bytes, size_t n);

void lease_server_send(struct lease_server *t, const struct msg *m); /* to each */
void lease_server_close(struct lease_server *t);                     /* all that have knocked */

/* Has a member knocked from this address, or is it one of this host's own? */
bool lease_server_has(struct lease_server *t, const struct el_addr *peer);

#endif
