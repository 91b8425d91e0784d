/* What the host has: interpreter, script and program, devices and sysfs of a made-up root, and this machine's facts. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/entry.h"
#include "sys/host.h"
#include "lib/tap.h"
#include "sys/numa.h"

static char root[] = "/tmp/elrun-host-XXXXXX";

static const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *fmt, ...)
{
    static char ring[8][512];
    static unsigned next;
    char *to = ring[next++ % 8];
    int n = snprintf(to, sizeof ring[0], "%s/", root);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(to + n, sizeof ring[0] - (size_t)n, fmt, ap);
    va_end(ap);
    return to;
}

/* A file with its folders. */
static void put(const char *path, mode_t mode, const char *text)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = dir + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(dir, 0755);
    }
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
    chmod(path, mode);
}

static char *env_of[8];

static char *const *env(const char *a, const char *b, const char *c)
{
    char **e = env_of;
    e[0] = (char *)(size_t)a;
    e[1] = (char *)(size_t)b;
    e[2] = (char *)(size_t)c;
    return e;
}

static void is_python(char *const *e, const char *want, const char *why, const char *what)
{
    static struct host_python py;
    struct el_err err = {0};
    int r = host_python_find(&py, e, &err);
    is_str(r == 0 ? py.path : err.text, want, what);
    if (r == 0)
        is_str(py.why, why, why);
    else
        is_num(err.status, EL_EXIT_NOINPUT, "status 66");
}

static void test_python(void)
{
    static char path[600], venv[600], exec[600], want[600];
    put(at("bin/python3"), 0755, "");
    put(at("none/python3"), 0644, "");
    put(at("old/python"), 0755, "");
    put(at("venv/bin/python"), 0755, "");
    snprintf(path, sizeof path, "PATH=%s:%s", at("none"), at("bin"));
    snprintf(venv, sizeof venv, "VIRTUAL_ENV=%s", at("venv"));
    snprintf(exec, sizeof exec, "PYTHON_EXEC=%s", at("old/python"));
    is_python(env(path, NULL, NULL), at("bin/python3"), "PATH", "the first on PATH that can be executed");
    is_python(env(path, venv, NULL), at("venv/bin/python"), "VIRTUAL_ENV", "the active environment before it");
    is_python(env(path, venv, exec), at("old/python"), "PYTHON_EXEC", "the user's word before both");
    is_python(env(path, "PYTHON_EXEC=python3", NULL), at("bin/python3"), "PYTHON_EXEC", "a name is looked up");
    is_python(env(path, "PYTHON_EXEC=", NULL), at("bin/python3"), "PATH", "empty counts as not set");
    is_python(env(path, "PYTHON_EXEC=/nowhere/py", NULL),
              "cannot run the interpreter PYTHON_EXEC=/nowhere/py: No such file or directory", NULL, "a wrong word");
    snprintf(path, sizeof path, "PATH=%s", at("old"));
    is_python(env(path, NULL, NULL), at("old/python"), "PATH", "python if there is no python3");
    is_python(env("PATH=/nowhere", "VIRTUAL_ENV=/gone", NULL),
              "found no Python: tried /gone/bin/python (VIRTUAL_ENV), python3 and python on PATH; set PYTHON_EXEC to "
              "the interpreter, or say --no-python",
              NULL, "none: what was tried");
    snprintf(want, sizeof want, "%s", at("none/python3"));
    char found[HOST_PATH_MAX];
    ok(host_program_find(want, env(NULL, NULL, NULL), found) == -1 && errno == EACCES, "not executable");
    ok(host_program_find(at("old"), env(NULL, NULL, NULL), found) == -1 && errno == EISDIR, "a folder");
    ok(host_program_find("", env(path, NULL, NULL), found) == -1 && errno == ENOENT, "no name");
    ok(host_program_find("sh", env(NULL, NULL, NULL), found) == 0, "no PATH: the system's folders");
}

static void test_torch(void)
{
    static struct host_python py;
    put(at("venv/pyvenv.cfg"), 0644, "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.12.4\n");
    put(at("venv/lib/python3.12/site-packages/torch/version.py"), 0644,
        "from typing import Optional\n\n__version__ = '2.13.0+cu126'\ndebug = False\ncuda: Optional[str] = '12.6'\n");
    snprintf(py.path, sizeof py.path, "%s", at("venv/bin/python"));
    host_python_look(&py, env(NULL, NULL, NULL));
    is_str(py.version, "3.12.4", "version of a virtual environment");
    is_str(py.torch, "2.13.0+cu126", "its torch");
    ok(py.torch_cuda, "built for CUDA");
    is_str(py.site, at("venv/lib/python3.12/site-packages"), "the folder of NVIDIA's libraries");
    static char path[600];
    put(at("src/torch/version.py"), 0644, "__version__ = '2.14.0a0'\ncuda = None\n");
    snprintf(path, sizeof path, "PYTHONPATH=/nowhere::%s", at("src"));
    host_python_look(&py, env(path, NULL, NULL));
    is_str(py.torch, "2.14.0a0", "PYTHONPATH comes first");
    ok(!py.torch_cuda, "built without CUDA");
    memset(&py, 0, sizeof py);
    put(at("usr/bin/python3.11"), 0755, "");
    symlink("python3.11", at("usr/bin/python3"));
    put(at("usr/lib/python3/dist-packages/torch/version.py"), 0644, "__version__ = \"1.13.1\"\n");
    snprintf(py.path, sizeof py.path, "%s", at("usr/bin/python3"));
    host_python_look(&py, env(NULL, NULL, NULL));
    is_str(py.version, "3.11", "version by the name behind the link");
    is_str(py.torch, "1.13.1", "Debian's folder");
    memset(&py, 0, sizeof py);
    snprintf(py.path, sizeof py.path, "%s", at("bin/python3"));
    host_python_look(&py, env(NULL, NULL, NULL));
    is_str(py.torch, "", "none found");
    put(at("bin/python3"), 0755, "#!/bin/sh\nexec other-python \"$@\"\n");
    host_python_look(&py, env(NULL, NULL, NULL));
    ok(py.shim, "a script in the interpreter's place");
}

