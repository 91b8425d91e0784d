/* NVML with healthy GPUs, but for what MOCK_NVML says. */
#include "../../src/probe/child/nvml.h"
#include "mock.h"

/* A device is a pointer to its own number. */
static int number[64];

static int index_of(nvml_device d)
{
    return *(int *)d;
}

static long says(const char *key, int gpu, long otherwise)
{
    return mock_word(getenv("MOCK_NVML"), key, gpu, otherwise);
}

#define RULES(name, gpu)                                                                                               \
    struct mock_act act = mock_call(#name, gpu);                                                                       \
    if (act.fail)                                                                                                      \
        return act.fail;

#define FUNCTION(name, ...)                                                                                            \
    EXPORT int name(__VA_ARGS__);                                                                                      \
    EXPORT int name(__VA_ARGS__)

/* int name(device, T *out): one number by its key. */
#define NUMBER(name, T, key, otherwise)                                                                                \
    FUNCTION(name, nvml_device d, T *out)                                                                              \
    {                                                                                                                  \
        RULES(name, index_of(d))                                                                                       \
        *out = (T)says(key, index_of(d), otherwise);                                                                   \
        return 0;                                                                                                      \
    }

#define TEXT(name, fmt)                                                                                                \
    FUNCTION(name, nvml_device d, char *out, unsigned room)                                                            \
    {                                                                                                                  \
        RULES(name, index_of(d))                                                                                       \
        snprintf(out, room, fmt, index_of(d));                                                                         \
        return 0;                                                                                                      \
    }

FUNCTION(nvmlInit_v2, void)
{
    RULES(nvmlInit_v2, -1)
    return 0;
}

FUNCTION(nvmlSystemGetDriverVersion, char *out, unsigned room)
{
    snprintf(out, room, "580.65.06");
    return 0;
}

FUNCTION(nvmlDeviceGetCount_v2, unsigned *out)
{
    RULES(nvmlDeviceGetCount_v2, -1)
    *out = (unsigned)mock_number("MOCK_GPUS", 1);
    return 0;
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned i, nvml_device *out)
{
    RULES(nvmlDeviceGetHandleByIndex_v2, (int)i)
    number[i] = (int)i;
    *out = &number[i];
    return 0;
}

FUNCTION(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, nvml_device *out)
{
    unsigned i = (unsigned)strtoul(bus + 5, NULL, 16) - 0x10;
    return nvmlDeviceGetHandleByIndex_v2(i, out);
}

FUNCTION(nvmlDeviceGetName, nvml_device d, char *out, unsigned room)
{
    (void)d;
    snprintf(out, room, "Mock GPU");
    return 0;
}

TEXT(nvmlDeviceGetUUID, "GPU-00000000-0000-0000-0000-%012d")

FUNCTION(nvmlDeviceGetVbiosVersion, nvml_device d, char *out, unsigned room)
{
    snprintf(out, room, "96.00.%ld", says("vbios", index_of(d), 1));
    return 0;
}

FUNCTION(nvmlDeviceGetFieldValues, nvml_device d, int n, struct nvml_field *f)
{
    RULES(nvmlDeviceGetFieldValues, index_of(d))
    for (int i = 0; i < n; i++) {
        long link = says("link_fields", index_of(d), -1); /* a driver that counts by fields, on the last link */
        bool counts = link >= 0 && (f[i].id == 208 || f[i].id == 215);
        f[i].rc = f[i].id == 230 || counts ? 0 : NVML_NOT_SUPPORTED;
        f[i].type = counts ? 3 : 1;
        if (counts)
            f[i].value.u64 = f[i].scope == 17 && f[i].id == 215 ? (nvml_u64)link << 32 : f[i].scope == 3;
        else
            f[i].value.u = (unsigned)says("recovery", index_of(d), 0);
    }
    return 0;
}

FUNCTION(nvmlDeviceGetRemappedRows, nvml_device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
         unsigned *failed)
{
    RULES(nvmlDeviceGetRemappedRows, index_of(d))
    *corrected = 0;
    *uncorrected = (unsigned)says("remapped", index_of(d), 0);
    *pending = (unsigned)says("remap_pending", index_of(d), 0);
    *failed = (unsigned)says("remap_failed", index_of(d), 0);
    return 0;
}

FUNCTION(nvmlDeviceGetRetiredPages, nvml_device d, int cause, unsigned *n, nvml_u64 *at)
{
    (void)at;
    RULES(nvmlDeviceGetRetiredPages, index_of(d))
    *n = cause == 1 ? (unsigned)says("retired", index_of(d), 0) : 0;
    return *n ? NVML_SMALL_ROOM : 0;
}

NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, int, "retire_pending", 0)

