/* A small pool of threads for jobs that may take long: name resolution, checksums, everything that opens, makes or
 * reads files.  The work runs in a thread of the pool, the answer in the loop's thread.  A job that never ends (a
 * frozen file system) keeps its thread and nothing else: pool_free() does not wait for it. */
#ifndef LOOP_POOL_H
#define LOOP_POOL_H
#include <stdbool.h>

#include "loop/loop.h"
#include "util/err.h"

struct pool;

/* Owned by the caller, who fills the first three fields; it must live until done() has run, and may then be used again.
 * If the pool is freed while work() runs, done() never comes and the job's memory must not be touched or freed. */
struct pool_job {
    void (*work)(void *ctx); /* in a thread of the pool, with all signals blocked */
    void (*done)(void *ctx); /* in the loop's thread */
    void *ctx;
    struct pool_job *next; /* the pool's own */
    struct pool *pool;
    struct loop_post post;
};

/* At most `threads` (1 … 64) run at the same time; the first one is made when the first job comes.  NULL: no memory. */
struct pool *pool_new(struct loop *l, unsigned threads, struct el_err *e);

/* Jobs start in the order of the calls.  -1 and *e filled only if there is no thread and none can be made. */
int pool_run(struct pool *p, struct pool_job *job, struct el_err *e);

/* Before there is a loop: runs work(ctx) in a thread of its own, with all signals blocked, and waits for its end.
 * False: it has not come within the limit (what ctx leads to is the thread's for good), or no thread could be made
 * (*made is false, and work never ran). */
bool pool_await(void (*work)(void *ctx), void *ctx, el_usec limit, bool *made);

/* Jobs whose done() has not been called yet. */
unsigned pool_pending(const struct pool *p);

/* Waits for idle threads only.  False: some job is stuck in its work() and its thread was left alone (it ends with the
 * process, or when its work returns); what such jobs use must stay.  Jobs that never started are forgotten. */
bool pool_free(struct pool *p);

#endif
