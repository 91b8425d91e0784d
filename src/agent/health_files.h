/* What a node of `elrun probe --nnodes` keeps in files of its own: verdicts of past probes, and speeds of healthy nodes
 * of its hardware.  They are read before anything runs and written after all is over: the loop never waits for them. */
#ifndef AGENT_HEALTH_FILES_H
#define AGENT_HEALTH_FILES_H
#include "agent/health.h"
#include "probe/found.h"
#include "probe/plan.h"

struct health_files;

/* NULL and *e: a baseline that cannot be read, or no memory.  A folder that cannot be written to is told. */
struct health_files *health_files_new(const struct health_local *conf, struct el_err *e);

/* After a look; NULL: no files were asked for.  Lines for the coordinator are appended; -1 and *e: the baseline is of
 * other hardware. */
int health_files_look(struct health_files *f, const struct found *found, struct el_buf *lines, struct el_err *e);
/* A rail of a pair that went well. */
void health_files_pair(struct health_files *f, const struct rail_result *r);
enum health_files_verdict { HEALTH_FILES_GOOD, HEALTH_FILES_BAD, HEALTH_FILES_UNDECIDED };
void health_files_verdict(struct health_files *f, enum health_files_verdict verdict, const char *reason);

/* Writes, and says what could not be written. */
void health_files_close(struct health_files *f);

#endif
