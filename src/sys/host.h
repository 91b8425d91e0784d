/* What this host has: the interpreter, devices, limits, addresses.  host_io.c reads files and asks the kernel; it
 * starts no process.  The agent uses it before anything starts, `elrun doctor` shows it. */
#ifndef SYS_HOST_H
#define SYS_HOST_H
#include <stdbool.h>
#include <stdint.h>

#include "sys/gpu.h"
#include "util/err.h"

#define HOST_PATH_MAX      4096
#define HOST_ADDRESSES_MAX 32
#define HOST_UNLIMITED     UINT64_MAX
#define HOST_UNKNOWN       (UINT64_MAX - 1)

struct host_python {
    char path[HOST_PATH_MAX]; /* what to execute */
    const char *why;          /* "PYTHON_EXEC", "VIRTUAL_ENV" or "PATH" */
    char version[32];         /* "3.11.7"; "" = not found out */
    char torch[64];           /* "2.13.0+cpu"; "" = no torch found */
    char site[HOST_PATH_MAX]; /* the folder of packages that it lies in, "" = no torch found */
    bool torch_cuda;          /* this torch was built for CUDA */
    bool shim;                /* a script that chooses the interpreter (pyenv): nothing is known of what it chooses */
};

/* The interpreter of the workers: PYTHON_EXEC, else the active virtual environment, else python3 or python on PATH.
 * -1 and *e (status 66) with what was tried.  Only path and why are filled. */
int host_python_find(struct host_python *py, char *const *env, struct el_err *e);

/* Fills version and torch from the files around the interpreter; starts nothing, so may know less than it does. */
void host_python_look(struct host_python *py, char *const *env);

/* CPUs that this process may use, as torch counts them (affinity, not the number built in). */
unsigned host_cpus(void);

/* A program by name: with a slash as it is, else the first on PATH that is a regular file and executable.
 * -1, and errno says why (ENOENT, or EACCES if all that was found may not be executed). */
int host_program_find(const char *name, char *const *env, char *found);

struct host_limit {
    uint64_t soft, hard; /* HOST_UNLIMITED, HOST_UNKNOWN */
};

enum host_reach { HOST_LOOPBACK, HOST_LINK_LOCAL, HOST_GLOBAL };

struct host_address {
    char interface[16];
    char text[64]; /* numeric */
    enum host_reach reach;
    bool up;
};

struct host_facts {
    char hostname[256];
    char name_address[64]; /* what the hosts file says of the own name, "" = nothing */
    char kernel[128];      /* "Linux 6.1.0 x86_64" */
    char container[32];    /* "docker", "podman", "kubernetes", …; "" = none seen */
    bool pid_one;          /* elrun is process 1 */
    bool has_proc;
    unsigned cpus_allowed, cpus_online;
    uint64_t cpu_quota_millis;                                    /* thousandths of a CPU, HOST_UNLIMITED = no quota */
    uint64_t memory_bytes, memory_free_bytes, memory_limit_bytes; /* limit: of the cgroup, */
    uint64_t memory_left_bytes;                                   /* … and what is left of it; HOST_UNLIMITED */
    uint64_t shm_bytes, shm_free_bytes;                           /* HOST_UNKNOWN: no /dev/shm */
    uint64_t tmp_free_bytes;
    struct host_limit nofile, nproc, memlock;
    int cgroup; /* 1: elrun may make cgroups of version 2; 0: it may not; -1: there is no version 2 */
    struct gpu_list gpus;
    struct gpu_visible visible;
    bool visible_set; /* CUDA_VISIBLE_DEVICES is in the environment */
    int python;       /* 0, or -1 and python_error */
    struct host_python py;
    struct el_err python_error;
    unsigned addresses_count;
    struct host_address address[HOST_ADDRESSES_MAX];
};

/* Everything at once; what cannot be found out is HOST_UNKNOWN or empty.  Large: not for the stack. */
void host_facts_read(struct host_facts *f, char *const *env);
/* The memory of them alone, which only asks the kernel: the others may wait for a name or a file system. */
void host_memory_read(struct host_facts *f);

#endif
