#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/env.h"
#include "sys/gpu.h"
#include "sys/numa.h"
#include "util/file.h"

#define SYSTEM "/sys/devices/system/"

static int unreadable(const char *what, unsigned n, struct el_err *e)
{
    return el_fail(e, EL_EXIT_CONFIG, "--numa-binding: cannot read the %s of %u below " SYSTEM, what, n);
}

static int read_nodes(struct numa_host *h, const char *root, struct el_err *e)
{
    char text[8192];
    struct numa_set possible;
    if (file_readf(text, sizeof text, root, SYSTEM "node/possible") < 0 || numa_set_parse(&possible, text))
        return el_fail(e, EL_EXIT_CONFIG, "--numa-binding: this kernel shows no NUMA nodes (" SYSTEM "node/possible)");
    for (unsigned node = 0; node < NUMA_NODES_MAX; node++) {
        if (!numa_set_has(&possible, node))
            continue;
        /* A possible node that is not there has no folder. */
        if (file_readf(text, sizeof text, root, SYSTEM "node/node%u/cpulist", node) >= 0 &&
            numa_host_node(h, node, text))
            return unreadable("CPUs", node, e);
    }
    return 0;
}

static int read_caches(struct numa_host *h, const char *root, unsigned cpu, struct el_err *e)
{
    char type[64], level[64], list[8192];
    for (unsigned i = 0; i < 16; i++) {
        if (file_readf(type, sizeof type, root, SYSTEM "cpu/cpu%u/cache/index%u/type", cpu, i) < 0)
            return 0; /* no cache at all is found out by the plan */
        if (file_readf(level, sizeof level, root, SYSTEM "cpu/cpu%u/cache/index%u/level", cpu, i) < 0 ||
            file_readf(list, sizeof list, root, SYSTEM "cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, i) < 0 ||
            numa_host_cache(h, cpu, type, level, list))
            return unreadable("caches", cpu, e);
    }
    return 0;
}

static int read_cpu(struct numa_host *h, const char *root, enum numa_mode mode, unsigned cpu, struct el_err *e)
{
    char text[8192];
    if (mode == NUMA_SOCKET &&
        file_readf(text, sizeof text, root, SYSTEM "cpu/cpu%u/topology/physical_package_id", cpu) >= 0 &&
        numa_host_package(h, cpu, text))
        return unreadable("socket", cpu, e);
    if (mode == NUMA_EXCLUSIVE &&
        file_readf(text, sizeof text, root, SYSTEM "cpu/cpu%u/topology/thread_siblings_list", cpu) >= 0 &&
        numa_host_core(h, cpu, text))
        return unreadable("threads of a core", cpu, e);
    return mode == NUMA_CORE_COMPLEX ? read_caches(h, root, cpu, e) : 0;
}

int numa_host_read(struct numa_host *h, const char *root, enum numa_mode mode, char (*pci)[32], unsigned gpus,
                   struct el_err *e)
{
    numa_host_init(h);
    if (sched_getaffinity(0, sizeof h->allowed.word, (cpu_set_t *)h->allowed.word))
        return el_fail_sys(e, EL_EXIT_OSERR, errno, "--numa-binding: cannot ask which CPUs elrun may use");
    if (read_nodes(h, root, e))
        return -1;
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        if (numa_set_has(&h->allowed, cpu) && read_cpu(h, root, mode, cpu, e))
            return -1;
    for (unsigned gpu = 0; gpu < gpus; gpu++) {
        char text[64];
        if (file_readf(text, sizeof text, root, "/sys/bus/pci/devices/%s/numa_node", pci[gpu]) < 0 ||
            numa_host_gpu(h, gpu, text))
            return el_fail(e, EL_EXIT_CONFIG,
                           "--numa-binding: the kernel does not say where GPU %u is "
                           "(/sys/bus/pci/devices/%s/numa_node)",
                           gpu, pci[gpu]);
    }
    return 0;
}

/* PCI addresses of the visible devices in the order of local ranks; the count, or -1. */
static int visible_addresses(char *const *env, unsigned nproc, char (*pci)[32], struct el_err *e)
{
    struct gpu_list all;
    struct gpu_visible seen;
    const char *visible = env_get(env, "CUDA_VISIBLE_DEVICES");
    gpu_read(&all, "");
    if (!all.n)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding places each worker near the GPU of its local rank, but this "
                       "host has no NVIDIA GPU (nothing in /proc/driver/nvidia/gpus, no device node)");
    gpu_select(&all, visible, &seen);
    if (seen.mig)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding: CUDA_VISIBLE_DEVICES names MIG slices, and only the "
                       "driver's library knows on which GPU they are: name GPUs");
    if (seen.n < nproc && visible)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding: %u workers, but CUDA_VISIBLE_DEVICES=%.200s leaves %u of "
                       "the %u GPUs of this host",
                       nproc, visible, seen.n, all.n);
    for (unsigned i = 0; i < seen.n; i++) {
        const struct gpu *g = &all.v[seen.index[i]];
        if (!g->pci[0])
            return el_fail(e, EL_EXIT_CONFIG,
                           "--numa-binding: this host does not show the PCI addresses of its GPUs "
                           "(no /proc/driver/nvidia/gpus)");
        memcpy(pci[i], g->pci, sizeof g->pci);
    }
    return (int)seen.n;
}

