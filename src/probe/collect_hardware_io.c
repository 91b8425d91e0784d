/* What the memory controllers and the kernel's log tell of broken hardware. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe/collect.h"
#include "probe/sysread.h"
#include "sys/kmsg.h"
#include "util/file.h"
#include "util/scan.h"
#include "util/time.h"

#define MC_ROOT "/sys/devices/system/edac/mc"

#define XID_SPAN EL_SEC(7200)

/* --- memory controllers ------------------------------------------------------------------------------------------- */

struct mc_walk {
    const char *controller;
    unsigned controllers, dimms;
};

static bool mc_count(const struct collect *c, const char *controller, const char *rest, uint64_t *n)
{
    char text[64];
    return file_readf(text, sizeof text, c->root, MC_ROOT "/%s/%s", controller, rest) > 0 && sysread_count(text, n);
}

/* By the label that the firmware gives it ("CPU_SrcID#0_MC#1_Chan#0_DIMM#0"): that is what stands on the board. */
static void name_dimm(const struct collect *c, const char *controller, const char *dimm, char *to, size_t room)
{
    char text[128];
    if (file_readf(text, sizeof text, c->root, MC_ROOT "/%s/%s/dimm_label", controller, dimm) <= 0 ||
        !scan_line(text, to, room) || !*to)
        snprintf(to, room, "%s/%s", controller, dimm);
}

static void one_dimm(const struct collect *c, const char *name, void *ctx)
{
    struct mc_walk *w = ctx;
    char file[320], on[FINDING_ON_MAX];
    uint64_t n;
    if (strncmp(name, "dimm", 4) != 0 && strncmp(name, "rank", 4) != 0)
        return;
    snprintf(file, sizeof file, "%s/dimm_ce_count", name);
    if (!mc_count(c, w->controller, file, &n))
        return;
    w->dimms++;
    name_dimm(c, w->controller, name, on, sizeof on);
    collect_value(c, CHECK_EDAC_CORRECTED, on, (double)n);
    snprintf(file, sizeof file, "%s/dimm_ue_count", name);
    if (mc_count(c, w->controller, file, &n) && n)
        collect_value(c, CHECK_EDAC_UNCORRECTED, on, (double)n);
}

/* Its own sums, if it does not tell its memory modules apart; else what it could not say of which module it was. */
static void one_controller(const struct collect *c, const char *name, void *ctx)
{
    struct mc_walk *w = ctx;
    char path[320];
    uint64_t n;
    if (strncmp(name, "mc", 2) != 0 || !mc_count(c, name, "ue_count", &n))
        return;
    w->controllers++;
    w->controller = name;
    w->dimms = 0;
    snprintf(path, sizeof path, MC_ROOT "/%.200s", name);
    collect_each(c, path, one_dimm, w);
    collect_value(c, CHECK_EDAC_UNCORRECTED, name, (double)n);
    if (mc_count(c, name, w->dimms ? "ce_noinfo_count" : "ce_count", &n))
        collect_value(c, CHECK_EDAC_CORRECTED, name, (double)n);
}

static void memory_errors(const struct collect *c)
{
    static const char why[] = "no EDAC driver for this memory controller is loaded";
    struct mc_walk w = {.controllers = 0};
    collect_each(c, MC_ROOT, one_controller, &w);
    if (w.controllers)
        return;
    collect_unchecked(c, CHECK_EDAC_UNCORRECTED, "", why);
    collect_unchecked(c, CHECK_EDAC_CORRECTED, "", why);
}

/* --- the kernel's log --------------------------------------------------------------------------------------------- */

/* A test's log is a plain file. */
static int collect_hardware_open_log(const struct collect *c)
{
    char path[4096];
    if (!*c->root)
        return kmsg_open("/dev/kmsg");
    snprintf(path, sizeof path, "%s/dev/kmsg", c->root);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Of the device, a read gives one record, in which further lines begin with a space; of a file, many. */
static void read_log(int fd, struct sysread_log *log)
{
    static char bytes[KMSG_RECORD_MAX];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    kmsg_rewind(fd);
    for (unsigned i = 0; i < KMSG_RECORDS_MAX; i++) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && (errno == EPIPE || errno == EINTR))
            continue; /* overwritten meanwhile: it goes on behind the gap */
        if (n <= 0)
            return;
        for (const char *at = bytes, *end = bytes + n; at < end;) {
            const char *nl = memchr(at, '\n', (size_t)(end - at));
            size_t len = nl ? (size_t)(nl - at) : (size_t)(end - at);
            sysread_log_add(log, at, len, now, XID_SPAN);
            at += len + 1;
        }
    }
}

static void tell_xids(const struct collect *c, const struct sysread_log *log)
{
    static const enum check checks[] = {CHECK_XID, CHECK_XID_PAST};
    for (unsigned i = 0; i < 2; i++) {
        struct finding f = finding_value(checks[i], "", (double)(i ? log->xids_recent : log->xids));
        if (log->xids)
            finding_say(&f, "the newest: Xid %u%s%s", log->xid_last, *log->xid_device ? " of " : "", log->xid_device);
        c->finding(c->ctx, &f);
    }
}

static void kernel_log(const struct collect *c)
{
    static const enum check all[] = {CHECK_XID, CHECK_XID_PAST, CHECK_KERNEL, CHECK_KERNEL_PAST, CHECK_PCI_LIMITED};
    static struct sysread_log log;
    int fd = collect_hardware_open_log(c);
    for (unsigned i = 0; i < sizeof all / sizeof all[0] && fd < 0; i++)
        collect_unchecked(c, all[i], "",
                          "the kernel's log may not be read (sysctl kernel.dmesg_restrict, a container)");
    if (fd < 0)
        return;
    log = (struct sysread_log){0};
    read_log(fd, &log);
    close(fd);
    tell_xids(c, &log);
    for (unsigned i = 0; i < 2; i++) {
        struct finding f = finding_value(i ? CHECK_KERNEL_PAST : CHECK_KERNEL, "", (double)log.hardware);
        finding_say(&f, "%s", log.hardware_text);
        c->finding(c->ctx, &f);
    }
    struct finding f = finding_value(CHECK_PCI_LIMITED, "", log.limited);
    if (log.limited)
        finding_say(&f, "%s%s", log.device, log.limited > 1 ? " and others" : "");
    c->finding(c->ctx, &f);
}

void collect_hardware(const struct collect *c)
{
    memory_errors(c);
    kernel_log(c);
}
