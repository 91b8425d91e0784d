#include "agent/doctor.h"

#include "lib/tap.h"

#define MIB ((uint64_t)1 << 20)

static struct host_facts f;
static struct doctor_report r;

/* A host that nothing is wrong with. */
static void healthy(void)
{
    memset(&f, 0, sizeof f);
    strcpy(f.hostname, "node1");
    strcpy(f.kernel, "Linux 6.1.0 x86_64");
    f.has_proc = true;
    f.cpus_allowed = f.cpus_online = 16;
    f.cpu_quota_millis = f.memory_limit_bytes = HOST_UNLIMITED;
    f.memory_bytes = 64000 * MIB;
    f.memory_free_bytes = 60000 * MIB;
    f.shm_bytes = f.shm_free_bytes = f.tmp_free_bytes = 32000 * MIB;
    f.nofile = f.nproc = (struct host_limit){65536, 65536};
    f.memlock = (struct host_limit){8 * MIB, 8 * MIB};
    f.cgroup = 1;
    strcpy(f.py.path, "/usr/bin/python3");
    f.py.why = "PATH";
    strcpy(f.py.version, "3.11");
    strcpy(f.py.torch, "2.13.0+cpu");
    f.addresses_count = 2;
    f.address[0] = (struct host_address){"lo", "127.0.0.1", HOST_LOOPBACK, true};
    f.address[1] = (struct host_address){"eth0", "10.0.0.7", HOST_GLOBAL, true};
}

static void gpus(unsigned n, unsigned visible)
{
    f.gpus.n = n;
    for (unsigned i = 0; i < n; i++)
        strcpy(f.gpus.v[i].model, "NVIDIA H100");
    f.visible = (struct gpu_visible){.n = visible};
    f.visible_set = visible != n;
    f.py.torch_cuda = true;
    f.memlock.soft = HOST_UNLIMITED;
}

static const struct doctor_row *find(const char *name)
{
    doctor_judge(&f, &r);
    for (unsigned i = 0; i < r.n; i++)
        if (strcmp(r.row[i].name, name) == 0)
            return &r.row[i];
    return NULL;
}

/* The row has that verdict, the words are in value or advice, and no other row is worse than ok. */
static void is_row(const char *name, enum doctor_verdict want, const char *words, const char *what)
{
    const struct doctor_row *d = find(name);
    if (!ok(d && d->verdict == want && (strstr(d->value, words) || strstr(d->advice, words)), what))
        printf("# %s: %s; %s\n", name, d ? d->value : "no row", d ? d->advice : "");
    for (unsigned i = 0; d && i < r.n; i++)
        if (&r.row[i] != d && r.row[i].verdict != DOCTOR_OK)
            ok(0, r.row[i].name);
    ok(d && (want == DOCTOR_OK) == (d->advice[0] == 0), "advice if and only if not ok");
    is_num(r.worst, want, "the worst of all");
    healthy();
}

static void test_software(void)
{
    is_row("python", DOCTOR_OK, "/usr/bin/python3 (PATH), version 3.11", "a healthy host: python");
    is_row("torch", DOCTOR_OK, "2.13.0+cpu", "torch");
    is_row("gpus", DOCTOR_OK, "none; --nproc-per-node=auto counts the 16 CPUs", "no GPU is no fault");
    is_row("addresses", DOCTOR_OK, "10.0.0.7 (eth0)", "addresses without loopback");
    is_row("locked-memory", DOCTOR_OK, "8.0 MiB", "locked memory does not matter without GPUs");
    f.python = -1;
    strcpy(f.python_error.text, "found no Python");
    is_row("python", DOCTOR_BAD, "found no Python", "no python is bad");
    f.py.torch[0] = 0;
    is_row("torch", DOCTOR_WARN, "/usr/bin/python3 -m pip install torch", "no torch");
    f.py.shim = true;
    is_row("torch", DOCTOR_WARN, "PYTHON_EXEC", "a shim");
    gpus(8, 8);
    is_row("gpus", DOCTOR_OK, "8 x NVIDIA H100; --nproc-per-node=auto counts them", "eight GPUs");
    gpus(8, 2);
    is_row("gpus", DOCTOR_OK, "CUDA_VISIBLE_DEVICES leaves 2; --nproc-per-node=auto counts them", "two of them");
    gpus(8, 0);
    is_row("gpus", DOCTOR_WARN, "hides every GPU", "all hidden");
    gpus(1, 3);
    f.visible.mig = true;
    is_row("gpus", DOCTOR_WARN, "--virtual-local-rank", "MIG slices");
    gpus(8, 8);
    f.py.torch_cuda = false;
    is_row("torch", DOCTOR_WARN, "without CUDA", "GPUs, but a torch for CPUs");
    gpus(8, 8);
    f.memlock.soft = 8 * MIB;
    is_row("locked-memory", DOCTOR_WARN, "InfiniBand", "locked memory with GPUs");
}

