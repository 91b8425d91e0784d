/* What node.c (decides) and node_io.c (starts, reads) share.  Nobody else includes this. */
#ifndef PROBE_NODE_PRIVATE_H
#define PROBE_NODE_PRIVATE_H
#include "probe/helper.h"
#include "probe/node.h"
#include "sys/gpu.h"

#define NODE_JOBS_MAX  (CHECK_GROUPS + GPU_JOBS_MAX + 2)
#define GPU_JOBS_MAX   GPU_MAX
#define GPU_BESIDE     16 /* GPUs that work at the same time: each helper holds a gigabyte and a processor */
#define NODE_CLASS_MAX 24

/* One child of the single-node checks. */
struct node_job {
    unsigned phase;         /* children of one phase run beside each other */
    bool helper;            /* the GPU helper, else this binary */
    enum check_group group; /* whose finding it is if the child does not come to an end */
    enum helper_role role;
    unsigned gpu;
    el_usec limit;
};

/* Which children one look takes; how many. */
unsigned node_jobs(const struct probe_node_conf *conf, bool last, struct node_job jobs[NODE_JOBS_MAX]);

/* What an end of a pair has said so far. */
struct node_rail {
    struct rail_result result;
    bool failed; /* it has said why; result.reason */
    bool parted; /* the other end was over first: it was stopped for that */
    char class[NODE_CLASS_MAX];
};
void node_rail_take(struct node_rail *r, const struct probe_wire *w);
/* … and how it ended: the result is complete. */
void node_rail_end(struct node_rail *r, const struct child_end *end, uint64_t cpu_quota_millis);

/* An error of a child of the single-node checks as a finding.  False: it was the child's last word, but nothing is
 * wrong with the node (the helper has said by a check what is). */
bool node_error_finding(const struct node_job *job, const struct wire_err *err, struct finding *f);
/* A child that did not come to its end; false: it did. */
bool node_end_finding(const struct node_job *job, const struct child_end *end, bool said_why, uint64_t cpu_quota_millis,
                      struct finding *f);

/* The order of an end of a tcp pair; the strings are conf's, id's and peer's. */
void node_pair_order(const struct probe_node_conf *conf, unsigned rail, const char *id, const char *peer,
                     struct probe_wire *out);

#endif
