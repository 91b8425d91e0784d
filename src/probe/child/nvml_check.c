/* The checks of a GPU at rest: each prints its number, or "unchecked" where the GPU or the library does not tell. */
#include <math.h>
#include <string.h>

#include "fault.h"
#include "nvml.h"
#include "say.h"

#define LINKS_MAX      18
#define FIELD_RECOVERY 230 /* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, driver 570 */
/* Of the link that is the scope, where driver and GPU have them; older ones know nvmlDeviceGetNvLinkErrorCounter. */
#define FIELD_LINK_ERRORS     208 /* NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS */
#define FIELD_LINK_RECOVERIES 215 /* NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS */

/* True if the call told something; else says so: a lost GPU is lost, one that does not know is unchecked. */
static bool told(const struct nvml_gpu *g, const char *name, int rc)
{
    if (rc == 0)
        return true;
    const struct fault_row *row = fault_find(LIB_NVML, rc);
    if (row->fault == FAULT_HARDWARE)
        say_value("gpu_lost", g->index, 1, NAN, row->name);
    bool silent = rc == NVML_NOT_SUPPORTED || rc == NVML_NO_FUNCTION;
    say_state(name, g->index, "unchecked", silent ? "this GPU or driver does not tell" : row->name);
    return false;
}

static void check_recovery(const struct nvml_gpu *g)
{
    static const char *const wants[] = {NULL, "reset the GPU", "restart the host", "drain peer-to-peer traffic",
                                        "drain, then reset the GPU"};
    struct nvml_field f = {.id = FIELD_RECOVERY};
    int rc = NVML_CALL(g->n, nvmlDeviceGetFieldValues, g->device, 1, &f);
    if (!told(g, "gpu_recovery", rc ? rc : f.rc))
        return;
    unsigned v = f.value.u;
    say_value("gpu_recovery", g->index, v, NAN,
              v < sizeof wants / sizeof wants[0] ? wants[v] : "an action that is not known");
}

static void check_retired(const struct nvml_gpu *g)
{
    unsigned one = 0, two = 0;
    int pending = 0, rc = NVML_CALL(g->n, nvmlDeviceGetRetiredPages, g->device, 0, &one, NULL);
    if (!told(g, "gpu_retired", rc == NVML_SMALL_ROOM ? 0 : rc))
        return;
    NVML_CALL(g->n, nvmlDeviceGetRetiredPages, g->device, 1, &two, NULL);
    NVML_CALL(g->n, nvmlDeviceGetRetiredPagesPendingStatus, g->device, &pending);
    say_value("gpu_retired", g->index, one + two, NAN, NULL);
    say_value("gpu_remap", g->index, pending != 0, NAN, pending ? "a page waits for a reset to be retired" : NULL);
}

/* GPUs since A100 remap rows, older ones retire pages.  Rows that were replaced work; what waits or failed counts. */
static void check_remap(const struct nvml_gpu *g)
{
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    int rc = NVML_CALL(g->n, nvmlDeviceGetRemappedRows, g->device, &corrected, &uncorrected, &pending, &failed);
    if (rc == NVML_NOT_SUPPORTED || rc == NVML_NO_FUNCTION) {
        check_retired(g);
        return;
    }
    if (!told(g, "gpu_remap", rc))
        return;
    char text[120] = "";
    if (failed || pending)
        text_put(text, sizeof text,
                 failed ? "a bad row could not be replaced: have the GPU replaced"
                        : "a row waits for a reset to be replaced");
    else if (corrected + uncorrected > 0)
        text_put(text, sizeof text, "%u replaced already", corrected + uncorrected);
    say_value("gpu_remap", g->index, (failed != 0) + (pending != 0), NAN, text);
}

static void check_ecc(const struct nvml_gpu *g)
{
    enum { CORRECTED = 0, UNCORRECTED = 1, VOLATILE = 0 };
    nvml_u64 n = 0;
    if (told(g, "gpu_ecc", NVML_CALL(g->n, nvmlDeviceGetTotalEccErrors, g->device, UNCORRECTED, VOLATILE, &n)))
        say_value("gpu_ecc", g->index, (double)n, NAN, NULL);
    if (told(g, "gpu_ecc_corrected", NVML_CALL(g->n, nvmlDeviceGetTotalEccErrors, g->device, CORRECTED, VOLATILE, &n)))
        say_value("gpu_ecc_corrected", g->index, (double)n, NAN, NULL);
}

