/* What the options name, looked for on this host: the script or program, and the number of workers. */
#ifndef CONF_ENTRY_H
#define CONF_ENTRY_H
#include "conf/conf.h"
#include "util/err.h"

/* How many workers this node starts.  -1 and *e (78: the host lacks what was asked for; 2: out of range). */
int entry_nproc(const struct run_conf *conf, char *const *env, unsigned *nproc, struct el_err *e);

/* The script is there and readable, or the program can be executed; modules are left to Python.  For CONF_PROGRAM
 * found (HOST_PATH_MAX bytes) gets the path to execute.  -1 and *e (status 66). */
int entry_check(const struct run_conf *conf, char *const *env, char *found, struct el_err *e);

#endif
