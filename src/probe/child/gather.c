#include "gather.h"

#include <string.h>

#include "fault.h"
#include "say.h"
#include "watch.h"

#define RANKS         2
#define KIB           ((size_t)1 << 10)
#define MIB           ((size_t)1 << 20)
#define GIB           ((size_t)1 << 30)
#define LATENCY_COUNT 200
#define WARM_COUNT    5
#define COUNT         20
#define LARGE_COUNT   10
/* The pattern repeats after an odd number of pages, so that pieces in the wrong place do not match. */
#define PERIOD ((size_t)4190208)
#define STALE  0xa5

static void use_device(const struct gather *g, unsigned i)
{
    if (g->local > 1)
        cuda_must(g->cu, g->cu->cudaSetDevice(g->rank[i].device));
}

static void buffers(struct gather *g, size_t bytes)
{
    for (unsigned i = 0; i < g->local; i++) {
        void *at = NULL;
        use_device(g, i);
        cuda_must(g->cu, g->cu->cudaMalloc(&at, bytes));
        g->rank[i].buffer = at;
    }
    use_device(g, 0);
}

void gather_prepare(struct gather *g)
{
    void *host = NULL;
    for (unsigned i = 0; i < g->local; i++) {
        use_device(g, i);
        cuda_must(g->cu, g->cu->cudaStreamCreateWithFlags(&g->rank[i].stream, CUDA_STREAM_NON_BLOCKING));
    }
    use_device(g, 0);
    for (unsigned i = 0; i <= CUDA_EVENTS_MAX; i++)
        cuda_must(g->cu, g->cu->cudaEventCreate(&g->events[i]));
    cuda_must(g->cu, g->cu->cudaMallocHost(&host, (RANKS + 1) * PERIOD));
    g->host = host;
    buffers(g, 64 * MIB);
}

/* First without a pause, since NCCL is mostly done at once and a pause would count as latency; then ever longer. */
static void pause_of_turn(unsigned turn)
{
    enum { AT_ONCE = 100, US_MAX = 2000 };
    if (turn >= AT_ONCE)
        watch_sleep_us((turn - AT_ONCE + 1) * 50 < US_MAX ? (turn - AT_ONCE + 1) * 50 : US_MAX);
}

void gather_settle(const struct gather *g)
{
    for (unsigned i = 0; i < g->local; i++) {
        int state = NCCL_IN_PROGRESS;
        for (unsigned turn = 0;; turn++) {
            nccl_must(g->nc, g->nc->ncclCommGetAsyncError(g->rank[i].comm, &state));
            if (state != NCCL_IN_PROGRESS)
                break;
            pause_of_turn(turn);
        }
        nccl_must(g->nc, state);
    }
}

static void issue(const struct gather *g, size_t total)
{
    size_t part = total / RANKS;
    int rc = 0;
    if (g->local > 1)
        nccl_must(g->nc, g->nc->ncclGroupStart());
    for (unsigned i = 0; i < g->local && (rc == 0 || rc == NCCL_IN_PROGRESS); i++) {
        const struct gather_rank *r = &g->rank[i];
        rc = g->nc->ncclAllGather(r->buffer + (g->first + i) * part, r->buffer, part, NCCL_INT8, r->comm, r->stream);
    }
    if (g->local > 1 && rc == 0)
        rc = g->nc->ncclGroupEnd();
    if (rc == NCCL_IN_PROGRESS)
        gather_settle(g);
    else
        nccl_must(g->nc, rc);
}

/* Looks at NCCL's own opinion too: a kernel whose peer has gone spins for ever. */
static void wait_done(const struct gather *g, void *event)
{
    int rc;
    for (unsigned turn = 0; (rc = g->cu->cudaEventQuery(event)) == CUDA_NOT_READY; turn++) {
        if (turn % 16 == 15)
            gather_settle(g);
        watch_sleep_us(50);
    }
    cuda_must(g->cu, rc);
    for (unsigned i = 0; i < g->local; i++)
        cuda_wait_stream(g->cu, g->rank[i].stream);
}

