/* What workers print: pipes, log files, console, tails.  One attempt (one set of running workers) at a time:
 *   output_attempt_begin -> callback -> for each rank: output_child_fds, fork, output_child_started …
 * output_child_exited
 *   -> drained callback -> the next attempt, or output_finish.
 * All calls and callbacks are in the loop's thread; nothing here waits for a file, a terminal or a pipe. */
#ifndef OUTPUT_OUTPUT_H
#define OUTPUT_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/sink.h"
#include "util/err.h"
#include "util/limits.h"

struct output;
struct steps;

/* Which standard streams, as torchrun numbers them: bit 0 stdout, bit 1 stderr. */
enum output_std { OUTPUT_STD_NONE = 0, OUTPUT_STD_OUT = 1, OUTPUT_STD_ERR = 2, OUTPUT_STD_BOTH = 3 };

/* "3" or "0:1,12:3": either one value for all local ranks, or a value for some and none for the rest. */
struct output_streams {
    bool all;                    /* value[0] holds for every local rank */
    unsigned n;                  /* entries used in value; local ranks from n on have OUTPUT_STD_NONE */
    uint8_t value[EL_SLOTS_MAX]; /* enum output_std */
};

/* What the options say of output. */
struct output_options {
    const char *log_dir; /* NULL: a fresh temporary directory */
    struct output_streams redirects, tee;
    bool ranks_filtered; /* --local-ranks-filter was given: only ranks with rank_shown reach the console */
    uint8_t rank_shown[EL_SLOTS_MAX];
    const char *prefix_template; /* "" = torchrun's own "[${role_name}${local_rank}]:" */
    const char *filter_stdout;   /* comma list, ",," is a comma; "" = none */
    const char *filter_stderr;
    int capture_stderr; /* enum { no, yes } */
};

#define OUTPUT_STALL_MAX EL_SEC(30)

struct output_conf {
    const struct output_options *options; /* outlives us */
    const char *role;                     /* for ${role_name}; outlives us */
    const char *run_id;                   /* begins the name of the log folder; outlives us */
    unsigned nproc;
    struct sink *out, *err;     /* for descriptors 1 and 2 of elrun, may be the same; from console_sink() */
    const char *hostname;       /* for ${hostname} */
    const char *tmpdir;         /* $TMPDIR; NULL or "" = /tmp */
    uint64_t seed;              /* chance for names */
    el_usec stall_max;          /* a worker's last bytes wait so long for a console that stands; 0: OUTPUT_STALL_MAX */
    void (*drained)(void *ctx); /* every stream of the attempt has ended; may be NULL */
    void (*rank_drained)(void *ctx,
                         unsigned rank); /* both streams of a local rank have ended: tails are whole; may be NULL */
    void *ctx;
};

/* Touches no file system.  NULL and *e filled: usage (a bad template) or no memory. */
struct output *output_new(struct loop *l, struct pool *p, const struct output_conf *conf, struct el_err *e);

/* Makes directories and files in the pool, with the first call the root of the log tree too, then calls
 * ready(ctx, NULL), or ready(ctx, e) with EL_EXIT_CANTCREAT and one clear line.  No callback before it returns.
 * rank_base: global rank of local rank 0.  The attempt before must be drained (else its rest is given up). */
typedef void output_ready_fn(void *ctx, const struct el_err *e);
void output_attempt_begin(struct output *o, unsigned restart_count, unsigned round, unsigned rank_base,
                          output_ready_fn *ready, void *ctx);

/* From the next attempt on the lines of this local rank (-1: of none) are shown to *steps, which outlives us.  A stream
 * that leads straight to a terminal is left alone: that is said once. */
void output_watch_steps(struct output *o, int local_rank, struct steps *steps);

/* What the child of a local rank must dup to 1 and 2: fd[1], fd[2], -1 = leave what elrun has; fd[0] is not touched.
 * They are close-on-exec and stay ours.  *error_file: for TORCHELASTIC_ERROR_FILE, "" without logs; valid until the
 * next attempt. */
int output_child_fds(struct output *o, unsigned local_rank, int fd[3], const char **error_file, struct el_err *e);

