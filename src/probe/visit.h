/* A visit to a file system that may not answer, by somebody without a loop of his own. */
#ifndef PROBE_VISIT_H
#define PROBE_VISIT_H
#include <stdbool.h>

#include "util/time.h"

/* Runs work(ctx) in a thread and waits for its end.  False: it has not ended within the limit, or there is no thread
 * for it; what it uses must stay for as long as the process lives. */
bool probe_visit(void (*work)(void *ctx), void *ctx, el_usec limit);

#endif
