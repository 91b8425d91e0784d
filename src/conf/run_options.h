/* The options of `elrun run`: the one table, and the conversions that are more than a number or a word. */
#ifndef CONF_RUN_OPTIONS_H
#define CONF_RUN_OPTIONS_H
#include "util/opt.h"

extern const struct opt_table run_options; /* fills struct run_conf */

#define RUN_NNODES_MAX 65536
#define RUN_WAIT_MAX   EL_SEC(8640000) /* 100 days: what the control protocol can carry */

/* Conversions: target is a struct run_conf.  0, or -1 and what would be right. */
int conf_set_nnodes(void *target, const char *value, struct el_err *e);
int conf_set_nproc(void *target, const char *value, struct el_err *e);
int conf_set_redirects(void *target, const char *value, struct el_err *e);
int conf_set_tee(void *target, const char *value, struct el_err *e);
int conf_set_ranks_filter(void *target, const char *value, struct el_err *e);
int conf_set_rdzv_backend(void *target, const char *value, struct el_err *e);
int conf_set_rdzv_endpoint(void *target, const char *value, struct el_err *e);
int conf_set_rdzv_conf(void *target, const char *value, struct el_err *e);
int conf_set_master_addr(void *target, const char *value, struct el_err *e);
int conf_set_master_port(void *target, const char *value, struct el_err *e);
int conf_set_local_addr(void *target, const char *value, struct el_err *e);
int conf_set_control_allow(void *target, const char *value, struct el_err *e);
int conf_set_store_allow(void *target, const char *value, struct el_err *e);
int conf_set_signals(void *target, const char *value, struct el_err *e);
int conf_set_events(void *target, const char *value, struct el_err *e);
int conf_set_hook(void *target, const char *value, struct el_err *e);
int conf_set_on_incident(void *target, const char *value, struct el_err *e);
int conf_set_interactive(void *target, const char *value, struct el_err *e);
int conf_set_no_interactive(void *target, const char *value, struct el_err *e);
int conf_set_log_format(void *target, const char *value, struct el_err *e);
int conf_set_step_pattern(void *target, const char *value, struct el_err *e);
int conf_set_probe_rails(void *target, const char *value, struct el_err *e);
int conf_set_probe_domain(void *target, const char *value, struct el_err *e);
int conf_set_network_check(void *target, const char *value, struct el_err *e);
int conf_set_exclude_straggler(void *target, const char *value, struct el_err *e);
int conf_set_ckpt_mem(void *target, const char *value, struct el_err *e);
int conf_set_logs_specs(void *target, const char *value, struct el_err *e);

/* "host", "host:port", "[v6]:port", ":port" or "v6": *length of the host at *host, without brackets, and *port or -1.
 * -1 if it is none of them. */
int conf_split_endpoint(const char *text, const char **host, size_t *length, int *port);

#endif
