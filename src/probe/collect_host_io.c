/* Memory, limits, processes, and what the system is made of. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>

#include "sys/host.h"
#include "probe/collect.h"
#include "probe/facts.h"
#include "probe/sysread.h"
#include "sys/procstat.h"
#include "util/file.h"
#include "util/scan.h"

enum { TEXT_ROOM = 16384 };

static bool has_infiniband(const struct collect *c)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/sys/class/infiniband", c->root);
    DIR *dir = opendir(path);
    bool found = false;
    for (struct dirent *d; dir && !found && (d = readdir(dir));)
        found = d->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return found;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void shared_memory(const struct collect *c)
{
    char path[4096];
    struct statvfs s;
    snprintf(path, sizeof path, "%s/dev/shm", c->root);
    if (statvfs(path, &s) || !s.f_blocks) {
        struct finding f = finding_value(CHECK_SHM_SIZE, "", 0);
        finding_say(&f, "there is no /dev/shm");
        c->finding(c->ctx, &f);
        return;
    }
    collect_value(c, CHECK_SHM_SIZE, "", (double)s.f_blocks * (double)s.f_frsize);
    collect_value(c, CHECK_SHM_FREE, "", 100.0 * (double)s.f_bavail / (double)s.f_blocks);
}

void collect_memory(const struct collect *c)
{
    char text[TEXT_ROOM];
    struct sysread_memory m;
    unsigned nodes = 0;
    uint64_t balancing;
    if (file_readf(text, sizeof text, c->root, "/proc/meminfo") > 0 && sysread_memory(text, &m)) {
        collect_value(c, CHECK_MEMORY_FREE, "", 100.0 * (double)m.available / (double)m.total);
        collect_value(c, CHECK_SWAP_USED, "", m.swap_free < m.swap_total ? (double)(m.swap_total - m.swap_free) : 0);
        snprintf(text, sizeof text, "%llu", (unsigned long long)((m.total + (1u << 29)) >> 30));
        c->fact(c->ctx, "memory_gib", text);
    } else {
        collect_unchecked(c, CHECK_MEMORY_FREE, "", "/proc/meminfo cannot be read");
    }
    shared_memory(c);
    bool several = file_readf(text, sizeof text, c->root, "/sys/devices/system/node/online") > 0 &&
                   sysread_range_count(text, &nodes) && nodes > 1;
    if (several && file_readf(text, sizeof text, c->root, "/proc/sys/kernel/numa_balancing") > 0 &&
        sysread_count(text, &balancing))
        collect_value(c, CHECK_NUMA_BALANCING, "", balancing != 0);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static void collect_host_limit(const struct collect *c, enum check check, __rlimit_resource_t which)
{
    struct rlimit r;
    if (getrlimit(which, &r) == 0)
        collect_value(c, check, "", r.rlim_max == RLIM_INFINITY ? CHECK_UNLIMITED : (double)r.rlim_max);
}

void collect_limits(const struct collect *c)
{
    collect_host_limit(c, CHECK_NOFILE, RLIMIT_NOFILE);
    if (has_infiniband(c))
        collect_host_limit(c, CHECK_MEMLOCK, RLIMIT_MEMLOCK);
    else
        collect_unchecked(c, CHECK_MEMLOCK, "", "only InfiniBand and RoCE need it, and this host has neither");
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

enum { STUCK_MAX = 64, LOOKS = 4, KTHREADD = 2 };

struct stuck {
    int pid;
    uint64_t start_ticks;
    char comm[64];
};

struct proc_walk {
    unsigned seen, zombies, n;
    struct stuck v[STUCK_MAX];
};

static bool stat_of(const struct collect *c, const char *pid, struct procstat_stat *s)
{
    char text[1024];
    return file_readf(text, sizeof text, c->root, "/proc/%s/stat", pid) > 0 && procstat_stat(s, text) == 0;
}

static void one_process(const struct collect *c, const char *name, void *ctx)
{
    struct proc_walk *w = ctx;
    struct procstat_stat s;
    if (name[0] < '0' || name[0] > '9' || !stat_of(c, name, &s))
        return;
    w->seen++;
    w->zombies += s.state == 'Z';
    if (s.state != 'D' || s.pid == KTHREADD || s.ppid == KTHREADD || w->n == STUCK_MAX)
        return; /* threads of the kernel wait like that when all is well */
    struct stuck *at = &w->v[w->n++];
    *at = (struct stuck){.pid = s.pid, .start_ticks = s.start_ticks};
    snprintf(at->comm, sizeof at->comm, "%s", s.comm);
}

