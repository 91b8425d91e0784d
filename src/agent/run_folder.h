/* The folder of this elrun, which only this user may enter: the Python package `elrun` for the workers, and sockets at
 * which they, and commands on this host, reach the agent. */
#ifndef AGENT_RUN_FOLDER_H
#define AGENT_RUN_FOLDER_H
#include "util/err.h"

struct run_folder;

/* Made in the first of $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR and /tmp that takes it: in memory it costs every job a tenth
 * of what it costs on a disk, and no file system stands still.  env: with which elrun was started.
 * NULL and *e: why the first one did not. */
struct run_folder *run_folder_new(char *const *env, struct el_err *e);
/* No worker is left: it goes, and all that Python has put there.  For f NULL, too. */
void run_folder_remove(struct run_folder *f);
void run_folder_free(struct run_folder *f);

/* NULL for f NULL. */
const char *run_folder_path(const struct run_folder *f);
const char *run_folder_python_path(const struct run_folder *f); /* PYTHONPATH of a worker, what was inherited behind */

#endif
