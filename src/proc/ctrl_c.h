/* Has somebody typed Ctrl-C?  The terminal tells its foreground group alone.  While that is a worker's, elrun hears
 * nothing of it, and a worker that makes an exit status of its own of it looks as if it had failed.  A process of
 * elrun's that joins the group hears what the worker hears. */
#ifndef PROC_CTRL_C_H
#define PROC_CTRL_C_H
#include <sys/types.h>

#include "util/time.h"

struct ctrl_c;

/* NULL: no memory for it. */
struct ctrl_c *ctrl_c_new(void);
void ctrl_c_free(struct ctrl_c *t);

/* Listens in the group, which is there, instead of the one before.  Its pid, or -1: then nothing is heard. */
pid_t ctrl_c_listen(struct ctrl_c *t, pid_t group);
void ctrl_c_end(struct ctrl_c *t);

/* When Ctrl-C or Ctrl-\ was typed last in that group, 0 = never. */
el_usec ctrl_c_at(const struct ctrl_c *t);

#endif
