/* The collectors of single-node checks: each reads its part of /proc and /sys below a root ("" but in tests, which have
 * a made-up tree) and says what it found.  They measure only; check.h judges. */
#ifndef PROBE_COLLECT_H
#define PROBE_COLLECT_H
#include <stdbool.h>
#include <stddef.h>

#include "probe/check.h"

struct collect_metric {
    const char *name, *unit; /* metric.h */
    unsigned n;
    double min, median, p95;
};

struct collect {
    const char *root;
    const char *ckpt_dir, *tmp_dir; /* NULL or "": not looked at */
    char *const *env;               /* of the workers: which Python they would get */
    bool quick;                     /* speeds in a third of the time */
    void *ctx;
    void (*finding)(void *ctx, const struct finding *f);
    void (*fact)(void *ctx, const char *name, const char *value);
    void (*metric)(void *ctx, const struct collect_metric *m);
};

/* One group, from begin to end; may take as long as the group's limit, and hang where the kernel does. */
void collect_group(enum check_group g, const struct collect *c);

/* --- between the collectors --- */
void collect_value(const struct collect *c, enum check check, const char *on, double value);
void collect_unchecked(const struct collect *c, enum check check, const char *on, const char *why);

/* Calls fn with each name in root/path, in order of the alphabet, those with a leading dot left out; how many.  -1 if
 * there is no such folder. */
int collect_each(const struct collect *c, const char *path,
                 void (*fn)(const struct collect *c, const char *name, void *ctx), void *ctx);
bool collect_has(const struct collect *c, const char *path);

void collect_infiniband(const struct collect *c);
void collect_ethernet(const struct collect *c);
void collect_pci(const struct collect *c);
void collect_memory(const struct collect *c);
void collect_limits(const struct collect *c);
void collect_disk(const struct collect *c);
void collect_hardware(const struct collect *c);
void collect_processes(const struct collect *c);
void collect_system(const struct collect *c);
void collect_speed(const struct collect *c);

#endif