FUNCTION(nvmlDeviceGetTotalEccErrors, nvml_device d, int kind, int counter, nvml_u64 *out)
{
    (void)counter;
    RULES(nvmlDeviceGetTotalEccErrors, index_of(d))
    *out = (nvml_u64)says(kind == 1 ? "ecc" : "ecc_corrected", index_of(d), 0);
    return 0;
}

FUNCTION(nvmlDeviceGetEccMode, nvml_device d, int *now, int *next)
{
    RULES(nvmlDeviceGetEccMode, index_of(d))
    *now = 1;
    *next = (int)says("ecc_next", index_of(d), 1);
    return 0;
}

FUNCTION(nvmlDeviceGetMigMode, nvml_device d, unsigned *now, unsigned *next)
{
    RULES(nvmlDeviceGetMigMode, index_of(d))
    *now = *next = (unsigned)says("mig", index_of(d), 0);
    return 0;
}

NUMBER(nvmlDeviceGetComputeMode, int, "compute_mode", 0)
NUMBER(nvmlDeviceGetPersistenceMode, int, "persistence", 1)

FUNCTION(nvmlDeviceGetNvLinkState, nvml_device d, unsigned link, int *on)
{
    RULES(nvmlDeviceGetNvLinkState, index_of(d))
    *on = link < (unsigned)says("links", index_of(d), 18);
    return 0;
}

FUNCTION(nvmlDeviceGetNvLinkErrorCounter, nvml_device d, unsigned link, int kind, nvml_u64 *out)
{
    RULES(nvmlDeviceGetNvLinkErrorCounter, index_of(d))
    *out = link == 0 && kind == 0 ? (nvml_u64)says("link_errors", index_of(d), 0) : 0;
    return 0;
}

FUNCTION(nvmlDeviceGetGpuFabricInfoV, nvml_device d, struct nvml_fabric *f)
{
    RULES(nvmlDeviceGetGpuFabricInfoV, index_of(d))
    if (f->version != 0x02000024)
        return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    f->state = (unsigned char)says("fabric", index_of(d), 3);
    f->status = (int)says("fabric_status", index_of(d), 0);
    return 0;
}

NUMBER(nvmlDeviceGetCurrentClocksEventReasons, nvml_u64, "reasons", 1)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "width", 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "width_max", 16)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "generation_max", 5)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "replay", 0)

FUNCTION(nvmlDeviceGetClockInfo, nvml_device d, int kind, unsigned *out)
{
    (void)kind;
    RULES(nvmlDeviceGetClockInfo, index_of(d))
    *out = (unsigned)says("clock", index_of(d), 1980);
    return 0;
}

FUNCTION(nvmlDeviceGetTemperature, nvml_device d, int sensor, unsigned *out)
{
    (void)sensor;
    RULES(nvmlDeviceGetTemperature, index_of(d))
    *out = (unsigned)says("temperature", index_of(d), 35);
    return 0;
}

FUNCTION(nvmlDeviceGetTemperatureThreshold, nvml_device d, int which, unsigned *out)
{
    RULES(nvmlDeviceGetTemperatureThreshold, index_of(d))
    *out = which == 1 ? 87 : 90;
    return 0;
}

FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device d, unsigned *n, struct nvml_process *p)
{
    RULES(nvmlDeviceGetComputeRunningProcesses_v3, index_of(d))
    *n = (unsigned)says("processes", index_of(d), 0);
    for (unsigned i = 0; i < *n; i++)
        p[i] = (struct nvml_process){.pid = 4242 + i};
    return 0;
}

FUNCTION(nvmlDeviceGetMemoryInfo_v2, nvml_device d, struct nvml_memory *m)
{
    RULES(nvmlDeviceGetMemoryInfo_v2, index_of(d))
    if (m->version != 0x02000028)
        return 25;
    m->used = (nvml_u64)says("used_mib", index_of(d), 1) << 20;
    return 0;
}

FUNCTION(nvmlEventSetCreate, void **out)
{
    *out = number;
    return 0;
}

FUNCTION(nvmlDeviceRegisterEvents, nvml_device d, nvml_u64 kinds, void *set)
{
    (void)d, (void)kinds, (void)set;
    return 0;
}

FUNCTION(nvmlEventSetWait_v2, void *set, struct nvml_event *e, unsigned ms)
{
    (void)set, (void)ms;
    e->data = (nvml_u64)says("xid", -1, 0);
    return e->data ? 0 : 10; /* NVML_ERROR_TIMEOUT */
}