unsigned nvml_links(const struct nvml_gpu *g, unsigned *all)
{
    unsigned active = 0;
    *all = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        int on = 0;
        if (NVML_CALL(g->n, nvmlDeviceGetNvLinkState, g->device, link, &on) != 0)
            continue;
        ++*all;
        active += on != 0;
    }
    return active;
}

/* Which links are in use depends on the machine (bridges join two or four of eight GPUs): what counts is that all GPUs
 * of a node have as many. */
static void check_nvlink(const struct nvml_gpu *g)
{
    unsigned all, active = nvml_links(g, &all);
    char text[80];
    if (all == 0) {
        say_state("gpu_nvlink", g->index, "unchecked", "no NVLink");
        return;
    }
    text_put(text, sizeof text, "%u of %u active", active, all);
    say_value("gpu_nvlink", g->index, active < g->links_most ? g->links_most - active : 0, NAN, text);
}

static void check_fabric(const struct nvml_gpu *g)
{
    enum { NOT_SUPPORTED, NOT_STARTED, IN_PROGRESS, COMPLETED };
    static const char *const word[] = {"not supported", "not started", "in progress", "completed"};
    struct nvml_fabric f = {.version = NVML_VERSION(struct nvml_fabric, 2)};
    int rc = NVML_CALL(g->n, nvmlDeviceGetGpuFabricInfoV, g->device, &f);
    if (!told(g, "gpu_fabric", rc == 0 && f.state == NOT_SUPPORTED ? NVML_NOT_SUPPORTED : rc))
        return;
    char text[80];
    text_put(text, sizeof text, "%s%s%s", f.state <= COMPLETED ? word[f.state] : "a state that is not known",
             f.status ? ", " : "", f.status ? fault_find(LIB_NVML, f.status)->name : "");
    say_value("gpu_fabric", g->index, f.state == COMPLETED && f.status == 0, NAN, text);
}

nvml_u64 nvml_reasons(const struct nvml_gpu *g, bool *known)
{
    nvml_u64 bits = 0;
    int rc = NVML_CALL(g->n, nvmlDeviceGetCurrentClocksEventReasons, g->device, &bits);
    if (rc != 0) /* its name before driver 535 */
        rc = NVML_CALL(g->n, nvmlDeviceGetCurrentClocksThrottleReasons, g->device, &bits);
    *known = rc == 0;
    return bits;
}

void nvml_reasons_text(nvml_u64 bits, char *out, size_t room)
{
    static const struct {
        nvml_u64 bit;
        const char *word;
    } reason[] = {
        {0x8, "hardware slowdown"}, {0x20, "too hot (software)"}, {0x40, "too hot (hardware)"}, {0x80, "power brake"}};
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof reason / sizeof reason[0]; i++)
        if (bits & reason[i].bit) {
            text_put(out + n, room - n, "%s%s", n ? ", " : "", reason[i].word);
            n = strlen(out);
        }
}

static void check_throttle(const struct nvml_gpu *g)
{
    bool known;
    nvml_u64 bits = nvml_reasons(g, &known) & (NVML_REASON_HARD | NVML_REASON_SW_THERMAL);
    char text[80];
    if (!told(g, "gpu_throttle", known ? 0 : NVML_NOT_SUPPORTED))
        return;
    nvml_reasons_text(bits, text, sizeof text);
    say_value("gpu_throttle", g->index, (double)bits, NAN, text);
}

static void check_pcie(const struct nvml_gpu *g)
{
    unsigned now = 0, most = 0;
    int rc = NVML_CALL(g->n, nvmlDeviceGetCurrPcieLinkWidth, g->device, &now);
    if (told(g, "gpu_pcie", rc ? rc : NVML_CALL(g->n, nvmlDeviceGetMaxPcieLinkWidth, g->device, &most)))
        say_value("gpu_pcie", g->index, now, most, NULL);
}

static void check_temperature(const struct nvml_gpu *g)
{
    enum { SLOWDOWN = 1 };
    unsigned now = 0, most = 0;
    int rc = NVML_CALL(g->n, nvmlDeviceGetTemperature, g->device, 0, &now);
    if (told(g, "gpu_temperature",
             rc ? rc : NVML_CALL(g->n, nvmlDeviceGetTemperatureThreshold, g->device, SLOWDOWN, &most)))
        say_value("gpu_temperature", g->index, now, most, NULL);
}

