/* elrun store is two commands in one: the server, and the verbs of its client. */
#ifndef CMD_STORE_H
#define CMD_STORE_H
#include <stdbool.h>

#include "cmd.h"

#define STORE_VERBS "get|set|add|wait|delete|keys|num-keys|ping"

/* call->argv[0] is one of the verbs. */
int store_verb_run(const struct call *call, struct el_err *e);

#endif
