/* NCCL's own log.  It writes to a memory file; what a person should see is passed on to standard error, and the probe
 * reads there which interface and network it took.  Called by both threads. */
#ifndef CHILD_LOG_H
#define CHILD_LOG_H
#include "child.h"

/* Before NCCL is opened: sets NCCL_DEBUG_FILE and, unless the job wants more, what is logged. */
void log_open(void);

/* Passes on what is new: warnings, or all if the job asked for it. */
void log_relay(void);

/* The last of the warnings, "" if there were none. */
const char *log_warnings(void);

/* "eth0, Socket": interface of the bootstrap and network of the data, as far as NCCL has said. */
void log_interface(char *out, size_t room);

#endif