static void check_foreign(const struct nvml_gpu *g)
{
    enum { PROCESSES_MAX = 64, LEFT_MIB = 15 };
    struct nvml_process p[PROCESSES_MAX];
    struct nvml_memory m = {.version = NVML_VERSION(struct nvml_memory, 2)};
    unsigned n = PROCESSES_MAX;
    int rc = NVML_CALL(g->n, nvmlDeviceGetComputeRunningProcesses_v3, g->device, &n, p);
    if (!told(g, "gpu_foreign", rc == NVML_SMALL_ROOM ? 0 : rc))
        return;
    NVML_CALL(g->n, nvmlDeviceGetMemoryInfo_v2, g->device, &m);
    nvml_u64 mib = m.used >> 20;
    char text[120] = "";
    if (n > 0 && rc == 0)
        text_put(text, sizeof text, "pid %u%s, %llu MiB in use", p[0].pid, n == 1 ? "" : " and others", mib);
    else if (mib > LEFT_MIB)
        text_put(text, sizeof text, "%llu MiB in use, by nobody who can be seen from here", mib);
    say_value("gpu_foreign", g->index, n == 0 && mib > LEFT_MIB ? 1 : n, NAN, text);
}

static void check_modes(const struct nvml_gpu *g)
{
    enum { PROHIBITED = 2, EXCLUSIVE = 3 };
    int compute = 0, ecc = 0, ecc_next = 0;
    unsigned mig = 0, mig_next = 0;
    if (!told(g, "gpu_modes", NVML_CALL(g->n, nvmlDeviceGetComputeMode, g->device, &compute)))
        return;
    NVML_CALL(g->n, nvmlDeviceGetEccMode, g->device, &ecc, &ecc_next);
    NVML_CALL(g->n, nvmlDeviceGetMigMode, g->device, &mig, &mig_next);
    const char *text = compute == PROHIBITED  ? "the compute mode forbids every process"
                       : mig                  ? "cut into slices (MIG)"
                       : ecc != ecc_next      ? "the ECC mode changes with the next reset"
                       : compute == EXCLUSIVE ? "one process at a time"
                                              : NULL;
    say_value("gpu_modes", g->index, compute != PROHIBITED && !mig && ecc == ecc_next, NAN, text);
}

void nvml_check_all(const struct nvml_gpu *g)
{
    static void (*const list[])(const struct nvml_gpu *) = {
        check_recovery, check_remap, check_ecc,         check_nvlink,  check_fabric,
        check_throttle, check_pcie,  check_temperature, check_foreign, check_modes,
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        list[i](g);
}

/* nvmlValueType_t */
static nvml_u64 count_of(const struct nvml_field *f)
{
    enum { DOUBLE, UNSIGNED, LONG, LONG_LONG, SIGNED_LONG_LONG, SIGNED };
    if (f->type == DOUBLE)
        return f->value.dbl > 0 ? (nvml_u64)f->value.dbl : 0;
    return f->type == UNSIGNED || f->type == SIGNED ? f->value.u : f->value.u64;
}

/* False: this driver does not count so. */
static bool link_fields(const struct nvml_gpu *g, nvml_u64 *sum)
{
    bool told = false;
    *sum = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        struct nvml_field f[] = {{.id = FIELD_LINK_ERRORS, .scope = link},
                                 {.id = FIELD_LINK_RECOVERIES, .scope = link}};
        if (NVML_CALL(g->n, nvmlDeviceGetFieldValues, g->device, 2, f) != 0)
            return false;
        for (int i = 0; i < 2; i++) {
            told |= f[i].rc == 0;
            *sum += f[i].rc == 0 ? count_of(&f[i]) : 0;
        }
    }
    return told;
}

nvml_u64 nvml_link_errors(const struct nvml_gpu *g)
{
    enum { KINDS = 4 }; /* replays, recoveries, CRC of flits and of data */
    nvml_u64 sum, n;
    if (link_fields(g, &sum))
        return sum;
    sum = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++)
        for (int kind = 0; kind < KINDS; kind++)
            if (NVML_CALL(g->n, nvmlDeviceGetNvLinkErrorCounter, g->device, link, kind, &n) == 0)
                sum += n;
    return sum;
}

void nvml_say_counters(const struct nvml_gpu *g)
{
    unsigned all, replay = 0;
    nvml_links(g, &all);
    if (all > 0)
        say_value("gpu_nvlink_errors", g->index, (double)nvml_link_errors(g), NAN, NULL);
    if (NVML_CALL(g->n, nvmlDeviceGetPcieReplayCounter, g->device, &replay) == 0)
        say_value("gpu_pcie_replay", g->index, replay, NAN, NULL);
}
