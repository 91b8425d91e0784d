/* What a node keeps of its health checks in files of its own: verdicts of past ones, and speeds of healthy nodes of its
 * hardware.  Verdicts are read and written by the pool, at the beginning and when one is there: the loop waits for no
 * disk, and the end of the job not for long. */
#ifndef AGENT_HEALTH_FILES_H
#define AGENT_HEALTH_FILES_H
#include "agent/health.h"
#include "loop/pool.h"
#include "probe/found.h"
#include "probe/plan.h"

/* NULL: not wanted.  The strings stay the caller's. */
struct health_files_conf {
    const char *state_dir, *baseline, *save_baseline;
    const char *baseline_option; /* what it is called on the command line */
};

struct health_files;

/* NULL and *e: a baseline that cannot be read, or no memory.  A folder that cannot be written to is told. */
struct health_files *health_files_new(const struct health_files_conf *conf, struct loop *loop, struct pool *pool,
                                      struct el_err *e);

/* True: what was before is still being read; fn comes when it is, or when that takes too long.  fn NULL: not any more.
 */
bool health_files_wait(struct health_files *f, void (*fn)(void *ctx), void *ctx);

/* After a look; f NULL: no files were asked for.  Lines for the coordinator are appended; -1 and *e: the baseline is of
 * other hardware. */
int health_files_look(struct health_files *f, const struct found *found, struct el_buf *lines, struct el_err *e);
/* A node that nobody else is compared with: is it slow by the baseline, and why?  False where there is none. */
bool health_files_slow(const struct health_files *f, const struct found *found, const struct plan_conf *conf, char *why,
                       size_t room);
/* A rail of a pair that went well. */
void health_files_pair(struct health_files *f, const struct rail_result *r);
enum health_files_verdict { HEALTH_FILES_GOOD, HEALTH_FILES_BAD, HEALTH_FILES_UNDECIDED };
/* It is written; what could not be is said. */
void health_files_verdict(struct health_files *f, enum health_files_verdict verdict, const char *reason);

/* The job ends: fn comes when everything is written, at the deadline at the latest; perhaps before this returns. */
void health_files_settle(struct health_files *f, el_usec deadline, void (*fn)(void *ctx), void *ctx);

/* Nothing is being written any more: the pool has been freed. */
void health_files_free(struct health_files *f);

#endif
