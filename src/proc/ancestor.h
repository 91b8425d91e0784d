/* Which worker a process is, or descends from: one may be a shell script that starts Python, or a launcher of its own.
 */
#ifndef PROC_ANCESTOR_H
#define PROC_ANCESTOR_H
#include "proc/reap.h"

/* Its slot; -1: none of ours. */
int ancestor_slot(const struct reap *r, pid_t pid);

#endif
