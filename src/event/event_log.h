/* --events: where the lines of event.h go.  A sink of their own writes them; a disk that is full, a FIFO that nobody
 * reads or a descriptor that is closed cost the job nothing but the lines, and one warning at its end. */
#ifndef EVENT_EVENT_LOG_H
#define EVENT_EVENT_LOG_H
#include <stdbool.h>

#include "loop/loop.h"
#include "event/event.h"

struct event_log;

/* "fd:3" or a file, to which lines are appended.  Called before anything else opens descriptors, which might get the
 * number that the user means.  NULL and *e: out of memory, or a name that can never be opened (a folder, no right,
 * nothing there); what may be better the next time (a full disk, a FIFO without a reader, a closed descriptor) is not
 * refused. */
struct event_log *event_log_open(const char *to, struct el_err *e);

/* A file that is open already, taken over in any case, ready for the first event; name: for people. */
struct event_log *event_log_adopt(int fd, const char *name, struct loop *l, struct el_err *e);

/* Before the first event. */
int event_log_start(struct event_log *t, struct loop *l, struct el_err *e);

/* t may be NULL: nothing is written. */
void event_log_put(struct event_log *t, const struct event *ev);

/* fn(ctx) once, later, when all is written, at the deadline at last; the warning about what was lost comes before.
 * With t NULL fn is called at once. */
void event_log_finish(struct event_log *t, el_usec deadline, void (*fn)(void *ctx), void *ctx);

/* False: the writer stands in a write that does not return; leave by _exit(). */
bool event_log_free(struct event_log *t);

#endif
