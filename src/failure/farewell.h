/* The root cause for those who see only a few lines of a process that has ended: Kubernetes' termination log. */
#ifndef FAILURE_FAREWELL_H
#define FAILURE_FAREWELL_H
#include "failure/failure.h"
#include "util/buf.h"

#define FAREWELL_MAX 4096 /* bytes: what Kubernetes takes */

/* Appends at most limit bytes: why, the advice of its class, then the last lines of the traceback (or of stderr) that
 * fit whole; valid UTF-8, cut between characters.  cause may be NULL.  0, or -1 without memory. */
int farewell_text(const char *why, const struct failure *cause, size_t limit, struct el_buf *out);

#endif
