/* Width and errors of PCI links. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "probe/collect.h"
#include "probe/sysread.h"
#include "util/file.h"

#define PCI_ROOT "/sys/bus/pci/devices"

enum { TEXT_ROOM = 2048, WIDTH_MAX = 32 };

static bool collect_pci_width_of(const char *folder, const char *file, unsigned *width)
{
    char text[64];
    uint64_t n;
    if (file_readf(text, sizeof text, folder, "/%s", file) <= 0 || !sysread_count(text, &n) || !n || n > WIDTH_MAX)
        return false; /* 0 and 255: no link, not known */
    *width = (unsigned)n;
    return true;
}

/* What device and slot can both do: a card of 16 lanes in a slot of 8 is as it was bought. */
static void one_width(const struct collect *c, const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    unsigned width, most, slot;
    snprintf(path, sizeof path, PCI_ROOT "/%s/physfn", name);
    if (collect_has(c, path))
        return; /* a virtual function has no link of its own */
    snprintf(path, sizeof path, "%s" PCI_ROOT "/%s", c->root, name);
    if (!realpath(path, real))
        return;
    if (!collect_pci_width_of(real, "current_link_width", &width) ||
        !collect_pci_width_of(real, "max_link_width", &most))
        return;
    if (collect_pci_width_of(dirname(real), "max_link_width", &slot) && slot < most)
        most = slot;
    struct finding f = finding_value(CHECK_PCI_WIDTH, name, width);
    f.limit = most;
    c->finding(c->ctx, &f);
}

static void one_counter(const struct collect *c, const char *name, enum check check, const char *file, const char *key)
{
    char text[TEXT_ROOM];
    uint64_t n;
    if (file_readf(text, sizeof text, c->root, PCI_ROOT "/%s/%s", name, file) > 0 && sysread_aer(text, key, &n))
        collect_value(c, check, name, (double)n);
}

static void collect_pci_one_device(const struct collect *c, const char *name, void *ctx)
{
    char text[64];
    uint32_t class;
    (void)ctx;
    if (file_readf(text, sizeof text, c->root, PCI_ROOT "/%s/class", name) <= 0 || !sysread_pci_class(text, &class) ||
        !sysread_pci_matters(class))
        return;
    if (sysread_pci_width_matters(class))
        one_width(c, name);
    one_counter(c, name, CHECK_PCI_FATAL, "aer_dev_fatal", "TOTAL_ERR_FATAL");
    one_counter(c, name, CHECK_PCI_NONFATAL, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
}

void collect_pci(const struct collect *c)
{
    if (collect_each(c, PCI_ROOT, collect_pci_one_device, NULL) < 0)
        collect_unchecked(c, CHECK_PCI_WIDTH, "", PCI_ROOT " cannot be read");
}
