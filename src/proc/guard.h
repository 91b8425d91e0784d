/* The guard: one forked process that outlives elrun for a moment and kills what elrun can no longer kill.
 * It knows every worker group; at the end of file on its pipe (elrun was killed with SIGKILL, or has crashed) it kills
 * them all and goes.  The second line of defence beside the parent-death signal, which reaches direct children only
 * (spec/torchrun.md, D5). */
#ifndef PROC_GUARD_H
#define PROC_GUARD_H
#include <sys/types.h>

#include "util/err.h"

struct guard;

enum guard_verb { GUARD_ADD = 1, GUARD_REMOVE = 2 };

struct cgroup;

/* slots: most groups at one time.  cgroup: killed first, and removed; NULL if there is none.  It outlives the guard. */
struct guard *guard_new(unsigned slots, const struct cgroup *cgroup, struct el_err *e);

/* Ends the guard without killing anything: all workers are gone. */
void guard_free(struct guard *g);

pid_t guard_pid(const struct guard *g);

/* Where spawn_worker()'s child writes its group. */
int guard_fd(const struct guard *g);

/* Forgets a group: before its leader is reaped and nothing of it is left. */
void guard_remove(struct guard *g, pid_t group);

/* The guard has ended (its pid was reaped): forks another and tells it the groups that the caller then adds again. */
int guard_replace(struct guard *g, struct el_err *e);
void guard_add(struct guard *g, pid_t group);

/* One record; async-signal-safe, never blocks. */
void guard_tell(int fd, enum guard_verb verb, pid_t group);

#endif
