/* What sink_io.c (the loop's side) and sink_writer_io.c (its thread) share.  Nobody else includes this. */
#ifndef LOOP_SINK_PRIVATE_H
#define LOOP_SINK_PRIVATE_H
#include <pthread.h>

#include "loop/sink.h"

#define SINK_FOOTER_BYTES 512u

/* A piece of the queue: bytes for a descriptor, then perhaps its end. */
struct block {
    struct block *next;
    int fd;
    bool close;
    size_t len, cap;
    char bytes[];
};

/* A descriptor that has refused something. */
struct bad_fd {
    struct bad_fd *next;
    int fd, sys;
    bool dead; /* nobody reads it any more: do not try again */
};

/* One refusal on its way to the loop. */
struct sink_report {
    struct sink_report *next;
    int fd, sys;
};

struct sink {
    struct loop *loop;
    size_t limit;

    /* the loop's thread */
    struct sink_watch *watches;
    struct loop_timer *timer;
    void (*flushed)(void *ctx, size_t left_bytes);
    void *flushed_ctx;
    pthread_t thread;

    /* the writer's thread */
    struct bad_fd *bad;
    bool midline; /* the last thing written did not end with a newline */
    int drawn_fd; /* where the footer stands, -1: nowhere */
    bool torn;    /* of a sink that keeps lines: a part of one was written, the rest refused */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t work, gone;
    struct block *head, **tail, *last;
    size_t cost;    /* memory of what is queued or being written */
    size_t bytes;   /* payload of the same */
    size_t closing; /* blocks that close a descriptor */
    el_usec moved_at;
    bool full, room; /* reached the limit; below half of it again, not told yet */
    bool freed;      /* waits for its last post to come by */
    bool keep_lines;
    uint64_t lines; /* written, of a sink that keeps them */
    bool closed, live, abandoned, posted, want_flushed, footer_new;
    struct sink_report *reports;
    struct loop_post post;
    int footer_fd;
    char footer[SINK_FOOTER_BYTES];
};

/* The thread: writes until the sink is closed, and frees it if sink_free() could not wait for it. */
void *sink_write_all(void *sink);

/* Locked: the loop shall look at what the writer has noted. */
void sink_post(struct sink *s);

/* Frees everything but the timer; the writer has ended. */
void sink_destroy(struct sink *s);

#endif
