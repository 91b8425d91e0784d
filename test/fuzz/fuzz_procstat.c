/* Texts of /proc, of sysfs and of the driver: whatever they hold, the parsers stay inside and what they accept is in
 * range. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cgroup.h"
#include "sys/gpu.h"
#include "sys/numa.h"
#include "sys/procstat.h"
#include "util/scan.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void cgroups(const char *text)
{
    char path[256];
    const char *half = strstr(text, "\n\n");
    if (cgroup_own(text, half ? half + 2 : text, path, sizeof path) == 0)
        assert(path[0] == '/' && strlen(path) < sizeof path);
    if (cgroup_own_v1(text, half ? half + 2 : text, "cpu", path, sizeof path) == 0)
        assert(path[0] == '/');
    if (cgroup_mount(text, "cpu", path, sizeof path) == 0 || cgroup_mount(text, NULL, path, sizeof path) == 0)
        assert(path[0] == '/' && strlen(path) < sizeof path);
}

static void check_plan(const struct numa_host *h, enum numa_mode mode, unsigned gpu)
{
    static struct numa_plan plan;
    struct el_err e = {0};
    if (numa_plan(h, mode, gpu, &plan, &e)) {
        assert(e.status == EL_EXIT_CONFIG && e.text[0]);
        return;
    }
    assert(numa_set_count(&plan.cpus) && plan.node_count);
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        assert(!numa_set_has(&plan.cpus, cpu) || numa_set_has(&h->allowed, cpu));
}

/* A host of which every file is a line of the text, in turn. */
static void topology(const char *text)
{
    static const enum numa_mode modes[] = {NUMA_NODE, NUMA_SOCKET, NUMA_EXCLUSIVE, NUMA_CORE_COMPLEX};
    static struct numa_host h;
    char line[256];
    numa_host_init(&h);
    for (unsigned cpu = 0; cpu < 16; cpu++)
        numa_set_add(&h.allowed, cpu);
    unsigned i = 0, known = 0;
    for (const char *at = text; at && i < 64; at = strchr(at, '\n'), at = at ? at + 1 : NULL, i++) {
        unsigned which = i / 6;
        if (!scan_line(at, line, sizeof line))
            continue;
        switch (i % 6) {
        case 0: known += numa_host_node(&h, which, line) == 0; break;
        case 1: known += numa_host_package(&h, which, line) == 0; break;
        case 2: known += numa_host_core(&h, which, line) == 0; break;
        case 3: known += numa_host_cache(&h, which, "Unified\n", line, line) == 0; break;
        case 4: known += numa_host_cache(&h, which, line, "3\n", "0-3\n") == 0; break;
        default: known += numa_host_gpu(&h, which, line) == 0; break;
        }
    }
    for (unsigned mode = 0; known && mode < sizeof modes / sizeof modes[0]; mode++)
        for (unsigned gpu = 0; gpu < h.gpus && gpu < 4; gpu++)
            check_plan(&h, modes[mode], gpu);
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
        static struct numa_set back;
        char again[64];
        numa_set_print(&set, again, sizeof again);
        if (!strstr(again, "..."))
            assert(numa_set_parse(&back, again) == 0 && memcmp(&back, &set, sizeof set) == 0);
    }
    cgroups(text);
    devices(text);
    topology(text);
    free(text);
    return 0;
}
