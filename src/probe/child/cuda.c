#include "cuda.h"

#include <string.h>

#include "fault.h"
#include "watch.h"

void cuda_must(const struct cuda *cu, int code)
{
    if (code != 0)
        fault_die(watch_stage(), LIB_CUDA, code, cu->cudaGetErrorString(code));
}

/* dlsym returns an object pointer; ISO C has no cast from it to a function, POSIX has this. */
static void cuda_take(const struct lib *l, const char *name, void *slot)
{
    void *at = lib_symbol(l, name);
    if (!at)
        fault_die_plain(watch_stage(), FAULT_MISMATCH, "use a CUDA runtime of version 11, 12 or 13", "%s has no %s",
                        l->path, name);
    memcpy(slot, &at, sizeof at);
}

void cuda_open(struct cuda *cu, const char *option, const char *purelib, int nccl_major)
{
    lib_open_cudart(option, purelib, nccl_major, &cu->lib);
#define X(name, arguments) cuda_take(&cu->lib, #name, &cu->name);
    CUDA_LIST(X)
#undef X
    cuda_take(&cu->lib, "cudaGetErrorString", &cu->cudaGetErrorString);
    cu->cudaRuntimeGetVersion(&cu->runtime);
    cu->cudaDriverGetVersion(&cu->driver);
}

void cuda_use(const struct cuda *cu, int device)
{
    enum { INSUFFICIENT_DRIVER = 35 };
    int count = 0, rc = cu->cudaGetDeviceCount(&count);
    if (rc == INSUFFICIENT_DRIVER && cu->driver == 0)
        fault_die_plain(watch_stage(), FAULT_MISSING,
                        "install NVIDIA's driver, or give its libcuda.so.1 to the container",
                        "there is no NVIDIA driver here");
    cuda_must(cu, rc);
    if (device >= count)
        fault_die_plain(watch_stage(), FAULT_MISSING,
                        "there are fewer GPUs than processes: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
                        "GPU %d is wanted and only %d %s visible", device, count, count == 1 ? "is" : "are");
    cuda_must(cu, cu->cudaSetDevice(device));
    cuda_must(cu, cu->cudaFree(NULL)); /* runtimes before 12 make the context only now */
}

void *cuda_driver_function(const struct cuda *cu, const char *name)
{
    void *fn = NULL;
    int status = 0, rc = -1; /* runtime 11 does not write a status: it has no such parameter */
    void *entry = lib_symbol(&cu->lib, "cudaGetDriverEntryPoint");
    if (entry) {
        int (*get)(const char *, void **, unsigned long long, int *);
        memcpy(&get, &entry, sizeof get);
        rc = get(name, &fn, 0, &status);
    } else if ((entry = lib_symbol(&cu->lib, "cudaGetDriverEntryPointByVersion")) != NULL) {
        int (*get)(const char *, void **, unsigned, unsigned long long, int *);
        memcpy(&get, &entry, sizeof get);
        rc = get(name, &fn, 11030, 0, &status);
    }
    if (rc > 0)
        cuda_must(cu, rc);
    if (!fn || status != 0)
        fault_die_plain(watch_stage(), FAULT_MISMATCH, "install a newer driver",
                        "the driver does not give its function %s", name);
    return fn;
}

static void wait_for(const struct cuda *cu, int (*query)(void *), void *what)
{
    int rc;
    while ((rc = query(what)) == CUDA_NOT_READY)
        watch_sleep_us(50);
    cuda_must(cu, rc);
}

void cuda_wait_stream(const struct cuda *cu, void *stream)
{
    wait_for(cu, cu->cudaStreamQuery, stream);
}

bool cuda_times(const struct cuda *cu, void *const *events, unsigned n, double wall_ms, double *out)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        float ms = 0;
        cuda_must(cu, cu->cudaEventElapsedTime(&ms, events[i], events[i + 1]));
        if (!(ms > 0))
            return false;
        out[i] = (double)ms;
        sum += out[i];
    }
    return sum <= wall_ms * 1.1 + 5;
}
