#include "sys/numa.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/scan.h"

#define BITS  64u
#define WORDS (NUMA_CPUS_MAX / BITS)

static_assert(NUMA_CPUS_MAX <= INT16_MAX, "a CPU number fits the table");

bool numa_set_has(const struct numa_set *set, unsigned n)
{
    return n < NUMA_CPUS_MAX && set->word[n / BITS] >> n % BITS & 1;
}

void numa_set_add(struct numa_set *set, unsigned n)
{
    assert(n < NUMA_CPUS_MAX);
    set->word[n / BITS] |= (uint64_t)1 << n % BITS;
}

unsigned numa_set_count(const struct numa_set *set)
{
    unsigned n = 0;
    for (unsigned i = 0; i < WORDS; i++)
        for (uint64_t w = set->word[i]; w; w &= w - 1)
            n++;
    return n;
}

int numa_set_first(const struct numa_set *set)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (set->word[i])
            return (int)(i * BITS) + __builtin_ctzll(set->word[i]);
    return -1;
}

int numa_set_parse(struct numa_set *set, const char *text)
{
    memset(set, 0, sizeof *set);
    const char *at = text;
    while (*at == ' ' || *at == '\n')
        at++;
    while (*at) {
        uint64_t first, last;
        if (!scan_span(&at, &first, &last) || last >= NUMA_CPUS_MAX)
            return -1;
        for (uint64_t n = first; n <= last; n++)
            numa_set_add(set, (unsigned)n);
        if (*at == ',' && at[1] >= '0' && at[1] <= '9')
            at++;
        else if (*at == '\n' && at[1] == 0)
            at++;
        else if (*at)
            return -1;
    }
    return 0;
}

void numa_set_print(const struct numa_set *set, char *to, size_t room_bytes)
{
    assert(room_bytes > 4);
    size_t n = 0;
    to[0] = 0;
    for (unsigned first = 0; first < NUMA_CPUS_MAX; first++) {
        if (!numa_set_has(set, first))
            continue;
        unsigned last = first;
        while (numa_set_has(set, last + 1))
            last++;
        char part[32];
        int len = last > first ? snprintf(part, sizeof part, "%s%u-%u", n ? "," : "", first, last)
                               : snprintf(part, sizeof part, "%s%u", n ? "," : "", first);
        if (n + (size_t)len + 4 >= room_bytes) {
            memcpy(to + n, "...", 4);
            return;
        }
        memcpy(to + n, part, (size_t)len + 1);
        n += (size_t)len;
        first = last;
    }
}

void numa_host_init(struct numa_host *h)
{
    memset(h, 0, sizeof *h);
    for (unsigned i = 0; i < NUMA_CPUS_MAX; i++)
        h->cpu[i] =
            (struct numa_cpu){.node = -1, .package = NUMA_NO_PACKAGE, .core = -1, .cache = -1, .cache_level = -1};
}

int numa_host_node(struct numa_host *h, unsigned node, const char *cpulist)
{
    struct numa_set cpus;
    if (node >= NUMA_NODES_MAX || numa_set_parse(&cpus, cpulist))
        return -1;
    numa_set_add(&h->nodes, node);
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        if (numa_set_has(&cpus, cpu))
            h->cpu[cpu].node = (int16_t)node;
    return 0;
}

int numa_host_package(struct numa_host *h, unsigned cpu, const char *physical_package_id)
{
    int id;
    const char *at = physical_package_id;
    if (cpu >= NUMA_CPUS_MAX || !scan_int(&at, &id) || id < -1 || id > INT16_MAX)
        return -1;
    h->cpu[cpu].package = (int16_t)id;
    return 0;
}

int numa_host_core(struct numa_host *h, unsigned cpu, const char *thread_siblings_list)
{
    struct numa_set cpus;
    if (cpu >= NUMA_CPUS_MAX || numa_set_parse(&cpus, thread_siblings_list) || numa_set_first(&cpus) < 0)
        return -1;
    h->cpu[cpu].core = (int16_t)numa_set_first(&cpus);
    return 0;
}

