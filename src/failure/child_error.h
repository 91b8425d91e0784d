/* "subprocess.CalledProcessError": the worker says which command failed, and not why.  The child perhaps has, before
 * it, on the same stderr. */
#ifndef FAILURE_CHILD_ERROR_H
#define FAILURE_CHILD_ERROR_H
#include "failure/traceback.h"

/* Did an exception that stands in front of found end another program than the worker's own?  What a program has caught
 * and printed begins within it, not at the module that was started. */
bool child_error_find(struct traceback *t, struct traceback_chain *chain, const struct traceback *found,
                      struct text all);

#endif
