/* What the variables of schedulers and operators say about the number of hosts.  Pure. */
#ifndef CONF_SCHEDULER_H
#define CONF_SCHEDULER_H
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

/* The first variable in env that says that this very command was started more than once, as `srun -n4` and mpirun do;
 * hosts: how often.  An allocation of several hosts whose script runs on the first one is none of these. */
bool scheduler_started_often(char *const *env, struct scheduler_finding *out);

#endif
