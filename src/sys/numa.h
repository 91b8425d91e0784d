/* Where a worker's threads and memory should be: near the GPU of its local rank.  The four modes and their arithmetic
 * are those of torch 2.13 (torch/numa/binding.py); a table of golden cases made with it is in test_numa.c.
 *
 * The core takes the texts of sysfs, one call a file; numa_io.c reads the files and carries a plan out. */
#ifndef SYS_NUMA_H
#define SYS_NUMA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define NUMA_CPUS_MAX  8192 /* the kernel's own limit on x86 and arm */
#define NUMA_NODES_MAX 1024
#define NUMA_GPUS_MAX  64

/* --numa-binding. */
enum numa_mode { NUMA_OFF, NUMA_NODE, NUMA_SOCKET, NUMA_EXCLUSIVE, NUMA_CORE_COMPLEX };

/* A set of CPU or node numbers, laid out as the kernel's masks are. */
struct numa_set {
    uint64_t word[NUMA_CPUS_MAX / 64];
};

/* "0-2,4,6-7\n" as in sysfs.  -1 if it is not such a list or names a number from NUMA_CPUS_MAX on. */
int numa_set_parse(struct numa_set *set, const char *text);
bool numa_set_has(const struct numa_set *set, unsigned n);
void numa_set_add(struct numa_set *set, unsigned n);
unsigned numa_set_count(const struct numa_set *set);
int numa_set_first(const struct numa_set *set); /* -1: empty */

/* "0-2,4,6-7", cut with "..." where it does not fit. */
void numa_set_print(const struct numa_set *set, char *to, size_t room_bytes);

#define NUMA_NO_PACKAGE INT16_MIN

struct numa_cpu {
    int16_t node;        /* -1: none known */
    int16_t package;     /* as the kernel says, which may be -1 */
    int16_t core;        /* lowest CPU of its physical core, -1: not known */
    int16_t cache;       /* lowest CPU that shares its last cache, -1: not known */
    int16_t cache_level; /* of that cache */
};

/* What sysfs and the scheduler say.  About 80 KiB: not for the stack. */
struct numa_host {
    struct numa_set allowed; /* sched_getaffinity */
    struct numa_set nodes;   /* nodes that have a CPU list */
    struct numa_cpu cpu[NUMA_CPUS_MAX];
    unsigned gpus;
    int16_t gpu_node[NUMA_GPUS_MAX]; /* by CUDA index */
};

void numa_host_init(struct numa_host *h);

/* The texts: each returns -1, and changes nothing that matters, if the text is not what the kernel writes. */
int numa_host_node(struct numa_host *h, unsigned node, const char *cpulist);
int numa_host_package(struct numa_host *h, unsigned cpu, const char *physical_package_id);
int numa_host_core(struct numa_host *h, unsigned cpu, const char *thread_siblings_list);
int numa_host_cache(struct numa_host *h, unsigned cpu, const char *type, const char *level, const char *shared_list);
int numa_host_gpu(struct numa_host *h, unsigned gpu, const char *numa_node); /* "-1" counts as node 0 */

struct numa_plan {
    struct numa_set cpus;
    uint64_t nodes[NUMA_NODES_MAX / 64];
    unsigned node_count;
};

/* The plan of the worker with that GPU.  -1 and *e (exit status 78) if the host does not have what the mode needs. */
int numa_plan(const struct numa_host *h, enum numa_mode mode, unsigned gpu, struct numa_plan *out, struct el_err *e);

/* numa_io.c: reads everything that the mode needs below root ("" for the real one; tests have their own), for the GPUs
 * with these PCI addresses, in CUDA's order. */
int numa_host_read(struct numa_host *h, const char *root, enum numa_mode mode, char (*pci)[32], unsigned gpus,
                   struct el_err *e);

/* numa_io.c: the plans of the local ranks 0 … nproc-1 of this host, or NULL and *e naming why not (no GPU: status 78).
 * One block, to be freed with free(). */
struct numa_plan *numa_plans_new(enum numa_mode mode, unsigned nproc, char *const *env, struct el_err *e);

/* numa_io.c: binds the calling thread.  Async-signal-safe, for the child between fork and exec.  Returns 0 or errno.
 * CPUs are a must; the memory policy is a wish: memory is *preferred* from the plan's nodes, never bound to them. */
int numa_apply(const struct numa_plan *plan);

#endif
