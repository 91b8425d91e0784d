/* What the driver's management library says about a GPU.  Every function may be missing in an older library: then what
 * it tells is "unchecked". */
#ifndef CHILD_NVML_H
#define CHILD_NVML_H
#include "child.h"
#include "libs.h"
#include "order.h"

typedef unsigned long long nvml_u64;
typedef void *nvml_device;

enum {
    NVML_NOT_SUPPORTED = 3,
    NVML_SMALL_ROOM = 7,
    NVML_NO_FUNCTION = 13,
    NVML_LOST = 15,
    NVML_RESET = 16,
};

/* Interfaces that have not changed since they were made.  All return an nvmlReturn_t. */
#define NVML_LIST(X)                                                                                                   \
    X(nvmlInit_v2, (void))                                                                                             \
    X(nvmlSystemGetDriverVersion, (char *, unsigned))                                                                  \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                                                             \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml_device *))                                                        \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, nvml_device *))                                                 \
    X(nvmlDeviceGetName, (nvml_device, char *, unsigned))                                                              \
    X(nvmlDeviceGetUUID, (nvml_device, char *, unsigned))                                                              \
    X(nvmlDeviceGetVbiosVersion, (nvml_device, char *, unsigned))                                                      \
    X(nvmlDeviceGetFieldValues, (nvml_device, int, struct nvml_field *))                                               \
    X(nvmlDeviceGetRemappedRows, (nvml_device, unsigned *, unsigned *, unsigned *, unsigned *))                        \
    X(nvmlDeviceGetRetiredPages, (nvml_device, int, unsigned *, nvml_u64 *))                                           \
    X(nvmlDeviceGetRetiredPagesPendingStatus, (nvml_device, int *))                                                    \
    X(nvmlDeviceGetTotalEccErrors, (nvml_device, int, int, nvml_u64 *))                                                \
    X(nvmlDeviceGetEccMode, (nvml_device, int *, int *))                                                               \
    X(nvmlDeviceGetMigMode, (nvml_device, unsigned *, unsigned *))                                                     \
    X(nvmlDeviceGetComputeMode, (nvml_device, int *))                                                                  \
    X(nvmlDeviceGetPersistenceMode, (nvml_device, int *))                                                              \
    X(nvmlDeviceGetNvLinkState, (nvml_device, unsigned, int *))                                                        \
    X(nvmlDeviceGetNvLinkErrorCounter, (nvml_device, unsigned, int, nvml_u64 *))                                       \
    X(nvmlDeviceGetGpuFabricInfoV, (nvml_device, struct nvml_fabric *))                                                \
    X(nvmlDeviceGetCurrentClocksEventReasons, (nvml_device, nvml_u64 *))                                               \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvml_device, nvml_u64 *))                                            \
    X(nvmlDeviceGetClockInfo, (nvml_device, int, unsigned *))                                                          \
    X(nvmlDeviceGetCurrPcieLinkWidth, (nvml_device, unsigned *))                                                       \
    X(nvmlDeviceGetMaxPcieLinkWidth, (nvml_device, unsigned *))                                                        \
    X(nvmlDeviceGetCurrPcieLinkGeneration, (nvml_device, unsigned *))                                                  \
    X(nvmlDeviceGetMaxPcieLinkGeneration, (nvml_device, unsigned *))                                                   \
    X(nvmlDeviceGetPcieReplayCounter, (nvml_device, unsigned *))                                                       \
    X(nvmlDeviceGetTemperature, (nvml_device, int, unsigned *))                                                        \
    X(nvmlDeviceGetTemperatureThreshold, (nvml_device, int, unsigned *))                                               \
    X(nvmlDeviceGetComputeRunningProcesses_v3, (nvml_device, unsigned *, struct nvml_process *))                       \
    X(nvmlDeviceGetMemoryInfo_v2, (nvml_device, struct nvml_memory *))                                                 \
    X(nvmlEventSetCreate, (void **))                                                                                   \
    X(nvmlDeviceRegisterEvents, (nvml_device, nvml_u64, void *))                                                       \
    X(nvmlEventSetWait_v2, (void *, struct nvml_event *, unsigned))

struct nvml_field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int type, rc;
    union {
        double dbl;
        unsigned u;
        nvml_u64 u64;
    } value;
};
struct nvml_fabric { /* version 2 of nvmlGpuFabricInfoV_t */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};
struct nvml_process {
    unsigned pid;
    nvml_u64 memory;
    unsigned gpu_instance, compute_instance;
};
struct nvml_memory { /* version 2 of nvmlMemory_t: what the driver keeps for itself is not in `used` */
    unsigned version;
    nvml_u64 total, reserved, free, used;
};
struct nvml_event {
    nvml_device device;
    nvml_u64 type, data;
    unsigned gpu_instance, compute_instance;
};
#define NVML_VERSION(type, n) ((unsigned)(sizeof(type) | (unsigned)(n) << 24))

struct nvml {
    struct lib lib;
#define X(name, arguments) int(*name) arguments;
    NVML_LIST(X)
#undef X
};

/* Opens and initialises it.  0; or the code of nvmlInit_v2, or -1 if there is no library; why: in words. */
int nvml_open(struct nvml *n, const char *option, char *why, size_t room);

/* Calls f of the table if it is there. */
#define NVML_CALL(n, f, ...) ((n)->f ? (n)->f(__VA_ARGS__) : NVML_NO_FUNCTION)

struct nvml_gpu {
    const struct nvml *n;
    nvml_device device;
    int index;
    unsigned links_most; /* active NVLinks of the GPU of this node that has most; 0: not known */
};

/* The checks of a GPU at rest (nvml_check.c). */
void nvml_check_all(const struct nvml_gpu *g);
/* How many NVLinks are active, and how many there are. */
unsigned nvml_links(const struct nvml_gpu *g, unsigned *all);
/* Counters, as they stand: whoever started us subtracts. */
void nvml_say_counters(const struct nvml_gpu *g);

/* Under load (nvml_load.c): open before, look at during, told after. */
struct nvml_load {
    struct nvml n;
    struct nvml_gpu gpu;
    bool open;
    void *events;
    nvml_u64 reasons_always; /* at every look */
    unsigned looks, clock_mhz, generation;
};
void nvml_load_begin(struct nvml_load *l, const char *option, const char *bus, int gpu);
void nvml_load_look(struct nvml_load *l);
void nvml_load_end(struct nvml_load *l);

/* Throttle reasons that are no power limit and no idleness: bits and words. */
void nvml_reasons_text(nvml_u64 bits, char *out, size_t room);
#define NVML_REASON_SW_THERMAL 0x20ull
#define NVML_REASON_HARD       0xc8ull /* hardware slowdown, hardware thermal, power brake */
nvml_u64 nvml_reasons(const struct nvml_gpu *g, bool *known);
nvml_u64 nvml_link_errors(const struct nvml_gpu *g);

#endif
