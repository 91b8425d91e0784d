/* Who has knocked at the store of a round that is hosted here: one connection of each member, kept for the round as its
 * lease (design.md, "Worker store", "Fence"). */
#ifndef MEMBER_TENANTS_H
#define MEMBER_TENANTS_H
#include <stdbool.h>

#include "loop/loop.h"
#include "control/msg.h"
#include "util/addr.h"
#include "util/err.h"

#define TENANTS_HELLO   EL_SEC(10) /* a connection that has not knocked by then is closed */
#define TENANTS_MAX     65536
#define TENANTS_NEW_MAX 1024 /* that have not knocked; when there are more, or no room, the oldest of them goes */

struct tenants;

struct tenants_ops {
    bool (*knocks)(void *ctx, const struct msg_knock *k); /* is this the round and the token? */
    /* A lease said BEAT or ROUND_OVER. */
    void (*heard)(void *ctx, const struct msg *m);
    void (*reply)(void *ctx, const struct msg_beat *beat, struct msg *out); /* the answer to a BEAT */
};

struct tenants *tenants_new(struct loop *l, const struct tenants_ops *ops, void *ctx, struct el_err *e);
void tenants_free(struct tenants *t);

/* A connection whose first bytes are the preamble; the descriptor is ours from here on. */
void tenants_accept(struct tenants *t, int fd, const struct el_addr *peer, const char *bytes, size_t n);

void tenants_send(struct tenants *t, const struct msg *m); /* to each */
void tenants_close(struct tenants *t);                     /* all that have knocked */

/* Has a member knocked from this address, or is it one of this host's own? */
bool tenants_has(struct tenants *t, const struct el_addr *peer);

#endif
