#include "agent/doctor.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/array.h"

#define MIB (1024ull * 1024)
#define GIB (1024 * MIB)

#define SHM_ENOUGH     (512 * MIB) /* Docker's default is 64 MiB; NCCL and data loaders need more */
#define TMP_ENOUGH     (256 * MIB)
#define MEMORY_ENOUGH  (512 * MIB)
#define NOFILE_ENOUGH  1024u
#define NPROC_ENOUGH   1024u
#define MEMLOCK_ENOUGH GIB

static const char *const verdict_names[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_BAD] = "bad"};

const char *doctor_verdict_name(enum doctor_verdict v)
{
    return verdict_names[v];
}

/* A new row; its value follows. */
static struct doctor_row *row(struct doctor_report *r, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static struct doctor_row *row(struct doctor_report *r, const char *name, const char *fmt, ...)
{
    assert(r->n < DOCTOR_ROWS_MAX);
    struct doctor_row *d = &r->row[r->n++];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->value, sizeof d->value, fmt, ap);
    va_end(ap);
    d->name = name;
    return d;
}

static void advise(struct doctor_row *d, enum doctor_verdict verdict, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void advise(struct doctor_row *d, enum doctor_verdict verdict, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->advice, sizeof d->advice, fmt, ap);
    va_end(ap);
    d->verdict = verdict;
}

static void doctor_append(struct doctor_row *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void doctor_append(struct doctor_row *d, const char *fmt, ...)
{
    size_t n = strlen(d->value);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->value + n, sizeof d->value - n, fmt, ap);
    va_end(ap);
}

static bool doctor_known(uint64_t n)
{
    return n != HOST_UNKNOWN && n != HOST_UNLIMITED;
}

/* "3.5 GiB"; the ring lets a few of them stand in one line. */
static const char *size(uint64_t bytes)
{
    static char ring[4][32];
    static unsigned next;
    char *to = ring[next++ % COUNT_OF(ring)];
    uint64_t unit = bytes >= GIB ? GIB : MIB;
    if (!doctor_known(bytes))
        return bytes == HOST_UNKNOWN ? "unknown" : "unlimited";
    snprintf(to, sizeof ring[0], "%llu.%llu %s", (unsigned long long)(bytes / unit),
             (unsigned long long)(bytes % unit * 10 / unit), unit == GIB ? "GiB" : "MiB");
    return to;
}

static const char *doctor_count(uint64_t n)
{
    static char ring[4][24];
    static unsigned next;
    char *to = ring[next++ % COUNT_OF(ring)];
    if (!doctor_known(n))
        return n == HOST_UNKNOWN ? "unknown" : "unlimited";
    snprintf(to, sizeof ring[0], "%llu", (unsigned long long)n);
    return to;
}

static void judge_host(const struct host_facts *f, struct doctor_report *r)
{
    row(r, "host", "%s", f->hostname[0] ? f->hostname : "no name");
    row(r, "kernel", "%s", f->kernel);
    row(r, "container", "%s%s", f->container[0] ? f->container : "none seen", f->pid_one ? ", elrun is process 1" : "");
    if (!f->has_proc)
        advise(row(r, "proc", "/proc is not mounted"), DOCTOR_WARN,
               "elrun cannot see which signals workers handle, nor which GPUs there are: mount /proc");
}

static void judge_python(const struct host_facts *f, struct doctor_report *r)
{
    if (f->python) {
        advise(row(r, "python", "%s", f->python_error.text), DOCTOR_BAD,
               "activate a virtual environment, install python3, or set PYTHON_EXEC; --no-python needs none");
        return;
    }
    row(r, "python", "%s (%s)%s%s", f->py.path, f->py.why, f->py.version[0] ? ", version " : "", f->py.version);
    struct doctor_row *d = row(r, "torch", "%s",
                               f->py.shim       ? "not looked for"
                               : f->py.torch[0] ? f->py.torch
                                                : "not found");
    if (f->py.shim)
        advise(d, DOCTOR_WARN,
               "this python is a script that chooses an interpreter at each start (pyenv?): activate a "
               "virtual environment or set PYTHON_EXEC");
    else if (!f->py.torch[0])
        advise(d, DOCTOR_WARN,
               "no torch lies where this interpreter looks; if workers need it: %.150s -m pip install torch",
               f->py.path);
    else if (f->gpus.n && !f->py.torch_cuda)
        advise(d, DOCTOR_WARN, "this torch is built without CUDA and will not use the %u GPUs of this host", f->gpus.n);
}

