#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/collect.h"

void collect_group(enum check_group g, const struct collect *c)
{
    switch (g) {
    case CHECK_GROUP_IB: collect_infiniband(c); break;
    case CHECK_GROUP_ETHERNET: collect_ethernet(c); break;
    case CHECK_GROUP_PCI: collect_pci(c); break;
    case CHECK_GROUP_MEMORY: collect_memory(c); break;
    case CHECK_GROUP_SPEED: collect_speed(c); break;
    case CHECK_GROUP_LIMITS: collect_limits(c); break;
    case CHECK_GROUP_DISK: collect_disk(c); break;
    case CHECK_GROUP_HARDWARE: collect_hardware(c); break;
    case CHECK_GROUP_PROCESS: collect_processes(c); break;
    case CHECK_GROUP_SYSTEM: collect_system(c); break;
    case CHECK_GROUP_GPU:   /* the helper's (child/) */
    case CHECK_GROUP_PROBE: /* nobody's */
    case CHECK_GROUPS: break;
    }
}

void collect_value(const struct collect *c, enum check check, const char *on, double value)
{
    struct finding f = finding_value(check, on, value);
    c->finding(c->ctx, &f);
}

void collect_unchecked(const struct collect *c, enum check check, const char *on, const char *why)
{
    struct finding f = finding_unchecked(check, on, "%s", why);
    c->finding(c->ctx, &f);
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* Not as people sort: "eth10" before "eth2" is no harm, and no locale has a say. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int collect_each(const struct collect *c, const char *path,
                 void (*fn)(const struct collect *c, const char *name, void *ctx), void *ctx)
{
    char whole[4096];
    struct dirent **list;
    snprintf(whole, sizeof whole, "%s%s", c->root, path);
    int n = scandir(whole, &list, visible, by_bytes);
    for (int i = 0; i < n; i++) {
        fn(c, list[i]->d_name, ctx);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return n;
}

bool collect_has(const struct collect *c, const char *path)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", c->root, path);
    return access(whole, F_OK) == 0;
}