int numa_host_cache(struct numa_host *h, unsigned cpu, const char *type, const char *level, const char *shared_list)
{
    struct numa_set cpus;
    char kind[16];
    int n;
    if (cpu >= NUMA_CPUS_MAX || !scan_line(type, kind, sizeof kind) || !scan_int(&level, &n) || n < 0 || n > 99)
        return -1;
    if (strcmp(kind, "Unified") != 0 && strcmp(kind, "Data") != 0)
        return 0;
    if (n <= h->cpu[cpu].cache_level)
        return 0;
    if (numa_set_parse(&cpus, shared_list) || numa_set_first(&cpus) < 0)
        return -1;
    h->cpu[cpu].cache_level = (int16_t)n;
    h->cpu[cpu].cache = (int16_t)numa_set_first(&cpus);
    return 0;
}

int numa_host_gpu(struct numa_host *h, unsigned gpu, const char *numa_node)
{
    int node;
    if (gpu >= NUMA_GPUS_MAX || !scan_int(&numa_node, &node) || node >= NUMA_NODES_MAX)
        return -1;
    h->gpu_node[gpu] = (int16_t)(node < 0 ? 0 : node); /* one node only: the kernel often writes -1 */
    if (gpu >= h->gpus)
        h->gpus = gpu + 1;
    return 0;
}

static bool usable(const struct numa_host *h, unsigned cpu, int node)
{
    return h->cpu[cpu].node == node && numa_set_has(&h->allowed, cpu);
}

static void add_node(const struct numa_host *h, int node, struct numa_plan *out)
{
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        if (usable(h, cpu, node))
            numa_set_add(&out->cpus, cpu);
    out->nodes[(unsigned)node / BITS] |= (uint64_t)1 << (unsigned)node % BITS;
    out->node_count++;
}

/* Lowest usable CPU of the node, -1 if there is none. */
static int node_first(const struct numa_host *h, int node)
{
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        if (usable(h, cpu, node))
            return (int)cpu;
    return -1;
}

/* All nodes whose first usable CPU is in the socket of the GPU's node.  torch fails on a node without usable CPUs
 * (memory only, or outside of our affinity); here such a node has no socket and is passed over. */
static int plan_socket(const struct numa_host *h, int node, struct numa_plan *out, struct el_err *e)
{
    int first = node_first(h, node);
    if (first < 0 || h->cpu[first].package == NUMA_NO_PACKAGE)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding=socket: the kernel does not say which socket NUMA node %d is "
                       "on",
                       node);
    for (int other = 0; other < NUMA_NODES_MAX; other++) {
        int cpu = numa_set_has(&h->nodes, (unsigned)other) ? node_first(h, other) : -1;
        if (cpu >= 0 && h->cpu[cpu].package == h->cpu[first].package)
            add_node(h, other, out);
    }
    return 0;
}

/* The GPU's number among those of its node, and how many they are. */
static unsigned gpu_place(const struct numa_host *h, unsigned gpu, unsigned *of)
{
    unsigned place = 0;
    *of = 0;
    for (unsigned i = 0; i < h->gpus; i++) {
        if (h->gpu_node[i] != h->gpu_node[gpu])
            continue;
        if (i < gpu)
            place++;
        ++*of;
    }
    return place;
}

/* Groups the usable CPUs of a node by a number of theirs (lowest CPU of the core, or of the cache).
 * size[k]: usable CPUs of group k, 0 for none.  False if the number of a CPU is not known. */
static bool numa_group(const struct numa_host *h, int node, bool by_cache, uint16_t *size, unsigned *groups)
{
    memset(size, 0, NUMA_CPUS_MAX * sizeof *size);
    *groups = 0;
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++) {
        if (!usable(h, cpu, node))
            continue;
        int key = by_cache ? h->cpu[cpu].cache : h->cpu[cpu].core;
        if (key < 0)
            return false;
        *groups += size[key]++ == 0;
    }
    return true;
}

