#include "conf/conf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf/run_options.h"
#include "coord/budget.h"
#include "util/env.h"
#include "util/log.h"
#include "util/parse.h"

static_assert(sizeof(enum numa_mode) == sizeof(int), "choices are written as int");
static_assert((int)CONF_STORE_TRAINER == 0 && (int)NUMA_NODE == 1 && (int)FAILURE_AS_TORCHRUN == 1,
              "choices stand in the rows in the order of their enums");

static unsigned char conf_seen(const struct opt_result *r, const char *name)
{
    return r->seen[opt_find(&run_options, name) - run_options.rows];
}

/* What `entry` is: --run-path wins over the rest, as in torchrun. */
static int decide_entry(struct run_conf *conf, struct el_err *e)
{
    if (conf->module && conf->no_python && !conf->run_path)
        return el_fail(e, EL_EXIT_USAGE, "--module and --no-python exclude each other");
    conf->entry = conf->run_path    ? CONF_SCRIPT
                  : conf->module    ? CONF_MODULE
                  : conf->no_python ? CONF_PROGRAM
                                    : CONF_SCRIPT;
    return 0;
}

/* torchrun's rules (torch 2.13, run.py): --standalone overrides; one node without endpoint and port is standalone too;
 * static without an endpoint means the master address. */
static int decide_rendezvous(struct run_conf *conf, const struct opt_result *r, struct el_err *e)
{
    bool is_static = strcmp(conf->rdzv_backend, "static") == 0;
    conf->backend_given = conf_seen(r, "rdzv-backend");
    conf->rdzv_id_given = conf_seen(r, "rdzv-id");
    conf->ckpt_rollback_limited = conf_seen(r, "ckpt-max-rollback");
    conf->node_rank_given = conf_seen(r, "node-rank");
    if (is_static && conf->rank_key >= 0 && !conf->node_rank_given) {
        conf->node_rank = (unsigned)conf->rank_key;
        conf->node_rank_given = true;
    }
    bool alone = is_static && !*conf->rdzv_endpoint && conf->master_port < 0 && conf->nnodes_max == 1;
    if (conf->standalone && conf->nnodes_max > 1)
        return el_fail(e, EL_EXIT_USAGE, "--standalone and --nnodes=%u:%u exclude each other", conf->nnodes_min,
                       conf->nnodes_max);
    if (conf->standalone || alone) {
        conf->rdzv_backend = "c10d";
        conf->rdzv_endpoint = "localhost:0";
        snprintf(conf->rdzv_host, sizeof conf->rdzv_host, "localhost");
        conf->rdzv_port = 0;
        /* A run id that somebody chose names the log folder; only --standalone says that it does not count. */
        conf->run_id_random = conf->standalone || !conf_seen(r, "rdzv-id");
    } else if (is_static && !*conf->rdzv_endpoint) {
        snprintf(conf->rdzv_host, sizeof conf->rdzv_host, "%s", conf->master_addr ? conf->master_addr : "127.0.0.1");
        conf->rdzv_port = conf->master_port < 0 ? 29500 : conf->master_port;
    } else if (is_static && conf->backend_given && conf->rdzv_port < 1) {
        return el_fail(e, EL_EXIT_USAGE, "--rdzv-endpoint=%s: the static back end wants HOST:PORT",
                       conf->rdzv_endpoint);
    }
    if (!*conf->rdzv_id)
        conf->run_id_random = true;
    return 0;
}

