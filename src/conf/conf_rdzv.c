#include "conf/conf_rdzv.h"

#include <assert.h>
#include <string.h>

#include "conf/run_options.h"
#include "probe/plan.h"
#include "coord/health.h"

#define RESTARTS_MAX 1000000000u /* of MSG_SETTINGS */

static_assert(RUN_WAIT_MAX == EL_MS(MSG_MS_MAX) && RUN_NNODES_MAX == MSG_NODES_MAX,
              "what an option allows, the protocol carries");

/* Up, so that a limit of half a millisecond is not none. */
static uint64_t to_ms(el_usec t)
{
    uint64_t ms = t / 1000 + (t % 1000 != 0);
    return ms < MSG_MS_MAX ? ms : MSG_MS_MAX;
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
    return n < limit ? n : limit;
}

static int check_unit(const struct run_conf *conf, struct el_err *e)
{
    unsigned unit = conf->node_unit, least = (conf->nnodes_min + unit - 1) / unit * unit;
    if (least <= conf->nnodes_max)
        return 0;
    return el_fail(e, EL_EXIT_CONFIG, "--node-unit=%u: no multiple of it lies in --nnodes=%u:%u", unit,
                   conf->nnodes_min, conf->nnodes_max);
}

/* Whoever comes beyond that would take part without having been looked at. */
static int check_probed(const struct run_conf *conf, struct el_err *e)
{
    if (conf->health_check == HEALTH_OFF || conf->nnodes_max <= PLAN_NODES_MAX)
        return 0;
    return el_fail(e, EL_EXIT_CONFIG, "--nnodes=%u:%u: a health check has at most %d nodes", conf->nnodes_min,
                   conf->nnodes_max, PLAN_NODES_MAX);
}

uint64_t rdzv_max_rollback(const struct run_conf *conf)
{
    return conf->ckpt_rollback_limited ? (uint64_t)conf->ckpt_max_rollback + 1 : 0;
}

int rdzv_settings_from_conf(const struct run_conf *conf, struct rdzv_settings *out, struct el_err *e)
{
    if (check_unit(conf, e) || check_probed(conf, e))
        return -1;
    *out = (struct rdzv_settings){
        .min = conf->nnodes_min,
        .max = conf->nnodes_max,
        .unit = conf->node_unit,
        .max_restarts = at_most(conf->max_restarts, RESTARTS_MAX),
        .restart_window_ms = to_ms(conf->restart_window),
        .restart_policy = conf->restart_policy,
        .quarantine_ms = to_ms(conf->quarantine),
        .max_fruitless = at_most(conf->max_fruitless, RESTARTS_MAX),
        .settle_ms = to_ms(conf->settle),
        .last_call_ms = to_ms(conf->last_call),
        .join_timeout_ms = to_ms(conf->join_timeout),
        .keep_alive_ms = to_ms(conf->keep_alive_interval),
        .keep_alive_attempts = conf->keep_alive_attempts,
        .reconnect_grace_ms = to_ms(conf->reconnect_grace),
        .replace_wait_ms = to_ms(conf->replace_wait),
        .scale_up_delay_ms = to_ms(conf->scale_up_delay),
        .stable_window_ms = to_ms(conf->stable_window),
        .boundary_wait_ms = to_ms(conf->boundary_wait),
        .grace_ms = to_ms(conf->shutdown_timeout),
        .health_check = (uint64_t)conf->health_check,
        .on_bad = (uint64_t)conf->on_bad,
        .on_straggler = (uint64_t)conf->on_straggler,
        .on_undecided = (uint64_t)conf->on_undecided,
        .probe_rounds = conf->probe_rounds,
        .probe_timeout_ms = to_ms(conf->probe_timeout),
        .probe_backend = (uint64_t)conf->probe_backend,
        .probe_quick = conf->probe_quick,
        .probe_strict = conf->probe_strict,
        .probe_all = conf->probe_all,
        .probe_rails = conf->probe_rails.n,
        .probe_only = conf->probe_only,
        .straggler_k = conf->straggler_k,
        .straggler_min = conf->straggler_min,
        .restore_timeout_ms = to_ms(conf->ckpt_restore_timeout),
        .max_rollback = rdzv_max_rollback(conf),
        .allow_fresh = conf->allow_fresh,
        .ckpt_store = !conf->ckpt_dir                     ? CKPT_COMMIT_OFF
                      : conf->ckpt_store == 1 /* local */ ? CKPT_COMMIT_LOCAL
                                                          : CKPT_COMMIT_SHARED,
        .emergency_ms = to_ms(conf->emergency_timeout),
    };
    return 0;
}
