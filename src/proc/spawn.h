/* The only place that forks (but for ctrl_c_io.c, whose child joins a group).  Called in the loop's thread only: a
 * parent-death signal fires when the *thread* that forked ends, and a pool thread may hold malloc's lock at any time.
 */
#ifndef PROC_SPAWN_H
#define PROC_SPAWN_H
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "util/err.h"

/* How far a child came before it could not go on; the sentence says what it could not do. */
#define SPAWN_STAGE_LIST(X)                                                                                            \
    X(GROUP, "cannot make a process group for")                                                                        \
    X(TERMINAL, "cannot give the terminal to")                                                                         \
    X(STREAMS, "cannot set up the standard streams of")                                                                \
    X(NUMA, "cannot bind CPUs or memory of")                                                                           \
    X(EXEC, "cannot execute")

enum spawn_stage {
#define X(name, text) SPAWN_STAGE_##name,
    SPAWN_STAGE_LIST(X)
#undef X
};

#define SPAWN_FAILED_STATUS 127

/* What a child writes to report_fd when it fails before exec; smaller than PIPE_BUF, so never torn. */
struct spawn_report {
    unsigned slot;
    int pid;
    int stage; /* enum spawn_stage */
    int sys;   /* errno */
};

struct numa_plan;

struct spawn_conf {
    unsigned slot;
    const char *name; /* NULL: it is the worker of that slot */
    const char *path; /* of the program: absolute or with a slash; with exec_fd only its name in messages */
    int exec_fd;      /* > 2: the program itself, open for reading (self.h, an embedded one); 0: it is at `path` */
    char *const *argv, *const *envp;
    int fd[3];                    /* become 0, 1, 2; -1: as elrun has it */
    int result_fd;                /* > 2: becomes descriptor 3; 0: there is none */
    int report_fd;                /* write end, close-on-exec */
    int guard_fd;                 /* the guard is told the new group here, before exec; -1: no guard */
    int cgroup_fd;                /* folder of the cgroup (version 2) to be born in, -1: none */
    int terminal_fd;              /* >= 0: stays in elrun's session, and its group becomes the terminal's foreground */
    const struct rlimit *files;   /* and its limit of open files; NULL: as elrun has it */
    const struct numa_plan *numa; /* NULL: no binding */
    unsigned oom_raise;           /* added to its oom_score_adj; 0: as elrun has it */
};

/* The pid of the child, which leads its own session and group (its group only with terminal_fd); or -1 and *e when the
 * kernel refuses.  What fails later in the child comes through report_fd, and the child exits 127. */
pid_t spawn_worker(const struct spawn_conf *c, struct el_err *e);

/* A child that runs fn(ctx) and _exit()s with its result: no exec, own session, every signal that can be blocked is. fn
 * may use only async-signal-safe calls and memory made before. */
pid_t spawn_function(int (*fn)(void *ctx), void *ctx, struct el_err *e);

/* One line for a report: `cannot execute "x": No such file or directory`, with a hint where there is one. */
void spawn_explain(const struct spawn_report *r, const char *path, struct el_err *e);

#endif
