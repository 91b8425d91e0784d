/* Has somebody typed Ctrl-C?  The terminal tells its foreground group alone.  While that is a worker's, elrun hears
 * nothing of it, and a worker that makes an exit status of its own of it looks as if it had failed.  A process of
 * elrun's that joins the group hears what the worker hears. */
#ifndef PROC_TYPED_H
#define PROC_TYPED_H
#include <sys/types.h>

#include "util/time.h"

struct typed;

/* NULL: no memory for it. */
struct typed *typed_new(void);
void typed_free(struct typed *t);

/* Listens in the group, which is there, instead of the one before.  Its pid, or -1: then nothing is heard. */
pid_t typed_listen(struct typed *t, pid_t group);
void typed_end(struct typed *t);

/* When Ctrl-C or Ctrl-\ was typed last in that group, 0 = never. */
el_usec typed_at(const struct typed *t);

#endif
