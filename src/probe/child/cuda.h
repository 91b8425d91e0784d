/* The CUDA runtime, by the functions whose interface is the same in 11, 12 and 13. */
#ifndef CHILD_CUDA_H
#define CHILD_CUDA_H
#include "child.h"
#include "libs.h"

enum { CUDA_NOT_READY = 600, CUDA_HOST_TO_DEVICE = 1, CUDA_DEVICE_TO_HOST = 2, CUDA_DEVICE_TO_DEVICE = 3 };
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_ATTRIBUTE_SMS = 16 };

/* All return a cudaError_t. */
#define CUDA_LIST(X)                                                                                                   \
    X(cudaGetDeviceCount, (int *))                                                                                     \
    X(cudaSetDevice, (int))                                                                                            \
    X(cudaFree, (void *))                                                                                              \
    X(cudaDeviceGetAttribute, (int *, int, int))                                                                       \
    X(cudaDeviceGetPCIBusId, (char *, int, int))                                                                       \
    X(cudaMemGetInfo, (size_t *, size_t *))                                                                            \
    X(cudaMalloc, (void **, size_t))                                                                                   \
    X(cudaMallocHost, (void **, size_t))                                                                               \
    X(cudaMemcpyAsync, (void *, const void *, size_t, int, void *))                                                    \
    X(cudaMemsetAsync, (void *, int, size_t, void *))                                                                  \
    X(cudaStreamCreateWithFlags, (void **, unsigned))                                                                  \
    X(cudaStreamQuery, (void *))                                                                                       \
    X(cudaEventCreate, (void **))                                                                                      \
    X(cudaEventRecord, (void *, void *))                                                                               \
    X(cudaEventQuery, (void *))                                                                                        \
    X(cudaEventElapsedTime, (float *, void *, void *))                                                                 \
    X(cudaRuntimeGetVersion, (int *))                                                                                  \
    X(cudaDriverGetVersion, (int *))

struct cuda {
    struct lib lib;
    int runtime, driver;
#define X(name, arguments) int(*name) arguments;
    CUDA_LIST(X)
#undef X
    const char *(*cudaGetErrorString)(int);
};

/* Opens it and fills the table; ends the process if it cannot. */
void cuda_open(struct cuda *cu, const char *option, const char *purelib, int nccl_major);

/* The device and its primary context. */
void cuda_use(const struct cuda *cu, int device);

/* Ends the process if code is not 0. */
void cuda_must(const struct cuda *cu, int code);

/* One of the driver's functions, without opening libcuda. */
void *cuda_driver_function(const struct cuda *cu, const char *name);

void cuda_wait_stream(const struct cuda *cu, void *stream);

#define CUDA_EVENTS_MAX 256
/* Milliseconds between neighbours of events[0..n]; false if they cannot be true: not above 0, or together longer than
 * the clock on the wall says. */
bool cuda_times(const struct cuda *cu, void *const *events, unsigned n, double wall_ms, double *out);

#endif