/* Milliseconds of each of count all-gathers of total bytes. */
static void timed(const struct gather *g, size_t total, unsigned count, double *ms)
{
    void *stream = g->rank[0].stream;
    double start = watch_now_ms();
    cuda_must(g->cu, g->cu->cudaEventRecord(g->events[0], stream));
    for (unsigned i = 0; i < count; i++) {
        issue(g, total);
        cuda_must(g->cu, g->cu->cudaEventRecord(g->events[i + 1], stream));
    }
    wait_done(g, g->events[count]);
    if (!cuda_times(g->cu, g->events, count, watch_now_ms() - start, ms))
        fault_die_plain(watch_stage(), FAULT_DRIVER,
                        "restart the host or change the driver: nothing it measures can be used",
                        "the GPU's event times cannot be true");
}

/* The larger of both ends' values: so both ends take the same decision. */
static uint64_t gather_agree(const struct gather *g, uint64_t value)
{
    uint64_t *both = (uint64_t *)(void *)g->host, most = 0;
    for (unsigned i = 0; i < g->local; i++) {
        const struct gather_rank *r = &g->rank[i];
        both[i] = value;
        cuda_must(g->cu, g->cu->cudaMemcpyAsync(r->buffer + (g->first + i) * sizeof value, &both[i], sizeof value,
                                                CUDA_HOST_TO_DEVICE, r->stream));
        cuda_wait_stream(g->cu, r->stream);
    }
    issue(g, RANKS * sizeof value);
    cuda_must(g->cu, g->cu->cudaEventRecord(g->events[0], g->rank[0].stream));
    wait_done(g, g->events[0]);
    cuda_must(g->cu, g->cu->cudaMemcpyAsync(both, g->rank[0].buffer, RANKS * sizeof value, CUDA_DEVICE_TO_HOST,
                                            g->rank[0].stream));
    cuda_wait_stream(g->cu, g->rank[0].stream);
    for (unsigned i = 0; i < RANKS; i++)
        most = both[i] > most ? both[i] : most;
    return most;
}

/* --- content --- */

static char *pattern(const struct gather *g, unsigned rank)
{
    return g->host + rank * PERIOD;
}

/* This end's part holds its pattern, the others' what cannot be taken for theirs. */
static void gather_fill(const struct gather *g, size_t total)
{
    size_t part = total / RANKS;
    for (unsigned r = 0; r < RANKS; r++)
        for (uint32_t i = 0; i < PERIOD / 4; i++) {
            uint32_t word = i * 2654435761u ^ (r + 1) * 0x9e3779b9u;
            memcpy(pattern(g, r) + 4 * (size_t)i, &word, 4);
        }
    for (unsigned i = 0; i < g->local; i++) {
        const struct gather_rank *r = &g->rank[i];
        char *own = r->buffer + (g->first + i) * part;
        cuda_must(g->cu, g->cu->cudaMemsetAsync(r->buffer, STALE, total, r->stream));
        for (size_t at = 0; at < part; at += PERIOD)
            cuda_must(g->cu,
                      g->cu->cudaMemcpyAsync(own + at, pattern(g, g->first + i),
                                             part - at < PERIOD ? part - at : PERIOD, CUDA_HOST_TO_DEVICE, r->stream));
        cuda_wait_stream(g->cu, r->stream);
    }
}

static void __attribute__((noreturn)) wrong_content(unsigned from, size_t at, size_t part)
{
    fault_die_plain("content", FAULT_HARDWARE,
                    "silent corruption: let neither end of this pair train before both have passed with others",
                    "what rank %u sent did not arrive as it was: byte %zu of %zu differs", from, at, part);
}

