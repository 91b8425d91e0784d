/* A CUDA runtime whose devices are this process's memory; everything is done when the call returns. */
#include <math.h>
#include <stdint.h>

#include "../../src/probe/child/burn_ptx.h"
#include "mock.h"

enum { SUCCESS = 0, MEMORY = 2, INSUFFICIENT_DRIVER = 35, NO_DEVICE = 100, INVALID_DEVICE = 101, ATTRIBUTE_SMS = 16 };
#define SMS 2

static int device;

static int gpus(void)
{
    return (int)mock_number("MOCK_GPUS", 1);
}

#define RULES(name)                                                                                                    \
    struct mock_act act = mock_call(#name, device);                                                                    \
    if (act.fail)                                                                                                      \
        return act.fail;

EXPORT int cudaRuntimeGetVersion(int *out);
EXPORT int cudaRuntimeGetVersion(int *out)
{
    *out = (int)mock_number("MOCK_RUNTIME", 12090);
    return SUCCESS;
}

EXPORT int cudaDriverGetVersion(int *out);
EXPORT int cudaDriverGetVersion(int *out)
{
    *out = (int)mock_number("MOCK_DRIVER", 13000);
    return SUCCESS;
}

EXPORT const char *cudaGetErrorString(int code);
EXPORT const char *cudaGetErrorString(int code)
{
    static char text[40];
    snprintf(text, sizeof text, "mock error %d", code);
    return text;
}

EXPORT int cudaGetDeviceCount(int *out);
EXPORT int cudaGetDeviceCount(int *out)
{
    RULES(cudaGetDeviceCount)
    if (mock_number("MOCK_DRIVER", 13000) == 0)
        return INSUFFICIENT_DRIVER;
    *out = gpus();
    return *out ? SUCCESS : NO_DEVICE;
}

EXPORT int cudaSetDevice(int n);
EXPORT int cudaSetDevice(int n)
{
    if (n < 0 || n >= gpus())
        return INVALID_DEVICE;
    device = n;
    RULES(cudaSetDevice)
    return SUCCESS;
}

/* Of all GPUs of the process together; how much a piece has stands before it. */
static size_t taken;
enum { HEAD = 64 };

EXPORT int cudaFree(void *at);
EXPORT int cudaFree(void *at)
{
    RULES(cudaFree)
    char *piece = at ? (char *)at - HEAD : NULL;
    taken -= piece ? *(size_t *)(void *)piece : 0;
    free(piece);
    return SUCCESS;
}

EXPORT int cudaDeviceGetAttribute(int *out, int which, int n);
EXPORT int cudaDeviceGetAttribute(int *out, int which, int n)
{
    (void)n;
    RULES(cudaDeviceGetAttribute)
    *out = which == ATTRIBUTE_SMS ? SMS : 0;
    return SUCCESS;
}

EXPORT int cudaDeviceGetPCIBusId(char *out, int room, int n);
EXPORT int cudaDeviceGetPCIBusId(char *out, int room, int n)
{
    RULES(cudaDeviceGetPCIBusId)
    snprintf(out, (size_t)room, "0000:%02X:00.0", 0x10 + n);
    return SUCCESS;
}

static size_t spare(void)
{
    size_t all = (size_t)mock_number("MOCK_MEM", 256) << 20;
    return all > taken ? all - taken : 0;
}

EXPORT int cudaMemGetInfo(size_t *out, size_t *all);
EXPORT int cudaMemGetInfo(size_t *out, size_t *all)
{
    RULES(cudaMemGetInfo)
    *out = spare();
    *all = (size_t)mock_number("MOCK_MEM", 256) << 20;
    return SUCCESS;
}

EXPORT int cudaMalloc(void **out, size_t n);
EXPORT int cudaMalloc(void **out, size_t n)
{
    RULES(cudaMalloc)
    char *piece = n <= spare() ? malloc(HEAD + n) : NULL;
    if (!piece)
        return MEMORY;
    *(size_t *)(void *)piece = n;
    taken += n;
    *out = piece + HEAD;
    return SUCCESS;
}

EXPORT int cudaMallocHost(void **out, size_t n);
EXPORT int cudaMallocHost(void **out, size_t n)
{
    RULES(cudaMallocHost)
    *out = malloc(n);
    return *out ? SUCCESS : MEMORY;
}

EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream);
EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream)
{
    (void)kind, (void)stream;
    RULES(cudaMemcpyAsync)
    memcpy(to, from, n);
    if (act.corrupt && n > 0)
        ((char *)to)[n / 2] ^= 0x10;
    return SUCCESS;
}