struct numa_plan *numa_plans_new(enum numa_mode mode, unsigned nproc, char *const *env, struct el_err *e)
{
    char pci[GPU_MAX][32];
    int gpus = visible_addresses(env, nproc, pci, e);
    if (gpus < 0)
        return NULL;
    struct numa_host *h = malloc(sizeof *h);
    struct numa_plan *plans = calloc(nproc, sizeof *plans);
    int r = h && plans ? 0 : el_fail(e, EL_EXIT_OSERR, "no memory for the NUMA plan of %u workers", nproc);
    if (r == 0)
        r = numa_host_read(h, "", mode, pci, (unsigned)gpus, e);
    for (unsigned i = 0; r == 0 && i < nproc; i++)
        r = numa_plan(h, mode, i, &plans[i], e);
    free(h);
    if (r == 0)
        return plans;
    free(plans);
    return NULL;
}

/* The kernel's numbers; older headers lack the last. */
enum { WORKER_GROUP_DEFAULT = 0, WORKER_GROUP_PREFERRED = 1, WORKER_GROUP_LOCAL = 4, WORKER_GROUP_PREFERRED_MANY = 5 };

/* Prefer, not bind: a node whose memory is full (page cache, pinned buffers) would have its worker shot by the kernel
 * while other nodes have plenty; a remote page is only slower.  A policy that the user has set already (numactl
 * --membind elrun …) stays.  Containers often refuse the call, and the threads' own nodes are the kernel's first choice
 * anyway: so a refusal is no error. */
static void prefer(const struct numa_plan *plan)
{
    int now = WORKER_GROUP_DEFAULT;
    if (syscall(SYS_get_mempolicy, &now, NULL, 0ul, NULL, 0ul) == 0 && now != WORKER_GROUP_DEFAULT)
        return;
    int mode = plan->node_count == 1 ? WORKER_GROUP_PREFERRED : WORKER_GROUP_PREFERRED_MANY;
    unsigned long bits = NUMA_NODES_MAX + 1ul; /* the kernel takes one off */
    if (syscall(SYS_set_mempolicy, mode, plan->nodes, bits) && errno == EINVAL)
        syscall(SYS_set_mempolicy, WORKER_GROUP_LOCAL, NULL, 0ul); /* before Linux 5.15: no such policy for several */
}

int numa_apply(const struct numa_plan *plan)
{
    if (sched_setaffinity(0, sizeof plan->cpus.word, (const cpu_set_t *)plan->cpus.word))
        return errno;
    prefer(plan);
    return 0;
}