/* Checkpoints on disk are snapshots first: their memory has a size that needs no thought. */
static int decide_checkpoints(struct run_conf *conf, const struct opt_result *r, struct el_err *e)
{
    static const char *const only[] = {"ckpt-keep-last", "ckpt-layout", "ckpt-store", "ckpt-commit"};
    static const char *const either[] = {"emergency-timeout", "ckpt-busy", "ckpt-check", "ckpt-restore-timeout",
                                         "ckpt-max-rollback"};
    bool kept = conf->ckpt_dir || conf->ckpt_mem_bytes || conf->ckpt_mem_percent;
    if (conf->ckpt_dir && !*conf->ckpt_dir)
        return el_fail(e, EL_EXIT_USAGE, "--ckpt-dir is empty: want a directory");
    for (size_t i = 0; !conf->ckpt_dir && i < sizeof only / sizeof only[0]; i++)
        if (conf_seen(r, only[i]))
            return el_fail(e, EL_EXIT_USAGE, "--%s is for checkpoints on disk: say where, with --ckpt-dir=DIR",
                           only[i]);
    for (size_t i = 0; !kept && i < sizeof either / sizeof either[0]; i++)
        if (conf_seen(r, either[i]))
            return el_fail(e, EL_EXIT_USAGE, "--%s is for snapshots: --ckpt-mem=SIZE or --ckpt-dir=DIR", either[i]);
    if (conf->ckpt_dir && !conf->ckpt_mem_bytes && !conf->ckpt_mem_percent) {
        conf->ckpt_mem_percent = CONF_CKPT_MEM_PERCENT;
        conf->ckpt_mem_default = true;
    }
    if (!conf_seen(r, "emergency-timeout")) {
        el_usec grace = conf->shutdown_timeout;
        conf->emergency_timeout = grace > EL_SEC(125)  ? EL_SEC(120)
                                  : grace > EL_SEC(10) ? grace - EL_SEC(5)
                                                       : EL_SEC(5);
    }
    return 0;
}

/* torchrun's own variable for how much the launcher says; -v and -q win. */
static void apply_loglevel(struct run_conf *conf, char **env)
{
    const char *level = env_get(env, "LOGLEVEL");
    if (!level || conf->verbose || conf->quiet)
        return;
    int which = opt_choice("DEBUG|ERROR|CRITICAL", level, strlen(level));
    conf->verbose = which == 0 ? 1 : 0;
    conf->quiet = which > 0;
}

/* A "--" right behind the script is argparse's, as in torchrun, unless one stood in front of it: the script never sees
 * the first of them. */
static int take_script(int argc, char **argv, int next, struct run_conf *conf, struct el_err *e)
{
    bool parted = next > 0 && strcmp(argv[next - 1], "--") == 0;
    if (next >= argc)
        return el_fail(e, EL_EXIT_USAGE, "no script: say what to start, as in `elrun --nproc-per-node=2 train.py`");
    if (!*argv[next])
        return el_fail(e, EL_EXIT_USAGE, "the script's name is empty");
    conf->script = argv[next++];
    next += !parted && next < argc && strcmp(argv[next], "--") == 0;
    conf->args = argv + next;
    conf->args_count = (unsigned)(argc - next);
    return 0;
}

int conf_parse(int argc, char **argv, char **env, struct run_conf *conf, struct el_err *e)
{
    struct opt_result r;
    assert(!argv[argc]);
    memset(conf, 0, sizeof *conf);
    conf->master_port = conf->rdzv_port = -1;
    if (opt_parse(&run_options, argc, argv, env, conf, &r, e))
        return -1;
    if (r.stop)
        return strcmp(r.stop->name, "help") == 0      ? CONF_DO_HELP
               : strcmp(r.stop->name, "version") == 0 ? CONF_DO_VERSION
                                                      : CONF_DO_COMPLETION;
    if (decide_entry(conf, e) || decide_rendezvous(conf, &r, e) || take_script(argc, argv, r.next, conf, e))
        return -1;
    if (conf->restart_window && conf->max_restarts > BUDGET_WINDOW_MAX)
        return el_fail(e, EL_EXIT_USAGE, "--max-restarts=%u: with --restart-window want at most %d", conf->max_restarts,
                       BUDGET_WINDOW_MAX);
    if (decide_checkpoints(conf, &r, e))
        return -1;
    if (conf->quiet && conf->verbose && conf_seen(&r, "quiet") && conf_seen(&r, "verbose"))
        return el_fail(e, EL_EXIT_USAGE, "--quiet and --verbose exclude each other");
    if (conf->quiet)
        conf->verbose = 0;
    apply_loglevel(conf, env);
    return CONF_DO_RUN;
}
