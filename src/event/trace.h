/* --events: where the lines of event.h go.  A sink of their own writes them; a disk that is full, a FIFO that nobody
 * reads or a descriptor that is closed cost the job nothing but the lines, and one warning at its end. */
#ifndef EVENT_TRACE_H
#define EVENT_TRACE_H
#include <stdbool.h>

#include "loop/loop.h"
#include "event/event.h"

struct trace;

/* "fd:3" or a file, to which lines are appended.  Called before anything else opens descriptors, which might get the
 * number that the user means.  NULL and *e: out of memory, or a name that can never be opened (a folder, no right,
 * nothing there); what may be better the next time (a full disk, a FIFO without a reader, a closed descriptor) is not
 * refused. */
struct trace *trace_open(const char *to, struct el_err *e);

/* A file that is open already, taken over in any case, ready for the first event; name: for people. */
struct trace *trace_adopt(int fd, const char *name, struct loop *l, struct el_err *e);

/* Before the first event. */
int trace_start(struct trace *t, struct loop *l, struct el_err *e);

/* t may be NULL: nothing is written. */
void trace_put(struct trace *t, const struct event *ev);

/* fn(ctx) once, later, when all is written, at the deadline at last; the warning about what was lost comes before.
 * With t NULL fn is called at once. */
void trace_finish(struct trace *t, el_usec deadline, void (*fn)(void *ctx), void *ctx);

/* False: the writer stands in a write that does not return; leave by _exit(). */
bool trace_free(struct trace *t);

#endif