/* The child has its copies (or will never be: then output_child_exited() follows). */
void output_child_started(struct output *o, unsigned local_rank);
/* The worker is reaped: what is in its pipes is read; a descendant that keeps them open is waited for 100 ms. */
void output_child_exited(struct output *o, unsigned local_rank);

bool output_rank_drained(const struct output *o, unsigned local_rank);
bool output_drained(const struct output *o);

/* Somebody else writes to the console: an unfinished line that is shown there gets its end. */
void output_break_line(struct output *o);

/* What it writes to that stream (1 or 2) is passed on to the console. */
bool output_on_console(const struct output *o, unsigned local_rank, int which);

/* True if a worker of this attempt writes to the terminal by itself: then nobody may draw a status line there. */
bool output_terminal_shared(const struct output *o);
/* The terminal's size has changed (SIGWINCH): pseudo-terminals of --capture-stderr follow. */
void output_resized(struct output *o);

/* The last 64 KiB of a stream (and in front of them the beginning of a traceback whose message is longer, head.h), or
 * why there are none. */
#define OUTPUT_TAIL_LIST(X)                                                                                            \
    X(READ, "read by elrun")                                                                                           \
    X(FILE, "from the log file")                                                                                       \
    X(TERMINAL, "the worker writes straight to the terminal (--capture-stderr=no)")                                    \
    X(INHERITED, "the worker writes straight to elrun's own standard output")                                          \
    X(NULL_DEVICE, "it goes to the null device")                                                                       \
    X(UNREADABLE, "its log file cannot be read")                                                                       \
    X(TIMEOUT, "its log file could not be read in time")
enum output_tail_from {
#define X(name, text) OUTPUT_TAIL_##name,
    OUTPUT_TAIL_LIST(X)
#undef X
};
const char *output_tail_text(enum output_tail_from from);
struct output_tail {
    enum output_tail_from from;
    const char *bytes; /* valid during the callback; NULL if len is 0 */
    size_t len;
    uint64_t total_bytes; /* that the stream has had */
    el_usec at;           /* when elrun read the last of them; 0: not known */
    const char *path;     /* the log file, NULL if there is none */
};
/* fn(ctx, local_rank, stdout, stderr) exactly once, later, at the deadline at last.  After rank_drained the tails are
 * whole, before it they are what has been read so far.  -1: out of memory, fn is not called. */
typedef void output_tails_fn(void *ctx, unsigned local_rank, const struct output_tail *out,
                             const struct output_tail *err);
int output_tails_collect(struct output *o, unsigned local_rank, el_usec deadline, output_tails_fn *fn, void *ctx);

/* What is kept of a stream (1 or 2) of this attempt, now and without touching a file: the path of its log file, or "";
 * and the last bytes that elrun itself has read (NULL: they are not wanted). */
#define OUTPUT_KEPT_BYTES (64u * 1024u)
enum output_tail_from output_kept(const struct output *o, unsigned local_rank, int which, char *path, size_t size,
                                  char bytes[OUTPUT_KEPT_BYTES], size_t *len);
/* A worker's sign of life: bytes that elrun has read from both its streams in this attempt.  *held: some of them wait
 * for a console or a disk that stands, so the worker may stand because of that. */
uint64_t output_read_bytes(const struct output *o, unsigned local_rank, bool *held);
/* When elrun read the last bytes of a stream (1 or 2) of this attempt; 0: it has read none. */
el_usec output_said_at(const struct output *o, unsigned local_rank, int which);
/* Everything that was read has been written to the log files. */
bool output_settled(const struct output *o);

/* Ends it: waits until the log files are written and closed, removes a temporary log directory in which nothing was
 * written, then fn(ctx, kept) with the temporary directory that was kept, else NULL; at the deadline at last.  The
 * console's sinks are flushed by their owner. */
void output_finish(struct output *o, el_usec deadline, void (*fn)(void *ctx, const char *kept), void *ctx);

/* `<log dir>/<run id>_<random>`; NULL before the first attempt is ready and when there are no logs. */
const char *output_log_dir(const struct output *o);
/* An open file in that directory for events (LOGTREE_EVENTS), the caller's from then on; -1: there is none, it could
 * not be made, or it was taken. */
int output_take_events(struct output *o);

void output_free(struct output *o);

#endif
