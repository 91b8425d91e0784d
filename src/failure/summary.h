/* The report on a failure: the cause, its evidence, who else ended, why no restart follows (summary_text.c); the same
 * as one line and as JSON (summary.c). */
#ifndef FAILURE_SUMMARY_H
#define FAILURE_SUMMARY_H
#include "failure/failure.h"
#include "util/buf.h"

#define SUMMARY_ENTRIES_MAX     8    /* other failures in the JSON form; the rest is counted */
#define SUMMARY_KINDS_MAX       8    /* other failures shown, equal ones in one line; the rest is counted */
#define SUMMARY_STACK_LINES_MAX 24   /* of a traceback; a longer one is folded (failure/traceback_trim.h) */
#define SUMMARY_LINE_MAX        1000 /* bytes of one line */

/* Escape sequences around parts of the text; all "" for plain text. */
struct summary_style {
    const char *title, *cause, *dim, *off;
};
extern const struct summary_style summary_plain, summary_colour;

/* What else is known where several nodes are reported of.  The first of the failures is the cause then, and their order
 * is not that of ranks. */
struct report_job {
    unsigned among;            /* so many may have been the first: the clocks of the nodes cannot tell */
    uint64_t failed, rest;     /* workers that failed by themselves; those that are not among the failures */
    const char *rest_ranks;    /* theirs, "" = not known */
    const char *stopped_ranks; /* that elrun stopped */
    const char *classes;       /* "network 12, unknown 3" */
    const char *missing;       /* lines: who had not come to the store when the first failed */
    const char *log_host;      /* whose log_dir it is */
    unsigned log_node;
};

struct failure_report {
    const struct report_job *job;          /* NULL: of one node */
    const char *script;                    /* as the user named it */
    const struct failure *const *failures; /* judged, by ascending rank; those that elrun stopped too */
    unsigned failures_count;
    unsigned restarts, restarts_max; /* made so far; permitted */
    const char *no_restart;          /* why there is none although the budget would have allowed it; NULL or "" */
    const char *log_dir;             /* NULL = there are no logs to look at */
    bool again;                      /* another attempt follows, and whoever prints this says so */
    bool stderr_shown;               /* the cause's stderr stands above, with nobody else's in between */
};

/* Appends the text, its lines fitted to so many columns (0: as they are); 0, or -1 and out->full (what fitted is
 * there). A report without a cause (all were stopped by elrun) says so. */
int summary_write(const struct failure_report *r, struct el_buf *out, const struct summary_style *style,
                  unsigned columns);

/* Appends the one line without newline: "rank 1 (local rank 1) failed: exit code 3: ValueError: bad shape". */
int summary_verdict(const struct failure_report *r, struct el_buf *out);

/* Appends how this worker ended: "exit code 3: ValueError: bad shape (train.py:12)". */
void summary_ending(const struct failure *f, struct el_buf *out);

/* Appends the same report as one JSON object on one line, without newline: whole, or with the long texts cut if it does
 * not fit so, or nothing and -1. */
int summary_json(const struct failure_report *r, struct el_buf *out);

/* Appends an error file in torch's form for a cause whose worker wrote none itself. */
int summary_errfile(const struct failure *f, struct el_buf *out);

/* Appends the ranks that elrun stopped as ranges: "0,2-7"; nothing if there are none. */
int summary_stopped(const struct failure_report *r, struct el_buf *out);

#endif
