/* The loop: descriptors, timers, signals and calls from other threads become callbacks in one thread.
 * loop_io.c is the only file that includes ev.h; nobody here knows what the events mean. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

#include "util/err.h"
#include "util/time.h"

struct loop;
struct loop_fd;
struct loop_timer;

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* One per process.  NULL and *e filled if the kernel refuses. */
struct loop *loop_new(struct el_err *e);
void loop_free(struct loop *l);

/* Runs until loop_stop(). */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* CLOCK_MONOTONIC, read once per turn of the loop; loop_clock() reads it now. */
el_usec loop_now(const struct loop *l);
el_usec loop_clock(void);
/* The time of day, microseconds since 1970: for people and files, never for a decision. */
int64_t loop_wall_usec(void);

/* Calls fn(ctx, LOOP_READ|LOOP_WRITE bits) while the descriptor is ready for what `events` names; 0 = pause.
 * The descriptor stays the caller's.  Freeing a watcher inside its own callback is allowed. */
typedef void loop_fd_fn(void *ctx, unsigned events);
struct loop_fd *loop_fd_new(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx);
void loop_fd_set(struct loop_fd *w, unsigned events);
void loop_fd_free(struct loop_fd *w);

/* One-shot timer, armed by an absolute time; EL_NEVER disarms. */
typedef void loop_timer_fn(void *ctx);
struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *ctx);
void loop_timer_at(struct loop_timer *t, el_usec when);
void loop_timer_free(struct loop_timer *t);

/* Blocks the signals of the set in the process and delivers each as one call (signalfd).  Once per loop, before any
 *thread is made. */
typedef void loop_signal_fn(void *ctx, const struct signalfd_siginfo *si);
int loop_signals(struct loop *l, const sigset_t *set, loop_signal_fn *fn, void *ctx, struct el_err *e);

/* From any thread: fn(ctx) is called in the loop's thread, in the order of the posts.  The node is the caller's and
 * must live until fn runs; posting one that is already under way is a bug. */
struct loop_post {
    struct loop_post *next;
    void (*fn)(void *ctx);
    void *ctx;
};
void loop_post(struct loop *l, struct loop_post *node);

/* Calls fn(ctx) once at the end of every turn, after all other callbacks: where a shell drains its inbox. */
void loop_at_turn_end(struct loop *l, void (*fn)(void *ctx), void *ctx);

/* Work that is done bit by bit: while it is on, fn(ctx) is called once in every turn, after what has happened and
 * before that of loop_at_turn_end(), and the loop waits for nothing.  fn may turn it off, and may not free it. */
struct loop_chore;
struct loop_chore *loop_chore_new(struct loop *l, void (*fn)(void *ctx), void *ctx);
void loop_chore_set(struct loop_chore *c, bool on);
void loop_chore_free(struct loop_chore *c);

/* Of the library below, for `elrun version`. */
const char *loop_library_version(void);

#endif
