/* The root cause for those who see only a few lines of a process that has ended: Kubernetes' termination log. */
#ifndef FAILURE_TERMINATION_MSG_H
#define FAILURE_TERMINATION_MSG_H
#include "failure/failure.h"
#include "util/buf.h"

#define TERMINATION_MSG_MAX 4096 /* bytes: what Kubernetes takes */

/* Appends at most limit bytes: why, the advice of its class, then the last lines of the traceback (or of stderr) that
 * fit whole; valid UTF-8, cut between characters.  cause may be NULL.  0, or -1 without memory. */
int termination_msg_text(const char *why, const struct failure *cause, size_t limit, struct el_buf *out);

#endif
