/* Which NVIDIA devices a program of this host may use, without the driver's libraries: from the driver's /proc entries,
 * the device nodes and CUDA_VISIBLE_DEVICES, by CUDA's rules. */
#ifndef SYS_GPU_H
#define SYS_GPU_H
#include <stdbool.h>

#define GPU_MAX 64

struct gpu {
    char pci[32];  /* as sysfs names it: "0000:dc:00.0"; "" = not known */
    char uuid[64]; /* "GPU-…"; "" = not known */
    int minor;     /* N of the device node nvidiaN; -1 = not known */
    char model[64];
};

struct gpu_list {
    unsigned n;
    struct gpu v[GPU_MAX];
};

/* Pure.  One "information" file of the driver; pci is the name of its folder.  -1 if the name is not a PCI address or
 * the list is full. */
int gpu_add(struct gpu_list *all, const char *pci, const char *information);

/* Pure.  Orders by PCI address, as CUDA does with equal devices. */
void gpu_sort(struct gpu_list *all);

/* What CUDA_VISIBLE_DEVICES leaves. */
struct gpu_visible {
    unsigned n;
    unsigned index[GPU_MAX]; /* into the list; not valid with mig */
    bool mig;                /* the list names MIG slices: n counts them, of which one program sees only the first */
};

/* Pure.  visible: the variable's value, NULL if it is not set.  Entries are numbers (what follows the digits is
 * ignored) or beginnings of UUIDs; the first bad one ends the list, a repeated one empties it. */
void gpu_select(const struct gpu_list *all, const char *visible, struct gpu_visible *out);

/* gpu_io.c: the devices of this host, below root ("" for the real one).  A host without any gives an empty list. */
void gpu_read(struct gpu_list *all, const char *root);

#endif
