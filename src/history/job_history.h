/* What happened to a job, put together from what it left: events of one or several nodes, or the files of a log folder.
 * Pure: lines and findings go in, in any order of files; the same summary as live and a time line come out.
 *
 * Of several jobs in one file the last one counts.  Everything is bounded by the allocator's limit and the numbers
 * below; what was left out is said in the remarks. */
#ifndef HISTORY_JOB_HISTORY_H
#define HISTORY_JOB_HISTORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure/record.h"
#include "failure/summary.h"
#include "history/timeline.h"
#include "event/event.h"
#include "util/buf.h"

#define JOB_HISTORY_FAULTS_MAX 4096 /* failures that are kept, and with them those that elrun stopped */
#define JOB_HISTORY_LOST_MAX   1024
#define JOB_HISTORY_TEXT_MAX   512

/* How one worker ended that did not succeed. */
struct job_history_fault {
    struct record *record; /* its failure.at is on the aligned wall clock after job_history_close() */
    int node;              /* of the time line, -1: none */
    bool told;             /* by an incident: with evidence, not only its end */
};

/* A node that the coordinator lost, as it said so. */
struct job_history_lost {
    char host[TIMELINE_HOST_MAX + 1], text[TIMELINE_TEXT_MAX];
    int64_t at;
    uint64_t round;
    int clock; /* node on whose clock that is, -1: none known */
};

/* Sums over the nodes of what their agents counted. */
struct job_history_account {
    unsigned nodes;
    double total, forming, starting, running, stopping, waiting, effective, repeated, steps_new, steps_again, step;
    bool steps;
    char text[JOB_HISTORY_TEXT_MAX]; /* of the only node, as it said it */
};

struct job_history {
    struct el_mem *mem;
    struct timeline line;
    struct job_history_fault *fault;
    size_t faults, faults_room, faults_left_out;
    char run_id[129], script[JOB_HISTORY_TEXT_MAX], log_dir[4096];
    unsigned restarts, restarts_max;
    uint64_t rounds; /* the highest number seen */
    bool any;        /* something is known */
    bool ended;      /* the end of the job is recorded, or that of every agent */
    bool from_tree;  /* exit statuses are not known: no events */
    int status;      /* of the job, or the highest of the agents'; -1: not recorded */
    char end_text[JOB_HISTORY_TEXT_MAX];
    unsigned agents, agents_open; /* seen; of those, not yet ended */
    struct job_history_account account;
    int64_t clocks_off;    /* how far the farthest clock was off */
    struct el_buf remarks; /* lines for a person about what was read */

    struct job_history_lost *lost; /* JOB_HISTORY_LOST_MAX */
    size_t lost_count;

    /* of the file that is being read */
    unsigned source;
    int source_node; /* of its agent, -1: none yet */
    size_t lines, foreign, unknown, others;
    int64_t first; /* time of the first event of all; what is years away from it is not believed */
};

/* Which of several jobs in one file is the last one: the lines in order go in, as in job_history_line(). */
struct job_history_scan {
    uint64_t at, begins; /* bytes so far; where the last job's lines begin */
    uint64_t agent_at;   /* where the last agent_started stood */
    unsigned open, jobs;
    char run_id[129]; /* of the last job; "" = none seen */
};
/* n: with its newline, which may be missing at the end. */
void job_history_scan(struct job_history_scan *s, const char *line, size_t n);

void job_history_init(struct job_history *c, struct el_mem *mem);
void job_history_free(struct job_history *c);

/* One file of events: begin, its lines in order (without newline), end.  run_id: only events of this job count, "" of
 * all. End says in the remarks what was not read; torn: the last line had no newline. */
void job_history_file_begin(struct job_history *c, const char *run_id);
void job_history_line(struct job_history *c, const char *line, size_t n);
void job_history_file_end(struct job_history *c, const char *path, bool torn);

/* A log folder without events.  The run's folder is a node; each attempt of it ran from `from` to `to`. */
int job_history_run(struct job_history *c, const char *name);
void job_history_attempt(struct job_history *c, int node, unsigned restart, uint64_t round, unsigned workers,
                         int64_t from, int64_t to);
/* How a worker of that attempt ended, by what it left.  Takes it over with its texts, or frees it if it tells of no
 * failure. */
void job_history_left(struct job_history *c, int node, struct record *r);

void job_history_remark(struct job_history *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All has been read: clocks are aligned, failures put in order. */
void job_history_close(struct job_history *c);

/* The failures of the last round in which one failed by itself, as the summary wants them: fills *r, whose array (freed
 * with the chronicle's allocator by the caller) is returned; NULL: none failed, or no memory. */
const struct failure **job_history_report(const struct job_history *c, struct failure_report *r);

/* Did the job fail, as far as is known? */
bool job_history_failed(const struct job_history *c);

struct job_history_look {
    struct timeline_look line;
    const struct summary_style *style;
    unsigned text_columns; /* of the terminal; 0: it is none */
};
/* Appends everything for a person, the failure's report last. */
void job_history_text(const struct job_history *c, const struct job_history_look *look, struct el_buf *out);
/* Appends one JSON object on one line; -1: it did not fit, and nothing is appended. */
int job_history_json(const struct job_history *c, struct el_buf *out);

/* Appends a line for each node and round in which a worker failed by itself, as DLRover has it (failure/dlrover.h). */
void job_history_dlrover(const struct job_history *c, struct el_buf *out);

#endif
