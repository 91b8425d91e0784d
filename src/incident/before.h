/* What stands right in front of the last exception: why it was raised, where it does not say so itself. */
#ifndef INCIDENT_BEFORE_H
#define INCIDENT_BEFORE_H
#include "incident/traceback.h"

/* The exception with which this text ends, but for a few lines: that of a child process, behind which comes the
 * worker's CalledProcessError. */
bool before_ends_with(struct traceback *t, struct traceback_chain *chain, struct text all);

/* Does it end with the loss of a peer, as an exception or as a line of a logger's?  Then the exception behind it is
 * that loss, raised again in words that say nothing of it ("raise ... from None").  all becomes what was looked at. */
bool before_is_loss(struct traceback *t, struct traceback_chain *chain, struct text *all);

#endif
