/* What the user asked for, checked and typed: the option rows of `elrun run` fill it, the agent reads it.
 * Strings belong to argv, the environment or the program text: nothing is allocated, nothing is to be freed. */
#ifndef CONF_CONF_H
#define CONF_CONF_H
#include <stdbool.h>
#include <stdint.h>

#include "output/output.h"
#include "output/steps.h"
#include "failure/restart_policy.h"
#include "probe/look.h"
#include "probe/rails.h"
#include "sys/numa.h"
#include "event/hook.h"
#include "util/addr.h"
#include "util/err.h"
#include "util/limits.h"
#include "util/time.h"

#define CONF_SIGNAL_MAX       64
#define CONF_CKPT_MEM_PERCENT 25  /* --ckpt-dir without --ckpt-mem */
#define CONF_HOST_MAX         256 /* bytes of a host name with its 0 */

enum conf_entry { CONF_SCRIPT, CONF_MODULE, CONF_PROGRAM };
enum conf_nproc { CONF_NPROC_NUMBER, CONF_NPROC_CPU, CONF_NPROC_GPU, CONF_NPROC_XPU, CONF_NPROC_AUTO };
enum conf_store { CONF_STORE_TRAINER, CONF_STORE_AGENT };
enum conf_tristate { CONF_AUTO, CONF_NO, CONF_YES };
enum conf_text_suspect { CONF_TEXT_REPORT, CONF_TEXT_ACT };
enum conf_step_rank { CONF_STEP_FIRST, CONF_STEP_LAST };
#define CONF_CONTROL_ALLOW_MAX 8 /* networks of --control-allow */
enum conf_allow { CONF_ALLOW_ROUND, CONF_ALLOW_ANY, CONF_ALLOW_NET };

struct run_conf {
    /* what to run */
    enum conf_entry entry;
    const char *script; /* file, module name or program */
    char **args;        /* what follows it, NULL at the end */
    unsigned args_count;
    bool module, no_python, run_path; /* as given; `entry` is what follows from them */
    bool use_env; /* accepted for torch.distributed.launch: LOCAL_RANK comes by the environment anyway */

    /* how many */
    unsigned nnodes_min, nnodes_max;
    enum conf_nproc nproc_kind;
    unsigned nproc; /* for CONF_NPROC_NUMBER */
    unsigned max_restarts;
    enum restart_policy restart_policy;
    el_usec restart_window; /* 0: all restarts of the job count */
    unsigned max_fruitless;
    el_usec quarantine; /* 0: until the job ends */
    bool standalone;

    /* rendezvous: parsed and checked; conf/endpoint.h decides what follows from it */
    const char *rdzv_backend;      /* "static" or "c10d" */
    bool backend_given;            /* by option or variable: "static" is also what holds if nobody said anything */
    const char *rdzv_endpoint;     /* as given, "" if none */
    char rdzv_host[CONF_HOST_MAX]; /* of the endpoint, without brackets; "static": MASTER_ADDR of the workers */
    int rdzv_port;                 /* -1 if the endpoint names none */
    const char *rdzv_id;           /* run id, never NULL; "none" if not given */
    bool rdzv_id_given;            /* by option or variable */
    bool run_id_random;            /* rdzv_id does not count: the agent draws one, as torchrun does */
    const char *rdzv_conf;         /* as given, "" if none */
    unsigned node_rank;
    bool node_rank_given;    /* by --node-rank, or for the static back end by --rdzv-conf rank= */
    const char *master_addr; /* NULL if not given */
    int master_port;         /* -1 if not given */
    const char *local_addr;  /* NULL if not given */

    /* --rdzv-conf */
    el_usec join_timeout, last_call, keep_alive_interval;
    unsigned keep_alive_attempts;
    enum conf_tristate is_host;
    bool use_hostname;
    int rank_key;       /* rank=, -1 if not given */
    unsigned rdzv_idle; /* keys that were given and mean nothing here; conf_say_idle_keys() names them */