static void test_machine(void)
{
    f.cpu_quota_millis = 2500;
    is_row("cpus", DOCTOR_WARN, "16 of 16 may be used, the cgroup grants the time of 2.50", "a quota");
    f.cpu_quota_millis = 16000;
    is_row("cpus", DOCTOR_OK, "16.00", "a quota that does no harm");
    f.memory_limit_bytes = 4096 * MIB;
    is_row("memory", DOCTOR_OK, "limited by the cgroup to 4.0 GiB", "a limit");
    f.memory_free_bytes = 100 * MIB;
    is_row("memory", DOCTOR_WARN, "100.0 MiB available", "hardly any memory");
    f.shm_bytes = f.shm_free_bytes = 64 * MIB;
    is_row("shm", DOCTOR_WARN, "--shm-size", "Docker's default");
    f.shm_bytes = f.shm_free_bytes = HOST_UNKNOWN;
    is_row("shm", DOCTOR_WARN, "no /dev/shm", "none");
    f.tmp_free_bytes = 0;
    is_row("tmp", DOCTOR_WARN, "0.0 MiB free", "a full disk");
    f.tmp_free_bytes = HOST_UNKNOWN;
    is_row("tmp", DOCTOR_BAD, "--log-dir", "no folder");
    f.nofile = (struct host_limit){256, 4096};
    is_row("open-files", DOCTOR_WARN, "ulimit -n 4096", "few descriptors");
    f.nofile = (struct host_limit){256, HOST_UNLIMITED};
    is_row("open-files", DOCTOR_WARN, "ulimit -n 65536", "no hard limit");
    f.nproc.soft = 100;
    is_row("processes", DOCTOR_WARN, "100, at most 65536", "few processes");
    f.nproc.soft = HOST_UNKNOWN;
    is_row("processes", DOCTOR_OK, "unknown", "what is not known is no fault");
    f.address[1].up = false;
    is_row("addresses", DOCTOR_WARN, "one node only", "no interface up");
    strcpy(f.name_address, "127.0.1.1");
    is_row("own-name", DOCTOR_WARN, "GLOO_SOCKET_IFNAME=eth0", "Debian's habit");
    strcpy(f.name_address, "10.0.0.7");
    is_row("own-name", DOCTOR_OK, "node1 to 10.0.0.7", "a good hosts file");
    f.cgroup = 0;
    is_row("cgroup", DOCTOR_OK, "none may be made", "no cgroup is no fault");
    f.cgroup = -1;
    is_row("cgroup", DOCTOR_OK, "no version 2", "nor is an old kernel");
    f.has_proc = false;
    is_row("proc", DOCTOR_WARN, "mount /proc", "no /proc");
    f.addresses_count = HOST_ADDRESSES_MAX;
    for (unsigned i = 0; i < HOST_ADDRESSES_MAX; i++)
        f.address[i] =
            (struct host_address){"interface-name", "2001:db8:1234:5678:9abc:def0:1234:5678", HOST_GLOBAL, true};
    is_row("addresses", DOCTOR_OK, "2001:db8", "many addresses are cut, not written over the end");
}

static void test_print(void)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    strcpy(f.hostname, "a\"b\x1b[31m\xff");
    f.tmp_free_bytes = 0;
    doctor_judge(&f, &r);
    ok(doctor_json(&r, &out) == 0 && strstr(el_buf_cstr(&out), "\"a\\\"b\\u001b[31m\xef\xbf\xbd\""),
       "JSON escapes what is no text");
    ok(strstr(el_buf_cstr(&out), "{\n  \"verdict\": \"warn\",\n  \"rows\": [\n    {\"name\": \"host\""), "its shape");
    el_buf_free(&out);
    ok(doctor_text(&r, false, &out) == 0 && !strchr(el_buf_cstr(&out), '\x1b'), "text without escape sequences");
    ok(strstr(el_buf_cstr(&out), "warn  tmp            0.0 MiB free for logs\n                     -> logs go"),
       "its shape");
    ok(strstr(el_buf_cstr(&out), " ok, 1 to look at, 0 bad\n"), "its sum");
    el_buf_free(&out);
    out = EL_BUF_INIT(NULL, 100);
    ok(doctor_text(&r, true, &out) == -1, "a full buffer is an error");
    el_buf_free(&out);
}

int main(void)
{
    healthy();
    test_software();
    test_machine();
    test_print();
    return done();
}
