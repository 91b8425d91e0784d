/* Texts of /proc and of the driver: whatever they hold, the parsers stay inside and what they accept is in range. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proc/cgroup.h"
#include "proc/gpu.h"
#include "proc/numa.h"
#include "proc/procstat.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void cgroups(const char *text)
{
    char path[256];
    const char *half = strstr(text, "\n\n");
    if (cgroup_own(text, half ? half + 2 : text, path, sizeof path) == 0)
        assert(path[0] == '/' && strlen(path) < sizeof path);
    cgroup_own_v1(text, half ? half + 2 : text, "cpu", path, sizeof path);
}

static void devices(const char *text)
{
    static struct gpu_list all;
    struct gpu_visible seen;
    all.n = 0;
    while (all.n < 5 && gpu_add(&all, "0000:01:00.0", text) == 0)
        ;
    assert(all.n == 5);
    gpu_add(&all, text, text);
    gpu_sort(&all);
    gpu_select(&all, text, &seen);
    assert(seen.n <= GPU_MAX);
    for (unsigned i = 0; i < seen.n && !seen.mig; i++)
        assert(seen.index[i] < all.n);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    struct procstat_status status;
    struct procstat_stat stat;
    static struct numa_set set;
    if (procstat_status(&status, text) == 0)
        assert(status.state && status.state != '\n');
    if (procstat_stat(&stat, text) == 0)
        assert(stat.state && stat.pid >= 0 && strlen(stat.comm) < sizeof stat.comm);
    if (numa_set_parse(&set, text) == 0) {
        char again[64];
        numa_set_print(&set, again, sizeof again);
    }
    cgroups(text);
    devices(text);
    free(text);
    return 0;
}
