/* The jobs of output_io.c that touch the log tree; they run in the pool and may outlive the output. */
#ifndef OUTPUT_ATTEMPT_PRIVATE_H
#define OUTPUT_ATTEMPT_PRIVATE_H
#include "output/output_private.h"

/* Makes the tree of one attempt; when done, output_attempt_made() is called, if the output is still there. */
int attempt_job_start(struct output *o, const char *attempt, struct el_err *e);
/* The output goes away: the job cleans up behind itself. */
void attempt_job_abandon(struct attempt_job *job);

/* Removes the temporary directory if it is empty, then output_swept(o, kept). */
int sweep_job_start(struct output *o, struct el_err *e);
void sweep_job_abandon(struct sweep_job *job);

struct attempt_result {
    struct el_err e;
    char *run_dir, *temporary; /* of a first attempt: malloc'd, taken by the output */
    const int *file_fd;        /* [2 * nproc], -1: none; taken by the output */
    const int *filter_fd;      /* [3]; taken */
    const char *dir;           /* of the attempt */
    int events_fd;             /* LOGTREE_EVENTS of a first attempt, -1: none; taken */
};
void output_attempt_made(struct output *o, struct attempt_result *r);
void output_swept(struct output *o, bool removed);

#endif