static void judge_cpus(const struct host_facts *f, struct doctor_report *r)
{
    struct doctor_row *d = row(r, "cpus", "%u of %u may be used", f->cpus_allowed, f->cpus_online);
    if (!doctor_known(f->cpu_quota_millis))
        return;
    doctor_append(d, ", the cgroup grants the time of %llu.%02llu", (unsigned long long)f->cpu_quota_millis / 1000,
                  (unsigned long long)f->cpu_quota_millis % 1000 / 10);
    if (f->cpu_quota_millis < f->cpus_allowed * 1000ull)
        advise(d, DOCTOR_WARN,
               "--nproc-per-node=cpu and thread pools count %u CPUs and will be throttled: give numbers "
               "that fit the quota",
               f->cpus_allowed);
}

static void judge_gpus(const struct host_facts *f, struct doctor_report *r)
{
    const struct gpu_visible *v = &f->visible;
    if (!f->gpus.n) {
        row(r, "gpus", "none; --nproc-per-node=auto counts the %u CPUs", f->cpus_allowed);
        return;
    }
    const char *model = f->gpus.v[0].model;
    struct doctor_row *d = row(r, "gpus", "%u%s%s", f->gpus.n, model[0] ? " x " : "", model);
    if (f->visible_set)
        doctor_append(d, ", CUDA_VISIBLE_DEVICES leaves %u%s", v->n, v->mig ? " MIG slices" : "");
    doctor_append(d, v->n ? "; --nproc-per-node=auto counts them" : "; --nproc-per-node=auto counts CPUs");
    if (!v->n)
        advise(d, DOCTOR_WARN, "CUDA_VISIBLE_DEVICES hides every GPU: unset it, or correct its list");
    else if (v->mig && v->n > 1)
        advise(d, DOCTOR_WARN,
               "a program uses only the first MIG slice that it is shown: --virtual-local-rank gives each "
               "worker its own");
}

static void judge_memory(const struct host_facts *f, struct doctor_report *r)
{
    struct doctor_row *d = row(r, "memory", "%s, %s available", size(f->memory_bytes), size(f->memory_free_bytes));
    if (doctor_known(f->memory_limit_bytes) && f->memory_limit_bytes < f->memory_bytes)
        doctor_append(d, ", limited by the cgroup to %s", size(f->memory_limit_bytes));
    if (doctor_known(f->memory_free_bytes) && f->memory_free_bytes < MEMORY_ENOUGH)
        advise(d, DOCTOR_WARN, "the kernel may kill workers for want of memory: free some");
    d = row(r, "shm", f->shm_bytes == HOST_UNKNOWN ? "no /dev/shm" : "/dev/shm: %s, %s free", size(f->shm_bytes),
            size(f->shm_free_bytes));
    if (f->shm_bytes == HOST_UNKNOWN)
        advise(d, DOCTOR_WARN, "data loaders and NCCL share memory there: mount a tmpfs on /dev/shm");
    else if (f->shm_free_bytes < SHM_ENOUGH)
        advise(d, DOCTOR_WARN,
               "data loaders and NCCL fail when it is full: docker run --ipc=host or --shm-size=8g; on "
               "Kubernetes an emptyDir with medium: Memory");
    d = row(r, "tmp", "%s free for logs", size(f->tmp_free_bytes));
    if (f->tmp_free_bytes == HOST_UNKNOWN)
        advise(d, DOCTOR_BAD, "there is no folder for temporary files: set TMPDIR, or give --log-dir");
    else if (f->tmp_free_bytes < TMP_ENOUGH)
        advise(d, DOCTOR_WARN, "logs go there without --log-dir: free some space, or set TMPDIR");
}

static void judge_limits(const struct host_facts *f, struct doctor_report *r)
{
    struct doctor_row *d =
        row(r, "open-files", "%s, at most %s (ulimit -n)", doctor_count(f->nofile.soft), doctor_count(f->nofile.hard));
    if (doctor_known(f->nofile.soft) && f->nofile.soft < NOFILE_ENOUGH)
        advise(d, DOCTOR_WARN, "data loaders and NCCL use many descriptors: ulimit -n %llu",
               (unsigned long long)(f->nofile.hard < 65536 ? f->nofile.hard : 65536));
    d = row(r, "processes", "%s, at most %s (ulimit -u)", doctor_count(f->nproc.soft), doctor_count(f->nproc.hard));
    if (doctor_known(f->nproc.soft) && f->nproc.soft < NPROC_ENOUGH)
        advise(d, DOCTOR_WARN, "threads count too, and each worker has dozens: raise ulimit -u");
    d = row(r, "locked-memory", "%s, at most %s (ulimit -l)", size(f->memlock.soft), size(f->memlock.hard));
    if (f->gpus.n && doctor_known(f->memlock.soft) && f->memlock.soft < MEMLOCK_ENOUGH)
        advise(d, DOCTOR_WARN,
               "NCCL over InfiniBand or RoCE needs locked memory: ulimit -l unlimited (docker run "
               "--ulimit memlock=-1)");
}

