/* Finds and reads what jobs left: files of events, log folders.  Blocks; for a command, not for the loop. */
#ifndef HISTORY_LOGDIR_SCAN_H
#define HISTORY_LOGDIR_SCAN_H
#include "history/job_history.h"
#include "util/err.h"

/* Reads everything that the paths name into the chronicle, and what could not be read into its remarks:
 *   a file                  events of one node, or of several in turn
 *   a run's folder          ID_XXXXXXXX: its events, else the workers' logs and error files
 *   an attempt's folder     as the run's
 *   a --log-dir             of the runs in it the last one, with those of other nodes of the same job beside it
 * Returns how many paths gave nothing; the last reason is in *e then. */
unsigned gather(struct job_history *c, char *const *paths, unsigned n, struct el_err *e);

#endif
