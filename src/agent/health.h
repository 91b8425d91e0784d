/* Health checks of a job's nodes.  The coordinator says what is to be done and judges (rdzv/probing.h); a node runs its
 * stages (probe/stage.h) and answers. */
#ifndef AGENT_HEALTH_H
#define AGENT_HEALTH_H
#include <stdbool.h>

#include "util/err.h"
#include "util/time.h"

/* `elrun probe` over several nodes: the options as they were typed; NULL or 0: not given. */
struct health_nodes {
    const char *nnodes, *rdzv_endpoint, *rdzv_id, *rdzv_conf, *node_rank, *local_addr;
    unsigned rounds;     /* --probe-rounds */
    el_usec timeout;     /* --probe-timeout */
    const char *backend; /* auto, nccl or tcp */
    bool quick, strict, json;
    const char *checks, *limits, *state_dir; /* of this node alone */
};

/* A job without workers: it ends with the verdict, which has been printed: all of it on the coordinator's node, on the
 * others each one's own.  Returns elrun's exit status: 0, 1, 3 as `elrun probe` alone; -1 and *e (its status is the
 * exit status) if the probe could not begin. */
int health_probe_nodes(const struct health_nodes *conf, char **env, struct el_err *e);

#endif