static const struct host_address *best_address(const struct host_facts *f)
{
    for (unsigned i = 0; i < f->addresses_count; i++)
        if (f->address[i].reach == HOST_GLOBAL && f->address[i].up)
            return &f->address[i];
    return NULL;
}

static void judge_addresses(const struct host_facts *f, struct doctor_report *r)
{
    struct doctor_row *d = row(r, "addresses", "%s", "");
    unsigned shown = 0;
    for (unsigned i = 0; i < f->addresses_count; i++) {
        const struct host_address *a = &f->address[i];
        if (a->reach == HOST_GLOBAL && a->up &&
            strlen(d->value) + sizeof a->text + sizeof a->interface + 8 < sizeof d->value)
            doctor_append(d, "%s%s (%s)", shown++ ? ", " : "", a->text, a->interface);
    }
    const struct host_address *best = best_address(f);
    if (!best) {
        snprintf(d->value, sizeof d->value, "none but loopback");
        advise(d, DOCTOR_WARN, "this host can run jobs of one node only: bring an interface up");
        return;
    }
    if (!f->name_address[0])
        return;
    d = row(r, "own-name", "the hosts file maps %.200s to %s", f->hostname, f->name_address);
    if (strncmp(f->name_address, "127.", 4) == 0 || strcmp(f->name_address, "::1") == 0)
        advise(d, DOCTOR_WARN,
               "with several nodes gloo asks for its own name and would listen on loopback: set "
               "GLOO_SOCKET_IFNAME=%s, or correct /etc/hosts",
               best->interface);
}

/* Only what is worse off than it could be gets advice: without cgroups elrun still ends process groups and orphans. */
static void judge_cgroup(const struct host_facts *f, struct doctor_report *r)
{
    row(r, "cgroup", "%s",
        f->cgroup > 0    ? "workers get one: what leaves its process group and session is ended too"
        : f->cgroup == 0 ? "none may be made here: workers are ended by process group, orphans one by one"
                         : "no version 2 here: workers are ended by process group, orphans one by one");
}

/* Off unless asked for: what it asks for differs from job to job, and a wrong verdict costs a restart. */
static void judge_hang(struct doctor_report *r)
{
    row(r, "hangs", "not looked for; --hang-timeout=300 ends workers that all stand still for 300 s, and shows where");
}

void doctor_judge(const struct host_facts *f, struct doctor_report *out)
{
    memset(out, 0, sizeof *out);
    judge_host(f, out);
    judge_python(f, out);
    judge_cpus(f, out);
    judge_gpus(f, out);
    judge_memory(f, out);
    judge_limits(f, out);
    judge_addresses(f, out);
    judge_cgroup(f, out);
    judge_hang(out);
    for (unsigned i = 0; i < out->n; i++)
        if (out->row[i].verdict > out->worst)
            out->worst = out->row[i].verdict;
}

static void member(struct el_buf *out, const char *before, const char *key, const char *value)
{
    el_buf_printf(out, "%s\"%s\": ", before, key);
    text_json(out, value, strlen(value));
}

int doctor_json(const struct doctor_report *r, struct el_buf *out)
{
    member(out, "{\n  ", "verdict", doctor_verdict_name(r->worst));
    el_buf_puts(out, ",\n  \"rows\": [");
    for (unsigned i = 0; i < r->n; i++) {
        const struct doctor_row *d = &r->row[i];
        member(out, i ? ",\n    {" : "\n    {", "name", d->name);
        member(out, ", ", "verdict", doctor_verdict_name(d->verdict));
        member(out, ", ", "value", d->value);
        member(out, ", ", "advice", d->advice);
        el_buf_puts(out, "}");
    }
    el_buf_puts(out, "\n  ]\n}\n");
    return out->full ? -1 : 0;
}

int doctor_text(const struct doctor_report *r, bool colour, struct el_buf *out)
{
    static const char *const colours[] = {
        [DOCTOR_OK] = "\033[32m", [DOCTOR_WARN] = "\033[33m", [DOCTOR_BAD] = "\033[31m"};
    unsigned n[COUNT_OF(verdict_names)] = {0};
    for (unsigned i = 0; i < r->n; i++) {
        const struct doctor_row *d = &r->row[i];
        n[d->verdict]++;
        el_buf_printf(out, "%s%-4s%s  %-13s  ", colour ? colours[d->verdict] : "", doctor_verdict_name(d->verdict),
                      colour ? "\033[0m" : "", d->name);
        text_clean(out, d->value, strlen(d->value));
        if (d->advice[0]) {
            el_buf_printf(out, "\n%21s-> ", "");
            text_clean(out, d->advice, strlen(d->advice));
        }
        el_buf_puts(out, "\n");
    }
    el_buf_printf(out, "\n%u ok, %u to look at, %u bad\n", n[DOCTOR_OK], n[DOCTOR_WARN], n[DOCTOR_BAD]);
    return out->full ? -1 : 0;
}
