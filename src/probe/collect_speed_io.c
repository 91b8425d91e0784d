/* How fast memory and one processor are: short loops, to be compared with other nodes or with a baseline.  A host that
 * does not give this process the processors (a quota, another program) says nothing about its speed: then only the
 * share of the time is told. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sys/host.h"
#include "probe/collect.h"
#include "probe/metric.h"
#include "probe/sysread.h"
#include "util/file.h"

enum { THREADS_MAX = 16, SLICES = 9, SHARE_ENOUGH = 80, SLICE_MS = 30, PIECE_BYTES = 1 << 20 };

/* For each thread twice: more than its part of any cache, but all of them together no more than a part of what is free.
 */
enum { BLOCK_PIECES = 32, FREE_PART = 32 };

struct streamer {
    pthread_t thread;
    pthread_barrier_t *gate;
    double slice_s;
    size_t block_bytes;
    char *from, *to;
    double rate[SLICES]; /* bytes a second, read and written */
    double cpu_s, wall_s;
};

static double clock_s(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void collect_speed_tell(const struct collect *c, enum metric m, double v[SLICES])
{
    const struct metric_info *info = metric_info(m);
    qsort(v, SLICES, sizeof v[0], ascending);
    struct collect_metric out = {.name = info->name,
                                 .unit = info->unit,
                                 .n = SLICES,
                                 .min = v[0],
                                 .median = v[SLICES / 2],
                                 .p95 = v[SLICES - 1 - SLICES / 20]};
    c->metric(c->ctx, &out);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Each thread touches its own memory first, so that it lies at its own NUMA node. */
static void *stream(void *ctx)
{
    struct streamer *s = ctx;
    memset(s->from, 1, s->block_bytes);
    memset(s->to, 2, s->block_bytes);
    pthread_barrier_wait(s->gate);
    double begin = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < SLICES; i++) {
        double from = clock_s(CLOCK_MONOTONIC), now = from, bytes = 0;
        for (size_t at = 0; now - from < s->slice_s; at = (at + PIECE_BYTES) % s->block_bytes) {
            memcpy(s->to + at, s->from + at, PIECE_BYTES);
            bytes += 2.0 * PIECE_BYTES;
            now = clock_s(CLOCK_MONOTONIC);
        }
        s->rate[i] = bytes / (now - from);
    }
    s->cpu_s = clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu;
    s->wall_s = clock_s(CLOCK_MONOTONIC) - begin;
    return NULL;
}

static void collect_speed_sum_up(const struct streamer *s, unsigned n, double gb[SLICES], double *share)
{
    double cpu = 0, wall = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < SLICES; k++)
            gb[k] += s[i].rate[k] / 1e9;
        cpu += s[i].cpu_s;
        wall += s[i].wall_s;
    }
    *share = wall > 0 ? cpu / wall : 0;
}

static size_t block_bytes(const struct collect *c, unsigned threads)
{
    char text[4096];
    struct sysread_memory m;
    size_t pieces = BLOCK_PIECES;
    if (file_readf(text, sizeof text, c->root, "/proc/meminfo") > 0 && sysread_memory(text, &m) &&
        m.available / FREE_PART / PIECE_BYTES / threads / 2 < pieces)
        pieces = (size_t)(m.available / FREE_PART / PIECE_BYTES / threads / 2);
    return pieces * PIECE_BYTES;
}

/* False: threads or memory are not to be had. */
static bool memory_speed(const struct collect *c, unsigned threads, double slice_s, double gb[SLICES], double *share)
{
    static struct streamer s[THREADS_MAX];
    pthread_barrier_t gate;
    size_t bytes = block_bytes(c, threads);
    unsigned n = 0;
    if (!bytes || pthread_barrier_init(&gate, NULL, threads))
        return false;
    for (; n < threads; n++) {
        s[n] = (struct streamer){.gate = &gate, .slice_s = slice_s, .block_bytes = bytes};
        s[n].from = malloc(bytes);
        s[n].to = malloc(bytes);
        if (!s[n].from || !s[n].to || pthread_create(&s[n].thread, NULL, stream, &s[n]))
            return false; /* those that wait at the gate end with the process */
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(s[i].thread, NULL);
    collect_speed_sum_up(s, n, gb, share);
    return true;
}

/* --- one processor ------------------------------------------------------------------------------------------------ */

enum { CHAINS = 16, TURNS = 20000 };

/* Multiply and add in chains that do not wait for one another; two operations each. */
static double arithmetic(void)
{
    double v[CHAINS], sum = 0;
    for (unsigned i = 0; i < CHAINS; i++)
        v[i] = 1.0 + i * 1e-3;
    for (unsigned t = 0; t < TURNS; t++)
        for (unsigned i = 0; i < CHAINS; i++)
            v[i] = v[i] * 0.999999 + 1e-6;
    for (unsigned i = 0; i < CHAINS; i++)
        sum += v[i];
    return sum;
}

/* Where it gets little of the processor it gives up soon: a quota of a fiftieth is no reason to wait for minutes. */
static double processor_speed(double slice_s, double gflops[SLICES])
{
    volatile double sink = 0;
    double begin = clock_s(CLOCK_MONOTONIC), all = clock_s(CLOCK_THREAD_CPUTIME_ID), share = 1;
    for (unsigned i = 0; i < SLICES; i++) {
        double cpu = clock_s(CLOCK_THREAD_CPUTIME_ID), used = 0, work = 0;
        while (used < slice_s) {
            sink = sink + arithmetic();
            work += 2.0 * CHAINS * TURNS;
            used = clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu;
            double wall = clock_s(CLOCK_MONOTONIC) - begin;
            share = wall > 0 ? (used + cpu - all) / wall : 1;
            if (wall > 3 * SLICES * slice_s)
                return share;
        }
        gflops[i] = work / used / 1e9;
    }
    return share;
}

void collect_speed(const struct collect *c)
{
    double slice_s = (c->quick ? SLICE_MS / 3 : SLICE_MS) / 1000.0, gb[SLICES] = {0}, gflops[SLICES], many = 1;
    double one = processor_speed(slice_s, gflops);
    unsigned threads = host_cpus();
    bool memory =
        one * 100 >= SHARE_ENOUGH && memory_speed(c, threads < THREADS_MAX ? threads : THREADS_MAX, slice_s, gb, &many);
    double percent = 100 * (many < one ? many : one);
    struct finding f = finding_value(CHECK_CPU_SHARE, "", percent > 100 ? 100 : percent);
    if (percent < SHARE_ENOUGH)
        finding_say(&f, "too little to judge its speed");
    c->finding(c->ctx, &f);
    if (percent < SHARE_ENOUGH)
        return;
    collect_speed_tell(c, METRIC_CPU, gflops);
    if (memory)
        collect_speed_tell(c, METRIC_HOST_MEM, gb);
}
