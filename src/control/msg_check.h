/* What the values of a message must be beside each other.  Each is within its own limit (util/fields.h); whoever takes
 * a decoded message relies on both. */
#ifndef CONTROL_MSG_CHECK_H
#define CONTROL_MSG_CHECK_H
#include "control/msg.h"

/* 0, or -1 with *e: which value of which message contradicts what. */
int msg_check(const struct msg *m, struct el_err *e);

#endif
