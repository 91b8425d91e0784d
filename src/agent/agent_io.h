/* The shell of the node core: turns its actions into processes, pipes and words, and what comes back into events. */
#ifndef AGENT_AGENT_IO_H
#define AGENT_AGENT_IO_H
#include "conf/conf.h"
#include "util/err.h"

/* Runs the job of one node to its end; env is what workers inherit.  Returns elrun's exit status; on -1 nothing was
 * started and *e says why (its status is the exit status).  Whatever else the user must know has been printed. */
int agent_run(const struct run_conf *conf, char **env, struct el_err *e);

#endif