static void is_entry(enum conf_entry entry, const char *script, char *const *e, const char *want, const char *what)
{
    static struct run_conf conf;
    char found[HOST_PATH_MAX];
    struct el_err err = {0};
    conf.entry = entry;
    conf.script = script;
    int r = entry_check(&conf, e, found, &err);
    is_str(r == 0 ? found : err.text, want, what);
    if (r)
        is_num(err.status, EL_EXIT_NOINPUT, "status 66");
}

static void test_entry(void)
{
    static char path[600], want[700];
    char *const *e = env(path, NULL, NULL);
    snprintf(path, sizeof path, "PATH=%s", at("bin"));
    put(at("bin/tool"), 0755, "");
    put(at("train.py"), 0644, "");
    put(at("train0.py"), 0644, "");
    put(at("pkg/__main__.py"), 0644, "");
    is_entry(CONF_SCRIPT, at("train.py"), e, "", "a script");
    is_entry(CONF_SCRIPT, at("train${local_rank}.py"), e, "", "a script per local rank");
    is_entry(CONF_SCRIPT, at("pkg"), e, "", "a folder with a __main__.py, which Python runs");
    is_entry(CONF_SCRIPT, "-", e, "", "standard input");
    is_entry(CONF_SCRIPT, "nowhere.py", e, "script \"nowhere.py\": No such file or directory", "missing");
    is_entry(CONF_SCRIPT, "tool", e,
             "script \"tool\" (a program of that name is on PATH: --no-python runs it): No such file or directory",
             "a program instead of a script");
    snprintf(want, sizeof want, "script \"%s\" is a directory without a __main__.py", at("bin"));
    is_entry(CONF_SCRIPT, at("bin"), e, want, "a folder");
    is_entry(CONF_MODULE, "no.such.module", e, "", "modules are left to Python");
    is_entry(CONF_PROGRAM, "tool", e, at("bin/tool"), "a program on PATH");
    is_entry(CONF_PROGRAM, at("bin/tool"), e, at("bin/tool"), "a program by its path");
    is_entry(CONF_PROGRAM, "no-such-tool", e, "program \"no-such-tool\" on PATH: No such file or directory", "missing");
    snprintf(want, sizeof want, "program \"%s\": Permission denied", at("train.py"));
    is_entry(CONF_PROGRAM, at("train.py"), e, want, "not executable");
    /* Root reads everything: another user looks. */
    static struct run_conf conf;
    chmod(root, 0755);
    put(at("secret.py"), 0, "");
    snprintf(want, sizeof want, "script \"%s\" cannot be read: Permission denied", at("secret.py"));
    conf.script = at("secret.py");
    pid_t pid = fork();
    if (pid == 0) {
        char found[HOST_PATH_MAX];
        struct el_err err = {0};
        if (geteuid() == 0 && setresuid(65534, 65534, 65534))
            _exit(2);
        _exit(entry_check(&conf, e, found, &err) == -1 && strcmp(err.text, want) == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    is_num(status, 0, "an unreadable script");
}

static void test_nproc(void)
{
    static struct run_conf conf;
    struct el_err e = {0};
    unsigned n = 0;
    conf.nproc = 3;
    ok(entry_nproc(&conf, env(NULL, NULL, NULL), &n, NULL) == 0 && n == 3, "a number");
    conf.nproc = 0;
    ok(entry_nproc(&conf, env(NULL, NULL, NULL), &n, &e) == -1 && e.status == EL_EXIT_USAGE, e.text);
    conf.nproc_kind = CONF_NPROC_CPU;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    ok(entry_nproc(&conf, env(NULL, NULL, NULL), &n, NULL) == 0 && n == (unsigned)CPU_COUNT(&set),
       "cpu: those that may be used, as torch counts");
    conf.nproc_kind = CONF_NPROC_XPU;
    e = (struct el_err){0};
    ok(entry_nproc(&conf, env(NULL, NULL, NULL), &n, &e) == -1 && e.status == EL_EXIT_CONFIG, e.text);
    conf.nproc_kind = CONF_NPROC_GPU;
    e = (struct el_err){0};
    ok(entry_nproc(&conf, env("CUDA_VISIBLE_DEVICES=", NULL, NULL), &n, &e) == -1 && e.status == EL_EXIT_CONFIG,
       e.text);
    conf.nproc_kind = CONF_NPROC_AUTO;
    ok(entry_nproc(&conf, env("CUDA_VISIBLE_DEVICES=-1", NULL, NULL), &n, NULL) == 0 && n == host_cpus(),
       "auto without a visible GPU: the CPUs");
}

static void test_gpus(void)
{
    struct gpu_list all;
    gpu_read(&all, root);
    is_num(all.n, 0, "no driver: no devices");
    put(at("dev/nvidia0"), 0644, "");
    put(at("dev/nvidia1"), 0644, "");
    put(at("dev/nvidiactl"), 0644, "");
    put(at("dev/nvidia-uvm"), 0644, "");
    gpu_read(&all, root);
    ok(all.n == 2 && all.v[1].minor == 1 && !all.v[1].pci[0], "device nodes alone");
    static const char *const pci[] = {"0000:dc:00.0", "0000:1a:00.0", "0000:3b:00.0"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text, "Model: \t\t X\nGPU UUID: \t GPU-%d\nDevice Minor: \t %d\n", i, i);
        put(at("proc/driver/nvidia/gpus/%s/information", pci[i]), 0644, text);
    }
    gpu_read(&all, root);
    ok(all.n == 2 && !strcmp(all.v[0].pci, pci[1]) && !strcmp(all.v[1].uuid, "GPU-0"),
       "of the driver's three those with a node, ordered by address");
    unlink(at("dev/nvidia0"));
    unlink(at("dev/nvidia1"));
    gpu_read(&all, root);
    is_num(all.n, 3, "no node yet: all of the driver's");
}

static void test_numa(void)
{
    static struct numa_host h;
    static struct numa_plan plan;
    struct el_err e = {0};
    char pci[1][32] = {"0000:1a:00.0"}, cpus[64];
    ok(numa_host_read(&h, root, NUMA_NODE, pci, 1, &e) == -1 && e.status == EL_EXIT_CONFIG, e.text);
    put(at("sys/devices/system/node/possible"), 0644, "0-3\n");
    put(at("sys/devices/system/node/node0/cpulist"), 0644, "0-1023\n");
    put(at("sys/bus/pci/devices/0000:1a:00.0/numa_node"), 0644, "-1\n");
    ok(numa_host_read(&h, root, NUMA_NODE, pci, 1, NULL) == 0 && numa_plan(&h, NUMA_NODE, 0, &plan, NULL) == 0 &&
           numa_set_count(&plan.cpus) == host_cpus(),
       "a plan for this machine's CPUs");
    numa_set_print(&plan.cpus, cpus, sizeof cpus);
    printf("# CPUs %s\n", cpus);
    e = (struct el_err){0};
    ok(numa_plans_new(NUMA_NODE, 1, env("CUDA_VISIBLE_DEVICES=", NULL, NULL), &e) == NULL && e.status == EL_EXIT_CONFIG,
       e.text);
    pid_t pid = fork();
    if (pid == 0) {
        static struct numa_plan one;
        static struct numa_set now;
        int first = numa_set_first(&plan.cpus);
        one = plan;
        memset(&one.cpus, 0, sizeof one.cpus);
        numa_set_add(&one.cpus, (unsigned)first);
        int r = numa_apply(&one);
        sched_getaffinity(0, sizeof now, (cpu_set_t *)now.word);
        memset(one.cpus.word, 0, sizeof one.cpus.word);
        _exit(r == 0 && numa_set_count(&now) == 1 && numa_set_first(&now) == first && numa_apply(&one) == EINVAL ? 0
                                                                                                                 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    is_num(status, 0, "a child is bound; CPUs that are not there are an error");
}

static void test_facts(void)
{
    static struct host_facts f;
    extern char **environ;
    host_facts_read(&f, environ);
    ok(f.hostname[0] && f.kernel[0], f.kernel);
    ok(f.cpus_allowed >= 1 && f.cpus_allowed == host_cpus(), "CPUs");
    ok(f.memory_bytes > 1 << 20 && f.memory_bytes < HOST_UNKNOWN, "memory");
    ok(f.nofile.soft > 0 && f.nofile.soft <= f.nofile.hard, "open files");
    unsigned loopback = 0;
    for (unsigned i = 0; i < f.addresses_count; i++)
        loopback += f.address[i].reach == HOST_LOOPBACK &&
                    (!strcmp(f.address[i].text, "127.0.0.1") || !strcmp(f.address[i].text, "::1"));
    ok(loopback || !f.addresses_count, "loopback is among the addresses");
    ok(f.python == -1 ? f.python_error.status == EL_EXIT_NOINPUT : f.py.path[0] == '/', "an interpreter, or why not");
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    test_python();
    test_torch();
    test_entry();
    test_nproc();
    test_gpus();
    test_numa();
    test_facts();
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", root);
    return system(remove) ? 1 : done();
}
