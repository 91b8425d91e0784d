/* One GPU under load: fused multiply-adds whose result is known to the last bit, then copies. */
#include <math.h>
#include <string.h>

#include "burn_ptx.h"
#include "cuda.h"
#include "fault.h"
#include "hello.h"
#include "nvml.h"
#include "order.h"
#include "say.h"
#include "watch.h"

#define THREADS       256
#define BLOCKS_PER_SM 8
#define LAUNCHES_MAX  CUDA_EVENTS_MAX
#define COPY_COUNT    10
#define COPY_MAX      ((size_t)1 << 30)
#define COPY_HOST_MAX ((size_t)1 << 28)

/* Functions of the driver, which the runtime gives (CUresult has the runtime's numbers). */
struct kernel {
    void *module, *function;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
};

static void driver_must(int code)
{
    if (code != 0)
        fault_die(watch_stage(), LIB_CUDA, code, NULL);
}

static void kernel_load(const struct cuda *cu, struct kernel *k)
{
    int (*load)(void **, const void *, unsigned, int *, void **);
    int (*get)(void **, void *, const char *);
    void *at = cuda_driver_function(cu, "cuModuleLoadDataEx");
    memcpy(&load, &at, sizeof load);
    at = cuda_driver_function(cu, "cuModuleGetFunction");
    memcpy(&get, &at, sizeof get);
    at = cuda_driver_function(cu, "cuLaunchKernel");
    memcpy(&k->launch, &at, sizeof k->launch);
    driver_must(load(&k->module, burn_ptx, 0, NULL, NULL));
    driver_must(get(&k->function, k->module, BURN_NAME));
}

struct burn {
    const struct cuda *cu;
    struct kernel kernel;
    void *stream, *out, *before, *after;
    uint32_t *host; /* page-locked copy of out */
    unsigned blocks, threads;
    int gpu;
};

static void burn_prepare(struct burn *b)
{
    int sms = 0;
    void *host = NULL;
    cuda_must(b->cu, b->cu->cudaDeviceGetAttribute(&sms, CUDA_ATTRIBUTE_SMS, b->gpu));
    b->blocks = (unsigned)(sms > 0 ? sms : 1) * BLOCKS_PER_SM;
    b->threads = b->blocks * THREADS;
    cuda_must(b->cu, b->cu->cudaStreamCreateWithFlags(&b->stream, CUDA_STREAM_NON_BLOCKING));
    cuda_must(b->cu, b->cu->cudaEventCreate(&b->before));
    cuda_must(b->cu, b->cu->cudaEventCreate(&b->after));
    cuda_must(b->cu, b->cu->cudaMalloc(&b->out, b->threads * sizeof *b->host));
    cuda_must(b->cu, b->cu->cudaMallocHost(&host, b->threads * sizeof *b->host));
    b->host = host;
    kernel_load(b->cu, &b->kernel);
}

/* Milliseconds of one launch; its results are in host. */
static double burn_once(struct burn *b)
{
    uint64_t out = (uint64_t)(uintptr_t)b->out;
    uint32_t rounds = BURN_ROUNDS;
    void *arguments[] = {&out, &rounds};
    double start = watch_now_ms(), ms = 0;
    size_t bytes = b->threads * sizeof *b->host;
    cuda_must(b->cu, b->cu->cudaMemsetAsync(b->out, 0, bytes, b->stream));
    cuda_must(b->cu, b->cu->cudaEventRecord(b->before, b->stream));
    driver_must(b->kernel.launch(b->kernel.function, b->blocks, 1, 1, THREADS, 1, 1, 0, b->stream, arguments, NULL));
    cuda_must(b->cu, b->cu->cudaEventRecord(b->after, b->stream));
    cuda_must(b->cu, b->cu->cudaMemcpyAsync(b->host, b->out, bytes, CUDA_DEVICE_TO_HOST, b->stream));
    cuda_wait_stream(b->cu, b->stream);
    void *events[2] = {b->before, b->after};
    if (!cuda_times(b->cu, events, 1, watch_now_ms() - start, &ms))
        fault_die_plain(watch_stage(), FAULT_DRIVER,
                        "restart the host or change the driver: nothing it measures can be used",
                        "the GPU's event times cannot be true");
    return ms;
}

/* Threads whose result is not what it must be, and the first of them. */
static unsigned burn_wrong(const struct burn *b, unsigned *first)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < b->threads; i++)
        if (b->host[i] != burn_result[i % BURN_LANES] && wrong++ == 0)
            *first = i;
    return wrong;
}

