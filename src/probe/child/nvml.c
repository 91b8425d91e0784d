#include "nvml.h"

#include <math.h>
#include <string.h>

#include "fault.h"
#include "say.h"
#include "watch.h"

int nvml_open(struct nvml *n, const char *option, char *why, size_t room)
{
    lib_open_nvml(option, &n->lib, why, room);
    if (!n->lib.handle)
        return -1;
    void *at;
#define X(name, arguments)                                                                                             \
    at = lib_symbol(&n->lib, #name);                                                                                   \
    memcpy(&n->name, &at, sizeof at);
    NVML_LIST(X)
#undef X
    int rc = NVML_CALL(n, nvmlInit_v2);
    if (rc != 0)
        text_put(why, room, "nvmlInit: %s (%d)", fault_find(LIB_NVML, rc)->name, rc);
    return rc;
}

/* A node without the library has no GPU, which is wrong only if some are expected. */
static bool no_library(const struct order *o, int rc, const char *why)
{
    const struct fault_row *row = rc > 0 ? fault_find(LIB_NVML, rc) : NULL;
    if (rc < 0 && o->expect == 0) {
        say_state("gpu_nvml", -1, "unchecked", why);
        return true;
    }
    say_value("gpu_nvml", -1, 0, NAN, why);
    fault_say("libraries", rc > 0 ? rc : 0, row ? row->name : NULL, row ? row->fault : FAULT_MISSING, why,
              row ? row->advice : "install NVIDIA's driver, or give its libraries to the container");
    return false;
}

static void check_count(unsigned count, unsigned expect)
{
    char value[16];
    text_put(value, sizeof value, "%u", count);
    say_fact("gpu_count", value);
    say_value("gpu_count", -1, count, expect ? (double)expect : (double)NAN, NULL);
}

static void same_text(char *all, size_t room, unsigned i, const char *one)
{
    if (i == 0)
        text_put(all, room, "%s", one);
    else if (strcmp(all, one) != 0)
        text_put(all, room, "mixed");
}

/* What must be the same on all nodes; "mixed" if it is not even on this one. */
static void say_facts(const struct nvml *n, const nvml_device *device, unsigned count)
{
    char driver[96] = "", name[96] = "", vbios[96] = "", ecc[96] = "", persistence[96] = "", one[96];
    if (NVML_CALL(n, nvmlSystemGetDriverVersion, driver, sizeof driver) == 0)
        say_fact("gpu_driver", driver);
    for (unsigned i = 0; i < count; i++) {
        int now = 0, then = 0;
        if (!device[i])
            continue;
        if (NVML_CALL(n, nvmlDeviceGetName, device[i], one, sizeof one) == 0)
            same_text(name, sizeof name, i, one);
        if (NVML_CALL(n, nvmlDeviceGetVbiosVersion, device[i], one, sizeof one) == 0)
            same_text(vbios, sizeof vbios, i, one);
        if (NVML_CALL(n, nvmlDeviceGetEccMode, device[i], &now, &then) == 0)
            same_text(ecc, sizeof ecc, i, now ? "on" : "off");
        if (NVML_CALL(n, nvmlDeviceGetPersistenceMode, device[i], &now) == 0)
            same_text(persistence, sizeof persistence, i, now ? "on" : "off");
    }
    const char *const fact[][2] = {
        {"gpu_name", name}, {"gpu_vbios", vbios}, {"gpu_ecc_mode", ecc}, {"gpu_persistence", persistence}};
    for (size_t i = 0; i < sizeof fact / sizeof fact[0]; i++)
        if (*fact[i][1])
            say_fact(fact[i][0], fact[i][1]);
}

/* The handle of a GPU; NULL and a line if it is lost. */
static nvml_device handle_of(const struct nvml *n, unsigned i)
{
    nvml_device d = NULL;
    char uuid[96];
    int rc = NVML_CALL(n, nvmlDeviceGetHandleByIndex_v2, i, &d);
    if (rc == 0)
        rc = NVML_CALL(n, nvmlDeviceGetUUID, d, uuid, sizeof uuid);
    bool fine = rc == 0 || rc == NVML_NOT_SUPPORTED || rc == NVML_NO_FUNCTION;
    say_value("gpu_lost", (int)i, !fine, NAN, fine ? NULL : fault_find(LIB_NVML, rc)->name);
    return fine ? d : NULL;
}

#define GPUS_MAX 64

bool role_nvml(const struct order *o)
{
    static struct nvml n;
    char why[400];
    watch_step("libraries", o->init_ms);
    int rc = nvml_open(&n, o->nvml, why, sizeof why);
    if (rc != 0)
        return no_library(o, rc, why);
    struct say_line l;
    line_begin(&l, "hello");
    char driver[96] = "";
    NVML_CALL(&n, nvmlSystemGetDriverVersion, driver, sizeof driver);
    line_str(&l, "driver", driver);
    line_end(&l);
    say_value("gpu_nvml", -1, 1, NAN, NULL);
    nvml_device device[GPUS_MAX] = {NULL};
    unsigned count = 0, most = 0, all;
    rc = NVML_CALL(&n, nvmlDeviceGetCount_v2, &count);
    if (rc != 0)
        fault_die("count", LIB_NVML, rc, NULL);
    check_count(count, o->expect);
    count = count > GPUS_MAX ? GPUS_MAX : count;
    static char stage[40];
    for (unsigned i = 0; i < count; i++) {
        text_put(stage, sizeof stage, "GPU %u", i);
        watch_step(stage, o->step_ms);
        if ((device[i] = handle_of(&n, i)) == NULL)
            continue;
        unsigned active = nvml_links(&(struct nvml_gpu){.n = &n, .device = device[i]}, &all);
        most = active > most ? active : most;
    }
    watch_step("facts", o->step_ms);
    say_facts(&n, device, count);
    for (unsigned i = 0; i < count; i++) {
        text_put(stage, sizeof stage, "GPU %u", i);
        watch_step(stage, o->step_ms);
        struct nvml_gpu g = {.n = &n, .device = device[i], .index = (int)i, .links_most = most};
        if (!device[i])
            continue;
        nvml_check_all(&g);
        nvml_say_counters(&g);
    }
    return true;
}
