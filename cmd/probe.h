/* What `elrun probe` was asked for, and its two ways: this node alone, several nodes. */
#ifndef CMD_PROBE_H
#define CMD_PROBE_H
#include <stdbool.h>

#include "cmd.h"
#include "probe/rails.h"
#include "util/time.h"

enum { PROBE_AUTO, PROBE_NCCL, PROBE_TCP };             /* --backend */
enum { PROBE_WARN_STRAGGLER, PROBE_EXCLUDE_STRAGGLER }; /* --on-straggler */

/* NULL and 0: not given. */
struct probe_conf {
    int backend, on_straggler;
    bool json, all, strict, quick, exclude_straggler;
    unsigned gpus, rounds, straggler_k, straggler_min;
    uint64_t pair_bytes;
    el_usec timeout, pair_spend;
    const char *checks, *limits, *baseline, *save_baseline, *state_dir, *ckpt_dir;
    const char *nccl_lib, *cuda_lib, *helper_dir;
    struct probe_rails rails;
    const char *nnodes, *rdzv_endpoint, *rdzv_id, *node_rank, *local_addr, *domain;
};

/* The exit status; or -1 and *e. */
int probe_alone(const struct probe_conf *conf, const struct call *call, struct el_err *e);

#endif
