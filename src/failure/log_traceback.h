/* Tracebacks in the clothes of loggers -> as the interpreter prints them: inside a string of a JSON line, as JSON
 * objects (structlog, ECS), in a box that a log's columns indent or whose lines are wrapped (rich). */
#ifndef FAILURE_LOG_TRACEBACK_H
#define FAILURE_LOG_TRACEBACK_H
#include <stdbool.h>

#include "util/text.h"
#include "util/buf.h"

/* Is there anything to unfold? */
bool log_traceback_needed(struct text t);
/* Appends the text with those lines unfolded; all others as they are.  -1: no memory. */
int unfold(struct el_buf *out, struct text t);

#endif