EXPORT int cudaMemsetAsync(void *to, int byte, size_t n, void *stream);
EXPORT int cudaMemsetAsync(void *to, int byte, size_t n, void *stream)
{
    (void)stream;
    RULES(cudaMemsetAsync)
    memset(to, byte, n);
    return SUCCESS;
}

EXPORT int cudaStreamCreateWithFlags(void **out, unsigned flags);
EXPORT int cudaStreamCreateWithFlags(void **out, unsigned flags)
{
    (void)flags;
    RULES(cudaStreamCreateWithFlags)
    *out = &device;
    return SUCCESS;
}

EXPORT int cudaStreamQuery(void *stream);
EXPORT int cudaStreamQuery(void *stream)
{
    (void)stream;
    RULES(cudaStreamQuery)
    return SUCCESS;
}

EXPORT int cudaEventCreate(void **out);
EXPORT int cudaEventCreate(void **out)
{
    RULES(cudaEventCreate)
    *out = calloc(1, sizeof(struct timespec));
    return *out ? SUCCESS : MEMORY;
}

EXPORT int cudaEventRecord(void *event, void *stream);
EXPORT int cudaEventRecord(void *event, void *stream)
{
    (void)stream;
    RULES(cudaEventRecord)
    clock_gettime(CLOCK_MONOTONIC, event);
    return SUCCESS;
}

EXPORT int cudaEventQuery(void *event);
EXPORT int cudaEventQuery(void *event)
{
    (void)event;
    RULES(cudaEventQuery)
    return SUCCESS;
}

EXPORT int cudaEventElapsedTime(float *ms, void *from, void *to);
EXPORT int cudaEventElapsedTime(float *ms, void *from, void *to)
{
    RULES(cudaEventElapsedTime)
    const struct timespec *a = from, *b = to;
    *ms = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) / 1e6f;
    if (act.has_value)
        *ms = (float)act.value / 1e3f;
    return SUCCESS;
}

/* --- the driver's functions --- */

static int module_load(void **module, const void *image, unsigned n, int *options, void **values)
{
    (void)n, (void)options, (void)values;
    RULES(cuModuleLoadDataEx)
    *module = &device;
    return strstr(image, ".entry " BURN_NAME "(") ? SUCCESS : 218;
}

static int module_function(void **function, void *module, const char *name)
{
    (void)module;
    RULES(cuModuleGetFunction)
    *function = &device;
    return strcmp(name, BURN_NAME) == 0 ? SUCCESS : 500;
}

/* The kernel once more, in C: the table that the helper compares with is not used here. */
static uint32_t lane(uint32_t i, uint32_t rounds)
{
    uint32_t h = i * 0x9e3779b1u + 0x7f4a7c15u, t;
    for (uint32_t r = 0; r < rounds; r++) {
        float x[8];
        for (int k = 0; k < 8; k++) {
            h = h * 1664525u + 1013904223u;
            t = h >> 9 | 0x3f800000u;
            memcpy(&x[k], &t, 4);
            x[k] -= 1.5f;
        }
        for (int step = 0; step < 64; step++)
            for (int k = 0; k < 8; k++)
                x[k] = fmaf(x[k], x[k], -1.75f);
        for (int k = 0; k < 8; k++) {
            memcpy(&t, &x[k], 4);
            h = (h ^ t) * 16777619u;
        }
    }
    return h;
}

static int launch(void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                  unsigned shared, void *stream, void **arguments, void **extra)
{
    (void)function, (void)y, (void)z, (void)ty, (void)tz, (void)shared, (void)stream, (void)extra;
    static uint32_t result[BURN_LANES];
    RULES(cuLaunchKernel)
    uint32_t *out, rounds = *(uint32_t *)arguments[1];
    memcpy(&out, arguments[0], sizeof out);
    for (uint32_t i = 0; i < BURN_LANES && !result[BURN_LANES - 1]; i++)
        result[i] = lane(i, rounds);
    for (unsigned i = 0; i < blocks * threads; i++)
        out[i] = result[i % BURN_LANES];
    if (act.corrupt)
        out[blocks * threads / 2] ^= 1;
    return SUCCESS;
}

EXPORT int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status);
EXPORT int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status)
{
    (void)flags;
    RULES(cudaGetDriverEntryPoint)
    int (*const load)(void **, const void *, unsigned, int *, void **) = module_load;
    int (*const get)(void **, void *, const char *) = module_function;
    int (*const run)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                     void **) = launch;
    *out = NULL;
    if (strcmp(name, "cuModuleLoadDataEx") == 0)
        memcpy(out, &load, sizeof load);
    if (strcmp(name, "cuModuleGetFunction") == 0)
        memcpy(out, &get, sizeof get);
    if (strcmp(name, "cuLaunchKernel") == 0)
        memcpy(out, &run, sizeof run);
    *status = *out ? 0 : 1;
    return SUCCESS;
}