static bool burn_run(struct burn *b, const struct order *o, struct nvml_load *load)
{
    static double v[LAUNCHES_MAX];
    double operations = (double)b->threads * BURN_ROUNDS * BURN_OPERATIONS;
    unsigned n = 0, wrong = 0, first = 0, limit_ms = o->quick ? o->burn_ms / 5 : o->burn_ms;
    watch_step("burn", o->step_ms + limit_ms);
    burn_once(b); /* the first one pays for the clock to rise */
    for (double end = watch_now_ms() + limit_ms; n == 0 || (n < LAUNCHES_MAX && watch_now_ms() < end && !wrong); n++) {
        v[n] = operations / (burn_once(b) * 1e9);
        wrong = burn_wrong(b, &first);
        nvml_load_look(load);
    }
    char text[120];
    text_put(text, sizeof text, "%u of %u threads computed a wrong result, the first in block %u", wrong, b->threads,
             first / THREADS);
    say_value("gpu_burn", b->gpu, wrong == 0, NAN, wrong ? text : NULL);
    say_metric("burn", b->gpu, v, n, "TFLOP/s");
    return wrong == 0;
}

/* times: how often a byte crosses the memory (a copy inside the device reads and writes it). */
static void burn_copy(struct burn *b, const char *name, void *to, const void *from, size_t bytes, int kind,
                      double times)
{
    double v[COPY_COUNT];
    for (int i = -1; i < COPY_COUNT; i++) {
        double start = watch_now_ms(), ms = 0;
        void *events[2] = {b->before, b->after};
        cuda_must(b->cu, b->cu->cudaEventRecord(b->before, b->stream));
        cuda_must(b->cu, b->cu->cudaMemcpyAsync(to, from, bytes, kind, b->stream));
        cuda_must(b->cu, b->cu->cudaEventRecord(b->after, b->stream));
        cuda_wait_stream(b->cu, b->stream);
        if (!cuda_times(b->cu, events, 1, watch_now_ms() - start, &ms))
            fault_die_plain(watch_stage(), FAULT_DRIVER, NULL, "the GPU's event times cannot be true");
        if (i >= 0)
            v[i] = (double)bytes * times / (ms * 1e6);
    }
    say_metric(name, b->gpu, v, COPY_COUNT, "GB/s");
}

static void copies(struct burn *b, const struct order *o, struct nvml_load *load)
{
    size_t spare = 0, all = 0, bytes = COPY_MAX, host_bytes = COPY_HOST_MAX;
    void *one = NULL, *two = NULL, *host = NULL;
    watch_step("copies", o->step_ms);
    cuda_must(b->cu, b->cu->cudaMemGetInfo(&spare, &all));
    while (bytes > spare / 4)
        bytes /= 2;
    if (o->quick)
        bytes /= 4;
    if (host_bytes > bytes)
        host_bytes = bytes;
    cuda_must(b->cu, b->cu->cudaMalloc(&one, bytes));
    cuda_must(b->cu, b->cu->cudaMalloc(&two, bytes));
    cuda_must(b->cu, b->cu->cudaMallocHost(&host, host_bytes));
    memset(host, 1, host_bytes);
    burn_copy(b, "copy_d2d", two, one, bytes, CUDA_DEVICE_TO_DEVICE, 2);
    burn_copy(b, "copy_h2d", one, host, host_bytes, CUDA_HOST_TO_DEVICE, 1);
    nvml_load_look(load);
    burn_copy(b, "copy_d2h", host, one, host_bytes, CUDA_DEVICE_TO_HOST, 1);
}

bool role_burn(const struct order *o)
{
    static struct cuda cu;
    static struct nvml_load load;
    char bus[32] = "";
    hello_open(o, &cu, NULL);
    struct burn b = {.cu = &cu, .gpu = (int)o->gpu};
    watch_step("NVML", o->step_ms);
    cuda_must(&cu, cu.cudaDeviceGetPCIBusId(bus, sizeof bus, b.gpu));
    nvml_load_begin(&load, o->nvml, bus, b.gpu);
    watch_step("load kernel", o->init_ms);
    burn_prepare(&b);
    say_value("gpu_usable", b.gpu, 1, NAN, NULL);
    bool fine = burn_run(&b, o, &load);
    copies(&b, o, &load);
    watch_step("NVML", o->step_ms);
    nvml_load_end(&load);
    return fine;
}
