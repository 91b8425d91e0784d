/* Runs the children of a probe (stage.h says until when): starts them with their order on standard input, reads the
 * lines on their descriptor 3, kills them at their deadline, and never waits for one that cannot be killed.  The loop's
 * thread only; callbacks may start and stop children. */
#ifndef PROBE_CHILDREN_H
#define PROBE_CHILDREN_H
#include <sys/resource.h>

#include "loop/loop.h"
#include "probe/stage.h"
#include "proc/reap.h"

struct children;

struct child_end {
    enum stage_outcome outcome;
    int code, signal; /* -1: not known, or not so ended */
    char state;       /* just before it was killed, as in /proc/PID/stat; '?' not known, or it was not killed */
    bool slept;       /* this process stood still while it ran */
    el_usec elapsed;  /* by a clock that knows when we slept: of deadlines */
    char text[256];   /* stuck: where it stands; else the last line on standard error */
    bool said_end;    /* it came to its own end, good or not */
    unsigned unread;  /* lines that were no lines of a probe */
};

struct children_conf {
    struct loop *loop;
    struct reap *reap; /* its owner calls children_reaped() for each helper */
    char *const *env;
    const struct rlimit *files; /* NULL: as elrun has it */
    /* A line on descriptor 3: decoded, and as it came, without newline. */
    void (*line)(void *ctx, unsigned child, const struct probe_wire *w, const char *text, size_t n);
    void (*said)(void *ctx, unsigned child, const char *line);             /* on standard error, clean; may be NULL */
    void (*ended)(void *ctx, unsigned child, const struct child_end *end); /* the last call for this child */
    void *ctx;
};

struct child_conf {
    const char *name; /* for messages: "the check of \"disk\"" */
    int exec_fd;
    char *const *argv;
    const struct probe_wire *order; /* NULL: standard input is empty */
    el_usec limit;
};

struct children *children_new(const struct children_conf *conf, struct el_err *e);

/* Its number until ended() was called, or -1 and *e.  No callback before it returns. */
int children_start(struct children *c, const struct child_conf *conf, struct el_err *e);

/* From reap_ops.helper.  False: it is none of these. */
bool children_reaped(struct children *c, pid_t pid, const struct reap_end *end);

/* Kills one, or all (-1); their ends are told as ever. */
void children_stop(struct children *c, int child);

/* Those whose end has not been told. */
unsigned children_running(const struct children *c);

/* Kills what still runs, without a word. */
void children_free(struct children *c);

#endif
