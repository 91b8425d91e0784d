/* Connections of commands, which wait for one answer at a time: blocking, each wait with a deadline.  Not for the loop.
 */
#ifndef LOOP_DIAL_H
#define LOOP_DIAL_H
#include "util/err.h"
#include "util/time.h"

#define DIAL_WHERE_MAX 272
#define DIAL_PORT      29400 /* if the endpoint names none */

/* endpoint: "host:port", "[::1]:29400", "host" alone.  Each address of the name is tried until `limit` has passed.  The
 * descriptor (non-blocking, close-on-exec), and where it leads in `where`; or -1 and *e, which begins with `who`
 * (2: malformed; 69: not reached). */
int dial(const char *endpoint, const char *who, el_usec limit, char where[DIAL_WHERE_MAX], struct el_err *e);

/* A UNIX stream socket.  As dial(); 69: nobody listens there; 77: not allowed. */
int dial_path(const char *path, const char *who, struct el_err *e);

/* Waits until the descriptor is ready for poll()'s `events`: 1, or 0 when the time is over (EL_NEVER: never). */
int dial_await(int fd, short events, el_usec until);

#endif