    /* how rounds of several nodes are formed and replaced; conf_rdzv.h makes the job's settings of it */
    unsigned node_unit;
    el_usec settle, replace_wait, scale_up_delay, stable_window, boundary_wait;
    el_usec reconnect_grace;
    el_usec coordinator_timeout; /* 0: as join_timeout */
    enum conf_allow store_allow;
    struct el_cidr store_net; /* for CONF_ALLOW_NET */
    struct el_cidr control_allow[CONF_CONTROL_ALLOW_MAX];
    size_t control_allow_n; /* 0: anybody may speak to the coordinator */

    /* health checks */
    int on_text_suspect;                                                 /* enum conf_text_suspect */
    int health_check, on_bad, on_straggler, on_undecided, probe_backend; /* enums of coord/health.h */
    unsigned probe_rounds;
    el_usec probe_timeout;
    const char *probe_checks, *probe_limits;      /* as given; NULL: everything, as in the table */
    const char *probe_state_dir, *probe_baseline; /* NULL: none */
    const char *probe_domain;                     /* rack or switch of this node; NULL: none */
    struct probe_rails probe_rails;
    struct report_look probe_look;                                     /* of stdout of `elrun probe` */
    unsigned straggler_k, straggler_min;                               /* 0: as the plan has it */
    const struct health_local *probe_local;                            /* NULL: nothing of it is asked for */
    bool probe_quick, probe_strict, probe_only, probe_json, probe_all; /* but the first: `elrun probe --nnodes` */

    /* workers */
    const char *role;
    enum conf_store worker_store;
    bool virtual_local_rank;
    enum numa_mode numa;
    el_usec shutdown_timeout;
    el_usec hang_timeout;                 /* 0: off */
    uint8_t handled[CONF_SIGNAL_MAX + 1]; /* by signal number: named in --signals-to-handle */
    const char *signals_to_handle;        /* as given, for TORCHELASTIC_SIGNALS_TO_HANDLE */
    enum conf_tristate interactive;

    /* output */
    struct output_options output;
    bool quiet;
    unsigned verbose;  /* how many -v */
    bool log_json;     /* --log-format json */
    bool steps_wanted; /* --step-pattern was given */
    struct steps_pattern step_pattern;
    int step_rank; /* enum conf_step_rank */

    const char *events; /* --events, as given; NULL: none */
    struct hook_command hooks[HOOK_COMMANDS_MAX];
    unsigned hooks_count;
    el_usec hook_timeout;

    enum failure_status_as exit_code;

    /* snapshots: off unless one of the first two is not 0 (--ckpt-dir sees to that) */
    uint64_t ckpt_mem_bytes;
    unsigned ckpt_mem_percent;
    int ckpt_busy;       /* 0 skip, 1 wait */
    unsigned ckpt_check; /* every so many snapshots one is read back and compared; 0: none */
    bool allow_fresh;
    bool ckpt_rollback_limited; /* --ckpt-max-rollback was given: */
    unsigned ckpt_max_rollback; /* steps */
    el_usec ckpt_restore_timeout;
    const char *ckpt_dir;      /* NULL: snapshots stay in memory */
    bool ckpt_mem_default;     /* the share follows from --ckpt-dir: less will do where less is free */
    unsigned ckpt_keep_last;   /* 0: nothing is deleted */
    int ckpt_layout;           /* enum ckpt_layout */
    int ckpt_store;            /* 0 shared, 1 local */
    int ckpt_commit;           /* enum commit_mode */
    el_usec emergency_timeout; /* 0: no emergency checkpoint */

    const char *completion; /* the shell of --print-completion */
};

/* What the command line asks for. */
enum conf_do { CONF_DO_RUN, CONF_DO_HELP, CONF_DO_VERSION, CONF_DO_COMPLETION };

/* Reads the words behind `elrun run` and the environment ("NAME=value", NULL at the end) into *conf.  The script's
 * words are argv's own, so argv[argc] must be NULL.  Returns an enum conf_do, or -1 and an error that names option or
 * variable. */
/* A label of a rack or switch: one word that fits. */
int conf_check_domain(const char *value, struct el_err *e);
int conf_parse(int argc, char **argv, char **env, struct run_conf *conf, struct el_err *e);

/* One line at -v about keys of --rdzv-conf that torchrun knows and that change nothing here; none if there are none. */
void conf_say_idle_keys(const struct run_conf *conf);

#endif
