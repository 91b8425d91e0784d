#include "sys/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/env.h"
#include "sys/cgroup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/scan.h"

#define KIB 1024u

unsigned host_cpus(void)
{
    static uint64_t mask[8192 / 64]; /* as wide as any kernel's */
    int n = sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) ? 0 : CPU_COUNT_S(sizeof mask, (cpu_set_t *)mask);
    long online = n ? n : sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

/* --- facts ------------------------------------------------------------------------------------------------------- */

static void read_names(struct host_facts *f, char *const *env)
{
    struct utsname u;
    const char *container = env_get(env, "container"); /* systemd's convention, for nspawn and lxc too */
    if (gethostname(f->hostname, sizeof f->hostname - 1))
        f->hostname[0] = 0;
    if (uname(&u) == 0)
        snprintf(f->kernel, sizeof f->kernel, "%.40s %.60s %.20s", u.sysname, u.release, u.machine);
    if (env_get(env, "KUBERNETES_SERVICE_HOST"))
        container = "kubernetes";
    else if (access("/run/.containerenv", F_OK) == 0)
        container = "podman";
    else if (access("/.dockerenv", F_OK) == 0)
        container = "docker";
    snprintf(f->container, sizeof f->container, "%.31s", container ? container : "");
    f->pid_one = getpid() == 1;
    f->has_proc = access("/proc/self/stat", R_OK) == 0;
}

/* What the hosts file maps the own name to: gloo asks for that, and by Debian's habit it is 127.0.1.1.  No resolver is
 * asked: that may take seconds. */
static void read_own_name(struct host_facts *f)
{
    static const size_t text_max = 1 << 18;
    char *text = malloc(text_max), *lines = NULL, *words = NULL;
    if (!text || file_read("/etc/hosts", text, text_max) < 0 || !f->hostname[0]) {
        free(text);
        return;
    }
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        line[strcspn(line, "#")] = 0;
        char *address = strtok_r(line, " \t\r", &words), *name = address;
        while (name && (name = strtok_r(NULL, " \t\r", &words)))
            if (strcmp(name, f->hostname) == 0 && !f->name_address[0])
                snprintf(f->name_address, sizeof f->name_address, "%.63s", address);
    }
    free(text);
}

static struct host_limit host_limit(__rlimit_resource_t which)
{
    struct rlimit r;
    if (getrlimit(which, &r))
        return (struct host_limit){HOST_UNKNOWN, HOST_UNKNOWN};
    return (struct host_limit){r.rlim_cur == RLIM_INFINITY ? HOST_UNLIMITED : r.rlim_cur,
                               r.rlim_max == RLIM_INFINITY ? HOST_UNLIMITED : r.rlim_max};
}

static uint64_t host_kib_field(const char *text, const char *key)
{
    const char *at = scan_field(text, key);
    uint64_t n;
    return at && scan_u64(&at, &n) ? n * KIB : HOST_UNKNOWN;
}

static void space(const char *path, uint64_t *all, uint64_t *free_bytes)
{
    struct statvfs s;
    *all = *free_bytes = HOST_UNKNOWN;
    if (statvfs(path, &s))
        return;
    *all = (uint64_t)s.f_blocks * s.f_frsize;
    *free_bytes = (uint64_t)s.f_bavail * s.f_frsize;
}

static uint64_t host_least(uint64_t a, uint64_t b)
{
    if (b == HOST_UNKNOWN)
        return a;
    return a == HOST_UNKNOWN || b < a ? b : a;
}

/* "max" or a number. */
static uint64_t number_file(const char *folder, const char *file)
{
    char text[64];
    const char *at = text;
    uint64_t n;
    if (file_readf(text, sizeof text, folder, "/%s", file) < 0)
        return HOST_UNKNOWN;
    if (strncmp(text, "max", 3) == 0)
        return HOST_UNLIMITED;
    if (!scan_u64(&at, &n))
        return HOST_UNKNOWN;
    return n > UINT64_MAX / 4 ? HOST_UNLIMITED : n; /* version 1 writes its largest page count */
}

/* "200000 100000" of cpu.max, or the two files of version 1, in thousandths of a CPU. */
static uint64_t cpu_quota(const char *folder)
{
    char text[64];
    const char *at = text;
    uint64_t quota, period;
    if (file_readf(text, sizeof text, folder, "/cpu.max") >= 0) {
        if (!scan_u64(&at, &quota))
            return HOST_UNLIMITED;
        scan_blanks(&at);
        return scan_u64(&at, &period) && period ? quota * 1000 / period : HOST_UNKNOWN;
    }
    period = number_file(folder, "cpu.cfs_period_us");
    if (file_readf(text, sizeof text, folder, "/cpu.cfs_quota_us") < 0 || period == HOST_UNKNOWN || !period)
        return HOST_UNKNOWN;
    return scan_u64(&at, &quota) ? quota * 1000 / period : HOST_UNLIMITED; /* -1: none */
}

