/* What the kernel says of one process: the texts of /proc/<pid>/status and /proc/<pid>/stat.  Pure; the caller reads.
 */
#ifndef SYS_PROCSTAT_H
#define SYS_PROCSTAT_H
#include <stdbool.h>
#include <stdint.h>

struct procstat_status {
    char state; /* R, S, D, T, t, Z, X, I … */
    int ppid;
    uint64_t sig_blocked, sig_ignored, sig_caught; /* bit n-1 is signal n */
};

/* Text of /proc/<pid>/status, ended by 0.  -1 if a line is missing or is not what the kernel writes. */
int procstat_status(struct procstat_status *out, const char *text);

/* Whether the process has a handler for the signal / has it ignored. */
bool procstat_catches(const struct procstat_status *s, int signal);
bool procstat_ignores(const struct procstat_status *s, int signal);

struct procstat_stat {
    int pid, ppid, pgrp, session;
    char comm[64]; /* the name between the parentheses; may hold anything, parentheses too */
    char state;
    unsigned threads;
    uint64_t utime_ticks, stime_ticks, start_ticks; /* since boot; sysconf(_SC_CLK_TCK) a second */
};

/* Text of /proc/<pid>/stat, ended by 0. */
int procstat_stat(struct procstat_stat *out, const char *text);

#endif
