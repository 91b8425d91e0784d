/* From the command line to what a job's coordinator is told (struct rdzv_settings).  Pure. */
#ifndef CONF_CONF_RDZV_H
#define CONF_CONF_RDZV_H
#include "conf/conf.h"
#include "coord/rdzv.h"

/* Times become milliseconds, rounded up, and end at what the protocol can carry (100 days).  -1 and *e
 * (EL_EXIT_CONFIG, naming the options) if no round could ever be formed. */
int rdzv_settings_from_conf(const struct run_conf *conf, struct rdzv_settings *out, struct el_err *e);

/* --ckpt-max-rollback as coord/restore.h wants it: so many steps, and 1; 0: any number. */
uint64_t rdzv_max_rollback(const struct run_conf *conf);

#endif