/* What a group may still take: its limit, less what it holds, of which the kernel can give back file pages that nobody
 * has used lately. */
static uint64_t memory_left(const char *folder, uint64_t limit, const char *used_file, const char *idle_key)
{
    char text[8192];
    uint64_t used = number_file(folder, used_file), idle = 0;
    if (limit >= HOST_UNKNOWN || used >= HOST_UNKNOWN)
        return HOST_UNLIMITED;
    const char *at = file_readf(text, sizeof text, folder, "/memory.stat") < 0 ? NULL : strstr(text, idle_key);
    if (at) {
        at += strlen(idle_key);
        scan_u64(&at, &idle);
    }
    used = used > idle ? used - idle : 0;
    return limit > used ? limit - used : 0;
}

static void read_memory(struct host_facts *f, const char *folder, const char *limit_file, const char *used_file,
                        const char *idle_key)
{
    uint64_t limit = number_file(folder, limit_file);
    f->memory_limit_bytes = host_least(f->memory_limit_bytes, limit);
    f->memory_left_bytes = host_least(f->memory_left_bytes, memory_left(folder, limit, used_file, idle_key));
}

/* A limit of any folder above holds too: up to the folder that is no cgroup. */
static void walk_up(struct host_facts *f, char *folder)
{
    while (folder[0] && access(folder, F_OK) == 0) {
        f->cpu_quota_millis = host_least(f->cpu_quota_millis, cpu_quota(folder));
        read_memory(f, folder, "memory.max", "memory.current", "\ninactive_file ");
        read_memory(f, folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file ");
        char *slash = strrchr(folder, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static void read_cgroups(struct host_facts *f)
{
    static const char *const controllers[] = {"cpu", "memory"};
    char folder[CGROUP_PATH_MAX];
    struct cgroup_texts x;
    f->cgroup = -1;
    f->cpu_quota_millis = f->memory_limit_bytes = f->memory_left_bytes = HOST_UNLIMITED;
    bool known = cgroup_texts_read(&x, "/proc") == 0;
    if (known && cgroup_own(x.mountinfo, x.self, folder, sizeof folder) == 0) {
        f->cgroup = access(folder, W_OK) == 0;
        walk_up(f, folder);
    }
    for (unsigned i = 0; known && i < 2; i++)
        if (cgroup_own_v1(x.mountinfo, x.self, controllers[i], folder, sizeof folder) == 0)
            walk_up(f, folder);
    cgroup_texts_free(&x);
}

static enum host_reach reach_of(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        uint32_t v4 = ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr);
        return v4 >> 24 == 127 ? HOST_LOOPBACK : v4 >> 16 == 0xa9fe ? HOST_LINK_LOCAL : HOST_GLOBAL;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) ? HOST_LOOPBACK : IN6_IS_ADDR_LINKLOCAL(v6) ? HOST_LINK_LOCAL : HOST_GLOBAL;
}

static void read_addresses(struct host_facts *f)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *i = all; i && f->addresses_count < HOST_ADDRESSES_MAX; i = i->ifa_next) {
        if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        struct host_address *a = &f->address[f->addresses_count++];
        const void *bytes = i->ifa_addr->sa_family == AF_INET
                                ? (const void *)&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr
                                : (const void *)&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
        snprintf(a->interface, sizeof a->interface, "%.15s", i->ifa_name);
        inet_ntop(i->ifa_addr->sa_family, bytes, a->text, sizeof a->text);
        a->reach = reach_of(i->ifa_addr);
        a->up = (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING);
    }
    freeifaddrs(all);
}

void host_memory_read(struct host_facts *f)
{
    char text[8192];
    file_read("/proc/meminfo", text, sizeof text);
    f->memory_bytes = host_kib_field(text, "MemTotal:");
    f->memory_free_bytes = host_kib_field(text, "MemAvailable:");
    read_cgroups(f);
}

void host_facts_read(struct host_facts *f, char *const *env)
{
    uint64_t all;
    const char *visible = env_get(env, "CUDA_VISIBLE_DEVICES");
    memset(f, 0, sizeof *f);
    read_names(f, env);
    read_own_name(f);
    f->cpus_allowed = host_cpus();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    f->cpus_online = online > 0 ? (unsigned)online : f->cpus_allowed;
    host_memory_read(f);
    space("/dev/shm", &f->shm_bytes, &f->shm_free_bytes);
    const char *tmp = env_get(env, "TMPDIR");
    space(tmp && *tmp ? tmp : "/tmp", &all, &f->tmp_free_bytes);
    f->nofile = host_limit(RLIMIT_NOFILE);
    f->nproc = host_limit(RLIMIT_NPROC);
    f->memlock = host_limit(RLIMIT_MEMLOCK);
    gpu_read(&f->gpus, "");
    gpu_select(&f->gpus, visible, &f->visible);
    f->visible_set = visible != NULL;
    f->python = host_python_find(&f->py, env, &f->python_error);
    if (f->python == 0)
        host_python_look(&f->py, env);
    read_addresses(f);
}
