/* What a GPU says of itself while the burn keeps it busy.  Without NVML the burn runs all the same. */
#include <math.h>

#include "nvml.h"
#include "say.h"

#define EVENT_XID 8

void nvml_load_begin(struct nvml_load *l, const char *option, const char *bus, int gpu)
{
    char why[64];
    *l = (struct nvml_load){.gpu = {.n = &l->n, .index = gpu}, .reasons_always = ~0ull};
    if (nvml_open(&l->n, option, why, sizeof why) != 0 ||
        NVML_CALL(&l->n, nvmlDeviceGetHandleByPciBusId_v2, bus, &l->gpu.device) != 0)
        return;
    l->open = true;
    if (NVML_CALL(&l->n, nvmlEventSetCreate, &l->events) != 0 ||
        NVML_CALL(&l->n, nvmlDeviceRegisterEvents, l->gpu.device, EVENT_XID, l->events) != 0)
        l->events = NULL;
}

void nvml_load_look(struct nvml_load *l)
{
    bool known;
    unsigned v = 0;
    if (!l->open)
        return;
    nvml_u64 bits = nvml_reasons(&l->gpu, &known);
    if (known) {
        l->looks++;
        l->reasons_always &= bits;
    }
    if (NVML_CALL(&l->n, nvmlDeviceGetClockInfo, l->gpu.device, 1, &v) == 0)
        l->clock_mhz = v;
    if (NVML_CALL(&l->n, nvmlDeviceGetCurrPcieLinkGeneration, l->gpu.device, &v) == 0 && v > l->generation)
        l->generation = v;
}

/* What slowed it down at one look may be nothing; what did so at all of them is not. */
static void tell_throttle(const struct nvml_load *l)
{
    char words[80], text[120] = "";
    nvml_u64 always = l->reasons_always & (NVML_REASON_HARD | NVML_REASON_SW_THERMAL);
    if (l->looks == 0)
        return;
    nvml_reasons_text(always, words, sizeof words);
    if (always)
        text_put(text, sizeof text, "under load, all the time: %s", words);
    say_value("gpu_throttle", l->gpu.index, (double)always, NAN, text);
}

static void tell_pcie(const struct nvml_load *l)
{
    unsigned most = 0;
    if (l->generation > 0 && NVML_CALL(&l->n, nvmlDeviceGetMaxPcieLinkGeneration, l->gpu.device, &most) == 0)
        say_value("gpu_pcie_generation", l->gpu.index, l->generation, most, NULL);
}

static void tell_xid(const struct nvml_load *l)
{
    struct nvml_event e = {0};
    char text[40] = "";
    if (!l->events)
        return;
    bool seen = NVML_CALL(&l->n, nvmlEventSetWait_v2, l->events, &e, 1) == 0;
    if (seen)
        text_put(text, sizeof text, "Xid %llu", e.data);
    say_value("gpu_xid", l->gpu.index, seen, NAN, text);
}

void nvml_load_end(struct nvml_load *l)
{
    if (!l->open)
        return;
    tell_throttle(l);
    tell_pcie(l);
    tell_xid(l);
    double clock = l->clock_mhz;
    if (clock > 0)
        say_metric("gpu_clock", l->gpu.index, &clock, 1, "MHz");
}
