/* The agents of this host that keep snapshots, asked by commands at the sockets in their run folders. */
#ifndef CMD_AGENTS_H
#define CMD_AGENTS_H
#include <stdbool.h>

#include "control/control_client.h"

#define AGENTS_MAX 256

struct agents {
    char path[AGENTS_MAX][108];
    unsigned n;
};

int agents_find(struct agents *a, struct el_err *e);

/* How snapshots stand there, or that the newest be saved.  Then rows are received, each within `limit`. */
struct control_client *agents_ask(const char *path, bool save, el_usec limit, struct el_err *e);

/* Another user's, or one that has ended since, is nobody's business here. */
bool agents_is_trouble(const struct el_err *e);

/* What each says of its node; who says nothing within `limit` is left out. */
void agents_each(el_usec limit, void (*see)(void *ctx, const struct msg_ckpt_node *n), void *ctx);

#endif
