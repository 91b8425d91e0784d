#include "conf/entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/argv.h"
#include "conf/conf.h"
#include "sys/gpu.h"
#include "sys/host.h"
#include "util/env.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/parse.h"

/* Devices that a worker can number from 0; a program sees one MIG slice only, but with --virtual-local-rank each worker
 * is given its own. */
static unsigned gpu_count(const struct run_conf *conf, char *const *env, unsigned *there)
{
    struct gpu_list all;
    struct gpu_visible seen;
    gpu_read(&all, "");
    gpu_select(&all, env_get(env, "CUDA_VISIBLE_DEVICES"), &seen);
    *there = all.n;
    if (!all.n)
        return 0;
    if (seen.mig && seen.n > 1 && !conf->virtual_local_rank) {
        el_log(EL_WARN,
               "CUDA_VISIBLE_DEVICES names %u MIG slices, but a program can use only the first: one worker "
               "(--virtual-local-rank gives each its own)",
               seen.n);
        return 1;
    }
    return seen.n;
}

static int no_gpu(unsigned there, char *const *env, struct el_err *e)
{
    const char *visible = env_get(env, "CUDA_VISIBLE_DEVICES");
    if (there)
        return el_fail(e, EL_EXIT_CONFIG,
                       "--nproc-per-node=gpu: CUDA_VISIBLE_DEVICES=%.200s hides all %u GPUs of this "
                       "host",
                       visible ? visible : "", there);
    return el_fail(e, EL_EXIT_CONFIG,
                   "--nproc-per-node=gpu: this host has no NVIDIA GPU (nothing in "
                   "/proc/driver/nvidia/gpus, no device node); give a number, or cpu");
}

int entry_nproc(const struct run_conf *conf, char *const *env, unsigned *nproc, struct el_err *e)
{
    unsigned n = conf->nproc, there = 0;
    switch (conf->nproc_kind) {
    case CONF_NPROC_NUMBER: break;
    case CONF_NPROC_CPU: n = host_cpus(); break;
    case CONF_NPROC_GPU:
        n = gpu_count(conf, env, &there);
        if (!n)
            return no_gpu(there, env, e);
        break;
    case CONF_NPROC_AUTO:
        n = gpu_count(conf, env, &there);
        if (!n)
            n = host_cpus();
        break;
    case CONF_NPROC_XPU:
        return el_fail(e, EL_EXIT_CONFIG, "--nproc-per-node=xpu: elrun cannot count XPUs; give their number");
    }
    if (n < 1 || n > EL_SLOTS_MAX)
        return el_fail(e, EL_EXIT_USAGE, "--nproc-per-node: %u is not within 1 and %u", n, EL_SLOTS_MAX);
    *nproc = n;
    return 0;
}

static int check_script(const char *script, char *const *env, struct el_err *e)
{
    struct stat st;
    char found[HOST_PATH_MAX], shown[EL_PATH_MAX];
    el_show_path(script, shown, sizeof shown);
    if (strcmp(script, "-") == 0) /* Python reads the program from standard input */
        return 0;
    if (stat(script, &st)) {
        int sys = errno;
        bool program = !strchr(script, '/') && host_program_find(script, env, found) == 0;
        el_fail_sys(e, EL_EXIT_NOINPUT, sys, "script \"%s\"%s", shown,
                    program ? " (a program of that name is on PATH: --no-python runs it)" : "");
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        if (snprintf(found, sizeof found, "%s/__main__.py", script) < (int)sizeof found && access(found, R_OK) == 0)
            return 0;
        return el_fail(e, EL_EXIT_NOINPUT, "script \"%s\" is a directory without a __main__.py", shown);
    }
    if (access(script, R_OK))
        return el_fail_sys(e, EL_EXIT_NOINPUT, errno, "script \"%s\" cannot be read", shown);
    return 0;
}

int entry_check(const struct run_conf *conf, char *const *env, char *found, struct el_err *e)
{
    char shown[EL_PATH_MAX];
    found[0] = 0;
    if (conf->entry == CONF_MODULE)
        return 0;
    if (conf->entry == CONF_PROGRAM) {
        if (host_program_find(conf->script, env, found) == 0)
            return 0;
        int sys = errno;
        el_show_path(conf->script, shown, sizeof shown);
        return el_fail_sys(e, EL_EXIT_NOINPUT, sys, "program \"%s\"%s", shown,
                           strchr(conf->script, '/') ? "" : " on PATH");
    }
    /* The script's name may hold ${local_rank}: the first worker's stands for all. */
    struct argv_plan plan = {CONF_SCRIPT, "", conf->script, NULL};
    char **argv = argv_worker(NULL, &plan, 0, e);
    int r = argv ? check_script(argv[2], env, e) : -1;
    el_free(NULL, argv);
    return r;
}
