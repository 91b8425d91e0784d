/* The coordinator's report on a round of several nodes (REPORT and its rows) -> what a summary is written from.  Pure.
 */
#ifndef COORD_JOB_REPORT_H
#define COORD_JOB_REPORT_H
#include "failure/record.h"
#include "failure/summary.h"
#include "coord/rdzv.h"

struct job_report {
    struct el_mem mem; /* pays for all below; bounded */
    uint64_t number, coord;
    unsigned restarts, restarts_max;
    struct report_job job;
    char *texts[4];                          /* what job points to */
    struct record *record[RDZV_REPORT_ROWS]; /* the cause first */
    const struct failure *failures[RDZV_REPORT_ROWS];
    unsigned n;
    bool open; /* rows are to come */
};

#define JOB_REPORT_MAX_BYTES ((size_t)4 << 20)

void job_report_init(struct job_report *j);
void job_report_free(struct job_report *j); /* and init */

/* A REPORT begins anew.  True when it is complete.  A document that cannot be read is replaced by what the row says. */
bool job_report_take(struct job_report *j, const struct msg *m);

/* For summary_write(); the caller adds script and log_dir.  Lives until the next call. */
struct failure_report job_report_view(const struct job_report *j);

#endif