/* Every process waits in the kernel now and then: only who does so at every look counts. */
static void drop_awake(const struct collect *c, struct proc_walk *w)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < w->n; i++) {
        char pid[16];
        struct procstat_stat s;
        snprintf(pid, sizeof pid, "%d", w->v[i].pid);
        if (stat_of(c, pid, &s) && s.state == 'D' && s.start_ticks == w->v[i].start_ticks)
            w->v[kept++] = w->v[i];
    }
    w->n = kept;
}

void collect_processes(const struct collect *c)
{
    struct proc_walk w = {.n = 0};
    if (collect_each(c, "/proc", one_process, &w) < 0 || !w.seen) { /* not mounted: this process at least is there */
        collect_unchecked(c, CHECK_ZOMBIES, "", "/proc cannot be read");
        collect_unchecked(c, CHECK_STUCK, "", "/proc cannot be read");
        return;
    }
    collect_value(c, CHECK_ZOMBIES, "", w.zombies);
    for (unsigned i = 0; i < LOOKS && w.n; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        drop_awake(c, &w);
    }
    struct finding f = finding_value(CHECK_STUCK, "", w.n);
    if (w.n)
        finding_say(&f, "%s, process %d%s", w.v[0].comm, w.v[0].pid, w.n > 1 ? ", and others" : "");
    c->finding(c->ctx, &f);
}

/* --- the system --------------------------------------------------------------------------------------------------- */

static void python(const struct collect *c)
{
    static struct host_python py; /* large */
    struct el_err e = {0};
    if (!c->env || host_python_find(&py, c->env, &e))
        return;
    host_python_look(&py, c->env);
    c->fact(c->ctx, "python", py.version);
    c->fact(c->ctx, "torch", py.torch);
}

static void processors(const struct collect *c)
{
    char text[TEXT_ROOM], name[FACT_MAX];
    unsigned count;
    if (file_readf(text, sizeof text, c->root, "/proc/cpuinfo") > 0 && sysread_cpu_name(text, name, sizeof name))
        c->fact(c->ctx, "cpu", name);
    if (file_readf(text, sizeof text, c->root, "/sys/devices/system/cpu/online") > 0 &&
        sysread_range_count(text, &count)) {
        snprintf(text, sizeof text, "%u", count);
        c->fact(c->ctx, "cores", text);
    }
}

/* With the open kernel module cards reach GPU memory through dma-buf, which Linux has since 5.12. */
static void direct_memory(const struct collect *c, const char *kernel)
{
    char text[TEXT_ROOM], version[FACT_MAX];
    bool open, driver = file_readf(text, sizeof text, c->root, "/proc/driver/nvidia/version") > 0 &&
                        sysread_nvidia(text, version, sizeof version, &open);
    if (driver)
        c->fact(c->ctx, "gpu_driver", version);
    if (!driver || !has_infiniband(c)) {
        collect_unchecked(c, CHECK_GDR, "", driver ? "no InfiniBand or RoCE device" : "no NVIDIA driver is loaded");
        return;
    }
    bool peermem = collect_has(c, "/sys/module/nvidia_peermem") || collect_has(c, "/sys/module/nv_peer_mem");
    bool dmabuf = open && sysread_kernel_since(kernel, 5, 12);
    struct finding f = finding_value(CHECK_GDR, "", peermem || dmabuf);
    finding_say(&f, "%s", peermem ? "nvidia_peermem" : dmabuf ? "dma-buf" : "neither nvidia_peermem nor dma-buf");
    c->finding(c->ctx, &f);
}

static void clock_sync(const struct collect *c)
{
    struct timex t = {.modes = 0};
    int state = adjtimex(&t);
    if (state < 0)
        collect_unchecked(c, CHECK_CLOCK_SYNC, "", "the kernel does not say");
    else
        collect_value(c, CHECK_CLOCK_SYNC, "", !(t.status & STA_UNSYNC) && state != TIME_ERROR);
}

void collect_system(const struct collect *c)
{
    char text[256], kernel[FACT_MAX] = "";
    if (file_readf(text, sizeof text, c->root, "/proc/sys/kernel/osrelease") > 0 &&
        scan_line(text, kernel, sizeof kernel))
        c->fact(c->ctx, "kernel", kernel);
    processors(c);
    direct_memory(c, kernel);
    clock_sync(c);
    python(c);
}