static void check(const struct gather *g, size_t total)
{
    size_t part = total / RANKS;
    char *got = g->host + RANKS * PERIOD;
    for (unsigned i = 0; i < g->local; i++)
        for (unsigned from = 0; from < RANKS; from++)
            for (size_t at = 0; at < part; at += PERIOD) {
                size_t n = part - at < PERIOD ? part - at : PERIOD;
                cuda_must(g->cu, g->cu->cudaMemcpyAsync(got, g->rank[i].buffer + from * part + at, n,
                                                        CUDA_DEVICE_TO_HOST, g->rank[i].stream));
                cuda_wait_stream(g->cu, g->rank[i].stream);
                if (memcmp(got, pattern(g, from), n) == 0)
                    continue;
                size_t k = 0;
                while (got[k] == pattern(g, from)[k])
                    k++;
                wrong_content(from, at + k, part);
            }
}

/* --- the steps --- */

static void latency(const struct gather *g, const struct gather_plan *p)
{
    double ms[CUDA_EVENTS_MAX];
    unsigned count = p->quick ? LATENCY_COUNT / 5 : LATENCY_COUNT;
    watch_step("latency", p->step_ms);
    timed(g, KIB, count, ms);
    for (unsigned i = 0; i < count; i++)
        ms[i] *= 1e3;
    say_metric("lat_us", p->rail, ms, count, "us");
}

static void bandwidth(const struct gather *g, const struct gather_plan *p, const char *name, size_t total,
                      unsigned count)
{
    double v[CUDA_EVENTS_MAX];
    watch_step(name, p->step_ms);
    timed(g, total, count, v);
    for (unsigned i = 0; i < count; i++) /* per rank: what really crossed the link */
        v[i] = (double)total * (RANKS - 1) / RANKS / (v[i] * 1e6);
    say_metric(name, p->rail, v, count, "GB/s");
}

static bool room_for(const struct gather *g, size_t bytes)
{
    size_t spare = 0, all = 0;
    for (unsigned i = 0; i < g->local; i++) {
        use_device(g, i);
        cuda_must(g->cu, g->cu->cudaMemGetInfo(&spare, &all));
        if (spare < bytes + bytes / 4)
            return false;
    }
    use_device(g, 0);
    return true;
}

static unsigned fit(double budget_ms, double one_ms, unsigned least, unsigned most)
{
    double n = budget_ms / (one_ms > 1e-3 ? one_ms : 1e-3);
    return n >= most ? most : n <= least ? least : (unsigned)n;
}

void gather_release(struct gather *g)
{
    for (unsigned i = 0; i < g->local; i++) {
        use_device(g, i);
        cuda_must(g->cu, g->cu->cudaFree(g->rank[i].buffer));
        g->rank[i].buffer = NULL;
    }
}

void gather_run(struct gather *g, const struct gather_plan *p)
{
    double ms[CUDA_EVENTS_MAX];
    watch_step("first all-gather", p->init_ms); /* newer NCCL connects its channels only now */
    timed(g, KIB, 1, ms);
    watch_step("warm-up", p->step_ms);
    timed(g, MIB, 3, ms);
    double slow_ms = (double)gather_agree(g, (uint64_t)(ms[2] * 1e6)) / 1e6 * 64; /* of 64 MiB, at that speed */
    double budget_ms = p->step_ms / 4.0;
    bool large = !p->only && !p->quick && slow_ms * 16 * LARGE_COUNT < 2 * budget_ms;
    if (large) /* asked only if both ask */
        large = gather_agree(g, !room_for(g, GIB)) == 0;
    unsigned warm = fit(budget_ms, slow_ms, 0, p->quick ? 1 : WARM_COUNT);
    if (warm)
        timed(g, 64 * MIB, warm, ms);
    if (!p->only)
        latency(g, p);
    gather_fill(g, 64 * MIB);
    bandwidth(g, p, p->only ? p->only : "bw64m", 64 * MIB, fit(budget_ms, slow_ms, 1, p->quick ? COUNT / 4 : COUNT));
    watch_step("content", p->step_ms);
    check(g, 64 * MIB);
    if (!large)
        return;
    buffers(g, GIB);
    gather_fill(g, GIB);
    bandwidth(g, p, "bw1g", GIB, LARGE_COUNT);
    watch_step("content", p->step_ms);
    check(g, GIB);
}
