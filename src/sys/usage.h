/* Processor time of whole sessions: a worker with its threads, its data loaders and what they start. */
#ifndef SYS_USAGE_H
#define SYS_USAGE_H
#include <stdint.h>
#include <sys/types.h>

/* used_usec[i] = what the processes of session[i] that are there now have used since their starts; 0 if there is no
 * /proc.  Walks all of /proc: call it in a pool thread. */
void usage_sessions(const pid_t *session, unsigned n, uint64_t *used_usec);

#endif
