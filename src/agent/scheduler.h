/* What the variables of schedulers and operators say about the number of hosts.  Pure. */
#ifndef AGENT_SCHEDULER_H
#define AGENT_SCHEDULER_H
#include <stdbool.h>
#include <stddef.h>

struct scheduler_finding {
    const char *system;   /* "Slurm" */
    const char *variable; /* "SLURM_JOB_NUM_NODES" */
    unsigned hosts;       /* at least 2 */
    const char *advice;   /* how to name one host of them, the same on all; a shell's words */
};

/* The first variable in env that says that the job has more than one host; false if none does. */
bool scheduler_find(char *const *env, struct scheduler_finding *out);

#endif
