/* Where bytes leave elrun: a queue with a limit, and one thread that writes it to descriptors.  The loop's thread only
 * puts; it never waits for a terminal, a pipe or a disk.  Everything here is called in the loop's thread, callbacks
 * too. */
#ifndef LOOP_SINK_H
#define LOOP_SINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "util/err.h"

struct sink;

/* Who wants to hear of a sink.  Owned by the caller, alive until sink_unwatch() or sink_free(). */
struct sink_watch {
    void (*room)(void *ctx);                   /* sink_full() was true and is false again; may be NULL */
    void (*error)(void *ctx, int fd, int sys); /* a write failed: once for each descriptor and cause; may be NULL */
    void *ctx;
    struct sink_watch *next; /* the sink's own */
};

/* limit_bytes: from there on sink_full() is true; a put is still taken up to four times that.  The thread is made with
 * the first put.  NULL: no memory. */
struct sink *sink_new(struct loop *l, size_t limit_bytes, struct el_err *e);
void sink_watch(struct sink *s, struct sink_watch *w);
void sink_unwatch(struct sink *s, struct sink_watch *w);

/* Queues a copy; puts are written whole and in order, also to descriptors that are non-blocking.  -1: nothing was taken
 * (over four times the limit, out of memory, or no thread could be made); the bytes count as lost.
 * After EPIPE bytes for that descriptor are dropped; after another error (a full disk) each put is tried again. */
int sink_put(struct sink *s, int fd, const void *bytes, size_t n);

/* The descriptor is closed when all that was put for it has been written or dropped.  It is the sink's from here on. */
void sink_close(struct sink *s, int fd);

/* The queue has reached its limit: stop reading what feeds it. */
bool sink_full(const struct sink *s);
/* Even four times the limit would not hold n more bytes. */
bool sink_crammed(const struct sink *s, size_t n);
size_t sink_queued_bytes(const struct sink *s);
/* When the queue last moved, EL_NEVER if it is empty: a writer that stands still shows here. */
el_usec sink_stalled_since(const struct sink *s);

/* For a sink with one descriptor, whose puts are whole lines: what is written after a loss begins on a line of its own,
 * and sink_lines() counts the lines that have been written. */
void sink_keep_lines(struct sink *s);
uint64_t sink_lines(const struct sink *s);

/* A line at the bottom of a terminal: wiped before and drawn again behind whatever else this sink writes there, and
 * only while the last thing written ended with a newline.  Replaces the one before, NULL or "" takes it away.  At most
 * 511 bytes, no newline.  Not counted as queued. */
void sink_footer(struct sink *s, int fd, const char *text);

/* fn(ctx, bytes) once, later: 0 when all is written and closed, else at the deadline, with what has not been.  One at a
 * time.  The footer is taken away first. */
void sink_flush(struct sink *s, el_usec deadline, void (*fn)(void *ctx, size_t left_bytes), void *ctx);

/* Ends the thread.  False: it stands in a write that does not return; it and the queue are left alone until the process
 * ends.  Descriptors that were given by sink_close() and not reached stay open then. */
bool sink_free(struct sink *s);

#endif
