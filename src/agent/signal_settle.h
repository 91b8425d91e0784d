/* A worker ended by a signal that elrun did not send: is the job being ended, or was that worker meant?
 *
 * Schedulers signal everybody, one process after the other, and a job that is being ended has not failed.  Nothing
 * tells who sent a signal that another process died of; but such a sender needs microseconds for each process, and
 * elrun reads its own signals before it hears of a death.  So one that has nothing of its own to read is not meant,
 * unless the sender was interrupted between the two. */
#ifndef AGENT_SIGNAL_SETTLE_H
#define AGENT_SIGNAL_SETTLE_H
#include <stdbool.h>

#include "util/time.h"

/* Time for a sender that was interrupted, before another attempt, or before a report to the coordinator. */
#define SIGNAL_SETTLE_INSTANT EL_MS(20)
/* The same where the job ends by it: nobody waits for that.  It also bounds how long the report waits for an emergency
 * checkpoint: nodes that know of a failure and then lose the coordinator end their workers at once. */
#define SIGNAL_SETTLE_LONG EL_MS(200)

/* By a signal that a person, a scheduler or the kernel sends. */
bool signal_settle_is_from_outside(int signal);

/* How long elrun's own may still be on its way; again: there may be another attempt.  Not after SIGKILL: it is no
 * request, and an elrun that got it, too, says nothing any more. */
el_usec signal_settle_time(int signal, bool again);

#endif
