/* A node's part in health checks.  The coordinator says what is to be done, and judges (coord/health_check.h); here the
 * stages are run (probe/node.h), their results kept for as long as somebody may ask for them again, and the verdict
 * told to the user.  A job of one node has no coordinator: it checks itself before an attempt. */
#ifndef AGENT_HEALTH_H
#define AGENT_HEALTH_H
#include <stdbool.h>
#include <sys/types.h>

#include "probe/rails.h"
#include "proc/reap.h"
#include "control/msg.h"
#include "util/err.h"
#include "util/time.h"

/* What only this node is asked for; NULL and 0: not given. */
struct health_local {
    unsigned gpus; /* expected */
    uint64_t pair_bytes;
    el_usec pair_spend;
    const char *ckpt_dir, *helper_dir, *nccl_lib, *cuda_lib;
    const char *state_dir, *baseline, *save_baseline; /* health_files.h */
};

/* `elrun probe` over several nodes; NULL and 0: not given. */
struct health_nodes {
    const char *nnodes, *rdzv_endpoint, *rdzv_id, *rdzv_conf, *node_rank, *local_addr; /* as typed */
    const char *domain;                                                                /* checked */
    unsigned rounds, straggler_k, straggler_min;
    el_usec timeout;
    int backend; /* enum health_backend */
    bool quick, strict, json, all, exclude_straggler;
    struct probe_rails rails;
    const char *checks, *limits;
    struct health_local local;
};

/* A job without workers: it ends with the verdict, which has been printed: all of it on the coordinator's node, on the
 * others each one's own and a line about all.  Returns elrun's exit status: 0, 1, 3 as `elrun probe` alone; -1 and *e
 * (its status is the exit status) if the probe could not begin. */
int health_probe_nodes(const struct health_nodes *conf, char **env, struct el_err *e);

/* --- for the agent's shell --- */
struct node;
struct health;

/* NULL and *e. */
struct health *health_new(struct node *n, struct el_err *e);
void health_free(struct health *h);                                         /* kills what runs */
bool health_child(struct health *h, pid_t pid, const struct reap_end *end); /* false: none of ours */

/* At the end of the job: fn comes when verdicts are in their files, at the deadline at the latest; perhaps before this
 * returns. */
void health_settle(struct health *h, el_usec deadline, void (*fn)(void *ctx), void *ctx);

/* membership_ops */
void health_order(struct health *h, const struct msg_probe *order);
void health_stop(struct health *h);
void health_tell(struct health *h, bool ids);
void health_verdict(struct health *h, const struct msg_probe_verdict *v);
void health_page(struct health *h, const struct msg_probe_page *page);

/* A job of one node, before an attempt: true if it has to wait; node_may_start() or emit_prepared() follows. */
bool health_alone(struct health *h);

#endif
