/* The words of the command line (child.h). */
#ifndef CHILD_ORDER_H
#define CHILD_ORDER_H
#include "child.h"

struct order {
    const char *role;
    unsigned gpu, rail, expect;
    const char *id, *purelib, *nccl, *cuda, *nvml;
    unsigned quick;
    unsigned burn_ms, init_ms, step_ms, grace_ms;
};

/* The roles.  Each prints its lines and returns whether all went well; a library's error ends the process in it. */
bool role_nvml(const struct order *o);
bool role_burn(const struct order *o);
bool role_nicloop(const struct order *o);
bool role_pair(const struct order *o);

#endif
