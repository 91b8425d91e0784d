#include "sys/gpu.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "util/scan.h"

/* "0000:dc:00.0": four to eight digits, two, two, one. */
static bool pci_parse(const char *s, uint64_t *order)
{
    const char *at = s;
    uint64_t domain, bus, device, function;
    if (!scan_hex(&at, &domain) || *at++ != ':' || !scan_hex(&at, &bus) || *at++ != ':' || !scan_hex(&at, &device) ||
        *at++ != '.' || !scan_hex(&at, &function) || *at || at - s >= 32)
        return false;
    if (domain > UINT32_MAX || bus > 0xff || device > 0xff || function > 0xf)
        return false;
    *order = domain << 24 | bus << 16 | device << 8 | function;
    return true;
}

int gpu_add(struct gpu_list *all, const char *pci, const char *information)
{
    uint64_t order;
    if (all->n == GPU_MAX || !pci_parse(pci, &order))
        return -1;
    struct gpu *g = &all->v[all->n];
    memset(g, 0, sizeof *g);
    memcpy(g->pci, pci, strlen(pci));
    g->minor = -1;
    const char *at = scan_field(information, "GPU UUID:");
    if (at && (!scan_line(at, g->uuid, sizeof g->uuid) || strncmp(g->uuid, "GPU-", 4) != 0))
        g->uuid[0] = 0;
    at = scan_field(information, "Model:");
    if (at)
        scan_line(at, g->model, sizeof g->model);
    at = scan_field(information, "Device Minor:");
    if (at && !scan_int(&at, &g->minor))
        g->minor = -1;
    all->n++;
    return 0;
}

/* Whether a comes before b; devices without an address are ordered by their node's number. */
static bool gpu_before(const struct gpu *a, const struct gpu *b)
{
    uint64_t x, y;
    bool has_x = pci_parse(a->pci, &x), has_y = pci_parse(b->pci, &y);
    if (has_x != has_y)
        return has_x;
    return has_x ? x < y : a->minor < b->minor;
}

void gpu_sort(struct gpu_list *all)
{
    for (unsigned i = 1; i < all->n; i++)
        for (unsigned k = i; k && gpu_before(&all->v[k], &all->v[k - 1]); k--) {
            struct gpu g = all->v[k];
            all->v[k] = all->v[k - 1];
            all->v[k - 1] = g;
        }
}

static bool gpu_seen(const struct gpu_visible *out, unsigned index)
{
    for (unsigned i = 0; i < out->n; i++)
        if (out->index[i] == index)
            return true;
    return false;
}

/* The device whose UUID begins with these n bytes, if it is the only one; else -1. */
static int by_uuid(const struct gpu_list *all, const char *s, size_t n)
{
    int match = -1;
    for (unsigned i = 0; i < all->n; i++) {
        if (strncmp(all->v[i].uuid, s, n) != 0)
            continue;
        if (match >= 0)
            return -1;
        match = (int)i;
    }
    return match;
}

static bool gpu_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As strtoul: leading white space and a sign; -1 if there is no number.  What follows the digits does not matter. */
static int gpu_by_number(const struct gpu_list *all, const char *s)
{
    uint64_t n;
    while (gpu_blank(*s))
        s++;
    if (*s == '+')
        s++;
    return scan_u64(&s, &n) && n < all->n ? (int)n : -1;
}

/* Up to the next comma. */
static size_t entry_len(const char *s)
{
    const char *end = strchr(s, ',');
    return end ? (size_t)(end - s) : strlen(s);
}

/* MIG slices cannot be looked up without the driver's library: the entries are counted and must differ. */
static void select_mig(const char *list, struct gpu_visible *out)
{
    out->mig = true;
    for (const char *p = list; strncmp(p, "MIG-", 4) == 0 && out->n < GPU_MAX;) {
        size_t n = entry_len(p);
        for (const char *q = list; q < p; q += entry_len(q) + 1)
            if (entry_len(q) == n && memcmp(p, q, n) == 0) {
                out->n = 0;
                return;
            }
        out->n++;
        p += n + (p[n] == ',');
    }
}

void gpu_select(const struct gpu_list *all, const char *visible, struct gpu_visible *out)
{
    memset(out, 0, sizeof *out);
    if (!visible) {
        for (; out->n < all->n; out->n++)
            out->index[out->n] = out->n;
        return;
    }
    if (strncmp(visible, "MIG-", 4) == 0) {
        select_mig(visible, out);
        return;
    }
    bool uuids = strncmp(visible, "GPU-", 4) == 0;
    for (const char *p = visible;; p++) {
        size_t n = entry_len(p);
        int index = !uuids ? gpu_by_number(all, p) : strncmp(p, "GPU-", 4) == 0 ? by_uuid(all, p, n) : -1;
        if (index < 0)
            return;
        if (gpu_seen(out, (unsigned)index)) {
            out->n = 0;
            return;
        }
        assert(out->n < GPU_MAX);
        out->index[out->n++] = (unsigned)index;
        p += n;
        if (!*p)
            return;
    }
}