/* An equal share of the node's physical cores; what is left over goes, one each, to the lowest GPUs. */
static int plan_exclusive(const struct numa_host *h, int node, unsigned gpu, struct numa_plan *out, struct el_err *e)
{
    uint16_t size[NUMA_CPUS_MAX];
    unsigned cores, gpus, place = gpu_place(h, gpu, &gpus);
    if (!numa_group(h, node, false, size, &cores))
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding=exclusive: the kernel does not say which CPUs of NUMA node "
                       "%d share a core",
                       node);
    assert(gpus); /* this one at least */
    if (cores < gpus)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding=exclusive: NUMA node %d has %u GPUs but only %u physical "
                       "cores that elrun may use",
                       node, gpus, cores);
    unsigned share = cores / gpus, extra = cores % gpus;
    unsigned start = place * share + (place < extra ? place : extra), end = start + share + (place < extra);
    uint16_t rank = 0;
    for (unsigned core = 0; core < NUMA_CPUS_MAX; core++)
        if (size[core])
            size[core] = ++rank; /* from here on: the core's number on this node, from 1 */
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++) {
        if (!usable(h, cpu, node))
            continue;
        unsigned number = size[h->cpu[cpu].core] - 1u;
        if (number >= start && number < end)
            numa_set_add(&out->cpus, cpu);
    }
    return 0;
}

/* One group of CPUs with a common last cache: larger groups first, then lower ones, in turn over the node's GPUs. */
static int plan_cache(const struct numa_host *h, int node, unsigned gpu, struct numa_plan *out, struct el_err *e)
{
    uint16_t size[NUMA_CPUS_MAX];
    unsigned caches, gpus, place = gpu_place(h, gpu, &gpus);
    if (!numa_group(h, node, true, size, &caches))
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding=core-complex: the kernel does not say which CPUs of NUMA node "
                       "%d share a cache",
                       node);
    assert(caches);
    unsigned chosen = 0;
    for (unsigned turn = place % caches + 1; turn; turn--) {
        unsigned best = NUMA_CPUS_MAX;
        for (unsigned k = 0; k < NUMA_CPUS_MAX; k++)
            if (size[k] && (best == NUMA_CPUS_MAX || size[k] > size[best]))
                best = k;
        assert(best < NUMA_CPUS_MAX);
        size[best] = 0;
        chosen = best;
    }
    for (unsigned cpu = 0; cpu < NUMA_CPUS_MAX; cpu++)
        if (usable(h, cpu, node) && h->cpu[cpu].cache == (int)chosen)
            numa_set_add(&out->cpus, cpu);
    return 0;
}

int numa_plan(const struct numa_host *h, enum numa_mode mode, unsigned gpu, struct numa_plan *out, struct el_err *e)
{
    assert(mode != NUMA_OFF);
    memset(out, 0, sizeof *out);
    if (gpu >= h->gpus)
        return el_fail(e, EL_EXIT_CONFIG, "--numa-binding: there is no GPU for local rank %u (this host shows %u)", gpu,
                       h->gpus);
    int node = h->gpu_node[gpu], r = 0;
    if (!numa_set_has(&h->nodes, (unsigned)node))
        return el_fail(e, EL_EXIT_CONFIG,
                       "--numa-binding: the kernel does not list the CPUs of NUMA node %d, where "
                       "GPU %u is",
                       node, gpu);
    if (node_first(h, node) < 0)
        return el_fail(e, EL_EXIT_CONFIG, "--numa-binding: elrun may use no CPU of NUMA node %d, where GPU %u is", node,
                       gpu);
    switch (mode) {
    case NUMA_SOCKET: r = plan_socket(h, node, out, e); break;
    case NUMA_EXCLUSIVE: r = plan_exclusive(h, node, gpu, out, e); break;
    case NUMA_CORE_COMPLEX: r = plan_cache(h, node, gpu, out, e); break;
    case NUMA_NODE:
    case NUMA_OFF: add_node(h, node, out); break;
    }
    if (r == 0 && !out->node_count) {
        out->nodes[(unsigned)node / BITS] |= (uint64_t)1 << (unsigned)node % BITS;
        out->node_count = 1;
    }
    assert(r || numa_set_count(&out->cpus) > 0);
    return r;
}
