/* How much memory snapshots may have, and what workers get so that the kernel shoots them first. */
#include "agent/host.h"
#include "agent/snapshots.h"

#include "lib/tap.h"

#define GIB ((uint64_t)1 << 30)

int main(void)
{
    struct el_err e = {0};
    uint64_t bytes = 0;
    struct run_conf fixed = {.ckpt_mem_bytes = 8 * GIB}, share = {.ckpt_mem_percent = 25};
    ok(snapshots_budget(&fixed, 64 * GIB, 32 * GIB, HOST_UNLIMITED, HOST_UNLIMITED, &bytes, &e) == 0 &&
           bytes == 8 * GIB,
       "a size that is there");
    ok(snapshots_budget(&fixed, 64 * GIB, 7 * GIB, HOST_UNLIMITED, HOST_UNLIMITED, &bytes, &e) < 0 &&
           strstr(e.text, "7168 MiB available"),
       "one that is not");
    e = (struct el_err){0};
    ok(snapshots_budget(&fixed, 64 * GIB, 32 * GIB, 4 * GIB, 4 * GIB, &bytes, &e) < 0 && strstr(e.text, "cgroup"),
       "one that the cgroup does not give");
    e = (struct el_err){0};
    ok(snapshots_budget(&fixed, 64 * GIB, 32 * GIB, 16 * GIB, 7 * GIB, &bytes, &e) < 0 &&
           strstr(e.text, "7168 MiB available (within its cgroup's limit)"),
       "one that the cgroup would give, if others in it held less");
    ok(snapshots_budget(&share, 64 * GIB, 32 * GIB, 8 * GIB, 8 * GIB, &bytes, &e) == 0 &&
           bytes / 100 == 8 * GIB / 100 / 4,
       "a share is one of the smaller of both");
    ok(snapshots_oom_more(8 * GIB, 64 * GIB, HOST_UNLIMITED) == 125, "an eighth of the memory: 125 thousandths");
    ok(snapshots_oom_more(8 * GIB, 64 * GIB, 16 * GIB) == 500, "half of the cgroup's");
    ok(snapshots_oom_more(8 * GIB, 64 * GIB, 4 * GIB) == 1000 && snapshots_oom_more(GIB, 0, 0) == 1000,
       "never more than all");
    return done();
}
