/* What output_io.c, stream_io.c and tail_io.c share: one worker stream, and the whole.  Nobody else includes this. */
#ifndef OUTPUT_OUTPUT_PRIVATE_H
#define OUTPUT_OUTPUT_PRIVATE_H
#include "output/filter.h"
#include "output/head.h"
#include "output/line.h"
#include "output/output.h"
#include "output/prefix.h"
#include "output/ring.h"
#include "output/route.h"

#define OUTPUT_READ_BYTES (64u * 1024u)

enum stream_state {
    STREAM_OFF,     /* not opened in this attempt */
    STREAM_OPEN,    /* descriptors made, the child not started */
    STREAM_UNREAD,  /* the worker runs, there is nothing to read here */
    STREAM_WATCHED, /* the loop says when there is something */
    STREAM_RESTING, /* there was a little: looked at again with the next tick, so that many small writes cost one read
                     */
    STREAM_BLOCKED, /* somebody who takes its bytes has no room */
    STREAM_ENDED
};

struct stream {
    struct output *o;
    unsigned rank;
    int which; /* 1 or 2 */
    struct route route;
    enum stream_state state;
    int child_fd, read_fd, file_fd; /* -1: none */
    struct loop_fd *watch;
    struct stream *next; /* in the resting or the blocked list */
    size_t read_max;     /* so that the text with prefixes always fits a queue */
    bool watched;        /* o->steps sees its bytes */
    bool exited;         /* the worker is gone */
    bool forced;         /* nobody waits for the console or the disk any longer */
    el_usec exited_at;
    size_t owed;     /* bytes that lay in the pipe at that time and have not been read */
    el_usec held_at; /* since when a part of a line waits */
    bool shown;      /* a part of the present line is on the console: others may break it */
    bool broken;     /* … and one has */
    struct line line;
    struct filter_stream filtered;
    struct ring ring;
    el_usec said_at; /* when its last bytes came */
    struct head head;
    char prefix[PREFIX_BYTES_MAX];
};

struct rank {
    struct stream stream[2]; /* stdout, stderr */
    char *dir, *error_file;  /* NULL without logs */
    bool told;               /* rank_drained was called */
};

/* A place where lines of several streams meet. */
struct mouth {
    struct sink *sink;
    struct stream *holder; /* is in the middle of a line: the others wait */
    bool open;             /* what was passed on as it is has not ended its line */
    el_usec held_at;
    struct loop_timer *timer;
};

struct stream_list {
    struct stream *head, **tail;
};

struct attempt_job;
struct sweep_job;
struct tails;

struct output {
    struct loop *loop;
    struct pool *pool;
    struct output_conf conf;
    struct rank *ranks;
    bool logs, terminal[3];
    int null_fd, filter_fd[3];
    struct filter filter[3];
    struct steps *steps; /* shown what local rank steps_rank prints; NULL: nothing is */
    int steps_rank;
    bool told_steps;
    struct sink *files; /* NULL: no log files at all */
    struct mouth mouths[2], *mouth[3];
    bool console_dead[3]; /* EPIPE: nobody reads it */
    struct sink_watch watch_files, watch_mouth[2];
    struct loop_timer *tick, *late, *soon;
    struct stream_list resting, blocked;
    bool kick;                /* blocked streams shall be tried again in the next turn */
    struct loop_timer *parts; /* of lines that wait for their rest */
    bool parts_armed;
    bool late_armed;
    bool told_lost, told_drained;
    struct el_buf text;
    char scratch[OUTPUT_READ_BYTES];

    int events_fd; /* of the run's folder, until somebody takes it; -1: none */
    char *run_dir, *temporary;
    struct attempt_job *job;
    bool attempted;
    unsigned last_count;
    bool ready_due;
    struct el_err start_error; /* the attempt could not even begin */
    output_ready_fn *ready;
    void *ready_ctx;
    struct tails *tails;

    enum { FINISH_NO, FINISH_DRAIN, FINISH_FLUSH, FINISH_SWEEP, FINISH_DONE } finish;
    struct loop_timer *finish_timer;
    struct sweep_job *sweep;
    void (*finished)(void *ctx, const char *kept);
    void *finished_ctx;
};

/* --- stream_io.c --- */

/* Makes what the child needs. */
int stream_open(struct stream *s, struct el_err *e);
void stream_started(struct stream *s);
void stream_exited(struct stream *s);
/* Gives up what has not been read. */
void stream_abort(struct stream *s);
bool stream_ended(const struct stream *s);
void stream_resized(struct stream *s);

/* Streams that wait for room are tried again. */
void streams_unblock(struct output *o);
void streams_on_tick(void *output);
void streams_on_late(void *output);
void streams_show_parts(void *output);
void mouth_on_timer(void *mouth);

/* --- output_io.c --- */
void output_soon(struct output *o);

/* --- tail_io.c --- */
void tails_forget(struct output *o);

#endif
