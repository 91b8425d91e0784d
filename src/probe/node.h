/* What one node does in a probe: its single-node checks, at the beginning and once more at the end, and its ends of
 * pairs.  `elrun probe` and the agent of a job do it with this; who pairs with whom, and what comes of it, is not known
 * here (plan.h).  The loop's thread only. */
#ifndef PROBE_NODE_H
#define PROBE_NODE_H
#include "probe/check.h"
#include "probe/children.h"
#include "probe/found.h"
#include "probe/plan.h"
#include "probe/rails.h"

struct probe_node;

/* NULL, 0 and false: not known, or the default. */
struct probe_node_conf {
    struct loop *loop;
    struct reap *reap;               /* its helper() calls probe_node_child() */
    char *const *env;                /* for the children: that of the workers */
    const struct rlimit *files;      /* as in children_conf */
    const struct check_conf *checks; /* what is looked at, --checks and --limits; copied */
    bool nccl;                       /* the backend of pairs, and GPUs are looked at; else tcp */
    unsigned gpus;                   /* rails of nccl: GPUs of this node */
    unsigned gpus_expected;          /* fewer are a finding */
    bool quick;
    uint64_t pair_bytes;             /* tcp: of an iteration */
    el_usec pair_spend;              /* tcp: for the bandwidth */
    const char *local;               /* tcp: numeric address that the job uses on this node */
    const struct probe_rails *rails; /* tcp: what each is bound to */
    const char *ckpt_dir, *tmp_dir;
    const char *helper_dir, *nccl_lib, *cuda_lib, *purelib;
    uint64_t cpu_quota_millis; /* of the cgroup, UINT64_MAX: none */

    void (*progress)(void *ctx, const char *what);             /* "memory, swap, /dev/shm": it begins; may be NULL */
    void (*local_done)(void *ctx, bool last);                  /* probe_node_found() has it */
    void (*pair_id)(void *ctx, unsigned rail, const char *id); /* the host end waits for a guest with this */
    void (*pair_done)(void *ctx, unsigned rail, const struct rail_result *r);
    void *ctx;
};

/* The strings must stay. */
struct probe_node *probe_node_new(const struct probe_node_conf *conf, struct el_err *e);

/* Begins the single-node checks; last: those whose counters are compared, once more.  local_done() follows, later;
 * whatever could not be started is a finding. */
void probe_node_local(struct probe_node *n, bool last);

/* Until now; it grows, and a helper that cannot be killed adds a finding at any time. */
const struct found *probe_node_found(struct probe_node *n);

/* Begins this node's end of a rail: the host end (id NULL), which tells its id later, or the guest end.  pair_done()
 * follows, later.  -1 and *e: it could not be started, nothing follows. */
int probe_node_pair(struct probe_node *n, unsigned rail, const char *id, const char *peer, struct el_err *e);

/* At this time, counted from its beginning, an end has said what there is to say, or has been killed for it. */
el_usec probe_node_pair_limit(bool nccl);

/* From reap_ops.helper; false: no child of this probe. */
bool probe_node_child(struct probe_node *n, pid_t pid, const struct reap_end *end);

/* The other ends of these rails (bits) are over, and not well: those here end now, and have failed for the reason that
 * the other ends have told; one that stood still says so. */
void probe_node_part(struct probe_node *n, uint32_t rails);

/* Everything that runs is killed.  Ends of pairs are told as broken off; local_done() is told, too. */
void probe_node_stop(struct probe_node *n);

/* Ends of pairs and checks that still run, stuck ones not counted. */
unsigned probe_node_running(const struct probe_node *n);

/* Kills what runs, without a word. */
void probe_node_free(struct probe_node *n);

#endif
