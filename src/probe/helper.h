/* The GPU helper, embedded in elrun (probe/child/child.h says what it does and how it is called): a descriptor to
 * execute it from, and its command line. */
#ifndef PROBE_HELPER_H
#define PROBE_HELPER_H
#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"

#define HELPER_NAME "elrun-gpu" /* argv[0] */

/* Close-on-exec descriptor for spawn_conf.exec_fd.  A sealed memory file; where the kernel denies that
 * (vm.memfd_noexec=2), or with dir, a file without a name in dir or else in the first folder that may be executed from:
 * $XDG_RUNTIME_DIR, $TMPDIR, /tmp, /var/tmp, /dev/shm, the current one.  -1 and *e. */
int helper_open(const char *dir, struct el_err *e);

enum helper_role { HELPER_NVML, HELPER_BURN, HELPER_NICLOOP, HELPER_PAIR };

struct helper_order {
    enum helper_role role;
    unsigned gpu, rail;
    unsigned expect;                /* nvml: number of GPUs, 0: any */
    const char *id;                 /* pair, guest end; NULL: host end */
    const char *purelib;            /* NULL: not known */
    const char *nccl, *cuda, *nvml; /* --nccl-lib, --cuda-lib; NULL: search */
    bool quick;
    unsigned init_ms, step_ms, grace_ms; /* 0: the helper's own */
};

#define HELPER_ARGV_MAX 16
struct helper_argv {
    char *argv[HELPER_ARGV_MAX + 1];
    char text[6144];
};

/* Fills *a; -1 and *e if a path is too long. */
int helper_argv(const struct helper_order *o, struct helper_argv *a, struct el_err *e);

#endif
