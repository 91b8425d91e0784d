/* A client of a coordinator for commands: one question at a time, each wait with a deadline; not for the loop. */
#ifndef CONTROL_CONTROL_CLIENT_H
#define CONTROL_CONTROL_CLIENT_H
#include "control/msg.h"
#include "util/err.h"
#include "util/time.h"

struct control_client;

/* endpoint: "host:port", "[::1]:29400", "host" alone (port 29400).  `limit` holds for the connection and for each
 * answer.  NULL and *e (2: malformed; 69: not reached). */
struct control_client *control_client_open(const char *endpoint, el_usec limit, struct el_err *e);
/* The same, of an agent: the socket in its run folder (agent/control_socket.h).  77: not for this user. */
struct control_client *control_client_open_agent(const char *path, el_usec limit, struct el_err *e);
void control_client_free(struct control_client *c);

/* 0; or -1 and *e (69: gone, or takes nothing). */
int control_client_send(struct control_client *c, const struct msg *m, struct el_err *e);

/* The next message, to be msg_release()d.  0; or -1 and *e: 69: gone or silent, or something else answers here, which
 * is named as far as its first bytes show it; 76: a coordinator of another version, or what it refuses. */
int control_client_receive(struct control_client *c, struct msg *out, struct el_err *e);

/* From here on another limit. */
void control_client_limit(struct control_client *c, el_usec limit);

/* One question with one DONE for an answer: its status and text.  0; or -1 and *e. */
int control_client_ask(struct control_client *c, const struct msg *m, unsigned *status, char text[MSG_TEXT_MAX + 1],
                       struct el_err *e);

#endif
