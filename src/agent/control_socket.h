/* Where people of this host ask an agent about its node: a stream socket in the run folder, which speaks the control
 * protocol (control/msg.h), so that a job without a coordinator can be asked, too.  Who may enter the folder may ask.
 */
#ifndef AGENT_CONTROL_SOCKET_H
#define AGENT_CONTROL_SOCKET_H
#include "loop/loop.h"
#include "control/msg.h"

#define CONTROL_SOCKET_NAME       "control"         /* of the socket: elrun ckpt finds it by that */
#define CONTROL_SOCKET_MAX        16                /* at the same time; more are closed without a word */
#define CONTROL_SOCKET_FIRST_TIME EL_SEC(10)        /* for the question, and for taking the last of an answer */
#define CONTROL_SOCKET_UNSENT     ((size_t)1 << 20) /* more for one of them: it does not read, and is closed */

struct control_socket;
struct asker;

struct control_socket_ops {
    void (*ask)(void *ctx, struct asker *a, const struct msg *m); /* its one question */
    void (*gone)(void *ctx, struct asker *a);                     /* before asker_end(); it must not be used any more */
};

/* Listens at path (a UNIX socket's: below 108 bytes).  NULL and *e. */
struct control_socket *control_socket_new(struct loop *l, const char *path, const struct control_socket_ops *ops,
                                          void *ctx, struct el_err *e);
void control_socket_free(struct control_socket *s);

void asker_send(struct asker *a, const struct msg *m);
bool asker_is_behind(const struct asker *a); /* it has not taken all that it was sent */
void asker_end(struct asker *a);             /* that was all; it must not be used any more */

#endif
