/* Where evidence is read from: error files, the out-of-memory counter.  All of it may block: call it in a pool thread.
 */
#ifndef FAILURE_EVIDENCE_H
#define FAILURE_EVIDENCE_H
#include <stdbool.h>
#include <stdint.h>

#include "failure/errfile.h"
#include "failure/failure.h"
#include "util/err.h"

/* Reads at most ERRFILE_SIZE_MAX bytes of the path.  Never waits for a FIFO or a device; never fails: see e->state. */
void evidence_read_errfile(const char *path, struct errfile *e);

/* What the source file says; UNKNOWN if it cannot be read. */
enum handler evidence_handler(const struct handler_place *place);

/* Copies the cause's error file to `to` (the launcher's own TORCHELASTIC_ERROR_FILE), with errorCode added, as torchrun
 * does; where the worker left none that can be read, one in the same form is made of what is known.  -1 and *err. */
int evidence_publish(const struct failure *cause, const char *to, struct el_err *err);

/* Writes the text to a termination log that is there (a regular file, which is never made), in place of what it holds;
 * a path that is none, or is read-only, is left alone. */
void evidence_farewell(const char *path, const char *text, size_t n);

enum evidence_oom_source { EVIDENCE_OOM_NONE, EVIDENCE_OOM_CGROUP_V2, EVIDENCE_OOM_CGROUP_V1, EVIDENCE_OOM_HOST };

/* A counter of out-of-memory kills: found once, read before and after. */
struct evidence_oom {
    enum evidence_oom_source source;
    char path[4096];
};

/* Finds this process's memory cgroup through <proc>/self/mountinfo and <proc>/self/cgroup ("/proc" but in tests); where
 * there is none, the host's own counter in <proc>/vmstat. */
void evidence_oom_open(struct evidence_oom *o, const char *proc);

/* The counter now, or -1 if it cannot be read. */
int64_t evidence_oom_count(const struct evidence_oom *o);

/* Local time as torchrun writes it: "2026-11-21_20:36:48". */
void evidence_time_text(int64_t wall_usec, char out[32]);

#endif
