/* What a report that is printed to a descriptor has to know of whoever reads it. */
#ifndef AGENT_LOOK_H
#define AGENT_LOOK_H
#include "probe/look.h"

struct report_look look_of(char *const *env, int fd);

#endif
