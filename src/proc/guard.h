/* The guard: one forked process that outlives elrun for a moment and kills what elrun can no longer kill.
 * It knows every worker group; at the end of file on its pipe (elrun was killed with SIGKILL, or has crashed) it kills
 * them all and goes.  It kills them, too, when the moment of guard_fence() has passed and elrun has not set a later
 * one: elrun is stopped or starved, and others may take the places of its workers.  The second line of defence beside
 * the parent-death signal, which reaches direct children only. */
#ifndef PROC_GUARD_H
#define PROC_GUARD_H
#include <sys/types.h>

#include "util/err.h"
#include "util/time.h"

struct guard;

enum guard_verb { GUARD_END, GUARD_ADD, GUARD_REMOVE, GUARD_FENCE };

struct cgroup;

/* slots: most groups at one time.  cgroup: killed first, and removed; folder: removed with what is in it when all are
 * killed; NULL if there is none.  Both outlive the guard. */
struct guard *guard_new(unsigned slots, const struct cgroup *cgroup, const char *folder, struct el_err *e);

/* Ends the guard without killing anything: all workers are gone. */
void guard_free(struct guard *g);

pid_t guard_pid(const struct guard *g);

/* Where spawn_worker()'s child writes its group. */
int guard_fd(const struct guard *g);

/* Forgets a group: before its leader is reaped and nothing of it is left. */
void guard_remove(struct guard *g, pid_t group);

/* From `at` on (loop_clock()) all groups are killed, unless a later moment is set before; EL_NEVER: not at all.  A
 * moment that has passed when the guard hears of it means nothing: elrun runs, and acts itself. */
void guard_fence(struct guard *g, el_usec at);

/* The guard has ended (its pid was reaped): forks another and tells it the groups that the caller then adds again. */
int guard_replace(struct guard *g, struct el_err *e);
void guard_add(struct guard *g, pid_t group);

/* One record; async-signal-safe, never blocks. */
void guard_tell(int fd, enum guard_verb verb, pid_t group);

#endif
