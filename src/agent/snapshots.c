/* How much memory snapshots may have: the pure part of snapshots.h. */
#include "agent/snapshots.h"

#include "agent/host.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int snapshots_budget(const struct run_conf *conf, uint64_t memory_bytes, uint64_t free_bytes, uint64_t limit_bytes,
                     uint64_t left_bytes, uint64_t *bytes, struct el_err *e)
{
    uint64_t all = least(memory_bytes, limit_bytes), there = least(free_bytes, least(limit_bytes, left_bytes));
    *bytes = conf->ckpt_mem_percent ? all / 100 * conf->ckpt_mem_percent : conf->ckpt_mem_bytes;
    if (there >= HOST_UNKNOWN || *bytes <= there)
        return 0;
    if (conf->ckpt_mem_default) { /* nobody has asked for so much */
        *bytes = there;
        return 0;
    }
    return el_fail(
        e, EL_EXIT_CONFIG,
        "--ckpt-mem wants %llu MiB for snapshots, and this host has %llu MiB available%s: give less, or free "
        "some",
        (unsigned long long)(*bytes >> 20), (unsigned long long)(there >> 20),
        least(limit_bytes, left_bytes) < free_bytes ? " (within its cgroup's limit)" : "");
}

unsigned snapshots_oom_more(uint64_t budget_bytes, uint64_t memory_bytes, uint64_t limit_bytes)
{
    uint64_t all = least(memory_bytes, limit_bytes) / 1000;
    return all == 0 || budget_bytes / all >= 1000 ? 1000 : (unsigned)(budget_bytes / all);
}
